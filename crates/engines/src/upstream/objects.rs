//! Pods, their owners and events in the form of the API, with the fields that the components of the
//! VPA read.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Serialize;

use kube_autoscaler_models::api;
use kube_autoscaler_models::time::{Time, rfc3339};
use kube_autoscaler_models::vpa::updater::KilledContainer;
use kube_autoscaler_models::vpa::{
    ContainerState, ContainerStatus, ObjectName, ObservedOom, Pod, PodContainer, Terminated,
};

#[derive(Serialize)]
pub struct PodObject<'a> {
    pub(crate) metadata: ObjectMetadata<'a>,
    pub(crate) spec: PodSpec<'a>,
    pub(crate) status: PodStatus<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectMetadata<'a> {
    #[serde(flatten)]
    pub(crate) name: ObjectName,
    pub(crate) labels: Cow<'a, BTreeMap<String, String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) uid: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) owner_references: Option<[Owner; 1]>,
}

/// The controller of a pod.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Owner {
    api_version: &'static str,
    kind: &'static str,
    name: String,
    uid: &'static str,
    controller: bool,
}

impl Owner {
    /// A ReplicaSet with this name.
    pub(crate) fn replica_set(name: String) -> Owner {
        Owner { api_version: "apps/v1", kind: "ReplicaSet", name, uid: "", controller: true }
    }
}

/// A ReplicaSet.
#[derive(Serialize)]
pub struct ReplicaSetObject<'a> {
    pub(crate) metadata: ObjectMetadata<'a>,
    pub(crate) spec: ReplicaSetSpec,
}

/// The specification of a ReplicaSet.
#[derive(Serialize)]
pub struct ReplicaSetSpec {
    pub(crate) replicas: i64,
}

/// The specification of a pod.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PodSpec<'a> {
    pub(crate) containers: Vec<Container<'a>>,
    pub(crate) init_containers: Vec<Container<'a>>,
}

/// A container of a specification.
#[derive(Serialize)]
pub struct Container<'a> {
    /// The name of the container.
    pub name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) resources: Option<Resources<'a>>,
}

/// The resources of a container.
#[derive(Serialize)]
pub struct Resources<'a> {
    pub(crate) requests: Requests<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) limits: Option<&'a api::Requests>,
}

/// The requests of a container.
#[derive(Serialize)]
#[serde(untagged)]
pub enum Requests<'a> {
    /// Memory only, which is all that the recommender reads.
    Memory {
        /// In bytes.
        memory: String,
    },
    /// All resources, as the HPA controller reads them.
    All(&'a api::Requests),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PodStatus<'a> {
    pub(crate) phase: &'static str,
    #[serde(with = "rfc3339::option", skip_serializing_if = "Option::is_none")]
    pub(crate) start_time: Option<Time>,
    pub(crate) container_statuses: Vec<Status<'a>>,
}

/// The status of a container.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Status<'a> {
    name: &'a str,
    restart_count: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<State<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_state: Option<State<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resources: Option<Resources<'a>>,
}

impl<'a> Status<'a> {
    /// The status of a container whose last instance was killed because of its memory.
    pub(crate) fn from_kill(name: &'a str, kill: KilledContainer) -> Status<'a> {
        let KilledContainer { started_at, finished_at } = kill;
        let killed = Killed { reason: "OOMKilled", exit_code: 137, started_at, finished_at };
        Status {
            name,
            restart_count: 0,
            state: None,
            last_state: Some(State::Terminated(Termination::Killed(killed))),
            resources: None,
        }
    }
}

/// The state of a container.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
enum State<'a> {
    Waiting {},
    Running {},
    Terminated(Termination<'a>),
}

/// The end of an instance of a container.
#[derive(Serialize)]
#[serde(untagged)]
enum Termination<'a> {
    /// For the recommender, at a time of the API.
    Ended(&'a Terminated),
    /// For the updater, which also reads the start, at exact times.
    Killed(Killed),
}

/// A kill because of memory.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Killed {
    reason: &'static str,
    exit_code: i32,
    #[serde(with = "rfc3339")]
    started_at: Time,
    #[serde(with = "rfc3339")]
    finished_at: Time,
}

impl<'a> From<&'a Pod> for PodObject<'a> {
    fn from(pod: &'a Pod) -> PodObject<'a> {
        let init = pod.init_containers.iter();
        PodObject {
            metadata: ObjectMetadata {
                name: pod.name.clone(),
                labels: Cow::Borrowed(pod.labels.map()),
                uid: None,
                owner_references: None,
            },
            spec: PodSpec {
                containers: pod.containers.iter().map(Container::from).collect(),
                init_containers: init.map(|name| Container { name, resources: None }).collect(),
            },
            status: PodStatus::from(pod),
        }
    }
}

impl<'a> From<&'a Pod> for PodStatus<'a> {
    fn from(pod: &'a Pod) -> PodStatus<'a> {
        let statuses = pod.statuses.iter().map(Status::from);
        PodStatus {
            phase: pod.phase.name(),
            start_time: None,
            container_statuses: statuses.collect(),
        }
    }
}

impl<'a> From<&'a PodContainer> for Container<'a> {
    fn from(container: &'a PodContainer) -> Container<'a> {
        let requested = Some(container.memory_request).filter(|bytes| *bytes != 0);
        Container { name: &container.name, resources: requested.map(Resources::from_memory) }
    }
}

impl<'a> From<&'a ContainerStatus> for Status<'a> {
    fn from(status: &'a ContainerStatus) -> Status<'a> {
        Status {
            name: &status.name,
            restart_count: status.restart_count,
            state: Some(match &status.state {
                ContainerState::Waiting => State::Waiting {},
                ContainerState::Running => State::Running {},
                ContainerState::Terminated(end) => State::ended(end),
            }),
            last_state: status.last_terminated.as_ref().map(State::ended),
            resources: status.memory_request.map(Resources::from_memory),
        }
    }
}

impl<'a> State<'a> {
    fn ended(end: &'a Terminated) -> State<'a> {
        State::Terminated(Termination::Ended(end))
    }
}

impl Resources<'_> {
    /// The request for an amount of memory, in bytes.
    fn from_memory(memory: i64) -> Self {
        Resources { requests: Requests::Memory { memory: memory.to_string() }, limits: None }
    }
}

/// The event by which the kubelet reports an eviction.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EvictionEvent<'a> {
    reason: &'static str,
    /// The metadata of the event.
    pub metadata: EventMetadata<'a>,
    involved_object: Involved<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EventMetadata<'a> {
    namespace: &'a str,
    /// The prefix of the name that the API server gives.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generate_name: Option<String>,
    /// `None` if the API server sets it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub creation_timestamp: Option<String>,
    annotations: Offender<'a>,
}

/// The container that used more memory than it requested.
#[derive(Serialize)]
pub struct Offender<'a> {
    offending_containers: &'a str,
    /// In bytes.
    offending_containers_usage: String,
    starved_resource: &'static str,
}

/// The pod of an event.
#[derive(Serialize)]
pub struct Involved<'a> {
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
