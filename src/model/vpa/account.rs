//! What a recommender does with samples and OOM kills, for explanations. The recommender records it
//! only on request.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::aggregate::MemorySettings;
use super::api::ObjectName;
use super::cluster::ContainerUsage;
use super::container::Container;
use super::estimator::Resource;
use super::float::{Amount, amount};
use super::pod::ObservedOom;
use super::time::GoTime;
use crate::model::counted::counted_amount;

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
        /// The peak so far, in bytes.
        old: Amount,
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
    /// The pod.
    pub pod: ObjectName,
    /// The container.
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

/// An OOM kill and the sample that follows from it.
#[derive(Clone, PartialEq, Debug)]
pub struct CountedOom {
    /// The container.
    pub of: ContainerName,
    /// The time of the kill.
    pub at: GoTime,
    /// The requested memory, or that used when the pod was evicted, in bytes.
    pub requested: Amount,
    /// The peak of usage in the interval, in bytes.
    pub peak: Amount,
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
    /// It replaces the peak of its interval, in bytes.
    Replaces(Amount),
    /// It is not higher than the peak of its interval, in bytes.
    BelowPeak(Amount),
    /// The peak of its interval is zero: it does not count.
    AfterPeakOfZero,
    /// It is discarded, with an error.
    Discarded,
}

/// The occurrences that a usage sample causes. `before`: the state of the container before it.
pub(super) fn of_usage(
    pod: &ObjectName,
    usage: &ContainerUsage,
    at: GoTime,
    before: &Container,
) -> Vec<Occurrence> {
    let of = || ContainerName { pod: pod.clone(), container: usage.container.clone() };
    let ignored = |resource, why| Occurrence::IgnoredSample { of: of(), resource, why };
    let mut found = Vec::new();
    if usage.cpu.is_some_and(|cpu| before.accepts_cpu(cpu, at).is_err()) {
        found.push(ignored(Resource::Cpu, IgnoredSample::OutOfOrder));
    }
    let Some(memory) = usage.memory else { return found };
    if before.accepts_memory(memory, at).is_err() {
        found.push(ignored(Resource::Memory, IgnoredSample::OutOfOrder));
        return found;
    }
    match before.max_memory_peak() {
        _ if at >= before.window_end() => {}
        0 if memory > 0 => found.push(ignored(Resource::Memory, IgnoredSample::AfterPeakOfZero)),
        old if memory > old => found.push(Occurrence::HigherPeak { of: of(), old, new: memory }),
        _ => {}
    }
    found
}

/// The occurrence that an OOM kill causes. `before`: the state of the container before it.
/// `is_discarded`: the container rejected it with an error.
pub(super) fn of_oom(
    oom: &ObservedOom,
    before: &Container,
    settings: MemorySettings,
    is_discarded: bool,
) -> Occurrence {
    let ObservedOom { pod, container, kill } = oom;
    let peak = before.memory_peak();
    let needed = settings.after_oom(kill.requested.max(peak));
    let outcome = match before.max_memory_peak() {
        _ if is_discarded => OomOutcome::Discarded,
        _ if kill.at >= before.window_end() => OomOutcome::BeginsInterval,
        0 => OomOutcome::AfterPeakOfZero,
        highest if needed > highest => OomOutcome::Replaces(highest),
        highest => OomOutcome::BelowPeak(highest),
    };
    Occurrence::OomKill(CountedOom {
        of: ContainerName { pod: pod.clone(), container: container.clone() },
        at: kill.at,
        requested: kill.requested,
        peak,
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
        let memory = |amount: Amount| Resource::Memory.text(amount);
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
            Occurrence::HigherPeak { of, old, new } => write!(
                f,
                "memory of {of}: {} replaces {} as the peak of the interval",
                memory(*new),
                memory(*old)
            ),
            Occurrence::IgnoredSample { of, resource, why } => {
                let why = match (why, resource) {
                    (IgnoredSample::AfterPeakOfZero, _) => AFTER_PEAK_OF_ZERO,
                    (IgnoredSample::OutOfOrder, Resource::Cpu) => {
                        "it is not newer than the last one"
                    }
                    (IgnoredSample::OutOfOrder, Resource::Memory) => {
                        "it is older than the last one"
                    }
                };
                write!(f, "{} of {of} does not count: {why}", resource.name())
            }
        }
    }
}

