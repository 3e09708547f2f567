//! The VPA's updater: which pods it evicts or updates in place. Live runs and the suite
//! `vpa_updater` compare it with upstream's code.
//!
//! Deliberately absent: rate limits, the CPU startup boost, and resizes that the kubelet delays.
//!
//! Upstream: `pkg/updater/logic/updater.go`, `pkg/updater/priority/*.go`,
//! `pkg/updater/restriction/*.go`

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::admission::{Limits, processed};
use super::api::{
    ChangeRequirement, ContainerRecommendation, EvictionRequirement, UpdateMode,
    VerticalPodAutoscaler,
};
use super::flags::{CONNECTION_FLAGS, LOG_FLAGS, component_flags, parse, positive};
use super::update_reason::{KeepReason, UpdateReason};
use crate::api::{PodSpec, Requests};
use crate::hpa::go::go_i64;
use crate::quantity::Quantity;
use crate::time::{Span, Time};

component_flags! {
    /// Flags of the updater. `Default` gives upstream's defaults.
    pub struct UpdaterFlags {
        /// The time between two runs.
        "updater-interval" updater_interval: Span = Span::from_mins(1), positive;
        /// The smallest number of live pods with which the updater acts.
        "min-replicas" min_replicas: i32 = 2, parse;
        /// The fraction of the replicas that may be missing.
        "eviction-tolerance" eviction_tolerance: f64 = 0.5, parse;
        /// The smallest relative change for which a pod within the bounds is updated.
        "pod-update-threshold" pod_update_threshold: f64 = 0.1, parse;
        /// The age from which a pod within the bounds is updated.
        "in-recommendation-bounds-eviction-lifetime-threshold"
        in_recommendation_bounds_eviction_lifetime_threshold: Span =
            Span::from_mins(12 * 60), parse;
        /// A container that is killed again within this time is updated.
        "evict-after-oom-threshold"
        evict_after_oom_threshold: Span = Span::from_mins(10), parse;
        /// True if updates in place ignore the number of pods.
        "in-place-skip-disruption-budget" in_place_skip_disruption_budget: bool = false, parse;
    }
}

/// Upstream flags that the simulated updater does not have: the reason, and the flags.
const UNSUPPORTED: [(&str, &[&str]); 7] = [
    ("evictions are not rate-limited", &["eviction-rate-burst", "eviction-rate-limit"]),
    (
        "the admission controller is simulated, and is always available",
        &[
            "admission-controller-status-lease-name",
            "admission-controller-status-lease-namespace",
            "admission-controller-status-lease-timeout",
            "use-admission-controller-status",
        ],
    ),
    ("the CPU startup boost is not simulated", &["concurrent-cpu-startup-boost-syncs"]),
    (
        "set the feature gate PerVPAConfig in `recommender.flags`: it applies to the updater too",
        &["feature-gates"],
    ),
    (
        "a scenario has one VPA, which the updater always handles",
        &["ignored-vpa-object-namespaces", "vpa-object-namespace"],
    ),
    ("the updater is simulated, and connects to no cluster", CONNECTION_FLAGS),
    ("the updater is simulated, and writes no log", LOG_FLAGS),
];

impl UpdaterFlags {
    /// The reason why a flag of upstream's updater is not supported. `None` for a flag that is
    /// supported or unknown.
    #[must_use]
    pub fn unsupported(name: &str) -> Option<&'static str> {
        UNSUPPORTED.iter().find(|(_, flags)| flags.contains(&name)).map(|(why, _)| *why)
    }

    /// Sets a flag.
    ///
    /// # Errors
    /// If there is no such flag, or it does not have such a value.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        let set = self.set_by_name(name, value);
        set.unwrap_or_else(|| Err("the updater has no such flag".to_owned()))
    }
}

/// A live pod of the target: it has no deletion timestamp.
#[derive(Clone, Debug)]
pub struct LivePod {
    /// The number of the pod.
    pub ordinal: u32,
    /// The controller that creates such pods: the revision of the pod template.
    pub group: u32,
    /// The requests.
    pub spec: Arc<PodSpec>,
    /// `status.startTime`. None: the pod is pending.
    pub started: Option<Time>,
    /// The last OOM kill of each container that was killed, by name.
    pub oom_kills: BTreeMap<Arc<str>, KilledContainer>,
}

