//! The embedded control plane: a real control plane of a release, built from upstream's modules and
//! run as child processes, without containers, images or root permissions.
//!
//! This is the interface for interactive use; `cluster` runs scenarios on it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Runtime;

use crate::cluster::provision::args::{ADMIN, DRIVER};
use crate::cluster::provision::embedded::ControlPlane;
use crate::cluster::settings::Settings;
use kube_autoscaler_models::flags::Flags;
use kube_autoscaler_models::rules::Release;
use kube_lockstep_engines::runtime;
use kube_lockstep_engines::runtime::Threads;
use kube_lockstep_engines::upstream::build;
use kube_lockstep_engines::upstream::build::{Artifact, BuildOptions, Progress};
use kube_lockstep_sim::engine::EngineError;

pub use kube_lockstep_engines::registry::EMBEDDED as NAME;

/// The releases with a control plane, oldest first.
pub fn supported() -> impl DoubleEndedIterator<Item = Release> {
    build::supported(Artifact::ControlPlane).map(Release::from)
}

/// The program of a release; builds it if necessary.
///
/// # Errors
/// If there is no Go, no control plane of that release, or the build fails.
pub fn ensure(
    release: Release,
    options: impl Into<BuildOptions>,
    progress: Progress<'_>,
) -> Result<std::path::PathBuf, EngineError> {
    build::ensure(Artifact::ControlPlane, release, options, progress).map_err(|error| match error {
        EngineError::Unavailable { problem, .. } => {
            EngineError::Unavailable { engine: NAME.into(), problem }
        }
        error => error,
    })
}

/// The options of a control plane.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Options {
    /// Flags of the kube-controller-manager.
    pub flags: Flags,
    /// Feature gates, by name.
    pub gates: BTreeMap<String, bool>,
    /// True to run without upstream's HPA controller.
    pub without_hpa_controller: bool,
    /// Additional arguments of the API server, without dashes: `enable-aggregator-routing=true`.
    pub api_server: Vec<String>,
}

/// A control plane that runs until it is stopped or dropped.
#[derive(Debug)]
pub struct Running {
    // Dropped before the runtime that waits for its processes.
    control_plane: Option<ControlPlane>,
    runtime: Runtime,
}

impl Running {
    /// Starts a control plane.
    ///
    /// # Errors
    /// If a component exits or is not ready in time.
    pub fn start(program: &Path, options: &Options) -> Result<Running, EngineError> {
        let name: Arc<str> = NAME.into();
        let runtime = runtime::for_engine(&name, Threads::Background(1))?;
        let settings = Settings {
            gates: options.gates.clone(),
            hpa_controller: !options.without_hpa_controller,
            api_server: options.api_server.clone(),
            ..Settings::new(options.flags)
        };
        let started = runtime.block_on(ControlPlane::start(&name, program, &settings));
        let (control_plane, _) = started?;
        Ok(Running { control_plane: Some(control_plane), runtime })
    }

    /// A kubeconfig with administrator rights.
    ///
    /// # Errors
    /// If no certificate can be created.
    pub fn admin_kubeconfig(&self) -> std::io::Result<String> {
        match &self.control_plane {
            Some(control_plane) => control_plane.kubeconfig(ADMIN),
            None => Err(std::io::Error::other("the control plane was stopped")),
        }
    }

    /// A kubeconfig with only the permissions that are required to run scenarios.
    ///
    /// # Errors
    /// If no certificate can be created.
    pub fn driver_kubeconfig(&self) -> std::io::Result<String> {
        match &self.control_plane {
            Some(control_plane) => control_plane.kubeconfig(DRIVER),
            None => Err(std::io::Error::other("the control plane was stopped")),
        }
    }

    /// The address of the API server.
    #[must_use]
    pub fn server(&self) -> &str {
        self.control_plane.as_ref().map_or("", ControlPlane::server)
    }

    /// The time until it was ready.
    #[must_use]
    pub fn started(&self) -> Duration {
        self.control_plane.as_ref().map_or(Duration::ZERO, ControlPlane::started)
    }

    /// Checks that all components are running.
    ///
    /// # Errors
    /// If a component has exited, with its last log lines.
    pub fn check(&mut self) -> Result<(), EngineError> {
        let _entered = self.runtime.enter();
        self.control_plane.as_mut().map_or(Ok(()), ControlPlane::check)
    }

    /// Stops it and waits until everything is removed.
    pub fn stop(self) {
        drop(self);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(control_plane) = self.control_plane.take() {
            self.runtime.block_on(control_plane.stop());
        }
    }
}
