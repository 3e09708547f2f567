//! The Kubernetes objects that the HPA controller reads and writes.
//!
//! The types have the names and shapes of `autoscaling/v2`, so that their JSON is the JSON of the
//! API. Deliberately not k8s-openapi: its types drop unknown fields silently, are not ordered
//! for comparison, and would bring their own notion of time into the model.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use educe::Educe;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use super::quantity::Quantity;
use super::time::{Span, Time, rfc3339};

/// Labels, sorted by key. Shared between the pods of one template.
pub type Labels = Arc<BTreeMap<String, String>>;

/// A stored HorizontalPodAutoscaler: after the API server's defaulting.
#[derive(Educe, PartialEq, Debug)]
#[educe(Clone)]
pub struct Hpa {
    /// `metadata.namespace`.
    pub namespace: Arc<str>,
    /// `metadata.name`.
    pub name: Arc<str>,
    /// `metadata.generation`: 1 on creation, incremented by each change of the spec.
    pub generation: i64,
    /// The spec after defaulting.
    pub spec: Arc<HpaSpec>,
    /// The status that the controller wrote last.
    pub status: HpaStatus,
    /// The number of the HPA in the order of creation, from which `metadata.uid` is derived. An HPA
    /// that is created again has a new number.
    pub uid: u64,
    /// `metadata.resourceVersion`: it increases with each change of the object.
    pub resource_version: u64,
}

/// `autoscaling/v2` HorizontalPodAutoscalerSpec.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HpaSpec {
    /// The object whose scale subresource the controller reads and writes.
    pub scale_target_ref: CrossVersionObjectReference,
    /// The lower limit; the API server's default is 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_replicas: Option<i32>,
    /// The upper limit.
    pub max_replicas: i32,
    /// The metrics, in the order in which they are evaluated.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<MetricSpec>,
    /// Policies and windows. Absent: the normalization without behavior applies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub behavior: Option<Behavior>,
}

/// A reference to an object in the namespace of the autoscaler.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CrossVersionObjectReference {
    /// For example `Deployment`.
    pub kind: String,
    /// The object's name.
    pub name: Arc<str>,
    /// Group and version, for example `apps/v1`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,
}

impl CrossVersionObjectReference {
    /// Creates a reference with a group and version, for example `apps/v1`.
    #[must_use]
    pub fn new(
        api_version: impl Into<String>,
        kind: impl Into<String>,
        name: impl Into<Arc<str>>,
    ) -> CrossVersionObjectReference {
        let (kind, name) = (kind.into(), name.into());
        CrossVersionObjectReference { kind, name, api_version: Some(api_version.into()) }
    }

    /// The group and version. Empty if the reference does not contain them.
    #[must_use]
    pub fn api_version(&self) -> &str {
        self.api_version.as_deref().unwrap_or_default()
    }

    /// The group. Empty for the core group.
    #[must_use]
    pub fn group(&self) -> &str {
        self.api_version().split_once('/').map_or("", |(group, _)| group)
    }
}

/// A kind or a resource with its group as one text: `Ingress.networking.k8s.io`, or `Service` for
/// the core group.
#[must_use]
pub fn with_group(name: &str, group: &str) -> String {
    if group.is_empty() { name.to_owned() } else { format!("{name}.{group}") }
}

/// One entry of `spec.metrics`. Exactly the field that `type` names is set.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MetricSpec {
    /// The source of the metric: one of the fields below.
    #[serde(rename = "type")]
    pub type_: MetricSourceType,
    /// CPU or memory of the pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<ResourceMetricSource>,
    /// CPU or memory of one container of the pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container_resource: Option<ContainerResourceMetricSource>,
    /// A custom metric of the pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pods: Option<PodsMetricSource>,
    /// A custom metric of one object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<ObjectMetricSource>,
    /// A metric from outside the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external: Option<ExternalMetricSource>,
}

