//! `metrics` of a scenario: the responses of the metrics APIs over time.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::ser::{SerializeMap, Serializer};
use serde::{Deserialize, Serialize};

use super::entries::Entries;
use super::hints::CorrectPlace;
use super::known_fields::{FieldRule, Requirement};
use super::podset::PodSet;
use super::recorded::Recorded;
use super::signal::{Noise, Signal};
use super::text::{Amount, AnyQuantity, As, Duration, PositiveDuration, QuantityOrPercent};
use kube_autoscaler_models::api::with_group;
use kube_autoscaler_models::is_default::is_default;
use kube_autoscaler_models::quantity::Quantity;
use kube_autoscaler_models::time::Span;

/// The responses of the metrics APIs.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "metrics (a map)")]
pub struct Metrics {
    /// metrics.k8s.io: the usage of cpu and memory.
    #[serde(rename = "resource", skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<ResourceUsage>,
    /// custom.metrics.k8s.io: metrics of the pods, for metrics of type Pods.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pods: Vec<PodsMetric>,
    /// custom.metrics.k8s.io: metrics of other objects, for metrics of type Object.
    #[serde(rename = "object", skip_serializing_if = "Vec::is_empty")]
    pub objects: Vec<ObjectMetric>,
    /// external.metrics.k8s.io: metrics from outside the cluster, for metrics of type External.
    #[serde(rename = "external", skip_serializing_if = "Vec::is_empty")]
    pub externals: Vec<ExternalMetric>,
    /// How samples are taken, for all metrics.
    #[serde(skip_serializing_if = "is_default")]
    pub sampling: Sampling,
}

impl Metrics {
    pub(crate) const RULES: &'static [FieldRule] =
        &[FieldRule::new(Requirement::AnHpa, &["pods", "object", "external"])];
    pub(crate) const PLACE: CorrectPlace =
        CorrectPlace { place: "under `metrics`", fields: &["resource", "sampling"] };

    /// The recorded signals.
    pub fn recorded(&self) -> impl Iterator<Item = &Recorded> {
        self.signals().flat_map(Signal::recordings)
    }

    pub fn signals(&self) -> impl Iterator<Item = &Signal> {
        let resources = self.resources.iter().map(|it| (&it.source, &it.exceptions));
        let pods = self.pods.iter().map(|it| (&it.source, &it.exceptions));
        let sources = resources.chain(pods).flat_map(|(source, exceptions)| {
            source.signals().chain(exceptions.iter().map(|exception| &exception.value))
        });
        let objects = self.objects.iter().flat_map(|it| it.all_series());
        let externals = self.externals.iter().flat_map(|it| it.all_series());
        sources.chain(objects.chain(externals).map(|(_, signal)| signal))
    }

    /// The recorded signals, mutable.
    pub fn recorded_mut(&mut self) -> impl Iterator<Item = &mut Recorded> {
        self.signals_mut().flat_map(Signal::recordings_mut)
    }

    /// The noise of all signals, mutable.
    pub(super) fn noise_mut(&mut self) -> impl Iterator<Item = &mut Noise> {
        self.signals_mut().flat_map(Signal::noise_mut)
    }

    fn signals_mut(&mut self) -> impl Iterator<Item = &mut Signal> {
        self.named_signals_mut().map(|(_, signal)| signal)
    }

    /// The signals, mutable, each with the name of its metric.
    pub(super) fn named_signals_mut(&mut self) -> impl Iterator<Item = (Arc<str>, &mut Signal)> {
        let resources =
            self.resources.iter_mut().map(|it| (&it.name, &mut it.source, &mut it.exceptions));
        let pods = self.pods.iter_mut().map(|it| (&it.name, &mut it.source, &mut it.exceptions));
        let sources = resources.chain(pods).flat_map(|(name, source, exceptions)| {
            let exceptions = exceptions.iter_mut().map(|exception| &mut exception.value);
            let signals = source.signals_mut().chain(exceptions);
            signals.map(|signal| (name.clone(), signal))
        });
        let objects = self.objects.iter_mut().flat_map(|metric| {
            let name = metric.name.clone();
            metric.signals_mut().map(move |signal| (name.clone(), signal))
        });
        let externals = self.externals.iter_mut().flat_map(|metric| {
            let name = metric.name.clone();
            metric.signals_mut().map(move |signal| (name.clone(), signal))
        });
        sources.chain(objects).chain(externals)
    }
}

