//! The events of a scenario of the recommender and their actions: types, form in scenario files,
//! and static properties.
//!
//! A new action is a variant of [`VpaAction`], with an arm in [`VpaAction::can_end`] if it lasts.
//! Apart from this file, only the world and the timeline of reports handle it.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use schemars::JsonSchema;
use serde::de::{Deserializer, MapAccess};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::raw::CheckpointManifest;
use crate::action::{ContainerOfPods, Empty, ResourceOfPods};
use crate::entries::read_object;
use crate::event;
use crate::event::EventForm;
use crate::podset::PodSet;
use crate::text::{Amount, As, ByName, Duration, Instant, PositiveDuration};
use kube_autoscaler_models::api::Requests;
use kube_autoscaler_models::is_default::is_default;
use kube_autoscaler_models::quantity::Quantity;
use kube_autoscaler_models::time::{Span, Time};
use kube_autoscaler_models::vpa::ClusterChange;

/// An event: `at`, optionally `for`, and exactly one action.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
pub struct VpaTimelineEvent {
    /// The time since the start.
    #[serde(with = "As::<Instant>")]
    pub at: Time,
    /// The duration of a problem with metrics or the target. Default: until the end of the
    /// scenario.
    #[serde(
        rename = "for",
        default,
        with = "As::<Option<PositiveDuration>>",
        skip_serializing_if = "Option::is_none"
    )]
    pub lasts: Option<Span>,
    /// The name of the VPA that is edited, deleted or created. Required if there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vpa: Option<Arc<str>>,
    /// The action.
    #[serde(flatten)]
    #[schemars(skip)]
    pub action: VpaAction,
    /// The change of an object that the action makes: of a VPA or a checkpoint. `None` for other
    /// actions, and before the event is resolved.
    #[serde(skip)]
    pub change: Option<ClusterChange>,
    /// Line in the file, from 1.
    #[serde(skip)]
    pub line: usize,
}

/// The action of an event of the recommender's timeline.
///
/// Some actions of [`Action`](crate::resolved::Action) have the same names here, but
/// different effects: without an HPA, pods that have ended are not replaced, and problems with
/// metrics also apply to pods that are created later. In a scenario with an HPA,
/// [`Action`](crate::resolved::Action) is used for every action that it contains.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum VpaAction {
    /// A container of pods is killed, because it uses more memory than its limit.
    #[schemars(extend("for" = false))]
    OomKill(OomKillOfPods),
    /// The kubelet evicts pods because the node has no memory left. The pods stay; `podsDeleted`
    /// removes them.
    #[schemars(extend("for" = false))]
    Evict(PodEviction),
    /// The workload is scaled: new pods are created, or the newest pods are deleted.
    #[schemars(extend("for" = false))]
    Scale(u32),
    /// Pods are deleted and replaced.
    #[schemars(extend("for" = false))]
    PodsDeleted(PodSet),
    /// Pods change to phase Succeeded and have no more usage. They are not replaced.
    #[schemars(extend("for" = false))]
    PodsSucceeded(PodSet),
    /// Pods change to phase Failed and have no more usage. They are not replaced.
    #[schemars(extend("for" = false))]
    PodsFailed(PodSet),
    /// The labels of pods change.
    #[schemars(extend("for" = false))]
    Relabel(Relabel),
    /// Pods have other init containers, or other requests in their status.
    #[schemars(extend("for" = false))]
    EditPods(PodsEdit),
    /// Pods have no entry in metrics.k8s.io.
    MetricsMissing(PodSet),
    /// The samples of pods keep their values and timestamps.
    MetricsStale(PodSet),
    /// The samples of pods are older than usual.
    MetricsLate(LateMetrics),
    /// Queries of metrics.k8s.io fail with this error.
    MetricsError(String),
    /// One container of pods has no usage.
    ContainerMetricsMissing(ContainerOfPods),
    /// One resource of pods has no usage.
    ResourceMissing(ResourceOfPods),
    /// The workload itself is deleted; its pods stay.
    TargetDeleted(Empty),
    /// The VPA is edited by a JSON merge patch, for example `{spec: {recommenders: [{name: a}]}}`.
    #[schemars(extend("for" = false))]
    EditVpa(
        #[serde(deserialize_with = "patch")]
        #[schemars(with = "BTreeMap<String, Value>")]
        Value,
    ),
    /// The VPA is deleted.
    #[schemars(extend("for" = false))]
    DeleteVpa(Empty),
    /// The VPA is created from the scenario's manifest: again, or for the first time if it is
    /// deleted at the start.
    #[schemars(extend("for" = false))]
    CreateVpa(Empty),
    /// A checkpoint is created or replaced.
    #[schemars(extend("for" = false))]
    SetCheckpoint(CheckpointManifest),
    /// The checkpoint with this name is deleted.
    #[schemars(extend("for" = false))]
    DeleteCheckpoint(Arc<str>),
    /// The recommender is restarted: it reads its checkpoints, or the history.
    #[schemars(extend("for" = false))]
    RestartRecommender(Empty),
}