impl MetricSpec {
    /// The name of the metric. None: no source is set.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        let resource = self.resource.as_ref().map(|it| &*it.name);
        let container = self.container_resource.as_ref().map(|it| &*it.name);
        let pods = self.pods.as_ref().map(|it| &*it.metric.name);
        let object = self.object.as_ref().map(|it| &*it.metric.name);
        let external = self.external.as_ref().map(|it| &*it.metric.name);
        resource.or(container).or(pods).or(object).or(external)
    }
}

/// The kind of a metric.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema,
)]
pub enum MetricSourceType {
    /// CPU or memory, summed over a pod's containers.
    Resource,
    /// CPU or memory of one container.
    ContainerResource,
    /// A custom metric, averaged over the pods.
    Pods,
    /// A custom metric of one object.
    Object,
    /// A metric from outside the cluster, summed over its series.
    External,
}

/// A metric of one container (`cpu`, `memory`) and its target.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ContainerResourceMetricSource {
    /// `cpu` or `memory`.
    pub name: Arc<str>,
    /// The container's name.
    pub container: Arc<str>,
    /// The target of the metric.
    pub target: MetricTarget,
}

/// A custom metric of pods and its target.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PodsMetricSource {
    /// The name of the metric, and the selector of its series.
    pub metric: Arc<MetricIdentifier>,
    /// The target of the metric.
    pub target: MetricTarget,
}

/// A custom metric of one object and its target.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ObjectMetricSource {
    /// The object that the metric describes, in the namespace of the HPA.
    pub described_object: Arc<CrossVersionObjectReference>,
    /// The name of the metric, and the selector of its series.
    pub metric: Arc<MetricIdentifier>,
    /// The target of the metric.
    pub target: MetricTarget,
}

/// A metric from outside the cluster and its target.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ExternalMetricSource {
    /// The name of the metric, and the selector of its series.
    pub metric: Arc<MetricIdentifier>,
    /// The target of the metric.
    pub target: MetricTarget,
}

/// A metric and its series.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MetricIdentifier {
    /// The metric's name.
    pub name: Arc<str>,
    /// The series, by their labels. Absent: all series.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<LabelSelector>,
}

/// A selector in an object.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LabelSelector {
    /// Labels that must exist with these values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub match_labels: BTreeMap<String, String>,
    /// Further requirements; all must hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub match_expressions: Vec<LabelSelectorRequirement>,
}

/// One requirement of a selector.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LabelSelectorRequirement {
    /// The label.
    pub key: String,
    /// `In`, `NotIn`, `Exists` or `DoesNotExist`.
    pub operator: String,
    /// The values, for `In` and `NotIn`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
}

/// A resource metric (`cpu`, `memory`) and its target.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ResourceMetricSource {
    /// `cpu` or `memory`.
    pub name: Arc<str>,
    /// The target of the metric.
    pub target: MetricTarget,
}

/// The value that the controller scales a metric to.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MetricTarget {
    /// Utilization, Value or AverageValue. Ignored by the controller for resource metrics.
    #[serde(rename = "type")]
    pub type_: MetricTargetType,
    /// A total.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Quantity>,
    /// An average over the pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub average_value: Option<Quantity>,
    /// Percent of the request, averaged over the pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub average_utilization: Option<i32>,
}

/// The type of a target.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub enum MetricTargetType {
    /// Percent of the request.
    Utilization,
    /// A total.
    Value,
    /// An average over the pods.
    AverageValue,
}

/// `spec.behavior`: absent directions are filled in by the API server.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Behavior {
    /// Rules for scaling up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale_up: Option<ScalingRules>,
    /// Rules for scaling down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale_down: Option<ScalingRules>,
}

/// The rules of one direction.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ScalingRules {
    /// The window, in seconds (0…3600), over which recommendations are held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stabilization_window_seconds: Option<i32>,
    /// The policy that applies. Default Max.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub select_policy: Option<SelectPolicy>,
    /// The policies. Absent: the default policies. Present, even if empty: they replace the default
    /// policies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policies: Option<Vec<ScalingPolicy>>,
    /// The tolerance of this direction, in place of the controller's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tolerance: Option<Quantity>,
}

/// The selection of one policy from several.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub enum SelectPolicy {
    /// The policy that allows the largest change.
    Max,
    /// The policy that allows the smallest change.
    Min,
    /// No scaling in this direction.
    Disabled,
}

