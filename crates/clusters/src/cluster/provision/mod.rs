//! Clusters to run scenarios on: control planes in child processes and containers, k3s, kind, and
//! existing clusters.

pub(crate) mod args;
pub(crate) mod bootstrap;
pub(crate) mod container;
pub(crate) mod custom_controller;
pub(crate) mod docker;
pub(crate) mod embedded;
pub(crate) mod existing;
pub(crate) mod image;
pub(crate) mod k3s;
pub(crate) mod kind;
pub(crate) mod process;
