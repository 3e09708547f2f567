//! The embedded control plane: etcd, kube-apiserver and kube-controller-manager of a release as
//! child processes, with a temporary folder.
//!
//! It can only be reached through loopback and with its own certificates: etcd listens on a socket
//! in the folder, the API server rejects anonymous users, and each controller has the permissions
//! of its service account.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use kube::Client;
use tokio::process::ChildStdout;

use crate::cluster::access::client;
use crate::cluster::access::pki::Authority;
use crate::cluster::provision::args::{
    ADMIN, CLIENT_SOCKET, Files, LOOPBACK, PEER_SOCKET, User, api_server_args,
    controller_manager_args, etcd_args,
};
use crate::cluster::provision::bootstrap::{Bootstrap, StartError, broken, last_lines};
use crate::cluster::provision::process::{Component, Folder, Launch};
use crate::cluster::settings::Settings;
use kube_lockstep_scenario::Diagnostic;
use kube_lockstep_sim::engine::EngineError;

/// The number of attempts, because other processes may take the free ports first.
const ATTEMPTS: usize = 4;

/// The maximum length of the path of a socket, in bytes (unix(7)); a little less on other systems.
const MAX_SOCKET_PATH: usize = if cfg!(target_os = "linux") { 107 } else { 103 };

/// A running control plane.
pub(crate) struct ControlPlane {
    name: Arc<str>,
    // The components are dropped in this order; then the folder is removed.
    controller_manager: Option<Component>,
    api_server: Component,
    etcd: Component,
    folder: Folder,
    server: String,
    /// A client of the health endpoint of the kube-controller-manager.
    controllers: Client,
    authority: Authority,
    started: Duration,
    program: PathBuf,
    /// The address of the health endpoint of the kube-controller-manager.
    health: SocketAddr,
}

impl std::fmt::Debug for ControlPlane {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ControlPlane").field("server", &self.server).finish_non_exhaustive()
    }
}

impl ControlPlane {
    /// Starts a control plane. Also returns the API server's audit log, if there are observed
    /// users.
    ///
    /// # Errors
    /// If a component exits or is not ready in time, with the last lines of its log.
    pub(crate) async fn start(
        name: &Arc<str>,
        program: &Path,
        settings: &Settings,
    ) -> Result<(ControlPlane, Option<ChildStdout>), EngineError> {
        for _ in 0..ATTEMPTS {
            match ControlPlane::try_start(name, program, settings).await {
                Err(StartError { is_port_taken: true, .. }) => {}
                started => return started.map_err(|failed| failed.error),
            }
        }
        let why = "other programs took each free port before it could be used";
        Err(broken(name, why, ""))
    }

    async fn try_start(
        name: &Arc<str>,
        program: &Path,
        settings: &Settings,
    ) -> Result<(ControlPlane, Option<ChildStdout>), StartError> {
        let failed = |what: &str, error: &dyn std::fmt::Display| {
            broken(name, &format!("{what}: {error}"), "")
        };
        let begin = Instant::now();
        let folder = Folder::new();
        let folder = folder.map_err(|error| failed("no folder for the control plane", &error))?;
        check_socket_paths(name, folder.path())?;
        let listen = free_address().map_err(|error| failed("no free port", &error))?;
        let health = free_address().map_err(|error| failed("no free port", &error))?;
        let server = format!("https://{listen}");
        let authority = Authority::new().map_err(|error| failed("no certificates", &error))?;
        let files = Files { folder: folder.path(), server: &server, authority: &authority };
        files.write(settings).map_err(|error| failed("no certificates", &error))?;
        let admin = files.kubeconfig(ADMIN);
        let admin = admin.map_err(|error| failed("no certificates", &error))?;
        let controllers = Files { server: &format!("https://{health}"), ..files };
        let controllers = controllers.kubeconfig(ADMIN);
        let controllers = controllers.map_err(|error| failed("no certificates", &error))?;
        let admin = client::from_text(&admin).await.map_err(|why| failed("no client", &why))?;
        let controllers = client::from_text(&controllers).await;
        let controllers = controllers.map_err(|why| failed("no client", &why))?;
        let start = |name: &'static str, args, few_cores, pipes_output| {
            let folder = folder.path();
            Component::start(Launch { program, name, args, folder, few_cores, pipes_output })
                .map_err(|error| failed(&format!("{name} can't be started"), &error))
        };
        let (etcd, _) = start("etcd", etcd_args(folder.path()), true, false)?;
        let args = api_server_args(folder.path(), listen, settings);
        let is_observed = !settings.observed.is_empty();
        let (api_server, audit_log) = start("kube-apiserver", args, settings.small, is_observed)?;
        let mut control_plane = ControlPlane {
            name: name.clone(),
            controller_manager: None,
            api_server,
            etcd,
            server,
            controllers: controllers.clone(),
            authority,
            started: Duration::ZERO,
            folder,
            program: program.to_owned(),
            health,
        };
        control_plane.bootstrap(&admin, &controllers, settings).await?;
        control_plane.started = begin.elapsed();
        Ok((control_plane, audit_log))
    }

    /// Restarts the kube-controller-manager with other flags.
    ///
    /// # Errors
    /// If it exits or is not ready in time, with the last lines of its log. The control plane is
    /// then broken.
    pub(crate) async fn change(&mut self, settings: &Settings) -> Result<(), EngineError> {
        if let Some(mut controller_manager) = self.controller_manager.take() {
            controller_manager.stop().await;
        }
        let controllers = self.controllers();
        let changed = async {
            self.start_controller_manager(settings).await?;
            self.wait_until_healthy(&controllers).await
        };
        changed.await.map_err(|failed| failed.error)
    }

    /// A client of the health endpoint of the kube-controller-manager.
    pub(crate) fn controllers(&self) -> Client {
        self.controllers.clone()
    }

    /// The time until it was ready.
    pub(crate) fn started(&self) -> Duration {
        self.started
    }

    /// The URL of the API server.
    pub(crate) fn server(&self) -> &str {
        &self.server
    }

    /// A kubeconfig of a user.
    pub(crate) fn kubeconfig(&self, user: User) -> io::Result<String> {
        let (folder, server, authority) = (self.folder.path(), &*self.server, &self.authority);
        Files { folder, server, authority }.kubeconfig(user)
    }

    /// Its temporary folder.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Checks that all components are running.
    ///
    /// # Errors
    /// If a component has exited, with the last lines of its log.
    pub(crate) fn check(&mut self) -> Result<(), EngineError> {
        self.check_components().map_err(|failed| failed.error)
    }

    /// The last lines of the logs of the API server and the kube-controller-manager.
    pub(crate) fn tail(&self) -> String {
        Bootstrap::tail(self)
    }

    /// The components in the order of their start: if a component fails, so do the later ones.
    fn components(&mut self) -> impl DoubleEndedIterator<Item = &mut Component> {
        [&mut self.etcd, &mut self.api_server].into_iter().chain(&mut self.controller_manager)
    }

    /// Stops it, and waits until everything is removed.
    pub(crate) async fn stop(mut self) {
        for component in self.components().rev() {
            component.stop().await;
        }
        self.folder.close().await;
    }
}

