//! `kube-lockstep metrics-server` on a real control plane.
//!
//! The real HPA controller, and kubectl if it is installed, query it through the API server. The
//! tests share a control plane, and use its metrics APIs one after another.

mod cluster;
mod foreign;
mod kubectl;
mod server;

use std::collections::BTreeMap;
use std::net::UdpSocket;
use std::time::{Duration, Instant};

use crate::support::trials::Suite;
use cluster::{Cluster, program, shared, wait};
use kube_autoscaler_models::rules::Release;
use libtest_mimic::Failed;
use serde_json::{Value, json};
use server::{Server, scenario, slow_scenario};

type Test = fn() -> Result<(), Failed>;

const ENDPOINTS: &str = "an_api_server_that_routes_to_endpoints_reaches_the_server";

const KUBECTL: &str = "kubectl_sees_the_metrics";

const TESTS: [(&str, Test); 9] = [
    ("a_cluster_must_be_named", requires_a_context),
    ("the_controller_sees_the_metrics", controller_sees_metrics),
    (KUBECTL, kubectl::seen),
    ("slow_metrics_are_served_slowly", slow),
    ("an_existing_metrics_api_is_refused_replaced_and_restored", foreign::replaced),
    ("leftovers_of_a_killed_server_are_removed", foreign::killed),
    ("the_guard_cleans_up_after_a_killed_server", foreign::guarded),
    (ENDPOINTS, endpoint_routing),
    ("an_unregistered_server_creates_nothing", unregistered),
];

/// Adds the tests of this suite.
pub(crate) fn add_tests(suite: &mut Suite) {
    let program = suite.control_plane(Release::NEWEST).map(drop);
    let kubectl = suite.require_that("kubectl", kubectl::is_installed);
    let address = suite.require_that("an address that is not loopback", has_address);
    for (name, test) in TESTS {
        let required = match name {
            KUBECTL => program.and(&kubectl).map(drop),
            ENDPOINTS => program.and(&address).map(drop),
            _ => program.clone(),
        };
        suite.test_with(&required, name, move |()| test());
    }
    suite.at_end(cluster::stop_shared);
}

/// Returns true if this machine has an address other than loopback, which an API server refuses as
/// an endpoint. Nothing is sent to the address, which is reserved for documentation.
fn has_address() -> bool {
    let socket = UdpSocket::bind("0.0.0.0:0").and_then(|socket| {
        socket.connect("192.0.2.1:9")?;
        socket.local_addr()
    });
    socket.is_ok_and(|local| !local.ip().is_loopback() && !local.ip().is_unspecified())
}

fn requires_a_context() -> Result<(), Failed> {
    let (_folder, scenario) = scenario("shop")?;
    let cluster = shared()?;
    let cluster = cluster.as_ref().ok_or("no cluster")?;
    let run = |args: &[&str]| {
        let output = program()
            .args(["metrics-server", "--scenario", &scenario])
            .args(args)
            .env("KUBECONFIG", &cluster.kubeconfig)
            .output()?;
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        Ok::<_, Failed>((output.status.code(), stderr))
    };
    let (code, stderr) = run(&[])?;
    assert_eq!(code, Some(2), "{stderr}");
    assert!(stderr.contains("set --context") && stderr.contains("kube-lockstep"), "{stderr}");
    let (code, stderr) = run(&["--context", "missing"])?;
    assert_eq!(code, Some(2), "{stderr}");
    assert!(stderr.contains("no context `missing`"), "{stderr}");
    assert_eq!(cluster.registered()?, Vec::<String>::new());
    Ok(())
}

