//! The recommender's state: pods, VPAs and aggregated samples, with the links between them.
//!
//! Upstream: `pkg/recommender/model/{cluster,vpa}.go`

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::account::Before;
use super::aggregate::{Aggregate, AggregateId, MemorySettings};
use super::api::{ObjectName, ResourcePolicy, VerticalPodAutoscaler, VpaCondition};
use super::container::{Container, OomError};
use super::context::Context;
use super::float::Amount;
use super::merged::{Merged, PresentPeak};
use super::pod::{Labels, ObservedOom, Pod};
use super::time::GoTime;
use crate::api::{CrossVersionObjectReference, PodPhase};
use crate::rules::InitContainers;
use crate::selector::Selector;

/// The containers that share an aggregate: those with the same name in pods with the same labels.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct AggregateKey {
    namespace: Arc<str>,
    container: Arc<str>,
    labels: Arc<str>,
}

impl AggregateKey {
    fn new(pod: &ObjectName, container: &Arc<str>, labels: &Labels) -> AggregateKey {
        AggregateKey {
            namespace: pod.namespace.clone(),
            container: container.clone(),
            labels: labels.text().clone(),
        }
    }
}

/// A pod with the state of its containers.
#[derive(Debug)]
struct PodState {
    labels: Labels,
    phase: PodPhase,
    containers: BTreeMap<Arc<str>, ContainerOfPod>,
    init_containers: Vec<Arc<str>>,
    /// The object that was loaded last: loading it again has no effect.
    object: Option<Arc<Pod>>,
}

#[derive(Debug)]
struct ContainerOfPod {
    state: Container,
    /// The key of its aggregate by the current labels of the pod.
    key: AggregateKey,
    aggregate: Link,
}

impl ContainerOfPod {
    /// The aggregate by the current labels of the pod, unless it was deleted.
    fn present_aggregate(
        &self,
        keys: &BTreeMap<AggregateKey, AggregateId>,
        changes: u64,
    ) -> Option<AggregateId> {
        match self.aggregate {
            Link::ByKey { known: Some((id, at)) } if at == changes => Some(id),
            _ => keys.get(&self.key).copied(),
        }
    }

    /// The aggregate to which samples are added. `None` if it is not yet created.
    fn sampled_aggregate(
        &self,
        keys: &BTreeMap<AggregateKey, AggregateId>,
        changes: u64,
    ) -> Option<AggregateId> {
        self.aggregate.known(changes).or_else(|| keys.get(&self.key).copied())
    }

    /// The state for explanations. `aggregate`: the one to which samples are added.
    fn before(&self, aggregate: Option<&Aggregate>) -> Before {
        let peak = self.state.max_memory_peak() as f64;
        let holds_peak = aggregate.is_some_and(|it| it.memory.contains(peak));
        Before { state: self.state.clone(), holds_peak }
    }
}

/// The link of a container to its aggregate.
#[derive(Clone, Copy, Debug)]
enum Link {
    /// By its key, which is resolved when it is used. `known` is the last result and the number of
    /// changes of the keys before it.
    ByKey { known: Option<(AggregateId, u64)> },
    /// To an aggregate that may be deleted: the labels of the pod have changed.
    Direct(AggregateId),
}

impl Link {
    /// The aggregate, if it is known after this number of changes of the keys.
    fn known(self, changes: u64) -> Option<AggregateId> {
        match self {
            Link::Direct(id) => Some(id),
            Link::ByKey { known } => known.filter(|(_, at)| *at == changes).map(|(id, _)| id),
        }
    }
}

/// The samples of a container that are not discarded.
struct Samples {
    cpu: Option<Amount>,
    memory: Option<Amount>,
    /// The number of samples that are discarded.
    discarded: usize,
}

impl Samples {
    fn accepted(usage: &ContainerUsage, state: &Container, at: GoTime) -> Samples {
        let cpu = usage.cpu.filter(|cpu| state.accepts_cpu(*cpu, at).is_ok());
        let memory = usage.memory.filter(|memory| state.accepts_memory(*memory, at).is_ok());
        let count = |option: Option<Amount>| usize::from(option.is_some());
        let discarded = count(usage.cpu) + count(usage.memory) - count(cpu) - count(memory);
        Samples { cpu, memory, discarded }
    }

