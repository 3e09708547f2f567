//! The known items of the coverage.

use crate::counts::Group;
use kube_lockstep_scenario::resolved::BUILT_IN;

/// The groups in the order of the report, each with its known items.
pub(super) static KNOWN: [Group; 13] = [
    (
        "conditions",
        &[
            "SucceededGetScale",
            "FailedGetScale",
            "ReadyForNewScale",
            "ScaleUpStabilized",
            "ScaleDownStabilized",
            "SucceededRescale",
            "FailedUpdateScale",
            "ValidMetricFound",
            "ScalingDisabled",
            "InvalidSelector",
            "AmbiguousSelector",
            "FailedGetResourceMetric",
            "FailedGetContainerResourceMetric",
            "FailedGetPodsMetric",
            "FailedGetObjectMetric",
            "FailedGetExternalMetric",
            "InvalidMetricSourceType",
            "DesiredWithinRange",
            "TooFewReplicas",
            "TooManyReplicas",
            "ScaleUpLimit",
            "ScaleDownLimit",
            "ScaledToZero",
            "NotScaledToZero",
        ],
    ),
    (
        "events",
        &[
            "SuccessfulRescale",
            "FailedRescale",
            "FailedGetScale",
            "FailedGetResourceMetric",
            "FailedGetContainerResourceMetric",
            "FailedGetPodsMetric",
            "FailedGetObjectMetric",
            "FailedGetExternalMetric",
            "FailedComputeMetricsReplicas",
            "FailedUpdateStatus",
            "SelectorRequired",
            "InvalidSelector",
            "AmbiguousSelector",
        ],
    ),
    (
        "branches",
        &["NoScale", "Skipped", "Disabled", "AboveMax", "BelowMin", "NoMetrics", "Metrics"],
    ),
    ("sources", &["Resource", "ContainerResource", "Pods", "Object", "External"]),
    ("targets", &["Utilization", "AverageValue", "Value"]),
    (
        "paths",
        &[
            "Failed",
            "FromZero",
            "Total",
            "WithinTolerance",
            "Ready",
            "SecondWithinTolerance",
            "SecondReversed",
            "CountReversed",
            "Second",
        ],
    ),
    (
        "pods",
        &[
            "unready",
            "missing",
            "ignored",
            "unknown",
            "missing-as-percent",
            "missing-as-target",
            "missing-as-zero",
            "missing-left-out",
            "unready-as-zero",
        ],
    ),
    (
        "limits",
        &[
            "held-by-up-window",
            "held-by-down-window",
            "held-by-flag",
            "legacy-limit",
            "up-max",
            "up-min",
            "up-disabled",
            "down-max",
            "down-min",
            "down-disabled",
            "policy-after-scale-up",
            "policy-after-scale-down",
        ],
    ),
    (
        "writes",
        &[
            "scale",
            "scale-refused",
            "scale-tried-again",
            "status",
            "status-refused",
            "status-unchanged",
            "scale-unreadable",
            "metrics-unreadable",
            "failed-but-scaled-up",
        ],
    ),
    ("errors", &ERRORS),
    ("kinds", &KINDS),
    (
        "versions",
        &["autoscaling/v2", "autoscaling/v1", "autoscaling/v2beta2", "autoscaling/v2beta1"],
    ),
    // The gates depend on the release.
    ("gates", &[]),
];

/// The kinds of targets.
const KINDS: [&str; 5] = {
    let [a, b, c, d] = BUILT_IN;
    [a.kind, b.kind, c.kind, d.kind, CUSTOM]
};

/// All kinds that are not built in.
pub(super) const CUSTOM: &str = "custom resource";

/// Errors of the controller, each by a part of its text.
pub(super) const ERRORS: [&str; 32] = [
    "invalid API version in scale target reference",
    "unable to determine resource for scale target reference",
    "failed to query scale subresource for",
    "the server could not find the requested resource",
    "failed to compute desired number of replicas",
    "failed to rescale",
    "error getting latest scale for",
    "failed to update status for",
    "selector is required",
    "couldn't convert selector into a corresponding internal selector object",
    "was deleted during reconciliation",
    "are controlled by more than one HPA",
    "invalid metrics (",
    "no metric source was set",
    "neither an average utilization target nor an average value (usage) target was set",
    "neither a value target nor an average value target was set",
    "no target average value was set",
    "unable to fetch metrics from resource metrics API",
    "no metrics returned from resource metrics API",
    "unable to fetch metrics from custom metrics API",
    "no metrics returned from custom metrics API",
    "unable to fetch metrics from external metrics API",
    "no metrics returned from external metrics API",
    "results when we asked for exactly one",
    "the server could not find the metric",
    "no pods returned by selector while calculating replica count",
    "did not receive metrics for targeted pods (pods might be unready)",
    "no metrics returned matched known pods",
    "unable to calculate ready pods",
    "missing request for",
    "missing pod-level request for",
    "not found in Pod",
];
