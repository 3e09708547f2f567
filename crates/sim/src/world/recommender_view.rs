//! The world as the recommender of a VPA sees it: pods with their own requests, the samples of
//! metrics.k8s.io, and the events of the VPA.

use std::sync::Arc;

use super::change::Change;
use super::cluster::Cluster;
use super::seen_pods::container;
use super::simulation::{WorldSimulation, exceptions_of};
use super::usage::{ClassKey, SharedLoad, Source, Usage};
use kube_autoscaler_models::api;
use kube_autoscaler_models::api::PodPhase;
use kube_autoscaler_models::quantity::Quantity;
use kube_autoscaler_models::selector::Selector;
use kube_autoscaler_models::time::{Span, Time};
use kube_autoscaler_models::vpa::{
    ClusterChange, ContainerState, ContainerStatus, ContainerUsage, GoTime, HistorySample, Labels,
    ObjectName, Pod, PodHistory, PodMetrics, ScriptStep, Start, Target,
};
use kube_lockstep_scenario::resolved::{Action, OtherPods, PodSet, Scenario};
use kube_lockstep_scenario::vpa::VpaScenario;

/// The recommender's view of the cluster.
#[derive(Clone, Debug)]
pub(super) struct RecommenderView {
    scenario: Arc<VpaScenario>,
    selector: Selector,
    /// The metrics of the cluster.
    cluster: Cluster,
    has_target: bool,
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

impl RecommenderView {
    pub(super) fn new(scenario: &Scenario, vpa: &Arc<VpaScenario>) -> RecommenderView {
        RecommenderView {
            scenario: vpa.clone(),
            selector: Selector::parse(&scenario.workload.selector)
                .unwrap_or_else(|_| Selector::nothing()),
            cluster: Cluster::default(),
            has_target: true,
            next_event: 0,
            unmatched: Vec::new(),
            due: Time::ZERO + vpa.parsed_flags.recommender_interval,
            played_until: None,
            pending: Vec::new(),
        }
    }

    /// Applies changes of the metrics.
    pub(super) fn observe(&mut self, changes: &[Change]) {
        for change in changes {
            // Each sample refers to a template that an earlier change defines.
            let applied = self.cluster.apply(change, &|_, _| Ok(()));
            debug_assert!(applied.is_ok(), "{applied:?}");
        }
    }

    /// The objects with which the recommender starts.
    pub(super) fn start(&mut self, simulation: &mut WorldSimulation) -> Start {
        let scenario = self.scenario.clone();
        let mut objects = vec![ClusterChange::SetTarget(self.target())];
        objects.extend(scenario.vpas.iter().cloned().map(ClusterChange::SetVpa));
        objects.extend(scenario.checkpoints.iter().cloned().map(ClusterChange::SetCheckpoint));
        simulation.see_all_pods();
        objects.extend(simulation.take_seen_changes());
        let others = simulation.scenario.other_pods.iter();
        let others = others.filter(|pods| pods.phase() != PodPhase::Pending);
        objects.extend(others.flat_map(|pods| {
            pods.names().map(|name| ClusterChange::SetPod(self.other_pod(pods, name)))
        }));
        Start {
            at: scenario.start,
            flags: scenario.parsed_flags.clone(),
            objects,
            history: self.history(simulation),
        }
    }

    /// The next time at which something happens. `updater` is the time of the updater's next run.
    pub(super) fn next_stop(&self, updater: Option<Time>) -> Option<Time> {
        let end = self.scenario.until;
        let event = self.scenario.timeline.get(self.next_event).map(|event| event.at);
        let last = (self.played_until != Some(end)).then_some(end);
        let stops = event.into_iter().chain(updater).chain([self.due]).filter(|at| *at <= end);
        stops.chain(last).min()
    }

