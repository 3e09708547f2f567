//! Absolute time, as Go's `time.Time` counts it.
//!
//! The recommender rounds reference times of histograms to multiples of the half-life since Go's
//! zero time, so times relative to a scenario's start are not sufficient.

use std::fmt;

use jiff::Timestamp;

use crate::time::Span;

const SECOND: i128 = 1_000_000_000;

/// The start of Unix time, in seconds since Go's zero time.
const UNIX: i128 = 62_135_596_800;

/// A time: nanoseconds since the start of the year 1. Go's zero time means that a time is unset.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct GoTime(i128);

impl GoTime {
    /// Go's zero time.
    pub const ZERO: GoTime = GoTime(0);

    /// The time of Unix time in seconds.
    #[must_use]
    pub const fn from_unix(seconds: i64) -> GoTime {
        GoTime((seconds as i128 + UNIX) * SECOND)
    }

    /// Unix time in seconds, rounded down.
    #[must_use]
    pub const fn unix(self) -> i64 {
        (self.0.div_euclid(SECOND) - UNIX) as i64
    }

    /// Returns true if the time is unset.
    #[must_use]
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// The time that is later by a span.
    #[must_use]
    pub const fn plus(self, span: Span) -> GoTime {
        GoTime(self.0 + span.0 as i128)
    }

    /// The span since an earlier time. Limited to the range of 64-bit nanoseconds, about 292 years.
    ///
    /// Upstream: Go, Time.Sub
    #[must_use]
    pub const fn since(self, earlier: GoTime) -> Span {
        let difference = self.0 - earlier.0;
        if difference > i64::MAX as i128 {
            return Span(i64::MAX);
        }
        if difference < i64::MIN as i128 {
            return Span(i64::MIN);
        }
        Span(difference as i64)
    }

    /// The nearest multiple of a span since the zero time; halves are rounded up.
    ///
    /// Upstream: Go, Time.Round
    #[must_use]
    pub const fn round(self, span: Span) -> GoTime {
        if span.0 <= 0 {
            return self;
        }
        let rest = self.0.rem_euclid(span.0 as i128);
        if rest + rest < span.0 as i128 {
            return GoTime(self.0 - rest);
        }
        GoTime(self.0 + (span.0 as i128 - rest))
    }

    /// The time as the API stores it: in whole seconds, rounded down.
    #[must_use]
    pub const fn truncate_to_second(self) -> GoTime {
        let unix = self.0 - UNIX * SECOND;
        // A 64-bit division is several times as fast, and sufficient for all times but zero.
        if unix == unix as i64 as i128 {
            let fraction = (unix as i64).rem_euclid(SECOND as i64);
            return GoTime(self.0 - fraction as i128);
        }
        GoTime(self.0.div_euclid(SECOND) * SECOND)
    }

    /// The text of Go's `%v` for a time in whole seconds: `2000-01-01 09:17:03 +0000 UTC`.
    #[must_use]
    pub(crate) fn go_text(self) -> String {
        let text = self.truncate_to_second().to_string();
        format!("{} +0000 UTC", text.trim_end_matches('Z').replace('T', " "))
    }

    /// Reads a timestamp.
    #[must_use]
    pub fn from_timestamp(timestamp: Timestamp) -> GoTime {
        GoTime(timestamp.as_nanosecond() + UNIX * SECOND)
    }
}

/// `2000-01-01T09:17:03Z`, in whole seconds; the zero time is `0001-01-01T00:00:00Z`.
impl fmt::Display for GoTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Timestamp::from_second(self.unix()) {
            Ok(timestamp) => timestamp.fmt(f),
            Err(_) => write!(f, "{} s", self.unix()),
        }
    }
}
