//! Changes to the cluster between reconciles, as plain data. All engines receive the same changes.
//!
//! The JSON form of these types is the `apply` list of the engine protocol (`docs/protocol.md`).

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use kube_autoscaler_models::api::{
    ApiError, ContainerMetrics, PodPhase, PodReady, PodSpec, Series,
};
use kube_autoscaler_models::quantity::Quantity;
use kube_autoscaler_models::shared::Shared;
use kube_autoscaler_models::time::{Span, Time};
use kube_lockstep_scenario::resolved::{ObjectEdit, ObjectRef};

/// One change to the cluster.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Change {
    /// The HPA is created. The manifest is the user's, unchanged (as JSON).
    CreateHpa(serde_json::Value),
    /// The HPA is edited by a JSON merge patch.
    PatchHpa {
        /// The HPA's name.
        name: Arc<str>,
        /// The patch.
        patch: serde_json::Value,
    },
    /// The HPA is deleted.
    DeleteHpa {
        /// The HPA's name.
        name: Arc<str>,
    },
    /// The scale subresource of a target changes or appears: by a user, or because the workload's
    /// controller created or deleted pods.
    SetScale(ScaleTarget),
    /// A target and its scale are deleted.
    DeleteScale {
        /// The resource with its group.
        resource: Arc<str>,
        /// The object's name.
        name: Arc<str>,
    },
    /// A pod template for subsequent pods.
    PodTemplate {
        /// The name by which pods refer to it.
        name: Arc<str>,
        /// Labels of the pods.
        labels: BTreeMap<String, String>,
        /// Containers and their requests.
        spec: PodSpec,
    },
    /// Pods that are created or changed.
    SetPods(Vec<PodState>),
    /// Pods that no longer exist.
    DeletePods(Vec<Arc<str>>),
    /// The responses of metrics.k8s.io from now on.
    PodMetrics(PodMetricsChange),
    /// The responses of custom.metrics.k8s.io from now on for one metric of pods. Replaces the
    /// previous ones.
    PodsMetric(PodsMetricChange),
    /// The responses of custom.metrics.k8s.io from now on for one metric of one object. Replaces
    /// the previous ones.
    ObjectMetric(ObjectMetricChange),
    /// The responses of external.metrics.k8s.io from now on for one metric. Replaces the previous
    /// ones.
    ExternalMetric(ExternalMetricChange),
    /// The requests that fail from now on. Replaces the previous ones.
    Faults(Faults),
    /// An object of any kind is created or changed as by `kubectl apply`: the manifest, as JSON.
    ApplyObject(serde_json::Value),
    /// An object of any kind is edited by a JSON merge patch.
    PatchObject(ObjectEdit),
    /// An object of any kind is deleted.
    DeleteObject(ObjectRef),
    /// The controller is replaced by a new one without any memory.
    RestartController,
    /// A change of a scale, of pods or of metrics in another namespace than that of the HPAs.
    InNamespace {
        /// The namespace.
        namespace: Arc<str>,
        /// The change.
        change: Box<Change>,
    },
}

impl Change {
    /// Returns true for changes of a target's replicas or of pods, which a cluster makes one after
    /// another. It makes all other changes immediately.
    #[must_use]
    pub fn changes_workload(&self) -> bool {
        matches!(self, Change::SetScale(_) | Change::SetPods(_) | Change::DeletePods(_))
    }

    /// Returns true for requests about an HPA, which the API server answers.
    #[must_use]
    pub fn is_hpa_request(&self) -> bool {
        matches!(self, Change::CreateHpa(_) | Change::PatchHpa { .. } | Change::DeleteHpa { .. })
    }

    /// Returns true for requests about an HPA or another object, which the API server answers.
    #[must_use]
    pub fn is_request(&self) -> bool {
        let is_of_object = matches!(
            self,
            Change::ApplyObject(_) | Change::PatchObject(_) | Change::DeleteObject(_)
        );
        is_of_object || self.is_hpa_request()
    }

    /// The name of the HPA that is created, edited or deleted.
    #[must_use]
    pub fn hpa_name(&self) -> Option<&str> {
        match self {
            Change::CreateHpa(manifest) => manifest["metadata"]["name"].as_str(),
            Change::PatchHpa { name, .. } | Change::DeleteHpa { name } => Some(name),
            _ => None,
        }
    }
}

/// The scale subresource of a target changes or appears: by a user, or because the workload's
/// controller created or deleted pods.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScaleTarget {
    /// The resource with its group: `deployments.apps`, `replicationcontrollers`.
    pub resource: Arc<str>,
    /// The object's name.
    pub name: Arc<str>,
    /// `spec.replicas`. Absent: unchanged (the controller may have just written it).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// `status.replicas`.
    pub status_replicas: i32,
    /// `status.selector`.
    pub selector: Arc<str>,
}

/// The new state of a pod.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodState {
    /// `metadata.name`.
    pub name: Arc<str>,
    /// The template that the pod was created from.
    pub template: Arc<str>,
    /// `status.phase`.
    pub phase: PodPhase,
    /// `status.startTime`, in nanoseconds since t=0 (whole seconds).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Time>,
    /// The condition `Ready`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready: Option<PodReady>,
    /// `metadata.deletionTimestamp`, in nanoseconds since t=0 (whole seconds).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion_timestamp: Option<Time>,
}

