//! Trees, paths in them, and their simplicity.

use std::ops::Range;

use serde_json::{Map, Value};

use super::durations::span;
use super::signals;
use kube_autoscaler_models::flags::Flags;
use kube_autoscaler_models::quantity::{Format, Quantity};
use kube_autoscaler_models::time::{Span, Time};
use kube_autoscaler_models::vpa::RecommenderFlags;

/// A path in a tree.
pub(super) type Path = Vec<Step>;

/// One step of a path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Step {
    Field(String),
    Entry(usize),
}

/// What counts most when two scenarios are compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Priority {
    /// Few ticks: a user reads each of them.
    Ticks,
    /// Few parts, such as steps of a load and events.
    Parts,
}

/// The complexity of a tree: ticks or parts, then older versions, parts or ticks, the end, digits,
/// amounts and lengths of texts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Measure {
    first: u64,
    older: usize,
    second: u64,
    until: i64,
    digits: usize,
    sum: u128,
    text: usize,
}

/// The complexity of the tree of a scenario, or of a part of one.
#[must_use]
pub fn measure(tree: &Value, priority: Priority) -> Measure {
    let until = span("until", &tree["until"]).map_or(0, |span| span.0);
    let ticks = u64::try_from(until / tick_interval(tree).0).unwrap_or(0);
    let mut found = Parts::default();
    add("", tree, &mut found);
    let Parts { parts, older, text, digits, sum } = found;
    let (first, second) = match priority {
        Priority::Ticks => (ticks, parts),
        Priority::Parts => (parts, ticks),
    };
    Measure { first, older, second, until, digits, sum, text }
}

/// The complexity of the values of a tree.
#[derive(Default)]
struct Parts {
    parts: u64,
    older: usize,
    text: usize,
    digits: usize,
    sum: u128,
}

fn add(name: &str, value: &Value, to: &mut Parts) {
    to.parts += 1;
    match value {
        Value::Object(fields) => fields.iter().for_each(|(name, value)| add(name, value, to)),
        Value::Array(entries) => entries.iter().for_each(|value| add(name, value, to)),
        Value::String(text) => {
            to.older += usize::from(text == "autoscaling/v1");
            to.text += text.len();
            let size = match (span(name, value), amount(text)) {
                (Some(span), _) => u128::from(span.0.unsigned_abs()),
                (None, Some(milli)) => {
                    to.digits += digits(milli);
                    u128::from(milli.unsigned_abs())
                }
                _ => 0,
            };
            to.sum = to.sum.saturating_add(size);
        }
        Value::Number(number) => {
            to.text += number.to_string().len();
            let size = number.as_f64().map_or(0, |number| (number.abs() * 1000.0) as u128);
            to.sum = to.sum.saturating_add(size);
        }
        Value::Bool(_) | Value::Null => {}
    }
}

/// A quantity or a percentage, in thousandths.
fn amount(text: &str) -> Option<i64> {
    match percentage(text) {
        Some(percent) => percent.checked_mul(1000),
        None => Quantity::parse(text).ok().map(|quantity| quantity.milli()),
    }
}

/// The number before a percent sign.
fn percentage(text: &str) -> Option<i64> {
    text.strip_suffix('%')?.parse().ok().filter(|percent| *percent >= 0)
}

/// The digits of a number without the zeros at its end: round numbers have few. A 5 at the end
/// counts half.
fn digits(number: i64) -> usize {
    let digits = number.unsigned_abs().to_string();
    let digits = digits.trim_end_matches('0');
    (2 * digits.len()).saturating_sub(usize::from(digits.len() > 1 && digits.ends_with('5')))
}

/// Returns true if the scenario has an HPA. A tree without any autoscaler is a part of
/// a scenario with an HPA.
pub(super) fn has_hpa(tree: &Value) -> bool {
    ["hpa", "hpas"].iter().any(|name| tree.get(name).is_some()) || tree.get("vpa").is_none()
}

