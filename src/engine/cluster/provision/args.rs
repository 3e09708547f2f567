//! Arguments and files of the programs of a control plane.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::engine::cluster::access::kubeconfig::kubeconfig;
use crate::engine::cluster::access::pki::{Authority, signing_key};
use crate::engine::cluster::settings::{Settings, WORKERS, flags, gates};

/// The controllers that run beside that of HPAs: those that make pods of workloads, and those that
/// remove what belongs to something that is gone.
pub(crate) const CONTROLLERS: [&str; 6] = [
    "deployment-controller",
    "replicaset-controller",
    "replicationcontroller-controller",
    "statefulset-controller",
    "garbage-collector-controller",
    "namespace-controller",
];

/// The controller of HPAs.
pub(crate) const HPA_CONTROLLER: &str = "horizontal-pod-autoscaler-controller";

/// Where the programs listen.
pub(crate) const LOOPBACK: &str = "127.0.0.1";

/// The sockets at which etcd listens.
pub(crate) const CLIENTS: &str = "etcd.sock";

pub(crate) const PEERS: &str = "peer.sock";

/// The API server's addresses of Services. No traffic ever goes there.
pub(crate) const SERVICES: &str = "10.43.0.0/16";

/// The files that the programs read.
pub(crate) struct Files<'a> {
    pub(crate) folder: &'a Path,
    /// Where clients find the API server.
    pub(crate) server: &'a str,
    pub(crate) authority: &'a Authority,
}

impl Files<'_> {
    pub(crate) fn write(&self, settings: &Settings) -> io::Result<()> {
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
