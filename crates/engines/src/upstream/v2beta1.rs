//! Converts requests and answers for releases before 1.12, whose newest API version is
//! `autoscaling/v2beta1`. The oldest releases name it `v2alpha1`.
//!
//! Requests and answers are converted as JSON, because a manifest can contain values that the v2
//! types can't represent, and upstream must receive these values unchanged. Only a small part of an
//! answer differs, and the result is checked when it is decoded as v2.

use serde_json::{Value, json};

use kube_autoscaler_models::hpa::{from_v2beta1, metric_to_v2beta1, status_from_v2beta1};
use kube_lockstep_sim::engine::Step;
use kube_lockstep_sim::trace::wire::Answer;
use kube_lockstep_sim::world::Change;

/// Converts a step to v2beta1, which is named `version`.
pub(super) fn step(step: &Step, version: &str) -> Step {
    let mut step = step.clone();
    for change in step.changes_mut() {
        match change {
            Change::CreateHpa(manifest) if manifest["apiVersion"] == "autoscaling/v2" => {
                manifest["apiVersion"] = version.into();
                metrics(manifest);
            }
            Change::PatchHpa { patch, .. } => metrics(patch),
            _ => {}
        }
    }
    step
}

fn metrics(object: &mut Value) {
    if let Some(metrics) = object.pointer_mut("/spec/metrics").and_then(Value::as_array_mut) {
        metrics.iter_mut().for_each(|metric| *metric = metric_to_v2beta1(metric));
    }
}

/// Parses an answer in v2beta1.
pub(super) fn answer(line: &[u8]) -> Result<Answer, String> {
    let mut answer: Value = serde_json::from_slice(line).map_err(|error| error.to_string())?;
    for stored in each(&mut answer, "/stepped/api", "/stored/spec") {
        let spec = from_v2beta1(&json!({ "spec": stored }))?;
        *stored = serde_json::to_value(spec).map_err(|error| error.to_string())?;
    }
    for status in each(&mut answer, "/stepped/log", "/updateStatus/status") {
        *status = status_from_v2beta1(status.take());
    }
    serde_json::from_value(answer).map_err(|error| error.to_string())
}

/// The values at a path in each member of a list that has it.
fn each<'a>(
    answer: &'a mut Value,
    list: &str,
    path: &'a str,
) -> impl Iterator<Item = &'a mut Value> {
    let members = answer.pointer_mut(list).and_then(Value::as_array_mut);
    members.into_iter().flatten().filter_map(move |member| member.pointer_mut(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_converted_to_and_from_v2beta1() {
        let metric = json!({ "type": "Resource", "resource": {
            "name": "cpu", "target": { "type": "Utilization", "averageUtilization": 50 },
        } });
        let manifest = json!({ "apiVersion": "autoscaling/v2", "spec": { "metrics": [metric] } });
        let apply = vec![Change::CreateHpa(manifest)];
        let hpa = step(&Step { apply, ..Step::default() }, "autoscaling/v2beta1");
        let Change::CreateHpa(hpa) = &hpa.apply[0] else { panic!("{hpa:?}") };
        assert_eq!(hpa["apiVersion"], "autoscaling/v2beta1");
        let old = json!({ "name": "cpu", "targetAverageUtilization": 50 });
        assert_eq!(hpa["spec"]["metrics"][0]["resource"], old);
        let received = json!({ "stepped": { "now": 0, "api": [{ "stored": {
            "name": "web", "generation": 1, "spec": {
                "scaleTargetRef": { "kind": "Deployment", "name": "web" }, "maxReplicas": 3,
                "metrics": [{ "type": "Resource", "resource": old }],
            },
        } }], "log": [{ "at": 0, "updateStatus": { "name": "web", "status": {
            "currentMetrics": [{ "type": "Pods", "pods": {
                "metricName": "requests", "currentAverageValue": "1",
            } }],
        } } }] } });
        let received = answer(received.to_string().as_bytes()).expect("the answer is valid");
        let received = format!("{received:?}");
        assert!(received.contains("average_utilization: Some(50)"), "{received}");
        assert!(received.contains("name: \"requests\""), "{received}");
    }
}
