//! Metrics of `autoscaling/v2` in the form of `autoscaling/v2beta1`, which is also that of v1's
//! annotation, and the status back from there: as JSON, for servers and files that are older.
//!
//! Upstream: staging/src/k8s.io/api/autoscaling/v2beta1/types.go.

use serde_json::{Map, Value, json};

/// What the sources of a metric are called.
const SOURCES: [&str; 5] = ["resource", "containerResource", "pods", "object", "external"];

/// A metric of a v2 spec as v2beta1 has it. What that can't say is left out.
#[must_use]
pub fn metric_to_v2beta1(metric: &Value) -> Value {
    let mut old = Map::new();
    for (name, value) in metric.as_object().into_iter().flatten() {
        let value = match SOURCES.contains(&name.as_str()) {
            true => source_to_v2beta1(name, value),
            false => value.clone(),
        };
        old.insert(name.clone(), value);
    }
    Value::Object(old)
}

fn source_to_v2beta1(kind: &str, source: &Value) -> Value {
    if !source.is_object() {
        return source.clone();
    }
    let (target, name) = (&source["target"], &source["metric"]["name"]);
    let selector = &source["metric"]["selector"];
    without_nulls(match kind {
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
    })
}

fn without_nulls(mut fields: Value) -> Value {
    if let Value::Object(fields) = &mut fields {
        fields.retain(|_, value| !value.is_null());
    }
    fields
}

/// The status of an HPA of v2beta1 as v2 has it.
#[must_use]
pub fn status_from_v2beta1(mut status: Value) -> Value {
    if let Some(metrics) = status.get_mut("currentMetrics").and_then(Value::as_array_mut) {
        for metric in metrics {
            for (kind, source) in metric.as_object_mut().into_iter().flatten() {
                if SOURCES.contains(&kind.as_str()) {
                    *source = source_from_v2beta1(kind, source);
                }
            }
        }
    }
    status
}

fn source_from_v2beta1(kind: &str, source: &Value) -> Value {
    let current = without_nulls(json!({
        "value": source["currentValue"],
        "averageUtilization": source["currentAverageUtilization"],
        "averageValue": source["currentAverageValue"],
    }));
    if kind == "resource" {
        return json!({ "name": source["name"], "current": current });
    }
    let mut metric = json!({ "name": source["metricName"] });
    if !source["metricSelector"].is_null() {
        metric["selector"] = source["metricSelector"].clone();
    }
    let described = if kind == "object" { &source["target"] } else { &Value::Null };
    without_nulls(json!({ "metric": metric, "describedObject": described, "current": current }))
}