    fn add(&self, state: &mut Container, aggregate: &mut Aggregate, at: GoTime) {
        if let Some(cpu) = self.cpu {
            state.add_cpu_sample(aggregate, cpu, at);
        }
        if let Some(memory) = self.memory {
            state.add_memory_sample(aggregate, memory, at);
        }
    }
}

/// A VPA.
#[derive(Debug)]
pub(super) struct VpaState {
    pub selector: Selector,
    policy: Option<ResourcePolicy>,
    pub target_ref: CrossVersionObjectReference,
    aggregates: BTreeMap<AggregateKey, AggregateId>,
    /// The samples of checkpoints, by the name of the container.
    from_checkpoints: BTreeMap<Arc<str>, Box<Aggregate>>,
    /// The result of the last merge.
    pub merged: Merged,
    /// Sorted by type.
    pub conditions: Vec<VpaCondition>,
    pub(super) pod_count: i64,
    /// The time at which the recommendation was first missing, or last reported as missing.
    pub(super) missing_since: Option<GoTime>,
}

impl VpaState {
    /// The policies of the containers.
    pub(super) fn policy(&self) -> Option<&ResourcePolicy> {
        self.policy.as_ref()
    }

    /// The samples of checkpoints, by the name of the container.
    pub(super) fn checkpoints(&self) -> &BTreeMap<Arc<str>, Box<Aggregate>> {
        &self.from_checkpoints
    }

    /// Adds the samples of a checkpoint, or replaces them.
    pub(super) fn set_checkpoint(&mut self, container: Arc<str>, samples: Aggregate) {
        self.from_checkpoints.insert(container, Box::new(samples));
        self.merged = Merged::default();
    }

    fn add_aggregate(&mut self, key: AggregateKey, id: AggregateId) {
        self.aggregates.insert(key, id);
        self.merged = Merged::default();
    }

    fn remove_aggregate(&mut self, key: &AggregateKey) {
        if self.aggregates.remove(key).is_some() {
            self.merged = Merged::default();
        }
    }
}

/// The state of the recommender.
#[derive(Debug)]
pub(super) struct ClusterState {
    pods: BTreeMap<ObjectName, PodState>,
    pub vpas: BTreeMap<ObjectName, VpaState>,
    keys: BTreeMap<AggregateKey, AggregateId>,
    /// How often `keys` or the labels of a pod have changed.
    changes: u64,
    aggregates: Vec<Aggregate>,
}

/// The VPAs and the aggregates: what can change beside a pod.
struct Links<'s> {
    vpas: &'s mut BTreeMap<ObjectName, VpaState>,
    keys: &'s mut BTreeMap<AggregateKey, AggregateId>,
    changes: &'s mut u64,
    aggregates: &'s mut Vec<Aggregate>,
}

impl Links<'_> {
    /// Upstream: findOrCreateAggregateContainerState
    fn find_or_create(
        &mut self,
        key: &AggregateKey,
        labels: &Labels,
        context: Context<'_>,
    ) -> AggregateId {
        if let Some(id) = self.keys.get(key) {
            return *id;
        }
        let id = self.aggregates.len();
        let mut aggregate = Aggregate::new(context.flags, context.now);
        let mut policies = Vec::new();
        for (name, vpa) in self.vpas.iter_mut() {
            if name.namespace == key.namespace && vpa.selector.matches(labels.map()) {
                vpa.add_aggregate(key.clone(), id);
                let policy = vpa.policy.as_ref();
                policies.extend(policy.and_then(|policy| policy.for_container(&key.container)));
            }
        }
        aggregate.set_policies(&policies, context);
        self.aggregates.push(aggregate);
        self.keys.insert(key.clone(), id);
        *self.changes += 1;
        id
    }

    /// The aggregate of a container, which is created if it was deleted.
    fn resolve(
        &mut self,
        container: &mut ContainerOfPod,
        labels: &Labels,
        context: Context<'_>,
    ) -> &mut Aggregate {
        let id = container.aggregate.known(*self.changes).unwrap_or_else(|| {
            let id = self.find_or_create(&container.key, labels, context);
            container.aggregate = Link::ByKey { known: Some((id, *self.changes)) };
            id
        });
        &mut self.aggregates[id]
    }
}