/// A limit on change within a period.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ScalingPolicy {
    /// Pods or percent.
    #[serde(rename = "type")]
    pub type_: ScalingPolicyType,
    /// The number of pods, or the percentage.
    pub value: i32,
    /// The period in seconds (1…1800).
    pub period_seconds: i32,
}

/// The unit of a policy's value.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub enum ScalingPolicyType {
    /// Pods.
    Pods,
    /// Percent of the replicas at the period's start.
    Percent,
}

/// `autoscaling/v2` HorizontalPodAutoscalerStatus. Times are whole seconds once stored.
#[derive(Educe, PartialEq, Debug, Default, Serialize, Deserialize)]
#[educe(Clone)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HpaStatus {
    /// The generation that the controller last processed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// When the controller last changed the number of replicas.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "rfc3339::option")]
    pub last_scale_time: Option<Time>,
    /// The replicas before the decision of the last reconcile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_replicas: Option<i32>,
    /// The last decided replicas.
    #[serde(default)]
    pub desired_replicas: i32,
    /// The last read metrics.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "list_or_null")]
    pub current_metrics: Vec<MetricStatus>,
    /// Conditions, in the order in which they first appeared.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "list_or_null")]
    pub conditions: Vec<HpaCondition>,
}

impl HpaStatus {
    /// The status with all times relative to this time.
    pub fn start_at(&mut self, start: Time) {
        let times = self.conditions.iter_mut().map(|condition| &mut condition.last_transition_time);
        for time in times.chain(&mut self.last_scale_time) {
            *time = *time - start.since_start();
        }
    }
}

/// Go writes an empty list as `null`.
fn list_or_null<'de, T, D>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// One entry of `status.currentMetrics`: a metric's last value.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum MetricStatus {
    /// The metric failed.
    #[serde(rename = "")]
    Empty {},
    /// CPU or memory of the pods.
    Resource {
        /// The value.
        resource: ResourceMetricStatus,
    },
    /// CPU or memory of one container of the pods.
    ContainerResource {
        /// The value.
        container_resource: ContainerResourceMetricStatus,
    },
    /// A custom metric of the pods.
    Pods {
        /// The value.
        pods: PodsMetricStatus,
    },
    /// A custom metric of one object.
    Object {
        /// The value.
        object: ObjectMetricStatus,
    },
    /// A metric from outside the cluster.
    External {
        /// The value.
        external: ExternalMetricStatus,
    },
}

/// The value of a resource metric.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ResourceMetricStatus {
    /// `cpu` or `memory`.
    pub name: Arc<str>,
    /// The values at the last reconcile that read the metric.
    pub current: MetricValueStatus,
}

/// The value of a resource metric of one container.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ContainerResourceMetricStatus {
    /// `cpu` or `memory`.
    pub name: Arc<str>,
    /// The container's name.
    pub container: Arc<str>,
    /// The values at the last reconcile that read the metric.
    pub current: MetricValueStatus,
}

/// The value of a custom metric of pods.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PodsMetricStatus {
    /// The name of the metric, and the selector of its series.
    pub metric: Arc<MetricIdentifier>,
    /// The values at the last reconcile that read the metric.
    pub current: MetricValueStatus,
}

/// The value of a custom metric of one object.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ObjectMetricStatus {
    /// The name of the metric, and the selector of its series.
    pub metric: Arc<MetricIdentifier>,
    /// The object that the metric describes, in the namespace of the HPA.
    pub described_object: Arc<CrossVersionObjectReference>,
    /// The values at the last reconcile that read the metric.
    pub current: MetricValueStatus,
}

/// The value of a metric from outside the cluster.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ExternalMetricStatus {
    /// The name of the metric, and the selector of its series.
    pub metric: Arc<MetricIdentifier>,
    /// The values at the last reconcile that read the metric.
    pub current: MetricValueStatus,
}

/// A metric's value, in the form of its target.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MetricValueStatus {
    /// A total.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Quantity>,
    /// The average over the pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub average_value: Option<Quantity>,
    /// Percent of the request, averaged over the pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub average_utilization: Option<i32>,
}

