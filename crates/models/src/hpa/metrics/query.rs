//! The parameters and the results of the calculation for one metric.

use std::sync::Arc;

use crate::api::{Behavior, Pod, ScalingRules, Text};
use crate::derivation::{Path, Usage};
use crate::flags::{FeatureGates, Gate};
use crate::hpa::selector_store::ParsedSelector;
use crate::quantity::Quantity;
use crate::rules::{PodRules, Rules, Within};
use crate::selector::Selector;
use crate::time::{Span, Time};

/// The scale and its parsed selector.
#[derive(Clone, Copy)]
pub(crate) struct CurrentScale<'a> {
    /// `spec.replicas` of the scale.
    pub current_replicas: i32,
    /// `status.replicas` of the scale.
    pub status_replicas: i32,
    pub selector: &'a ParsedSelector,
}

/// The parameters of one metric.
pub(super) struct Query<'a> {
    /// The resource; empty for other metrics.
    pub resource: &'a str,
    /// The container whose usage counts; absent: all containers.
    pub container: Option<&'a str>,
    /// `spec.replicas` of the scale.
    pub current_replicas: i32,
    /// `status.replicas` of the scale.
    pub status_replicas: i32,
    pub tolerances: Tolerances,
    pub selector: &'a ParsedSelector,
}

/// The distances of a ratio from 1 that have no effect.
#[derive(Clone, Copy, Debug)]
pub struct Tolerances {
    /// The distance below 1.
    pub scale_down: f64,
    /// The distance above 1.
    pub scale_up: f64,
    /// How ratios are compared with the distances.
    pub within: Within,
}

impl Tolerances {
    /// The tolerances of an HPA: its own, or that of the controller.
    ///
    /// Upstream: horizontal.go, tolerancesForHpa
    #[must_use]
    pub fn for_hpa(
        behavior: Option<&Behavior>,
        of_controller: f64,
        rules: &Rules,
        gates: &FeatureGates,
    ) -> Tolerances {
        let within = rules.metrics.within_tolerance;
        let default = Tolerances { scale_down: of_controller, scale_up: of_controller, within };
        let own = behavior.filter(|_| gates.enabled(Gate::HpaConfigurableTolerance));
        let Some(behavior) = own else { return default };
        let tolerance = |rules: &Option<ScalingRules>| {
            let own = rules.as_ref().and_then(|rules| rules.tolerance.as_ref());
            own.map_or(of_controller, Quantity::approx_f64)
        };
        Tolerances {
            scale_down: tolerance(&behavior.scale_down),
            scale_up: tolerance(&behavior.scale_up),
            within,
        }
    }

    /// Both bounds are inclusive, up to rounding errors.
    ///
    /// Upstream: replica_calculator.go, Tolerances.isWithin
    #[must_use]
    pub fn is_within(self, usage_ratio: f64) -> bool {
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
    pub resource: &'q str,
    /// The container whose usage counts; absent: all containers.
    pub container: Option<&'q str>,
    /// True if pod-level requests count.
    pub(super) pod_level_resources: bool,
    pub rules: &'q PodRules,
    pub selector: &'q Selector,
    pub pods: &'a [Arc<Pod>],
    pub metrics: &'q [M],
    pub now: Time,
    pub cpu_initialization_period: Span,
    pub(super) delay_of_initial_readiness_status: Span,
    /// The percentage of its request that is assumed for a missing pod when scaling down; absent if
    /// requests are not needed.
    pub(super) fallback_utilization: Option<i64>,
}

/// A number of replicas and its derivation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Proposal {
    pub replicas: i32,
    pub usage: Usage,
    pub path: Path,
}

/// The failure of a metric.
pub(crate) struct MetricFailure {
    /// The reason of the condition and the event.
    pub reason: &'static str,
    /// The event's message.
    pub error: Text,
    /// The error that the reconcile reports.
    pub wrapped: String,
}
