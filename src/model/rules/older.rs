//! The older rows of the table: up to the last release without autoscaling/v2.

use super::changes::{Change, beside, change, source};
use super::{
    AtZero, BehaviorWindows, ErrorOfMetrics, GateRule, MetricsFrom, MissingRequest, MissingScale,
    ObjectAverage, SizeLimits, Unready, Windows,
};
use crate::model::flags::{Flag, Gate};
use crate::model::time::Span;

pub(super) const OLDER: [Change; 50] = [
    change(
        7,
        "conditions, which also tell of a scale that could not be read or written",
        "https://github.com/kubernetes/kubernetes/pull/46550",
        |rules| rules.has_conditions = true,
    ),
    change(
        7,
        "the status is written only if there is something new",
        "https://github.com/kubernetes/kubernetes/pull/47078",
        |rules| rules.status_is_always_written = false,
    ),
    change(
        7,
        "the size may become twice what it was before the largest size is looked at",
        source!("v1.7.0", "pkg/controller/podautoscaler/horizontal.go"),
        |rules| rules.size_limits = SizeLimits::RateInstead,
    ),
    change(
        7,
        "flags for the windows in which the size may not grow or shrink",
        "https://github.com/kubernetes/kubernetes/pull/42101",
        |rules| {
            rules.flag(Flag::UpscaleDelay, true);
            rules.flag(Flag::DownscaleDelay, true);
        },
    ),
    change(
        7,
        "an error of averages says \"receive\", no longer \"recieve\"",
        source!("v1.7.0", "pkg/controller/podautoscaler/replica_calculator.go"),
        |rules| {
            rules.error_texts.no_metrics_for_average = "did not receive metrics for any ready pods";
        },
    ),
    change(
        7,
        "HPAs that wait for one instant are a heap: the first of three is not always the first",
        source!("v1.7.0", "staging/src/k8s.io/client-go/util/workqueue/delaying_queue.go"),
        |rules| rules.waiting_is_sorted = false,
    ),
    beside(
        &["https://github.com/kubernetes/kubernetes/pull/48997"],
        change(
            8,
            "the size becomes no more than the largest size, no less than the smallest (1.8.15)",
            "https://github.com/kubernetes/kubernetes/pull/53690",
            |rules| rules.size_limits = SizeLimits::RateFirst,
        ),
    ),
    change(
        8,
        "the time of the last change of the size is stored in whole seconds",
        source!("v1.8.0", "staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/time_proto.go"),
        |rules| rules.scale_times_are_whole = true,
    ),
    change(
        8,
        "autoscaling/v2beta1, and the controller uses it: v2alpha1 under another name",
        "https://github.com/kubernetes/kubernetes/pull/50708",
        |rules| rules.serves_v2beta1 = true,
    ),
    change(
        9,
        "limits are a range, of which conditions speak in the present tense",
        source!("v1.9.0", "pkg/controller/podautoscaler/horizontal.go"),
        |rules| rules.size_limits = SizeLimits::Range,
    ),
    change(
        9,
        "metrics come from the metrics APIs, no longer from Heapster",
        "https://github.com/kubernetes/kubernetes/pull/53205",
        |rules| rules.metrics_from = MetricsFrom::Apis,
    ),
    change(
        9,
        "a scale is found by group and kind, in any group",
        "https://github.com/kubernetes/kubernetes/pull/53743",
        |rules| rules.scales_of_extensions = false,
    ),
    change(
        9,
        "flag --horizontal-pod-autoscaler-tolerance",
        "https://github.com/kubernetes/kubernetes/pull/52275",
        |rules| rules.flag(Flag::Tolerance, true),
    ),
    change(
        10,
        "external metrics",
        "https://github.com/kubernetes/kubernetes/pull/60096",
        |rules| rules.has_external_metrics = true,
    ),
    change(
        10,
        "failed pods no longer count as not ready, for a percentage of requests",
        "https://github.com/kubernetes/kubernetes/pull/60648",
        |rules| rules.unready = Unready::All { failed: false },
    ),
    change(
        10,
        "errors say which of the metrics APIs gave nothing",
        source!("v1.10.0", "pkg/controller/podautoscaler/metrics/rest_metrics_client.go"),
        |rules| rules.error_texts.metrics_api_is_named = true,
    ),
    change(
        10,
        "a condition's message says \"successfully\", no longer \"succesfully\"",
        source!("v1.10.0", "pkg/controller/podautoscaler/horizontal.go"),
        |rules| rules.error_texts.successfully = "successfully",
    ),
    change(
        10,
        "the error of a kind that there is not quotes it",
        source!("v1.10.0", "staging/src/k8s.io/apimachinery/pkg/api/meta/errors.go"),
        |rules| rules.error_texts.unknown_kind_is_quoted = true,
    ),
    change(
        11,
        "the value of an object's or an external metric counts per ready pod, not per replica",
        source!("v1.11.0", "pkg/controller/podautoscaler/replica_calculator.go"),
        |rules| rules.values_are_per_ready_pod = true,
    ),
    change(
        12,
        "the sync period is 15s, no longer 30s",
        "https://github.com/kubernetes/kubernetes/pull/68021",
        |rules| rules.default_flags.sync_period = Span::from_secs(15),
    ),
    beside(
        &[
            "https://github.com/kubernetes/kubernetes/pull/66615",
            "https://github.com/kubernetes/kubernetes/pull/68831",
        ],
        change(
            12,
            "the size follows the highest recommendation of a window; no window forbids a change",
            "https://github.com/kubernetes/kubernetes/pull/68122",
            |rules| {
                rules.windows = Windows::Recommendations;
                rules.flag(Flag::DownscaleStabilization, true);
            },
        ),
    ),
    change(
        12,
        "each reconcile queues the next one (1.12.10)",
        "https://github.com/kubernetes/kubernetes/pull/72373",
        |rules| rules.success_requeues = true,
    ),
    change(
        12,
        "readiness counts only of pods that have just started, and only for cpu",
        "https://github.com/kubernetes/kubernetes/pull/68068",
        |rules| {
            rules.unready = Unready::JustStarted;
            rules.flag(Flag::CpuInitializationPeriod, true);
            rules.flag(Flag::InitialReadinessDelay, true);
        },
    ),
    change(
        12,
        "terminating and failed pods are ignored, but their metrics count",
        "https://github.com/kubernetes/kubernetes/pull/67067",
        |rules| {
            rules.terminating_is_ignored = true;
            rules.ignored_pods_are_measured = true;
        },
    ),
    change(
        12,
        "autoscaling/v2beta2, and the controller uses it: selectors of metrics",
        "https://github.com/kubernetes/kubernetes/pull/64097",
        |rules| {
            rules.has_metric_selectors = true;
            rules.absent_totals_are_zero = false;
        },
    ),
    change(
        12,
        "the error of a missing request names neither container nor pod",
        source!("v1.12.0", "pkg/controller/podautoscaler/replica_calculator.go"),
        |rules| rules.error_texts.missing_request = MissingRequest::Bare,
    ),
    change(
        12,
        "a metric of pods that fails is called one of an object",
        source!("v1.12.0", "pkg/controller/podautoscaler/horizontal.go"),
        |rules| rules.error_texts.pods_metric = "object",
    ),
    change(
        13,
        "a scale that is not there is named in the group apps, no longer in extensions",
        source!("v1.13.0", "pkg/registry/apps/deployment/storage/storage.go"),
        |rules| {
            rules.unread_scale = MissingScale::ByApps;
            rules.unwritten_scale = MissingScale::ByApps;
        },
    ),
    change(
        13,
        "the size that is wanted counts, no longer the one that there is (1.13.12)",
        "https://github.com/kubernetes/kubernetes/pull/79035",
        |rules| rules.uses_spec_replicas = true,
    ),
    change(
        14,
        "averages of an object's metric, but never within the tolerance",
        "https://github.com/kubernetes/kubernetes/pull/72824",
        |rules| rules.object_average = ObjectAverage::ByNone,
    ),
    change(
        15,
        "an average of an object's metric can be within the tolerance",
        source!("v1.15.0", "pkg/controller/podautoscaler/replica_calculator.go"),
        |rules| rules.object_average = ObjectAverage::ByReplicas,
    ),
    change(
        15,
        "a metric that fails does not keep the others from making the size larger",
        "https://github.com/kubernetes/kubernetes/pull/78503",
        |rules| rules.error_of_metrics = ErrorOfMetrics::Last,
    ),
    change(
        15,
        "a utilization that, with all pods counted, turns the direction keeps the size (1.15.12)",
        "https://github.com/kubernetes/kubernetes/pull/85027",
        |rules| rules.utilizations_keep_direction = true,
    ),
    change(
        16,
        "feature gate HPAScaleToZero, off by default",
        "https://github.com/kubernetes/kubernetes/pull/74526",
        |rules| {
            rules.gate(Gate::HpaScaleToZero, GateRule::Default(false));
            rules.at_zero = AtZero::DisabledUnlessMinIsZero;
            rules.error_texts.least_is_told = true;
        },
    ),
    change(
        16,
        "the first of several metrics that fail is told, no longer the last",
        source!("v1.16.0", "pkg/controller/podautoscaler/horizontal.go"),
        |rules| rules.error_of_metrics = ErrorOfMetrics::First,
    ),
    change(
        16,
        "the condition of a metric that fails takes the error for one of Go's formats",
        source!("v1.16.0", "pkg/controller/podautoscaler/horizontal.go"),
        |rules| rules.metric_messages_are_formats = true,
    ),
    change(
        16,
        "the size shrinks also while a metric fails",
        source!("v1.16.0", "pkg/controller/podautoscaler/horizontal.go"),
        |rules| rules.partial_failure_blocks_scale_down = false,
    ),
    change(
        16,
        "pending pods are not ready, be there metrics of them or not",
        source!("v1.16.0", "pkg/controller/podautoscaler/replica_calculator.go"),
        |rules| rules.pending_is_unready = true,
    ),
    change(
        16,
        "the ratio of an external metric is looked at before pods are counted",
        source!("v1.16.0", "pkg/controller/podautoscaler/replica_calculator.go"),
        |rules| rules.external_counts_pods_first = false,
    ),
    change(
        16,
        "a metric of pods that fails is no longer called one of an object",
        source!("v1.16.0", "pkg/controller/podautoscaler/horizontal.go"),
        |rules| rules.error_texts.pods_metric = "pods",
    ),
    change(
        16,
        "that there are too few replicas is no longer told in the words of the upper limit",
        source!("v1.16.0", "pkg/controller/podautoscaler/horizontal.go"),
        |rules| rules.error_texts.too_few_is_explained = true,
    ),
    change(
        16,
        "the expressions of a metric's selector are printed with their types",
        "https://github.com/kubernetes/apimachinery/blob/v0.16.4/pkg/apis/meta/v1/generated.pb.go",
        |rules| rules.expressions_are_typed = true,
    ),
    change(
        18,
        "behavior: policies and windows of each HPA",
        "https://github.com/kubernetes/kubernetes/pull/74525",
        |rules| rules.has_behavior = true,
    ),
    change(
        18,
        "metrics of terminating and failed pods no longer count (1.18.19)",
        "https://github.com/kubernetes/kubernetes/pull/95560",
        |rules| rules.ignored_pods_are_measured = false,
    ),
    change(
        19,
        "a StatefulSet that goes before its scale is written is named as a scale, too",
        source!("v1.19.0", "pkg/registry/apps/statefulset/storage/storage.go"),
        |rules| rules.unwritten_scale = MissingScale::All,
    ),
    change(
        20,
        "feature gate HPAContainerMetrics, off by default",
        "https://github.com/kubernetes/kubernetes/pull/90691",
        |rules| rules.gate(Gate::HpaContainerMetrics, GateRule::Default(false)),
    ),
    change(
        20,
        "the event of a resource metric that fails says what could not be had",
        source!("v1.20.0", "pkg/controller/podautoscaler/horizontal.go"),
        |rules| rules.error_texts.resource_is_named = true,
    ),
    change(
        21,
        "the size does not shrink while a metric fails",
        "https://github.com/kubernetes/kubernetes/pull/99514",
        |rules| rules.partial_failure_blocks_scale_down = true,
    ),
    change(
        21,
        "windows of behavior hold the size between their recommendations",
        "https://github.com/kubernetes/kubernetes/pull/97348",
        |rules| rules.behavior_windows = BehaviorWindows::Clamp,
    ),
    change(
        21,
        "an average that, with all pods counted, turns the direction keeps the size",
        "https://github.com/kubernetes/kubernetes/pull/89465",
        |rules| rules.averages_keep_direction = true,
    ),
];
