//! The aggregated samples of all containers with the same name and the same pod labels.
//!
//! Upstream: `pkg/recommender/model/aggregate_container_state.go`

use std::sync::Arc;

use super::api::ContainerPolicy;
use super::checkpoint::{CheckpointStatus, VERSION};
use super::context::Context;
use super::flags::RecommenderFlags;
use super::float::{Amount, amount, cores, scale};
use super::histogram::{Histogram, HistogramCheckpoint, Scheme};
use super::time::GoTime;
use crate::quantity::Quantity;
use crate::rules::PolicyMemory;
use crate::time::Span;

/// The weight of a CPU sample. The request of the container has no influence.
///
/// Upstream: aggregations_config.go, minSampleWeight
const CPU_WEIGHT: f64 = 0.1;

/// The index of an aggregate, which stays valid after the aggregate was deleted.
pub(super) type AggregateId = usize;

/// A resource of a container.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Resource {
    /// CPU, in millicores.
    Cpu,
    /// Memory, in bytes.
    Memory,
}

impl Resource {
    /// The name in the API.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Resource::Cpu => "cpu",
            Resource::Memory => "memory",
        }
    }

    /// The samples of the resource.
    pub(super) fn histogram(self, aggregate: &Aggregate) -> &Histogram {
        match self {
            Resource::Cpu => &aggregate.cpu,
            Resource::Memory => &aggregate.memory,
        }
    }

    /// The samples of the resource, to be changed.
    pub(super) fn histogram_mut(self, aggregate: &mut Aggregate) -> &mut Histogram {
        match self {
            Resource::Cpu => &mut aggregate.cpu,
            Resource::Memory => &mut aggregate.memory,
        }
    }
}

/// Aggregated samples.
#[derive(Clone, Debug)]
pub(super) struct Aggregate {
    /// CPU usage in cores.
    pub cpu: Histogram,
    /// One peak of memory per container and interval, in bytes.
    pub memory: Histogram,
    /// The time of the first CPU sample.
    pub first_sample: GoTime,
    /// The time of the last CPU sample.
    pub last_sample: GoTime,
    /// The number of CPU samples.
    pub count: i64,
    /// The time of the creation.
    created: GoTime,
    /// The memory settings, which a policy can change.
    pub settings: MemorySettings,
    /// The settings that are random until a policy that sets them is loaded.
    pub(super) random_settings: RandomSettings,
    /// True if a random setting has affected the memory peaks.
    pub(super) are_peaks_random: bool,
}

/// The memory settings that depend on upstream's random order of VPAs: those that two VPAs of a new
/// aggregate set to different values.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct RandomSettings {
    pub(super) interval: bool,
    bump_up_ratio: bool,
    min_bump_up: bool,
}

impl RandomSettings {
    /// Returns true if the memory that a container needs after an OOM kill is random.
    pub(super) fn after_oom(self) -> bool {
        self.bump_up_ratio || self.min_bump_up
    }
}

/// The settings of the aggregation of memory.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct MemorySettings {
    /// The factor of memory after an OOM kill.
    pub(super) bump_up_ratio: f64,
    /// The smallest increase of memory after an OOM kill, in bytes.
    pub(super) min_bump_up: f64,
    /// The length of an interval with one peak per container.
    pub interval: Span,
    /// The number of intervals after which samples expire.
    pub(super) interval_count: i64,
}

impl MemorySettings {
    /// The memory that a container needs after an OOM kill, if it used this amount, in bytes.
    pub(super) fn after_oom(self, used: Amount) -> Amount {
        used.wrapping_add(amount(self.min_bump_up)).max(scale(used, self.bump_up_ratio))
    }

    /// Takes over the settings of a policy. A field that a policy does not set keeps its value,
    /// even if an earlier policy has set it.
    fn update(&mut self, policy: &ContainerPolicy, Context { flags, rules, .. }: Context<'_>) {
        if !flags.per_vpa_config || rules.policy_memory == PolicyMemory::Ignored {
            return;
        }
        let float = |quantity: &Quantity| quantity.milli() as f64 / 1000.0;
        if let Some(ratio) = &policy.oom_bump_up_ratio {
            self.bump_up_ratio = float(ratio);
        }
        if let Some(min) = &policy.oom_min_bump_up {
            self.min_bump_up = float(min);
        }
        if rules.policy_memory == PolicyMemory::OomBump {
            return;
        }
        if let Some(seconds) = policy.memory_aggregation_interval_seconds {
            self.interval = Span::from_secs(seconds.into());
        }
        if let Some(count) = policy.memory_aggregation_interval_count {
            self.interval_count = count;
        }
    }
}

impl Aggregate {
    /// An aggregate without samples.
    ///
    /// Upstream: NewAggregateContainerState
    #[must_use]
    pub(super) fn new(flags: &RecommenderFlags, now: GoTime) -> Aggregate {
        Aggregate {
            cpu: Histogram::new(Scheme::Cpu, flags.cpu_histogram_decay_half_life),
            memory: Histogram::new(Scheme::Memory, flags.memory_histogram_decay_half_life),
            first_sample: GoTime::ZERO,
            last_sample: GoTime::ZERO,
            count: 0,
            created: now,
            settings: MemorySettings {
                bump_up_ratio: flags.oom_bump_up_ratio,
                min_bump_up: flags.oom_min_bump_up_bytes,
                interval: flags.memory_aggregation_interval,
                interval_count: flags.memory_aggregation_interval_count,
            },
            random_settings: RandomSettings::default(),
            are_peaks_random: false,
        }
    }

