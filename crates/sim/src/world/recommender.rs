//! The world of a scenario of the VPA's recommender: pods and their usage over time.
//!
//! Recommendations do not change the pods, so the whole scenario is known in advance: it is a
//! [`Script`] that the model and the real recommender run.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::signal::{Grain, milli, read};
use kube_autoscaler_models::api::PodPhase;
use kube_autoscaler_models::quantity::Quantity;
use kube_autoscaler_models::selector::Selector;
use kube_autoscaler_models::time::{Span, Time};
use kube_autoscaler_models::vpa::{
    ClusterChange, ContainerState, ContainerStatus, ContainerUsage, GoTime, HistorySample, Labels,
    ObjectName, ObservedOom, OomKill, Pod, PodContainer, PodHistory, PodMetrics, Script,
    ScriptStep, Start, Target, Terminated,
};
use kube_lockstep_scenario::resolved::{
    Action, Exception, OomSeen, PodSet, PodsEdit, QueryError, ResourceUsage, Signal, TimelineEvent,
    UsageSource,
};
use kube_lockstep_scenario::vpa::VpaScenario;

/// The changes of the cluster in a scenario. All changes at or before a run of the recommender are
/// visible in it; a restart follows a run of the same time.
#[must_use]
pub fn script(scenario: &VpaScenario) -> Script {
    let mut world = World::new(scenario);
    let objects = world.objects();
    let interval = scenario.parsed_flags.recommender_interval;
    let mut changes = Changes::of(scenario);
    let mut steps = Vec::new();
    let (mut due, mut pending) = (Time::ZERO + interval, Vec::new());
    loop {
        let restart = changes.next_restart();
        let stop = restart.map_or(due, |at| at.min(due)).min(scenario.until);
        for change in changes.until(stop) {
            world.apply(change, &mut pending);
        }
        if stop == due {
            pending.push(ClusterChange::SetMetrics(world.metrics(stop)));
        }
        steps.push(ScriptStep { changes: std::mem::take(&mut pending), until: stop });
        if stop == due {
            due = due + interval;
        }
        if restart == Some(stop) {
            changes.pass_restart();
            pending.push(ClusterChange::Restart);
            due = stop + interval;
        }
        if stop >= scenario.until {
            break;
        }
    }
    let start = Start {
        at: scenario.start,
        flags: scenario.parsed_flags.clone(),
        objects,
        history: world.history(),
    };
    Script { name: scenario.id.clone(), flags: scenario.flags.clone(), start, steps }
}

/// The indices of the events of a scenario that change pods, none of which exists.
#[must_use]
pub fn unmatched_actions(scenario: &VpaScenario) -> Vec<usize> {
    let mut world = World::new(scenario);
    let mut unmatched = Vec::new();
    for change in Changes::of(scenario).changes {
        let pods = change.event.action.changed_pods().filter(|_| !change.ends);
        if pods.is_some_and(|set| world.select(set).is_empty()) {
            unmatched.push(change.index);
        }
        world.apply(change, &mut Vec::new());
    }
    unmatched
}

/// A change of the state: the beginning of an action, or its end.
#[derive(Clone, Copy)]
struct Change<'s> {
    at: Time,
    /// The index of the event.
    index: usize,
    event: &'s TimelineEvent,
    ends: bool,
}

/// The changes that are still to come, in the order of time.
struct Changes<'s> {
    changes: Vec<Change<'s>>,
    next: usize,
    restarts: Vec<Time>,
    next_restart: usize,
}

impl<'s> Changes<'s> {
    fn of(scenario: &'s VpaScenario) -> Changes<'s> {
        let mut changes = Vec::new();
        let mut restarts = Vec::new();
        for (index, event) in scenario.timeline.iter().enumerate() {
            if matches!(event.action, Action::RestartRecommender(_)) {
                restarts.push(event.at);
                continue;
            }
            changes.push(Change { at: event.at, index, event, ends: false });
            let end = event.lasts.map(|lasts| event.at + lasts);
            changes.extend(end.map(|at| Change { at, index, event, ends: true }));
        }
        changes.sort_by_key(|change| change.at);
        restarts.dedup();
        Changes { changes, next: 0, restarts, next_restart: 0 }
    }

    fn next_restart(&self) -> Option<Time> {
        self.restarts.get(self.next_restart).copied()
    }

    fn pass_restart(&mut self) {
        self.next_restart += 1;
    }

    /// The changes up to a time, including it.
    fn until(&mut self, end: Time) -> Vec<Change<'s>> {
        let passed = self.changes[self.next..].partition_point(|change| change.at <= end);
        let found = self.changes[self.next..self.next + passed].to_vec();
        self.next += passed;
        found
    }
}

