//! Publishes the state of the simulation: compares it with the state that was last published, and
//! returns the smallest list of changes.
//!
//! The cost is proportional to the number of changes. While nothing changes, a reconcile reads each
//! signal once and publishes only the new timestamp of the samples.
//!
//! The age of a sample is set by the scenario. Its values are those at its own time, except that a
//! shared load is divided among the pods that are ready at the time of the query.

use std::sync::Arc;

use super::change::{Change, Faults, PodMetricsChange, Sample, ScaleTarget};
use super::custom::PublishedCustom;
use super::other_pods::{self, OtherSamples};
use super::pods::{self, Frozen, SimPod};
use super::simulation::World;
use super::usage::{ClassKey, Usage, without};
use crate::model::api::PodSpec;
use crate::model::time::{Span, Time};
use crate::scenario::resolved::{Action, Sampling, Scenario, UsageSource};

/// The state that was last published, and changes that have not been published yet.
#[derive(Clone, Debug)]
pub(super) struct Published {
    /// The names of pod templates by revision. Their labels are all the same: samples carry those
    /// of the first.
    pub(super) templates: Vec<Arc<str>>,
    /// Pod templates that have not been published yet.
    pub(super) new_templates: Vec<(Arc<str>, Arc<PodSpec>)>,
    /// The plural of the workload's kind, and its group.
    pub(super) resource: Arc<str>,
    /// The pod template and the window of samples are published once.
    started: bool,
    status_replicas: Option<i32>,
    timestamp: Option<Time>,
    usage_version: u64,
    faults: Faults,
    pub(super) custom: PublishedCustom,
    /// The number of published samples that have the common timestamp.
    following: usize,
    /// Pods whose samples became stale, until their timestamp is no longer the common one.
    freshly_frozen: Vec<u32>,
    /// A user, not the controller, changed `spec.replicas`.
    pub(super) person: bool,
    /// The same of the other targets.
    pub(super) others: Vec<PublishedTarget>,
    other_samples: OtherSamples,
    /// All samples must be compared.
    pub(super) everything: bool,
    pub(super) lost_pods: Vec<Arc<str>>,
    pub(super) lost_samples: Vec<Arc<str>>,
}

/// The published state of a target without pods.
#[derive(Clone, Debug)]
pub(super) struct PublishedTarget {
    resource: Arc<str>,
    /// The published replicas, both in spec and status.
    status_replicas: Option<i32>,
    /// A user, not the controller, changed `spec.replicas`.
    pub(super) person: bool,
}

impl Published {
    pub(super) fn new(scenario: &Scenario) -> Published {
        let mut resources = scenario.targets().map(|target| Arc::from(target.group_resource()));
        let resource = resources.next().unwrap_or_default();
        let others = resources.map(|resource| PublishedTarget {
            resource,
            status_replicas: None,
            person: true,
        });
        let others = others.collect();
        Published {
            templates: vec!["t0".into()],
            new_templates: vec![("t0".into(), scenario.workload.spec.clone())],
            resource,
            started: false,
            status_replicas: None,
            timestamp: None,
            usage_version: 0,
            faults: Faults::default(),
            custom: PublishedCustom::default(),
            following: 0,
            freshly_frozen: Vec::new(),
            person: true,
            others,
            other_samples: OtherSamples::default(),
            everything: false,
            lost_pods: Vec::new(),
            lost_samples: Vec::new(),
        }
    }

    /// The controller wrote `spec.replicas`, which replaces any earlier change by a user.
    pub(super) fn overwritten(&mut self) {
        self.person &= !self.started;
    }

    /// The same of another target.
    pub(super) fn overwritten_other(&mut self, other: usize) {
        self.others[other].person &= !self.started;
    }

    /// Removes a published sample.
    pub(super) fn forget_sample(&mut self, sample: Option<&pods::Published>) {
        self.following -= usize::from(follows(sample));
    }
}

fn follows(sample: Option<&pods::Published>) -> bool {
    sample.is_some_and(|sample| sample.timestamp.is_none())
}

/// When the newest sample was taken that a query can see.
fn sampled_at(sampling: Sampling, query: Time) -> Time {
    let latest = query - sampling.lag;
    match sampling.resolution {
        Some(Span(step)) if step > 0 => Time(latest.0.div_euclid(step) * step),
        _ => latest,
    }
}

