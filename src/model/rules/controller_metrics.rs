//! Rules of the controller's own Prometheus metrics.

/// The Prometheus metrics that the controller has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ControllerMetricRules {
    /// Whether reconciles and computations of metrics are counted and timed.
    pub has_counters: bool,
    /// Whether the number of HPAs and the desired replicas of each are gauges.
    pub has_gauges: bool,
}

impl ControllerMetricRules {
    pub(super) const OLDEST: ControllerMetricRules =
        ControllerMetricRules { has_counters: false, has_gauges: false };
}
