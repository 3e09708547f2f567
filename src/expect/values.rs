//! Compares the values of a reconcile with an expectation.

use std::fmt::{self, Display};

use serde_json::{Map, Value, json};

use super::tick::Tick;
use super::unmet::{Miss, UnmetValue};
use crate::model::api::{ConditionStatus, HpaCondition, MetricStatus, MetricValueStatus};
use crate::model::observation::{Event, Observation};
use crate::model::quantity::Quantity;
use crate::scenario::resolved::{
    Expectation, ExpectedCondition, ExpectedEvent, ExpectedMetric, NumberRange, PercentRange,
    QuantityRange,
};

/// The values of a reconcile that are not as expected. None: all are.
pub(super) fn wrong_at(tick: &Tick<'_>, expected: &Expectation) -> Option<Wrong> {
    let mut wrong = Wrong::default();
    if let Some(range) = expected.replicas {
        wrong.number("replicas", range, Some(tick.replicas));
    }
    if let Some(range) = expected.desired_replicas {
        wrong.number("desiredReplicas", range, tick.status.map(|status| status.desired_replicas));
    }
    if let Some(range) = expected.current_replicas {
        let current = tick.status.and_then(|status| status.current_replicas);
        wrong.number("currentReplicas", range, current);
    }
    let metrics = tick.status.map_or(&[][..], |status| &status.current_metrics);
    for metric in &expected.metrics {
        wrong.metric(metric, metrics);
    }
    let conditions = tick.status.map_or(&[][..], |status| &status.conditions);
    for condition in &expected.conditions {
        wrong.condition(condition, conditions);
    }
    for event in &expected.events {
        wrong.event(event, tick.observation);
    }
    if let Some(rescaled) = expected.rescaled
        && rescaled != tick.rescaled
    {
        wrong.rescaled(rescaled, tick);
    }
    if let Some(part) = &expected.error {
        let errors = tick.observation.errors();
        if !errors.clone().any(|error| error.as_str().contains(part.as_str())) {
            let seen: Vec<&str> = errors.map(|error| error.as_str()).collect();
            let text = list(seen.iter().map(|error| quoted(error)));
            let value = UnmetValue::text("error", quoted(part), text);
            wrong.add_value(value.with_values(json!(part), json!(seen)));
        }
    }
    (!wrong.texts.is_empty()).then_some(wrong)
}

/// The values that are not as expected.
#[derive(Default)]
pub(super) struct Wrong {
    texts: Vec<String>,
    values: Vec<UnmetValue>,
}

impl Wrong {
    /// The text, in which the values are separated by semicolons.
    pub(super) fn text(&self) -> String {
        self.texts.join("; ")
    }

    /// The miss at a reconcile. `text` gives the whole message.
    pub(super) fn at(self, tick: &Tick<'_>, text: impl FnOnce(&str) -> String) -> Miss {
        Miss { what: text(&self.text()), tick: Some(tick.name()), values: self.values }
    }

    /// Adds a value that the status does not have. `all`: the names that it has.
    fn missing(&mut self, field: &str, expected: String, all: String, value: Value) {
        self.texts.push(format!("{field}: missing; the status has {all}"));
        self.values.push(UnmetValue::text(field, expected, all).with_values(value, Value::Null));
    }

    /// Adds a value with its form for programs.
    fn add_value(&mut self, value: UnmetValue) {
        let UnmetValue { field, expected, observed, .. } = &value;
        self.texts.push(format!("{field}: expected {expected}, was {observed}"));
        self.values.push(value);
    }

    fn number(&mut self, field: &str, range: NumberRange, seen: Option<i32>) {
        if seen.is_some_and(|seen| range.min <= seen && seen <= range.max) {
            return;
        }
        let text = seen.map_or_else(|| "not set".to_owned(), |seen| seen.to_string());
        let value = UnmetValue::text(field, Range(range).to_string(), text);
        self.add_value(value.with_values(bounds(range), json!(seen)));
    }

