//! Access to a cluster: clients, permissions, ownership of objects, and clock skew.

pub mod client;
pub(crate) mod clock_skew;
pub mod connect;
pub(crate) mod custom_resources;
pub mod error;
pub mod kubeconfig;
pub(crate) mod local_address;
pub mod namespaces;
pub(crate) mod ownership;
pub(crate) mod pki;
pub mod rbac;
