//! Runs the simulation of a scenario and publishes it, reconcile by reconcile.

use std::sync::Arc;

use super::applied_vpa::{
    AdmittedPod, ManagedPods, PodChange, PodChangeKind, UpdatedPod, UpdaterReport, UpdaterSettings,
};
use super::change::Change;
use super::held_requests::{HeldRequests, RequestChange};
use super::publish::Publisher;
use super::recommender_view::RecommenderView;
use super::seen_pods::SeenPods;
use super::simulation::{ScheduledEvent, ServingChange, WorldSimulation};
use educe::Educe;
use kube_autoscaler_models::api::PodSpec;
use kube_autoscaler_models::time::Time;
use kube_autoscaler_models::vpa::{ScriptStep, Start, Write};
use kube_lockstep_scenario::resolved::{Action, Scenario, TimelineEvent};
use kube_lockstep_scenario::vpa::VpaScenario;

/// The simulated world of one scenario.
#[derive(Educe, Debug)]
#[educe(Clone)]
pub struct World {
    pub(super) simulation: WorldSimulation,
    pub(super) publisher: Publisher,
    /// HPA events and restarts by time.
    api: Arc<[(Time, ApiEvent)]>,
    next_api: usize,
    /// The events of the timeline that were chosen to happen at a time, by their indices.
    pub(super) chosen_api: Vec<(Time, usize)>,
    /// The cluster as the recommender of the VPA sees it, if there is a VPA.
    view: Option<Box<RecommenderView>>,
    /// Changes that the recommender has seen, and the HPA controller has not.
    early: Vec<Change>,
}

/// A change to an HPA or to the controller.
#[derive(Clone, Copy, Debug)]
enum ApiEvent {
    /// The first creation of an HPA, by its index.
    First(usize),
    /// An event of the timeline, by its index.
    Timeline(usize),
}

impl World {
    /// The world before t=0.
    #[must_use]
    pub fn new(scenario: &Arc<Scenario>) -> World {
        let first = (0..scenario.hpas.len()).map(|index| (Time::ZERO, ApiEvent::First(index)));
        let timeline = scenario.timeline.iter().enumerate();
        let later = timeline
            .filter(|(_, event)| event.action.is_api_event() && event.during.is_none())
            .map(|(index, event)| (event.at, ApiEvent::Timeline(index)));
        let world = World {
            simulation: WorldSimulation::new(scenario),
            publisher: Publisher::new(scenario),
            api: first.chain(later).collect(),
            next_api: 0,
            chosen_api: Vec::new(),
            view: None,
            early: Vec::new(),
        };
        match &scenario.vpa {
            Some(vpa) => world.with_recommender(&vpa.recommender),
            None => world,
        }
    }

    /// The world of a scenario with a VPA alone, before t=0.
    #[must_use]
    pub fn of_vpa(scenario: &Arc<VpaScenario>) -> World {
        World::new(&Arc::new(scenario.world())).with_recommender(scenario)
    }

    fn with_recommender(mut self, vpa: &Arc<VpaScenario>) -> World {
        let scenario = &self.simulation.scenario;
        let seen = SeenPods::new(scenario, vpa.start);
        self.view = Some(Box::new(RecommenderView::new(scenario, vpa)));
        self.simulation.seen = Some(Box::new(seen));
        self
    }

    /// The time of the next event after `after` to which the controller reacts: an HPA is created,
    /// edited or deleted, or the controller restarts. Other events have an effect at the next
    /// reconcile and do not require a stop.
    #[must_use]
    pub fn next_api_event(&self, after: Time) -> Option<Time> {
        let next = self.api.partition_point(|(at, _)| *at <= after);
        let next = self.api.get(next).map(|(at, _)| *at);
        let chosen = self.chosen_api.iter().map(|(at, _)| *at).filter(|at| *at > after);
        chosen.chain(next).min()
    }

    /// The times of the HPA events and restarts that are still to come.
    pub(super) fn remaining_api_events(&self) -> impl Iterator<Item = Time> {
        self.api[self.next_api..].iter().map(|(at, _)| *at)
    }

    /// Lets an event of the timeline, by its index, also happen at this time, after the timeline's
    /// other events of that time. The time must not have passed.
    pub fn begin_at(&mut self, at: Time, index: usize) {
        if self.simulation.scenario.timeline[index].action.is_api_event() {
            self.chosen_api.push((at, index));
        } else {
            self.simulation.schedule.push(at, ScheduledEvent::Begin(index));
        }
    }

    /// Continues with other values of the metrics. The scenarios must not differ otherwise.
    pub fn continue_with(&mut self, scenario: &Arc<Scenario>) {
        self.simulation.scenario = scenario.clone();
    }

    /// The time of the next event of the world: an action begins or ends, or a pod changes.
    #[must_use]
    pub fn next_change(&self) -> Option<Time> {
        self.simulation.next_instant()
    }

