//! Pod-level requests (KEP-2837): the pod's own request if it has one, otherwise the maximum that
//! its containers need, plus the overhead of its runtime class.
//!
//! Upstream's functions process all resources together, these functions a single one. The status
//! of containers is not covered: the HPA controller does not use it.
//!
//! Upstream: component-helpers, `resource/helpers.go`.

use crate::api::{Container, PodSpec};
use crate::quantity::Quantity;

/// Returns true if the pod has a pod-level request.
///
/// Upstream: resource/helpers.go, IsPodLevelRequestsSet
pub(super) fn is_pod_level_requests_set(spec: &PodSpec) -> bool {
    let requests = spec.requests.as_ref();
    requests.is_some_and(|it| it.keys().any(|name| is_supported_pod_level_resource(name)))
}

/// Upstream: resource/helpers.go, IsSupportedPodLevelResource
fn is_supported_pod_level_resource(name: &str) -> bool {
    matches!(name, "cpu" | "memory") || name.starts_with("hugepages-")
}

/// Upstream: resource/helpers.go, PodRequests
pub(super) fn pod_requests(spec: &PodSpec, resource: &str) -> Option<Quantity> {
    let mut request = aggregate_container_requests(spec, resource);
    let whole = spec.requests.as_ref().and_then(|requests| requests.get(resource));
    if let Some(whole) = whole.filter(|_| is_supported_pod_level_resource(resource)) {
        request = Some(whole.clone());
    }
    add(&mut request, spec.overhead.get(resource));
    request
}

/// The maximum that the containers need: all running containers together, or an init container with
/// the sidecars that were started before it.
///
/// Upstream: resource/helpers.go, AggregateContainerRequests and aggregateContainerResourcesByFn
fn aggregate_container_requests(spec: &PodSpec, resource: &str) -> Option<Quantity> {
    let of = |container: &Container| container.requests.get(resource).cloned();
    let mut result = None;
    for container in &spec.containers {
        add(&mut result, of(container).as_ref());
    }
    let mut sidecars = None;
    let mut init_containers = None;
    for container in &spec.init_containers {
        let own = of(container);
        let needed = if container.sidecar {
            add(&mut result, own.as_ref());
            add(&mut sidecars, own.as_ref());
            sidecars.clone()
        } else {
            let mut combined = own;
            add(&mut combined, sidecars.as_ref());
            combined
        };
        max(&mut init_containers, needed);
    }
    max(&mut result, init_containers);
    result
}

/// Upstream: resource/helpers.go, addResourceList
fn add(sum: &mut Option<Quantity>, quantity: Option<&Quantity>) {
    let Some(quantity) = quantity else { return };
    *sum = Some(match sum.take() {
        Some(sum) => sum.plus(quantity),
        None => quantity.clone(),
    });
}

/// Upstream: resource/helpers.go, maxResourceList
fn max(largest: &mut Option<Quantity>, quantity: Option<Quantity>) {
    let Some(quantity) = quantity else { return };
    if largest.as_ref().is_none_or(|largest| quantity.compare(largest).is_gt()) {
        *largest = Some(quantity);
    }
}
