//! The requests that the pods of the workload hold over time.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::pods::SimPod;
use super::simulation::Templates;
use kube_autoscaler_models::api::PodSpec;
use kube_autoscaler_models::time::Time;

/// A change of the requests that a pod holds.
#[derive(Clone, PartialEq, Debug)]
pub struct RequestChange {
    /// The time.
    pub at: Time,
    /// The ordinal of the pod.
    pub ordinal: u32,
    /// What the pod holds from then on. None: it has ended, or no longer exists.
    pub pod: Option<HoldingPod>,
}

/// A pod that holds requests: it has not ended.
#[derive(Clone, PartialEq, Debug)]
pub struct HoldingPod {
    /// The spec, with the requests that a VPA has set.
    pub spec: Arc<PodSpec>,
    /// The spec of the template that it was created from.
    pub template: Arc<PodSpec>,
    /// True if its containers run.
    pub runs: bool,
}

/// The pods that hold requests, and all changes so far.
#[derive(Clone, Debug, Default)]
pub(super) struct HeldRequests {
    pods: BTreeMap<u32, HoldingPod>,
    pub(super) changes: Vec<RequestChange>,
    /// The OOM kills of the timeline so far.
    pub(super) oom_kills: Vec<Time>,
}

impl HeldRequests {
    /// Adds the change of a pod, if there is one.
    pub(super) fn see(&mut self, at: Time, ordinal: u32, pod: &SimPod, templates: &Templates) {
        let holds = !pod.deleted && pod.ended.is_none();
        let now = holds.then(|| HoldingPod {
            spec: templates.spec_of(pod).clone(),
            template: templates.specs[pod.revision as usize].clone(),
            runs: pod.started.is_some(),
        });
        if self.pods.get(&ordinal) == now.as_ref() {
            return;
        }
        match &now {
            Some(pod) => _ = self.pods.insert(ordinal, pod.clone()),
            None => _ = self.pods.remove(&ordinal),
        }
        self.changes.push(RequestChange { at, ordinal, pod: now });
    }
}
