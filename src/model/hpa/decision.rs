//! The model's prediction of one reconcile.

use crate::model::derivation::Derivation;
use crate::model::observation::Observation;
use crate::model::time::Time;

/// The model's prediction of one reconcile.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Decision {
    /// Everything that is observable.
    pub observation: Observation,
    /// The time of each of its events.
    pub event_times: Vec<Time>,
    /// The steps that led to the decision.
    pub derivation: Derivation,
    /// The end of the reconcile. It is later than the beginning if the reconcile waited.
    pub end: Time,
    /// Stands for the UID of the HPA.
    pub uid: u64,
    /// The number of requests before the last thing that happened in the middle of the reconcile.
    /// The cluster already contains their writes.
    pub committed: usize,
}

impl Decision {
    /// Empties the decision, but keeps its memory.
    pub(crate) fn clear(&mut self) {
        self.observation.clear();
        self.event_times.clear();
        self.committed = 0;
        self.derivation.clear();
    }
}

/// The result of processing one item of the work queue.
#[derive(Clone, PartialEq, Debug)]
pub enum WorkItemResult {
    /// There was no item, or its HPA does not exist.
    Skipped,
    /// The reconcile is blocked until a response arrives or its next attempt is due.
    Blocked,
    /// The reconcile ended.
    Reconciled(Box<Decision>),
}

impl WorkItemResult {
    /// The decision of a reconcile that ended.
    #[must_use]
    pub fn decision(self) -> Option<Decision> {
        match self {
            WorkItemResult::Skipped | WorkItemResult::Blocked => None,
            WorkItemResult::Reconciled(decision) => Some(*decision),
        }
    }
}
