//! One scenario on one engine, in lockstep with the model.
//!
//! The engine's decisions drive the world, and the model gets the same world as the controller.
//! Since the model predicts every decision, a scenario first runs *ahead*: the engine gets all
//! steps as if the predictions were right, and every answer is checked. If an answer is not as
//! predicted, the world of the steps after it was wrong, and the scenario runs again, step by step.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::Arc;

use super::below_zero;
use super::during::{self, EarlierReconciles, EventsDuring, Happened};
use super::findings::Findings;
use super::predicted::Predicted;
use super::random::{RandomCause, RandomOutcome};
use super::recommender::Keep;
use super::vpa::{RunningVpa, Started, VpaRun};
use super::without_model;
use super::{ControllerRun, HpaRun, Note, Outcome, Verdict};
use crate::compare::{Divergence, KnownDisagreement};
use crate::engine::model::{self, InterruptedReconcile, Simulation};
use crate::engine::sent_events::SentEvents;
use crate::engine::{Engine, EngineError, Session, Step};
use crate::expect::{self, ExternalScale, Moment, Reconciled, ScaleTargets};
use crate::trace::{ApiAnswer, Scope, Stepped, Trace};
use crate::world::{Change, RequestChange, ServingChange, World};
use educe::Educe;
use kube_autoscaler_models::derivation::Derivation;
use kube_autoscaler_models::flags::ClusterGates;
use kube_autoscaler_models::hpa::{ApiServer, Decision, hpas_with_same_pods};
use kube_autoscaler_models::observation::{ApiOutcome, Observation};
use kube_autoscaler_models::rules::{AmbiguousHpas, Release, Rules};
use kube_autoscaler_models::time::{Span, Time};
use kube_lockstep_scenario::Diagnostic;
use kube_lockstep_scenario::Scenario;
use kube_lockstep_scenario::resolved::{Action, TimelineEvent};

/// The number of steps that an engine gets ahead of its answers: enough to keep it busy, few enough
/// to limit the memory of a scenario of many days.
const AHEAD: usize = 512;

/// The note on a load that exceeds the limits of the pods.
const CUT_LOAD: &str = "at times, the load exceeds the cpu limits of the pods: they use their \
                        limits, and the rest is lost (use a backlog to process it later); the \
                        metrics do not include the rest, but the figures of a comparison do";

/// The result of a free run of the model: its own decisions drive the world.
#[derive(Clone, Debug)]
pub struct FreeRun {
    /// The predictions, in the form of an engine's trace.
    pub trace: Trace,
    /// The ticks, with the reasons for each prediction.
    pub ticks: Vec<FreeTick>,
    /// Changes of a target's replicas by a user, not by the controller.
    pub external_scales: Vec<ExternalScale>,
    /// Restarts of the controller, each with the number of ticks before it.
    pub restarts: Vec<(usize, Time)>,
    /// When pods of the workload begin and end to serve the load, in this order.
    pub serving_changes: Vec<ServingChange>,
    /// The changes of the requests that pods hold, in this order. Empty: there is no VPA.
    pub request_changes: Vec<RequestChange>,
    /// The times of the OOM kills of the timeline, with a VPA.
    pub oom_kills: Vec<Time>,
    /// Why the scenario could not run to its end, if it could not.
    pub undetermined: Option<RandomOutcome>,
    /// Parts of the scenario that are probably mistakes.
    pub notes: Vec<Note>,
    /// The actions of the VPA, if the scenario has one.
    pub vpa: Option<Box<VpaRun>>,
}

impl FreeRun {
    /// The first HPA that the API server refused at the start, with its message. Newer releases may
    /// accept it.
    #[must_use]
    pub fn refused(&self) -> Option<String> {
        self.trace.api.iter().find_map(|(_, answer)| match &answer.outcome {
            ApiOutcome::Refused { name, message } if answer.at == Time::ZERO => Some(format!(
                "the API server of {} rejects HPA {name}: {message}",
                self.trace.release
            )),
            _ => None,
        })
    }
}

/// A tick of a free run.
#[derive(Clone, Debug)]
pub struct FreeTick {
    /// The predicted observation. A run without a trace has no actions in it.
    pub observation: Observation,
    /// The reasons for it.
    pub derivation: Derivation,
    /// The index of the target that its HPA scales.
    pub target: usize,
    /// The target's `spec.replicas` before the tick.
    pub replicas_before: i32,
    /// The target's `spec.replicas` after the tick.
    pub replicas_after: i32,
}

