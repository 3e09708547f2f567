//! What the metrics APIs answer: part of `api`.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::api::{ApiError, Labels};
use super::quantity::Quantity;
use super::time::{Span, Time};

/// What metrics.k8s.io says of one pod.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodMetrics {
    /// The pod's name.
    pub name: Arc<str>,
    /// The pod's labels, by which the API filters.
    pub labels: Labels,
    /// When the sample was taken; in whole seconds.
    pub timestamp: Time,
    /// The time over which it was taken.
    pub window: Span,
    /// Usage by container.
    pub containers: Arc<[ContainerMetrics]>,
}

/// What metrics.k8s.io says of one container.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ContainerMetrics {
    /// The container's name.
    pub name: Arc<str>,
    /// Usage by resource.
    pub usage: Vec<(Arc<str>, Quantity)>,
}

/// What custom.metrics.k8s.io says of one pod, for one metric.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodMetricValue {
    /// The pod's name.
    pub name: Arc<str>,
    /// The pod's labels, by which the API filters.
    pub labels: Labels,
    /// The value.
    pub value: Quantity,
    /// When the sample was taken; in whole seconds.
    pub timestamp: Time,
    /// The time over which it was taken.
    pub window: Option<Span>,
}

/// One series of an object's metric or of an external metric.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Series {
    /// Labels of the series, by which the API filters.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// The value.
    pub value: Quantity,
    /// When the sample was taken; in whole seconds.
    pub timestamp: Time,
}

/// Metric, kind with group, and name of an object.
pub type ObjectMetricKey = (Arc<str>, Arc<str>, Arc<str>);

/// All that custom.metrics.k8s.io and external.metrics.k8s.io have of a namespace.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct CustomMetrics {
    /// Metrics of pods, by name.
    pub pods: BTreeMap<Arc<str>, PodsMetricAnswer>,
    /// Metrics of objects, by metric, kind with group (`Ingress.networking.k8s.io`), and name.
    pub objects: BTreeMap<ObjectMetricKey, SeriesAnswer>,
    /// External metrics, by name.
    pub externals: BTreeMap<Arc<str>, SeriesAnswer>,
}

/// A metric of pods.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct PodsMetricAnswer {
    /// Labels of the series: a metric selector that they don't match finds nothing.
    pub labels: BTreeMap<String, String>,
    /// The values, sorted by the pods' names.
    pub values: Vec<PodMetricValue>,
    /// What is answered instead.
    pub error: Option<ApiError>,
}

/// A metric of an object, or an external one.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct SeriesAnswer {
    /// The series.
    pub series: Vec<Series>,
    /// What is answered instead.
    pub error: Option<ApiError>,
}
