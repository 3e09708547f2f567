//! The part `metrics` of a scenario file, as typed: what the metrics APIs answer.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize};

use super::scalars::{Duration, Entries, PodSetText, QuantityText, ScalarOr};

/// What the metrics APIs answer.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, expecting = "metrics (a map)")]
pub(super) struct Metrics {
    /// metrics.k8s.io: the usage of cpu and memory.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) resource: Vec<ResourceUsage>,
    /// custom.metrics.k8s.io: metrics of the pods, for metrics of type Pods.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) pods: Vec<PodsMetric>,
    /// custom.metrics.k8s.io: metrics of other objects, for metrics of type Object.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) object: Vec<ObjectMetric>,
    /// external.metrics.k8s.io: metrics from outside of the cluster, for metrics of type External.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) external: Vec<ExternalMetric>,
    /// How samples are taken, of whatever metric.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) sampling: Option<Sampling>,
}

/// The usage of one resource: exactly one of `perPod`, `containers` and `load`.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, expecting = "a resource's usage (a map)")]
#[schemars(extend("oneOf" = [
    {"required": ["perPod"]},
    {"required": ["containers"]},
    {"required": ["load"]},
]))]
pub(super) struct ResourceUsage {
    /// `cpu` or `memory`.
    #[schemars(extend("enum" = ["cpu", "memory"]))]
    pub(super) name: String,
    /// The usage of each pod, in its first container; the other containers use nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) per_pod: Option<Signal>,
    /// The usage of each pod, by container.
    #[serde(default, skip_serializing_if = "Entries::is_empty")]
    pub(super) containers: Entries<Signal>,
    /// A total that the ready pods share evenly: more pods use less each (a closed loop).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) load: Option<Signal>,
    /// With `load`: no pod uses more than this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) limit: Option<QuantityText>,
    /// Pods that differ. Later entries win.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) pods: Vec<Exception>,
}

/// A custom metric of the pods: exactly one of `perPod` and `load`. Values may be negative.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, expecting = "a metric of pods (a map)")]
#[schemars(extend("oneOf" = [{"required": ["perPod"]}, {"required": ["load"]}]))]
pub(super) struct PodsMetric {
    /// The metric's name, as in the HPA.
    #[schemars(length(min = 1))]
    pub(super) name: String,
    /// Labels by which a metric selector of the HPA filters: all pods have the same.
    #[serde(default, skip_serializing_if = "Entries::is_empty")]
    pub(super) labels: Entries<String>,
    /// The value of each pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) per_pod: Option<Signal>,
    /// A total that the ready pods share evenly: more pods have less each (a closed loop).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) load: Option<Signal>,
    /// With `load`: no pod has more than this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) limit: Option<QuantityText>,
    /// Pods that differ. Later entries win.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) pods: Vec<Exception>,
}

/// A custom metric of one object: `value`, or `series`. Values may be negative.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, expecting = "a metric of an object (a map)")]
#[schemars(extend("oneOf" = [{"required": ["value"]}, {"required": ["series"]}]))]
pub(super) struct ObjectMetric {
    /// The metric's name, as in the HPA.
    #[schemars(length(min = 1))]
    pub(super) name: String,
    /// The object, as in `describedObject` of the HPA.
    pub(super) object: DescribedObject,
    /// The value of its only series, which has no labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) value: Option<Signal>,
    /// Its series by labels. The HPA's metric selector must leave exactly one of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1))]
    pub(super) series: Vec<Series>,
}

/// An object that a metric describes.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[serde(expecting = "an object, for instance {kind: Service, name: web}")]
pub(super) struct DescribedObject {
    /// Its group and version, of which only the group matters. Default `v1`, the core group.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["networking.k8s.io/v1", "v1"]))]
    pub(super) api_version: Option<String>,
    /// For instance `Ingress`.
    #[schemars(length(min = 1))]
    pub(super) kind: String,
    /// The object's name.
    #[schemars(length(min = 1))]
    pub(super) name: String,
}

/// A metric from outside of the cluster: `value`, or `series`. Values may be negative.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, expecting = "an external metric (a map)")]
#[schemars(extend("oneOf" = [{"required": ["value"]}, {"required": ["series"]}]))]
pub(super) struct ExternalMetric {
    /// The metric's name, as in the HPA.
    #[schemars(length(min = 1))]
    pub(super) name: String,
    /// The value of its only series, which has no labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) value: Option<Signal>,
    /// Its series by labels. The controller sums those that the HPA's metric selector leaves.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1))]
    pub(super) series: Vec<Series>,
}

/// One series of a metric.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, expecting = "{labels: …, value: …}")]
pub(super) struct Series {
    /// Labels by which a metric selector of the HPA filters.
    #[serde(default, skip_serializing_if = "Entries::is_empty")]
    pub(super) labels: Entries<String>,
    /// Its value.
    pub(super) value: Signal,
}

/// Pods whose usage or metric differs.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, expecting = "{pods: …, value: …}")]
pub(super) struct Exception {
    /// Which pods.
    pub(super) pods: PodSetText,
    /// Their value; of usage that of their first container.
    pub(super) value: Signal,
}

/// A value over time: a quantity that stays the same, or a map with exactly one of `steps`,
/// `points` and `sine`.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(transparent)]
pub(super) struct Signal(pub(super) ScalarOr<QuantityText, SignalShape>);

impl From<String> for QuantityText {
    fn from(text: String) -> QuantityText {
        QuantityText(text)
    }
}

impl<'de> Deserialize<'de> for Signal {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Signal, D::Error> {
        let expected = "a quantity such as 500m, or a map with steps, points or sine";
        ScalarOr::read(deserializer, expected).map(Signal)
    }
}

impl JsonSchema for Signal {
    fn schema_name() -> Cow<'static, str> {
        "Signal".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let scalar = generator.subschema_for::<QuantityText>();
        let map = generator.subschema_for::<SignalShape>();
        json_schema!({
            "description": "A value over time: a quantity that stays the same, or a map with \
                            exactly one of steps, points and sine.",
            "anyOf": [scalar, map],
        })
    }
}

/// A value that changes: exactly one of these.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(extend("minProperties" = 1, "maxProperties" = 1))]
pub(super) struct SignalShape {
    /// Jumps: each value holds from its time on, the first one also before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1))]
    pub(super) steps: Vec<Point>,
    /// Straight lines from point to point; constant before the first and after the last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1))]
    pub(super) points: Vec<Point>,
    /// A wave.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) sine: Option<Sine>,
}

/// A value at a time.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, expecting = "{at: …, value: …}")]
pub(super) struct Point {
    /// When, from the start.
    pub(super) at: Duration,
    /// The value.
    pub(super) value: QuantityText,
}

/// `mean + amplitude * sin(2π (t - offset) / period)`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[serde(expecting = "{mean: …, amplitude: …, period: …}")]
pub(super) struct Sine {
    /// The middle.
    pub(super) mean: QuantityText,
    /// Half of the height.
    pub(super) amplitude: QuantityText,
    /// The time of one wave.
    pub(super) period: Duration,
    /// The time of a rising crossing of the middle. Default 0s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) offset: Option<Duration>,
}

/// How samples are taken.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, expecting = "sampling (a map)")]
pub(super) struct Sampling {
    /// The time over which a sample is taken: the `window` of each sample. Default 30s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) window: Option<Duration>,
    /// How old the newest sample is: its timestamp, and the usage it tells. Default 0s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) lag: Option<Duration>,
    /// Samples are only taken at multiples of this. Default: with each query.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) resolution: Option<Duration>,
}
