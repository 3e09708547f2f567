//! Pods as the recommender sees them, and the observer that finds OOM kills in their updates.
//!
//! Upstream: `pkg/recommender/input/oom/observer.go`, `pkg/recommender/input/spec/spec_client.go`

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;

use super::api::ObjectName;
use super::container::OomKill;
use super::float::Amount;
use super::time::GoTime;
use crate::api::PodPhase;
use crate::rules::{OomUpdates, VpaRules};

/// The labels of a pod, with the text by which they are compared.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Labels {
    /// `a=b,c=d`, sorted.
    text: Arc<str>,
    labels: BTreeMap<String, String>,
}

impl Labels {
    /// Labels from names and values.
    #[must_use]
    pub fn new(labels: BTreeMap<String, String>) -> Labels {
        let pairs: Vec<String> =
            labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
        Labels { text: pairs.join(",").into(), labels }
    }

    /// The text of the labels: equal labels have equal texts.
    #[must_use]
    pub fn text(&self) -> &Arc<str> {
        &self.text
    }

    /// The names and values.
    #[must_use]
    pub fn map(&self) -> &BTreeMap<String, String> {
        &self.labels
    }
}

/// A pod, with the fields that the recommender and the updater read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pod {
    /// Namespace and name.
    pub name: ObjectName,
    /// The labels.
    pub labels: Labels,
    /// The phase. The recommender does not see pending pods.
    pub phase: PodPhase,
    /// The containers of the specification.
    pub containers: Vec<PodContainer>,
    /// The names of the init containers.
    pub init_containers: Vec<Arc<str>>,
    /// The statuses of the containers.
    pub statuses: Vec<ContainerStatus>,
}

/// A container of a pod's specification.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PodContainer {
    /// The name of the container in its pod.
    pub name: Arc<str>,
    /// The requested memory in bytes; 0 without a request.
    pub memory_request: Amount,
}

/// One of `status.containerStatuses`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ContainerStatus {
    /// The name.
    pub name: Arc<str>,
    /// The number of restarts.
    pub restart_count: i32,
    /// The state of the current instance.
    pub state: ContainerState,
    /// How the previous instance ended, if there was one.
    pub last_terminated: Option<Terminated>,
    /// The requested memory in effect, in bytes, if the status reports resources.
    pub memory_request: Option<Amount>,
}

/// Whether an instance of a container waits, runs or has ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ContainerState {
    /// It waits.
    Waiting,
    /// It runs.
    Running,
    /// It has ended.
    Terminated(Terminated),
}

/// The end of an instance of a container.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Terminated {
    /// `OOMKilled`, `Error`, ….
    pub reason: String,
    /// The time of the end.
    #[serde(with = "super::checkpoint::api_time")]
    pub finished_at: GoTime,
}

impl Terminated {
    fn is_oom(&self) -> bool {
        self.reason == "OOMKilled"
    }
}

impl Pod {
    /// The requested memory of a container, preferably from its status.
    ///
    /// Upstream: pkg/utils/resources/resourcehelpers.go, ContainerRequestsAndLimits
    fn memory_request(&self, container: &str, rules: &VpaRules) -> Amount {
        let mut statuses = self.statuses.iter().filter(|_| rules.reads_requests_of_status);
        let status = statuses.find(|status| &*status.name == container);
        let in_effect = status.and_then(|status| status.memory_request);
        in_effect.unwrap_or_else(|| {
            let spec = self.containers.iter().find(|it| &*it.name == container);
            spec.map_or(0, |spec| spec.memory_request)
        })
    }
}

/// An OOM kill of a container of a pod.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ObservedOom {
    /// The pod.
    pub pod: ObjectName,
    /// The container.
    pub container: Arc<str>,
    /// Time and memory.
    pub kill: OomKill,
}

/// The OOM kills that an update of a pod shows.
///
/// Upstream: observer.go, OnUpdate
#[must_use]
pub(super) fn observe_update(old: &Pod, new: &Pod, rules: &VpaRules) -> Vec<ObservedOom> {
    let mut found = Vec::new();
    for status in &new.statuses {
        let Some(before) = old.statuses.iter().find(|before| before.name == status.name) else {
            continue;
        };
        let shown = match rules.oom_updates {
            OomUpdates::Restarts => {
                // Only containers of the old specification count.
                let is_known = old.containers.iter().any(|it| it.name == status.name);
                killed_before_restart(before, status).filter(|_| is_known).map(|last| (last, old))
            }
            OomUpdates::Ends => match killed_now(before, status) {
                Some(now) => Some((now, new)),
                // The container was killed and restarted between two updates.
                None => killed_between(before, status).map(|last| (last, old)),
            },
        };
        let Some((kill, pod)) = shown else { continue };
        found.push(ObservedOom {
            pod: new.name.clone(),
            container: status.name.clone(),
            kill: OomKill {
                at: kill.finished_at,
                requested: pod.memory_request(&status.name, rules),
            },
        });
    }
    found
}

/// The end of the previous instance, if it was killed and there is one more restart.
fn killed_before_restart<'s>(
    before: &ContainerStatus,
    status: &'s ContainerStatus,
) -> Option<&'s Terminated> {
    let restarted = status.restart_count > 0 && status.restart_count > before.restart_count;
    status.last_terminated.as_ref().filter(|last| restarted && last.is_oom())
}

/// The end of the current instance, if it was killed since the last update.
fn killed_now<'s>(before: &ContainerStatus, status: &'s ContainerStatus) -> Option<&'s Terminated> {
    let restarted = status.restart_count > before.restart_count;
    let was_terminated = matches!(before.state, ContainerState::Terminated(_));
    match &status.state {
        ContainerState::Terminated(now) if now.is_oom() && (!was_terminated || restarted) => {
            Some(now)
        }
        _ => None,
    }
}

/// The end of the previous instance, if it was killed and the container runs again.
fn killed_between<'s>(
    before: &ContainerStatus,
    status: &'s ContainerStatus,
) -> Option<&'s Terminated> {
    let both_run =
        before.state == ContainerState::Running && status.state == ContainerState::Running;
    let restarted = status.restart_count > before.restart_count;
    status.last_terminated.as_ref().filter(|last| both_run && restarted && last.is_oom())
}
