//! The state of one container of one pod, which turns usage and OOM kills into samples.
//!
//! Upstream: `pkg/recommender/model/container.go`

use serde::{Deserialize, Serialize};

use super::aggregate::Aggregate;
use super::float::Amount;
use super::time::GoTime;
use crate::rules::{OldestOom, VpaRules};
use crate::time::Span;

/// The weight of a memory peak.
pub(super) const MEMORY_WEIGHT: f64 = 1.0;

/// The state of a container.
#[derive(Clone, Default, Debug)]
pub(super) struct Container {
    last_cpu_sample: GoTime,
    last_memory_sample: GoTime,
    /// The largest usage of memory in the current interval.
    memory_peak: Amount,
    /// The largest memory estimated after an OOM kill in the current interval.
    oom_peak: Amount,
    /// The end of the current interval. Zero before the first memory sample.
    window_end: GoTime,
}

/// A sample that does not count: it is negative, or older than an earlier one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Discarded;

impl Container {
    /// The end of the current memory interval.
    #[must_use]
    pub(super) fn window_end(&self) -> GoTime {
        self.window_end
    }

    /// The memory peak of the current interval, possibly estimated after an OOM kill.
    #[must_use]
    pub(super) fn max_memory_peak(&self) -> Amount {
        self.memory_peak.max(self.oom_peak)
    }

    /// The largest usage of memory in the current interval.
    #[must_use]
    pub(super) fn memory_peak(&self) -> Amount {
        self.memory_peak
    }

    /// Checks a CPU sample; a sample that is not newer than the last one is discarded.
    ///
    /// Upstream: addCPUSample
    pub(super) fn accepts_cpu(&self, usage: Amount, at: GoTime) -> Result<(), Discarded> {
        if usage < 0 || at <= self.last_cpu_sample { Err(Discarded) } else { Ok(()) }
    }

    /// Adds an accepted CPU sample.
    pub(super) fn add_cpu_sample(&mut self, aggregate: &mut Aggregate, usage: Amount, at: GoTime) {
        aggregate.add_cpu_sample(usage, at);
        self.last_cpu_sample = at;
    }

    /// Checks a memory sample; a sample that is older than the last one is discarded.
    pub(super) fn accepts_memory(&self, usage: Amount, at: GoTime) -> Result<(), Discarded> {
        if usage < 0 || at < self.last_memory_sample { Err(Discarded) } else { Ok(()) }
    }

    /// Adds an accepted memory sample.
    pub(super) fn add_memory_sample(
        &mut self,
        aggregate: &mut Aggregate,
        usage: Amount,
        at: GoTime,
    ) {
        if self.is_new_peak(aggregate, usage, at) {
            self.add_peak(aggregate, usage);
            self.memory_peak = usage;
        }
    }

    /// Starts the next memory interval if the current one has ended. Otherwise, removes the peak of
    /// the interval if the usage is larger. Returns true if the usage is the interval's new peak.
    ///
    /// Upstream: addMemorySample
    fn is_new_peak(&mut self, aggregate: &mut Aggregate, usage: Amount, at: GoTime) -> bool {
        self.last_memory_sample = at;
        if self.window_end.is_zero() {
            self.window_end = at;
        }
        if at < self.window_end {
            let peak = self.max_memory_peak();
            // After a peak of zero, no sample of the interval counts.
            let is_new = peak != 0 && usage > peak;
            if is_new {
                aggregate.memory.subtract(peak as f64, MEMORY_WEIGHT, self.window_end);
            }
            return is_new;
        }
        aggregate.are_peaks_random |= aggregate.random_settings.interval;
        let interval = aggregate.settings.interval.0;
        let late = at.since(self.window_end).0;
        let whole = if interval > 0 { late - late % interval } else { late };
        self.window_end = self.window_end.plus(Span(whole + interval));
        self.memory_peak = 0;
        self.oom_peak = 0;
        true
    }

    /// Adds a peak to the aggregate, with the time of the end of the interval.
    fn add_peak(&self, aggregate: &mut Aggregate, usage: Amount) {
        aggregate.memory.add(usage as f64, MEMORY_WEIGHT, self.window_end);
    }

    /// Adds the memory that a container needs after an OOM kill.
    ///
    /// # Errors
    /// If the OOM kill is too old, or the memory exceeds 64 bits.
    ///
    /// Upstream: RecordOOM
    pub(super) fn record_oom(
        &mut self,
        aggregate: &mut Aggregate,
        rules: &VpaRules,
        oom: &OomKill,
    ) -> Result<(), OomError> {
        let (settings, random) = (aggregate.settings, aggregate.random_settings);
        aggregate.are_peaks_random |= random.interval;
        let newest = match rules.oldest_oom {
            OldestOom::WindowEnd => Some(self.window_end),
            OldestOom::LastMemorySample => {
                Some(self.last_memory_sample).filter(|last| !last.is_zero())
            }
        };
        if newest.is_some_and(|newest| oom.at < newest.plus(Span(-settings.interval.0))) {
            return Err(OomError::TooOld);
        }
        aggregate.are_peaks_random |= random.after_oom();
        // The peak of earlier OOM kills is left out, so that repeated kills do not add up.
        let used = oom.requested.max(self.memory_peak);
        let needed = settings.after_oom(used);
        if needed < 0 {
            return Err(OomError::Invalid);
        }
        if self.is_new_peak(aggregate, needed, oom.at) {
            self.add_peak(aggregate, needed);
            self.oom_peak = needed;
        }
        Ok(())
    }
}

/// An OOM kill of a container.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct OomKill {
    /// The time at which the container was killed.
    #[serde(with = "super::checkpoint::api_time")]
    pub at: GoTime,
    /// The memory that it requested, or used when its pod was evicted, in bytes.
    pub requested: Amount,
}

/// The reason why an OOM kill does not count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum OomError {
    /// It is too old.
    TooOld,
    /// The memory exceeds 64 bits.
    Invalid,
}
