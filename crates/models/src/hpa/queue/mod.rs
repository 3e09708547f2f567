//! The work queue, the informer's resyncs and blocked reconciles: the order and the times of
//! reconciles.

mod blocked;
mod resync;
mod work_queue;

pub use blocked::BlockedReconcile;
pub use resync::Resync;
pub use work_queue::{QueueCounts, Taken, WorkQueue};
