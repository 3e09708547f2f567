//! Clusters with an existing metrics API.

use std::net::SocketAddr;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use k8s_openapi::api::core::v1::Service;
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1::APIService;
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use libtest_mimic::Failed;

use super::cluster::{Cluster, object, program, shared, wait};
use super::server::{Server, scenario};
use crate::support::foreign::metrics_server;

/// A foreign metrics API. It answers, because an API server that cannot discover all groups removes
/// no namespace.
struct Foreign<'a>(
    &'a Cluster,
    APIService,
    #[allow(dead_code, reason = "the server stops when this is dropped")] Server,
);

impl Foreign<'_> {
    fn create(cluster: &Cluster) -> Result<Foreign<'_>, Failed> {
        let (_folder, scenario) = scenario("kube-public")?;
        let args = ["--scenario", &scenario, "--no-register"];
        let mut server = Server::start(&cluster.kubeconfig, &args)?;
        let address: SocketAddr =
            server.serves()?["address"].as_str().unwrap_or_default().parse()?;
        let [service, api] = metrics_server(address.port());
        let service: Service = object(service)?;
        let services: Api<Service> = Api::namespaced(cluster.client.clone(), "kube-system");
        let post = PostParams::default();
        let _ = cluster.runtime.block_on(services.delete("metrics-server", &Default::default()));
        cluster.runtime.block_on(services.create(&post, &service))?;
        let apis: Api<APIService> = Api::all(cluster.client.clone());
        let api: APIService = object(api)?;
        let api = cluster.runtime.block_on(apis.create(&post, &api))?;
        let foreign = Foreign(cluster, api, server);
        foreign.wait_until_it_answers()?;
        Ok(foreign)
    }

    /// Waits until the foreign API answers.
    fn wait_until_it_answers(&self) -> Result<(), Failed> {
        wait("an answer of the foreign API", || {
            let answer = self.0.get("/apis/metrics.k8s.io/v1beta1/namespaces/kube-public/pods");
            Ok(answer.is_ok().then_some(()))
        })
    }

    fn current(&self) -> Result<APIService, Failed> {
        let apis: Api<APIService> = Api::all(self.0.client.clone());
        Ok(self.0.runtime.block_on(apis.get("v1beta1.metrics.k8s.io"))?)
    }

    fn is_restored(&self) -> Result<(), Failed> {
        let current = self.current()?;
        assert_eq!(current.spec, self.1.spec);
        assert_eq!(current.metadata.labels, self.1.metadata.labels);
        assert_eq!(current.metadata.annotations, self.1.metadata.annotations);
        assert_eq!(current.metadata.uid, self.1.metadata.uid, "the APIService was never deleted");
        assert_eq!(self.0.registered()?, ["v1beta1.metrics.k8s.io"]);
        self.wait_until_it_answers()
    }

    fn delete(self) -> Result<(), Failed> {
        let apis: Api<APIService> = Api::all(self.0.client.clone());
        let params = DeleteParams::default();
        self.0.runtime.block_on(apis.delete("v1beta1.metrics.k8s.io", &params))?;
        Ok(())
    }
}

/// Starts a server that may replace the foreign API.
fn start_replacing(cluster: &Cluster, scenario: &str) -> Result<Server, Failed> {
    let args = ["--scenario", scenario, "--replace-metrics-api"];
    Server::start(&cluster.kubeconfig, &args)
}

pub(super) fn replaced() -> Result<(), Failed> {
    let cluster = shared()?;
    let cluster = cluster.as_ref().ok_or("no cluster")?;
    let foreign = Foreign::create(cluster)?;
    let (_folder, scenario) = scenario("default")?;
    let (status, _, stderr) =
        Server::start(&cluster.kubeconfig, &["--scenario", &scenario])?.wait_for_exit()?;
    assert_eq!(status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("v1beta1.metrics.k8s.io (of kube-system/metrics-server)"), "{stderr}");
    assert!(stderr.contains("--replace-metrics-api"), "{stderr}");
    foreign.is_restored()?;
    let mut server = start_replacing(cluster, &scenario)?;
    server.serves()?;
    let list = cluster.get("/apis/metrics.k8s.io/v1beta1/pods")?;
    assert_eq!(list["kind"], "PodMetricsList", "{list}");
    let event = server.wait(|event| event["event"] == "replaces")?;
    assert_eq!(event["what"][0], "APIService v1beta1.metrics.k8s.io of kube-system/metrics-server");
    // A second server is refused, even if it may replace the API.
    let (status, _, stderr) = start_replacing(cluster, &scenario)?.wait_for_exit()?;
    assert_eq!(status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("served by another kube-lockstep: process "), "{stderr}");
    let (status, _, stderr) = server.stop("-TERM")?;
    assert_eq!(status.code(), Some(0), "{stderr}");
    foreign.is_restored()?;
    foreign.delete()
}

pub(super) fn killed() -> Result<(), Failed> {
    let cluster = shared()?;
    let cluster = cluster.as_ref().ok_or("no cluster")?;
    let foreign = Foreign::create(cluster)?;
    let (_folder, scenario) = scenario("default")?;
    let mut server = start_replacing(cluster, &scenario)?;
    server.serves()?;
    server.kill_with_guard()?;
    let left = cluster.registered()?;
    assert_eq!(left.len(), 5, "{left:?}");
    assert_ne!(foreign.current()?.spec, foreign.1.spec);
    let output = program()
        .args(["metrics-server", "--remove", "--kubeconfig"])
        .arg(&cluster.kubeconfig)
        .output()?;
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{stdout}");
    assert!(stdout.contains("v1beta1.metrics.k8s.io is restored"), "{stdout}");
    foreign.is_restored()?;
    // The next server restores it too, even after servers that were killed during their start.
    for delay in [0, 60, 120, 180, 240, 300, 400, 500] {
        let server = start_replacing(cluster, &scenario)?;
        sleep(Duration::from_millis(delay));
        server.kill_with_guard()?;
    }
    let mut server = start_replacing(cluster, &scenario)?;
    server.serves()?;
    let (status, _, stderr) = server.stop("-INT")?;
    assert_eq!(status.code(), Some(0), "{stderr}");
    foreign.is_restored()?;
    foreign.delete()
}

/// The guard restores the foreign API, whenever the server is killed.
pub(super) fn guarded() -> Result<(), Failed> {
    let cluster = shared()?;
    let cluster = cluster.as_ref().ok_or("no cluster")?;
    let foreign = Foreign::create(cluster)?;
    let (_folder, scenario) = scenario("default")?;
    let mut server = start_replacing(cluster, &scenario)?;
    server.serves()?;
    assert_ne!(foreign.current()?.spec, foreign.1.spec);
    server.stop("-KILL")?;
    wait("the cleanup by the guard", || Ok((cluster.registered()?.len() == 1).then_some(())))?;
    foreign.is_restored()?;
    for delay in [100, 200, 300, 400, 500] {
        let server = start_replacing(cluster, &scenario)?;
        sleep(Duration::from_millis(delay));
        let guards = server.guards()?;
        server.stop("-KILL")?;
        let has_exited = |guard: &str| !Path::new("/proc").join(guard).exists();
        wait("the exit of the guards", || {
            Ok(guards.split_whitespace().all(has_exited).then_some(()))
        })?;
        foreign.is_restored()?;
        assert_eq!(cluster.registered()?.len(), 1, "killed after {delay} ms");
    }
    foreign.delete()
}
