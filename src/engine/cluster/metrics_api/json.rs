//! The JSON of the metrics APIs.
//!
//! Upstream: k8s.io/metrics, pkg/apis

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use crate::model::api::{ApiError, PodMetrics, Series};
use crate::model::quantity::{Format, Quantity};
use crate::model::time::Span;

/// A group and its versions, the preferred one first.
pub(crate) fn group(name: &str, versions: &[&str]) -> Value {
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
pub(crate) fn resources(group: &str, version: &str, metrics: &[String]) -> Value {
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

/// What metrics.k8s.io says of a pod.
pub(crate) fn pod(namespace: &str, name: &str, at: &str, pod: &PodMetrics) -> Value {
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
pub(crate) fn pod_list(items: &[Value]) -> Value {
    list("metrics.k8s.io/v1beta1", "PodMetricsList", items)
}

/// What a pod uses of each resource, over its containers.
fn usage(pod: &Value) -> BTreeMap<String, Quantity> {
    let containers = pod["containers"].as_array().into_iter().flatten();
    let mut milli: BTreeMap<String, i64> = BTreeMap::new();
    for (name, value) in containers.filter_map(|it| it["usage"].as_object()).flatten() {
        let value = value.as_str().and_then(|value| Quantity::parse(value).ok());
        let sum = milli.entry(name.clone()).or_default();
        *sum = sum.saturating_add(value.map_or(0, |value| value.milli()));
    }
    milli.into_iter().map(|(name, milli)| (name.clone(), quantity(&name, milli))).collect()
}

fn quantity(resource: &str, milli: i64) -> Quantity {
    let binary = resource != "cpu";
    Quantity::from_milli(milli, if binary { Format::BinarySI } else { Format::DecimalSI })
}

/// What pods use together, in words.
pub(crate) fn total(items: &[Value]) -> String {
    let mut milli: BTreeMap<String, i64> = BTreeMap::new();
    for (name, value) in items.iter().flat_map(usage) {
        let sum = milli.entry(name).or_default();
        *sum = sum.saturating_add(value.milli());
    }
    let one = |(name, milli): (&String, &i64)| format!("{name} {}", quantity(name, *milli));
    match milli.is_empty() {
        true => "without usage".to_owned(),
        false => milli.iter().map(one).collect::<Vec<_>>().join(", "),
    }
}

/// Pods as the table that kubectl prints.
///
/// Upstream: sigs.k8s.io/metrics-server, pkg/api/table.go
pub(crate) fn table(items: &[Value]) -> Value {
    let usages: Vec<_> = items.iter().map(usage).collect();
    let resources: BTreeSet<&String> = usages.iter().flat_map(BTreeMap::keys).collect();
    let column = |name: &str, format: &str, description: &str| {
        json!({
            "name": name, "type": "string", "format": format, "description": description,
            "priority": 0,
        })
    };
    let mut columns = vec![column("Name", "name", "The pod's name")];
    columns.extend(resources.iter().map(|name| column(name, "quantity", "Usage of the pod")));
    columns.push(column("Window", "duration", "The time over which the sample was taken"));
    let row = |(pod, usage): (&Value, &BTreeMap<String, Quantity>)| {
        let mut cells = vec![pod["metadata"]["name"].clone()];
        let of = |name: &&String| usage.get(*name).map_or(json!("<none>"), |it| json!(it));
        cells.extend(resources.iter().map(of));
        cells.push(pod["window"].clone());
        let object = json!({
            "kind": "PartialObjectMetadata",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": pod["metadata"],
        });
        json!({ "cells": cells, "object": object })
    };
    json!({
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {},
        "columnDefinitions": columns,
        "rows": items.iter().zip(&usages).map(row).collect::<Vec<_>>(),
    })
}

/// A value of a custom metric.
pub(crate) fn value(
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
pub(crate) fn value_list(version: &str, items: &[Value]) -> Value {
    list(&format!("custom.metrics.k8s.io/{version}"), "MetricValueList", items)
}

/// A series of an external metric.
pub(crate) fn external(metric: &str, at: &str, series: &Series) -> Value {
    json!({
        "metricName": metric,
        "metricLabels": series.labels,
        "timestamp": at,
        "value": series.value,
    })
}

/// Series of an external metric.
pub(crate) fn external_list(items: &[Value]) -> Value {
    list("external.metrics.k8s.io/v1beta1", "ExternalMetricValueList", items)
}

fn list(version: &str, kind: &str, items: &[Value]) -> Value {
    json!({ "kind": kind, "apiVersion": version, "metadata": {}, "items": items })
}

/// An error.
pub(crate) fn status(error: &ApiError) -> Value {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn pod_of(name: &str, usages: &[Value]) -> Value {
        let container = |usage: &Value| json!({ "name": "it", "usage": usage });
        json!({
            "metadata": { "name": name, "namespace": "shop" },
            "window": "30s",
            "containers": usages.iter().map(container).collect::<Vec<_>>(),
        })
    }

    #[test]
    fn the_usage_of_pods_is_summed() {
        let one = json!({ "cpu": "1500m", "memory": "1Mi" });
        let other = json!({ "cpu": "600m", "memory": "1023Ki" });
        let pods = [pod_of("a", &[one.clone(), other]), pod_of("b", &[one])];
        assert_eq!(total(&pods), "cpu 3600m, memory 3071Ki");
        assert_eq!(total(&[pod_of("a", &[json!({})])]), "without usage");
    }

    #[test]
    fn a_table_has_a_column_for_each_resource() {
        let pods = [pod_of("a", &[json!({ "cpu": "1", "memory": "1Mi" })]), pod_of("b", &[])];
        let table = table(&pods);
        let columns = table["columnDefinitions"].as_array().cloned().unwrap_or_default();
        let names: Vec<&Value> = columns.iter().map(|column| &column["name"]).collect();
        assert_eq!(names, ["Name", "cpu", "memory", "Window"]);
        assert_eq!(table["rows"][0]["cells"], json!(["a", "1", "1Mi", "30s"]));
        assert_eq!(table["rows"][1]["cells"], json!(["b", "<none>", "<none>", "30s"]));
        assert_eq!(table["rows"][0]["object"]["metadata"]["namespace"], "shop");
    }
}
