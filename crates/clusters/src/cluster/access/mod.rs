//! Access to a cluster: clients, permissions, ownership of objects, and clock skew.

pub(crate) mod client;
pub(crate) mod clock_skew;
pub(crate) mod connect;
pub(crate) mod custom_resources;
pub(crate) mod error;
pub(crate) mod kubeconfig;
pub(crate) mod local_address;
pub(crate) mod namespaces;
pub(crate) mod ownership;
pub(crate) mod pki;
pub(crate) mod rbac;
