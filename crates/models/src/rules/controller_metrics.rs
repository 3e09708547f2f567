//! Rules of the controller's own Prometheus metrics.

/// The Prometheus metrics that the controller has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ControllerMetricRules {
    /// True if reconciles and computations of metrics are counted and timed.
    pub has_counters: bool,
    /// True if the number of HPAs and the desired replicas of each are gauges.
    pub has_gauges: bool,
    /// True if work queues report exact durations. Otherwise, they truncate each duration to whole
    /// microseconds.
    pub queue_durations_are_exact: bool,
}

impl ControllerMetricRules {
    pub(crate) const OLDEST: ControllerMetricRules = ControllerMetricRules {
        has_counters: false,
        has_gauges: false,
        queue_durations_are_exact: false,
    };
}