    fn rescaled(&mut self, expected: bool, tick: &Tick<'_>) {
        let (before, after) = (tick.before, tick.replicas);
        let text = match expected {
            true => format!("rescaled: expected a change of replicas, stayed at {after}"),
            false => format!("rescaled: expected no change of replicas, was {before} -> {after}"),
        };
        let observed = format!("{before} -> {after}");
        let value = UnmetValue::text("rescaled", expected.to_string(), observed);
        self.texts.push(text);
        self.values.push(value.with_values(json!(expected), json!(tick.rescaled)));
    }

    /// A metric of the status: one of this name has all the expected values.
    fn metric(&mut self, expected: &ExpectedMetric, metrics: &[MetricStatus]) {
        let same = |metric: &&MetricStatus| {
            let (name, container) = name_of(metric);
            name == &*expected.name && container == expected.container.as_deref()
        };
        let named: Vec<&MetricStatus> = metrics.iter().filter(same).collect();
        let of = expected.container.as_ref().map(|of| format!(" of container {of}"));
        let field = format!("metric {}{}", expected.name, of.unwrap_or_default());
        let Some(first) = named.first() else {
            let all = list(metrics.iter().map(ToString::to_string));
            let values = expected_numbers(expected);
            return self.missing(&field, MetricValues(expected).to_string(), all, values);
        };
        if named.iter().any(|metric| current(metric).is_some_and(|it| agrees(expected, it))) {
            return;
        }
        let seen = current(first);
        let text = seen.map(|current| seen_values(expected, current)).unwrap_or_default();
        let value = UnmetValue::text(&field, MetricValues(expected).to_string(), text);
        let observed = seen.map_or(Value::Null, |current| seen_numbers(expected, current));
        self.add_value(value.with_values(expected_numbers(expected), observed));
    }

    fn condition(&mut self, expected: &ExpectedCondition, conditions: &[HpaCondition]) {
        let type_ = &expected.type_;
        let field = format!("condition {type_}");
        let of_type = |condition: &&HpaCondition| format!("{:?}", condition.type_) == *type_;
        let Some(seen) = conditions.iter().find(of_type) else {
            let types = list(conditions.iter().map(|condition| format!("{:?}", condition.type_)));
            let ExpectedCondition { status, reason, message, .. } = expected;
            let value = condition_value(status.map(truth), reason.as_deref(), message.as_deref());
            return self.missing(&field, "a condition".to_owned(), types, value);
        };
        let (reason, message) = (seen.reason.as_str(), seen.message.as_str());
        let observed = condition_value(Some(truth(seen.status)), Some(reason), Some(message));
        let mut add = |wanted: String, was: String, value: Value| {
            let value = UnmetValue::text(&field, wanted, was).with_values(value, observed.clone());
            self.add_value(value);
        };
        if let Some(status) = expected.status.filter(|status| *status != seen.status) {
            let was = format!("{} ({reason})", truth(seen.status));
            let value = condition_value(Some(truth(status)), None, None);
            add(truth(status).to_owned(), was, value);
        }
        if let Some(wanted) = expected.reason.as_deref().filter(|wanted| *wanted != reason) {
            let value = condition_value(None, Some(wanted), None);
            add(format!("reason {wanted}"), reason.to_owned(), value);
        }
        if let Some(part) = expected.message.as_deref().filter(|part| !message.contains(*part)) {
            let value = condition_value(None, None, Some(part));
            add(format!("message {}", quoted(part)), quoted(message), value);
        }
    }

    fn event(&mut self, expected: &ExpectedEvent, tick: &Observation) {
        let matches = |event: &Event| {
            let part = expected.message.as_deref().unwrap_or_default();
            event.reason.as_str() == expected.reason && event.message.as_str().contains(part)
        };
        if tick.events().any(matches) {
            return;
        }
        let text = |reason: &str, message: Option<&str>| match message {
            Some(message) => format!("{reason} {}", quoted(message)),
            None => reason.to_owned(),
        };
        let wanted = text(&expected.reason, expected.message.as_deref());
        let seen = || tick.events().map(|it| (it.reason.as_str(), it.message.as_str()));
        let texts = list(seen().map(|(reason, message)| text(reason, Some(message))));
        let seen = seen().map(|(reason, message)| json!({"reason": reason, "message": message}));
        let value = UnmetValue::text("event", wanted, texts);
        self.add_value(value.with_values(json!(expected), seen.collect()));
    }
}

