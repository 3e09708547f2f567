//! Runs many generated scenarios on one engine, and shrinks the failures.
//!
//! Each worker generates scenarios from their indices and runs them on its own engine. Results are
//! counted in the order of the indices, so a run ends at the same scenario with any number of
//! workers. Afterwards, one failure of each kind is shrunk.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate as fuzz;
use crate::fuzz_findings::MAX_FINDINGS;
pub use crate::fuzz_findings::{Failure, Finding, FuzzSummary, RunLimit};
use crate::generated::{Extent, Failed, Progress, Ran, run_generated};
use crate::{Area, Coverage, FailurePoint};
use kube_autoscaler_models::derivation::{Derivation, RateLimit};
use kube_autoscaler_models::hpa::Decision;
use kube_autoscaler_models::rules::Release;
use kube_lockstep_scenario::Scenario;
use kube_lockstep_sim::compare::KnownDisagreement;
use kube_lockstep_sim::engine::{Engine, Hpa};
pub use kube_lockstep_sim::run::panic::catches_panics;
use kube_lockstep_sim::run::panic::caught;
use kube_lockstep_sim::run::{Outcome, RandomCause, Shard, Verdict, run_watched};

/// The release, areas and length of a run of the fuzzer.
#[derive(Clone, Debug)]
pub struct FuzzPlan {
    /// The seed of the random number generator.
    pub seed: u64,
    /// When the run ends, for all shards together.
    pub limit: RunLimit,
    /// The shard to run: shard I/N runs every N-th scenario of the seed, from the I-th.
    pub shard: Shard,
    /// The release.
    pub release: Release,
    /// The number of workers, at least 1.
    pub jobs: usize,
    /// The areas of the scenarios; empty: all.
    pub areas: Vec<Area>,
    /// The run ends when it has found this many kinds of failures.
    pub max_findings: usize,
    /// The maximum number of scenarios to try when shrinking a failure.
    pub shrinking: usize,
    /// Known disagreements.
    pub known: Vec<KnownDisagreement>,
    /// Cancelled from outside to end the run early. Failures that were found so far are reported,
    /// but not shrunk any further.
    pub stop: CancellationToken,
}

/// The number of scenarios that are run by default to shrink a failure. This takes seconds.
const SHRINKING: usize = 3000;

impl FuzzPlan {
    /// A run of one worker over all areas, without known disagreements.
    #[must_use]
    pub fn new(seed: u64, limit: RunLimit, release: Release) -> FuzzPlan {
        FuzzPlan {
            seed,
            limit,
            shard: Shard::WHOLE,
            release,
            jobs: 1,
            areas: Vec::new(),
            max_findings: MAX_FINDINGS,
            shrinking: SHRINKING,
            known: Vec::new(),
            stop: CancellationToken::new(),
        }
    }

    fn is_stopped(&self) -> bool {
        self.stop.is_cancelled()
    }

    fn extent(&self) -> Extent<'_> {
        let FuzzPlan { limit, shard, jobs, max_findings, ref stop, .. } = *self;
        Extent { limit, shard, jobs, max_findings, stop }
    }
}

/// An event of a run of the fuzzer.
#[derive(Clone, Debug)]
pub enum FuzzEvent {
    /// The figures so far.
    Progress {
        /// Scenarios that were run.
        scenarios: usize,
        /// Ticks that were compared.
        ticks: usize,
        /// The time since the start.
        elapsed: Duration,
    },
    /// A failure of a new kind, to be shrunk at the end of the run.
    Failed {
        /// The scenario's index.
        index: u64,
        /// The kind: the fields that differ, or an error message.
        kind: String,
    },
    /// A failure was shrunk.
    Found(Box<Finding>),
}

/// Creates an engine for a worker.
pub type NewEngine<'a, K = Hpa> = &'a (dyn Fn() -> Box<dyn Engine<K>> + Sync);

/// The result of running a scenario.
#[derive(Default)]
struct Judged {
    /// The ticks that were compared.
    ticks: usize,
    undetermined: Option<RandomCause>,
    /// The reason why the scenario was not run, if it was not.
    skipped: Option<String>,
    failure: Option<Failure>,
}

/// Runs the fuzzer, and passes its events to `sink`.
pub fn fuzz(
    plan: &FuzzPlan,
    engine: NewEngine<'_>,
    sink: &mut dyn FnMut(FuzzEvent),
) -> FuzzSummary {
    let mut coverage = Coverage::default();
    let worker = || Worker { plan, new: engine, engine: None };
    let run = |worker: &mut Worker<'_>, index| worker.run(index);
    let (mut summary, findings) = run_generated(
        plan.extent(),
        &worker,
        &run,
        &mut |Progress { summary, new_failure }, reached| {
            coverage.merge(&reached);
            if let Some((index, kind)) = new_failure {
                sink(FuzzEvent::Failed { index, kind: kind.to_owned() });
            }
            let FuzzSummary { scenarios, ticks, elapsed, .. } = *summary;
            sink(FuzzEvent::Progress { scenarios, ticks, elapsed });
        },
    );
    summary.coverage = coverage.groups();
    if summary.ticks == 0 && summary.divergences == 0 {
        // The failures are not caused by a scenario: there is nothing to shrink.
        return summary;
    }
    for finding in findings {
        sink(FuzzEvent::Found(Box::new(smaller(plan, engine, finding))));
    }
    summary
}

