//! The simulation of the workload and its pods over time.
//!
//! Only instants at which something happens are looked at. All that happens at one instant is
//! applied first, in any order; then what follows from it is worked out once, so that nothing flips
//! back and forth within an instant. Then the workload's controller acts, at once: it creates and
//! deletes pods until as many are active as wanted, counting as a ReplicaSet does (neither failed
//! nor terminating pods), and what it creates may start at that same instant.
//!
//! A [`PodSet`] is resolved when its happening begins: pods that come later are not in it. What
//! can't end (pods that failed or were deleted) takes no notice of how long it lasts.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;

use super::change::{Change, Faults};
use super::pods::SimPod;
use super::publish::Published;
use super::update::Update;
use super::usage::{Usage, contains};
use crate::model::api::{PodPhase, PodSpec};
use crate::model::time::Time;
use crate::scenario::resolved::{Action, PodSet, ScaleDownOrder, Scenario, TimelineEvent};

/// No more pods than this are active: a larger workload stays short of its size, as in a cluster
/// that is full. Without it a controller that is wrong could ask for two billion pods.
pub const MAX_PODS: usize = 20_000;

/// The simulated world of one scenario.
#[derive(Clone, Debug)]
pub struct World {
    pub(super) scenario: Arc<Scenario>,
    /// Until when everything has happened.
    pub(super) now: Time,
    /// `spec.replicas` of the workload.
    pub(super) replicas: i32,
    /// `spec.replicas` of the other targets.
    pub(super) others: Vec<i32>,
    /// By ordinal.
    pub(super) pods: BTreeMap<u32, SimPod>,
    next_ordinal: u32,
    /// The newest pod template.
    pub(super) revision: u32,
    /// Its spec.
    pub(super) newest_spec: Arc<PodSpec>,
    /// The rolling update that is under way.
    pub(super) update: Option<Update>,
    /// How many pods the workload's controller counts.
    pub(super) active: usize,
    /// How many pods are ready.
    pub(super) serving: usize,
    /// Scheduled events, apart from the timeline.
    queue: BinaryHeap<Reverse<(Time, ScheduledEvent)>>,
    /// Index of the next event of the timeline.
    next_happening: usize,
    /// HPA events and restarts by time.
    api: Arc<[(Time, ApiEvent)]>,
    next_api: usize,
    /// Failing requests and empty answers that last, in the timeline's order.
    pub(super) disturbances: Vec<usize>,
    pub(super) usage: Usage,
    pub(super) published: Published,
    /// Ordinals of pods that changed at this instant.
    changed_pods: Vec<u32>,
    /// Indices of the timeline events whose actions matched no existing pod.
    unmatched_actions: Vec<usize>,
    /// Ordinals of pods whose published state may be stale.
    pub(super) dirty: Vec<u32>,
}

/// What is done to an HPA or to the controller.
#[derive(Clone, Copy, Debug)]
enum ApiEvent {
    /// The first creation of an HPA, by its index.
    First(usize),
    /// An event of the timeline, by its index.
    Timeline(usize),
}

/// An event that follows from an earlier one, rather than from the timeline directly.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum ScheduledEvent {
    Start(u32),
    Warm(u32),
    Reports(u32),
    Gone(u32),
    End(usize),
}

impl World {
    /// The world before t=0.
    #[must_use]
    pub fn new(scenario: &Arc<Scenario>) -> World {
        debug_assert!(scenario.timeline.is_sorted_by_key(|happening| happening.at));
        let of_hpa = |(index, happening): (usize, &TimelineEvent)| {
            let event = (happening.at, ApiEvent::Timeline(index));
            happening.action.is_api_event().then_some(event)
        };
        let first = (0..scenario.hpas.len()).map(|index| (Time::ZERO, ApiEvent::First(index)));
        let api = first.chain(scenario.timeline.iter().enumerate().filter_map(of_hpa)).collect();
        let mut world = World {
            scenario: scenario.clone(),
            now: Time(i64::MIN),
            replicas: scenario.workload.replicas,
            others: scenario.other_targets.iter().map(|target| target.replicas).collect(),
            pods: BTreeMap::new(),
            next_ordinal: 0,
            revision: 0,
            newest_spec: scenario.workload.spec.clone(),
            update: None,
            active: 0,
            serving: 0,
            queue: BinaryHeap::new(),
            next_happening: 0,
            api,
            next_api: 0,
            disturbances: Vec::new(),
            usage: Usage::new(scenario),
            published: Published::new(scenario),
            changed_pods: Vec::new(),
            unmatched_actions: Vec::new(),
            dirty: Vec::new(),
        };
        let born = Time::ZERO - scenario.workload.age;
        for _ in 0..world.wanted() {
            world.create_grown(born);
        }
        world
    }

