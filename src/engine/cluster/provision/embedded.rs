//! A control plane of this machine's own: etcd, kube-apiserver and kube-controller-manager of a
//! release as child processes, in a folder that goes with them.
//!
//! Nothing of it can be reached but by loopback and with one of its own certificates: etcd listens
//! on a socket in the folder, the API server knows no anonymous users, and each controller has the
//! rights of its own service account.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kube::Client;
use tokio::process::ChildStdout;
use tokio::time::sleep;

use crate::engine::EngineError;
use crate::engine::cluster::access::client;
use crate::engine::cluster::access::rbac::{revoke, silence};
use crate::engine::cluster::provision::kubeconfig::kubeconfig;
use crate::engine::cluster::provision::pki::{Authority, signing_key};
use crate::engine::cluster::provision::process::{Component, Folder};
use crate::engine::cluster::session::workload;
use crate::engine::cluster::session::workload::CustomKind;
use crate::engine::cluster::settings::Settings;
use crate::model::flags::{Flag, Flags};
use crate::model::time::Span;

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

/// The controllers that run beside that of HPAs: those that make pods of workloads, and those that
/// remove what belongs to something that is gone.
const CONTROLLERS: [&str; 6] = [
    "deployment-controller",
    "replicaset-controller",
    "replicationcontroller-controller",
    "statefulset-controller",
    "garbage-collector-controller",
    "namespace-controller",
];

/// The controller of HPAs.
const HPA_CONTROLLER: &str = "horizontal-pod-autoscaler-controller";

/// How many HPAs, Deployments and ReplicaSets are looked after at a time, each: with fewer workers,
/// they would wait for each other where nothing else does.
const WORKERS: &str = "100";

/// Where the programs listen.
const LOOPBACK: &str = "127.0.0.1";

/// The sockets at which etcd listens.
const CLIENTS: &str = "etcd.sock";
const PEERS: &str = "peer.sock";

/// How long the path of a socket may be, in bytes (unix(7)); elsewhere it is a little less.
const SOCKET: usize = if cfg!(target_os = "linux") { 107 } else { 103 };

/// The API server's addresses of Services. No traffic ever goes there.
const SERVICES: &str = "10.43.0.0/16";

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
        let failed = |what: &str, error: &dyn std::fmt::Display| {
            Failed::Other(broken(name, &format!("{what}: {error}"), ""))
        };
        let begin = Instant::now();
        let folder = Folder::new();
        let folder = folder.map_err(|error| failed("no folder for the control plane", &error))?;
        fits(name, folder.path()).map_err(Failed::Other)?;
        let port = free_port().map_err(|error| failed("no free port", &error))?;
        let healthz = free_port().map_err(|error| failed("no free port", &error))?;
        let server = format!("https://127.0.0.1:{port}");
        let authority = Authority::new().map_err(|error| failed("no certificates", &error))?;
        let files = Files { folder: folder.path(), server: &server, authority: &authority };
        files.write(settings).map_err(|error| failed("no certificates", &error))?;
        let start = |program: &Path,
                     component: &'static str,
                     args: &[String],
                     (modest, output): (bool, bool)| {
            Component::start(program, component, args, folder.path(), (modest, output))
                .map_err(|error| failed(&format!("{component} can't be started"), &error))
        };
        let observes = !settings.observed.is_empty();
        let (mut etcd, _) = start(program, "etcd", &etcd_args(folder.path()), (true, false))?;
        let args = api_server_args(folder.path(), (LOOPBACK, port), settings);
        let (mut api_server, audit) =
            start(program, "kube-apiserver", &args, (settings.small, observes))?;
        let args = controller_manager_args(folder.path(), (LOOPBACK, healthz), settings);
        let admin = files.client("admin", Some("system:masters"));
        let admin = admin.map_err(|error| failed("no certificates", &error))?;
        let client = client::of_text(&admin).await;
        let client = client.map_err(|error| failed("no client", &error))?;
        let wait = async |etcd: &mut Component, api_server: &mut Component| loop {
            if let Ok(answer) = client::get(&client, "/readyz").await
                && answer == "ok"
            {
                return Ok(());
            }
            for component in [&mut *etcd, &mut *api_server] {
                if let Some(status) = component.ended() {
                    return Err(ended(name, component, status));
                }
            }
            if begin.elapsed() > READY_LIMIT {
                let why = format!("it was not ready within {} s", READY_LIMIT.as_secs());
                return Err(Failed::Other(broken(name, &why, &api_server.tail())));
            }
            sleep(GLANCE).await;
        };
        wait(&mut etcd, &mut api_server).await?;
        let kinds = &settings.custom_kinds;
        let rules = kinds.iter().map(CustomKind::rule).collect();
        client::grant(&client, DRIVER, rules)
            .await
            .map_err(|error| failed("rights can't be granted", &error))?;
        let revoked = revoke(&client).await;
        revoked.map_err(|error| failed("rights can't be revoked", &error))?;
        if observes {
            let silenced = silence(&client).await;
            silenced.map_err(|error| failed("rights can't be revoked", &error))?;
        }
        let installed = workload::install(&client, kinds).await;
        installed.map_err(|why| failed("custom resources", &why))?;
        let (controller_manager, _) =
            start(program, "kube-controller-manager", &args, (true, false))?;
        let own = format!("https://127.0.0.1:{healthz}");
        let files = Files { folder: folder.path(), server: &own, authority: &authority };
        let admin = files.client("admin", Some("system:masters"));
        let admin = admin.map_err(|error| failed("no certificates", &error))?;
        let controllers = client::of_text(&admin).await;
        let controllers = controllers.map_err(|error| failed("no client", &error))?;
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

