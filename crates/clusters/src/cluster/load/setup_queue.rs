//! Limits how many scenarios are set up at a time. The longest waiting scenario is set up first.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot::{Receiver, Sender, channel};

use kube_autoscaler_models::time::Time;

/// A priority queue for a limited number of permits. Dropped permits are handed out again.
#[derive(Clone, Debug)]
pub(crate) struct SetupQueue(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    free: usize,
    /// The number of requests so far.
    arrivals: usize,
    /// The waiting requests, by length (longest first) and order of arrival.
    waiting: BTreeMap<(Reverse<Time>, usize), Sender<SetupPermit>>,
}

/// The permission to set up a scenario. It is returned to the queue when it is dropped.
#[derive(Debug)]
pub(crate) struct SetupPermit(Option<SetupQueue>);

impl SetupQueue {
    /// Creates a queue with this number of permits.
    pub(crate) fn new(free: usize) -> SetupQueue {
        SetupQueue(Arc::new(Mutex::new(State { free, arrivals: 0, waiting: BTreeMap::new() })))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a permit for a scenario of this length.
    pub(crate) async fn acquire(&self, length: Time) -> Option<SetupPermit> {
        let permit = self.enqueue(length);
        // Always a permit: a permit that is dropped goes to the next waiting request.
        permit.await.ok()
    }

    fn enqueue(&self, length: Time) -> Receiver<SetupPermit> {
        let (sender, receiver) = channel();
        let mut state = self.lock();
        let arrival = state.arrivals;
        state.arrivals += 1;
        state.waiting.insert((Reverse(length), arrival), sender);
        self.admit(&mut state);
        receiver
    }

    /// Hands out the free permits to waiting requests.
    fn admit(&self, state: &mut State) {
        while state.free > 0
            && let Some((_, sender)) = state.waiting.pop_first()
        {
            match sender.send(SetupPermit(Some(self.clone()))) {
                Ok(()) => state.free -= 1,
                // The request was abandoned, and its permit is still counted as free.
                Err(mut unwanted) => unwanted.0 = None,
            }
        }
    }
}

impl Drop for SetupPermit {
    fn drop(&mut self) {
        if let Some(queue) = self.0.take() {
            let mut state = queue.lock();
            state.free += 1;
            queue.admit(&mut state);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_setup_is_admitted_first() {
        let queue = SetupQueue::new(1);
        let requests = [3, 5, 9, 5].map(|seconds| queue.enqueue(Time::from_secs(seconds)));
        let [mut first, mut second, mut third, mut fourth] = requests;
        let first = first.try_recv().expect("the first request is admitted at once");
        assert!(third.try_recv().is_err(), "one permit");
        drop(first);
        let longest = third.try_recv().expect("the longest setup is next");
        assert!(second.try_recv().is_err());
        drop(longest);
        let early = second.try_recv().expect("the earlier of two equal requests is next");
        assert!(fourth.try_recv().is_err());
        drop(early);
        assert!(fourth.try_recv().is_ok());
    }

    #[test]
    fn abandoned_requests_are_not_admitted() {
        let queue = SetupQueue::new(1);
        let first = queue.enqueue(Time::ZERO);
        let gone = queue.enqueue(Time::from_secs(9));
        let mut waiting = queue.enqueue(Time::from_secs(1));
        drop(gone);
        assert!(waiting.try_recv().is_err());
        drop(first);
        assert!(
            waiting.try_recv().is_ok(),
            "the permit of an abandoned request is handed out again"
        );
        assert_eq!(queue.lock().free, 1);
    }
}
