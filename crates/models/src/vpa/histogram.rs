//! Histograms with exponential buckets, whose weights decay.
//!
//! The weights of old samples are not changed: the weight of a new sample grows with the time since
//! a reference time. Once a sample is more than 100 half-lives past it, the reference time is moved
//! and all weights are scaled.
//!
//! Upstream: `pkg/recommender/util/{histogram,decaying_histogram,histogram_options}.go`

use std::sync::LazyLock;

use super::float::{Amount, amount, exp2, ldexp, ln, millicores, pow, round};
use super::merged::MergeOrder;
use super::time::GoTime;
use crate::rules::VpaRules;
use crate::time::Span;

/// The number of buckets of both schemes.
pub const BUCKETS: usize = 176;
const LAST: usize = BUCKETS - 1;

/// The smallest weight of a bucket that is not empty. Upstream: aggregations_config.go, epsilon
pub(super) const EPSILON: f64 = 0.001 * 0.1;

/// Each bucket is wider than the previous one by this factor.
const RATIO: f64 = 1.0 + 0.05;

/// The largest weight of a bucket in a checkpoint.
const MAX_CHECKPOINT_WEIGHT: f64 = 10_000.0;

/// Each merge in random order moves the reference time to the latest one with a probability of at
/// least one half. After this many merges, the model treats the move as certain: the probability is
/// at least 1 - 2⁻⁴⁰.
const CERTAIN_MERGES: u32 = 40;

/// A generous bound on the rounding error of weights, relative to the total weight.
pub(super) const ROUNDING_ERROR: f64 = 1e-13;

/// The number of half-lives after which the reference time is moved.
const MAX_DECAY_EXPONENT: i128 = 100;

static LN_RATIO: LazyLock<f64> = LazyLock::new(|| ln(RATIO));

/// A bucketing scheme.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scheme {
    /// Cores: the first bucket ends at 0.01.
    Cpu,
    /// Bytes: the first bucket ends at 10,000,000.
    Memory,
}

static CPU_STARTS: LazyLock<[f64; BUCKETS]> = LazyLock::new(|| starts(Scheme::Cpu));
static MEMORY_STARTS: LazyLock<[f64; BUCKETS]> = LazyLock::new(|| starts(Scheme::Memory));

fn starts(scheme: Scheme) -> [f64; BUCKETS] {
    std::array::from_fn(|bucket| match bucket {
        0 => 0.0,
        _ => scheme.first() * (pow(RATIO, bucket as i32) - 1.0) / (RATIO - 1.0),
    })
}

impl Scheme {
    /// The width of the first bucket.
    const fn first(self) -> f64 {
        match self {
            Scheme::Cpu => 0.01,
            Scheme::Memory => 1e7,
        }
    }

    /// The bucket of a value. A bucket's own start usually belongs to the bucket before it, because
    /// the quotient of logarithms is slightly too small.
    ///
    /// Upstream: histogram_options.go, exponentialHistogramOptions.FindBucket
    #[must_use]
    pub fn find(self, value: f64) -> usize {
        if value < self.first() {
            return 0;
        }
        let bucket = ln(value * (RATIO - 1.0) / self.first() + 1.0) / *LN_RATIO;
        (bucket as usize).min(LAST)
    }

    /// The start of a bucket.
    ///
    /// Upstream: histogram_options.go, exponentialHistogramOptions.GetBucketStart
    #[must_use]
    pub fn start(self, bucket: usize) -> f64 {
        let starts = match self {
            Scheme::Cpu => &CPU_STARTS,
            Scheme::Memory => &MEMORY_STARTS,
        };
        starts[bucket.min(LAST)]
    }

    /// Cores or bytes as millicores or bytes, truncated.
    fn amount(self, value: f64) -> Amount {
        match self {
            Scheme::Cpu => millicores(value),
            Scheme::Memory => amount(value),
        }
    }
}

/// A histogram in a checkpoint.
#[derive(Clone, Default, Debug)]
pub struct HistogramCheckpoint {
    /// The reference time.
    pub reference: GoTime,
    /// Buckets with their weights, relative to the largest weight, in the order of the buckets.
    pub weights: Vec<BucketWeight>,
    /// The sum of the weights in the histogram.
    pub total: f64,
}

/// The buckets of a histogram, with their shares of the total weight.
#[derive(Clone, PartialEq, Debug)]
pub struct Shares {
    /// The buckets that are not empty.
    pub buckets: Vec<BucketShare>,
    /// The share, from 0 to 1, of all buckets that count as empty because they weigh less than
    /// 0.0001.
    pub lighter: f64,
}

