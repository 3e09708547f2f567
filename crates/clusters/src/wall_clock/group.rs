//! Runs scenarios in parallel on one cluster, and retries scenarios without a verdict.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use tokio::select;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::{Id, JoinError, JoinSet};

use super::attempt::{On, attempt};
use super::preparation::PreparedScenario;
use super::retries::Attempts;
use super::uncertainty::History;
use crate::cluster::Cluster;
use kube_autoscaler_models::rules::Release;
use kube_lockstep_engines::plan::{Compared, Plan};
use kube_lockstep_sim::engine::EngineError;
use kube_lockstep_sim::run::findings::Findings;
use kube_lockstep_sim::run::lockstep::{conclude, inconclusive, trace_of, unfinished};
use kube_lockstep_sim::run::panic::message;
use kube_lockstep_sim::run::{Outcome, Verdict};

/// The number of retries that run at a time.
const RETRIES: usize = 12;

/// The state that all clusters of a release share.
pub(super) struct ReleaseRun {
    pub plan: Arc<Plan>,
    pub name: Arc<str>,
    release: Release,
    /// The number of scenarios that have started.
    pub started: watch::Sender<usize>,
    /// Limits the scenarios that run at a time, on all clusters together.
    slots: Semaphore,
    /// Limits the retries among them.
    retry_slots: Arc<Semaphore>,
    /// The earliest end of the longest scenario.
    end: Instant,
}

impl ReleaseRun {
    pub(super) fn new<'a>(
        plan: Arc<Plan>,
        name: Arc<str>,
        release: Release,
        scenarios: impl IntoIterator<Item = &'a PreparedScenario>,
    ) -> ReleaseRun {
        let longest = scenarios.into_iter().map(PreparedScenario::duration).max();
        let end = Instant::now() + longest.unwrap_or_default();
        let slots = Semaphore::new(plan.jobs.max(1));
        let retry_slots = Arc::new(Semaphore::new(RETRIES));
        ReleaseRun { plan, name, release, started: watch::Sender::new(0), slots, retry_slots, end }
    }

    /// The outcomes of scenarios without a verdict, because their cluster can't be started.
    pub(super) fn fail(&self, scenarios: &[PreparedScenario], error: &EngineError) -> Vec<Outcome> {
        self.started.send_modify(|started| *started += scenarios.len());
        let fail = |scenario| self.unfinished(scenario, inconclusive(error.clone()));
        scenarios.iter().map(fail).collect()
    }

    fn unfinished(&self, scenario: &PreparedScenario, verdict: Verdict) -> Outcome {
        Outcome { verdict, ..unfinished(&scenario.written, &self.name, self.release) }
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.plan.stop.is_cancelled()
    }
}

/// Runs scenarios in parallel on one cluster.
pub(super) struct GroupRun {
    run: Arc<ReleaseRun>,
    cluster: Arc<Cluster>,
    queue: Queue,
    tasks: JoinSet<Option<Attempted>>,
    /// The running attempts, by task.
    running: HashMap<Id, Attempt>,
}

impl GroupRun {
    pub(super) fn new(
        run: Arc<ReleaseRun>,
        scenarios: Vec<PreparedScenario>,
        cluster: Cluster,
    ) -> GroupRun {
        let (cluster, queue) = (Arc::new(cluster), Queue::new(scenarios, run.end));
        GroupRun { run, cluster, queue, tasks: JoinSet::new(), running: HashMap::new() }
    }

    /// Runs all scenarios. A scenario without a verdict is retried when the others have started, so
    /// that a busy machine has more time for it, or earlier if it is long.
    pub(super) async fn run(&mut self, done: &mut dyn FnMut(Outcome)) {
        loop {
            while self.start_next() {}
            let may_retry = self.has_room() && self.queue.due().is_some();
            let retry_slots = self.run.retry_slots.clone();
            select! {
                Some(ended) = self.tasks.join_next_with_id() => {
                    self.ended(ended).into_iter().for_each(&mut *done);
                }
                Ok(slot) = retry_slots.acquire_owned(), if may_retry => {
                    if let Some(retry) = self.queue.retry() {
                        self.start(retry, Some(slot));
                    }
                }
                else => return,
            }
        }
    }

    /// Ends all attempts. Returns the cluster, which is no longer in use.
    pub(super) async fn end(mut self) -> Option<Cluster> {
        self.tasks.shutdown().await;
        Arc::into_inner(self.cluster)
    }

    fn has_room(&self) -> bool {
        self.tasks.len() < self.run.plan.jobs.max(1) && !self.run.is_stopped()
    }

    /// Starts the next attempt that need not wait. Returns false if no attempt was started.
    fn start_next(&mut self) -> bool {
        if !self.has_room() {
            return false;
        }
        if self.queue.due().is_some()
            && let Ok(slot) = self.run.retry_slots.clone().try_acquire_owned()
            && let Some(retry) = self.queue.retry()
        {
            self.start(retry, Some(slot));
            return true;
        }
        let first = self.queue.first();
        first.map(|first| self.start(first, None)).is_some()
    }

