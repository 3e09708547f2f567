//! The work queue, the informer's resyncs and blocked reconciles: the order and the times of
//! reconciles.

mod blocked;
mod resync;
mod work_queue;

pub(super) use blocked::BlockedReconcile;
pub(super) use resync::Resync;
pub(super) use work_queue::{QueueCounts, Taken, WorkQueue};
