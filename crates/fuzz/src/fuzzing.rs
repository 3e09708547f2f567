//! Runs many generated scenarios on one engine, and shrinks the failures.
//!
//! Each worker generates scenarios from their indices and runs them on its own engine. Results are
//! counted in the order of the indices, so a run ends at the same scenario with any number of
//! workers. Afterwards, one failure of each kind is shrunk.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::fuzz_findings::MAX_FINDINGS;
pub use crate::fuzz_findings::{Failure, Finding, FuzzSummary, RunLimit};
use crate::fuzzed::Fuzzed;
use crate::generated::{Extent, Failed, Progress, Ran, run_generated};
use crate::{Area, FailurePoint, Priority, Shrunk, shrink};
use kube_lockstep_scenario::Scenario;
use kube_lockstep_sim::compare::KnownDisagreement;
use kube_lockstep_sim::engine::{ControllerKind, Engine, Hpa};
pub use kube_lockstep_sim::run::panic::catches_panics;
use kube_lockstep_sim::run::panic::caught;
use kube_lockstep_sim::run::{Outcome, RandomCause, Shard, Verdict};

/// The release, areas and length of a run of the fuzzer.
#[derive(Clone, Debug)]
pub struct FuzzPlan<K: ControllerKind = Hpa> {
    /// The seed of the random number generator.
    pub seed: u64,
    /// When the run ends, for all shards together.
    pub limit: RunLimit,
    /// The shard to run: shard I/N runs every N-th scenario of the seed, from the I-th.
    pub shard: Shard,
    pub release: K::Release,
    /// The number of workers, at least 1.
    pub jobs: usize,
    /// The areas of scenarios of HPAs; empty: all.
    pub areas: Vec<Area>,
    /// The run ends when it has found this many kinds of failures.
    pub max_findings: usize,
    /// The maximum number of scenarios to try when shrinking a failure.
    pub shrinking: usize,
    /// A scenario whose expectations, and objects, all generated scenarios of HPAs have. The engine
    /// then has no model.
    pub template: Option<Arc<Scenario>>,
    /// Known disagreements.
    pub known: Vec<KnownDisagreement>,
    /// Cancelled from outside to end the run early. Failures that were found so far are reported,
    /// but not shrunk any further.
    pub stop: CancellationToken,
}