    fn start(&mut self, mut attempt: Attempt, retry_slot: Option<OwnedSemaphorePermit>) {
        let Some(scenario) = self.queue.scenarios.get(attempt.index).cloned() else { return };
        let task = Task {
            run: self.run.clone(),
            cluster: self.cluster.clone(),
            scenario,
            is_first: attempt.attempts.is_first(),
            history: std::mem::take(&mut attempt.history),
            _retry_slot: retry_slot,
        };
        self.running.insert(self.tasks.spawn(task.run()).id(), attempt);
    }

    /// The outcome of an attempt, unless the scenario is retried or the run was stopped.
    fn ended(&mut self, ended: Result<(Id, Option<Attempted>), JoinError>) -> Option<Outcome> {
        let id = match &ended {
            Ok((id, _)) => *id,
            Err(error) => error.id(),
        };
        let mut attempt = self.running.remove(&id)?;
        self.queue.unfinished -= usize::from(attempt.attempts.is_first());
        let outcome = match ended {
            Ok((_, attempted)) => {
                let Attempted { outcome, history } = attempted?;
                attempt.history = history;
                outcome
            }
            // After a panic of this program, only the scenario of that task has no verdict.
            Err(error) => {
                let (why, output) = (panicked(error), String::new());
                let verdict = Verdict::Inconclusive { why, output };
                self.run.unfinished(self.queue.scenarios.get(attempt.index)?, verdict)
            }
        };
        // A retry on a broken cluster would fail, too.
        let can_retry = || !self.run.is_stopped() && self.cluster.check().is_ok();
        let outcome = attempt.attempts.ended(outcome, can_retry);
        if outcome.is_none() {
            self.queue.waiting.push_back(attempt);
        }
        outcome
    }
}

/// The message of a task that panicked.
fn panicked(error: JoinError) -> String {
    match error.try_into_panic() {
        Ok(panic) => format!("the harness panicked: {}", message(&*panic)),
        Err(error) => error.to_string(),
    }
}

/// The result of an attempt.
struct Attempted {
    outcome: Outcome,
    history: History,
}

/// One attempt at a scenario.
struct Task {
    run: Arc<ReleaseRun>,
    cluster: Arc<Cluster>,
    scenario: PreparedScenario,
    is_first: bool,
    history: History,
    /// Held by a retry until it has ended.
    _retry_slot: Option<OwnedSemaphorePermit>,
}

impl Task {
    /// Runs the scenario when a slot is free. Returns `None` if the run was stopped before.
    async fn run(mut self) -> Option<Attempted> {
        let run = self.run.clone();
        // The semaphore is never closed.
        let _slot = run.slots.acquire().await;
        if run.is_stopped() {
            return None;
        }
        if self.is_first {
            run.started.send_modify(|started| *started += 1);
        }
        let outcome = self.outcome().await;
        Some(Attempted { outcome, history: self.history })
    }

    async fn outcome(&mut self) -> Outcome {
        let begin = Instant::now();
        let Task { run, cluster, scenario, history, .. } = self;
        let ReleaseRun { plan, name, release, .. } = &**run;
        let mut outcome = unfinished(&scenario.written, name, *release);
        let trace = trace_of(&scenario.written, name, &release.to_string());
        let findings = Findings::new(trace, &plan.known);
        let compared = plan.cluster.controller.as_ref().map_or(Compared::All, |own| own.compared);
        let on = On { cluster, stop: &plan.stop, compared };
        let attempted = attempt(&scenario.prepared, *release, on, history, findings).await;
        let registration_lost = match &attempted {
            Ok(attempted) if attempted.findings.comparison.divergence.is_some() => {
                cluster.registration_lost().await
            }
            _ => None,
        };
        match registration_lost.map_or(attempted, Err) {
            Ok(attempted) => {
                conclude(&mut outcome, &scenario.prepared, *release, attempted.findings);
                outcome.ambiguous_ticks = attempted.ambiguous_ticks;
                if let Some(what) = ambiguous(attempted.ambiguous_ticks, outcome.ticks) {
                    outcome.note(what);
                }
                attempted.notes.into_iter().for_each(|what| outcome.note(what));
                let is_unmet = outcome.verdict == Verdict::Unmet;
                if let Some(uncertainty) = attempted.uncertainty.filter(|_| is_unmet) {
                    outcome.verdict = inconclusive(cluster.with_tail(uncertainty));
                }
            }
            Err(error) => outcome.verdict = inconclusive(cluster.with_tail(error)),
        }
        outcome.elapsed = begin.elapsed();
        outcome
    }
}

/// The note on ticks for which the model allows several outcomes.
fn ambiguous(ambiguous: usize, ticks: usize) -> Option<String> {
    (ambiguous > 0).then(|| {
        format!(
            "{ambiguous} of {ticks} ticks are ambiguous: at a boundary in time, or during a change \
             of the cluster, the model allows several outcomes; the observed one was accepted"
        )
    })
}

/// A waiting or running attempt at a scenario.
struct Attempt {
    index: usize,
    /// The earlier attempts.
    attempts: Attempts,
    /// The uncertainties of these attempts.
    history: History,
}

