//! Pods that belong to no target, for instance to a Job. The selector of a target may match them.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::model::api::{ConditionStatus, ContainerMetrics, PodPhase, PodSpec};
use crate::model::time::{Span, Time};

/// Identical pods that exist from the start to the end and never change.
#[derive(Clone, PartialEq, Debug)]
pub struct OtherPods {
    /// The prefix of the pods' names.
    pub name: Arc<str>,
    /// The number of pods.
    pub count: u32,
    /// The labels of the pods.
    pub labels: BTreeMap<String, String>,
    /// Containers and their requests.
    pub spec: Arc<PodSpec>,
    /// The usage of the containers, which never changes. Empty: metrics.k8s.io has no entry of the
    /// pods.
    pub usage: Arc<[ContainerMetrics]>,
    /// The phase of the pods.
    pub phase: PodPhase,
    /// The condition Ready since the creation, if any.
    pub ready: Option<ConditionStatus>,
    /// Whether the pods have a start time.
    pub started: bool,
    /// Whether the pods are Terminating.
    pub terminating: bool,
    /// The age of the pods at t=0.
    pub age: Span,
}

impl OtherPods {
    /// The names of the pods: `report-0`, `report-1` …
    pub fn names(&self) -> impl Iterator<Item = Arc<str>> {
        (0..self.count).map(|index| format!("{}-{index}", self.name).into())
    }

    /// The creation time in the API.
    #[must_use]
    pub fn created(&self) -> Time {
        (Time::ZERO - self.age).truncate_to_second()
    }
}