/// The last instance of a container, which was killed because of its memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KilledContainer {
    /// Its start.
    pub started_at: Time,
    /// Its end.
    pub finished_at: Time,
}

/// The way in which the updater changes a pod, with the ordinal of the pod.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PodUpdate {
    /// It evicts the pod.
    Evict(u32),
    /// It updates the requests of the running pod.
    InPlace(u32),
}

impl PodUpdate {
    /// The number of the pod.
    #[must_use]
    pub fn ordinal(self) -> u32 {
        match self {
            PodUpdate::Evict(ordinal) | PodUpdate::InPlace(ordinal) => ordinal,
        }
    }
}

/// The input of one run of the updater.
#[derive(Clone, Debug)]
pub struct Updater<'a> {
    /// The VPA whose pods are updated.
    pub vpa: &'a VerticalPodAutoscaler,
    /// The flags of the updater.
    pub flags: &'a UpdaterFlags,
    /// The limits of the containers.
    pub limits: &'a Limits,
    /// True if the API server can resize running pods. Otherwise the updater evicts them.
    pub resizes: bool,
    /// The configured replicas of each controller, by [`LivePod::group`].
    pub replicas: &'a BTreeMap<u32, i64>,
    /// True if the feature gate `PerVPAConfig` is on.
    pub per_vpa_config: bool,
    /// The current time.
    pub now: Time,
}

/// Why the updater changes a pod, or leaves it as it is.
#[derive(Clone, PartialEq, Debug)]
pub struct PodReason {
    /// The number of the pod.
    pub ordinal: u32,
    /// The update and its reason, or the reason why there is none.
    pub reason: Result<(PodUpdate, UpdateReason), KeepReason>,
}

/// The pods of one controller, and what has been done with them in this run.
#[derive(Clone, Copy, Debug, Default)]
struct Group {
    configured: i64,
    tolerance: i64,
    pending: i64,
    running: i64,
    updated: i64,
    is_below_minimum: bool,
    /// True if the minimum does not apply.
    skips_minimum: bool,
}

impl Group {
    /// Upstream: pods_restriction_factory.go, isPodDisruptable
    fn is_pod_disruptable(&self) -> bool {
        // Go's integers wrap around.
        let should_be_alive = self.configured.wrapping_sub(self.tolerance);
        let alive = self.running - self.updated;
        let is_whole = self.configured == self.running && self.updated == 0;
        alive > should_be_alive || (is_whole && self.tolerance == 0)
    }

    /// # Errors
    /// If the disruption of another pod would leave too few pods.
    fn check_disruption(&self) -> Result<(), KeepReason> {
        let Group { configured, tolerance, running, updated, .. } = *self;
        match self.is_pod_disruptable() {
            true => Ok(()),
            false => Err(KeepReason::Budget { running: running - updated, configured, tolerance }),
        }
    }
}

/// The order in which pods are updated.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Priority {
    scale_up: bool,
    difference: f64,
}

impl Priority {
    /// The pod with the higher priority is first. Upstream: PodPriority.Less
    fn order(&self, other: &Priority) -> Ordering {
        let by_direction = other.scale_up.cmp(&self.scale_up);
        by_direction.then(other.difference.total_cmp(&self.difference))
    }
}

/// The pods in the order of these updates, then all others. If any order of the list leads to these
/// updates, this one does: a pod that can't be updated after some updates can't be updated after
/// more.
#[must_use]
pub fn in_order_of(pods: &[LivePod], updates: &[PodUpdate]) -> Vec<LivePod> {
    let position = |pod: &LivePod| updates.iter().position(|it| it.ordinal() == pod.ordinal);
    let mut pods = pods.to_vec();
    pods.sort_by_key(|pod| position(pod).unwrap_or(usize::MAX));
    pods
}

