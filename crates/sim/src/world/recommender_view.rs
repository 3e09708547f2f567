//! The world of an HPA as the recommender sees it: pods with their own requests, the samples of
//! metrics.k8s.io, and the events of the VPA.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::change::Change;
use super::cluster::Cluster;
use super::simulation::WorldSimulation;
use kube_autoscaler_models::api;
use kube_autoscaler_models::api::PodPhase;
use kube_autoscaler_models::quantity::Quantity;
use kube_autoscaler_models::selector::Selector;
use kube_autoscaler_models::time::{Span, Time};
use kube_autoscaler_models::vpa::{
    ClusterChange, ContainerState, ContainerStatus, ContainerUsage, GoTime, Labels, ObjectName,
    ObservedOom, OomKill, Pod, PodContainer, PodMetrics, ScriptStep, Start, Target, Terminated,
};
use kube_lockstep_scenario::resolved::{
    Action, OomKillOfPods, OomSeen, PodEviction, PodSet, Scenario, WithVpa,
};
use kube_lockstep_scenario::vpa::VpaScenario;

/// The recommender's view of the cluster.
#[derive(Clone, Debug)]
pub(super) struct RecommenderView {
    scenario: Arc<VpaScenario>,
    /// The end of the scenario.
    end: Time,
    /// The resource of the target with its group.
    resource: Arc<str>,
    selector: Selector,
    /// The objects of the cluster, as the HPA controller sees them.
    cluster: Cluster,
    /// The pods as the recommender last saw them.
    known: BTreeMap<ObjectName, Pod>,
    has_target: bool,
    /// The states of containers that were killed, by pod and container.
    killed: BTreeMap<Arc<str>, BTreeMap<Arc<str>, Killed>>,
    /// The index of the next event.
    next_event: usize,
    /// The indices of the events whose actions found no pod.
    unmatched: Vec<usize>,
    /// The time of the next run.
    due: Time,
    /// The end of the last step.
    played_until: Option<Time>,
    /// The changes for the next step.
    pending: Vec<ClusterChange>,
}

/// The state of a container that was killed.
#[derive(Clone, Debug)]
struct Killed {
    restarts: i32,
    state: ContainerState,
    last: Option<Terminated>,
}

impl RecommenderView {
    pub(super) fn new(scenario: &Scenario, vpa: &WithVpa) -> RecommenderView {
        let target = scenario.targets().next();
        RecommenderView {
            scenario: vpa.recommender.clone(),
            end: scenario.until,
            resource: target.map(|target| target.group_resource()).unwrap_or_default().into(),
            selector: Selector::parse(&scenario.workload.selector)
                .unwrap_or_else(|_| Selector::nothing()),
            cluster: Cluster::default(),
            known: BTreeMap::new(),
            has_target: true,
            killed: BTreeMap::new(),
            next_event: 0,
            unmatched: Vec::new(),
            due: Time::ZERO + vpa.recommender.parsed_flags.recommender_interval,
            played_until: None,
            pending: Vec::new(),
        }
    }

    /// Applies changes of the cluster.
    pub(super) fn observe(&mut self, changes: &[Change]) {
        for change in changes {
            // Each pod refers to a template that an earlier change defines.
            let applied = self.cluster.apply(change, &|_, _| Ok(()));
            debug_assert!(applied.is_ok(), "{applied:?}");
        }
    }

    /// The objects with which the recommender starts.
    pub(super) fn start(&mut self) -> Start {
        let scenario = self.scenario.clone();
        let mut objects = vec![ClusterChange::SetTarget(self.target())];
        objects.extend(scenario.vpas.iter().cloned().map(ClusterChange::SetVpa));
        objects.extend(scenario.checkpoints.iter().cloned().map(ClusterChange::SetCheckpoint));
        self.see_cluster();
        objects.append(&mut self.pending);
        let flags = scenario.parsed_flags.clone();
        Start { at: scenario.start, flags, objects, history: Vec::new() }
    }

