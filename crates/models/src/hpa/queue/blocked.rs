//! Reconciles that wait for a slow response, or for another attempt to update the scale.
//!
//! The input of a reconcile after a wait is not known when the reconcile begins. So a reconcile
//! that may wait, also because of a change in the middle of it, is executed up to its first wait
//! and stored. When the wait is over, it is executed again from its beginning, with the recorded
//! inputs. This is slow, but rare; other reconciles are executed once.

use std::sync::Arc;

use super::work_queue::QueueCounts;
use crate::api::Hpa;
use crate::hpa::decision::Decision;
use crate::hpa::input::{Input, Interruption, OwnedInput, OwnedInterruption};
use crate::hpa::selector_store::HpaSelectorStore;
use crate::time::Time;

/// A reconcile that waits for the response to a request, while other workers go on.
#[derive(Clone, Debug)]
pub struct BlockedReconcile {
    pub key: Arc<str>,
    /// The changes of the queue's counters up to the beginning of the reconcile.
    pub counts: QueueCounts,
    /// The HPA at the beginning of the reconcile: upstream works on a copy.
    pub hpa: Hpa,
    /// The selectors at the beginning.
    pub(crate) selectors: HpaSelectorStore,
    /// The inputs at the beginning and after each wait.
    pub(crate) seen: Vec<OwnedInput>,
    /// The changes in the middle of it.
    pub(crate) interruptions: Vec<OwnedInterruption>,
    /// The end of its wait.
    pub until: Time,
    /// The decision up to the wait, without its derivation.
    pub decision: Box<Decision>,
}

impl BlockedReconcile {
    /// The inputs at the beginning and after each wait.
    pub(crate) fn inputs(&self) -> Vec<Input<'_>> {
        self.seen.iter().map(|seen| seen.input(&self.hpa)).collect()
    }

    /// The changes in the middle of it.
    pub(crate) fn interruptions(&self) -> Vec<Interruption<'_>> {
        self.interruptions.iter().map(|it| it.interruption(&self.hpa)).collect()
    }

    /// The number of requests before the last change in the middle of it.
    pub(crate) fn committed(&self) -> usize {
        self.interruptions.last().map_or(0, |it| it.after)
    }
}
