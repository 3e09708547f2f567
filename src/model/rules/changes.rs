//! The table of what changed between releases.

use super::older::OLDER;
use super::{
    AmbiguousHpas, AtZero, FirstReconcile, GateRule, InvalidQuantities, MaxReplicasError,
    MissingRequest, MissingScale, ObjectError, Release, Rules, Within,
};
use crate::model::flags::{Flag, Gate};
use crate::model::quantity::Format;

/// One observable change between two releases.
#[derive(Clone, Copy, Debug)]
pub struct Change {
    /// The release that brought it.
    pub since: Release,
    /// What changed, in one line.
    pub what: &'static str,
    /// Where it was decided.
    pub link: &'static str,
    /// Where parts of it were, if not there.
    pub beside: &'static [&'static str],
    pub(super) apply: fn(&mut Rules),
}

pub(super) const fn change(
    minor: u32,
    what: &'static str,
    link: &'static str,
    apply: fn(&mut Rules),
) -> Change {
    Change { since: Release { minor }, what, link, beside: &[], apply }
}

/// A change of which parts were decided elsewhere, too.
pub(super) const fn beside(beside: &'static [&'static str], change: Change) -> Change {
    Change { beside, ..change }
}

impl Change {
    /// All places where it was decided.
    pub fn links(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.link).chain(self.beside.iter().copied())
    }
}

/// A link to a file of upstream's.
macro_rules! source {
    ($version:literal, $path:literal) => {
        concat!("https://github.com/kubernetes/kubernetes/blob/", $version, "/", $path)
    };
}

pub(super) use source;

/// Every change that the model knows, oldest first. Before the first row: 1.6.
pub const CHANGES: &[Change] = &joined();

/// The rows of both files.
const fn joined() -> [Change; OLDER.len() + NEWER.len()] {
    let mut all = [NEWER[0]; OLDER.len() + NEWER.len()];
    let mut index = 0;
    while index < all.len() {
        all[index] = if index < OLDER.len() { OLDER[index] } else { NEWER[index - OLDER.len()] };
        index += 1;
    }
    all
}

