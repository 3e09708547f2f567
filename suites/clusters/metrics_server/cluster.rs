//! A control plane for these tests, and requests to it.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use k8s_openapi::api::core::v1::{Namespace, Pod};
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1::APIService;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config, ResourceExt};
use libtest_mimic::Failed;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

/// The timeout of every wait.
const TIMEOUT: Duration = Duration::from_secs(40);

pub(super) const POLL_INTERVAL: Duration = Duration::from_millis(50);

pub(super) fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kube-lockstep"));
    command.stdin(Stdio::null()).env_remove("KUBECONFIG");
    command
}

pub(super) fn signal(child: &Child, signal: &str) -> Result<(), Failed> {
    let sent = Command::new("kill").args([signal, &child.id().to_string()]).status()?;
    assert!(sent.success());
    Ok(())
}

/// Calls `poll` until it returns a value.
pub(super) fn wait<T>(
    what: &str,
    mut poll: impl FnMut() -> Result<Option<T>, Failed>,
) -> Result<T, Failed> {
    let begin = Instant::now();
    loop {
        if let Some(found) = poll()? {
            return Ok(found);
        }
        if begin.elapsed() > TIMEOUT {
            return Err(format!("timeout while waiting for {what}").into());
        }
        sleep(POLL_INTERVAL);
    }
}

/// A control plane, which stops when this is dropped.
pub(super) struct Cluster {
    child: Child,
    pub(super) kubeconfig: PathBuf,
    pub(super) folder: tempfile::TempDir,
    pub(super) runtime: Runtime,
    pub(super) client: Client,
}

/// The cluster that most tests share. The lock also guards its metrics APIs.
static CLUSTER: Mutex<Option<Cluster>> = Mutex::new(None);

pub(super) fn shared() -> Result<MutexGuard<'static, Option<Cluster>>, Failed> {
    let mut cluster = CLUSTER.lock().unwrap_or_else(PoisonError::into_inner);
    if cluster.is_none() {
        *cluster = Some(Cluster::start("shared", &[])?);
    }
    Ok(cluster)
}

/// Stops the shared cluster.
pub(super) fn stop_shared() {
    drop(CLUSTER.lock().unwrap_or_else(PoisonError::into_inner).take());
}

impl Cluster {
    pub(super) fn start(name: &str, args: &[&str]) -> Result<Cluster, Failed> {
        let folder = tempfile::Builder::new().prefix("kl-").tempdir()?;
        let name = format!("metrics-{name}-{}", std::process::id());
        let mut child = program()
            .args(["cluster", "start", "--foreground", "--sync-period", "1s", "--name", &name])
            .args(args)
            .env("TMPDIR", folder.path())
            .stdout(Stdio::null())
            .stderr(File::create(folder.path().join("stderr"))?)
            .spawn()?;
        let kubeconfig = wait("the control plane", || {
            if let Some(status) = child.try_wait()? {
                let stderr = fs::read_to_string(folder.path().join("stderr"))?;
                return Err(format!("the control plane has exited ({status}): {stderr}").into());
            }
            let output = program().args(["cluster", "kubeconfig", "--name", &name]).output()?;
            let path = String::from_utf8_lossy(&output.stdout).trim().to_owned();
            Ok(output.status.success().then(|| PathBuf::from(path)))
        })?;
        let runtime = Runtime::new()?;
        let client = runtime.block_on(async {
            let config = Kubeconfig::read_from(&kubeconfig)?;
            let mut config =
                Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await?;
            config.default_retry = false;
            Ok::<_, Failed>(Client::try_from(config)?)
        })?;
        Ok(Cluster { child, kubeconfig, folder, runtime, client })
    }

    pub(super) fn get(&self, path: &str) -> Result<Value, kube::Error> {
        let request = axum::http::Request::get(path).body(Vec::new());
        self.runtime.block_on(self.client.request(request.map_err(kube::Error::HttpError)?))
    }

