//! Existing clusters, named by a kubeconfig.
//!
//! This inspects a cluster before a run, and removes the leftovers of dead runs; `cluster` runs
//! scenarios on it.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::runtime::Runtime;

use crate::cluster::provision::existing;
use kube_lockstep_engines::options::{ClusterInfo, ExistingCluster};
use kube_lockstep_engines::runtime;
use kube_lockstep_engines::runtime::Threads;
use kube_lockstep_sim::engine::EngineError;

pub use kube_lockstep_engines::registry::KUBECONFIG as NAME;

/// The names of the contexts in a kubeconfig; by default, in the files that `KUBECONFIG` names, or
/// in kubectl's default.
///
/// # Errors
/// If it can't be read.
pub fn contexts(kubeconfig: Option<&PathBuf>) -> Result<Vec<String>, EngineError> {
    existing::contexts(kubeconfig).map_err(broken)
}

/// Inspects a cluster, after removing the leftovers of dead runs.
///
/// # Errors
/// If the cluster can't be reached, has an unsupported release, or is in use by another run.
pub fn inspect(cluster: &ExistingCluster) -> Result<ClusterInfo, EngineError> {
    runtime()?.block_on(async {
        let connection = existing::connect(cluster).await.map_err(broken)?;
        let look = existing::look(&connection).await;
        look.map_err(|refusal| existing::explain(&NAME.into(), cluster, refusal))
    })
}

/// Removes the leftovers of dead runs from a cluster, and reports them.
///
/// # Errors
/// If the cluster can't be reached, or an object can't be removed.
pub fn clean(cluster: &ExistingCluster) -> Result<Vec<String>, EngineError> {
    runtime()?.block_on(async {
        let connection = existing::connect(cluster).await.map_err(broken)?;
        existing::clean(&connection.client).await.map_err(broken)
    })
}

fn runtime() -> Result<Runtime, EngineError> {
    runtime::for_engine(&NAME.into(), Threads::Caller)
}

fn broken(why: String) -> EngineError {
    EngineError::Broken { engine: Arc::from(NAME), why, output: String::new() }
}
