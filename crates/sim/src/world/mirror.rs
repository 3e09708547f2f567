//! The metrics of a scenario for the pods of a real cluster, which replace the simulated pods.
//! Ready pods share the load. The n-th pod has the ordinal n, regardless of its name.
//!
//! The scenario's actions on pods, the target and HPAs are not applied, because these objects
//! belong to the cluster. Actions on metrics are applied.

use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::num::NonZero;
use std::sync::Arc;

use super::change::{Change, Sample, Samples};
use super::driver::World;
use super::signal::Grain;
use super::simulation::MAX_PODS;
use kube_autoscaler_models::api::{ContainerMetrics, PodPhase, PodSpec};
use kube_autoscaler_models::quantity::Quantity;
use kube_autoscaler_models::time::Time;
use kube_lockstep_scenario::resolved::{Scenario, Termination};

/// The properties of a cluster's pod that metrics depend on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RealPod {
    /// The pod's name.
    pub name: Arc<str>,
    /// The pod's labels, by which the metrics APIs filter.
    pub labels: BTreeMap<String, String>,
    /// The names of the pod's running containers.
    pub containers: Vec<Arc<str>>,
    /// The pod's start time. None: the pod has not started.
    pub started: Option<Time>,
    /// True if the pod receives a share of the load.
    pub ready: bool,
    /// True if the pod has failed or succeeded.
    pub over: bool,
}

/// The metrics of a scenario for the pods of a cluster.
#[derive(Clone, Debug)]
pub struct Mirror {
    world: World,
    pods: BTreeMap<Arc<str>, MirroredPod>,
    /// The templates, by labels.
    templates: BTreeMap<BTreeMap<String, String>, Arc<str>>,
    new_templates: Vec<Change>,
    left_out: Vec<String>,
}

#[derive(Clone, Debug)]
struct MirroredPod {
    ordinal: u32,
    template: Arc<str>,
    pod: RealPod,
}

impl Mirror {
    /// The metrics of a scenario at the given speed, without any pods.
    ///
    /// # Errors
    /// If the scenario can't be accelerated.
    pub fn new(scenario: &Scenario, speed: NonZero<u32>) -> Result<Mirror, String> {
        let mut copy = scenario.clone();
        copy.hpas.clear();
        copy.other_targets.clear();
        copy.other_pods.clear();
        copy.other_namespaces.clear();
        copy.workload.replicas = 0;
        copy.workload.quota = None;
        copy.workload.termination = Termination::default();
        let mut left_out: Vec<String> = Vec::new();
        copy.timeline.retain(|event| {
            let stays = event.action.changes_only_metrics();
            let name = event.action.name();
            if !stays && !left_out.contains(&name) {
                left_out.push(name);
            }
            stays
        });
        let world = World::new(&Arc::new(copy.faster(speed)?));
        let (pods, templates, new_templates) = Default::default();
        Ok(Mirror { world, pods, templates, new_templates, left_out })
    }

    /// The names of the actions that are not applied, without duplicates.
    #[must_use]
    pub fn left_out(&self) -> &[String] {
        &self.left_out
    }

    /// Sets the pods that exist at `at`, in the order of their creation. Time only advances.
    pub fn see(&mut self, at: Time, pods: &[RealPod]) {
        let simulation = &mut self.world.simulation;
        let at = at.max(simulation.now);
        simulation.run_until(at);
        let existing: BTreeSet<&Arc<str>> = pods.iter().map(|pod| &pod.name).collect();
        for (_, deleted) in self.pods.iter().filter(|(name, _)| !existing.contains(name)) {
            simulation.change(deleted.ordinal, |pod| pod.delete(at, Termination::default()));
        }
        simulation.follow();
        for pod in pods {
            self.set_pod(at, pod);
        }
        // Only the cluster creates and deletes pods.
        let Mirror { world: World { simulation, .. }, pods, .. } = self;
        simulation.replicas = vec![i32::try_from(simulation.active).unwrap_or(i32::MAX)];
        simulation.follow();
        pods.retain(|_, seen| simulation.pods.contains_key(&seen.ordinal));
        for removed in &mut simulation.touched.removed {
            removed.is_replaced |= pods.contains_key(&removed.name);
        }
    }

