//! Time as the model knows it: nanoseconds since the scenario's start.
//!
//! There is no clock here. Every instant is an input, so that a run is the same every time.

use std::fmt;
use std::ops::{Add, Sub};

use serde::{Deserialize, Serialize};

/// An instant: nanoseconds since the scenario's start (t=0). Negative before it.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Time(pub i64);

/// A span of time in nanoseconds. May be negative.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Span(pub i64);

const SECOND: i64 = 1_000_000_000;

impl Time {
    /// The scenario's start.
    pub const ZERO: Time = Time(0);

    /// The instant this many seconds after the start.
    #[must_use]
    pub const fn from_secs(seconds: i64) -> Time {
        Time(seconds * SECOND)
    }

    /// The instant as the API stores it: times cross the API in whole seconds, rounded down.
    ///
    /// t=0 is always a whole second of the engine's clock.
    #[must_use]
    pub const fn truncate_to_second(self) -> Time {
        Time(self.0.div_euclid(SECOND) * SECOND)
    }

    /// The span since the scenario's start.
    #[must_use]
    pub const fn since_start(self) -> Span {
        Span(self.0)
    }
}

impl Span {
    /// No time at all.
    pub const ZERO: Span = Span(0);

    /// A span of whole seconds.
    #[must_use]
    pub const fn from_secs(seconds: i64) -> Span {
        Span(seconds * SECOND)
    }

    /// A span of whole milliseconds.
    #[must_use]
    pub const fn from_millis(millis: i64) -> Span {
        Span(millis * 1_000_000)
    }

    /// A span of whole minutes.
    #[must_use]
    pub const fn from_mins(minutes: i64) -> Span {
        Span(minutes * 60 * SECOND)
    }

    /// The span in seconds, as a float.
    #[must_use]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / SECOND as f64
    }
}

impl Add<Span> for Time {
    type Output = Time;
    fn add(self, span: Span) -> Time {
        Time(self.0.saturating_add(span.0))
    }
}

impl Sub<Span> for Time {
    type Output = Time;
    fn sub(self, span: Span) -> Time {
        Time(self.0.saturating_sub(span.0))
    }
}

impl Sub<Time> for Time {
    type Output = Span;
    fn sub(self, other: Time) -> Span {
        Span(self.0.saturating_sub(other.0))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.since_start().fmt(f)
    }
}

/// As Go and Kubernetes write durations, shortened: `5m`, `1h30m`, `15.1s`, `0s`.
impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            return f.write_str("0s");
        }
        if self.0 < 0 {
            f.write_str("-")?;
        }
        let nanos = self.0.unsigned_abs();
        let second = SECOND.unsigned_abs();
        let (hours, minutes) = (nanos / (3600 * second), nanos / (60 * second) % 60);
        let (seconds, fraction) = (nanos / second % 60, nanos % second);
        if hours > 0 {
            write!(f, "{hours}h")?;
        }
        if minutes > 0 {
            write!(f, "{minutes}m")?;
        }
        if fraction > 0 {
            if hours == 0 && minutes == 0 && seconds == 0 && fraction % 1_000_000 == 0 {
                return write!(f, "{}ms", fraction / 1_000_000);
            }
            let digits = format!("{fraction:09}");
            write!(f, "{seconds}.{}s", digits.trim_end_matches('0'))
        } else if seconds > 0 {
            write!(f, "{seconds}s")
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_read_like_kubernetes_durations() {
        for (nanos, text) in [
            (0, "0s"),
            (15 * SECOND, "15s"),
            (15 * SECOND + 100_000_000, "15.1s"),
            (100_000_000, "100ms"),
            (1, "0.000000001s"),
            (300 * SECOND, "5m"),
            (5400 * SECOND, "1h30m"),
            (3605 * SECOND, "1h5s"),
            (-7 * SECOND, "-7s"),
        ] {
            assert_eq!(Span(nanos).to_string(), text);
        }
    }

    #[test]
    fn the_api_rounds_times_down_also_before_the_start() {
        assert_eq!(Time(1_900_000_000).truncate_to_second(), Time::from_secs(1));
        assert_eq!(Time(-100).truncate_to_second(), Time::from_secs(-1));
    }
}
