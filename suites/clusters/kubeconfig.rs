//! Scenarios on an existing cluster.
//!
//! The cluster is a control plane on this machine, which the runs reach by a kubeconfig with no
//! more permissions than the docs require. However a run ends, the cluster then has exactly the
//! objects that it had before. The tests share the cluster.

mod disturbed;
mod rights;

use crate::support;
use std::fs;
use std::io::Read as _;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::support::moments::{KillTimes, kill};
use crate::support::place::signal;
use crate::support::trials::Suite;
use axum_server::tls_rustls::RustlsConfig;
use k8s_openapi::api::core::v1::Service;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config, ResourceExt};
use kube_autoscaler_models::flags::Flags;
use kube_autoscaler_models::rules::Release;
use kube_autoscaler_models::time::Span;
use kube_lockstep_clusters::embedded;
use kube_lockstep_clusters::embedded::{Options, Running};
use kube_lockstep_sim::engine::EngineError;
use libtest_mimic::Failed;
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

/// Scenarios of all kinds that conform, although a run cannot set the flags of the cluster.
const CONFORM: [&str; 16] = [
    "average-value/docs-twice-the-target-doubles",
    "average-value/metrics-of-pods-that-are-gone-still-count",
    "average-value/an-average-value-requires-no-requests",
    "behavior/a-manual-scale-up-does-not-use-up-a-policy",
    "behavior/eighty-percent-down-of-ten-leaves-one",
    "behavior/min-policy-on-the-way-up",
    "conditions/three-conditions-of-a-healthy-autoscaler",
    "edits/a-minimum-above-the-replicas-takes-effect-immediately",
    "edits/rejected-replicas",
    "external-metric/series-are-summed",
    "limits/a-manual-scale-up-above-the-maximum-is-undone",
    "object-metric/a-selector-picks-one-series",
    "pods-metric/twice-the-target-doubles",
    "terminating/pods-removed-by-a-scale-down-stop-counting-at-once",
    "tolerance/each-direction-has-its-own-tolerance",
    "tolerance/just-above-the-upper-edge-scales-up",
];

/// A scenario that takes half a minute, in which pods hang in Terminating.
const LONG: &str = "\
apiVersion: kube-lockstep.dev/v1alpha1
kind: Scenario
requirement: Pods that hang in Terminating are left alone.
upstream: https://github.com/kubernetes/kubernetes/issues/51835
hpa:
  apiVersion: autoscaling/v2
  kind: HorizontalPodAutoscaler
  metadata: {name: web}
  spec:
    scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
    maxReplicas: 10
    metrics:
      - type: Resource
        resource: {name: memory, target: {type: AverageValue, averageValue: 100Mi}}
    behavior: {scaleDown: {stabilizationWindowSeconds: 0}}
workload: {replicas: 4, containers: [{name: app, requests: {memory: 1Gi}}], termination: 24h}
metrics: {resource: [{name: memory, perPod: 50Mi}]}
until: 8m
";

/// The context in the kubeconfigs of embedded control planes.
const CONTEXT: &str = "kube-lockstep";

/// The APIService of the resource metrics, which most clusters have.
const METRICS_SERVER: &str = "v1beta1.metrics.k8s.io";

/// The timeout of every wait.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Adds the tests of this suite.
pub(crate) fn add_tests(suite: &mut Suite) {
    // The tests share the cluster, which has one metrics API.
    let cluster = suite.require(|| TestCluster::new(Flags::default()).map(Arc::new));
    for (name, test) in TESTS {
        suite.test_with(&cluster, name, move |cluster| test(&cluster));
    }
}

type Test = fn(&Arc<TestCluster>) -> Result<(), Failed>;

const TESTS: [(&str, Test); 16] = [
    ("fixtures_conform_and_nothing_is_left", conform),
    ("a_modified_controller_diverges", diverge),
    ("without_consent_nothing_is_created", without_consent),
    ("an_existing_metrics_api_is_refused_or_restored", replaced),
    ("an_interrupted_run_leaves_nothing", interrupted),
    ("a_killed_run_leaves_nothing", guarded),
    ("a_run_killed_at_any_time_leaves_nothing", guarded_at_any_time),
    ("cluster_clean_removes_the_leftovers_of_a_killed_run", cleaned),
    ("the_next_run_removes_the_leftovers_of_a_killed_run", next_run),
    ("an_api_server_that_dies_during_a_run_is_inconclusive", dies_during_a_run),
    ("other_clients_can_read_the_metrics_of_a_run", disturbed::queried),
    ("a_suspended_controller_manager_does_not_diverge", disturbed::suspended),
    ("a_missing_watch_permission_does_not_diverge", disturbed::no_watch),
    ("a_reverted_metrics_api_does_not_diverge", disturbed::reverted),
    ("runs_use_each_permission_of_the_manifest_and_no_other", rights::each_is_used),
    ("a_run_without_a_permission_fails_and_names_it", rights::each_is_needed),
];