/// The time between two ticks: of the HPA controller, or of a recommender without an HPA.
pub(super) fn tick_interval(tree: &Value) -> Span {
    let (component, flag, default) = if has_hpa(tree) {
        let default = Flags::default().sync_period;
        ("controller", "horizontal-pod-autoscaler-sync-period", default)
    } else {
        let default = RecommenderFlags::default().recommender_interval;
        ("recommender", "recommender-interval", default)
    };
    let interval = span(flag, &tree[component]["flags"][flag]).unwrap_or(default);
    Span(interval.0.max(1))
}

pub(super) fn at<'v>(tree: &'v Value, path: &[Step]) -> Option<&'v Value> {
    path.iter().try_fold(tree, |value, step| match step {
        Step::Field(name) => value.get(name),
        Step::Entry(index) => value.get(index),
    })
}

pub(super) fn at_mut<'v>(tree: &'v mut Value, path: &[Step]) -> Option<&'v mut Value> {
    path.iter().try_fold(tree, |value, step| match step {
        Step::Field(name) => value.get_mut(name),
        Step::Entry(index) => value.get_mut(index),
    })
}

/// All paths of a tree, outer paths first.
pub(super) fn paths(tree: &Value) -> Vec<Path> {
    let mut found: Vec<Path> = vec![Vec::new()];
    let mut next = 0;
    while next < found.len() {
        let path = found[next].clone();
        let below = |step: Step| [path.as_slice(), &[step]].concat();
        match at(tree, &path) {
            Some(Value::Object(fields)) => {
                found.extend(fields.keys().map(|name| below(Step::Field(name.clone()))));
            }
            Some(Value::Array(entries)) => {
                found.extend((0..entries.len()).map(|index| below(Step::Entry(index))));
            }
            _ => {}
        }
        next += 1;
    }
    found
}

pub(super) fn lists(tree: &Value) -> Vec<Path> {
    let is_list = |path: &Path| at(tree, path).is_some_and(Value::is_array);
    paths(tree).into_iter().filter(is_list).collect()
}

/// All fields, each with the path of its map.
pub(super) fn fields(tree: &Value) -> Vec<(Path, String)> {
    let field = |mut path: Path| match path.pop() {
        Some(Step::Field(name)) => Some((path, name)),
        _ => None,
    };
    paths(tree).into_iter().filter_map(field).collect()
}

pub(super) fn length(tree: &Value, path: &[Step]) -> Option<usize> {
    at(tree, path)?.as_array().map(Vec::len)
}

pub(super) fn drain(list: &mut Value, range: Range<usize>) {
    if let Value::Array(entries) = list
        && range.end <= entries.len()
    {
        entries.drain(range);
    }
}

pub(super) fn remove(map: &mut Value, name: &str) {
    if let Value::Object(fields) = map {
        fields.shift_remove(name);
    }
}

/// The tree with an earlier end, and without later actions.
pub(super) fn until(tree: &Value, end: Time) -> Value {
    let mut tree = tree.clone();
    retain_events(&mut tree, |at| at <= end);
    tree["until"] = Value::from(end.to_string());
    tree
}

/// Removes actions at other times.
fn retain_events(tree: &mut Value, keep: impl Fn(Time) -> bool) {
    if let Some(Value::Array(entries)) = tree.get_mut("timeline") {
        entries.retain(|entry| {
            let at = span("at", &entry["at"]).unwrap_or(Span::ZERO);
            keep(Time::ZERO + at)
        });
    }
}

/// Moves the end, actions and signals to an earlier time, but not before the start.
pub(super) fn move_earlier(tree: &mut Value, by: Span) {
    match tree {
        Value::Object(fields) => {
            for (name, value) in fields.iter_mut() {
                match (name.as_str(), &mut *value) {
                    ("points", Value::Array(points)) => signals::cut_points(points, by),
                    ("sine", Value::Object(sine)) => signals::shift_sine(sine, by),
                    _ => {}
                }
                match span(name, value) {
                    Some(time) if name == "at" || name == "until" => {
                        *value = Value::from(Span((time.0 - by.0).max(0)).to_string());
                    }
                    _ => move_earlier(value, by),
                }
            }
        }
        Value::Array(entries) => entries.iter_mut().for_each(|entry| move_earlier(entry, by)),
        _ => {}
    }
}

