//! Pods and Deployments in the form of the API.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec};
use k8s_openapi::api::core::v1::{Container, PodSpec, PodTemplateSpec, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};

use kube_autoscaler_models::api;
use kube_autoscaler_models::selector::match_labels;

/// The scheduler name of pods. No scheduler has this name, so pods are not assigned to nodes.
const SCHEDULER: &str = "kube-lockstep";

/// The image of containers. It need not exist, because no kubelet starts the containers.
const IMAGE: &str = "none";

/// Returns the spec of a pod that no scheduler assigns and no kubelet runs.
pub(super) fn pod_spec(spec: &api::PodSpec) -> PodSpec {
    PodSpec {
        scheduler_name: Some(SCHEDULER.to_owned()),
        termination_grace_period_seconds: Some(0),
        containers: spec.containers.iter().map(container).collect(),
        init_containers: Some(spec.init_containers.iter().map(container).collect()),
        resources: spec.requests.as_ref().map(resources),
        ..PodSpec::default()
    }
}

fn container(container: &api::Container) -> Container {
    Container {
        name: container.name.to_string(),
        image: Some(IMAGE.to_owned()),
        resources: Some(resources(&container.requests)),
        restart_policy: container.sidecar.then(|| "Always".to_owned()),
        ..Container::default()
    }
}

fn resources(requests: &api::Requests) -> ResourceRequirements {
    let requests = requests.iter().map(|(name, it)| (name.to_string(), Quantity(it.to_string())));
    ResourceRequirements { requests: Some(requests.collect()), ..ResourceRequirements::default() }
}

/// Returns a Deployment whose pods have the labels that a selector requires.
pub(super) fn deployment(name: &str, replicas: i32, selector: &str) -> Deployment {
    let labels = Some(required_labels(selector));
    let app = api::Container { name: "app".into(), ..api::Container::default() };
    let pods = api::PodSpec { containers: vec![app], ..api::PodSpec::default() };
    let metadata = ObjectMeta { labels: labels.clone(), ..ObjectMeta::default() };
    Deployment {
        metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
        spec: DeploymentSpec {
            replicas: Some(replicas),
            selector: LabelSelector { match_labels: labels, ..LabelSelector::default() },
            template: PodTemplateSpec { metadata: Some(metadata), spec: Some(pod_spec(&pods)) },
            ..DeploymentSpec::default()
        },
        ..Deployment::default()
    }
}

/// Returns the labels that a selector requires, or none if the selector is not a list of labels.
pub(super) fn required_labels(selector: &str) -> BTreeMap<String, String> {
    let labels = match_labels(selector).unwrap_or_default().into_iter();
    labels.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}
