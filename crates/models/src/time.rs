//! Time in the model: nanoseconds since the scenario's start.
//!
//! The model has no clock. Every time is an input, so that runs are reproducible.

use std::fmt;
use std::ops::{Add, Sub};
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A time: nanoseconds since the scenario's start (t=0). Negative before it.
#[derive(
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Default,
    Debug,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(transparent)]
pub struct Time(pub i64);

/// A span of time in nanoseconds. May be negative.
#[derive(
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Default,
    Debug,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(transparent)]
pub struct Span(pub i64);

/// A second in nanoseconds.
pub const SECOND: i64 = 1_000_000_000;

impl Time {
    /// The scenario's start.
    pub const ZERO: Time = Time(0);

    /// The time this many seconds after the start.
    #[must_use]
    pub const fn from_secs(seconds: i64) -> Time {
        Time(seconds * SECOND)
    }

    /// The time as the API stores it: in whole seconds, rounded down.
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

/// Times in objects of the API: RFC 3339, where t=0 is the start of the year 2000.
pub mod rfc3339 {
    use jiff::Timestamp;
    use serde::de::{Deserialize, Deserializer, Error as _};
    use serde::ser::{Error as _, Serialize, Serializer};

    use super::{SECOND, Time};

    /// The start of the year 2000, in seconds of Unix time.
    const START: i64 = 946_684_800;

    /// The time of a timestamp, if it is within about 292 years of t=0.
    #[must_use]
    pub fn time(timestamp: Timestamp) -> Option<Time> {
        let nanos = timestamp.as_nanosecond() - i128::from(START) * i128::from(SECOND);
        i64::try_from(nanos).ok().map(Time)
    }

    /// Converts nanoseconds of Unix time, if the time is within about 292 years of t=0.
    pub(crate) fn from_unix_nanos(nanos: i64) -> Option<Time> {
        nanos.checked_sub(START * SECOND).map(Time)
    }

    /// Writes a time as a timestamp.
    ///
    /// # Errors
    /// If the serializer fails.
    pub fn serialize<S: Serializer>(time: &Time, serializer: S) -> Result<S::Ok, S::Error> {
        let nanos = i128::from(START) * i128::from(SECOND) + i128::from(time.0);
        Timestamp::from_nanosecond(nanos).map_err(S::Error::custom)?.serialize(serializer)
    }

    /// Reads a time from a timestamp.
    ///
    /// # Errors
    /// If the text is not a timestamp, or out of range.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Time, D::Error> {
        let timestamp = Timestamp::deserialize(deserializer)?;
        time(timestamp).ok_or_else(|| D::Error::custom(format!("{timestamp} is out of range")))
    }

    /// Serialization of a time that may be absent.
    pub mod option {
        use serde::de::{Deserialize, Deserializer};
        use serde::ser::{Serialize, Serializer};

        use super::Time;

        #[derive(serde::Serialize, serde::Deserialize)]
        #[serde(transparent)]
        struct Written(#[serde(with = "super")] Time);

        /// Writes a time as a timestamp, or `null`.
        ///
        /// # Errors
        /// If the serializer fails.
        pub fn serialize<S: Serializer>(time: &Option<Time>, to: S) -> Result<S::Ok, S::Error> {
            time.map(Written).serialize(to)
        }

        /// Reads a time from a timestamp or `null`.
        ///
        /// # Errors
        /// If the value is neither of them, or out of range.
        pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Time>, D::Error> {
            Ok(Option::<Written>::deserialize(from)?.map(|written| written.0))
        }
    }
}

impl Span {
    /// No time.
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

/// The format of Go and Kubernetes, shortened: `5m`, `1h30m`, `15.1s`, `0s`.
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

/// A text that is not a duration in Go's format.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SpanError {
    /// The text is empty.
    Empty,
    /// A number without a unit: `15` instead of `15s`.
    NoUnit,
    /// Not a sequence of numbers with units (`h`, `m`, `s`, `ms`, `us`, `ns`).
    Malformed,
    /// More than about 292 years.
    TooLong,
}

impl fmt::Display for SpanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SpanError::Empty => "the duration is empty",
            SpanError::NoUnit => "the duration has no unit, such as s or m",
            SpanError::Malformed => "not a duration such as 15s, 1m30s or 500ms",
            SpanError::TooLong => "the duration is too long",
        })
    }
}