/// The usage of one resource.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(from = "UsageFields")]
pub struct ResourceUsage {
    /// `cpu` or `memory`.
    pub name: Arc<str>,
    /// The source of the values.
    #[serde(flatten)]
    pub source: UsageSource,
    /// Pods with another value, by ordinal; later entries take precedence.
    #[serde(rename = "pods", serialize_with = "write_exceptions")]
    #[serde(skip_serializing_if = "has_no_written_exceptions")]
    pub exceptions: Vec<Exception>,
}

/// The usage of one resource: exactly one of `perPod`, `containers` and `load`.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, expecting = "a resource's usage (a map)")]
#[schemars(rename = "ResourceUsage", extend("oneOf" = [
    {"required": ["perPod"]},
    {"required": ["containers"]},
    {"required": ["load"]},
]))]
struct UsageFields {
    /// `cpu` or `memory`.
    #[schemars(extend("enum" = ["cpu", "memory"]))]
    name: Arc<str>,
    /// The usage of each pod, in its first container; the other containers use nothing.
    per_pod: Option<Signal>,
    /// The usage of each pod, by container.
    #[serde(default)]
    containers: Entries<Signal>,
    /// A total that the ready pods share evenly: with more pods, each uses less (a closed loop).
    load: Option<Signal>,
    /// With `load`: no pod uses more than this.
    #[serde(default, with = "As::<Option<Amount>>")]
    #[schemars(with = "Option<As<QuantityOrPercent>>")]
    limit: Option<Quantity>,
    /// Pods with a different value. Later entries take precedence.
    #[serde(default)]
    pods: Vec<Exception>,
}

impl ResourceUsage {
    /// The usage of a resource, the same in all pods.
    pub fn new(name: &str, source: UsageSource) -> ResourceUsage {
        ResourceUsage { name: name.into(), source, exceptions: Vec::new() }
    }
}

impl From<UsageFields> for ResourceUsage {
    fn from(fields: UsageFields) -> ResourceUsage {
        let UsageFields { name, per_pod, containers, load, limit, pods } = fields;
        let source = if containers.is_empty() {
            UsageSource::new(per_pod, load, limit)
        } else {
            UsageSource::PerContainer(containers)
        };
        ResourceUsage { name, source, exceptions: pods }
    }
}

impl JsonSchema for ResourceUsage {
    fn schema_name() -> Cow<'static, str> {
        UsageFields::schema_name()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        UsageFields::json_schema(generator)
    }
}

/// The places of fields of usages.
pub(crate) const USAGE_PLACES: &[CorrectPlace] = &[
    CorrectPlace {
        place: "next to `load`: {name: cpu, load: …, limit: …}", fields: &["limit"]
    },
    CorrectPlace {
        place: "to a usage, in the list `metrics.resource`",
        fields: &["perPod", "load"],
    },
];

/// The source of a metric's values.
#[derive(Clone, PartialEq, Debug)]
pub enum UsageSource {
    /// The same signal in each pod, in its first container (the others report zero).
    PerPod(Signal),
    /// A signal for each named container of each pod.
    PerContainer(Entries<Signal>),
    /// A total that the ready pods share evenly (closed loop), capped at `limit` per pod.
    Load {
        total: Signal,
        /// No pod uses more than this; the rest of the load is not served.
        limit: Option<Quantity>,
    },
}

impl UsageSource {
    /// The signals, one for each container with its own.
    pub fn signals(&self) -> impl Iterator<Item = &Signal> {
        let (only, containers) = match self {
            UsageSource::PerPod(signal) | UsageSource::Load { total: signal, .. } => {
                (Some(signal), &[][..])
            }
            UsageSource::PerContainer(containers) => (None, containers.0.as_slice()),
        };
        only.into_iter().chain(containers.iter().map(|(_, signal)| signal))
    }

    /// The signals, mutable.
    fn signals_mut(&mut self) -> impl Iterator<Item = &mut Signal> {
        let (only, containers) = match self {
            UsageSource::PerPod(signal) | UsageSource::Load { total: signal, .. } => {
                (Some(signal), &mut [][..])
            }
            UsageSource::PerContainer(containers) => (None, containers.0.as_mut_slice()),
        };
        only.into_iter().chain(containers.iter_mut().map(|(_, signal)| signal))
    }

    /// Creates a source from fields. The validation requires exactly one of `per_pod` and `load`.
    fn new(per_pod: Option<Signal>, load: Option<Signal>, limit: Option<Quantity>) -> UsageSource {
        match load {
            Some(total) => UsageSource::Load { total, limit },
            None => UsageSource::PerPod(per_pod.unwrap_or_else(Signal::zero)),
        }
    }
}