/// The world and the model, side by side, with their common clock.
#[derive(Educe)]
#[educe(Clone)]
pub(super) struct HpaLockstep<'a> {
    pub(super) scenario: &'a Scenario,
    pub(super) world: World,
    pub(super) simulation: Simulation,
    pub(super) now: Time,
    /// The objects that the first step creates.
    pub(super) start: Vec<Change>,
    /// Changes of the HPA or the controller at `now` that are not applied yet. Each change takes
    /// full effect, including its reconciles, before the next one.
    pub(super) events: VecDeque<Change>,
    /// The events in the middle of reconciles that have not happened yet, by their index.
    pub(super) pending: Vec<usize>,
    /// The events that happened in the middle of reconciles that have not ended.
    pub(super) happened: Vec<Happened>,
    pub(super) external_scales: Vec<ExternalScale>,
    /// Why the scenario can't run to its end, if it can't.
    pub(super) undetermined: Option<RandomOutcome>,
    /// The scale writes of the first reconciles of the present step: the index of the target and
    /// its new replicas. They are committed, because another reconcile of the same instant read
    /// them.
    early: VecDeque<Option<(usize, i32)>>,
    /// True if the release leaves parts of reconciles to chance that the scenario can reach.
    has_random_parts: bool,
    /// Completed decisions, whose memory is reused.
    pub(super) spare: Spare,
}

/// Completed decisions, whose memory is reused. A copy of a run starts with none, or keeps its own.
#[derive(Default)]
pub(super) struct Spare(pub(super) Vec<Decision>);

impl Clone for Spare {
    fn clone(&self) -> Spare {
        Spare::default()
    }

    fn clone_from(&mut self, _: &Spare) {}
}

/// An event in the course of a reconcile.
struct Overlap {
    at: Time,
    /// The kind of the event.
    cause: RandomCause,
}

impl<'a> HpaLockstep<'a> {
    pub(super) fn new(scenario: &'a Arc<Scenario>, rules: Rules) -> HpaLockstep<'a> {
        let simulation = Simulation::new(scenario, rules);
        HpaLockstep::in_world(World::new(scenario), scenario, rules, simulation)
    }

    fn in_world(
        mut world: World,
        scenario: &'a Arc<Scenario>,
        rules: Rules,
        simulation: Simulation,
    ) -> HpaLockstep<'a> {
        if !rules.pods.can_be_resized {
            world = world.without_resizes();
        }
        // The objects of the start are created before the actions at t=0.
        let start = world.advance(Time::ZERO);
        let events = world.api_events(Time::ZERO).into();
        let now = Time::ZERO;
        let mut lockstep = HpaLockstep {
            scenario,
            world,
            simulation,
            now,
            start: Vec::new(),
            events,
            pending: during::pending(scenario),
            happened: Vec::new(),
            external_scales: Vec::new(),
            undetermined: None,
            early: VecDeque::new(),
            has_random_parts: scenario.has_several_hpas()
                && rules.pods.ambiguous_selector_is_checked
                && rules.texts.ambiguous_hpas == AmbiguousHpas::All,
            spare: Spare::default(),
        };
        // The initial replicas of a target are no change, unless an action at t=0 sets them.
        lockstep.note_external_scales(&start, Time::ZERO, None);
        lockstep.start = start;
        lockstep
    }

    /// The next step and the model's prediction of it; `None` at the end of the scenario.
    ///
    /// Changes of the HPA or the controller are applied at their exact time, after a reconcile that
    /// is due at the same instant. Only reconciles read pods and metrics, so their changes are
    /// applied before the clock reaches the instant.
    pub(super) fn predict(&mut self) -> Option<Predicted> {
        let mut step = self.next_step()?;
        let mut api = Vec::new();
        for change in &step.apply {
            api.extend(self.simulation.apply(change, self.now));
        }
        let decisions = self.reconciles(&mut step, &mut api)?;
        self.now = step.until;
        Some(Predicted { step, api, decisions })
    }

    fn next_step(&mut self) -> Option<Step> {
        let mut step = Step { until: self.now, ..Step::default() };
        if let Some(event) = self.events.pop_front() {
            if let Some(why) = self.collision(&event) {
                self.undetermined = Some(why);
                return None;
            }
            step.apply = std::mem::take(&mut self.start);
            step.apply.extend(self.changes(self.now));
            step.apply.push(event);
            return Some(step);
        }
        step.until = self.next_stop()?;
        step.apply = self.changes(step.until);
        if self.world.next_api_event(self.now) == Some(step.until) {
            self.events = self.world.api_events(step.until).into();
        }
        Some(step)
    }

    /// The end of the next step, before its reconciles; `None` at the end of the scenario.
    pub(super) fn next_stop(&self) -> Option<Time> {
        if !self.events.is_empty() {
            return Some(self.now);
        }
        let end = self.scenario.until;
        let next_event = self.world.next_api_event(self.now);
        let next = next_event.into_iter().chain(self.simulation.next_sync());
        let next = next.chain(self.next_change_for_caches()).min();
        next.filter(|at| *at <= end).or((self.now < end).then_some(end))
    }

    /// The next stop for a change of the world, if caches receive it later. It is applied a
    /// nanosecond before its time, so that a reconcile at that time already sees its effects.
    fn next_change_for_caches(&self) -> Option<Time> {
        let at = self.world.next_change().filter(|_| self.scenario.has_cache_lag())?;
        let before = at - Span(1);
        Some(if before > self.now { before } else { at.max(self.now) })
    }

