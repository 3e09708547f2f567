//! The runs of the recommender: from the objects of the cluster to its requests.
//!
//! Upstream: `pkg/recommender/routines/recommender.go`, `pkg/recommender/input/cluster_feeder.go`,
//! `pkg/recommender/checkpoint/checkpoint_writer.go`

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::account::{Occurrence, OomMemory, oom_occurrence, usage_occurrences};
use super::aggregate::{Aggregate, Resource};
use super::api::{
    Checkpoint, CheckpointSpec, ObjectName, Recommendation, VerticalPodAutoscaler, VpaCondition,
    VpaStatus,
};
use super::cluster::{ClusterState, ContainerUsage, VpaState};
use super::context::Context;
use super::estimator::Estimation;
use super::flags::RecommenderFlags;
use super::histogram::Shares;
use super::log::{Failure, LogLine};
use super::merged::{MergedContainer, SavedContainer, Tolerances};
use super::objects::{Objects, Target};
use super::pod::{Labels, ObservedOom};
use super::recommendation::{minimum_of, recommend};
use super::time::GoTime;
use crate::api::{ConditionStatus, PodPhase};
use crate::rules::{RemovedPods, VpaRules, VpaTexts};
use crate::selector::Selector;
use crate::time::Span;

/// The interval of the garbage collection of aggregated samples.
const GC_INTERVAL: Span = Span::from_mins(60);

/// The time after which a missing recommendation is reported.
const MISSING_INTERVAL: Span = Span::from_mins(30);

/// A request of the recommender that changes an object.
#[derive(Clone, PartialEq, Debug)]
pub enum Write {
    /// The status of a VPA is replaced.
    Status {
        /// The VPA.
        vpa: ObjectName,
        /// The new status.
        status: Arc<VpaStatus>,
    },
    /// A checkpoint is created or its status replaced.
    Checkpoint {
        /// The new checkpoint.
        checkpoint: Arc<Checkpoint>,
        /// True if it is created.
        is_new: bool,
        /// The effect of upstream's random order on the weights.
        tolerances: Tolerances,
    },
    /// A checkpoint without a VPA is deleted.
    DeleteCheckpoint(ObjectName),
}

impl Write {
    /// The write of a status by the real recommender. The containers are sorted by name: in old
    /// releases, their order is random.
    #[must_use]
    pub fn observed_status(vpa: ObjectName, mut status: VpaStatus) -> Write {
        if let Some(recommendation) = &mut status.recommendation {
            let containers = &mut recommendation.container_recommendations;
            containers.sort_by(|a, b| a.container_name.cmp(&b.container_name));
        }
        Write::Status { vpa, status: status.into() }
    }

    /// Sets the tolerances of the write of a checkpoint to those of the model's write of the same
    /// checkpoint, if they are larger.
    pub fn tolerate(&mut self, model: &[Write]) {
        let Write::Checkpoint { checkpoint, tolerances, .. } = self else { return };
        for write in model {
            if let Write::Checkpoint { checkpoint: ours, tolerances: theirs, .. } = write
                && ours.metadata == checkpoint.metadata
            {
                *tolerances = tolerances.max(*theirs);
            }
        }
    }
}

/// The result of a run.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Run {
    /// The requests. Upstream's order of requests for different VPAs or containers is random; here
    /// they are sorted.
    pub writes: Vec<Write>,
    /// The logged errors.
    pub log: Vec<LogLine>,
    /// True if the result of this run, and of all later ones, depends on the random order in which
    /// upstream merges histograms (on more than the last digits of weights) or applies the memory
    /// settings of VPAs.
    pub is_undetermined: bool,
}

/// A running recommender.
#[derive(Debug)]
pub struct Recommender {
    flags: RecommenderFlags,
    rules: VpaRules,
    state: ClusterState,
    /// OOM kills that were observed since the last run.
    ooms: Vec<QueuedOom>,
    last_gc: Option<GoTime>,
    last_checkpoint_gc: GoTime,
    /// The occurrences since the account was last taken; `None` if they are not recorded.
    account: Option<Vec<Occurrence>>,
}

/// An OOM kill that the next run reads.
#[derive(Debug)]
pub(super) struct QueuedOom {
    pub oom: ObservedOom,
    /// The origin of its memory, for explanations.
    pub origin: OomMemory,
}

/// The usage of a container in a history.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HistorySample {
    /// The time of the sample.
    pub at: GoTime,
    /// The container with its usage.
    pub usage: ContainerUsage,
}

