//! The controller's work queue.
//!
//! As in client-go there are two queues: keys that wait for their time, and keys that are ready. A
//! waiting key has one entry, whose time only ever becomes earlier; a ready key is not queued
//! twice. There are no workers: keys that are ready at the same time are processed in the order in
//! which they became ready. Upstream has several workers, and their order is not deterministic.
//!
//! Waiting keys are a heap with upstream's order of swaps: of several keys that wait for the same
//! time, the key that was queued first does not always become ready first. In the oldest releases
//! they are a sorted list, where it does.
//!
//! Upstream: client-go, `util/workqueue`; Go, `container/heap`.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::state::State;
use crate::time::{Span, Time};
use educe::Educe;

/// The work queue.
#[derive(Educe, Debug, Default)]
#[educe(Clone)]
pub(crate) struct WorkQueue {
    /// Keys with the time at which they become ready, at most one entry per key: a heap or a sorted
    /// list.
    waiting: Vec<(Time, Arc<str>)>,
    /// True if `waiting` is a sorted list, as in the oldest releases.
    sorted: bool,
    /// Ready keys, in order.
    ready: VecDeque<Ready>,
    /// The number of keys at the front of `ready` that other workers have already taken. Their
    /// reconciles wait while something else happens during a reconcile.
    held: usize,
    /// Keys whose reconcile is blocked, and when they were added again in the meantime.
    processing: Vec<(Arc<str>, Option<Time>)>,
    /// The time before which the workers take no key.
    workers_start: Option<Time>,
    /// The counters, and their values when a worker last took a key.
    counts: QueueCounts,
    counts_when_taken: QueueCounts,
}

/// A ready key.
#[derive(Clone, Debug)]
struct Ready {
    /// When an idle worker takes it.
    at: Time,
    /// When it was added.
    added: Time,
    key: Arc<str>,
    /// When it was added again after a worker had taken it, if it was.
    again: Option<Time>,
}

/// The counters among the queue's Prometheus metrics.
///
/// Upstream: client-go, util/workqueue/metrics.go
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct QueueCounts {
    /// Keys that were added, unless they were ready already.
    pub adds: u64,
    /// Keys that were queued for a later time.
    pub retries: u64,
    /// The time that keys were ready before a worker took them.
    pub waited: Span,
    /// The time that keys were processed.
    pub(crate) worked: Span,
}

impl QueueCounts {
    fn since(self, earlier: QueueCounts) -> QueueCounts {
        QueueCounts {
            adds: self.adds - earlier.adds,
            retries: self.retries - earlier.retries,
            waited: Span(self.waited.0 - earlier.waited.0),
            worked: Span(self.worked.0 - earlier.worked.0),
        }
    }
}

/// A key that a worker has taken.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Taken {
    pub key: Arc<str>,
    /// The changes of the counters since a worker took the previous key.
    pub counts: QueueCounts,
    /// When it was added again after the worker had taken it, if it was.
    pub again: Option<Time>,
}

impl WorkQueue {
    /// An empty queue. `sorted`: waiting keys form a sorted list, otherwise a heap.
    pub(crate) fn new(sorted: bool) -> WorkQueue {
        WorkQueue { sorted, ..WorkQueue::default() }
    }

    /// An empty queue whose workers start later.
    pub(crate) fn starting_at(workers_start: Time, sorted: bool) -> WorkQueue {
        WorkQueue { workers_start: Some(workers_start), ..WorkQueue::new(sorted) }
    }

    /// Makes a key ready at `now`. Its waiting entry stays.
    ///
    /// Upstream: queue.go, Typed.Add
    pub(crate) fn add(&mut self, key: Arc<str>, now: Time) {
        // Keys that waited until now precede the new key, even if no worker was idle.
        self.wake(now);
        self.push_ready(key, now);
    }

    fn push_ready(&mut self, key: Arc<str>, now: Time) {
        if let Some((_, added)) = self.processing.iter_mut().find(|(it, _)| *it == key) {
            self.counts.adds += u64::from(added.is_none());
            added.get_or_insert(now);
            return;
        }
        match self.ready.iter().position(|queued| queued.key == key) {
            Some(index) if index < self.held => {
                let again = &mut self.ready[index].again;
                self.counts.adds += u64::from(again.is_none());
                again.get_or_insert(now);
            }
            Some(_) => {}
            None => {
                self.counts.adds += 1;
                self.ready.push_back(Ready { at: now, added: now, key, again: None });
            }
        }
    }