/// A pod.
struct PodState {
    /// `None` for the pods of the start, which are older than all samples.
    created: Option<Time>,
    labels: Labels,
    phase: PodPhase,
    init_containers: Vec<Arc<str>>,
    containers: Vec<ContainerOfPod>,
}

/// A container of a pod.
#[derive(Clone)]
struct ContainerOfPod {
    restarts: i32,
    state: ContainerState,
    last: Option<Terminated>,
    /// In the status.
    memory_request: Option<i64>,
}

/// The pods by ordinal.
struct World<'s> {
    scenario: &'s VpaScenario,
    pods: BTreeMap<u32, PodState>,
    next_ordinal: u32,
}

impl<'s> World<'s> {
    fn new(scenario: &'s VpaScenario) -> World<'s> {
        let mut world = World { scenario, pods: BTreeMap::new(), next_ordinal: 0 };
        for _ in 0..scenario.workload.replicas {
            world.create(None);
        }
        world
    }

    /// The objects of the start.
    fn objects(&self) -> Vec<ClusterChange> {
        let checkpoints = self.scenario.checkpoints.iter().cloned();
        let mut objects = vec![ClusterChange::SetTarget(self.target())];
        objects.extend(self.scenario.vpas.iter().cloned().map(ClusterChange::SetVpa));
        objects.extend(checkpoints.map(ClusterChange::SetCheckpoint));
        objects.extend(self.pods.keys().map(|ordinal| ClusterChange::SetPod(self.pod(*ordinal))));
        objects
    }

    fn target(&self) -> Target {
        let workload = &self.scenario.workload;
        let pairs = workload.labels.iter().map(|(name, value)| format!("{name}={value}"));
        let text = pairs.collect::<Vec<_>>().join(",");
        Target {
            namespace: self.scenario.namespace.clone(),
            reference: self.scenario.target.clone(),
            selector: Selector::parse(&text).unwrap_or_else(|_| Selector::nothing()),
            has_parent: workload.owned,
            error: None,
        }
    }

    /// The ordinal of the next pod. A StatefulSet uses the lowest free one again, so a new pod can
    /// have the name of a deleted one; other workloads never use a name again.
    fn take_ordinal(&mut self) -> u32 {
        if self.scenario.target.kind == "StatefulSet" {
            let mut free = (0..).filter(|ordinal| !self.pods.contains_key(ordinal));
            return free.next().unwrap_or_default();
        }
        let ordinal = self.next_ordinal;
        self.next_ordinal += 1;
        ordinal
    }

    /// Creates a pod, and returns its ordinal.
    fn create(&mut self, created: Option<Time>) -> u32 {
        let workload = &self.scenario.workload;
        let mut labels = workload.pod_labels.clone();
        labels.extend(workload.labels.clone());
        let state = ContainerState::Running;
        let container = ContainerOfPod { restarts: 0, state, last: None, memory_request: None };
        let containers = vec![container; workload.containers.len()];
        let labels = Labels::new(labels);
        let ordinal = self.take_ordinal();
        let (phase, init_containers) = (PodPhase::Running, workload.init_containers.clone());
        let pod = PodState { created, labels, phase, init_containers, containers };
        self.pods.insert(ordinal, pod);
        ordinal
    }

    fn name(&self, ordinal: u32) -> ObjectName {
        let name = format!("{}-{ordinal}", self.scenario.target.name);
        ObjectName::new(self.scenario.namespace.clone(), name)
    }

    /// The pod as the API server has it.
    fn pod(&self, ordinal: u32) -> Pod {
        let state = &self.pods[&ordinal];
        let containers = self.scenario.workload.containers.iter().zip(&state.containers);
        let own = containers.filter(|(it, _)| !state.init_containers.contains(&it.name));
        let containers = own.clone().map(|(container, _)| PodContainer {
            name: container.name.clone(),
            memory_request: container.to_api().requests.get("memory").map_or(0, Quantity::value),
        });
        let statuses = own.map(|(container, state)| ContainerStatus {
            name: container.name.clone(),
            restart_count: state.restarts,
            state: state.state.clone(),
            last_terminated: state.last.clone(),
            memory_request: state.memory_request,
        });
        Pod {
            name: self.name(ordinal),
            labels: state.labels.clone(),
            phase: state.phase,
            containers: containers.collect(),
            init_containers: state.init_containers.clone(),
            statuses: statuses.collect(),
        }
    }

    /// The existing pods of a set.
    fn select(&self, set: &PodSet) -> Vec<u32> {
        self.pods.keys().copied().filter(|ordinal| contains(set, *ordinal)).collect()
    }

    fn apply(&mut self, change: Change<'_>, out: &mut Vec<ClusterChange>) {
        let at = change.at;
        if !change.ends {
            out.extend(change.event.change.clone());
        }
        match &change.event.action {
            Action::TargetDeleted(_) if change.ends => {
                out.push(ClusterChange::SetTarget(self.target()));
            }
            Action::TargetDeleted(_) => out.push(ClusterChange::DeleteTarget(self.target())),
            _ if change.ends => {}
            Action::Scale(replicas) => self.scale(*replicas, at, out),
            Action::PodsDeleted(set) => {
                for ordinal in self.select(set) {
                    self.delete(ordinal, out);
                    let new = self.create(Some(at));
                    out.push(ClusterChange::SetPod(self.pod(new)));
                }
            }
            Action::PodsSucceeded(set) => {
                self.change(set, out, |pod| pod.phase = PodPhase::Succeeded);
            }
            Action::PodsFailed(set) => self.change(set, out, |pod| pod.phase = PodPhase::Failed),
            Action::Relabel(relabel) => {
                let labels = Labels::new(relabel.labels.clone());
                self.change(&relabel.pods, out, |pod| pod.labels = labels.clone());
            }
            Action::EditPods(edit) => self.edit(edit, out),
            action => self.apply_oom(action, at, out),
        }
    }

    fn edit(&mut self, edit: &PodsEdit, out: &mut Vec<ClusterChange>) {
        let names = self.scenario.workload.containers.iter().map(|container| &container.name);
        let requests: Vec<Option<i64>> =
            names.map(|name| edit.memory_in_status.get(name).map(Quantity::value)).collect();
        self.change(&edit.pods, out, |pod| {
            if let Some(names) = &edit.init_containers {
                pod.init_containers.clone_from(names);
            }
            for (container, request) in pod.containers.iter_mut().zip(&requests) {
                container.memory_request = request.or(container.memory_request);
            }
        });
    }

    fn apply_oom(&mut self, action: &Action, at: Time, out: &mut Vec<ClusterChange>) {
        match action {
            Action::OomKill(kill) => {
                let index = self.container_index(kill.container.as_deref());
                let finished_at = self.absolute(at).plus(Span(-kill.age.0)).truncate_to_second();
                let end = Terminated { reason: "OOMKilled".to_owned(), finished_at };
                self.change(&kill.pods, out, |pod| {
                    let Some(container) = pod.containers.get_mut(index) else { return };
                    match kill.shown {
                        OomSeen::Restarted => {
                            container.restarts += 1;
                            container.state = ContainerState::Running;
                            container.last = Some(end.clone());
                        }
                        OomSeen::Terminated => {
                            container.state = ContainerState::Terminated(end.clone());
                        }
                    }
                });
            }
            Action::Evict(eviction) => {
                let container = eviction.container.clone().unwrap_or_default();
                let kill = OomKill {
                    at: self.absolute(at).truncate_to_second(),
                    requested: eviction.usage.value(),
                };
                let pods = self.select(&eviction.pods).into_iter();
                out.extend(pods.map(|ordinal| {
                    let (pod, container) = (self.name(ordinal), container.clone());
                    ClusterChange::Evict(ObservedOom { pod, container, kill })
                }));
            }
            _ => {}
        }
    }

    fn container_index(&self, name: Option<&str>) -> usize {
        let mut containers = self.scenario.workload.containers.iter();
        containers.position(|it| Some(&*it.name) == name).unwrap_or(0)
    }

    fn change(
        &mut self,
        set: &PodSet,
        out: &mut Vec<ClusterChange>,
        mut change: impl FnMut(&mut PodState),
    ) {
        for ordinal in self.select(set) {
            if let Some(pod) = self.pods.get_mut(&ordinal) {
                change(pod);
            }
            out.push(ClusterChange::SetPod(self.pod(ordinal)));
        }
    }

    fn delete(&mut self, ordinal: u32, out: &mut Vec<ClusterChange>) {
        out.push(ClusterChange::DeletePod(self.name(ordinal)));
        self.pods.remove(&ordinal);
    }

    /// Creates pods, or deletes the newest. Pods that have ended do not count.
    fn scale(&mut self, replicas: i32, at: Time, out: &mut Vec<ClusterChange>) {
        let live = self.pods.iter().filter(|(_, pod)| pod.phase == PodPhase::Running);
        let live: Vec<u32> = live.map(|(ordinal, _)| *ordinal).collect();
        let desired = usize::try_from(replicas).unwrap_or(0);
        for ordinal in live.iter().skip(desired) {
            self.delete(*ordinal, out);
        }
        for _ in live.len()..desired {
            let ordinal = self.create(Some(at));
            out.push(ClusterChange::SetPod(self.pod(ordinal)));
        }
    }

    fn absolute(&self, at: Time) -> GoTime {
        self.scenario.start.plus(at.since_start())
    }

    /// The events in effect at a time.
    fn active(&self, at: Time) -> impl Iterator<Item = &'s TimelineEvent> {
        self.scenario.timeline.iter().filter(move |event| event.is_active(at))
    }

