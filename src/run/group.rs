//! Scenarios that are played side by side on one cluster.

use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures::FutureExt;
use tokio::runtime::Runtime;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::sleep;

use crate::engine::EngineError;
use crate::engine::cluster::Cluster;
use crate::model::rules::Release;
use crate::model::time::Time;
use crate::run::Outcome;
use crate::run::Verdict;
use crate::run::findings::Findings;
use crate::run::fuzzing::message;
use crate::run::in_order::as_they_come;
use crate::run::lockstep::conclude;
use crate::run::lockstep::inconclusive;
use crate::run::lockstep::trace_of;
use crate::run::lockstep::unfinished;
use crate::run::plan::{Compared, Plan};
use crate::run::wall_clock::{self, History, On};
use crate::scenario::Scenario;

/// How many are played at a time that had no verdict at first.
const AGAIN: usize = 12;

/// How often a scenario is played at most.
const MOST_TIMES: usize = 4;

/// How often it is looked whether something has come about, by each that has nothing else to do.
const GLANCE: Duration = Duration::from_millis(250);

/// A scenario of the plan: as it is written, and as it is played.
pub(super) struct Part {
    pub(super) written: Arc<Scenario>,
    pub(super) played: Arc<Scenario>,
}

impl Part {
    /// How long it is played.
    pub(super) fn length(&self) -> Time {
        self.played.until
    }

    fn duration(&self) -> Duration {
        Duration::from_nanos(self.length().0.unsigned_abs())
    }
}

/// What all clusters of a release have in common.
pub(super) struct Course<'a> {
    pub(super) plan: &'a Plan,
    pub(super) name: &'a Arc<str>,
    pub(super) release: Release,
    /// As many scenarios are played at a time, on all clusters together.
    turns: Semaphore,
    /// As many of them that are played again.
    again: Arc<Semaphore>,
    /// How many have begun.
    begun: AtomicUsize,
    /// When at the earliest what takes longest will be over.
    ends: Instant,
}

impl Course<'_> {
    pub(super) fn new<'a>(
        plan: &'a Plan,
        (name, release): (&'a Arc<str>, Release),
        parts: impl IntoIterator<Item = &'a Part>,
    ) -> Course<'a> {
        let longest = parts.into_iter().map(Part::duration).max();
        let ends = Instant::now() + longest.unwrap_or_default();
        let turns = Semaphore::new(plan.jobs.max(1));
        let begun = AtomicUsize::new(0);
        let again = Arc::new(Semaphore::new(AGAIN));
        Course { plan, name, release, turns, again, begun, ends }
    }

    /// Scenarios that have no verdict, since their cluster can't be had.
    pub(super) fn fail(&self, parts: &[Part], error: &EngineError, done: &mut dyn FnMut(Outcome)) {
        self.begun.fetch_add(parts.len(), Ordering::Relaxed);
        for part in parts {
            let mut outcome = unfinished(&part.written, self.name, self.release);
            outcome.verdict = inconclusive(error.clone());
            done(outcome);
        }
    }

    /// Whether so many have begun.
    pub(super) fn have_begun(&self, scenarios: usize) -> bool {
        self.begun.load(Ordering::Relaxed) >= scenarios
    }
}

/// Scenarios that are played on one cluster.
pub(super) struct Group<'a> {
    pub(super) course: &'a Course<'a>,
    pub(super) parts: &'a [Part],
    pub(super) cluster: &'a Cluster,
}

