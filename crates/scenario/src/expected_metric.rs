//! The expected values of `status.currentMetrics`, as `kubectl get hpa` prints them.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::bounds::{Bounds, Percentage};
use kube_autoscaler_models::quantity::Quantity;

/// A metric of the HPA's status, with at least one of its values.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[serde(expecting = "a metric, for example {name: cpu, utilization: 101}")]
#[schemars(extend("anyOf" = [
    {"required": ["utilization"]},
    {"required": ["averageValue"]},
    {"required": ["value"]},
]))]
pub struct ExpectedMetric {
    /// The metric's name, for example `cpu`.
    #[schemars(length(min = 1))]
    pub name: Arc<str>,
    /// The container of a metric of type ContainerResource.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container: Option<Arc<str>>,
    /// Percent of the request, averaged over the pods.
    #[serde(
        default,
        deserialize_with = "Percentage::deserialize",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<Percentage>")]
    pub utilization: Option<Bounds<i32>>,
    /// The average over the pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub average_value: Option<Bounds<Quantity>>,
    /// A total, of an object or an external metric.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Bounds<Quantity>>,
}
