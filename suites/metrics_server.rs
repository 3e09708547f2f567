//! `kube-lockstep metrics-server` on a real control plane: `cargo test --features e2e --test
//! metrics_server`.
//!
//! What is asked of it goes through the API server, by the real HPA controller, and by kubectl
//! where there is one. It has a `main` of its own, since its tests share a control plane that may
//! first have to be built, and of which only one at a time can have the metrics APIs.

mod support;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write as _};
use std::net::{SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use k8s_openapi::api::core::v1::{Namespace, Pod, Service};
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1::APIService;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config, ResourceExt};
use kube_lockstep::engine::{EngineError, embedded};
use kube_lockstep::model::rules::Release;
use libtest_mimic::{Arguments, Failed, Trial};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use support::place::children;
use tokio::runtime::Runtime;

/// How long anything that is waited for may take.
const LIMIT: Duration = Duration::from_secs(40);

const GLANCE: Duration = Duration::from_millis(50);

/// What is served: a load that two pods can't carry, and one metric of each other kind.
const SCENARIO: &str = r#"
apiVersion: kube-lockstep.dev/v1alpha1
kind: Scenario
requirement: A load of 1.2 cores at half a core each takes three pods.
upstream: https://github.com/kubernetes/metrics
hpa:
  apiVersion: autoscaling/v2
  kind: HorizontalPodAutoscaler
  metadata: {name: web}
  spec:
    scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
    maxReplicas: 5
    metrics:
      - type: Resource
        resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}
workload:
  replicas: 2
  containers: [{name: app, requests: {cpu: "1"}}]
metrics:
  resource:
    - {name: cpu, load: "1200m"}
    - {name: memory, perPod: 64Mi}
  pods: [{name: jobs, perPod: "3", pods: [{pods: "0", value: "7"}]}]
  object: [{name: hits, object: {kind: Service, name: front}, value: 2k}]
  external: [{name: queue, series: [{labels: {of: a}, value: "30"}, {labels: {of: b}, value: "5"}]}]
timeline:
  - {at: 1h, podsUnready: "0"}
until: 2h
"#;

fn say(line: &str) {
    // Nobody reads it: nothing to be done about it.
    drop(writeln!(std::io::stderr(), "metrics_server: {line}"));
}

type Test = fn() -> Result<(), Failed>;

const ENDPOINTS: &str = "an_api_server_that_routes_to_endpoints_finds_it";

const TESTS: [(&str, Test); 7] = [
    ("a_cluster_must_be_named", named),
    ("the_controller_and_kubectl_see_the_metrics", seen),
    ("a_foreign_api_is_refused_replaced_and_restored", replaced),
    ("what_a_killed_one_has_left_is_removed", killed),
    ("a_killed_one_is_followed_by_its_guard", guarded),
    (ENDPOINTS, by_endpoints),
    ("one_that_is_not_registered_makes_nothing", unregistered),
];

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let built = if arguments.list { Ok(()) } else { build() };
    let missing = support::is_missing(&built);
    if let Err(error) = &built {
        say(&format!("what needs a control plane is ignored: {error}"));
    }
    if !arguments.list && kubectl_version().is_none() {
        say("there is no kubectl: the same is asked without it");
    }
    let alone = !has_address();
    if alone && !arguments.list {
        say("endpoints are ignored: this machine has no address but loopback");
    }
    let trials = TESTS.map(|(name, test)| {
        let ignored = missing || alone && name == ENDPOINTS;
        Trial::test(name, test).with_ignored_flag(ignored && !arguments.list)
    });
    let conclusion = libtest_mimic::run(&arguments, trials.into());
    drop(CLUSTER.lock().unwrap_or_else(PoisonError::into_inner).take());
    conclusion.exit_code()
}

/// Whether this machine has an address that is not loopback: an API server refuses that one as an
/// endpoint. Nothing is sent; the address is one for documents.
fn has_address() -> bool {
    let socket = UdpSocket::bind("0.0.0.0:0").and_then(|socket| {
        socket.connect("192.0.2.1:9")?;
        socket.local_addr()
    });
    socket.is_ok_and(|own| !own.ip().is_loopback() && !own.ip().is_unspecified())
}

