//! The merged samples of the containers of a VPA.
//!
//! Most runs add CPU samples and no memory peak. Therefore, what follows from memory is kept until
//! a merged histogram or a current peak changes.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::aggregate::{Aggregate, AggregateId, Resource};
use super::api::ObjectName;
use super::checkpoint::CheckpointStatus;
use super::container::MEMORY_WEIGHT;
use super::context::Context;
use super::estimator::{Estimation, Minimum, Percentiles, estimate, percentiles};
use super::flags::RecommenderFlags;
use super::float::Amount;
use super::histogram::{Histogram, HistogramCheckpoint, ROUNDING_ERROR};
use super::time::GoTime;

/// The merged samples of a VPA.
#[derive(Default, Debug)]
pub(super) struct Merged {
    /// Sorted by name. Empty if the containers or their aggregates must be listed again.
    pub containers: Vec<MergedContainer>,
    /// The index of the container into which each aggregate is merged.
    by_aggregate: BTreeMap<AggregateId, usize>,
    /// The current peaks that the merged samples include.
    present_peaks: Vec<PresentPeak>,
}

/// The memory peak of an interval that has not ended.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct PresentPeak {
    /// The aggregate that includes it.
    pub source: AggregateId,
    /// The end of the interval.
    pub end: GoTime,
    /// The peak, in bytes.
    pub peak: Amount,
}

/// The merged samples of a container of a VPA.
#[derive(Debug)]
pub(super) struct MergedContainer {
    pub name: Arc<str>,
    /// The name of its checkpoint.
    pub checkpoint: ObjectName,
    pub(super) aggregate: Box<Aggregate>,
    cpu: MergedPercentiles,
    memory: MergedPercentiles,
    /// The merged aggregates, in the order of the labels, without the one of a checkpoint.
    sources: Vec<AggregateId>,
    /// The number of changes of the merged memory histograms before they were merged.
    memory_changes: Option<u64>,
    /// `None` if the samples of memory or the current peaks have changed.
    saved_memory: Option<SavedMemory>,
}

/// The percentiles of the merged samples of a resource.
#[derive(Default, Debug)]
struct MergedPercentiles {
    values: Percentiles,
    /// True if a value depends on upstream's random order of merges or of VPAs.
    are_random: bool,
}

/// Memory in a checkpoint, without current peaks.
#[derive(Clone, Debug)]
struct SavedMemory {
    histogram: Arc<HistogramCheckpoint>,
    /// The largest difference of a weight that upstream's random order of merges and subtractions
    /// can cause.
    tolerance: f64,
    /// True if the order decides more than the last bits.
    is_undetermined: bool,
}

/// The largest differences of weights in a checkpoint that upstream's random order of merges and
/// subtractions can cause. Zero if the order does not matter.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct Tolerances {
    /// Of weights of CPU.
    pub cpu: f64,
    /// Of weights of memory.
    pub memory: f64,
}

impl Tolerances {
    /// The larger ones.
    #[must_use]
    pub fn max(self, other: Tolerances) -> Tolerances {
        Tolerances { cpu: self.cpu.max(other.cpu), memory: self.memory.max(other.memory) }
    }

    /// Returns true if the order matters.
    #[must_use]
    pub fn is_random(self) -> bool {
        self.cpu > 0.0 || self.memory > 0.0
    }
}

/// The checkpoint of a container.
pub(super) struct SavedContainer<'m> {
    pub container: &'m MergedContainer,
    pub status: CheckpointStatus,
    pub tolerances: Tolerances,
    /// True if upstream's random order of subtractions decides more than the last bits of weights.
    pub is_undetermined: bool,
}

impl Merged {
    /// The container with a name, which is added if it does not exist.
    pub(super) fn container_named(
        &mut self,
        name: &Arc<str>,
        vpa: &ObjectName,
        context: Context<'_>,
    ) -> &mut MergedContainer {
        let containers = &mut self.containers;
        let found = containers.binary_search_by(|it| it.name.cmp(name));
        let index = found.unwrap_or_else(|index| {
            containers.insert(index, MergedContainer::new(name, vpa, context));
            index
        });
        &mut containers[index]
    }

    /// Completes the list of containers.
    pub(super) fn index_aggregates(&mut self) {
        for (index, container) in self.containers.iter().enumerate() {
            self.by_aggregate.extend(container.sources.iter().map(|id| (*id, index)));
        }
    }

    /// Sets the current peaks of all containers of the cluster.
    pub(super) fn set_present_peaks(&mut self, all: impl Iterator<Item = PresentPeak> + Clone) {
        // A VPA uses all aggregates that it selects, unless they were deleted.
        let own = all.filter(|peak| self.by_aggregate.contains_key(&peak.source));
        if !own.clone().eq(self.present_peaks.iter().copied()) {
            self.present_peaks = own.collect();
            self.containers.iter_mut().for_each(|it| it.saved_memory = None);
        }
    }