    /// Marks a key as being processed by a worker. `again` is the time at which it was added again
    /// after the worker had taken it, if it was.
    pub(crate) fn begin(&mut self, key: &Arc<str>, again: Option<Time>) {
        self.processing.push((key.clone(), again));
    }

    /// Marks ready keys as taken, one for each idle worker among `workers`, while something else
    /// happens during a reconcile at `now`, until [`WorkQueue::proceeds`].
    pub(crate) fn is_held(&mut self, now: Time, workers: usize) {
        self.wake(now);
        let idle = workers.saturating_sub(self.processing.len());
        self.held = idle.min(self.ready.len());
    }

    /// Ends the effect of [`WorkQueue::is_held`].
    pub(crate) fn proceeds(&mut self) {
        self.held = 0;
    }

    /// Marks a key as processed. If all `workers` were busy, they take no key before `now`.
    ///
    /// Upstream: queue.go, Typed.Done
    pub(crate) fn done(&mut self, key: &Arc<str>, now: Time, workers: usize) {
        let Some(index) = self.processing.iter().position(|(it, _)| it == key) else {
            return;
        };
        // Entries that became due in the meantime make it ready again.
        self.wake(now);
        if self.processing.len() >= workers {
            self.workers_start = Some(now);
        }
        let (key, added) = self.processing.remove(index);
        if let Some(added) = added {
            self.ready.push_back(Ready { at: now, added, key, again: None });
        }
    }

    /// Counts the time that a key was processed.
    pub(crate) fn count_work(&mut self, worked: Span) {
        self.counts.worked.0 += worked.0;
    }

    /// Counts keys that were queued for a later time without an effect: they waited already.
    pub(crate) fn count_retries(&mut self, retries: u64) {
        self.counts.retries += retries;
    }

    /// Makes a key ready after one interval, unless it waits for an earlier time.
    ///
    /// Upstream: delaying_queue.go, delayingType.AddAfter and insert
    pub(crate) fn add_rate_limited(&mut self, key: Arc<str>, now: Time, interval: Span) {
        self.counts.retries += 1;
        self.add_after(key, now, interval);
    }

    /// [`WorkQueue::add_rate_limited`], which the caller [counts](WorkQueue::count_retries).
    pub(crate) fn add_after(&mut self, key: Arc<str>, now: Time, interval: Span) {
        if interval.0 <= 0 {
            return self.add(key, now);
        }
        // Entries that are due no longer wait.
        self.wake(now);
        let at = now + interval;
        if self.sorted {
            return self.insert(at, key);
        }
        match self.waiting.iter().position(|(_, queued)| *queued == key) {
            Some(index) if at < self.waiting[index].0 => {
                self.waiting[index].0 = at;
                // The time became earlier: the entry can only move up.
                self.up(index);
            }
            Some(_) => {}
            None => {
                self.waiting.push((at, key));
                self.up(self.waiting.len() - 1);
            }
        }
    }

    /// Inserts a key behind the other keys of the same time, also if it was already queued for that
    /// time.
    ///
    /// Upstream: delaying_queue.go, insert, up to Kubernetes 1.6
    fn insert(&mut self, at: Time, key: Arc<str>) {
        match self.waiting.iter().position(|(_, queued)| *queued == key) {
            Some(index) if self.waiting[index].0 < at => return,
            Some(index) => {
                self.waiting.remove(index);
            }
            None => {}
        }
        let index = self.waiting.partition_point(|(queued, _)| *queued <= at);
        self.waiting.insert(index, (at, key));
    }

    /// Makes a waiting key ready at `by` or earlier.
    pub(crate) fn mark_ready(&mut self, key: &str, by: Time) {
        if let Some(index) = self.waiting.iter().position(|(_, queued)| **queued == *key)
            && self.waiting[index].0 > by
        {
            if self.sorted {
                let (_, key) = self.waiting.remove(index);
                return self.insert(by, key);
            }
            self.waiting[index].0 = by;
            // The time became earlier: the entry can only move up.
            self.up(index);
        }
    }

    /// Returns true if a key waits, is ready or is being processed.
    pub(crate) fn holds(&self, key: &str) -> bool {
        let waiting = self.waiting.iter().map(|(_, key)| key);
        let ready = self.ready.iter().map(|ready| &ready.key);
        let processing = self.processing.iter().map(|(key, _)| key);
        waiting.chain(ready).chain(processing).any(|queued| **queued == *key)
    }

