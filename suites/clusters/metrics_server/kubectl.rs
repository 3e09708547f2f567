//! The metrics in the output of `kubectl`.

use std::process::Command;

use libtest_mimic::Failed;

use super::cluster::{Cluster, shared, wait};
use super::server::{Server, scenario};

/// Returns true if kubectl is installed.
pub(super) fn is_installed() -> bool {
    let version = Command::new("kubectl").args(["version", "--client"]).output();
    version.is_ok_and(|output| output.status.success())
}

fn kubectl(cluster: &Cluster, args: &[&str]) -> Result<(bool, String), Failed> {
    let output = Command::new("kubectl")
        .args(args)
        .env("KUBECONFIG", &cluster.kubeconfig)
        // The home folder could have a cache of another cluster.
        .env("HOME", cluster.folder.path())
        .output()?;
    let text = [output.stdout, output.stderr].concat();
    Ok((output.status.success(), String::from_utf8_lossy(&text).into_owned()))
}

pub(super) fn seen() -> Result<(), Failed> {
    let cluster = shared()?;
    let cluster = cluster.as_ref().ok_or("no cluster")?;
    let kubectl = |args: &[&str]| kubectl(cluster, args);
    cluster.workload("counter", 3)?;
    let names = cluster.run_pods("counter", 3)?;
    let (_folder, scenario) = scenario("counter")?;
    let mut server = Server::start(&cluster.kubeconfig, &["--scenario", &scenario])?;
    server.serves()?;
    wait("the metrics of three pods", || {
        let (_, text) = kubectl(&["top", "pods", "-n", "counter"])?;
        Ok((text.matches("400m").count() == 3).then_some(()))
    })?;
    for args in [&["top", "pods", "-n", "counter"][..], &["top", "pods", "-A"]] {
        let (succeeded, text) = kubectl(args)?;
        assert!(succeeded, "{text}");
        for name in &names {
            let line = text.lines().find(|line| line.contains(name));
            assert!(line.is_some_and(|line| line.contains("400m")), "{args:?}: {text}");
        }
    }
    let (succeeded, text) = kubectl(&["top", "pod", &names[0], "-n", "counter", "--containers"])?;
    assert!(succeeded && text.contains("nginx") && text.contains("64Mi"), "{text}");
    let (succeeded, text) = kubectl(&["top", "nodes"])?;
    assert!(!succeeded && text.contains("pods and no nodes"), "{text}");
    let (succeeded, text) = kubectl(&["get", "podmetrics", "-n", "counter"])?;
    assert!(succeeded && text.contains("CPU") && text.contains("400m"), "{text}");
    let (succeeded, text) = kubectl(&["get", "podmetrics", "-A", "-o", "name"])?;
    assert!(succeeded && text.lines().count() == 3, "{text}");
    let (succeeded, text) = kubectl(&["api-resources", "--api-group", "metrics.k8s.io"])?;
    assert!(succeeded && text.contains("PodMetrics"), "{text}");
    // The API server fetches the OpenAPI schema later than it begins to forward queries.
    wait("the OpenAPI schema of the metrics", || {
        let (_, text) = kubectl(&["explain", "podmetrics.containers"])?;
        let (_, all) = kubectl(&["get", "--raw", "/openapi/v2"])?;
        let has_all = all.contains("io.k8s.metrics.pkg.apis.metrics.v1beta1.PodMetrics");
        Ok((has_all && text.contains("Usage by container")).then_some(()))
    })?;
    let raw = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/counter/pods/*/jobs";
    let (succeeded, text) = kubectl(&["get", "--raw", raw])?;
    assert!(succeeded && text.contains("MetricValueList"), "{text}");
    let raw = "/apis/external.metrics.k8s.io/v1beta1/namespaces/counter/queue";
    let (succeeded, text) = kubectl(&["get", "--raw", raw])?;
    assert!(succeeded && text.contains("\"metricName\":\"queue\""), "{text}");
    server.stop("-INT")?;
    cluster.delete("counter")
}
