//! The simulation of the targets and the workload's pods over time. It does not know the published
//! state, but lists everything that may have changed.
//!
//! Only times with events are visited. All events of one time are applied first, in any order. Then
//! the derived state is updated once, so that nothing changes twice at one time. Then the
//! workload's controller acts immediately: it creates and deletes pods until the number of active
//! pods matches the replicas, counting as a ReplicaSet does (neither failed nor terminating pods).
//! Pods that it creates may start at the same time.
//!
//! A [`PodSet`] is resolved when its action begins, and does not include later pods, unless the
//! event says so (`newPods`): then pods of the set are held from their creation on. Actions that
//! can't end (pods that failed or were deleted) ignore their duration.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;

use super::applied_vpa::AppliedVpa;
use super::backlog::Backlogs;
use super::held_requests::HeldRequests;
use super::pods::{Frozen, SimPod};
use super::rollout::Update;
use super::seen_pods::SeenPods;
use super::usage::{SharedLoad, Usage, own_sampled_at, sampled_at};
use educe::Educe;
use kube_autoscaler_models::api::{PodPhase, PodSpec};
use kube_autoscaler_models::shared::Shared;
use kube_autoscaler_models::time::Time;
use kube_lockstep_scenario::resolved::{
    Action, PodSet, ResourceUsage, ScaleDownOrder, Scenario, TimelineEvent, Workload,
};

/// The largest number of active pods, as in a full cluster. Without a limit, a faulty controller
/// could request two billion pods.
pub const MAX_PODS: usize = 20_000;

/// The simulated pods and targets of one scenario.
#[derive(Educe, Debug)]
#[educe(Clone)]
pub(super) struct WorldSimulation {
    pub scenario: Arc<Scenario>,
    /// The time up to which all events have been applied.
    pub now: Time,
    /// `spec.replicas` of the targets; the first one is the workload.
    pub replicas: Vec<i32>,
    /// The pods, by ordinal.
    pub pods: Shared<BTreeMap<u32, SimPod>>,
    pub(super) next_ordinal: u32,
    pub templates: Shared<Templates>,
    /// The rolling update in progress.
    pub update: Option<Update>,
    /// The number of pods that the workload's controller counts.
    pub active: usize,
    /// The number of ready pods.
    pub serving: usize,
    /// Work that is not done yet.
    pub(super) backlogs: Backlogs,
    /// When pods begin and end to serve the load, if it is kept.
    pub serving_changes: Option<Vec<ServingChange>>,
    /// The pods that hold requests, if they are kept.
    pub(super) held_requests: Option<Box<HeldRequests>>,
    pub schedule: Schedule,
    /// The VPA whose recommendations new pods get.
    pub vpa: Option<Box<AppliedVpa>>,
    /// The pods as the recommender of a VPA sees them, if there is a VPA.
    pub(super) seen: Option<Box<SeenPods>>,
    /// The source of stale samples.
    usage: Shared<Usage>,
    /// Ordinals of pods that changed at this time.
    changed_pods: Vec<u32>,
    /// Everything that may have changed since it was last published.
    pub touched: Touched,
}

/// The workload's pod templates.
#[derive(Clone, Debug)]
pub(super) struct Templates {
    /// The names by revision. All templates have the same labels; samples refer to the first one.
    pub names: Vec<Arc<str>>,
    /// The spec of the newest template.
    pub newest: Arc<PodSpec>,
    /// The specs by revision.
    pub specs: Vec<Arc<PodSpec>>,
    /// The templates with recommended requests, in place of those of their revisions.
    pub admitted: Vec<AdmittedTemplate>,
}

/// A pod template with the requests that a VPA recommends.
#[derive(Clone, Debug)]
pub(super) struct AdmittedTemplate {
    pub name: Arc<str>,
    pub spec: Arc<PodSpec>,
}

impl Templates {
    /// The newest revision.
    pub(super) fn revision(&self) -> u32 {
        u32::try_from(self.names.len()).map_or(u32::MAX, |count| count - 1)
    }

    /// The name of a pod's template.
    pub(super) fn name_of(&self, pod: &SimPod) -> &Arc<str> {
        let admitted = pod.admitted.and_then(|index| self.admitted.get(index));
        admitted.map_or(&self.names[pod.revision as usize], |template| &template.name)
    }