impl Group<'_> {
    /// Plays all of them side by side. Those without a verdict are played again when the others
    /// have begun, and a machine that was too busy has the time; or before, if they take long.
    pub(super) fn play(&self, runtime: &Runtime, done: &mut dyn FnMut(Outcome)) {
        let queue = Queue::new(self.parts, self.course.again.clone(), self.course.ends);
        let work = |(): &mut (), _: usize| {
            runtime.block_on(async {
                let (attempt, _turn) = queue.next().await?;
                let is_first = attempt.before.is_empty();
                let outcome = self.attempt(attempt, &queue).await;
                if is_first {
                    queue.unfinished.fetch_sub(1, Ordering::Release);
                }
                Some(outcome)
            })
        };
        let workers = self.course.plan.jobs.clamp(1, self.parts.len().max(1));
        as_they_come(workers, &|| (), &work, &mut |_, outcome| {
            outcome.into_iter().for_each(&mut *done);
            true
        });
    }

    /// Plays one when its turn has come. Nothing if it is to be played again, or if all is to end.
    async fn attempt(&self, mut attempt: Attempt, queue: &Queue<'_>) -> Option<Outcome> {
        // It is never closed.
        let _turn = self.course.turns.acquire().await;
        if self.course.plan.stop.load(Ordering::Relaxed) {
            return None;
        }
        if attempt.before.is_empty() {
            self.course.begun.fetch_add(1, Ordering::Relaxed);
        }
        let part = self.parts.get(attempt.index)?;
        let mut outcome = self.without_panic(part, self.one(part, &mut attempt.history)).await;
        outcome.retries = attempt.before.len();
        if let Verdict::Inconclusive { why, .. } = &outcome.verdict
            && outcome.retries + 1 < MOST_TIMES
            && !self.course.plan.stop.load(Ordering::Relaxed)
            // One that is broken will be no better then.
            && self.cluster.check().is_ok()
        {
            queue.waiting().push_back(attempt.and(why.clone()));
            return None;
        }
        if let Some(why) = attempt.before.last() {
            let times = match outcome.retries {
                1 => "once".to_owned(),
                2 => "twice".to_owned(),
                many => format!("{many} times"),
            };
            outcome
                .note(format!("it was retried {times}; the last attempt without a verdict: {why}"));
        }
        Some(outcome)
    }

    /// A slip in this program costs one scenario its verdict, and no other.
    async fn without_panic(&self, part: &Part, one: impl Future<Output = Outcome>) -> Outcome {
        let Course { name, release, .. } = *self.course;
        or_its_message(one).await.unwrap_or_else(|message| {
            let mut outcome = unfinished(&part.written, name, release);
            let (why, output) = (format!("the harness panicked: {message}"), String::new());
            outcome.verdict = Verdict::Inconclusive { why, output };
            outcome
        })
    }

    async fn one(&self, part: &Part, history: &mut History) -> Outcome {
        let begin = Instant::now();
        let Course { plan, name, release, .. } = *self.course;
        let mut outcome = unfinished(&part.written, name, release);
        let trace = trace_of(&part.written, name, &release.to_string());
        let findings = Findings::new(trace, &plan.known);
        let compared = plan.cluster.controller.as_ref().map_or(Compared::All, |own| own.compared);
        let on = On { cluster: self.cluster, stop: &plan.stop, compared };
        let followed = wall_clock::attempt(&part.played, release, on, history, findings).await;
        let registration_lost = match &followed {
            Ok(followed) if followed.findings.divergence.is_some() => {
                self.cluster.registration_lost().await
            }
            _ => None,
        };
        match registration_lost.map_or(followed, Err) {
            Ok(followed) => {
                conclude(&mut outcome, (&part.played, release), followed.findings);
                outcome.ambiguous_ticks = followed.ambiguous_ticks;
                if let Some(what) = ambiguous(followed.ambiguous_ticks, outcome.ticks) {
                    outcome.note(what);
                }
                followed.notes.into_iter().for_each(|what| outcome.note(what));
                let unexpected = outcome.verdict == Verdict::Unexpected;
                if let Some(uncertainty) = followed.uncertainty.filter(|_| unexpected) {
                    outcome.verdict = inconclusive(self.cluster.with_tail(uncertainty));
                }
            }
            Err(error) => outcome.verdict = inconclusive(self.cluster.with_tail(error)),
        }
        outcome.elapsed = begin.elapsed();
        outcome
    }
}

/// What a future comes to, or what it said when it panicked.
async fn or_its_message<T>(future: impl Future<Output = T>) -> Result<T, String> {
    let caught = AssertUnwindSafe(future).catch_unwind().await;
    caught.map_err(|panic| message(&*panic))
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

/// A scenario's turn.
struct Attempt {
    index: usize,
    /// Why there was no verdict, each time that it was played before.
    before: Vec<String>,
    /// The uncertainties of these attempts.
    history: History,
}

impl Attempt {
    fn first(index: usize) -> Attempt {
        Attempt { index, before: Vec::new(), history: History::default() }
    }

    /// The next one.
    fn and(mut self, why: String) -> Attempt {
        self.before.push(why);
        self
    }
}

/// Scenarios that are to be played, what takes longest first.
struct Queue<'a> {
    parts: &'a [Part],
    /// How many have begun for the first time.
    begun: AtomicUsize,
    /// How many have not been played to their end for the first time.
    unfinished: AtomicUsize,
    /// Those that have had no verdict.
    again: Mutex<VecDeque<Attempt>>,
    /// Of those.
    turns: Arc<Semaphore>,
    /// When at the earliest what takes longest will be over.
    ends: Instant,
}

