//! Observation of the controller: its requests and writes, grouped into reconciles.

pub(crate) mod audit_log;
pub(crate) mod watches;