/// A cluster, with a kubeconfig and a client for it.
struct TestCluster {
    folder: tempfile::TempDir,
    admin: Client,
    runtime: Runtime,
    // Dropped last.
    running: Mutex<Running>,
}

impl TestCluster {
    /// Starts a cluster whose controller has these flags, except for a sync period of 1s.
    fn new(flags: Flags) -> Result<TestCluster, EngineError> {
        let flags = Flags { sync_period: Span::from_secs(1), ..flags };
        TestCluster::start(&Options { flags, ..Options::default() })
    }

    fn start(options: &Options) -> Result<TestCluster, EngineError> {
        let broken = |why: String| EngineError::Broken {
            engine: embedded::NAME.into(),
            why,
            output: String::new(),
        };
        let progress = &mut |_| {};
        let program = embedded::ensure(Release::NEWEST, &CancellationToken::new(), progress)?;
        let running = Running::start(&program, options)?;
        let connect = || -> Result<_, Box<dyn std::error::Error>> {
            let folder = tempfile::tempdir()?;
            fs::write(folder.path().join("config"), running.driver_kubeconfig()?)?;
            let runtime = Runtime::new()?;
            let admin = Kubeconfig::from_yaml(&running.admin_kubeconfig()?)?;
            let options = KubeConfigOptions::default();
            let admin = runtime.block_on(async {
                let config = Config::from_custom_kubeconfig(admin, &options).await?;
                Ok::<_, Box<dyn std::error::Error>>(Client::try_from(config)?)
            })?;
            Ok((folder, admin, runtime))
        };
        let (folder, admin, runtime) = connect().map_err(|error| broken(error.to_string()))?;
        Ok(TestCluster { folder, admin, runtime, running: Mutex::new(running) })
    }

