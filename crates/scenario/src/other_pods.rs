//! Pods that belong to no target, for example to a Job. The selector of a target may match them.

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::defaults::{AGE, APP};
use super::text::{Amount, As, ByName, Duration};
use super::workload::Container;
use kube_autoscaler_models::api::{ConditionStatus, ContainerMetrics, PodPhase, PodSpec, Requests};
use kube_autoscaler_models::time::{Span, Time};

/// Identical pods that exist from the start to the end and never change. Each has one container.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[serde(expecting = "other pods, for example {name: report, labels: {app: web}}")]
pub struct OtherPods {
    /// The prefix of their names: pods of `report` are named `report-0`, `report-1` and so on.
    #[schemars(length(min = 1))]
    pub name: Arc<str>,
    /// Their number. Default 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000))]
    pub count: Option<u32>,
    /// Their labels.
    #[schemars(extend("minProperties" = 1))]
    pub labels: BTreeMap<String, String>,
    /// The name of their container. Default `app`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub container: Option<Arc<str>>,
    /// The requests of the container, by resource. Default: none.
    #[serde(default, with = "As::<ByName<Amount>>", skip_serializing_if = "Requests::is_empty")]
    pub requests: Requests,
    /// The constant usage of the container: `cpu`, `memory`. Default: the pods have no metrics in
    /// metrics.k8s.io.
    #[serde(default, with = "As::<ByName<Amount>>", skip_serializing_if = "Requests::is_empty")]
    pub usage: Requests,
    /// Their phase. Default Running.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<PodPhase>,
    /// Their Ready condition. Default: True if they are Running, absent if they are Pending,
    /// otherwise False.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready: Option<Readiness>,
    /// True if they have a start time. Default: true unless they are Pending.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started: Option<bool>,
    /// True if they are Terminating. Default false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub terminating: bool,
    /// Their age: how long before the start they were created and their Ready condition last
    /// changed. Default 1h.
    #[serde(default, with = "As::<Option<Duration>>", skip_serializing_if = "Option::is_none")]
    pub age: Option<Span>,
}

/// The Ready condition of a pod.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(expecting = "\"True\" or \"False\" in quotes, Unknown or Absent")]
pub enum Readiness {
    /// It is ready.
    True,
    /// It is not.
    False,
    /// Unknown.
    Unknown,
    /// It has no such condition.
    Absent,
}

impl OtherPods {
    /// Their number.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.count.unwrap_or(1)
    }

    /// Their names: `report-0`, `report-1` …
    pub fn names(&self) -> impl Iterator<Item = Arc<str>> {
        (0..self.count()).map(|index| format!("{}-{index}", self.name).into())
    }

    /// The time of their creation, as the API shows it.
    #[must_use]
    pub fn created(&self) -> Time {
        (Time::ZERO - self.age.unwrap_or(AGE)).truncate_to_second()
    }

    /// The name of their container.
    #[must_use]
    pub fn container(&self) -> Arc<str> {
        self.container.clone().unwrap_or_else(|| APP.into())
    }

    /// Their container and its requests.
    #[must_use]
    pub fn spec(&self) -> PodSpec {
        let container = Container {
            name: self.container(),
            requests: self.requests.clone(),
            ..Container::default()
        };
        PodSpec { containers: vec![container.to_api()], ..PodSpec::default() }
    }

    /// Their usage. Empty: metrics.k8s.io has no entry of them.
    #[must_use]
    pub fn metrics(&self) -> Arc<[ContainerMetrics]> {
        let usage: Vec<_> =
            self.usage.iter().map(|(name, amount)| (name.clone(), amount.clone())).collect();
        let metrics = ContainerMetrics { name: self.container(), usage };
        (!self.usage.is_empty()).then_some(metrics).into_iter().collect()
    }

    /// Their phase.
    #[must_use]
    pub fn phase(&self) -> PodPhase {
        self.phase.unwrap_or(PodPhase::Running)
    }

    /// The status of their condition Ready, if they have one.
    #[must_use]
    pub fn ready(&self) -> Option<ConditionStatus> {
        match self.ready.unwrap_or_else(|| Readiness::default_in(self.phase())) {
            Readiness::True => Some(ConditionStatus::True),
            Readiness::False => Some(ConditionStatus::False),
            Readiness::Unknown => Some(ConditionStatus::Unknown),
            Readiness::Absent => None,
        }
    }

    /// Returns true if they have a start time.
    #[must_use]
    pub fn has_started(&self) -> bool {
        self.started.unwrap_or(self.phase() != PodPhase::Pending)
    }

    /// The same pods in normal form, without values that are the defaults.
    #[must_use]
    pub fn without_defaults(mut self) -> OtherPods {
        let phase = self.phase();
        self.count = self.count.filter(|count| *count != 1);
        self.container = self.container.filter(|name| **name != *APP);
        self.phase = self.phase.filter(|phase| *phase != PodPhase::Running);
        self.ready = self.ready.filter(|ready| *ready != Readiness::default_in(phase));
        self.started = self.started.filter(|started| *started != (phase != PodPhase::Pending));
        self.age = self.age.filter(|age| *age != AGE);
        self
    }
}

impl Readiness {
    /// The readiness of pods in a phase that do not give one.
    fn default_in(phase: PodPhase) -> Readiness {
        match phase {
            PodPhase::Running => Readiness::True,
            PodPhase::Pending => Readiness::Absent,
            PodPhase::Succeeded | PodPhase::Failed | PodPhase::Unknown => Readiness::False,
        }
    }
}
