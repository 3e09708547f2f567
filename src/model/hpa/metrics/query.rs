//! The parameters and the results of the calculation for one metric.

use std::sync::Arc;

use crate::model::api::{Pod, Text};
use crate::model::derivation::{Path, Usage};
use crate::model::hpa::selector_store::ParsedSelector;
use crate::model::rules::{PodRules, Within};
use crate::model::selector::Selector;
use crate::model::time::{Span, Time};

/// The scale and its parsed selector.
#[derive(Clone, Copy)]
pub(crate) struct CurrentScale<'a> {
    /// `spec.replicas` of the scale.
    pub(crate) current_replicas: i32,
    /// `status.replicas` of the scale.
    pub(crate) status_replicas: i32,
    pub(crate) selector: &'a ParsedSelector,
}

/// The parameters of one metric.
pub(super) struct Query<'a> {
    /// The resource; empty for other metrics.
    pub(super) resource: &'a str,
    /// The container whose usage counts; absent: all containers.
    pub(super) container: Option<&'a str>,
    /// `spec.replicas` of the scale.
    pub(super) current_replicas: i32,
    /// `status.replicas` of the scale.
    pub(super) status_replicas: i32,
    pub(super) tolerances: Tolerances,
    pub(super) selector: &'a ParsedSelector,
}

/// The distances of a ratio from 1 that have no effect.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tolerances {
    pub(crate) scale_down: f64,
    pub(crate) scale_up: f64,
    pub(crate) within: Within,
}

impl Tolerances {
    /// Both bounds are inclusive, up to rounding errors.
    ///
    /// Upstream: replica_calculator.go, Tolerances.isWithin
    pub(crate) fn is_within(self, usage_ratio: f64) -> bool {
        match self.within {
            Within::Bounds => {
                (1.0 - self.scale_down) <= usage_ratio && usage_ratio <= (1.0 + self.scale_up)
            }
            // These releases have a single tolerance.
            Within::Distance => (1.0 - usage_ratio).abs() <= self.scale_up,
        }
    }

    /// [`Tolerances::is_within`] for the average of an object's or external metric. There, older
    /// releases test if the ratio is outside the tolerance, which is never true of NaN.
    ///
    /// Upstream: replica_calculator.go, GetExternalPerPodMetricReplicas
    pub(crate) fn is_not_beyond(self, usage_ratio: f64) -> bool {
        match self.within {
            Within::Bounds => self.is_within(usage_ratio),
            Within::Distance => usage_ratio.is_nan() || self.is_within(usage_ratio),
        }
    }
}

/// Pods, their metrics, and the rules by which they are grouped.
pub(super) struct Grouping<'a, 'q, M> {
    /// Empty for custom metrics.
    pub(super) resource: &'q str,
    /// The container whose usage counts; absent: all containers.
    pub(super) container: Option<&'q str>,
    /// Whether pod-level requests count.
    pub(super) pod_level_resources: bool,
    pub(super) rules: &'q PodRules,
    pub(super) selector: &'q Selector,
    pub(super) pods: &'a [Arc<Pod>],
    pub(super) metrics: &'q [M],
    pub(super) now: Time,
    pub(super) cpu_initialization_period: Span,
    pub(super) delay_of_initial_readiness_status: Span,
    /// The percentage of its request that is assumed for a missing pod when scaling down; absent if
    /// requests are not needed.
    pub(super) fallback_utilization: Option<i64>,
}

/// A number of replicas and its derivation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Proposal {
    pub(super) replicas: i32,
    pub(super) usage: Usage,
    pub(super) path: Path,
}

/// The failure of a metric.
pub(crate) struct MetricFailure {
    /// The reason of the condition and the event.
    pub(super) reason: &'static str,
    /// The event's message.
    pub(super) error: Text,
    /// The error that the reconcile reports.
    pub(super) wrapped: String,
}