    fn config(&self) -> PathBuf {
        self.folder.path().join("config")
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kube-lockstep"));
        command.current_dir(support::repository()).args(args);
        command.args(["--context", CONTEXT, "--kubeconfig"]).arg(self.config());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn run(&self, args: &[&str]) -> Result<Output, Failed> {
        let run = ["run", "--engine", "kubeconfig", "--yes"];
        Ok(self.command(&[&run, args].concat()).output()?)
    }

    /// Starts a run, and waits until it is in the middle of a scenario.
    fn start_run(&self, args: &[&str]) -> Result<Child, Failed> {
        let file = self.folder.path().join("long.yaml");
        fs::write(&file, LONG)?;
        let run = ["run", "--engine", "kubeconfig", "--yes"];
        let mut child = self.command(&[&run, args].concat()).arg(file).spawn()?;
        let begin = Instant::now();
        loop {
            let pods = self.list("", "v1", "Pod")?;
            // The pod is deleted, but a finalizer keeps it.
            let is_held = |pod: &DynamicObject| {
                pod.namespace().is_some_and(|it| it.starts_with("kube-lockstep-"))
                    && pod.metadata.deletion_timestamp.is_some()
            };
            if pods.iter().any(is_held) {
                return Ok(child);
            }
            let ended = child.try_wait()?.is_some();
            if ended || begin.elapsed() > TIMEOUT {
                child.kill()?;
                let mut text = String::new();
                if let Some(mut err) = child.stderr.take() {
                    err.read_to_string(&mut text)?;
                }
                return Err(
                    format!("no pod is terminating (the run ended: {ended}): {text}").into()
                );
            }
            sleep(Duration::from_millis(20));
        }
    }

    /// Waits until all objects of a run are removed.
    fn wait_until_clean(&self) -> Result<(), Failed> {
        let begin = Instant::now();
        while self.check_clean().is_err() && begin.elapsed() < TIMEOUT {
            sleep(Duration::from_millis(100));
        }
        self.check_clean()
    }

    /// The process of a component. The command lines of all components name the folder of the
    /// control plane, and that of the API server also names its port.
    fn component(&self, name: &str) -> Result<String, Failed> {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let port = running.server().rsplit(':').next().unwrap_or_default().to_owned();
        let mut lines = Vec::new();
        for pid in support::place::children(std::process::id())?.split_whitespace() {
            lines.push((pid.to_owned(), fs::read_to_string(format!("/proc/{pid}/cmdline"))?));
        }
        let folder = lines.iter().find_map(|(_, line)| {
            let (_, folder) = line.contains(&port).then(|| line.split_once("unix://"))??;
            folder.split_once("/etcd.sock").map(|(folder, _)| folder.to_owned())
        });
        let folder = folder.ok_or("there is no API server")?;
        let component = lines.into_iter().find(|(_, it)| it.contains(name) && it.contains(&folder));
        component.map(|(pid, _)| pid).ok_or_else(|| format!("there is no {name}").into())
    }

    fn api(&self, group: &str, version: &str, kind: &str) -> Api<DynamicObject> {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        Api::all_with(self.admin.clone(), &resource)
    }

    fn list(&self, group: &str, version: &str, kind: &str) -> Result<Vec<DynamicObject>, Failed> {
        let list = self
            .runtime
            .block_on(async { self.api(group, version, kind).list(&Default::default()).await });
        Ok(list?.items)
    }

    fn api_services(&self) -> Api<DynamicObject> {
        self.api("apiregistration.k8s.io", "v1", "APIService")
    }

    /// The objects of runs that are left in the cluster.
    fn leftovers(&self) -> Result<Vec<String>, Failed> {
        let ours = |name: &str| name.contains("kube-lockstep");
        let namespaces = self.list("", "v1", "Namespace")?.into_iter();
        let mut left: Vec<String> = namespaces
            .map(|it| it.name_any())
            .filter(|name| ours(name))
            .map(|name| format!("namespace {name}"))
            .collect();
        for kind in ["Service", "Pod"] {
            let objects = self.list("", "v1", kind)?.into_iter();
            let objects = objects.filter(|it| ours(&it.namespace().unwrap_or_default()));
            left.extend(objects.map(|it| format!("{kind} {}", it.name_any())));
        }
        for api in self.list("apiregistration.k8s.io", "v1", "APIService")? {
            let text = serde_json::to_string(&api)?;
            if ours(&text) {
                left.push(format!("APIService {}", api.name_any()));
            }
        }
        Ok(left)
    }

    fn check_clean(&self) -> Result<(), Failed> {
        let left = self.leftovers()?;
        match left.is_empty() {
            true => Ok(()),
            false => Err(format!("left: {left:#?}").into()),
        }
    }

    /// Registers a foreign metrics API. It answers, because an API server that cannot discover all
    /// groups removes no namespace.
    fn create_metrics_server(&self) -> Result<Value, Failed> {
        let port = self.runtime.block_on(serve())?;
        let [service, api] = support::foreign::metrics_server(port);
        let service: Service = serde_json::from_value(service)?;
        let services: Api<Service> = Api::namespaced(self.admin.clone(), "kube-system");
        self.runtime.block_on(services.create(&PostParams::default(), &service))?;
        let api: DynamicObject = serde_json::from_value(api)?;
        self.runtime.block_on(self.api_services().create(&PostParams::default(), &api))?;
        self.metrics_server()
    }

    /// The fields of the foreign APIService that a run must restore.
    fn metrics_server(&self) -> Result<Value, Failed> {
        let api = self.runtime.block_on(self.api_services().get(METRICS_SERVER))?;
        let api = serde_json::to_value(api)?;
        let metadata = &api["metadata"];
        Ok(json!([metadata["uid"], metadata["labels"], metadata["annotations"], api["spec"]]))
    }

    fn delete_metrics_server(&self) -> Result<(), Failed> {
        let deleted = self.api_services();
        self.runtime.block_on(deleted.delete(METRICS_SERVER, &Default::default()))?;
        let services: Api<Service> = Api::namespaced(self.admin.clone(), "kube-system");
        self.runtime.block_on(services.delete("metrics-server", &Default::default()))?;
        Ok(())
    }
}

/// Answers every request with an empty list of resources, until the runtime is dropped.
async fn serve() -> Result<u16, Failed> {
    let identity = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    let (certificate, key) = (identity.cert.pem(), identity.signing_key.serialize_pem());
    // Another test may have installed the provider.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let tls = RustlsConfig::from_pem(certificate.into_bytes(), key.into_bytes()).await?;
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    listener.set_nonblocking(true)?;
    let port = listener.local_addr()?.port();
    let list = json!({
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": "metrics.k8s.io/v1beta1",
        "resources": [],
    });
    let router = axum::Router::new().fallback(async move || axum::Json(list));
    tokio::spawn(axum_server::from_tcp_rustls(listener, tls)?.serve(router.into_make_service()));
    Ok(port)
}

fn text_of(output: &Output) -> String {
    let all = [output.stdout.clone(), output.stderr.clone()].concat();
    String::from_utf8_lossy(&all).into_owned()
}

fn conform(cluster: &Arc<TestCluster>) -> Result<(), Failed> {
    let output = cluster.run(&[&["--format", "json"], &CONFORM[..]].concat())?;
    let text = text_of(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    let last: Value = serde_json::from_str(stdout.lines().last().unwrap_or_default())?;
    assert_eq!(last["summary"]["conforms"], CONFORM.len(), "{text}");
    assert!(text.contains("In the cluster of context kube-lockstep (https://127.0.0.1:"), "{text}");
    cluster.check_clean()
}

/// The run notes that it cannot read the flags, and compares what it observes.
fn diverge(_: &Arc<TestCluster>) -> Result<(), Failed> {
    let cluster = TestCluster::new(Flags { tolerance: 0.5, ..Flags::default() })?;
    let output = cluster.run(&["tolerance/just-above-the-upper-edge-scales-up"])?;
    let text = text_of(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("desiredReplicas"), "{text}");
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("the cluster's measured sync period is 1s"), "{text}");
    assert!(text.contains("assumed to be the defaults"), "{text}");
    cluster.check_clean()
}

fn without_consent(cluster: &Arc<TestCluster>) -> Result<(), Failed> {
    let output = cluster.command(&["run", "--engine", "kubeconfig", CONFORM[0]]).output()?;
    let text = text_of(&output);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("a namespace kube-lockstep-… for each of up to 1 scenarios"), "{text}");
    assert!(text.contains("--yes"), "{text}");
    cluster.check_clean()?;
    let wrong = cluster.run(&["--release", "1.30", CONFORM[0]])?;
    assert_eq!(wrong.status.code(), Some(2), "{}", text_of(&wrong));
    cluster.check_clean()
}

