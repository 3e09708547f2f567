//! The work queue, the informer's resyncs and blocked reconciles: the order and the times of
//! reconciles.

mod blocked;
mod resync;
mod work_queue;

pub(crate) use blocked::BlockedReconcile;
pub(crate) use resync::Resync;
pub(crate) use work_queue::{QueueCounts, Taken, WorkQueue};