impl World {
    /// Returns everything that changed, for a reconcile at `at`.
    pub(super) fn publish(&mut self, at: Time) -> Vec<Change> {
        let mut changes = Vec::new();
        let first = !std::mem::replace(&mut self.published.started, true);
        for (name, spec) in self.published.new_templates.drain(..) {
            let labels = self.scenario.workload.labels.clone();
            changes.push(Change::PodTemplate { name, labels, spec: (*spec).clone() });
        }
        if first {
            other_pods::publish_pods(&self.scenario, &mut changes);
        }
        self.publish_scale(&mut changes);
        let mut dirty = std::mem::take(&mut self.dirty);
        dirty.sort_unstable();
        self.publish_pods(&dirty, &mut changes);
        self.publish_metrics(at, first, &dirty, &mut changes);
        dirty.clear();
        self.dirty = dirty;
        let sampled = sampled_at(self.scenario.metrics.sampling, at);
        self.publish_custom_metrics(sampled, &mut changes);
        self.publish_faults(&mut changes);
        changes
    }

    fn publish_scale(&mut self, changes: &mut Vec<Change>) {
        if self.is_target_gone() {
            if self.published.status_replicas.take().is_some() {
                let (resource, name) =
                    (self.published.resource.clone(), self.scenario.workload.name.clone());
                changes.push(Change::DeleteScale { resource, name });
            }
            // When the target is created again, its replicas are published again.
            self.published.person = true;
        } else {
            self.publish_scale_of_workload(changes);
        }
        self.publish_scales_of_others(changes);
    }

    fn publish_scale_of_workload(&mut self, changes: &mut Vec<Change>) {
        let counted = i32::try_from(self.active + self.leaving()).unwrap_or(i32::MAX);
        let status_replicas = self.scenario.workload.status_replicas.unwrap_or(counted);
        let person = std::mem::take(&mut self.published.person);
        if person || self.published.status_replicas != Some(status_replicas) {
            self.published.status_replicas = Some(status_replicas);
            changes.push(Change::SetScale(ScaleTarget {
                resource: self.published.resource.clone(),
                name: self.scenario.workload.name.clone(),
                replicas: person.then_some(self.replicas),
                status_replicas,
                selector: self.scenario.workload.selector.clone(),
            }));
        }
    }

    fn publish_scales_of_others(&mut self, changes: &mut Vec<Change>) {
        let others =
            self.scenario.other_targets.iter().zip(&self.others).zip(&mut self.published.others);
        for ((target, &replicas), published) in others {
            let person = std::mem::take(&mut published.person);
            if person || published.status_replicas != Some(replicas) {
                published.status_replicas = Some(replicas);
                changes.push(Change::SetScale(ScaleTarget {
                    resource: published.resource.clone(),
                    name: target.name.clone(),
                    replicas: person.then_some(replicas),
                    status_replicas: replicas,
                    selector: target.selector.clone(),
                }));
            }
        }
    }

    fn publish_pods(&mut self, dirty: &[u32], changes: &mut Vec<Change>) {
        let mut set = Vec::new();
        for ordinal in dirty {
            if let Some(pod) = self.pods.get_mut(ordinal) {
                pod.dirty = false;
                if pod.gone {
                    if pod.published.take().is_some() {
                        self.published.lost_pods.push(pod.name.clone());
                    }
                    continue;
                }
                let status = pod.status();
                if pod.published != Some(status) {
                    pod.published = Some(status);
                    set.push(pod.state(status, &self.published.templates[pod.revision as usize]));
                }
            }
        }
        if !set.is_empty() {
            changes.push(Change::SetPods(set));
        }
        if !self.published.lost_pods.is_empty() {
            changes.push(Change::DeletePods(std::mem::take(&mut self.published.lost_pods)));
        }
    }

    fn publish_metrics(&mut self, at: Time, first: bool, dirty: &[u32], changes: &mut Vec<Change>) {
        let scenario = self.scenario.clone();
        let sampled = sampled_at(scenario.metrics.sampling, at);
        let timestamp = sampled.truncate_to_second();
        self.usage.read(&scenario.metrics, sampled, self.serving);
        let mut change = PodMetricsChange {
            window: first.then_some(scenario.metrics.sampling.window),
            delete: std::mem::take(&mut self.published.lost_samples),
            ..PodMetricsChange::default()
        };
        for ordinal in dirty {
            self.classify(*ordinal);
        }
        let aged = self.newly_aged(timestamp);
        let everything = std::mem::take(&mut self.published.everything)
            || self.published.usage_version != self.usage.version;
        self.published.usage_version = self.usage.version;
        let empty = self.metrics_are_empty();
        let World { pods, usage, published, .. } = self;
        let mut look = |pod: &mut SimPod| {
            let wanted = if empty { None } else { wanted_sample(pod, usage, &scenario, timestamp) };
            publish_sample(pod, wanted, published, &mut change);
        };
        if everything {
            pods.values_mut().for_each(&mut look);
        } else {
            for ordinal in dirty.iter().chain(&aged) {
                if let Some(pod) = pods.get_mut(ordinal) {
                    look(pod);
                }
            }
        }
        let others = self.published.other_samples.publish(&scenario, empty, &mut change);
        if self.published.following + others > 0 && self.published.timestamp != Some(timestamp) {
            self.published.timestamp = Some(timestamp);
            change.timestamp = Some(timestamp);
        }
        if change != PodMetricsChange::default() {
            changes.push(Change::PodMetrics(change));
        }
    }

