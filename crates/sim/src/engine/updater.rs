//! The decisions of upstream's updater and admission controller.

use std::collections::BTreeMap;

use kube_autoscaler_models::api::{PodSpec, Requests};
use kube_autoscaler_models::vpa::updater::{LivePod, PodUpdate, Updater};

/// The input of the updater or the admission controller for one workload: the configuration, and
/// the pods.
#[derive(Clone, Debug)]
pub struct UpdaterRun<'a> {
    /// The VPA, the flags, the replicas and the time.
    pub updater: Updater<'a>,
    /// The pods, in the order of the list that the updater receives.
    pub pods: &'a [LivePod],
}

/// The decisions of upstream's updater and admission controller about the pods of one workload.
#[derive(Clone, Debug, Default)]
pub struct UpdaterAnswer {
    /// The evictions and updates that the updater requests, in order.
    pub updates: Vec<PodUpdate>,
    /// The requests with which running pods are updated in place, by the pod's ordinal.
    pub updated_requests: BTreeMap<u32, PodRequests>,
    /// The requests that the admission controller would give to each pod, in the order of the pods.
    pub admitted: Vec<PodRequests>,
}

/// The requests of each container of a pod.
pub type PodRequests = Vec<Requests>;

/// The requests of each container of a pod.
#[must_use]
pub fn requests_of(spec: &PodSpec) -> PodRequests {
    spec.containers.iter().map(|container| container.requests.clone()).collect()
}

/// Returns true if all amounts are equal, in whatever form they are written.
#[must_use]
pub fn are_equal(one: &PodRequests, other: &PodRequests) -> bool {
    let equal = |one: &Requests, other: &Requests| {
        let mut pairs = one.iter().zip(other);
        one.len() == other.len()
            && pairs.all(|((name, amount), (other_name, other))| {
                name == other_name && amount.compare(other).is_eq()
            })
    };
    one.len() == other.len() && one.iter().zip(other).all(|(one, other)| equal(one, other))
}
