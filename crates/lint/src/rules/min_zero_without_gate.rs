//! `minReplicas: 0` without the feature gate of a component.

use crate::context::{Context, HpaWithTarget};
use crate::{Evidence, Found, Level, Rule};
use kube_autoscaler_models::flags::{Gate, GateRule};
use kube_autoscaler_models::rules::AtZero;

pub(super) const RULE: Rule = Rule {
    id: "min-zero-without-gate",
    level: Level::Error,
    summary: "An HPA has minReplicas 0, but the feature gate HPAScaleToZero is off in the \
              kube-apiserver or in the kube-controller-manager.",
    reason: "Without the gate, the kube-apiserver rejects a new HPA with minReplicas 0. From \
             Kubernetes 1.36 on, a kube-controller-manager without it scales the workload to 0 but \
             never back.",
    link: "https://github.com/kubernetes/kubernetes/pull/135118",
    check,
};

fn check(context: &Context<'_>) -> Vec<Found> {
    let to_zero = context.hpas.iter().filter(|hpa| hpa.hpa.hpa.min_replicas == 0);
    to_zero.filter_map(|hpa| finding(context, hpa)).collect()
}

fn finding(context: &Context<'_>, hpa: &HpaWithTarget<'_>) -> Option<Found> {
    let gate = Gate::HpaScaleToZero;
    let release = context.options.release;
    let is_on = context.options.gates.api_server.enabled(gate);
    let has_gate = !matches!(context.rules.feature_gates[gate as usize], GateRule::Absent);
    // A cluster that has stored the HPA accepted its minimum.
    let is_stored = hpa.hpa.is_stored || context.options.hpas_are_stored;
    let (what, hint) = if !is_on && !is_stored {
        let why = match has_gate {
            true => "the feature gate HPAScaleToZero is off in the kube-apiserver",
            false => "this release can't scale to zero",
        };
        let what =
            format!("Kubernetes {release} rejects {} with minReplicas 0: {why}", hpa.title());
        (what, has_gate)
    } else if !context.gates().enabled(gate)
        && context.rules.scale.at_zero == AtZero::DisabledUnlessScaledToZero
    {
        let what = format!(
            "{} scales {} to 0 and never back: the feature gate HPAScaleToZero is off in the \
             kube-controller-manager",
            hpa.title(),
            hpa.target_title()
        );
        (what, true)
    } else {
        return None;
    };
    let hint = match hint {
        true => {
            "set minReplicas to 1, or enable the gate in both components and pass \
                 `--feature-gates HPAScaleToZero=true`"
        }
        false => "set minReplicas to 1",
    };
    Some(Found::at(hpa.object(), "spec.minReplicas", Evidence::Derived, what).hint(hint))
}
