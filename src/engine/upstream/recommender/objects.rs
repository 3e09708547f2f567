//! Pods and events in the form of the API, with the fields that the recommender reads.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::model::vpa::{
    ContainerState, ContainerStatus, ObjectName, ObservedOom, Phase, Pod, PodContainer, Terminated,
};

/// A pod.
#[derive(Serialize)]
pub(crate) struct PodObject<'a> {
    pub(crate) metadata: PodMetadata<'a>,
    pub(crate) spec: PodSpec<'a>,
    /// `None` in requests that do not set the status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<PodStatus<'a>>,
}

/// The metadata of a pod.
#[derive(Serialize)]
pub(crate) struct PodMetadata<'a> {
    #[serde(flatten)]
    name: &'a ObjectName,
    labels: &'a BTreeMap<String, String>,
}

/// The specification of a pod.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PodSpec<'a> {
    pub(crate) containers: Vec<Container<'a>>,
    pub(crate) init_containers: Vec<Container<'a>>,
    /// An API server requires a scheduler, which the recommender does not read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) scheduler_name: Option<&'static str>,
}

/// A container of a specification.
#[derive(Serialize)]
pub(crate) struct Container<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    resources: Option<Resources>,
    /// An API server requires an image, which the recommender does not read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) image: Option<&'static str>,
}

/// Requests of a container.
#[derive(Serialize)]
struct Resources {
    requests: Requests,
}

/// The requested memory, in bytes.
#[derive(Serialize)]
struct Requests {
    memory: String,
}

/// The status of a pod.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PodStatus<'a> {
    phase: Phase,
    container_statuses: Vec<Status<'a>>,
}

/// The status of a container.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Status<'a> {
    name: &'a str,
    restart_count: i32,
    state: State<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_state: Option<State<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resources: Option<Resources>,
}

/// The state of a container.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
enum State<'a> {
    Waiting {},
    Running {},
    Terminated(&'a Terminated),
}

impl<'a> From<&'a Pod> for PodObject<'a> {
    fn from(pod: &'a Pod) -> PodObject<'a> {
        let init = pod.init_containers.iter();
        PodObject {
            metadata: PodMetadata { name: &pod.name, labels: pod.labels.map() },
            spec: PodSpec {
                containers: pod.containers.iter().map(Container::from).collect(),
                init_containers: init
                    .map(|name| Container { name, resources: None, image: None })
                    .collect(),
                scheduler_name: None,
            },
            status: Some(PodStatus::from(pod)),
        }
    }
}

impl<'a> From<&'a Pod> for PodStatus<'a> {
    fn from(pod: &'a Pod) -> PodStatus<'a> {
        let statuses = pod.statuses.iter().map(Status::from);
        PodStatus { phase: pod.phase, container_statuses: statuses.collect() }
    }
}

impl<'a> From<&'a PodContainer> for Container<'a> {
    fn from(container: &'a PodContainer) -> Container<'a> {
        let requested = Some(container.memory_request).filter(|bytes| *bytes != 0);
        Container { name: &container.name, resources: requested.map(Resources::of), image: None }
    }
}

impl<'a> From<&'a ContainerStatus> for Status<'a> {
    fn from(status: &'a ContainerStatus) -> Status<'a> {
        Status {
            name: &status.name,
            restart_count: status.restart_count,
            state: match &status.state {
                ContainerState::Waiting => State::Waiting {},
                ContainerState::Running => State::Running {},
                ContainerState::Terminated(end) => State::Terminated(end),
            },
            last_state: status.last_terminated.as_ref().map(State::Terminated),
            resources: status.memory_request.map(Resources::of),
        }
    }
}

impl Resources {
    /// The request for an amount of memory, in bytes.
    fn of(memory: i64) -> Resources {
        Resources { requests: Requests { memory: memory.to_string() } }
    }
}

/// The event by which the kubelet reports an eviction.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EvictionEvent<'a> {
    reason: &'static str,
    pub(crate) metadata: EventMetadata<'a>,
    involved_object: Involved<'a>,
}

/// The metadata of an event.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EventMetadata<'a> {
    namespace: &'a str,
    /// The prefix of the name that the API server gives.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) generate_name: Option<String>,
    /// `None` if the API server sets it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) creation_timestamp: Option<String>,
    annotations: Offender<'a>,
}

/// The container that used more memory than it requested.
#[derive(Serialize)]
struct Offender<'a> {
    offending_containers: &'a str,
    /// In bytes.
    offending_containers_usage: String,
    starved_resource: &'static str,
}

/// The pod of an event.
#[derive(Serialize)]
struct Involved<'a> {
    kind: &'static str,
    #[serde(flatten)]
    name: &'a ObjectName,
}

impl<'a> From<&'a ObservedOom> for EvictionEvent<'a> {
    fn from(oom: &'a ObservedOom) -> EvictionEvent<'a> {
        EvictionEvent {
            reason: "Evicted",
            metadata: EventMetadata {
                namespace: &oom.pod.namespace,
                generate_name: None,
                creation_timestamp: Some(oom.kill.at.to_string()),
                annotations: Offender {
                    offending_containers: &oom.container,
                    offending_containers_usage: oom.kill.requested.to_string(),
                    starved_resource: "memory",
                },
            },
            involved_object: Involved { kind: "Pod", name: &oom.pod },
        }
    }
}
