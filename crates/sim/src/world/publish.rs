//! Publishes the state of the simulation: compares it with the last published state, and returns
//! the smallest list of changes.
//!
//! The cost is proportional to the number of changes. While nothing changes, a reconcile reads each
//! signal once and publishes only the new timestamp of the samples.
//!
//! The scenario sets the age of a sample. A sample has the values of its own time, except that a
//! shared load is divided among the pods that are ready at the time of the query.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::change::{Change, Faults, PodMetricsChange, Samples, ScaleTarget};
use super::custom::PublishedCustom;
use super::other_namespaces;
use super::other_pods::{self, OtherSamples};
use super::pods::{SimPod, Status};
use super::simulation::{NewTemplate, Removed, Touched, WorldSimulation, Writer};
use super::usage::{Hidden, Usage, own_sampled_at, sampled_at, without};
use educe::Educe;
use kube_autoscaler_models::api::ContainerMetrics;
use kube_autoscaler_models::shared::Shared;
use kube_autoscaler_models::time::{Span, Time};
use kube_lockstep_scenario::resolved::{Action, QueryError, Sampling, Scenario, TimelineEvent};

/// The last published state.
#[derive(Educe, Debug)]
#[educe(Clone)]
pub(super) struct Publisher {
    /// True if the pod template and the window of samples have been published. They are published
    /// once.
    started: bool,
    /// The targets; the first one is the workload.
    targets: Vec<PublishedTarget>,
    /// The published pods, by ordinal.
    pods: Shared<BTreeMap<u32, PublishedPod>>,
    samples: PublishedSamples,
    other_samples: OtherSamples,
    custom: PublishedCustom,
    faults: Shared<Faults>,
}

/// The published state of a target.
#[derive(Clone, Debug)]
struct PublishedTarget {
    resource: Arc<str>,
    /// None: the scale does not exist.
    status_replicas: Option<i32>,
}

/// The published state of a pod, and the source of its samples.
#[derive(Clone, Debug, Default)]
struct PublishedPod {
    status: Option<Status>,
    /// The class of the pod's usage; None: the pod has no entry.
    class: Option<usize>,
    /// The containers and resources without usage.
    hidden: Vec<Hidden>,
}

/// A published sample.
#[derive(Clone, PartialEq, Debug)]
struct PublishedSample {
    /// The sample's own timestamp, if it differs from the common one.
    timestamp: Option<Time>,
    containers: Arc<[ContainerMetrics]>,
}

/// Successive samples of pods of one class, with the common timestamp.
#[derive(Clone, Debug)]
struct SteadySamples {
    class: usize,
    /// The names of the pods.
    pods: Shared<Vec<Arc<str>>>,
    containers: Arc<[ContainerMetrics]>,
}

/// The published state of all samples, and their sources.
#[derive(Educe, Debug)]
#[educe(Clone)]
struct PublishedSamples {
    /// The samples, by ordinal of the pod.
    list: Shared<Vec<(u32, PublishedSample)>>,
    /// The samples by class, as long as only the usage of the classes changes. The list then has
    /// the containers of the last time at which more changed. Empty: the list is up to date.
    steady: Vec<SteadySamples>,
    /// The common timestamp.
    timestamp: Option<Time>,
    /// The number of samples with the common timestamp.
    following: usize,
    /// The version of the usage when the samples were published.
    version: u64,
    /// Pods whose samples became stale, as long as their timestamp equals the common one.
    freshly_frozen: Vec<u32>,
    /// The source of the samples.
    usage: Usage,
    /// True if the samples of some pods can have their own age.
    have_own_ages: bool,
    /// The usage of the pods whose samples have their own age, by this age.
    own_usage: BTreeMap<Span, Usage>,
}

impl PublishedSamples {
    fn new(scenario: &Scenario) -> PublishedSamples {
        let late = |event: &TimelineEvent| matches!(event.action, Action::MetricsLate(_));
        PublishedSamples {
            list: Shared::default(),
            steady: Vec::new(),
            timestamp: None,
            following: 0,
            version: 0,
            freshly_frozen: Vec::new(),
            usage: Usage::new(scenario),
            have_own_ages: scenario.workload.pods.iter().any(|of| of.sample_lag.is_some())
                || scenario.timeline.iter().any(late),
            own_usage: BTreeMap::new(),
        }
    }

    /// The age of a pod's newest sample, if it is not that of the other pods.
    fn lag(&self, pod: &SimPod, ordinal: u32, scenario: &Scenario) -> Option<Span> {
        if self.have_own_ages { pod.sample_lag(ordinal, scenario) } else { None }
    }