/// A condition of the HPA's status.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HpaCondition {
    /// AbleToScale, ScalingActive, ScalingLimited, ScaledToZero.
    #[serde(rename = "type")]
    pub type_: ConditionType,
    /// True or False (the controller never writes Unknown).
    #[serde(with = "true_or_false")]
    pub status: bool,
    /// CamelCase, for programs.
    pub reason: Text,
    /// A text for users.
    pub message: Text,
    /// When `status` last changed.
    #[serde(with = "rfc3339")]
    pub last_transition_time: Time,
}

/// The status of a condition in the API.
mod true_or_false {
    use serde::de::{Deserialize, Deserializer, Error as _};
    use serde::ser::{Serialize, Serializer};

    use super::ConditionStatus;

    pub(super) fn serialize<S: Serializer>(status: &bool, to: S) -> Result<S::Ok, S::Error> {
        ConditionStatus::from(*status).serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<bool, D::Error> {
        match ConditionStatus::deserialize(from)? {
            ConditionStatus::True => Ok(true),
            ConditionStatus::False => Ok(false),
            ConditionStatus::Unknown => Err(D::Error::custom(
                "the status of a condition is Unknown; the HPA controller writes True or False",
            )),
        }
    }
}

/// One line, for users.
impl fmt::Display for HpaStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "desiredReplicas {}", self.desired_replicas)?;
        if let Some(current) = self.current_replicas {
            write!(f, ", currentReplicas {current}")?;
        }
        for metric in &self.current_metrics {
            write!(f, ", {metric}")?;
        }
        for condition in &self.conditions {
            let on = ConditionStatus::from(condition.status);
            write!(f, ", {:?}={on}/{}", condition.type_, condition.reason)?;
        }
        Ok(())
    }
}

/// One line, for users. Different statuses have different lines.
impl fmt::Display for MetricStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let current = match self {
            MetricStatus::Empty {} => return f.write_str("(failed metric)"),
            MetricStatus::Resource { resource: ResourceMetricStatus { name, current } } => {
                f.write_str(name)?;
                current
            }
            MetricStatus::ContainerResource { container_resource: of } => {
                write!(f, "{} of container {}", of.name, of.container)?;
                &of.current
            }
            MetricStatus::Pods { pods } => {
                write!(f, "pods metric {}", pods.metric)?;
                &pods.current
            }
            MetricStatus::Object { object } => {
                let CrossVersionObjectReference { kind, name, api_version } =
                    &*object.described_object;
                let version = api_version.as_ref().map(|it| format!("{it} ")).unwrap_or_default();
                write!(f, "metric {} of {version}{kind} {name}", object.metric)?;
                &object.current
            }
            MetricStatus::External { external } => {
                write!(f, "external metric {}", external.metric)?;
                &external.current
            }
        };
        if let Some(utilization) = current.average_utilization {
            write!(f, " {utilization}%")?;
        }
        if let Some(value) = &current.value {
            write!(f, " {value}")?;
        }
        if let Some(value) = &current.average_value {
            write!(f, " ({value} each)")?;
        }
        Ok(())
    }
}

/// The name and the selector, in the form of the HPA.
impl fmt::Display for MetricIdentifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        let selector = self.selector.as_ref().and_then(|it| serde_json::to_string(it).ok());
        selector.map_or(Ok(()), |selector| write!(f, " {selector}"))
    }
}

/// The types of conditions that the HPA controller sets.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum ConditionType {
    /// Whether the target can be read and written.
    AbleToScale,
    /// Whether a replica count could be computed.
    ScalingActive,
    /// Whether a limit changed the recommendation.
    ScalingLimited,
    /// Whether this controller scaled the target to zero.
    ScaledToZero,
}

/// Text that is cheap to clone: literals are not copied, other texts are shared.
#[derive(Clone, Eq, Debug)]
pub enum Text {
    /// A literal.
    Static(&'static str),
    /// Any other text.
    Shared(Arc<str>),
}

impl Text {
    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Text::Static(text) => text,
            Text::Shared(text) => text,
        }
    }
}

