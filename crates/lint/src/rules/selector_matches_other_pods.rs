//! Selectors that match the pods of another workload.

use crate::context::{Context, HpaWithTarget, Metric, SelectedPods};
use crate::{Evidence, Found, Level, Rule};
use kube_lockstep_manifests::ValidWorkload;

pub(super) const RULE: Rule = Rule {
    id: "selector-matches-other-pods",
    level: Level::Warning,
    summary: "The selector of the workload that an HPA scales also matches the pods of another \
              workload.",
    reason: "The controller finds pods by the selector alone: the other pods count in averages and \
             in the number of ready pods. Idle ones hold back a scale-up, and one without a \
             request fails the metric.",
    link: "https://github.com/kubernetes/kubernetes/issues/116339",
    check,
};

fn check(context: &Context<'_>) -> Vec<Found> {
    let is_checked = context.rules.pods.ambiguous_selector_is_checked;
    // Otherwise, the controller stops the HPAs, which is another finding.
    let selected = context.selected.iter().filter(|pods| !is_checked || pods.by.len() == 1);
    let by_hpa = selected.flat_map(|SelectedPods { workload, by }| {
        by.iter().filter_map(|index| finding(&context.hpas[*index], workload))
    });
    by_hpa.collect()
}

/// Returns true for the same object, which may be in two files.
fn is_same(one: &ValidWorkload, other: &ValidWorkload) -> bool {
    (one.title(), one.object.namespace()) == (other.title(), other.object.namespace())
}

fn finding(hpa: &HpaWithTarget<'_>, other: &ValidWorkload) -> Option<Found> {
    let target = hpa.target.filter(|target| !is_same(target, other))?;
    if !hpa.metrics().any(Metric::counts_pods) {
        return None;
    }
    let what = format!(
        "the selector of {} also matches the pods of {} ({}): {} counts them as well",
        target.title(),
        other.title(),
        other.object.place(),
        hpa.title()
    );
    let hint = "add a label to the selector that the other pods lack; the selector of a Deployment \
                can't be changed, so create a new one";
    Some(Found::at(&target.object, "spec.selector", Evidence::Derived, what).hint(hint))
}