/// A condition for programs, with the fields that are given.
fn condition_value(status: Option<&str>, reason: Option<&str>, message: Option<&str>) -> Value {
    let fields = [("status", status), ("reason", reason), ("message", message)].into_iter();
    let given = fields.filter_map(|(name, value)| Some((name.to_owned(), json!(value?))));
    given.collect::<Map<String, Value>>().into()
}

/// The name of a metric of the status, and its container if it has one.
fn name_of(metric: &MetricStatus) -> (&str, Option<&str>) {
    match metric {
        MetricStatus::Empty {} => ("", None),
        MetricStatus::Resource { resource } => (&resource.name, None),
        MetricStatus::ContainerResource { container_resource: of } => {
            (&of.name, Some(&of.container))
        }
        MetricStatus::Pods { pods } => (&pods.metric.name, None),
        MetricStatus::Object { object } => (&object.metric.name, None),
        MetricStatus::External { external } => (&external.metric.name, None),
    }
}

/// The value of a metric of the status.
fn current(metric: &MetricStatus) -> Option<&MetricValueStatus> {
    match metric {
        MetricStatus::Empty {} => None,
        MetricStatus::Resource { resource } => Some(&resource.current),
        MetricStatus::ContainerResource { container_resource } => Some(&container_resource.current),
        MetricStatus::Pods { pods } => Some(&pods.current),
        MetricStatus::Object { object } => Some(&object.current),
        MetricStatus::External { external } => Some(&external.current),
    }
}

/// Returns true if the status has all the expected values.
fn agrees(expected: &ExpectedMetric, current: &MetricValueStatus) -> bool {
    let within = |range: &Option<QuantityRange>, seen: &Option<Quantity>| {
        range.as_ref().is_none_or(|range| seen.as_ref().is_some_and(|seen| range.contains(seen)))
    };
    let utilization = |range: PercentRange| {
        current.average_utilization.is_some_and(|seen| (range.min..=range.max).contains(&seen))
    };
    expected.utilization.is_none_or(utilization)
        && within(&expected.average_value, &current.average_value)
        && within(&expected.value, &current.value)
}

/// The values of the status in the fields that are expected.
fn seen_values(expected: &ExpectedMetric, current: &MetricValueStatus) -> String {
    let not_set = || "not set".to_owned();
    let quantity =
        |seen: &Option<Quantity>| seen.as_ref().map_or_else(not_set, Quantity::to_string);
    let mut parts = Vec::new();
    parts.extend(expected.utilization.map(|_| {
        let seen = current.average_utilization.map(|seen| format!("{seen}%"));
        format!("utilization {}", seen.unwrap_or_else(not_set))
    }));
    let average = expected.average_value.as_ref();
    parts.extend(average.map(|_| format!("averageValue {}", quantity(&current.average_value))));
    let value = expected.value.as_ref();
    parts.extend(value.map(|_| format!("value {}", quantity(&current.value))));
    parts.join(" and ")
}

/// [`seen_values`] for programs, by field: percentages as numbers, quantities as text.
fn seen_numbers(expected: &ExpectedMetric, current: &MetricValueStatus) -> Value {
    let mut fields = Map::new();
    let text = |seen: &Option<Quantity>| json!(seen.as_ref().map(Quantity::to_string));
    if expected.utilization.is_some() {
        fields.insert("utilization".to_owned(), json!(current.average_utilization));
    }
    if expected.average_value.is_some() {
        fields.insert("averageValue".to_owned(), text(&current.average_value));
    }
    if expected.value.is_some() {
        fields.insert("value".to_owned(), text(&current.value));
    }
    fields.into()
}

/// The expected values of a metric for programs, in the form of [`seen_numbers`].
fn expected_numbers(expected: &ExpectedMetric) -> Value {
    let ExpectedMetric { utilization, average_value, value, .. } = expected;
    let quantities = |range: &QuantityRange| match range.only() {
        Some(only) => json!(only.to_string()),
        None => {
            let text = |bound: &Option<Quantity>| Some(json!(bound.as_ref()?.to_string()));
            min_and_max(text(&range.min), text(&range.max))
        }
    };
    let percent = utilization.map(|PercentRange { min, max }| bounds(NumberRange { min, max }));
    let fields = [
        ("utilization", percent),
        ("averageValue", average_value.as_ref().map(quantities)),
        ("value", value.as_ref().map(quantities)),
    ];
    let given = fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    given.collect::<Map<String, Value>>().into()
}