    /// The checkpoints of all containers, without current peaks.
    ///
    /// Upstream: checkpoint_writer.go, buildAggregateContainerStateMap
    pub(super) fn save(&mut self, now: GoTime) -> impl Iterator<Item = SavedContainer<'_>> {
        let Merged { containers, present_peaks, by_aggregate } = self;
        containers.iter_mut().enumerate().map(move |(index, container)| {
            let is_own = |it: &&PresentPeak| by_aggregate.get(&it.source) == Some(&index);
            let memory = container.saved_memory(present_peaks.iter().filter(is_own));
            SavedContainer {
                status: container.aggregate.save(memory.histogram, now),
                tolerances: Tolerances {
                    cpu: container.aggregate.cpu.tolerance(),
                    memory: memory.tolerance,
                },
                is_undetermined: memory.is_undetermined,
                container,
            }
        })
    }
}

impl MergedContainer {
    fn new(name: &Arc<str>, vpa: &ObjectName, context: Context<'_>) -> MergedContainer {
        MergedContainer {
            name: name.clone(),
            checkpoint: ObjectName {
                namespace: vpa.namespace.clone(),
                name: [&*vpa.name, "-", name].concat().into(),
            },
            aggregate: Box::new(Aggregate::new(context.flags, context.now)),
            cpu: MergedPercentiles::default(),
            memory: MergedPercentiles::default(),
            sources: Vec::new(),
            memory_changes: None,
            saved_memory: None,
        }
    }

    /// Adds an aggregate. They are merged in the order in which they are added.
    pub(super) fn add_source(&mut self, id: AggregateId) {
        self.sources.push(id);
    }

    /// Merges the samples of all aggregates, then those of a checkpoint.
    pub(super) fn merge(
        &mut self,
        aggregates: &mut [Aggregate],
        mut checkpoint: Option<&mut Aggregate>,
        flags: &RecommenderFlags,
    ) {
        // The numbers of changes never decrease, so the sum is the same only if all are. It is
        // taken before the merge, which may change the merged histograms.
        let own = self.sources.iter().map(|id| aggregates[*id].memory.changes());
        let checkpoint_changes = checkpoint.as_ref().map(|it| it.memory.changes());
        let changes = Some(own.chain(checkpoint_changes).sum());
        self.cpu = self.merge_resource(aggregates, checkpoint.as_deref_mut(), flags, Resource::Cpu);
        let mut sources = self.sources.iter().map(|id| &aggregates[*id].memory);
        if self.memory_changes != changes || sources.any(Histogram::awaits_shift) {
            self.memory_changes = changes;
            self.saved_memory = None;
            self.memory = self.merge_resource(aggregates, checkpoint, flags, Resource::Memory);
        }
    }

    /// Returns true if upstream's result is random.
    pub(super) fn is_random(&self) -> bool {
        self.cpu.are_random || self.memory.are_random
    }

    /// The values of a recommendation for one resource.
    pub(super) fn estimate(
        &self,
        flags: &RecommenderFlags,
        minimum: Minimum,
        resource: Resource,
    ) -> [Estimation; 3] {
        let percentiles = match resource {
            Resource::Cpu => &self.cpu,
            Resource::Memory => &self.memory,
        };
        estimate(&self.aggregate, &percentiles.values, flags, minimum, resource)
    }

    /// Merges the samples of one resource, and returns their percentiles.
    fn merge_resource(
        &mut self,
        aggregates: &mut [Aggregate],
        mut checkpoint: Option<&mut Aggregate>,
        flags: &RecommenderFlags,
        resource: Resource,
    ) -> MergedPercentiles {
        self.aggregate.clear(resource);
        let order = MergeOrder::prepare(&self.sources, aggregates, checkpoint.as_deref(), resource);
        for id in &self.sources {
            self.aggregate.merge(&mut aggregates[*id], resource);
        }
        let sources = self.sources.iter().map(|id| resource.histogram(&aggregates[*id]));
        order.record(resource.histogram_mut(&mut self.aggregate), sources);
        if let Some(checkpoint) = checkpoint.as_deref_mut() {
            self.aggregate.merge(checkpoint, resource);
        }
        let checkpoint = checkpoint.as_deref();
        let are_peaks_random = resource == Resource::Memory
            && self.sources.iter().any(|id| aggregates[*id].are_peaks_random);
        MergedPercentiles {
            values: percentiles(&self.aggregate, flags, resource),
            are_random: are_peaks_random
                || self.is_decided_by_order(aggregates, checkpoint, flags, resource),
        }
    }

