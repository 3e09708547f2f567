//! Stabilization windows that are longer than a period of the load.

use crate::context::{Context, HpaWithTarget};
use crate::{Evidence, Found, Level, Rule};
use kube_autoscaler_models::api::{ScalingRules, SelectPolicy};
use kube_autoscaler_models::rules::Windows;
use kube_autoscaler_models::time::Span;
use kube_lockstep_manifests::{Load, ValueRange};

pub(super) const RULE: Rule = Rule {
    id: "window-longer-than-period",
    level: Level::Warning,
    summary: "A stabilization window is longer than a period of the load.",
    reason: "A scale-down waits until no recommendation in its window is higher. If a window \
             contains a whole wave of the load, the replicas stay at its peak. A window for \
             scale-ups keeps them at its lowest point.",
    link: "https://kubernetes.io/docs/concepts/workloads/autoscaling/\
           horizontal-pod-autoscale/#stabilization-window",
    check,
};

/// A window of one direction.
struct Window {
    /// `scaleUp` or `scaleDown`.
    name: &'static str,
    /// `scale-up` or `scale-down`.
    direction: &'static str,
    length: Span,
    /// Where it keeps the replicas.
    effect: &'static str,
}

fn check(context: &Context<'_>) -> Vec<Found> {
    context.hpas.iter().flat_map(|hpa| findings(context, hpa)).collect()
}

fn findings(context: &Context<'_>, hpa: &HpaWithTarget<'_>) -> Vec<Found> {
    let metrics: Vec<_> = hpa.metrics().collect();
    // With several metrics, another one can have the largest proposal.
    let [metric] = metrics.as_slice() else { return Vec::new() };
    let Some(load) = context.load(hpa.hpa, *metric).filter(|_| hpa.can_change()) else {
        return Vec::new();
    };
    let Some(period) = load.period().filter(|_| !is_within_tolerance(context, hpa, load)) else {
        return Vec::new();
    };
    let name = metric.spec.name().unwrap_or_default();
    let too_long = windows(context, hpa).into_iter().filter(|window| window.length > period);
    let finding = |Window { name: field, direction, length, effect }| {
        let what = format!(
            "the {direction} stabilization window of {length} is longer than a period of the load \
             of {name}, {period}: the replicas stay {effect} of each wave"
        );
        let path = format!("spec.behavior.{field}.stabilizationWindowSeconds");
        let hint = format!("to follow the load, set a window that is much shorter than {period}");
        Found::at(hpa.object(), &path, Evidence::Derived, what).hint(hint)
    };
    too_long.map(finding).collect()
}

/// Returns true if the load never falls below its peak by more than the scale-down tolerance, so
/// the window makes no difference.
fn is_within_tolerance(context: &Context<'_>, hpa: &HpaWithTarget<'_>, load: &Load) -> bool {
    // If all amounts are percentages, the ratio is the same for any request.
    load.range(Some(1_000_000)).is_some_and(|ValueRange { least, most }| {
        most <= 0 || least as f64 / most as f64 >= 1.0 - context.tolerances(hpa.hpa).scale_down
    })
}

/// The windows of an HPA, by the default flags of the controller.
fn windows(context: &Context<'_>, hpa: &HpaWithTarget<'_>) -> Vec<Window> {
    if context.rules.normalization.windows == Windows::Forbidden {
        return Vec::new();
    }
    let default = context.rules.default_flags.downscale_stabilization;
    let behavior = hpa.hpa.hpa.behavior.as_ref();
    let window = |rules: Option<&ScalingRules>, default: Span| {
        let is_enabled = |it: &&ScalingRules| it.select_policy != Some(SelectPolicy::Disabled);
        let Some(rules) = rules else { return Some(default) };
        let seconds = Some(rules).filter(is_enabled)?.stabilization_window_seconds;
        Some(seconds.map_or(default, |seconds| Span::from_secs(i64::from(seconds))))
    };
    let up = window(behavior.and_then(|it| it.scale_up.as_ref()), Span::ZERO);
    let down = window(behavior.and_then(|it| it.scale_down.as_ref()), default);
    let up = up.map(|length| Window {
        name: "scaleUp",
        direction: "scale-up",
        length,
        effect: "at the lowest point",
    });
    let down = down.map(|length| Window {
        name: "scaleDown",
        direction: "scale-down",
        length,
        effect: "at the peak",
    });
    [up, down].into_iter().flatten().collect()
}
