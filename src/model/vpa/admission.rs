//! The VPA's admission controller: the requests of a new pod. It is not compared with upstream's
//! code; the rules are those of its source.
//!
//! Deliberately absent: LimitRanges, the start-up boost, and annotations.
//!
//! Upstream: `pkg/admission-controller/resource/pod/recommendation/recommendation_provider.go`,
//! `pkg/utils/vpa/capping.go`

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::api::{ContainerRecommendation, ControlledValues, ResourceList, VerticalPodAutoscaler};
use super::recommendation::limit;
use crate::model::api::{PodSpec, Requests};
use crate::model::quantity::Quantity;

/// The limits of containers, by their names.
pub type Limits = BTreeMap<Arc<str>, Requests>;

/// How a VPA updates pods.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// Not at all.
    Off,
    /// When they are created.
    Initial,
    /// When they are created, and they are evicted for it.
    Recreate,
    /// When they are created, and while they run.
    InPlaceOrRecreate,
}

impl VerticalPodAutoscaler {
    /// The update mode.
    ///
    /// Upstream: pkg/utils/vpa/api.go, GetUpdateMode
    #[must_use]
    pub fn mode(&self) -> Mode {
        let policy = self.spec.update_policy.as_ref();
        match policy.and_then(|policy| policy.update_mode.as_deref()) {
            Some("Off") => Mode::Off,
            Some("Initial") => Mode::Initial,
            Some("InPlaceOrRecreate") => Mode::InPlaceOrRecreate,
            // `Auto` means `Recreate`, and so does no mode.
            _ => Mode::Recreate,
        }
    }
}

/// The spec with the recommended requests, if the VPA changes the spec of a new pod.
#[must_use]
pub fn admitted(vpa: &VerticalPodAutoscaler, spec: &PodSpec, limits: &Limits) -> Option<PodSpec> {
    if vpa.mode() == Mode::Off {
        return None;
    }
    let new = recommended(vpa, spec, limits);
    (new != *spec).then_some(new)
}

/// The spec with the recommended requests in place of its own.
///
/// Upstream: recommendation_provider.go, GetContainersResources
#[must_use]
pub fn recommended(vpa: &VerticalPodAutoscaler, spec: &PodSpec, limits: &Limits) -> PodSpec {
    let mut new = spec.clone();
    for recommendation in processed(vpa, spec, limits) {
        let name = &recommendation.container_name;
        let Some(container) = new.containers.iter_mut().find(|it| it.name == *name) else {
            continue;
        };
        for (resource, amount) in recommendation.target.amounts() {
            container.requests.insert(resource.into(), amount.clone());
        }
    }
    new
}

/// The recommendations for the containers of a pod, within the policies of the VPA and, if the VPA
/// does not control limits, within the limits of the containers.
///
/// Upstream: capping.go, cappingRecommendationProcessor.Apply
#[must_use]
pub fn processed(
    vpa: &VerticalPodAutoscaler,
    spec: &PodSpec,
    limits: &Limits,
) -> Vec<ContainerRecommendation> {
    let Some(recommendation) = &vpa.status.recommendation else { return Vec::new() };
    let recommended = recommendation.container_recommendations.iter();
    let existing = recommended
        .filter(|it| spec.containers.iter().any(|container| container.name == it.container_name));
    existing.map(|it| capped(it.clone(), vpa, limits)).collect()
}

fn capped(
    mut recommendation: ContainerRecommendation,
    vpa: &VerticalPodAutoscaler,
    limits: &Limits,
) -> ContainerRecommendation {
    let name = recommendation.container_name.clone();
    let policy = vpa.spec.resource_policy.as_ref().and_then(|it| it.of_container(&name));
    let least = policy.and_then(|policy| policy.min_allowed.as_ref());
    let most = policy.and_then(|policy| policy.max_allowed.as_ref());
    let values = policy.and_then(|policy| policy.controlled_values);
    let of_container = limits.get(&name).filter(|_| values == Some(ControlledValues::RequestsOnly));
    let ContainerRecommendation { target, lower_bound, upper_bound, .. } = &mut recommendation;
    for list in [target, lower_bound, upper_bound] {
        let ResourceList { cpu, memory } = list;
        for (value, name) in [(cpu, "cpu"), (memory, "memory")] {
            let Some(value) = value else { continue };
            let bound = |list: Option<&BTreeMap<String, Quantity>>| list?.get(name).cloned();
            limit(value, bound(least), Ordering::Less);
            limit(value, bound(most), Ordering::Greater);
            // Upstream compares milli-units here, and a limit of zero applies.
            if let Some(most) = of_container.and_then(|limits| limits.get(name))
                && value.milli() > most.milli()
            {
                *value = most.clone();
            }
        }
    }
    recommendation
}
