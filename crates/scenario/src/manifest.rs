//! HorizontalPodAutoscaler manifests in the form of users: every field of the API, so that
//! misspelled fields are rejected and editors complete the others.
//!
//! Upstream receives the manifest unchanged; these types only check its shape. `resolve` checks for
//! missing fields. Other types can't take their place: `model::api::HpaSpec` requires fields that a
//! patch may omit, and has no metadata; `api_schema` knows the names and Go types of fields, but
//! returns no values, and has no v2beta1, and no texts, limits and words for editors.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::entries::Entries;
use super::hints::CorrectPlace;
use super::kinds::BUILT_IN;
use super::text::{As, QuantityText};
use kube_autoscaler_models::api::{
    MetricSourceType, MetricTargetType, ScalingPolicyType, SelectPolicy,
};

/// The places of fields of an HPA.
pub(crate) const PLACES: &[CorrectPlace] = &[
    CorrectPlace {
        place: "under `spec` of the HPA",
        fields: &["minReplicas", "maxReplicas", "behavior", "scaleTargetRef"],
    },
    CorrectPlace { place: "under `spec.behavior` of the HPA", fields: &["scaleUp", "scaleDown"] },
    CorrectPlace {
        place: "under `scaleUp` or `scaleDown` of the HPA's behavior",
        fields: &["stabilizationWindowSeconds", "selectPolicy", "policies", "tolerance"],
    },
];

/// The place of fields of a metric's target.
pub(crate) const TARGET_PLACE: CorrectPlace = CorrectPlace {
    place: "under `target` of the metric",
    fields: &["averageUtilization", "averageValue"],
};