    /// The spec of a pod.
    pub(super) fn spec_of(&self, pod: &SimPod) -> &Arc<PodSpec> {
        let admitted = pod.admitted.and_then(|index| self.admitted.get(index));
        admitted.map_or(&self.specs[pod.revision as usize], |template| &template.spec)
    }
}

/// The schedule and the actions in effect.
#[derive(Educe, Debug, Default)]
#[educe(Clone)]
pub(super) struct Schedule {
    /// Scheduled events, apart from the timeline.
    pub(super) queue: BinaryHeap<Reverse<(Time, ScheduledEvent)>>,
    /// Index of the next event of the timeline.
    pub(super) next_event: usize,
    /// Indices of the timeline events in effect that do not act on single pods, in the timeline's
    /// order.
    pub(super) disturbances: Vec<usize>,
    /// Indices of the timeline events in effect that also hold new pods.
    pub(super) holding_new_pods: Vec<usize>,
    /// Indices of the timeline events whose actions matched no existing pod.
    unmatched: Vec<usize>,
}

impl Schedule {
    pub(super) fn push(&mut self, at: Time, event: ScheduledEvent) {
        self.queue.push(Reverse((at, event)));
    }

    fn next_due(&self) -> Option<Time> {
        self.queue.peek().map(|Reverse((at, _))| *at)
    }
}

/// An event that results from an earlier one, or that a search chose, instead of the timeline
/// directly.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum ScheduledEvent {
    /// A chosen event of the timeline. It precedes the others of its time, as if the timeline had
    /// it there.
    Begin(usize),
    Start(u32),
    Warm(u32),
    Reports(u32),
    Terminates(u32),
    End(usize),
}

/// All objects that may have changed since they were last published.
#[derive(Educe, Debug, Default)]
#[educe(Clone)]
pub(super) struct Touched {
    /// Ordinals of pods, possibly with duplicates.
    pub pods: Vec<u32>,
    /// Removed pods.
    pub removed: Vec<Removed>,
    /// Ordinals of pods whose samples became stale.
    pub(super) frozen: Vec<u32>,
    /// New pod templates.
    pub templates: Vec<NewTemplate>,
    /// The last writer of `spec.replicas`, by target.
    pub writers: BTreeMap<usize, Writer>,
    /// True if all samples must be compared.
    pub(super) all_samples: bool,
}

/// A removed pod: neither the object nor a stale sample remains.
#[derive(Clone, Debug)]
pub(super) struct Removed {
    pub ordinal: u32,
    pub name: Arc<str>,
    /// True if a new pod with the same name exists, whose sample replaces the sample of this one.
    pub(super) is_replaced: bool,
}

/// A pod template that has not been published yet.
#[derive(Clone, Debug)]
pub(super) struct NewTemplate {
    pub name: Arc<str>,
    pub spec: Arc<PodSpec>,
}

/// A pod begins or ends to serve a share of the load: it is ready, and not Terminating.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ServingChange {
    /// The time.
    pub at: Time,
    /// The ordinal of the pod.
    pub ordinal: u32,
    /// True if it serves from then on.
    pub serves: bool,
}

/// The writer of replicas.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Writer {
    Controller,
    User,
}

impl WorldSimulation {
    /// The simulation before t=0.
    pub(super) fn new(scenario: &Arc<Scenario>) -> WorldSimulation {
        debug_assert!(scenario.timeline.is_sorted_by_key(|event| event.at));
        let (name, spec) = (Arc::from("t0"), scenario.workload.spec.clone());
        let template = NewTemplate { name: Arc::clone(&name), spec: spec.clone() };
        let templates = Some(template).filter(|_| !scenario.workload.is_absent()).into_iter();
        let mut simulation = WorldSimulation {
            scenario: scenario.clone(),
            now: Time(i64::MIN),
            replicas: scenario.targets().map(|target| target.replicas).collect(),
            pods: Shared::default(),
            next_ordinal: 0,
            templates: Shared::new(Templates {
                names: vec![name],
                newest: spec.clone(),
                specs: vec![spec],
                admitted: Vec::new(),
            }),
            vpa: scenario.vpa.as_ref().map(|vpa| Box::new(AppliedVpa::new(vpa))),
            seen: None,
            update: None,
            active: 0,
            serving: 0,
            backlogs: Backlogs::new(scenario),
            serving_changes: None,
            held_requests: None,
            schedule: Schedule::default(),
            usage: Shared::new(Usage::new(scenario)),
            changed_pods: Vec::new(),
            touched: Touched { templates: templates.collect(), ..Touched::default() },
        };
        for _ in 0..simulation.desired() {
            simulation.create_in_past();
        }
        simulation
    }