    /// Reads the usage of the pods whose samples have their own age. Returns these pods: their
    /// samples differ from query to query.
    fn read_own(&mut self, query: &Query<'_>) -> Vec<u32> {
        let Query { simulation, at, .. } = *query;
        let scenario = &*simulation.scenario;
        let metrics = &scenario.metrics;
        if !self.have_own_ages {
            return Vec::new();
        }
        let mut pods = Vec::new();
        for (ordinal, pod) in simulation.pods.iter() {
            let Some(lag) = pod.sample_lag(*ordinal, scenario) else { continue };
            let sampled = sampled_at(Sampling { lag, ..metrics.sampling }, at);
            let new = || Usage::new(&simulation.scenario);
            let usage = self.own_usage.entry(lag).or_insert_with(new);
            usage.read(&metrics.resources, sampled, simulation.shared_load());
            pods.push(*ordinal);
        }
        pods
    }

    /// Publishes a pod's sample if it differs from the published one. `place`: that of the sample
    /// in the list. Returns the place of the next pod.
    fn publish(
        &mut self,
        query: &Query<'_>,
        ordinal: u32,
        pod: &SimPod,
        published: &PublishedPod,
        place: usize,
        change: &mut PodMetricsChange,
    ) -> usize {
        let sample = match query.is_empty {
            true => None,
            false => {
                let lag = self.lag(pod, ordinal, &query.simulation.scenario);
                let own = lag.and_then(|lag| self.own_usage.get_mut(&lag));
                let usage = own.unwrap_or(&mut self.usage);
                new_sample(query, lag, pod, published, usage)
            }
        };
        let old = self.list.get(place).filter(|(of, _)| *of == ordinal).map(|(_, old)| old);
        let same = match (old, &sample) {
            (None, None) => true,
            (Some(old), Some(new)) => {
                old.timestamp == new.timestamp
                    && (Arc::ptr_eq(&old.containers, &new.containers)
                        || old.containers == new.containers)
            }
            _ => false,
        };
        if !same {
            match &sample {
                Some(PublishedSample { timestamp, containers }) => {
                    let template = &query.simulation.templates.names[0];
                    change.add(pod.name.clone(), template, *timestamp, containers);
                }
                None => change.delete.push(pod.name.clone()),
            }
        }
        let follows = |sample: Option<&PublishedSample>| {
            usize::from(sample.is_some_and(|sample| sample.timestamp.is_none()))
        };
        self.following = self.following + follows(sample.as_ref()) - follows(old);
        match (old.is_some(), sample) {
            (true, Some(sample)) => self.list[place].1 = sample,
            (false, Some(sample)) => self.list.insert(place, (ordinal, sample)),
            (true, None) => {
                self.list.remove(place);
                return place;
            }
            (false, None) => return place,
        }
        place + 1
    }

    /// Publishes all samples when only the usage of the classes has changed. Returns false if some
    /// samples require more.
    fn publish_steady(
        &mut self,
        simulation: &WorldSimulation,
        pods: &BTreeMap<u32, PublishedPod>,
        change: &mut PodMetricsChange,
    ) -> bool {
        if self.steady.is_empty() && !self.begin_steady(simulation, pods) {
            return false;
        }
        let signals = &simulation.scenario.metrics.resources;
        // In a gap of a recorded signal, there are no samples.
        if self.steady.iter().any(|it| self.usage.of_class(it.class, signals).is_empty()) {
            return false;
        }
        for SteadySamples { class, pods, containers } in &mut self.steady {
            let new = self.usage.of_class(*class, signals);
            if !Arc::ptr_eq(containers, new) && containers != new {
                containers.clone_from(new);
                change.set.push(Samples {
                    pods: pods.clone(),
                    template: simulation.templates.names[0].clone(),
                    timestamp: None,
                    containers: containers.clone(),
                });
            }
        }
        true
    }

    /// Groups the samples by class. Returns false if a pod has none, or one that does not follow
    /// its class.
    fn begin_steady(
        &mut self,
        simulation: &WorldSimulation,
        pods: &BTreeMap<u32, PublishedPod>,
    ) -> bool {
        let is_steady = self.list.len() == pods.len()
            && self.following == pods.len()
            && simulation.pods.values().all(|pod| pod.frozen.is_none());
        let mut groups: Vec<SteadySamples> = Vec::new();
        let samples = self.list.iter().zip(pods.values().zip(simulation.pods.values()));
        for ((_, sample), (published, pod)) in samples.filter(|_| is_steady) {
            let Some(class) = published.class else { return false };
            match groups.last_mut().filter(|group| group.class == class) {
                Some(group) => group.pods.push(pod.name.clone()),
                None => groups.push(SteadySamples {
                    class,
                    pods: Shared::new(vec![pod.name.clone()]),
                    containers: sample.containers.clone(),
                }),
            }
        }
        self.steady = groups;
        !self.steady.is_empty()
    }

