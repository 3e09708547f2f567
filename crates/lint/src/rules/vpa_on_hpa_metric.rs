//! A VPA that changes the requests of the utilization that an HPA scales on.

use crate::context::{Context, HpaWithTarget, Metric, ResourceTarget};
use crate::{Evidence, Found, Level, Rule};
use kube_lockstep_manifests::ValidVpa;

pub(super) const RULE: Rule = Rule {
    id: "vpa-on-hpa-metric",
    level: Level::Warning,
    summary: "A VPA changes the requests of pods, and an HPA scales them on the utilization of the \
              same resource.",
    reason: "Each change of the requests changes the utilization that the HPA reads, and each \
             change of the replicas changes the usage that the VPA reads. They can push each other \
             up to maxReplicas.",
    link: "https://github.com/kubernetes/autoscaler/blob/master/vertical-pod-autoscaler/docs/\
           known-limitations.md",
    check,
};

fn check(context: &Context<'_>) -> Vec<Found> {
    let mut findings = Vec::new();
    for vpa in context.manifests.vpas.iter().filter(|vpa| vpa.changes_pods()) {
        for hpa in context.hpas.iter().filter(|hpa| vpa.has_target_of(hpa.hpa)) {
            findings.extend(hpa.metrics().filter_map(|metric| finding(vpa, hpa, metric)));
        }
    }
    findings
}

fn finding(vpa: &ValidVpa, hpa: &HpaWithTarget<'_>, metric: Metric<'_>) -> Option<Found> {
    // An average value does not depend on the requests.
    let of = metric.resource().filter(|it| it.target.average_utilization.is_some())?;
    if !is_changed(vpa, hpa, of) {
        return None;
    }
    let (resource, vpa) = (of.resource, &vpa.vpa.name);
    let what = format!(
        "VPA {vpa} changes the {resource} requests of the pods that {} scales on the utilization \
         of {resource}: the two act against each other",
        hpa.title()
    );
    let hint = format!(
        "set `updateMode: \"Off\"` in VPA {vpa}, or `controlledResources` without {resource}, or \
         scale on another metric"
    );
    Some(Found::at(hpa.object(), &metric.path(), Evidence::Derived, what).hint(hint))
}

/// Returns true if the VPA changes a request that the utilization depends on.
fn is_changed(vpa: &ValidVpa, hpa: &HpaWithTarget<'_>, of: ResourceTarget<'_>) -> bool {
    let pods = hpa.target.map(|target| &target.pods);
    let known = pods.filter(|pods| !pods.containers.is_empty());
    match (of.container, known) {
        (Some(container), _) => vpa.controls(container, of.resource),
        (None, Some(pods)) => pods.running().any(|it| vpa.controls(&it.name, of.resource)),
        (None, None) => vpa.controls_any(of.resource),
    }
}
