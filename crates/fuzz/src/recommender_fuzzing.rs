//! Runs many generated scripts on one recommender, and shrinks the failures.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::fuzz_findings::{Failure, Finding, FuzzSummary, MAX_FINDINGS, RunLimit};
use crate::fuzzing::NewEngine;
use crate::generated::{Extent, Failed, Progress, Ran, run_generated};
use crate::recommender::{RecommenderCoverage, script, shrink};
use kube_autoscaler_models::rules::VpaRelease;
use kube_autoscaler_models::vpa::{Script, ScriptStep, Session, Stepped};
use kube_lockstep_scenario::vpa::VpaScenario;
use kube_lockstep_sim::engine::{Engine, Vpa};
use kube_lockstep_sim::run::comparison::Comparison;
use kube_lockstep_sim::run::panic::caught;
use kube_lockstep_sim::run::recommender::names;
use kube_lockstep_sim::run::recommender_lockstep::{run_recommender, run_to_end, unfinished};
use kube_lockstep_sim::run::{Outcome, Shard, Verdict};

/// The number of runs of the recommender in a script.
const RUNS: usize = 400;

/// The coverage counts the estimates of every 16th run of a script.
const RUNS_PER_ESTIMATE: usize = 16;

/// The length of a run of the fuzzer.
#[derive(Clone, Debug)]
pub struct RecommenderFuzzPlan {
    /// The seed of the random number generator.
    pub seed: u64,
    /// When the run ends, for all shards together.
    pub limit: RunLimit,
    /// The shard to run.
    pub shard: Shard,
    /// The release.
    pub release: VpaRelease,
    /// The number of workers, at least 1.
    pub jobs: usize,
    /// The run ends when it has found this many kinds of failures.
    pub max_findings: usize,
    /// Cancelled from outside to end the run early.
    pub stop: CancellationToken,
}

impl RecommenderFuzzPlan {
    /// A run of one worker.
    #[must_use]
    pub fn new(seed: u64, limit: RunLimit, release: VpaRelease) -> RecommenderFuzzPlan {
        RecommenderFuzzPlan {
            seed,
            limit,
            shard: Shard::WHOLE,
            release,
            jobs: 1,
            max_findings: MAX_FINDINGS,
            stop: CancellationToken::new(),
        }
    }
}

/// Runs scripts until the limit, and shrinks one failure of each kind. `progress` gets the figures
/// so far.
pub fn fuzz_recommender(
    plan: &RecommenderFuzzPlan,
    new_engine: NewEngine<'_, Vpa>,
    progress: &mut dyn FnMut(&FuzzSummary),
) -> (FuzzSummary, Vec<Finding<Script>>) {
    let mut coverage = RecommenderCoverage::default();
    let generated = |index| script(plan.seed, index, RUNS, plan.release);
    let run = |engine: &mut Box<dyn Engine<Vpa>>, index: u64| {
        let mut coverage = RecommenderCoverage::default();
        let ran = run_caught(engine, new_engine, |engine| {
            run_script(generated(index), engine, &mut coverage)
        });
        let (ticks, undetermined) =
            ran.as_ref().map_or((0, None), |outcome| (outcome.ticks, outcome.undetermined));
        let failed = failure_of(ran);
        let failed =
            failed.map(|(kind, failure)| Failed { kind, scenario: generated(index), failure });
        (Ran { ticks, undetermined, skipped: None, failed }, coverage)
    };
    let RecommenderFuzzPlan { limit, shard, jobs, max_findings, ref stop, .. } = *plan;
    let extent = Extent { limit, shard, jobs, max_findings, stop };
    let (mut summary, findings) =
        run_generated(extent, &new_engine, &run, &mut |Progress { summary, .. }, reached| {
            coverage.merge(&reached);
            progress(summary);
        });
    summary.coverage = coverage.groups();
    let findings = findings.into_iter().map(|finding| shrunk(plan, new_engine, finding)).collect();
    summary.interrupted = plan.stop.is_cancelled();
    (summary, findings)
}

