//! One scenario of the VPA's recommender on one engine, in lockstep with the model.
//!
//! Recommendations do not change the pods, so the steps of a scenario are known in advance. What
//! the engine writes is the input of the model's next run.

use std::collections::VecDeque;
use std::sync::Arc;

use super::findings::Findings;
use super::lockstep::{conclude_known, inconclusive};
use super::recommendation::with_reasons;
use super::recommender::{RecommenderRun, free_recommender_run, names, notes, undetermined};
use super::{Note, Outcome, Verdict};
use crate::compare::recommender::{RunDifference, logs, runs};
use crate::compare::{FieldDifference, KnownDisagreement};
use crate::engine::{Engine, EngineError, ScriptedScenario, Vpa, model};
use crate::expect::recommender::evaluate;
use crate::trace::Trace;
use crate::trace::recommender::{Entry, RecommenderTrace};
use crate::world::recommender::{script, unmatched_actions};
use kube_autoscaler_models::rules::{VpaRelease, VpaRules};
use kube_autoscaler_models::time::Time;
use kube_autoscaler_models::vpa::{
    Bound, ClusterChange, LogLine, RunAt, ScriptStep, Session, Snapshot, Stepped,
};
use kube_lockstep_scenario::vpa::VpaScenario;

/// The number of steps that an engine gets ahead of its answers.
const AHEAD: usize = 16;

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
    let (name, release) = (Arc::<str>::from(engine.name()), engine.release());
    let mut outcome = unfinished(scenario, &name, release);
    let unsupported = scenario.unsupported_on(release);
    if let Some(why) = unsupported.or_else(|| engine.unsupported_reason(scenario)) {
        outcome.verdict = Verdict::Skipped { why };
        return outcome;
    }
    let trace =
        Trace { release: release.to_string(), scenario: scenario.id.clone(), ..Trace::default() };
    let findings = Findings::new(trace, known);
    let lockstep = Lockstep::new(findings, scenario.expects_contents());
    lockstep.run_to_end(scenario, engine, &mut outcome, &mut |_, _, _| {});
    outcome
}

/// Called after each step, with the model's session, the step and the model's result.
pub(super) type Watch<'w> = dyn FnMut(&mut Session, &ScriptStep, &Stepped) + 'w;

/// The recommender and the model, side by side.
pub struct Lockstep<'k> {
    /// Whether snapshots contain the contents of checkpoints.
    with_contents: bool,
    /// The findings so far.
    pub findings: Findings<'k>,
    pub(crate) snapshots: Vec<Snapshot>,
    pub(crate) entries: Vec<Entry>,
    pub(crate) why: Vec<String>,
}

