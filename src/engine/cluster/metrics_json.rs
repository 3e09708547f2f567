//! The JSON of the metrics APIs.
//!
//! Upstream: k8s.io/metrics, pkg/apis

use serde_json::{Map, Value, json};

use crate::model::api::{ApiError, PodMetrics, Series};
use crate::model::quantity::Quantity;
use crate::model::time::Span;

/// A group and its versions, the preferred one first.
pub(super) fn group(name: &str, versions: &[&str]) -> Value {
    let version =
        |version: &&str| json!({ "groupVersion": format!("{name}/{version}"), "version": version });
    json!({
        "kind": "APIGroup",
        "apiVersion": "v1",
        "name": name,
        "versions": versions.iter().map(version).collect::<Vec<_>>(),
        "preferredVersion": versions.first().map(version),
    })
}

/// The resources of a version.
pub(super) fn resources(group: &str, version: &str, metrics: &[String]) -> Value {
    let resource = |name: &str, singular: &str, namespaced: bool, kind: &str, verbs: &[&str]| {
        json!({
            "name": name, "singularName": singular, "namespaced": namespaced, "kind": kind,
            "verbs": verbs,
        })
    };
    let list = match group {
        "metrics.k8s.io" => vec![
            resource("nodes", "", false, "NodeMetrics", &["get", "list"]),
            resource("pods", "", true, "PodMetrics", &["get", "list"]),
        ],
        "external.metrics.k8s.io" => {
            let one = |name: &String| resource(name, "", true, "ExternalMetricValueList", &["get"]);
            metrics.iter().map(one).collect()
        }
        _ => {
            let one = |name: &String| resource(name, "", true, "MetricValueList", &["get"]);
            metrics.iter().map(one).collect()
        }
    };
    json!({
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": format!("{group}/{version}"),
        "resources": list,
    })
}

/// There are no nodes.
pub(super) fn node_list() -> Value {
    list("metrics.k8s.io/v1beta1", "NodeMetricsList", &[])
}

/// What metrics.k8s.io says of a pod.
pub(super) fn pod(namespace: &str, name: &str, at: &str, pod: &PodMetrics) -> Value {
    let containers: Vec<Value> = pod
        .containers
        .iter()
        .map(|container| {
            let usage: Map<String, Value> = container
                .usage
                .iter()
                .map(|(name, value)| (name.to_string(), json!(value)))
                .collect();
            json!({ "name": container.name, "usage": usage })
        })
        .collect();
    json!({
        "kind": "PodMetrics",
        "apiVersion": "metrics.k8s.io/v1beta1",
        "metadata": { "name": name, "namespace": namespace, "labels": *pod.labels },
        "timestamp": at,
        "window": pod.window.to_string(),
        "containers": containers,
    })
}

/// What it says of pods.
pub(super) fn pod_list(items: &[Value]) -> Value {
    list("metrics.k8s.io/v1beta1", "PodMetricsList", items)
}

/// A value of a custom metric.
pub(super) fn value(
    version: &str,
    object: &Value,
    metric: &str,
    (at, window, value): (&str, Option<Span>, &Quantity),
) -> Value {
    let mut item = json!({ "describedObject": object, "timestamp": at, "value": value });
    // Its name is elsewhere in the first version.
    match version {
        "v1beta1" => item["metricName"] = metric.into(),
        _ => item["metric"] = json!({ "name": metric }),
    }
    if let Some(window) = window {
        let name = if version == "v1beta1" { "window" } else { "windowSeconds" };
        item[name] = (window.0 / 1_000_000_000).into();
    }
    item
}

/// Values of a custom metric.
pub(super) fn value_list(version: &str, items: &[Value]) -> Value {
    list(&format!("custom.metrics.k8s.io/{version}"), "MetricValueList", items)
}

/// A series of an external metric.
pub(super) fn external(metric: &str, at: &str, series: &Series) -> Value {
    json!({
        "metricName": metric,
        "metricLabels": series.labels,
        "timestamp": at,
        "value": series.value,
    })
}

/// Series of an external metric.
pub(super) fn external_list(items: &[Value]) -> Value {
    list("external.metrics.k8s.io/v1beta1", "ExternalMetricValueList", items)
}

fn list(version: &str, kind: &str, items: &[Value]) -> Value {
    json!({ "kind": kind, "apiVersion": version, "metadata": {}, "items": items })
}

/// An error.
pub(super) fn status(error: &ApiError) -> Value {
    json!({
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": error.message,
        "reason": error.reason,
        "code": error.code,
    })
}