    /// Returns true if upstream's random order of merges decides a percentile of a resource.
    fn is_decided_by_order(
        &self,
        aggregates: &[Aggregate],
        checkpoint: Option<&Aggregate>,
        flags: &RecommenderFlags,
        resource: Resource,
    ) -> bool {
        let histogram = |aggregate: &'_ Aggregate| resource.histogram(aggregate).clone();
        let merged = resource.histogram(&self.aggregate);
        let percentiles = resource.percentiles(flags);
        if !merged.is_decided_by_order(&percentiles) {
            return false;
        }
        let sources: Vec<Histogram> =
            self.sources.iter().map(|id| histogram(&aggregates[*id])).collect();
        let can_try = sources.len() <= MOST_TRIED && !sources.iter().any(Histogram::is_random);
        let buckets = merged.percentile_buckets(percentiles);
        !can_try
            || !in_all_orders(sources, &mut |sources| {
                let mut other = merged.clone();
                other.clear();
                let checkpoint = checkpoint.map(histogram);
                sources.iter().cloned().chain(checkpoint).for_each(|mut it| other.merge(&mut it));
                other.percentile_buckets(percentiles) == buckets
            })
    }

    /// Memory without these peaks. Equal weights can be subtracted in any order; others cannot.
    fn saved_memory<'p>(
        &mut self,
        peaks: impl Iterator<Item = &'p PresentPeak> + Clone,
    ) -> SavedMemory {
        let save = || {
            let mut memory = self.aggregate.memory.clone();
            let mut ends = peaks.clone().map(|it| it.end);
            let first = ends.next();
            let has_several_weights = ends.any(|end| Some(end) != first);
            let order_error =
                if has_several_weights { memory.total() * ROUNDING_ERROR } else { 0.0 };
            let tolerance = order_error + memory.tolerance();
            let is_undetermined = memory.is_moved_by_order(peaks.clone().map(|it| it.end));
            peaks.for_each(|it| memory.subtract(it.peak as f64, MEMORY_WEIGHT, it.end));
            SavedMemory { histogram: Arc::new(memory.save()), tolerance, is_undetermined }
        };
        self.saved_memory.get_or_insert_with(save).clone()
    }
}

/// The largest number of histograms whose orders are all tried.
const MOST_TRIED: usize = 6;

/// Returns true if a condition holds for all orders of a list.
fn in_all_orders<T>(mut list: Vec<T>, holds: &mut dyn FnMut(&[T]) -> bool) -> bool {
    fn from<T>(index: usize, list: &mut [T], holds: &mut dyn FnMut(&[T]) -> bool) -> bool {
        if index == list.len() {
            return holds(list);
        }
        (index..list.len()).all(|other| {
            list.swap(index, other);
            let all = from(index + 1, list, holds);
            list.swap(index, other);
            all
        })
    }
    from(0, &mut list, holds)
}

/// The effect of upstream's random order on the sum of histograms.
///
/// It affects the weights if the reference times differ, even those of empty histograms: the first
/// one decides which others are moved for good. The rounding of a sum of more than
/// two histograms depends on the order.
#[derive(Clone, Copy, Debug)]
pub(super) struct MergeOrder {
    matters: bool,
    /// The rounding of the sums is random.
    pub(super) rounds: bool,
    /// The latest reference time is random: no histogram certainly has it, because one that moved
    /// others in earlier merges no longer exists.
    pub(super) moves: bool,
}

impl MergeOrder {
    /// The order of histograms with the same reference time.
    #[cfg(test)]
    pub(super) const ROUNDS: MergeOrder = MergeOrder { matters: true, rounds: true, moves: false };

    /// Prepares histograms to be merged, before those of a checkpoint.
    fn prepare(
        sources: &[AggregateId],
        aggregates: &mut [Aggregate],
        checkpoint: Option<&Aggregate>,
        resource: Resource,
    ) -> MergeOrder {
        let (mut certain, mut latest) = (GoTime::ZERO, GoTime::ZERO);
        let mut with_samples = 0;
        let (mut first, mut differ, mut matters) = (None, false, false);
        for id in sources {
            let source = resource.histogram(&aggregates[*id]);
            differ |= *first.get_or_insert(source.reference()) != source.reference();
            differ |= source.awaits_shift();
            matters |= source.is_random();
            let (earliest, own_latest) = source.possible_references();
            (certain, latest) = (certain.max(earliest), latest.max(own_latest));
            with_samples += usize::from(source.total() != 0.0);
        }
        if differ {
            for id in sources {
                resource
                    .histogram_mut(&mut aggregates[*id])
                    .may_be_shifted(latest, certain >= latest);
            }
        }
        let rounds = with_samples > 2;
        // The checkpoint is merged last, and in every order.
        let of_checkpoint = checkpoint.map(|it| resource.histogram(it).reference());
        let moves = latest > certain.max(of_checkpoint.unwrap_or(GoTime::ZERO));
        MergeOrder { matters: matters || differ || rounds, rounds, moves }
    }

    /// Records the effect on merged histograms.
    fn record<'h>(self, merged: &mut Histogram, sources: impl Iterator<Item = &'h Histogram>) {
        if self.matters {
            merged.merged_in_random_order(sources, self);
        }
    }
}
