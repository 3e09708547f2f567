//! One scenario of the VPA's recommender on one engine, in lockstep with the model.
//!
//! Recommendations do not change the pods, so the steps of a scenario are known in advance. What
//! the engine writes is the input of the model's next run.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use super::findings::Findings;
use super::lockstep::{conclude_known, inconclusive};
use super::{Note, Outcome, Verdict};
use crate::compare::recommender::{RunDifference, logs, runs};
use crate::compare::{FieldDifference, KnownDisagreement};
#[cfg(feature = "engines")]
use crate::engine::EngineError;
#[cfg(feature = "engines")]
use crate::engine::recommender::RecommenderEngine;
use crate::expect::Unmet;
use crate::expect::recommender::evaluate;
use crate::model::rules::{VpaRelease, VpaRules};
use crate::model::time::Time;
use crate::model::vpa::{
    Bound, ClusterChange, Estimation, ObjectName, PodMetrics, RunAt, Samples, ScriptStep, Session,
    Snapshot, Stepped,
};
use crate::scenario::vpa::VpaScenario;
use crate::trace::Trace;
use crate::trace::recommender::{Entry, RecommenderTrace};
use crate::world::recommender::script;

/// The name of the model in reports.
pub const MODEL: &str = crate::engine::model::NAME;

/// The number of steps that an engine gets ahead of its answers.
const AHEAD: usize = 16;

/// What a recommender did in a scenario.
#[derive(Clone, Debug)]
pub struct RecommenderRun {
    /// The scenario.
    pub scenario: Arc<VpaScenario>,
    /// The runs, for recordings.
    pub trace: RecommenderTrace,
    /// The state after each run.
    pub snapshots: Vec<Snapshot>,
}

/// How the amounts of one VPA were derived, by container.
#[derive(Clone, Debug)]
pub struct Derived {
    /// The VPA.
    pub vpa: ObjectName,
    /// The samples that count.
    pub samples: BTreeMap<Arc<str>, Samples>,
    /// The estimation of each amount.
    pub estimations: BTreeMap<Arc<str>, Vec<Estimation>>,
}

/// How the amounts of a run were derived.
#[derive(Clone, Debug)]
pub struct ExplainedRun {
    /// The derivations, by VPA.
    pub derived: Vec<Derived>,
    /// The usage that the run read, or the error.
    pub usage: Result<Arc<Vec<PodMetrics>>, String>,
}

/// The result of a free run of the model.
#[derive(Clone, Debug)]
pub struct FreeRecommenderRun {
    /// The state after each run.
    pub snapshots: Vec<Snapshot>,
    /// How the amounts of the runs that were asked for were derived, by index.
    pub explained: BTreeMap<usize, ExplainedRun>,
    /// The expectations that are not met.
    pub unmet: Vec<Unmet>,
    /// Why the scenario can't be run to its end, if it can't.
    pub undetermined: Option<String>,
}

/// Runs the model alone. `is_explained` selects runs, by index, whose amounts are derived.
#[must_use]
pub fn free_recommender_run(
    scenario: &VpaScenario,
    release: VpaRelease,
    is_explained: &dyn Fn(usize) -> bool,
) -> FreeRecommenderRun {
    let script = script(scenario);
    let (mut session, _) = Session::open(&script.start, VpaRules::of(release));
    let mut free = FreeRecommenderRun {
        snapshots: Vec::new(),
        explained: BTreeMap::new(),
        unmet: Vec::new(),
        undetermined: None,
    };
    for step in &script.steps {
        let stepped = session.step(&step.changes, step.until);
        for run in &stepped.runs {
            if run.run.is_undetermined {
                free.undetermined = Some(undetermined(run.at));
                return free;
            }
            let index = free.snapshots.len();
            free.snapshots.push(Snapshot::of(session.objects(), run));
            if is_explained(index) {
                free.explained.insert(index, explained(&mut session));
            }
        }
    }
    free.unmet = evaluate(scenario, release, &free.snapshots);
    free
}

/// What the model predicts by any set of rules.
#[must_use]
pub fn predicted(scenario: &VpaScenario, rules: VpaRules) -> Vec<Entry> {
    let script = script(scenario);
    let (mut session, log) = Session::open(&script.start, rules);
    let mut entries = vec![Entry::Start(log)];
    for step in &script.steps {
        let stepped = session.step(&step.changes, step.until);
        if step.changes.contains(&ClusterChange::Restart) {
            entries.push(Entry::Start(stepped.log));
        }
        entries.extend(stepped.runs.into_iter().map(Entry::Run));
    }
    entries
}

fn explained(session: &mut Session) -> ExplainedRun {
    let (names, now) = (names(session), session.now());
    let usage = session.objects().metrics.clone();
    let recommender = session.recommender();
    let derived = names.into_iter().map(|vpa| {
        let samples = recommender.samples(&vpa, now);
        let estimations = recommender.explain(&vpa, now);
        Derived { vpa, samples, estimations }
    });
    ExplainedRun { derived: derived.collect(), usage }
}

fn names(session: &Session) -> Vec<ObjectName> {
    session.objects().vpas.keys().cloned().collect()
}