/// The samples of a container that still count.
#[derive(Clone, PartialEq, Debug)]
pub struct Samples {
    /// The number of CPU samples.
    pub count: i64,
    /// The time of the first CPU sample.
    pub first: GoTime,
    /// The time of the last CPU sample.
    pub last: GoTime,
    /// The buckets of CPU.
    pub cpu: Shares,
    /// The buckets of memory peaks.
    pub memory: Shares,
}

/// The samples of a pod that a recommender reads from Prometheus when it starts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PodHistory {
    /// The pod.
    pub pod: ObjectName,
    /// Its last labels.
    pub labels: Labels,
    /// The samples, oldest first.
    pub samples: Vec<HistorySample>,
}

impl Recommender {
    /// A recommender that starts now. Checkpoints or a history are read separately.
    #[must_use]
    pub fn new(flags: RecommenderFlags, rules: VpaRules, now: GoTime) -> Recommender {
        Recommender {
            flags,
            rules,
            state: ClusterState::new(),
            ooms: Vec::new(),
            last_gc: None,
            last_checkpoint_gc: now,
            account: None,
        }
    }

    /// Starts or stops recording occurrences, for explanations.
    pub fn keep_account(&mut self, keeps: bool) {
        match keeps {
            true => drop(self.account.get_or_insert_default()),
            false => self.account = None,
        }
    }