/// `OOM kill of web-0 app at …: request 4Gi, peak 300Mi; max(4Gi + 100Mi, 4Gi × 1.2) = 4.8Gi
/// replaces 300Mi as the peak of the interval`.
impl fmt::Display for CountedOom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let memory = |amount: Amount| Resource::Memory.text(amount);
        let CountedOom { of, at, requested, peak, min_bump_up, bump_up_ratio, needed, outcome } =
            self;
        write!(
            f,
            "OOM kill of {of} at {at}: request {}, peak {}",
            memory(*requested),
            memory(*peak)
        )?;
        if *outcome == OomOutcome::Discarded {
            return f.write_str("; it is discarded");
        }
        let used = memory(*requested.max(peak));
        let (added, exact) = (memory(*min_bump_up), Resource::Memory.exact(*needed));
        write!(f, "; max({used} + {added}, {used} × {bump_up_ratio}) = {exact}")?;
        match outcome {
            OomOutcome::BeginsInterval => f.write_str(" is the first peak of an interval"),
            OomOutcome::Replaces(old) => {
                write!(f, " replaces {} as the peak of the interval", memory(*old))
            }
            OomOutcome::BelowPeak(peak) => {
                write!(f, " does not count: the peak of the interval is {}", memory(*peak))
            }
            OomOutcome::AfterPeakOfZero => write!(f, " does not count: {AFTER_PEAK_OF_ZERO}"),
            OomOutcome::Discarded => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::rules::VpaRules;
    use crate::model::vpa::aggregate::Aggregate;
    use crate::model::vpa::container::OomKill;
    use crate::model::vpa::flags::RecommenderFlags;

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

    fn texts(before: &[Amount], memory: Amount, minute: i64) -> Vec<String> {
        let (state, _) = container(before);
        let usage = ContainerUsage { container: "app".into(), cpu: None, memory: Some(memory) };
        let found = of_usage(&web_0(), &usage, at(minute), &state);
        found.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn memory_samples_are_peaks_or_do_not_count() {
        let none: [&str; 0] = [];
        assert_eq!(texts(&[], 300 * MIB, 0), none);
        assert_eq!(texts(&[300 * MIB], 200 * MIB, 1), none);
        let higher = "memory of web-0 app: 400Mi replaces 300Mi as the peak of the interval";
        assert_eq!(texts(&[300 * MIB], 400 * MIB, 1), [higher]);
        let older = "memory of web-0 app does not count: it is older than the last one";
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
        let found = |minute| of_usage(&web_0(), &usage, at(minute), &state).len();
        assert_eq!([found(0), found(1), found(2)], [1, 1, 0]);
    }

    /// The recorded outcome of an OOM kill matches what the container does.
    #[test]
    fn oom_kills_have_the_outcome_of_the_container() {
        for (before, minute, outcome) in [
            (&[][..], 1, OomOutcome::BeginsInterval),
            (&[300 * MIB], 1, OomOutcome::Replaces(300 * MIB)),
            (&[0], 1, OomOutcome::AfterPeakOfZero),
            (&[0], -2 * 24 * 60, OomOutcome::Discarded),
        ] {
            let (mut state, mut aggregate) = container(before);
            let kill = OomKill { at: at(minute), requested: 1024 * MIB };
            let oom = ObservedOom { pod: web_0(), container: "app".into(), kill };
            let (peak, settings) = (state.clone(), aggregate.settings);
            let recorded = state.record_oom(&mut aggregate, &VpaRules::default(), &kill);
            let account = of_oom(&oom, &peak, settings, recorded.is_err());
            let Occurrence::OomKill(account) = account else { panic!("{account:?}") };
            assert_eq!(account.outcome, outcome);
            let counts = matches!(outcome, OomOutcome::BeginsInterval | OomOutcome::Replaces(_));
            let expected = if counts { account.needed } else { peak.max_memory_peak() };
            assert_eq!(state.max_memory_peak(), expected, "{account}");
        }
    }
}
