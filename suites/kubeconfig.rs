//! Scenarios on an existing cluster: `cargo test --features e2e --test kubeconfig`.
//!
//! The cluster is a control plane on this machine, which the runs reach by a kubeconfig with no more
//! permissions than the docs require. However a run ends, afterwards the cluster has the objects
//! that it had before, and no others. The tests share the cluster.

#[path = "kubeconfig/disturbed.rs"]
mod disturbed;
#[path = "kubeconfig/rights.rs"]
mod rights;
mod support;

use std::fs;
use std::io::Read as _;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, Output, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use axum_server::tls_rustls::RustlsConfig;
use k8s_openapi::api::core::v1::Service;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config, ResourceExt};
use kube_lockstep::engine::embedded::{self, Options, Running};
use kube_lockstep::engine::{CancellationToken, EngineError};
use kube_lockstep::model::flags::Flags;
use kube_lockstep::model::rules::Release;
use kube_lockstep::model::time::Span;
use libtest_mimic::Failed;
use serde_json::{Value, json};
use support::moments::{Moments, kill as kill_now};
use support::place::signal;
use support::trials::Suite;
use tokio::runtime::Runtime;

/// Scenarios of all kinds that conform, whatever the flags are that can't be set.
const CONFORM: [&str; 16] = [
    "average-value/docs-twice-the-target-doubles",
    "average-value/metrics-of-pods-that-are-gone-still-count",
    "average-value/needs-no-requests",
    "behavior/a-person-s-scale-up-does-not-use-up-a-policy",
    "behavior/eighty-percent-down-of-ten-leaves-one",
    "behavior/min-policy-on-the-way-up",
    "conditions/three-conditions-of-a-healthy-autoscaler",
    "edits/a-minimum-raised-above-the-size-takes-effect-at-once",
    "edits/refused-sizes",
    "external-metric/series-are-summed",
    "limits/a-person-cannot-go-above-the-maximum",
    "object-metric/a-selector-picks-one-series",
    "pods-metric/twice-the-target-doubles",
    "terminating/pods-removed-by-a-scale-down-stop-counting-at-once",
    "tolerance/each-direction-has-its-own",
    "tolerance/just-above-the-upper-edge-scales-up",
];

/// One that takes half a minute, in which pods hang in Terminating.
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

/// The context of the kubeconfigs that control planes give.
const CONTEXT: &str = "kube-lockstep";

/// The metrics API that clusters mostly have.
const METRICS_SERVER: &str = "v1beta1.metrics.k8s.io";

/// How long something may take to come about.
const LIMIT: Duration = Duration::from_secs(60);

fn main() -> ExitCode {
    // The tests share the cluster, which has one metrics API.
    let mut suite = Suite::one_at_a_time("kubeconfig");
    let place = suite.require("a cluster", || Place::new(Flags::default()).map(Arc::new));
    for (name, test) in TESTS {
        suite.test_with(&place, name, move |place| test(&place));
    }
    suite.run()
}

type Test = fn(&Arc<Place>) -> Result<(), Failed>;

const TESTS: [(&str, Test); 16] = [
    ("fixtures_conform_and_nothing_is_left", conform),
    ("a_modified_controller_diverges", diverge),
    ("without_consent_nothing_is_created", without_consent),
    ("an_existing_metrics_api_is_refused_or_restored", replaced),
    ("an_interrupted_run_leaves_nothing", interrupted),
    ("a_killed_run_leaves_nothing", guarded),
    ("a_run_killed_at_any_time_leaves_nothing", guarded_all_along),
    ("cluster_clean_removes_the_leftovers_of_a_killed_run", cleaned),
    ("the_next_run_removes_the_leftovers_of_a_killed_run", next_run),
    ("an_api_server_that_dies_during_a_run_is_inconclusive", dies_under_a_run),
    ("other_clients_can_read_the_metrics_of_a_run", disturbed::looked_at),
    ("a_suspended_controller_manager_does_not_diverge", disturbed::stood_still),
    ("a_missing_watch_permission_does_not_diverge", disturbed::not_shown),
    ("a_reverted_metrics_api_does_not_diverge", disturbed::put_back),
    ("runs_use_each_permission_of_the_manifest_and_no_other", rights::each_is_used),
    ("a_run_without_a_permission_fails_and_names_it", rights::each_is_needed),
];

/// A cluster, and the files by which it is reached.
struct Place {
    folder: tempfile::TempDir,
    admin: Client,
    runtime: Runtime,
    // Ended last.
    cluster: Mutex<Running>,
}

