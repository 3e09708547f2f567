//! What happens in a scenario, and when.

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

/// Something that happens at a time.
#[derive(Clone, Debug)]
pub struct Happening {
    /// When.
    pub at: Time,
    /// For how long, for what can end.
    pub lasts: Option<Span>,
    /// What.
    pub what: What,
    /// Line in the file, from 1.
    pub line: usize,
}

/// What can happen.
#[derive(Clone, Debug)]
pub enum What {
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

impl What {
    /// Its name in a scenario's file.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            What::PodsUnready(_) => "podsUnready",
            What::PodsStuckTerminating(_) => "podsStuckTerminating",
            What::PodsFailed(_) => "podsFailed",
            What::PodsSucceeded(_) => "podsSucceeded",
            What::PodsDeleted(_) => "podsDeleted",
            What::MetricsMissing(_) => "metricsMissing",
            What::ContainerMetricsMissing(..) => "containerMetricsMissing",
            What::ResourceMissing(..) => "resourceMissing",
            What::MetricsStale(_) => "metricsStale",
            What::MetricsError(_) => "metricsError",
            What::MetricsEmpty => "metricsEmpty",
            What::MetricsSlow(_) => "metricsSlow",
            What::MetricError(..) => "metricError",
            What::MetricEmpty(_) => "metricEmpty",
            What::MetricMissing(..) => "metricMissing",
            What::GetScaleError(_) => "getScaleError",
            What::UpdateScaleError(_) => "updateScaleError",
            What::UpdateStatusError(_) => "updateStatusError",
            What::RollingUpdate(_) => "rollingUpdate",
            What::TargetDeleted => "targetDeleted",
            What::Scale(_) | What::ScaleOther(..) => "scale",
            What::EditHpa(..) => "editHpa",
            What::DeleteHpa(_) => "deleteHpa",
            What::CreateHpa(_) => "createHpa",
            What::RestartController => "restartController",
        }
    }

    /// Whether it is a state of things, which comes to an end, rather than an act.
    #[must_use]
    pub fn can_end(&self) -> bool {
        match self {
            What::PodsUnready(_)
            | What::PodsStuckTerminating(_)
            | What::MetricsMissing(_)
            | What::ContainerMetricsMissing(..)
            | What::ResourceMissing(..)
            | What::MetricsStale(_)
            | What::MetricError(..)
            | What::MetricEmpty(_)
            | What::MetricMissing(..)
            | What::MetricsError(_)
            | What::MetricsEmpty
            | What::MetricsSlow(_)
            | What::GetScaleError(_)
            | What::UpdateScaleError(_)
            | What::UpdateStatusError(_)
            | What::TargetDeleted => true,
            What::PodsFailed(_)
            | What::PodsSucceeded(_)
            | What::PodsDeleted(_)
            | What::RollingUpdate(_)
            | What::Scale(_)
            | What::ScaleOther(..)
            | What::EditHpa(..)
            | What::DeleteHpa(_)
            | What::CreateHpa(_)
            | What::RestartController => false,
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
