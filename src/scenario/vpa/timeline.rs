//! The events of a scenario of the recommender.

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::raw::AnyObject;
use crate::model::quantity::Quantity;
use crate::model::time::{Span, Time};
use crate::model::vpa::{Checkpoint, ObjectName, VerticalPodAutoscaler};
use crate::scenario::action::{ContainerOfPods, Empty, ResourceOfPods};
use crate::scenario::entries::Entries;
use crate::scenario::podset::PodSet;
use crate::scenario::text::{Amount, As, Duration, Instant, PositiveDuration};

/// An event: `at`, optionally `for`, and exactly one action.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, expecting = "an event (a map)")]
pub(in crate::scenario) struct VpaTimelineEvent {
    /// The time since the start.
    #[serde(with = "As::<Instant>")]
    pub(in crate::scenario) at: Time,
    /// The duration of a problem with metrics or the target. Default: until the end of the
    /// scenario.
    #[serde(
        rename = "for",
        default,
        with = "As::<Option<PositiveDuration>>",
        skip_serializing_if = "Option::is_none"
    )]
    pub(in crate::scenario) lasts: Option<Span>,
    /// The name of the VPA that is edited, deleted or created. Required if there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::scenario) vpa: Option<Arc<str>>,
    /// A container of pods is killed, because it uses more memory than its limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::scenario) oom_kill: Option<OomKillOfPods>,
    /// The kubelet evicts pods because the node has no memory left. The pods stay; `podsDeleted`
    /// removes them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::scenario) evict: Option<PodEviction>,
    /// The workload is scaled: new pods are created, or the newest pods are deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::scenario) scale: Option<u32>,
    /// Pods are deleted and replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::scenario) pods_deleted: Option<PodSet>,
    /// Pods change to phase Succeeded and have no more usage. They are not replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::scenario) pods_succeeded: Option<PodSet>,
    /// Pods change to phase Failed and have no more usage. They are not replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::scenario) pods_failed: Option<PodSet>,
    /// The labels of pods change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::scenario) relabel: Option<Relabel>,
    /// Pods have no entry in metrics.k8s.io.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::scenario) metrics_missing: Option<PodSet>,
    /// The samples of pods keep their values and timestamps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::scenario) metrics_stale: Option<PodSet>,
    /// The samples of pods are older than usual.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::scenario) metrics_late: Option<LateMetrics>,
    /// Queries of metrics.k8s.io fail with this error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::scenario) metrics_error: Option<String>,
    /// One container of pods has no usage.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::scenario) container_metrics_missing: Option<ContainerOfPods>,
    /// One resource of pods has no usage.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::scenario) resource_missing: Option<ResourceOfPods>,
    /// The workload itself is deleted; its pods stay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::scenario) target_deleted: Option<Empty>,
    /// The VPA is edited by a JSON merge patch, for example `{spec: {recommenders: [{name: a}]}}`.
    #[serde(default, deserialize_with = "patch", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<BTreeMap<String, Value>>")]
    pub(in crate::scenario) edit_vpa: Option<Value>,
    /// The VPA is deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::scenario) delete_vpa: Option<Empty>,
    /// The VPA is created from the scenario's manifest: again, or for the first time if it is
    /// deleted at the start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::scenario) create_vpa: Option<Empty>,
    /// A checkpoint is created or replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::scenario) set_checkpoint: Option<AnyObject>,
    /// The checkpoint with this name is deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::scenario) delete_checkpoint: Option<Arc<str>>,
    /// The recommender is restarted: it reads its checkpoints, or the history.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::scenario) restart_recommender: Option<Empty>,
}

/// The names of the actions.
pub(in crate::scenario) const ACTIONS: [&str; 20] = [
    "oomKill",
    "evict",
    "scale",
    "podsDeleted",
    "podsSucceeded",
    "podsFailed",
    "relabel",
    "metricsMissing",
    "metricsStale",
    "metricsLate",
    "metricsError",
    "containerMetricsMissing",
    "resourceMissing",
    "targetDeleted",
    "editVpa",
    "deleteVpa",
    "createVpa",
    "setCheckpoint",
    "deleteCheckpoint",
    "restartRecommender",
];