    /// Records that the controller successfully wrote `spec.replicas` of a target, by its index.
    pub(super) fn scaled(&mut self, at: Time, target: usize, replicas: i32) {
        self.run_until(at);
        self.write_replicas(target, replicas, Writer::Controller);
        if target == 0 {
            self.replace_ended_pods();
            self.act_and_follow();
        }
    }

    /// Writes `spec.replicas` of a target, by its index.
    fn write_replicas(&mut self, target: usize, replicas: i32, writer: Writer) {
        if let Some(current) = self.replicas.get_mut(target) {
            *current = replicas;
            self.touched.writers.insert(target, writer);
        }
    }

    /// `spec.replicas` of the workload.
    pub(super) fn workload_replicas(&self) -> i32 {
        self.replicas.first().copied().unwrap_or_default()
    }

    /// The timeline events whose actions matched no existing pod, by their indices.
    pub(super) fn unmatched_actions(&self) -> &[usize] {
        &self.schedule.unmatched
    }

    /// The actions in effect, apart from actions on single pods, in the timeline's order.
    pub(super) fn disturbances(&self) -> impl Iterator<Item = &Action> {
        self.schedule.disturbances.iter().map(|index| &self.scenario.timeline[*index].action)
    }

    /// Returns true if metrics.k8s.io returns an empty list now.
    pub(super) fn metrics_are_empty(&self) -> bool {
        self.scenario.metrics.resources.is_empty()
            || self.disturbances().any(|action| matches!(action, Action::MetricsEmpty(_)))
    }