impl<K: Fuzzed> FuzzPlan<K> {
    /// A run of one worker over all areas, without known disagreements.
    #[must_use]
    pub fn new(seed: u64, limit: RunLimit, release: K::Release) -> FuzzPlan<K> {
        FuzzPlan {
            seed,
            limit,
            shard: Shard::WHOLE,
            release,
            jobs: 1,
            areas: Vec::new(),
            max_findings: MAX_FINDINGS,
            shrinking: K::SHRINKING,
            template: None,
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
pub enum FuzzEvent<S = Scenario> {
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
    Found(Box<Finding<S>>),
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
pub fn fuzz<K: Fuzzed>(
    plan: &FuzzPlan<K>,
    engine: NewEngine<'_, K>,
    sink: &mut dyn FnMut(FuzzEvent<K::Scenario>),
) -> FuzzSummary {
    let mut coverage = K::Coverage::default();
    let worker = || Worker { plan, new: engine, engine: None };
    let run = |worker: &mut Worker<'_, K>, index| worker.run(index);
    let (mut summary, findings) = run_generated(
        plan.extent(),
        &worker,
        &run,
        &mut |Progress { summary, new_failure }, reached| {
            K::merge(&mut coverage, &reached);
            if let Some((index, kind)) = new_failure {
                sink(FuzzEvent::Failed { index, kind: kind.to_owned() });
            }
            let FuzzSummary { scenarios, ticks, elapsed, .. } = *summary;
            sink(FuzzEvent::Progress { scenarios, ticks, elapsed });
        },
    );
    summary.is_without_model = plan.template.is_some();
    // Only the decisions of the model are counted.
    if !summary.is_without_model {
        summary.coverage = K::groups(&coverage);
    }
    if summary.ticks == 0 && summary.divergences == 0 {
        // The failures are not caused by a scenario: there is nothing to shrink.
        return summary;
    }
    for finding in findings {
        let mut smaller = smaller(plan, engine, finding);
        if plan.template.is_none() {
            add_source(&mut smaller.tree, K::source(plan.release));
        }
        sink(FuzzEvent::Found(Box::new(smaller)));
    }
    summary
}

struct Worker<'a, K: ControllerKind> {
    plan: &'a FuzzPlan<K>,
    new: NewEngine<'a, K>,
    engine: Option<Box<dyn Engine<K>>>,
}

impl<K: Fuzzed> Worker<'_, K> {
    fn run(&mut self, index: u64) -> (Ran<K::Scenario>, K::Coverage) {
        let plan = self.plan;
        let scenario = Arc::new(K::generate(plan, index));
        let mut coverage = K::Coverage::default();
        let Judged { ticks, undetermined, skipped, failure } =
            self.judge(|engine| K::run(&scenario, engine, &plan.known, &mut coverage));
        let failed = failure.map(|failure| {
            let tree = K::tree(plan, index, &scenario);
            Failed { kind: failure.kind(), scenario, tree, failure }
        });
        (Ran { ticks, undetermined, skipped, failed }, coverage)
    }

    fn judge(&mut self, run: impl FnOnce(&mut dyn Engine<K>) -> Outcome) -> Judged {
        let mut engine = self.engine.take().unwrap_or_else(self.new);
        let outcome = match caught(|| run(&mut *engine)) {
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
            Verdict::Skipped { why } => (Some(why.to_string()), false),
            Verdict::Conforms => (None, false),
            _ => (None, undetermined.is_none()),
        };
        let failure = failed.then(|| Failure::Outcome(Box::new(outcome)));
        Judged { ticks, undetermined, skipped, failure }
    }
}

/// Shrinks the scenario of a failure until the run is stopped. Returns the failure unchanged if no
/// smaller scenario fails.
fn smaller<K: Fuzzed>(
    plan: &FuzzPlan<K>,
    engine: NewEngine<'_, K>,
    finding: Finding<K::Scenario>,
) -> Finding<K::Scenario> {
    let mut worker = Worker { plan, new: engine, engine: None };
    let mut last: Option<Failure> = None;
    let path = format!("fuzz/{}-{}", plan.seed, finding.index);
    let mut fails = |scenario: &Arc<K::Scenario>| {
        if plan.is_stopped() {
            return None;
        }
        let mut replicas = Vec::new();
        let Judged { failure, .. } = worker.judge(|engine| {
            let (outcome, seen) = K::run_again(scenario, engine, &plan.known);
            replicas = seen;
            outcome
        });
        let failure = failure.filter(|failure| finding.failure.is_like(failure))?;
        let at = failure.at(K::until(scenario));
        last = Some(failure);
        Some(FailurePoint { at, replicas })
    };
    // What is expected stays as it is.
    let expected = finding.tree.get("expect").cloned();
    let read = |tree: &Value| {
        (tree.get("expect") == expected.as_ref()).then(|| K::read(&path, tree)).flatten()
    };
    let shrunk = shrink(finding.tree.clone(), plan.shrinking, Priority::Ticks, &read, &mut fails);
    let cut_short = plan.is_stopped();
    match (shrunk, last) {
        (Some(Shrunk { scenario, tree, tried }), Some(failure)) => {
            Finding { scenario, tree, failure, tried, cut_short, ..finding }
        }
        _ => Finding { cut_short, ..finding },
    }
}

/// Adds the link to upstream's source to the tree of a file.
fn add_source(tree: &mut Value, source: String) {
    if let Some(fields) = tree.as_object_mut() {
        let place = fields.keys().position(|name| name == "requirement").map_or(0, |at| at + 1);
        fields.shift_insert(place, "upstream".to_owned(), source.into());
    }
}
