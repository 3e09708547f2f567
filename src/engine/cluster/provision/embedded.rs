//! A control plane of this machine's own: etcd, kube-apiserver and kube-controller-manager of a
//! release as child processes, in a folder that goes with them.
//!
//! Nothing of it can be reached but by loopback and with one of its own certificates: etcd listens
//! on a socket in the folder, the API server knows no anonymous users, and each controller has the
//! rights of its own service account.

use crate::engine::cluster::access::custom_resources;
use crate::engine::cluster::provision::args::CLIENTS;
use crate::engine::cluster::provision::args::Files;
use crate::engine::cluster::provision::args::LOOPBACK;
use crate::engine::cluster::provision::args::PEERS;
use crate::engine::cluster::provision::args::api_server_args;
use crate::engine::cluster::provision::args::controller_manager_args;
use crate::engine::cluster::provision::args::etcd_args;
use std::io;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kube::Client;
use tokio::process::ChildStdout;
use tokio::time::sleep;

use crate::engine::EngineError;
use crate::engine::cluster::access::client;
use crate::engine::cluster::access::pki::Authority;
use crate::engine::cluster::access::rbac::{revoke, silence};
use crate::engine::cluster::provision::process::{Component, Folder};
use crate::engine::cluster::settings::Settings;
use crate::engine::cluster::workload::CustomKind;

/// How long it may take until the API server answers.
pub(crate) const READY_LIMIT: Duration = Duration::from_secs(60);

/// So many lines of each part are shown, where nobody knows whose fault it is.
const LINES: usize = 5;

/// How often it is asked whether it does.
pub(crate) const GLANCE: Duration = Duration::from_millis(25);

/// How often another port is tried when somebody else took one that was free a moment ago.
const ATTEMPTS: usize = 4;

/// The user that plays scenarios, with no more rights than that takes.
pub(crate) const DRIVER: &str = "kube-lockstep";

/// How long the path of a socket may be, in bytes (unix(7)); elsewhere it is a little less.
const SOCKET: usize = if cfg!(target_os = "linux") { 107 } else { 103 };

/// A control plane that runs.
pub(crate) struct ControlPlane {
    name: Arc<str>,
    // Ended in this order when it is dropped, and only then the folder is removed.
    controller_manager: Component,
    api_server: Component,
    etcd: Component,
    folder: Folder,
    server: String,
    /// The kube-controller-manager's own server.
    controllers: Client,
    authority: Authority,
    started: Duration,
    program: PathBuf,
    /// Where the kube-controller-manager tells of its health.
    healthz: u16,
}

impl std::fmt::Debug for ControlPlane {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ControlPlane").field("server", &self.server).finish_non_exhaustive()
    }
}

/// Why a start did not succeed.
enum Failed {
    /// Somebody else has the port by now.
    PortTaken,
    Other(EngineError),
}

/// The start of a control plane.
struct Start<'a> {
    name: &'a Arc<str>,
    program: &'a Path,
    settings: &'a Settings,
    folder: &'a Path,
    begin: Instant,
}

impl Start<'_> {
    fn failed(&self, what: &str, error: &dyn std::fmt::Display) -> Failed {
        Failed::Other(broken(self.name, &format!("{what}: {error}"), ""))
    }

    /// Starts a component: on half of the cores if it is `modest`. Returns its standard output if
    /// requested.
    fn component(
        &self,
        component: &'static str,
        args: &[String],
        modest: bool,
        output: bool,
    ) -> Result<(Component, Option<ChildStdout>), Failed> {
        Component::start(self.program, component, args, self.folder, (modest, output))
            .map_err(|error| self.failed(&format!("{component} can't be started"), &error))
    }

    /// A client with all permissions.
    async fn admin(&self, files: &Files<'_>) -> Result<Client, Failed> {
        let admin = files.client("admin", Some("system:masters"));
        let admin = admin.map_err(|error| self.failed("no certificates", &error))?;
        let client = client::of_text(&admin).await;
        client.map_err(|error| self.failed("no client", &error))
    }

    async fn wait_for_api_server(
        &self,
        client: &Client,
        etcd: &mut Component,
        api_server: &mut Component,
    ) -> Result<(), Failed> {
        loop {
            if let Ok(answer) = client::get(client, "/readyz").await
                && answer == "ok"
            {
                return Ok(());
            }
            for component in [&mut *etcd, &mut *api_server] {
                if let Some(status) = component.ended() {
                    return Err(ended(self.name, component, status));
                }
            }
            if self.begin.elapsed() > READY_LIMIT {
                let why = format!("it was not ready within {} s", READY_LIMIT.as_secs());
                return Err(Failed::Other(broken(self.name, &why, &api_server.tail())));
            }
            sleep(GLANCE).await;
        }
    }

    /// Creates the permissions and the custom resources.
    async fn configure(&self, client: &Client) -> Result<(), Failed> {
        let kinds = &self.settings.custom_kinds;
        let rules = kinds.iter().map(CustomKind::rule).collect();
        let granted = client::grant(client, DRIVER, rules).await;
        granted.map_err(|error| self.failed("rights can't be granted", &error))?;
        let revoked = revoke(client).await;
        revoked.map_err(|error| self.failed("rights can't be revoked", &error))?;
        if !self.settings.observed.is_empty() {
            let silenced = silence(client).await;
            silenced.map_err(|error| self.failed("rights can't be revoked", &error))?;
        }
        let installed = custom_resources::install(client, kinds).await;
        installed.map_err(|why| self.failed("custom resources", &why))
    }
}