    /// The inputs for the share of a load that each pod gets.
    pub(super) fn shared_load(&self) -> SharedLoad<'_> {
        SharedLoad { serving: self.serving, backlogs: &self.backlogs.resources }
    }

    pub(super) fn run_until(&mut self, at: Time) {
        while let Some(next) = self.next_instant().filter(|next| *next <= at) {
            self.now = next;
            let stale = self.begin_events();
            self.follow();
            self.act_and_follow();
            if stale {
                self.freeze(next);
            }
        }
        self.now = self.now.max(at);
        self.backlogs.advance(self.now, self.serving);
    }

    pub(super) fn next_instant(&self) -> Option<Time> {
        let event = self.scenario.timeline.get(self.schedule.next_event).map(|next| next.at);
        self.schedule.next_due().into_iter().chain(event).min()
    }

    /// Begins the timeline's events that are due now. Returns true if some samples become stale.
    fn begin_events(&mut self) -> bool {
        let scenario = self.scenario.clone();
        let mut stale = false;
        while let Some(event) = scenario.timeline.get(self.schedule.next_event) {
            if event.at > self.now {
                break;
            }
            let index = self.schedule.next_event;
            self.schedule.next_event += 1;
            if event.during.is_none() {
                stale |= matches!(event.action, Action::MetricsStale(_));
                self.begin(index, event);
            }
        }
        stale
    }

    /// Begins an event of the timeline, by its index, during a reconcile.
    pub(super) fn happens(&mut self, index: usize, at: Time) {
        self.run_until(at);
        let scenario = self.scenario.clone();
        let event = &scenario.timeline[index];
        self.begin(index, event);
        self.follow();
        self.act_and_follow();
        if matches!(event.action, Action::MetricsStale(_)) {
            self.freeze(at);
        }
    }

    /// Begins an event of the timeline, by its index.
    fn begin(&mut self, index: usize, event: &TimelineEvent) {
        let (now, termination) = (self.now, self.scenario.workload.termination);
        if let Some(span) = event.lasts.filter(|_| event.action.can_end()) {
            self.schedule.push(now + span, ScheduledEvent::End(index));
        }
        match &event.action {
            Action::PodsStuckTerminating(set) => self.apply_to_pods(index, set, |pod| {
                pod.holds.push(index);
                pod.delete(now, termination);
            }),
            Action::PodsFailed(set) => self.end_pods(index, set, PodPhase::Failed),
            Action::PodsSucceeded(set) => self.end_pods(index, set, PodPhase::Succeeded),
            Action::PodsDeleted(set) => {
                self.apply_to_pods(index, set, |pod| pod.delete(now, termination));
            }
            Action::RollingUpdate(update) if !self.is_target_deleted() => self.begin_update(update),
            Action::Scale(replicas) => self.scale_by_user(event, *replicas),
            action if action.changes_containers() => self.change_containers(index, event),
            Action::TargetDeleted(deletion) => {
                let existed = !self.is_target_deleted();
                self.schedule.disturbances.push(index);
                if existed && !deletion.keeps_pods() {
                    self.delete_pods_of_target();
                }
            }
            action => {
                if event.new_pods {
                    self.schedule.holding_new_pods.push(index);
                }
                if let Some(set) = action.pods() {
                    self.apply_to_pods(index, set, |pod| pod.holds.push(index));
                } else if action.can_end() {
                    self.schedule.disturbances.push(index);
                }
                self.touched.all_samples |= matches!(action, Action::MetricsEmpty(_));
            }
        }
    }

    /// A user writes `spec.replicas` of a target.
    fn scale_by_user(&mut self, event: &TimelineEvent, replicas: i32) {
        let target = self.scenario.target_of(event);
        if target == 0 && self.is_target_deleted() {
            return;
        }
        if self.replicas.get(target).is_some_and(|old| *old != replicas) {
            self.write_replicas(target, replicas, Writer::User);
        }
        if target == 0 {
            self.replace_ended_pods();
        }
    }

    /// The workload's controller replaces all pods that have ended so far.
    fn replace_ended_pods(&mut self) {
        if self.pods.values().any(|pod| pod.keeps_place) {
            self.pods.values_mut().for_each(|pod| pod.keeps_place = false);
        }
    }

    /// Ends the containers of pods permanently.
    fn end_pods(&mut self, index: usize, set: &PodSet, phase: PodPhase) {
        let keeps_place = !self.scenario.workload.rules.replaces_ended;
        self.apply_to_pods(index, set, |pod| {
            pod.keeps_place |= keeps_place && pod.active();
            pod.end(phase);
        });
    }

    /// Ends an event of the timeline, by its index.
    fn end(&mut self, index: usize) {
        let scenario = self.scenario.clone();
        let action = &scenario.timeline[index].action;
        if action.pods().is_some() {
            self.schedule.holding_new_pods.retain(|other| *other != index);
            self.release(index);
            return;
        }
        self.schedule.disturbances.retain(|other| *other != index);
        self.touched.all_samples |= matches!(action, Action::MetricsEmpty(_));
        if matches!(action, Action::TargetDeleted(_)) {
            self.create_target();
        }
    }

    /// Applies a change to each existing pod of a set.
    fn apply_to_pods(&mut self, index: usize, set: &PodSet, mut change: impl FnMut(&mut SimPod)) {
        for ordinal in self.existing(index, set) {
            self.change(ordinal, &mut change);
            self.see(ordinal);
        }
    }

    /// The existing pods of a set. If there are none, an event without `newPods` is unmatched.
    fn existing(&mut self, index: usize, set: &PodSet) -> Vec<u32> {
        let existing =
            self.pods.iter().filter(|(ordinal, pod)| set.contains(**ordinal) && !pod.deleted);
        let ordinals: Vec<u32> = existing.map(|(ordinal, _)| *ordinal).collect();
        if ordinals.is_empty() && !self.scenario.timeline[index].new_pods {
            self.schedule.unmatched.push(index);
        }
        ordinals
    }

    /// Begins an event that changes containers or labels of single pods. The recommender sees each
    /// of these changes, even if several happen at the same time.
    fn change_containers(&mut self, index: usize, event: &TimelineEvent) {
        let Some(set) = event.action.pods() else { return };
        let ordinals = self.existing(index, set);
        self.change_seen_pods(&ordinals, event);
    }

    /// Releases each pod that an action holds, and the stale samples of deleted pods.
    fn release(&mut self, index: usize) {
        let held = self.pods.iter().filter(|(_, pod)| pod.holds.contains(&index));
        let ordinals: Vec<u32> = held.map(|(ordinal, _)| *ordinal).collect();
        for ordinal in ordinals {
            self.change(ordinal, |pod| pod.holds.retain(|hold| *hold != index));
        }
    }

    /// Changes a pod. [`WorldSimulation::update_derived`] updates its derived state later.
    pub(super) fn change(&mut self, ordinal: u32, change: impl FnOnce(&mut SimPod)) {
        if let Some(pod) = self.pods.get_mut(&ordinal) {
            let was_active = pod.active();
            change(pod);
            self.active -= usize::from(was_active && !pod.active());
            if let Some(deletion) = pod.deletion
                && was_active
            {
                self.schedule.push(deletion.due, ScheduledEvent::Terminates(ordinal));
                if deletion.unready < deletion.due {
                    self.schedule.push(deletion.unready, ScheduledEvent::Terminates(ordinal));
                }
            }
            self.changed_pods.push(ordinal);
        }
    }

    /// Applies all events up to now, and updates the derived state.
    pub(super) fn follow(&mut self) {
        loop {
            while let Some(&Reverse((at, due))) = self.schedule.queue.peek() {
                if at > self.now {
                    break;
                }
                self.schedule.queue.pop();
                match due {
                    ScheduledEvent::Begin(index) => {
                        let scenario = self.scenario.clone();
                        self.begin(index, &scenario.timeline[index]);
                    }
                    ScheduledEvent::Start(ordinal) => self.start(ordinal),
                    ScheduledEvent::Warm(ordinal) => self.change(ordinal, |pod| pod.warm = true),
                    ScheduledEvent::Reports(ordinal) => {
                        self.change(ordinal, |pod| pod.reports = true)
                    }
                    ScheduledEvent::Terminates(ordinal) => self.change(ordinal, |_| {}),
                    ScheduledEvent::End(index) => self.end(index),
                }
            }
            self.update_derived();
            if self.schedule.next_due().is_none_or(|at| at > self.now) {
                return;
            }
        }
    }

    pub(super) fn start(&mut self, ordinal: u32) {
        let now = self.now;
        let mut started = false;
        self.change(ordinal, |pod| started = pod.start(now));
        if started {
            let at = now + self.scenario.workload.startup_of(ordinal).metrics;
            self.schedule.push(at, ScheduledEvent::Reports(ordinal));
        }
    }

    /// Updates the derived state of the pods that changed at this time.
    fn update_derived(&mut self) {
        self.backlogs.advance(self.now, self.serving);
        let mut changed_pods = std::mem::take(&mut self.changed_pods);
        for ordinal in changed_pods.drain(..) {
            let Some(pod) = self.pods.get_mut(&ordinal) else {
                continue;
            };
            let served = pod.serving();
            let has_parts = pod.update_derived(self.now, &self.scenario.timeline);
            let rules = self.scenario.workload.rules;
            let remains = has_parts && !(pod.deleted && rules.samples_follow_pods);
            let serves = pod.serving();
            if let Some(changes) = self.serving_changes.as_mut().filter(|_| serves != served) {
                changes.push(ServingChange { at: self.now, ordinal, serves });
            }
            if let Some(seen) = &mut self.seen {
                seen.see(ordinal, pod, self.templates.spec_of(pod));
            }
            if let Some(held) = &mut self.held_requests {
                held.see(self.now, ordinal, pod, &self.templates);
            }
            if remains {
                self.serving = self.serving + usize::from(serves) - usize::from(served);
                self.touched.pods.push(ordinal);
            } else {
                self.serving -= usize::from(served);
                self.remove(ordinal);
            }
        }
        self.changed_pods = changed_pods;
    }

    fn remove(&mut self, ordinal: u32) {
        if let Some(SimPod { name, .. }) = self.pods.remove(&ordinal) {
            self.touched.removed.push(Removed { ordinal, name, is_replaced: false });
        }
    }

    /// The ordinal of the next pod.
    fn take_ordinal(&mut self) -> u32 {
        let mut ordinal = self.next_ordinal;
        if self.scenario.workload.rules.reuses_names {
            // The ordinals of the pods are sorted.
            let mut free = (0..).zip(self.pods.keys()).filter(|(name, pod)| name != *pod);
            let last = self.pods.len() as u32;
            ordinal = free.next().map_or(last, |(name, _)| name);
            // The new pod may have the name of a removed one.
            self.touched.removed.retain(|removed| removed.ordinal != ordinal);
        }
        self.next_ordinal = self.next_ordinal.max(ordinal + 1);
        ordinal
    }

    /// Keeps the current samples of the pods whose samples became stale at this time.
    fn freeze(&mut self, at: Time) {
        let scenario = self.scenario.clone();
        let common = sampled_at(scenario.metrics.sampling, at);
        let empty = self.metrics_are_empty();
        let is_stale = |&i: &usize| matches!(scenario.timeline[i].action, Action::MetricsStale(_));
        for (ordinal, pod) in self.pods.iter_mut() {
            if pod.frozen.is_some() || !pod.holds.iter().any(is_stale) {
                continue;
            }
            let lag = pod.sample_lag(*ordinal, &scenario);
            let sampled = own_sampled_at(&scenario, lag, at).unwrap_or(common);
            let signals = &scenario.metrics.resources;
            let load = SharedLoad { serving: self.serving, backlogs: &self.backlogs.resources };
            self.usage.read(signals, sampled, load);
            let class = pod.class(&scenario).filter(|_| !empty && pod.is_sampled_at(sampled));
            let containers = class.map(|key| {
                let class = self.usage.class(key);
                self.usage.of_class(class, signals).clone()
            });
            let timestamp = sampled.truncate_to_second();
            pod.frozen = Some(Frozen { timestamp, containers });
            self.touched.frozen.push(*ordinal);
            self.touched.pods.push(*ordinal);
        }
    }

    /// Lets the workload's controller act; its actions may take effect immediately.
    pub(super) fn act_and_follow(&mut self) {
        if self.is_target_deleted() && self.scenario.workload.kind != "Deployment" {
            return self.follow();
        }
        if self.update.is_some() {
            return self.act_in_update();
        }
        let desired = self.desired();
        if self.active > desired {
            let (now, termination) = (self.now, self.scenario.workload.termination);
            for ordinal in self.first_to_delete(self.active - desired, None) {
                self.change(ordinal, |pod| pod.delete(now, termination));
            }
        }
        loop {
            let leaving = self.leaving();
            while self.active + leaving < desired {
                self.create(self.templates.revision());
            }
            self.follow();
            // The names of pods that terminate at once are free again.
            if self.active + self.leaving() >= desired {
                return;
            }
        }
    }

    /// The Terminating pods of a StatefulSet: their names are not free yet, and the status counts
    /// them, unless they belong to a deleted StatefulSet. Other controllers ignore such pods.
    ///
    /// Upstream: stateful_set_control.go, computeReplicaStatus
    pub(super) fn leaving(&self) -> usize {
        let Workload { group, resource, .. } = &self.scenario.workload;
        if group != "apps" || resource != "statefulsets" {
            return 0;
        }
        let leaves = |pod: &&SimPod| !pod.deleted && pod.deletion.is_some() && !pod.orphan;
        self.pods.values().filter(leaves).count()
    }

    /// The desired number of active pods.
    pub(super) fn desired(&self) -> usize {
        let quota = self.scenario.workload.quota.and_then(|quota| usize::try_from(quota).ok());
        usize::try_from(self.workload_replicas())
            .unwrap_or(0)
            .saturating_sub(self.kept_places())
            .min(quota.unwrap_or(MAX_PODS))
            .min(MAX_PODS)
    }

    /// The number of ended pods that the workload's controller does not replace.
    fn kept_places(&self) -> usize {
        if self.scenario.workload.rules.replaces_ended {
            return 0;
        }
        let keeps = |pod: &&SimPod| pod.keeps_place && pod.deletion.is_none();
        self.pods.values().filter(keeps).count()
    }

    /// Returns true if one more pod may be created.
    pub(super) fn has_room(&self) -> bool {
        let quota = self.scenario.workload.quota.and_then(|quota| usize::try_from(quota).ok());
        self.active < quota.unwrap_or(MAX_PODS).min(MAX_PODS)
    }

    /// The pods that a scale-down deletes first, of all revisions or of one.
    pub(super) fn first_to_delete(&self, count: usize, revision: Option<u32>) -> Vec<u32> {
        let matches = |pod: &SimPod| revision.is_none_or(|revision| pod.revision == revision);
        let active = self.pods.iter().filter(|(_, pod)| pod.active() && matches(pod));
        let mut ordered: Vec<u32> = match self.scenario.workload.scale_down_order {
            ScaleDownOrder::Oldest => active.map(|(ordinal, _)| *ordinal).collect(),
            ScaleDownOrder::Newest => active.rev().map(|(ordinal, _)| *ordinal).collect(),
            ScaleDownOrder::ReplicaSet => {
                let mut ranked: Vec<_> = active
                    .map(|(ordinal, pod)| (pod.started.is_some(), pod.serving(), Reverse(*ordinal)))
                    .collect();
                ranked.sort_unstable();
                ranked.into_iter().map(|(_, _, Reverse(ordinal))| ordinal).collect()
            }
        };
        if let Some(first) = &self.scenario.workload.scale_down_first {
            ordered.sort_by_key(|ordinal| !first.contains(*ordinal));
        }
        ordered.truncate(count);
        ordered
    }

    /// Creates a pod now.
    pub(super) fn create(&mut self, revision: u32) {
        let ordinal = self.add(revision);
        if self.scenario.workload.rules.samples_follow_pods
            && let Some(pod) = self.pods.get_mut(&ordinal)
        {
            pod.sampled_from = Some(self.now);
        }
        let startup = self.scenario.workload.startup_of(ordinal);
        if let Some(pending) = startup.pending {
            self.schedule.push(self.now + pending, ScheduledEvent::Start(ordinal));
        }
        if let Some(ready) = startup.ready {
            self.schedule.push(self.now + ready, ScheduledEvent::Warm(ordinal));
        }
    }

    /// Adds a pod that was created, started and became ready in the past.
    fn create_in_past(&mut self) {
        let ordinal = self.add(0);
        let created = Time::ZERO - self.scenario.workload.age_of(ordinal);
        let reports_at = created + self.scenario.workload.startup_of(ordinal).metrics;
        if let Some(pod) = self.pods.get_mut(&ordinal) {
            pod.started = Some(created);
            pod.warm = true;
            pod.set_ready(created);
            pod.reports = reports_at <= Time::ZERO;
            if !pod.reports {
                self.schedule.push(reports_at, ScheduledEvent::Reports(ordinal));
            }
            self.serving += 1;
        }
    }

    pub(super) fn add(&mut self, revision: u32) -> u32 {
        let ordinal = self.take_ordinal();
        self.active += 1;
        let name = format!("{}-{ordinal}", self.scenario.workload.name).into();
        let exceptions = exceptions_of(&self.scenario.metrics.resources, ordinal);
        let mut pod = SimPod::new(name, revision, exceptions);
        let holds = |index: &&usize| {
            let action = &self.scenario.timeline[**index].action;
            action.pods().is_some_and(|set| set.contains(ordinal))
        };
        pod.holds.extend(self.schedule.holding_new_pods.iter().filter(holds));
        self.admit(ordinal, &mut pod);
        self.pods.insert(ordinal, pod);
        self.changed_pods.push(ordinal);
        self.touched.pods.push(ordinal);
        ordinal
    }

    /// Returns true if the workload is deleted now.
    pub(super) fn is_target_deleted(&self) -> bool {
        self.disturbances().any(|action| matches!(action, Action::TargetDeleted(_)))
    }

    /// Deletes all pods of the target, including completed ones, with the target.
    fn delete_pods_of_target(&mut self) {
        self.replicas[0] = 0;
        self.update = None;
        let (now, termination) = (self.now, self.scenario.workload.termination);
        let ordinals: Vec<u32> = self.pods.keys().copied().collect();
        for ordinal in ordinals {
            self.change(ordinal, |pod| pod.delete(now, termination));
        }
    }

    /// Creates the target again, unless another action keeps it deleted.
    fn create_target(&mut self) {
        if !self.is_target_deleted() {
            // The new workload does not adopt Terminating pods.
            let leaving = self.pods.values_mut().filter(|pod| pod.deletion.is_some());
            leaving.for_each(|pod| pod.orphan = true);
            self.write_replicas(0, self.scenario.workload.replicas, Writer::User);
        }
    }
}

/// The exceptions to the common usage that apply to a pod, by resource, in the order of their
/// precedence.
pub(super) fn exceptions_of(
    signals: &[ResourceUsage],
    ordinal: u32,
) -> Option<Box<[Box<[usize]>]>> {
    let of_resource = |usage: &ResourceUsage| -> Box<[usize]> {
        let all = usage.exceptions.iter().enumerate().rev();
        all.filter(|(_, it)| it.pods.contains(ordinal)).map(|(index, _)| index).collect()
    };
    let exceptions: Box<[_]> = signals.iter().map(of_resource).collect();
    exceptions.iter().any(|it| !it.is_empty()).then_some(exceptions)
}
