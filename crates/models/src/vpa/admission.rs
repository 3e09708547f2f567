//! The VPA's admission controller: the requests of a new pod. Live runs and the suite `vpa_updater`
//! compare it with upstream's code.
//!
//! Deliberately absent: LimitRanges, the startup boost, and annotations.
//!
//! Upstream: `pkg/admission-controller/resource/pod/recommendation/recommendation_provider.go`,
//! `pkg/utils/vpa/capping.go`

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::api::{
    ContainerRecommendation, ControlledValues, ResourceList, UpdateMode, VerticalPodAutoscaler,
};
use super::recommendation::limit;
use crate::api::{PodSpec, Requests};

/// The limits of containers, by their names.
pub type Limits = BTreeMap<Arc<str>, Requests>;

impl VerticalPodAutoscaler {
    /// The update mode that applies: `Auto` and no mode mean `Recreate`.
    ///
    /// Upstream: pkg/utils/vpa/api.go, GetUpdateMode
    #[must_use]
    pub fn mode(&self) -> UpdateMode {
        use UpdateMode::{InPlaceOrRecreate, Initial, Off, Recreate};
        match self.spec.update_policy.as_ref().and_then(|policy| policy.update_mode) {
            Some(mode @ (Off | Initial | InPlaceOrRecreate)) => mode,
            _ => Recreate,
        }
    }
}

/// The spec with the recommended requests, if the VPA changes the spec of a new pod.
#[must_use]
pub fn admitted(vpa: &VerticalPodAutoscaler, spec: &PodSpec, limits: &Limits) -> Option<PodSpec> {
    if vpa.mode() == UpdateMode::Off {
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
pub(crate) fn processed(
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
    let policy = vpa.spec.resource_policy.as_ref().and_then(|it| it.for_container(&name));
    let least = policy.and_then(|policy| policy.min_allowed.as_ref());
    let most = policy.and_then(|policy| policy.max_allowed.as_ref());
    let values = policy.and_then(|policy| policy.controlled_values);
    let container_limits =
        limits.get(&name).filter(|_| values == Some(ControlledValues::RequestsOnly));
    let ContainerRecommendation { target, lower_bound, upper_bound, .. } = &mut recommendation;
    for list in [target, lower_bound, upper_bound] {
        let ResourceList { cpu, memory } = list;
        for (value, name) in [(cpu, "cpu"), (memory, "memory")] {
            let Some(value) = value else { continue };
            limit(value, least.and_then(|list| list.get(name)), Ordering::Less);
            limit(value, most.and_then(|list| list.get(name)), Ordering::Greater);
            // Upstream compares milli-units here, and a limit of zero applies.
            if let Some(most) = container_limits.and_then(|limits| limits.get(name))
                && value.milli() > most.milli()
            {
                *value = most.clone();
            }
        }
    }
    recommendation
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::Container;
    use crate::quantity::Quantity;
    use serde_json::json;

    fn vpa(mode: &str, policy: &serde_json::Value) -> VerticalPodAutoscaler {
        let recommended = json!({
            "containerName": "app",
            "target": {"cpu": "300m", "memory": "262144k"},
            "lowerBound": {"cpu": "50m", "memory": "262144k"},
            "upperBound": {"cpu": "2", "memory": "1Gi"},
        });
        let value = json!({
            "metadata": {"namespace": "default", "name": "web"},
            "spec": {
                "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
                "updatePolicy": {"updateMode": mode},
                "resourcePolicy": {"containerPolicies": [policy]},
            },
            "status": {"recommendation": {"containerRecommendations": [recommended]}},
        });
        serde_json::from_value(value).expect("a VPA")
    }

    /// The requests of the container `app`, as text.
    fn requests(vpa: &VerticalPodAutoscaler, limits: &[(&str, &str)]) -> Option<Vec<String>> {
        let quantity = |text: &str| Quantity::parse(text).expect("a quantity");
        let container = |name: &str| Container {
            name: name.into(),
            requests: Requests::from([("cpu".into(), quantity("100m"))]),
            sidecar: false,
        };
        let containers = vec![container("app"), container("other")];
        let spec = PodSpec { containers, ..PodSpec::default() };
        let limits = limits.iter().map(|(name, limit)| (Arc::from(*name), quantity(limit)));
        let limits = Limits::from([("app".into(), limits.collect())]);
        let new = admitted(vpa, &spec, &limits)?;
        assert_eq!(new.containers[1], spec.containers[1], "it has no recommendation");
        let requests = new.containers[0].requests.iter();
        Some(requests.map(|(name, amount)| format!("{name}={amount}")).collect())
    }

    #[test]
    fn new_pods_get_the_target_unless_the_mode_is_off() {
        let any = json!({"containerName": "*"});
        let target = Some(vec!["cpu=300m".to_owned(), "memory=262144k".to_owned()]);
        for mode in ["Initial", "Recreate", "InPlaceOrRecreate", "Auto"] {
            assert_eq!(requests(&vpa(mode, &any), &[]), target, "{mode}");
        }
        assert_eq!(requests(&vpa("Off", &any), &[]), None);
        let mut without = vpa("Recreate", &any);
        Arc::make_mut(&mut without.status).recommendation = None;
        assert_eq!(requests(&without, &[]), None);
    }

    #[test]
    fn the_policy_of_the_container_limits_the_target() {
        let policy = json!({
            "containerName": "app", "minAllowed": {"memory": "1Gi"}, "maxAllowed": {"cpu": "250m"},
        });
        let capped = Some(vec!["cpu=250m".to_owned(), "memory=1Gi".to_owned()]);
        assert_eq!(requests(&vpa("Initial", &policy), &[]), capped);
    }

    #[test]
    fn requests_stay_within_limits_only_if_the_vpa_does_not_control_limits() {
        let of = |values: &str| {
            let policy = json!({"containerName": "app", "controlledValues": values});
            requests(&vpa("Initial", &policy), &[("cpu", "200m")])
        };
        let capped = Some(vec!["cpu=200m".to_owned(), "memory=262144k".to_owned()]);
        assert_eq!(of("RequestsOnly"), capped);
        let target = Some(vec!["cpu=300m".to_owned(), "memory=262144k".to_owned()]);
        assert_eq!(of("RequestsAndLimits"), target);
    }
}