    /// The key that a worker takes next, and the time.
    pub(crate) fn next(&self) -> Option<(Time, &Arc<str>)> {
        let waiting = self.waiting.first().map(|(at, key)| (*at, key));
        let ready = self.ready.front().map(|ready| (ready.at, &ready.key));
        // A key that becomes due when another one is already ready follows it.
        let (at, key) = match (ready, waiting) {
            (Some(ready), Some(waiting)) if waiting.0 < ready.0 => waiting,
            (Some(ready), _) => ready,
            (None, waiting) => waiting?,
        };
        Some((self.workers_start.map_or(at, |start| start.max(at)), key))
    }

    /// Takes the next key at `now`, if there is one.
    pub(crate) fn get(&mut self, now: Time) -> Option<Taken> {
        if self.workers_start.is_some_and(|start| start > now) {
            return None;
        }
        self.start_workers();
        self.wake(now);
        let Ready { added, key, again, .. } = self.ready.pop_front()?;
        self.counts.waited.0 += (now - added).0;
        let counts = self.counts.since(self.counts_when_taken);
        self.counts_when_taken = self.counts;
        Some(Taken { key, counts, again })
    }

    /// The key that [`WorkQueue::get`] would take.
    pub(crate) fn peek(&mut self, now: Time) -> Option<&Arc<str>> {
        if self.workers_start.is_some_and(|start| start > now) {
            return None;
        }
        self.wake(now);
        self.ready.front().map(|ready| &ready.key)
    }

    /// Starts the workers. No key becomes ready before that time.
    fn start_workers(&mut self) {
        if let Some(start) = self.workers_start.take() {
            self.ready.iter_mut().for_each(|ready| ready.at = start.max(ready.at));
        }
    }

    /// Adds the keys and their times. The counters have no effect on the controller.
    pub(crate) fn add_to(&self, state: &mut State) {
        let WorkQueue { waiting, ready, held, processing, workers_start, .. } = self;
        state.count(waiting.len());
        for (at, key) in waiting {
            state.time(*at);
            state.text(key);
        }
        state.count(ready.len());
        for Ready { at, added: _, key, again } in ready {
            state.time(*at);
            state.text(key);
            state.optional_time(*again);
        }
        state.count(*held);
        state.count(processing.len());
        for (key, added) in processing {
            state.text(key);
            state.optional_time(*added);
        }
        state.optional_time(*workers_start);
    }

    /// Makes all keys ready that are due.
    fn wake(&mut self, now: Time) {
        while self.waiting.first().is_some_and(|(at, _)| *at <= now) {
            let (at, key) = self.pop_waiting();
            self.push_ready(key, at);
        }
    }

    /// Removes the first key of the heap, which must not be empty.
    ///
    /// Upstream: container/heap, Pop and down
    fn pop_waiting(&mut self) -> (Time, Arc<str>) {
        if self.sorted {
            return self.waiting.remove(0);
        }
        let first = self.waiting.swap_remove(0);
        let (heap, mut parent) = (&mut self.waiting, 0);
        loop {
            let mut child = 2 * parent + 1;
            if child + 1 < heap.len() && heap[child + 1].0 < heap[child].0 {
                child += 1;
            }
            if child >= heap.len() || heap[child].0 >= heap[parent].0 {
                return first;
            }
            heap.swap(parent, child);
            parent = child;
        }
    }

