//! The parts of a scale target's manifest that matter to its HPA: replicas, labels and selector,
//! requests and limits of the containers, and when a new pod can become ready.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;

use super::objects::Object;
use kube_autoscaler_models::api::{self, LabelSelector, PodSpec, Requests};
use kube_autoscaler_models::quantity::{Format, Quantity};
use kube_autoscaler_models::selector::Selector;
use kube_autoscaler_models::time::Span;
use kube_lockstep_scenario::decode::{Nulls, decode};
use kube_lockstep_scenario::diagnostic::Diagnostic;
use kube_lockstep_scenario::error::Error;
use kube_lockstep_scenario::node::Node;
use kube_lockstep_scenario::raw::{
    InitContainer, InitContainers, PodResources, RestartPolicy, Workload,
};
use kube_lockstep_scenario::text::{Amount, As, ByName};
use kube_lockstep_scenario::workload::Container;

/// A scale target. Other fields of the manifest are ignored.
#[derive(Deserialize, Default)]
#[serde(default, expecting = "an object (a map)")]
struct TargetFields {
    spec: Option<SpecFields>,
    status: Option<StatusFields>,
}

#[derive(Deserialize, Default)]
#[serde(default, expecting = "a spec (a map)")]
struct SpecFields {
    replicas: Option<i32>,
    template: Option<TemplateFields>,
}

#[derive(Deserialize, Default)]
#[serde(default, expecting = "a status (a map)")]
struct StatusFields {
    replicas: Option<i32>,
}

#[derive(Deserialize, Default)]
#[serde(default, expecting = "the template of a pod (a map)")]
struct TemplateFields {
    metadata: Option<TemplateMetadata>,
    spec: Option<PodFields>,
}

#[derive(Deserialize, Default)]
#[serde(default, expecting = "metadata (a map)")]
struct TemplateMetadata {
    labels: Option<BTreeMap<String, String>>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default, expecting = "the spec of a pod (a map)")]
struct PodFields {
    containers: Option<Vec<ContainerFields>>,
    init_containers: Option<Vec<ContainerFields>>,
    resources: Option<ResourceFields>,
    #[serde(with = "As::<ByName<Amount>>")]
    overhead: Requests,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", expecting = "a container (a map)")]
struct ContainerFields {
    name: Arc<str>,
    #[serde(default)]
    resources: Option<ResourceFields>,
    #[serde(default)]
    readiness_probe: Option<ProbeFields>,
    #[serde(default)]
    startup_probe: Option<ProbeFields>,
    #[serde(default)]
    restart_policy: Option<String>,
}

impl ContainerFields {
    /// Returns true if an init container runs as long as the pod.
    fn is_sidecar(&self) -> bool {
        self.restart_policy.as_deref() == Some("Always")
    }
}

#[derive(Deserialize, Default)]
#[serde(default, expecting = "resources (a map)")]
struct ResourceFields {
    #[serde(with = "As::<ByName<Amount>>")]
    requests: Requests,
    #[serde(with = "As::<ByName<Amount>>")]
    limits: Requests,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default, expecting = "a probe (a map)")]
struct ProbeFields {
    initial_delay_seconds: Option<u32>,
}

/// A target and its pods, as a manifest describes them.
#[derive(Clone, Debug, Default)]
pub struct Pods {
    /// The replicas of the spec, or else of the status.
    pub replicas: Option<i32>,
    /// The labels of the template.
    pub labels: BTreeMap<String, String>,
    /// The selector as text. None: all labels.
    pub selector: Option<String>,
    /// The containers.
    pub containers: Vec<PodContainer>,
    /// The init containers, with those that run as long as the pod.
    pub init_containers: Vec<PodContainer>,
    /// Requests of the pod as a whole.
    pub requests: Requests,
    /// Limits of the pod as a whole.
    pub limits: Requests,
    /// The overhead of the runtime class.
    pub overhead: Requests,
    /// The earliest time after its start at which the probes can let a pod become ready, and the
    /// field and the container that set it.
    pub(crate) delay: Option<(Span, String)>,
}

