//! A custom controller of a control plane: its permissions and its process.
//!
//! The controller is a foreign program, which does not exit with its input and may start other
//! processes. Therefore a guard holds it in a separate process group: when the guard's input
//! ends, for whatever reason, it asks the controller to stop, and then kills the group.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::Arc;

use crate::cluster::access::{client, rbac};
use crate::cluster::provision::args::{ADMIN, User};
use crate::cluster::provision::bootstrap::broken;
use crate::cluster::provision::embedded::ControlPlane;
use crate::cluster::provision::process::tail;
use crate::cluster::settings::Settings;
use kube_lockstep_engines::custom::USER;
use kube_lockstep_engines::guard::cluster::Guard;
use kube_lockstep_sim::engine::EngineError;

/// The permissions that an HPA controller requires; `docs/engines/custom.md` lists them.
const ROLE: &str = include_str!("controller_role.json");

/// A controller to start.
pub(crate) struct CustomController {
    name: Arc<str>,
    command: String,
    environment: Vec<(String, String)>,
    log: PathBuf,
}

impl CustomController {
    /// Creates the user of the controller in the settings, if any: permissions and kubeconfig.
    ///
    /// # Errors
    /// If the API server rejects a request, or a file can't be written.
    pub(crate) async fn prepare(
        control_plane: &ControlPlane,
        settings: &Settings,
    ) -> Result<Option<CustomController>, String> {
        let Some(controller) = &settings.controller else { return Ok(None) };
        let text = |error: std::io::Error| error.to_string();
        let admin = control_plane.kubeconfig(ADMIN).map_err(text)?;
        let admin = client::from_text(&admin).await?;
        rbac::grant(&admin, ROLE, controller.rules().to_vec(), USER).await?;
        let kubeconfig = control_plane.folder().join("controller.kubeconfig");
        let config = control_plane.kubeconfig(User { name: USER, group: None }).map_err(text)?;
        fs::write(&kubeconfig, config).map_err(text)?;
        Ok(Some(CustomController {
            name: controller.name().into(),
            command: controller.filled(&kubeconfig, &settings.flags, &settings.gates),
            environment: controller.environment(&kubeconfig, &settings.flags, &settings.gates),
            log: control_plane.folder().join("controller.log"),
        }))
    }

    /// Starts the controller.
    ///
    /// # Errors
    /// If the shell can't be started, or the log can't be created.
    pub(crate) fn start(self) -> std::io::Result<Running> {
        let log = OpenOptions::new().create(true).append(true).mode(0o600).open(&self.log)?;
        let guard = Guard::holding(&self.command, self.environment, log)?;
        Ok(Running { guard, log: ProcessLog { name: self.name, path: self.log } })
    }
}

/// The log of a process.
#[derive(Clone, Debug)]
pub(crate) struct ProcessLog {
    /// The name of the process.
    pub name: Arc<str>,
    path: PathBuf,
}

impl ProcessLog {
    /// The last lines.
    pub(crate) fn tail(&self) -> String {
        tail(&self.path).unwrap_or_default()
    }
}

/// A running controller.
pub(crate) struct Running {
    guard: Guard,
    log: ProcessLog,
}

impl Running {
    /// Its log.
    pub(crate) fn log(&self) -> &ProcessLog {
        &self.log
    }

    /// Checks that it is running.
    ///
    /// # Errors
    /// If it has exited, with the last lines of its log.
    pub(crate) fn check(&mut self, engine: &Arc<str>) -> Result<(), EngineError> {
        let Some(status) = self.guard.exited() else { return Ok(()) };
        let name = &self.log.name;
        let why = format!("{name} has exited ({status}), but must run until it is stopped");
        Err(broken(engine, &why, &self.log.tail()))
    }

    /// Stops it, and waits for its exit.
    pub(crate) async fn stop(self) {
        self.guard.close().await;
    }
}
