//! The same HPA as version v1 has it: what v1 can't say stands in annotations.

use serde_json::{Map, Value, json};

use super::{Draft, hpa};

/// Whether v1 accepts it: there, policies have no default.
pub(super) fn can_be_said(spec: &Map<String, Value>) -> bool {
    let Some(Value::Object(behavior)) = spec.get("behavior") else { return true };
    behavior.values().all(|rules| rules["policies"].as_array().is_some_and(|all| !all.is_empty()))
}

/// A v1 manifest that means the same as the spec of a v2 one, but for the default of metrics.
pub(super) fn of_version_1(draft: &mut Draft, spec: &Map<String, Value>) -> Value {
    let mut spec = spec.clone();
    let mut annotations = Map::new();
    let mut put = |name: &str, value: Value| {
        let name = format!("autoscaling.alpha.kubernetes.io/{name}");
        annotations.insert(name, Value::from(value.to_string()));
    };
    if let Some(Value::Array(mut metrics)) = spec.shift_remove("metrics") {
        // The percentage of cpu has a field of its own, and stands last.
        let percent = metrics.last().and_then(|last| {
            let source = &last["resource"];
            let is_cpu = source["name"] == "cpu";
            source["target"].get("averageUtilization").filter(|_| is_cpu).cloned()
        });
        if let Some(percent) = percent.filter(|_| draft.dice.percent(80)) {
            metrics.pop();
            spec.insert("targetCPUUtilizationPercentage".to_owned(), percent);
        }
        put("metrics", metrics.iter().map(metric).collect());
    }
    if let Some(behavior) = spec.shift_remove("behavior") {
        put("behavior", behavior);
    }
    json!({
        "apiVersion": "autoscaling/v1",
        "kind": "HorizontalPodAutoscaler",
        "metadata": { "name": hpa::NAME, "annotations": annotations },
        "spec": spec,
    })
}

/// A metric in v1's form.
fn metric(metric: &Value) -> Value {
    let Some(type_) = metric["type"].as_str() else { return metric.clone() };
    let field = type_[..1].to_lowercase() + &type_[1..];
    let source = &metric[&field];
    let (target, name) = (&source["target"], &source["metric"]["name"]);
    let selector = &source["metric"]["selector"];
    let old = match field.as_str() {
        "resource" | "containerResource" => json!({
            "name": source["name"],
            "container": source["container"],
            "targetAverageUtilization": target["averageUtilization"],
            "targetAverageValue": target["averageValue"],
        }),
        "pods" => json!({
            "metricName": name,
            "selector": selector,
            "targetAverageValue": target["averageValue"],
        }),
        "object" => json!({
            "metricName": name,
            "selector": selector,
            "target": source["describedObject"],
            "targetValue": target["value"],
            "averageValue": target["averageValue"],
        }),
        _ => json!({
            "metricName": name,
            "metricSelector": selector,
            "targetValue": target["value"],
            "targetAverageValue": target["averageValue"],
        }),
    };
    json!({ "type": type_, field: old })
}