/// A container of a pod.
#[derive(Clone, Debug, Default)]
pub struct PodContainer {
    /// The name.
    pub name: Arc<str>,
    /// Requests of cpu and memory. Where only a limit is set, the API server copies it.
    pub requests: Requests,
    /// Limits of cpu and memory.
    pub limits: Requests,
    /// An init container that runs as long as the pod.
    pub sidecar: bool,
}

impl Pods {
    /// Reads the manifest of a target.
    pub(crate) fn read(object: &Object) -> Result<Pods, Error> {
        let failed = |problem| object.problems(vec![problem]);
        let fields: TargetFields = decode(&object.node, Nulls::Absent).map_err(failed)?;
        let spec = fields.spec.unwrap_or_default();
        let template = spec.template.unwrap_or_default();
        let labels = template.metadata.and_then(|metadata| metadata.labels).unwrap_or_default();
        let pod = template.spec.unwrap_or_default();
        let replicas = spec.replicas.or_else(|| fields.status.and_then(|status| status.replicas));
        let mut pods = Pods {
            replicas,
            selector: selector(object)?,
            labels,
            overhead: cpu_and_memory(pod.overhead),
            ..Pods::default()
        };
        let resources = pod.resources.unwrap_or_default();
        pods.requests = with_limits(resources.requests, &resources.limits);
        pods.limits = cpu_and_memory(resources.limits);
        for fields in pod.containers.unwrap_or_default() {
            pods.add_delays(&fields);
            pods.containers.push(container(fields));
        }
        for fields in pod.init_containers.unwrap_or_default() {
            // The others have ended before the probes of a pod begin.
            if fields.is_sidecar() {
                pods.add_delays(&fields);
            }
            pods.init_containers.push(container(fields));
        }
        Ok(pods)
    }

    /// Considers the probes of a container: its pod is ready once all probes have succeeded.
    fn add_delays(&mut self, fields: &ContainerFields) {
        let probes =
            [("startupProbe", &fields.startup_probe), ("readinessProbe", &fields.readiness_probe)];
        for (name, probe) in probes {
            let seconds = probe.as_ref().and_then(|probe| probe.initial_delay_seconds);
            let delay = Span::from_secs(i64::from(seconds.unwrap_or(0)));
            if delay > self.delay.as_ref().map_or(Span::ZERO, |(longest, _)| *longest) {
                let source = format!("{name}.initialDelaySeconds of container {}", fields.name);
                self.delay = Some((delay, source));
            }
        }
    }

    /// The containers that run as long as the pod.
    pub fn running(&self) -> impl Iterator<Item = &PodContainer> {
        self.containers.iter().chain(self.init_containers.iter().filter(|init| init.sidecar))
    }

    /// The names of all containers.
    pub(super) fn container_names(&self) -> impl Iterator<Item = String> {
        self.containers.iter().chain(&self.init_containers).map(|it| it.name.to_string())
    }

    /// The container that has all usage of a pod with a VPA, if no load names a container.
    pub(super) fn main_container(&self) -> Option<&PodContainer> {
        self.running().next()
    }

    /// The request of a pod in milli-units; or of one container.
    #[must_use]
    pub fn request(&self, resource: &str, container: Option<&str>) -> Option<i64> {
        if let Some(pod_value) = self.requests.get(resource).filter(|_| container.is_none()) {
            return Some(pod_value.milli());
        }
        let containers = self.running().filter(|it| container.is_none_or(|name| *it.name == *name));
        let requests: Vec<i64> =
            containers.filter_map(|it| it.requests.get(resource)).map(|it| it.milli()).collect();
        (!requests.is_empty()).then(|| requests.into_iter().fold(0, i64::saturating_add))
    }

    /// Returns the CPU limit of a container or of the pod, or `None` if it has no CPU limit.
    /// Returns `None` for memory, because a container that exceeds its memory limit is killed, not
    /// throttled. A pod has a limit if its manifest names one for the whole pod,
    /// or if all its containers have one.
    pub(crate) fn limit(&self, resource: &str, container: Option<&str>) -> Option<Quantity> {
        let pod_value = self.limits.get(resource).map(Quantity::milli);
        let container_limit = self.limit_of_containers(resource, container);
        let limit = pod_value.into_iter().chain(container_limit).min();
        limit.filter(|_| resource == "cpu").map(|it| Quantity::from_milli(it, Format::DecimalSI))
    }