/// Bounds for programs: a number if they are equal, otherwise `min` and `max`.
pub(super) fn bounds(range: NumberRange) -> Value {
    let NumberRange { min, max } = range;
    if min == max {
        return json!(min);
    }
    let bound = |value: i32, none: i32| (value != none).then(|| json!(value));
    min_and_max(bound(min, i32::MIN), bound(max, i32::MAX))
}

fn min_and_max(min: Option<Value>, max: Option<Value>) -> Value {
    let fields = [("min", min), ("max", max)].into_iter();
    let given = fields.filter_map(|(name, value)| Some((name.to_owned(), value?)));
    given.collect::<Map<String, Value>>().into()
}

/// Formats the expected values of a metric.
struct MetricValues<'a>(&'a ExpectedMetric);

impl Display for MetricValues<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ExpectedMetric { utilization, average_value, value, .. } = self.0;
        let percent = utilization.map(|PercentRange { min, max }| {
            let range = Range(NumberRange { min, max }).to_string();
            format!("utilization {range}%")
        });
        let average = average_value.as_ref().map(|range| format!("averageValue {}", Of(range)));
        let value = value.as_ref().map(|range| format!("value {}", Of(range)));
        let parts: Vec<String> = [percent, average, value].into_iter().flatten().collect();
        f.write_str(&parts.join(" and "))
    }
}

/// Formats bounds of a quantity.
struct Of<'a>(&'a QuantityRange);

impl Display for Of<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0.only(), &self.0.min, &self.0.max) {
            (Some(only), _, _) => write!(f, "{only}"),
            (None, Some(min), Some(max)) => write!(f, "{min} to {max}"),
            (None, Some(min), None) => write!(f, "at least {min}"),
            (None, None, Some(max)) => write!(f, "at most {max}"),
            (None, None, None) => f.write_str("any value"),
        }
    }
}

/// The text of the unmet part of an expectation.
pub(super) fn describe(expected: &Expectation) -> String {
    let mut parts = Vec::new();
    for (field, range) in [
        ("replicas", expected.replicas),
        ("desiredReplicas", expected.desired_replicas),
        ("currentReplicas", expected.current_replicas),
    ] {
        parts.extend(range.map(|range| format!("{field} {}", Range(range))));
    }
    for metric in &expected.metrics {
        parts.push(format!("metric {} {}", metric.name, MetricValues(metric)));
    }
    for condition in &expected.conditions {
        let mut part = format!("condition {}", condition.type_);
        part.extend(condition.status.map(|status| format!(" {}", truth(status))));
        part.extend(condition.reason.as_ref().map(|reason| format!(" {reason}")));
        part.extend(condition.message.as_ref().map(|message| format!(" {}", quoted(message))));
        parts.push(part);
    }
    for event in &expected.events {
        let message = event.message.as_ref().map(|message| format!(" {}", quoted(message)));
        parts.push(format!("event {}{}", event.reason, message.unwrap_or_default()));
    }
    parts.extend(expected.rescaled.map(|rescaled| {
        if rescaled {
            "a change of replicas".to_owned()
        } else {
            "no change of replicas".to_owned()
        }
    }));
    parts.extend(expected.error.as_ref().map(|error| format!("error {}", quoted(error))));
    parts.join(" with ")
}

/// Formats bounds.
pub(super) struct Range(pub(super) NumberRange);

impl Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            NumberRange { min, max } if min == max => write!(f, "{min}"),
            NumberRange { min: i32::MIN | 0, max } if max != i32::MAX => {
                write!(f, "at most {max}")
            }
            NumberRange { min, max: i32::MAX } => write!(f, "at least {min}"),
            NumberRange { min, max } => write!(f, "{min} to {max}"),
        }
    }
}

fn truth(status: bool) -> &'static str {
    ConditionStatus::from(status).name()
}

fn quoted(text: &str) -> String {
    format!("\"{text}\"")
}

fn list(items: impl Iterator<Item = String>) -> String {
    let items: Vec<String> = items.collect();
    if items.is_empty() { "none".to_owned() } else { items.join(", ") }
}