/// A pod to which samples are added. It is looked up once for all its containers.
pub(super) struct SampledPod<'s> {
    name: &'s ObjectName,
    /// `None` if the recommender does not know the pod.
    state: Option<&'s mut PodState>,
    links: Links<'s>,
}

impl SampledPod<'_> {
    /// The state of a container, before a sample is added.
    pub(super) fn before(&self, container: &str) -> Option<Before> {
        let found = self.state.as_ref()?.containers.get(container)?;
        let Links { keys, changes, aggregates, .. } = &self.links;
        let aggregate = found.sampled_aggregate(keys, **changes);
        Some(found.before(aggregate.map(|id| &aggregates[id])))
    }

    /// Adds the usage of a container, unless it is an init container. Returns the number of samples
    /// that were discarded.
    ///
    /// Upstream: AddSample, for CPU and for memory
    pub(super) fn add_usage(
        &mut self,
        usage: &ContainerUsage,
        at: GoTime,
        context: Context<'_>,
    ) -> Result<usize, KeyError> {
        let ObjectName { namespace, name } = self.name;
        let Some(pod) = &mut self.state else {
            return Err(KeyError(format!("KeyError: {{{namespace} {name}}}")));
        };
        let container = &usage.container;
        let is_skipped = context.rules.init_containers != InitContainers::Reported;
        if is_skipped && pod.init_containers.contains(container) {
            return Ok(0);
        }
        let Some(found) = pod.containers.get_mut(container) else {
            return Err(KeyError(format!("KeyError: {{{{{namespace} {name}}} {container}}}")));
        };
        let samples = Samples::accepted(usage, &found.state, at);
        if samples.cpu.is_some() || samples.memory.is_some() {
            let aggregate = self.links.resolve(found, &pod.labels, context);
            samples.add(&mut found.state, aggregate, at);
        }
        Ok(samples.discarded)
    }
}

/// A pod or container that the recommender does not know; the text is upstream's.
pub(super) struct KeyError(pub(super) String);

impl ClusterState {
    pub(super) fn new() -> ClusterState {
        ClusterState {
            pods: BTreeMap::new(),
            vpas: BTreeMap::new(),
            keys: BTreeMap::new(),
            changes: 0,
            aggregates: Vec::new(),
        }
    }

    /// The names of the tracked pods.
    pub(super) fn pod_names(&self) -> impl Iterator<Item = &ObjectName> {
        self.pods.keys()
    }

    /// Returns true if the tracked pods are exactly these, and none has changed.
    pub(super) fn has_loaded(&self, pods: &BTreeMap<ObjectName, Arc<Pod>>) -> bool {
        let is_loaded = |(state, pod): (&PodState, &Arc<Pod>)| {
            state.object.as_ref().is_some_and(|loaded| Arc::ptr_eq(loaded, pod))
        };
        self.pods.len() == pods.len() && self.pods.values().zip(pods.values()).all(is_loaded)
    }

