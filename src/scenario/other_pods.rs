//! Pods that belong to no target, for instance to a Job. The selector of a target may match them.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::model::api::{ConditionStatus, ContainerMetrics, PodPhase, PodSpec};
use crate::model::time::{Span, Time};

/// Some pods that are alike. They are there from the start to the end, and nothing befalls them.
#[derive(Clone, PartialEq, Debug)]
pub struct OtherPods {
    /// The prefix of their names.
    pub name: Arc<str>,
    /// Their number.
    pub count: u32,
    /// Their labels.
    pub labels: BTreeMap<String, String>,
    /// Containers and their requests.
    pub spec: Arc<PodSpec>,
    /// Their usage, which never changes. Empty: metrics.k8s.io has no entry of them.
    pub usage: Arc<[ContainerMetrics]>,
    /// Their phase.
    pub phase: PodPhase,
    /// Their condition Ready since their creation, if they have one.
    pub ready: Option<ConditionStatus>,
    /// Whether they have a start time.
    pub started: bool,
    /// Whether they are Terminating.
    pub terminating: bool,
    /// How old they are at t=0.
    pub age: Span,
}

impl OtherPods {
    /// Their names: `report-0`, `report-1` …
    pub fn names(&self) -> impl Iterator<Item = Arc<str>> {
        (0..self.count).map(|index| format!("{}-{index}", self.name).into())
    }

    /// When they were created, as the API has it.
    #[must_use]
    pub fn created(&self) -> Time {
        (Time::ZERO - self.age).truncate_to_second()
    }
}
