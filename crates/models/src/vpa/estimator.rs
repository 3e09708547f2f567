//! Estimators: from aggregated samples to the target and the bounds of a container.
//!
//! Upstream: `pkg/recommender/logic/{estimator,recommender}.go`

use std::array;

use super::aggregate::{Aggregate, Resource};
use super::flags::RecommenderFlags;
use super::float::{Amount, amount, millicores, pow, scale};
use crate::time::Span;

impl Resource {
    /// The percentiles, from 0 to 1, in the order of [`BOUNDS`].
    pub(super) fn percentiles(self, flags: &RecommenderFlags) -> [f64; BOUNDS.len()] {
        BOUNDS.map(|bound| percentile(flags, self, bound))
    }
}

/// A value of a recommendation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Bound {
    /// The recommended request.
    Target,
    /// Requests below it cause an update.
    Lower,
    /// Requests above it cause an update.
    Upper,
}

/// All values of a recommendation.
pub(super) const BOUNDS: [Bound; 3] = [Bound::Target, Bound::Lower, Bound::Upper];

/// How an amount was derived.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Estimation {
    /// The resource whose amount is estimated.
    pub resource: Resource,
    /// The value of the recommendation.
    pub bound: Bound,
    /// The percentile, from 0 to 1.
    pub percentile: f64,
    /// The bucket that contains the percentile; `None` without samples.
    pub bucket: Option<usize>,
    /// The end of that bucket; the start of the last one, which has no end.
    pub base: Amount,
    /// The base with the safety margin.
    pub with_margin: Amount,
    /// The confidence and the factor that follows from it, for bounds.
    pub confidence: Option<Confidence>,
    /// The smallest amount for a container of the pod.
    pub minimum: Amount,
    /// The result.
    pub amount: Amount,
}

/// The confidence in a history, in units of the confidence interval.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Confidence {
    /// The smaller one of the history's length and its number of samples.
    pub confidence: f64,
    /// The factor of the bound.
    pub multiplier: f64,
}

/// The smallest amounts of a container: the pod's minimum is divided by the number of containers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Minimum {
    /// In millicores.
    pub cpu: Amount,
    /// In bytes.
    pub memory: Amount,
}

impl Minimum {
    /// The minimum of each container of a pod. Upstream: GetRecommendedPodResources
    #[must_use]
    pub(super) fn per_container(flags: &RecommenderFlags, containers: usize) -> Minimum {
        let fraction = 1.0 / containers as f64;
        let cpu = millicores(flags.pod_recommendation_min_cpu_millicores * 0.001);
        let memory = amount(flags.pod_recommendation_min_memory_mb * 1024.0 * 1024.0);
        Minimum { cpu: scale(cpu, fraction), memory: scale(memory, fraction) }
    }
}

/// A percentile of the samples of a resource. It does not depend on the confidence.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Percentile {
    /// From 0 to 1.
    percentile: f64,
    /// The bucket that contains it; `None` without samples.
    bucket: Option<usize>,
    /// The end of that bucket; the start of the last one, which has no end.
    base: Amount,
    /// The base with the safety margin.
    with_margin: Amount,
}

/// The percentiles of one resource, in the order of [`BOUNDS`].
pub(super) type Percentiles = [Percentile; BOUNDS.len()];

/// The percentiles of the samples of a resource.
pub(super) fn percentiles(
    aggregate: &Aggregate,
    flags: &RecommenderFlags,
    resource: Resource,
) -> Percentiles {
    let histogram = resource.histogram(aggregate);
    let percentiles = resource.percentiles(flags);
    let buckets = histogram.percentile_buckets(percentiles);
    array::from_fn(|index| {
        let bucket = buckets.map(|buckets| buckets[index]);
        let base = bucket.map_or(0, |bucket| histogram.end(bucket));
        let with_margin = base + scale(base, flags.recommendation_margin_fraction);
        Percentile { percentile: percentiles[index], bucket, base, with_margin }
    })
}

/// The values of a recommendation for one resource, in the order of [`BOUNDS`]. Inlined, because
/// most callers need only the amounts.
#[inline]
#[must_use]
pub(super) fn estimate(
    aggregate: &Aggregate,
    percentiles: &Percentiles,
    flags: &RecommenderFlags,
    minimum: Minimum,
    resource: Resource,
) -> [Estimation; BOUNDS.len()] {
    let (minimum, interval) = match resource {
        Resource::Cpu => (minimum.cpu, flags.confidence_interval_cpu),
        Resource::Memory => (minimum.memory, flags.confidence_interval_memory),
    };
    let confidence = confidence(aggregate, interval);
    array::from_fn(|index| {
        let Percentile { percentile, bucket, base, with_margin } = percentiles[index];
        let multiplied = |multiplier: f64, exponent: i32| {
            let multiplier = pow(1.0 + multiplier / confidence, exponent);
            (scale(with_margin, multiplier), Some(Confidence { confidence, multiplier }))
        };
        let (estimated, confidence) = match BOUNDS[index] {
            Bound::Target => (with_margin, None),
            Bound::Lower => multiplied(0.001, -2),
            Bound::Upper => multiplied(1.0, 1),
        };
        Estimation {
            resource,
            bound: BOUNDS[index],
            percentile,
            bucket,
            base,
            with_margin,
            confidence,
            minimum,
            amount: estimated.max(minimum),
        }
    })
}

fn percentile(flags: &RecommenderFlags, resource: Resource, bound: Bound) -> f64 {
    match (resource, bound) {
        (Resource::Cpu, Bound::Target) => flags.target_cpu_percentile,
        (Resource::Cpu, Bound::Lower) => flags.recommendation_lower_bound_cpu_percentile,
        (Resource::Cpu, Bound::Upper) => flags.recommendation_upper_bound_cpu_percentile,
        (Resource::Memory, Bound::Target) => flags.target_memory_percentile,
        (Resource::Memory, Bound::Lower) => flags.recommendation_lower_bound_memory_percentile,
        (Resource::Memory, Bound::Upper) => flags.recommendation_upper_bound_memory_percentile,
    }
}

/// The confidence depends on CPU samples only, also for memory. Upstream: getConfidence
fn confidence(aggregate: &Aggregate, interval: Span) -> f64 {
    const MINUTE: i64 = 60_000_000_000;
    let history = aggregate.last_sample.since(aggregate.first_sample).0 as f64;
    let minutes = (interval.0 / MINUTE) as f64 + (interval.0 % MINUTE) as f64 / MINUTE as f64;
    let samples = aggregate.count as f64 / minutes;
    (history / interval.0 as f64).min(samples)
}