impl ControlPlane {
    /// Starts one. Gives what the API server says of the requests of observed users, line by line,
    /// if there are any.
    ///
    /// # Errors
    /// If one of its programs ends or does not answer in time, with the tail of what it wrote.
    pub(crate) async fn start(
        name: &Arc<str>,
        program: &Path,
        settings: &Settings,
    ) -> Result<(ControlPlane, Option<ChildStdout>), EngineError> {
        for _ in 1..ATTEMPTS {
            match ControlPlane::try_start(name, program, settings).await {
                Err(Failed::PortTaken) => {}
                Err(Failed::Other(error)) => return Err(error),
                Ok(started) => return Ok(started),
            }
        }
        match ControlPlane::try_start(name, program, settings).await {
            Ok(started) => Ok(started),
            Err(Failed::Other(error)) => Err(error),
            Err(Failed::PortTaken) => {
                Err(broken(name, "every port that was free a moment ago was taken by others", ""))
            }
        }
    }

    async fn try_start(
        name: &Arc<str>,
        program: &Path,
        settings: &Settings,
    ) -> Result<(ControlPlane, Option<ChildStdout>), Failed> {
        let begin = Instant::now();
        let failed = |what: &str, error: &dyn std::fmt::Display| {
            Failed::Other(broken(name, &format!("{what}: {error}"), ""))
        };
        let folder = Folder::new();
        let folder = folder.map_err(|error| failed("no folder for the control plane", &error))?;
        fits(name, folder.path()).map_err(Failed::Other)?;
        let port = free_port().map_err(|error| failed("no free port", &error))?;
        let healthz = free_port().map_err(|error| failed("no free port", &error))?;
        let server = format!("https://127.0.0.1:{port}");
        let authority = Authority::new().map_err(|error| failed("no certificates", &error))?;
        let files = Files { folder: folder.path(), server: &server, authority: &authority };
        files.write(settings).map_err(|error| failed("no certificates", &error))?;
        let start = Start { name, program, settings, folder: folder.path(), begin };
        let observes = !settings.observed.is_empty();
        let (mut etcd, _) = start.component("etcd", &etcd_args(start.folder), true, false)?;
        let args = api_server_args(start.folder, (LOOPBACK, port), settings);
        let (mut api_server, audit) =
            start.component("kube-apiserver", &args, settings.small, observes)?;
        let client = start.admin(&files).await?;
        start.wait_for_api_server(&client, &mut etcd, &mut api_server).await?;
        start.configure(&client).await?;
        let args = controller_manager_args(start.folder, (LOOPBACK, healthz), settings);
        let (controller_manager, _) =
            start.component("kube-controller-manager", &args, true, false)?;
        let own = format!("https://127.0.0.1:{healthz}");
        let files = Files { folder: folder.path(), server: &own, authority: &authority };
        let controllers = start.admin(&files).await?;
        let mut control_plane = ControlPlane {
            name: name.clone(),
            controller_manager,
            api_server,
            etcd,
            server,
            controllers,
            authority,
            started: Duration::ZERO,
            folder,
            program: program.to_owned(),
            healthz,
        };
        control_plane.wait_for_controllers(begin).await?;
        control_plane.started = begin.elapsed();
        Ok((control_plane, audit))
    }

    /// Starts the kube-controller-manager anew, with other flags.
    ///
    /// # Errors
    /// If it ends or is not ready in time, with the tail of what it wrote; it is broken then.
    pub(crate) async fn change(&mut self, settings: &Settings) -> Result<(), EngineError> {
        self.controller_manager.end().await;
        let (folder, begin) = (self.folder.path(), Instant::now());
        let args = controller_manager_args(folder, (LOOPBACK, self.healthz), settings);
        let started = Component::start(
            &self.program,
            "kube-controller-manager",
            &args,
            folder,
            (true, false),
        );
        let (started, _) = started.map_err(|error| {
            broken(&self.name, &format!("kube-controller-manager can't be started: {error}"), "")
        })?;
        self.controller_manager = started;
        self.wait_for_controllers(begin).await.map_err(|failed| match failed {
            Failed::Other(error) => error,
            Failed::PortTaken => broken(&self.name, "its port is taken by others", ""),
        })
    }

