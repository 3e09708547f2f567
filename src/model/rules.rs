//! What differs between Kubernetes releases; the only file that names one. The algorithm matches on
//! the fields of [`Rules`], never on a release. Each row of [`CHANGES`] is one observable change of
//! [`Release::supported`], oldest first, with the release that brought it and where it was decided.

mod changes;
mod older;
mod release;

pub use changes::{CHANGES, Change};
pub use release::{Release, ReleaseError, Releases};

use super::flags::{Flag, Flags, Gate};
use super::quantity::Format;
use super::time::Span;

/// A feature gate in one release.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GateRule {
    /// It does not exist, and what it guards is not there.
    Absent,
    /// It is on or off by default, and can be switched.
    Default(bool),
    /// It can't be changed any more.
    Locked(bool),
    /// It does not exist any more: what it guarded is always there.
    Gone,
}

impl GateRule {
    /// Whether the gate is on unless somebody says otherwise.
    #[must_use]
    pub const fn default_value(self) -> bool {
        match self {
            GateRule::Absent => false,
            GateRule::Default(on) | GateRule::Locked(on) => on,
            GateRule::Gone => true,
        }
    }
}

/// When a new HPA is reconciled for the first time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FirstReconcile {
    /// At once.
    Immediate,
    /// After one sync period.
    AfterSyncPeriod,
}

/// What a size of zero means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AtZero {
    /// Scaling is disabled.
    Disabled,
    /// Scaling is disabled, unless `minReplicas` is 0, too.
    DisabledUnlessMinIsZero,
    /// Scaling is disabled, unless the condition ScaledToZero says that the controller did it.
    DisabledUnlessScaledToZero,
}

/// When a ratio is within the tolerance.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Within {
    /// Its distance from 1 is not more than the tolerance: `|1 - r| <= t`.
    Distance,
    /// It lies between two bounds: `1 - t <= r <= 1 + t`.
    Bounds,
}

/// What the API server says of `maxReplicas: 0`, or less.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MaxReplicasError {
    /// That it is invalid.
    Invalid,
    /// That it is required, if it is 0.
    Required,
}

/// How the API server names a quantity that it refuses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InvalidQuantities {
    /// As Go prints what it is made of.
    GoSyntax,
    /// As in JSON.
    Json,
}

/// How an error says which HPAs select the same pods.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AmbiguousHpas {
    /// All of them, in an order that is left to chance.
    All,
    /// Two of them, as an example.
    Example,
}

/// How an error names the object whose metric can't be had.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ObjectError {
    /// Each word one place too far to the right: `unable to get metric M: KIND on NS NAME/ERROR`.
    Shifted,
    /// `unable to get metric M on KIND NS/NAME: ERROR`.
    InOrder,
}

/// Which of several errors a reconcile ends with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ErrorOfMetrics {
    /// The first one, which ends the reconcile. It stands in the condition.
    Ends,
    /// The last one. Each stands in the condition until the next.
    Last,
    /// The first one.
    First,
}

/// What comes of the average of an object's metric.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ObjectAverage {
    /// It is not known: the total counts, which is then zero.
    Total,
    /// It is divided by no replicas, so that it is never within the tolerance.
    ByNone,
    /// It is divided by the replicas that there are.
    ByReplicas,
}

/// What keeps a size from changing again soon, where the HPA has no `behavior`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Windows {
    /// For some time after a change the size may not grow, and for some time it may not shrink.
    Forbidden,
    /// For some time it may not shrink below what was recommended before.
    Recommendations,
}

/// Where metrics come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MetricsFrom {
    /// Heapster, asked through the API server's proxy. It knows none of objects.
    Heapster,
    /// The metrics APIs.
    Apis,
}

/// How the API server calls a scale that is not there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MissingScale {
    /// Those of Deployments and ReplicaSets by the group `extensions`:
    /// `deployments/scale.extensions`; that of a ReplicationController by `autoscaling`, unless it
    /// was asked for in `extensions`.
    ByExtensions,
    /// `deployments/scale.apps`; that of a ReplicationController as before.
    ByApps,
    /// `statefulsets/scale.apps`, too, and `replicationcontrollers/scale`.
    All,
    /// As the resource: `deployments.apps`.
    AsResource,
}

