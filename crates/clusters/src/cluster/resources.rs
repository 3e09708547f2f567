//! Resources of the API that are read and written without a type of their own.

use kube::api::{ApiResource, GroupVersionKind};

use kube_lockstep_scenario::resolved::ScalableKind;

/// The HPAs of a version of their API, for example `v2`.
pub(super) fn hpas(version: &str) -> ApiResource {
    let kind = GroupVersionKind::gvk("autoscaling", version, "HorizontalPodAutoscaler");
    ApiResource::from_gvk(&kind)
}

/// The objects of a kind with a scale.
pub(super) fn scalable(kind: &ScalableKind<'_>) -> ApiResource {
    let of = GroupVersionKind::gvk(kind.group, kind.version, kind.kind);
    ApiResource::from_gvk_with_plural(&of, kind.resource)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube_lockstep_scenario::resolved::BUILT_IN;

    #[test]
    fn resources_have_the_paths_of_the_api() {
        let path = |resource: &ApiResource| format!("{}/{}", resource.api_version, resource.plural);
        assert_eq!(path(&hpas("v2")), "autoscaling/v2/horizontalpodautoscalers");
        assert_eq!(
            BUILT_IN.map(|kind| path(&scalable(&kind))),
            [
                "apps/v1/deployments",
                "apps/v1/replicasets",
                "apps/v1/statefulsets",
                "v1/replicationcontrollers",
            ]
        );
    }
}
