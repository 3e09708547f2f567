//! `autoscaling/v2` HorizontalPodAutoscaler as typed by users: every field of the API, so that a
//! misspelt one is refused and editors can complete them.
//!
//! The manifest itself goes to upstream verbatim; these types only check its shape. All fields are
//! optional, since a patch has the same shape; what a manifest must have is checked in `resolve`.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::entries::Entries;
use super::text::{As, QuantityText};

/// A HorizontalPodAutoscaler, as one would give it to `kubectl apply`; or `file`, the path of such
/// a manifest, relative to the scenario. It is handed to the API server unchanged.
#[derive(Clone, PartialEq, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[serde(expecting = "a HorizontalPodAutoscaler manifest (a map)")]
#[schemars(extend("anyOf" = [
    {"required": ["apiVersion", "kind", "metadata", "spec"]},
    {"required": ["file"], "maxProperties": 1},
]))]
pub(super) struct Manifest {
    /// The path of a manifest of your own, relative to the scenario, in place of all other fields.
    /// Of several documents in it, the one HorizontalPodAutoscaler is taken.
    pub(super) file: Option<String>,
    /// `autoscaling/v2`, or `autoscaling/v2beta2`, which is converted to it.
    #[schemars(extend("enum" = ["autoscaling/v2", "autoscaling/v2beta2"]))]
    pub(super) api_version: Option<String>,
    /// `HorizontalPodAutoscaler`.
    #[schemars(extend("const" = "HorizontalPodAutoscaler"))]
    pub(super) kind: Option<String>,
    /// The object's metadata.
    #[schemars(extend("required" = ["name"]))]
    pub(super) metadata: Option<Metadata>,
    /// What is wanted.
    #[schemars(extend(
        "required" = ["scaleTargetRef", "maxReplicas"],
        "properties" = {"scaleTargetRef": {"required": ["apiVersion", "kind", "name"]}},
    ))]
    pub(super) spec: Option<Spec>,
    /// Ignored by the API server on creation.
    pub(super) status: Option<Value>,
}

/// The object's metadata.
#[derive(Clone, PartialEq, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default, expecting = "metadata (a map)")]
pub(super) struct Metadata {
    /// The HPA's name.
    pub(super) name: Option<String>,
    /// The HPA's namespace, and that of its target. Default `default`.
    pub(super) namespace: Option<String>,
    /// Labels.
    pub(super) labels: Option<Entries<String>>,
    /// Annotations.
    pub(super) annotations: Option<Entries<String>>,
    /// Finalizers.
    pub(super) finalizers: Option<Vec<String>>,
    /// Owners.
    pub(super) owner_references: Option<Value>,
    /// Not for HPAs: the name is needed here.
    pub(super) generate_name: Option<String>,
    /// Set by the API server.
    pub(super) uid: Option<Value>,
    /// Set by the API server.
    pub(super) resource_version: Option<Value>,
    /// Set by the API server.
    pub(super) generation: Option<Value>,
    /// Set by the API server.
    pub(super) creation_timestamp: Option<Value>,
    /// Set by the API server.
    pub(super) deletion_timestamp: Option<Value>,
    /// Set by the API server.
    pub(super) deletion_grace_period_seconds: Option<Value>,
    /// Set by the API server.
    pub(super) managed_fields: Option<Value>,
    /// Set by the API server.
    pub(super) self_link: Option<Value>,
}

/// What is wanted of the autoscaler.
#[derive(Clone, PartialEq, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default, expecting = "a spec (a map)")]
pub(super) struct Spec {
    /// The object that is scaled.
    pub(super) scale_target_ref: Option<Reference>,
    /// The lower limit. The API server's default is 1.
    #[schemars(range(min = 0))]
    pub(super) min_replicas: Option<i32>,
    /// The upper limit.
    #[schemars(range(min = 1))]
    pub(super) max_replicas: Option<i32>,
    /// The metrics: the largest of their proposals wins. Default: cpu at 80 % of the request.
    pub(super) metrics: Option<Vec<Metric>>,
    /// Policies, windows and tolerances of both directions.
    pub(super) behavior: Option<Behavior>,
}

/// A reference to an object in the HPA's namespace.
#[derive(Clone, PartialEq, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default, expecting = "a reference (a map)")]
pub(super) struct Reference {
    /// Group and version, for instance `apps/v1`.
    #[schemars(extend("anyOf" = [
        {"enum": ["apps/v1", "v1", "apps/v1beta2", "apps/v1beta1"]},
        {"pattern": r"^[^/]+\.[^/]+/[^/]+$"},
    ]))]
    pub(super) api_version: Option<String>,
    /// For instance `Deployment`; or the kind of a custom resource.
    #[schemars(extend("examples" = [
        "Deployment", "ReplicaSet", "StatefulSet", "ReplicationController",
    ]))]
    pub(super) kind: Option<String>,
    /// The object's name.
    pub(super) name: Option<String>,
}

