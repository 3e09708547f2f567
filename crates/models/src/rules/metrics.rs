//! Rules of the step from metrics to a proposal.

/// The condition for a ratio to be within the tolerance.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Within {
    /// The distance of the ratio from 1 is at most the tolerance: `|1 - r| <= t`.
    Distance,
    /// The ratio lies between two bounds: `1 - t <= r <= 1 + t`.
    Bounds,
}

/// The error of a reconcile with several errors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MetricErrors {
    /// The first error; it ends the reconcile and is shown in the condition.
    Ends,
    /// The last error. Each error is shown in the condition until the next one occurs.
    Last,
    /// The first error.
    First,
}

/// The use of the target average of an object's metric.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ObjectAverage {
    /// The release has no averages. The total, which is then zero, is used instead.
    Total,
    /// The total is divided by zero replicas, so that the ratio is never within the tolerance.
    ByNone,
    /// The total is divided by the current replicas.
    ByReplicas,
}

/// The API from which the controller reads metrics.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MetricsFrom {
    /// Heapster, through the API server's proxy. It has no metrics of objects.
    Heapster,
    /// The metrics APIs.
    Apis,
}

/// The rules by which metrics become a proposal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MetricRules {
    /// The API from which the controller reads metrics.
    pub from: MetricsFrom,
    /// The rule by which a ratio is within the tolerance.
    pub within_tolerance: Within,
    /// The error, of several, with which a reconcile ends.
    pub errors: MetricErrors,
    /// True if a failed metric prevents scaling down.
    pub partial_failure_blocks_scale_down: bool,
    /// True if a reconcile that continues with some of the metrics ends with the error of the
    /// failed ones.
    pub partial_failure_is_returned: bool,
    /// True if the error of missing metrics comes before the error of a missing request.
    pub metrics_before_requests: bool,
    /// True if the replicas are kept if a utilization, with all pods counted, would change them in
    /// the opposite direction.
    pub utilizations_keep_direction: bool,
    /// True if the replicas are kept if an average, with all pods counted, would change them in the
    /// opposite direction.
    pub averages_keep_direction: bool,
    /// The use of the target average of an object's metric.
    pub object_average: ObjectAverage,
    /// True if the ratio of an object's or external metric is multiplied by the ready pods instead
    /// of the replicas.
    pub values_are_per_ready_pod: bool,
    /// True if the sum of an external metric's value, and the proposal of any value, are capped.
    pub value_is_capped: bool,
    /// True if the sum and the proposal of an external metric's average are capped.
    pub external_average_is_capped: bool,
    /// True if pods are counted before the ratio of an external metric is compared.
    pub external_counts_pods_first: bool,
    /// True if the controller's API version reads an absent total as zero.
    pub absent_totals_are_zero: bool,
}

impl MetricRules {
    pub(crate) const OLDEST: MetricRules = MetricRules {
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