/// Serialized as fields of the metric.
impl Serialize for UsageSource {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        match self {
            UsageSource::PerPod(signal) => map.serialize_entry("perPod", signal)?,
            UsageSource::PerContainer(signals) => map.serialize_entry("containers", signals)?,
            UsageSource::Load { total, limit } => {
                map.serialize_entry("load", total)?;
                if let Some(limit) = limit {
                    map.serialize_entry("limit", limit)?;
                }
            }
        }
        map.end()
    }
}

/// A custom metric of pods.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(from = "PodsMetricFields")]
pub struct PodsMetric {
    /// The metric's name.
    pub name: Arc<str>,
    /// Labels of the series.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// The source of the values; never `PerContainer`.
    #[serde(flatten)]
    pub source: UsageSource,
    /// Pods with another value, by ordinal; later entries take precedence.
    #[serde(rename = "pods", serialize_with = "write_exceptions")]
    #[serde(skip_serializing_if = "has_no_written_exceptions")]
    pub exceptions: Vec<Exception>,
}

/// A custom metric of the pods: exactly one of `perPod` and `load`. Values may be negative.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, expecting = "a metric of pods (a map)")]
#[schemars(rename = "PodsMetric", extend("oneOf" = [
    {"required": ["perPod"]},
    {"required": ["load"]},
]))]
struct PodsMetricFields {
    /// The metric's name, as in the HPA.
    #[schemars(length(min = 1))]
    name: Arc<str>,
    /// Labels by which a metric selector of the HPA filters. They apply to all pods.
    #[serde(default)]
    labels: BTreeMap<String, String>,
    /// The value of each pod.
    per_pod: Option<Signal>,
    /// A total that the ready pods share evenly: with more pods, each has less (a closed loop).
    load: Option<Signal>,
    /// With `load`: no pod has more than this.
    #[serde(default, with = "As::<Option<AnyQuantity>>")]
    limit: Option<Quantity>,
    /// Pods with a different value. Later entries take precedence.
    #[serde(default)]
    pods: Vec<Exception>,
}

impl From<PodsMetricFields> for PodsMetric {
    fn from(fields: PodsMetricFields) -> PodsMetric {
        let PodsMetricFields { name, labels, per_pod, load, limit, pods } = fields;
        let source = UsageSource::new(per_pod, load, limit);
        PodsMetric { name, labels, source, exceptions: pods }
    }
}

impl JsonSchema for PodsMetric {
    fn schema_name() -> Cow<'static, str> {
        PodsMetricFields::schema_name()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        PodsMetricFields::json_schema(generator)
    }
}

/// A custom metric of one object: `value`, or `series`. Values may be negative.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a metric of an object (a map)")]
#[schemars(extend("oneOf" = [{"required": ["value"]}, {"required": ["series"]}]))]
pub struct ObjectMetric {
    /// The metric's name, as in the HPA.
    #[schemars(length(min = 1))]
    pub name: Arc<str>,
    /// The object, as in `describedObject` of the HPA.
    pub object: DescribedObject,
    /// The value of its only series, which has no labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Signal>,
    /// The series by their labels. The HPA's metric selector must match exactly one of them;
    /// otherwise, the query fails.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1))]
    pub series: Vec<Series>,
}

/// An object that a metric describes.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[serde(expecting = "an object, for example {kind: Service, name: web}")]
pub struct DescribedObject {
    /// The object's group and version, of which only the group matters. Default `v1`, the core
    /// group.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["networking.k8s.io/v1", "v1"]))]
    pub api_version: Option<Arc<str>>,
    /// For example `Ingress`.
    #[schemars(length(min = 1))]
    pub kind: Arc<str>,
    /// The object's name.
    #[schemars(length(min = 1))]
    pub name: Arc<str>,
}

impl DescribedObject {
    /// The object's API group; empty for core.
    #[must_use]
    pub fn group(&self) -> &str {
        let version = self.api_version.as_deref().unwrap_or_default();
        version.split_once('/').map_or("", |(group, _)| group)
    }

    /// The object's kind and group: `Ingress.networking.k8s.io`, `Service`.
    #[must_use]
    pub fn group_kind(&self) -> Arc<str> {
        match self.group() {
            "" => self.kind.clone(),
            group => with_group(&self.kind, group).into(),
        }
    }
}