fn controller_sees_metrics() -> Result<(), Failed> {
    let cluster = shared()?;
    let cluster = cluster.as_ref().ok_or("no cluster")?;
    cluster.workload("shop", 2)?;
    cluster.run_pods("shop", 2)?;
    let (_folder, scenario) = scenario("shop")?;
    let mut server = Server::start(&cluster.kubeconfig, &["--scenario", &scenario])?;
    let serving = server.serves()?;
    assert_eq!(serving["route"], "a Service of type ExternalName to localhost", "{serving}");
    // Two pods with 600m of 1 core exceed the target of 50%; three pods with 400m do not.
    wait("three replicas", || Ok((cluster.replicas("shop")? == 3).then_some(())))?;
    cluster.run_pods("shop", 3)?;
    let (usage, jobs, hits, queue) = wait("the metrics of three pods", || {
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
    // A watch is refused.
    let watched = "/apis/metrics.k8s.io/v1beta1/namespaces/shop/pods?watch=true";
    let refused = cluster.get(watched).err().map(|error| format!("{error:?}")).unwrap_or_default();
    assert!(refused.contains("405") && refused.contains("watch is not supported"), "{refused}");
    let values = |list: &Value| -> Vec<String> {
        let items = list["items"].as_array().into_iter().flatten();
        items.map(|item| item["value"].as_str().unwrap_or_default().to_owned()).collect()
    };
    let mut job_values = values(&jobs);
    job_values.sort();
    assert_eq!(job_values, ["3", "3", "7"], "{jobs}");
    assert_eq!(values(&hits), ["2k"], "{hits}");
    assert_eq!(values(&queue), ["5"], "{queue}");
    let query = server.wait(|event| {
        let user = "system:serviceaccount:kube-system:horizontal-pod-autoscaler";
        // The controller may still query metrics for the HPA of another test.
        event["event"] == "query" && event["user"] == user && event["namespace"] == "shop"
    })?;
    assert_eq!(query["what"], "pods", "{query}");
    let ignoring = "ignoring actions of";
    server.wait(|event| event["note"].as_str().is_some_and(|note| note.contains(ignoring)))?;
    assert_eq!(cluster.replicas("shop")?, 3);
    let errors = cluster.errors()?;
    assert!(errors.is_empty(), "{errors:#?}");
    let (status, events, stderr) = server.stop("-INT")?;
    assert_eq!(status.code(), Some(0), "{stderr}");
    assert!(events.iter().any(|it| it["event"] == "removed"), "{events:?}");
    assert_eq!(cluster.registered()?, Vec::<String>::new());
    cluster.delete("shop")
}

/// Queries for metrics wait, except those for another namespace; discovery does not wait.
fn slow() -> Result<(), Failed> {
    const SLOW: Duration = Duration::from_secs(3);
    let cluster = shared()?;
    let cluster = cluster.as_ref().ok_or("no cluster")?;
    let (_slow, slow) = slow_scenario("default", SLOW)?;
    let (_fast, fast) = scenario("kube-public")?;
    let args = ["--scenario", &slow, "--scenario", &fast];
    let mut server = Server::start(&cluster.kubeconfig, &args)?;
    server.serves()?;
    let (resource, custom, external) = (
        "metrics.k8s.io/v1beta1",
        "custom.metrics.k8s.io/v1beta2",
        "external.metrics.k8s.io/v1beta1",
    );
    for (group, what) in [(resource, "pods"), (custom, "services/front/hits"), (external, "queue")]
    {
        let took = |path: &str| {
            let begin = Instant::now();
            let list = cluster.get(&format!("/apis/{group}{path}"))?;
            assert!(list["kind"].as_str().is_some_and(|it| it.ends_with("List")), "{list}");
            Ok::<_, Failed>(begin.elapsed())
        };
        assert!(took("")? < SLOW, "{group}");
        assert!(took(&format!("/namespaces/kube-public/{what}"))? < SLOW, "{what}");
        assert!(took(&format!("/namespaces/default/{what}"))? >= SLOW, "{what}");
    }
    let (status, _, stderr) = server.stop("-INT")?;
    assert_eq!(status.code(), Some(0), "{stderr}");
    Ok(())
}

fn endpoint_routing() -> Result<(), Failed> {
    let routing = ["--api-server-arg", "enable-aggregator-routing=true"];
    let cluster = Cluster::start("routing", &routing)?;
    let (_folder, scenario) = scenario("default")?;
    let mut server = Server::start(&cluster.kubeconfig, &["--scenario", &scenario])?;
    let serving = server.serves()?;
    let route = serving["route"].as_str().unwrap_or_default();
    assert!(route.starts_with("a Service with the endpoint "), "{serving}");
    let list = cluster.get("/apis/metrics.k8s.io/v1beta1/pods")?;
    assert_eq!(list["kind"], "PodMetricsList", "{list}");
    let (status, _, stderr) = server.stop("-INT")?;
    assert_eq!(status.code(), Some(0), "{stderr}");
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
    let (status, _, stderr) = server.stop("-INT")?;
    assert_eq!(status.code(), Some(0), "{stderr}");
    Ok(())
}