/// A bucket of a histogram, with its share of the total weight.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct BucketShare {
    /// The index of the bucket.
    pub bucket: usize,
    /// The start, in millicores or bytes.
    pub start: Amount,
    /// The end, in millicores or bytes; `None` for the last bucket.
    pub end: Option<Amount>,
    /// The share, from 0 to 1.
    pub share: f64,
}

/// The weight of one bucket in a checkpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BucketWeight {
    /// The index of the bucket. It is invalid if it is not below [`BUCKETS`].
    pub bucket: i64,
    /// The weight; the largest one is 10,000.
    pub weight: u32,
}

/// Compares total weights by their bits.
impl PartialEq for HistogramCheckpoint {
    fn eq(&self, other: &HistogramCheckpoint) -> bool {
        self.reference == other.reference
            && self.weights == other.weights
            && self.total.to_bits() == other.total.to_bits()
    }
}

/// A decaying histogram.
#[derive(Clone, Debug)]
pub(super) struct Histogram {
    scheme: Scheme,
    half_life: Span,
    reference: GoTime,
    weights: [f64; BUCKETS],
    total: f64,
    /// The first and last bucket that is not empty. A bucket outside may have a tiny weight.
    min: usize,
    max: usize,
    /// How often the histogram has possibly changed. Never decreases.
    changes: u64,
    /// The effects of upstream's random order of merges; `None` if the order does not matter.
    random: Option<RandomOrder>,
}

/// The possible effects of upstream's random order of merges on a histogram.
#[derive(Clone, Copy, Debug)]
struct RandomOrder {
    /// The earliest reference time that upstream's histogram may have.
    earliest: GoTime,
    /// The latest reference time of the histograms with which it is merged.
    latest: GoTime,
    /// The number of merges with a histogram of that reference time.
    merges: u32,
    /// True if the reference time depends on the order of merges.
    is_reference_random: bool,
    /// True if the rounding of weights depends on the order of merges.
    is_rounding_random: bool,
    /// The largest weight that a merge omits in some orders: that of buckets at the ends that
    /// count as empty.
    light: f64,
}

impl RandomOrder {
    fn has_effects(&self) -> bool {
        self.is_reference_random || self.is_rounding_random
    }

    fn at(reference: GoTime) -> RandomOrder {
        RandomOrder {
            earliest: reference,
            latest: reference,
            merges: 0,
            is_reference_random: false,
            is_rounding_random: false,
            light: 0.0,
        }
    }
}

impl Histogram {
    /// An empty histogram.
    #[must_use]
    pub(super) fn new(scheme: Scheme, half_life: Span) -> Histogram {
        let weights = [0.0; BUCKETS];
        let reference = GoTime::ZERO;
        Histogram {
            scheme,
            half_life,
            reference,
            weights,
            total: 0.0,
            min: LAST,
            max: 0,
            changes: 0,
            random: None,
        }
    }

    /// Removes all samples and sets the reference time to zero.
    pub(super) fn clear(&mut self) {
        self.weights.fill(0.0);
        self.reference = GoTime::ZERO;
        self.total = 0.0;
        self.min = LAST;
        self.max = 0;
        self.changes += 1;
        self.random = None;
    }

    /// Returns true if no bucket has a weight.
    #[must_use]
    pub(super) fn is_empty(&self) -> bool {
        self.weights[self.min] < EPSILON
    }

    /// The reference time.
    #[must_use]
    pub(super) fn reference(&self) -> GoTime {
        self.reference
    }

    /// The sum of all weights.
    #[must_use]
    pub(super) fn total(&self) -> f64 {
        self.total
    }

    /// How often the histogram has possibly changed: it is unchanged while this number is the same.
    #[must_use]
    pub(super) fn changes(&self) -> u64 {
        self.changes
    }

    /// Records that a merge may or may not move the reference time to the latest one of all merged
    /// histograms, depending on upstream's random order. After enough merges, one of them has.
    /// `has_latest`: whether a merged histogram certainly has the latest one.
    pub(super) fn may_be_shifted(&mut self, latest: GoTime, has_latest: bool) {
        let reference = self.reference;
        let random = self.random.get_or_insert(RandomOrder::at(reference));
        if random.latest != latest {
            (random.latest, random.merges) = (latest, 0);
        }
        random.merges += u32::from(has_latest);
        if random.merges > CERTAIN_MERGES {
            random.earliest = random.earliest.max(latest);
            if reference < latest {
                self.shift(latest);
            }
        }
        // If no sample was added in the meantime, the shift scales all weights by the same factor
        // at any time, so the order has no effect.
        self.random.take_if(|it| it.earliest >= latest && !it.has_effects());
    }

