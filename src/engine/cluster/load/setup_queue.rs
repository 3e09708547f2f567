//! Whose objects are made next: only so many scenarios are set up at a time, and of those that
//! wait, what takes longest is the first.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot::{Receiver, Sender, channel};

use crate::model::time::Time;

/// Turns that are given to those who wait, and come back.
#[derive(Clone, Debug)]
pub(crate) struct SetupQueue(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    free: usize,
    /// How many have ever waited.
    came: usize,
    /// By how long they take, and when they came.
    waiting: BTreeMap<(Reverse<Time>, usize), Sender<SetupPermit>>,
}

/// A turn: until it is dropped.
#[derive(Debug)]
pub(crate) struct SetupPermit(Option<SetupQueue>);

impl SetupQueue {
    /// So many at a time.
    pub(crate) fn new(free: usize) -> SetupQueue {
        SetupQueue(Arc::new(Mutex::new(State { free, came: 0, waiting: BTreeMap::new() })))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A turn for what takes that long, when it is the next one.
    pub(crate) async fn acquire(&self, length: Time) -> Option<SetupPermit> {
        let turn = self.ask(length);
        // Whoever has one gives it to those who wait before all is gone.
        turn.await.ok()
    }

    fn ask(&self, length: Time) -> Receiver<SetupPermit> {
        let (sender, receiver) = channel();
        let mut state = self.lock();
        let came = state.came;
        state.came += 1;
        state.waiting.insert((Reverse(length), came), sender);
        self.hand_out(&mut state);
        receiver
    }

    /// Gives what is free to those who still wait.
    fn hand_out(&self, state: &mut State) {
        while state.free > 0
            && let Some((_, sender)) = state.waiting.pop_first()
        {
            match sender.send(SetupPermit(Some(self.clone()))) {
                Ok(()) => state.free -= 1,
                // It does not wait any more, and what it would have had must not come back.
                Err(mut unwanted) => unwanted.0 = None,
            }
        }
    }
}

impl Drop for SetupPermit {
    fn drop(&mut self) {
        if let Some(openings) = self.0.take() {
            let mut state = openings.lock();
            state.free += 1;
            openings.hand_out(&mut state);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_setup_is_admitted_first() {
        let openings = SetupQueue::new(1);
        let asked = [3, 5, 9, 5].map(|seconds| openings.ask(Time::from_secs(seconds)));
        let [mut first, mut second, mut third, mut fourth] = asked;
        let first = first.try_recv().expect("it came first");
        assert!(third.try_recv().is_err(), "one at a time");
        drop(first);
        let longest = third.try_recv().expect("it takes longest");
        assert!(second.try_recv().is_err());
        drop(longest);
        let early = second.try_recv().expect("it came before the other one");
        assert!(fourth.try_recv().is_err());
        drop(early);
        assert!(fourth.try_recv().is_ok());
    }

    #[test]
    fn abandoned_requests_are_not_admitted() {
        let openings = SetupQueue::new(1);
        let first = openings.ask(Time::ZERO);
        let gone = openings.ask(Time::from_secs(9));
        let mut waits = openings.ask(Time::from_secs(1));
        drop(gone);
        assert!(waits.try_recv().is_err());
        drop(first);
        assert!(waits.try_recv().is_ok(), "a turn that nobody took comes back, too");
        assert_eq!(openings.lock().free, 1);
    }
}