/// In which order a size is held within its limits, where the HPA has no `behavior`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SizeLimits {
    /// Not less than the smallest size and 1, not more than the largest, and then no more than
    /// twice the present size, or 4.
    RateLast,
    /// No more than twice the present size, or 4, be that more than the largest size; or else not
    /// less than 1, or else the limits.
    RateInstead,
    /// The same, but never more than the largest size.
    RateFirst,
    /// Between the smallest size and the lesser of both upper limits.
    Range,
}

/// Which pods are not ready, so that their metrics do not count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unready {
    /// All that do not run or are not ready, whatever is measured. `failed`: for a percentage of
    /// requests, failed pods, too; otherwise they are not counted at all there.
    All {
        /// See above.
        failed: bool,
    },
    /// Those whose cpu is measured too early after their start.
    JustStarted,
}

/// How windows of `behavior` hold a size.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BehaviorWindows {
    /// The window of the direction in which the size would change gives the size, be it on the
    /// other side of the present one.
    Replace,
    /// The present size is brought to within the recommendations of both windows.
    Clamp,
}

/// How an error says that a request is missing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MissingRequest {
    /// `missing request for R on container C in pod NS/P`.
    OnContainer,
    /// `missing request for R`.
    Bare,
    /// `missing request for R in container C of Pod P`.
    InContainer,
}

/// The words of errors, in which releases differ.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ErrorTexts {
    /// Whether the error of a reconcile says of which resource, container or external metric a
    /// value could not be had.
    pub metric_is_named: bool,
    /// Whether the event of a resource metric says what could not be had.
    pub resource_is_named: bool,
    /// What could not be had if a metric of pods fails.
    pub pods_metric: &'static str,
    /// Whether the words for too few replicas are their own, and not those of the upper limit.
    pub too_few_is_explained: bool,
    /// Whether a `minReplicas` that is too small is told the least that it must be.
    pub least_is_told: bool,
    /// How it is said that a request is missing.
    pub missing_request: MissingRequest,
    /// Whether a kind that there is not is told in quotes.
    pub unknown_kind_is_quoted: bool,
    /// How it is said that a replica count was found.
    pub successfully: &'static str,
    /// Whether it is said which metrics API gave nothing.
    pub metrics_api_is_named: bool,
    /// What could not be had if the target is an average.
    pub average: &'static str,
    /// What a resource metric without a target lacks.
    pub no_target: &'static str,
    /// What is wrong if no pod that counts has metrics.
    pub no_metrics: &'static str,
    /// The same where an average is wanted.
    pub no_metrics_for_average: &'static str,
}