fn build() -> Result<(), EngineError> {
    let mut last = String::new();
    let program = embedded::ensure(Release::newest(), &AtomicBool::new(false), &mut |what, _| {
        let stage = what.split_whitespace().take(3).collect::<Vec<_>>().join(" ");
        if stage != last {
            say(&stage);
            last = stage;
        }
    });
    program.map(|_| ())
}

fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kube-lockstep"));
    command.stdin(Stdio::null()).env_remove("KUBECONFIG");
    command
}

fn signal(child: &Child, signal: &str) -> Result<(), Failed> {
    let sent = Command::new("kill").args([signal, &child.id().to_string()]).status()?;
    assert!(sent.success());
    Ok(())
}

/// Waits for something that comes about.
fn wait<T>(what: &str, mut look: impl FnMut() -> Result<Option<T>, Failed>) -> Result<T, Failed> {
    let begin = Instant::now();
    loop {
        if let Some(found) = look()? {
            return Ok(found);
        }
        if begin.elapsed() > LIMIT {
            return Err(format!("it did not come about: {what}").into());
        }
        sleep(GLANCE);
    }
}

/// A control plane that ends with it.
struct Cluster {
    child: Child,
    kubeconfig: PathBuf,
    folder: tempfile::TempDir,
    runtime: Runtime,
    client: Client,
}

/// The one that most tests share; who has it locked has its metrics APIs.
static CLUSTER: Mutex<Option<Cluster>> = Mutex::new(None);

fn shared() -> Result<MutexGuard<'static, Option<Cluster>>, Failed> {
    let mut cluster = CLUSTER.lock().unwrap_or_else(PoisonError::into_inner);
    if cluster.is_none() {
        *cluster = Some(Cluster::start("shared", &[])?);
    }
    Ok(cluster)
}