/// The number of scenarios in a row for which all metrics are observed, or not.
const ALL_METRICS_BLOCK: u64 = 64;

struct Worker<'a> {
    plan: &'a FuzzPlan,
    new: NewEngine<'a>,
    engine: Option<Box<dyn Engine>>,
}

impl Worker<'_> {
    fn run(&mut self, index: u64) -> (Ran<Arc<Scenario>>, Coverage) {
        let plan = self.plan;
        let mut scenario = fuzz::scenario(plan.seed, index, plan.release, &plan.areas);
        // They take a fifth of the time.
        scenario.observed.sent_events = index.is_multiple_of(2);
        // They cost most, and a process that has observed them is replaced: hence whole blocks.
        scenario.observed.all_metrics = (index / ALL_METRICS_BLOCK).is_multiple_of(16);
        let scenario = Arc::new(scenario);
        let mut coverage = Coverage::default();
        coverage.begin(&scenario, plan.release);
        let watch = &mut |decision: &Decision| coverage.add(decision);
        let Judged { ticks, undetermined, skipped, failure } = self.judge(&scenario, watch);
        let failed = failure.map(|failure| Failed { kind: failure.kind(), scenario, failure });
        (Ran { ticks, undetermined, skipped, failed }, coverage)
    }

    fn judge(&mut self, scenario: &Arc<Scenario>, watch: &mut dyn FnMut(&Decision)) -> Judged {
        let mut engine = self.engine.take().unwrap_or_else(self.new);
        let known = &self.plan.known;
        let outcome = match caught(|| run_watched(scenario, &mut *engine, known, watch)) {
            Ok(outcome) => outcome,
            // The state of the engine is unknown: the next scenario gets a new engine.
            Err(message) => {
                let failure = Some(Failure::Panic(message));
                return Judged { failure, ..Judged::default() };
            }
        };
        self.engine = Some(engine);
        let Outcome { ticks, undetermined, .. } = outcome;
        let (skipped, failed) = match &outcome.verdict {
            Verdict::Skipped { why } => (Some(why.clone()), false),
            Verdict::Conforms => (None, false),
            _ => (None, undetermined.is_none()),
        };
        let failure = failed.then(|| Failure::Outcome(Box::new(outcome)));
        Judged { ticks, undetermined, skipped, failure }
    }
}

/// The replicas that a decision depends on; the target's replicas are last.
fn replicas_of(derivation: &Derivation) -> Vec<i32> {
    let rate = derivation.limits.as_ref().and_then(|limits| limits.rate.as_ref());
    let starts = match rate {
        Some(RateLimit::Policies { policies, .. }) => policies.as_slice(),
        _ => &[],
    };
    let starts = starts.iter().map(|policy| policy.period_start);
    let replicas = [derivation.desired_replicas].into_iter().chain(starts);
    replicas.chain(derivation.current_replicas).collect()
}

/// Shrinks the scenario of a failure until the run is stopped. Returns the failure unchanged if no
/// smaller scenario fails.
fn smaller(plan: &FuzzPlan, engine: NewEngine<'_>, finding: Finding) -> Finding {
    let mut worker = Worker { plan, new: engine, engine: None };
    let mut last: Option<(Arc<Scenario>, Failure)> = None;
    let mut fails = |scenario: &Arc<Scenario>| {
        if plan.is_stopped() {
            return None;
        }
        let mut replicas = Vec::new();
        let watch = &mut |decision: &Decision| replicas.extend(replicas_of(&decision.derivation));
        let Judged { failure, .. } = worker.judge(scenario, watch);
        replicas.reverse();
        let failure = failure.filter(|failure| finding.failure.is_like(failure))?;
        let at = failure.at(scenario);
        last = Some((scenario.clone(), failure));
        Some(FailurePoint { at, replicas })
    };
    let shrunk = fuzz::shrink(&finding.scenario, plan.shrinking, &mut fails);
    let cut_short = plan.is_stopped();
    match (shrunk, last) {
        (Some(shrunk), Some((scenario, failure))) => {
            Finding { scenario, failure, tried: shrunk.tried, cut_short, ..finding }
        }
        _ => Finding { cut_short, ..finding },
    }
}
