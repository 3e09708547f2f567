//! Buckets, decay, merging and checkpoints.

use super::super::histogram::{BUCKETS, BucketWeight, Histogram, HistogramCheckpoint, Scheme};
use super::super::merged::MergeOrder;
use super::super::time::GoTime;
use crate::rules::{VpaRelease, VpaRules};
use crate::time::Span;

const DAY: Span = Span::from_mins(24 * 60);

/// Midnight of the first day of the year 2000.
fn midnight() -> GoTime {
    GoTime::from_unix(946_684_800)
}

#[test]
fn buckets_start_at_upstream_s_bits() {
    for (bucket, bits) in [
        (0, 0),
        (1, 0x3f84_7ae1_47ae_147b),
        (2, 0x3f94_fdf3_b645_a1c7),
        (3, 0x3fa0_240b_7803_46dc),
        (7, 0x3fb4_d7f2_584c_9d3b),
        (14, 0x3fc9_1614_6930_e000),
    ] {
        assert_eq!(Scheme::Cpu.start(bucket).to_bits(), bits, "{bucket}");
    }
    for (bucket, bits) in [
        (1, 0x4163_12d0_0000_0000),
        (2, 0x4173_8ce1_ffff_fffd),
        (9, 0x419a_4a14_acc8_6662),
        (14, 0x41a7_5d07_1fc6_981d),
    ] {
        assert_eq!(Scheme::Memory.start(bucket).to_bits(), bits, "{bucket}");
    }
    assert_eq!(Scheme::Cpu.start(BUCKETS - 1), 1_021.109_408_904_860_1);
    assert_eq!(Scheme::Memory.start(BUCKETS - 1), 1.021_109_408_904_86e12);
}

/// The quotient of logarithms lies just below the integer.
#[test]
fn most_starts_belong_to_the_bucket_before() {
    for scheme in [Scheme::Cpu, Scheme::Memory] {
        let before =
            (1..BUCKETS).filter(|bucket| scheme.find(scheme.start(*bucket)) + 1 == *bucket);
        assert_eq!(before.count(), 174, "{scheme:?}");
    }
    assert_eq!(Scheme::Memory.find(20_500_000.0), 1);
    assert_eq!(Scheme::Memory.find(31_525_000.0), 2);
    assert_eq!(Scheme::Memory.find(1e15), BUCKETS - 1);
    assert_eq!(Scheme::Cpu.find(0.009), 0);
}

#[test]
fn an_empty_histogram_has_no_percentile() {
    let histogram = Histogram::new(Scheme::Cpu, DAY);
    assert!(histogram.is_empty());
    assert_eq!(histogram.percentile(0.9), 0.0);
    assert_eq!(histogram.percentile_buckets([0.9]), None);
}

/// A percentile is the end of its bucket; nothing is interpolated.
#[test]
fn a_percentile_is_the_end_of_a_bucket() {
    let mut histogram = Histogram::new(Scheme::Cpu, DAY);
    for (value, weight) in [(0.1, 1.0), (1.0, 1.0), (2.0, 2.0)] {
        histogram.add(value, weight, midnight());
    }
    let end = |value: f64| Scheme::Cpu.start(Scheme::Cpu.find(value) + 1);
    assert_eq!(histogram.percentile(0.25), end(0.1));
    assert_eq!(histogram.percentile(0.26), end(1.0));
    assert_eq!(histogram.percentile(0.5), end(1.0));
    assert_eq!(histogram.percentile(1.0), end(2.0));
}

/// A sample one half-life later counts twice. The first sample moves the reference time to the
/// nearest midnight.
#[test]
fn newer_samples_weigh_more() {
    let mut histogram = Histogram::new(Scheme::Cpu, DAY);
    histogram.add(1.0, 1.0, midnight().plus(Span::from_mins(13 * 60)));
    assert_eq!(histogram.reference(), midnight().plus(DAY));
    histogram.add(2.0, 1.0, midnight().plus(DAY));
    histogram.add(4.0, 1.0, midnight().plus(DAY).plus(DAY));
    let first = 2.0_f64.powf(-11.0 / 24.0);
    assert!((histogram.total() - (first + 1.0 + 2.0)).abs() < 1e-15);
    assert_eq!(histogram.percentile_buckets([0.9]), Some([Scheme::Cpu.find(4.0)]));
}