    /// The reconciles up to the end of a step, which is moved to the end of the last of them.
    /// Returns `None` if the scenario can't continue.
    fn reconciles(&mut self, step: &mut Step, api: &mut Vec<ApiAnswer>) -> Option<Vec<Decision>> {
        let mut decisions: Vec<Decision> = Vec::with_capacity(1);
        let begun = match self.pending.is_empty() {
            true => Vec::new(),
            false => self.simulation.unfinished_observations(),
        };
        self.early.clear();
        while let Some(due) = self.simulation.next_sync().filter(|due| *due <= step.until) {
            // Each of several reconciles at one instant reads the writes of the previous one.
            if let Some(Decision { observation, end, committed, .. }) = decisions.last()
                && self.early.len() < decisions.len()
            {
                self.early.push_back(self.simulation.commit(observation, *end, *committed));
            }
            let is_random = self.simulation.receives_when_due(due);
            let earlier = EarlierReconciles { begun: &begun, ended: &decisions };
            let decision = match self.pending.iter().any(|it| self.event(*it).at <= due) {
                true => self.interrupted(due, earlier, step, api),
                false => {
                    let mut decision = self.spare.0.pop().unwrap_or_default();
                    self.simulation.sync_into(due, &mut decision).then_some(decision)
                }
            };
            if is_random {
                self.undetermined = Some(RandomOutcome::new(
                    RandomCause::CacheUpdate,
                    format!(
                        "the controller's caches receive a change at {due}, exactly when a \
                         reconcile is due: their order is random; choose another lag"
                    ),
                ));
            }
            if self.undetermined.is_none() {
                self.undetermined = self.why_undetermined(due, decision.as_ref());
            }
            if self.undetermined.is_some() {
                return None;
            }
            if let Some(mut decision) = decision {
                during::attach(&mut self.happened, &mut decision);
                step.until = step.until.max(decision.end);
                decisions.push(decision);
            }
        }
        Some(decisions)
    }

    fn event(&self, index: usize) -> &TimelineEvent {
        &self.scenario.timeline[index]
    }

    /// Runs a reconcile in the middle of which events of the timeline can happen.
    fn interrupted(
        &mut self,
        due: Time,
        earlier: EarlierReconciles<'_>,
        step: &mut Step,
        api: &mut Vec<ApiAnswer>,
    ) -> Option<Decision> {
        let mut events = EventsDuring {
            scenario: self.scenario,
            earlier,
            world: &mut self.world,
            pending: &mut self.pending,
            external_scales: &mut self.external_scales,
            step,
            happened: &mut self.happened,
            overlap: None,
        };
        let next = &mut |reconcile: &InterruptedReconcile<'_>| events.next(reconcile);
        let model::Reconciled { decision, answers } = self.simulation.sync_while(due, next);
        api.extend(answers);
        if let Some(index) = events.overlap {
            let event = self.event(index);
            let why = format!(
                "the action on the HPA {} (line {}) happens while its own reconcile waits, so the \
                 outcome is random; choose another moment for the action",
                self.scenario.hpa_of(event).map_or("", |name| name),
                event.line
            );
            let cause = RandomCause::ActionDuringReconcile;
            self.undetermined = Some(RandomOutcome::new(cause, why));
        }
        decision
    }

    /// Why the scenario can't continue after the reconcile that was due at `due`, if it can't.
    fn why_undetermined(
        &mut self,
        due: Time,
        decision: Option<&Decision>,
    ) -> Option<RandomOutcome> {
        let resyncs = due > self.now && self.simulation.resyncs_at(due);
        if resyncs && self.simulation.is_blocked(None) {
            let why = format!(
                "the controller's informer resyncs at {due}, exactly when one reconcile waits and \
                 another one is due: their order is random; choose other times for the \
                 actions"
            );
            return Some(RandomOutcome::new(RandomCause::Resync, why));
        }
        let decision = decision?;
        let end = decision.end;
        // A reconcile that waits between attempts runs to its end without interruption.
        if decision.committed == 0
            && let Some(Overlap { at, cause }) = self.overlap(due, end)
        {
            let what = match cause {
                RandomCause::ReconcileDuringReconcile => format!("the reconcile due at {at}"),
                RandomCause::CacheUpdate => format!("the update of the caches at {at}"),
                _ => format!("the action at {at}{}", self.line_of(at)),
            };
            let why = format!(
                "{what} overlaps the reconcile that began at {due} and waits until {end} before \
                 it retries its write of the scale, so the outcome is random; choose other times \
                 for the actions"
            );
            return Some(RandomOutcome::new(cause, why));
        }
        (resyncs && end > due).then(|| {
            let why = format!(
                "the reconcile that began at {due} waits before it retries its write of the \
                 scale, and the controller's informer resyncs exactly at {due}, so the time of \
                 the next reconcile is random; choose other times for the actions"
            );
            RandomOutcome::new(RandomCause::Resync, why)
        })
    }