/// Keeps only the last value of a signal before the start.
pub(super) fn forget_the_past(tree: &mut Value) {
    match tree {
        Value::Object(fields) => {
            for (name, value) in fields.iter_mut() {
                if let (true, Value::Array(entries)) =
                    (name == "steps" || name == "points", &mut *value)
                {
                    let is_past = |entry: &Value| span("at", &entry["at"]) == Some(Span::ZERO);
                    let past = entries.iter().take_while(|entry| is_past(entry)).count();
                    entries.drain(..past.saturating_sub(1));
                }
                forget_the_past(value);
            }
        }
        Value::Array(entries) => entries.iter_mut().for_each(forget_the_past),
        _ => {}
    }
}

/// Candidates for a value, the simplest first.
pub(super) fn candidates(value: &Value, path: &[Step]) -> Vec<Value> {
    let name = path.iter().rev().find_map(|step| match step {
        Step::Field(name) => Some(name.as_str()),
        Step::Entry(_) => None,
    });
    match value {
        Value::Object(fields) => signal(fields),
        Value::Number(number) => numbers(number.as_i64(), number.as_f64()),
        // Fixed texts and the requirement stay unchanged.
        Value::String(_) if matches!(name, Some("apiVersion" | "kind" | "requirement")) => {
            Vec::new()
        }
        Value::String(text) => match span(name.unwrap_or_default(), value) {
            Some(span) => spans(span),
            None => texts(text),
        },
        _ => Vec::new(),
    }
}

/// A signal can become one of its values; a load can become a value per pod.
fn signal(fields: &Map<String, Value>) -> Vec<Value> {
    let mut found = Vec::new();
    for name in ["steps", "points"] {
        let values = fields.get(name).and_then(Value::as_array);
        found.extend(values.into_iter().flatten().map(|entry| entry["value"].clone()));
    }
    let sine = fields.get("sine");
    found.extend(sine.and_then(signals::sine_at_the_start));
    found.extend(sine.map(|sine| sine["mean"].clone()));
    let total =
        fields.get("load").or_else(|| fields.get("containers")?.as_object()?.values().next());
    if let Some(total) = total {
        let mut instead = fields.clone();
        for name in ["load", "limit", "containers"] {
            instead.shift_remove(name);
        }
        instead.insert("perPod".to_owned(), total.clone());
        found.push(Value::Object(instead));
    }
    found
}

fn numbers(whole: Option<i64>, float: Option<f64>) -> Vec<Value> {
    match (whole, float) {
        (Some(number), _) => {
            let mut tries = vec![0, 1, 2, 10, 100, number / 10 * 10, number / 2, number - 1];
            tries.retain(|candidate| (0..number).contains(candidate));
            tries.into_iter().map(Value::from).collect()
        }
        (None, Some(number)) => {
            [0.0, 0.1, 0.5].into_iter().filter(|it| *it < number).map(Value::from).collect()
        }
        (None, None) => Vec::new(),
    }
}

fn spans(span: Span) -> Vec<Value> {
    let round = |unit: i64| span.0 / unit * unit;
    let second = 1_000_000_000;
    let mut tries = vec![0, second, 15 * second, 60 * second, span.0 / 2];
    tries.extend([60 * second, 15 * second, second, 1_000_000].map(round));
    tries.retain(|candidate| (0..span.0).contains(candidate));
    tries.into_iter().map(|nanos| Value::from(Span(nanos).to_string())).collect()
}

fn texts(text: &str) -> Vec<Value> {
    if let Some(percent) = percentage(text) {
        let mut tries = vec![0, 100, 50, 10, 200, 1000, percent / 2];
        tries.extend([100, 10, 5].iter().flat_map(|unit| around(percent, *unit)));
        tries.push(percent / 10 * 10 - 10);
        tries.retain(|candidate| *candidate >= 0 && *candidate != percent);
        return tries.into_iter().map(|percent| format!("{percent}%").into()).collect();
    }
    if let Ok(quantity) = Quantity::parse(text) {
        let milli = quantity.milli();
        let mut tries =
            vec![0, 1000, 100, 500, milli / 1000 * 1000, milli / 100 * 100, milli / 2, milli];
        tries.extend([1000, 100, 50, 10, 5].iter().flat_map(|unit| around(milli, *unit)));
        tries.retain(|candidate| *candidate >= 0);
        let mut tries: Vec<String> = tries
            .into_iter()
            .map(|milli| Quantity::from_milli(milli, Format::DecimalSI).to_string())
            .filter(|candidate| candidate != text)
            .collect();
        tries.dedup();
        return tries.into_iter().map(Value::from).collect();
    }
    // The text may be a set of pods.
    if text.starts_with(|c: char| c.is_ascii_digit()) {
        return vec![Value::from("0"), Value::from("all")];
    }
    Vec::new()
}

