//! Older versions of the HorizontalPodAutoscaler as typed by users: `manifest` has the present one,
//! and what they share.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::manifest::{
    DescribedObjectReference, LabelSelector, Manifest, Metadata, MetricType, Reference, Spec,
};
use super::text::{As, QuantityText};

/// A HorizontalPodAutoscaler of any version.
#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only its schema is used: versions are told apart before decoding")]
pub(super) enum AnyVersion {
    Present(Manifest),
    V1(ManifestV1),
    V2beta1(ManifestV2beta1),
}

/// A HorizontalPodAutoscaler of version `autoscaling/v1`.
#[derive(Clone, PartialEq, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[serde(expecting = "a HorizontalPodAutoscaler manifest (a map)")]
#[schemars(extend("required" = ["apiVersion", "kind", "metadata", "spec"]))]
pub(super) struct ManifestV1 {
    /// `autoscaling/v1`.
    #[schemars(extend("const" = "autoscaling/v1"))]
    pub(super) api_version: Option<String>,
    /// `HorizontalPodAutoscaler`.
    #[schemars(extend("const" = "HorizontalPodAutoscaler"))]
    pub(super) kind: Option<String>,
    /// The object's metadata.
    #[schemars(extend("required" = ["name"]))]
    pub(super) metadata: Option<Metadata>,
    /// What is wanted.
    #[schemars(extend("required" = ["scaleTargetRef", "maxReplicas"]))]
    pub(super) spec: Option<SpecV1>,
    /// Ignored by the API server on creation.
    pub(super) status: Option<Value>,
}

/// What is wanted of the autoscaler, in version v1. What it can't say stands in the annotations
/// `autoscaling.alpha.kubernetes.io/metrics` and `autoscaling.alpha.kubernetes.io/behavior`.
#[derive(Clone, PartialEq, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default, expecting = "a spec (a map)")]
pub(super) struct SpecV1 {
    /// The object that is scaled.
    pub(super) scale_target_ref: Option<Reference>,
    /// The lower limit. The API server's default is 1.
    #[schemars(range(min = 0))]
    pub(super) min_replicas: Option<i32>,
    /// The upper limit.
    #[schemars(range(min = 1))]
    pub(super) max_replicas: Option<i32>,
    /// The target of cpu in percent of the requests. Default: 80, unless there are other metrics.
    #[serde(rename = "targetCPUUtilizationPercentage")]
    pub(super) target_cpu_utilization_percentage: Option<i32>,
}

/// A HorizontalPodAutoscaler of version `autoscaling/v2beta1`, which no server serves any more: it
/// is converted to v2.
#[derive(Clone, PartialEq, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[serde(expecting = "a HorizontalPodAutoscaler manifest (a map)")]
#[schemars(extend("required" = ["apiVersion", "kind", "metadata", "spec"]))]
pub(super) struct ManifestV2beta1 {
    /// `autoscaling/v2beta1`.
    #[schemars(extend("const" = "autoscaling/v2beta1"))]
    pub(super) api_version: Option<String>,
    /// `HorizontalPodAutoscaler`.
    #[schemars(extend("const" = "HorizontalPodAutoscaler"))]
    pub(super) kind: Option<String>,
    /// The object's metadata.
    #[schemars(extend("required" = ["name"]))]
    pub(super) metadata: Option<Metadata>,
    /// What is wanted.
    #[schemars(extend("required" = ["scaleTargetRef", "maxReplicas"]))]
    pub(super) spec: Option<SpecV2beta1>,
    /// Ignored by the API server on creation.
    pub(super) status: Option<Value>,
}

/// What is wanted of the autoscaler, in version v2beta1.
#[derive(Clone, PartialEq, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default, expecting = "a spec (a map)")]
pub(super) struct SpecV2beta1 {
    /// The object that is scaled.
    pub(super) scale_target_ref: Option<Reference>,
    /// The lower limit. The API server's default is 1.
    #[schemars(range(min = 0))]
    pub(super) min_replicas: Option<i32>,
    /// The upper limit.
    #[schemars(range(min = 1))]
    pub(super) max_replicas: Option<i32>,
    /// The metrics: the largest of their proposals wins. Default: cpu at 80 % of the request.
    pub(super) metrics: Option<Vec<MetricV2beta1>>,
}