    /// The earliest and the latest reference time that upstream's histogram may have.
    pub(super) fn possible_references(&self) -> (GoTime, GoTime) {
        let random = self.random.map(|random| (random.earliest, random.latest));
        random.map_or((self.reference, self.reference), |(earliest, latest)| {
            (earliest.min(self.reference), latest.max(self.reference))
        })
    }

    /// Returns true if upstream's reference time may be before the latest one.
    #[must_use]
    pub(super) fn awaits_shift(&self) -> bool {
        self.random.is_some_and(|random| random.earliest < random.latest)
    }

    /// Returns true if upstream's random order of merges affects the weights.
    #[must_use]
    pub(super) fn is_random(&self) -> bool {
        self.random.is_some()
    }

    /// Records that these histograms were merged into this one in a random order, which affects the
    /// weights.
    pub(super) fn merged_in_random_order<'h>(
        &mut self,
        merged: impl Iterator<Item = &'h Histogram>,
        order: MergeOrder,
    ) {
        let mut random = RandomOrder {
            is_rounding_random: order.rounds,
            is_reference_random: order.moves,
            ..RandomOrder::at(self.reference)
        };
        for histogram in merged {
            if let Some(other) = histogram.random {
                random.is_reference_random |= other.is_reference_random;
                random.is_rounding_random |= other.is_rounding_random;
                random.light += histogram.light(self.reference);
            }
        }
        self.random = Some(random);
    }

    /// The sum of the weights that count as empty at a reference time that is not before the own
    /// one. A merge leaves out such buckets at the ends.
    fn light(&self, reference: GoTime) -> f64 {
        let half_lives = self.reference.since(reference).0 as f64 / self.half_life.0 as f64;
        let factor = exp2(half_lives.min(0.0));
        let weights = self.weights.iter().map(|weight| weight * factor);
        weights.filter(|weight| *weight < EPSILON).sum()
    }

    /// The largest difference of a sum of weights that upstream's random order of merges can cause.
    /// 0 if the order does not matter.
    #[must_use]
    pub(super) fn tolerance(&self) -> f64 {
        let Some(random) = self.random else { return 0.0 };
        let from_rounding =
            if random.is_rounding_random { self.total * ROUNDING_ERROR } else { 0.0 };
        from_rounding + random.light
    }

    /// Returns true if upstream's random order of merges can decide the buckets of percentiles (0
    /// to 1), or the reference time.
    #[must_use]
    pub(super) fn is_decided_by_order(&self, percentiles: &[f64]) -> bool {
        let Some(random) = self.random else { return false };
        let tolerance = self.tolerance();
        let largest = self.weights.iter().copied().fold(0.0, f64::max);
        if random.is_reference_random || tolerance == 0.0 {
            return random.is_reference_random;
        }
        if (largest - EPSILON).abs() <= tolerance {
            return true;
        }
        let mut sum = 0.0;
        (self.min..=self.max).any(|bucket| {
            sum += self.weights[bucket];
            // The last bucket needs no comparison, unless another order has a bucket after it.
            (bucket < self.max || random.light > 0.0)
                && percentiles.iter().any(|it| (sum - it * self.total).abs() <= tolerance)
        })
    }

    /// Adds a sample. Upstream: decaying_histogram.go, AddSample
    pub(super) fn add(&mut self, value: f64, weight: f64, at: GoTime) {
        let weight = weight * self.decay_factor(at);
        let bucket = self.scheme.find(value);
        self.weights[bucket] += weight;
        self.total += weight;
        self.changes += 1;
        if self.weights[bucket] >= EPSILON {
            self.min = self.min.min(bucket);
            self.max = self.max.max(bucket);
        }
    }

    /// Removes a sample that was added before. Upstream: decaying_histogram.go, SubtractSample
    pub(super) fn subtract(&mut self, value: f64, weight: f64, at: GoTime) {
        let weight = weight * self.decay_factor(at);
        let bucket = self.scheme.find(value);
        self.total = safe_subtract(self.total, weight);
        self.weights[bucket] = safe_subtract(self.weights[bucket], weight);
        self.changes += 1;
        self.trim();
    }

    /// Adds all weights of another histogram. The reference time of both becomes the later one, so
    /// the other histogram may change as well.
    ///
    /// Upstream: decaying_histogram.go, Merge
    pub(super) fn merge(&mut self, other: &mut Histogram) {
        if self.reference < other.reference {
            self.shift(other.reference);
        } else if other.reference < self.reference {
            other.shift(self.reference);
        }
        if other.min <= other.max {
            let range = other.min..=other.max;
            let pairs = self.weights[range.clone()].iter_mut().zip(&other.weights[range]);
            pairs.for_each(|(ours, theirs)| *ours += theirs);
        }
        self.total += other.total;
        self.changes += 1;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// The buckets with their shares of the total weight.
    pub(super) fn shares(&self) -> Shares {
        let buckets = self.weights.iter().enumerate().filter(|(_, weight)| **weight >= EPSILON);
        let share = |(bucket, weight): (usize, &f64)| BucketShare {
            bucket,
            start: self.scheme.amount(self.scheme.start(bucket)),
            end: (bucket < LAST).then(|| self.end(bucket)),
            share: weight / self.total,
        };
        let buckets: Vec<BucketShare> = buckets.map(share).collect();
        // A merge adds the total weight of the other histogram, but no light buckets at its ends.
        let listed: f64 = buckets.iter().map(|bucket| bucket.share).sum();
        let lighter = if self.total > 0.0 { (1.0 - listed).max(0.0) } else { 0.0 };
        Shares { buckets, lighter }
    }

    /// The end of the bucket that contains a percentile (0 to 1), or 0 if the histogram is empty.
    ///
    /// Upstream: histogram.go, Percentile
    #[cfg(test)]
    pub(super) fn percentile(&self, percentile: f64) -> f64 {
        let buckets = self.percentile_buckets([percentile]);
        buckets.map_or(0.0, |[bucket]| self.scheme.start(bucket + 1))
    }

    /// Returns true if the bucket of a value is not empty.
    pub(super) fn contains(&self, value: f64) -> bool {
        self.weights[self.scheme.find(value)] >= EPSILON
    }

    /// The end of a bucket, in millicores or bytes; the start of the last one, which has no end.
    pub(super) fn end(&self, bucket: usize) -> Amount {
        self.scheme.amount(self.scheme.start(bucket + 1))
    }

    /// The bucket that contains each percentile (0 to 1); `None` if the histogram is empty. The
    /// weights are added up once for all percentiles.
    #[must_use]
    pub(super) fn percentile_buckets<const N: usize>(
        &self,
        percentiles: [f64; N],
    ) -> Option<[usize; N]> {
        if self.is_empty() {
            return None;
        }
        let thresholds = percentiles.map(|percentile| percentile * self.total);
        let mut buckets = [self.max; N];
        let mut sum = 0.0;
        let mut next = f64::NEG_INFINITY;
        for bucket in self.min..self.max {
            sum += self.weights[bucket];
            // Most buckets reach no threshold, so only the lowest of those left is compared.
            if sum < next {
                continue;
            }
            next = f64::INFINITY;
            let left = buckets.iter_mut().zip(thresholds).filter(|(found, _)| **found == self.max);
            for (found, threshold) in left {
                if sum >= threshold {
                    *found = bucket;
                } else {
                    next = next.min(threshold);
                }
            }
        }
        Some(buckets)
    }

    /// The form of the histogram in a checkpoint.
    ///
    /// Upstream: histogram.go, SaveToChekpoint
    #[must_use]
    pub(super) fn save(&self) -> HistogramCheckpoint {
        // Without samples, the first bucket is after the last one.
        let range = self.weights.get(self.min..=self.max).unwrap_or_default();
        let larger = |a: f64, b: f64| if b > a { b } else { a };
        let largest = range.iter().copied().fold(0.0, larger);
        let ratio = MAX_CHECKPOINT_WEIGHT / largest;
        let scaled = (self.min..).zip(range).map(|(bucket, weight)| BucketWeight {
            bucket: bucket as i64,
            // No weight is negative, so truncation rounds like upstream.
            weight: (weight * ratio + 0.5) as u32,
        });
        let mut weights: Vec<BucketWeight> = scaled.collect();
        weights.retain(|it| it.weight > 0);
        HistogramCheckpoint {
            reference: self.reference.truncate_to_second(),
            weights,
            total: self.total,
        }
    }

    /// Adds the weights of a checkpoint, and takes over its reference time.
    ///
    /// # Errors
    /// If the total weight is negative or a bucket does not exist; the messages are upstream's.
    ///
    /// Upstream: histogram.go, LoadFromCheckpoint
    pub(super) fn load(
        &mut self,
        checkpoint: &HistogramCheckpoint,
        rules: &VpaRules,
    ) -> Result<(), String> {
        if checkpoint.total < 0.0 {
            let cannot = match rules.texts.lowercase_checkpoint_errors {
                true => "cannot",
                false => "Cannot",
            };
            let total = checkpoint.total;
            return Err(format!("{cannot} load checkpoint with negative weight {total}"));
        }
        let subject = if rules.texts.lowercase_bucket_errors { "checkpoint" } else { "Checkpoint" };
        let mut sum = 0_i64;
        for BucketWeight { bucket, weight } in &checkpoint.weights {
            sum += i64::from(*weight);
            if *bucket >= BUCKETS as i64 {
                return Err(format!(
                    "{subject} has bucket {bucket} that is exceeding histogram buckets {BUCKETS}"
                ));
            }
            if *bucket < 0 {
                return Err(format!("{subject} has a negative bucket {bucket}"));
            }
        }
        if sum != 0 {
            let ratio = checkpoint.total / sum as f64;
            for BucketWeight { bucket, weight } in &checkpoint.weights {
                let bucket = *bucket as usize;
                self.min = self.min.min(bucket);
                self.max = self.max.max(bucket);
                self.weights[bucket] += f64::from(*weight) * ratio;
            }
            self.total += checkpoint.total;
            if rules.checkpoints.trims_loaded {
                self.trim();
            }
        }
        self.reference = checkpoint.reference;
        self.changes += 1;
        Ok(())
    }

    /// Moves the reference time to the multiple of the half-life that is nearest to a time, and
    /// scales all weights.
    ///
    /// Upstream: decaying_histogram.go, shiftReferenceTimestamp
    fn shift(&mut self, to: GoTime) {
        let to = to.round(self.half_life);
        let difference = self.reference.since(to).0 as f64;
        let exponent = round(difference / self.half_life.0 as f64);
        let factor = ldexp(1.0, exponent.clamp(-5000, 5000) as i32);
        if self.min <= self.max {
            self.weights[self.min..=self.max].iter_mut().for_each(|weight| *weight *= factor);
        }
        self.total *= factor;
        self.changes += 1;
        self.trim();
        self.reference = to;
    }

    /// The time after the reference time beyond which a sample moves it.
    fn longest_decay(&self) -> Span {
        // Upstream multiplies in 64 bits.
        Span((i128::from(self.half_life.0) * MAX_DECAY_EXPONENT) as i64)
    }

    /// Returns true if the order of samples of these times decides the reference time: the first
    /// one that is far after it moves it.
    pub(super) fn is_moved_by_order(&self, times: impl Iterator<Item = GoTime>) -> bool {
        let end = self.reference.plus(self.longest_decay());
        let mut new = times.filter(|at| *at > end).map(|at| at.round(self.half_life));
        let first = new.next();
        new.any(|other| Some(other) != first)
    }

    /// The factor of the weight of a sample: it doubles with each half-life after the reference
    /// time.
    ///
    /// Upstream: decaying_histogram.go, decayFactor
    fn decay_factor(&mut self, at: GoTime) -> f64 {
        let longest = self.longest_decay();
        let before = self.reference;
        if at > before.plus(longest) {
            self.shift(at);
        }
        if let Some(random) = &mut self.random {
            let last = random.latest.max(before);
            if at > last.plus(longest) {
                // The sample shifts the histogram in every order.
                (random.earliest, random.latest) = (self.reference, self.reference);
            } else if at > random.earliest.plus(longest) {
                random.is_reference_random |= at.round(self.half_life) != last;
                random.earliest = at.plus(Span(longest.0.wrapping_neg()));
            }
            random.is_rounding_random |= random.earliest < random.latest;
        }
        exp2(at.since(self.reference).0 as f64 / self.half_life.0 as f64)
    }

    /// Moves the ends of the range to buckets that are not empty.
    ///
    /// Upstream: histogram.go, updateMinAndMaxBucket
    fn trim(&mut self) {
        while self.weights[self.min] < EPSILON && self.min < LAST {
            self.min += 1;
        }
        while self.weights[self.max] < EPSILON && self.max > 0 {
            self.max -= 1;
        }
    }
}

/// Upstream: histogram.go, safeSubtract
fn safe_subtract(value: f64, subtracted: f64) -> f64 {
    let rest = value - subtracted;
    if rest < EPSILON { 0.0 } else { rest }
}