    /// The changes since the last call, for a reconcile at `at`, including the events at `at`. Time
    /// only advances: `at` must not be before the time of an earlier call.
    pub fn advance(&mut self, at: Time) -> Vec<Change> {
        let mut early = std::mem::take(&mut self.early);
        let changes = self.publish(at);
        if early.is_empty() {
            return changes;
        }
        early.extend(changes);
        early
    }

    fn publish(&mut self, at: Time) -> Vec<Change> {
        self.simulation.run_until(at);
        let touched = std::mem::take(&mut self.simulation.touched);
        let changes = self.publisher.publish(&self.simulation, touched, at);
        if let Some(view) = &mut self.view {
            view.observe(&changes);
        }
        changes
    }

    /// The objects with which the VPA's recommender starts. None: there is no VPA.
    pub fn recommender_start(&mut self) -> Option<Start> {
        Some(self.view.as_mut()?.start(&mut self.simulation))
    }

    /// Running pods can't be resized, so that the updater evicts them.
    #[must_use]
    pub fn without_resizes(mut self) -> World {
        if let Some(applied) = &mut self.simulation.vpa {
            Arc::make_mut(&mut applied.settings).resizes = false;
        }
        self
    }

    /// The next time at which something happens to the VPA: an event, or a run of the recommender
    /// or the updater.
    #[must_use]
    pub fn next_vpa_stop(&self) -> Option<Time> {
        let updater = self.simulation.vpa.as_ref().map(|applied| applied.due);
        self.view.as_ref()?.next_stop(updater)
    }

    /// Lets time pass until a stop, and returns the step of the recommender that ends there, if
    /// there is one.
    pub fn begin_vpa_stop(&mut self, at: Time) -> Option<ScriptStep> {
        let changes = self.publish(at);
        if !self.simulation.scenario.hpas.is_empty() {
            self.early.extend(changes);
        }
        self.view.as_mut()?.step(&mut self.simulation, at)
    }

    /// Applies the requests of the recommender.
    pub fn apply_recommendations(&mut self, writes: &[Write]) {
        if let Some(applied) = &mut self.simulation.vpa {
            applied.observe(writes);
        }
    }

    /// The name of the workload.
    #[must_use]
    pub fn workload(&self) -> Arc<str> {
        self.simulation.scenario.workload.name.clone()
    }

    /// The settings of the updater. None: there is no VPA, or it is not applied.
    #[must_use]
    pub fn updater_settings(&self) -> Option<Arc<UpdaterSettings>> {
        Some(self.simulation.vpa.as_ref()?.settings.clone())
    }

    /// The pods that the updater sees, if it runs at this time. It is called once at each stop,
    /// after the requests of the recommender.
    pub fn due_update(&mut self) -> Option<ManagedPods> {
        self.simulation.due_update()
    }

    /// What the simulated updater does with the pods of [`due_update`](Self::due_update).
    pub fn decide_updates(&mut self, pods: &ManagedPods) -> Vec<UpdatedPod> {
        self.simulation.decide_updates(pods)
    }

    /// Runs the simulated updater, if it is due.
    pub fn run_updater(&mut self) {
        if let Some(pods) = self.due_update() {
            let updates = self.decide_updates(&pods);
            self.update_pods(updates);
        }
    }

    /// Changes pods as the updater does.
    pub fn update_pods(&mut self, updates: Vec<UpdatedPod>) {
        self.simulation.update_pods(updates);
    }

    /// Keeps from now on when pods begin and end to serve the load. Pods that serve now begin now.
    pub fn keep_serving_changes(&mut self) {
        let WorldSimulation { pods, now, serving_changes, .. } = &mut self.simulation;
        let at = (*now).max(Time::ZERO);
        let serving = pods.iter().filter(|(_, pod)| pod.serving());
        let begins =
            serving.map(|(ordinal, _)| ServingChange { at, ordinal: *ordinal, serves: true });
        *serving_changes = Some(begins.collect());
    }

    /// The kept changes of the pods that serve the load, in their order.
    pub fn take_serving_changes(&mut self) -> Vec<ServingChange> {
        self.simulation.serving_changes.take().unwrap_or_default()
    }

    /// Keeps from now on which requests the pods hold. Pods that exist now hold theirs from now on.
    pub fn keep_request_changes(&mut self) {
        let WorldSimulation { pods, now, templates, held_requests, .. } = &mut self.simulation;
        let at = (*now).max(Time::ZERO);
        let mut held = HeldRequests::default();
        pods.iter().for_each(|(ordinal, pod)| held.see(at, *ordinal, pod, templates));
        *held_requests = Some(Box::new(held));
    }

    /// The kept changes of the requests that pods hold, and the times of the OOM kills of the
    /// timeline, each in their order.
    pub fn take_request_changes(&mut self) -> (Vec<RequestChange>, Vec<Time>) {
        let held = self.simulation.held_requests.take();
        held.map(|held| (held.changes, held.oom_kills)).unwrap_or_default()
    }

    /// Keeps the decisions of the admission controller from now on.
    pub fn keep_admissions(&mut self) {
        if let Some(applied) = &mut self.simulation.vpa {
            applied.admissions.get_or_insert_default();
        }
    }