/// The scenarios of a group to run, the longest first, and the scenarios to retry.
struct Queue {
    scenarios: Vec<PreparedScenario>,
    /// The index of the next scenario that has not started.
    next: usize,
    /// The number of first attempts that have not ended.
    unfinished: usize,
    /// The retries.
    waiting: VecDeque<Attempt>,
    /// The earliest end of the longest scenario of the release.
    end: Instant,
}

impl Queue {
    fn new(scenarios: Vec<PreparedScenario>, end: Instant) -> Queue {
        Queue { next: 0, unfinished: scenarios.len(), scenarios, waiting: VecDeque::new(), end }
    }

    /// Takes the next first attempt.
    fn first(&mut self) -> Option<Attempt> {
        let index = self.next;
        self.scenarios.get(index)?;
        self.next += 1;
        Some(Attempt { index, attempts: Attempts::new(1), history: History::default() })
    }

    /// Takes a retry that is due.
    fn retry(&mut self) -> Option<Attempt> {
        self.waiting.remove(self.due()?)
    }

    /// The position, in the queue, of the retry that is due now.
    fn due(&self) -> Option<usize> {
        let next = self.scenarios.get(self.next);
        let is_due = |attempt: &Attempt| match (next, self.scenarios.get(attempt.index)) {
            // The run would have to wait for this retry: it is much longer than the remaining
            // scenarios, or it would end later than the longest scenario.
            (Some(next), Some(own)) => {
                let is_long = own.length().0 > next.length().0 * 2;
                let now = Instant::now();
                let is_late = now < self.end && now + own.duration() > self.end;
                !attempt.attempts.is_last() && (is_long || is_late)
            }
            // The last attempt does not run in parallel with first attempts.
            _ => !attempt.attempts.is_last() || self.unfinished == 0,
        };
        self.waiting.iter().position(is_due)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use kube_autoscaler_models::time::Time;
    use kube_lockstep_scenario::Scenario;

    /// A queue of scenarios of these lengths, in minutes.
    fn queue(minutes: &[i64], end: Instant) -> Queue {
        let id = "tolerance/just-above-the-upper-edge-scales-up";
        let scenario = super::super::preparation::tests::fixture(id);
        let part = |minutes: &i64| {
            let until = Time(minutes * 60_000_000_000);
            let prepared = Arc::new(Scenario { until, ..(*scenario).clone() });
            PreparedScenario { written: scenario.clone(), prepared }
        };
        Queue::new(minutes.iter().map(part).collect(), end)
    }

    /// The scenario that runs next, and its number of earlier attempts.
    fn next(queue: &mut Queue) -> Option<(usize, usize)> {
        let attempt = queue.retry().or_else(|| queue.first())?;
        Some((attempt.index, attempt.attempts.retries()))
    }

    /// A time after the end of all scenarios.
    fn later() -> Instant {
        Instant::now() + Duration::from_secs(3600)
    }

    fn fails(queue: &mut Queue, index: usize, times: usize) {
        let attempts = super::super::retries::tests::failed(times);
        queue.waiting.push_back(Attempt { index, attempts, history: History::default() });
    }

    #[test]
    fn long_scenarios_are_not_delayed() {
        let mut queue = queue(&[10, 9, 3, 3], later());
        assert_eq!(next(&mut queue), Some((0, 0)));
        fails(&mut queue, 0, 1);
        assert_eq!(next(&mut queue), Some((1, 0)), "the next one is nearly as long");
        assert_eq!(next(&mut queue), Some((0, 1)), "the others are short");
        fails(&mut queue, 0, 2);
        assert_eq!(next(&mut queue), Some((0, 2)), "the third attempt");
        fails(&mut queue, 1, 3);
        assert_eq!(next(&mut queue), Some((2, 0)), "the last attempt waits");
        assert_eq!(next(&mut queue), Some((3, 0)));
        queue.waiting.clear();
        fails(&mut queue, 0, 3);
        fails(&mut queue, 2, 1);
        assert_eq!(next(&mut queue), Some((2, 1)), "the last attempt waits for all others");
        assert_eq!(next(&mut queue), None);
        queue.unfinished = 0;
        assert_eq!(next(&mut queue), Some((0, 3)));
        assert_eq!(next(&mut queue), None);
    }

    #[test]
    fn the_last_scenario_to_end_is_not_delayed() {
        let mut queue = queue(&[10, 10, 10], Instant::now() + Duration::from_secs(300));
        assert_eq!(next(&mut queue), Some((0, 0)));
        fails(&mut queue, 0, 1);
        assert_eq!(next(&mut queue), Some((0, 1)), "otherwise it would end after the deadline");
        fails(&mut queue, 0, 3);
        assert_eq!(next(&mut queue), Some((1, 0)), "the last attempt waits");
    }

    #[tokio::test]
    async fn panics_are_caught_with_their_message() {
        let number = Vec::<usize>::new().len();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move { [1, 2].get(number + 2).copied().expect("a third one") });
        let ended = tasks.join_next().await.expect("a task");
        assert_eq!(panicked(ended.expect_err("it panics")), "the harness panicked: a third one");
    }
}
