//! The metrics in the output of `kubectl`.

use std::process::Command;

use libtest_mimic::Failed;

use super::cluster::{Cluster, shared, wait};
use super::server::{Server, scenario};

/// Whether there is one.
pub(super) fn is_there() -> bool {
    let version = Command::new("kubectl").args(["version", "--client"]).output();
    version.is_ok_and(|output| output.status.success())
}

fn kubectl(cluster: &Cluster, args: &[&str]) -> Result<(bool, String), Failed> {
    let output = Command::new("kubectl")
        .args(args)
        .env("KUBECONFIG", &cluster.kubeconfig)
        // What it remembers of other clusters is not meant.
        .env("HOME", cluster.folder.path())
        .output()?;
    let said = [output.stdout, output.stderr].concat();
    Ok((output.status.success(), String::from_utf8_lossy(&said).into_owned()))
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
    wait("shares of three", || {
        let (_, said) = kubectl(&["top", "pods", "-n", "counter"])?;
        Ok((said.matches("400m").count() == 3).then_some(()))
    })?;
    for args in [&["top", "pods", "-n", "counter"][..], &["top", "pods", "-A"]] {
        let (good, said) = kubectl(args)?;
        assert!(good, "{said}");
        for name in &names {
            let line = said.lines().find(|line| line.contains(name));
            assert!(line.is_some_and(|line| line.contains("400m")), "{args:?}: {said}");
        }
    }
    let (good, said) = kubectl(&["top", "pod", &names[0], "-n", "counter", "--containers"])?;
    assert!(good && said.contains("nginx") && said.contains("64Mi"), "{said}");
    let (good, said) = kubectl(&["top", "nodes"])?;
    assert!(!good && said.contains("pods and no nodes"), "{said}");
    let (good, said) = kubectl(&["get", "podmetrics", "-n", "counter"])?;
    assert!(good && said.contains("CPU") && said.contains("400m"), "{said}");
    let (good, said) = kubectl(&["get", "podmetrics", "-A", "-o", "name"])?;
    assert!(good && said.lines().count() == 3, "{said}");
    let (good, said) = kubectl(&["api-resources", "--api-group", "metrics.k8s.io"])?;
    assert!(good && said.contains("PodMetrics"), "{said}");
    // The API server looks for what there is to explain after it has begun to ask for metrics.
    wait("what explains them", || {
        let (_, said) = kubectl(&["explain", "podmetrics.containers"])?;
        let (_, all) = kubectl(&["get", "--raw", "/openapi/v2"])?;
        let has_all = all.contains("io.k8s.metrics.pkg.apis.metrics.v1beta1.PodMetrics");
        Ok((has_all && said.contains("Usage by container")).then_some(()))
    })?;
    let raw = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/counter/pods/*/jobs";
    let (good, said) = kubectl(&["get", "--raw", raw])?;
    assert!(good && said.contains("MetricValueList"), "{said}");
    let raw = "/apis/external.metrics.k8s.io/v1beta1/namespaces/counter/queue";
    let (good, said) = kubectl(&["get", "--raw", raw])?;
    assert!(good && said.contains("\"metricName\":\"queue\""), "{said}");
    server.end("-INT")?;
    cluster.delete("counter")
}