    /// Why an HPA can't be edited, or the controller restarted, at this time, if it can't.
    fn collision(&self, event: &Change) -> Option<RandomOutcome> {
        let hpa = event.hpa_name();
        let restart = matches!(event, Change::RestartController);
        let collides = (restart || hpa.is_some()) && self.simulation.is_blocked(hpa);
        collides.then(|| {
            let what = hpa.map_or("the controller".to_owned(), |name| format!("the HPA {name}"));
            let why = format!(
                "the action on {what} at {}{} overlaps a waiting reconcile, so the outcome is \
                 random; choose another time for the action, or replace `metricsSlow` with \
                 `during`, which executes the action during a reconcile",
                self.now,
                self.line_of(self.now)
            );
            RandomOutcome::new(RandomCause::ActionDuringReconcile, why)
        })
    }

    /// The line of the first timeline event at that time: ` (line 7)`, or empty without one.
    fn line_of(&self, at: Time) -> String {
        let event = self.scenario.timeline.iter().find(|event| event.at == at);
        event.map(|event| format!(" (line {})", event.line)).unwrap_or_default()
    }

    /// The first event between the beginning and the end of a reconcile. Upstream would then do two
    /// things at the same time.
    fn overlap(&self, begin: Time, end: Time) -> Option<Overlap> {
        if end == begin {
            return None;
        }
        let of = |cause| move |at| Overlap { at, cause };
        let action = self.world.next_api_event(begin).map(of(RandomCause::ActionDuringReconcile));
        let sync = self.simulation.next_sync().map(of(RandomCause::ReconcileDuringReconcile));
        let update = self.simulation.next_late_change().map(of(RandomCause::CacheUpdate));
        let next = action.into_iter().chain(sync).chain(update);
        next.filter(|overlap| overlap.at <= end).min_by_key(|overlap| overlap.at)
    }

    pub(super) fn changes(&mut self, at: Time) -> Vec<Change> {
        let changes = self.world.advance(at);
        self.note_external_scales(&changes, at, Some(at));
        changes
    }

    /// Notes the replicas that the scenario sets on targets, each with the time of its `scale`
    /// action. Replicas without such an action get the time `default`, or are ignored without one.
    fn note_external_scales(&mut self, changes: &[Change], at: Time, default: Option<Time>) {
        for change in changes {
            if let Change::SetScale(scale) = change
                && let Some(replicas) = scale.replicas
                && let Some(target) = self.scenario.targets().position(|target| {
                    *target.name == scale.name && target.group_resource() == *scale.resource
                })
            {
                // The action may be earlier than the step in which its change is published.
                let past = self.scenario.timeline.iter().filter(|event| event.at <= at);
                let actions = past
                    .filter(|it| matches!(it.action, Action::Scale(to) if to == replicas))
                    .filter(|it| self.scenario.target_of(it) == target)
                    .map(|event| event.at);
                let at = actions.max().or(default);
                let moment = Moment::Before;
                let scale = at.map(|at| ExternalScale { at, target, replicas, moment });
                self.external_scales.extend(scale);
            }
        }
    }

    /// Compares the reconciles that have not ended with the model's.
    fn compare_unfinished(
        &self,
        seen: Vec<Observation>,
        scope: Scope,
        findings: &mut Findings<'_>,
    ) {
        if self.undetermined.is_none() {
            findings.compare_unfinished(&self.simulation.unfinished(), seen, scope);
        }
    }

    /// Ends the run and adds its notes, external scales and limits to the findings.
    pub(super) fn close(self, findings: &mut Findings<'_>) {
        findings.notes = self.notes(&findings.trace.release);
        if findings.trace.engine == model::NAME && !self.scenario.has_expectations() {
            findings.notes.push(Note::nothing_is_checked(self.scenario.line));
        }
        findings.external_scales = self.external_scales;
        findings.comparison.undetermined = self.undetermined;
    }

    /// Notes for the author of the scenario, which ran on `release`.
    fn notes(&self, release: &str) -> Vec<Note> {
        let mut without_effect: Vec<Note> = self
            .world
            .unmatched_actions()
            .map(|event| Note::without_effect(event.at, event.line))
            .collect();
        if let Some(vpa) = &self.scenario.vpa {
            let unmatched = self.world.unmatched_vpa_actions();
            without_effect.extend(super::recommender::without_effect(&vpa.recommender, unmatched));
        }
        let manifest_notes = Note::on_reading(&self.scenario.manifest_notes, self.scenario.line);
        // In a scenario file, the author sets the limit.
        let is_cut = self.scenario.is_of_manifests && self.world.has_cut_loads();
        let mut notes = self.scenario.notes.clone();
        notes.extend(is_cut.then(|| CUT_LOAD.into()));
        notes.extend(below_zero::notes(&self.scenario.metrics, self.scenario.until));
        let notes = manifest_notes.into_iter().chain(Note::on_reading(&notes, self.scenario.line));
        let never = self.pending.iter().map(|index| during::never(self.event(*index)));
        let unchecked = self.unchecked(release);
        let ignored = Note::search_is_ignored(self.scenario);
        notes.chain(ignored).chain(without_effect).chain(never).chain(unchecked).collect()
    }

