//! Runs generated scenarios until the fuzzer reaches its limit, and counts their results in the
//! order of their indices: for HPAs, and for the VPA recommender.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::fuzz_findings::{Failure, Finding, FuzzSummary, MAX_WITHOUT_TICKS, RunLimit};
use kube_lockstep_sim::run::in_order::in_order;
use kube_lockstep_sim::run::{RandomCause, Shard};

/// The scenarios to run, and when the run ends.
#[derive(Clone, Copy)]
pub(super) struct Extent<'a> {
    pub limit: RunLimit,
    pub shard: Shard,
    /// The number of workers, at least 1.
    pub jobs: usize,
    pub max_findings: usize,
    pub stop: &'a CancellationToken,
}

/// The result of one generated scenario.
pub(super) struct Ran<S> {
    /// The ticks that were compared.
    pub ticks: usize,
    pub undetermined: Option<RandomCause>,
    /// The reason why the scenario was not run, if it was not.
    pub skipped: Option<String>,
    pub failed: Option<Failed<S>>,
}

/// The failure of a generated scenario.
pub(crate) struct Failed<S> {
    pub kind: String,
    pub scenario: Arc<S>,
    /// The tree of its file.
    pub tree: Value,
    pub failure: Failure,
}

/// The figures after a scenario.
pub(crate) struct Progress<'a> {
    pub summary: &'a FuzzSummary,
    /// The index and the kind of the scenario's failure, if it is the first of its kind.
    pub(super) new_failure: Option<(u64, &'a str)>,
}

/// Runs scenarios in the order of their indices. `worker` creates a worker, and `run` runs the
/// scenario with an index on it. After each scenario, `done` receives the figures and the second
/// value that `run` returns. Returns the figures, and the first failure of each kind, in the order
/// of the indices.
pub(super) fn run_generated<W, R: Send, S: Send + Sync>(
    extent: Extent<'_>,
    worker: &(impl Fn() -> W + Sync),
    run: &(impl Fn(&mut W, u64) -> (Ran<S>, R) + Sync),
    done: &mut dyn FnMut(Progress<'_>, R),
) -> (FuzzSummary, Vec<Finding<S>>) {
    let begin = Instant::now();
    let index_of = |number| extent.shard.nth(number) as u64;
    let is_late = || matches!(extent.limit, RunLimit::Time(time) if begin.elapsed() >= time);
    let is_over = || extent.stop.is_cancelled() || is_late();
    let work = |worker: &mut W, number| (!is_over()).then(|| run(worker, index_of(number)));
    let tick_limit = match extent.limit {
        RunLimit::Ticks(ticks) => extent.shard.share(ticks),
        RunLimit::Time(_) => usize::MAX,
    };
    let mut summary = FuzzSummary::default();
    let mut kinds: BTreeMap<String, Finding<S>> = BTreeMap::new();
    let mut without_ticks = 0;
    in_order(extent.jobs, worker, &work, &mut |number, (ran, rest)| {
        let is_without_ticks = ran.ticks == 0 && (ran.failed.is_some() || ran.skipped.is_some());
        without_ticks = if is_without_ticks { without_ticks + 1 } else { 0 };
        let new_failure = count(ran, index_of(number), &mut summary, &mut kinds);
        summary.elapsed = begin.elapsed();
        let new_failure = new_failure.as_deref().map(|kind| (index_of(number), kind));
        done(Progress { summary: &summary, new_failure }, rest);
        summary.ticks < tick_limit
            && without_ticks < MAX_WITHOUT_TICKS
            && kinds.len() < extent.max_findings
            && !is_over()
    });
    summary.elapsed = begin.elapsed();
    summary.interrupted = extent.stop.is_cancelled();
    let mut findings: Vec<Finding<S>> = kinds.into_values().collect();
    findings.sort_by_key(|finding| finding.index);
    (summary, findings)
}

/// Counts a result. Returns the kind of its failure, if it is the first of its kind.
fn count<S>(
    ran: Ran<S>,
    index: u64,
    summary: &mut FuzzSummary,
    kinds: &mut BTreeMap<String, Finding<S>>,
) -> Option<String> {
    summary.scenarios += usize::from(ran.skipped.is_none());
    summary.ticks += ran.ticks;
    if let Some(cause) = ran.undetermined {
        *summary.undetermined.entry(cause).or_default() += 1;
    }
    if let Some(why) = ran.skipped {
        *summary.skipped.entry(why).or_default() += 1;
    }
    let Failed { kind, scenario, tree, failure } = ran.failed?;
    *failure.count(summary) += 1;
    if let Some(known) = kinds.get_mut(&kind) {
        known.times += 1;
        return None;
    }
    let first = Finding {
        index,
        times: 1,
        kind: kind.clone(),
        scenario,
        tree,
        failure,
        tried: 0,
        cut_short: false,
    };
    kinds.insert(kind.clone(), first);
    Some(kind)
}