    /// The occurrences since the last call, in order of time. Empty if they are not recorded.
    pub fn take_account(&mut self) -> Vec<Occurrence> {
        self.account.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Continues the account of a recommender that this one replaces: it has read its checkpoints,
    /// or a number of samples of a history.
    pub(super) fn continue_account(&mut self, before: Option<Vec<Occurrence>>, samples: i64) {
        let Some(mut account) = before else { return };
        account.push(match self.flags.uses_checkpoints() {
            true => Occurrence::ReadCheckpoints(self.read_checkpoints()),
            false => Occurrence::ReadHistory(samples),
        });
        self.account = Some(account);
    }

    /// The account so far.
    pub(super) fn into_account(self) -> Option<Vec<Occurrence>> {
        self.account
    }

    /// The number of samples of each checkpoint that was read.
    fn read_checkpoints(&self) -> BTreeMap<Arc<str>, i64> {
        let vpas = self.state.vpas.iter();
        let read = vpas.flat_map(|(vpa, state)| {
            state.checkpoints().iter().map(|(container, aggregate)| {
                (format!("{}-{container}", vpa.name).into(), aggregate.count)
            })
        });
        read.collect()
    }

    /// Reads the checkpoints, as the recommender does when it starts. Returns the logged errors.
    ///
    /// Upstream: InitFromCheckpoints
    pub fn init_from_checkpoints(&mut self, objects: &Objects, now: GoTime) -> Vec<LogLine> {
        let mut log = Vec::new();
        self.load_vpas(objects, now, &mut log);
        let context = Context { flags: &self.flags, rules: &self.rules, now };
        let namespaces: BTreeSet<Arc<str>> =
            self.state.vpas.keys().map(|vpa| vpa.namespace.clone()).collect();
        let rules = self.rules;
        let read: Vec<_> =
            namespaces.iter().filter(|namespace| !self.is_ignored(namespace)).collect();
        for namespace in read {
            let is_read = |checkpoint: &&Arc<Checkpoint>| {
                rules.checkpoints.reads_all_per_namespace
                    || checkpoint.metadata.namespace == *namespace
            };
            let read = objects.checkpoints.values().filter(is_read);
            let failed =
                read.filter_map(|it| init_from_checkpoint(&mut self.state, it, context).err());
            log.extend(failed.map(|error| Failure::Checkpoint.line(error, &rules.texts)));
        }
        log
    }

    /// Reads a history, as the recommender does when it starts without checkpoints. Returns the
    /// logged errors.
    ///
    /// Upstream: InitFromHistoryProvider
    pub fn init_from_history(&mut self, history: &[PodHistory], now: GoTime) -> Vec<LogLine> {
        let context = Context { flags: &self.flags, rules: &self.rules, now };
        let mut log = Vec::new();
        for PodHistory { pod, labels, samples } in history {
            let containers = samples.iter().map(|sample| &sample.usage.container);
            self.state.add_pod(pod, labels, PodPhase::Unknown, containers, context);
            let mut sampled = self.state.sampled_pod(pod);
            for HistorySample { at, usage } in samples {
                let discarded = sampled.add_usage(usage, *at, context);
                let errors = discarded_errors(discarded);
                let failure = Failure::HistorySample(pod, &usage.container);
                log.extend(errors.map(|error| failure.line(error, &self.rules.texts)));
            }
        }
        log
    }

    /// Queues OOM kills, which the next run reads.
    pub fn observe_ooms(&mut self, ooms: impl IntoIterator<Item = ObservedOom>, of: OomMemory) {
        self.ooms.extend(ooms.into_iter().map(|oom| QueuedOom { oom, origin: of }));
    }

    /// Runs once. Upstream: RunOnce
    pub fn run_once(&mut self, objects: &Objects, now: GoTime) -> Run {
        let mut run = Run::default();
        self.load_vpas(objects, now, &mut run.log);
        let removed = self.load_pods(objects, now);
        if self.rules.removed_pods == RemovedPods::BeforeSamples {
            removed.iter().for_each(|pod| self.state.delete_pod(pod));
        }
        self.load_metrics(objects, now, &mut run.log);
        if self.rules.removed_pods == RemovedPods::AfterOoms {
            removed.iter().for_each(|pod| self.state.delete_pod(pod));
        }
        let context = Context { flags: &self.flags, rules: &self.rules, now };
        for (name, vpa) in &objects.vpas {
            let Some(state) = self.state.merge(name, context) else { continue };
            run.is_undetermined |= state.merged.containers.iter().any(MergedContainer::is_random);
            let write = update_vpa(vpa, state, context, &mut run.log);
            // Another order of the containers is a change that is written.
            run.is_undetermined |=
                write.is_none() && !self.rules.sorts_containers && has_several(&vpa.status);
            run.writes.extend(write);
            self.state.find_present_peaks(name, now);
        }
        if self.flags.uses_checkpoints() {
            for (name, state) in &mut self.state.vpas {
                store_checkpoints(name, state, objects, now, &mut run);
            }
            if now.since(self.last_checkpoint_gc) > self.flags.checkpoints_gc_interval {
                self.last_checkpoint_gc = now;
                self.collect_checkpoints(objects, now, &mut run);
            }
        }
        if self.last_gc.is_none_or(|last| now.since(last) >= GC_INTERVAL) {
            self.last_gc = Some(now);
            self.state.collect_garbage(now, |vpa, reference| {
                let target = objects.target(&vpa.namespace, reference);
                target.is_some_and(|target| target.error.is_none())
            });
        }
        run
    }

    /// How each amount of the current recommendation of a VPA was derived, by container. Containers
    /// whose recommendations are switched off are included.
    pub fn explain(
        &mut self,
        vpa: &ObjectName,
        now: GoTime,
    ) -> BTreeMap<Arc<str>, Vec<Estimation>> {
        let flags = &self.flags;
        let context = Context { flags, rules: &self.rules, now };
        let Some(state) = self.state.merge(vpa, context) else { return BTreeMap::new() };
        let containers = &state.merged.containers;
        let minimum = minimum_of(containers, state.policy(), context);
        let explained = containers.iter().map(|container| {
            let resources = [Resource::Cpu, Resource::Memory].into_iter();
            let estimations =
                resources.flat_map(|resource| container.estimate(flags, minimum, resource));
            (container.name.clone(), estimations.collect())
        });
        explained.collect()
    }

    /// The samples from which the current recommendation of a VPA follows, by container.
    pub fn samples(&mut self, vpa: &ObjectName, now: GoTime) -> BTreeMap<Arc<str>, Samples> {
        let context = Context { flags: &self.flags, rules: &self.rules, now };
        let merged = self.state.merge(vpa, context).map(|state| &*state.merged.containers);
        let containers = merged.unwrap_or_default().iter();
        let samples = containers.map(|MergedContainer { name, aggregate, .. }| {
            let samples = Samples {
                count: aggregate.count,
                first: aggregate.first_sample,
                last: aggregate.last_sample,
                cpu: aggregate.cpu.shares(),
                memory: aggregate.memory.shares(),
            };
            (name.clone(), samples)
        });
        samples.collect()
    }

    /// Upstream: shouldIgnoreNamespace
    fn is_ignored(&self, namespace: &str) -> bool {
        let only = &self.flags.vpa_object_namespace;
        let ignored = &self.flags.ignored_vpa_object_namespaces;
        (!only.is_empty() && only != namespace) || ignored.split(',').any(|it| it == namespace)
    }

    /// Returns true if the recommender handles a VPA. Upstream: filterVPAs
    fn handles(&self, vpa: &VerticalPodAutoscaler) -> bool {
        let (name, recommenders) = (&self.flags.recommender_name, &vpa.spec.recommenders);
        let is_default = name == "default" && recommenders.is_empty();
        (is_default || recommenders.iter().any(|recommender| recommender.name == *name))
            && !self.is_ignored(&vpa.metadata.name.namespace)
    }

    /// Upstream: LoadVPAs
    fn load_vpas(&mut self, objects: &Objects, now: GoTime, log: &mut Vec<LogLine>) {
        let mut handled = 0;
        for vpa in objects.vpas.values() {
            if !self.handles(vpa) {
                continue;
            }
            handled += 1;
            let selector = selector_of(vpa, objects, &self.rules.texts, log);
            let context = Context { flags: &self.flags, rules: &self.rules, now };
            let nothing = Selector::nothing();
            let loaded = self.state.load_vpa(vpa, selector.as_ref().unwrap_or(&&nothing), context);
            let Some(state) = loaded else { continue };
            match selector {
                Ok(_) => remove_condition(state, UNSUPPORTED),
                Err(message) => {
                    set_condition(
                        state,
                        UNSUPPORTED,
                        ConditionStatus::True,
                        "",
                        message.into(),
                        now,
                    );
                }
            }
            remove_condition(state, "ConfigDeprecated");
        }
        if self.state.vpas.len() == handled {
            return;
        }
        let is_gone =
            |name: &ObjectName| objects.vpas.get(name).is_none_or(|vpa| !self.handles(vpa));
        let gone: Vec<ObjectName> =
            self.state.vpas.keys().filter(|name| is_gone(name)).cloned().collect();
        for name in gone {
            self.state.vpas.remove(&name);
        }
    }

    /// Loads the pods. Returns those that no longer exist. Upstream: LoadPods
    fn load_pods(&mut self, objects: &Objects, now: GoTime) -> Vec<ObjectName> {
        if self.state.has_loaded(&objects.pods) {
            return Vec::new();
        }
        let context = Context { flags: &self.flags, rules: &self.rules, now };
        let tracked = self.state.pod_names();
        let removed = tracked.filter(|name| !objects.pods.contains_key(name)).cloned().collect();
        for pod in objects.pods.values() {
            if !self.flags.memory_saver || self.state.is_selected(pod) {
                self.state.load_pod(pod, context);
            }
        }
        removed
    }

    /// Reads the usage of all containers, then the OOM kills. Upstream: LoadRealTimeMetrics
    fn load_metrics(&mut self, objects: &Objects, now: GoTime, log: &mut Vec<LogLine>) {
        let context = Context { flags: &self.flags, rules: &self.rules, now };
        let items = match &objects.metrics {
            Ok(items) => items.as_slice(),
            Err(error) => {
                log.push(Failure::Metrics.line(error.clone(), &self.rules.texts));
                &[]
            }
        };
        for item in items {
            let mut pod = self.state.sampled_pod(&item.pod);
            for usage in &item.containers {
                let filled;
                let usage = match usage {
                    ContainerUsage { cpu: Some(_), memory: Some(_), .. } => usage,
                    // The metrics client turns missing values into 0.
                    ContainerUsage { container, cpu, memory } => {
                        filled = ContainerUsage {
                            container: container.clone(),
                            cpu: Some(cpu.unwrap_or(0)),
                            memory: Some(memory.unwrap_or(0)),
                        };
                        &filled
                    }
                };
                if let Some(account) = &mut self.account
                    && let Some(before) = pod.before(&usage.container)
                {
                    account.extend(usage_occurrences(&item.pod, usage, item.timestamp, &before));
                }
                let result = pod.add_usage(usage, item.timestamp, context);
                if result.is_err() && self.flags.memory_saver {
                    continue;
                }
                let errors = discarded_errors(result);
                let failure = Failure::Sample(&item.pod, &usage.container);
                log.extend(errors.map(|error| failure.line(error, &self.rules.texts)));
            }
        }
        for queued in std::mem::take(&mut self.ooms) {
            let QueuedOom { oom, .. } = &queued;
            let is_explained = self.account.is_some();
            let before = is_explained
                .then(|| self.state.sampled_pod(&oom.pod).before(&oom.container))
                .flatten();
            let recorded = self.state.record_oom(oom, context);
            if let (Some(account), Some(before)) = (&mut self.account, before)
                && let Some(settings) = self.state.memory_settings(&oom.pod, &oom.container)
            {
                account.push(oom_occurrence(&queued, &before, settings, recorded.is_err()));
            }
            if let Err(error) = recorded {
                log.push(Failure::Oom(oom).line(error.0, &self.rules.texts));
            }
        }
    }

    /// Deletes checkpoints without a VPA. Upstream: GarbageCollectCheckpoints
    fn collect_checkpoints(&mut self, objects: &Objects, now: GoTime, run: &mut Run) {
        let rules = self.rules.checkpoints;
        if !rules.keeps_those_of_other_recommenders {
            self.load_vpas(objects, now, &mut run.log);
        }
        let only = &*self.flags.vpa_object_namespace;
        let is_kept = |vpa: &ObjectName| match rules.keeps_those_of_other_recommenders {
            // Upstream lists only the VPAs of one namespace, if a flag names it.
            true => objects.vpas.contains_key(vpa) && (only.is_empty() || *only == *vpa.namespace),
            false => self.state.vpas.contains_key(vpa),
        };
        for (name, checkpoint) in &objects.checkpoints {
            let vpa = checkpoint.vpa();
            let is_skipped = rules.skips_ignored_namespaces && self.is_ignored(&name.namespace);
            if !is_kept(&vpa) && !is_skipped {
                run.writes.push(Write::DeleteCheckpoint(name.clone()));
            }
        }
    }
}

/// Calculates the status of a VPA. Returns a request if the status changes.
///
/// Upstream: processVPAUpdate
fn update_vpa(
    vpa: &VerticalPodAutoscaler,
    state: &mut VpaState,
    context: Context<'_>,
    log: &mut Vec<LogLine>,
) -> Option<Write> {
    let Context { rules, now, .. } = context;
    let recommendation = recommend(&state.merged.containers, vpa, context);
    let name = &vpa.metadata.name;
    update_conditions(state, &recommendation, now);
    if report_missing(state, &recommendation, now) {
        let why = format!("VPA {name} is missing recommendation for more than 30m0s");
        log.push(Failure::NoRecommendation.line(why, &rules.texts));
    }
    let status = VpaStatus {
        recommendation: Some(recommendation),
        conditions: state.conditions.clone(),
        observed_generation: rules.has_observed_generation.then_some(vpa.metadata.generation),
    };
    let is_changed = status != *vpa.status;
    is_changed.then(|| Write::Status { vpa: name.clone(), status: Arc::new(status) })
}

/// Upstream: processCheckpointUpdateForVPA
fn store_checkpoints(
    vpa: &ObjectName,
    state: &mut VpaState,
    objects: &Objects,
    now: GoTime,
    run: &mut Run,
) {
    let mut conditions = state.conditions.iter();
    if conditions.any(|it| it.type_ == "FetchingHistory" && it.status == ConditionStatus::True) {
        return;
    }
    for saved in state.merged.save(now) {
        let SavedContainer { container, status, tolerances, is_undetermined } = saved;
        run.is_undetermined |= is_undetermined;
        let existing = objects.checkpoints.get(&container.checkpoint);
        let spec = existing.map_or_else(
            || CheckpointSpec {
                vpa_object_name: vpa.name.clone(),
                container_name: container.name.clone(),
            },
            |existing| existing.spec.clone(),
        );
        let metadata = container.checkpoint.clone();
        let checkpoint = Checkpoint { metadata, spec, status };
        run.writes.push(Write::Checkpoint {
            checkpoint: Arc::new(checkpoint),
            is_new: existing.is_none(),
            tolerances,
        });
    }
}

/// Returns true if a status recommends requests for more than one container.
fn has_several(status: &VpaStatus) -> bool {
    status.recommendation.as_ref().is_some_and(|it| it.container_recommendations.len() > 1)
}

/// Loads a checkpoint. Upstream: setVpaCheckpoint
fn init_from_checkpoint(
    state: &mut ClusterState,
    checkpoint: &Checkpoint,
    context: Context<'_>,
) -> Result<(), String> {
    let vpa = checkpoint.vpa();
    let shown = match context.rules.texts.shows_vpa_as_path {
        true => vpa.to_string(),
        false => format!("{{Namespace:{} VpaName:{}}}", vpa.namespace, vpa.name),
    };
    let Some(state) = state.vpas.get_mut(&vpa) else {
        return Err(format!("cannot load checkpoint to missing VPA object {shown}"));
    };
    let aggregate = Aggregate::load(&checkpoint.status, context)
        .map_err(|why| format!("cannot load checkpoint for VPA {shown}. Reason: {why}"))?;
    let container = checkpoint.spec.container_name.clone();
    state.set_checkpoint(container, aggregate);
    Ok(())
}

/// The errors of the discarded samples of a container.
fn discarded_errors(
    result: Result<usize, super::cluster::KeyError>,
) -> impl Iterator<Item = String> {
    let (error, count) = match result {
        // Both resources of the container are unknown.
        Err(error) => (error.0, 2),
        // The most frequent case: no text is allocated.
        Ok(0) => (String::new(), 0),
        Ok(count) => ("sample discarded (invalid or out of order)".to_owned(), count),
    };
    std::iter::repeat_n(error, count)
}

/// The selector of a VPA's target, or the reason why the target is not supported.
///
/// Upstream: getSelector
fn selector_of<'o>(
    vpa: &VerticalPodAutoscaler,
    objects: &'o Objects,
    texts: &VpaTexts,
    log: &mut Vec<LogLine>,
) -> Result<&'o Selector, String> {
    let reference = &vpa.spec.target_ref;
    let namespace = &vpa.metadata.name.namespace;
    let name = || format!("{}.{}/{}", reference.api_version(), reference.kind, reference.name);
    let is_named = texts.names_unsupported_target;
    match objects.target(namespace, reference) {
        None => {
            let error = format!("{} {namespace}/{} does not exist", reference.kind, reference.name);
            let message = format!("Cannot read targetRef. Reason: {error}");
            log.push(Failure::Target.line(error, texts));
            Err(message)
        }
        Some(Target { error: Some(error), .. }) => {
            let target = if is_named { format!("target {}", name()) } else { "target".to_owned() };
            Err(format!(
                "Error checking if {target} is a topmost well-known or scalable controller: {error}"
            ))
        }
        Some(target) if target.has_parent => {
            let subject = match is_named {
                true => format!("The target {} has a parent controller", name()),
                false => "The targetRef controller has a parent".to_owned(),
            };
            Err(format!(
                "{subject} but it should point to a topmost well-known or scalable controller"
            ))
        }
        Some(target) => Ok(&target.selector),
    }
}

