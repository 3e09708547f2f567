//! Access to a cluster: clients, rights, ownership of objects, and the difference of clocks.

pub(crate) mod client;
pub(crate) mod clock_skew;
pub(crate) mod connect;
pub(crate) mod error;
pub(crate) mod namespaces;
pub(crate) mod ownership;
pub(crate) mod rbac;