    /// The next instant after `after` at which something happens that the controller itself reacts
    /// to: the HPA is created, edited or deleted, or the controller restarts. All else is only seen
    /// at a reconcile and needs no stop of its own.
    #[must_use]
    pub fn next_api_event(&self, after: Time) -> Option<Time> {
        let next = self.api.partition_point(|(at, _)| *at <= after);
        self.api.get(next).map(|(at, _)| *at)
    }

    /// What changed since the last call, so that a reconcile at `at` sees the cluster as it is
    /// then: what happens at `at` is seen at `at`. Time only goes forward: `at` must not lie before
    /// a time that was given to this world earlier.
    pub fn advance(&mut self, at: Time) -> Vec<Change> {
        self.run_until(at);
        self.publish(at)
    }

    /// What is done to the HPAs and to the controller at `at` (or before and was not asked for), in
    /// the scenario's order; to be applied after a reconcile that is due at that same instant.
    pub fn api_events(&mut self, at: Time) -> Vec<Change> {
        let mut changes = Vec::new();
        while let Some((_, event)) = self.api.get(self.next_api).filter(|(t, _)| *t <= at) {
            changes.extend(match event {
                ApiEvent::First(index) => {
                    let hpa = self.scenario.hpas.get(*index);
                    hpa.map(|hpa| Change::CreateHpa(hpa.manifest.clone()))
                }
                ApiEvent::Timeline(index) => self.api_change(&self.scenario.timeline[*index]),
            });
            self.next_api += 1;
        }
        changes
    }

    fn api_change(&self, event: &TimelineEvent) -> Option<Change> {
        let name = self.scenario.hpa_of(event).cloned();
        Some(match &event.action {
            Action::EditHpa(patch) => Change::PatchHpa { name: name?, patch: patch.clone() },
            Action::DeleteHpa(_) => Change::DeleteHpa { name: name? },
            Action::CreateHpa(_) => {
                let hpa = self.scenario.hpas.iter().find(|hpa| Some(&hpa.name) == name.as_ref())?;
                Change::CreateHpa(hpa.manifest.clone())
            }
            Action::RestartController(_) => Change::RestartController,
            _ => return None,
        })
    }

    /// The controller wrote `spec.replicas` of a target (by its index: 0 is the workload) at that
    /// time, with success.
    pub fn scaled(&mut self, at: Time, target: usize, replicas: i32) {
        self.run_until(at);
        match target.checked_sub(1) {
            None => {
                self.replicas = replicas;
                self.published.overwritten();
                self.act_and_follow();
            }
            Some(other) => {
                if let Some(size) = self.others.get_mut(other) {
                    *size = replicas;
                    self.published.overwritten_other(other);
                }
            }
        }
    }

    /// `spec.replicas` of a target (by its index: 0 is the workload) as it is now.
    #[must_use]
    pub fn replicas(&self, target: usize) -> i32 {
        match target.checked_sub(1) {
            None => self.replicas,
            Some(other) => self.others.get(other).copied().unwrap_or_default(),
        }
    }

    /// The timeline events whose actions matched no existing pod.
    pub fn unmatched_actions(&self) -> impl Iterator<Item = &TimelineEvent> {
        self.unmatched_actions.iter().map(|index| &self.scenario.timeline[*index])
    }

    /// The requests that fail now: of each kind the one that began last.
    pub(super) fn faults(&self) -> Faults {
        let mut faults = Faults::default();
        for &index in &self.disturbances {
            match &self.scenario.timeline[index].action {
                Action::MetricsError(error) => faults.list_pod_metrics = Some(error.clone()),
                Action::GetScaleError(error) => faults.get_scale = Some(error.clone()),
                Action::UpdateScaleError(error) => faults.update_scale = Some(error.clone()),
                Action::UpdateStatusError(error) => faults.update_status = Some(error.clone()),
                Action::MetricsSlow(span) => faults.slow_metrics = Some(*span),
                _ => {}
            }
        }
        faults
    }

