//! Values and series of charts as text: labels, captions, and descriptions for screen readers.

use super::timeline::{Limited, Metric, Value};
use crate::counted;
use crate::metric::{Unit, unit as unit_of};
use kube_autoscaler_models::derivation::MetricDerivation;
use kube_autoscaler_models::quantity::human;

/// The maximum number of changes in a description.
const CHANGES: usize = 12;

/// Cuts a text after this number of characters, and adds `…`.
pub(super) fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// `from 1: 4 at 0s, 7 at 15s`.
pub(super) fn changes(values: &[Value]) -> String {
    let mut known = values.iter().filter_map(|(at, value)| Some((at, (*value)?)));
    let Some((_, first)) = known.next() else { return String::new() };
    let mut before = first;
    let mut changes: Vec<String> = Vec::new();
    for (at, value) in known {
        if value != before {
            changes.push(format!("{value:.0} at {at}"));
            before = value;
        }
    }
    if changes.is_empty() {
        return format!("{first:.0} throughout");
    }
    let more = changes.len().saturating_sub(CHANGES);
    changes.truncate(CHANGES);
    let more =
        if more > 0 { format!(", and {}", counted(more, "more change")) } else { String::new() };
    format!("From {first:.0}: {}{more}", changes.join(", "))
}

/// `cpu: from 0% to 305%; target 50%`.
pub(super) fn about_metric(metric: &Metric<'_>) -> String {
    let values = || metric.values.iter().filter_map(|(_, value)| *value);
    let text = |value: f64| self::value(metric.like, value);
    let range = match (values().reduce(f64::min), values().reduce(f64::max)) {
        (Some(least), Some(most)) => format!("from {} to {}", text(least), text(most)),
        _ => "no value".to_owned(),
    };
    let target = metric.target.last().and_then(|(_, target)| *target);
    let target = target.map(|target| format!("; target {}", text(target))).unwrap_or_default();
    format!("{}: {range}{target}", metric.like.title())
}

/// The unit of a metric's values, for captions.
pub(super) fn unit(metric: &MetricDerivation) -> &'static str {
    match unit_of(metric) {
        Unit::Percent => "percent of the request",
        Unit::Average => "average over the pods",
        Unit::Total => "value",
    }
}

/// A value in the unit of the metric.
pub(super) fn value(metric: &MetricDerivation, value: f64) -> String {
    match unit_of(metric) {
        Unit::Percent => {
            let text = format!("{value:.1}");
            format!("{}%", text.strip_suffix(".0").unwrap_or(&text))
        }
        Unit::Average | Unit::Total => metric.amount(value.round() as i64),
    }
}

/// Returns true if values are bytes.
pub(super) fn is_memory(metric: &MetricDerivation) -> bool {
    metric.is_in_bytes() && unit_of(metric) != Unit::Percent
}

/// A label for thousandths.
pub(super) fn milli(value: f64) -> String {
    human::decimal(value.round() as i64)
}

/// A label for thousandths of a core on an axis: `250m`, `2.5`.
pub(super) fn short_cores(value: f64) -> String {
    if value < 1000.0 {
        return milli(value);
    }
    let cores = value / 1000.0;
    let text = if cores < 10.0 { format!("{cores:.2}") } else { format!("{cores:.1}") };
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Thousandths of a core: `182m`, `1 core`, `211.9 cores`.
pub(super) fn cores(value: f64) -> String {
    let text = short_cores(value);
    match text.as_str() {
        "1" => "1 core".to_owned(),
        _ if value < 1000.0 => text,
        _ => format!("{text} cores"),
    }
}

/// The kind of a limit, which has a color and a pattern of its own.
pub(super) fn limit_class(by: &str) -> &'static str {
    match by {
        "stabilization" | "forbidden window" => "window",
        "max" | "min" => "bound",
        "tolerance" => "tol",
        "missing or unready pods" => "pods",
        by if by.starts_with("scale-") => "rate",
        _ => "fail",
    }
}

/// `stabilization, 18 ticks from 10m15s`.
pub(super) fn limited(limit: &Limited) -> String {
    format!("{}: {} from {}", limit.by, counted(limit.ticks, "tick"), limit.from)
}
