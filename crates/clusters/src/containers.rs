//! Clusters in containers of this machine's Docker engine: the control plane in its own image, k3s
//! and kind.
//!
//! This is the interface for interactive use; `cluster` runs scenarios on them.

use std::sync::Arc;

use tokio::runtime::Runtime;

use crate::cluster::provision::{docker, existing, image};
use kube_autoscaler_models::rules::Release;
use kube_lockstep_engines::options::HostPort;
use kube_lockstep_engines::runtime;
use kube_lockstep_engines::runtime::Threads;
use kube_lockstep_sim::engine::EngineError;

pub use kube_lockstep_engines::registry::{IMAGE, K3S, KIND};

/// The oldest release that k3s and kind can run scenarios on.
pub const OLDEST: Release = docker::OLDEST;

/// The address of this machine as seen from containers.
#[must_use]
pub fn own_address() -> Option<HostPort> {
    existing::host_for_containers()
}

/// The version of the Docker engine that the environment names.
///
/// # Errors
/// If Docker can't be reached.
pub fn docker_version() -> Result<String, EngineError> {
    let name: Arc<str> = IMAGE.into();
    runtime(&name)?.block_on(docker::version(&name))
}

/// The images of control planes in Docker, with their sizes in bytes.
///
/// # Errors
/// If Docker can't be reached.
pub fn images() -> Result<Vec<(String, u64)>, EngineError> {
    let name: Arc<str> = IMAGE.into();
    runtime(&name)?.block_on(image::images(&name))
}

/// Removes an image. Returns false if a container uses it.
///
/// # Errors
/// If Docker can't be reached, or can't remove it.
pub fn remove(image: &str) -> Result<bool, EngineError> {
    let name: Arc<str> = IMAGE.into();
    runtime(&name)?.block_on(image::remove(&name, image))
}

fn runtime(name: &Arc<str>) -> Result<Runtime, EngineError> {
    runtime::for_engine(name, Threads::Caller)
}