    /// Whether metrics.k8s.io answers with an empty list now.
    pub(super) fn metrics_are_empty(&self) -> bool {
        let empty = |&index: &usize| {
            matches!(self.scenario.timeline[index].action, Action::MetricsEmpty(_))
        };
        self.scenario.metrics.resources.is_empty() || self.disturbances.iter().any(empty)
    }

    /// Marks a pod whose published state may be stale.
    pub(super) fn mark(&mut self, ordinal: u32) {
        if let Some(pod) = self.pods.get_mut(&ordinal)
            && !pod.dirty
        {
            pod.dirty = true;
            self.dirty.push(ordinal);
        }
    }

    pub(super) fn run_until(&mut self, at: Time) {
        while let Some(next) = self.next_instant().filter(|next| *next <= at) {
            self.now = next;
            let stale = self.begin_happenings();
            self.follow();
            self.act_and_follow();
            if stale {
                self.freeze(next);
            }
        }
        self.now = self.now.max(at);
    }

    fn next_instant(&self) -> Option<Time> {
        let due = self.queue.peek().map(|Reverse((at, _))| *at);
        let happening = self.scenario.timeline.get(self.next_happening).map(|next| next.at);
        due.into_iter().chain(happening).min()
    }

    /// Everything of the timeline that begins now. True: some samples become stale.
    fn begin_happenings(&mut self) -> bool {
        let scenario = self.scenario.clone();
        let mut stale = false;
        while let Some(happening) = scenario.timeline.get(self.next_happening) {
            if happening.at > self.now {
                break;
            }
            let index = self.next_happening;
            self.next_happening += 1;
            stale |= matches!(happening.action, Action::MetricsStale(_));
            self.begin(index, happening);
            if let Some(span) = happening.lasts.filter(|_| happening.action.can_end()) {
                self.queue.push(Reverse((happening.at + span, ScheduledEvent::End(index))));
            }
        }
        stale
    }

    /// Begins an event of the timeline, by its index.
    fn begin(&mut self, index: usize, event: &TimelineEvent) {
        let (now, termination) = (self.now, self.scenario.workload.termination);
        match &event.action {
            Action::PodsStuckTerminating(set) => self.apply_to_pods(index, set, |pod| {
                pod.holds.push(index);
                pod.delete(now, termination);
            }),
            Action::PodsFailed(set) => {
                self.apply_to_pods(index, set, |pod| pod.end(PodPhase::Failed));
            }
            Action::PodsSucceeded(set) => {
                self.apply_to_pods(index, set, |pod| pod.end(PodPhase::Succeeded));
            }
            Action::PodsDeleted(set) => {
                self.apply_to_pods(index, set, |pod| pod.delete(now, termination));
            }
            Action::RollingUpdate(update) if !self.is_target_gone() => self.begin_update(update),
            Action::Scale(replicas) => self.scale_by_person(event, *replicas),
            action => {
                if let Some(set) = action.pods() {
                    self.apply_to_pods(index, set, |pod| pod.holds.push(index));
                } else if action.can_end() {
                    self.disturbances.push(index);
                }
                self.published.everything |= matches!(action, Action::MetricsEmpty(_));
                if matches!(action, Action::TargetDeleted(_)) {
                    self.delete_target();
                }
            }
        }
    }

    /// A person writes `spec.replicas` of a target.
    fn scale_by_person(&mut self, event: &TimelineEvent, replicas: i32) {
        match self.scenario.target_of(event).checked_sub(1) {
            None if self.is_target_gone() => {}
            None => {
                self.published.person |= self.replicas != replicas;
                self.replicas = replicas;
            }
            Some(other) => {
                if let Some(size) = self.others.get_mut(other) {
                    self.published.others[other].person |= *size != replicas;
                    *size = replicas;
                }
            }
        }
    }

    /// Ends an event of the timeline, by its index.
    fn end(&mut self, index: usize) {
        let scenario = self.scenario.clone();
        let action = &scenario.timeline[index].action;
        if action.pods().is_some() {
            self.release(index);
            return;
        }
        self.disturbances.retain(|other| *other != index);
        self.published.everything |= matches!(action, Action::MetricsEmpty(_));
        if matches!(action, Action::TargetDeleted(_)) {
            self.create_target();
        }
    }