    /// The note for a scenario whose expectations are all for other releases.
    fn unchecked(&self, release: &str) -> Option<Note> {
        let is_unchecked = self.scenario.all_expectations_are_for_others(release.parse().ok()?);
        is_unchecked.then(|| {
            Note::no_expectation_applies(self.scenario.line, &self.scenario.checked().to_string())
        })
    }

    /// Applies the writes of an observed tick to the world, unless they were committed when the
    /// next reconcile of the same instant was predicted, and apart from its first requests, which
    /// were applied when something happened in the middle of it.
    pub(super) fn apply_observed(&mut self, tick: &Observation, predicted: Option<&Decision>) {
        let is_as_predicted =
            || predicted.is_some_and(|it| it.observation.requests().eq(tick.requests()));
        let scaled = match self.early.pop_front() {
            Some(scaled) if is_as_predicted() => scaled,
            _ => {
                let end = predicted.map_or(tick.at, |predicted| predicted.end);
                let committed = predicted.map_or(0, |predicted| predicted.committed);
                self.simulation.commit(tick, end, committed)
            }
        };
        if let Some((target, replicas)) = scaled {
            self.world.scaled(tick.end(), target, replicas);
        }
    }

    /// A reconcile that has been applied to the world, for its expectations. `before`: the replicas
    /// of its target before it.
    pub(super) fn reconciled<'t>(&'t self, tick: &'t Observation, before: i32) -> Reconciled<'t> {
        let status = self.simulation.cluster().hpa(&tick.hpa).map(|hpa| &hpa.status);
        Reconciled::new(tick, before, status)
    }

    /// The target of a tick's HPA.
    pub(super) fn target_of(&self, tick: &Observation) -> usize {
        let hpas = &self.scenario.hpas;
        self.simulation.target_of(&tick.hpa).unwrap_or_else(|| {
            let first = hpas.iter().find(|hpa| hpa.name == tick.hpa);
            first.map_or(0, |hpa| hpa.target)
        })
    }
}

impl FreeTick {
    /// A tick of a target, which has `simulated_replicas` replicas before the tick is applied to
    /// the world.
    fn new(
        observation: Observation,
        derivation: Derivation,
        target: usize,
        simulated_replicas: i32,
    ) -> FreeTick {
        // The world may already contain a write of this reconcile, and a later action.
        let replicas_before = derivation.current_replicas.unwrap_or(simulated_replicas);
        let replicas_after = match derivation.rescaled {
            true => derivation.desired_replicas,
            false => replicas_before,
        };
        FreeTick { observation, derivation, target, replicas_before, replicas_after }
    }
}

/// Runs the model alone: its own decisions drive the world.
#[must_use]
pub fn free_run(scenario: &Arc<Scenario>, release: Release) -> FreeRun {
    free_run_by(scenario, Rules::of(release), &release.to_string())
}

/// Runs the model alone, by any set of rules. `release` is the name in the trace.
#[must_use]
pub fn free_run_by(scenario: &Arc<Scenario>, rules: Rules, release: &str) -> FreeRun {
    free_run_with(scenario, rules, release, FreeRunOptions::default())
}

/// Runs the model alone, by any set of rules and with any feature gates. `stored_by` is the API
/// server that stored the HPAs before the run, if another one did.
#[must_use]
pub fn free_run_with_gates(
    scenario: &Arc<Scenario>,
    rules: Rules,
    gates: ClusterGates,
    stored_by: Option<ApiServer<'_>>,
    release: &str,
) -> FreeRun {
    let options = FreeRunOptions { gates: Some(gates), stored_by, ..FreeRunOptions::default() };
    free_run_with(scenario, rules, release, options)
}

/// Runs the model alone, without the trace and the actions of the ticks: for the figures of many
/// runs, which take less time without them.
#[must_use]
pub fn free_run_without_trace(scenario: &Arc<Scenario>, release: Release) -> FreeRun {
    let options = FreeRunOptions { has_trace: false, ..FreeRunOptions::default() };
    free_run_with(scenario, Rules::of(release), &release.to_string(), options)
}

/// Runs the model alone, and derives the amounts of those runs of the VPA's recommender, by index,
/// that `is_explained` selects.
#[must_use]
pub fn explained_free_run(
    scenario: &Arc<Scenario>,
    release: Release,
    is_explained: &dyn Fn(usize) -> bool,
) -> FreeRun {
    let options = FreeRunOptions { explains: is_explained, ..FreeRunOptions::default() };
    free_run_with(scenario, Rules::of(release), &release.to_string(), options)
}

/// The settings of a free run.
#[derive(Clone, Copy)]
struct FreeRunOptions<'a> {
    /// The trace has the ticks, and the ticks have their actions.
    has_trace: bool,
    /// Selects the runs of the VPA's recommender, by index, whose amounts are derived.
    explains: &'a dyn Fn(usize) -> bool,
    /// The feature gates. None: those of the scenario.
    gates: Option<ClusterGates>,
    /// The API server that stored the HPAs before the run. None: they are new.
    stored_by: Option<ApiServer<'a>>,
}

impl Default for FreeRunOptions<'_> {
    fn default() -> Self {
        FreeRunOptions { has_trace: true, explains: &|_| false, gates: None, stored_by: None }
    }
}

