//! The events of a scenario's timeline, and the actions that they perform.

use std::fmt;
use std::sync::Arc;

use crate::model::api::{ApiError, PodSpec};
use crate::model::time::{Span, Time};

/// A set of pods by ordinal (the order of their creation, from 0).
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PodSet {
    /// Every pod there is at that time.
    All,
    /// These ordinals: inclusive ranges, sorted.
    Ordinals(Vec<(u32, u32)>),
}

/// An entry of the timeline.
#[derive(Clone, Debug)]
pub struct TimelineEvent {
    /// When it begins.
    pub at: Time,
    /// How long it lasts, if the action can end. None: until the end of the scenario.
    pub lasts: Option<Span>,
    /// What it does.
    pub action: Action,
    /// Line in the file, from 1.
    pub line: usize,
}

/// What an entry of the timeline does.
#[derive(Clone, Debug)]
pub enum Action {
    /// Pods lose readiness (and get it back when it ends).
    PodsUnready(PodSet),
    /// Pods go to phase Failed and are replaced, as evicted ones are.
    PodsFailed(PodSet),
    /// Pods go to phase Succeeded and are replaced, as those whose containers have ended well.
    PodsSucceeded(PodSet),
    /// Pods are deleted: Terminating for the workload's termination time, then gone; replaced.
    PodsDeleted(PodSet),
    /// Pods are deleted but held (by a finalizer): Terminating until it ends; replaced.
    PodsStuckTerminating(PodSet),
    /// Pods have no entry in the metrics API.
    MetricsMissing(PodSet),
    /// One container of these pods has no usage; the pod's entry stays.
    ContainerMetricsMissing(PodSet, Arc<str>),
    /// One resource of these pods is not reported; the entry stays.
    ResourceMissing(PodSet, Arc<str>),
    /// The samples of these pods stay as they were at that time, with their timestamps. If a pod
    /// goes meanwhile, its sample stays until this ends.
    MetricsStale(PodSet),
    /// metrics.k8s.io answers with an error.
    MetricsError(ApiError),
    /// metrics.k8s.io answers with an empty list.
    MetricsEmpty,
    /// Each query of a metrics API is answered only after so long, with what there is by then.
    MetricsSlow(Span),
    /// Queries of one custom or external metric, by its name, are answered with an error.
    MetricError(Arc<str>, ApiError),
    /// Queries of one custom or external metric are answered with an empty list.
    MetricEmpty(Arc<str>),
    /// Some pods have no value of a custom metric.
    MetricMissing(Arc<str>, PodSet),
    /// GET of the scale fails.
    GetScaleError(ApiError),
    /// PUT of the scale fails.
    UpdateScaleError(ApiError),
    /// PUT of the HPA's status fails.
    UpdateStatusError(ApiError),
    /// The pod template changes.
    RollingUpdate(RollingUpdate),
    /// The workload is deleted, and its pods with it. When it ends, somebody creates it again, with
    /// the size of the start. What is done to it meanwhile comes to nothing.
    TargetDeleted,
    /// `kubectl scale` of the workload by a person.
    Scale(i32),
    /// The same of another target, by its index.
    ScaleOther(usize, i32),
    /// Somebody edits the HPA of that name: a JSON merge patch.
    EditHpa(Arc<str>, serde_json::Value),
    /// The HPA of that name is deleted.
    DeleteHpa(Arc<str>),
    /// The HPA of that name is created again from the scenario's manifest.
    CreateHpa(Arc<str>),
    /// The controller is restarted.
    RestartController,
}

impl Action {
    /// The name of the action's field in a scenario file.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Action::PodsUnready(_) => "podsUnready",
            Action::PodsStuckTerminating(_) => "podsStuckTerminating",
            Action::PodsFailed(_) => "podsFailed",
            Action::PodsSucceeded(_) => "podsSucceeded",
            Action::PodsDeleted(_) => "podsDeleted",
            Action::MetricsMissing(_) => "metricsMissing",
            Action::ContainerMetricsMissing(..) => "containerMetricsMissing",
            Action::ResourceMissing(..) => "resourceMissing",
            Action::MetricsStale(_) => "metricsStale",
            Action::MetricsError(_) => "metricsError",
            Action::MetricsEmpty => "metricsEmpty",
            Action::MetricsSlow(_) => "metricsSlow",
            Action::MetricError(..) => "metricError",
            Action::MetricEmpty(_) => "metricEmpty",
            Action::MetricMissing(..) => "metricMissing",
            Action::GetScaleError(_) => "getScaleError",
            Action::UpdateScaleError(_) => "updateScaleError",
            Action::UpdateStatusError(_) => "updateStatusError",
            Action::RollingUpdate(_) => "rollingUpdate",
            Action::TargetDeleted => "targetDeleted",
            Action::Scale(_) | Action::ScaleOther(..) => "scale",
            Action::EditHpa(..) => "editHpa",
            Action::DeleteHpa(_) => "deleteHpa",
            Action::CreateHpa(_) => "createHpa",
            Action::RestartController => "restartController",
        }
    }

    /// Returns true if the action lasts for some time, false if it happens once.
    #[must_use]
    pub fn can_end(&self) -> bool {
        match self {
            Action::PodsUnready(_)
            | Action::PodsStuckTerminating(_)
            | Action::MetricsMissing(_)
            | Action::ContainerMetricsMissing(..)
            | Action::ResourceMissing(..)
            | Action::MetricsStale(_)
            | Action::MetricError(..)
            | Action::MetricEmpty(_)
            | Action::MetricMissing(..)
            | Action::MetricsError(_)
            | Action::MetricsEmpty
            | Action::MetricsSlow(_)
            | Action::GetScaleError(_)
            | Action::UpdateScaleError(_)
            | Action::UpdateStatusError(_)
            | Action::TargetDeleted => true,
            Action::PodsFailed(_)
            | Action::PodsSucceeded(_)
            | Action::PodsDeleted(_)
            | Action::RollingUpdate(_)
            | Action::Scale(_)
            | Action::ScaleOther(..)
            | Action::EditHpa(..)
            | Action::DeleteHpa(_)
            | Action::CreateHpa(_)
            | Action::RestartController => false,
        }
    }
}

/// A rolling update: all pods are replaced by new ones, a few at a time.
#[derive(Clone, Debug)]
pub struct RollingUpdate {
    /// How many at a time. None: one, from the newest to the oldest, each when the one before it is
    /// ready, as a StatefulSet does.
    pub surge: Option<Surge>,
    /// Containers and requests of the new pods, if they are others. The names are the same.
    pub spec: Option<Arc<PodSpec>>,
}

/// How far the number of pods may be from the size during a rolling update.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Surge {
    /// More pods than the size.
    pub max_surge: Share,
    /// Fewer available pods than the size.
    pub max_unavailable: Share,
}

/// A number of pods, or a part of the size.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Share {
    /// So many pods.
    Pods(u32),
    /// So many percent of the size.
    Percent(u32),
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Share::Pods(pods) => write!(f, "{pods}"),
            Share::Percent(percent) => write!(f, "{percent}%"),
        }
    }
}
