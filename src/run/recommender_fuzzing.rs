//! Runs many generated scripts on one recommender, and shrinks the failures.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use tokio_util::sync::CancellationToken;

use super::findings::Findings;
use super::fuzzing::{Failure, Finding, FuzzSummary, MAX_FINDINGS, NewEngine, RunLimit};
use super::in_order::in_order;
use super::recommender::names;
use super::recommender_lockstep::{Lockstep, run_recommender, unfinished};
use super::{Outcome, Shard, Verdict};
use crate::engine::{Engine, Vpa};
use crate::fuzz::recommender::{RecommenderCoverage, script, shrink};
use crate::model::rules::VpaRelease;
use crate::model::vpa::{Script, ScriptStep, Session, Stepped};
use crate::scenario::vpa::VpaScenario;
use crate::trace::Trace;

/// The number of runs of the recommender in a script.
const RUNS: usize = 400;

/// The coverage counts the estimates of every 16th run of a script.
const RUNS_PER_ESTIMATE: usize = 16;

/// The length of a run of the fuzzer.
#[derive(Clone, Debug)]
#[non_exhaustive]
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
    engine: NewEngine<'_, Vpa>,
    progress: &mut dyn FnMut(&FuzzSummary),
) -> (FuzzSummary, Vec<Finding<Script>>) {
    let begin = Instant::now();
    let mut summary = FuzzSummary::default();
    let mut coverage = RecommenderCoverage::default();
    let mut failures: BTreeMap<String, (u64, usize, Outcome)> = BTreeMap::new();
    let work = |engine: &mut Box<dyn Engine<Vpa>>, number: usize| {
        let is_late = matches!(plan.limit, RunLimit::Time(limit) if begin.elapsed() >= limit);
        if is_late || plan.stop.is_cancelled() {
            return None;
        }
        let index = plan.shard.nth(number) as u64;
        let mut coverage = RecommenderCoverage::default();
        let script = script(plan.seed, index, RUNS, plan.release);
        let outcome = run_script(script, &mut **engine, &mut coverage);
        Some((index, outcome, coverage))
    };
    let wanted = match plan.limit {
        RunLimit::Ticks(ticks) => plan.shard.share(ticks),
        RunLimit::Time(_) => usize::MAX,
    };
    in_order(plan.jobs.max(1), &engine, &work, &mut |_, (index, outcome, reached)| {
        coverage.merge(&reached);
        summary.scenarios += 1;
        summary.ticks += outcome.ticks;
        summary.elapsed = begin.elapsed();
        progress(&summary);
        match kind(&outcome) {
            None => {
                if let Some(cause) = outcome.undetermined {
                    *summary.undetermined.entry(cause).or_default() += 1;
                }
            }
            Some(kind) => {
                match outcome.verdict {
                    Verdict::Diverges(_) => summary.divergences += 1,
                    _ => summary.inconclusive += 1,
                }
                failures.entry(kind).or_insert((index, 0, outcome)).1 += 1;
            }
        }
        summary.ticks < wanted && failures.len() < plan.max_findings && summary.inconclusive < 50
    });
    summary.elapsed = begin.elapsed();
    summary.coverage = coverage.groups();
    let findings = failures.into_iter();
    let findings = findings.map(|(kind, (index, times, outcome))| {
        shrunk(plan, engine, Finding { times, ..as_generated(plan, index, kind, outcome) })
    });
    let findings = findings.collect();
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
    let lockstep = Lockstep::new(Findings::new(Trace::default(), &[]), false);
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
    lockstep.run_to_end(&scenario, engine, &mut outcome, &mut watch);
    outcome
}

/// Runs a script, without the coverage.
fn run_again(engine: &mut dyn Engine<Vpa>, script: Script) -> Outcome {
    run_recommender(&Arc::new(VpaScenario::of_script(script)), engine, &[])
}

/// The kind of a failure: the first field that differs, without names of objects, or the error.
fn kind(outcome: &Outcome) -> Option<String> {
    match &outcome.verdict {
        Verdict::Diverges(divergence) => {
            let field = divergence.fields.first().map_or("", |field| &field.field);
            let field = field.split_once(' ').map_or(field, |(_, field)| field);
            Some(field.split(" of ").next().unwrap_or_default().to_owned())
        }
        Verdict::Inconclusive { why, .. } if outcome.undetermined.is_none() => Some(why.clone()),
        _ => None,
    }
}

/// The finding of a failure, before it is shrunk.
fn as_generated(
    plan: &RecommenderFuzzPlan,
    index: u64,
    kind: String,
    outcome: Outcome,
) -> Finding<Script> {
    let scenario = script(plan.seed, index, RUNS, plan.release);
    let failure = Failure::Outcome(Box::new(outcome));
    Finding { index, times: 1, kind, scenario, failure, tried: 0, cut_short: true }
}

/// Shrinks a divergence. Other failures stay as they are.
fn shrunk(
    plan: &RecommenderFuzzPlan,
    engine: NewEngine<'_, Vpa>,
    found: Finding<Script>,
) -> Finding<Script> {
    let is_divergence = match &found.failure {
        Failure::Outcome(outcome) => matches!(outcome.verdict, Verdict::Diverges(_)),
        Failure::Panic(_) => false,
    };
    if !is_divergence || plan.stop.is_cancelled() {
        return found;
    }
    let mut engine = engine();
    let again = run_again(&mut *engine, found.scenario.clone());
    if kind(&again).as_ref() != Some(&found.kind) {
        // Chance decides, in upstream or in the host: there is nothing to shrink.
        return Finding { tried: 0, cut_short: plan.stop.is_cancelled(), ..found };
    }
    let mut tried = 0;
    let smallest = shrink(found.scenario, |script| {
        tried += 1;
        !plan.stop.is_cancelled()
            && kind(&run_again(&mut *engine, script.clone())).as_ref() == Some(&found.kind)
    });
    let outcome = run_again(&mut *engine, smallest.clone());
    Finding {
        scenario: smallest,
        failure: Failure::Outcome(Box::new(outcome)),
        tried,
        cut_short: plan.stop.is_cancelled(),
        ..found
    }
}
