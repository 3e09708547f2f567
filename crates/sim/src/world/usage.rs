//! The usage of pods, by class: pods whose values have the same signals share one value, which is
//! recalculated only when one of its readings changes.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::signal::{self, Grain, Reading};
use kube_autoscaler_models::api::ContainerMetrics;
use kube_autoscaler_models::quantity::Quantity;
use kube_autoscaler_models::time::{Span, Time};
use kube_lockstep_scenario::resolved::{
    Metrics, ResourceUsage, Sampling, Scenario, Signal, UsageSource,
};

/// All usage of a scenario at one time.
#[derive(Clone, Debug)]
pub(super) struct Usage {
    /// Containers in the order of the pod's spec, then sidecars, then other containers that the
    /// metrics name.
    containers: Vec<Arc<str>>,
    resources: Vec<Readings>,
    classes: Vec<Class>,
    index: BTreeMap<ClassKey, usize>,
    /// Incremented whenever a reading changes.
    pub version: u64,
    /// True if a share of a load was larger than the limit of a pod.
    pub(super) was_cut: bool,
}

/// The readings of one resource.
#[derive(Clone, Debug)]
struct Readings {
    grain: Grain,
    source: Vec<Reading>,
    exceptions: Vec<Reading>,
}

/// The parameters of a pod's usage, apart from time.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct ClassKey {
    /// One source for each resource.
    pub sources: Vec<Source>,
    /// Sorted, without duplicates.
    pub hidden: Vec<Hidden>,
}

/// The source of a pod's values of one resource.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Source {
    /// The scenario's source for all pods.
    Common,
    /// Zero usage: the pod receives no share of the load.
    Idle,
    /// The n-th exception of the resource.
    Exception(usize),
}

/// Usage that a pod does not report.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Hidden {
    /// All usage of one container.
    Container(Arc<str>),
    /// One resource of all containers.
    Resource(Arc<str>),
}

#[derive(Clone, Debug)]
struct Class {
    key: ClassKey,
    /// The version of the readings with which `inputs` was last compared.
    version: u64,
    inputs: Vec<Reading>,
    containers: Arc<[ContainerMetrics]>,
}

impl Usage {
    pub(super) fn new(scenario: &Scenario) -> Usage {
        let spec = &scenario.workload.spec;
        let running = spec.running_containers();
        let mut containers: Vec<Arc<str>> = running.map(|c| c.name.clone()).collect();
        for resource in &scenario.metrics.resources {
            if let UsageSource::PerContainer(signals) = &resource.source {
                for (name, _) in &signals.0 {
                    if !containers.contains(name) {
                        containers.push(name.clone());
                    }
                }
            }
        }
        let resources = scenario.metrics.resources.iter();
        let resources = resources
            .map(|resource| Readings {
                grain: Grain::of(&resource.name),
                source: Vec::new(),
                exceptions: Vec::new(),
            })
            .collect();
        Usage {
            containers,
            resources,
            classes: Vec::new(),
            index: BTreeMap::new(),
            version: 0,
            was_cut: false,
        }
    }

    /// Reads all signals at the time of a sample. Loads are divided among `serving` pods.
    pub(super) fn read(&mut self, metrics: &Metrics, sampled: Time, serving: usize) {
        let mut changed = false;
        for (usage, readings) in metrics.resources.iter().zip(&mut self.resources) {
            let grain = readings.grain;
            let mut put = |list: &mut Vec<Reading>, index: usize, reading: Reading| {
                match list.get_mut(index) {
                    Some(old) if *old == reading => return,
                    Some(old) => *old = reading,
                    None => list.push(reading),
                }
                changed = true;
            };
            match &usage.source {
                UsageSource::PerPod(signal) => {
                    put(&mut readings.source, 0, signal::read(signal, sampled, grain));
                }
                UsageSource::PerContainer(signals) => {
                    for (index, (_, signal)) in signals.0.iter().enumerate() {
                        put(&mut readings.source, index, signal::read(signal, sampled, grain));
                    }
                }
                UsageSource::Load { total, limit } => {
                    let share = share(total, limit.as_ref(), sampled, serving, grain);
                    self.was_cut |= matches!(share, Reading::Written(_));
                    put(&mut readings.source, 0, share);
                }
            }
            for (index, exception) in usage.exceptions.iter().enumerate() {
                let reading = signal::read(&exception.value, sampled, grain);
                put(&mut readings.exceptions, index, reading);
            }
        }
        self.version += u64::from(changed);
    }

    /// The index of the class with this key.
    pub(super) fn class(&mut self, key: ClassKey) -> usize {
        if let Some(&class) = self.index.get(&key) {
            return class;
        }
        let class = self.classes.len();
        self.index.insert(key.clone(), class);
        let containers = Arc::new([]);
        self.classes.push(Class { key, version: u64::MAX, inputs: Vec::new(), containers });
        class
    }

    /// The usage of the pods of a class at the current readings.
    pub(super) fn of_class(&mut self, class: usize, metrics: &Metrics) -> &Arc<[ContainerMetrics]> {
        let Usage { containers, resources, classes, version, .. } = self;
        let class = &mut classes[class];
        if class.version != *version {
            let inputs = inputs(&class.key, resources);
            if class.version == u64::MAX || class.inputs != inputs {
                class.containers = build(&class.key, containers, resources, metrics);
                class.inputs = inputs;
            }
            class.version = *version;
        }
        &class.containers
    }
}