impl VpaAction {
    /// The name of the action's field in a scenario file.
    #[must_use]
    pub fn name(&self) -> String {
        event::variant(self)
    }

    /// The pods that the action changes at its time. None for other actions, and for problems with
    /// metrics, which concern later pods as well.
    #[must_use]
    pub fn changed_pods(&self) -> Option<&PodSet> {
        match self {
            VpaAction::OomKill(kill) => Some(&kill.pods),
            VpaAction::Evict(eviction) => Some(&eviction.pods),
            VpaAction::Relabel(relabel) => Some(&relabel.pods),
            VpaAction::EditPods(edit) => Some(&edit.pods),
            VpaAction::PodsDeleted(set)
            | VpaAction::PodsSucceeded(set)
            | VpaAction::PodsFailed(set) => Some(set),
            _ => None,
        }
    }

    /// Returns true if the action lasts for some time, false if it is instantaneous.
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
                | VpaAction::TargetDeleted(_)
        )
    }

    /// Returns true if the action applies to one VPA.
    #[must_use]
    pub fn is_of_vpa(&self) -> bool {
        matches!(self, VpaAction::EditVpa(_) | VpaAction::DeleteVpa(_) | VpaAction::CreateVpa(_))
    }
}

impl VpaTimelineEvent {
    /// An event without a duration.
    #[must_use]
    pub fn new(at: Time, action: VpaAction) -> VpaTimelineEvent {
        VpaTimelineEvent { at, lasts: None, vpa: None, action, change: None, line: 0 }
    }

    /// Returns true if an action with a duration is in effect.
    #[must_use]
    pub fn is_active(&self, at: Time) -> bool {
        self.at <= at && self.lasts.is_none_or(|lasts| at < self.at + lasts)
    }
}

impl EventForm for VpaTimelineEvent {
    type Action = VpaAction;
    const EXPECTED: &'static str = "an event (a map)";

    fn fields() -> &'static [&'static str] {
        static FIELDS: LazyLock<Vec<&str>> = LazyLock::new(|| {
            ["at", "for", "vpa"].iter().chain(event::variants::<VpaAction>()).copied().collect()
        });
        &FIELDS
    }

    fn placeholder() -> VpaTimelineEvent {
        VpaTimelineEvent::new(Time::ZERO, VpaAction::RestartRecommender(Empty {}))
    }

    fn at(&mut self) -> &mut Time {
        &mut self.at
    }

    fn lasts(&mut self) -> &mut Option<Span> {
        &mut self.lasts
    }

    fn action(&mut self) -> &mut VpaAction {
        &mut self.action
    }

    fn read_field<'de, A: MapAccess<'de>>(&mut self, _: &str, map: &mut A) -> Result<(), A::Error> {
        self.vpa = map.next_value()?;
        Ok(())
    }

    fn add_action() -> String {
        format!("add one of {}", event::variants::<VpaAction>().join(", "))
    }
}

impl<'de> Deserialize<'de> for VpaTimelineEvent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<VpaTimelineEvent, D::Error> {
        event::read(deserializer)
    }
}

fn patch<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
    let expected = "a patch of the VPA, for example {metadata: {annotations: {a: b}}}";
    read_object(deserializer, expected)
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
    /// The state of the container in the update of the pod. Default: `restarted`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub shown: OomSeen,
    /// How long before the update the container was killed. Default 0s.
    #[serde(default, with = "As::<Duration>", skip_serializing_if = "is_default")]
    pub age: Span,
}

/// The state of a container in the update of its pod after an OOM kill.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum OomSeen {
    /// The container runs again, with one more restart.
    #[default]
    Restarted,
    /// The container is terminated.
    Terminated,
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

/// A change of pods that is not one of their labels.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[serde(expecting = "a change of pods, for example {pods: 0, memoryInStatus: {app: 4Gi}}")]
#[schemars(extend("minProperties" = 2))]
pub struct PodsEdit {
    /// The pods.
    pub pods: PodSet,
    /// The names of all init containers from now on, instead of those of the workload: a pod was
    /// replaced between two runs by one with the same name and another template. A container of the
    /// workload with one of these names is not an ordinary container of the pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub init_containers: Option<Vec<Arc<str>>>,
    /// The memory requests of containers in the status of the pods, which differ from those of
    /// their specification while the pods are resized.
    #[serde(default, with = "As::<ByName<Amount>>", skip_serializing_if = "Requests::is_empty")]
    pub memory_in_status: Requests,
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