    /// Brings the list up to date, before more than the usage of the classes changes.
    fn end_steady(&mut self) {
        if self.steady.is_empty() {
            return;
        }
        let mut samples = self.list.iter_mut();
        for SteadySamples { pods, containers, .. } in self.steady.drain(..) {
            for (_, sample) in samples.by_ref().take(pods.len()) {
                sample.containers.clone_from(&containers);
            }
        }
    }

    /// The place of a pod's sample in the list.
    fn place(&self, ordinal: u32) -> usize {
        self.list.partition_point(|(of, _)| *of < ordinal)
    }

    /// Forgets the sample of a pod. Returns false if there is none.
    fn forget(&mut self, ordinal: u32) -> bool {
        self.end_steady();
        let place = self.place(ordinal);
        let Some((_, sample)) = self.list.get(place).filter(|(of, _)| *of == ordinal) else {
            return false;
        };
        self.following -= usize::from(sample.timestamp.is_none());
        self.list.remove(place);
        true
    }
}

/// The time at which the state is published.
struct Query<'s> {
    simulation: &'s WorldSimulation,
    /// The time of the query.
    at: Time,
    /// The time of the samples in the response.
    sampled: Time,
    /// The common timestamp of these samples.
    timestamp: Time,
    /// True if metrics.k8s.io returns an empty list.
    is_empty: bool,
    /// True if this is the first query.
    first: bool,
}

impl Publisher {
    pub(super) fn new(scenario: &Scenario) -> Publisher {
        let target =
            |resource: String| PublishedTarget { resource: resource.into(), status_replicas: None };
        Publisher {
            started: false,
            targets: scenario.targets().map(|it| target(it.group_resource())).collect(),
            pods: Shared::default(),
            samples: PublishedSamples::new(scenario),
            other_samples: OtherSamples::default(),
            custom: PublishedCustom::default(),
            faults: Shared::default(),
        }
    }

    /// Forgets the sample of a pod, so that it is published again.
    pub(super) fn forget_sample(&mut self, ordinal: u32) {
        self.samples.forget(ordinal);
    }

    /// Returns all changes, for a reconcile at `at`. `touched` lists everything that may have
    /// changed since the last call.
    pub(super) fn publish(
        &mut self,
        simulation: &WorldSimulation,
        mut touched: Touched,
        at: Time,
    ) -> Vec<Change> {
        let scenario = &*simulation.scenario;
        let sampled = sampled_at(scenario.metrics.sampling, at);
        let query = Query {
            simulation,
            at,
            sampled,
            timestamp: sampled.truncate_to_second(),
            is_empty: simulation.metrics_are_empty(),
            first: !std::mem::replace(&mut self.started, true),
        };
        // Mostly the samples alone. Large blocks of memory take longer.
        let mut changes = Vec::with_capacity(2);
        for NewTemplate { name, spec } in touched.templates.drain(..) {
            let labels = scenario.workload.labels.clone();
            changes.push(Change::PodTemplate { name, labels, spec: (*spec).clone() });
        }
        if query.first {
            other_pods::publish_pods(scenario, &mut changes);
            other_namespaces::publish(scenario, &mut changes);
        }
        self.publish_scales(&query, &touched.writers, &mut changes);
        touched.pods.sort_unstable();
        touched.pods.dedup();
        let removed = self.remove(&touched.removed);
        self.publish_pods(simulation, &touched.pods, removed.pods, &mut changes);
        self.publish_samples(&query, &mut touched, removed.samples, &mut changes);
        self.custom.publish(simulation, at, &mut changes);
        self.publish_faults(simulation, &mut changes);
        changes
    }