impl Queue<'_> {
    fn new(parts: &[Part], turns: Arc<Semaphore>, ends: Instant) -> Queue<'_> {
        let (begun, unfinished) = (AtomicUsize::new(0), AtomicUsize::new(parts.len()));
        Queue { parts, begun, unfinished, again: Mutex::default(), turns, ends }
    }

    fn waiting(&self) -> MutexGuard<'_, VecDeque<Attempt>> {
        self.again.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the next one. Nothing if there will be none any more.
    async fn next(&self) -> Option<(Attempt, Option<OwnedSemaphorePermit>)> {
        loop {
            // Those that are unfinished now may be among those that wait then.
            let unfinished = self.unfinished.load(Ordering::Acquire);
            if let Some((attempt, turn)) = self.again(unfinished) {
                return Some((attempt, Some(turn)));
            }
            let index = self.begun.fetch_add(1, Ordering::Relaxed);
            if index < self.parts.len() {
                return Some((Attempt::first(index), None));
            }
            if unfinished == 0 && self.waiting().is_empty() {
                return None;
            }
            sleep(GLANCE).await;
        }
    }

    /// One that is to be played again now.
    fn again(&self, unfinished: usize) -> Option<(Attempt, OwnedSemaphorePermit)> {
        let next = self.parts.get(self.begun.load(Ordering::Relaxed));
        let mut waiting = self.waiting();
        let is_due = |attempt: &Attempt| match (next, self.parts.get(attempt.index)) {
            // All others would have to wait for it: it is so much longer than those that are left,
            // or it would be over later than what takes longest.
            (Some(next), Some(own)) => {
                let is_long = own.length().0 > next.length().0 * 2;
                let now = Instant::now();
                let is_late = now < self.ends && now + own.duration() > self.ends;
                attempt.before.len() < MOST_TIMES - 1 && (is_long || is_late)
            }
            // The last time it is not among those that are played for the first time.
            _ => attempt.before.len() + 1 < MOST_TIMES || unfinished == 0,
        };
        let place = waiting.iter().position(is_due)?;
        let turn = self.turns.clone().try_acquire_owned().ok()?;
        Some((waiting.remove(place)?, turn))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parts of these lengths, in minutes.
    fn parts(minutes: &[i64]) -> Vec<Part> {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/fixtures/tolerance/just-above-the-upper-edge-scales-up.yaml"
        );
        let text = std::fs::read_to_string(path).expect("a fixture");
        let scenario = crate::scenario::parse("it", &text, &|_| Err(String::new())).expect("it");
        let part = |minutes: &i64| {
            let until = Time(minutes * 60_000_000_000);
            let played = Arc::new(Scenario { until, ..scenario.clone() });
            Part { written: played.clone(), played }
        };
        minutes.iter().map(part).collect()
    }

    /// What is played next, and how often it was played before.
    async fn next(queue: &Queue<'_>) -> Option<(usize, usize)> {
        let (attempt, _turn) = queue.next().await?;
        Some((attempt.index, attempt.before.len()))
    }

    /// When there is time for all of them.
    fn later() -> Instant {
        Instant::now() + Duration::from_secs(3600)
    }

    fn fails(queue: &Queue<'_>, index: usize, times: usize) {
        let before = vec![String::new(); times];
        queue.waiting().push_back(Attempt { index, before, history: History::default() });
    }

    #[tokio::test]
    async fn long_scenarios_are_not_delayed() {
        let parts = parts(&[10, 9, 3, 3]);
        let queue = Queue::new(&parts, Arc::new(Semaphore::new(2)), later());
        assert_eq!(next(&queue).await, Some((0, 0)));
        fails(&queue, 0, 1);
        assert_eq!(next(&queue).await, Some((1, 0)), "the next one is nearly as long");
        assert_eq!(next(&queue).await, Some((0, 1)), "the others are short");
        fails(&queue, 0, 2);
        assert_eq!(next(&queue).await, Some((0, 2)), "and once more");
        fails(&queue, 1, 3);
        assert_eq!(next(&queue).await, Some((2, 0)), "but not the last time");
        assert_eq!(next(&queue).await, Some((3, 0)));
        queue.waiting().clear();
        fails(&queue, 0, 3);
        fails(&queue, 2, 1);
        assert_eq!(next(&queue).await, Some((2, 1)), "the last time when all others are over");
        queue.unfinished.store(0, Ordering::Release);
        assert_eq!(next(&queue).await, Some((0, 3)));
        assert_eq!(next(&queue).await, None);
    }

    #[tokio::test]
    async fn the_last_scenario_to_end_is_not_delayed() {
        let parts = parts(&[10, 10, 10]);
        let turns = Arc::new(Semaphore::new(2));
        let queue = Queue::new(&parts, turns, Instant::now() + Duration::from_secs(300));
        assert_eq!(next(&queue).await, Some((0, 0)));
        fails(&queue, 0, 1);
        assert_eq!(next(&queue).await, Some((0, 1)), "it would be over five minutes later");
        fails(&queue, 0, 3);
        assert_eq!(next(&queue).await, Some((1, 0)), "but not the last time");
    }

    #[tokio::test]
    async fn the_number_of_parallel_retries_is_limited() {
        let parts = parts(&[10, 3]);
        let queue = Queue::new(&parts, Arc::new(Semaphore::new(1)), later());
        assert_eq!(next(&queue).await, Some((0, 0)));
        fails(&queue, 0, 1);
        fails(&queue, 0, 1);
        let (first, turn) = queue.next().await.expect("one of them");
        assert_eq!((first.index, first.before.len(), turn.is_some()), (0, 1, true));
        assert_eq!(next(&queue).await, Some((1, 0)), "the other one has no turn");
        drop(turn);
        assert_eq!(next(&queue).await, Some((0, 1)));
    }

    #[tokio::test]
    async fn panics_are_caught_with_their_message() {
        let number = Vec::<usize>::new().len();
        let panics = async { [1, 2].get(number + 2).copied().expect("a third one") };
        assert_eq!(or_its_message(panics).await, Err("a third one".to_owned()));
        assert_eq!(or_its_message(async { 1 }).await, Ok(1));
    }
}