fn replaced(cluster: &Arc<TestCluster>) -> Result<(), Failed> {
    let theirs = cluster.create_metrics_server()?;
    let refused = cluster.run(&[CONFORM[0]])?;
    let text = text_of(&refused);
    assert_eq!(refused.status.code(), Some(3), "{text}");
    assert!(text.contains("of kube-system/metrics-server"), "{text}");
    assert!(text.contains("--replace-metrics-api"), "{text}");
    cluster.check_clean()?;
    assert_eq!(cluster.metrics_server()?, theirs);
    let run = cluster.run(&["--replace-metrics-api", CONFORM[0]])?;
    assert_eq!(run.status.code(), Some(0), "{}", text_of(&run));
    assert!(text_of(&run).contains("have no metrics and keep their replicas"), "{}", text_of(&run));
    cluster.check_clean()?;
    assert_eq!(cluster.metrics_server()?, theirs);
    cluster.delete_metrics_server()
}

fn interrupted(cluster: &Arc<TestCluster>) -> Result<(), Failed> {
    use std::os::unix::process::ExitStatusExt as _;
    let theirs = cluster.create_metrics_server()?;
    for (signal, number) in [("-INT", 2), ("-TERM", 15)] {
        let child = cluster.start_run(&["--replace-metrics-api"])?;
        assert_ne!(cluster.metrics_server()?, theirs, "the metrics API is replaced");
        assert!(Command::new("kill").args([signal, &child.id().to_string()]).status()?.success());
        let output = child.wait_with_output()?;
        let text = text_of(&output);
        assert_eq!(output.status.signal(), Some(number), "{text}");
        assert!(text.contains("it was interrupted") && text.contains("1 inconclusive"), "{text}");
        cluster.check_clean()?;
        assert_eq!(cluster.metrics_server()?, theirs);
    }
    cluster.delete_metrics_server()
}

/// The guard of a killed run removes its objects.
fn guarded(cluster: &Arc<TestCluster>) -> Result<(), Failed> {
    let theirs = cluster.create_metrics_server()?;
    let mut child = cluster.start_run(&["--replace-metrics-api"])?;
    assert_ne!(cluster.metrics_server()?, theirs, "the metrics API is replaced");
    kill(&mut child)?;
    cluster.wait_until_clean()?;
    assert_eq!(cluster.metrics_server()?, theirs);
    cluster.delete_metrics_server()
}