    fn publish_scales(
        &mut self,
        query: &Query<'_>,
        writers: &BTreeMap<usize, Writer>,
        changes: &mut Vec<Change>,
    ) {
        let Query { simulation, first, .. } = *query;
        let scenario = &simulation.scenario;
        let targets = simulation.replicas.iter().zip(&mut self.targets).enumerate();
        for (index, (&replicas, published)) in targets {
            let other = index.checked_sub(1).and_then(|other| scenario.other_targets.get(other));
            let workload = &scenario.workload;
            if index == 0 && simulation.is_target_deleted() {
                if published.status_replicas.take().is_some() {
                    let (resource, name) = (published.resource.clone(), workload.name.clone());
                    changes.push(Change::DeleteScale { resource, name });
                }
                continue;
            }
            let status_replicas = match other {
                Some(_) => replicas,
                None => workload.status_replicas.unwrap_or_else(|| {
                    let counted = simulation.active + simulation.leaving();
                    i32::try_from(counted).unwrap_or(i32::MAX)
                }),
            };
            // The controller knows the replicas that it wrote.
            let by_user = first || writers.get(&index) == Some(&Writer::User);
            if by_user || published.status_replicas != Some(status_replicas) {
                published.status_replicas = Some(status_replicas);
                let (name, selector) = match other {
                    Some(other) => (other.name.clone(), other.selector()),
                    None => (workload.name.clone(), workload.selector.clone()),
                };
                changes.push(Change::SetScale(ScaleTarget {
                    resource: published.resource.clone(),
                    name,
                    replicas: by_user.then_some(replicas),
                    status_replicas,
                    selector,
                }));
            }
        }
    }

    /// Forgets the removed pods. Returns the names of the published pods and samples among them.
    fn remove(&mut self, removed: &[Removed]) -> RemovedNames {
        let mut names = RemovedNames::default();
        for Removed { ordinal, name, is_replaced } in removed {
            let Some(pod) = self.pods.remove(ordinal) else { continue };
            let had_sample = self.samples.forget(*ordinal);
            names.samples.extend((had_sample && !is_replaced).then(|| name.clone()));
            names.pods.extend(pod.status.map(|_| name.clone()));
        }
        names
    }

    fn publish_pods(
        &mut self,
        simulation: &WorldSimulation,
        touched: &[u32],
        mut removed: Vec<Arc<str>>,
        changes: &mut Vec<Change>,
    ) {
        let mut set = Vec::new();
        for ordinal in touched {
            let Some(pod) = simulation.pods.get(ordinal) else { continue };
            let published = self.pods.entry(*ordinal).or_default();
            if pod.deleted {
                removed.extend(published.status.take().map(|_| pod.name.clone()));
                continue;
            }
            let status = pod.status();
            if published.status != Some(status) {
                published.status = Some(status);
                let template = simulation.templates.name_of(pod);
                set.push(pod.state(status, template));
            }
        }
        if !set.is_empty() {
            changes.push(Change::SetPods(set));
        }
        if !removed.is_empty() {
            changes.push(Change::DeletePods(removed));
        }
    }

    /// Returns true if a share of a load was larger than the limit of a pod.
    pub(super) fn has_cut_loads(&self) -> bool {
        self.samples.usage.was_cut
    }

    fn publish_samples(
        &mut self,
        query: &Query<'_>,
        touched: &mut Touched,
        removed: Vec<Arc<str>>,
        changes: &mut Vec<Change>,
    ) {
        let Query { simulation, sampled, timestamp, is_empty, first, .. } = *query;
        let scenario = &simulation.scenario;
        self.samples.usage.read(&scenario.metrics.resources, sampled, simulation.shared_load());
        let own = self.samples.read_own(query);
        let mut change = PodMetricsChange {
            window: first.then_some(scenario.metrics.sampling.window),
            delete: removed,
            ..PodMetricsChange::default()
        };
        for ordinal in &touched.pods {
            self.classify(simulation, *ordinal);
        }
        self.samples.freshly_frozen.append(&mut touched.frozen);
        let aged = self.newly_aged(simulation, timestamp);
        let has_new_usage = self.samples.version != self.samples.usage.version;
        self.samples.version = self.samples.usage.version;
        let all = touched.all_samples || scenario.workload.rules.samples_follow_pods;
        let is_steady = has_new_usage
            && !(all || is_empty || self.samples.have_own_ages)
            && touched.pods.is_empty()
            && aged.is_empty();
        if !(is_steady && self.samples.publish_steady(simulation, &self.pods, &mut change)) {
            let touched = touched.pods.iter().chain(&aged).chain(&own);
            let touched = (!(all || has_new_usage)).then_some(touched);
            self.publish_by_pod(query, touched, &mut change);
        }
        let others = self.other_samples.publish(scenario, is_empty, &mut change);
        if self.samples.following + others > 0 && self.samples.timestamp != Some(timestamp) {
            self.samples.timestamp = Some(timestamp);
            change.timestamp = Some(timestamp);
        }
        if change != PodMetricsChange::default() {
            changes.push(Change::PodMetrics(change));
        }
    }

