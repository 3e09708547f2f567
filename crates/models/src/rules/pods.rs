//! Rules of the pods that a resource metric or a metric of pods counts.

/// The pods that count as unready, so that their metrics do not count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unready {
    /// Every pod that does not run or is not ready, for all metrics.
    All {
        /// True if failed pods count as unready for utilizations. If false, utilizations ignore
        /// failed pods.
        failed: bool,
    },
    /// Pods whose cpu was measured too early after their start.
    JustStarted,
}

/// The pods that count, and their groups.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PodRules {
    /// The pods that count as unready.
    pub unready: Unready,
    /// True if a Pending pod is always unready.
    pub pending_is_unready: bool,
    /// True if terminating and failed pods are ignored.
    pub terminating_is_ignored: bool,
    /// True if the metrics of ignored pods still count.
    pub ignored_pods_are_measured: bool,
    /// True if, for scaling down, a pod without metrics counts as its target if that exceeds its
    /// request.
    pub missing_pods_count_their_target: bool,
    /// True if pods without metrics count as zero if the average equals its target.
    pub zeros_at_target: bool,
    /// True if the requests of sidecars count.
    pub sidecars_count: bool,
    /// True if a pod without the container of a ContainerResource metric is an error.
    pub container_must_exist: bool,
    /// True if metrics of a pod without that container fail the metric. Otherwise, the pod counts
    /// as a pod without metrics.
    pub container_metrics_must_exist: bool,
    /// True if other HPAs that select the same pods are an error.
    pub ambiguous_selector_is_checked: bool,
    /// True if the requests of running pods can be changed, as the updater of a VPA does.
    pub can_be_resized: bool,
    /// True if pods are read from a cache, instead of the API server.
    pub are_cached: bool,
}

impl PodRules {
    pub(crate) const OLDEST: PodRules = PodRules {
        unready: Unready::All { failed: true },
        pending_is_unready: false,
        terminating_is_ignored: false,
        ignored_pods_are_measured: false,
        missing_pods_count_their_target: false,
        zeros_at_target: true,
        sidecars_count: false,
        container_must_exist: false,
        container_metrics_must_exist: true,
        ambiguous_selector_is_checked: false,
        can_be_resized: false,
        are_cached: false,
    };
}
