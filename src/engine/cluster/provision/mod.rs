//! Clusters to run scenarios on: control planes in child processes and containers, k3s, kind, and
//! existing clusters.

pub(crate) mod container;
pub(crate) mod docker;
pub(crate) mod embedded;
pub(crate) mod existing;
pub(crate) mod image;
pub(crate) mod k3s;
pub(crate) mod kind;
pub(crate) mod kubeconfig;
pub(crate) mod pki;
pub(crate) mod process;
