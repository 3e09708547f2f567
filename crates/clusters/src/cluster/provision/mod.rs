//! Clusters to run scenarios on: control planes in child processes and containers, k3s, kind, and
//! existing clusters.

pub mod args;
pub(crate) mod bootstrap;
pub mod container;
pub mod custom_controller;
pub mod docker;
pub mod embedded;
pub mod existing;
pub mod image;
pub mod k3s;
pub mod kind;
pub mod process;
