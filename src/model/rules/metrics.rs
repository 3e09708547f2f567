//! Rules of the step from metrics to a proposal.

/// The condition for a ratio to be within the tolerance.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Within {
    /// If its distance from 1 is at most the tolerance: `|1 - r| <= t`.
    Distance,
    /// If it lies between two bounds: `1 - t <= r <= 1 + t`.
    Bounds,
}

/// The error of a reconcile with several errors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MetricErrors {
    /// The first one, which ends the reconcile and is shown in the condition.
    Ends,
    /// The last one. Each is shown in the condition until the next.
    Last,
    /// The first one.
    First,
}

/// How the target average of an object's metric is used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ObjectAverage {
    /// The release has no averages. The total, which is then zero, is used instead.
    Total,
    /// The total is divided by zero replicas, so that the ratio is never within the tolerance.
    ByNone,
    /// The total is divided by the current replicas.
    ByReplicas,
}

/// The source of metrics.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MetricsFrom {
    /// Heapster, through the API server's proxy. It has no metrics of objects.
    Heapster,
    /// The metrics APIs.
    Apis,
}

/// How metrics become a proposal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MetricRules {
    /// The source of metrics.
    pub from: MetricsFrom,
    /// When a ratio is within the tolerance.
    pub within_tolerance: Within,
    /// Which of several errors a reconcile ends with.
    pub errors: MetricErrors,
    /// Whether a failed metric prevents scaling down.
    pub partial_failure_blocks_scale_down: bool,
    /// Whether a reconcile that continues with some of the metrics ends with the error of the
    /// others.
    pub partial_failure_is_returned: bool,
    /// Whether the error of missing metrics comes before the error of a missing request.
    pub metrics_before_requests: bool,
    /// Whether the replicas are kept if a utilization, with all pods counted, would change them in
    /// the opposite direction.
    pub utilizations_keep_direction: bool,
    /// Whether the replicas are kept if an average, with all pods counted, would change them in the
    /// opposite direction.
    pub averages_keep_direction: bool,
    /// How the target average of an object's metric is used.
    pub object_average: ObjectAverage,
    /// Whether the ratio of an object's or external metric is multiplied by the ready pods, and not
    /// by the replicas.
    pub values_are_per_ready_pod: bool,
    /// Whether the sum of an external metric's value, and the proposal of any value, are capped.
    pub value_is_capped: bool,
    /// Whether the sum and the proposal of an external metric's average are capped.
    pub external_average_is_capped: bool,
    /// Whether pods are counted before the ratio of an external metric is compared.
    pub external_counts_pods_first: bool,
    /// Whether the controller's API version reads an absent total as zero.
    pub absent_totals_are_zero: bool,
}

impl MetricRules {
    pub(super) const OLDEST: MetricRules = MetricRules {
        from: MetricsFrom::Heapster,
        within_tolerance: Within::Distance,
        errors: MetricErrors::Ends,
        partial_failure_blocks_scale_down: true,
        partial_failure_is_returned: false,
        metrics_before_requests: false,
        utilizations_keep_direction: false,
        averages_keep_direction: false,
        object_average: ObjectAverage::Total,
        values_are_per_ready_pod: false,
        value_is_capped: false,
        external_average_is_capped: false,
        external_counts_pods_first: true,
        absent_totals_are_zero: true,
    };
}
