//! The usage of pods, by class: pods whose values have the same signals share one value, which is
//! recalculated only when one of its readings changes.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::backlog::Backlog;
use super::signal::{self, Grain, Reading};
use educe::Educe;
use kube_autoscaler_models::api::{ContainerMetrics, PodSpec};
use kube_autoscaler_models::quantity::Quantity;
use kube_autoscaler_models::shared::Shared;
use kube_autoscaler_models::time::{Span, Time};
use kube_lockstep_scenario::resolved::{ResourceUsage, Sampling, Scenario, Signal, UsageSource};

/// All usage of a scenario at one time.
#[derive(Educe, Debug)]
#[educe(Clone)]
pub(super) struct Usage {
    /// Containers in the order of the pod's spec, then sidecars, then other containers that the
    /// metrics name.
    containers: Arc<[UsedContainer]>,
    resources: Vec<Readings>,
    classes: Vec<Class>,
    index: Shared<BTreeMap<Arc<ClassKey>, usize>>,
    /// Incremented whenever a reading changes.
    pub version: u64,
    /// True if a share of a load was larger than the limit of a pod.
    pub(super) was_cut: bool,
}

/// A container with usage.
#[derive(Clone, Debug)]
struct UsedContainer {
    name: Arc<str>,
    /// True if it is the first container of a pod, which has the usage of the pod.
    is_first: bool,
    /// True if it runs as long as the pod. Other containers have usage only if a signal names them.
    runs: bool,
}

/// The inputs for the share of a load that each pod gets.
#[derive(Clone, Copy, Debug)]
pub(super) struct SharedLoad<'w> {
    /// The number of ready pods.
    pub serving: usize,
    /// The backlogs of the resources with one.
    pub backlogs: &'w [Option<Backlog>],
}

/// The readings of one resource.
#[derive(Educe, Debug)]
#[educe(Clone)]
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
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Source {
    /// The scenario's source for all pods.
    Common,
    /// Zero usage: the pod receives no share of the load.
    Idle,
    /// These exceptions of the resource, by index; the first one for a container takes precedence.
    /// Other containers have the common source.
    Exceptions(Box<[usize]>),
}

impl Source {
    /// The source of a pod's values of a resource. `own`: its exceptions, by index. `is_shared`:
    /// the pods share a load.
    pub(super) fn of_pod(own: Option<&[usize]>, is_shared: bool, serves: bool) -> Source {
        match own {
            Some(own) if !own.is_empty() => Source::Exceptions(own.into()),
            _ if is_shared && !serves => Source::Idle,
            _ => Source::Common,
        }
    }
}

/// Usage that a pod does not report.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Hidden {
    /// All usage of one container.
    Container(Arc<str>),
    /// One resource of all containers.
    Resource(Arc<str>),
}

#[derive(Educe, Debug)]
#[educe(Clone)]
struct Class {
    key: Arc<ClassKey>,
    /// The version of the readings with which `inputs` was last compared.
    version: u64,
    inputs: Vec<Reading>,
    containers: Arc<[ContainerMetrics]>,
}

impl Usage {
    pub(super) fn new(scenario: &Scenario) -> Usage {
        Usage::of(&scenario.workload.spec, &scenario.metrics.resources)
    }

    /// The usage of pods with these containers and signals.
    pub(super) fn of(spec: &PodSpec, resources: &[ResourceUsage]) -> Usage {
        let mut containers: Vec<UsedContainer> = Vec::new();
        let add = |containers: &mut Vec<UsedContainer>, name: &Arc<str>, runs: bool| {
            let is_first = containers.is_empty();
            containers.push(UsedContainer { name: name.clone(), is_first, runs });
        };
        for container in spec.running_containers() {
            add(&mut containers, &container.name, true);
        }
        for resource in resources {
            if let UsageSource::PerContainer(signals) = &resource.source {
                for (name, _) in &signals.0 {
                    if !containers.iter().any(|it| it.name == *name) {
                        let ends = spec.init_containers.iter().any(|it| it.name == *name);
                        add(&mut containers, name, !ends);
                    }
                }
            }
        }
        let resources = resources.iter();
        let resources = resources
            .map(|resource| Readings {
                grain: Grain::of(&resource.name),
                source: Vec::new(),
                exceptions: Vec::new(),
            })
            .collect();
        Usage {
            containers: containers.into(),
            resources,
            classes: Vec::new(),
            index: Shared::default(),
            version: 0,
            was_cut: false,
        }
    }