    fn limit_of_containers(&self, resource: &str, container: Option<&str>) -> Option<i64> {
        let containers = self.running().filter(|it| container.is_none_or(|name| *it.name == *name));
        let limits: Option<Vec<i64>> =
            containers.map(|it| Some(it.limits.get(resource)?.milli())).collect();
        limits
            .filter(|limits| !limits.is_empty())
            .map(|limits| limits.into_iter().fold(0, i64::saturating_add))
    }

    /// The pods as objects of the API.
    #[must_use]
    pub fn spec(&self) -> PodSpec {
        let container = |it: &PodContainer| api::Container {
            name: it.name.clone(),
            requests: it.requests.clone(),
            sidecar: it.sidecar,
        };
        PodSpec {
            containers: self.containers.iter().map(container).collect(),
            init_containers: self.init_containers.iter().map(container).collect(),
            requests: (!self.requests.is_empty()).then(|| self.requests.clone()),
            overhead: self.overhead.clone(),
        }
    }

    /// Returns the workload of a scenario. If `with_limits` is true, it contains the limits of the
    /// containers.
    pub(super) fn to_workload(&self, target: &str, replicas: i32, with_limits: bool) -> Workload {
        let container = |it: &PodContainer| Container {
            name: it.name.clone(),
            requests: it.requests.clone(),
            limits: if with_limits { it.limits.clone() } else { Requests::new() },
        };
        let init_container = |it: &PodContainer| InitContainer {
            name: it.name.to_string(),
            requests: it.requests.clone(),
            restart_policy: it.sidecar.then_some(RestartPolicy::Always),
        };
        let requests = &self.requests;
        let usual = BTreeMap::from([("app".to_owned(), target.to_owned())]);
        let labels = if self.labels.is_empty() { &usual } else { &self.labels };
        let all: Vec<String> = labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
        Workload {
            replicas: Some(replicas),
            containers: self.containers.iter().map(container).collect(),
            init_containers: InitContainers::Detailed(
                self.init_containers.iter().map(init_container).collect(),
            ),
            resources: (!requests.is_empty()).then(|| PodResources { requests: requests.clone() }),
            overhead: self.overhead.clone(),
            selector: self.selector.clone().filter(|text| *text != all.join(",")),
            labels: if *labels == usual { BTreeMap::new() } else { labels.clone() },
            ..Workload::default()
        }
    }
}

fn container(fields: ContainerFields) -> PodContainer {
    let sidecar = fields.is_sidecar();
    let ResourceFields { requests, limits } = fields.resources.unwrap_or_default();
    PodContainer {
        name: fields.name,
        requests: with_limits(requests, &limits),
        limits: cpu_and_memory(limits),
        sidecar,
    }
}

/// Upstream: pkg/apis/core/v1/defaults.go, SetDefaults_Pod
fn with_limits(mut requests: Requests, limits: &Requests) -> Requests {
    for (name, limit) in limits {
        requests.entry(name.clone()).or_insert_with(|| limit.clone());
    }
    cpu_and_memory(requests)
}

fn cpu_and_memory(mut requests: Requests) -> Requests {
    requests.retain(|name, _| matches!(&**name, "cpu" | "memory"));
    requests
}

/// The selector of a target as text, as in the status of its scale.
fn selector(object: &Object) -> Result<Option<String>, Error> {
    let failed = |problem| object.problems(vec![problem]);
    let spec = object.node.entry("spec").map(|(_, spec)| spec);
    let Some((_, node)) = spec.and_then(|spec| spec.entry("selector")) else { return Ok(None) };
    if node.is_null() {
        return Ok(None);
    }
    let is_plain = |node: &Node| {
        node.entry("matchLabels").is_none() && node.entry("matchExpressions").is_none()
    };
    let selector = match is_plain(node) {
        true => LabelSelector {
            match_labels: decode(node, Nulls::Absent).map_err(failed)?,
            match_expressions: Vec::new(),
        },
        false => decode(node, Nulls::Absent).map_err(failed)?,
    };
    match Selector::from_label_selector(Some(&selector)) {
        Ok(selector) => Ok(Some(selector.to_string())),
        Err(error) => {
            Err(failed(Diagnostic::new(format!("not a valid selector: {error}")).at_node(node)))
        }
    }
}
