//! Memory peaks per interval and OOM kills.

use super::super::aggregate::Aggregate;
use super::super::container::{Container, Discarded, OomError, OomKill};
use super::super::flags::RecommenderFlags;
use super::super::histogram::Scheme;
use super::super::time::GoTime;
use crate::rules::{VpaRelease, VpaRules};
use crate::time::Span;

const MEBIBYTE: i64 = 1 << 20;

struct Fixture {
    container: Container,
    aggregate: Aggregate,
}

fn at(minutes: i64) -> GoTime {
    GoTime::from_unix(946_684_800).plus(Span::from_mins(minutes))
}

impl Fixture {
    fn new() -> Fixture {
        let flags = RecommenderFlags::default();
        Fixture { container: Container::default(), aggregate: Aggregate::new(&flags, at(0)) }
    }

    fn memory(&mut self, minutes: i64, mebibytes: i64) -> Result<(), Discarded> {
        let (usage, at) = (mebibytes * MEBIBYTE, at(minutes));
        self.container.accepts_memory(usage, at)?;
        self.container.add_memory_sample(&mut self.aggregate, usage, at);
        Ok(())
    }

    fn oom(&mut self, release: VpaRelease, minutes: i64, mebibytes: i64) -> Result<(), OomError> {
        let kill = OomKill { at: at(minutes), requested: mebibytes * MEBIBYTE };
        self.container.record_oom(&mut self.aggregate, &VpaRules::of(release), &kill)
    }

    /// The bucket of the largest peak.
    fn largest(&self) -> Option<usize> {
        self.aggregate.memory.percentile_buckets([1.0]).map(|[bucket]| bucket)
    }
}

fn bucket(mebibytes: i64) -> Option<usize> {
    Some(Scheme::Memory.find((mebibytes * MEBIBYTE) as f64))
}

#[test]
fn an_interval_has_one_peak() {
    let mut it = Fixture::new();
    for (minute, usage) in [(0, 100), (1, 300), (2, 200)] {
        assert_eq!(it.memory(minute, usage), Ok(()));
    }
    assert_eq!(it.container.window_end(), at(24 * 60));
    assert_eq!(it.container.max_memory_peak(), 300 * MEBIBYTE);
    assert_eq!(it.largest(), bucket(300));
    assert_eq!(
        it.aggregate.memory.percentile_buckets([0.0]),
        bucket(300).map(|bucket| [bucket]),
        "the only peak"
    );
    // The next interval begins where the first one ends, whatever the gap.
    assert_eq!(it.memory(3 * 24 * 60 + 5, 100), Ok(()));
    assert_eq!(it.container.window_end(), at(4 * 24 * 60));
}

/// Upstream takes a peak of zero for no peak.
#[test]
fn after_a_peak_of_zero_no_sample_of_the_interval_counts() {
    let mut it = Fixture::new();
    assert_eq!(it.memory(0, 0), Ok(()));
    assert_eq!(it.memory(1, 500), Ok(()));
    assert_eq!(it.oom(VpaRelease::NEWEST, 2, 500), Ok(()));
    assert_eq!(it.largest(), Some(0));
}

#[test]
fn older_samples_are_discarded() {
    let mut it = Fixture::new();
    assert_eq!(it.memory(5, 100), Ok(()));
    assert_eq!(it.memory(5, 200), Ok(()), "the same time is accepted");
    assert_eq!(it.memory(4, 900), Err(Discarded));
    assert_eq!(it.memory(6, -1), Err(Discarded));
    it.container.add_cpu_sample(&mut it.aggregate, 100, at(5));
    assert_eq!(it.container.accepts_cpu(100, at(5)), Err(Discarded), "the same time is not");
    assert_eq!(it.container.accepts_cpu(100, at(6)), Ok(()));
}

/// The bump is the larger one of 20% and 100 MiB.
#[test]
fn an_oom_kill_adds_memory() {
    for (requested, needed) in [(300, 400), (1000, 1200)] {
        let mut it = Fixture::new();
        assert_eq!(it.memory(0, 200), Ok(()));
        assert_eq!(it.oom(VpaRelease::NEWEST, 1, requested), Ok(()));
        assert_eq!(it.container.max_memory_peak(), needed * MEBIBYTE);
    }
}

/// Repeated kills do not add up: the memory estimated after a kill is not its usage.
#[test]
fn repeated_oom_kills_do_not_add_up() {
    let mut it = Fixture::new();
    assert_eq!(it.memory(0, 200), Ok(()));
    for minute in 1..5 {
        assert_eq!(it.oom(VpaRelease::NEWEST, minute, 300), Ok(()));
    }
    assert_eq!(it.container.max_memory_peak(), 400 * MEBIBYTE);
}

/// Release 1.7 discards a kill shortly before the first sample, because the interval ends a day
/// after it.
#[test]
fn releases_differ_in_the_oldest_oom_kill() {
    for (release, expected) in
        [(VpaRelease::OLDEST, Err(OomError::TooOld)), (VpaRelease::NEWEST, Ok(()))]
    {
        let mut it = Fixture::new();
        assert_eq!(it.memory(0, 200), Ok(()));
        assert_eq!(it.oom(release, -1, 300), expected, "{release}");
        assert_eq!(it.oom(release, -24 * 60 - 1, 300).is_err(), expected.is_err(), "{release}");
    }
}