/// One metric: `type`, and the field that it names.
#[derive(Clone, PartialEq, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default, expecting = "a metric (a map)")]
pub(super) struct MetricV2beta1 {
    /// The kind of the metric.
    #[serde(rename = "type")]
    pub(super) type_: Option<MetricType>,
    /// For type Resource: cpu or memory, summed over the containers of each pod.
    pub(super) resource: Option<ResourceV2beta1>,
    /// For type ContainerResource: cpu or memory of one container of each pod.
    pub(super) container_resource: Option<ContainerResourceV2beta1>,
    /// For type Pods: a custom metric, averaged over the pods.
    pub(super) pods: Option<PodsV2beta1>,
    /// For type Object: a custom metric of another object.
    pub(super) object: Option<ObjectV2beta1>,
    /// For type External: a metric from outside of the cluster, summed over its series.
    pub(super) external: Option<ExternalV2beta1>,
}

/// A resource metric and its target.
#[derive(Clone, PartialEq, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default, expecting = "a resource metric")]
pub(super) struct ResourceV2beta1 {
    /// `cpu` or `memory`.
    pub(super) name: Option<String>,
    /// Percent of the request, averaged over the pods.
    pub(super) target_average_utilization: Option<i32>,
    /// An average over the pods.
    #[serde(with = "As::<Option<QuantityText>>")]
    pub(super) target_average_value: Option<String>,
}

/// A resource metric of one container, and its target.
#[derive(Clone, PartialEq, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[serde(expecting = "a resource metric of a container")]
pub(super) struct ContainerResourceV2beta1 {
    /// `cpu` or `memory`.
    pub(super) name: Option<String>,
    /// The container's name.
    pub(super) container: Option<String>,
    /// Percent of the request, averaged over the pods.
    pub(super) target_average_utilization: Option<i32>,
    /// An average over the pods.
    #[serde(with = "As::<Option<QuantityText>>")]
    pub(super) target_average_value: Option<String>,
}

/// A custom metric of the pods, and its target.
#[derive(Clone, PartialEq, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default, expecting = "a metric of pods")]
pub(super) struct PodsV2beta1 {
    /// The metric's name.
    pub(super) metric_name: Option<String>,
    /// An average over the pods.
    #[serde(with = "As::<Option<QuantityText>>")]
    pub(super) target_average_value: Option<String>,
    /// Which of its series, by their labels. Default: all.
    pub(super) selector: Option<LabelSelector>,
}

/// A custom metric of another object, and its target.
#[derive(Clone, PartialEq, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[serde(expecting = "a metric of an object")]
pub(super) struct ObjectV2beta1 {
    /// The object, in the HPA's namespace.
    pub(super) target: Option<DescribedObjectReference>,
    /// The metric's name.
    pub(super) metric_name: Option<String>,
    /// A total.
    #[serde(with = "As::<Option<QuantityText>>")]
    pub(super) target_value: Option<String>,
    /// Which of its series, by their labels. Default: all.
    pub(super) selector: Option<LabelSelector>,
    /// An average over the pods, in place of the total.
    #[serde(with = "As::<Option<QuantityText>>")]
    pub(super) average_value: Option<String>,
}

/// A metric from outside of the cluster, and its target.
#[derive(Clone, PartialEq, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default, expecting = "an external metric")]
pub(super) struct ExternalV2beta1 {
    /// The metric's name.
    pub(super) metric_name: Option<String>,
    /// Which of its series, by their labels. Default: all.
    pub(super) metric_selector: Option<LabelSelector>,
    /// A total.
    #[serde(with = "As::<Option<QuantityText>>")]
    pub(super) target_value: Option<String>,
    /// An average over the pods.
    #[serde(with = "As::<Option<QuantityText>>")]
    pub(super) target_average_value: Option<String>,
}

impl MetricV2beta1 {
    /// The quantities that are given, each with the fields that lead to it.
    pub(super) fn quantities(&self) -> impl Iterator<Item = (&'static str, &'static str, &str)> {
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

/// Fields that all versions share.
impl From<ManifestV1> for Manifest {
    fn from(typed: ManifestV1) -> Manifest {
        let ManifestV1 { api_version, kind, metadata, spec, status } = typed;
        let spec = spec.map(|spec| Spec {
            scale_target_ref: spec.scale_target_ref,
            min_replicas: spec.min_replicas,
            max_replicas: spec.max_replicas,
            ..Spec::default()
        });
        Manifest { file: None, api_version, kind, metadata, spec, status }
    }
}

/// Fields that all versions share.
impl From<ManifestV2beta1> for Manifest {
    fn from(typed: ManifestV2beta1) -> Manifest {
        let ManifestV2beta1 { api_version, kind, metadata, spec, status } = typed;
        let spec = spec.map(|spec| Spec {
            scale_target_ref: spec.scale_target_ref,
            min_replicas: spec.min_replicas,
            max_replicas: spec.max_replicas,
            ..Spec::default()
        });
        Manifest { file: None, api_version, kind, metadata, spec, status }
    }
}