    /// Applies a change to each existing pod of a set.
    fn apply_to_pods(&mut self, index: usize, set: &PodSet, mut what: impl FnMut(&mut SimPod)) {
        let there = self.pods.iter().filter(|(ordinal, pod)| contains(set, **ordinal) && !pod.gone);
        let ordinals: Vec<u32> = there.map(|(ordinal, _)| *ordinal).collect();
        if ordinals.is_empty() {
            self.unmatched_actions.push(index);
        }
        for ordinal in ordinals {
            self.change(ordinal, &mut what);
        }
    }

    /// Lets go of each pod that a happening holds, and of what is left of those that are gone.
    fn release(&mut self, index: usize) {
        let held = self.pods.iter().filter(|(_, pod)| pod.holds.contains(&index));
        let ordinals: Vec<u32> = held.map(|(ordinal, _)| *ordinal).collect();
        for ordinal in ordinals {
            self.change(ordinal, |pod| pod.holds.retain(|hold| *hold != index));
        }
    }

    /// Changes a pod. [`World::update_derived`] updates its derived state later.
    pub(super) fn change(&mut self, ordinal: u32, what: impl FnOnce(&mut SimPod)) {
        if let Some(pod) = self.pods.get_mut(&ordinal) {
            let was_active = pod.active();
            what(pod);
            self.active -= usize::from(was_active && !pod.active());
            if let Some(deletion) = pod.deletion
                && was_active
            {
                self.queue.push(Reverse((deletion.due, ScheduledEvent::Gone(ordinal))));
            }
            self.changed_pods.push(ordinal);
        }
    }

    /// Applies all that is due until now, and works out what follows from it.
    pub(super) fn follow(&mut self) {
        loop {
            while let Some(&Reverse((at, due))) = self.queue.peek() {
                if at > self.now {
                    break;
                }
                self.queue.pop();
                match due {
                    ScheduledEvent::Start(ordinal) => self.start(ordinal),
                    ScheduledEvent::Warm(ordinal) => self.change(ordinal, |pod| pod.warm = true),
                    ScheduledEvent::Reports(ordinal) => {
                        self.change(ordinal, |pod| pod.reports = true)
                    }
                    ScheduledEvent::Gone(ordinal) => self.change(ordinal, |_| {}),
                    ScheduledEvent::End(index) => self.end(index),
                }
            }
            self.update_derived();
            if self.next_due().is_none_or(|at| at > self.now) {
                return;
            }
        }
    }

    fn next_due(&self) -> Option<Time> {
        self.queue.peek().map(|Reverse((at, _))| *at)
    }

    pub(super) fn start(&mut self, ordinal: u32) {
        let now = self.now;
        let mut started = false;
        self.change(ordinal, |pod| started = pod.start(now));
        if started {
            let at = now + self.scenario.workload.startup.metrics;
            self.queue.push(Reverse((at, ScheduledEvent::Reports(ordinal))));
        }
    }

    /// Updates the derived state of the pods that changed at this instant.
    fn update_derived(&mut self) {
        let mut changed_pods = std::mem::take(&mut self.changed_pods);
        for ordinal in changed_pods.drain(..) {
            let Some(pod) = self.pods.get_mut(&ordinal) else {
                continue;
            };
            let served = pod.serving();
            if pod.update_derived(self.now, &self.scenario.timeline) {
                self.serving = self.serving + usize::from(pod.serving()) - usize::from(served);
                self.mark(ordinal);
            } else {
                self.serving -= usize::from(served);
                self.remove(ordinal);
            }
        }
        self.changed_pods = changed_pods;
    }

    fn remove(&mut self, ordinal: u32) {
        if let Some(pod) = self.pods.remove(&ordinal) {
            if pod.metrics.published.is_some() {
                self.published.lost_samples.push(pod.name.clone());
                self.published.forget_sample(pod.metrics.published.as_ref());
            }
            if pod.published.is_some() {
                self.published.lost_pods.push(pod.name);
            }
        }
    }

    /// The workload's controller acts, and what it does may take effect at once.
    pub(super) fn act_and_follow(&mut self) {
        if self.update.is_some() {
            self.act_in_update();
            return;
        }
        let wanted = self.wanted();
        if self.active > wanted {
            let (now, termination) = (self.now, self.scenario.workload.termination);
            for ordinal in self.first_to_delete(self.active - wanted, None) {
                self.change(ordinal, |pod| pod.delete(now, termination));
            }
        }
        let leaving = self.leaving();
        while self.active + leaving < wanted {
            self.create(self.revision);
        }
        self.follow();
    }

