//! Durations, quantities and pod sets out of their texts.

use super::cursor::{At, Problems};
use crate::model::quantity::{Quantity, QuantityError};
use crate::model::time::{Span, SpanError, Time};
use crate::scenario::error::suggest;
use crate::scenario::node::shorten;
use crate::scenario::podset::PodSetError;
use crate::scenario::raw::{Signal as TypedSignal, SignalShape};
use crate::scenario::resolved::{PodSet, Signal};
use crate::scenario::scalars::{Duration, PodSetText, QuantityText, ScalarOr};

/// A duration that may be zero, but not negative.
pub(super) fn span(text: &Duration, at: At<'_>, problems: &mut Problems) -> Option<Span> {
    span_of(&text.0, at, problems)
}

pub(super) fn span_of(text: &str, at: At<'_>, problems: &mut Problems) -> Option<Span> {
    match text.parse::<Span>() {
        Ok(span) if span >= Span::ZERO => return Some(span),
        Ok(_) => problems.plain(at, format!("expected a duration, found {text}: it is negative")),
        Err(SpanError::NoUnit) => {
            // The number may end in one that has no unit: 1m30.
            let hint = format!("a unit is missing: did you mean {text}s?");
            problems.hint(at, format!("expected a duration, found {text}"), hint);
        }
        Err(error) => {
            let what = format!("expected a duration, found {}: {error}", shorten(text));
            problems.add(at.problem(what, unit_hint(text)));
        }
    }
    None
}

/// What may have been meant by a unit that Go does not know.
fn unit_hint(text: &str) -> Option<String> {
    let compact: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    if compact != text && compact.parse::<Span>().is_ok() {
        return Some(format!("write it without a space: did you mean {compact}?"));
    }
    let split = compact.find(|c: char| c.is_alphabetic())?;
    let (number, unit) = compact.split_at(split);
    if let ("d" | "day" | "days", Ok(days)) = (unit, number.parse::<u32>()) {
        return Some(format!("Go has no days: did you mean {}h?", u64::from(days) * 24));
    }
    let unit = match unit.to_lowercase().as_str() {
        "sec" | "secs" | "second" | "seconds" | "s" => "s",
        "min" | "mins" | "minute" | "minutes" | "m" => "m",
        "hr" | "hrs" | "hour" | "hours" | "h" => "h",
        "msec" | "millis" | "milliseconds" => "ms",
        _ => return None,
    };
    Some(format!("did you mean {number}{unit}?"))
}

/// A duration that is more than zero.
pub(super) fn positive(text: &Duration, at: At<'_>, problems: &mut Problems) -> Option<Span> {
    let span = span(text, at, problems)?;
    if span == Span::ZERO {
        problems.plain(at, "expected a duration of more than zero, found 0s");
        return None;
    }
    Some(span)
}

/// A duration, if it is given.
pub(super) fn span_or(
    text: Option<&Duration>,
    default: Span,
    at: At<'_>,
    problems: &mut Problems,
) -> Span {
    text.and_then(|text| span(text, at, problems)).unwrap_or(default)
}

/// An instant within the scenario.
pub(super) fn not_after_end(time: Time, until: Time, at: At<'_>, problems: &mut Problems) {
    if time > until {
        problems.plain(at, format!("{time} is after the end of the scenario (until: {until})"));
    }
}

/// An instant within the scenario.
pub(super) fn time(
    text: &Duration,
    until: Option<Time>,
    at: At<'_>,
    problems: &mut Problems,
) -> Option<Time> {
    let time = Time::ZERO + span(text, at, problems)?;
    match until {
        Some(until) if time > until => {
            problems.plain(at, format!("{time} is after the end of the scenario (until: {until})"));
            None
        }
        _ => Some(time),
    }
}

/// A quantity.
pub(super) fn quantity(
    text: &QuantityText,
    at: At<'_>,
    problems: &mut Problems,
) -> Option<Quantity> {
    match Quantity::parse(&text.0) {
        Ok(quantity) => Some(quantity),
        Err(error) => {
            let what = format!("expected a quantity, found {}: {}", shorten(&text.0), short(error));
            problems.add(at.problem(what, quantity_hint(&text.0)));
            None
        }
    }
}

/// Upstream quotes a regular expression, which helps nobody.
fn short(error: QuantityError) -> String {
    match error {
        QuantityError::FormatWrong => "not a number with a suffix".to_owned(),
        other => other.to_string(),
    }
}

