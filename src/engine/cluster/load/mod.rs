//! How busy a cluster is, and how many scenarios are set up on it at a time.

pub(crate) mod probe;
pub(crate) mod setup_queue;
