//! The effects of samples and OOM kills on a recommender, for explanations. The recommender records
//! them only on request.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::aggregate::{MemorySettings, Resource};
use super::api::ObjectName;
use super::cluster::ContainerUsage;
use super::container::Container;
use super::float::{Amount, amount};
use super::pod::ObservedOom;
use super::recommender::QueuedOom;
use super::time::GoTime;
use crate::counted::counted_amount;

/// Something that a recommender did and that its recommendation does not show.
#[derive(Clone, PartialEq, Debug)]
pub enum Occurrence {
    /// It restarted, and read these checkpoints: the number of samples of each.
    ReadCheckpoints(BTreeMap<Arc<str>, i64>),
    /// It restarted, and read this number of samples of a history.
    ReadHistory(i64),
    /// An OOM kill.
    OomKill(CountedOom),
    /// A memory sample is the new peak of its interval.
    HigherPeak {
        /// The container.
        of: ContainerName,
        /// The peak so far.
        former: FormerPeak,
        /// The sample, in bytes.
        new: Amount,
    },
    /// A sample does not count.
    IgnoredSample {
        /// The container.
        of: ContainerName,
        /// The resource.
        resource: Resource,
        /// The reason.
        why: IgnoredSample,
    },
}

/// A container of a pod.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ContainerName {
    /// The namespace and the name of the pod.
    pub pod: ObjectName,
    /// The name of the container in its pod.
    pub container: Arc<str>,
}

/// Why a sample does not count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IgnoredSample {
    /// It is negative, or not newer (for memory: older) than the last one.
    OutOfOrder,
    /// The peak of the interval is zero.
    AfterPeakOfZero,
}

/// A peak of an interval, when a higher one is added.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FormerPeak {
    /// The peak, in bytes.
    pub amount: Amount,
    /// True if it is removed from the samples. After a change of the pod's labels, it is in another
    /// histogram, and stays there.
    pub is_removed: bool,
}

/// The origin of the memory of an OOM kill.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OomMemory {
    /// The request of a container that was killed.
    Requested,
    /// The usage of a container whose pod was evicted.
    Used,
}

/// The state of a container before a sample or an OOM kill.
pub(super) struct Before {
    pub state: Container,
    /// True if the container's current histogram contains the peak of the interval.
    pub(super) holds_peak: bool,
}

impl Before {
    fn former_peak(&self) -> FormerPeak {
        FormerPeak { amount: self.state.max_memory_peak(), is_removed: self.holds_peak }
    }
}

/// An OOM kill and the sample that follows from it.
#[derive(Clone, PartialEq, Debug)]
pub struct CountedOom {
    /// The container.
    pub of: ContainerName,
    /// The time of the kill.
    pub at: GoTime,
    /// The memory of the kill, in bytes.
    pub memory: Amount,
    /// The origin of that memory.
    pub origin: OomMemory,
    /// The highest sample of usage in the interval, in bytes.
    pub highest_usage: Amount,
    /// The smallest increase, in bytes.
    pub min_bump_up: Amount,
    /// The smallest factor of increase.
    pub bump_up_ratio: f64,
    /// The resulting sample, in bytes.
    pub needed: Amount,
    /// The effect of the sample.
    pub outcome: OomOutcome,
}

/// The effect of the sample of an OOM kill.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OomOutcome {
    /// It begins an interval.
    BeginsInterval,
    /// It is higher than the peak of its interval.
    HigherPeak(FormerPeak),
    /// It is not higher than the peak of its interval, in bytes.
    BelowPeak(Amount),
    /// The peak of its interval is zero: it does not count.
    AfterPeakOfZero,
    /// It is discarded, with an error.
    Discarded,
}

/// The occurrences that a usage sample causes. `before`: the state of the container before it.
pub(super) fn usage_occurrences(
    pod: &ObjectName,
    usage: &ContainerUsage,
    at: GoTime,
    before: &Before,
) -> Vec<Occurrence> {
    let Before { state, .. } = before;
    let of = || ContainerName { pod: pod.clone(), container: usage.container.clone() };
    let ignored = |resource, why| Occurrence::IgnoredSample { of: of(), resource, why };
    let mut found = Vec::new();
    if usage.cpu.is_some_and(|cpu| state.accepts_cpu(cpu, at).is_err()) {
        found.push(ignored(Resource::Cpu, IgnoredSample::OutOfOrder));
    }
    let Some(memory) = usage.memory else { return found };
    if state.accepts_memory(memory, at).is_err() {
        found.push(ignored(Resource::Memory, IgnoredSample::OutOfOrder));
        return found;
    }
    match state.max_memory_peak() {
        _ if at >= state.window_end() => {}
        0 if memory > 0 => found.push(ignored(Resource::Memory, IgnoredSample::AfterPeakOfZero)),
        highest if memory > highest => {
            let former = before.former_peak();
            found.push(Occurrence::HigherPeak { of: of(), former, new: memory });
        }
        _ => {}
    }
    found
}