/// One metric: `type`, and the field that it names.
#[derive(Clone, PartialEq, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default, expecting = "a metric (a map)")]
pub(super) struct Metric {
    /// The kind of the metric.
    #[serde(rename = "type")]
    pub(super) type_: Option<MetricType>,
    /// For type Resource: cpu or memory, summed over the containers of each pod.
    #[schemars(extend("required" = ["name", "target"]))]
    pub(super) resource: Option<ResourceMetric>,
    /// For type ContainerResource: cpu or memory of one container of each pod.
    #[schemars(extend("required" = ["name", "container", "target"]))]
    pub(super) container_resource: Option<ContainerResourceMetric>,
    /// For type Pods: a custom metric, averaged over the pods.
    #[schemars(extend("required" = ["metric", "target"]))]
    pub(super) pods: Option<PodsMetricSource>,
    /// For type Object: a custom metric of another object.
    #[schemars(extend("required" = ["describedObject", "metric", "target"]))]
    pub(super) object: Option<ObjectMetricSource>,
    /// For type External: a metric from outside of the cluster, summed over its series.
    #[schemars(extend("required" = ["metric", "target"]))]
    pub(super) external: Option<ExternalMetricSource>,
}

impl Metric {
    /// The targets that are given, each with the field that it belongs to.
    pub(super) fn targets(&self) -> impl Iterator<Item = (&'static str, &Target)> {
        let resource = self.resource.as_ref().and_then(|source| source.target.as_ref());
        let container = self.container_resource.as_ref().and_then(|source| source.target.as_ref());
        let pods = self.pods.as_ref().and_then(|source| source.target.as_ref());
        let object = self.object.as_ref().and_then(|source| source.target.as_ref());
        let external = self.external.as_ref().and_then(|source| source.target.as_ref());
        let all = [
            ("resource", resource),
            ("containerResource", container),
            ("pods", pods),
            ("object", object),
            ("external", external),
        ];
        all.into_iter().filter_map(|(name, target)| Some((name, target?)))
    }
}

/// The kind of a metric.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
pub(super) enum MetricType {
    /// CPU or memory, summed over a pod's containers.
    Resource,
    /// CPU or memory of one container.
    ContainerResource,
    /// A custom metric of the pods.
    Pods,
    /// A custom metric of another object.
    Object,
    /// A metric from outside of the cluster.
    External,
}

/// A resource metric and its target.
#[derive(Clone, PartialEq, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default, expecting = "a resource metric")]
pub(super) struct ResourceMetric {
    /// `cpu` or `memory`.
    #[schemars(extend("examples" = ["cpu", "memory"]))]
    pub(super) name: Option<String>,
    /// What is wanted of it.
    #[schemars(extend("required" = ["type"]))]
    pub(super) target: Option<Target>,
}

/// A resource metric of one container, and its target.
#[derive(Clone, PartialEq, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[serde(expecting = "a resource metric of a container")]
pub(super) struct ContainerResourceMetric {
    /// `cpu` or `memory`.
    #[schemars(extend("examples" = ["cpu", "memory"]))]
    pub(super) name: Option<String>,
    /// The container's name.
    pub(super) container: Option<String>,
    /// What is wanted of it.
    #[schemars(extend("required" = ["type"]))]
    pub(super) target: Option<Target>,
}

/// A custom metric of the pods, and its target.
#[derive(Clone, PartialEq, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default, expecting = "a metric of pods")]
pub(super) struct PodsMetricSource {
    /// Which metric.
    #[schemars(extend("required" = ["name"]))]
    pub(super) metric: Option<MetricIdentifier>,
    /// What is wanted of it.
    #[schemars(extend("required" = ["type"]))]
    pub(super) target: Option<Target>,
}

/// A custom metric of another object, and its target.
#[derive(Clone, PartialEq, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[serde(expecting = "a metric of an object")]
pub(super) struct ObjectMetricSource {
    /// The object, in the HPA's namespace.
    #[schemars(extend("required" = ["kind", "name"]))]
    pub(super) described_object: Option<DescribedObjectReference>,
    /// Which metric.
    #[schemars(extend("required" = ["name"]))]
    pub(super) metric: Option<MetricIdentifier>,
    /// What is wanted of it.
    #[schemars(extend("required" = ["type"]))]
    pub(super) target: Option<Target>,
}

/// A metric from outside of the cluster, and its target.
#[derive(Clone, PartialEq, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default, expecting = "an external metric")]
pub(super) struct ExternalMetricSource {
    /// Which metric.
    #[schemars(extend("required" = ["name"]))]
    pub(super) metric: Option<MetricIdentifier>,
    /// What is wanted of it.
    #[schemars(extend("required" = ["type"]))]
    pub(super) target: Option<Target>,
}

/// A reference to the object that a metric describes.
#[derive(Clone, PartialEq, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default, expecting = "a reference (a map)")]
pub(super) struct DescribedObjectReference {
    /// Group and version, for instance `networking.k8s.io/v1`. Default: the core group.
    pub(super) api_version: Option<String>,
    /// For instance `Ingress`.
    pub(super) kind: Option<String>,
    /// The object's name.
    pub(super) name: Option<String>,
}

