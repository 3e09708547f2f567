//! Arguments and files of the components of a control plane.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::cluster::access::kubeconfig::kubeconfig;
use crate::cluster::access::pki::{Authority, signing_key};
use crate::cluster::settings::{Settings, WORKERS, flags, gates};

/// The controllers in addition to the HPA controller: they create the pods of workloads, and
/// remove the dependents of deleted objects.
const CONTROLLERS: [&str; 6] = [
    "deployment-controller",
    "replicaset-controller",
    "replicationcontroller-controller",
    "statefulset-controller",
    "garbage-collector-controller",
    "namespace-controller",
];

const HPA_CONTROLLER: &str = "horizontal-pod-autoscaler-controller";

/// The listen address of components that run as processes of this machine.
pub(crate) const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// The sockets of etcd, for clients and for peers.
pub(crate) const CLIENT_SOCKET: &str = "etcd.sock";
pub(crate) const PEER_SOCKET: &str = "peer.sock";

/// The cluster IPs of Services, which get no traffic.
const SERVICE_IPS: &str = "10.43.0.0/16";

/// A user of the API server, and of the health endpoints of components.
#[derive(Clone, Copy)]
pub(crate) struct User {
    pub name: &'static str,
    pub group: Option<&'static str>,
}

/// The administrator.
pub(crate) const ADMIN: User = User { name: "admin", group: Some("system:masters") };

/// The user that runs scenarios, with only the permissions that this requires.
pub(crate) const DRIVER: User = User { name: "kube-lockstep", group: None };

const CONTROLLER_MANAGER: User = User { name: "system:kube-controller-manager", group: None };

/// The files of the components.
pub(crate) struct Files<'a> {
    pub folder: &'a Path,
    /// The URL of the server that the kubeconfigs name.
    pub server: &'a str,
    pub authority: &'a Authority,
}

impl Files<'_> {
    pub(crate) fn write(&self, settings: &Settings) -> io::Result<()> {
        for (name, text) in self.texts(settings)? {
            let path = self.folder.join(name);
            fs::write(&path, text)?;
            // Private keys, like the folder, are readable only by this user.
            fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
        }
        Ok(())
    }

    /// Their names and contents.
    pub(crate) fn texts(&self, settings: &Settings) -> io::Result<Vec<(&'static str, String)>> {
        let authority = self.authority;
        let names = ["127.0.0.1", "localhost", "kubernetes", "kubernetes.default.svc"];
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
            ("controller-manager.kubeconfig", self.kubeconfig(CONTROLLER_MANAGER)?),
            ("audit-policy.yaml", audit_policy(settings)),
        ])
    }

    /// A kubeconfig with a new certificate.
    pub(crate) fn kubeconfig(&self, user: User) -> io::Result<String> {
        let identity = self.authority.client(user.name, user.group).map_err(io::Error::other)?;
        Ok(kubeconfig("kube-lockstep", self.server, &self.authority.pem(), &identity))
    }
}

pub(crate) fn etcd_args(folder: &Path) -> Vec<String> {
    let socket = |name: &str| format!("unix://{}", folder.join(name).display());
    vec![
        format!("--data-dir={}", folder.join("etcd").display()),
        format!("--listen-client-urls={}", socket(CLIENT_SOCKET)),
        format!("--listen-peer-urls={}", socket(PEER_SOCKET)),
        // Required, but only used by other etcd members, of which there are none.
        "--advertise-client-urls=http://localhost:2379".to_owned(),
        // The data does not outlive the processes.
        "--unsafe-no-fsync".to_owned(),
        "--log-level=error".to_owned(),
    ]
}

pub(crate) fn api_server_args(
    folder: &Path,
    listen: SocketAddr,
    settings: &Settings,
) -> Vec<String> {
    let file = |name: &str| folder.join(name).display().to_string();
    let mut args = vec![
        format!("--etcd-servers=unix://{}", file(CLIENT_SOCKET)),
        format!("--bind-address={}", listen.ip()),
        format!("--advertise-address={LOOPBACK}"),
        format!("--secure-port={}", listen.port()),
        format!("--tls-cert-file={}", file("server.crt")),
        format!("--tls-private-key-file={}", file("server.key")),
        format!("--client-ca-file={}", file("ca.crt")),
        "--anonymous-auth=false".to_owned(),
        "--authorization-mode=RBAC".to_owned(),
        "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
        format!("--service-account-key-file={}", file("accounts.pub")),
        format!("--service-account-signing-key-file={}", file("accounts.key")),
        // No controller creates service accounts, and no pod ever runs.
        "--disable-admission-plugins=ServiceAccount".to_owned(),
        format!("--service-cluster-ip-range={SERVICE_IPS}"),
        // The reconciler rejects loopback addresses.
        "--endpoint-reconciler-type=none".to_owned(),
        format!("--requestheader-client-ca-file={}", file("ca.crt")),
        "--requestheader-allowed-names=kube-lockstep:proxy".to_owned(),
        "--requestheader-username-headers=X-Remote-User".to_owned(),
        "--requestheader-group-headers=X-Remote-Group".to_owned(),
        "--requestheader-extra-headers-prefix=X-Remote-Extra-".to_owned(),
        format!("--proxy-client-cert-file={}", file("proxy.crt")),
        format!("--proxy-client-key-file={}", file("proxy.key")),
        // Concurrent scenarios must not wait for each other.
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
    listen: SocketAddr,
    settings: &Settings,
) -> Vec<String> {
    let config = folder.join("controller-manager.kubeconfig").display().to_string();
    let own = settings.hpa_controller.then_some(HPA_CONTROLLER);
    let controllers: Vec<&str> = CONTROLLERS.into_iter().chain(own).collect();
    let mut args = vec![
        format!("--kubeconfig={config}"),
        format!("--authentication-kubeconfig={config}"),
        format!("--authorization-kubeconfig={config}"),
        format!("--bind-address={}", listen.ip()),
        format!("--secure-port={}", listen.port()),
        format!("--tls-cert-file={}", folder.join("server.crt").display()),
        format!("--tls-private-key-file={}", folder.join("server.key").display()),
        format!("--controllers={}", controllers.join(",")),
        "--use-service-account-credentials=true".to_owned(),
        "--leader-elect=false".to_owned(),
        // The health endpoint also requires authorization.
        "--authorization-always-allow-paths=".to_owned(),
        // The pods of many scenarios are created and deleted at the same time.
        "--kube-api-qps=2000".to_owned(),
        "--kube-api-burst=4000".to_owned(),
        format!("--concurrent-deployment-syncs={WORKERS}"),
        format!("--concurrent-replicaset-syncs={WORKERS}"),
    ];
    args.extend(flags(settings));
    args.extend(gates(&settings.gates));
    args
}

/// The audit policy: it records the writes of the observed users, and their reads of single
/// objects. Lists and watches do not belong to a reconcile; they are only recorded for a custom
/// controller, whose requests may be rejected. The harness itself records the queries of the
/// metrics APIs.
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
                "verbs": ["get", "create", "update", "patch", "delete"],
            },
            { "level": lists, "users": users, "verbs": ["list", "watch"] },
            { "level": "None" },
        ],
    });
    format!("{policy:#}\n")
}