impl Updater<'_> {
    /// The updates of pods in this run, in order. Upstream lists the pods in a random order,
    /// so any of the pods with equal priority may come first. Here, the order of the list decides.
    #[must_use]
    pub fn run_once(&self, pods: &[LivePod]) -> Vec<PodUpdate> {
        let updates = self.reasons(pods).into_iter().filter_map(|it| it.reason.ok());
        updates.map(|(update, _)| update).collect()
    }

    /// The reason for the treatment of each pod in this run: of the updated pods in the order of
    /// the updates, then of the others in the order of the list.
    ///
    /// Upstream: updater.go, RunOnce
    #[must_use]
    pub fn reasons(&self, pods: &[LivePod]) -> Vec<PodReason> {
        let mut groups = self.groups(pods);
        if let Some(reason) = self.keeps_all(&groups, pods) {
            let kept =
                |pod: &LivePod| PodReason { ordinal: pod.ordinal, reason: Err(reason.clone()) };
            return pods.iter().map(kept).collect();
        }
        let in_place = self.vpa.mode() == UpdateMode::InPlaceOrRecreate;
        let (mut chosen, mut kept) = (Vec::new(), Vec::new());
        for (index, pod) in pods.iter().enumerate() {
            let may_update = self.may_update(pod, groups.get(&pod.group), in_place);
            match may_update.and_then(|()| self.priority_of(pod)) {
                Ok((priority, reason)) => chosen.push((priority, index, reason)),
                Err(reason) => kept.push((index, reason)),
            }
        }
        chosen.sort_by(|(a, ..), (b, ..)| a.order(b));
        let in_place = in_place && self.resizes;
        let mut updated = Vec::new();
        for (_, index, reason) in chosen {
            let pod = &pods[index];
            let ordinal = pod.ordinal;
            if let Err(reason) = self.may_update(pod, groups.get(&pod.group), in_place) {
                kept.push((index, reason));
                continue;
            }
            let is_pending = pod.started.is_none();
            if let Some(group) = groups.get_mut(&pod.group).filter(|_| !is_pending) {
                group.updated += 1;
            }
            let update =
                if in_place { PodUpdate::InPlace(ordinal) } else { PodUpdate::Evict(ordinal) };
            updated.push(PodReason { ordinal, reason: Ok((update, reason)) });
        }
        kept.sort_by_key(|(index, _)| *index);
        updated.extend(kept.into_iter().map(|(index, reason)| PodReason {
            ordinal: pods[index].ordinal,
            reason: Err(reason),
        }));
        updated
    }

    /// Why the updater leaves all pods as they are, if it does.
    fn keeps_all(&self, groups: &BTreeMap<u32, Group>, pods: &[LivePod]) -> Option<KeepReason> {
        let has_recommendation = self.vpa.status.recommendation.is_some();
        match self.vpa.mode() {
            mode @ (UpdateMode::Off | UpdateMode::Initial) => Some(KeepReason::Mode(mode)),
            UpdateMode::InPlaceOrRecreate if !has_recommendation => {
                Some(KeepReason::NoRecommendation)
            }
            _ => self.crashes_with(groups, pods).then_some(KeepReason::Crash),
        }
    }

    /// Returns true if upstream's updater crashes before it changes any pod: without a
    /// recommendation and with a threshold of 0, it accepts each old pod and then reads the
    /// recommendation.
    ///
    /// Upstream: update_priority_calculator.go, GetProcessedRecommendationTargets
    #[must_use]
    pub fn crashes(&self, pods: &[LivePod]) -> bool {
        self.crashes_with(&self.groups(pods), pods)
    }

    fn crashes_with(&self, groups: &BTreeMap<u32, Group>, pods: &[LivePod]) -> bool {
        let evicts = self.vpa.mode() == UpdateMode::Recreate;
        let accepts = |pod: &LivePod| {
            self.may_update(pod, groups.get(&pod.group), false).is_ok()
                && self.accept(pod, &[]).is_ok()
        };
        evicts && self.vpa.status.recommendation.is_none() && pods.iter().any(accepts)
    }

    /// Returns true if upstream's updater, which lists the pods in a random order, may change them
    /// in this way.
    #[must_use]
    pub fn may_do(&self, pods: &[LivePod], updates: &[PodUpdate]) -> bool {
        self.run_once(&in_order_of(pods, updates)) == updates
    }

    /// The controllers of the pods. Upstream: GetCreatorMaps
    fn groups(&self, pods: &[LivePod]) -> BTreeMap<u32, Group> {
        let skips_minimum = self.vpa.mode() == UpdateMode::InPlaceOrRecreate
            && self.flags.in_place_skip_disruption_budget;
        let mut groups: BTreeMap<u32, Group> = BTreeMap::new();
        for pod in pods {
            let group = groups.entry(pod.group).or_default();
            group.running += i64::from(pod.started.is_some());
            group.pending += i64::from(pod.started.is_none());
        }
        for (name, group) in &mut groups {
            let live = group.running + group.pending;
            group.is_below_minimum = live < i64::from(self.required_pods());
            group.skips_minimum = skips_minimum;
            group.configured = self.replicas.get(name).copied().unwrap_or(0);
            // The product is truncated.
            let tolerance = group.configured as f64 * self.flags.eviction_tolerance;
            group.tolerance = go_i64(tolerance);
        }
        groups
    }

    /// The number of live pods that a controller needs.
    fn required_pods(&self) -> i32 {
        let policy = self.vpa.spec.update_policy.as_ref();
        policy.and_then(|policy| policy.min_replicas).unwrap_or(self.flags.min_replicas)
    }

    /// # Errors
    /// If the number of pods does not permit the update of a pod.
    ///
    /// Upstream: CanEvict, CanInPlaceUpdate
    fn may_update(
        &self,
        pod: &LivePod,
        group: Option<&Group>,
        in_place: bool,
    ) -> Result<(), KeepReason> {
        let Some(group) = group.filter(|group| group.configured > 0) else {
            return Err(KeepReason::NoReplicas);
        };
        let too_few = || {
            let live = group.running + group.pending;
            Err(KeepReason::TooFewPods { live, required: self.required_pods() })
        };
        if group.is_below_minimum && !group.skips_minimum {
            return too_few();
        }
        let is_pending = pod.started.is_none();
        match in_place {
            true if is_pending => Err(KeepReason::Pending),
            true if self.flags.in_place_skip_disruption_budget => Ok(()),
            false if is_pending => Ok(()),
            false if group.is_below_minimum => too_few(),
            _ => group.check_disruption(),
        }
    }

    /// The priority of a pod that is to be updated, and the reason.
    ///
    /// # Errors
    /// If the pod is not to be updated.
    ///
    /// Upstream: scaling_direction_pod_eviction_admission.go
    fn priority_of(&self, pod: &LivePod) -> Result<(Priority, UpdateReason), KeepReason> {
        let recommendation = processed(self.vpa, &pod.spec, self.limits);
        let accepted = match self.accept(pod, &recommendation) {
            Err(_) if recommendation.is_empty() && self.has_no_recommendation() => {
                return Err(KeepReason::NoRecommendation);
            }
            accepted => accepted?,
        };
        match self.meets_requirements(&pod.spec, &recommendation) {
            true => Ok(accepted),
            false => Err(KeepReason::Requirements),
        }
    }

    fn has_no_recommendation(&self) -> bool {
        let recommendation = self.vpa.status.recommendation.as_ref();
        recommendation.is_none_or(|it| it.container_recommendations.is_empty())
    }

    /// The priority of a pod that is to be updated if the VPA's requirements permit it, and the
    /// reason.
    ///
    /// # Errors
    /// If the pod is not to be updated.
    ///
    /// Upstream: update_priority_calculator.go, AddPod
    fn accept(
        &self,
        pod: &LivePod,
        recommendation: &[ContainerRecommendation],
    ) -> Result<(Priority, UpdateReason), KeepReason> {
        let (priority, outside) = priority(&pod.spec, recommendation);
        let change = priority.difference;
        let quick_oom = pod.oom_kills.iter().find(|(name, kill)| self.is_quick(name, **kill));
        if quick_oom.is_some() && change == 0.0 {
            return Err(KeepReason::AsRecommended);
        }
        if let Some(outside) = outside {
            return Ok((priority, outside));
        }
        if let Some((container, kill)) = quick_oom {
            let (container, finished_at) = (container.clone(), kill.finished_at);
            return Ok((priority, UpdateReason::QuickOom { container, finished_at }));
        }
        let age = self.now - pod.started.ok_or(KeepReason::NotStarted)?;
        let from = self.flags.in_recommendation_bounds_eviction_lifetime_threshold;
        let threshold = self.flags.pod_update_threshold;
        if age < from {
            return Err(KeepReason::Young { age, from });
        }
        if change < threshold {
            return Err(KeepReason::SmallChange { change, threshold });
        }
        Ok((priority, UpdateReason::Old { age, from, change, threshold }))
    }

    /// Returns true if a container was killed soon after its start, and not long ago.
    fn is_quick(&self, container: &str, kill: KilledContainer) -> bool {
        let policy = self.vpa.spec.resource_policy.as_ref();
        let policy = policy.and_then(|policy| policy.for_container(container));
        if policy.and_then(|policy| policy.mode) == Some(super::ScalingMode::Off) {
            return false;
        }
        let own = self.vpa.spec.update_policy.as_ref().and_then(|it| it.evict_after_oom_seconds);
        let own = own.filter(|_| self.per_vpa_config);
        let threshold = own.map_or(self.flags.evict_after_oom_threshold, |seconds| {
            Span::from_secs(i64::from(seconds))
        });
        kill.finished_at - kill.started_at < threshold && self.now - kill.finished_at < threshold
    }

    fn meets_requirements(
        &self,
        spec: &PodSpec,
        recommendation: &[ContainerRecommendation],
    ) -> bool {
        let Some(policy) = &self.vpa.spec.update_policy else { return true };
        recommendation.iter().any(|recommended| {
            let container = spec.containers.iter().find(|it| it.name == recommended.container_name);
            let Some(container) = container else { return false };
            let requests = &container.requests;
            let lacks_one = ["cpu", "memory"].into_iter().any(|name| !requests.contains_key(name));
            lacks_one || meets_all(requests, recommended, &policy.eviction_requirements)
        })
    }
}