/// The reference time moves only after more than 100 half-lives, and then by all of them.
#[test]
fn the_reference_time_moves_after_100_half_lives() {
    let mut histogram = Histogram::new(Scheme::Memory, DAY);
    histogram.add(1e9, 1.0, midnight());
    let after = |days: i64| midnight().plus(Span::from_mins(days * 24 * 60));
    histogram.add(1e9, 1.0, after(100));
    assert_eq!(histogram.reference(), midnight());
    assert_eq!(histogram.total(), 1.0 + 2.0_f64.powi(100));
    histogram.add(1e9, 1.0, after(100).plus(Span(1)));
    assert_eq!(histogram.reference(), after(100));
    assert!((histogram.total() - 2.0).abs() < 1e-12);
}

#[test]
fn subtracting_a_sample_empties_its_bucket() {
    let mut histogram = Histogram::new(Scheme::Memory, DAY);
    histogram.add(1e9, 1.0, midnight());
    histogram.subtract(1e9, 1.0, midnight());
    assert!(histogram.is_empty());
    assert_eq!(histogram.total(), 0.0);
    assert_eq!(histogram.percentile(0.5), 0.0);
}

/// Merging changes the reference time of the histogram whose reference time is earlier.
#[test]
fn merging_moves_the_earlier_reference_time() {
    let mut early = Histogram::new(Scheme::Cpu, DAY);
    early.add(1.0, 1.0, midnight());
    let mut late = Histogram::new(Scheme::Cpu, DAY);
    late.add(2.0, 1.0, midnight().plus(DAY));
    let mut merged = Histogram::new(Scheme::Cpu, DAY);
    merged.merge(&mut late);
    merged.merge(&mut early);
    assert_eq!(early.reference(), midnight().plus(DAY));
    assert_eq!(merged.total(), 1.5);
}

#[test]
fn a_checkpoint_keeps_relative_weights_and_the_total() {
    let mut histogram = Histogram::new(Scheme::Cpu, DAY);
    histogram.add(0.05, 1.0, midnight());
    histogram.add(1.0, 3.0, midnight());
    let saved = histogram.save();
    let weight =
        |value: f64, weight| BucketWeight { bucket: Scheme::Cpu.find(value) as i64, weight };
    assert_eq!(saved.weights, [weight(0.05, 3333), weight(1.0, 10_000)]);
    assert_eq!((saved.total, saved.reference), (4.0, midnight()));
    let mut loaded = Histogram::new(Scheme::Cpu, DAY);
    assert_eq!(loaded.load(&saved, &VpaRules::default()), Ok(()));
    assert_eq!(loaded.save(), saved);
    assert_eq!(loaded.percentile(0.9), histogram.percentile(0.9));
}

#[test]
fn invalid_checkpoints_are_refused() {
    let load = |bucket: i64, total: f64| {
        let weights = vec![BucketWeight { bucket, weight: 1 }];
        let checkpoint = HistogramCheckpoint { reference: midnight(), weights, total };
        Histogram::new(Scheme::Cpu, DAY).load(&checkpoint, &VpaRules::default())
    };
    let error = |text: &str| Err(text.to_owned());
    assert_eq!(load(3, 1.0), Ok(()));
    assert_eq!(load(3, -1.0), error("cannot load checkpoint with negative weight -1"));
    assert_eq!(load(-1, 1.0), error("checkpoint has a negative bucket -1"));
    let beyond = "checkpoint has bucket 176 that is exceeding histogram buckets 176";
    assert_eq!(load(176, 1.0), error(beyond));
}

/// Even a checkpoint without weights sets the reference time.
#[test]
fn an_empty_checkpoint_sets_the_reference_time() {
    let checkpoint = HistogramCheckpoint { reference: midnight(), ..Default::default() };
    let mut histogram = Histogram::new(Scheme::Cpu, DAY);
    assert_eq!(histogram.load(&checkpoint, &VpaRules::default()), Ok(()));
    assert_eq!((histogram.reference(), histogram.is_empty()), (midnight(), true));
}

/// Up to 1.2, a checkpoint whose first bucket has nearly no weight counts as empty.
#[test]
fn a_first_bucket_with_nearly_no_weight_is_left_out() {
    let weights =
        vec![BucketWeight { bucket: 5, weight: 1 }, BucketWeight { bucket: 50, weight: 10_000 }];
    let checkpoint = HistogramCheckpoint { reference: midnight(), weights, total: 0.5 };
    let is_empty = |release: &str| {
        let release: VpaRelease = release.parse().expect("a release");
        let mut histogram = Histogram::new(Scheme::Cpu, DAY);
        assert_eq!(histogram.load(&checkpoint, &VpaRules::of(release)), Ok(()));
        histogram.is_empty()
    };
    assert!(is_empty("vpa-1.2") && !is_empty("vpa-1.3"));
}

