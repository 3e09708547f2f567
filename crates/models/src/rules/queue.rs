//! Rules of the work queue.

/// The time of the first reconcile of a new HPA.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FirstReconcile {
    /// Immediately.
    Immediate,
    /// After one sync period.
    AfterSyncPeriod,
}

/// The times and the order of reconciles.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QueueRules {
    /// The time of the first reconcile of a new HPA.
    pub first_reconcile: FirstReconcile,
    /// True if a successful reconcile queues the next one. Otherwise, the update event of a written
    /// status or the informer's resync queues the next one.
    pub success_requeues: bool,
    /// True if HPAs that are due at the same time are reconciled in the order in which they were
    /// queued. Otherwise, their order is that of Go's heap.
    pub waiting_is_sorted: bool,
    /// True if a reconcile ends at its selector if the HPA was deleted in the meantime.
    pub deletion_ends_reconcile: bool,
}

impl QueueRules {
    pub(crate) const OLDEST: QueueRules = QueueRules {
        first_reconcile: FirstReconcile::AfterSyncPeriod,
        success_requeues: false,
        waiting_is_sorted: true,
        deletion_ends_reconcile: false,
    };
}