    /// The response of the metrics API at a time.
    fn metrics(&self, at: Time) -> Result<Arc<Vec<PodMetrics>>, String> {
        for event in self.active(at) {
            if let Action::MetricsError(QueryError::Text(error)) = &event.action {
                return Err(error.to_string());
            }
        }
        let pods = self.pods.keys().filter_map(|ordinal| self.sample(*ordinal, at));
        Ok(Arc::new(pods.collect()))
    }

    /// The time of the newest sample, in whole seconds.
    fn sampled_at(&self, at: Time, late: Span) -> Time {
        let sampling = &self.scenario.metrics.sampling;
        let newest = at.since_start().0 - sampling.lag.0 - late.0;
        let second = Span::from_secs(1).0;
        let grid = sampling.resolution.map_or(second, |resolution| resolution.0.max(second));
        Time(newest.div_euclid(grid) * grid / second * second)
    }

    /// The sample of a pod at a time.
    fn sample(&self, ordinal: u32, at: Time) -> Option<PodMetrics> {
        let pod = self.pods.get(&ordinal).filter(|pod| pod.phase == PodPhase::Running)?;
        let (mut now, mut late) = (at, Span::ZERO);
        for event in self.active(at) {
            match &event.action {
                Action::MetricsMissing(set) if contains(set, ordinal) => return None,
                Action::MetricsStale(set) if contains(set, ordinal) => now = now.min(event.at),
                Action::MetricsLate(it) if contains(&it.pods, ordinal) => late = it.by,
                _ => {}
            }
        }
        let taken = self.sampled_at(now, late);
        if pod.created.is_some_and(|created| taken < created) {
            return None;
        }
        let containers = self.usage(&self.scenario.metrics.resources, ordinal, taken, at);
        (!containers.is_empty()).then(|| PodMetrics {
            pod: self.name(ordinal),
            timestamp: self.absolute(taken),
            containers,
        })
    }

