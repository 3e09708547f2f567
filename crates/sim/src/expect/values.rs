//! Compares the values of a reconcile with an expectation.

use std::fmt::{self, Display};

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::amount::{Amount, List, MetricAmounts, Quoted};
use super::tick::Tick;
use super::unmet::{Miss, UnmetValue};
use super::when::ExpectedTick;
use kube_autoscaler_models::api::{ConditionStatus, HpaCondition, MetricStatus, MetricValueStatus};
use kube_autoscaler_models::observation::{Event, Observation};
use kube_lockstep_scenario::resolved::{
    Bounds, Expectation, ExpectedCondition, ExpectedEvent, ExpectedMetric,
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
            let seen = List(errors.map(|error| Quoted(error.as_str())).collect());
            wrong.add_value(UnmetValue::new("error", &Quoted(part), &seen));
        }
    }
    (!wrong.is_empty()).then_some(wrong)
}

/// The values that are not as expected.
#[derive(Default)]
pub(super) struct Wrong {
    texts: Vec<String>,
    values: Vec<UnmetValue>,
}

impl Wrong {
    /// Values that are only text. None: there is none.
    pub(super) fn from_texts(texts: Vec<String>) -> Option<Wrong> {
        (!texts.is_empty()).then(|| Wrong { texts, values: Vec::new() })
    }

    /// The text, in which the values are separated by semicolons.
    pub(super) fn text(&self) -> String {
        self.texts.join("; ")
    }

    /// The miss at a reconcile. `text` gives the whole message.
    pub(super) fn at(self, tick: &impl ExpectedTick, text: impl FnOnce(&str) -> String) -> Miss {
        Miss { what: text(&self.text()), tick: Some(tick.name()), values: self.values }
    }

    /// Adds a value that the status does not have. `all`: the names that it has.
    fn missing(&mut self, field: &str, expected: String, all: String, value: Value) {
        self.texts.push(format!("{field}: missing; the status has {all}"));
        self.values.push(UnmetValue::text(field, expected, all).with_values(value, Value::Null));
    }

    /// Adds a value with its form for programs.
    pub(super) fn add_value(&mut self, value: UnmetValue) {
        let UnmetValue { field, expected, observed, .. } = &value;
        self.texts.push(format!("{field}: expected {expected}, was {observed}"));
        self.values.push(value);
    }

    /// Returns true if all values are as expected.
    pub(super) fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    fn number(&mut self, field: &str, range: Bounds<i32>, seen: Option<i32>) {
        if seen.is_some_and(|seen| range.contains(&seen)) {
            return;
        }
        self.add_value(UnmetValue::new(field, &Amount::Numbers(range), &Amount::Number(seen)));
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
        let container = expected.container.as_deref();
        let mut named = metrics.iter().filter_map(|it| value_of(it, &expected.name, container));
        let of = container.map(|of| format!(" of container {of}"));
        let field = format!("metric {}{}", expected.name, of.unwrap_or_default());
        let amounts = MetricAmounts::expected(expected);
        let Some(first) = named.next() else {
            let all = List(metrics.iter().collect()).to_string();
            return self.missing(&field, amounts.to_string(), all, json!(amounts));
        };
        if !agrees(expected, first) && !named.any(|value| agrees(expected, value)) {
            let seen = MetricAmounts::observed(expected, first);
            self.add_value(UnmetValue::new(&field, &amounts, &seen));
        }
    }

    fn condition(&mut self, expected: &ExpectedCondition, conditions: &[HpaCondition]) {
        let type_ = &expected.type_;
        let field = format!("condition {type_}");
        let has_type = |condition: &&HpaCondition| format!("{:?}", condition.type_) == *type_;
        let Some(seen) = conditions.iter().find(has_type) else {
            let types = conditions.iter().map(|condition| format!("{:?}", condition.type_));
            let types = List(types.collect()).to_string();
            let ExpectedCondition { status, reason, message, .. } = expected;
            let value = condition_value(status.map(truth), reason.as_deref(), message.as_deref());
            return self.missing(&field, "a condition".to_owned(), types, value);
        };
        let (reason, message) = (seen.reason.as_str(), seen.message.as_str());
        let observed = condition_value(Some(truth(seen.status)), Some(reason), Some(message));
        let mut add = |expected: String, was: String, value: Value| {
            let value =
                UnmetValue::text(&field, expected, was).with_values(value, observed.clone());
            self.add_value(value);
        };
        if let Some(status) = expected.status.filter(|status| *status != seen.status) {
            let was = format!("{} ({reason})", truth(seen.status));
            let value = condition_value(Some(truth(status)), None, None);
            add(truth(status).to_owned(), was, value);
        }
        if let Some(expected) = expected.reason.as_deref().filter(|expected| *expected != reason) {
            let value = condition_value(None, Some(expected), None);
            add(format!("reason {expected}"), reason.to_owned(), value);
        }
        if let Some(part) = expected.message.as_deref().filter(|part| !message.contains(*part)) {
            let value = condition_value(None, None, Some(part));
            add(format!("message {}", Quoted(part)), Quoted(message).to_string(), value);
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
        let seen = tick.events().map(|it| EventValue {
            reason: it.reason.as_str(),
            message: Some(it.message.as_str()),
        });
        let seen = List(seen.collect());
        self.add_value(UnmetValue::new("event", &EventValue::expected(expected), &seen));
    }
}

/// An event: `SuccessfulRescale "New size: 4"`.
#[derive(Serialize)]
struct EventValue<'a> {
    reason: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a str>,
}