    /// The kept decisions of the admission controller since the last call.
    pub fn take_admissions(&mut self) -> Vec<AdmittedPod> {
        let applied = self.simulation.vpa.as_mut();
        let admissions = applied.and_then(|applied| applied.admissions.as_mut());
        admissions.map(std::mem::take).unwrap_or_default()
    }

    /// Gives a new pod other requests than the simulated admission controller did.
    pub fn admit_with(&mut self, ordinal: u32, spec: PodSpec) {
        self.simulation.set_requests(ordinal, spec, PodChangeKind::Created, None);
    }

    /// The report of the last run of the updater.
    #[must_use]
    pub fn last_updater_report(&self) -> Option<&UpdaterReport> {
        self.simulation.vpa.as_ref()?.last_report.as_ref()
    }

    /// The changes of pods by the VPA so far.
    #[must_use]
    pub fn pod_changes(&self) -> &[PodChange] {
        self.simulation.vpa.as_ref().map_or(&[], |applied| &applied.changes)
    }

    /// The time up to which everything has happened.
    #[must_use]
    pub fn now(&self) -> Time {
        self.simulation.now
    }

    /// The changes to the HPAs and the controller at `at` (or earlier, if not returned yet), in the
    /// scenario's order. They apply after a reconcile that is due at the same time.
    pub fn api_events(&mut self, at: Time) -> Vec<Change> {
        let scenario = &self.simulation.scenario;
        let mut changes = Vec::new();
        while let Some((_, event)) = self.api.get(self.next_api).filter(|(t, _)| *t <= at) {
            changes.extend(match event {
                ApiEvent::First(index) => {
                    let hpa = scenario.hpas.get(*index);
                    hpa.map(|hpa| Change::CreateHpa(hpa.manifest.clone()))
                }
                ApiEvent::Timeline(index) => api_change(scenario, &scenario.timeline[*index]),
            });
            self.next_api += 1;
        }
        let chosen = self.chosen_api.extract_if(.., |(begin, _)| *begin <= at);
        changes.extend(
            chosen.filter_map(|(_, index)| api_change(scenario, &scenario.timeline[index])),
        );
        changes
    }

    /// The changes since the last call when an event of the timeline happens at `at`, in the middle
    /// of a reconcile. The event is given by its index.
    pub fn happens(&mut self, index: usize, at: Time) -> Vec<Change> {
        let scenario = self.simulation.scenario.clone();
        let event = &scenario.timeline[index];
        if !event.action.is_api_event() {
            self.simulation.happens(index, at);
        }
        let mut changes = self.advance(at);
        changes.extend(api_change(&scenario, event));
        changes
    }

    /// Records that the controller successfully wrote `spec.replicas` of a target at `at`. The
    /// target is given by its index: 0 is the workload.
    pub fn scaled(&mut self, at: Time, target: usize, replicas: i32) {
        self.simulation.scaled(at, target, replicas);
    }

    /// The current `spec.replicas` of a target, by its index: 0 is the workload.
    #[must_use]
    pub fn replicas(&self, target: usize) -> i32 {
        self.simulation.replicas.get(target).copied().unwrap_or_default()
    }

    /// Returns true if a pod's share of a load was so far larger than the limit of its usage.
    #[must_use]
    pub fn has_cut_loads(&self) -> bool {
        self.publisher.has_cut_loads()
    }

    /// The timeline events whose actions matched no existing pod.
    pub fn unmatched_actions(&self) -> impl Iterator<Item = &TimelineEvent> {
        let timeline = &self.simulation.scenario.timeline;
        self.simulation.unmatched_actions().iter().map(|index| &timeline[*index])
    }

    /// The events of the VPA whose actions matched no existing pod, by their indices.
    #[must_use]
    pub fn unmatched_vpa_actions(&self) -> &[usize] {
        match &self.view {
            // The simulation applies all events of a VPA whose recommendations are not applied.
            Some(_) if self.simulation.vpa.is_none() => self.simulation.unmatched_actions(),
            Some(view) => view.unmatched_actions(),
            None => &[],
        }
    }
}

fn api_change(scenario: &Scenario, event: &TimelineEvent) -> Option<Change> {
    let name = scenario.hpa_of(event).cloned();
    Some(match &event.action {
        Action::EditHpa(patch) => Change::PatchHpa { name: name?, patch: patch.clone() },
        Action::DeleteHpa(_) => Change::DeleteHpa { name: name? },
        Action::CreateHpa(_) => {
            let hpa = scenario.hpas.iter().find(|hpa| Some(&hpa.name) == name.as_ref())?;
            Change::CreateHpa(hpa.manifest.clone())
        }
        Action::RestartController(_) => Change::RestartController,
        Action::ApplyObject(manifest) => Change::ApplyObject(manifest.clone()),
        Action::EditObject(edit) => Change::PatchObject(edit.clone()),
        Action::DeleteObject(object) => Change::DeleteObject(object.clone()),
        _ => return None,
    })
}
