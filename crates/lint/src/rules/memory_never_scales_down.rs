//! Memory targets that never let an HPA scale down.

use crate::context::{Context, HpaWithTarget, Metric, ResourceTarget};
use crate::{Evidence, Found, Level, Rule};
use kube_autoscaler_models::api::MetricTarget;
use kube_autoscaler_models::hpa::metrics::RequestQuery;
use kube_autoscaler_models::quantity::{Format, Quantity};
use kube_lockstep_manifests::{Load, ValueRange};

pub(super) const RULE: Rule = Rule {
    id: "memory-never-scales-down",
    level: Level::Note,
    summary: "The memory of a pod does not fall with the load, so the HPA never scales down.",
    reason: "A metric lets the HPA scale down only if its average falls below the target by more \
             than the tolerance. Most programs keep memory that they used once, and more pods do \
             not need less each. The HPA uses the largest proposal, so memory also keeps the \
             replicas that another metric no longer needs.",
    link: "https://kubernetes.io/docs/concepts/workloads/autoscaling/\
           horizontal-pod-autoscale/#algorithm-details",
    check,
};

fn check(context: &Context<'_>) -> Vec<Found> {
    let of_hpa =
        |hpa| HpaWithTarget::metrics(hpa).filter_map(move |metric| finding(context, hpa, metric));
    context.hpas.iter().flat_map(of_hpa).collect()
}

fn finding(context: &Context<'_>, hpa: &HpaWithTarget<'_>, metric: Metric<'_>) -> Option<Found> {
    let memory = metric.resource().filter(|it| it.resource == "memory")?;
    if !hpa.can_scale_down() {
        return None;
    }
    let usage = match context.load(hpa.hpa, metric) {
        // With more pods, the share of each pod is smaller.
        Some(load) if load.total => return None,
        Some(load) => Usage::of(context, hpa, memory, load),
        None => None,
    };
    let (evidence, what) = match usage {
        None => (
            Evidence::Assumed,
            format!(
                "if the pods of {} keep their memory when the load falls, as most programs do, \
                 this metric keeps {} from scaling down",
                hpa.target_title(),
                hpa.title()
            ),
        ),
        Some(Usage { prevents_scale_down: false, .. }) => return None,
        Some(Usage { least, .. }) => {
            let what = format!(
                "each pod uses {least} of memory, however many there are, which is not \
                 below the target by more than the tolerance: this metric keeps {} from scaling \
                 down",
                hpa.title()
            );
            (Evidence::Derived, what)
        }
    };
    let hint = "scale on cpu or on the request rate instead; a VPA can then set the \
                memory request";
    Some(Found::at(hpa.object(), &metric.path(), evidence, what).hint(hint))
}

/// The lowest memory usage of a pod.
struct Usage {
    /// `at least 792Mi`, or without `at least` if it never changes.
    least: String,
    /// True if the proposal is never below the current replicas.
    prevents_scale_down: bool,
}

impl Usage {
    /// The usage under a load. None: it is not known.
    fn of(
        context: &Context<'_>,
        hpa: &HpaWithTarget<'_>,
        memory: ResourceTarget<'_>,
        load: &Load,
    ) -> Option<Usage> {
        let query = RequestQuery {
            resource: memory.resource,
            container: memory.container,
            pod_level_resources: context.has_pod_level_requests(),
            rules: &context.rules.pods,
        };
        let request = hpa.target.and_then(|target| query.of(&target.pods.spec()).ok());
        let ValueRange { least: usage, most } = load.range_of_each(request)?;
        let ratio = ratio(usage, request, memory.target)?;
        let prevents_scale_down = ratio >= 1.0 || context.tolerances(hpa.hpa).is_within(ratio);
        // Above 1 MiB, whole mebibytes are exact enough and easier to read.
        let mebibytes = Quantity::from_units((usage / 1000) >> 20 << 20, Format::BinarySI);
        let bytes = Quantity::from_units(usage / 1000, Format::BinarySI);
        let shown = if usage >> 30 > 0 { mebibytes } else { bytes };
        let least = if usage < most { "at least " } else { "" };
        Some(Usage { least: format!("{least}{shown}"), prevents_scale_down })
    }
}

/// The usage in relation to the target, as the controller calculates it.
///
/// Upstream: metrics/utilization.go, GetResourceUtilizationRatio and GetMetricUsageRatio
fn ratio(usage: i64, request: Option<i64>, target: &MetricTarget) -> Option<f64> {
    match (target.average_utilization, &target.average_value) {
        (Some(percent), _) => {
            let utilization = usage.checked_mul(100)?.checked_div(request?)?;
            Some(utilization as f64 / f64::from(percent))
        }
        (None, Some(value)) => Some(usage as f64 / value.milli() as f64),
        (None, None) => None,
    }
}
