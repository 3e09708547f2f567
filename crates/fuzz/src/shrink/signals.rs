//! Signals of a scenario with a later start: ramps and waves continue from their value at that
//! time.

use std::f64::consts::TAU;

use serde_json::{Map, Value, json};

use super::durations::span;
use kube_autoscaler_models::quantity::{Format, Quantity};
use kube_autoscaler_models::time::Span;

/// Removes the earlier part of a ramp, so that its first point is the value at the start.
pub(super) fn cut_points(points: &mut Vec<Value>, by: Span) {
    let at = |point: &Value| span("at", &point["at"]);
    let before = points.iter().take_while(|point| at(point).is_some_and(|at| at <= by)).count();
    let Some(last) = before.checked_sub(1) else { return };
    if let (Some(one), Some(other)) = (points.get(last), points.get(before))
        && let (Some(from), Some(to)) = (at(one), at(other))
        && let (Some(start), Some(end)) = (milli(&one["value"]), milli(&other["value"]))
    {
        let part = (by.0 - from.0) as f64 / (to.0 - from.0).max(1) as f64;
        let value = start + (end - start) * part;
        points[last] = json!({ "at": by.to_string(), "value": text(value) });
    }
    points.drain(..last);
}

/// Shifts a wave to its phase at the start.
pub(super) fn shift_sine(sine: &mut Map<String, Value>, by: Span) {
    let Some(period) = sine.get("period").and_then(|period| span("period", period)) else { return };
    let offset = sine.get("offset").and_then(|offset| span("offset", offset)).unwrap_or(Span::ZERO);
    let offset = Span((offset.0 - by.0).rem_euclid(period.0.max(1)));
    if offset == Span::ZERO {
        sine.shift_remove("offset");
    } else {
        sine.insert("offset".to_owned(), json!(offset.to_string()));
    }
}

/// The value of a wave at the start.
pub(super) fn sine_at_the_start(sine: &Value) -> Option<Value> {
    let (mean, amplitude) = (milli(&sine["mean"])?, milli(&sine["amplitude"])?);
    let period = span("period", &sine["period"])?;
    let offset = span("offset", &sine["offset"]).unwrap_or(Span::ZERO);
    let turns = -offset.0 as f64 / period.0.max(1) as f64;
    Some(text(mean + amplitude * (TAU * turns).sin()).into())
}

fn milli(value: &Value) -> Option<f64> {
    Some(Quantity::parse(value.as_str()?).ok()?.milli() as f64)
}

fn text(milli: f64) -> String {
    Quantity::from_milli(milli.round() as i64, Format::DecimalSI).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ramp_continues_from_its_value() {
        let points = json!([
            { "at": "0s", "value": "9" }, { "at": "10s", "value": "1" },
            { "at": "30s", "value": "3" },
        ]);
        let cut = |by: i64| {
            let mut points = points.as_array().cloned().unwrap_or_default();
            cut_points(&mut points, Span::from_secs(by));
            Value::from(points)
        };
        let rest = json!([{ "at": "15s", "value": "1500m" }, { "at": "30s", "value": "3" }]);
        assert_eq!(cut(15), rest);
        assert_eq!(cut(40), json!([{ "at": "30s", "value": "3" }]));
        assert_eq!(cut(0), points);
    }

    #[test]
    fn a_wave_continues_from_its_phase() {
        let mut sine = json!({ "mean": "2", "amplitude": "1", "period": "40s", "offset": "10s" });
        assert_eq!(sine_at_the_start(&sine), Some(json!("1")));
        shift_sine(sine.as_object_mut().expect("a map"), Span::from_secs(10));
        assert_eq!(sine, json!({ "mean": "2", "amplitude": "1", "period": "40s" }));
        assert_eq!(sine_at_the_start(&sine), Some(json!("2")));
        shift_sine(sine.as_object_mut().expect("a map"), Span::from_secs(30));
        assert_eq!(sine_at_the_start(&sine), Some(json!("1")));
    }
}