/// Runs a generated script on an engine, compares each run with the model, and counts what the
/// model reached.
fn run_script(
    script: Script,
    engine: &mut dyn Engine<Vpa>,
    coverage: &mut RecommenderCoverage,
) -> Outcome {
    let release = engine.release();
    coverage.begin(&script, release);
    let scenario = Arc::new(VpaScenario::of_script(script));
    let mut outcome = unfinished(&scenario, &engine.name().into(), release);
    let comparison = Comparison::new(&scenario.id, &outcome.release, &[]);
    let mut runs = 0;
    let mut watch = |session: &mut Session, step: &ScriptStep, predicted: &Stepped| {
        session.recommender().keep_account(true);
        coverage.changes(&step.changes);
        coverage.log(&predicted.log);
        predicted.runs.iter().for_each(|run| coverage.run(&run.run));
        coverage.occurrences(&session.recommender().take_account());
        let before = runs;
        runs += predicted.runs.len();
        if before / RUNS_PER_ESTIMATE < runs / RUNS_PER_ESTIMATE {
            let now = session.now();
            for vpa in names(session) {
                coverage.estimates(session.recommender().explain(&vpa, now).values().flatten());
            }
        }
    };
    run_to_end(&scenario, engine, comparison, &mut outcome, &mut watch);
    outcome
}

/// Runs a script on an engine, which is replaced after a panic, because its state is then unknown.
///
/// # Errors
/// The message of a panic.
fn run_caught(
    engine: &mut Box<dyn Engine<Vpa>>,
    new_engine: NewEngine<'_, Vpa>,
    run: impl FnOnce(&mut dyn Engine<Vpa>) -> Outcome,
) -> Result<Outcome, String> {
    let ran = caught(|| run(&mut **engine));
    if ran.is_err() {
        *engine = new_engine();
    }
    ran
}

/// The failure of a script, and its kind.
fn failure_of(ran: Result<Outcome, String>) -> Option<(String, Failure)> {
    match ran {
        Ok(outcome) => kind(&outcome).map(|kind| (kind, Failure::Outcome(Box::new(outcome)))),
        Err(message) => Some((format!("panic: {message}"), Failure::Panic(message))),
    }
}

/// The kind of a failure: the first field that differs, without names of objects, or the error.
fn kind(outcome: &Outcome) -> Option<String> {
    match &outcome.verdict {
        Verdict::Diverges(divergence) => Some(divergence.fields.first()?.field.kind().into_owned()),
        Verdict::Inconclusive { why, .. } if outcome.undetermined.is_none() => Some(why.clone()),
        _ => None,
    }
}

/// Shrinks a divergence or a panic. Other failures stay as they are.
fn shrunk(
    plan: &RecommenderFuzzPlan,
    new_engine: NewEngine<'_, Vpa>,
    found: Finding<Script>,
) -> Finding<Script> {
    if !found.failure.is_verdict() || plan.stop.is_cancelled() {
        return Finding { cut_short: true, ..found };
    }
    let mut engine = new_engine();
    let mut run_again = |script: &Script| {
        let scenario = Arc::new(VpaScenario::of_script(script.clone()));
        let ran =
            run_caught(&mut engine, new_engine, |engine| run_recommender(&scenario, engine, &[]));
        failure_of(ran).filter(|(kind, _)| *kind == found.kind).map(|(_, failure)| failure)
    };
    if run_again(&found.scenario).is_none() {
        // Chance decides, in upstream or in the host: there is nothing to shrink.
        return Finding { tried: 0, cut_short: plan.stop.is_cancelled(), ..found };
    }
    let mut tried = 0;
    let smallest = shrink(found.scenario.clone(), |script| {
        tried += 1;
        !plan.stop.is_cancelled() && run_again(script).is_some()
    });
    let failure = run_again(&smallest).unwrap_or(found.failure);
    let cut_short = plan.stop.is_cancelled();
    Finding { scenario: smallest, failure, tried, cut_short, ..found }
}
