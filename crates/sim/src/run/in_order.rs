//! Runs numbered jobs on several threads, and delivers the results in order.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;

/// The number of results that may be queued. If one job takes long, the other workers wait when the
/// queue is full.
const QUEUE_LENGTH: usize = 1024;

/// Runs jobs with the numbers from 0. Each worker has a thread, because jobs compute rather than
/// wait, and a state that `worker` creates in that thread; it ends when `work` returns `None`.
/// `done` gets the results in the order of the jobs, until it returns `false`.
pub fn in_order<W, R: Send>(
    workers: usize,
    worker: &(impl Fn() -> W + Sync),
    work: &(impl Fn(&mut W, usize) -> Option<R> + Sync),
    done: &mut dyn FnMut(usize, R) -> bool,
) {
    let next = AtomicUsize::new(0);
    let over = AtomicBool::new(false);
    let (sender, receiver) = mpsc::sync_channel::<(usize, R)>(QUEUE_LENGTH);
    std::thread::scope(|threads| {
        for _ in 0..workers.max(1) {
            let (sender, next, over) = (sender.clone(), &next, &over);
            threads.spawn(move || {
                let _ends = EndsOnPanic(over);
                let mut state = worker();
                while !over.load(Ordering::Relaxed) {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(result) = work(&mut state, index) else { return };
                    // The receiver is dropped only when all jobs are over.
                    if sender.send((index, result)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        let mut waiting: BTreeMap<usize, R> = BTreeMap::new();
        let mut due = 0;
        for (index, result) in receiver {
            waiting.insert(index, result);
            while !over.load(Ordering::Relaxed)
                && let Some(result) = waiting.remove(&due)
            {
                if !done(due, result) {
                    over.store(true, Ordering::Relaxed);
                }
                due += 1;
            }
        }
    });
}

/// Ends the run when a worker panics, because the others would wait for its job forever.
struct EndsOnPanic<'a>(&'a AtomicBool);

impl Drop for EndsOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.store(true, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn results_are_ordered_whichever_worker_ends_first() {
        for workers in [1, 4] {
            let mut seen = Vec::new();
            let work = |_: &mut (), index: usize| {
                // Every third job is slow.
                std::thread::sleep(Duration::from_millis(3 * u64::from(index.is_multiple_of(3))));
                (index < 20).then_some(index * 2)
            };
            in_order(workers, &|| (), &work, &mut |index, result| {
                seen.push((index, result));
                true
            });
            let all: Vec<_> = (0..20).map(|index| (index, index * 2)).collect();
            assert_eq!(seen, all, "{workers} workers");
        }
    }

    #[test]
    fn the_last_job_is_the_same_with_any_number_of_workers() {
        for workers in [1, 2, 8] {
            let mut last = 0;
            in_order(workers, &|| (), &|(), index| Some(index), &mut |index, _| {
                last = index;
                index < 100
            });
            assert_eq!(last, 100, "{workers} workers");
        }
    }
}