    /// The usage of the containers of a pod at a time. `now` selects the events in effect.
    fn usage(
        &self,
        resources: &[ResourceUsage],
        ordinal: u32,
        at: Time,
        now: Time,
    ) -> Vec<ContainerUsage> {
        let usage = self.containers(ordinal).enumerate().filter_map(|(index, name)| {
            let gone = |resource: &str| {
                self.active(now).any(|event| match &event.action {
                    Action::ContainerMetricsMissing(of) => {
                        contains(&of.pods, ordinal) && of.container == *name
                    }
                    Action::ResourceMissing(of) => {
                        contains(&of.pods, ordinal) && &*of.resource == resource
                    }
                    _ => false,
                })
            };
            let amount = |resource: &str| {
                let usage = resources.iter().find(|usage| &*usage.name == resource)?;
                let milli = self.milli(usage, ordinal, index, name, at)?;
                (!gone(resource)).then_some(milli)
            };
            let cpu = amount("cpu");
            // Whole bytes, rounded up as by the recommender.
            let memory =
                amount("memory").map(|milli| milli.div_euclid(1000) + i64::from(milli % 1000 != 0));
            let container = name.clone();
            (cpu.is_some() || memory.is_some()).then_some(ContainerUsage { container, cpu, memory })
        });
        usage.collect()
    }