impl EventValue<'_> {
    fn expected(event: &ExpectedEvent) -> EventValue<'_> {
        EventValue { reason: &event.reason, message: event.message.as_deref() }
    }
}

impl Display for EventValue<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.reason)?;
        self.message.map_or(Ok(()), |message| write!(f, " {}", Quoted(message)))
    }
}

/// A condition for programs, with the fields that are given.
fn condition_value(status: Option<&str>, reason: Option<&str>, message: Option<&str>) -> Value {
    let fields = [("status", status), ("reason", reason), ("message", message)].into_iter();
    let given = fields.filter_map(|(name, value)| Some((name.to_owned(), json!(value?))));
    given.collect::<Map<String, Value>>().into()
}

/// The value of a metric of the status, if it has this name, and this container or none.
fn value_of<'m>(
    metric: &'m MetricStatus,
    name: &str,
    container: Option<&str>,
) -> Option<&'m MetricValueStatus> {
    let (its_name, its_container, current) = match metric {
        MetricStatus::Empty {} => return None,
        MetricStatus::Resource { resource: of } => (&of.name, None, &of.current),
        MetricStatus::ContainerResource { container_resource: of } => {
            (&of.name, Some(&*of.container), &of.current)
        }
        MetricStatus::Pods { pods: of } => (&of.metric.name, None, &of.current),
        MetricStatus::Object { object: of } => (&of.metric.name, None, &of.current),
        MetricStatus::External { external: of } => (&of.metric.name, None, &of.current),
    };
    (&**its_name == name && its_container == container).then_some(current)
}

/// Returns true if the status has all the expected values.
fn agrees(expected: &ExpectedMetric, current: &MetricValueStatus) -> bool {
    fn within<T: Ord>(range: Option<&Bounds<T>>, seen: Option<&T>) -> bool {
        range.is_none_or(|range| seen.is_some_and(|seen| range.contains(seen)))
    }
    within(expected.utilization.as_ref(), current.average_utilization.as_ref())
        && within(expected.average_value.as_ref(), current.average_value.as_ref())
        && within(expected.value.as_ref(), current.value.as_ref())
}

/// The text of the unmet part of an expectation.
pub(super) fn describe(expected: &Expectation) -> String {
    let mut parts = Vec::new();
    for (field, range) in [
        ("replicas", expected.replicas),
        ("desiredReplicas", expected.desired_replicas),
        ("currentReplicas", expected.current_replicas),
    ] {
        parts.extend(range.map(|range| format!("{field} {}", Amount::Numbers(range))));
    }
    for metric in &expected.metrics {
        parts.push(format!("metric {} {}", metric.name, MetricAmounts::expected(metric)));
    }
    for condition in &expected.conditions {
        let mut part = format!("condition {}", condition.type_);
        part.extend(condition.status.map(|status| format!(" {}", truth(status))));
        part.extend(condition.reason.as_ref().map(|reason| format!(" {reason}")));
        part.extend(condition.message.as_ref().map(|message| format!(" {}", Quoted(message))));
        parts.push(part);
    }
    for event in &expected.events {
        parts.push(format!("event {}", EventValue::expected(event)));
    }
    parts.extend(expected.rescaled.map(|rescaled| {
        if rescaled {
            "a change of replicas".to_owned()
        } else {
            "no change of replicas".to_owned()
        }
    }));
    parts.extend(expected.error.as_ref().map(|error| format!("error {}", Quoted(error))));
    parts.join(" with ")
}

fn truth(status: bool) -> &'static str {
    ConditionStatus::from(status).name()
}