const NEWER: [Change; 51] = [
    change(
        23,
        "autoscaling/v2, and the controller uses it",
        "https://github.com/kubernetes/kubernetes/pull/102534",
        |rules| rules.serves_v2 = true,
    ),
    change(
        23,
        "a percentage of cpu is kept also where another metric of cpu stands before it",
        source!("v1.23.0", "pkg/apis/autoscaling/v1/conversion.go"),
        |rules| rules.all_percentages_are_kept = true,
    ),
    change(
        25,
        "the error of a reconcile names the resource, container or external metric that failed",
        source!("v1.25.16", "pkg/controller/podautoscaler/horizontal.go"),
        |rules| {
            rules.error_texts.metric_is_named = true;
            rules.error_texts.no_target =
                "neither an average utilization target nor an average value target was set";
        },
    ),
    change(
        26,
        "HPAs that select the same pods fail: AmbiguousSelector",
        "https://github.com/kubernetes/kubernetes/pull/112011",
        |rules| rules.ambiguous_selector_is_checked = true,
    ),
    change(
        26,
        "policies of one direction count changes in the other, too",
        "https://github.com/kubernetes/kubernetes/pull/109058",
        |rules| rules.changes_are_netted = true,
    ),
    change(
        26,
        "a pod without metrics counts its target on the way down, if that is above its request",
        "https://github.com/kubernetes/kubernetes/pull/112178",
        |rules| rules.missing_pods_count_their_target = true,
    ),
    change(
        26,
        "that no pod has metrics is told before that one has no request",
        source!("v1.26.0", "pkg/controller/podautoscaler/replica_calculator.go"),
        |rules| rules.metrics_before_requests = true,
    ),
    change(
        26,
        "the error of a missing request names container and pod",
        source!("v1.26.0", "pkg/controller/podautoscaler/replica_calculator.go"),
        |rules| rules.error_texts.missing_request = MissingRequest::InContainer,
    ),
    change(
        26,
        "what is not in percent is called usage in errors, no longer utilization",
        source!("v1.26.0", "pkg/controller/podautoscaler/horizontal.go"),
        |rules| {
            rules.error_texts.average = "usage";
            rules.error_texts.no_target = "neither an average utilization target nor an average \
                                           value (usage) target was set";
        },
    ),
    change(
        26,
        "an error of the write of the status is told when the scale could not be read, too",
        source!("v1.26.0", "pkg/controller/podautoscaler/horizontal.go"),
        |rules| rules.scale_failure_tells_status_error = true,
    ),
    change(
        26,
        "five workers: flag --concurrent-horizontal-pod-autoscaler-syncs",
        "https://github.com/kubernetes/kubernetes/pull/108501",
        |rules| {
            rules.flag(Flag::ConcurrentSyncs, true);
            rules.default_flags.concurrent_syncs = 5;
        },
    ),
    change(
        27,
        "the error that no pod has metrics says that pods might be unready",
        "https://github.com/kubernetes/kubernetes/pull/114740",
        |rules| {
            let error = "did not receive metrics for targeted pods (pods might be unready)";
            rules.error_texts.no_metrics = error;
            rules.error_texts.no_metrics_for_average = error;
        },
    ),
    change(
        27,
        "HPAs are stored as autoscaling/v2: metrics keep their order, and averages have no total",
        source!("v1.27.0", "pkg/apis/autoscaling/install/install.go"),
        |rules| rules.stored_as_v1 = false,
    ),
    change(
        27,
        "a utilization of one container is called that of a container",
        source!("v1.27.0", "pkg/controller/podautoscaler/horizontal.go"),
        |rules| rules.container_utilization_is_named = true,
    ),
    change(
        27,
        "feature gate HPAContainerMetrics is on by default",
        "https://github.com/kubernetes/kubernetes/pull/116046",
        |rules| rules.gate(Gate::HpaContainerMetrics, GateRule::Default(true)),
    ),
    change(
        27,
        "a reconcile that goes on with some of the metrics ends with the error of the others",
        source!("v1.27.0", "pkg/controller/podautoscaler/horizontal.go"),
        |rules| rules.partial_failure_is_returned = true,
    ),
    change(
        28,
        "pods without metrics no longer count zero if an average is right on its target",
        "https://github.com/kubernetes/kubernetes/pull/117845",
        |rules| rules.zeros_at_target = false,
    ),
    change(
        29,
        "requests of sidecars count",
        "https://github.com/kubernetes/kubernetes/issues/119991",
        |rules| rules.sidecars_count = true,
    ),
    change(
        29,
        "a failure replaces what the status says of the metrics",
        "https://github.com/kubernetes/kubernetes/pull/121039",
        |rules| rules.failure_keeps_metrics = false,
    ),
    change(
        29,
        "a percent sign in the message of a condition stands for itself (1.29.15)",
        source!("v1.29.15", "pkg/controller/podautoscaler/horizontal.go"),
        |rules| {
            rules.selector_messages_are_formats = false;
            rules.metric_messages_are_formats = false;
        },
    ),
    change(
        30,
        "metrics of containers are final: feature gate HPAContainerMetrics is locked",
        "https://github.com/kubernetes/kubernetes/pull/123482",
        |rules| rules.gate(Gate::HpaContainerMetrics, GateRule::Locked(true)),
    ),
    change(
        31,
        "the flags for windows that forbid a change are gone; they did nothing any more",
        "https://github.com/kubernetes/kubernetes/pull/124948",
        |rules| {
            rules.flag(Flag::UpscaleDelay, false);
            rules.flag(Flag::DownscaleDelay, false);
        },
    ),
    change(
        32,
        "feature gate HPAContainerMetrics is gone",
        source!("v1.32.13", "pkg/features/kube_features.go"),
        |rules| rules.gate(Gate::HpaContainerMetrics, GateRule::Gone),
    ),
    change(
        32,
        "of events of one object that come too fast, Normal ones and Warnings are counted apart",
        "https://github.com/kubernetes/client-go/blob/v0.32.13/tools/record/events_cache.go",
        |rules| rules.events_are_held_back_by_type = true,
    ),
    change(
        33,
        "a scale that is not there, and is read, is named as its resource",
        source!("v1.33.0", "pkg/registry/apps/deployment/storage/storage.go"),
        |rules| rules.unread_scale = MissingScale::AsResource,
    ),
    change(
        33,
        "feature gate HPAConfigurableTolerance, off by default",
        "https://github.com/kubernetes/kubernetes/pull/130797",
        |rules| rules.gate(Gate::HpaConfigurableTolerance, GateRule::Default(false)),
    ),
    change(
        33,
        "a ratio is within the tolerance if it lies between two bounds: 1.1 now does, by 0.1",
        "https://github.com/kubernetes/kubernetes/pull/130797",
        |rules| rules.within_tolerance = Within::Bounds,
    ),
    change(
        33,
        "an HPA has a tolerance for each direction of its own",
        "https://github.com/kubernetes/kubernetes/pull/130797",
        |rules| rules.has_tolerance = true,
    ),
    change(
        33,
        "a pod whose metrics lack the container of a ContainerResource metric counts as missing",
        "https://github.com/kubernetes/kubernetes/pull/127193",
        |rules| rules.container_metrics_must_exist = false,
    ),
    change(
        33,
        "the status of an average of an object's metric names the object",
        "https://github.com/kubernetes/kubernetes/pull/124555",
        |rules| rules.object_average_names_object = true,
    ),
    change(
        34,
        "the apiVersion of the target and of described objects must have a group",
        "https://github.com/kubernetes/kubernetes/pull/132537",
        |rules| rules.api_version_is_checked = true,
    ),
    change(
        34,
        "a quantity that is refused is named as it was written",
        source!("v1.34.0", "staging/src/k8s.io/apimachinery/pkg/util/validation/field/errors.go"),
        |rules| rules.invalid_quantities = InvalidQuantities::Json,
    ),
    change(
        34,
        "average memory use is printed in binary units in the status",
        "https://github.com/kubernetes/kubernetes/pull/132351",
        |rules| rules.memory_status_format = Format::BinarySI,
    ),
    change(
        34,
        "a conflict on the update of the scale is retried, four times",
        "https://github.com/kubernetes/kubernetes/pull/132007",
        |rules| rules.scale_update_attempts = 5,
    ),
    change(
        34,
        "feature gate PodLevelResources, on by default",
        "https://github.com/kubernetes/kubernetes/pull/132430",
        |rules| rules.gate(Gate::PodLevelResources, GateRule::Default(true)),
    ),
    change(
        34,
        "an external metric's average does not overflow any more",
        "https://github.com/kubernetes/kubernetes/pull/127050",
        |rules| rules.external_average_is_capped = true,
    ),
    change(
        35,
        "a metric of an object, or from outside, proposes no more than 2147483647 by its value",
        "https://github.com/kubernetes/kubernetes/pull/126979",
        |rules| rules.value_is_capped = true,
    ),
    change(
        35,
        "a pod without the container of a ContainerResource metric is an error",
        "https://github.com/kubernetes/kubernetes/pull/133415",
        |rules| rules.container_must_exist = true,
    ),
    change(
        35,
        "feature gate HPAConfigurableTolerance is on by default",
        "https://github.com/kubernetes/kubernetes/pull/133128",
        |rules| rules.gate(Gate::HpaConfigurableTolerance, GateRule::Default(true)),
    ),
    change(
        36,
        "at size zero, scaling is disabled unless the controller has scaled to zero",
        "https://github.com/kubernetes/kubernetes/pull/135118",
        |rules| rules.at_zero = AtZero::DisabledUnlessScaledToZero,
    ),
    change(
        36,
        "an average of an object's metric can be written as autoscaling/v1",
        source!("v1.36.3", "pkg/apis/autoscaling/v1/conversion.go"),
        |rules| rules.zero_total_is_none = true,
    ),
    change(
        36,
        "maxReplicas: 0 is refused as missing",
        source!("v1.36.3", "pkg/apis/autoscaling/validation/validation.go"),
        |rules| rules.max_replicas_error = MaxReplicasError::Required,
    ),
    change(
        37,
        "what is wrong with minReplicas and maxReplicas is told last",
        source!("v1.37.0", "pkg/registry/autoscaling/horizontalpodautoscaler/strategy.go"),
        |rules| rules.generated_validation = true,
    ),
    change(
        37,
        "feature gate HPAScaleToZero is on by default",
        "https://github.com/kubernetes/kubernetes/pull/139648",
        |rules| rules.gate(Gate::HpaScaleToZero, GateRule::Default(true)),
    ),
    change(
        37,
        "a new HPA is reconciled at once",
        "https://github.com/kubernetes/kubernetes/pull/138294",
        |rules| rules.first_reconcile = FirstReconcile::Immediate,
    ),
    change(
        37,
        "generation and observedGeneration: feature gate HPAGeneration, on by default",
        "https://github.com/kubernetes/kubernetes/pull/138228",
        |rules| rules.gate(Gate::HpaGeneration, GateRule::Default(true)),
    ),
    change(
        37,
        "feature gate HPAOptimizedSelectorStore, on by default",
        source!("v1.37.0", "pkg/features/kube_features.go"),
        |rules| rules.gate(Gate::HpaOptimizedSelectorStore, GateRule::Default(true)),
    ),
    change(
        37,
        "a stale cache skips a reconcile: gate StaleControllerConsistencyHPA, on by default",
        "https://github.com/kubernetes/kubernetes/pull/139025",
        |rules| rules.gate(Gate::StaleControllerConsistencyHpa, GateRule::Default(true)),
    ),
    change(
        37,
        "an ambiguous selector names two of the HPAs, and a deleted HPA ends its reconcile",
        source!("v1.37.0", "pkg/controller/podautoscaler/horizontal.go"),
        |rules| {
            rules.ambiguous_hpas = AmbiguousHpas::Example;
            rules.deletion_ends_reconcile = true;
        },
    ),
    change(
        37,
        "the error of an object's metric has its words in order",
        "https://github.com/kubernetes/kubernetes/pull/139029",
        |rules| rules.object_error = ObjectError::InOrder,
    ),
    change(
        37,
        "tolerance per HPA is final: feature gate HPAConfigurableTolerance is locked",
        "https://github.com/kubernetes/kubernetes/pull/140107",
        |rules| rules.gate(Gate::HpaConfigurableTolerance, GateRule::Locked(true)),
    ),
];
