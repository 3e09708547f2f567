//! What pods request: the sum over their containers, one container's share, or what the pod as a
//! whole asks for.

use super::pod_requests::{is_pod_level_requests_set, pod_requests};
use super::replica_calculator::Query;
use super::selectors::is_at;
use crate::model::api::{Pod, PodSpec};
use crate::model::rules::{MissingRequest, Rules};

/// Why a pod has no request. Small, as one is kept for many pods.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum NoRequest {
    /// This one of [`PodSpec::running_containers`] has none.
    Container(usize),
    /// There is no container of that name.
    NotFound,
    /// Neither the pod as a whole nor any of its containers has one.
    PodLevel,
}

impl NoRequest {
    /// Upstream's words. Upstream: replica_calculator.go, calculateRequests
    #[cold]
    pub(super) fn error(
        self,
        (namespace, pod): (&str, &Pod),
        query: &Query<'_>,
        rules: &Rules,
    ) -> String {
        let (of, resource, container) = (&pod.name, query.resource, query.container);
        match self {
            NoRequest::Container(index) => {
                let missing = format!("missing request for {resource}");
                let name = pod.spec.running_containers().nth(index).map_or("", |it| &it.name);
                match rules.error_texts.missing_request {
                    MissingRequest::OnContainer => {
                        format!("{missing} on container {name} in pod {namespace}/{of}")
                    }
                    MissingRequest::Bare => missing,
                    MissingRequest::InContainer => {
                        format!("{missing} in container {name} of Pod {of}")
                    }
                }
            }
            NoRequest::NotFound => {
                format!("container {} not found in Pod {of}", container.unwrap_or_default())
            }
            NoRequest::PodLevel => format!("missing pod-level request for {resource} in Pod {of}"),
        }
    }
}

/// Requests of pods, of which most share their spec with the one before.
pub(super) struct Requests<'a, 'q> {
    resource: &'q str,
    container: Option<&'q str>,
    pub(super) pod_level_resources: bool,
    pub(super) container_must_exist: bool,
    pub(super) sidecars: bool,
    last: Option<&'a PodSpec>,
    request: i64,
    /// The first pod without a request. Upstream's order is random; here it is that of names.
    pub(super) missing: Option<(&'a Pod, NoRequest)>,
}

impl<'a, 'q> Requests<'a, 'q> {
    pub(super) fn new(resource: &'q str, container: Option<&'q str>) -> Requests<'a, 'q> {
        Requests {
            resource,
            container,
            pod_level_resources: false,
            container_must_exist: false,
            sidecars: false,
            last: None,
            request: 0,
            missing: None,
        }
    }

    /// The pod's request in thousandths; zero if it has none.
    #[inline]
    pub(super) fn of(&mut self, pod: &'a Pod) -> i64 {
        if !is_at(self.last, &*pod.spec) {
            self.calculate(pod);
        }
        self.request
    }

    #[inline(never)]
    fn calculate(&mut self, pod: &'a Pod) {
        self.request = self.calculate_requests(&pod.spec).unwrap_or_else(|why| {
            self.missing.get_or_insert((pod, why));
            0
        });
        self.last = Some(&pod.spec);
    }

    /// A named container comes before requests of the pod as a whole.
    ///
    /// Upstream: replica_calculator.go, calculateRequests
    fn calculate_requests(&self, spec: &PodSpec) -> Result<i64, NoRequest> {
        let whole = self.pod_level_resources && self.container.is_none();
        if whole && is_pod_level_requests_set(spec) {
            return calculate_pod_level_requests(spec, self.resource);
        }
        match self.calculate_pod_requests_from_containers(spec) {
            Err(NoRequest::NotFound) if !self.container_must_exist => Ok(0),
            requests => requests,
        }
    }

    /// Upstream: replica_calculator.go, calculatePodRequestsFromContainers
    fn calculate_pod_requests_from_containers(&self, spec: &PodSpec) -> Result<i64, NoRequest> {
        let mut request = 0_i64;
        for (index, candidate) in spec.running_containers().enumerate() {
            if self.container.is_some_and(|name| name != &*candidate.name)
                || (candidate.sidecar && !self.sidecars)
            {
                continue;
            }
            let quantity =
                candidate.requests.get(self.resource).ok_or(NoRequest::Container(index))?;
            request = request.wrapping_add(quantity.milli());
            if self.container.is_some() {
                return Ok(request);
            }
        }
        if self.container.is_some() { Err(NoRequest::NotFound) } else { Ok(request) }
    }
}

/// Upstream: replica_calculator.go, calculatePodLevelRequests
#[cold]
fn calculate_pod_level_requests(spec: &PodSpec, resource: &str) -> Result<i64, NoRequest> {
    let request = pod_requests(spec, resource).ok_or(NoRequest::PodLevel)?;
    Ok(request.milli())
}