    /// Upstream: container/heap, up
    fn up(&mut self, mut child: usize) {
        while child > 0 {
            let parent = (child - 1) / 2;
            if self.waiting[child].0 >= self.waiting[parent].0 {
                return;
            }
            self.waiting.swap(parent, child);
            child = parent;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD: Span = Span::from_secs(15);

    fn key(name: &str) -> Arc<str> {
        name.into()
    }

    /// Advances the time; each key is added again one period after a worker took it.
    fn run(queue: &mut WorkQueue, until: Time) -> Vec<i64> {
        let mut syncs = Vec::new();
        while let Some((at, _)) = queue.next().filter(|(at, _)| *at <= until) {
            let Taken { key, .. } = queue.get(at).unwrap();
            syncs.push(at.since_start().0 / 1_000_000_000);
            queue.add_rate_limited(key, at, PERIOD);
        }
        syncs
    }

    #[test]
    fn an_edit_at_7_s_adds_a_reconcile_and_keeps_the_others() {
        let (mut queue, web) = (WorkQueue::default(), key("default/web"));
        queue.add(web.clone(), Time::ZERO);
        assert_eq!(run(&mut queue, Time::from_secs(7)), [0]);
        queue.add(web.clone(), Time::from_secs(7));
        assert_eq!(run(&mut queue, Time::from_secs(45)), [7, 15, 30, 45]);
    }

    #[test]
    fn the_last_of_three_keys_due_at_the_same_time_is_processed_second() {
        let mut queue = WorkQueue::default();
        for name in ["a", "b", "c"] {
            queue.add_rate_limited(key(name), Time::ZERO, PERIOD);
        }
        let at = Time::from_secs(15);
        let mut order = Vec::new();
        while let Some(Taken { key, .. }) = queue.get(at) {
            order.push(key.to_string());
        }
        // The order of equal keys in Go's `container/heap`.
        assert_eq!(order, ["a", "c", "b"]);
    }

    #[test]
    fn keys_in_a_sorted_list_are_processed_in_order() {
        let mut queue = WorkQueue::new(true);
        for name in ["a", "b", "c", "a"] {
            queue.add_rate_limited(key(name), Time::ZERO, PERIOD);
        }
        queue.add_rate_limited(key("c"), Time::from_secs(1), PERIOD);
        let at = Time::from_secs(15);
        let order: Vec<String> =
            std::iter::from_fn(|| queue.get(at)).map(|taken| taken.key.to_string()).collect();
        assert_eq!(order, ["b", "c", "a"]);
        assert_eq!(queue.next(), None);
    }

    #[test]
    fn adding_a_waiting_key_again_never_delays_it() {
        let (mut queue, web) = (WorkQueue::default(), key("web"));
        queue.add_rate_limited(web.clone(), Time::from_secs(0), PERIOD);
        queue.add_rate_limited(web.clone(), Time::from_secs(10), PERIOD);
        assert_eq!(queue.next().unwrap().0, Time::from_secs(15));
        queue.add_rate_limited(web.clone(), Time::from_secs(0), Span::from_secs(5));
        assert_eq!(queue.next().unwrap().0, Time::from_secs(5));
        queue.add_rate_limited(web.clone(), Time::from_secs(3), Span::ZERO);
        assert_eq!(queue.next().unwrap().0, Time::from_secs(3));
    }

    #[test]
    fn a_ready_key_is_not_added_again() {
        let (mut queue, web) = (WorkQueue::default(), key("web"));
        queue.add_rate_limited(web.clone(), Time::ZERO, PERIOD);
        queue.add(web.clone(), Time::from_secs(15));
        assert_eq!(queue.get(Time::from_secs(15)).unwrap().key, web);
        assert_eq!(queue.next(), None);
    }

    #[test]
    fn no_key_is_processed_before_the_workers_start() {
        let mut queue = WorkQueue::starting_at(Time::from_secs(2), false);
        queue.add(key("web"), Time::from_secs(1));
        assert_eq!(queue.next().unwrap().0, Time::from_secs(2));
        assert_eq!(queue.get(Time::from_secs(1)), None);
        let counts = QueueCounts { adds: 1, waited: Span::from_secs(1), ..QueueCounts::default() };
        assert_eq!(
            queue.get(Time::from_secs(2)),
            Some(Taken { key: key("web"), counts, again: None })
        );
    }

    #[test]
    fn a_key_that_is_added_while_it_is_processed_is_counted_once_and_waits_since_then() {
        let (mut queue, web) = (WorkQueue::default(), key("web"));
        queue.add_rate_limited(web.clone(), Time::ZERO, PERIOD);
        queue.get(Time::from_secs(15));
        queue.begin(&web, None);
        for second in [16, 18] {
            queue.add(web.clone(), Time::from_secs(second));
        }
        queue.count_work(Span::from_secs(5));
        queue.done(&web, Time::from_secs(20), 1);
        let counts = queue.get(Time::from_secs(20)).unwrap().counts;
        let (waited, worked) = (Span::from_secs(4), Span::from_secs(5));
        assert_eq!(counts, QueueCounts { adds: 1, retries: 0, waited, worked });
    }
    #[test]
    fn a_key_that_another_worker_has_taken_is_processed_again_if_it_is_added() {
        let at = Time::from_secs(15);
        let again = |workers: usize| {
            let mut queue = WorkQueue::default();
            for name in ["a", "b", "c"] {
                queue.add(key(name), at);
            }
            let first = queue.get(at).expect("a").key;
            queue.begin(&first, None);
            queue.is_held(at, workers);
            queue.add(key("b"), at);
            queue.add(key("b"), at);
            queue.add(key("c"), at);
            queue.proceeds();
            queue.done(&first, at, workers);
            let mut order = String::new();
            while let Some(Taken { key, again, .. }) = queue.get(at) {
                queue.begin(&key, again);
                queue.done(&key, at, workers);
                order.push_str(&key);
            }
            order
        };
        assert_eq!([1, 2, 3].map(again), ["bc", "bcb", "bcbc"]);
    }
}