const UNSUPPORTED: &str = "ConfigUnsupported";

/// Sets a condition. The time changes only with the status. Upstream: vpaConditionsMap.Set
fn set_condition(
    vpa: &mut VpaState,
    type_: &'static str,
    status: ConditionStatus,
    reason: &'static str,
    message: Cow<'static, str>,
    now: GoTime,
) {
    let mut condition = VpaCondition {
        type_: Cow::Borrowed(type_),
        status,
        last_transition_time: now.truncate_to_second(),
        reason: Cow::Borrowed(reason),
        message,
    };
    match vpa.conditions.binary_search_by(|it| (*it.type_).cmp(type_)) {
        Ok(index) => {
            let old = &mut vpa.conditions[index];
            if old.status == condition.status {
                condition.last_transition_time = old.last_transition_time;
            }
            *old = condition;
        }
        Err(index) => vpa.conditions.insert(index, condition),
    }
}

fn remove_condition(vpa: &mut VpaState, type_: &str) {
    vpa.conditions.retain(|condition| condition.type_ != type_);
}

/// Upstream: vpa.go, updateConditionsLocked
fn update_conditions(vpa: &mut VpaState, recommendation: &Recommendation, now: GoTime) {
    const NO_PODS: &str = "NoPodsMatched";
    let (reason, message) = match vpa.pod_count > 0 {
        true => ("", ""),
        false => (NO_PODS, "No pods match this VPA object"),
    };
    if reason.is_empty() {
        remove_condition(vpa, NO_PODS);
    } else {
        set_condition(vpa, NO_PODS, ConditionStatus::True, reason, message.into(), now);
    }
    const PROVIDED: &str = "RecommendationProvided";
    match recommendation.container_recommendations.is_empty() {
        true => set_condition(vpa, PROVIDED, ConditionStatus::False, reason, message.into(), now),
        false => set_condition(vpa, PROVIDED, ConditionStatus::True, "", "".into(), now),
    }
}

/// Returns true if the recommendation has been missing for so long that it is reported now.
///
/// Upstream: cluster.go, RecordRecommendation
fn report_missing(vpa: &mut VpaState, recommendation: &Recommendation, now: GoTime) -> bool {
    if !recommendation.container_recommendations.is_empty() {
        vpa.missing_since = None;
        return false;
    }
    let since = *vpa.missing_since.get_or_insert(now);
    let is_late = since.plus(MISSING_INTERVAL) < now;
    if is_late {
        vpa.missing_since = Some(now);
    }
    is_late
}