/// The kills range from before the run creates objects to its cleanup.
fn guarded_at_any_time(cluster: &Arc<TestCluster>) -> Result<(), Failed> {
    const KILLS: u32 = 12;
    let theirs = cluster.create_metrics_server()?;
    let run = ["run", "--engine", "kubeconfig", "--yes", "--replace-metrics-api", CONFORM[0]];
    let begin = Instant::now();
    let whole = cluster.command(&run).output()?;
    assert_eq!(whole.status.code(), Some(0), "{}", text_of(&whole));
    let whole = begin.elapsed();
    let mut times = KillTimes::new("kubeconfig");
    let (mut killed, mut replaced) = (0, 0);
    while killed < KILLS {
        let mut child = cluster.command(&run).spawn()?;
        let time = times.before(whole);
        sleep(time);
        replaced += u32::from(cluster.metrics_server()? != theirs);
        if child.try_wait()?.is_some() {
            continue;
        }
        kill(&mut child)?;
        killed += 1;
        cluster.wait_until_clean().map_err(|left| format!("killed after {time:?}: {left:?}"))?;
        assert_eq!(cluster.metrics_server()?, theirs, "killed after {time:?}");
    }
    assert!(replaced > 0, "no run was killed while the metrics API was replaced");
    cluster.delete_metrics_server()
}

/// Kills a run in the middle of a scenario together with its guard, as if its machine failed.
fn kill_with_guard(cluster: &TestCluster) -> Result<(), Failed> {
    let mut child = cluster.start_run(&["--replace-metrics-api"])?;
    let guards = support::place::children(child.id())?;
    assert!(!guards.is_empty(), "the run has no guard");
    for guard in guards.split_whitespace() {
        assert!(Command::new("kill").args(["-KILL", guard]).status()?.success());
    }
    child.kill()?;
    child.wait()?;
    let left = cluster.leftovers()?;
    let has = |what: &str| left.iter().any(|it| it.starts_with(what));
    assert!(has("namespace") && has("Pod") && has("Service") && has("APIService"), "{left:#?}");
    Ok(())
}

fn cleaned(cluster: &Arc<TestCluster>) -> Result<(), Failed> {
    let theirs = cluster.create_metrics_server()?;
    kill_with_guard(cluster)?;
    let clean = cluster.command(&["cluster", "clean"]).output()?;
    let text = text_of(&clean);
    assert_eq!(clean.status.code(), Some(0), "{text}");
    assert!(text.contains(&format!("APIService {METRICS_SERVER} is restored")), "{text}");
    cluster.check_clean()?;
    assert_eq!(cluster.metrics_server()?, theirs);
    let again = cluster.command(&["cluster", "clean"]).output()?;
    assert_eq!(again.status.code(), Some(0), "{}", text_of(&again));
    assert!(text_of(&again).contains("There are no leftovers"), "{}", text_of(&again));
    cluster.delete_metrics_server()
}

fn next_run(cluster: &Arc<TestCluster>) -> Result<(), Failed> {
    let theirs = cluster.create_metrics_server()?;
    kill_with_guard(cluster)?;
    // The leftovers are removed even if the run is then refused.
    let refused = cluster.run(&[CONFORM[0]])?;
    let text = text_of(&refused);
    assert_eq!(refused.status.code(), Some(3), "{text}");
    assert!(text.contains("Removed the leftovers of an earlier run: "), "{text}");
    cluster.check_clean()?;
    assert_eq!(cluster.metrics_server()?, theirs);
    cluster.delete_metrics_server()
}

/// Uses a separate cluster, because the test kills its API server.
fn dies_during_a_run(_: &Arc<TestCluster>) -> Result<(), Failed> {
    let cluster = TestCluster::new(Flags::default())?;
    let run = cluster.start_run(&[])?;
    let guards = support::place::children(run.id())?;
    assert!(!guards.is_empty(), "the run has no guard");
    signal("-KILL", &cluster.component("kube-apiserver")?);
    let begin = Instant::now();
    let output = run.wait_with_output()?;
    let text = text_of(&output);
    assert!(begin.elapsed() < TIMEOUT, "the run did not end in time: {text}");
    assert_eq!(output.status.code(), Some(3), "{text}");
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("no verdict the kubeconfig engine failed: "), "{text}");
    assert!(text.contains("client error (Connect)"), "{text}");
    assert!(!text.contains("diverges "), "{text}");
    // The run names its objects, because it cannot remove them.
    assert!(text.contains("some objects could not be removed: "), "{text}");
    for guard in guards.split_whitespace() {
        while PathBuf::from(format!("/proc/{guard}")).exists() {
            assert!(begin.elapsed() < TIMEOUT, "the guard did not end in time");
            sleep(Duration::from_millis(100));
        }
    }
    Ok(())
}
