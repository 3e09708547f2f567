//! Rules of the work queue.

/// When a new HPA is reconciled for the first time.
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
    /// When a new HPA is reconciled for the first time.
    pub first_reconcile: FirstReconcile,
    /// Whether a reconcile that succeeds queues the next one. If not, the next one is queued by the
    /// update event of a written status or by the informer's resync.
    pub success_requeues: bool,
    /// Whether HPAs that are due at the same time are reconciled in the order in which they were
    /// queued. If not, their order is that of Go's heap.
    pub waiting_is_sorted: bool,
    /// Whether a reconcile ends at its selector if the HPA was deleted in the meantime.
    pub deletion_ends_reconcile: bool,
}

impl QueueRules {
    pub(super) const OLDEST: QueueRules = QueueRules {
        first_reconcile: FirstReconcile::AfterSyncPeriod,
        success_requeues: false,
        waiting_is_sorted: true,
        deletion_ends_reconcile: false,
    };
}
