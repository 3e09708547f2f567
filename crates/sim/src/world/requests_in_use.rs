//! What the pods of a workload request, and what of it they use.
//!
//! The usage is that of the load, and the pods are those of the simulated cluster; what a metrics
//! API shows does not matter here. A pod that has not started uses nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::backlog::Backlogs;
use super::held_requests::{HoldingPod, RequestChange};
use super::simulation::{ServingChange, exceptions_of};
use super::usage::{ClassKey, SharedLoad, Source, Usage};
use kube_autoscaler_models::api::{ContainerMetrics, PodSpec, Requests};
use kube_autoscaler_models::quantity::Quantity;
use kube_autoscaler_models::time::Time;
use kube_autoscaler_models::vpa::admission::Limits;
use kube_autoscaler_models::vpa::{ControlledValues, VerticalPodAutoscaler};
use kube_lockstep_scenario::Scenario;
use kube_lockstep_scenario::resolved::UsageSource;

/// The pods of a workload, their requests and their usage.
#[derive(Debug)]
pub struct RequestsInUse<'a> {
    scenario: &'a Scenario,
    limits: Limits,
    usage: Usage,
    backlogs: Backlogs,
    /// By ordinal.
    pods: BTreeMap<u32, UsedPod>,
    /// The number of pods that serve the load.
    serving: usize,
}

/// A pod that holds requests.
#[derive(Debug)]
struct UsedPod {
    holds: HoldingPod,
    /// It gets a share of the load.
    serves: bool,
    /// The class of its usage.
    class: usize,
    /// The containers whose memory usage is above their limit, one bit for each.
    above_limit: u64,
}

/// What all pods request and use at a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct InUse {
    /// In thousandths of a core.
    pub cpu: ResourceInUse,
    /// In thousandths of a byte.
    pub memory: ResourceInUse,
    /// The number of pods with a container that uses more of a resource than it requests.
    pub short_pods: usize,
    /// The number of containers whose memory usage has risen above their limit since the last time.
    pub oom_kills: usize,
}

/// What all pods request and use of a resource.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ResourceInUse {
    /// As the scheduler counts it.
    pub requested: i128,
    /// The part of the requests of containers that they do not use.
    pub unused: i128,
    /// The usage of containers above their requests.
    pub short: i128,
}

impl ResourceInUse {
    /// Adds the request and the usage of a container. Returns true if it uses more.
    fn add(&mut self, request: i64, usage: i64) -> bool {
        // Usage below zero, which a scenario can have, counts as none.
        let (request, usage) = (i128::from(request), i128::from(usage.max(0)));
        self.unused += (request - usage).max(0);
        self.short += (usage - request).max(0);
        usage > request
    }
}

/// The request of a pod in thousandths, as the scheduler counts it: pod-level requests take
/// precedence; the containers count while they run together, or an init container if it requests
/// more.
///
/// Upstream: component-helpers, resource/helpers.go, `PodRequests`
#[must_use]
pub fn pod_request(spec: &PodSpec, resource: &str) -> i64 {
    let amount = |requests: &Requests| requests.get(resource).map_or(0, Quantity::milli);
    let (mut sidecars, mut largest) = (0_i64, 0);
    for container in &spec.init_containers {
        let together = sidecars.saturating_add(amount(&container.requests));
        largest = largest.max(together);
        if container.sidecar {
            sidecars = together;
        }
    }
    let main = spec.containers.iter().map(|it| amount(&it.requests));
    let together = main.fold(sidecars, i64::saturating_add).max(largest);
    let of_pod = spec.requests.as_ref().and_then(|requests| requests.get(resource));
    of_pod.map_or(together, Quantity::milli).saturating_add(amount(&spec.overhead))
}