    fn publish_faults(&mut self, changes: &mut Vec<Change>) {
        let faults = self.faults();
        if faults != self.published.faults {
            self.published.faults = faults.clone();
            changes.push(Change::Faults(faults));
        }
    }

    /// Determines the current source of a pod's samples.
    fn classify(&mut self, ordinal: u32) {
        let Some(pod) = self.pods.get_mut(&ordinal) else {
            return;
        };
        let timeline = &self.scenario.timeline;
        pod.metrics.hidden = pod.hidden(timeline);
        pod.metrics.class = pod.has_entry(timeline).then(|| {
            let resources = self.scenario.metrics.resources.iter().enumerate();
            let sources = resources.map(|(index, resource)| {
                pod.source(index, matches!(resource.source, UsageSource::Load { .. }))
            });
            let key = ClassKey { sources: sources.collect(), hidden: pod.metrics.hidden.clone() };
            self.usage.class(key)
        });
    }

    /// The samples of pods that became stale at this instant stay as a query now would see them.
    pub(super) fn freeze(&mut self, at: Time) {
        let scenario = self.scenario.clone();
        let sampled = sampled_at(scenario.metrics.sampling, at);
        self.usage.read(&scenario.metrics, sampled, self.serving);
        let empty = self.metrics_are_empty();
        let stale = |pod: &SimPod| {
            let held = |&i: &usize| matches!(scenario.timeline[i].action, Action::MetricsStale(_));
            pod.metrics.frozen.is_none() && pod.holds.iter().any(held)
        };
        let ordinals: Vec<u32> =
            self.pods.iter().filter(|(_, pod)| stale(pod)).map(|(ordinal, _)| *ordinal).collect();
        for ordinal in ordinals {
            self.classify(ordinal);
            let Some(pod) = self.pods.get_mut(&ordinal) else {
                continue;
            };
            let class = pod.metrics.class.filter(|_| !empty);
            let containers =
                class.map(|class| self.usage.of_class(class, &scenario.metrics).clone());
            let timestamp = sampled.truncate_to_second();
            pod.metrics.frozen = Some(Frozen { timestamp, containers });
            self.published.freshly_frozen.push(ordinal);
            self.mark(ordinal);
        }
    }

    /// The stale pods whose timestamp is no longer the common one.
    fn newly_aged(&mut self, timestamp: Time) -> Vec<u32> {
        let mut aged = Vec::new();
        let pods = &self.pods;
        self.published.freshly_frozen.retain(|ordinal| {
            let frozen = pods.get(ordinal).and_then(|pod| pod.metrics.frozen.as_ref());
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
}

/// The sample of a pod that a query now sees.
fn wanted_sample(
    pod: &SimPod,
    usage: &mut Usage,
    scenario: &Scenario,
    timestamp: Time,
) -> Option<pods::Published> {
    let class = pod.metrics.class?;
    match &pod.metrics.frozen {
        None => {
            let containers = usage.of_class(class, &scenario.metrics).clone();
            Some(pods::Published { timestamp: None, containers })
        }
        Some(frozen) => Some(pods::Published {
            timestamp: (frozen.timestamp != timestamp).then_some(frozen.timestamp),
            containers: without(frozen.containers.as_ref()?, &pod.metrics.hidden),
        }),
    }
}

/// Publishes a pod's sample if it differs from the published one.
fn publish_sample(
    pod: &mut SimPod,
    wanted: Option<pods::Published>,
    published: &mut Published,
    change: &mut PodMetricsChange,
) {
    let same = match (&pod.metrics.published, &wanted) {
        (None, None) => true,
        (Some(old), Some(new)) => {
            old.timestamp == new.timestamp
                && (Arc::ptr_eq(&old.containers, &new.containers)
                    || old.containers == new.containers)
        }
        _ => false,
    };
    if !same {
        match &wanted {
            Some(sample) => change.set.push(Sample {
                pod: pod.name.clone(),
                template: published.templates[0].clone(),
                timestamp: sample.timestamp,
                containers: sample.containers.clone(),
            }),
            None => change.delete.push(pod.name.clone()),
        }
    }
    published.following += usize::from(follows(wanted.as_ref()));
    published.following -= usize::from(follows(pod.metrics.published.as_ref()));
    pod.metrics.published = wanted;
}
