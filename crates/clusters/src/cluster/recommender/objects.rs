//! The objects of a scenario in the form of the API.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Map, Value, json};

use super::process::NAMESPACE_FLAG;
use crate::cluster::manifests::{deployment, pod_spec};
use kube_autoscaler_models::api::{Container, CrossVersionObjectReference, PodSpec};
use kube_autoscaler_models::quantity::{Format, Quantity};
use kube_autoscaler_models::selector::match_labels;
use kube_autoscaler_models::vpa::{
    Amount, Checkpoint, ClusterChange, ObjectName, ObservedOom, Pod, Script, Target,
    VerticalPodAutoscaler,
};
use kube_lockstep_engines::upstream::objects::{EvictionEvent, PodStatus};
use kube_lockstep_scenario::resolved::{BUILT_IN, ScalableKind};

/// The API of VPAs and checkpoints.
const API: &str = "autoscaling.k8s.io/v1";

/// The flags that the harness requires for itself.
const RESERVED: [&str; 3] = [NAMESPACE_FLAG, "ignored-vpa-object-namespaces", "kubeconfig"];

/// Returns the reason why the objects of a scenario can't be created in a cluster, if any.
pub(crate) fn unsupported_reason(script: &Script) -> Option<String> {
    if !script.start.flags.uses_checkpoints() {
        return Some("a history, which requires Prometheus".to_owned());
    }
    if let Some(flag) = RESERVED.into_iter().find(|flag| script.flags.contains_key(*flag)) {
        return Some(format!("the flag {flag}, which the harness sets"));
    }
    let steps = script.steps.iter().flat_map(|step| &step.changes);
    let changes = || script.start.objects.iter().chain(steps.clone());
    let mut namespaces = changes().filter_map(namespace);
    let first = namespaces.next();
    if namespaces.any(|it| Some(it) != first) {
        return Some("objects in several namespaces".to_owned());
    }
    if changes_containers(changes()) {
        return Some("a pod whose containers change".to_owned());
    }
    changes().find_map(|change| match change {
        ClusterChange::SetTarget(it) => unsupported_target(it),
        _ => None,
    })
}

/// Returns true if the containers of an existing pod change, which an API server rejects.
fn changes_containers<'a>(changes: impl Iterator<Item = &'a ClusterChange>) -> bool {
    let mut pods: BTreeMap<&ObjectName, &Pod> = BTreeMap::new();
    for change in changes {
        match change {
            ClusterChange::SetPod(pod) => {
                let is_changed = |before: &Pod| {
                    before.containers != pod.containers
                        || before.init_containers != pod.init_containers
                };
                if pods.insert(&pod.name, pod).is_some_and(is_changed) {
                    return true;
                }
            }
            ClusterChange::DeletePod(name) => drop(pods.remove(name)),
            _ => {}
        }
    }
    false
}

fn namespace(change: &ClusterChange) -> Option<&str> {
    match change {
        ClusterChange::SetVpa(vpa) => Some(&vpa.metadata.name.namespace),
        ClusterChange::SetPod(pod) => Some(&pod.name.namespace),
        ClusterChange::SetCheckpoint(checkpoint) => Some(&checkpoint.metadata.namespace),
        ClusterChange::SetTarget(it) | ClusterChange::DeleteTarget(it) => Some(&it.namespace),
        ClusterChange::Evict(oom) => Some(&oom.pod.namespace),
        ClusterChange::DeleteVpa(name)
        | ClusterChange::DeletePod(name)
        | ClusterChange::DeleteCheckpoint(name) => Some(&name.namespace),
        ClusterChange::SetMetrics(_) | ClusterChange::Restart => None,
    }
}

fn unsupported_target(target: &Target) -> Option<String> {
    let kind = &target.reference.kind;
    if plural(&target.reference).is_none() {
        let api_version = target.reference.api_version();
        return Some(format!("a target of the kind {api_version} {kind}"));
    }
    if *kind != "Deployment" {
        return Some(format!(
            "a target of the kind {kind}, whose controller would adopt the pods and delete them"
        ));
    }
    if target.has_parent || target.error.is_some() {
        return Some("a target that another controller owns".to_owned());
    }
    let text = target.selector.to_string();
    match_labels(&text)
        .is_none()
        .then(|| format!("the selector {text}, which is not a list of labels"))
}