/// Each requirement must be met by one of its resources.
fn meets_all(
    requests: &Requests,
    recommended: &ContainerRecommendation,
    requirements: &[EvictionRequirement],
) -> bool {
    let milli = |amount: Option<&Quantity>| amount.map_or(0, Quantity::milli);
    requirements.iter().all(|requirement| {
        requirement.resources.iter().any(|resource| {
            let requested = milli(requests.get(resource.as_str()));
            let target = milli(recommended.target.amount(resource));
            match requirement.change_requirement {
                ChangeRequirement::TargetHigherThanRequests => target > requested,
                ChangeRequirement::TargetLowerThanRequests => target < requested,
            }
        })
    })
}

/// The priority, and the first request outside the recommended bounds.
///
/// Upstream: priority_processor.go, GetUpdatePriority
fn priority(
    spec: &PodSpec,
    recommendation: &[ContainerRecommendation],
) -> (Priority, Option<UpdateReason>) {
    let mut priority = Priority { scale_up: false, difference: 0.0 };
    let mut outside = None;
    let mut totals: BTreeMap<&str, (i64, i64)> = BTreeMap::new();
    for container in &spec.containers {
        let Some(it) = recommendation.iter().find(|it| it.container_name == container.name) else {
            continue;
        };
        for (resource, target) in it.target.amounts() {
            let (requested, recommended) = totals.entry(resource).or_default();
            // Go's integers wrap around.
            *recommended = recommended.wrapping_add(target.milli());
            let name = &container.name;
            let Some(request) = container.requests.get(resource) else {
                priority.scale_up = true;
                outside = outside.or_else(|| {
                    Some(UpdateReason::NoRequest { container: name.clone(), resource })
                });
                continue;
            };
            *requested = requested.wrapping_add(request.milli());
            priority.scale_up |= target.milli() > request.milli();
            outside = outside.or_else(|| outside_bounds(name, resource, request, it));
        }
    }
    for (requested, recommended) in totals.into_values() {
        let requested = (requested as f64).max(1.0);
        priority.difference += (requested - recommended as f64).abs() / requested;
    }
    (priority, outside)
}