    /// The next time at which something happens. `updater` is the time of the updater's next run.
    pub(super) fn next_stop(&self, updater: Option<Time>) -> Option<Time> {
        let event = self.scenario.timeline.get(self.next_event).map(|event| event.at);
        let end = (self.played_until != Some(self.end)).then_some(self.end);
        let stops = event.into_iter().chain(updater).chain([self.due]).filter(|at| *at <= self.end);
        stops.chain(end).min()
    }

    /// The step that ends at a stop, if there is one.
    pub(super) fn step(
        &mut self,
        simulation: &mut WorldSimulation,
        at: Time,
    ) -> Option<ScriptStep> {
        self.see_cluster();
        let restarts = self.events(simulation, at);
        let interval = self.scenario.parsed_flags.recommender_interval;
        let is_due = self.due <= at;
        if is_due {
            self.pending.push(ClusterChange::SetMetrics(self.metrics()));
            self.due = at + interval;
        }
        let is_end = at >= self.end && self.played_until != Some(self.end);
        if !is_due && !restarts && !is_end {
            return None;
        }
        self.played_until = Some(at);
        let step = ScriptStep { changes: std::mem::take(&mut self.pending), until: at };
        if restarts {
            // It follows a run of the same time.
            self.pending.push(ClusterChange::Restart);
            self.due = at + interval;
        }
        Some(step)
    }

    /// Adds the differences between the cluster and what the recommender last saw.
    fn see_cluster(&mut self) {
        let target = self.cluster.scale(&self.resource, &self.scenario.target.name).exists();
        if target != self.has_target {
            self.has_target = target;
            let object = self.target();
            self.pending.push(match target {
                true => ClusterChange::SetTarget(object),
                false => ClusterChange::DeleteTarget(object),
            });
        }
        let mut present = BTreeSet::new();
        let pods: Vec<Pod> = self.cluster.pods().iter().filter_map(|pod| self.pod(pod)).collect();
        for pod in pods {
            present.insert(pod.name.clone());
            if self.known.get(&pod.name) != Some(&pod) {
                self.known.insert(pod.name.clone(), pod.clone());
                self.pending.push(ClusterChange::SetPod(pod));
            }
        }
        let gone = self.known.keys().filter(|name| !present.contains(*name));
        for name in gone.cloned().collect::<Vec<_>>() {
            self.known.remove(&name);
            self.killed.remove(&name.name);
            self.pending.push(ClusterChange::DeletePod(name));
        }
    }

    fn target(&self) -> Target {
        Target {
            namespace: self.scenario.namespace.clone(),
            reference: self.scenario.target.clone(),
            selector: self.selector.clone(),
            has_parent: false,
            error: None,
        }
    }

    fn name(&self, pod: &Arc<str>) -> ObjectName {
        ObjectName::new(self.scenario.namespace.clone(), pod.clone())
    }

    /// A pod as the recommender sees it; None for pods that are pending.
    fn pod(&self, pod: &api::Pod) -> Option<Pod> {
        if pod.phase == PodPhase::Pending {
            return None;
        }
        let killed = self.killed.get(&pod.name);
        let containers = pod.spec.containers.iter();
        let statuses = containers.clone().map(|container| {
            let killed = killed.and_then(|killed| killed.get(&container.name));
            ContainerStatus {
                name: container.name.clone(),
                restart_count: killed.map_or(0, |killed| killed.restarts),
                state: killed.map_or(ContainerState::Running, |killed| killed.state.clone()),
                last_terminated: killed.and_then(|killed| killed.last.clone()),
                memory_request: None,
            }
        });
        let init = pod.spec.init_containers.iter();
        Some(Pod {
            name: self.name(&pod.name),
            labels: Labels::new((*pod.labels).clone()),
            phase: pod.phase,
            statuses: statuses.collect(),
            containers: containers
                .map(|container| PodContainer {
                    name: container.name.clone(),
                    memory_request: container.requests.get("memory").map_or(0, Quantity::value),
                })
                .collect(),
            init_containers: init.map(|container| container.name.clone()).collect(),
        })
    }

    /// The samples of metrics.k8s.io, or the error.
    fn metrics(&self) -> Result<Arc<Vec<PodMetrics>>, String> {
        let samples = self.cluster.pod_metrics().map_err(|error| error.message.to_string())?;
        let samples = samples.iter().map(|sample| PodMetrics {
            pod: self.name(&sample.name),
            timestamp: self.absolute(sample.timestamp),
            containers: sample.containers.iter().map(usage).collect(),
        });
        Ok(Arc::new(samples.collect()))
    }