impl Cluster {
    fn start(name: &str, args: &[&str]) -> Result<Cluster, Failed> {
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
                let said = fs::read_to_string(folder.path().join("stderr"))?;
                return Err(format!("the control plane has ended ({status}): {said}").into());
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

    fn get(&self, path: &str) -> Result<Value, kube::Error> {
        let request = axum::http::Request::get(path).body(Vec::new());
        self.runtime.block_on(self.client.request(request.map_err(kube::Error::HttpError)?))
    }

    /// A workload `web` in a namespace, and an HPA of it.
    fn workload(&self, namespace: &str, replicas: i32) -> Result<(), Failed> {
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

    /// Does what a kubelet would: all pods of a namespace run and are ready, once there are so many.
    fn run_pods(&self, namespace: &str, many: usize) -> Result<Vec<String>, Failed> {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), namespace);
        let all = wait(&format!("{many} pods"), || {
            let all = self.runtime.block_on(pods.list(&ListParams::default()))?;
            Ok((all.items.len() == many).then_some(all.items))
        })?;
        // For so long that the controller takes them into account.
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

    fn replicas(&self, namespace: &str) -> Result<i32, Failed> {
        let all: Api<Deployment> = Api::namespaced(self.client.clone(), namespace);
        let web = self.runtime.block_on(all.get("web"))?;
        Ok(web.spec.replicas.unwrap_or_default())
    }

    /// The APIServices of metrics, and the namespace of the server, as far as they are there.
    fn registered(&self) -> Result<Vec<String>, Failed> {
        let apis: Api<APIService> = Api::all(self.client.clone());
        let apis = self.runtime.block_on(apis.list(&ListParams::default()))?;
        let names = apis.iter().map(ResourceExt::name_any);
        let mut found: Vec<String> = names
            .filter(|name| name.contains("metrics.k8s.io") || name.contains("kube-lockstep"))
            .collect();
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let there = self.runtime.block_on(namespaces.get_opt("kube-lockstep-metrics"))?;
        found.extend(there.map(|it| format!("namespace {}", it.name_any())));
        Ok(found)
    }

    fn delete(&self, namespace: &str) -> Result<(), Failed> {
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let params = DeleteParams::default().grace_period(0);
        self.runtime.block_on(namespaces.delete(namespace, &params))?;
        Ok(())
    }

    /// What its API server says that went wrong with a metrics API.
    fn errors(&self) -> Result<Vec<String>, Failed> {
        let mut errors = Vec::new();
        for entry in fs::read_dir(self.folder.path())? {
            let log = entry?.path().join("kube-apiserver.log");
            let text = fs::read_to_string(log).unwrap_or_default();
            let wrong = |line: &&str| line.starts_with('E') && line.contains("metrics.k8s.io");
            errors.extend(text.lines().filter(wrong).map(str::to_owned));
        }
        Ok(errors)
    }

    fn kubectl(&self, args: &[&str]) -> Result<(bool, String), Failed> {
        let output = Command::new("kubectl")
            .args(args)
            .env("KUBECONFIG", &self.kubeconfig)
            // What it remembers of other clusters is not meant.
            .env("HOME", self.folder.path())
            .output()?;
        let said = [output.stdout, output.stderr].concat();
        Ok((output.status.success(), String::from_utf8_lossy(&said).into_owned()))
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        drop(signal(&self.child, "-TERM"));
        drop(self.child.wait());
    }
}

fn object<T: DeserializeOwned>(value: Value) -> Result<T, Failed> {
    Ok(serde_json::from_value(value)?)
}

fn kubectl_version() -> Option<String> {
    let output = Command::new("kubectl").args(["version", "--client"]).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// A metrics server that runs, and what it tells.
struct Server {
    child: Child,
    told: Receiver<Value>,
    seen: Vec<Value>,
    errors: tempfile::NamedTempFile,
}

impl Server {
    fn start(kubeconfig: &Path, args: &[&str]) -> Result<Server, Failed> {
        let errors = tempfile::NamedTempFile::new()?;
        let mut child = program()
            .args(["metrics-server", "--format", "json", "--kubeconfig"])
            .arg(kubeconfig)
            .args(args)
            .stdout(Stdio::piped())
            .stderr(errors.reopen()?)
            .spawn()?;
        let (to, told) = channel();
        let lines = BufReader::new(child.stdout.take().ok_or("no output")?).lines();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let value = serde_json::from_str(&line).unwrap_or(Value::String(line));
                if to.send(value).is_err() {
                    return;
                }
            }
        });
        Ok(Server { child, told, seen: Vec::new(), errors })
    }

    fn said(&self) -> Result<String, Failed> {
        Ok(fs::read_to_string(self.errors.path())?)
    }

    fn hear(&mut self) {
        self.seen.extend(self.told.try_iter());
    }

    /// Waits until something is told.
    fn wait(&mut self, is: impl Fn(&Value) -> bool) -> Result<Value, Failed> {
        wait("what the server should tell", || {
            self.hear();
            if let Some(found) = self.seen.iter().find(|told| is(told)) {
                return Ok(Some(found.clone()));
            }
            match self.child.try_wait()? {
                Some(status) => Err(format!("it has ended ({status}): {}", self.said()?).into()),
                None => Ok(None),
            }
        })
    }

    fn serves(&mut self) -> Result<Value, Failed> {
        self.wait(|told| told["event"] == "serving")
    }

    /// Waits for its end. What it has told, and how it ended.
    fn ended(mut self) -> Result<(ExitStatus, Vec<Value>, String), Failed> {
        let status = wait("the server's end", || Ok(self.child.try_wait()?))?;
        sleep(GLANCE);
        self.hear();
        let said = self.said()?;
        Ok((status, std::mem::take(&mut self.seen), said))
    }

    /// Ends it together with its guard, as when its machine is lost.
    fn lose(self) -> Result<(), Failed> {
        // It may not have one yet.
        for guard in children(self.child.id())?.split_whitespace() {
            Command::new("kill").args(["-KILL", guard]).status()?;
        }
        self.end("-KILL").map(drop)
    }

    fn end(self, with: &str) -> Result<(ExitStatus, Vec<Value>, String), Failed> {
        signal(&self.child, with)?;
        self.ended()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// The scenario as a file, and as an argument for a namespace.
fn scenario(namespace: &str) -> Result<(tempfile::TempDir, String), Failed> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("web.yaml");
    fs::write(&path, SCENARIO)?;
    let argument = format!("{}={namespace}", path.display());
    Ok((folder, argument))
}

