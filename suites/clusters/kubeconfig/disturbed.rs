//! Runs that other clients disturb: their changes are not attributed to the controller.

use std::process::{Child, Output};
use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;

use kube::ResourceExt;
use kube::api::{Patch, PatchParams};
use kube_autoscaler_models::flags::Flags;
use libtest_mimic::Failed;
use serde_json::{Value, json};

use super::{CONFORM, METRICS_SERVER, TestCluster, text_of};
use crate::support::place::signal;

/// The result of the only scenario.
fn outcome(output: &Output) -> Result<Value, Failed> {
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    let first = stdout.lines().next().unwrap_or_default();
    serde_json::from_str(first).map_err(|_| text_of(output).into())
}

fn wait_for_outcome(child: Child) -> Result<(Option<i32>, Value), Failed> {
    let output = child.wait_with_output()?;
    Ok((output.status.code(), outcome(&output)?))
}

/// Another client queries the metrics of all namespaces, like a dashboard.
pub(super) fn queried(cluster: &Arc<TestCluster>) -> Result<(), Failed> {
    let args = ["run", "--engine", "kubeconfig", "--yes", CONFORM[0], CONFORM[15]];
    let mut child = cluster.command(&args).spawn()?;
    let mut answered = 0;
    while child.try_wait()?.is_none() {
        for namespace in cluster.list("", "v1", "Namespace")? {
            let name = namespace.name_any();
            let path = format!("/apis/metrics.k8s.io/v1beta1/namespaces/{name}/pods");
            let request = axum::http::Request::get(path).body(Vec::new())?;
            let answer = cluster.runtime.block_on(cluster.admin.request_text(request));
            let suffix = name.strip_prefix("kube-lockstep-").unwrap_or_default();
            answered +=
                usize::from(answer.is_ok() && suffix.starts_with(|c: char| c.is_ascii_digit()));
        }
        sleep(Duration::from_millis(200));
    }
    let output = child.wait_with_output()?;
    assert_eq!(output.status.code(), Some(0), "{}", text_of(&output));
    assert!(answered > 10, "only {answered} queries were answered");
    cluster.check_clean()
}

/// A short suspension of the controller manager gives no verdict; the scenario is retried.
pub(super) fn suspended(cluster: &Arc<TestCluster>) -> Result<(), Failed> {
    let child = cluster.start_run(&["--format", "json"])?;
    let manager = cluster.component("kube-controller-manager")?;
    // Not while pods are created or deleted: that would be another reason for a retry.
    sleep(Duration::from_secs(4));
    signal("-STOP", &manager);
    sleep(Duration::from_secs(4));
    signal("-CONT", &manager);
    let (code, outcome) = wait_for_outcome(child)?;
    assert_eq!(code, Some(0), "{outcome}");
    let notes = outcome["notes"].to_string();
    assert!(notes.contains("the kube-controller-manager did not respond for "), "{outcome}");
    cluster.check_clean()
}

/// A run that may not watch HPAs cannot observe them.
pub(super) fn no_watch(_: &Arc<TestCluster>) -> Result<(), Failed> {
    let cluster = TestCluster::new(Flags::default())?;
    let roles = cluster.api("rbac.authorization.k8s.io", "v1", "ClusterRole");
    let mut role = cluster.runtime.block_on(roles.get("kube-lockstep"))?;
    for rule in role.data["rules"].as_array_mut().into_iter().flatten() {
        if rule["resources"] == json!(["horizontalpodautoscalers"]) {
            let verbs = rule["verbs"].as_array_mut().ok_or("no verbs")?;
            verbs.retain(|verb| verb != "watch");
        }
    }
    cluster.runtime.block_on(roles.replace("kube-lockstep", &Default::default(), &role))?;
    let output = cluster.run(&["--format", "json", CONFORM[0]])?;
    assert_eq!(output.status.code(), Some(3), "{}", text_of(&output));
    let outcome = outcome(&output)?;
    assert_eq!(outcome["verdict"], "inconclusive", "{outcome}");
    let message = "horizontalpodautoscalers.autoscaling can't be watched: ";
    assert!(outcome.to_string().contains(message), "{outcome}");
    cluster.check_clean()
}

/// Another client reverts the APIService, like an add-on manager.
pub(super) fn reverted(cluster: &Arc<TestCluster>) -> Result<(), Failed> {
    let theirs = cluster.create_metrics_server()?;
    let child = cluster.start_run(&["--replace-metrics-api", "--format", "json"])?;
    let [_, _, _, spec] = theirs.as_array().map(Vec::as_slice).ok_or("no APIService")? else {
        return Err("four parts".into());
    };
    let patch = Patch::Merge(json!({ "spec": { "caBundle": null } }));
    let params = PatchParams::default();
    let spec = Patch::Merge(json!({ "spec": spec }));
    cluster.runtime.block_on(async {
        // The API server does not allow `caBundle` together with `insecureSkipTLSVerify`.
        cluster.api_services().patch(METRICS_SERVER, &params, &patch).await?;
        cluster.api_services().patch(METRICS_SERVER, &params, &spec).await
    })?;
    let (code, outcome) = wait_for_outcome(child)?;
    assert_eq!((code, &outcome["verdict"]), (Some(3), &json!("inconclusive")), "{outcome}");
    let message = "APIService v1beta1.metrics.k8s.io was changed to kube-system/metrics-server";
    assert!(outcome.to_string().contains(message), "{outcome}");
    cluster.check_clean()?;
    assert_eq!(cluster.metrics_server()?, theirs);
    cluster.delete_metrics_server()
}