    /// The containers that can have usage: those of the workload, and other init containers.
    fn containers(&self, ordinal: u32) -> impl Iterator<Item = &Arc<str>> {
        let of_workload = || self.scenario.workload.containers.iter().map(|it| &it.name);
        let init = self.pods.get(&ordinal).into_iter().flat_map(|pod| &pod.init_containers);
        of_workload().chain(init.filter(move |name| !of_workload().any(|it| it == *name)))
    }

    /// The usage of one resource of a container, with its index and name, in milli-units.
    fn milli(
        &self,
        usage: &ResourceUsage,
        ordinal: u32,
        index: usize,
        name: &str,
        at: Time,
    ) -> Option<i64> {
        let grain = Grain::of(&usage.name);
        let value = |signal: &Signal| milli(signal, read(signal, at, grain));
        let is_of_container = |exception: &Exception| {
            exception.container.as_ref().map_or(index == 0, |container| **container == *name)
        };
        let mut of_pod = usage.exceptions.iter().rev().filter(|it| contains(&it.pods, ordinal));
        if let Some(exception) = of_pod.find(|it| is_of_container(it)) {
            return value(&exception.value);
        }
        match &usage.source {
            // Only for a workload with one container.
            UsageSource::PerPod(_) | UsageSource::Load { .. } if index > 0 => None,
            UsageSource::PerPod(signal) => value(signal),
            UsageSource::PerContainer(signals) => {
                let signal = signals.0.iter().find(|(container, _)| **container == *name);
                signal.and_then(|(_, signal)| value(signal))
            }
            UsageSource::Load { total, limit } => {
                let running = self.pods.values().filter(|pod| pod.phase == PodPhase::Running);
                let share = grain.share(value(total)?, running.count());
                Some(limit.as_ref().map_or(share, |limit| share.min(limit.milli())))
            }
        }
    }

    /// The samples of the first pod before the start.
    fn history(&self) -> Vec<PodHistory> {
        let Some(history) = &self.scenario.history else { return Vec::new() };
        let Some((ordinal, pod)) = self.pods.iter().next() else { return Vec::new() };
        let mut samples = Vec::new();
        let begin = self.scenario.start.plus(Span(-history.length.0));
        let mut at = Time::ZERO;
        while at.since_start() < history.length {
            let taken = begin.plus(at.since_start());
            for usage in self.usage(&history.resource, *ordinal, at, Time(i64::MIN)) {
                samples.push(HistorySample { at: taken, usage });
            }
            at = at + history.step;
        }
        vec![PodHistory { pod: self.name(*ordinal), labels: pod.labels.clone(), samples }]
    }
}

/// Returns true if a set contains a pod.
fn contains(set: &PodSet, ordinal: u32) -> bool {
    match set {
        PodSet::All => true,
        PodSet::Ordinals(ranges) => {
            ranges.iter().any(|(first, last)| (*first..=*last).contains(&ordinal))
        }
    }
}