/// Declares the maps of a manifest, each with its name in messages. All fields are optional, since
/// a patch has the same shape.
macro_rules! maps {
    ($($(#[$attribute:meta])* $name:ident, $expecting:literal {
        $($(#[$field_meta:meta])* $field:ident: $type:ty,)*
    })*) => {$(
        #[derive(Clone, PartialEq, Debug, Default, Deserialize, JsonSchema)]
        #[serde(rename_all = "camelCase", deny_unknown_fields, default, expecting = $expecting)]
        $(#[$attribute])*
        pub(crate) struct $name {
            $($(#[$field_meta])* pub(crate) $field: Option<$type>,)*
        }
    )*};
}

pub(crate) use maps;

maps! {
    /// A HorizontalPodAutoscaler manifest as for `kubectl apply`; or `file`, the path of such a
    /// manifest relative to the scenario. The API server receives it unchanged.
    #[schemars(extend("anyOf" = [
        {"required": ["apiVersion", "kind", "metadata", "spec"]},
        {"required": ["file"], "maxProperties": 1},
    ]))]
    Manifest, "a HorizontalPodAutoscaler manifest (a map)" {
        /// The path of your own manifest, relative to the scenario, in place of all other fields.
        /// The file may contain other documents beside one HorizontalPodAutoscaler.
        file: String,
        /// `autoscaling/v2`, or `autoscaling/v2beta2`, which is converted to it.
        #[schemars(extend("enum" = ["autoscaling/v2", "autoscaling/v2beta2"]))]
        api_version: String,
        /// `HorizontalPodAutoscaler`.
        #[schemars(extend("const" = "HorizontalPodAutoscaler"))]
        kind: String,
        /// The object's metadata.
        #[schemars(extend("required" = ["name"]))]
        metadata: Metadata,
        /// The desired behavior.
        #[schemars(extend(
            "required" = ["scaleTargetRef", "maxReplicas"],
            "properties" = {"scaleTargetRef": {"required": ["apiVersion", "kind", "name"]}},
        ))]
        spec: Spec,
        /// Ignored by the API server on creation.
        status: Value,
    }

    /// The object's metadata.
    Metadata, "metadata (a map)" {
        /// The HPA's name.
        name: String,
        /// The namespace of the HPA and its target. Default `default`.
        namespace: String,
        /// Labels.
        labels: Entries<String>,
        /// Annotations.
        annotations: Entries<String>,
        /// Finalizers.
        finalizers: Vec<String>,
        /// Owners.
        owner_references: Value,
        /// Not supported: `name` is required.
        generate_name: String,
        /// Set by the API server.
        uid: Value,
        /// Set by the API server.
        resource_version: Value,
        /// Set by the API server.
        generation: Value,
        /// Set by the API server.
        creation_timestamp: Value,
        /// Set by the API server.
        deletion_timestamp: Value,
        /// Set by the API server.
        deletion_grace_period_seconds: Value,
        /// Set by the API server.
        managed_fields: Value,
        /// Set by the API server.
        self_link: Value,
    }

    /// The desired behavior of the autoscaler.
    Spec, "a spec (a map)" {
        /// The object that is scaled.
        scale_target_ref: Reference,
        /// The lower limit. The API server's default is 1.
        #[schemars(range(min = 0))]
        min_replicas: i32,
        /// The upper limit.
        #[schemars(range(min = 1))]
        max_replicas: i32,
        /// The metrics: the largest proposal applies. Default: cpu at 80% of the request.
        metrics: Vec<Metric>,
        /// Policies, windows and tolerances of both directions.
        behavior: Behavior,
    }

    /// A reference to an object in the HPA's namespace.
    Reference, "a reference (a map)" {
        /// Group and version, for example `apps/v1`.
        #[schemars(extend("anyOf" = [
            {"enum": ["apps/v1", "v1", "apps/v1beta2", "apps/v1beta1"]},
            {"pattern": r"^[^/]+\.[^/]+/[^/]+$"},
        ]))]
        api_version: String,
        /// For example `Deployment`; or the kind of a custom resource.
        #[schemars(extend("examples" = BUILT_IN.map(|known| known.kind)))]
        kind: String,
        /// The object's name.
        name: String,
    }

    /// One metric: `type`, and the field of that type.
    Metric, "a metric (a map)" {
        /// The kind of the metric.
        #[serde(rename = "type")]
        type_: MetricSourceType,
        /// For type Resource: cpu or memory, summed over the containers of each pod.
        #[schemars(extend("required" = ["name", "target"]))]
        resource: ResourceMetric,
        /// For type ContainerResource: cpu or memory of one container of each pod.
        #[schemars(extend("required" = ["name", "container", "target"]))]
        container_resource: ContainerResourceMetric,
        /// For type Pods: a custom metric, averaged over the pods.
        #[schemars(extend("required" = ["metric", "target"]))]
        pods: PodsMetricSource,
        /// For type Object: a custom metric of another object.
        #[schemars(extend("required" = ["describedObject", "metric", "target"]))]
        object: ObjectMetricSource,
        /// For type External: a metric from outside the cluster, summed over its series.
        #[schemars(extend("required" = ["metric", "target"]))]
        external: ExternalMetricSource,
    }

    /// A resource metric and its target.
    ResourceMetric, "a resource metric" {
        /// `cpu` or `memory`.
        #[schemars(extend("examples" = ["cpu", "memory"]))]
        name: String,
        /// The target value.
        #[schemars(extend("required" = ["type"]))]
        target: Target,
    }

    /// A resource metric of one container, and its target.
    ContainerResourceMetric, "a resource metric of a container" {
        /// `cpu` or `memory`.
        #[schemars(extend("examples" = ["cpu", "memory"]))]
        name: String,
        /// The container's name.
        container: String,
        /// The target value.
        #[schemars(extend("required" = ["type"]))]
        target: Target,
    }

    /// A custom metric of the pods, and its target.
    PodsMetricSource, "a metric of pods" {
        /// The metric.
        #[schemars(extend("required" = ["name"]))]
        metric: MetricIdentifier,
        /// The target value.
        #[schemars(extend("required" = ["type"]))]
        target: Target,
    }

    /// A custom metric of another object, and its target.
    ObjectMetricSource, "a metric of an object" {
        /// The object, in the HPA's namespace.
        #[schemars(extend("required" = ["kind", "name"]))]
        described_object: DescribedObjectReference,
        /// The metric.
        #[schemars(extend("required" = ["name"]))]
        metric: MetricIdentifier,
        /// The target value.
        #[schemars(extend("required" = ["type"]))]
        target: Target,
    }

    /// A metric from outside the cluster, and its target.
    ExternalMetricSource, "an external metric" {
        /// The metric.
        #[schemars(extend("required" = ["name"]))]
        metric: MetricIdentifier,
        /// The target value.
        #[schemars(extend("required" = ["type"]))]
        target: Target,
    }

    /// A reference to the object that a metric describes.
    DescribedObjectReference, "a reference (a map)" {
        /// Group and version, for example `networking.k8s.io/v1`. Default: the core group.
        api_version: String,
        /// For example `Ingress`.
        kind: String,
        /// The object's name.
        name: String,
    }

    /// A metric and its series.
    MetricIdentifier, "a metric's name and selector, for example {name: queue-length}" {
        /// The metric's name.
        name: String,
        /// The series, by their labels. Default: all.
        selector: LabelSelector,
    }

    /// A label selector: all requirements must hold.
    LabelSelector, "a selector (a map)" {
        /// Labels that must exist with these values.
        match_labels: Entries<String>,
        /// Further requirements.
        match_expressions: Vec<LabelSelectorRequirement>,
    }

    /// One requirement of a selector.
    #[schemars(extend("required" = ["key", "operator"]))]
    LabelSelectorRequirement, "a requirement" {
        /// The label.
        key: String,
        /// The relation of the label's value to `values`.
        operator: SelectorOperator,
        /// The values, for In and NotIn.
        values: Vec<String>,
    }

    /// A metric's target.
    Target, "a target (a map)" {
        /// The kind of target. It matches the field below that is set.
        #[serde(rename = "type")]
        type_: MetricTargetType,
        /// For type Utilization: percent of the request, averaged over the pods.
        #[schemars(range(min = 1))]
        average_utilization: i32,
        /// For type AverageValue: an average over the pods.
        #[serde(with = "As::<Option<QuantityText>>")]
        average_value: String,
        /// For type Value: a total. Only for metrics of type Object and External.
        #[serde(with = "As::<Option<QuantityText>>")]
        value: String,
    }

    /// Policies, windows and tolerances of both directions. Even an empty map replaces the limits
    /// that apply without it (twice the replicas, or 4 pods).
    Behavior, "behavior (a map)" {
        /// Rules for scaling up.
        scale_up: ScalingRules,
        /// Rules for scaling down.
        scale_down: ScalingRules,
    }

    /// The rules of one direction.
    ScalingRules, "rules (a map)" {
        /// The stabilization window. Default: 0 for scaling up; for scaling down the controller's
        /// flag `horizontal-pod-autoscaler-downscale-stabilization`.
        #[schemars(range(min = 0, max = 3600))]
        stabilization_window_seconds: i32,
        /// The policy that applies. Default Max.
        select_policy: SelectPolicy,
        /// Limits on the change within a period. A list replaces all default policies.
        policies: Vec<Policy>,
        /// How far the ratio may be from 1 without an effect, in place of the controller's flag.
        #[serde(with = "As::<Option<QuantityText>>")]
        tolerance: String,
    }

    /// A limit on change within a period.
    #[schemars(extend("required" = ["type", "value", "periodSeconds"]))]
    Policy, "a policy (a map)" {
        /// Pods or percent.
        #[serde(rename = "type")]
        type_: ScalingPolicyType,
        /// The number of pods, or the percentage.
        #[schemars(range(min = 1))]
        value: i32,
        /// The period in seconds.
        #[schemars(range(min = 1, max = 1800))]
        period_seconds: i32,
    }

    /// A JSON merge patch on the stored HPA: `null` removes a field.
    Patch, "a patch (a map)" {
        /// Labels and annotations.
        metadata: Metadata,
        /// Fields of the spec that change; a list replaces the whole list.
        spec: Spec,
    }

    /// A HorizontalPodAutoscaler of version `autoscaling/v1`.
    #[schemars(extend("required" = ["apiVersion", "kind", "metadata", "spec"]))]
    ManifestV1, "a HorizontalPodAutoscaler manifest (a map)" {
        /// `autoscaling/v1`.
        #[schemars(extend("const" = "autoscaling/v1"))]
        api_version: String,
        /// `HorizontalPodAutoscaler`.
        #[schemars(extend("const" = "HorizontalPodAutoscaler"))]
        kind: String,
        /// The object's metadata.
        #[schemars(extend("required" = ["name"]))]
        metadata: Metadata,
        /// The desired behavior.
        #[schemars(extend("required" = ["scaleTargetRef", "maxReplicas"]))]
        spec: SpecV1,
        /// Ignored by the API server on creation.
        status: Value,
    }

    /// The desired behavior of the autoscaler, in version v1. Other fields are in the annotations
    /// `autoscaling.alpha.kubernetes.io/metrics` and `autoscaling.alpha.kubernetes.io/behavior`.
    SpecV1, "a spec (a map)" {
        /// The object that is scaled.
        scale_target_ref: Reference,
        /// The lower limit. The API server's default is 1.
        #[schemars(range(min = 0))]
        min_replicas: i32,
        /// The upper limit.
        #[schemars(range(min = 1))]
        max_replicas: i32,
        /// The target of cpu in percent of the requests. Default: 80, unless there are other
        /// metrics.
        #[serde(rename = "targetCPUUtilizationPercentage")]
        target_cpu_utilization_percentage: i32,
    }

    /// A HorizontalPodAutoscaler of version `autoscaling/v2beta1`, which no server serves any more:
    /// it is converted to v2.
    #[schemars(extend("required" = ["apiVersion", "kind", "metadata", "spec"]))]
    ManifestV2beta1, "a HorizontalPodAutoscaler manifest (a map)" {
        /// `autoscaling/v2beta1`.
        #[schemars(extend("const" = "autoscaling/v2beta1"))]
        api_version: String,
        /// `HorizontalPodAutoscaler`.
        #[schemars(extend("const" = "HorizontalPodAutoscaler"))]
        kind: String,
        /// The object's metadata.
        #[schemars(extend("required" = ["name"]))]
        metadata: Metadata,
        /// The desired behavior.
        #[schemars(extend("required" = ["scaleTargetRef", "maxReplicas"]))]
        spec: SpecV2beta1,
        /// Ignored by the API server on creation.
        status: Value,
    }

    /// The desired behavior of the autoscaler, in version v2beta1.
    SpecV2beta1, "a spec (a map)" {
        /// The object that is scaled.
        scale_target_ref: Reference,
        /// The lower limit. The API server's default is 1.
        #[schemars(range(min = 0))]
        min_replicas: i32,
        /// The upper limit.
        #[schemars(range(min = 1))]
        max_replicas: i32,
        /// The metrics: the largest proposal applies. Default: cpu at 80% of the request.
        metrics: Vec<MetricV2beta1>,
    }

    /// One metric: `type`, and the field of that type.
    MetricV2beta1, "a metric (a map)" {
        /// The kind of the metric.
        #[serde(rename = "type")]
        type_: MetricSourceType,
        /// For type Resource: cpu or memory, summed over the containers of each pod.
        resource: ResourceV2beta1,
        /// For type ContainerResource: cpu or memory of one container of each pod.
        container_resource: ContainerResourceV2beta1,
        /// For type Pods: a custom metric, averaged over the pods.
        pods: PodsV2beta1,
        /// For type Object: a custom metric of another object.
        object: ObjectV2beta1,
        /// For type External: a metric from outside the cluster, summed over its series.
        external: ExternalV2beta1,
    }

    /// A resource metric and its target.
    ResourceV2beta1, "a resource metric" {
        /// `cpu` or `memory`.
        name: String,
        /// Percent of the request, averaged over the pods.
        target_average_utilization: i32,
        /// An average over the pods.
        #[serde(with = "As::<Option<QuantityText>>")]
        target_average_value: String,
    }

    /// A resource metric of one container, and its target.
    ContainerResourceV2beta1, "a resource metric of a container" {
        /// `cpu` or `memory`.
        name: String,
        /// The container's name.
        container: String,
        /// Percent of the request, averaged over the pods.
        target_average_utilization: i32,
        /// An average over the pods.
        #[serde(with = "As::<Option<QuantityText>>")]
        target_average_value: String,
    }

    /// A custom metric of the pods, and its target.
    PodsV2beta1, "a metric of pods" {
        /// The metric's name.
        metric_name: String,
        /// An average over the pods.
        #[serde(with = "As::<Option<QuantityText>>")]
        target_average_value: String,
        /// The series, by their labels. Default: all.
        selector: LabelSelector,
    }

    /// A custom metric of another object, and its target.
    ObjectV2beta1, "a metric of an object" {
        /// The object, in the HPA's namespace.
        target: DescribedObjectReference,
        /// The metric's name.
        metric_name: String,
        /// A total.
        #[serde(with = "As::<Option<QuantityText>>")]
        target_value: String,
        /// The series, by their labels. Default: all.
        selector: LabelSelector,
        /// An average over the pods, in place of the total.
        #[serde(with = "As::<Option<QuantityText>>")]
        average_value: String,
    }

    /// A metric from outside the cluster, and its target.
    ExternalV2beta1, "an external metric" {
        /// The metric's name.
        metric_name: String,
        /// The series, by their labels. Default: all.
        metric_selector: LabelSelector,
        /// A total.
        #[serde(with = "As::<Option<QuantityText>>")]
        target_value: String,
        /// An average over the pods.
        #[serde(with = "As::<Option<QuantityText>>")]
        target_average_value: String,
    }
}