    /// Publishes the samples of these pods, or of all.
    fn publish_by_pod<'p>(
        &mut self,
        query: &Query<'_>,
        touched: Option<impl Iterator<Item = &'p u32>>,
        change: &mut PodMetricsChange,
    ) {
        let Publisher { samples, pods, .. } = self;
        let simulation = query.simulation;
        let Some(touched) = touched else {
            samples.end_steady();
            // Each pod has been touched since its creation, and both lists are sorted.
            let mut place = 0;
            for ((ordinal, pod), (other, published)) in simulation.pods.iter().zip(pods.iter()) {
                debug_assert_eq!(ordinal, other);
                place = samples.publish(query, *ordinal, pod, published, place, change);
            }
            return;
        };
        for ordinal in touched {
            if let (Some(pod), Some(published)) = (simulation.pods.get(ordinal), pods.get(ordinal))
            {
                samples.end_steady();
                let place = samples.place(*ordinal);
                samples.publish(query, *ordinal, pod, published, place, change);
            }
        }
    }

    /// Determines the current source of a pod's samples.
    fn classify(&mut self, simulation: &WorldSimulation, ordinal: u32) {
        let Some(pod) = simulation.pods.get(&ordinal) else { return };
        let published = self.pods.entry(ordinal).or_default();
        published.hidden = pod.hidden(&simulation.scenario);
        let samples = &mut self.samples;
        let usage = match samples.lag(pod, ordinal, &simulation.scenario) {
            Some(lag) => {
                samples.own_usage.entry(lag).or_insert_with(|| Usage::new(&simulation.scenario))
            }
            None => &mut samples.usage,
        };
        published.class = pod.class(&simulation.scenario).map(|key| usage.class(key));
    }

    /// The pods with a stale sample whose timestamp no longer equals the common one.
    fn newly_aged(&mut self, simulation: &WorldSimulation, timestamp: Time) -> Vec<u32> {
        let mut aged = Vec::new();
        self.samples.freshly_frozen.retain(|ordinal| {
            let frozen = simulation.pods.get(ordinal).and_then(|pod| pod.frozen.as_ref());
            match frozen {
                Some(frozen) if frozen.timestamp == timestamp => true,
                Some(_) => {
                    aged.push(*ordinal);
                    false
                }
                None => false,
            }
        });
        aged
    }

    fn publish_faults(&mut self, simulation: &WorldSimulation, changes: &mut Vec<Change>) {
        let faults = faults(simulation);
        if faults != *self.faults {
            self.faults = Shared::new(faults.clone());
            changes.push(Change::Faults(faults));
        }
    }
}

/// The names of removed pods and samples.
#[derive(Default)]
struct RemovedNames {
    pods: Vec<Arc<str>>,
    samples: Vec<Arc<str>>,
}

/// The sample of a pod in the response to a query.
fn new_sample(
    query: &Query<'_>,
    lag: Option<Span>,
    pod: &SimPod,
    published: &PublishedPod,
    usage: &mut Usage,
) -> Option<PublishedSample> {
    let class = published.class?;
    match &pod.frozen {
        None => {
            let own = own_sampled_at(&query.simulation.scenario, lag, query.at);
            if !pod.is_sampled_at(own.unwrap_or(query.sampled)) {
                return None;
            }
            let signals = &query.simulation.scenario.metrics.resources;
            let containers = usage.of_class(class, signals).clone();
            let timestamp = own.map(Time::truncate_to_second).filter(|it| *it != query.timestamp);
            // In a gap of a recorded signal, there is no sample.
            (!containers.is_empty()).then_some(PublishedSample { timestamp, containers })
        }
        Some(frozen) => {
            let containers = frozen.containers.as_ref().filter(|it| !it.is_empty())?;
            Some(PublishedSample {
                timestamp: (frozen.timestamp != query.timestamp).then_some(frozen.timestamp),
                containers: without(containers, &published.hidden),
            })
        }
    }
}

/// The failing requests. If there are several faults of one kind, the last one to begin applies.
fn faults(simulation: &WorldSimulation) -> Faults {
    let mut faults = Faults::default();
    for action in simulation.disturbances() {
        match action {
            Action::MetricsError(QueryError::Response(error)) => {
                faults.list_pod_metrics = Some(error.clone());
            }
            Action::GetScaleError(error) => faults.get_scale = Some(error.clone()),
            Action::UpdateScaleError(error) => faults.update_scale = Some(error.clone()),
            Action::UpdateStatusError(error) => faults.update_status = Some(error.clone()),
            Action::MetricsSlow(span) => faults.slow_metrics = Some(*span),
            Action::CacheLag(span) => faults.cache_lag = Some(*span),
            _ => {}
        }
    }
    faults
}
