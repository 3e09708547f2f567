//! The table of observable changes between releases.

use serde::Serialize;

use super::{
    AmbiguousHpas, AtZero, BehaviorWindows, EventLimit, FirstReconcile, GateRule,
    InvalidQuantities, LimitOrder, MaxReplicasError, MetricErrors, MetricsFrom, MissingRequest,
    MissingScale, ObjectAverage, ObjectError, Release, Rules, Unready, Windows, Within,
};
use crate::flags::{Flag, Gate};
use crate::quantity::Format;
use crate::selector::WrongNumberFormat;
use crate::time::Span;

/// One observable change between two releases.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Change {
    /// The release that introduced the change.
    #[serde(skip)]
    pub since: Release,
    /// The change, in one line.
    pub what: &'static str,
    /// The source of the change: the pull request, the issue or the file.
    pub link: &'static str,
    /// Further sources.
    pub beside: &'static [&'static str],
    #[serde(skip)]
    pub(crate) apply: fn(&mut Rules),
}

/// The link to a pull request.
macro_rules! pull {
    ($number:literal) => {
        concat!("https://github.com/kubernetes/kubernetes/pull/", $number)
    };
}

/// The link to an upstream file.
macro_rules! source {
    ($version:literal, $path:literal) => {
        concat!("https://github.com/kubernetes/kubernetes/blob/", $version, "/", $path)
    };
}

/// A table of changes. Each row holds the minor release, the change, its sources, and the effect on
/// the rules.
macro_rules! changes {
    (|$rules:ident| $(
        $minor:literal $what:literal, $link:expr $(, $beside:expr)* => $apply:expr;
    )*) => {
        &[$(Change {
            since: Release { minor: $minor },
            what: $what,
            link: $link,
            beside: &[$($beside),*],
            apply: |$rules| $apply,
        }),*]
    };
}

