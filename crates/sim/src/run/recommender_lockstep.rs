//! One scenario of the VPA's recommender on one engine, in lockstep with the model.
//!
//! What the engine writes is the input of the model's next run.

use std::sync::Arc;

use super::comparison::Comparison;
use super::lockstep::inconclusive;
use super::recommendation::{value_of, with_reasons};
use super::recommender::{RecommenderRun, free_recommender_run, names, notes, undetermined};
use super::vpa::{RunningVpa, Started};
use super::{ControllerRun, Note, Outcome, Verdict};
use crate::compare::recommender::{logs, runs};
use crate::compare::{
    AmountField, Controller, Divergence, FieldDifference, FieldPath, KnownDisagreement,
};
use crate::engine::{Engine, EngineError, Vpa, model};
use crate::expect::recommender::evaluate;
use crate::trace::recommender::{Entry, RecommenderTrace};
use crate::world::World;
use kube_autoscaler_models::rules::VpaRelease;
use kube_autoscaler_models::time::Time;
use kube_autoscaler_models::vpa::{
    ClusterChange, LogLine, RunAt, ScriptStep, Session, Snapshot, Stepped,
};
use kube_lockstep_scenario::vpa::VpaScenario;

/// The outcome of a scenario before it is run.
pub fn unfinished(scenario: &Arc<VpaScenario>, engine: &Arc<str>, release: VpaRelease) -> Outcome {
    Outcome {
        path: scenario.path.clone(),
        line: scenario.line,
        requirement: scenario.requirement.clone(),
        engine: engine.clone(),
        release: release.to_string(),
        ..Outcome::new(&*scenario.id, Verdict::Conforms)
    }
}

/// Runs a scenario on an engine, and compares each run with the model.
pub fn run_recommender(
    scenario: &Arc<VpaScenario>,
    engine: &mut dyn Engine<Vpa>,
    known: &[KnownDisagreement],
) -> Outcome {
    run_recommender_watched(scenario, engine, known, &mut |_, _, _| {})
}

/// Like [`run_recommender`], and calls `watch` after each step.
pub fn run_recommender_watched(
    scenario: &Arc<VpaScenario>,
    engine: &mut dyn Engine<Vpa>,
    known: &[KnownDisagreement],
    watch: &mut Watch<'_>,
) -> Outcome {
    let (name, release) = (Arc::<str>::from(engine.name()), engine.release());
    let mut outcome = unfinished(scenario, &name, release);
    let unsupported = scenario.unsupported_on(release);
    if let Some(why) = unsupported.or_else(|| engine.unsupported_reason(scenario)) {
        outcome.verdict = Verdict::Skipped { why };
        return outcome;
    }
    let mut comparison = Comparison::new(&scenario.id, &outcome.release, known);
    let mut world = World::of_vpa(scenario);
    match run_alone(scenario, engine, &mut world, &mut comparison, watch) {
        Ok(lockstep) => {
            outcome.notes = notes(scenario, release, world.unmatched_vpa_actions());
            lockstep.conclude(&mut outcome, scenario, release, comparison, true);
        }
        Err(error) => outcome.verdict = inconclusive(error),
    }
    outcome
}

/// Runs the VPA of a scenario to the end, or to a run whose result is random.
fn run_alone(
    scenario: &Arc<VpaScenario>,
    engine: &mut dyn Engine<Vpa>,
    world: &mut World,
    comparison: &mut Comparison<'_>,
    watch: &mut Watch<'_>,
) -> Result<Lockstep, EngineError> {
    let started = Started::alone(scenario, engine.release(), world);
    let mut vpa = RunningVpa::comparing(started, engine, comparison)?;
    comparison.undetermined = vpa.compare(world, None, comparison, watch)?;
    vpa.close()
}

/// Called after each step, with the model's session, the step and the model's prediction.
pub type Watch<'w> = dyn FnMut(&mut Session, &ScriptStep, &Stepped) + 'w;

/// The recommender and the model, side by side.
pub struct Lockstep {
    /// True if snapshots contain the contents of checkpoints.
    with_contents: bool,
    /// The number of ticks of the HPA controller so far, if the scenario has an HPA.
    pub(super) ticks_of_hpa: Option<usize>,
    pub(crate) snapshots: Vec<Snapshot>,
    pub(crate) entries: Vec<Entry>,
}

impl Lockstep {
    /// `with_contents`: snapshots contain the contents of checkpoints.
    #[must_use]
    pub fn new(with_contents: bool) -> Lockstep {
        let (snapshots, entries) = (Vec::new(), Vec::new());
        Lockstep { with_contents, ticks_of_hpa: None, snapshots, entries }
    }

    /// Compares the errors that both log when they start.
    pub fn started(
        &mut self,
        predicted: &[LogLine],
        observed: Vec<LogLine>,
        comparison: &mut Comparison<'_>,
    ) {
        comparison.found(self.divergence(0, Time::ZERO, logs(predicted, &observed)), String::new);
        self.entries.push(Entry::Start(observed));
    }

    fn divergence(&self, tick: usize, at: Time, fields: Vec<FieldDifference>) -> Divergence {
        let divergence = Divergence::new(Controller::Recommender, tick, at, fields);
        match self.ticks_of_hpa {
            Some(ticks) => divergence.after_ticks_of_hpa(ticks),
            None => divergence,
        }
    }

