//! The load of a cluster, and the limit of scenarios that are set up on it at a time.

pub(super) mod probe;
pub(crate) mod setup_queue;