fn undetermined(at: Time) -> String {
    format!(
        "the result of the run at {at} is random upstream: histograms of pods with different \
         labels and different reference times are merged in a random order"
    )
}

/// The outcome of a scenario before it is run.
#[cfg(feature = "engines")]
pub(super) fn unfinished(
    scenario: &Arc<VpaScenario>,
    engine: &Arc<str>,
    release: VpaRelease,
) -> Outcome {
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
#[cfg(feature = "engines")]
pub fn run_recommender(
    scenario: &Arc<VpaScenario>,
    engine: &mut dyn RecommenderEngine,
    name: &Arc<str>,
    release: VpaRelease,
    known: &[KnownDisagreement],
) -> Outcome {
    let begin = Instant::now();
    let mut outcome = unfinished(scenario, name, release);
    let unsupported = scenario.unsupported_on(release);
    if let Some(why) = unsupported.or_else(|| engine.unsupported_reason(scenario)) {
        outcome.verdict = Verdict::Skipped { why };
        return outcome;
    }
    let trace =
        Trace { release: release.to_string(), scenario: scenario.id.clone(), ..Trace::default() };
    let mut lockstep = Lockstep {
        findings: Findings::new(trace, known),
        snapshots: Vec::new(),
        entries: Vec::new(),
        why: Vec::new(),
    };
    match lockstep.play(scenario, engine, release) {
        Ok(()) => lockstep.conclude(&mut outcome, scenario, release),
        Err(error) => outcome.verdict = inconclusive(error),
    }
    outcome.elapsed = begin.elapsed();
    outcome
}

struct Lockstep<'k> {
    findings: Findings<'k>,
    snapshots: Vec<Snapshot>,
    entries: Vec<Entry>,
    why: Vec<String>,
}

impl Lockstep<'_> {
    #[cfg(feature = "engines")]
    fn play(
        &mut self,
        scenario: &VpaScenario,
        engine: &mut dyn RecommenderEngine,
        release: VpaRelease,
    ) -> Result<(), EngineError> {
        let script = script(scenario);
        let (mut session, log) = Session::open(&script.start, VpaRules::of(release));
        let started = engine.open(scenario, &script)?;
        self.found(Time::ZERO, logs(&log, &started));
        self.entries.push(Entry::Start(started));
        let mut steps = script.steps.iter();
        let mut under_way: VecDeque<&ScriptStep> = VecDeque::new();
        loop {
            while under_way.len() < AHEAD
                && let Some(step) = steps.next()
            {
                engine.send(step)?;
                under_way.push_back(step);
            }
            let Some(step) = under_way.pop_front() else { break };
            let observed = engine.receive()?;
            if self.findings.undetermined.is_none() {
                self.step(&mut session, step, observed);
            }
        }
        engine.close()
    }

    /// Compares a step.
    fn step(&mut self, session: &mut Session, step: &ScriptStep, observed: Stepped) {
        let predicted = session.step(&step.changes, step.until);
        if let Some(run) = predicted.runs.iter().find(|run| run.run.is_undetermined) {
            self.findings.undetermined = Some(undetermined(run.at));
            return;
        }
        if step.changes.contains(&ClusterChange::Restart) {
            self.entries.push(Entry::Start(observed.log.clone()));
        }
        self.found(step.until, logs(&predicted.log, &observed.log));
        let count = predicted.runs.len().max(observed.runs.len());
        for index in 0..count {
            let (ours, theirs) = (predicted.runs.get(index), observed.runs.get(index));
            if self.findings.divergence.is_none() {
                self.findings.compared += 1;
            }
            let differences = difference(ours, theirs);
            if !differences.is_empty() && self.findings.divergence.is_none() {
                let why = explanation(session, &differences);
                self.why.resize(self.snapshots.len(), String::new());
                self.why.push(why);
            }
            let at = theirs.or(ours).map_or(step.until, |run| run.at);
            let number = self.snapshots.len() + 1;
            self.findings.found(number, at, fields(differences));
            if let Some(run) = theirs {
                for write in &run.run.writes {
                    session.objects_mut().apply(write);
                }
                self.snapshots.push(Snapshot::of(session.objects(), run));
                self.entries.push(Entry::Run(run.clone()));
            }
        }
    }

    fn found(&mut self, at: Time, differences: Vec<RunDifference>) {
        self.findings.found(self.snapshots.len(), at, fields(differences));
    }

    #[cfg(feature = "engines")]
    fn conclude(self, outcome: &mut Outcome, scenario: &Arc<VpaScenario>, release: VpaRelease) {
        let Lockstep { mut findings, snapshots, entries, why } = self;
        findings.trace = Trace::default();
        outcome.unmet = match findings.undetermined {
            Some(_) => Vec::new(),
            None => evaluate(scenario, release, &snapshots),
        };
        outcome.poisoned = match &findings.divergence {
            Some(divergence) => snapshots.len().saturating_sub(divergence.tick),
            None => 0,
        };
        let about = |what: &String| Note {
            line: scenario.line,
            what: what.clone(),
            is_about_reading: true,
        };
        outcome.notes = scenario.notes.iter().map(about).collect();
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