impl<'a> RequestsInUse<'a> {
    /// The load of a scenario, without pods.
    #[must_use]
    pub fn new(scenario: &'a Scenario) -> RequestsInUse<'a> {
        RequestsInUse {
            scenario,
            limits: scenario.vpa.as_ref().map(|vpa| vpa.limits()).unwrap_or_default(),
            usage: Usage::new(scenario),
            backlogs: Backlogs::new(scenario),
            pods: BTreeMap::new(),
            serving: 0,
        }
    }

    /// The requests of a pod change.
    pub fn hold(&mut self, change: &RequestChange) {
        let before = self.pods.remove(&change.ordinal);
        let Some(holds) = change.pod.clone() else { return };
        let (serves, above_limit) =
            before.map_or((false, 0), |before| (before.serves, before.above_limit));
        let class = self.class(change.ordinal, serves);
        self.pods.insert(change.ordinal, UsedPod { holds, serves, class, above_limit });
    }

    /// A pod begins or stops serving the load.
    pub fn serve(&mut self, change: ServingChange) {
        let ServingChange { at, ordinal, serves } = change;
        self.backlogs.advance(at, self.serving);
        self.serving = if serves { self.serving + 1 } else { self.serving.saturating_sub(1) };
        let class = self.class(ordinal, serves);
        if let Some(pod) = self.pods.get_mut(&ordinal) {
            (pod.serves, pod.class) = (serves, class);
        }
    }

    /// The class of the usage of a pod.
    fn class(&mut self, ordinal: u32, serves: bool) -> usize {
        let resources = &self.scenario.metrics.resources;
        let exceptions = exceptions_of(resources, ordinal);
        let source = |index: usize| {
            let is_shared = matches!(resources[index].source, UsageSource::Load { .. });
            let own = exceptions.as_ref().map(|exceptions| &*exceptions[index]);
            Source::of_pod(own, is_shared, serves)
        };
        let sources = (0..resources.len()).map(source).collect();
        self.usage.class(ClassKey { sources, hidden: Vec::new() })
    }

    /// What the pods request and use at a time.
    pub fn at(&mut self, at: Time) -> InUse {
        let RequestsInUse { scenario, limits, usage, backlogs, pods, serving } = self;
        backlogs.advance(at, *serving);
        let signals = &scenario.metrics.resources;
        let load = SharedLoad { serving: *serving, backlogs: &backlogs.resources };
        usage.read(signals, at, load);
        let vpa = scenario.vpa.as_ref().and_then(|vpa| vpa.in_force(at));
        let mut all = InUse::default();
        // Most pods have the requests and the usage of the pod before them.
        let mut last: Option<(Arc<PodSpec>, usize, OfPod)> = None;
        for UsedPod { holds, class, above_limit, .. } in pods.values_mut() {
            let is_same = |(spec, of, known): &(Arc<PodSpec>, usize, OfPod)| {
                (*of == *class && Arc::ptr_eq(spec, &holds.spec) && known.runs == holds.runs)
                    .then_some(*known)
            };
            let known = last.as_ref().and_then(is_same).unwrap_or_else(|| {
                let used = usage.of_class(*class, signals);
                let of_pod = OfPod::new(holds, used, &Limited { limits, vpa });
                last = Some((holds.spec.clone(), *class, of_pod));
                of_pod
            });
            known.add_to(&mut all);
            all.oom_kills += (known.above_limit & !*above_limit).count_ones() as usize;
            *above_limit = known.above_limit;
        }
        all
    }
}

/// The limits of containers.
struct Limited<'l> {
    /// Those of the manifest.
    limits: &'l Limits,
    /// The VPA that changes them in proportion to requests.
    vpa: Option<&'l VerticalPodAutoscaler>,
}

impl Limited<'_> {
    /// The memory limit of a container in thousandths of a byte, if it has one.
    ///
    /// Upstream: pkg/utils/vpa/limit_and_request_scaling.go, `getProportionalResourceLimit`
    fn memory_limit(&self, pod: &HoldingPod, container: &str) -> Option<i64> {
        let limit = self.limits.get(container)?.get("memory")?.milli();
        if limit == 0 {
            return None;
        }
        let request = |spec: &PodSpec| {
            let container = spec.containers.iter().find(|it| *it.name == *container)?;
            container.requests.get("memory").map(Quantity::milli)
        };
        let policy = self.vpa.and_then(|vpa| vpa.spec.resource_policy.as_ref());
        let values = policy.and_then(|it| it.for_container(container)?.controlled_values);
        // The API server uses the limit as the request if there is none.
        let before = request(&pod.template).filter(|it| *it > 0).unwrap_or(limit);
        match request(&pod.spec).filter(|now| *now > 0 && *now != before) {
            Some(now) if values != Some(ControlledValues::RequestsOnly) => {
                let scaled = i128::from(limit) * i128::from(now) / i128::from(before);
                Some(i64::try_from(scaled).unwrap_or(i64::MAX))
            }
            _ => Some(limit),
        }
    }
}

/// What a pod requests and uses.
#[derive(Clone, Copy, Debug, Default)]
struct OfPod {
    runs: bool,
    cpu: ResourceInUse,
    memory: ResourceInUse,
    is_short: bool,
    above_limit: u64,
}

impl OfPod {
    fn new(pod: &HoldingPod, used: &[ContainerMetrics], limited: &Limited<'_>) -> OfPod {
        let mut of_pod = OfPod { runs: pod.runs, ..OfPod::default() };
        of_pod.cpu.requested = pod_request(&pod.spec, "cpu").into();
        of_pod.memory.requested = pod_request(&pod.spec, "memory").into();
        for (index, container) in pod.spec.containers.iter().enumerate() {
            let amount = |used: &ContainerMetrics, resource: &str| {
                let mut amounts = used.usage.iter();
                amounts.find(|(name, _)| **name == *resource).map(|(_, it)| it.milli())
            };
            let own = used.iter().find(|it| it.name == container.name);
            // None: the load has a gap. Beside containers with usage, a container without one
            // uses nothing.
            let usage = |resource: &str| match own.and_then(|own| amount(own, resource)) {
                _ if !pod.runs => Some(0),
                Some(usage) => Some(usage),
                None => used.iter().any(|it| amount(it, resource).is_some()).then_some(0),
            };
            let request =
                |resource: &str| container.requests.get(resource).map_or(0, Quantity::milli);
            if let Some(usage) = usage("cpu") {
                of_pod.is_short |= of_pod.cpu.add(request("cpu"), usage);
            }
            if let Some(usage) = usage("memory") {
                of_pod.is_short |= of_pod.memory.add(request("memory"), usage);
                let limit = limited.memory_limit(pod, &container.name);
                if limit.is_some_and(|limit| usage > limit) {
                    of_pod.above_limit |= 1 << index.min(63);
                }
            }
        }
        of_pod
    }

    fn add_to(&self, all: &mut InUse) {
        for (sum, of_pod) in [(&mut all.cpu, self.cpu), (&mut all.memory, self.memory)] {
            sum.requested += of_pod.requested;
            sum.unused += of_pod.unused;
            sum.short += of_pod.short;
        }
        all.short_pods += usize::from(self.is_short);
    }
}