/// The occurrence that an OOM kill causes. `before`: the state of the container before it.
/// `is_discarded`: the container rejected it with an error.
pub(super) fn oom_occurrence(
    oom: &QueuedOom,
    before: &Before,
    settings: MemorySettings,
    is_discarded: bool,
) -> Occurrence {
    let QueuedOom { oom: ObservedOom { pod, container, kill }, origin } = oom;
    let Before { state, .. } = before;
    let highest_usage = state.memory_peak();
    let needed = settings.after_oom(kill.requested.max(highest_usage));
    let outcome = match state.max_memory_peak() {
        _ if is_discarded => OomOutcome::Discarded,
        _ if kill.at >= state.window_end() => OomOutcome::BeginsInterval,
        0 => OomOutcome::AfterPeakOfZero,
        highest if needed > highest => OomOutcome::HigherPeak(before.former_peak()),
        highest => OomOutcome::BelowPeak(highest),
    };
    Occurrence::OomKill(CountedOom {
        of: ContainerName { pod: pod.clone(), container: container.clone() },
        at: kill.at,
        memory: kill.requested,
        origin: *origin,
        highest_usage,
        min_bump_up: amount(settings.min_bump_up),
        bump_up_ratio: settings.bump_up_ratio,
        needed,
        outcome,
    })
}

/// `web-0 app`.
impl fmt::Display for ContainerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.pod.name, self.container)
    }
}

const AFTER_PEAK_OF_ZERO: &str = "after a peak of zero, no sample of the interval counts";

/// One line of an explanation.
impl fmt::Display for Occurrence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Occurrence::ReadCheckpoints(read) if read.is_empty() => {
                f.write_str("the recommender restarted and read no checkpoints")
            }
            Occurrence::ReadCheckpoints(read) => {
                let texts = read.iter().map(|(name, samples)| {
                    format!("{name} ({})", counted_amount(*samples, "sample"))
                });
                let texts: Vec<String> = texts.collect();
                write!(f, "the recommender restarted and read checkpoints: {}", texts.join(", "))
            }
            Occurrence::ReadHistory(samples) => {
                let samples = counted_amount(*samples, "sample");
                write!(f, "the recommender restarted and read {samples} of the history")
            }
            Occurrence::OomKill(oom) => write!(f, "{oom}"),
            Occurrence::HigherPeak { of, former, new } => {
                write!(f, "memory of {of}: {} {former}", Resource::Memory.exact(*new))
            }
            Occurrence::IgnoredSample { of, resource, why } => {
                let why = match (why, resource) {
                    (IgnoredSample::AfterPeakOfZero, _) => AFTER_PEAK_OF_ZERO,
                    (IgnoredSample::OutOfOrder, Resource::Cpu) => {
                        "it is negative, or not newer than the last one"
                    }
                    (IgnoredSample::OutOfOrder, Resource::Memory) => {
                        "it is negative, or older than the last one"
                    }
                };
                write!(f, "{} of {of} does not count: {why}", resource.name())
            }
        }
    }
}

/// `replaces 300Mi as the peak of the interval`.
impl fmt::Display for FormerPeak {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let amount = Resource::Memory.exact(self.amount);
        match self.is_removed {
            true => write!(f, "replaces {amount} as the peak of the interval"),
            false => write!(
                f,
                "is the new peak of the interval; the former one, {amount}, is not removed: the \
                 histogram of the pod's present labels does not contain it"
            ),
        }
    }
}

/// `OOM kill of web-0 app at …: request 4Gi`, or `eviction of web-0 app at …: reported usage 3Gi`.
fn head(oom: &CountedOom) -> String {
    let CountedOom { of, at, memory, origin, .. } = oom;
    let (event, what) = match origin {
        OomMemory::Requested => ("OOM kill", "request"),
        OomMemory::Used => ("eviction", "reported usage"),
    };
    format!("{event} of {of} at {at}: {what} {}", Resource::Memory.exact(*memory))
}

