//! Several HPAs for the same pods.

use std::collections::BTreeMap;

use crate::context::{Context, HpaWithTarget, SelectedPods};
use crate::{Evidence, Found, Level, Rule};
use kube_lockstep_manifests::ValidWorkload;

pub(super) const RULE: Rule = Rule {
    id: "ambiguous-selector",
    level: Level::Error,
    summary: "Two HPAs scale the same workload, or their selectors match the same pods.",
    reason: "From Kubernetes 1.26 on, the controller stops both HPAs: their condition \
             ScalingActive is False with the reason AmbiguousSelector. In earlier releases, two \
             HPAs of one workload overwrite each other's replicas.",
    link: "https://github.com/kubernetes/kubernetes/pull/112011",
    check,
};

/// Two HPAs, by their indices.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Pair {
    second: usize,
    first: usize,
}

fn check(context: &Context<'_>) -> Vec<Found> {
    let hpas = &context.hpas;
    // The workload whose pods both select, unless both scale the same one.
    let mut pairs: BTreeMap<Pair, Option<&ValidWorkload>> = BTreeMap::new();
    for second in 0..hpas.len() {
        let is_same = |first: &usize| hpas[*first].has_same_target(&hpas[second]);
        // Each HPA is reported once, with the first HPA that it conflicts with.
        let same = (0..second).find(is_same);
        pairs.extend(same.map(|first| (Pair { second, first }, None)));
    }
    let is_checked = context.rules.pods.ambiguous_selector_is_checked;
    for SelectedPods { workload, by } in context.selected.iter().filter(|_| is_checked) {
        for (index, second) in by.iter().copied().enumerate() {
            let mut others = by[..index].iter().copied();
            let first = others.find(|first| hpas[*first].shares_namespace(&hpas[second]));
            if let Some(first) = first.filter(|_| !pairs.keys().any(|it| it.second == second)) {
                pairs.insert(Pair { second, first }, Some(workload));
            }
        }
    }
    let finding = |(Pair { second, first }, pods): (&Pair, &Option<&ValidWorkload>)| {
        finding(&hpas[*first], &hpas[*second], *pods, is_checked)
    };
    pairs.iter().map(finding).collect()
}

fn finding(
    first: &HpaWithTarget<'_>,
    second: &HpaWithTarget<'_>,
    pods: Option<&ValidWorkload>,
    is_checked: bool,
) -> Found {
    let (one, other) = (first.title(), second.title());
    let (why, hint) = match pods {
        None => (
            format!("{other} scales {}, as does {one}", second.target_title()),
            "put the metrics of both into one HPA, which uses the largest proposal",
        ),
        Some(pods) => (
            format!("{other} and {one} select the same pods, of {}", pods.title()),
            "give each workload a label that the selector of the other one does not match",
        ),
    };
    let effect = match is_checked {
        true => "the controller stops both (AmbiguousSelector)",
        false => "they overwrite each other's replicas",
    };
    let what = format!("{why} ({}): {effect}", first.object().place());
    Found::at(second.object(), "spec.scaleTargetRef", Evidence::Derived, what)
        .also(first.object())
        .hint(hint)
}
