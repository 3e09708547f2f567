//! Requests of pods: the sum over their containers, the request of one container, or pod-level
//! requests.

use super::pod_requests::{is_pod_level_requests_set, pod_requests};
use super::query::{Grouping, Query};
use crate::api::{Pod, PodSpec};
use crate::rules::{MissingRequest, PodRules, Rules};
use crate::selector::is_same;

/// The reason why a pod has no request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NoRequest {
    /// The container with this index in [`PodSpec::running_containers`] has no request.
    Container(usize),
    /// The pod has no container of this name.
    NotFound,
    /// Neither the pod nor any of its containers has a request.
    PodLevel,
}

impl NoRequest {
    /// The error in upstream's words.
    ///
    /// Upstream: replica_calculator.go, calculateRequests
    #[cold]
    pub(super) fn error(
        self,
        namespace: &str,
        pod: &Pod,
        query: &Query<'_>,
        rules: &Rules,
    ) -> String {
        let (of, resource, container) = (&pod.name, query.resource, query.container);
        match self {
            NoRequest::Container(index) => {
                let missing = format!("missing request for {resource}");
                let name = pod.spec.running_containers().nth(index).map_or("", |it| &it.name);
                match rules.texts.missing_request {
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

/// Requests of pods. Most pods share their spec with the previous pod; calculating each request
/// anew takes 0.75 of the ticks/s at 10,000 pods whose metrics differ.
pub(super) struct Requests<'a, 'q, M> {
    grouping: &'q Grouping<'a, 'q, M>,
    last: Option<&'a PodSpec>,
    request: i64,
    /// The first pod without a request. Upstream's order is random; the model's is by name.
    pub missing: Option<(&'a Pod, NoRequest)>,
}

impl<'a, 'q, M> Requests<'a, 'q, M> {
    pub(super) fn new(grouping: &'q Grouping<'a, 'q, M>) -> Requests<'a, 'q, M> {
        Requests { grouping, last: None, request: 0, missing: None }
    }

    /// The pod's request in thousandths; zero if it has none.
    #[inline]
    pub(super) fn of(&mut self, pod: &'a Pod) -> i64 {
        if !is_same(self.last, &*pod.spec) {
            self.calculate(pod);
        }
        self.request
    }

    #[inline(never)]
    fn calculate(&mut self, pod: &'a Pod) {
        let Grouping { resource, container, pod_level_resources, rules, .. } = *self.grouping;
        let query = RequestQuery { resource, container, pod_level_resources, rules };
        self.request = query.of(&pod.spec).unwrap_or_else(|why| {
            self.missing.get_or_insert((pod, why));
            0
        });
        self.last = Some(&pod.spec);
    }
}

/// Which request of a pod is needed, and the rules for it.
#[derive(Clone, Copy, Debug)]
pub struct RequestQuery<'q> {
    /// `cpu` or `memory`.
    pub resource: &'q str,
    /// The container whose request counts; absent: those of all containers.
    pub container: Option<&'q str>,
    /// True if pod-level requests count.
    pub pod_level_resources: bool,
    /// The rules of the release.
    pub rules: &'q PodRules,
}

impl RequestQuery<'_> {
    /// The request in thousandths. That of a named container takes precedence over pod-level
    /// requests.
    ///
    /// Upstream: replica_calculator.go, calculateRequests
    ///
    /// # Errors
    /// If there is none.
    pub fn of(self, spec: &PodSpec) -> Result<i64, NoRequest> {
        let whole = self.pod_level_resources && self.container.is_none();
        if whole && is_pod_level_requests_set(spec) {
            return calculate_pod_level_requests(spec, self.resource);
        }
        match self.calculate_pod_requests_from_containers(spec) {
            Err(NoRequest::NotFound) if !self.rules.container_must_exist => Ok(0),
            requests => requests,
        }
    }

    /// Upstream: replica_calculator.go, calculatePodRequestsFromContainers
    fn calculate_pod_requests_from_containers(self, spec: &PodSpec) -> Result<i64, NoRequest> {
        let RequestQuery { resource, container, rules, .. } = self;
        let mut request = 0_i64;
        for (index, candidate) in spec.running_containers().enumerate() {
            if container.is_some_and(|name| name != &*candidate.name)
                || (candidate.sidecar && !rules.sidecars_count)
            {
                continue;
            }
            let quantity = candidate.requests.get(resource).ok_or(NoRequest::Container(index))?;
            request = request.wrapping_add(quantity.milli());
            if container.is_some() {
                return Ok(request);
            }
        }
        if container.is_some() { Err(NoRequest::NotFound) } else { Ok(request) }
    }
}

/// Upstream: replica_calculator.go, calculatePodLevelRequests
#[cold]
fn calculate_pod_level_requests(spec: &PodSpec, resource: &str) -> Result<i64, NoRequest> {
    let request = pod_requests(spec, resource).ok_or(NoRequest::PodLevel)?;
    Ok(request.milli())
}
