//! What an updater and an admission controller decide about pods.

use std::collections::BTreeMap;

use crate::model::api::{PodSpec, Requests};
use crate::model::vpa::updater::PodUpdate;

/// What the updater and the admission controller decide about the pods of one workload.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PodDecisions {
    /// What the updater does, in its order.
    pub updates: Vec<PodUpdate>,
    /// The requests with which running pods are updated in place, by the pod's ordinal.
    pub updated_requests: BTreeMap<u32, RequestTexts>,
    /// The requests that the admission controller would give to each pod, in the order of the pods.
    pub admitted: Vec<RequestTexts>,
}

/// The amounts that each container of a pod requests, as their texts, by resource.
pub type RequestTexts = Vec<BTreeMap<String, String>>;

/// The requests of a pod's containers, as texts.
#[must_use]
pub fn request_texts(spec: &PodSpec) -> RequestTexts {
    let texts = |requests: &Requests| {
        requests.iter().map(|(name, amount)| (name.to_string(), amount.to_string())).collect()
    };
    spec.containers.iter().map(|container| texts(&container.requests)).collect()
}
