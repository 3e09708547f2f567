//! The pods of the workload as the recommender of a VPA sees them. All changes are kept in their
//! order, because an update of a pod can show an OOM kill.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::pods::{ContainerEdits, SimPod};
use super::simulation::WorldSimulation;
use kube_autoscaler_models::api::{PodPhase, PodSpec};
use kube_autoscaler_models::quantity::Quantity;
use kube_autoscaler_models::time::{Span, Time};
use kube_autoscaler_models::vpa::{
    ClusterChange, ContainerState, ContainerStatus, GoTime, Labels, ObjectName, ObservedOom,
    OomKill, Pod, PodContainer, Terminated,
};
use kube_lockstep_scenario::resolved::{
    Action, OomKillOfPods, OomSeen, PodEviction, PodsEdit, Scenario, TimelineEvent,
};

/// The pods that the recommender sees.
#[derive(Clone, Debug)]
pub(super) struct SeenPods {
    namespace: Arc<str>,
    /// The time of t=0.
    start: GoTime,
    /// The labels of the workload's pods.
    labels: Labels,
    /// The pods by ordinal, as they were last seen.
    pods: BTreeMap<u32, Pod>,
    /// The changes that the recommender has not seen yet.
    changes: Vec<ClusterChange>,
}

impl SeenPods {
    pub(super) fn new(scenario: &Scenario, start: GoTime) -> SeenPods {
        SeenPods {
            namespace: scenario.namespace.clone(),
            start,
            labels: Labels::new(scenario.workload.labels.clone()),
            pods: BTreeMap::new(),
            changes: Vec::new(),
        }
    }

    /// The changes since the last call.
    pub(super) fn take_changes(&mut self) -> Vec<ClusterChange> {
        std::mem::take(&mut self.changes)
    }

    /// Returns true if the recommender sees a pod. It does not see pending pods.
    pub(super) fn contains(&self, ordinal: u32) -> bool {
        self.pods.contains_key(&ordinal)
    }

    /// Adds the change of a pod, if there is one.
    pub(super) fn see(&mut self, ordinal: u32, pod: &SimPod, spec: &PodSpec) {
        if pod.deleted {
            let gone = self.pods.remove(&ordinal);
            self.changes.extend(gone.map(|pod| ClusterChange::DeletePod(pod.name)));
            return;
        }
        if pod.phase() == PodPhase::Pending {
            return;
        }
        let new = self.pod(pod, spec);
        if self.pods.get(&ordinal) != Some(&new) {
            self.changes.push(ClusterChange::SetPod(new.clone()));
            self.pods.insert(ordinal, new);
        }
    }

    /// A pod as the API server has it.
    fn pod(&self, pod: &SimPod, spec: &PodSpec) -> Pod {
        let edits = pod.edits.as_deref();
        let of_spec = || spec.init_containers.iter().map(|it| it.name.clone()).collect();
        let init_containers: Vec<Arc<str>> =
            edits.and_then(|it| it.init_containers.clone()).unwrap_or_else(of_spec);
        let own = spec.containers.iter().filter(|it| !init_containers.contains(&it.name));
        let statuses = own.clone().map(|container| {
            let edits = edits.and_then(|it| it.containers.get(&container.name));
            let ContainerEdits { restarts, terminated, last, memory_request } =
                edits.cloned().unwrap_or_default();
            ContainerStatus {
                name: container.name.clone(),
                restart_count: restarts,
                state: terminated.map_or(ContainerState::Running, ContainerState::Terminated),
                last_terminated: last,
                memory_request,
            }
        });
        Pod {
            name: ObjectName::new(self.namespace.clone(), pod.name.clone()),
            labels: edits.and_then(|it| it.labels.clone()).unwrap_or_else(|| self.labels.clone()),
            phase: pod.phase(),
            statuses: statuses.collect(),
            containers: own.map(container).collect(),
            init_containers,
        }
    }

    fn absolute(&self, at: Time) -> GoTime {
        self.start.plus(at.since_start())
    }

    fn evict(&mut self, ordinal: u32, eviction: &PodEviction, at: Time) {
        let at = self.absolute(at).truncate_to_second();
        let kill = OomKill { at, requested: eviction.usage.value() };
        let container = eviction.container.clone().unwrap_or_default();
        let pod = self.pods.get(&ordinal).map(|pod| pod.name.clone());
        let oom = pod.map(|pod| ObservedOom { pod, container, kill });
        self.changes.extend(oom.map(ClusterChange::Evict));
    }
}

/// A container as the recommender sees it.
pub(super) fn container(container: &kube_autoscaler_models::api::Container) -> PodContainer {
    PodContainer {
        name: container.name.clone(),
        memory_request: container.requests.get("memory").map_or(0, Quantity::value),
    }
}

impl WorldSimulation {
    /// Applies an event to pods that the recommender sees, by their ordinals.
    pub(super) fn change_seen_pods(&mut self, ordinals: &[u32], event: &TimelineEvent) {
        for ordinal in ordinals {
            match &event.action {
                Action::OomKill(kill) => self.oom_kill(*ordinal, kill, event.at),
                Action::Evict(eviction) => {
                    if let Some(seen) = &mut self.seen {
                        seen.evict(*ordinal, eviction, event.at);
                    }
                }
                Action::Relabel(relabel) => {
                    let labels = Some(Labels::new(relabel.labels.clone()));
                    self.change(*ordinal, |pod| pod.edits().labels = labels);
                }
                Action::EditPods(edit) => self.change(*ordinal, |pod| apply_edit(pod, edit)),
                _ => {}
            }
            self.see(*ordinal);
        }
    }

    /// Adds the change of a pod, if there is one, to those that the recommender sees.
    pub(super) fn see(&mut self, ordinal: u32) {
        if let Some((seen, pod)) = self.seen.as_mut().zip(self.pods.get(&ordinal)) {
            seen.see(ordinal, pod, self.templates.spec_of(pod));
        }
    }

    fn oom_kill(&mut self, ordinal: u32, kill: &OomKillOfPods, at: Time) {
        let Some((container, seen)) = kill.container.as_ref().zip(self.seen.as_ref()) else {
            return;
        };
        let finished_at = seen.absolute(at).plus(Span(-kill.age.0)).truncate_to_second();
        let end = Terminated { reason: "OOMKilled".to_owned(), finished_at };
        self.change(ordinal, |pod| {
            let edits = pod.edits().containers.entry(container.clone()).or_default();
            match kill.shown {
                OomSeen::Restarted => {
                    edits.restarts += 1;
                    edits.terminated = None;
                    edits.last = Some(end);
                }
                OomSeen::Terminated => edits.terminated = Some(end),
            }
        });
        if kill.shown == OomSeen::Restarted {
            self.oom_killed(ordinal, container, at, kill.age);
        }
    }
}

fn apply_edit(pod: &mut SimPod, edit: &PodsEdit) {
    let edits = pod.edits();
    if let Some(names) = &edit.init_containers {
        edits.init_containers = Some(names.clone());
    }
    for (name, request) in &edit.memory_in_status {
        edits.containers.entry(name.clone()).or_default().memory_request = Some(request.value());
    }
}