/// The behaviour of one release, as far as releases differ.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Rules {
    /// The feature gates, in the order of [`Gate::ALL`].
    pub feature_gates: [GateRule; Gate::ALL.len()],
    /// The flags as they are by default.
    pub default_flags: Flags,
    /// The flags that there are, in the order of [`Flag::ALL`].
    pub flags: [bool; Flag::ALL.len()],
    /// When a new HPA is reconciled for the first time.
    pub first_reconcile: FirstReconcile,
    /// How often an update of the scale is tried that meets a conflict.
    pub scale_update_attempts: u32,
    /// How the average memory use is printed in the status.
    pub memory_status_format: Format,
    /// Whether the sum and the proposal of an external metric's average are held within bounds.
    pub external_average_is_capped: bool,
    /// Whether the sum of an external metric's value, and the proposal of any value, are.
    pub value_is_capped: bool,
    /// Whether a pod without the container of a ContainerResource metric is an error.
    pub container_must_exist: bool,
    /// When a ratio is within the tolerance.
    pub within_tolerance: Within,
    /// Whether HPAs have a field for the tolerance.
    pub has_tolerance: bool,
    /// Whether a pod whose metrics lack the container of a ContainerResource metric fails it. If
    /// not, the pod is one without metrics.
    pub container_metrics_must_exist: bool,
    /// Whether the status of an object's average names the object.
    pub object_average_names_object: bool,
    /// Whether the API server looks at the apiVersion of references.
    pub api_version_is_checked: bool,
    /// What the API server says of `maxReplicas: 0`, or less.
    pub max_replicas_error: MaxReplicasError,
    /// How the API server names a quantity that it refuses.
    pub invalid_quantities: InvalidQuantities,
    /// Whether a zero total beside the average of an object's metric stands for none, in versions
    /// of the API in which it can't be left out.
    pub zero_total_is_none: bool,
    /// Whether checks that are generated from types take the place of hand-written ones.
    pub generated_validation: bool,
    /// Which of the prefixes and words of today errors have.
    pub error_texts: ErrorTexts,
    /// Which of several errors of metrics counts.
    pub error_of_metrics: ErrorOfMetrics,
    /// Whether the size does not shrink while a metric fails.
    pub partial_failure_blocks_scale_down: bool,
    /// Whether the expressions of a selector are printed with their types.
    pub expressions_are_typed: bool,
    /// Whether the current replicas are `spec.replicas` of the scale, and not `status.replicas`.
    pub uses_spec_replicas: bool,
    /// What comes of the average of an object's metric.
    pub object_average: ObjectAverage,
    /// Whether the size stays if a utilization, with all pods counted, would change it in the other
    /// direction.
    pub utilizations_keep_direction: bool,
    /// Whether HPAs have `behavior`.
    pub has_behavior: bool,
    /// Whether HPAs have conditions, and with them a status that tells of a scale that could not
    /// be read or written.
    pub has_conditions: bool,
    /// Whether the status is written by each reconcile, be there something new or not.
    pub status_is_always_written: bool,
    /// In which order a size is held within its limits.
    pub size_limits: SizeLimits,
    /// Where metrics come from.
    pub metrics_from: MetricsFrom,
    /// Whether scales are read and written in the group `extensions`, by the kind alone.
    pub scales_of_extensions: bool,
    /// How the API server calls a scale that is not there, when it is read.
    pub unread_scale: MissingScale,
    /// The same, when it is written.
    pub unwritten_scale: MissingScale,
    /// Events of one object that come too fast are held back by type.
    pub events_are_held_back_by_type: bool,
    /// What keeps a size from changing again soon, where the HPA has no `behavior`.
    pub windows: Windows,
    /// Whether a reconcile that succeeds queues the next one. If not, that is left to what the
    /// informer hears of: a status that was written, or its resync.
    pub success_requeues: bool,
    /// Whether of several HPAs that wait for one instant, the one that was queued first has its
    /// turn first.
    pub waiting_is_sorted: bool,
    /// Which pods are not ready.
    pub unready: Unready,
    /// Whether terminating and failed pods are ignored.
    pub terminating_is_ignored: bool,
    /// Whether there are external metrics.
    pub has_external_metrics: bool,
    /// Whether metrics have selectors, and those of objects averages.
    pub has_metric_selectors: bool,
    /// Whether the value of an object's or an external metric counts per ready pod, and not per
    /// replica.
    pub values_are_per_ready_pod: bool,
    /// Whether in the controller's eyes a total that is not told is zero.
    pub absent_totals_are_zero: bool,
    /// How windows of `behavior` hold a size.
    pub behavior_windows: BehaviorWindows,
    /// Whether the size stays if an average, with all pods counted, would change it in the other
    /// direction.
    pub averages_keep_direction: bool,
    /// Whether metrics of pods that are ignored count all the same.
    pub ignored_pods_are_measured: bool,
    /// Whether a pending pod is one that is not ready, whatever is known of it.
    pub pending_is_unready: bool,
    /// Whether pods are counted before the ratio of an external metric is looked at.
    pub external_counts_pods_first: bool,
    /// Whether a change of the size counts against the policies of the other direction, too.
    pub changes_are_netted: bool,
    /// Whether a pod without metrics counts its target on the way down, where that is more than
    /// its request.
    pub missing_pods_count_their_target: bool,
    /// Whether pods are looked at for metrics before they are for requests.
    pub metrics_before_requests: bool,
    /// Whether a status that can't be written after the scale could not be read is told.
    pub scale_failure_tells_status_error: bool,
    /// Whether the time of the last change of the size is stored in whole seconds, as all others.
    pub scale_times_are_whole: bool,
    /// Whether the API server serves autoscaling/v2beta1, and not v2alpha1, which has the same
    /// fields.
    pub serves_v2beta1: bool,
    /// Whether the API server serves autoscaling/v2, which the controller uses where it does.
    pub serves_v2: bool,
    /// Whether a percentage of cpu outlives storage where another metric of cpu stands before it.
    pub all_percentages_are_kept: bool,
    /// Whether HPAs are stored as autoscaling/v1.
    pub stored_as_v1: bool,
    /// Whether other HPAs that select the same pods are an error.
    pub ambiguous_selector_is_checked: bool,
    /// Whether an error of some metrics is also that of a reconcile that goes on without them.
    pub partial_failure_is_returned: bool,
    /// Whether a utilization of one container is called that of a container.
    pub container_utilization_is_named: bool,
    /// Whether pods without metrics count zero if the average is right on its target.
    pub zeros_at_target: bool,
    /// Whether the requests of sidecars count.
    pub sidecars_count: bool,
    /// Whether a failure keeps what the status says of the metrics.
    pub failure_keeps_metrics: bool,
    /// Whether the message of a condition that a selector fails is one of Go's formats, with
    /// nothing to fill in.
    pub selector_messages_are_formats: bool,
    /// The same of a metric that fails.
    pub metric_messages_are_formats: bool,
    /// What a size of zero means.
    pub at_zero: AtZero,
    /// How an error says which HPAs select the same pods.
    pub ambiguous_hpas: AmbiguousHpas,
    /// How an error names the object whose metric can't be had.
    pub object_error: ObjectError,
    /// Whether a reconcile of an HPA that is deleted meanwhile ends at its selector.
    pub deletion_ends_reconcile: bool,
}