/// The multiples of a unit below and above a number.
fn around(number: i64, unit: i64) -> [i64; 2] {
    let below = number / unit * unit;
    [below, below.saturating_add(unit)]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_simpler_candidates_are_accepted() {
        for (name, value, some) in [
            ("replicas", json!(7), json!(3)),
            ("at", json!("1m30.5s"), json!("1m")),
            ("value", json!("1m"), json!("0")),
            ("value", json!("123456n"), json!("1m")),
            ("perPod", json!({ "steps": [{ "at": "0s", "value": "3" }] }), json!("3")),
            ("perPod", json!("60000%"), json!("100%")),
            ("perPod", json!("91%"), json!("95%")),
            ("perPod", json!("479m"), json!("480m")),
            ("podsUnready", json!("3-5"), json!("all")),
        ] {
            let candidates = candidates(&value, &[Step::Field(name.to_owned())]);
            assert!(candidates.contains(&some), "{value}: {candidates:?}");
        }
    }

    #[test]
    fn only_the_last_value_of_a_past_signal_is_kept() {
        let mut tree = json!({ "perPod": { "steps": [
            { "at": "10s", "value": "1" }, { "at": "20s", "value": "2" },
            { "at": "40s", "value": "3" },
        ] } });
        move_earlier(&mut tree, Span::from_secs(30));
        forget_the_past(&mut tree);
        let left = json!([{ "at": "0s", "value": "2" }, { "at": "10s", "value": "3" }]);
        assert_eq!(tree["perPod"]["steps"], left);
    }

    #[test]
    fn times_move_and_other_durations_stay() {
        let mut tree = json!({
            "until": "2m",
            "timeline": [{ "at": "1m", "for": "50s" }, { "at": "10s" }],
        });
        move_earlier(&mut tree, Span::from_secs(30));
        let moved = json!({
            "until": "1m30s",
            "timeline": [{ "at": "30s", "for": "50s" }, { "at": "0s" }],
        });
        assert_eq!(tree, moved);
    }

    #[test]
    fn fewer_ticks_count_more_than_fewer_parts_and_parts_more_than_numbers() {
        let by = |until: &str, a: Value, priority: Priority| {
            measure(&json!({ "until": until, "hpa": {}, "a": a }), priority)
        };
        let of = |until: &str, a: Value| by(until, a, Priority::Ticks);
        let more = of("10s", json!([1]));
        assert!(of("14s", json!(5000)) < more);
        assert!(of("20s", json!(5000)) > more);
        assert!(of("10s", json!("autoscaling/v1")) > more);
        assert!(of("10s", json!(1)) < of("11s", json!(1)));
        let parts = |until: &str, a: Value| by(until, a, Priority::Parts);
        assert!(parts("20s", json!(5000)) < parts("10s", json!([1])));
        assert!(parts("20s", json!(1)) > parts("10s", json!(1)));
        let recommender = json!({ "flags": { "recommender-interval": "5m" } });
        let alone = json!({ "until": "20m", "vpa": {}, "recommender": recommender });
        assert_eq!(measure(&alone, Priority::Ticks).first, 4);
    }

    #[test]
    fn round_numbers_are_simpler() {
        let of = |text: &str| measure(&json!({ "until": "1m", "a": text }), Priority::Ticks);
        for (round, other) in
            [("480m", "479m"), ("95%", "91%"), ("90%", "85%"), ("50%", "60%"), ("100%", "60000%")]
        {
            assert!(of(round) < of(other), "{round} {other}");
        }
    }
}