    /// Reads all signals at the time of a sample.
    pub(super) fn read(&mut self, signals: &[ResourceUsage], sampled: Time, load: SharedLoad<'_>) {
        let mut changed = false;
        for (index, (usage, readings)) in signals.iter().zip(&mut self.resources).enumerate() {
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
                    let backlog = load.backlogs.get(index).and_then(Option::as_ref);
                    let share = match backlog {
                        Some(backlog) if backlog.at(sampled) > 0 => Reading::Written(0),
                        _ => share(total, limit.as_ref(), sampled, load.serving, grain),
                    };
                    self.was_cut |= matches!(share, Reading::Written(_)) && backlog.is_none();
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
        let (key, class) = (Arc::new(key), self.classes.len());
        self.index.insert(key.clone(), class);
        let containers = Arc::new([]);
        self.classes.push(Class { key, version: u64::MAX, inputs: Vec::new(), containers });
        class
    }

    /// The usage of the pods of a class at the current readings.
    pub(super) fn of_class(
        &mut self,
        class: usize,
        signals: &[ResourceUsage],
    ) -> &Arc<[ContainerMetrics]> {
        let Usage { containers, resources, classes, version, .. } = self;
        let class = &mut classes[class];
        if class.version != *version {
            let inputs = inputs(&class.key, resources);
            if class.version == u64::MAX || class.inputs != inputs {
                class.containers = build(&class.key, containers, resources, signals);
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

/// The time of a pod's newest sample, if it has its own age.
pub(super) fn own_sampled_at(scenario: &Scenario, lag: Option<Span>, query: Time) -> Option<Time> {
    Some(sampled_at(Sampling { lag: lag?, ..scenario.metrics.sampling }, query))
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
            Source::Exceptions(indices) => {
                inputs.extend(indices.iter().map(|index| readings.exceptions[*index]));
                inputs.extend(&readings.source);
            }
        }
    }
    inputs
}

/// The containers of a pod with their usage. No containers: the pod has no sample, because its
/// signals have a gap.
fn build(
    key: &ClassKey,
    containers: &[UsedContainer],
    resources: &[Readings],
    signals: &[ResourceUsage],
) -> Arc<[ContainerMetrics]> {
    let mut built = Vec::with_capacity(containers.len());
    let (mut has_values, mut has_gaps) = (false, false);
    for container in containers {
        let mut usage = Vec::with_capacity(resources.len());
        let shown =
            resources.iter().enumerate().filter(|_| !hides_container(&key.hidden, &container.name));
        for (index, readings) in shown {
            let resource = &signals[index];
            if hides_resource(&key.hidden, &resource.name) {
                continue;
            }
            match value(&key.sources[index], resource, readings, container) {
                Some(quantity) => usage.push((resource.name.clone(), quantity)),
                None => has_gaps = true,
            }
        }
        has_values |= !usage.is_empty();
        built.push(ContainerMetrics { name: container.name.clone(), usage });
    }
    if has_gaps && !has_values {
        built.clear();
    }
    built.into()
}

/// The usage of a container. None: there is no sample.
fn value(
    source: &Source,
    resource: &ResourceUsage,
    readings: &Readings,
    container: &UsedContainer,
) -> Option<Quantity> {
    let grain = readings.grain;
    let nothing = || container.runs.then(|| grain.quantity(0));
    let first = |quantity: Quantity| if container.is_first { Some(quantity) } else { nothing() };
    if let Source::Exceptions(indices) = source {
        let exceptions = indices.iter().map(|index| (index, &resource.exceptions[*index]));
        let mut own = exceptions.filter(|(_, exception)| exception.applies_to(&container.name));
        if let Some((index, exception)) = own.next() {
            let value = signal::quantity(&exception.value, readings.exceptions[*index], grain)?;
            return if exception.container.is_some() { Some(value) } else { first(value) };
        }
    }
    match (source, &resource.source) {
        (Source::Idle, _) => {
            let is_gap = readings.source.first().is_some_and(|reading| reading.is_absent());
            if is_gap { None } else { nothing() }
        }
        (_, UsageSource::PerPod(signal)) => {
            signal::quantity(signal, readings.source[0], grain).and_then(first)
        }
        (_, UsageSource::PerContainer(signals)) => {
            let named = signals.0.iter().position(|(name, _)| *name == container.name);
            named.map_or_else(nothing, |at| {
                signal::quantity(&signals.0[at].1, readings.source[at], grain)
            })
        }
        (_, UsageSource::Load { limit, .. }) => match (readings.source[0], limit) {
            (Reading::Absent, _) => None,
            (Reading::Written(_), Some(limit)) => first(limit.clone()),
            (Reading::Written(_), None) => nothing(),
            (Reading::Computed(milli), _) => first(grain.quantity(milli)),
        },
    }
}
