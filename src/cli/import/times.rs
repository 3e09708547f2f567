//! The start and the end of a range, as users write them.

use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp, Zoned};

use crate::cli::failure::Failure;

/// Examples for messages.
const HINT: &str = "for example 2025-05-06T09:00:00Z, '2025-05-06 09:00' with --time-zone, \
                    '2h ago' or now";

/// The times of a range in Unix time, in seconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct TimeRange {
    pub(super) from: i64,
    pub(super) to: i64,
}

/// The time zone with this name. None: that of this machine.
pub(super) fn zone(name: Option<&str>) -> Result<TimeZone, Failure> {
    let Some(name) = name else { return Ok(TimeZone::system()) };
    TimeZone::get(name).map_err(|error| {
        let what = format!("--time-zone {name}: {error}");
        Failure::usage(what).hint("use a name such as Europe/Berlin or UTC")
    })
}

/// Parses the range. `now` is the current time, in the time zone of times without one.
pub(super) fn range(from: &str, to: &str, now: &Zoned) -> Result<TimeRange, Failure> {
    let parsed = |flag: &str, text: &str| {
        time(text, now).ok_or_else(|| {
            Failure::usage(format!("{flag}: expected a time, found {text:?}")).hint(HINT)
        })
    };
    let (from, to) = (parsed("--from", from)?, parsed("--to", to)?);
    let zone = now.time_zone();
    let shown = |time: Timestamp| time.to_zoned(zone.clone()).strftime("%F %T %Z").to_string();
    if to <= from {
        let what = format!("the range ends at {}, before it starts at {}", shown(to), shown(from));
        return Err(Failure::usage(what).hint("check --from, --to and --time-zone"));
    }
    if from > now.timestamp() {
        let what = format!("the range starts at {}, which is in the future", shown(from));
        return Err(Failure::usage(what).hint("check --from and --time-zone"));
    }
    Ok(TimeRange { from: from.as_second(), to: to.as_second() })
}

fn time(text: &str, now: &Zoned) -> Option<Timestamp> {
    let text = text.trim();
    if text == "now" {
        return Some(now.timestamp());
    }
    if let Ok(seconds) = text.parse::<i64>() {
        return Timestamp::from_second(seconds).ok();
    }
    if let Ok(timestamp) = text.parse::<Timestamp>() {
        return Some(timestamp);
    }
    if let Ok(zoned) = text.parse::<Zoned>() {
        return Some(zoned.timestamp());
    }
    if text.ends_with("ago") {
        let span: Span = text.parse().ok()?;
        return now.checked_add(span).ok().map(|time| time.timestamp());
    }
    let local: DateTime = match text.parse() {
        Ok(local) => local,
        Err(_) => text.parse::<Date>().ok()?.into(),
    };
    local.to_zoned(now.time_zone().clone()).ok().map(|time| time.timestamp())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Zoned {
        "2025-11-02T12:00:00[America/New_York]".parse().expect("a time")
    }

    fn unix(text: &str) -> Option<String> {
        time(text, &now()).map(|time| time.to_string())
    }

    #[test]
    fn times_are_read_in_the_zone_that_they_name() {
        for (text, expected) in [
            ("now", "2025-11-02T17:00:00Z"),
            ("2025-05-06T09:00:00Z", "2025-05-06T09:00:00Z"),
            ("2025-05-06T09:00:00+02:00", "2025-05-06T07:00:00Z"),
            ("2025-05-06T09:00[Europe/Berlin]", "2025-05-06T07:00:00Z"),
            ("2025-05-06 09:00", "2025-05-06T13:00:00Z"),
            ("2025-05-06", "2025-05-06T04:00:00Z"),
            ("1746522000", "2025-05-06T09:00:00Z"),
            ("2h ago", "2025-11-02T15:00:00Z"),
            ("90 minutes ago", "2025-11-02T15:30:00Z"),
            // The clocks were changed in this night, so the day has 25 hours.
            ("1 day ago", "2025-11-01T16:00:00Z"),
            ("1 week ago", "2025-10-26T16:00:00Z"),
        ] {
            assert_eq!(unix(text).as_deref(), Some(expected), "{text}");
        }
        for text in ["", "yesterday", "2h", "09:00", "2025-13-01", "-1d"] {
            assert_eq!(unix(text), None, "{text}");
        }
    }

    #[test]
    fn a_range_must_contain_time_in_the_past() {
        let at = |from, to| range(from, to, &now()).map_err(|failure| failure.problem.what);
        let two_hours = TimeRange { from: 1_762_095_600, to: 1_762_102_800 };
        assert_eq!(at("2h ago", "now"), Ok(two_hours));
        assert_eq!(
            at("now", "2h ago").expect_err("reversed"),
            "the range ends at 2025-11-02 10:00:00 EST, before it starts at 2025-11-02 12:00:00 EST"
        );
        assert_eq!(
            at("2025-11-03", "2025-11-04").expect_err("in the future"),
            "the range starts at 2025-11-03 00:00:00 EST, which is in the future"
        );
    }
}