/// Three histograms with these weights in the bucket of a core, and a fourth one with a weight in
/// the bucket of two cores, merged in this order.
fn merged_cores(weights: [f64; 3], larger: f64, rounds: bool) -> Histogram {
    let source = |cores: f64, weight: f64| {
        let mut source = Histogram::new(Scheme::Cpu, DAY);
        source.add(cores, weight, midnight());
        source
    };
    let mut sources: Vec<Histogram> = weights.map(|weight| source(1.0, weight)).into();
    sources.push(source(2.0, larger));
    let mut merged = Histogram::new(Scheme::Cpu, DAY);
    sources.iter_mut().for_each(|source| merged.merge(source));
    if rounds {
        merged.merged_in_random_order(sources.iter(), MergeOrder::ROUNDS);
    }
    merged
}

#[test]
fn the_order_of_a_sum_decides_a_percentile_at_the_end_of_a_bucket() {
    // (0.1 + 0.2) + 0.3 and 0.1 + (0.2 + 0.3) differ in their last bits.
    let merged = merged_cores([0.1, 0.2, 0.3], 0.6, true);
    assert!(merged.tolerance() > 0.0);
    assert!(merged.is_decided_by_order(&[0.9, 0.5, 0.95]));
    assert!(!merged.is_decided_by_order(&[0.9, 0.4, 0.95]));
    let in_one_order = merged_cores([0.1, 0.2, 0.3], 0.6, false);
    assert!(!in_one_order.is_decided_by_order(&[0.5]));
    assert!(in_one_order.tolerance() == 0.0);
}

#[test]
fn after_many_merges_a_histogram_has_the_latest_reference_time() {
    let latest = midnight().plus(DAY);
    let mut old = Histogram::new(Scheme::Cpu, DAY);
    old.add(1.0, 1.0, midnight());
    for _ in 0..40 {
        old.may_be_shifted(latest, true);
        assert!(old.awaits_shift());
        assert_eq!(old.reference(), midnight());
    }
    old.may_be_shifted(latest, true);
    assert_eq!((old.awaits_shift(), old.reference()), (false, latest));
    // Weights are scaled by a power of two, whenever they are scaled.
    assert!(!old.is_random());
    assert_eq!(old.total().to_bits(), 0.5_f64.to_bits());
}

#[test]
fn merges_without_a_histogram_of_the_latest_reference_time_move_nothing() {
    let latest = midnight().plus(DAY);
    let mut old = Histogram::new(Scheme::Cpu, DAY);
    old.may_be_shifted(latest, true);
    // The other histogram is removed.
    (0..100).for_each(|_| old.may_be_shifted(latest, false));
    assert!(old.awaits_shift());
    assert_eq!(old.possible_references(), (GoTime::ZERO, latest));
}

#[test]
fn a_sample_before_the_shift_has_random_bits() {
    let mut old = Histogram::new(Scheme::Cpu, DAY);
    old.add(1.0, 1.0, midnight());
    old.may_be_shifted(midnight().plus(DAY), true);
    old.add(1.0, 1.0, midnight().plus(Span::from_mins(1)));
    (0..50).for_each(|_| old.may_be_shifted(midnight().plus(DAY), true));
    assert!(!old.awaits_shift() && old.is_random());
    assert!(old.tolerance() > 0.0 && old.tolerance() < 1e-12);
}

#[test]
fn the_first_sample_of_an_empty_histogram_can_have_a_random_reference_time() {
    let decided = |days: i64| {
        let mut empty = Histogram::new(Scheme::Cpu, DAY);
        empty.may_be_shifted(midnight(), true);
        empty.add(1.0, 1.0, midnight().plus(Span(DAY.0 * days)));
        empty.is_decided_by_order(&[0.5])
    };
    // If it was shifted to the other histogram's time, the sample does not shift it again.
    assert!(decided(1));
    // Otherwise, the sample shifts it to the same time.
    assert!(!decided(0));
    // After 100 half-lives, the sample shifts it in either case.
    assert!(!decided(101));
}

/// Upstream subtracts the current peaks of pods in the random order of a map, also from a histogram
/// without samples.
#[test]
fn the_order_of_subtracted_peaks_can_decide_the_reference_time() {
    let at = |days: i64| midnight().plus(Span(DAY.0 * days));
    let mut memory = Histogram::new(Scheme::Memory, DAY);
    assert!(memory.is_moved_by_order([at(0), at(1)].into_iter()));
    // Both move it to the same time, or only one moves it.
    assert!(!memory.is_moved_by_order([at(0), at(0).plus(Span::from_mins(1))].into_iter()));
    memory.add(1e9, 1.0, at(0));
    assert!(!memory.is_moved_by_order([at(1), at(2)].into_iter()));
    assert!(!memory.is_moved_by_order([at(1), at(101)].into_iter()));
    assert!(memory.is_moved_by_order([at(101), at(102)].into_iter()));
}