fn quantity_hint(text: &str) -> Option<String> {
    let compact: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    let split = compact.find(|c: char| c.is_alphabetic() || c == '%').unwrap_or(compact.len());
    let (number, suffix) = compact.split_at(split);
    let suffix = match suffix {
        // With a factor of 1000 by their letters, often meant with one of 1024.
        "KB" | "kB" | "MB" | "GB" => {
            let letter = if suffix == "KB" { "k" } else { &suffix[..1] };
            let binary = letter.to_uppercase();
            return Some(format!("did you mean {number}{letter}, or {number}{binary}i?"));
        }
        "K" => "k",
        "ki" | "KI" | "KiB" => "Ki",
        "mi" | "MI" | "MiB" => "Mi",
        "gi" | "GI" | "GiB" => "Gi",
        "g" => "G",
        "mcpu" | "millicores" | "mcores" => "m",
        "core" | "cores" | "cpu" | "cpus" | "" => "",
        "%" => return Some("an amount is meant, not a share: for instance 500m".to_owned()),
        _ => return Some("for instance 500m, 0.5, 2 or 128Mi".to_owned()),
    };
    let meant = format!("{number}{suffix}");
    Quantity::parse(&meant).ok().map(|_| format!("did you mean {meant}?"))
}

/// A quantity that is not negative.
pub(super) fn amount(text: &QuantityText, at: At<'_>, problems: &mut Problems) -> Option<Quantity> {
    let quantity = quantity(text, at, problems)?;
    if quantity.sign() < 0 {
        problems.plain(at, format!("{} is negative", text.0));
        return None;
    }
    Some(quantity)
}

/// A set of pods.
pub(super) fn pods(text: &PodSetText, at: At<'_>, problems: &mut Problems) -> Option<PodSet> {
    match text.0.parse() {
        Ok(set) => Some(set),
        Err(error) => {
            let text = text.0.trim();
            let hint = match (text, &error) {
                (_, PodSetError::Backwards(from, to)) => Some(format!("did you mean {to}-{from}?")),
                ("*" | "any" | "every" | "ALL" | "All", _) => Some("did you mean all?".to_owned()),
                ("none", _) => Some("leave the entry out".to_owned()),
                _ if text.contains("..") => Some(format!(
                    "did you mean \"{}\"?",
                    text.replace("..=", "-").replace("..", "-")
                )),
                _ => None,
            };
            problems.add(at.problem(error.to_string(), hint));
            None
        }
    }
}

/// `cpu` or `memory`.
pub(super) fn resource(name: &str, at: At<'_>, problems: &mut Problems) {
    if !matches!(name, "cpu" | "memory") {
        let hint = suggest(name, ["cpu", "memory"]);
        problems.add(at.problem(format!("unknown resource `{name}`"), hint));
    }
}

/// A value over time.
pub(super) fn signal(signal: &TypedSignal, at: At<'_>, problems: &mut Problems) -> Option<Signal> {
    match &signal.0 {
        ScalarOr::Scalar(text) => quantity(text, at, problems).map(Signal::Constant),
        ScalarOr::Map(shape) => shape_of(shape, at, problems),
    }
}

fn shape_of(shape: &SignalShape, at: At<'_>, problems: &mut Problems) -> Option<Signal> {
    let given: Vec<&str> = ["steps", "points", "sine"]
        .into_iter()
        .filter(|name| at.key(name).node().is_some())
        .collect();
    if let &[name] = given.as_slice() {
        return match (name, &shape.sine) {
            ("steps", _) => points(&shape.steps, at.key("steps"), problems).map(Signal::Steps),
            ("points", _) => points(&shape.points, at.key("points"), problems).map(Signal::Points),
            (_, Some(sine)) => {
                let at = at.key("sine");
                let mean = quantity(&sine.mean, at.key("mean"), problems);
                let amplitude = quantity(&sine.amplitude, at.key("amplitude"), problems);
                let period = positive(&sine.period, at.key("period"), problems);
                let offset = sine.offset.as_ref();
                let offset = span_or(offset, Span::ZERO, at.key("offset"), problems);
                let (mean, amplitude, period) = (mean?, amplitude?, period?);
                Some(Signal::Sine { mean, amplitude, period, offset })
            }
            (_, None) => None,
        };
    }
    let what = match given.as_slice() {
        [] => "an empty signal: expected exactly one of steps, points and sine".to_owned(),
        more => {
            format!("expected exactly one of steps, points and sine, found {}", more.join(", "))
        }
    };
    problems.plain(at, what);
    None
}

fn points(
    points: &[crate::scenario::raw::Point],
    at: At<'_>,
    problems: &mut Problems,
) -> Option<Vec<(Time, Quantity)>> {
    if points.is_empty() {
        problems.hint(at, "an empty list of values", "for instance [{at: 0s, value: 500m}]");
        return None;
    }
    let mut read = Vec::with_capacity(points.len());
    let mut last: Option<Time> = None;
    for (index, point) in points.iter().enumerate() {
        let at = at.index(index);
        let time = span(&point.at, at.key("at"), problems).map(|span| Time::ZERO + span);
        let value = quantity(&point.value, at.key("value"), problems);
        if let (Some(last), Some(time)) = (last, time)
            && time <= last
        {
            problems.plain(at.key("at"), format!("{time} is not after {last}, the time before it"));
        }
        last = time.or(last);
        read.extend(time.zip(value));
    }
    (read.len() == points.len()).then_some(read)
}