fn named() -> Result<(), Failed> {
    let (_folder, scenario) = scenario("shop")?;
    let cluster = shared()?;
    let cluster = cluster.as_ref().ok_or("no cluster")?;
    let run = |args: &[&str]| {
        let output = program()
            .args(["metrics-server", "--scenario", &scenario])
            .args(args)
            .env("KUBECONFIG", &cluster.kubeconfig)
            .output()?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        Ok::<_, Failed>((output.status.code(), said))
    };
    let (code, said) = run(&[])?;
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("--context names it") && said.contains("kube-lockstep"), "{said}");
    let (code, said) = run(&["--context", "nobody"])?;
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("no context `nobody`"), "{said}");
    assert_eq!(cluster.registered()?, Vec::<String>::new());
    Ok(())
}

fn seen() -> Result<(), Failed> {
    let cluster = shared()?;
    let cluster = cluster.as_ref().ok_or("no cluster")?;
    cluster.workload("shop", 2)?;
    cluster.run_pods("shop", 2)?;
    let (_folder, scenario) = scenario("shop")?;
    let mut server = Server::start(&cluster.kubeconfig, &["--scenario", &scenario])?;
    let serving = server.serves()?;
    assert_eq!(serving["route"], "a Service of type ExternalName to localhost", "{serving}");
    // 600m of 1 each is 60 % of 50 %; three have 400m each, and stay.
    wait("three replicas", || Ok((cluster.replicas("shop")? == 3).then_some(())))?;
    let names = cluster.run_pods("shop", 3)?;
    let (usage, jobs, hits, queue) = wait("shares of three", || {
        let base = "/apis/metrics.k8s.io/v1beta1/namespaces/shop/pods";
        let list = cluster.get(&format!("{base}?labelSelector=app.kubernetes.io/name%3Dweb"))?;
        let usage: BTreeMap<String, Value> = list["items"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|pod| (pod["metadata"]["name"].to_string(), pod["containers"].clone()))
            .collect();
        let custom = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/shop";
        let jobs = cluster.get(&format!("{custom}/pods/*/jobs"))?;
        let hits = cluster.get(&format!("{custom}/services/front/hits"))?;
        let queue = "/apis/external.metrics.k8s.io/v1beta1/namespaces/shop/queue";
        let queue = cluster.get(&format!("{queue}?labelSelector=of%3Db"))?;
        let shares = usage.values().all(|it| it[0]["usage"]["cpu"] == "400m");
        Ok((shares && usage.len() == 3).then_some((usage, jobs, hits, queue)))
    })?;
    let containers = json!([{ "name": "nginx", "usage": { "cpu": "400m", "memory": "64Mi" } }]);
    assert!(usage.values().all(|it| *it == containers), "{usage:?}");
    let values = |list: &Value| -> Vec<String> {
        let items = list["items"].as_array().into_iter().flatten();
        items.map(|item| item["value"].as_str().unwrap_or_default().to_owned()).collect()
    };
    let mut of_jobs = values(&jobs);
    of_jobs.sort();
    assert_eq!(of_jobs, ["3", "3", "7"], "{jobs}");
    assert_eq!(values(&hits), ["2k"], "{hits}");
    assert_eq!(values(&queue), ["5"], "{queue}");
    let asked = server.wait(|told| {
        let user = "system:serviceaccount:kube-system:horizontal-pod-autoscaler";
        told["event"] == "query" && told["user"] == user
    })?;
    assert_eq!((&asked["namespace"], &asked["what"]), (&json!("shop"), &json!("pods")), "{asked}");
    let left_out = "not of metrics, left out of";
    server.wait(|told| told["note"].as_str().is_some_and(|note| note.contains(left_out)))?;
    if kubectl_version().is_some() {
        by_kubectl(cluster, &names)?;
    }
    assert_eq!(cluster.replicas("shop")?, 3);
    let errors = cluster.errors()?;
    assert!(errors.is_empty(), "{errors:#?}");
    let (status, told, said) = server.end("-INT")?;
    assert_eq!(status.code(), Some(0), "{said}");
    assert!(told.iter().any(|it| it["event"] == "removed"), "{told:?}");
    assert_eq!(cluster.registered()?, Vec::<String>::new());
    cluster.delete("shop")
}