/// `OOM kill of web-0 app at …: request 4Gi, highest sampled usage 300Mi; max(4Gi + 100Mi, 4Gi ×
/// 1.2) = 4.8Gi replaces 300Mi as the peak of the interval`.
impl fmt::Display for CountedOom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CountedOom { highest_usage, bump_up_ratio, outcome, .. } = self;
        let exact = |amount: Amount| Resource::Memory.exact(amount);
        write!(f, "{}, highest sampled usage {}", head(self), exact(*highest_usage))?;
        if *outcome == OomOutcome::Discarded {
            return f.write_str("; it is discarded");
        }
        let used = Resource::Memory.text(self.memory.max(*highest_usage));
        let added = Resource::Memory.text(self.min_bump_up);
        let needed = exact(self.needed);
        write!(f, "; max({used} + {added}, {used} × {bump_up_ratio}) = {needed}")?;
        match outcome {
            OomOutcome::BeginsInterval => f.write_str(" is the first peak of an interval"),
            OomOutcome::HigherPeak(former) => write!(f, " {former}"),
            OomOutcome::BelowPeak(peak) => {
                write!(f, " does not count: the peak of the interval is {}", exact(*peak))
            }
            OomOutcome::AfterPeakOfZero => write!(f, " does not count: {AFTER_PEAK_OF_ZERO}"),
            OomOutcome::Discarded => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::VpaRules;
    use crate::vpa::aggregate::Aggregate;
    use crate::vpa::container::OomKill;
    use crate::vpa::flags::RecommenderFlags;

    const MIB: Amount = 1 << 20;

    fn at(minute: i64) -> GoTime {
        GoTime::from_unix(946_684_800 + 60 * minute)
    }

    fn web_0() -> ObjectName {
        ObjectName::new("default", "web-0")
    }

    /// A container with these memory samples, one a minute.
    fn container(samples: &[Amount]) -> (Container, Aggregate) {
        let mut aggregate = Aggregate::new(&RecommenderFlags::default(), at(0));
        let mut state = Container::default();
        for (minute, sample) in (0..).zip(samples) {
            state.add_memory_sample(&mut aggregate, *sample, at(minute));
        }
        (state, aggregate)
    }

    fn before_of(samples: &[Amount]) -> Before {
        let (state, aggregate) = container(samples);
        let holds_peak = aggregate.memory.contains(state.max_memory_peak() as f64);
        Before { state, holds_peak }
    }

    fn texts(before: &[Amount], memory: Amount, minute: i64) -> Vec<String> {
        let before = before_of(before);
        let usage = ContainerUsage { container: "app".into(), cpu: None, memory: Some(memory) };
        let found = usage_occurrences(&web_0(), &usage, at(minute), &before);
        found.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn memory_samples_are_peaks_or_do_not_count() {
        let none: [&str; 0] = [];
        assert_eq!(texts(&[], 300 * MIB, 0), none);
        assert_eq!(texts(&[300 * MIB], 200 * MIB, 1), none);
        let higher = "memory of web-0 app: 400Mi replaces 300Mi as the peak of the interval";
        assert_eq!(texts(&[300 * MIB], 400 * MIB, 1), [higher]);
        let older =
            "memory of web-0 app does not count: it is negative, or older than the last one";
        assert_eq!(texts(&[300 * MIB, 300 * MIB], 400 * MIB, 0), [older]);
        let zero = format!("memory of web-0 app does not count: {AFTER_PEAK_OF_ZERO}");
        assert_eq!(texts(&[0], 400 * MIB, 1), [zero]);
        // A day later, another interval begins.
        assert_eq!(texts(&[0], 400 * MIB, 24 * 60), none);
    }

    #[test]
    fn cpu_samples_that_are_not_newer_do_not_count() {
        let (mut state, mut aggregate) = container(&[]);
        state.add_cpu_sample(&mut aggregate, 100, at(1));
        let usage = ContainerUsage { container: "app".into(), cpu: Some(100), memory: None };
        let before = Before { state, holds_peak: true };
        let found = |minute| usage_occurrences(&web_0(), &usage, at(minute), &before).len();
        assert_eq!([found(0), found(1), found(2)], [1, 1, 0]);
    }

    /// The recorded outcome of an OOM kill matches what the container does.
    #[test]
    fn oom_kills_have_the_outcome_of_the_container() {
        let peak = |amount| FormerPeak { amount, is_removed: true };
        for (samples, minute, outcome) in [
            (&[][..], 1, OomOutcome::BeginsInterval),
            (&[300 * MIB], 1, OomOutcome::HigherPeak(peak(300 * MIB))),
            (&[0], 1, OomOutcome::AfterPeakOfZero),
            (&[0], -2 * 24 * 60, OomOutcome::Discarded),
        ] {
            let (mut state, mut aggregate) = container(samples);
            let kill = OomKill { at: at(minute), requested: 1024 * MIB };
            let oom = ObservedOom { pod: web_0(), container: "app".into(), kill };
            let (before, settings) = (before_of(samples), aggregate.settings);
            let recorded = state.record_oom(&mut aggregate, &VpaRules::default(), &kill);
            let queued = QueuedOom { oom, origin: OomMemory::Requested };
            let account = oom_occurrence(&queued, &before, settings, recorded.is_err());
            let Occurrence::OomKill(account) = account else { panic!("{account:?}") };
            assert_eq!(account.outcome, outcome);
            let counts = matches!(outcome, OomOutcome::BeginsInterval | OomOutcome::HigherPeak(_));
            let expected = if counts { account.needed } else { before.state.max_memory_peak() };
            assert_eq!(state.max_memory_peak(), expected, "{account}");
        }
    }
}
