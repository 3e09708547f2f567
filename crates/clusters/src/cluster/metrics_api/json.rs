//! The objects of the metrics APIs.
//!
//! Upstream: k8s.io/metrics, pkg/apis

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::api::{ListMeta, ObjectList, ObjectMeta, TypeMeta};
use serde::Serialize;
use serde_json::{Value, json};

use kube_autoscaler_models::api::PodMetrics;
use kube_autoscaler_models::quantity::{Format, Quantity};
use kube_autoscaler_models::time::Span;

/// `metrics.k8s.io` PodMetrics.
#[derive(Clone, PartialEq, Serialize, Debug)]
pub(crate) struct PodSample {
    #[serde(flatten)]
    types: TypeMeta,
    pub metadata: ObjectMeta,
    pub timestamp: Timestamp,
    window: String,
    pub containers: Vec<ContainerSample>,
}

#[derive(Clone, PartialEq, Serialize, Debug)]
pub(crate) struct ContainerSample {
    pub name: Arc<str>,
    pub usage: BTreeMap<Arc<str>, Quantity>,
}

impl PodSample {
    /// The sample of a pod, with its name in the cluster.
    pub(crate) fn new(namespace: &str, name: &str, timestamp: Timestamp, pod: &PodMetrics) -> Self {
        let labels = pod.labels.iter().map(|(name, value)| (name.clone(), value.clone()));
        let containers = pod.containers.iter().map(|container| ContainerSample {
            name: container.name.clone(),
            usage: container.usage.iter().cloned().collect(),
        });
        PodSample {
            types: types("metrics.k8s.io/v1beta1", "PodMetrics"),
            metadata: ObjectMeta {
                name: Some(name.to_owned()),
                namespace: Some(namespace.to_owned()),
                labels: Some(labels.collect()),
                ..ObjectMeta::default()
            },
            timestamp,
            window: pod.window.to_string(),
            containers: containers.collect(),
        }
    }

    /// The usage of each resource, over all containers.
    fn usage(&self) -> BTreeMap<Arc<str>, Quantity> {
        sum(self.containers.iter().flat_map(|container| &container.usage))
    }
}

fn sum<'a>(
    usage: impl Iterator<Item = (&'a Arc<str>, &'a Quantity)>,
) -> BTreeMap<Arc<str>, Quantity> {
    let mut milli: BTreeMap<Arc<str>, i64> = BTreeMap::new();
    for (resource, quantity) in usage {
        let sum = milli.entry(resource.clone()).or_default();
        *sum = sum.saturating_add(quantity.milli());
    }
    let quantity = |(resource, milli): (Arc<str>, i64)| {
        let format = if &*resource == "cpu" { Format::DecimalSI } else { Format::BinarySI };
        (resource, Quantity::from_milli(milli, format))
    };
    milli.into_iter().map(quantity).collect()
}

/// The usage of all pods, as text.
pub(crate) fn total(pods: &[PodSample]) -> String {
    let usages: Vec<_> = pods.iter().map(PodSample::usage).collect();
    let total = sum(usages.iter().flatten());
    let total: Vec<String> =
        total.iter().map(|(resource, quantity)| format!("{resource} {quantity}")).collect();
    if total.is_empty() { "no usage".to_owned() } else { total.join(", ") }
}

/// Pods as the table that kubectl prints.
///
/// Upstream: sigs.k8s.io/metrics-server, pkg/api/table.go
pub(crate) fn table(pods: &[PodSample]) -> Value {
    let usages: Vec<_> = pods.iter().map(PodSample::usage).collect();
    let resources: BTreeSet<&Arc<str>> = usages.iter().flat_map(BTreeMap::keys).collect();
    let column = |name: &str, format: &str, description: &str| {
        json!({
            "name": name, "type": "string", "format": format, "description": description,
            "priority": 0,
        })
    };
    let mut columns = vec![column("Name", "name", "The pod's name")];
    columns.extend(resources.iter().map(|name| column(name, "quantity", "Usage of the pod")));
    columns.push(column("Window", "duration", "The time over which the sample was taken"));
    let row = |(pod, usage): (&PodSample, &BTreeMap<Arc<str>, Quantity>)| {
        let mut cells = vec![json!(pod.metadata.name)];
        let cell = |name: &&Arc<str>| usage.get(*name).map_or(json!("<none>"), |it| json!(it));
        cells.extend(resources.iter().map(cell));
        cells.push(json!(pod.window));
        let object = json!({
            "kind": "PartialObjectMetadata",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": pod.metadata,
        });
        json!({ "cells": cells, "object": object })
    };
    json!({
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {},
        "columnDefinitions": columns,
        "rows": pods.iter().zip(&usages).map(row).collect::<Vec<_>>(),
    })
}