fn by_kubectl(cluster: &Cluster, names: &[String]) -> Result<(), Failed> {
    for args in [&["top", "pods", "-n", "shop"][..], &["top", "pods", "-A"]] {
        let (good, said) = cluster.kubectl(args)?;
        assert!(good, "{said}");
        for name in names {
            let line = said.lines().find(|line| line.contains(name));
            assert!(line.is_some_and(|line| line.contains("400m")), "{args:?}: {said}");
        }
    }
    let (good, said) = cluster.kubectl(&["top", "pod", &names[0], "-n", "shop", "--containers"])?;
    assert!(good && said.contains("nginx") && said.contains("64Mi"), "{said}");
    let (good, said) = cluster.kubectl(&["top", "nodes"])?;
    assert!(!good && said.contains("pods and no nodes"), "{said}");
    let (good, said) = cluster.kubectl(&["get", "podmetrics", "-n", "shop"])?;
    assert!(good && said.contains("CPU") && said.contains("400m"), "{said}");
    let (good, said) = cluster.kubectl(&["get", "podmetrics", "-A", "-o", "name"])?;
    assert!(good && said.lines().count() == 3, "{said}");
    let (good, said) = cluster.kubectl(&["api-resources", "--api-group", "metrics.k8s.io"])?;
    assert!(good && said.contains("PodMetrics"), "{said}");
    let (good, said) = cluster.kubectl(&["explain", "podmetrics.containers"])?;
    assert!(good && said.contains("Usage by container"), "{said}");
    let raw = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/shop/pods/*/jobs";
    let (good, said) = cluster.kubectl(&["get", "--raw", raw])?;
    assert!(good && said.contains("MetricValueList"), "{said}");
    let raw = "/apis/external.metrics.k8s.io/v1beta1/namespaces/shop/queue";
    let (good, said) = cluster.kubectl(&["get", "--raw", raw])?;
    assert!(good && said.contains("\"metricName\":\"queue\""), "{said}");
    let (good, said) = cluster.kubectl(&["get", "--raw", "/openapi/v2"])?;
    assert!(good && said.contains("io.k8s.metrics.pkg.apis.metrics.v1beta1.PodMetrics"));
    Ok(())
}

/// A metrics API of somebody else's, at a port of loopback.
fn foreign(port: u16) -> Result<APIService, Failed> {
    object(json!({
        "metadata": {
            "name": "v1beta1.metrics.k8s.io",
            "labels": { "k8s-app": "metrics-server" },
            "annotations": { "of": "somebody" },
        },
        "spec": {
            "group": "metrics.k8s.io",
            "version": "v1beta1",
            "groupPriorityMinimum": 100,
            "versionPriority": 100,
            "insecureSkipTLSVerify": true,
            "service": { "namespace": "kube-system", "name": "metrics-server", "port": port },
        },
    }))
}

/// It answers, as long as it is there: a namespace can't go while an API does not.
struct Foreign<'a>(&'a Cluster, APIService, #[allow(dead_code, reason = "it ends with it")] Server);

impl Foreign<'_> {
    fn create(cluster: &Cluster) -> Result<Foreign<'_>, Failed> {
        let (_folder, scenario) = scenario("kube-public")?;
        let args = ["--scenario", &scenario, "--no-register"];
        let mut server = Server::start(&cluster.kubeconfig, &args)?;
        let address: SocketAddr =
            server.serves()?["address"].as_str().unwrap_or_default().parse()?;
        let service: Service = object(json!({
            "metadata": { "name": "metrics-server" },
            "spec": {
                "type": "ExternalName", "externalName": "localhost",
                "ports": [{ "port": address.port() }],
            },
        }))?;
        let services: Api<Service> = Api::namespaced(cluster.client.clone(), "kube-system");
        let post = PostParams::default();
        let _ = cluster.runtime.block_on(services.delete("metrics-server", &Default::default()));
        cluster.runtime.block_on(services.create(&post, &service))?;
        let apis: Api<APIService> = Api::all(cluster.client.clone());
        let api = foreign(address.port())?;
        let api = cluster.runtime.block_on(apis.create(&post, &api))?;
        let foreign = Foreign(cluster, api, server);
        foreign.answers()?;
        Ok(foreign)
    }

    /// Waits until it does.
    fn answers(&self) -> Result<(), Failed> {
        wait("an answer of the foreign API", || {
            let said = self.0.get("/apis/metrics.k8s.io/v1beta1/namespaces/kube-public/pods");
            Ok(said.is_ok().then_some(()))
        })
    }

    fn now(&self) -> Result<APIService, Failed> {
        let apis: Api<APIService> = Api::all(self.0.client.clone());
        Ok(self.0.runtime.block_on(apis.get("v1beta1.metrics.k8s.io"))?)
    }

    fn is_restored(&self) -> Result<(), Failed> {
        let now = self.now()?;
        assert_eq!(now.spec, self.1.spec);
        assert_eq!(now.metadata.labels, self.1.metadata.labels);
        assert_eq!(now.metadata.annotations, self.1.metadata.annotations);
        assert_eq!(now.metadata.uid, self.1.metadata.uid, "it was never gone");
        assert_eq!(self.0.registered()?, ["v1beta1.metrics.k8s.io"]);
        self.answers()
    }

    fn delete(self) -> Result<(), Failed> {
        let apis: Api<APIService> = Api::all(self.0.client.clone());
        let params = DeleteParams::default();
        self.0.runtime.block_on(apis.delete("v1beta1.metrics.k8s.io", &params))?;
        Ok(())
    }
}

fn replaced() -> Result<(), Failed> {
    let cluster = shared()?;
    let cluster = cluster.as_ref().ok_or("no cluster")?;
    let foreign = Foreign::create(cluster)?;
    let (_folder, scenario) = scenario("default")?;
    let (status, _, said) =
        Server::start(&cluster.kubeconfig, &["--scenario", &scenario])?.ended()?;
    assert_eq!(status.code(), Some(2), "{said}");
    assert!(said.contains("v1beta1.metrics.k8s.io (of kube-system/metrics-server)"), "{said}");
    assert!(said.contains("--replace-metrics-api"), "{said}");
    foreign.is_restored()?;
    let replaces = ["--scenario", &scenario, "--replace-metrics-api"];
    let mut server = Server::start(&cluster.kubeconfig, &replaces)?;
    server.serves()?;
    let list = cluster.get("/apis/metrics.k8s.io/v1beta1/pods")?;
    assert_eq!(list["kind"], "PodMetricsList", "{list}");
    let told = server.wait(|told| told["event"] == "replaces")?;
    assert_eq!(told["what"][0], "APIService v1beta1.metrics.k8s.io of kube-system/metrics-server");
    // A second one is refused, whatever it is allowed.
    let (status, _, said) = Server::start(&cluster.kubeconfig, &replaces)?.ended()?;
    assert_eq!(status.code(), Some(2), "{said}");
    assert!(said.contains("served by another kube-lockstep: process "), "{said}");
    let (status, _, said) = server.end("-TERM")?;
    assert_eq!(status.code(), Some(0), "{said}");
    foreign.is_restored()?;
    foreign.delete()
}

fn killed() -> Result<(), Failed> {
    let cluster = shared()?;
    let cluster = cluster.as_ref().ok_or("no cluster")?;
    let foreign = Foreign::create(cluster)?;
    let (_folder, scenario) = scenario("default")?;
    let replaces = ["--scenario", &scenario, "--replace-metrics-api"];
    let mut server = Server::start(&cluster.kubeconfig, &replaces)?;
    server.serves()?;
    server.lose()?;
    let left = cluster.registered()?;
    assert_eq!(left.len(), 5, "{left:?}");
    assert_ne!(foreign.now()?.spec, foreign.1.spec);
    let output = program()
        .args(["metrics-server", "--remove", "--kubeconfig"])
        .arg(&cluster.kubeconfig)
        .output()?;
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("v1beta1.metrics.k8s.io is what it was before"), "{said}");
    foreign.is_restored()?;
    // The next one does the same by itself, also after one that was killed while it started.
    for moment in [0, 60, 120, 180, 240, 300, 400, 500] {
        let server = Server::start(&cluster.kubeconfig, &replaces)?;
        sleep(Duration::from_millis(moment));
        server.lose()?;
    }
    let mut server = Server::start(&cluster.kubeconfig, &replaces)?;
    server.serves()?;
    let (status, _, said) = server.end("-INT")?;
    assert_eq!(status.code(), Some(0), "{said}");
    foreign.is_restored()?;
    foreign.delete()
}

/// All is as it was, whenever it is killed.
fn guarded() -> Result<(), Failed> {
    let cluster = shared()?;
    let cluster = cluster.as_ref().ok_or("no cluster")?;
    let foreign = Foreign::create(cluster)?;
    let (_folder, scenario) = scenario("default")?;
    let replaces = ["--scenario", &scenario, "--replace-metrics-api"];
    let mut server = Server::start(&cluster.kubeconfig, &replaces)?;
    server.serves()?;
    server.end("-KILL")?;
    wait("the guard", || Ok((cluster.registered()?.len() == 1).then_some(())))?;
    foreign.is_restored()?;
    for moment in [100, 200, 300, 400, 500] {
        let server = Server::start(&cluster.kubeconfig, &replaces)?;
        sleep(Duration::from_millis(moment));
        let guards = children(server.child.id())?;
        server.end("-KILL")?;
        let gone = |guard: &str| !Path::new("/proc").join(guard).exists();
        wait("the guards' ends", || Ok(guards.split_whitespace().all(gone).then_some(())))?;
        foreign.is_restored()?;
        assert_eq!(cluster.registered()?.len(), 1, "killed after {moment} ms");
    }
    foreign.delete()
}

fn by_endpoints() -> Result<(), Failed> {
    let routing = ["--api-server-arg", "enable-aggregator-routing=true"];
    let cluster = Cluster::start("routing", &routing)?;
    let (_folder, scenario) = scenario("default")?;
    let mut server = Server::start(&cluster.kubeconfig, &["--scenario", &scenario])?;
    let serving = server.serves()?;
    let route = serving["route"].as_str().unwrap_or_default();
    assert!(route.starts_with("a Service with the endpoint "), "{serving}");
    let list = cluster.get("/apis/metrics.k8s.io/v1beta1/pods")?;
    assert_eq!(list["kind"], "PodMetricsList", "{list}");
    let (status, _, said) = server.end("-INT")?;
    assert_eq!(status.code(), Some(0), "{said}");
    assert_eq!(cluster.registered()?, Vec::<String>::new());
    Ok(())
}

fn unregistered() -> Result<(), Failed> {
    let cluster = shared()?;
    let cluster = cluster.as_ref().ok_or("no cluster")?;
    let (_folder, scenario) = scenario("default")?;
    let args = ["--scenario", &scenario, "--no-register"];
    let mut server = Server::start(&cluster.kubeconfig, &args)?;
    let serving = server.serves()?;
    assert_eq!(serving["route"], Value::Null);
    let address = serving["address"].as_str().unwrap_or_default();
    assert!(address.starts_with("127.0.0.1:"), "{serving}");
    assert!(std::net::TcpStream::connect(address).is_ok());
    assert_eq!(cluster.registered()?, Vec::<String>::new());
    let (status, _, said) = server.end("-INT")?;
    assert_eq!(status.code(), Some(0), "{said}");
    Ok(())
}