impl Bootstrap for ControlPlane {
    fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn check_components(&mut self) -> Result<(), StartError> {
        let name = self.name.clone();
        for component in self.components() {
            let Some(status) = component.exited() else { continue };
            let log = component.tail();
            let error = broken(&name, &component.exit_message(status), &log);
            let is_port_taken = log.contains("address already in use");
            return Err(StartError { error, is_port_taken });
        }
        Ok(())
    }

    fn tail(&self) -> String {
        let controller_manager = self.controller_manager.as_ref().map(Component::tail);
        last_lines(&[
            ("kube-apiserver", self.api_server.tail()),
            ("kube-controller-manager", controller_manager.unwrap_or_default()),
        ])
    }

    async fn start_controller_manager(&mut self, settings: &Settings) -> Result<(), StartError> {
        let (name, folder) = ("kube-controller-manager", self.folder.path());
        let args = controller_manager_args(folder, self.health, settings);
        let program = &self.program;
        let launch = Launch { program, name, args, folder, few_cores: true, pipes_output: false };
        let (started, _) = Component::start(launch).map_err(|error| {
            broken(&self.name, &format!("{name} can't be started: {error}"), "")
        })?;
        self.controller_manager = Some(started);
        Ok(())
    }
}

/// Fails if the paths of the sockets in a folder are too long for the kernel.
fn check_socket_paths(name: &Arc<str>, folder: &Path) -> Result<(), EngineError> {
    let lengths = [CLIENT_SOCKET, PEER_SOCKET].map(|socket| folder.join(socket).as_os_str().len());
    let longest = lengths.into_iter().max().unwrap_or_default();
    if longest <= MAX_SOCKET_PATH {
        return Ok(());
    }
    let folder = folder.display();
    Err(EngineError::Unavailable {
        engine: name.clone(),
        problem: Diagnostic::new(format!(
            "the path of a socket in {folder} has {longest} bytes, but the limit is \
             {MAX_SOCKET_PATH}"
        ))
        .hint("set TMPDIR to a folder with a shorter path, for example /tmp"),
    })
}

/// A loopback address with a port that is currently free.
fn free_address() -> io::Result<SocketAddr> {
    TcpListener::bind((LOOPBACK, 0))?.local_addr()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_paths_of_sockets_are_limited() {
        let of = |length: usize| {
            let folder = format!("/{}", "t".repeat(length - 1));
            check_socket_paths(&"embedded".into(), Path::new(&folder))
        };
        assert_eq!(of(MAX_SOCKET_PATH - "/etcd.sock".len()), Ok(()));
        let error = of(MAX_SOCKET_PATH - "/etcd.sock".len() + 1).expect_err("the path is too long");
        let EngineError::Unavailable { problem, .. } = &error else { panic!("{error}") };
        assert!(problem.in_one_line("").contains("TMPDIR"), "{error}");
    }
}