/// The time of the newest sample that a query returns, of most pods and of all other metrics.
pub(super) fn sampled_at(sampling: Sampling, query: Time) -> Time {
    let latest = query - sampling.lag;
    match sampling.resolution {
        Some(Span(step)) if step > 0 => Time(latest.0.div_euclid(step) * step),
        _ => latest,
    }
}

/// The time of a pod's newest sample, if it has its own.
pub(super) fn own_sampled_at(scenario: &Scenario, ordinal: u32, query: Time) -> Option<Time> {
    let lag = scenario.workload.sample_lag_of(ordinal)?;
    Some(sampled_at(Sampling { lag, ..scenario.metrics.sampling }, query))
}

/// Removes the hidden usage from a sample.
pub(super) fn without(
    containers: &Arc<[ContainerMetrics]>,
    hidden: &[Hidden],
) -> Arc<[ContainerMetrics]> {
    if hidden.is_empty() {
        return containers.clone();
    }
    let rest = |container: &ContainerMetrics| ContainerMetrics {
        name: container.name.clone(),
        usage: if hides_container(hidden, &container.name) {
            Vec::new()
        } else {
            let usage = container.usage.iter();
            usage.filter(|(name, _)| !hides_resource(hidden, name)).cloned().collect()
        },
    };
    containers.iter().map(rest).collect()
}

fn hides_container(hidden: &[Hidden], name: &str) -> bool {
    hidden.iter().any(|hidden| matches!(hidden, Hidden::Container(other) if **other == *name))
}

fn hides_resource(hidden: &[Hidden], name: &str) -> bool {
    hidden.iter().any(|hidden| matches!(hidden, Hidden::Resource(other) if **other == *name))
}

/// The reading of a shared load; `Written` is the limit.
fn share(
    total: &Signal,
    limit: Option<&Quantity>,
    sampled: Time,
    serving: usize,
    grain: Grain,
) -> Reading {
    let Some(total) = signal::milli(total, signal::read(total, sampled, grain)) else {
        return Reading::Absent;
    };
    let share = grain.share(total, serving);
    if limit.is_some_and(|limit| share > limit.milli()) {
        Reading::Written(0)
    } else {
        Reading::Computed(share)
    }
}

/// The readings that a class depends on.
fn inputs(key: &ClassKey, resources: &[Readings]) -> Vec<Reading> {
    let mut inputs = Vec::new();
    for (source, readings) in key.sources.iter().zip(resources) {
        match source {
            Source::Common => inputs.extend(&readings.source),
            // A gap of the load is a gap of all pods.
            Source::Idle => inputs.extend(readings.source.iter().filter(|it| it.is_absent())),
            Source::Exception(index) => inputs.push(readings.exceptions[*index]),
        }
    }
    inputs
}

/// The containers of a pod with their usage. No containers: the pod has no sample, because its
/// signals have a gap.
fn build(
    key: &ClassKey,
    containers: &[Arc<str>],
    resources: &[Readings],
    metrics: &Metrics,
) -> Arc<[ContainerMetrics]> {
    let mut built = Vec::with_capacity(containers.len());
    let (mut has_values, mut has_gaps) = (false, false);
    for (position, container) in containers.iter().enumerate() {
        let mut usage = Vec::with_capacity(resources.len());
        let shown =
            resources.iter().enumerate().filter(|_| !hides_container(&key.hidden, container));
        for (index, readings) in shown {
            let resource = &metrics.resources[index];
            if hides_resource(&key.hidden, &resource.name) {
                continue;
            }
            let container = UsedContainer { name: container, position };
            match value(key.sources[index], resource, readings, container) {
                Some(quantity) => usage.push((resource.name.clone(), quantity)),
                None => has_gaps = true,
            }
        }
        has_values |= !usage.is_empty();
        built.push(ContainerMetrics { name: container.clone(), usage });
    }
    if has_gaps && !has_values {
        built.clear();
    }
    built.into()
}

/// A container with usage.
#[derive(Clone, Copy)]
struct UsedContainer<'a> {
    name: &'a Arc<str>,
    /// The usage of a pod is in its first container.
    position: usize,
}

/// The usage of a container. None: there is no sample.
fn value(
    source: Source,
    resource: &ResourceUsage,
    readings: &Readings,
    container: UsedContainer<'_>,
) -> Option<Quantity> {
    let grain = readings.grain;
    let first = |quantity: Quantity| {
        if container.position == 0 { quantity } else { grain.quantity(0) }
    };
    match (source, &resource.source) {
        (Source::Idle, _) => {
            let is_gap = readings.source.first().is_some_and(|reading| reading.is_absent());
            (!is_gap).then(|| grain.quantity(0))
        }
        (Source::Exception(exception), _) => {
            let reading = readings.exceptions[exception];
            signal::quantity(&resource.exceptions[exception].value, reading, grain).map(first)
        }
        (Source::Common, UsageSource::PerPod(signal)) => {
            signal::quantity(signal, readings.source[0], grain).map(first)
        }
        (Source::Common, UsageSource::PerContainer(signals)) => {
            let named = signals.0.iter().position(|(name, _)| name == container.name);
            named.map_or_else(
                || Some(grain.quantity(0)),
                |at| signal::quantity(&signals.0[at].1, readings.source[at], grain),
            )
        }
        (Source::Common, UsageSource::Load { limit, .. }) => match (readings.source[0], limit) {
            (Reading::Absent, _) => None,
            (Reading::Written(_), Some(limit)) => Some(first(limit.clone())),
            (Reading::Written(_), None) => Some(grain.quantity(0)),
            (Reading::Computed(milli), _) => Some(first(grain.quantity(milli))),
        },
    }
}