impl Place {
    /// A cluster whose controller has these flags, but for its sync period.
    fn new(flags: Flags) -> Result<Place, EngineError> {
        let flags = Flags { sync_period: Span::from_secs(1), ..flags };
        Place::start(&Options { flags, ..Options::default() })
    }

    fn start(options: &Options) -> Result<Place, EngineError> {
        let broken = |why: String| EngineError::Broken {
            engine: embedded::NAME.into(),
            why,
            output: String::new(),
        };
        let told = &mut |_: &str, _| {};
        let program = embedded::ensure(Release::NEWEST, &CancellationToken::new(), told)?;
        let cluster = Running::start(&program, options)?;
        let made = || -> Result<_, Box<dyn std::error::Error>> {
            let folder = tempfile::tempdir()?;
            fs::write(folder.path().join("config"), cluster.driver_kubeconfig()?)?;
            let runtime = Runtime::new()?;
            let admin = Kubeconfig::from_yaml(&cluster.admin_kubeconfig()?)?;
            let options = KubeConfigOptions::default();
            let admin = runtime.block_on(async {
                let config = Config::from_custom_kubeconfig(admin, &options).await?;
                Ok::<_, Box<dyn std::error::Error>>(Client::try_from(config)?)
            })?;
            Ok((folder, admin, runtime))
        };
        let (folder, admin, runtime) = made().map_err(|error| broken(error.to_string()))?;
        Ok(Place { folder, admin, runtime, cluster: Mutex::new(cluster) })
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

    /// A run that is in the middle of a scenario.
    fn under_way(&self, args: &[&str]) -> Result<Child, Failed> {
        let file = self.folder.path().join("long.yaml");
        fs::write(&file, LONG)?;
        let run = ["run", "--engine", "kubeconfig", "--yes"];
        let mut child = self.command(&[&run, args].concat()).arg(file).spawn()?;
        let begin = Instant::now();
        loop {
            let pods = self.list("", "v1", "Pod")?;
            // Held by a finalizer, and on its way out.
            let is_held = |pod: &DynamicObject| {
                pod.namespace().is_some_and(|it| it.starts_with("kube-lockstep-"))
                    && pod.metadata.deletion_timestamp.is_some()
            };
            if pods.iter().any(is_held) {
                return Ok(child);
            }
            let ended = child.try_wait()?.is_some();
            if ended || begin.elapsed() > LIMIT {
                child.kill()?;
                let mut said = String::new();
                if let Some(mut err) = child.stderr.take() {
                    err.read_to_string(&mut said)?;
                }
                return Err(format!("no pod was held (it ended: {ended}): {said}").into());
            }
            sleep(Duration::from_millis(20));
        }
    }

    /// Waits until nothing of a run is left.
    fn becomes_clean(&self) -> Result<(), Failed> {
        let begin = Instant::now();
        while self.is_clean().is_err() && begin.elapsed() < LIMIT {
            sleep(Duration::from_millis(100));
        }
        self.is_clean()
    }

    /// The process of a part of it. All of them name its folder, and the API server its port.
    fn part(&self, name: &str) -> Result<String, Failed> {
        let cluster = self.cluster.lock().unwrap_or_else(PoisonError::into_inner);
        let port = cluster.server().rsplit(':').next().unwrap_or_default().to_owned();
        let mut lines = Vec::new();
        for pid in support::place::children(std::process::id())?.split_whitespace() {
            lines.push((pid.to_owned(), fs::read_to_string(format!("/proc/{pid}/cmdline"))?));
        }
        let folder = lines.iter().find_map(|(_, line)| {
            let (_, folder) = line.contains(&port).then(|| line.split_once("unix://"))??;
            folder.split_once("/etcd.sock").map(|(folder, _)| folder.to_owned())
        });
        let folder = folder.ok_or("there is no API server")?;
        let part = lines.into_iter().find(|(_, it)| it.contains(name) && it.contains(&folder));
        part.map(|(pid, _)| pid).ok_or_else(|| format!("there is no {name}").into())
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

    /// Everything of ours that there is.
    fn left(&self) -> Result<Vec<String>, Failed> {
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

    fn is_clean(&self) -> Result<(), Failed> {
        let left = self.left()?;
        match left.is_empty() {
            true => Ok(()),
            false => Err(format!("left: {left:#?}").into()),
        }
    }

    /// A metrics API of somebody else's, which answers: an API server that can't discover all
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

    /// What of it is its owner's.
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

/// Answers whatever it is asked with an empty list of resources, as long as the runtime lives.
async fn serve() -> Result<u16, Failed> {
    let identity = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    let (certificate, key) = (identity.cert.pem(), identity.signing_key.serialize_pem());
    // Another test may have installed it.
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

fn said(output: &Output) -> String {
    let all = [output.stdout.clone(), output.stderr.clone()].concat();
    String::from_utf8_lossy(&all).into_owned()
}

fn conform(place: &Arc<Place>) -> Result<(), Failed> {
    let output = place.run(&[&["--format", "json"], &CONFORM[..]].concat())?;
    let said = said(&output);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    let last: Value = serde_json::from_str(stdout.lines().last().unwrap_or_default())?;
    assert_eq!(last["summary"]["conforms"], CONFORM.len(), "{said}");
    assert!(said.contains("On the cluster of context kube-lockstep (https://127.0.0.1:"), "{said}");
    place.is_clean()
}

/// That flags can't be seen is said; what is seen is compared all the same.
fn diverge(_: &Arc<Place>) -> Result<(), Failed> {
    let place = Place::new(Flags { tolerance: 0.5, ..Flags::default() })?;
    let output = place.run(&["tolerance/just-above-the-upper-edge-scales-up"])?;
    let said = said(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("desiredReplicas"), "{said}");
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("the cluster's measured sync period is 1s"), "{said}");
    assert!(said.contains("assumed to be the defaults"), "{said}");
    place.is_clean()
}

fn without_consent(place: &Arc<Place>) -> Result<(), Failed> {
    let output = place.command(&["run", "--engine", "kubeconfig", CONFORM[0]]).output()?;
    let told = said(&output);
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert!(told.contains("a namespace kube-lockstep-… for each of up to 1 scenarios"), "{told}");
    assert!(told.contains("--yes"), "{told}");
    place.is_clean()?;
    let wrong = place.run(&["--release", "1.30", CONFORM[0]])?;
    assert_eq!(wrong.status.code(), Some(2), "{}", said(&wrong));
    place.is_clean()
}

fn replaced(place: &Arc<Place>) -> Result<(), Failed> {
    let theirs = place.create_metrics_server()?;
    let refused = place.run(&[CONFORM[0]])?;
    let told = said(&refused);
    assert_eq!(refused.status.code(), Some(3), "{told}");
    assert!(told.contains("of kube-system/metrics-server"), "{told}");
    assert!(told.contains("--replace-metrics-api"), "{told}");
    place.is_clean()?;
    assert_eq!(place.metrics_server()?, theirs);
    let run = place.run(&["--replace-metrics-api", CONFORM[0]])?;
    assert_eq!(run.status.code(), Some(0), "{}", said(&run));
    assert!(said(&run).contains("have no metrics and keep their replicas"), "{}", said(&run));
    place.is_clean()?;
    assert_eq!(place.metrics_server()?, theirs);
    place.delete_metrics_server()
}

fn interrupted(place: &Arc<Place>) -> Result<(), Failed> {
    use std::os::unix::process::ExitStatusExt as _;
    let theirs = place.create_metrics_server()?;
    for (signal, number) in [("-INT", 2), ("-TERM", 15)] {
        let child = place.under_way(&["--replace-metrics-api"])?;
        assert_ne!(place.metrics_server()?, theirs, "it is replaced");
        assert!(Command::new("kill").args([signal, &child.id().to_string()]).status()?.success());
        let output = child.wait_with_output()?;
        let said = said(&output);
        assert_eq!(output.status.signal(), Some(number), "{said}");
        assert!(said.contains("it was interrupted") && said.contains("1 inconclusive"), "{said}");
        place.is_clean()?;
        assert_eq!(place.metrics_server()?, theirs);
    }
    place.delete_metrics_server()
}

/// Its guard removes what it has made.
fn guarded(place: &Arc<Place>) -> Result<(), Failed> {
    let theirs = place.create_metrics_server()?;
    let mut child = place.under_way(&["--replace-metrics-api"])?;
    assert_ne!(place.metrics_server()?, theirs, "it is replaced");
    kill_now(&mut child)?;
    place.becomes_clean()?;
    assert_eq!(place.metrics_server()?, theirs);
    place.delete_metrics_server()
}

/// Wherever it is: before it has made anything, while it registers itself, plays or cleans up.
fn guarded_all_along(place: &Arc<Place>) -> Result<(), Failed> {
    const KILLS: u32 = 12;
    let theirs = place.create_metrics_server()?;
    let run = ["run", "--engine", "kubeconfig", "--yes", "--replace-metrics-api", CONFORM[0]];
    let begin = Instant::now();
    let whole = place.command(&run).output()?;
    assert_eq!(whole.status.code(), Some(0), "{}", said(&whole));
    let whole = begin.elapsed();
    let mut moments = Moments::of("kubeconfig");
    let (mut killed, mut replaced) = (0, 0);
    while killed < KILLS {
        let mut child = place.command(&run).spawn()?;
        let moment = moments.before(whole);
        sleep(moment);
        replaced += u32::from(place.metrics_server()? != theirs);
        if child.try_wait()?.is_some() {
            continue;
        }
        kill_now(&mut child)?;
        killed += 1;
        place.becomes_clean().map_err(|left| format!("killed after {moment:?}: {left:?}"))?;
        assert_eq!(place.metrics_server()?, theirs, "killed after {moment:?}");
    }
    assert!(replaced > 0, "each was killed before it had made anything, or after that");
    place.delete_metrics_server()
}

/// Loses a run in the middle of a scenario, and its guard with it, as when its machine is gone.
fn kill(place: &Place) -> Result<(), Failed> {
    let mut child = place.under_way(&["--replace-metrics-api"])?;
    let guards = support::place::children(child.id())?;
    assert!(!guards.is_empty(), "nobody guards it");
    for guard in guards.split_whitespace() {
        assert!(Command::new("kill").args(["-KILL", guard]).status()?.success());
    }
    child.kill()?;
    child.wait()?;
    let left = place.left()?;
    let has = |what: &str| left.iter().any(|it| it.starts_with(what));
    assert!(has("namespace") && has("Pod") && has("Service") && has("APIService"), "{left:#?}");
    Ok(())
}

fn cleaned(place: &Arc<Place>) -> Result<(), Failed> {
    let theirs = place.create_metrics_server()?;
    kill(place)?;
    let clean = place.command(&["cluster", "clean"]).output()?;
    let told = said(&clean);
    assert_eq!(clean.status.code(), Some(0), "{told}");
    assert!(told.contains(&format!("APIService {METRICS_SERVER} is restored")), "{told}");
    place.is_clean()?;
    assert_eq!(place.metrics_server()?, theirs);
    let again = place.command(&["cluster", "clean"]).output()?;
    assert_eq!(again.status.code(), Some(0), "{}", said(&again));
    assert!(said(&again).contains("There are no leftovers"), "{}", said(&again));
    place.delete_metrics_server()
}

fn next_run(place: &Arc<Place>) -> Result<(), Failed> {
    let theirs = place.create_metrics_server()?;
    kill(place)?;
    // Also where it does not go on.
    let refused = place.run(&[CONFORM[0]])?;
    let told = said(&refused);
    assert_eq!(refused.status.code(), Some(3), "{told}");
    assert!(told.contains("Removed the leftovers of an earlier run: "), "{told}");
    place.is_clean()?;
    assert_eq!(place.metrics_server()?, theirs);
    place.delete_metrics_server()
}

/// Of a cluster of its own, of which nobody else needs anything afterwards.
fn dies_under_a_run(_: &Arc<Place>) -> Result<(), Failed> {
    let place = Place::new(Flags::default())?;
    let run = place.under_way(&[])?;
    let guards = support::place::children(run.id())?;
    assert!(!guards.is_empty(), "nobody guards it");
    signal("-KILL", &place.part("kube-apiserver")?);
    let begin = Instant::now();
    let output = run.wait_with_output()?;
    let told = said(&output);
    assert!(begin.elapsed() < LIMIT, "it has gone on for too long: {told}");
    assert_eq!(output.status.code(), Some(3), "{told}");
    let told = told.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(told.contains("no verdict the kubeconfig engine failed: "), "{told}");
    assert!(told.contains("client error (Connect)"), "{told}");
    assert!(!told.contains("diverges "), "{told}");
    // What it has made is named, since nobody can remove it now.
    assert!(told.contains("some objects could not be removed: "), "{told}");
    for guard in guards.split_whitespace() {
        while PathBuf::from(format!("/proc/{guard}")).exists() {
            assert!(begin.elapsed() < LIMIT, "its guard goes on for too long");
            sleep(Duration::from_millis(100));
        }
    }
    Ok(())
}