/// The files that the programs read.
pub(crate) struct Files<'a> {
    pub(crate) folder: &'a Path,
    /// Where clients find the API server.
    pub(crate) server: &'a str,
    pub(crate) authority: &'a Authority,
}

impl Files<'_> {
    fn write(&self, settings: &Settings) -> io::Result<()> {
        self.texts(settings)?.iter().try_for_each(|(name, text)| self.file(name, text))
    }

    /// Their names, and what is in them.
    pub(crate) fn texts(&self, settings: &Settings) -> io::Result<Vec<(&'static str, String)>> {
        let authority = self.authority;
        let names = [LOOPBACK, "localhost", "kubernetes", "kubernetes.default.svc"];
        let server = authority.server("kube-apiserver", &names).map_err(io::Error::other)?;
        let proxy = authority.client("kube-lockstep:proxy", None).map_err(io::Error::other)?;
        let (private, public) = signing_key().map_err(io::Error::other)?;
        Ok(vec![
            ("server.crt", server.certificate),
            ("server.key", server.key),
            ("proxy.crt", proxy.certificate),
            ("proxy.key", proxy.key),
            ("ca.crt", authority.pem()),
            ("accounts.key", private),
            ("accounts.pub", public),
            ("controller-manager.kubeconfig", self.client("system:kube-controller-manager", None)?),
            ("audit-policy.yaml", audit_policy(settings)),
        ])
    }

    /// A kubeconfig with a new certificate.
    pub(crate) fn client(&self, user: &str, group: Option<&str>) -> io::Result<String> {
        let identity = self.authority.client(user, group).map_err(io::Error::other)?;
        Ok(kubeconfig("kube-lockstep", self.server, &self.authority.pem(), &identity))
    }

    fn file(&self, name: &str, text: &str) -> io::Result<()> {
        let path = self.folder.join(name);
        fs::write(&path, text)?;
        // Keys are for nobody else's eyes; the folder is not either.
        fs::set_permissions(path, fs::Permissions::from_mode(0o600))
    }
}

pub(crate) fn etcd_args(folder: &Path) -> Vec<String> {
    let socket = |name: &str| format!("unix://{}", folder.join(name).display());
    vec![
        format!("--data-dir={}", folder.join("etcd").display()),
        format!("--listen-client-urls={}", socket(CLIENTS)),
        format!("--listen-peer-urls={}", socket(PEERS)),
        // Told to members of a cluster of etcds; there are none, and nobody listens there.
        "--advertise-client-urls=http://localhost:2379".to_owned(),
        // The folder does not outlive the processes: nothing is to survive a loss of power.
        "--unsafe-no-fsync".to_owned(),
        "--log-level=error".to_owned(),
    ]
}