    fn set_pod(&mut self, at: Time, pod: &RealPod) {
        let simulation = &mut self.world.simulation;
        let old = self.pods.get(&pod.name);
        let exists =
            |old: &&MirroredPod| simulation.pods.get(&old.ordinal).is_some_and(|it| !it.deleted);
        let old = old.filter(exists);
        if old.is_some_and(|old| old.pod == *pod) || old.is_none() && simulation.active >= MAX_PODS
        {
            return;
        }
        let started = old.is_some_and(|old| old.pod.started.is_some());
        let differs = old.is_some_and(|old| {
            old.pod.labels != pod.labels || old.pod.containers != pod.containers
        });
        let ordinal = match old {
            Some(old) => old.ordinal,
            None => simulation.add(0),
        };
        if pod.started.is_some() && !started {
            simulation.start(ordinal);
        }
        let warm_up = simulation.scenario.workload.startup_of(ordinal).metrics;
        let reports = pod.started.is_some_and(|started| started + warm_up <= at);
        simulation.change(ordinal, |copy| {
            copy.name = pod.name.clone();
            copy.warm = pod.ready;
            copy.reports |= reports;
            if pod.over {
                copy.end(PodPhase::Failed);
            }
        });
        if differs {
            // The sample is published again with the new labels and containers.
            self.world.publisher.forget_sample(ordinal);
        }
        let template = self.template(&pod.labels);
        self.pods.insert(pod.name.clone(), MirroredPod { ordinal, template, pod: pod.clone() });
    }

    fn template(&mut self, labels: &BTreeMap<String, String>) -> Arc<str> {
        if let Some(name) = self.templates.get(labels) {
            return name.clone();
        }
        let name: Arc<str> = format!("real-{}", self.templates.len()).into();
        self.templates.insert(labels.clone(), name.clone());
        self.new_templates.push(Change::PodTemplate {
            name: name.clone(),
            labels: labels.clone(),
            spec: PodSpec::default(),
        });
        name
    }

    /// The changes of the responses of the metrics APIs since the last call.
    pub fn advance(&mut self, at: Time) -> Vec<Change> {
        let at = at.max(self.world.simulation.now);
        let mut changes = mem::take(&mut self.new_templates);
        changes.extend(self.world.advance(at).into_iter().filter(changes_metrics));
        for change in &mut changes {
            match change {
                Change::PodMetrics(change) => {
                    for sample in mem::take(&mut change.set).iter().flat_map(Samples::each) {
                        let Sample { pod, mut template, timestamp, mut containers } = sample;
                        if let Some(seen) = self.pods.get(&pod) {
                            template = seen.template.clone();
                            containers = fit(&containers, &seen.pod.containers);
                        }
                        change.add(pod, &template, timestamp, &containers);
                    }
                }
                Change::PodsMetric(change) => {
                    for value in &mut change.values {
                        if let Some(seen) = self.pods.get(&value.pod) {
                            value.template = seen.template.clone();
                        }
                    }
                }
                _ => {}
            }
        }
        changes
    }
}

fn changes_metrics(change: &Change) -> bool {
    matches!(
        change,
        Change::PodTemplate { .. }
            | Change::PodMetrics(_)
            | Change::PodsMetric(_)
            | Change::ObjectMetric(_)
            | Change::ExternalMetric(_)
            | Change::Faults(_)
    )
}

/// Assigns the usage of the scenario's containers to the containers of a real pod: by name or, if
/// no name matches, by position. Other containers have no usage.
fn fit(usage: &Arc<[ContainerMetrics]>, names: &[Arc<str>]) -> Arc<[ContainerMetrics]> {
    let same = usage.len() == names.len()
        && usage.iter().zip(names).all(|(container, name)| container.name == *name);
    if same || names.is_empty() {
        return usage.clone();
    }
    let by_name = |name: &Arc<str>| usage.iter().find(|container| container.name == *name);
    let any = names.iter().any(|name| by_name(name).is_some());
    let zero_usage = || {
        let resources = usage.first().map(|first| &first.usage).into_iter().flatten();
        let zero = |name: &str| -> Quantity { Grain::of(name).quantity(0) };
        resources.map(|(name, _)| (name.clone(), zero(name))).collect()
    };
    let fitted = |(position, name): (usize, &Arc<str>)| {
        let source = if any { by_name(name) } else { usage.get(position) };
        let usage = source.map_or_else(zero_usage, |source| source.usage.clone());
        ContainerMetrics { name: name.clone(), usage }
    };
    names.iter().enumerate().map(fitted).collect()
}