impl Metric {
    /// The targets of the metric, each with its field.
    pub(crate) fn targets(&self) -> impl Iterator<Item = (&'static str, &Target)> {
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

/// The relation of a label's value to the listed values.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
pub(super) enum SelectorOperator {
    /// The value is in the list.
    In,
    /// The value is not in the list, or the label does not exist.
    NotIn,
    /// The label exists.
    Exists,
    /// The label does not exist.
    DoesNotExist,
}

/// A HorizontalPodAutoscaler of any version.
#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only its schema is used: versions are told apart before decoding")]
pub(crate) enum AnyVersion {
    Present(Manifest),
    V1(ManifestV1),
    V2beta1(ManifestV2beta1),
}

impl MetricV2beta1 {
    /// The quantities of the metric, each with the fields that lead to it.
    pub(crate) fn quantities(&self) -> impl Iterator<Item = (&'static str, &'static str, &str)> {
        let MetricV2beta1 { resource, container_resource, pods, object, external, .. } = self;
        let (resource, container) = (resource.as_ref(), container_resource.as_ref());
        let (pods, object, external) = (pods.as_ref(), object.as_ref(), external.as_ref());
        let average = "targetAverageValue";
        let all = [
            ("resource", average, resource.map(|source| &source.target_average_value)),
            ("containerResource", average, container.map(|source| &source.target_average_value)),
            ("pods", average, pods.map(|source| &source.target_average_value)),
            ("object", "targetValue", object.map(|source| &source.target_value)),
            ("object", "averageValue", object.map(|source| &source.average_value)),
            ("external", "targetValue", external.map(|source| &source.target_value)),
            ("external", average, external.map(|source| &source.target_average_value)),
        ];
        let given = all
            .into_iter()
            .filter_map(|(source, field, text)| Some((source, field, text?.as_ref()?)));
        given.map(|(source, field, text)| (source, field, text.as_str()))
    }
}

macro_rules! into_present {
    ($($older:ident)*) => {$(
        /// Keeps the fields that all versions share.
        impl From<$older> for Manifest {
            fn from(older: $older) -> Manifest {
                let $older { api_version, kind, metadata, spec, status } = older;
                let spec = spec.map(|spec| Spec {
                    scale_target_ref: spec.scale_target_ref,
                    min_replicas: spec.min_replicas,
                    max_replicas: spec.max_replicas,
                    ..Spec::default()
                });
                Manifest { file: None, api_version, kind, metadata, spec, status }
            }
        }
    )*};
}

into_present!(ManifestV1 ManifestV2beta1);