/// A change of the responses of metrics.k8s.io. Absent fields stay the same.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodMetricsChange {
    /// The timestamp of every sample without its own timestamp, in nanoseconds since t=0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<Time>,
    /// The window of every sample, in nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<Span>,
    /// Samples that are added or changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "one_by_one")]
    #[schemars(with = "Vec<Sample>")]
    pub set: Vec<Samples>,
    /// Pods whose samples disappear.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub delete: Vec<Arc<str>>,
}

impl PodMetricsChange {
    /// Adds the sample of a pod to those that are added or changed.
    pub fn add(
        &mut self,
        pod: Arc<str>,
        template: &Arc<str>,
        timestamp: Option<Time>,
        containers: &Arc<[ContainerMetrics]>,
    ) {
        let is_same = |last: &&mut Samples| {
            last.timestamp == timestamp
                && last.template == *template
                && (Arc::ptr_eq(&last.containers, containers) || last.containers == *containers)
        };
        match self.set.last_mut().filter(is_same) {
            Some(last) => last.pods.push(pod),
            None => {
                // Usually, the other pods of the workload follow.
                let mut pods = Vec::with_capacity(16);
                pods.push(pod);
                self.set.push(Samples {
                    pods: Shared::new(pods),
                    template: template.clone(),
                    timestamp,
                    containers: containers.clone(),
                });
            }
        }
    }
}

/// Successive samples that differ in their pods only: most pods have the same usage.
#[derive(Clone, PartialEq, Debug)]
pub struct Samples {
    /// The pods.
    pub pods: Shared<Vec<Arc<str>>>,
    /// The template whose labels the samples carry.
    pub template: Arc<str>,
    /// The samples' own timestamp, if it differs from the common one.
    pub timestamp: Option<Time>,
    /// Usage by container.
    pub containers: Arc<[ContainerMetrics]>,
}

impl Samples {
    /// The sample of each pod.
    pub fn each(&self) -> impl Iterator<Item = Sample> {
        self.pods.iter().map(|pod| Sample {
            pod: pod.clone(),
            template: self.template.clone(),
            timestamp: self.timestamp,
            containers: self.containers.clone(),
        })
    }
}

/// The JSON of samples: a list of [`Sample`]s.
mod one_by_one {
    use serde::{Deserialize, Deserializer, Serializer};

    use super::{PodMetricsChange, Sample, Samples};

    pub(super) fn serialize<S: Serializer>(set: &[Samples], to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(set.iter().flat_map(Samples::each))
    }

    pub(super) fn deserialize<'de, D>(from: D) -> Result<Vec<Samples>, D::Error>
    where
        D: Deserializer<'de>,
    {
        let mut change = PodMetricsChange::default();
        for Sample { pod, template, timestamp, containers } in Vec::deserialize(from)? {
            change.add(pod, &template, timestamp, &containers);
        }
        Ok(change.set)
    }
}

/// A sample of one pod. It has the labels of the pod's template.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Sample {
    /// The pod.
    pub pod: Arc<str>,
    /// The template whose labels the sample carries.
    pub template: Arc<str>,
    /// The sample's own timestamp, if it differs from the common one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<Time>,
    /// Usage by container.
    pub containers: Arc<[ContainerMetrics]>,
}

/// The new values of a metric of pods. Queries of unknown metrics fail with 404.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodsMetricChange {
    /// The metric's name.
    pub metric: Arc<str>,
    /// Labels of the series, by which a metric selector filters. The series of all pods have the
    /// same labels.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// The pods that have a value.
    pub values: Vec<PodValue>,
    /// An error instead of the values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ApiError>,
}

/// A pod's value of a custom metric.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodValue {
    /// The pod.
    pub pod: Arc<str>,
    /// The template whose labels the pod has.
    pub template: Arc<str>,
    /// The value.
    pub value: Quantity,
    /// The time of the measurement, in nanoseconds since t=0 (whole seconds).
    pub timestamp: Time,
    /// `windowSeconds`, in nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<Span>,
}

/// The new series of a metric of an object. Queries of unknown metrics fail with 404.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ObjectMetricChange {
    /// The metric's name.
    pub metric: Arc<str>,
    /// Kind and group of the object: `Ingress.networking.k8s.io`, `Service`.
    pub kind: Arc<str>,
    /// The object's name.
    pub name: Arc<str>,
    /// The metric's series. The controller can use exactly one.
    pub series: Vec<Series>,
    /// An error instead of the series.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ApiError>,
}

/// The new series of an external metric. Queries of unknown metrics fail with 404.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExternalMetricChange {
    /// The metric's name.
    pub metric: Arc<str>,
    /// The metric's series.
    pub series: Vec<Series>,
    /// An error instead of the series.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ApiError>,
}

/// Requests of the controller that get an error or a late response.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Faults {
    /// List of metrics.k8s.io pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub list_pod_metrics: Option<ApiError>,
    /// GET of the scale subresource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub get_scale: Option<ApiError>,
    /// PUT of the scale subresource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub update_scale: Option<ApiError>,
    /// PUT of the HPA's status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub update_status: Option<ApiError>,
    /// The duration of each query of a metrics API, in nanoseconds. Absent: the response is
    /// immediate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slow_metrics: Option<Span>,
    /// How late the controller's caches of HPAs and pods receive changes, in nanoseconds. Absent:
    /// they receive them immediately.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_lag: Option<Span>,
}