/// A metric from outside the cluster: `value`, or `series`. Values may be negative.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "an external metric (a map)")]
#[schemars(extend("oneOf" = [{"required": ["value"]}, {"required": ["series"]}]))]
pub struct ExternalMetric {
    /// The metric's name, as in the HPA.
    #[schemars(length(min = 1))]
    pub name: Arc<str>,
    /// The value of its only series, which has no labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Signal>,
    /// The series by their labels. The controller sums the series that the HPA's metric selector
    /// matches.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1))]
    pub series: Vec<Series>,
}

/// One series of a metric.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "{labels: …, value: …}")]
pub struct Series {
    /// Labels by which a metric selector of the HPA filters.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// The value of the series.
    pub value: Signal,
}

/// Metrics with series.
macro_rules! metrics_with_series {
    ($($metric:ident)*) => {$(
        impl $metric {
            /// The series by their labels. A single series has none.
            pub fn all_series(&self) -> impl Iterator<Item = (&BTreeMap<String, String>, &Signal)> {
                static NONE: BTreeMap<String, String> = BTreeMap::new();
                let only = self.value.iter().map(|value| (&NONE, value));
                only.chain(self.series.iter().map(|series| (&series.labels, &series.value)))
            }

            /// The signals of the metric, mutable.
            pub(super) fn signals_mut(&mut self) -> impl Iterator<Item = &mut Signal> {
                self.value.iter_mut().chain(self.series.iter_mut().map(|series| &mut series.value))
            }

            /// Writes a single series without labels as a value.
            pub(super) fn normalize_series(&mut self) {
                let plain = |series: &Series| series.labels.is_empty();
                if self.value.is_none() && self.series.len() == 1 && plain(&self.series[0]) {
                    self.value = self.series.pop().map(|series| series.value);
                }
            }
        }
    )*};
}

metrics_with_series!(ObjectMetric ExternalMetric);

/// Pods whose usage or metric differs from the common one.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "{pods: …, value: …}")]
pub struct Exception {
    /// The pods.
    pub pods: PodSet,
    /// The value of each pod; for usage, the value of its first container.
    pub value: Signal,
    /// True if the exception is part of a recording by pod.
    #[serde(skip)]
    pub recorded: bool,
    /// The container whose usage it replaces, in a recording by pod for a scenario of a VPA. None:
    /// the usage of all containers.
    #[serde(skip)]
    pub container: Option<Arc<str>>,
}

impl Exception {
    /// An exception of the user.
    #[must_use]
    pub fn new(pods: PodSet, value: Signal) -> Exception {
        Exception { pods, value, recorded: false, container: None }
    }

    /// Returns true if the value replaces the usage of a container. If the exception names no
    /// container, the value is the usage of the first container, and the others use nothing.
    #[must_use]
    pub fn applies_to(&self, container: &str) -> bool {
        self.container.as_ref().is_none_or(|own| **own == *container)
    }
}

/// For `skip_serializing_if`: exceptions of a recording are not written.
fn has_no_written_exceptions(exceptions: &[Exception]) -> bool {
    exceptions.iter().all(|exception| exception.recorded)
}

/// Writes the exceptions that are not part of a recording.
fn write_exceptions<S: Serializer>(
    exceptions: &[Exception],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(exceptions.iter().filter(|exception| !exception.recorded))
}

/// How samples are taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "sampling (a map)")]
pub struct Sampling {
    /// The time over which a sample is taken: the `window` of each sample. Default 30s.
    #[serde(with = "As::<Duration>", skip_serializing_if = "is_default_window")]
    pub window: Span,
    /// The age of the newest sample: of its timestamp and its usage. Default 0s.
    #[serde(with = "As::<Duration>", skip_serializing_if = "is_default")]
    pub lag: Span,
    /// Samples are only taken at multiples of this. Default: with each query.
    #[serde(with = "As::<Option<PositiveDuration>>", skip_serializing_if = "Option::is_none")]
    pub resolution: Option<Span>,
}

impl Sampling {
    pub(crate) const PLACE: CorrectPlace = CorrectPlace {
        place: "under `metrics.sampling`",
        fields: &["window", "lag", "resolution"],
    };
}

/// Like metrics-server's default resolution, but always fresh.
impl Default for Sampling {
    fn default() -> Sampling {
        Sampling { window: Span::from_secs(30), lag: Span::ZERO, resolution: None }
    }
}

fn is_default_window(window: &Span) -> bool {
    *window == Sampling::default().window
}