    /// Compares an observed step with the model's, and returns the model's.
    pub fn step(
        &mut self,
        session: &mut Session,
        step: &ScriptStep,
        observed: Stepped,
        comparison: &mut Comparison<'_>,
    ) -> Stepped {
        let predicted = session.step(&step.changes, step.until);
        if let Some(run) = predicted.runs.iter().find(|run| run.run.is_undetermined) {
            comparison.undetermined = Some(undetermined(run.at));
            return predicted;
        }
        if step.changes.contains(&ClusterChange::Restart) {
            self.entries.push(Entry::Start(observed.log.clone()));
        }
        let fields = logs(&predicted.log, &observed.log);
        let number = self.snapshots.len();
        comparison.found(self.divergence(number, step.until, fields), String::new);
        let count = predicted.runs.len().max(observed.runs.len());
        for index in 0..count {
            let (ours, theirs) = (predicted.runs.get(index), observed.runs.get(index));
            let at = theirs.or(ours).map_or(step.until, |run| run.at);
            self.run(session, at, [ours, theirs], comparison);
        }
        predicted
    }

    /// Compares a run, and continues from what was observed.
    ///
    /// `runs`: the model's run, and the observed one.
    pub fn run(
        &mut self,
        session: &mut Session,
        at: Time,
        runs: [Option<&RunAt>; 2],
        comparison: &mut Comparison<'_>,
    ) {
        let [ours, theirs] = runs;
        comparison.count_tick();
        let fields = difference(ours, theirs);
        let amounts: Vec<AmountField> = amounts(&fields).cloned().collect();
        let found = self.divergence(self.snapshots.len() + 1, at, fields);
        comparison.found(found, || explanation(session, &amounts));
        if let Some(run) = theirs {
            for write in &run.run.writes {
                session.objects_mut().apply(write);
            }
            self.snapshots.push(Snapshot::new(session.objects(), run, self.with_contents));
            self.entries.push(Entry::Run(run.clone()));
        }
    }

    /// Sets the verdict, after the notes. `expects`: the expectations of the file refer to the
    /// times of the run.
    pub fn conclude(
        self,
        outcome: &mut Outcome,
        scenario: &Arc<VpaScenario>,
        release: VpaRelease,
        comparison: Comparison<'_>,
        expects: bool,
    ) {
        let snapshots = &self.snapshots;
        outcome.unmet = match comparison.undetermined {
            Some(_) => Vec::new(),
            None if expects => {
                let unmet = evaluate(scenario, release, snapshots);
                with_reasons(scenario, unmet, |is_explained| {
                    Some(free_recommender_run(scenario, release, is_explained))
                })
            }
            None => Vec::new(),
        };
        outcome.not_compared = match &comparison.divergence {
            Some(divergence) => snapshots.len().saturating_sub(divergence.tick),
            None => 0,
        };
        if &*outcome.engine == model::NAME && scenario.expect.is_empty() {
            outcome.notes.push(Note::nothing_is_checked(scenario.line));
        }
        comparison.conclude(outcome);
        let run = self.into_run(scenario, &scenario.hash, outcome);
        outcome.controllers.push(ControllerRun::Recommender(run));
    }

    /// The observed runs. `hash`: that of the whole scenario.
    pub(super) fn into_run(
        self,
        scenario: &Arc<VpaScenario>,
        hash: &str,
        outcome: &Outcome,
    ) -> RecommenderRun {
        let trace = RecommenderTrace {
            release: outcome.release.clone(),
            engine: outcome.engine.to_string(),
            scenario: scenario.id.clone(),
            hash: hash.to_owned(),
            entries: self.entries,
        };
        RecommenderRun { scenario: scenario.clone(), trace, snapshots: self.snapshots }
    }
}

fn difference(ours: Option<&RunAt>, theirs: Option<&RunAt>) -> Vec<FieldDifference> {
    match (ours, theirs) {
        (Some(ours), Some(theirs)) if ours.at == theirs.at => runs(&ours.run, &theirs.run),
        (ours, theirs) => {
            let at = |run: Option<&RunAt>| {
                run.map_or_else(|| "no run".to_owned(), |run| format!("a run at {}", run.at))
            };
            vec![FieldDifference::new("run", at(ours), at(theirs))]
        }
    }
}

/// The recommended amounts that differ.
fn amounts(differences: &[FieldDifference]) -> impl Iterator<Item = &AmountField> {
    differences.iter().filter_map(|difference| match &difference.field {
        FieldPath::Amount(amount) => Some(amount),
        _ => None,
    })
}

/// How the model derived the first of some amounts: `target.cpu of app: …`.
fn explanation(session: &mut Session, amounts: &[AmountField]) -> String {
    let now = session.now();
    for vpa in names(session) {
        for (container, estimations) in session.recommender().explain(&vpa, now) {
            for estimation in estimations {
                let is_derived = |amount: &&AmountField| {
                    let AmountField { vpa: of_vpa, container: of, value, resource } = amount;
                    *of_vpa == vpa
                        && *of == container
                        && *value == value_of(estimation.bound)
                        && *resource == estimation.resource
                };
                if let Some(AmountField { value, resource, .. }) = amounts.iter().find(is_derived) {
                    let (value, resource) = (value.name(), resource.name());
                    return format!("{value}.{resource} of {container}: {estimation}");
                }
            }
        }
    }
    String::new()
}