impl FreeRunOptions<'_> {
    fn simulation(&self, scenario: &Scenario, rules: Rules) -> Simulation {
        let simulation = match self.gates {
            Some(gates) => Simulation::with_gates(scenario, rules, gates),
            None => Simulation::new(scenario, rules),
        };
        match &self.stored_by {
            Some(server) => simulation.with_stored_hpas(scenario, server),
            None => simulation,
        }
    }
}

fn free_run_with(
    scenario: &Arc<Scenario>,
    rules: Rules,
    release: &str,
    options: FreeRunOptions<'_>,
) -> FreeRun {
    let mut world = World::new(scenario);
    world.keep_serving_changes();
    if scenario.vpa.is_some() {
        world.keep_request_changes();
    }
    let simulation = options.simulation(scenario, rules);
    let mut run = HpaLockstep::in_world(world, scenario, rules, simulation);
    let mut sent_events = SentEvents::new(rules);
    let mut trace = trace_of(scenario, model::NAME, release);
    let mut ticks = Vec::with_capacity(expected_ticks(scenario, &rules));
    let mut restarts = Vec::new();
    let mut now = run.now;
    let keep = Keep { is_explained: options.explains, usage: true };
    let started = Started::with_hpa(scenario, &mut run.world);
    let mut vpa = started.map(|started| RunningVpa::predicting(started, keep));
    while let Some(predicted) = {
        let until = run.next_stop();
        run.undetermined = vpa.as_mut().and_then(|vpa| vpa.predict(&mut run.world, until));
        if run.undetermined.is_none() { run.predict() } else { None }
    } {
        // The changes of a step are applied at the end of the previous step.
        if predicted.step.apply.contains(&Change::RestartController) {
            restarts.push((ticks.len(), now));
        }
        now = run.now;
        if options.has_trace {
            predicted.step.apply.iter().for_each(|change| sent_events.apply(change));
        }
        let mut traced = Vec::new();
        for mut decision in predicted.decisions {
            if options.has_trace {
                replace_by_sent(&mut sent_events, &mut decision);
                traced.push(decision.observation.clone());
            }
            let target = run.target_of(&decision.observation);
            let simulated_replicas = run.world.replicas(target);
            run.apply_observed(&decision.observation, Some(&decision));
            let observation = match options.has_trace {
                true => std::mem::take(&mut decision.observation),
                false => decision.observation.without_actions(),
            };
            let derivation = std::mem::take(&mut decision.derivation);
            ticks.push(FreeTick::new(observation, derivation, target, simulated_replicas));
            run.spare.0.push(decision);
        }
        trace.extend(Stepped { now: predicted.step.until, api: predicted.api, ticks: traced });
    }
    let notes = [run.notes(release), assumptions(scenario, release, &ticks)].concat();
    let vpa = vpa.map(|vpa| Box::new(vpa.into_run(&run.world)));
    let (request_changes, oom_kills) = run.world.take_request_changes();
    FreeRun {
        trace,
        ticks,
        external_scales: run.external_scales,
        restarts,
        serving_changes: run.world.take_serving_changes(),
        request_changes,
        oom_kills,
        undetermined: run.undetermined,
        notes,
        vpa,
    }
}

/// Gives a decision the events that are sent.
fn replace_by_sent(sent_events: &mut SentEvents, decision: &mut Decision) {
    let sent = match sent_events.predict(decision, None) {
        Cow::Owned(sent) => Some(sent),
        Cow::Borrowed(_) => None,
    };
    if let Some(sent) = sent {
        decision.observation = sent;
    }
}

/// Notes on what a free run assumes.
fn assumptions(scenario: &Scenario, release: &str, ticks: &[FreeTick]) -> Vec<Note> {
    let note = |what| Note { file: None, line: scenario.line, what, is_about_reading: true };
    let assumptions = release.parse().map(|release| scenario.assumptions_on(release));
    let mut notes: Vec<Note> = assumptions.unwrap_or_default().into_iter().map(note).collect();
    let random_part = ticks.iter().find_map(|tick| tick.derivation.random_part);
    notes.extend(random_part.map(|random_part| {
        note(format!("{random_part}; the prediction has them in alphabetical order"))
    }));
    notes
}

/// About how many ticks a run has: without the memory for them, their list is copied as it grows.
fn expected_ticks(scenario: &Scenario, rules: &Rules) -> usize {
    let period = scenario.flags_by(rules).sync_period.0.max(1);
    let periods = usize::try_from(scenario.until.since_start().0 / period).unwrap_or(0);
    (periods * scenario.hpas.len()).min(1 << 16) + 1
}

/// The trace of a run that has not started.
pub fn trace_of(scenario: &Scenario, engine: &str, release: &str) -> Trace {
    Trace {
        release: release.to_owned(),
        engine: engine.to_owned(),
        scenario: scenario.id.clone(),
        hash: scenario.hash.clone(),
        ..Trace::default()
    }
}

