//! Observation of the controller: its requests and writes, grouped into reconciles.

pub(super) mod action;
pub(crate) mod audit_log;
pub(crate) mod dispatch;
pub(crate) mod observability;
pub(super) mod reconcile;
pub(crate) mod watch_retry;
pub(crate) mod watches;
