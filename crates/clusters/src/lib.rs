//! The engines that are real clusters, and the metrics server for controllers of other clusters.

#[cfg(not(unix))]
compile_error!("clusters require Linux or macOS");

mod cluster;
pub mod containers;
pub mod embedded;
pub mod kubeconfig;
pub mod metrics_server;
pub mod wall_clock;