impl<'k> Lockstep<'k> {
    /// `with_contents`: snapshots contain the contents of checkpoints.
    pub fn new(findings: Findings<'k>, with_contents: bool) -> Lockstep<'k> {
        Lockstep {
            with_contents,
            findings,
            snapshots: Vec::new(),
            entries: Vec::new(),
            why: Vec::new(),
        }
    }

    /// Compares the errors that both log when they start.
    pub fn started(&mut self, predicted: &[LogLine], observed: Vec<LogLine>) {
        self.found(Time::ZERO, logs(predicted, &observed));
        self.entries.push(Entry::Start(observed));
    }

    /// Runs the script of a scenario, and sets the verdict.
    pub fn run_to_end(
        mut self,
        scenario: &Arc<VpaScenario>,
        engine: &mut dyn Engine<Vpa>,
        outcome: &mut Outcome,
        watch: &mut Watch<'_>,
    ) {
        let release = engine.release();
        match self.run_script(scenario, engine, watch) {
            Ok(()) => self.conclude(outcome, scenario, release, true),
            Err(error) => outcome.verdict = inconclusive(error),
        }
    }

    fn run_script(
        &mut self,
        scenario: &Arc<VpaScenario>,
        engine: &mut dyn Engine<Vpa>,
        watch: &mut Watch<'_>,
    ) -> Result<(), EngineError> {
        let rules = VpaRules::of(engine.release());
        let scripted = ScriptedScenario { scenario: scenario.clone(), script: script(scenario) };
        let script = &scripted.script;
        let (mut model, log) = Session::open(&script.start, rules);
        let mut session = engine.open(&scripted)?;
        self.started(&log, session.start_log());
        let ahead = if session.takes_steps_ahead() { AHEAD } else { 1 };
        let mut steps = script.steps.iter();
        let mut under_way: VecDeque<&ScriptStep> = VecDeque::new();
        loop {
            while under_way.len() < ahead
                && let Some(step) = steps.next()
            {
                session.send(step)?;
                under_way.push_back(step);
            }
            let Some(step) = under_way.pop_front() else { break };
            let observed = session.receive()?;
            if self.findings.undetermined.is_none() {
                let predicted = self.step(&mut model, step, observed);
                watch(&mut model, step, &predicted);
            }
        }
        session.close()
    }

    /// Compares an observed step with the model's, and returns the model's.
    pub fn step(&mut self, session: &mut Session, step: &ScriptStep, observed: Stepped) -> Stepped {
        let predicted = session.step(&step.changes, step.until);
        if let Some(run) = predicted.runs.iter().find(|run| run.run.is_undetermined) {
            self.findings.undetermined = Some(undetermined(run.at));
            return predicted;
        }
        if step.changes.contains(&ClusterChange::Restart) {
            self.entries.push(Entry::Start(observed.log.clone()));
        }
        self.found(step.until, logs(&predicted.log, &observed.log));
        let count = predicted.runs.len().max(observed.runs.len());
        for index in 0..count {
            let (ours, theirs) = (predicted.runs.get(index), observed.runs.get(index));
            let at = theirs.or(ours).map_or(step.until, |run| run.at);
            self.run(session, at, ours, theirs);
        }
        predicted
    }

    /// Compares a run, and continues from what was observed.
    pub fn run(
        &mut self,
        session: &mut Session,
        at: Time,
        ours: Option<&RunAt>,
        theirs: Option<&RunAt>,
    ) {
        if self.findings.divergence.is_none() {
            self.findings.compared += 1;
        }
        let differences = difference(ours, theirs);
        if !differences.is_empty() && self.findings.divergence.is_none() {
            let why = explanation(session, &differences);
            self.why.resize(self.snapshots.len(), String::new());
            self.why.push(why);
        }
        let number = self.snapshots.len() + 1;
        self.findings.found(number, at, fields(differences));
        if let Some(run) = theirs {
            for write in &run.run.writes {
                session.objects_mut().apply(write);
            }
            self.snapshots.push(Snapshot::of(session.objects(), run, self.with_contents));
            self.entries.push(Entry::Run(run.clone()));
        }
    }

    pub(crate) fn found(&mut self, at: Time, differences: Vec<RunDifference>) {
        self.findings.found(self.snapshots.len(), at, fields(differences));
    }

    /// Sets the verdict. `expects`: the expectations of the file refer to the times of the run.
    pub fn conclude(
        self,
        outcome: &mut Outcome,
        scenario: &Arc<VpaScenario>,
        release: VpaRelease,
        expects: bool,
    ) {
        let Lockstep { mut findings, snapshots, entries, why, .. } = self;
        findings.trace = Trace::default();
        outcome.unmet = match findings.undetermined {
            Some(_) => Vec::new(),
            None if expects => {
                let unmet = evaluate(scenario, release, &snapshots);
                with_reasons(scenario, unmet, |is_explained| {
                    Some(free_recommender_run(scenario, release, is_explained))
                })
            }
            None => Vec::new(),
        };
        outcome.not_compared = match &findings.divergence {
            Some(divergence) => snapshots.len().saturating_sub(divergence.tick),
            None => 0,
        };
        outcome.notes = notes(scenario, release, &unmatched_actions(scenario));
        if &*outcome.engine == model::NAME && scenario.expect.is_empty() {
            outcome.notes.push(Note::nothing_is_checked(scenario.line));
        }
        findings.why = why;
        conclude_known(outcome, findings);
        outcome.recommender = Some(Box::new(RecommenderRun {
            scenario: scenario.clone(),
            trace: RecommenderTrace {
                release: release.to_string(),
                engine: outcome.engine.to_string(),
                scenario: scenario.id.clone(),
                hash: scenario.hash.clone(),
                entries,
            },
            snapshots,
        }));
    }
}

fn difference(ours: Option<&RunAt>, theirs: Option<&RunAt>) -> Vec<RunDifference> {
    let field = |field: &str, model: String, observed: String| {
        vec![RunDifference { field: field.to_owned(), model, observed }]
    };
    match (ours, theirs) {
        (Some(ours), Some(theirs)) if ours.at == theirs.at => runs(&ours.run, &theirs.run),
        (ours, theirs) => {
            let at = |run: Option<&RunAt>| {
                run.map_or_else(|| "no run".to_owned(), |run| format!("a run at {}", run.at))
            };
            field("run", at(ours), at(theirs))
        }
    }
}

fn fields(differences: Vec<RunDifference>) -> Vec<FieldDifference> {
    let field = |it: RunDifference| FieldDifference {
        field: it.field,
        model: it.model,
        upstream: it.observed,
    };
    differences.into_iter().map(field).collect()
}

/// How the model derived the first amount that differs: `target.cpu of app: …`.
fn explanation(session: &mut Session, differences: &[RunDifference]) -> String {
    let now = session.now();
    for vpa in names(session) {
        let prefix = format!("{vpa} ");
        for (container, estimations) in session.recommender().explain(&vpa, now) {
            for estimation in estimations {
                let value = match estimation.bound {
                    Bound::Target => "target",
                    Bound::Lower => "lowerBound",
                    Bound::Upper => "upperBound",
                };
                let field = format!("{value}.{} of {container}", estimation.resource.name());
                let is_it = |it: &RunDifference| {
                    it.field.strip_prefix(&prefix).is_some_and(|rest| rest == field)
                };
                if differences.iter().any(is_it) {
                    return format!("{field}: {estimation}");
                }
            }
        }
    }
    String::new()
}
