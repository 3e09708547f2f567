//! `spec.replicas` in the manifest of a workload that an HPA scales.

use crate::context::{Context, HpaWithTarget};
use crate::{Evidence, Found, Level, Rule};
use kube_lockstep_manifests::Object;
use kube_lockstep_scenario::node::{Node, NodeKind};

pub(super) const RULE: Rule = Rule {
    id: "replicas-beside-hpa",
    level: Level::Warning,
    summary: "The manifest of a workload sets the replicas that an HPA sets as well.",
    reason: "Each `kubectl apply` of the manifest resets the replicas. The HPA corrects them at \
             its next reconcile; if it scales up, only as fast as its policies allow. With 0 \
             replicas, the HPA stays disabled.",
    link: "https://kubernetes.io/docs/concepts/workloads/autoscaling/\
           horizontal-pod-autoscale/#migrating-deployments-and-statefulsets-to-\
           horizontal-autoscaling",
    check,
};

fn check(context: &Context<'_>) -> Vec<Found> {
    context.hpas.iter().filter_map(finding).collect()
}

fn finding(hpa: &HpaWithTarget<'_>) -> Option<Found> {
    let object = &hpa.target?.object;
    // In a cluster, each workload has replicas: what counts is what was applied.
    let (path, replicas) = match object.is_stored() {
        false => ("spec.replicas", object.field("spec.replicas").and_then(text)?),
        true => ("metadata.annotations", applied_replicas(object)?),
    };
    let (title, target) = (hpa.title(), hpa.target_title());
    let effect = match &*replicas {
        "0" => format!("each `kubectl apply` sets them to 0, which disables {title}"),
        _ if is_always(hpa, &replicas) => return None,
        _ if hpa.can_scale_up() => {
            format!("each `kubectl apply` resets them to {replicas} until the next reconcile")
        }
        _ => format!(
            "each `kubectl apply` resets them to {replicas}, and the HPA can't restore them, \
             because its scale-ups are disabled"
        ),
    };
    let field = match object.is_stored() {
        false => format!("spec.replicas is {replicas}"),
        true => format!("the last applied manifest has spec.replicas {replicas}"),
    };
    let what = format!("{field}, but {title} sets the replicas of {target}: {effect}");
    let hint = "leave out spec.replicas; if it was applied before, first remove it with `kubectl \
                apply edit-last-applied`, or the replicas drop to 1 once";
    Some(Found::at(object, path, Evidence::Observed, what).hint(hint))
}

/// Returns true if the HPA allows no other number of replicas.
fn is_always(hpa: &HpaWithTarget<'_>, replicas: &str) -> bool {
    !hpa.can_change() && hpa.hpa.hpa.max_replicas.to_string() == *replicas
}

fn text(node: &Node) -> Option<String> {
    match &node.kind {
        NodeKind::Scalar { text, .. } => Some(text.clone()),
        NodeKind::List(_) | NodeKind::Map(_) => None,
    }
}

/// The replicas in the manifest that `kubectl apply` applied last.
fn applied_replicas(object: &Object) -> Option<String> {
    const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
    let (_, applied) = object.field("metadata.annotations")?.entry(LAST_APPLIED)?;
    let applied: serde_json::Value = serde_json::from_str(&text(applied)?).ok()?;
    applied.pointer("/spec/replicas").filter(|it| it.is_number()).map(ToString::to_string)
}