    /// Takes over the memory settings of the policies of all VPAs of a new aggregate. The last one
    /// sets each field, and upstream's order is random; here they are sorted by name.
    ///
    /// Upstream: findOrCreateAggregateContainerState
    pub(super) fn set_policies(&mut self, policies: &[&ContainerPolicy], context: Context<'_>) {
        for policy in policies {
            self.settings.update(policy, context);
        }
        let (own, random) = (self.settings, &mut self.random_settings);
        for last in policies {
            let mut other = own;
            other.update(last, context);
            random.interval |= other.interval != own.interval;
            random.bump_up_ratio |= other.bump_up_ratio != own.bump_up_ratio;
            random.min_bump_up |= other.min_bump_up != own.min_bump_up;
        }
    }

    /// Takes over the memory settings of the policy of a VPA that is loaded. They are no longer
    /// random: all VPAs are loaded in the order of the API server.
    ///
    /// Upstream: UpdateFromPolicy
    pub(super) fn load_policy(&mut self, policy: &ContainerPolicy, context: Context<'_>) {
        self.settings.update(policy, context);
        let random = &mut self.random_settings;
        random.interval &= policy.memory_aggregation_interval_seconds.is_none();
        random.bump_up_ratio &= policy.oom_bump_up_ratio.is_none();
        random.min_bump_up &= policy.oom_min_bump_up.is_none();
    }

    /// Removes all samples of a resource. The settings and the creation time have no meaning
    /// afterwards.
    pub(super) fn clear(&mut self, resource: Resource) {
        resource.histogram_mut(self).clear();
        if resource == Resource::Cpu {
            self.first_sample = GoTime::ZERO;
            self.last_sample = GoTime::ZERO;
            self.count = 0;
        }
    }

    /// Upstream: addCPUSample
    pub(super) fn add_cpu_sample(&mut self, usage: Amount, at: GoTime) {
        self.cpu.add(cores(usage), CPU_WEIGHT, at);
        self.last_sample = self.last_sample.max(at);
        if self.first_sample.is_zero() || at < self.first_sample {
            self.first_sample = at;
        }
        self.count += 1;
    }

    /// Adds the samples of a resource of another aggregate, whose reference time may change. Only
    /// samples of CPU are counted, and have a first and a last time.
    ///
    /// Upstream: MergeContainerState, which merges both resources
    pub(super) fn merge(&mut self, other: &mut Aggregate, resource: Resource) {
        resource.histogram_mut(self).merge(resource.histogram_mut(other));
        if resource == Resource::Memory {
            return;
        }
        let theirs = other.first_sample;
        if self.first_sample.is_zero() || (!theirs.is_zero() && theirs < self.first_sample) {
            self.first_sample = theirs;
        }
        self.last_sample = self.last_sample.max(other.last_sample);
        self.count += other.count;
    }

    /// Returns true if there is no CPU sample: memory samples do not count.
    ///
    /// Upstream: isEmpty
    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns true if the last CPU sample, or the creation of an empty aggregate, is too old.
    ///
    /// Upstream: isExpired
    pub(super) fn is_expired(&self, now: GoTime) -> bool {
        let window = self.settings.interval.0.wrapping_mul(self.settings.interval_count);
        let since = if self.is_empty() { self.created } else { self.last_sample };
        now.since(since).0 >= window
    }

    /// The samples, with memory as it is saved. Upstream: SaveToCheckpoint
    pub(super) fn save(&self, memory: Arc<HistogramCheckpoint>, now: GoTime) -> CheckpointStatus {
        CheckpointStatus {
            last_update_time: now.truncate_to_second(),
            version: VERSION.into(),
            cpu: self.cpu.save(),
            memory,
            first_sample_start: self.first_sample.truncate_to_second(),
            last_sample_start: self.last_sample.truncate_to_second(),
            total_samples_count: self.count,
        }
    }

    /// The samples of a checkpoint.
    ///
    /// # Errors
    /// If the version is unknown or the content is invalid; the messages are upstream's.
    ///
    /// Upstream: LoadFromCheckpoint
    pub(super) fn load(
        checkpoint: &CheckpointStatus,
        Context { flags, rules, now }: Context<'_>,
    ) -> Result<Aggregate, String> {
        if checkpoint.version != VERSION {
            let why = rules.texts.unknown_checkpoint_version;
            return Err(format!("{why} {}", checkpoint.version));
        }
        let mut aggregate = Aggregate::new(flags, now);
        aggregate.count = checkpoint.total_samples_count;
        aggregate.first_sample = checkpoint.first_sample_start;
        aggregate.last_sample = checkpoint.last_sample_start;
        aggregate.memory.load(&checkpoint.memory, rules)?;
        aggregate.cpu.load(&checkpoint.cpu, rules)?;
        Ok(aggregate)
    }
}