    fn links(&mut self) -> Links<'_> {
        let ClusterState { vpas, keys, changes, aggregates, .. } = self;
        Links { vpas, keys, changes, aggregates }
    }

    /// A pod to which samples are added.
    pub(super) fn sampled_pod<'s>(&'s mut self, name: &'s ObjectName) -> SampledPod<'s> {
        let ClusterState { pods, vpas, keys, changes, aggregates } = self;
        let links = Links { vpas, keys, changes, aggregates };
        SampledPod { name, state: pods.get_mut(name), links }
    }

    /// Loads a pod. Upstream: AddOrUpdatePod, AddOrUpdateContainer and SetInitContainers
    pub(super) fn load_pod(&mut self, pod: &Arc<Pod>, context: Context<'_>) {
        let loaded = self.pods.get(&pod.name).and_then(|state| state.object.as_ref());
        if loaded.is_some_and(|loaded| Arc::ptr_eq(loaded, pod)) {
            return;
        }
        let containers = pod.containers.iter().map(|container| &container.name);
        self.add_pod(&pod.name, &pod.labels, pod.phase, containers, context);
        if let Some(state) = self.pods.get_mut(&pod.name) {
            match context.rules.init_containers {
                InitContainers::EverSkipped => {
                    state.init_containers.extend(pod.init_containers.iter().cloned());
                    state.init_containers.sort_unstable();
                    state.init_containers.dedup();
                }
                InitContainers::Reported | InitContainers::Skipped => {
                    state.init_containers.clone_from(&pod.init_containers);
                }
            }
            state.object = Some(pod.clone());
        }
    }

    /// Adds a pod and its containers, or updates them.
    pub(super) fn add_pod<'c>(
        &mut self,
        name: &ObjectName,
        labels: &Labels,
        phase: PodPhase,
        containers: impl Iterator<Item = &'c Arc<str>>,
        context: Context<'_>,
    ) {
        let old = self.pods.get(name).map(|pod| pod.labels.clone());
        match old {
            Some(old) if old.text() == labels.text() => {}
            Some(old) => {
                self.count_pod(name, &old, -1);
                self.relabel(name, labels, context);
                self.count_pod(name, labels, 1);
            }
            None => {
                self.pods.insert(
                    name.clone(),
                    PodState {
                        labels: labels.clone(),
                        phase,
                        containers: BTreeMap::new(),
                        init_containers: Vec::new(),
                        object: None,
                    },
                );
                self.count_pod(name, labels, 1);
            }
        }
        for container in containers {
            let Some(pod) = self.pods.get(name) else { return };
            if !pod.containers.contains_key(container) {
                let key = AggregateKey::new(name, container, labels);
                self.links().find_or_create(&key, labels, context);
                let state = ContainerOfPod {
                    state: Container::default(),
                    key,
                    aggregate: Link::ByKey { known: None },
                };
                if let Some(pod) = self.pods.get_mut(name) {
                    pod.containers.insert(container.clone(), state);
                }
            }
        }
        if let Some(pod) = self.pods.get_mut(name) {
            pod.phase = phase;
        }
    }

    /// Links the containers of a pod to the aggregates of its new labels.
    fn relabel(&mut self, name: &ObjectName, labels: &Labels, context: Context<'_>) {
        self.changes += 1;
        let Some(pod) = self.pods.get_mut(name) else { return };
        pod.labels = labels.clone();
        let containers: Vec<Arc<str>> = pod.containers.keys().cloned().collect();
        for container in containers {
            let key = AggregateKey::new(name, &container, labels);
            let aggregate = self.links().find_or_create(&key, labels, context);
            let pod = self.pods.get_mut(name);
            if let Some(state) = pod.and_then(|pod| pod.containers.get_mut(&container)) {
                state.key = key;
                state.aggregate = Link::Direct(aggregate);
            }
        }
    }

    /// Adds to the number of pods of each VPA that selects a pod.
    fn count_pod(&mut self, pod: &ObjectName, labels: &Labels, add: i64) {
        for (name, vpa) in &mut self.vpas {
            if name.namespace == pod.namespace && vpa.selector.matches(labels.map()) {
                vpa.pod_count += add;
            }
        }
    }

    /// Forgets a pod. Upstream: DeletePod
    pub(super) fn delete_pod(&mut self, name: &ObjectName) {
        if let Some(pod) = self.pods.remove(name) {
            self.count_pod(name, &pod.labels, -1);
        }
    }

    /// The memory settings of a container, if its aggregate is known.
    pub(super) fn memory_settings(
        &self,
        pod: &ObjectName,
        container: &str,
    ) -> Option<MemorySettings> {
        let found = self.pods.get(pod)?.containers.get(container)?;
        let id = found.aggregate.known(self.changes)?;
        Some(self.aggregates[id].settings)
    }

    /// Records an OOM kill. Upstream: RecordOOM
    pub(super) fn record_oom(
        &mut self,
        oom: &ObservedOom,
        context: Context<'_>,
    ) -> Result<(), KeyError> {
        let ObjectName { namespace, name } = &oom.pod;
        let container = &oom.container;
        let SampledPod { state, mut links, .. } = self.sampled_pod(&oom.pod);
        let Some(PodState { labels, containers, .. }) = state else {
            return Err(KeyError(format!("KeyError: {{{namespace} {name}}}")));
        };
        let Some(found) = containers.get_mut(container) else {
            return Err(KeyError(format!("KeyError: {container}")));
        };
        let aggregate = links.resolve(found, labels, context);
        found.state.record_oom(aggregate, context.rules, &oom.kill).map_err(|error| {
            let why = match error {
                OomError::TooOld => {
                    let at = oom.kill.at.go_text();
                    format!("OOM event will be discarded - it is too old ({at})")
                }
                OomError::Invalid => "adding OOM sample failed".to_owned(),
            };
            KeyError(format!(
                "error while recording OOM for {{{{{namespace} {name}}} {container}}}, \
                 Reason: {why}"
            ))
        })
    }

    /// Loads a VPA with the selector of its target. Upstream: AddOrUpdateVpa
    pub(super) fn load_vpa(
        &mut self,
        vpa: &VerticalPodAutoscaler,
        selector: &Selector,
        context: Context<'_>,
    ) -> Option<&mut VpaState> {
        let name = &vpa.metadata.name;
        // Upstream compares texts: the text of a selector that matches nothing is empty, like that
        // of a selector that matches everything.
        let is_same = |existing: &VpaState| {
            existing.selector == *selector || existing.selector.to_string() == selector.to_string()
        };
        if !self.vpas.get(name).is_some_and(is_same) {
            let state = self.new_vpa(vpa, selector);
            self.vpas.insert(name.clone(), state);
        }
        let state = self.vpas.get_mut(name)?;
        if state.target_ref != vpa.spec.target_ref {
            state.target_ref = vpa.spec.target_ref.clone();
        }
        if state.conditions != vpa.status.conditions {
            state.conditions.clone_from(&vpa.status.conditions);
            state.conditions.sort_by(|a, b| a.type_.cmp(&b.type_));
        }
        if state.policy != vpa.spec.resource_policy {
            state.policy.clone_from(&vpa.spec.resource_policy);
        }
        if context.flags.per_vpa_config {
            for (key, id) in &state.aggregates {
                let policy = state.policy.as_ref();
                let policy = policy.and_then(|policy| policy.for_container(&key.container));
                if let Some(policy) = policy {
                    self.aggregates[*id].load_policy(policy, context);
                }
            }
        }
        Some(state)
    }

    fn new_vpa(&self, vpa: &VerticalPodAutoscaler, selector: &Selector) -> VpaState {
        let namespace = &vpa.metadata.name.namespace;
        let selects = |in_namespace: &Arc<str>, labels: &Labels| {
            in_namespace == namespace && selector.matches(labels.map())
        };
        let pods = self.pods.iter();
        let pods = pods.filter(|(name, pod)| selects(&name.namespace, &pod.labels)).count();
        let aggregates = self.keys.iter().filter(|(key, _)| {
            let labels = labels_of_text(&key.labels);
            key.namespace == *namespace && selector.matches(&labels)
        });
        VpaState {
            aggregates: aggregates.map(|(key, id)| (key.clone(), *id)).collect(),
            policy: None,
            target_ref: vpa.spec.target_ref.clone(),
            from_checkpoints: BTreeMap::new(),
            merged: Merged::default(),
            conditions: Vec::new(),
            pod_count: pods as i64,
            missing_since: None,
            selector: selector.clone(),
        }
    }

    /// Merges the samples of a VPA by the name of the container: those of all its aggregates, then
    /// those of checkpoints. Merging can change the reference times of the merged histograms.
    ///
    /// Upstream merges the aggregates in a random order; here they are sorted by labels.
    ///
    /// Upstream: vpa.go, AggregateStateByContainerName
    pub(super) fn merge(
        &mut self,
        vpa: &ObjectName,
        context: Context<'_>,
    ) -> Option<&mut VpaState> {
        let state = self.vpas.get_mut(vpa)?;
        let VpaState { merged, aggregates, from_checkpoints, .. } = state;
        if merged.containers.is_empty() {
            for (key, id) in aggregates {
                merged.container_named(&key.container, vpa, context).add_source(*id);
            }
            for name in from_checkpoints.keys() {
                merged.container_named(name, vpa, context);
            }
            merged.index_aggregates();
        }
        for container in &mut merged.containers {
            let checkpoint = from_checkpoints.get_mut(&container.name).map(|it| &mut **it);
            container.merge(&mut self.aggregates, checkpoint, context.flags);
        }
        Some(state)
    }

    /// Finds the memory peaks of a VPA whose intervals have not ended.
    pub(super) fn find_present_peaks(&mut self, vpa: &ObjectName, now: GoTime) {
        let Some(VpaState { merged, .. }) = self.vpas.get_mut(vpa) else { return };
        let containers = self.pods.values().flat_map(|pod| pod.containers.values());
        let present = containers.filter(|it| now < it.state.window_end());
        merged.set_present_peaks(present.filter_map(|it| {
            Some(PresentPeak {
                source: it.present_aggregate(&self.keys, self.changes)?,
                end: it.state.window_end(),
                peak: it.state.max_memory_peak(),
            })
        }));
    }

    /// Deletes aggregates that are expired, or that have no samples and no contributing pod.
    ///
    /// Upstream: garbageCollectAggregateCollectionStates
    pub(super) fn collect_garbage(
        &mut self,
        now: GoTime,
        controller_exists: impl Fn(&ObjectName, &CrossVersionObjectReference) -> bool,
    ) {
        let contributes = |name: &ObjectName, pod: &PodState| {
            let is_active = !matches!(pod.phase, PodPhase::Succeeded | PodPhase::Failed);
            is_active || {
                let vpa = self.vpas.iter().find(|(vpa, state)| {
                    vpa.namespace == name.namespace && state.selector.matches(pod.labels.map())
                });
                vpa.is_some_and(|(vpa, state)| controller_exists(vpa, &state.target_ref))
            }
        };
        let pods = self.pods.iter().filter(|(name, pod)| contributes(name, pod));
        let containers = pods.flat_map(|(_, pod)| pod.containers.values());
        let contributing: BTreeSet<&AggregateKey> = containers.map(|it| &it.key).collect();
        let aggregates = &self.aggregates;
        let is_obsolete = |key: &AggregateKey, id: AggregateId| {
            let aggregate = &aggregates[id];
            let is_unused = !contributing.contains(key) && aggregate.is_empty();
            is_unused || aggregate.is_expired(now)
        };
        let obsolete: Vec<AggregateKey> = self
            .keys
            .iter()
            .filter(|(key, id)| is_obsolete(key, **id))
            .map(|(key, _)| key.clone())
            .collect();
        for key in &obsolete {
            self.keys.remove(key);
            self.changes += 1;
            for vpa in self.vpas.values_mut() {
                vpa.remove_aggregate(key);
            }
        }
    }

    /// Returns true if a VPA selects a pod. Upstream: cluster_feeder.go, matchesVPA
    pub(super) fn is_selected(&self, pod: &Pod) -> bool {
        self.vpas.iter().any(|(vpa, state)| {
            vpa.namespace == pod.name.namespace && state.selector.matches(pod.labels.map())
        })
    }
}

fn labels_of_text(text: &str) -> BTreeMap<String, String> {
    let pairs = text.split(',').filter_map(|pair| pair.split_once('='));
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// The usage of a container in one sample of the metrics API.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ContainerUsage {
    /// The name of the container.
    pub container: Arc<str>,
    /// In millicores. `None` is no sample in a history, and 0 in the metrics API.
    pub cpu: Option<Amount>,
    /// In bytes.
    pub memory: Option<Amount>,
}
