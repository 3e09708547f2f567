//! The common t=0 of the recordings of a scenario.

use super::Recording;
use super::timestamp::Timestamp;
use crate::diagnostic::{Diagnostic, Kind};
use crate::recorded::Recorded;
use kube_autoscaler_models::time::Span;

/// The t=0 that recordings with dates share: the earliest first time among those without `start`.
/// A recording whose times are small numbers, such as seconds from 0, has its own t=0.
#[derive(Clone, Debug, Default)]
pub struct Clock {
    /// The recording that begins first.
    earliest: Option<RecordingTimes>,
    /// The end of the time that is covered without interruption from the earliest time on.
    covered: Option<RecordingTimes>,
    /// The `start` of the first recording that sets one.
    explicit: Option<Timestamp>,
}

/// The times of a recording.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct RecordingTimes {
    first: Timestamp,
    last: Timestamp,
    path: String,
}

impl Clock {
    /// The clock of recordings.
    pub(crate) fn new<'r>(recordings: impl IntoIterator<Item = Used<'r>>) -> Clock {
        let mut clock = Clock::default();
        let mut ranges = Vec::new();
        for used in recordings {
            match &used.recorded.start {
                Some(start) => clock.explicit = clock.explicit.or_else(|| Timestamp::parse(start)),
                None => ranges.extend(used.range()),
            }
        }
        ranges.sort();
        clock.earliest = ranges.first().cloned();
        for range in ranges {
            match &clock.covered {
                Some(covered) if range.first > covered.last => break,
                Some(covered) if range.last <= covered.last => {}
                _ => clock.covered = Some(range),
            }
        }
        clock
    }

    /// The date and time at t=0. None: no recording has one.
    pub fn zero(&self) -> Option<Timestamp> {
        let earliest = self.earliest.as_ref().map(|range| range.first);
        earliest.or(self.explicit.filter(|start| start.is_date()))
    }

    /// The timestamp of a recording at t=0.
    ///
    /// # Errors
    /// If `start` is malformed, or the times of the recording do not overlap with earlier ones.
    pub fn start(&self, used: Used<'_>) -> Result<Timestamp, Diagnostic> {
        let (first, syntax) = (used.recording.first, used.recorded.syntax);
        if let Some(text) = &used.recorded.start {
            return Timestamp::parse(text).ok_or_else(|| {
                let what = format!("expected a time as `start`, found {text:?}");
                Diagnostic::new(what)
                    .hint(super::timestamp::EXAMPLE)
                    .kind(Kind::InvalidField("start"))
            });
        }
        let (Some(range), Some(earliest), Some(covered)) =
            (used.range(), &self.earliest, &self.covered)
        else {
            return Ok(first);
        };
        if range.first <= covered.last {
            return Ok(earliest.first);
        }
        let other = if covered.path == range.path { "another series" } else { &covered.path };
        let what = format!(
            "the times of {path} and {other} do not overlap: {path} begins at {first}, after the \
             last sample of {other}, at {last}",
            path = range.path,
            last = covered.last
        );
        let set = syntax.pick("set `start` on each", "add `start=TIME` to each");
        Err(Diagnostic::new(what).hint(format!("to align them deliberately, {set}")))
    }

    /// A note on a recording that does not begin at t=0, because another one begins earlier, or
    /// because it has a t=0 of its own.
    pub fn note(&self, used: Used<'_>, start: Timestamp) -> Option<String> {
        let Recording { first, path, .. } = used.recording;
        let earliest = self.earliest.as_ref()?;
        if used.recorded.start.is_some() {
            return (start != earliest.first).then(|| {
                let (zero, other) = (earliest.first, &earliest.path);
                format!("{path}: t=0s is {start} (`start`), but in {other} it is {zero}")
            });
        }
        let late = Span(first.since(start));
        (used.range().is_some() && late > Span::ZERO).then(|| {
            let other = match earliest.path == *path {
                true => "of its other series".to_owned(),
                false => format!("of {}", earliest.path),
            };
            format!("{path} begins at {late}: t=0s is {start}, the first time {other}")
        })
    }
}

/// A recording and the signal that uses it.
#[derive(Clone, Copy)]
pub struct Used<'r> {
    pub(crate) recorded: &'r Recorded,
    pub(crate) recording: &'r Recording,
}

impl Used<'_> {
    /// The times, if they have dates.
    fn range(&self) -> Option<RecordingTimes> {
        let Recording { first, last, path, .. } = self.recording;
        first.is_date().then(|| RecordingTimes { first: *first, last: *last, path: path.clone() })
    }
}