/// A feature gate that says nothing to the HPA controller, but can't be on without one that does:
/// whoever switches that one off has to switch this one off, too.
///
/// Upstream: pkg/features/kube_features.go, defaultKubernetesFeatureGateDependencies
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Dependent {
    /// Upstream's name.
    pub name: &'static str,
    /// What it can't be on without.
    pub needs: Gate,
    /// The first release in which it depends on that.
    since: Release,
    /// The first release in which it is on by default.
    on_since: Option<Release>,
}

const fn dependent(name: &'static str, since: u32, on_since: Option<u32>) -> Dependent {
    let on_since = match on_since {
        Some(minor) => Some(Release { minor }),
        None => None,
    };
    Dependent { name, needs: Gate::PodLevelResources, since: Release { minor: since }, on_since }
}

const DEPENDENTS: [Dependent; 4] = [
    dependent("InPlacePodLevelResourcesVerticalScaling", 35, Some(36)),
    dependent("PodLevelResourceManagers", 36, None),
    dependent("PodLevelResourcesFixDefaulting", 37, Some(37)),
    dependent("PodLevelResourcesFixKubeletQOSClass", 37, Some(37)),
];

impl Dependent {
    /// Those of a release.
    pub fn of(release: Release) -> impl Iterator<Item = Dependent> {
        DEPENDENTS.into_iter().filter(move |dependent| dependent.since <= release)
    }

    /// Whether it is on by default in a release.
    #[must_use]
    pub fn default_value(&self, release: Release) -> bool {
        self.on_since.is_some_and(|since| since <= release)
    }
}

impl Rules {
    /// The behaviour of a release.
    #[must_use]
    pub fn of(release: Release) -> Rules {
        Rules::after(CHANGES.iter().take_while(|change| change.since <= release).count())
    }

    /// The behaviour after so many of [`CHANGES`].
    #[must_use]
    pub fn after(changes: usize) -> Rules {
        Rules::by(CHANGES.iter().take(changes))
    }

    /// The behaviour after so many of [`CHANGES`], but as if the one of an index had not come.
    #[must_use]
    pub fn without(index: usize, changes: usize) -> Rules {
        let others = CHANGES.iter().take(changes).enumerate().filter(|(other, _)| *other != index);
        Rules::by(others.map(|(_, change)| change))
    }

