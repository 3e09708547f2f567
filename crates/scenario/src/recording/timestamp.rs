//! The timestamps of recordings.

use std::fmt;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use kube_autoscaler_models::time::Span;

/// Examples for messages.
pub(super) const EXAMPLE: &str =
    "for example 2025-05-06T09:00:00Z, 2025-05-06T11:00:00+02:00, or a Unix time in seconds";

/// Numbers from here on are milliseconds: in seconds, this is the year 5138.
const MILLISECONDS: f64 = 1e11;

/// 1980-01-01, in nanoseconds since 1970. Earlier times are numbers, not dates.
const FIRST_DATE: i64 = 315_532_800_000_000_000;

/// A time in nanoseconds since 1970.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Timestamp(i64);

impl Timestamp {
    /// Reads RFC 3339, a date and time in UTC (also `06.05.2025 09:00`), or a Unix time in seconds
    /// or milliseconds.
    pub(crate) fn parse(text: &str) -> Option<Timestamp> {
        if let Ok(number) = text.parse::<f64>() {
            return Timestamp::from_unix(number);
        }
        if let Ok(timestamp) = text.parse::<jiff::Timestamp>() {
            return i64::try_from(timestamp.as_nanosecond()).ok().map(Timestamp);
        }
        let civil = text.parse::<DateTime>().ok().or_else(|| {
            // As spreadsheets of many countries write it.
            let formats = ["%d.%m.%Y %H:%M:%S", "%d.%m.%Y %H:%M"];
            formats.into_iter().find_map(|format| DateTime::strptime(format, text).ok())
        });
        let utc = civil?.to_zoned(TimeZone::UTC).ok()?;
        i64::try_from(utc.timestamp().as_nanosecond()).ok().map(Timestamp)
    }

    /// Returns true for a date and time without a time zone, which is read as UTC.
    pub(super) fn lacks_zone(text: &str) -> bool {
        let has_zone = text.parse::<f64>().is_ok() || text.parse::<jiff::Timestamp>().is_ok();
        !has_zone && Timestamp::parse(text).is_some()
    }

    /// Reads a date and time; or a day and time as [`Timestamp::day_and_time`] prints it, in the
    /// year of another time.
    #[must_use]
    pub fn parse_near(text: &str, near: Timestamp) -> Option<Timestamp> {
        let year: String = near.to_string().chars().take_while(char::is_ascii_digit).collect();
        let is_clock = text.contains(':');
        let read =
            || Timestamp::parse(text).or_else(|| Timestamp::parse(&format!("{year}-{text}")));
        is_clock.then(read).flatten()
    }

    /// The times, from this time on for a span, at which a time of day in UTC (`12:30` or
    /// `12:30:15`) occurs. None: the text is not a time of day.
    #[must_use]
    pub fn times_of_day(self, text: &str, span: Span) -> Option<Vec<Timestamp>> {
        const DAY: i64 = 24 * 3600 * 1_000_000_000;
        let is_short = text.find(':').is_some_and(|colon| colon < 2);
        let padded = if is_short { format!("0{text}") } else { text.to_owned() };
        let time: jiff::civil::Time = padded.parse().ok().filter(|_| text.len() <= 8)?;
        let (hours, minutes) = (i64::from(time.hour()), i64::from(time.minute()));
        let seconds = (hours * 60 + minutes) * 60 + i64::from(time.second());
        let first = self.0 - self.0.rem_euclid(DAY) + seconds * 1_000_000_000;
        let all = (0..=span.0 / DAY + 1).map(|day| Timestamp(first + day * DAY));
        Some(all.filter(|at| (self..=self.plus(span)).contains(at)).collect())
    }

    /// A Unix time in seconds or milliseconds.
    pub(super) fn from_unix(number: f64) -> Option<Timestamp> {
        let seconds = if number.abs() >= MILLISECONDS { number / 1000.0 } else { number };
        // Microseconds: for current times, a float is not more precise.
        let micros = (seconds * 1e6).round();
        (micros.abs() < 9e15).then(|| Timestamp(micros as i64 * 1000))
    }

    /// Returns true if the time is a date, and not a small number such as the seconds since the
    /// start of a test.
    pub(super) fn is_date(self) -> bool {
        self.0 >= FIRST_DATE
    }

    /// The time after a duration.
    #[must_use]
    pub fn plus(self, span: Span) -> Timestamp {
        Timestamp(self.0.saturating_add(span.0))
    }

    /// The day and the time in UTC, to the second: `05-06 09:00:15`.
    #[must_use]
    pub fn day_and_time(self) -> String {
        let second = self.0.div_euclid(1_000_000_000);
        let found = jiff::Timestamp::from_second(second);
        found.map_or_else(|_| self.to_string(), |it| it.strftime("%m-%d %H:%M:%S").to_string())
    }

    /// The milliseconds since 1970, rounded down.
    #[must_use]
    pub fn unix_millis(self) -> i64 {
        self.0.div_euclid(1_000_000)
    }

    /// The nanoseconds since another time.
    #[must_use]
    pub fn since(self, other: Timestamp) -> i64 {
        self.0.saturating_sub(other.0)
    }
}

/// `2025-05-06T09:00:15Z`; a number that is not a date, as a duration: `15s` for 15.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.is_date() {
            return Span(self.0).fmt(f);
        }
        match jiff::Timestamp::from_nanosecond(i128::from(self.0)) {
            Ok(timestamp) => timestamp.fmt(f),
            Err(_) => write!(f, "{}ns", self.0),
        }
    }
}