fn patch<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    let expected = "a patch of the VPA, for example {metadata: {annotations: {a: b}}}";
    let fields = Entries::<Value>::read(deserializer, expected)?;
    let fields = fields.0.into_iter().map(|(name, value)| (name.to_string(), value));
    Ok(Some(Value::Object(fields.collect())))
}

/// An OOM kill of a container.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[serde(expecting = "an OOM kill, for example {pods: 0, container: app}")]
pub struct OomKillOfPods {
    /// The pods.
    pub pods: PodSet,
    /// The container's name. Default: the only one of the workload.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container: Option<Arc<str>>,
    /// What the update of the pod shows. Default: `restarted`.
    #[serde(default, skip_serializing_if = "OomSeen::is_default")]
    pub shown: OomSeen,
    /// How long before the update the container was killed. Default 0s.
    #[serde(default, with = "As::<Duration>", skip_serializing_if = "is_zero")]
    pub age: Span,
}

fn is_zero(span: &Span) -> bool {
    *span == Span::ZERO
}

/// What the update of a pod shows after an OOM kill.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum OomSeen {
    /// The container runs again, with one more restart.
    #[default]
    Restarted,
    /// The container is terminated.
    Terminated,
}

impl OomSeen {
    fn is_default(&self) -> bool {
        *self == OomSeen::default()
    }
}

/// An eviction because of memory.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "an eviction, for example {pods: 0, container: app, usage: 1Gi}")]
pub struct PodEviction {
    /// The pods.
    pub pods: PodSet,
    /// The container that uses more than it requests. Default: the only one of the workload.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container: Option<Arc<str>>,
    /// The memory that the container uses.
    #[serde(with = "As::<Amount>")]
    pub usage: Quantity,
}

/// A change of labels.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "{pods: …, labels: {…}}")]
pub struct Relabel {
    /// The pods.
    pub pods: PodSet,
    /// All their new labels.
    pub labels: BTreeMap<String, String>,
}

/// Samples that are older than usual.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "{pods: …, by: 5m}")]
pub struct LateMetrics {
    /// The pods.
    pub pods: PodSet,
    /// The additional age of the newest sample: of its timestamp and its usage.
    #[serde(with = "As::<PositiveDuration>")]
    pub by: Span,
}

/// An action, after its parameters are checked.
#[derive(Clone, PartialEq, Debug)]
pub enum VpaAction {
    /// A container is killed.
    OomKill(OomKillOfPods),
    /// Pods are evicted.
    Evict(PodEviction),
    /// The workload is scaled.
    Scale(u32),
    /// Pods are deleted and replaced.
    PodsDeleted(PodSet),
    /// Pods succeed.
    PodsSucceeded(PodSet),
    /// Pods fail.
    PodsFailed(PodSet),
    /// Labels change.
    Relabel(Relabel),
    /// Pods have no samples.
    MetricsMissing(PodSet),
    /// Samples do not change.
    MetricsStale(PodSet),
    /// Samples are old.
    MetricsLate(LateMetrics),
    /// The metrics API fails.
    MetricsError(String),
    /// A container has no samples.
    ContainerMetricsMissing(ContainerOfPods),
    /// A resource has no samples.
    ResourceMissing(ResourceOfPods),
    /// The target does not exist.
    TargetDeleted,
    /// A VPA is created, or replaced except for its status.
    SetVpa(Box<VerticalPodAutoscaler>),
    /// A VPA is deleted.
    DeleteVpa(ObjectName),
    /// A checkpoint is created or replaced.
    SetCheckpoint(Box<Checkpoint>),
    /// A checkpoint is deleted.
    DeleteCheckpoint(ObjectName),
    /// The recommender is restarted.
    RestartRecommender,
}

impl VpaAction {
    /// Returns true if the action ends after `for`.
    #[must_use]
    pub fn can_end(&self) -> bool {
        matches!(
            self,
            VpaAction::MetricsMissing(_)
                | VpaAction::MetricsStale(_)
                | VpaAction::MetricsLate(_)
                | VpaAction::MetricsError(_)
                | VpaAction::ContainerMetricsMissing(_)
                | VpaAction::ResourceMissing(_)
                | VpaAction::TargetDeleted
        )
    }
}