impl PartialEq for Text {
    fn eq(&self, other: &Text) -> bool {
        // Most texts are compared with their own clone.
        std::ptr::eq(self.as_str(), other.as_str()) || self.as_str() == other.as_str()
    }
}

impl From<&'static str> for Text {
    fn from(text: &'static str) -> Text {
        Text::Static(text)
    }
}

impl From<String> for Text {
    fn from(text: String) -> Text {
        Text::Shared(text.into())
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Text {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Text, D::Error> {
        Ok(Text::Shared(<Arc<str>>::deserialize(deserializer)?))
    }
}

/// The scale subresource of the target.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Scale {
    /// `spec.replicas`: the desired replicas.
    pub replicas: i32,
    /// `status.replicas`: the existing replicas.
    pub status_replicas: i32,
    /// `status.selector`, as text.
    pub selector: Arc<str>,
    /// `metadata.resourceVersion` of the object: it increases with each change of its scale.
    #[serde(skip)]
    pub resource_version: u64,
}

/// An error response of the API server or of a metrics API.
///
/// The controller quotes `message` only; `code` and `reason` determine the kind of error.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ApiError {
    /// The HTTP status code, for example 503.
    pub code: u16,
    /// The reason of the Status object, for example `ServiceUnavailable`.
    pub reason: String,
    /// The message, quoted by the controller.
    pub message: Arc<str>,
}

/// The fields of a pod that the controller reads.
#[derive(Clone, PartialEq, Debug)]
pub struct Pod {
    /// `metadata.name`.
    pub name: Arc<str>,
    /// `metadata.labels`.
    pub labels: Labels,
    /// `metadata.deletionTimestamp`: set while the pod is terminating.
    pub deletion_timestamp: Option<Time>,
    /// `status.phase`.
    pub phase: PodPhase,
    /// `status.startTime`.
    pub start_time: Option<Time>,
    /// The condition `Ready`, if there is one.
    pub ready: Option<PodReady>,
    /// `spec`. Shared between the pods of one template.
    pub spec: Arc<PodSpec>,
}

/// `status.phase` of a pod.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Phase")]
pub enum PodPhase {
    /// Not all containers have started.
    Pending,
    /// At least one container runs.
    Running,
    /// All containers have succeeded.
    Succeeded,
    /// All containers have ended, and at least one has failed.
    Failed,
    /// The kubelet can't be reached.
    Unknown,
}

impl PodPhase {
    /// The name in the API.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            PodPhase::Pending => "Pending",
            PodPhase::Running => "Running",
            PodPhase::Succeeded => "Succeeded",
            PodPhase::Failed => "Failed",
            PodPhase::Unknown => "Unknown",
        }
    }
}

/// The condition `Ready` of a pod.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodReady {
    /// True, False or Unknown.
    pub status: ConditionStatus,
    /// The time of the last change, in whole seconds.
    pub last_transition_time: Time,
}

/// The status of a condition.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub enum ConditionStatus {
    /// The condition holds.
    True,
    /// The condition does not hold.
    False,
    /// Unknown.
    Unknown,
}

impl ConditionStatus {
    /// The name in the API.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            ConditionStatus::True => "True",
            ConditionStatus::False => "False",
            ConditionStatus::Unknown => "Unknown",
        }
    }
}

impl From<bool> for ConditionStatus {
    fn from(holds: bool) -> ConditionStatus {
        if holds { ConditionStatus::True } else { ConditionStatus::False }
    }
}

/// The name in the API.
impl fmt::Display for ConditionStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The fields of a pod's `spec` that determine its requests.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodSpec {
    /// `spec.containers`.
    pub containers: Vec<Container>,
    /// `spec.initContainers`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub init_containers: Vec<Container>,
    /// `spec.resources.requests`: requests of the pod as a whole. Absent: there is no
    /// `spec.resources`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<Requests>,
    /// `spec.overhead`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub overhead: Requests,
}

