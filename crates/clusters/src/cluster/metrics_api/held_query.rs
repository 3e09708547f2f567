//! A query of the controller whose answer is held back: the server's side.

use tokio::sync::oneshot;

/// The query whose answer is held back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct HeldQuery {
    /// The number of the query among the controller's queries since the hold was created, from 1.
    pub number: usize,
    /// True if the answer is determined when the hold ends, so that it shows changes made in the
    /// meantime. Otherwise, it is determined when the query arrives.
    pub(crate) shows_changes: bool,
}

/// A hold whose query has not arrived.
#[derive(Debug)]
pub(crate) struct PendingHold {
    query: HeldQuery,
    /// The number of queries since the hold was created.
    queries: usize,
    held: HeldAnswer,
}

impl PendingHold {
    pub(crate) fn new(query: HeldQuery, held: HeldAnswer) -> PendingHold {
        PendingHold { query, queries: 0, held }
    }

    /// Counts a query. If its answer is to be held back, ends the pending state and returns the
    /// server's end of the hold.
    pub(crate) fn query(hold: &mut Option<PendingHold>) -> Option<(HeldQuery, HeldAnswer)> {
        let pending = hold.as_mut()?;
        pending.queries += 1;
        let is_held = pending.queries == pending.query.number;
        let pending = hold.take_if(|_| is_held)?;
        Some((pending.query, pending.held))
    }
}

/// The server's end of a hold.
#[derive(Debug)]
pub(crate) struct HeldAnswer {
    pub arrives: oneshot::Sender<()>,
    pub released: oneshot::Receiver<()>,
}

impl HeldAnswer {
    /// Reports that the query has arrived, and waits until its answer may be sent.
    pub(crate) async fn wait(self) {
        // Without a receiver, the answer is released at once.
        let _ = self.arrives.send(());
        let _ = self.released.await;
    }
}