/// The resource of a kind whose selector the recommender reads from the object itself.
fn plural(target: &CrossVersionObjectReference) -> Option<&'static str> {
    let (group, version) = target.api_version().split_once('/')?;
    let is_kind = |known: &&ScalableKind<'static>| {
        known.group == group && known.version == version && known.kind == target.kind
    };
    BUILT_IN.iter().find(is_kind).map(|known| known.resource)
}

/// The path of the targets of a kind.
pub(super) fn targets_path(target: &Target) -> String {
    let plural = plural(&target.reference).unwrap_or_default();
    format!("/apis/apps/v1/namespaces/{}/{plural}", target.namespace)
}

pub(super) fn vpas_path(namespace: &str) -> String {
    format!("/apis/{API}/namespaces/{namespace}/verticalpodautoscalers")
}

pub(super) fn checkpoints_path(namespace: &str) -> String {
    format!("/apis/{API}/namespaces/{namespace}/verticalpodautoscalercheckpoints")
}

pub(super) fn pods_path(namespace: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/pods")
}

pub(super) fn events_path(namespace: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/events")
}

/// The target of a VPA. It has no replicas, because the pods are those of the scenario.
pub(super) fn target(target: &Target) -> Deployment {
    deployment(&target.reference.name, 0, &target.selector.to_string())
}

/// The VPA without its status and generation, which the API server sets.
pub(super) fn vpa(vpa: &VerticalPodAutoscaler) -> Value {
    let mut value = serde_json::to_value(vpa).unwrap_or_default();
    value["apiVersion"] = API.into();
    value["kind"] = "VerticalPodAutoscaler".into();
    if let Some(fields) = value.as_object_mut() {
        fields.remove("status");
    }
    if let Some(metadata) = value["metadata"].as_object_mut() {
        metadata.remove("generation");
    }
    value
}

pub(super) fn checkpoint(checkpoint: &Checkpoint) -> Value {
    let mut value = serde_json::to_value(checkpoint).unwrap_or_default();
    value["apiVersion"] = API.into();
    value["kind"] = "VerticalPodAutoscalerCheckpoint".into();
    value
}

/// The pod without its status, which is written to a subresource.
pub(super) fn pod(pod: &Pod) -> v1::Pod {
    let container = |name: &Arc<str>, memory: Amount| {
        let quantity = || Quantity::from_units(memory, Format::DecimalSI);
        let request = (memory != 0).then(|| ("memory".into(), quantity()));
        Container { name: name.clone(), requests: request.into_iter().collect(), sidecar: false }
    };
    let containers = pod.containers.iter().map(|it| container(&it.name, it.memory_request));
    let spec = PodSpec {
        containers: containers.collect(),
        init_containers: pod.init_containers.iter().map(|name| container(name, 0)).collect(),
        ..PodSpec::default()
    };
    let metadata = ObjectMeta {
        name: Some(pod.name.name.to_string()),
        labels: Some(pod.labels.map().clone()),
        ..ObjectMeta::default()
    };
    v1::Pod { metadata, spec: Some(pod_spec(&spec)), status: None }
}

/// A merge patch of a pod's status.
pub(super) fn pod_status(pod: &Pod) -> Value {
    json!({ "status": PodStatus::from(pod) })
}

/// A merge patch that replaces the labels of a pod.
pub(super) fn relabel(from: &Pod, to: &Pod) -> Value {
    let gone = from.labels.map().keys().filter(|name| !to.labels.map().contains_key(*name));
    let mut labels: Map<String, Value> = gone.map(|name| (name.clone(), Value::Null)).collect();
    labels.extend(to.labels.map().iter().map(|(name, value)| (name.clone(), json!(value))));
    json!({ "metadata": { "labels": labels } })
}

/// The event of an eviction, whose time the API server sets.
pub(super) fn eviction(oom: &ObservedOom) -> EvictionEvent<'_> {
    let mut event = EvictionEvent::from(oom);
    event.metadata.generate_name = Some(format!("{}.", oom.pod.name));
    event.metadata.creation_timestamp = None;
    event
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lists_of_labels_are_selectors_of_real_workloads() {
        assert_eq!(match_labels("app=web,tier=a"), Some(vec![("app", "web"), ("tier", "a")]));
        for other in ["app!=web", "app in (a)", "app"] {
            assert_eq!(match_labels(other), None, "{other}");
        }
    }
}
