//! The merged samples of the containers of a VPA.
//!
//! Most runs add CPU samples and no memory peak. Therefore, what follows from memory is kept until
//! a merged histogram or a current peak changes.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::aggregate::{Aggregate, AggregateId};
use super::api::ObjectName;
use super::checkpoint::CheckpointStatus;
use super::container::MEMORY_WEIGHT;
use super::context::Context;
use super::estimator::{Estimation, Minimum, Percentiles, Resource, estimate, percentiles};
use super::flags::RecommenderFlags;
use super::float::Amount;
use super::histogram::{Histogram, HistogramCheckpoint};
use super::time::GoTime;

/// The merged samples of a VPA.
#[derive(Default, Debug)]
pub(super) struct Merged {
    /// Sorted by name. Empty if the containers or their aggregates must be listed again.
    pub(super) containers: Vec<MergedContainer>,
    /// The index of the container into which each aggregate is merged.
    by_aggregate: BTreeMap<AggregateId, usize>,
    /// The current peaks that the merged samples include.
    present_peaks: Vec<PresentPeak>,
}

/// The memory peak of an interval that has not ended.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct PresentPeak {
    /// The aggregate that includes it.
    pub(super) source: AggregateId,
    /// The end of the interval.
    pub(super) end: GoTime,
    /// The peak, in bytes.
    pub(super) peak: Amount,
}

/// The merged samples of a container of a VPA.
#[derive(Debug)]
pub(super) struct MergedContainer {
    pub(super) name: Arc<str>,
    /// The name of its checkpoint.
    pub(super) checkpoint: ObjectName,
    pub(super) aggregate: Box<Aggregate>,
    /// The percentiles of CPU and of memory.
    cpu: Percentiles,
    memory: Percentiles,
    /// How far upstream's random order can affect the samples.
    pub(super) order: MergeOrder,
    /// The merged aggregates, in the order of the labels, without the one of a checkpoint.
    sources: Vec<AggregateId>,
    /// The number of changes of the merged memory histograms before they were merged.
    memory_changes: Option<u64>,
    /// `None` if the samples of memory or the current peaks have changed.
    saved_memory: Option<SavedMemory>,
}

/// Memory in a checkpoint, without current peaks.
#[derive(Clone, Debug)]
struct SavedMemory {
    histogram: Arc<HistogramCheckpoint>,
    /// The largest difference of a weight that upstream's random order of subtractions can cause.
    tolerance: f64,
}

/// The checkpoint of a container.
pub(super) struct SavedContainer<'m> {
    pub(super) container: &'m MergedContainer,
    pub(super) status: CheckpointStatus,
    /// The largest difference of a weight of memory that upstream's random order can cause.
    pub(super) memory_tolerance: f64,
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
                container,
                memory_tolerance: memory.tolerance,
            }
        })
    }
}

/// A multiple of the rounding error of a few subtractions, relative to the total.
const ROUNDING_ERROR: f64 = 1e-13;

impl MergedContainer {
    fn new(name: &Arc<str>, vpa: &ObjectName, context: Context<'_>) -> MergedContainer {
        MergedContainer {
            name: name.clone(),
            checkpoint: ObjectName {
                namespace: vpa.namespace.clone(),
                name: [&*vpa.name, "-", name].concat().into(),
            },
            aggregate: Box::new(Aggregate::new(context.flags, context.now)),
            cpu: Percentiles::default(),
            memory: Percentiles::default(),
            order: MergeOrder::default(),
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
        let of_checkpoint = checkpoint.as_ref().map(|it| it.memory.changes());
        let changes = Some(own.chain(of_checkpoint).sum());
        self.merge_cpu(aggregates, checkpoint.as_deref_mut());
        self.cpu = percentiles(&self.aggregate, flags, Resource::Cpu);
        if self.memory_changes != changes {
            self.memory_changes = changes;
            self.merge_memory(aggregates, checkpoint);
            self.memory = percentiles(&self.aggregate, flags, Resource::Memory);
        }
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
        estimate(&self.aggregate, percentiles, flags, minimum, resource)
    }

    fn merge_cpu(&mut self, aggregates: &mut [Aggregate], checkpoint: Option<&mut Aggregate>) {
        self.order.cpu = HistogramOrder::default();
        self.aggregate.clear_cpu();
        for id in &self.sources {
            self.order.cpu.merge(&aggregates[*id].cpu);
            self.aggregate.merge_cpu(&mut aggregates[*id]);
        }
        if let Some(checkpoint) = checkpoint {
            self.aggregate.merge_cpu(checkpoint);
        }
    }

    fn merge_memory(&mut self, aggregates: &mut [Aggregate], checkpoint: Option<&mut Aggregate>) {
        self.saved_memory = None;
        self.order.memory = HistogramOrder::default();
        self.aggregate.memory.clear();
        for id in &self.sources {
            self.order.memory.merge(&aggregates[*id].memory);
            self.aggregate.memory.merge(&mut aggregates[*id].memory);
        }
        if let Some(checkpoint) = checkpoint {
            self.aggregate.memory.merge(&mut checkpoint.memory);
        }
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
            let tolerance = if has_several_weights { memory.total() * ROUNDING_ERROR } else { 0.0 };
            peaks.for_each(|it| memory.subtract(it.peak as f64, MEMORY_WEIGHT, it.end));
            SavedMemory { histogram: Arc::new(memory.save()), tolerance }
        };
        self.saved_memory.get_or_insert_with(save).clone()
    }
}

/// Records whether the weights of a container can depend on upstream's random order of merges.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct MergeOrder {
    cpu: HistogramOrder,
    memory: HistogramOrder,
}

impl MergeOrder {
    /// Returns true if upstream's result is random.
    pub(super) fn matters(&self) -> bool {
        self.cpu.matters || self.memory.matters
    }
}

/// The merged histograms of a container. The result depends on their order if their reference times
/// differ, even those of empty histograms: the first one decides which others are moved for good.
/// It also depends on the order of more than two additions.
#[derive(Clone, Copy, Default, Debug)]
struct HistogramOrder {
    merged: usize,
    with_samples: usize,
    reference: GoTime,
    matters: bool,
}

impl HistogramOrder {
    fn merge(&mut self, histogram: &Histogram) {
        let reference = histogram.reference();
        self.matters |= self.merged > 0 && reference != self.reference;
        self.reference = reference;
        self.merged += 1;
        self.with_samples += usize::from(histogram.total() != 0.0);
        self.matters |= self.with_samples > 2;
    }
}