    fn absolute(&self, at: Time) -> GoTime {
        self.scenario.start.plus(at.since_start())
    }

    /// The events so far whose actions found no pod, by their indices.
    pub(super) fn unmatched_actions(&self) -> &[usize] {
        &self.unmatched
    }

    /// Applies the events up to a time. Returns true if the recommender restarts.
    fn events(&mut self, simulation: &mut WorldSimulation, at: Time) -> bool {
        let scenario = self.scenario.clone();
        let mut restarts = false;
        while let Some(event) = scenario.timeline.get(self.next_event).filter(|it| it.at <= at) {
            let index = self.next_event;
            self.next_event += 1;
            if let Some(applied) = &mut simulation.vpa {
                match &event.change {
                    Some(ClusterChange::SetVpa(vpa)) => applied.set(vpa.clone()),
                    Some(ClusterChange::DeleteVpa(_)) => applied.vpa = None,
                    _ => {}
                }
            }
            self.pending.extend(event.change.clone());
            let own = event.action.changed_pods();
            if own.is_some_and(|set| self.select(set, simulation).is_empty()) {
                self.unmatched.push(index);
            }
            match &event.action {
                Action::RestartRecommender(_) => restarts = true,
                Action::OomKill(kill) => self.oom_kill(kill, event.at, simulation),
                Action::Evict(eviction) => self.evict(eviction, event.at, simulation),
                // The other actions are changes of objects, or those of the HPA's world.
                _ => {}
            }
        }
        restarts
    }

    /// The running pods of a set, with their ordinals.
    fn select(&self, set: &PodSet, simulation: &WorldSimulation) -> Vec<(u32, Arc<str>)> {
        let pods = simulation.pods.iter().filter(|(ordinal, pod)| {
            set.contains(**ordinal) && self.known.contains_key(&self.name(&pod.name))
        });
        pods.map(|(ordinal, pod)| (*ordinal, pod.name.clone())).collect()
    }

    fn oom_kill(&mut self, kill: &OomKillOfPods, at: Time, simulation: &mut WorldSimulation) {
        let Some(container) = &kill.container else { return };
        let finished_at = self.absolute(at).plus(Span(-kill.age.0)).truncate_to_second();
        let end = Terminated { reason: "OOMKilled".to_owned(), finished_at };
        for (ordinal, name) in self.select(&kill.pods, simulation) {
            let containers = self.killed.entry(name.clone()).or_default();
            let state = containers.entry(container.clone()).or_insert_with(|| Killed {
                restarts: 0,
                state: ContainerState::Running,
                last: None,
            });
            match kill.shown {
                OomSeen::Restarted => {
                    state.restarts += 1;
                    state.state = ContainerState::Running;
                    state.last = Some(end.clone());
                    simulation.oom_killed(ordinal, container, at, kill.age);
                }
                OomSeen::Terminated => state.state = ContainerState::Terminated(end.clone()),
            }
        }
        self.see_cluster();
    }

    fn evict(&mut self, eviction: &PodEviction, at: Time, simulation: &WorldSimulation) {
        let container = eviction.container.clone().unwrap_or_default();
        let at = self.absolute(at).truncate_to_second();
        let kill = OomKill { at, requested: eviction.usage.value() };
        for (_, name) in self.select(&eviction.pods, simulation) {
            let (pod, container) = (self.name(&name), container.clone());
            self.pending.push(ClusterChange::Evict(ObservedOom { pod, container, kill }));
        }
    }
}

/// The usage of a container in the units of the recommender, rounded up.
fn usage(container: &api::ContainerMetrics) -> ContainerUsage {
    let amount = |name: &str| {
        container.usage.iter().find(|(resource, _)| &**resource == name).map(|(_, amount)| amount)
    };
    ContainerUsage {
        container: container.name.clone(),
        cpu: amount("cpu").map(Quantity::milli),
        memory: amount("memory").map(Quantity::value),
    }
}