    /// The step that ends at a stop, if there is one.
    pub(super) fn step(
        &mut self,
        simulation: &mut WorldSimulation,
        at: Time,
    ) -> Option<ScriptStep> {
        let restarts = self.events(simulation, at);
        self.see_target(simulation);
        self.pending.extend(simulation.take_seen_changes());
        let interval = self.scenario.parsed_flags.recommender_interval;
        let is_due = self.due <= at;
        if is_due {
            self.pending.push(ClusterChange::SetMetrics(self.metrics()));
            self.due = at + interval;
        }
        let end = self.scenario.until;
        let is_end = at >= end && self.played_until != Some(end);
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

    fn see_target(&mut self, simulation: &WorldSimulation) {
        let has_target = !simulation.is_target_deleted();
        if has_target != self.has_target {
            self.has_target = has_target;
            let object = self.target();
            self.pending.push(match has_target {
                true => ClusterChange::SetTarget(object),
                false => ClusterChange::DeleteTarget(object),
            });
        }
    }

    fn target(&self) -> Target {
        Target {
            namespace: self.scenario.namespace.clone(),
            reference: self.scenario.target.clone(),
            selector: self.selector.clone(),
            has_parent: self.scenario.workload.owned,
            error: None,
        }
    }

    fn name(&self, pod: Arc<str>) -> ObjectName {
        ObjectName::new(self.scenario.namespace.clone(), pod)
    }

    /// A pod that belongs to no target.
    fn other_pod(&self, pods: &OtherPods, name: Arc<str>) -> Pod {
        let containers: Vec<_> = pods.spec().containers.iter().map(container).collect();
        let statuses = containers.iter().map(|container| ContainerStatus {
            name: container.name.clone(),
            restart_count: 0,
            state: ContainerState::Running,
            last_terminated: None,
            memory_request: None,
        });
        Pod {
            name: self.name(name),
            labels: Labels::new(pods.labels.clone()),
            phase: pods.phase(),
            statuses: statuses.collect(),
            containers,
            init_containers: Vec::new(),
        }
    }

    /// The samples of metrics.k8s.io, or the error.
    fn metrics(&self) -> Result<Arc<Vec<PodMetrics>>, String> {
        let samples = self.cluster.pod_metrics().map_err(|error| error.message.to_string())?;
        let samples = samples.iter().map(|sample| PodMetrics {
            pod: self.name(sample.name.clone()),
            timestamp: self.absolute(sample.timestamp),
            containers: sample.containers.iter().filter_map(usage).collect(),
        });
        Ok(Arc::new(samples.filter(|sample| !sample.containers.is_empty()).collect()))
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
            restarts |= matches!(event.action, Action::RestartRecommender(_));
            // The simulation applies the other events.
            if simulation.scenario.vpa.is_some()
                && let Some(set) = event.action.changed_pods()
            {
                let ordinals = simulation.seen_pods(set);
                if ordinals.is_empty() {
                    self.unmatched.push(index);
                }
                simulation.change_seen_pods(&ordinals, event);
            }
        }
        restarts
    }

    /// The samples of the first pod before the start.
    fn history(&self, simulation: &WorldSimulation) -> Vec<PodHistory> {
        let Some(history) = &self.scenario.history else { return Vec::new() };
        let Some((ordinal, pod)) = simulation.pods.iter().next() else { return Vec::new() };
        let signals = &self.scenario.usage(&history.resource)[..];
        let mut exceptions = exceptions_of(signals, *ordinal);
        let source = |index: usize| match exceptions.as_mut() {
            Some(exceptions) => Source::Exceptions(std::mem::take(&mut exceptions[index])),
            None => Source::Common,
        };
        let sources = (0..signals.len()).map(source).collect();
        let mut usages = Usage::of(&simulation.scenario.workload.spec, signals);
        let class = usages.class(ClassKey { sources, hidden: Vec::new() });
        let begin = self.scenario.start.plus(Span(-history.length.0));
        let mut samples = Vec::new();
        let mut at = Time::ZERO;
        while at.since_start() < history.length {
            usages.read(signals, at, SharedLoad { serving: simulation.serving, backlogs: &[] });
            let taken = begin.plus(at.since_start());
            let of_containers = usages.of_class(class, signals).iter().filter_map(usage);
            samples.extend(of_containers.map(|usage| HistorySample { at: taken, usage }));
            at = at + history.step;
        }
        let labels = Labels::new(simulation.scenario.workload.labels.clone());
        vec![PodHistory { pod: self.name(pod.name.clone()), labels, samples }]
    }
}

impl WorldSimulation {
    /// Adds all pods to those that the recommender sees.
    fn see_all_pods(&mut self) {
        let Some(seen) = &mut self.seen else { return };
        for (ordinal, pod) in self.pods.iter() {
            seen.see(*ordinal, pod, self.templates.spec_of(pod));
        }
    }

    /// The changes of the pods that the recommender sees, since the last call.
    fn take_seen_changes(&mut self) -> Vec<ClusterChange> {
        self.seen.as_mut().map(|seen| seen.take_changes()).unwrap_or_default()
    }

    /// The ordinals of the pods of a set that the recommender sees.
    fn seen_pods(&self, set: &PodSet) -> Vec<u32> {
        let Some(seen) = &self.seen else { return Vec::new() };
        let pods = self.pods.keys().copied();
        pods.filter(|ordinal| set.contains(*ordinal) && seen.contains(*ordinal)).collect()
    }
}

/// The usage of a container in the units of the recommender, rounded up. None: it has no usage.
fn usage(container: &api::ContainerMetrics) -> Option<ContainerUsage> {
    let amount = |name: &str| {
        container.usage.iter().find(|(resource, _)| &**resource == name).map(|(_, amount)| amount)
    };
    let (cpu, memory) = (amount("cpu").map(Quantity::milli), amount("memory").map(Quantity::value));
    let container = container.name.clone();
    (cpu.is_some() || memory.is_some()).then_some(ContainerUsage { container, cpu, memory })
}