    async fn wait_for_controllers(&mut self, begin: Instant) -> Result<(), Failed> {
        while !client::get(&self.controllers, "/healthz").await.is_ok_and(|it| it == "ok") {
            if let Some(status) = self.controller_manager.ended() {
                return Err(ended(&self.name, &self.controller_manager, status));
            }
            if begin.elapsed() > READY_LIMIT {
                let why = "the kube-controller-manager was not healthy in time";
                let tail = self.controller_manager.tail();
                return Err(Failed::Other(broken(&self.name, why, &tail)));
            }
            sleep(GLANCE).await;
        }
        Ok(())
    }

    /// A client of the kube-controller-manager's own server, which tells of its health.
    pub(crate) fn controllers(&self) -> Client {
        self.controllers.clone()
    }

    /// How long it took until it was ready.
    pub(crate) fn started(&self) -> Duration {
        self.started
    }

    /// Where the API server is.
    pub(crate) fn server(&self) -> &str {
        &self.server
    }

    /// What a user needs to know to talk to it: `admin` may do all, others what they were granted.
    pub(crate) fn kubeconfig(&self, user: &str, group: Option<&str>) -> io::Result<String> {
        let (folder, server, authority) = (self.folder.path(), &*self.server, &self.authority);
        Files { folder, server, authority }.client(user, group)
    }

    /// The folder that goes with it.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Whether all of it still runs.
    ///
    /// # Errors
    /// If not, with the tail of what the one wrote that does not.
    pub(crate) fn check(&mut self) -> Result<(), EngineError> {
        for component in [&mut self.etcd, &mut self.api_server, &mut self.controller_manager] {
            if let Some(status) = component.ended() {
                return Err(broken(&self.name, &component.has_ended(status), &component.tail()));
            }
        }
        Ok(())
    }

    /// The last lines that the API server and the controller manager wrote.
    pub(crate) fn tail(&self) -> String {
        last_lines(&[
            ("kube-apiserver", self.api_server.tail()),
            ("kube-controller-manager", self.controller_manager.tail()),
        ])
    }

    /// Ends it, and waits until nothing of it is left.
    pub(crate) async fn stop(mut self) {
        for component in [&mut self.controller_manager, &mut self.api_server, &mut self.etcd] {
            component.end().await;
        }
        self.folder.close().await;
    }
}

/// The last lines of each of these, under its name.
pub(crate) fn last_lines(parts: &[(&str, String)]) -> String {
    let each = parts.iter().filter(|(_, tail)| !tail.trim().is_empty()).map(|(name, tail)| {
        let lines: Vec<&str> = tail.trim_end().lines().collect();
        format!(
            "{name}:\n{}\n",
            lines.get(lines.len().saturating_sub(LINES)..).unwrap_or_default().join("\n")
        )
    });
    each.collect()
}

pub(crate) fn broken(name: &Arc<str>, why: &str, output: &str) -> EngineError {
    EngineError::Broken { engine: name.clone(), why: why.to_owned(), output: output.to_owned() }
}

/// Whether the kernel takes the paths of the sockets in a folder.
fn fits(name: &Arc<str>, folder: &Path) -> Result<(), EngineError> {
    let longest = folder.join(CLIENTS).as_os_str().len().max(folder.join(PEERS).as_os_str().len());
    if longest <= SOCKET {
        return Ok(());
    }
    let folder = folder.display();
    Err(EngineError::Unavailable {
        engine: name.clone(),
        why: format!(
            "a socket in {folder} has a path of {longest} bytes, and {SOCKET} are allowed"
        ),
        hint: "name a folder with a shorter path by TMPDIR, for instance /tmp".to_owned(),
    })
}

fn ended(name: &Arc<str>, component: &Component, status: ExitStatus) -> Failed {
    let output = component.tail();
    if output.contains("address already in use") {
        return Failed::PortTaken;
    }
    Failed::Other(broken(name, &component.has_ended(status), &output))
}

/// A port of loopback that nobody has now.
fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_have_short_paths() {
        let of = |length: usize| {
            let folder = format!("/{}", "t".repeat(length - 1));
            fits(&"embedded".into(), Path::new(&folder))
        };
        assert_eq!(of(SOCKET - "/etcd.sock".len()), Ok(()));
        let error = of(SOCKET - "/etcd.sock".len() + 1).expect_err("it is too long");
        assert!(matches!(&error, EngineError::Unavailable { hint, .. } if hint.contains("TMPDIR")));
    }
}