/// Every change that the model knows, oldest first. The state before the first row is 1.6.
pub const CHANGES: &[Change] = changes! { |rules|
    7 "conditions, which also report a scale that could not be read or written",
        pull!(46550) => rules.status.has_conditions = true;
    7 "the status is written only if it changed",
        pull!(47078) => rules.status.is_always_written = false;
    7 "if the doubling limit applies, maxReplicas does not",
        source!("v1.7.0", "pkg/controller/podautoscaler/horizontal.go")
            => rules.normalization.limits = LimitOrder::RateInstead;
    7 "flags for the upscale and downscale delays",
        pull!(42101) => {
            rules.flag(Flag::UpscaleDelay, true);
            rules.flag(Flag::DownscaleDelay, true);
        };
    7 "an error for averages says \"receive\" instead of \"recieve\"",
        source!("v1.7.0", "pkg/controller/podautoscaler/replica_calculator.go") => {
            rules.texts.no_metrics_for_average = "did not receive metrics for any ready pods";
        };
    7 "HPAs due at the same time are kept in a heap: the first of three is not always first",
        source!("v1.7.0", "staging/src/k8s.io/client-go/util/workqueue/delaying_queue.go")
            => rules.queue.waiting_is_sorted = false;
    7 "the message of a combined event ends with the message of the last event",
        source!("v1.7.0", "staging/src/k8s.io/client-go/tools/record/events_cache.go")
            => rules.events.combined_has_message = true;
    8 "the events of an object are limited to 25, and then one in five minutes",
        pull!(47367) => rules.events.limit = EventLimit::WholeTokens;
    8 "maxReplicas applies even if the doubling limit does (1.8.15)",
        pull!(53690) => rules.normalization.limits = LimitOrder::RateFirst;
    8 "lastScaleTime is stored in whole seconds",
        source!("v1.8.0", "staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/time_proto.go")
            => rules.status.scale_times_are_whole = true;
    8 "autoscaling/v2beta1, which the controller uses: v2alpha1 under another name",
        pull!(50708) => rules.admission.serves_v2beta1 = true;
    9 "limits are a range, described in the present tense in conditions",
        source!("v1.9.0", "pkg/controller/podautoscaler/horizontal.go")
            => rules.normalization.limits = LimitOrder::Range;
    9 "metrics come from the metrics APIs instead of Heapster",
        pull!(53205) => rules.metrics.from = MetricsFrom::Apis;
    9 "a scale is found by group and kind, in any group",
        pull!(53743) => rules.scale.in_extensions = false;
    9 "flag --horizontal-pod-autoscaler-tolerance",
        pull!(52275) => rules.flag(Flag::Tolerance, true);
    10 "external metrics", pull!(60096) => rules.admission.has_external_metrics = true;
    10 "for utilization, failed pods no longer count as not ready",
        pull!(60648) => rules.pods.unready = Unready::All { failed: false };
    10 "errors name the metrics API that returned nothing",
        source!("v1.10.0", "pkg/controller/podautoscaler/metrics/rest_metrics_client.go")
            => rules.texts.metrics_api_is_named = true;
    10 "a condition's message says \"successfully\" instead of \"succesfully\"",
        source!("v1.10.0", "pkg/controller/podautoscaler/horizontal.go")
            => rules.texts.successfully = "successfully";
    10 "the error for an unknown kind quotes it",
        source!("v1.10.0", "staging/src/k8s.io/apimachinery/pkg/api/meta/errors.go")
            => rules.texts.unknown_kind_is_quoted = true;
    10 "time since the last event of an object counts towards the rate limit of its events",
        source!("v1.10.0", "staging/src/k8s.io/client-go/util/flowcontrol/throttle.go")
            => rules.events.limit = EventLimit::Tokens;
    11 "the value of an object or external metric is multiplied by ready pods instead of replicas",
        source!("v1.11.0", "pkg/controller/podautoscaler/replica_calculator.go")
            => rules.metrics.values_are_per_ready_pod = true;
    12 "the default sync period is 15s instead of 30s",
        pull!(68021) => rules.default_flags.sync_period = Span::from_secs(15);
    12 "scale-down follows the highest recommendation of a window; no delay prevents a change",
        pull!(68122), pull!(66615), pull!(68831) => {
            rules.normalization.windows = Windows::Recommendations;
            rules.flag(Flag::DownscaleStabilization, true);
        };
    12 "each reconcile queues the next one (1.12.10)",
        pull!(72373) => rules.queue.success_requeues = true;
    12 "readiness matters only for recently started pods, and only for CPU",
        pull!(68068) => {
            rules.pods.unready = Unready::JustStarted;
            rules.flag(Flag::CpuInitializationPeriod, true);
            rules.flag(Flag::InitialReadinessDelay, true);
        };
    12 "terminating and failed pods are ignored, but their metrics count",
        pull!(67067) => {
            rules.pods.terminating_is_ignored = true;
            rules.pods.ignored_pods_are_measured = true;
        };
    12 "autoscaling/v2beta2, which the controller uses: metric selectors",
        pull!(64097) => {
            rules.admission.has_metric_selectors = true;
            rules.metrics.absent_totals_are_zero = false;
        };
    12 "an HPA in autoscaling/v2beta2 is stored without its defaults until the next write",
        source!("v1.12.0", "pkg/apis/autoscaling/v2beta2/zz_generated.defaults.go")
            => rules.admission.stores_without_defaults = true;
    12 "pods are read from the controller's cache instead of the API server",
        source!("v1.12.0", "pkg/controller/podautoscaler/replica_calculator.go")
            => rules.pods.are_cached = true;
    12 "the error for a missing request names neither the container nor the pod",
        source!("v1.12.0", "pkg/controller/podautoscaler/replica_calculator.go")
            => rules.texts.missing_request = MissingRequest::Bare;
    12 "a failing pods metric is reported as an object metric",
        source!("v1.12.0", "pkg/controller/podautoscaler/horizontal.go")
            => rules.texts.pods_metric = "object";
    13 "errors of missing and outdated scales name the group apps instead of extensions",
        source!("v1.13.0", "pkg/registry/apps/deployment/storage/storage.go") => {
            rules.scale.missing_on_read = MissingScale::ByApps;
            rules.scale.missing_on_write = MissingScale::ByApps;
            rules.scale.conflicts_in_extensions = false;
        };
    13 "spec.replicas is used instead of status.replicas (1.13.12)",
        pull!(79035) => rules.scale.uses_spec_replicas = true;
    14 "Prometheus metrics of work queues have exact durations; before, whole microseconds",
        source!("v1.14.0", "pkg/util/workqueue/prometheus/prometheus.go")
            => rules.controller_metrics.queue_durations_are_exact = true;
    14 "average values for object metrics, but never within the tolerance",
        pull!(72824) => rules.metrics.object_average = ObjectAverage::ByNone;
    15 "the average value of an object metric can be within the tolerance",
        source!("v1.15.0", "pkg/controller/podautoscaler/replica_calculator.go")
            => rules.metrics.object_average = ObjectAverage::ByReplicas;
    15 "a failing metric does not prevent a scale-up by other metrics",
        pull!(78503) => rules.metrics.errors = MetricErrors::Last;
    15 "no scaling if a utilization changes direction when all pods are counted (1.15.12)",
        pull!(85027) => rules.metrics.utilizations_keep_direction = true;
    16 "feature gate HPAScaleToZero, off by default",
        pull!(74526) => {
            rules.gate(Gate::HpaScaleToZero, GateRule::Default(false));
            rules.scale.at_zero = AtZero::DisabledUnlessMinIsZero;
            rules.admission.least_is_named = true;
        };
    16 "the first of several failing metrics is reported instead of the last",
        source!("v1.16.0", "pkg/controller/podautoscaler/horizontal.go")
            => rules.metrics.errors = MetricErrors::First;
    16 "the condition of a failing metric uses the error as a format string",
        source!("v1.16.0", "pkg/controller/podautoscaler/horizontal.go")
            => rules.texts.metric_messages_are_formats = true;
    16 "scale-down is possible while a metric fails",
        source!("v1.16.0", "pkg/controller/podautoscaler/horizontal.go")
            => rules.metrics.partial_failure_blocks_scale_down = false;
    16 "pending pods count as not ready, with or without metrics",
        source!("v1.16.0", "pkg/controller/podautoscaler/replica_calculator.go")
            => rules.pods.pending_is_unready = true;
    16 "the ratio of an external metric is checked before pods are counted",
        source!("v1.16.0", "pkg/controller/podautoscaler/replica_calculator.go")
            => rules.metrics.external_counts_pods_first = false;
    16 "a failing pods metric is no longer reported as an object metric",
        source!("v1.16.0", "pkg/controller/podautoscaler/horizontal.go")
            => rules.texts.pods_metric = "pods";
    16 "too few replicas are no longer reported with the message of the upper limit",
        source!("v1.16.0", "pkg/controller/podautoscaler/horizontal.go")
            => rules.texts.too_few_is_explained = true;
    16 "the expressions of a metric's selector are printed with their types",
        "https://github.com/kubernetes/apimachinery/blob/v0.16.4/pkg/apis/meta/v1/generated.pb.go"
            => rules.texts.expressions_are_typed = true;
    18 "an HPA in autoscaling/v2beta2 is stored with its defaults",
        source!("v1.18.0", "pkg/apis/autoscaling/v2beta2/zz_generated.defaults.go")
            => rules.admission.stores_without_defaults = false;
    18 "behavior: policies and stabilization windows per HPA",
        pull!(74525) => rules.admission.has_behavior = true;
    18 "metrics of terminating and failed pods no longer count (1.18.19)",
        pull!(95560) => rules.pods.ignored_pods_are_measured = false;
    19 "the error for a StatefulSet deleted before its scale is written also names the scale",
        source!("v1.19.0", "pkg/registry/apps/statefulset/storage/storage.go")
            => rules.scale.missing_on_write = MissingScale::All;
    20 "feature gate HPAContainerMetrics, off by default",
        pull!(90691) => rules.gate(Gate::HpaContainerMetrics, GateRule::Default(false));
    20 "the event for a failing resource metric says what could not be fetched",
        source!("v1.20.0", "pkg/controller/podautoscaler/horizontal.go")
            => rules.texts.resource_is_named = true;
    21 "events are recorded in the order in which they occur; before, their order is random",
        source!("v1.21.0", "staging/src/k8s.io/client-go/tools/record/event.go")
            => rules.events.in_order = true;
    21 "the error of a metric selector with a wrong number of values names the field",
        source!("v1.21.0", "staging/src/k8s.io/apimachinery/pkg/labels/selector.go")
            => rules.texts.wrong_number_of_values = WrongNumberFormat::GoSyntax;
    21 "no scale-down while a metric fails",
        pull!(99514) => rules.metrics.partial_failure_blocks_scale_down = true;
    21 "stabilization windows of behavior clamp the replicas between their recommendations",
        pull!(97348) => rules.normalization.behavior_windows = BehaviorWindows::Clamp;
    21 "no scaling if an average changes direction when all pods are counted",
        pull!(89465) => rules.metrics.averages_keep_direction = true;
    23 "autoscaling/v2, which the controller uses",
        pull!(102534) => rules.admission.serves_v2 = true;
    23 "CPU utilization is kept if another CPU metric precedes it",
        source!("v1.23.0", "pkg/apis/autoscaling/v1/conversion.go")
            => rules.admission.all_percentages_are_kept = true;
    25 "the error of a reconcile names the resource, container or external metric that failed",
        source!("v1.25.16", "pkg/controller/podautoscaler/horizontal.go") => {
            rules.texts.metric_is_named = true;
            rules.texts.no_target =
                "neither an average utilization target nor an average value target was set";
        };
    26 "HPAs that select the same pods fail: AmbiguousSelector",
        pull!(112011) => rules.pods.ambiguous_selector_is_checked = true;
    26 "policies also count changes in the other direction",
        pull!(109058) => rules.normalization.changes_are_netted = true;
    26 "when scaling down, a pod without metrics counts as using its target if that is above its \
        request",
        pull!(112178) => rules.pods.missing_pods_count_their_target = true;
    26 "missing metrics are reported before a missing request",
        source!("v1.26.0", "pkg/controller/podautoscaler/replica_calculator.go")
            => rules.metrics.metrics_before_requests = true;
    26 "the error for a missing request names the container and the pod",
        source!("v1.26.0", "pkg/controller/podautoscaler/replica_calculator.go")
            => rules.texts.missing_request = MissingRequest::InContainer;
    26 "errors refer to values that are not percentages as usage instead of utilization",
        source!("v1.26.0", "pkg/controller/podautoscaler/horizontal.go") => {
            rules.texts.average = "usage";
            rules.texts.no_target = "neither an average utilization target nor an average \
                                           value (usage) target was set";
        };
    26 "a status write error is also reported if the scale could not be read",
        source!("v1.26.0", "pkg/controller/podautoscaler/horizontal.go")
            => rules.status.scale_failure_reports_write_error = true;
    26 "five workers: flag --concurrent-horizontal-pod-autoscaler-syncs",
        pull!(108501) => {
            rules.flag(Flag::ConcurrentSyncs, true);
            rules.default_flags.concurrent_syncs = 5;
        };
    27 "if no pod has metrics, the error says that pods might be unready",
        pull!(114740) => {
            let error = "did not receive metrics for targeted pods (pods might be unready)";
            rules.texts.no_metrics = error;
            rules.texts.no_metrics_for_average = error;
        };
    27 "HPAs are stored as autoscaling/v2: metrics keep their order, and averages have no total",
        source!("v1.27.0", "pkg/apis/autoscaling/install/install.go")
            => rules.admission.stored_as_v1 = false;
    27 "the utilization of a container is reported as container utilization",
        source!("v1.27.0", "pkg/controller/podautoscaler/horizontal.go")
            => rules.texts.container_utilization_is_named = true;
    27 "feature gate HPAContainerMetrics is on by default",
        pull!(116046) => rules.gate(Gate::HpaContainerMetrics, GateRule::Default(true));
    27 "Prometheus metrics count and time reconciles and the computations of metrics",
        source!("v1.27.0", "pkg/controller/podautoscaler/monitor/metrics.go")
            => rules.controller_metrics.has_counters = true;
    27 "a reconcile that continues with some of the metrics ends with the error of the others",
        source!("v1.27.0", "pkg/controller/podautoscaler/horizontal.go")
            => rules.metrics.partial_failure_is_returned = true;
    28 "pods without metrics no longer count as zero if an average is exactly on its target",
        pull!(117845) => rules.pods.zeros_at_target = false;
    29 "requests of sidecars count",
        "https://github.com/kubernetes/kubernetes/issues/119991"
            => rules.pods.sidecars_count = true;
    29 "a failure replaces the metrics in the status",
        pull!(121039) => rules.status.failure_keeps_metrics = false;
    29 "a percent sign in the message of a condition is literal (1.29.15)",
        source!("v1.29.15", "pkg/controller/podautoscaler/horizontal.go") => {
            rules.texts.selector_messages_are_formats = false;
            rules.texts.metric_messages_are_formats = false;
        };
    30 "container metrics are stable: feature gate HPAContainerMetrics is locked",
        pull!(123482) => rules.gate(Gate::HpaContainerMetrics, GateRule::Locked(true));
    31 "the flags for the upscale and downscale delays, which had no effect, are removed",
        pull!(124948) => {
            rules.flag(Flag::UpscaleDelay, false);
            rules.flag(Flag::DownscaleDelay, false);
        };
    32 "feature gate HPAContainerMetrics is removed",
        source!("v1.32.13", "pkg/features/kube_features.go")
            => rules.gate(Gate::HpaContainerMetrics, GateRule::Gone);
    32 "the rate limit of events counts Normal and Warning events of an object separately",
        "https://github.com/kubernetes/client-go/blob/v0.32.13/tools/record/events_cache.go"
            => rules.events.limited_by_type = true;
    33 "the error for reading a missing scale names its resource",
        source!("v1.33.0", "pkg/registry/apps/deployment/storage/storage.go")
            => rules.scale.missing_on_read = MissingScale::AsResource;
    33 "feature gate HPAConfigurableTolerance, off by default",
        pull!(130797) => rules.gate(Gate::HpaConfigurableTolerance, GateRule::Default(false));
    33 "a ratio is compared with two tolerance bounds: 1.1 is now within 0.1",
        pull!(130797) => rules.metrics.within_tolerance = Within::Bounds;
    33 "the updater of a VPA resizes running pods; before, it evicts them in the same mode",
        "https://github.com/kubernetes/enhancements/issues/1287"
            => rules.pods.can_be_resized = true;
    33 "an HPA has a configurable tolerance for each direction",
        pull!(130797) => rules.admission.has_tolerance = true;
    33 "a pod whose metrics lack the container of a ContainerResource metric counts as missing",
        pull!(127193) => rules.pods.container_metrics_must_exist = false;
    33 "the status of an object metric with an average value names the object",
        pull!(124555) => rules.status.object_average_names_object = true;
    34 "the apiVersion of the target and of described objects must have a group",
        pull!(132537) => rules.admission.api_version_is_checked = true;
    34 "errors show a rejected quantity as it was written",
        source!("v1.34.0", "staging/src/k8s.io/apimachinery/pkg/util/validation/field/errors.go")
            => rules.admission.invalid_quantities = InvalidQuantities::Json;
    34 "the error of a metric selector shows a wrong number of values as JSON",
        source!("v1.34.0", "staging/src/k8s.io/apimachinery/pkg/util/validation/field/errors.go")
            => rules.texts.wrong_number_of_values = WrongNumberFormat::Json;
    34 "the status shows average memory usage in binary units",
        pull!(132351) => rules.status.memory_format = Format::BinarySI;
    34 "a conflict when updating the scale is retried four times",
        pull!(132007) => rules.scale.update_attempts = 5;
    34 "feature gate PodLevelResources, on by default",
        pull!(132430) => rules.gate(Gate::PodLevelResources, GateRule::Default(true));
    34 "the average of an external metric no longer overflows",
        pull!(127050) => rules.metrics.external_average_is_capped = true;
    35 "the proposal for an object or external metric with a value target is at most 2147483647",
        pull!(126979) => rules.metrics.value_is_capped = true;
    35 "a pod without the container of a ContainerResource metric is an error",
        pull!(133415) => rules.pods.container_must_exist = true;
    35 "feature gate HPAConfigurableTolerance is on by default",
        pull!(133128) => rules.gate(Gate::HpaConfigurableTolerance, GateRule::Default(true));
    35 "Prometheus metrics show the number of HPAs, and the desired replicas of each",
        source!("v1.35.0", "pkg/controller/podautoscaler/monitor/metrics.go")
            => rules.controller_metrics.has_gauges = true;
    36 "at zero replicas, scaling is disabled unless the controller scaled to zero",
        pull!(135118) => rules.scale.at_zero = AtZero::DisabledUnlessScaledToZero;
    36 "an object metric with an average value can be written as autoscaling/v1",
        source!("v1.36.3", "pkg/apis/autoscaling/v1/conversion.go")
            => rules.admission.zero_total_is_none = true;
    36 "maxReplicas: 0 is rejected as missing",
        source!("v1.36.3", "pkg/apis/autoscaling/validation/validation.go")
            => rules.admission.max_replicas_error = MaxReplicasError::Required;
    37 "errors for minReplicas and maxReplicas are reported last",
        source!("v1.37.0", "pkg/registry/autoscaling/horizontalpodautoscaler/strategy.go")
            => rules.admission.generated_validation = true;
    37 "feature gate HPAScaleToZero is on by default",
        pull!(139648) => rules.gate(Gate::HpaScaleToZero, GateRule::Default(true));
    37 "a new HPA is reconciled immediately",
        pull!(138294) => rules.queue.first_reconcile = FirstReconcile::Immediate;
    37 "generation and observedGeneration: feature gate HPAGeneration, on by default",
        pull!(138228) => rules.gate(Gate::HpaGeneration, GateRule::Default(true));
    37 "feature gate HPAOptimizedSelectorStore, on by default",
        source!("v1.37.0", "pkg/features/kube_features.go")
            => rules.gate(Gate::HpaOptimizedSelectorStore, GateRule::Default(true));
    37 "a reconcile is skipped if the cache is stale: gate StaleControllerConsistencyHPA, on by \
        default",
        pull!(139025) => rules.gate(Gate::StaleControllerConsistencyHpa, GateRule::Default(true));
    37 "the ambiguous selector error names two HPAs, and deleting an HPA ends its reconcile",
        source!("v1.37.0", "pkg/controller/podautoscaler/horizontal.go") => {
            rules.texts.ambiguous_hpas = AmbiguousHpas::Example;
            rules.queue.deletion_ends_reconcile = true;
        };
    37 "the word order in the error for an object metric is fixed",
        pull!(139029) => rules.texts.object_error = ObjectError::InOrder;
    37 "the tolerance per HPA is stable: feature gate HPAConfigurableTolerance is locked",
        pull!(140107) => rules.gate(Gate::HpaConfigurableTolerance, GateRule::Locked(true));
};