impl PodSpec {
    /// Containers that run as long as the pod: the main containers, then sidecars.
    pub fn running_containers(&self) -> impl Iterator<Item = &Container> {
        self.containers.iter().chain(self.init_containers.iter().filter(|it| it.sidecar))
    }
}

/// Quantities by resource.
pub type Requests = BTreeMap<Arc<str>, Quantity>;

/// A container and its requests.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Container {
    /// The container's name.
    pub name: Arc<str>,
    /// `resources.requests`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub requests: Requests,
    /// `restartPolicy: Always` of an init container, which makes it a sidecar.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sidecar: bool,
}

/// The metrics of one pod in metrics.k8s.io.
#[derive(PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodMetrics {
    /// The pod's name.
    pub name: Arc<str>,
    /// The pod's labels, by which the API filters.
    pub labels: Labels,
    /// The time of the sample, in whole seconds.
    pub timestamp: Time,
    /// The window of the sample.
    pub window: Span,
    /// Usage by container.
    pub containers: Arc<[ContainerMetrics]>,
}

impl Clone for PodMetrics {
    fn clone(&self) -> PodMetrics {
        let PodMetrics { name, labels, timestamp, window, containers } = self;
        let (name, labels, containers) = (name.clone(), labels.clone(), containers.clone());
        PodMetrics { name, labels, timestamp: *timestamp, window: *window, containers }
    }

    /// Searches overwrite many lists of samples with others of the same pods: values that both
    /// share are left as they are.
    fn clone_from(&mut self, source: &PodMetrics) {
        fn share<T: ?Sized>(to: &mut Arc<T>, from: &Arc<T>) {
            if !Arc::ptr_eq(to, from) {
                to.clone_from(from);
            }
        }
        share(&mut self.name, &source.name);
        share(&mut self.labels, &source.labels);
        share(&mut self.containers, &source.containers);
        (self.timestamp, self.window) = (source.timestamp, source.window);
    }
}

/// The metrics of one container in metrics.k8s.io.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContainerMetrics {
    /// The container's name.
    pub name: Arc<str>,
    /// Usage by resource.
    pub usage: Vec<(Arc<str>, Quantity)>,
}

/// The value of one pod in custom.metrics.k8s.io.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodMetricValue {
    /// The pod's name.
    pub name: Arc<str>,
    /// The pod's labels, by which the API filters.
    pub labels: Labels,
    /// The value of the sample, as the metrics API sends it.
    pub value: Quantity,
    /// The time of the sample, in whole seconds.
    pub timestamp: Time,
    /// The window of the sample.
    pub window: Option<Span>,
}

/// One series of an object's metric or of an external metric.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Series {
    /// Labels of the series, by which the API filters.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// The value of the sample, as the metrics API sends it.
    pub value: Quantity,
    /// The time of the sample, in whole seconds.
    pub timestamp: Time,
}

/// Metric, kind with group, and name of an object.
pub type ObjectMetricKey = (Arc<str>, Arc<str>, Arc<str>);

/// All metrics of a namespace in custom.metrics.k8s.io and external.metrics.k8s.io.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct CustomMetrics {
    /// Metrics of pods, by name.
    pub pods: BTreeMap<Arc<str>, PodsMetricAnswer>,
    /// Metrics of objects, by metric, kind with group (`Ingress.networking.k8s.io`), and name.
    pub objects: BTreeMap<ObjectMetricKey, SeriesAnswer>,
    /// External metrics, by name.
    pub externals: BTreeMap<Arc<str>, SeriesAnswer>,
}

/// The answer of the custom metrics API to a query of a metric of pods.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct PodsMetricAnswer {
    /// Labels of the series. A metric selector that does not match them finds nothing.
    pub labels: BTreeMap<String, String>,
    /// The values, sorted by the pods' names.
    pub values: Vec<PodMetricValue>,
    /// The error that the API returns instead of values.
    pub error: Option<ApiError>,
}

/// A metric of an object, or an external metric.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct SeriesAnswer {
    /// The series that the API has, before the selector of the query is applied.
    pub series: Vec<Series>,
    /// The error that the API returns instead of series.
    pub error: Option<ApiError>,
}
