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
use super::support::foreign::metrics_server;

/// It answers, as long as it is there: a namespace can't go while an API does not.
struct Foreign<'a>(&'a Cluster, APIService, #[allow(dead_code, reason = "it ends with it")] Server);

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

/// A server that may replace it.
fn replacing(cluster: &Cluster, scenario: &str) -> Result<Server, Failed> {
    let args = ["--scenario", scenario, "--replace-metrics-api"];
    Server::start(&cluster.kubeconfig, &args)
}

pub(super) fn replaced() -> Result<(), Failed> {
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
    let mut server = replacing(cluster, &scenario)?;
    server.serves()?;
    let list = cluster.get("/apis/metrics.k8s.io/v1beta1/pods")?;
    assert_eq!(list["kind"], "PodMetricsList", "{list}");
    let told = server.wait(|told| told["event"] == "replaces")?;
    assert_eq!(told["what"][0], "APIService v1beta1.metrics.k8s.io of kube-system/metrics-server");
    // A second one is refused, whatever it is allowed.
    let (status, _, said) = replacing(cluster, &scenario)?.ended()?;
    assert_eq!(status.code(), Some(2), "{said}");
    assert!(said.contains("served by another kube-lockstep: process "), "{said}");
    let (status, _, said) = server.end("-TERM")?;
    assert_eq!(status.code(), Some(0), "{said}");
    foreign.is_restored()?;
    foreign.delete()
}

pub(super) fn killed() -> Result<(), Failed> {
    let cluster = shared()?;
    let cluster = cluster.as_ref().ok_or("no cluster")?;
    let foreign = Foreign::create(cluster)?;
    let (_folder, scenario) = scenario("default")?;
    let mut server = replacing(cluster, &scenario)?;
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
    assert!(said.contains("v1beta1.metrics.k8s.io is restored"), "{said}");
    foreign.is_restored()?;
    // The next one does the same by itself, also after one that was killed while it started.
    for moment in [0, 60, 120, 180, 240, 300, 400, 500] {
        let server = replacing(cluster, &scenario)?;
        sleep(Duration::from_millis(moment));
        server.lose()?;
    }
    let mut server = replacing(cluster, &scenario)?;
    server.serves()?;
    let (status, _, said) = server.end("-INT")?;
    assert_eq!(status.code(), Some(0), "{said}");
    foreign.is_restored()?;
    foreign.delete()
}

/// All is as it was, whenever it is killed.
pub(super) fn guarded() -> Result<(), Failed> {
    let cluster = shared()?;
    let cluster = cluster.as_ref().ok_or("no cluster")?;
    let foreign = Foreign::create(cluster)?;
    let (_folder, scenario) = scenario("default")?;
    let mut server = replacing(cluster, &scenario)?;
    server.serves()?;
    assert_ne!(foreign.now()?.spec, foreign.1.spec);
    server.end("-KILL")?;
    wait("the guard", || Ok((cluster.registered()?.len() == 1).then_some(())))?;
    foreign.is_restored()?;
    for moment in [100, 200, 300, 400, 500] {
        let server = replacing(cluster, &scenario)?;
        sleep(Duration::from_millis(moment));
        let guards = server.guards()?;
        server.end("-KILL")?;
        let gone = |guard: &str| !Path::new("/proc").join(guard).exists();
        wait("the guards' ends", || Ok(guards.split_whitespace().all(gone).then_some(())))?;
        foreign.is_restored()?;
        assert_eq!(cluster.registered()?.len(), 1, "killed after {moment} ms");
    }
    foreign.delete()
}