/// Runs one scenario on one engine and gives the verdict.
pub fn run_one(
    scenario: &Arc<Scenario>,
    engine: &mut dyn Engine,
    known: &[KnownDisagreement],
) -> Outcome {
    run_watched(scenario, engine, known, &mut |_| {})
}

/// Like [`run_one`], and passes every compared decision of the model to `watch`. If the scenario
/// has to run twice, the decisions of its first ticks are passed twice.
pub fn run_watched(
    scenario: &Arc<Scenario>,
    engine: &mut dyn Engine,
    known: &[KnownDisagreement],
    watch: &mut dyn FnMut(&Decision),
) -> Outcome {
    if !engine.has_model() {
        return without_model::run(scenario, engine);
    }
    let (name, release) = (Arc::<str>::from(engine.name()), engine.release());
    let mut outcome = unfinished(scenario, &name, release);
    let unsupported =
        scenario.unsupported_on(release).or_else(|| engine.unsupported_reason(scenario));
    if let Some(why) = unsupported {
        outcome.verdict = Verdict::Skipped { why };
        return outcome;
    }
    let scope = scope(engine, scenario);
    let rules = Rules::of(release);
    let findings = || {
        let trace = trace_of(scenario, &name, &release.to_string());
        match Findings::new(trace, known).by_rules(rules) {
            findings if scope.sent_events => findings.with_sent_events(),
            findings => findings,
        }
    };
    // With a VPA, the recommender's answers are needed before the next step.
    let ahead = match &scenario.vpa {
        None => ahead(scenario, engine, findings(), watch),
        Some(_) => Ok(Ahead::Again(None)),
    };
    let findings = match ahead {
        Ok(Ahead::AsPredicted(findings)) => Ok(*findings),
        Ok(Ahead::Again(not_repeated)) => {
            let mut findings = findings();
            findings.comparison.not_repeated = not_repeated;
            step_by_step(scenario, engine, findings, watch)
        }
        Err(error) => Err(error),
    };
    match findings {
        Ok(findings) => conclude(&mut outcome, scenario, release, findings),
        Err(error) => outcome.verdict = inconclusive(error),
    }
    outcome
}

/// The fields of a scenario that an engine observes.
fn scope(engine: &dyn Engine, scenario: &Scenario) -> Scope {
    let scope = engine.scope();
    Scope {
        sent_events: scope.sent_events && scenario.observed.sent_events,
        all_metrics: scope.all_metrics && scenario.observed.all_metrics,
        ..scope
    }
}

/// The outcome of a scenario before it is run.
pub fn unfinished(scenario: &Arc<Scenario>, name: &Arc<str>, release: Release) -> Outcome {
    Outcome {
        path: scenario.path.clone(),
        line: scenario.line,
        requirement: scenario.requirement.clone(),
        engine: name.clone(),
        release: release.to_string(),
        vpa_release: scenario.vpa.as_ref().map(|vpa| vpa.release),
        ..Outcome::new(&*scenario.id, Verdict::Conforms)
    }
}

/// The verdict of a run that the engine could not complete: there is none, or the scenario is
/// skipped.
pub fn inconclusive(error: EngineError) -> Verdict {
    let why = error.to_string();
    match error {
        EngineError::Broken { output, .. } => Verdict::Inconclusive { why, output },
        EngineError::Unsupported { why, .. } => Verdict::Skipped { why: why.into() },
        EngineError::Unavailable { problem, .. } => {
            let why = Diagnostic { what: why, ..problem }.in_one_line("; ");
            Verdict::Inconclusive { why, output: String::new() }
        }
    }
}

/// Evaluates the expectations, and gives the verdict.
pub fn conclude(
    outcome: &mut Outcome,
    scenario: &Arc<Scenario>,
    release: Release,
    findings: Findings<'_>,
) {
    // On releases that the scenario does not name, its expectations do not apply.
    let expected = match scenario.releases.contains(release) {
        true => scenario.expect.as_slice(),
        false => &[],
    };
    outcome.unmet = expect::evaluate(
        expected,
        release,
        &findings.trace.ticks,
        &ScaleTargets::new(scenario),
        &findings.external_scales,
    );
    outcome.unmet.extend(expect::of_objects(expected, release, &findings.trace, scenario));
    outcome.unmet.sort_by_key(|unmet| unmet.number);
    let why = |index: usize| findings.why(index);
    outcome.unmet = outcome.unmet.drain(..).map(|unmet| unmet.with_reason(why)).collect();
    outcome.not_compared = match &findings.comparison.divergence {
        Some(divergence) => findings.trace.ticks.len().saturating_sub(divergence.scenario_tick()),
        None => 0,
    };
    let Findings { comparison, trace, derivations, notes, vpa, .. } = findings;
    // On a cluster, the scenario is faster than written.
    let run = HpaRun { scenario: scenario.clone(), trace, derivations };
    outcome.controllers = vec![ControllerRun::Hpa(run)];
    if let Some(vpa) = vpa {
        (*vpa).conclude(outcome, scenario, release);
    }
    outcome.notes = notes;
    comparison.conclude(outcome);
}