/// Which metric, and which of its series.
#[derive(Clone, PartialEq, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[serde(expecting = "a metric's name and selector, for instance {name: queue-length}")]
pub(super) struct MetricIdentifier {
    /// The metric's name.
    pub(super) name: Option<String>,
    /// Which of its series, by their labels. Default: all.
    pub(super) selector: Option<LabelSelector>,
}

/// A selector by labels: all that is said must hold.
#[derive(Clone, PartialEq, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default, expecting = "a selector (a map)")]
pub(super) struct LabelSelector {
    /// Labels that must be there with just these values.
    pub(super) match_labels: Option<Entries<String>>,
    /// Further requirements.
    pub(super) match_expressions: Option<Vec<LabelSelectorRequirement>>,
}

/// One requirement of a selector.
#[derive(Clone, PartialEq, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default, expecting = "a requirement")]
#[schemars(extend("required" = ["key", "operator"]))]
pub(super) struct LabelSelectorRequirement {
    /// The label.
    pub(super) key: Option<String>,
    /// How its value relates to `values`.
    pub(super) operator: Option<SelectorOperator>,
    /// The values, for In and NotIn.
    pub(super) values: Option<Vec<String>>,
}

/// How a label's value relates to the given ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
pub(super) enum SelectorOperator {
    /// The value is one of them.
    In,
    /// The value is none of them, or the label is not there.
    NotIn,
    /// The label is there.
    Exists,
    /// The label is not there.
    DoesNotExist,
}

/// A metric's target.
#[derive(Clone, PartialEq, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default, expecting = "a target (a map)")]
pub(super) struct Target {
    /// Which of the fields below is given.
    #[serde(rename = "type")]
    pub(super) type_: Option<TargetType>,
    /// For type Utilization: percent of the request, averaged over the pods.
    #[schemars(range(min = 1))]
    pub(super) average_utilization: Option<i32>,
    /// For type AverageValue: an average over the pods.
    #[serde(with = "As::<Option<QuantityText>>")]
    pub(super) average_value: Option<String>,
    /// For type Value: a total. Only for metrics of type Object and External.
    #[serde(with = "As::<Option<QuantityText>>")]
    pub(super) value: Option<String>,
}

/// What kind of number a target is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
pub(super) enum TargetType {
    /// Percent of the request.
    Utilization,
    /// A total.
    Value,
    /// An average over the pods.
    AverageValue,
}

/// Policies, windows and tolerances of both directions. Present, even if empty, it also replaces
/// the limits that hold without it (twice the size, or 4 pods).
#[derive(Clone, PartialEq, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default, expecting = "behavior (a map)")]
pub(super) struct Behavior {
    /// Rules for scaling up.
    pub(super) scale_up: Option<ScalingRules>,
    /// Rules for scaling down.
    pub(super) scale_down: Option<ScalingRules>,
}

/// The rules of one direction.
#[derive(Clone, PartialEq, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default, expecting = "rules (a map)")]
pub(super) struct ScalingRules {
    /// The window over which recommendations are held back. Default: 0 upwards; downwards the
    /// controller's flag `horizontal-pod-autoscaler-downscale-stabilization`.
    #[schemars(range(min = 0, max = 3600))]
    pub(super) stabilization_window_seconds: Option<i32>,
    /// Which policy wins. Default Max.
    pub(super) select_policy: Option<SelectPolicy>,
    /// How much may change within a period. A list replaces all default policies.
    pub(super) policies: Option<Vec<Policy>>,
    /// How far from 1 the ratio may be without effect, in place of the controller's flag.
    #[serde(with = "As::<Option<QuantityText>>")]
    pub(super) tolerance: Option<String>,
}

/// Which of several policies applies.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
pub(super) enum SelectPolicy {
    /// The one that allows the largest change.
    Max,
    /// The one that allows the smallest change.
    Min,
    /// No scaling in this direction.
    Disabled,
}

/// A limit on change within a period.
#[derive(Clone, PartialEq, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default, expecting = "a policy (a map)")]
#[schemars(extend("required" = ["type", "value", "periodSeconds"]))]
pub(super) struct Policy {
    /// Pods or percent.
    #[serde(rename = "type")]
    pub(super) type_: Option<PolicyType>,
    /// How many pods, or how many percent.
    #[schemars(range(min = 1))]
    pub(super) value: Option<i32>,
    /// The period in seconds.
    #[schemars(range(min = 1, max = 1800))]
    pub(super) period_seconds: Option<i32>,
}

/// What a policy's value counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
pub(super) enum PolicyType {
    /// Pods.
    Pods,
    /// Percent of the replicas at the period's start.
    Percent,
}

/// A JSON merge patch on the stored HPA: `null` removes a field.
#[derive(Clone, PartialEq, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default, expecting = "a patch (a map)")]
pub(super) struct Patch {
    /// Labels and annotations.
    pub(super) metadata: Option<Metadata>,
    /// Fields of the spec that change; a list replaces the whole list.
    pub(super) spec: Option<Spec>,
}