impl std::error::Error for SpanError {}

/// Parses durations as Go's `time.ParseDuration` does: `15s`, `1h30m`, `1.5s`, `-7s`, `0`.
impl FromStr for Span {
    type Err = SpanError;

    fn from_str(text: &str) -> Result<Span, SpanError> {
        let (negative, mut rest) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        match rest {
            "" => return Err(SpanError::Empty),
            "0" => return Ok(Span::ZERO),
            _ => {}
        }
        let mut nanos: i128 = 0;
        while !rest.is_empty() {
            let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
            let (number, tail) = rest.split_at(digits);
            let unit_len =
                tail.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(tail.len());
            let (unit, tail) = tail.split_at(unit_len);
            nanos += part(number, unit)?;
            rest = tail;
        }
        let nanos = if negative { -nanos } else { nanos };
        i64::try_from(nanos).map(Span).map_err(|_| SpanError::TooLong)
    }
}

/// Parses a time as the duration since the scenario's start.
impl FromStr for Time {
    type Err = SpanError;

    fn from_str(text: &str) -> Result<Time, SpanError> {
        text.parse().map(|span: Span| Time::ZERO + span)
    }
}

/// The nanoseconds of one number with its unit.
fn part(number: &str, unit: &str) -> Result<i128, SpanError> {
    let scale: i128 = match unit {
        "" => return Err(SpanError::NoUnit),
        "ns" => 1,
        "us" | "µs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return Err(SpanError::Malformed),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return Err(SpanError::Malformed);
    }
    if whole.len() > 19 || fraction.len() > 18 {
        return Err(SpanError::TooLong);
    }
    let digits = |text: &str| if text.is_empty() { Ok(0) } else { text.parse::<i128>() };
    let (whole, fraction_value) = (
        digits(whole).map_err(|_| SpanError::Malformed)?,
        digits(fraction).map_err(|_| SpanError::Malformed)?,
    );
    let power = 10_i128.pow(u32::try_from(fraction.len()).map_err(|_| SpanError::TooLong)?);
    Ok(whole * scale + fraction_value * scale / power)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_parsed_as_in_go() {
        for (text, span) in [
            ("15s", Ok(Span::from_secs(15))),
            ("1h30m", Ok(Span::from_mins(90))),
            ("1.5s", Ok(Span::from_millis(1500))),
            ("-7s", Ok(Span::from_secs(-7))),
            ("0", Ok(Span::ZERO)),
            ("15", Err(SpanError::NoUnit)),
            ("", Err(SpanError::Empty)),
            ("15 s", Err(SpanError::Malformed)),
            ("15d", Err(SpanError::Malformed)),
            ("1.2.3s", Err(SpanError::Malformed)),
            ("99999999999999h", Err(SpanError::TooLong)),
        ] {
            assert_eq!(text.parse::<Span>(), span, "{text}");
        }
    }

    #[test]
    fn printed_durations_are_parsed_back() {
        for nanos in [0, 1, 999, 100_000_000, 15_100_000_000, 5_400_000_000_000, -7_000_000_001] {
            assert_eq!(Span(nanos).to_string().parse(), Ok(Span(nanos)));
        }
    }

    #[test]
    fn durations_are_printed_as_in_kubernetes() {
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
    fn times_are_rounded_down_to_seconds_even_before_the_start() {
        assert_eq!(Time(1_900_000_000).truncate_to_second(), Time::from_secs(1));
        assert_eq!(Time(-100).truncate_to_second(), Time::from_secs(-1));
    }
}
