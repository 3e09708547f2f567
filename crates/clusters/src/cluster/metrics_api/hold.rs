//! Holds back the answer to a query of the controller, so that actions can happen in the middle of
//! its reconcile.

use std::sync::Arc;

use tokio::sync::oneshot;

use crate::cluster::metrics_api::held_query::{HeldAnswer, HeldQuery, PendingHold};
use crate::cluster::metrics_api::state::Metrics;

/// The scenario's end of a hold. Dropping it releases the answer.
pub(crate) struct Hold {
    metrics: Arc<Metrics>,
    namespace: String,
    arrived: oneshot::Receiver<()>,
    /// Dropping the sender is the signal.
    _release: oneshot::Sender<()>,
}

impl Hold {
    /// Holds back the answer to a query in a namespace.
    pub(crate) fn new(metrics: &Arc<Metrics>, namespace: &str, query: HeldQuery) -> Hold {
        let (arrives, arrived) = oneshot::channel();
        let (release, released) = oneshot::channel();
        let pending = PendingHold::new(query, HeldAnswer { arrives, released });
        if let Some(served) = metrics.lock().get_mut(namespace) {
            served.hold = Some(pending);
        }
        let (metrics, namespace) = (metrics.clone(), namespace.to_owned());
        Hold { metrics, namespace, arrived, _release: release }
    }

    /// Waits until the query has arrived. Returns false if the namespace is no longer served.
    pub(crate) async fn arrived(&mut self) -> bool {
        (&mut self.arrived).await.is_ok()
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        if let Some(served) = self.metrics.lock().get_mut(&self.namespace) {
            served.hold = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use jiff::Timestamp;
    use tokio::time::timeout;

    use super::*;

    const SHORT: Duration = Duration::from_millis(50);

    fn metrics() -> Arc<Metrics> {
        let metrics = Arc::new(Metrics::default());
        let (log, _) = tokio::sync::mpsc::unbounded_channel();
        metrics.open("shop", &"default".into(), Timestamp::now(), log);
        metrics
    }

    fn query(metrics: &Metrics) -> Option<HeldAnswer> {
        let mut namespaces = metrics.lock();
        let served = namespaces.get_mut("shop").expect("the namespace is served");
        PendingHold::query(&mut served.hold).map(|(_, held)| held)
    }

    #[tokio::test]
    async fn the_answer_to_the_given_query_waits_until_the_hold_is_dropped() {
        let metrics = metrics();
        let second = HeldQuery { number: 2, shows_changes: false };
        let mut hold = Hold::new(&metrics, "shop", second);
        assert!(query(&metrics).is_none(), "the first query");
        assert!(timeout(SHORT, hold.arrived()).await.is_err(), "it has not arrived");
        let held = query(&metrics).expect("the second query");
        let mut answer = tokio::spawn(held.wait());
        assert!(hold.arrived().await);
        assert!(timeout(SHORT, &mut answer).await.is_err(), "it is held back");
        assert!(query(&metrics).is_none(), "only one query is held");
        drop(hold);
        timeout(SHORT, answer).await.expect("it is released").expect("no panic");
    }

    #[tokio::test]
    async fn a_query_after_the_end_of_the_hold_is_answered_at_once() {
        let metrics = metrics();
        let first = HeldQuery { number: 1, shows_changes: true };
        let hold = Hold::new(&metrics, "shop", first);
        drop(hold);
        assert!(query(&metrics).is_none());
        // It arrived right before the end.
        let hold = Hold::new(&metrics, "shop", first);
        let held = query(&metrics).expect("the query");
        drop(hold);
        timeout(SHORT, held.wait()).await.expect("it is not held");
    }
}