    fn by<'c>(rows: impl Iterator<Item = &'c Change>) -> Rules {
        let mut rules = Rules {
            feature_gates: [GateRule::Absent; Gate::ALL.len()],
            default_flags: Flags {
                concurrent_syncs: 1,
                sync_period: Span::from_secs(30),
                ..Flags::default()
            },
            flags: [true; Flag::ALL.len()],
            first_reconcile: FirstReconcile::AfterSyncPeriod,
            scale_update_attempts: 1,
            memory_status_format: Format::DecimalSI,
            external_average_is_capped: false,
            value_is_capped: false,
            container_must_exist: false,
            within_tolerance: Within::Distance,
            has_tolerance: false,
            container_metrics_must_exist: true,
            object_average_names_object: false,
            api_version_is_checked: false,
            max_replicas_error: MaxReplicasError::Invalid,
            invalid_quantities: InvalidQuantities::GoSyntax,
            zero_total_is_none: false,
            generated_validation: false,
            error_texts: ErrorTexts {
                metric_is_named: false,
                resource_is_named: false,
                pods_metric: "pods",
                too_few_is_explained: false,
                least_is_told: false,
                missing_request: MissingRequest::OnContainer,
                unknown_kind_is_quoted: false,
                successfully: "succesfully",
                metrics_api_is_named: false,
                average: "utilization",
                no_target: "neither a utilization target nor a value target was set",
                no_metrics: "did not receive metrics for any ready pods",
                no_metrics_for_average: "did not recieve metrics for any ready pods",
            },
            uses_spec_replicas: false,
            object_average: ObjectAverage::Total,
            utilizations_keep_direction: false,
            error_of_metrics: ErrorOfMetrics::Ends,
            partial_failure_blocks_scale_down: true,
            expressions_are_typed: false,
            has_behavior: false,
            has_conditions: false,
            status_is_always_written: true,
            size_limits: SizeLimits::RateLast,
            metrics_from: MetricsFrom::Heapster,
            scales_of_extensions: true,
            unread_scale: MissingScale::ByExtensions,
            events_are_held_back_by_type: false,
            unwritten_scale: MissingScale::ByExtensions,
            windows: Windows::Forbidden,
            success_requeues: false,
            waiting_is_sorted: true,
            unready: Unready::All { failed: true },
            terminating_is_ignored: false,
            has_external_metrics: false,
            has_metric_selectors: false,
            values_are_per_ready_pod: false,
            absent_totals_are_zero: true,
            behavior_windows: BehaviorWindows::Replace,
            averages_keep_direction: false,
            ignored_pods_are_measured: false,
            pending_is_unready: false,
            external_counts_pods_first: true,
            changes_are_netted: false,
            missing_pods_count_their_target: false,
            metrics_before_requests: false,
            scale_failure_tells_status_error: false,
            scale_times_are_whole: false,
            serves_v2beta1: false,
            serves_v2: false,
            all_percentages_are_kept: false,
            stored_as_v1: true,
            ambiguous_selector_is_checked: false,
            partial_failure_is_returned: false,
            container_utilization_is_named: false,
            zeros_at_target: true,
            sidecars_count: false,
            failure_keeps_metrics: true,
            selector_messages_are_formats: true,
            metric_messages_are_formats: false,
            at_zero: AtZero::Disabled,
            ambiguous_hpas: AmbiguousHpas::All,
            object_error: ObjectError::Shifted,
            deletion_ends_reconcile: false,
        };
        for flag in [
            Flag::Tolerance,
            Flag::UpscaleDelay,
            Flag::DownscaleDelay,
            Flag::DownscaleStabilization,
            Flag::CpuInitializationPeriod,
            Flag::InitialReadinessDelay,
            Flag::ConcurrentSyncs,
        ] {
            rules.flag(flag, false);
        }
        for change in rows {
            (change.apply)(&mut rules);
        }
        rules
    }

    fn gate(&mut self, gate: Gate, rule: GateRule) {
        self.feature_gates[gate as usize] = rule;
    }

    fn flag(&mut self, flag: Flag, there: bool) {
        self.flags[flag as usize] = there;
    }
}

/// The behaviour of the newest release.
impl Default for Rules {
    fn default() -> Rules {
        Rules::of(Release::newest())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_in_order_and_add_up_to_the_newest_release() {
        assert!(CHANGES.is_sorted_by_key(|change| change.since));
        let rules = Rules::of(Release::V1_37);
        assert_eq!(rules.first_reconcile, FirstReconcile::Immediate);
        assert_eq!(rules.scale_update_attempts, 5);
        assert_eq!(rules.memory_status_format, Format::BinarySI);
        let tolerance = rules.feature_gates[Gate::HpaConfigurableTolerance as usize];
        assert_eq!(tolerance, GateRule::Locked(true));
        assert!(rules.feature_gates.iter().all(|gate| gate.default_value()));
        assert_eq!(Rules::of(Release { minor: 33 }).scale_update_attempts, 1);
    }
}