/// `custom.metrics.k8s.io` MetricValue of both versions, and `external.metrics.k8s.io`
/// ExternalMetricValue.
#[derive(Clone, Serialize, Debug, Default)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MetricValue {
    #[serde(skip_serializing_if = "Option::is_none")]
    described_object: Option<ObjectReference>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metric: Option<MetricName>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metric_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metric_labels: Option<BTreeMap<String, String>>,
    timestamp: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    window: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    window_seconds: Option<i64>,
    value: String,
}

#[derive(Clone, Serialize, Debug)]
struct MetricName {
    name: String,
}

impl MetricValue {
    /// A value of a custom metric.
    pub(crate) fn custom(
        version: &str,
        described_object: ObjectReference,
        metric: &str,
        timestamp: Timestamp,
        value: &Quantity,
    ) -> MetricValue {
        let is_first = version == "v1beta1";
        let name = metric.to_owned();
        MetricValue {
            described_object: Some(described_object),
            timestamp,
            value: value.to_string(),
            metric_name: is_first.then(|| name.clone()),
            metric: (!is_first).then_some(MetricName { name }),
            ..MetricValue::default()
        }
    }

    /// Sets the window over which the value was sampled.
    pub(crate) fn over(mut self, window: Option<Span>) -> MetricValue {
        let seconds = window.map(|window| window.0 / 1_000_000_000);
        match self.metric_name {
            Some(_) => self.window = seconds,
            None => self.window_seconds = seconds,
        }
        self
    }

    /// A value of an external metric.
    pub(crate) fn external(
        metric: &str,
        labels: &BTreeMap<String, String>,
        timestamp: Timestamp,
        value: &Quantity,
    ) -> MetricValue {
        MetricValue {
            metric_name: Some(metric.to_owned()),
            metric_labels: Some(labels.clone()),
            timestamp,
            value: value.to_string(),
            ..MetricValue::default()
        }
    }
}

fn types(api_version: &str, kind: &str) -> TypeMeta {
    TypeMeta { api_version: api_version.to_owned(), kind: kind.to_owned() }
}

pub(crate) fn list<T: Clone>(api_version: &str, kind: &str, items: Vec<T>) -> ObjectList<T> {
    ObjectList { types: types(api_version, kind), metadata: ListMeta::default(), items }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube_autoscaler_models::api::ContainerMetrics;
    use kube_autoscaler_models::time::Time;

    fn pod(name: &str, usages: &[&[(&str, &str)]]) -> PodSample {
        let containers = usages.iter().map(|usage| {
            let usage = usage.iter().map(|(name, quantity)| {
                (Arc::from(*name), Quantity::parse(quantity).expect("a quantity"))
            });
            ContainerMetrics { name: "app".into(), usage: usage.collect() }
        });
        let pod = PodMetrics {
            name: name.into(),
            labels: Default::default(),
            timestamp: Time::ZERO,
            window: Span::from_secs(30),
            containers: containers.collect(),
        };
        PodSample::new("shop", name, Timestamp::UNIX_EPOCH, &pod)
    }

    #[test]
    fn usage_is_added_up_over_containers_and_pods() {
        let one: &[_] = &[("cpu", "1500m"), ("memory", "1Mi")];
        let other: &[_] = &[("cpu", "600m"), ("memory", "1023Ki")];
        let pods = [pod("a", &[one, other]), pod("b", &[one])];
        assert_eq!(total(&pods), "cpu 3600m, memory 3071Ki");
        assert_eq!(total(&[pod("a", &[&[]])]), "no usage");
    }

    #[test]
    fn a_table_has_a_column_for_each_resource() {
        let table = table(&[pod("a", &[&[("cpu", "1"), ("memory", "1Mi")]]), pod("b", &[])]);
        let columns = table["columnDefinitions"].as_array().cloned().unwrap_or_default();
        let names: Vec<&Value> = columns.iter().map(|column| &column["name"]).collect();
        assert_eq!(names, ["Name", "cpu", "memory", "Window"]);
        assert_eq!(table["rows"][0]["cells"], json!(["a", "1", "1Mi", "30s"]));
        assert_eq!(table["rows"][1]["cells"], json!(["b", "<none>", "<none>", "30s"]));
        assert_eq!(table["rows"][0]["object"]["metadata"]["namespace"], "shop");
    }

    #[test]
    fn versions_of_custom_metrics_differ_in_their_fields() {
        let value = |version: &str| {
            let quantity = Quantity::parse("1500m").expect("a quantity");
            let object = ObjectReference::default();
            let value =
                MetricValue::custom(version, object, "jobs", Timestamp::UNIX_EPOCH, &quantity);
            serde_json::to_value(value.over(Some(Span::from_secs(60)))).expect("JSON")
        };
        let (first, second) = (value("v1beta1"), value("v1beta2"));
        assert_eq!((&first["metricName"], &first["window"]), (&json!("jobs"), &json!(60)));
        assert_eq!(second["metric"], json!({ "name": "jobs" }));
        assert_eq!((&second["windowSeconds"], &second["value"]), (&json!(60), &json!("1500m")));
        assert_eq!((second.get("metricName"), second.get("window")), (None, None));
    }
}