    /// The pods of a StatefulSet that are Terminating: their names are not free yet, and its status
    /// counts them, unless they are those of one that was deleted. Others' controllers forget such
    /// pods.
    ///
    /// Upstream: stateful_set_control.go, computeReplicaStatus
    pub(super) fn leaving(&self) -> usize {
        if &*self.published.resource != "statefulsets.apps" {
            return 0;
        }
        let leaves = |pod: &&SimPod| !pod.gone && pod.deletion.is_some() && !pod.orphan;
        self.pods.values().filter(leaves).count()
    }

    /// How many pods are to be active.
    pub(super) fn wanted(&self) -> usize {
        let quota = self.scenario.workload.quota.and_then(|quota| usize::try_from(quota).ok());
        usize::try_from(self.replicas).unwrap_or(0).min(quota.unwrap_or(MAX_PODS)).min(MAX_PODS)
    }

    /// Returns true if one more pod may be created.
    pub(super) fn has_room(&self) -> bool {
        let quota = self.scenario.workload.quota.and_then(|quota| usize::try_from(quota).ok());
        self.active < quota.unwrap_or(MAX_PODS).min(MAX_PODS)
    }

    /// The pods that a scale-down deletes first, of all revisions or of one.
    pub(super) fn first_to_delete(&self, count: usize, revision: Option<u32>) -> Vec<u32> {
        let of = |pod: &SimPod| revision.is_none_or(|revision| pod.revision == revision);
        let active = self.pods.iter().filter(|(_, pod)| pod.active() && of(pod));
        match self.scenario.workload.scale_down_order {
            ScaleDownOrder::Oldest => active.map(|(ordinal, _)| *ordinal).take(count).collect(),
            ScaleDownOrder::Newest => {
                active.rev().map(|(ordinal, _)| *ordinal).take(count).collect()
            }
            ScaleDownOrder::ReplicaSet => {
                let mut ranked: Vec<_> = active
                    .map(|(ordinal, pod)| (pod.started.is_some(), pod.serving(), Reverse(*ordinal)))
                    .collect();
                ranked.sort_unstable();
                ranked.into_iter().take(count).map(|(_, _, Reverse(ordinal))| ordinal).collect()
            }
        }
    }

    /// A pod is created now.
    pub(super) fn create(&mut self, revision: u32) {
        let startup = self.scenario.workload.startup;
        let ordinal = self.add(revision);
        if let Some(pending) = startup.pending {
            self.queue.push(Reverse((self.now + pending, ScheduledEvent::Start(ordinal))));
        }
        if let Some(ready) = startup.ready {
            self.queue.push(Reverse((self.now + ready, ScheduledEvent::Warm(ordinal))));
        }
    }

    /// A pod that was created, started and became ready in the past.
    fn create_grown(&mut self, born: Time) {
        let reports_at = born + self.scenario.workload.startup.metrics;
        let ordinal = self.add(0);
        if let Some(pod) = self.pods.get_mut(&ordinal) {
            pod.started = Some(born);
            pod.warm = true;
            pod.ready = Some((true, born));
            pod.reports = reports_at <= Time::ZERO;
            if !pod.reports {
                self.queue.push(Reverse((reports_at, ScheduledEvent::Reports(ordinal))));
            }
            self.serving += 1;
        }
    }

    pub(super) fn add(&mut self, revision: u32) -> u32 {
        let ordinal = self.next_ordinal;
        self.next_ordinal += 1;
        self.active += 1;
        let name = format!("{}-{ordinal}", self.scenario.workload.name).into();
        let exception = |usage: &crate::scenario::resolved::ResourceUsage| {
            usage.exceptions.iter().rposition(|other| contains(&other.pods, ordinal))
        };
        let exceptions: Box<[_]> = self.scenario.metrics.resources.iter().map(exception).collect();
        let exceptions = exceptions.iter().any(Option::is_some).then_some(exceptions);
        self.pods.insert(ordinal, SimPod::new(name, revision, exceptions));
        self.changed_pods.push(ordinal);
        self.mark(ordinal);
        ordinal
    }
}