/// The reason to change a pod if a request is outside the recommended bounds.
fn outside_bounds(
    container: &Arc<str>,
    resource: &'static str,
    request: &Quantity,
    recommended: &ContainerRecommendation,
) -> Option<UpdateReason> {
    let lower = recommended.lower_bound.amount(resource);
    let upper = recommended.upper_bound.amount(resource);
    let below = lower.filter(|lower| request.compare(lower).is_lt());
    let above = upper.filter(|upper| request.compare(upper).is_gt());
    below.or(above).map(|bound| UpdateReason::OutsideBounds {
        container: container.clone(),
        resource,
        request: request.clone(),
        bound: bound.clone(),
        is_below: below.is_some(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{Container, CrossVersionObjectReference};
    use crate::vpa::{
        ObjectName, Recommendation, ResourceList, UpdatePolicy, VpaMetadata, VpaSpec, VpaStatus,
    };

    fn quantity(text: &str) -> Quantity {
        Quantity::parse(text).expect("a quantity")
    }

    fn cpu(text: &str) -> ResourceList {
        ResourceList { cpu: Some(quantity(text)), memory: None }
    }

    fn vpa(mode: UpdateMode, lower: &str, target: &str, upper: &str) -> VerticalPodAutoscaler {
        let target_ref = CrossVersionObjectReference::new("apps/v1", "Deployment", "web");
        let recommended = ContainerRecommendation {
            container_name: "app".into(),
            target: cpu(target),
            lower_bound: cpu(lower),
            upper_bound: cpu(upper),
            uncapped_target: cpu(target),
        };
        let recommendation = Recommendation { container_recommendations: vec![recommended] };
        let policy = UpdatePolicy { update_mode: Some(mode), ..UpdatePolicy::default() };
        VerticalPodAutoscaler {
            metadata: VpaMetadata {
                name: ObjectName::new("default", "web"),
                annotations: BTreeMap::new(),
                generation: 1,
            },
            spec: VpaSpec {
                target_ref,
                update_policy: Some(policy),
                resource_policy: None,
                recommenders: Vec::new(),
            },
            status: VpaStatus { recommendation: Some(recommendation), ..VpaStatus::default() }
                .into(),
        }
    }

    fn pod(ordinal: u32, request: &str, started: Option<i64>) -> LivePod {
        let requests = BTreeMap::from([("cpu".into(), quantity(request))]);
        let container = Container { name: "app".into(), requests, sidecar: false };
        let spec = PodSpec { containers: vec![container], ..PodSpec::default() };
        LivePod {
            ordinal,
            group: 0,
            spec: Arc::new(spec),
            started: started.map(Time::from_secs),
            oom_kills: BTreeMap::new(),
        }
    }

    /// The result of `of` for the updater after an hour, with as many replicas as pods.
    fn after_an_hour<T>(
        vpa: &VerticalPodAutoscaler,
        flags: &UpdaterFlags,
        pods: &[LivePod],
        of: impl FnOnce(&Updater<'_>) -> T,
    ) -> T {
        let replicas = BTreeMap::from([(0, i64::try_from(pods.len()).expect("a few pods"))]);
        of(&Updater {
            vpa,
            flags,
            limits: &Limits::new(),
            resizes: true,
            replicas: &replicas,
            per_vpa_config: false,
            now: Time::from_secs(3600),
        })
    }

    fn run(vpa: &VerticalPodAutoscaler, flags: &UpdaterFlags, pods: &[LivePod]) -> Vec<PodUpdate> {
        after_an_hour(vpa, flags, pods, |updater| updater.run_once(pods))
    }

    fn pods(requests: &[&str]) -> Vec<LivePod> {
        (0..).zip(requests).map(|(ordinal, request)| pod(ordinal, request, Some(0))).collect()
    }

    #[test]
    fn the_mode_decides_what_happens() {
        let (flags, pods) = (UpdaterFlags::default(), pods(&["100m", "100m"]));
        let of = |mode: UpdateMode| run(&vpa(mode, "200m", "300m", "400m"), &flags, &pods);
        assert_eq!(of(UpdateMode::Off), []);
        assert_eq!(of(UpdateMode::Initial), []);
        assert_eq!(of(UpdateMode::Recreate), [PodUpdate::Evict(0)]);
        assert_eq!(of(UpdateMode::Auto), [PodUpdate::Evict(0)]);
        assert_eq!(of(UpdateMode::InPlaceOrRecreate), [PodUpdate::InPlace(0)]);
    }

    #[test]
    fn half_of_the_replicas_may_be_missing() {
        let flags = UpdaterFlags::default();
        let vpa = vpa(UpdateMode::Recreate, "200m", "300m", "400m");
        let count = |number: usize| run(&vpa, &flags, &pods(&vec!["100m"; number])).len();
        assert_eq!([1, 2, 3, 4, 5].map(count), [0, 1, 1, 2, 2]);
        // A pod that is pending is missing already, and may be evicted nevertheless.
        let mut some = pods(&["100m"; 4]);
        some[0].started = None;
        let updates = run(&vpa, &flags, &some);
        assert_eq!(updates, [PodUpdate::Evict(0), PodUpdate::Evict(1)]);
        // Without tolerance, one of all pods may be evicted.
        let none = UpdaterFlags { eviction_tolerance: 0.0, ..flags };
        assert_eq!(run(&vpa, &none, &pods(&["100m"; 4])), [PodUpdate::Evict(0)]);
    }

    #[test]
    fn the_vpa_overrides_the_smallest_number_of_pods() {
        let flags = UpdaterFlags::default();
        let mut vpa = vpa(UpdateMode::Recreate, "200m", "300m", "400m");
        if let Some(policy) = &mut vpa.spec.update_policy {
            policy.min_replicas = Some(1);
        }
        assert_eq!(run(&vpa, &flags, &pods(&["100m"])), [PodUpdate::Evict(0)]);
    }

    #[test]
    fn pods_within_the_bounds_stay_until_they_are_old() {
        let vpa = vpa(UpdateMode::Recreate, "100m", "300m", "400m");
        let lifetime = |minutes| UpdaterFlags {
            in_recommendation_bounds_eviction_lifetime_threshold: Span::from_mins(minutes),
            ..UpdaterFlags::default()
        };
        assert_eq!(run(&vpa, &lifetime(61), &pods(&["100m", "100m"])), []);
        assert_eq!(run(&vpa, &lifetime(60), &pods(&["100m", "100m"])), [PodUpdate::Evict(0)]);
        // A change of less than a tenth is too small.
        assert_eq!(run(&vpa, &lifetime(60), &pods(&["275m", "275m"])), []);
        // Outside the bounds, the age does not matter.
        assert_eq!(run(&vpa, &lifetime(61), &pods(&["500m", "99m"])), [PodUpdate::Evict(1)]);
    }

    #[test]
    fn pods_that_grow_are_first_then_those_that_change_most() {
        let flags = UpdaterFlags { eviction_tolerance: 1.0, ..UpdaterFlags::default() };
        let vpa = vpa(UpdateMode::Recreate, "250m", "300m", "350m");
        let updates = run(&vpa, &flags, &pods(&["900m", "200m", "100m", "600m"]));
        assert_eq!(updates, [2, 1, 0, 3].map(PodUpdate::Evict));
    }

    #[test]
    fn a_container_that_is_killed_soon_after_its_start_is_updated() {
        let flags = UpdaterFlags::default();
        let vpa = vpa(UpdateMode::Recreate, "50m", "300m", "400m");
        let killed = |started: i64, finished: i64| {
            let mut pods = pods(&["100m", "100m"]);
            let (started_at, finished_at) = (Time::from_secs(started), Time::from_secs(finished));
            pods[1].oom_kills.insert("app".into(), KilledContainer { started_at, finished_at });
            run(&vpa, &flags, &pods)
        };
        assert_eq!(killed(3000, 3500), [PodUpdate::Evict(1)]);
        assert_eq!(killed(0, 3500), []);
        assert_eq!(killed(2900, 3000), [], "too long ago");
    }

    #[test]
    fn requirements_prevent_updates() {
        let flags = UpdaterFlags::default();
        let mut vpa = vpa(UpdateMode::Recreate, "200m", "300m", "400m");
        let requirement = EvictionRequirement {
            resources: vec!["cpu".to_owned()],
            change_requirement: ChangeRequirement::TargetLowerThanRequests,
        };
        if let Some(policy) = &mut vpa.spec.update_policy {
            policy.eviction_requirements = vec![requirement];
        }
        // As in upstream, a pod without a memory request does not have to meet them.
        assert_eq!(run(&vpa, &flags, &pods(&["100m", "100m"])), [PodUpdate::Evict(0)]);
        let with_memory = |request: &str| {
            let mut pods = pods(&[request, request]);
            for pod in &mut pods {
                let requests = &mut Arc::make_mut(&mut pod.spec).containers[0].requests;
                requests.insert("memory".into(), quantity("1Gi"));
            }
            run(&vpa, &flags, &pods)
        };
        assert_eq!(with_memory("100m"), []);
        assert_eq!(with_memory("500m"), [PodUpdate::Evict(0)]);
    }

    /// The reasons of all pods after an hour, as text.
    fn reasons(vpa: &VerticalPodAutoscaler, flags: &UpdaterFlags, pods: &[LivePod]) -> Vec<String> {
        let text = |it: PodReason| match it.reason {
            Ok((PodUpdate::Evict(ordinal), why)) => format!("evict {ordinal}: {why}"),
            Ok((PodUpdate::InPlace(ordinal), why)) => format!("update {ordinal}: {why}"),
            Err(why) => format!("keep {}: {why}", it.ordinal),
        };
        let reasons = after_an_hour(vpa, flags, pods, |updater| updater.reasons(pods));
        reasons.into_iter().map(text).collect()
    }

    #[test]
    fn each_treatment_has_a_reason() {
        let flags = UpdaterFlags::default();
        let recreate = vpa(UpdateMode::Recreate, "200m", "300m", "400m");
        let of = |requests: &[&str]| reasons(&recreate, &flags, &pods(requests)).join("\n");
        let expected = "evict 1: the cpu request of container app, 100m, is below the lower bound, \
            200m\n\
            keep 0: the requests are within the bounds, and the age, 1h, is less than 12h \
            (in-recommendation-bounds-eviction-lifetime-threshold)\n\
            keep 2: 2 of 3 replicas run and are not being changed, and at most 1 may be missing \
            (eviction-tolerance)";
        assert_eq!(of(&["250m", "100m", "900m"]), expected);
        let expected = "keep 0: the workload has 1 live pod, and the updater requires 2 \
            (minReplicas in the VPA's updatePolicy, or min-replicas)";
        assert_eq!(of(&["100m"]), expected);
        let initial = vpa(UpdateMode::Initial, "200m", "300m", "400m");
        let expected = "keep 0: the update mode Initial changes no existing pods";
        assert_eq!(reasons(&initial, &flags, &pods(&["100m"])), [expected]);
        let in_place = vpa(UpdateMode::InPlaceOrRecreate, "200m", "300m", "400m");
        let mut some = pods(&["100m", "900m"]);
        some[1].started = None;
        let expected = [
            "keep 0: 1 of 2 replicas run and are not being changed, and at most 1 may be missing \
             (eviction-tolerance)",
            "keep 1: pods that do not run yet are not updated in place",
        ];
        assert_eq!(reasons(&in_place, &flags, &some), expected);
        let mut none = recreate.clone();
        Arc::make_mut(&mut none.status).recommendation = None;
        let expected = ["keep 0: the VPA has no recommendation"; 1];
        assert_eq!(reasons(&none, &flags, &pods(&["100m"; 2]))[..1], expected);
    }

    #[test]
    fn without_a_resize_pods_are_evicted() {
        let (flags, pods) = (UpdaterFlags::default(), pods(&["100m", "100m"]));
        let vpa = vpa(UpdateMode::InPlaceOrRecreate, "200m", "300m", "400m");
        let updater = Updater {
            vpa: &vpa,
            flags: &flags,
            limits: &Limits::new(),
            resizes: false,
            replicas: &BTreeMap::from([(0, 2)]),
            per_vpa_config: false,
            now: Time::from_secs(3600),
        };
        assert_eq!(updater.run_once(&pods), [PodUpdate::Evict(0)]);
    }

    #[test]
    fn each_named_flag_is_parsed() {
        for name in UpdaterFlags::NAMES {
            let parses = |value: &&str| UpdaterFlags::default().set(name, value).is_ok();
            assert!(["1", "1m", "true"].iter().any(parses), "{name}");
        }
        assert!(UpdaterFlags::default().set("min-replica", "1").is_err());
        assert!(UpdaterFlags::NAMES.into_iter().all(|it| UpdaterFlags::unsupported(it).is_none()));
        let rate_reason = UpdaterFlags::unsupported("eviction-rate-limit");
        assert_eq!(rate_reason, Some("evictions are not rate-limited"));
        assert_eq!(UpdaterFlags::unsupported("min-replica"), None);
        assert!(UpdaterFlags::default().set("updater-interval", "0s").is_err());
    }
}