/// The result of [`ahead`].
enum Ahead<'k> {
    /// Every answer was as predicted.
    AsPredicted(Box<Findings<'k>>),
    /// The scenario has to run step by step: the engine does not take steps ahead, an outcome is
    /// left to chance, or an answer was not as predicted, so that the following steps ran in a
    /// world that does not follow from the engine's decisions. Contains the difference, if any.
    Again(Option<Divergence>),
}

/// Runs a scenario as the model predicts it, and checks every answer.
fn ahead<'k>(
    scenario: &Arc<Scenario>,
    engine: &mut dyn Engine,
    mut findings: Findings<'k>,
    watch: &mut dyn FnMut(&Decision),
) -> Result<Ahead<'k>, EngineError> {
    let (release, scope) = (engine.release(), scope(engine, scenario));
    let mut session = engine.open(scenario)?;
    if !session.takes_steps_ahead() {
        session.close()?;
        return Ok(Ahead::Again(None));
    }
    let mut run = HpaLockstep::new(scenario, Rules::of(release));
    let mut under_way = VecDeque::new();
    let mut as_predicted = true;
    loop {
        let predicted = if as_predicted { run.predict() } else { None };
        // What is left to chance follows the observation.
        let predicted = predicted.filter(|predicted| {
            as_predicted = !predicted.has_random_part();
            as_predicted
        });
        let done = predicted.is_none();
        if let Some(predicted) = predicted {
            for decision in &predicted.decisions {
                run.apply_observed(&decision.observation, Some(decision));
            }
            session.send(&predicted.step)?;
            under_way.push_back(predicted);
        }
        while under_way.len() > if done { 0 } else { AHEAD } {
            let stepped = session.receive()?;
            if let Some(predicted) = under_way.pop_front()
                && as_predicted
            {
                predicted.decisions.iter().for_each(&mut *watch);
                findings.compare(&predicted, stepped, scope);
                as_predicted = findings.comparison.is_as_predicted();
            }
        }
        if done {
            break;
        }
    }
    let unfinished = session.close()?;
    if !as_predicted {
        return Ok(Ahead::Again(findings.comparison.divergence));
    }
    run.compare_unfinished(unfinished, scope, &mut findings);
    run.close(&mut findings);
    Ok(match findings.comparison.divergence {
        None => Ahead::AsPredicted(Box::new(findings)),
        differed => Ahead::Again(differed),
    })
}

/// Runs a scenario step by step: the engine's decisions drive the world.
fn step_by_step<'k>(
    scenario: &Arc<Scenario>,
    engine: &mut dyn Engine,
    mut findings: Findings<'k>,
    watch: &mut dyn FnMut(&Decision),
) -> Result<Findings<'k>, EngineError> {
    let (release, scope) = (engine.release(), scope(engine, scenario));
    let mut run = HpaLockstep::new(scenario, Rules::of(release));
    let engines = scenario.vpa.as_ref().map(|vpa| engine.vpa(vpa.release));
    let mut engines = engines.transpose()?;
    let mut vpa = match (&mut engines, Started::with_hpa(scenario, &mut run.world)) {
        (Some(engines), Some(started)) => {
            let (world, comparison) = (&mut run.world, &mut findings.comparison);
            Some(RunningVpa::comparing_with_hpa(started, engines, world, comparison)?)
        }
        _ => None,
    };
    let mut session: Box<dyn Session + '_> = engine.open(scenario)?;
    loop {
        if let Some(vpa) = &mut vpa {
            let until = run.next_stop();
            vpa.after_ticks_of_hpa(findings.trace.ticks.len());
            let comparison = &mut findings.comparison;
            let random = vpa.compare(&mut run.world, until, comparison, &mut |_, _, _| {})?;
            run.undetermined = random;
            if run.undetermined.is_some() {
                break;
            }
        }
        let before = run.has_random_parts.then(|| run.clone());
        let Some(mut predicted) = run.predict() else { break };
        if let Some(vpa) = &mut vpa {
            vpa.admit(&mut run.world, &mut findings.comparison)?;
        }
        let stepped = session.step(&predicted.step)?;
        if predicted.has_random_part()
            && let Some(mut before) = before
        {
            let events = stepped.ticks.iter().flat_map(Observation::events);
            before.simulation.follow_orders(events.filter_map(hpas_with_same_pods));
            match before.predict() {
                Some(following) if following.step == predicted.step => {
                    (run, predicted) = (before, following);
                }
                Some(_) => {
                    run.undetermined = Some(RandomOutcome::selector_order(run.now));
                    break;
                }
                None => {}
            }
        }
        for (index, tick) in stepped.ticks.iter().enumerate() {
            run.apply_observed(tick, predicted.decisions.get(index));
        }
        predicted.decisions.iter().for_each(&mut *watch);
        findings.compare(&predicted, stepped, scope);
    }
    if let Some(vpa) = vpa {
        findings.vpa = Some(vpa.close_with_hpa(&run.world)?);
    }
    let unfinished = session.close()?;
    run.compare_unfinished(unfinished, scope, &mut findings);
    run.close(&mut findings);
    Ok(findings)
}