    /// Creates a workload `web` in a new namespace, and an HPA for it.
    pub(super) fn workload(&self, namespace: &str, replicas: i32) -> Result<(), Failed> {
        let labels = json!({ "app.kubernetes.io/name": "web" });
        let deployment: Deployment = object(json!({
            "metadata": { "name": "web" },
            "spec": {
                "replicas": replicas,
                "selector": { "matchLabels": labels },
                "template": {
                    "metadata": { "labels": labels },
                    "spec": {
                        "schedulerName": "none",
                        "containers": [{
                            "name": "nginx", "image": "none",
                            "resources": { "requests": { "cpu": "1" } },
                        }],
                    },
                },
            },
        }))?;
        let hpa: HorizontalPodAutoscaler = object(json!({
            "metadata": { "name": "web" },
            "spec": {
                "scaleTargetRef": { "apiVersion": "apps/v1", "kind": "Deployment", "name": "web" },
                "maxReplicas": 5,
                "metrics": [{
                    "type": "Resource",
                    "resource": {
                        "name": "cpu",
                        "target": { "type": "Utilization", "averageUtilization": 50 },
                    },
                }],
            },
        }))?;
        let name: Namespace = object(json!({ "metadata": { "name": namespace } }))?;
        let (client, post) = (self.client.clone(), PostParams::default());
        self.runtime.block_on(async {
            Api::all(client.clone()).create(&post, &name).await?;
            Api::namespaced(client.clone(), namespace).create(&post, &deployment).await?;
            Api::namespaced(client, namespace).create(&post, &hpa).await?;
            Ok::<_, Failed>(())
        })
    }

    /// Acts as the kubelet: waits until the namespace has `count` pods, and marks them as ready.
    pub(super) fn run_pods(&self, namespace: &str, count: usize) -> Result<Vec<String>, Failed> {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), namespace);
        let all = wait(&format!("{count} pods"), || {
            let all = self.runtime.block_on(pods.list(&ListParams::default()))?;
            Ok((all.items.len() == count).then_some(all.items))
        })?;
        // Long enough for the controller to count the pods.
        let since = jiff::Timestamp::now() - jiff::SignedDuration::from_mins(10);
        let since = jiff::Timestamp::from_second(since.as_second())?.to_string();
        let status = json!({
            "phase": "Running",
            "startTime": since,
            "conditions": [{ "type": "Ready", "status": "True", "lastTransitionTime": since }],
        });
        let patch = Patch::Merge(json!({ "status": status }));
        for pod in &all {
            let (name, params) = (pod.name_any(), PatchParams::default());
            self.runtime.block_on(pods.patch_status(&name, &params, &patch))?;
        }
        Ok(all.iter().map(ResourceExt::name_any).collect())
    }

    pub(super) fn replicas(&self, namespace: &str) -> Result<i32, Failed> {
        let all: Api<Deployment> = Api::namespaced(self.client.clone(), namespace);
        let web = self.runtime.block_on(all.get("web"))?;
        Ok(web.spec.replicas.unwrap_or_default())
    }

    /// The existing APIServices of metrics, and the namespace of the server if it exists.
    pub(super) fn registered(&self) -> Result<Vec<String>, Failed> {
        let apis: Api<APIService> = Api::all(self.client.clone());
        let apis = self.runtime.block_on(apis.list(&ListParams::default()))?;
        let names = apis.iter().map(ResourceExt::name_any);
        let mut found: Vec<String> = names
            .filter(|name| name.contains("metrics.k8s.io") || name.contains("kube-lockstep"))
            .collect();
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let existing = self.runtime.block_on(namespaces.get_opt("kube-lockstep-metrics"))?;
        found.extend(existing.map(|it| format!("namespace {}", it.name_any())));
        Ok(found)
    }

    pub(super) fn delete(&self, namespace: &str) -> Result<(), Failed> {
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let params = DeleteParams::default().grace_period(0);
        self.runtime.block_on(namespaces.delete(namespace, &params))?;
        Ok(())
    }

    /// The errors about metrics APIs in the log of the API server.
    pub(super) fn errors(&self) -> Result<Vec<String>, Failed> {
        let mut errors = Vec::new();
        for entry in fs::read_dir(self.folder.path())? {
            let log = entry?.path().join("kube-apiserver.log");
            let text = fs::read_to_string(log).unwrap_or_default();
            let wrong = |line: &&str| line.starts_with('E') && line.contains("metrics.k8s.io");
            errors.extend(text.lines().filter(wrong).map(str::to_owned));
        }
        Ok(errors)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        drop(signal(&self.child, "-TERM"));
        drop(self.child.wait());
    }
}

pub(super) fn object<T: DeserializeOwned>(value: Value) -> Result<T, Failed> {
    Ok(serde_json::from_value(value)?)
}
