//! Runs that other clients disturb: their changes are not attributed to the controller.

use std::process::{Child, Output};
use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;

use kube::ResourceExt;
use kube::api::{Patch, PatchParams};
use kube_lockstep::model::flags::Flags;
use libtest_mimic::Failed;
use serde_json::{Value, json};

use super::support::place::signal;
use super::{CONFORM, METRICS_SERVER, Place, said};

/// What came of the only scenario, and all that was said of it.
fn outcome(output: &Output) -> Result<Value, Failed> {
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    let first = stdout.lines().next().unwrap_or_default();
    serde_json::from_str(first).map_err(|_| said(output).into())
}

fn ended(child: Child) -> Result<(Option<i32>, Value), Failed> {
    let output = child.wait_with_output()?;
    Ok((output.status.code(), outcome(&output)?))
}

/// Somebody looks at the metrics of all namespaces, as dashboards do.
pub(super) fn looked_at(place: &Arc<Place>) -> Result<(), Failed> {
    let args = ["run", "--engine", "kubeconfig", "--yes", CONFORM[0], CONFORM[15]];
    let mut child = place.command(&args).spawn()?;
    let mut looked = 0;
    while child.try_wait()?.is_none() {
        for namespace in place.list("", "v1", "Namespace")? {
            let name = namespace.name_any();
            let path = format!("/apis/metrics.k8s.io/v1beta1/namespaces/{name}/pods");
            let request = axum::http::Request::get(path).body(Vec::new())?;
            let seen = place.runtime.block_on(place.admin.request_text(request));
            let played = name.strip_prefix("kube-lockstep-").unwrap_or_default();
            looked += usize::from(seen.is_ok() && played.starts_with(|c: char| c.is_ascii_digit()));
        }
        sleep(Duration::from_millis(200));
    }
    let output = child.wait_with_output()?;
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert!(looked > 10, "only {looked} queries were answered");
    place.is_clean()
}

/// A controller manager that stands still for a moment is no verdict, and the scenario is played
/// again.
pub(super) fn stood_still(place: &Arc<Place>) -> Result<(), Failed> {
    let child = place.under_way(&["--format", "json"])?;
    let manager = place.part("kube-controller-manager")?;
    // Not while pods come and go: that would be another reason.
    sleep(Duration::from_secs(4));
    signal("-STOP", &manager);
    sleep(Duration::from_secs(4));
    signal("-CONT", &manager);
    let (code, outcome) = ended(child)?;
    assert_eq!(code, Some(0), "{outcome}");
    let notes = outcome["notes"].to_string();
    assert!(notes.contains("the kube-controller-manager gave no answer for "), "{outcome}");
    place.is_clean()
}

/// Whoever may not watch HPAs can't see what becomes of them.
pub(super) fn not_shown(_: &Arc<Place>) -> Result<(), Failed> {
    let place = Place::new(Flags::default())?;
    let roles = place.api("rbac.authorization.k8s.io", "v1", "ClusterRole");
    let mut role = place.runtime.block_on(roles.get("kube-lockstep"))?;
    for rule in role.data["rules"].as_array_mut().into_iter().flatten() {
        if rule["resources"] == json!(["horizontalpodautoscalers"]) {
            let verbs = rule["verbs"].as_array_mut().ok_or("no verbs")?;
            verbs.retain(|verb| verb != "watch");
        }
    }
    place.runtime.block_on(roles.replace("kube-lockstep", &Default::default(), &role))?;
    let output = place.run(&["--format", "json", CONFORM[0]])?;
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    let outcome = outcome(&output)?;
    assert_eq!(outcome["verdict"], "inconclusive", "{outcome}");
    let what = "horizontalpodautoscalers.autoscaling can't be watched: ";
    assert!(outcome.to_string().contains(what), "{outcome}");
    place.is_clean()
}

/// An add-on manager restores what it takes care of.
pub(super) fn put_back(place: &Arc<Place>) -> Result<(), Failed> {
    let theirs = place.create_metrics_server()?;
    let child = place.under_way(&["--replace-metrics-api", "--format", "json"])?;
    let [_, _, _, spec] = theirs.as_array().map(Vec::as_slice).ok_or("no APIService")? else {
        return Err("four parts".into());
    };
    let patch = Patch::Merge(json!({ "spec": { "caBundle": null } }));
    let params = PatchParams::default();
    let spec = Patch::Merge(json!({ "spec": spec }));
    place.runtime.block_on(async {
        // Both are not allowed at once.
        place.api_services().patch(METRICS_SERVER, &params, &patch).await?;
        place.api_services().patch(METRICS_SERVER, &params, &spec).await
    })?;
    let (code, outcome) = ended(child)?;
    assert_eq!((code, &outcome["verdict"]), (Some(3), &json!("inconclusive")), "{outcome}");
    let what = "APIService v1beta1.metrics.k8s.io was changed to kube-system/metrics-server";
    assert!(outcome.to_string().contains(what), "{outcome}");
    place.is_clean()?;
    assert_eq!(place.metrics_server()?, theirs);
    place.delete_metrics_server()
}