pub(crate) fn api_server_args(
    folder: &Path,
    (address, port): (&str, u16),
    settings: &Settings,
) -> Vec<String> {
    let file = |name: &str| folder.join(name).display().to_string();
    let mut args = vec![
        format!("--etcd-servers=unix://{}", file(CLIENTS)),
        format!("--bind-address={address}"),
        format!("--advertise-address={LOOPBACK}"),
        format!("--secure-port={port}"),
        format!("--tls-cert-file={}", file("server.crt")),
        format!("--tls-private-key-file={}", file("server.key")),
        format!("--client-ca-file={}", file("ca.crt")),
        "--anonymous-auth=false".to_owned(),
        "--authorization-mode=RBAC".to_owned(),
        "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
        format!("--service-account-key-file={}", file("accounts.pub")),
        format!("--service-account-signing-key-file={}", file("accounts.key")),
        // No controller gives each namespace its account, and no pod ever runs.
        "--disable-admission-plugins=ServiceAccount".to_owned(),
        format!("--service-cluster-ip-range={SERVICES}"),
        // It would refuse to be an endpoint at loopback.
        "--endpoint-reconciler-type=none".to_owned(),
        format!("--requestheader-client-ca-file={}", file("ca.crt")),
        "--requestheader-allowed-names=kube-lockstep:proxy".to_owned(),
        "--requestheader-username-headers=X-Remote-User".to_owned(),
        "--requestheader-group-headers=X-Remote-Group".to_owned(),
        "--requestheader-extra-headers-prefix=X-Remote-Extra-".to_owned(),
        format!("--proxy-client-cert-file={}", file("proxy.crt")),
        format!("--proxy-client-key-file={}", file("proxy.key")),
        // Scenarios side by side must not wait for each other.
        "--enable-priority-and-fairness=false".to_owned(),
        "--max-requests-inflight=0".to_owned(),
        "--max-mutating-requests-inflight=0".to_owned(),
        "--profiling=false".to_owned(),
    ];
    if !settings.observed.is_empty() {
        args.push(format!("--audit-policy-file={}", file("audit-policy.yaml")));
        args.push("--audit-log-path=-".to_owned());
        args.push("--audit-log-mode=blocking".to_owned());
    }
    args.extend(gates(&settings.gates));
    args.extend(settings.api_server.iter().map(|arg| format!("--{arg}")));
    args
}

pub(crate) fn controller_manager_args(
    folder: &Path,
    (address, port): (&str, u16),
    settings: &Settings,
) -> Vec<String> {
    let config = folder.join("controller-manager.kubeconfig").display().to_string();
    let own = settings.hpa_controller.then_some(HPA_CONTROLLER);
    let controllers: Vec<&str> = CONTROLLERS.into_iter().chain(own).collect();
    let mut args = vec![
        format!("--kubeconfig={config}"),
        format!("--authentication-kubeconfig={config}"),
        format!("--authorization-kubeconfig={config}"),
        format!("--bind-address={address}"),
        format!("--secure-port={port}"),
        format!("--tls-cert-file={}", folder.join("server.crt").display()),
        format!("--tls-private-key-file={}", folder.join("server.key").display()),
        format!("--controllers={}", controllers.join(",")),
        "--use-service-account-credentials=true".to_owned(),
        "--leader-elect=false".to_owned(),
        // Its health is no exception from who may ask for what.
        "--authorization-always-allow-paths=".to_owned(),
        // Pods of many scenarios come and go at once.
        "--kube-api-qps=2000".to_owned(),
        "--kube-api-burst=4000".to_owned(),
        format!("--concurrent-deployment-syncs={WORKERS}"),
        format!("--concurrent-replicaset-syncs={WORKERS}"),
    ];
    args.extend(flags(&settings.flags));
    args.extend(gates(&settings.gates));
    args
}

/// The flags of the HPA controller. The number of its workers is not the scenario's: it has to be
/// enough for all scenarios that run side by side, and of one HPA nobody can tell.
pub(crate) fn flags(flags: &Flags) -> Vec<String> {
    let duration = |span: Span| format!("{}ns", span.0);
    let values = [
        (Flag::SyncPeriod, duration(flags.sync_period)),
        (Flag::DownscaleStabilization, duration(flags.downscale_stabilization)),
        (Flag::Tolerance, flags.tolerance.to_string()),
        (Flag::CpuInitializationPeriod, duration(flags.cpu_initialization_period)),
        (Flag::InitialReadinessDelay, duration(flags.initial_readiness_delay)),
        (Flag::ConcurrentSyncs, WORKERS.to_owned()),
    ];
    values.into_iter().map(|(flag, value)| format!("--{}={value}", flag.name())).collect()
}

pub(in crate::engine) fn gates(gates: &BTreeMap<String, bool>) -> Option<String> {
    let list: Vec<String> = gates.iter().map(|(gate, on)| format!("{gate}={on}")).collect();
    (!list.is_empty()).then(|| format!("--feature-gates={}", list.join(",")))
}

/// What the API server tells of: what the observed users read one by one, and write. Lists and
/// watches are not of a reconcile, and told of only where they may be refused; the answers of the
/// metrics APIs are known to who gives them.
pub(crate) fn audit_policy(settings: &Settings) -> String {
    let users = &settings.observed;
    let lists = if settings.controller.is_some() { "Metadata" } else { "None" };
    let policy = serde_json::json!({
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived", "ResponseStarted"],
        "omitManagedFields": true,
        "rules": [
            {
                "level": "RequestResponse",
                "users": users,
                "verbs": ["get", "create", "update", "patch"],
            },
            { "level": lists, "users": users, "verbs": ["list", "watch"] },
            { "level": "None" },
        ],
    });
    format!("{policy:#}\n")
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
