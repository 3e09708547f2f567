//! Expectations on objects of any kind: at a time, or between two times.

use std::fmt::{self, Display};
use std::sync::Arc;

use serde_json::Value;

use super::properties;
use super::unmet::{Miss, Unmet, UnmetTick, UnmetValue};
use super::values::Wrong;
use super::when::{self, ExpectedTick};
use crate::objects::{ObjectState, ObjectStore};
use crate::trace::Trace;
use kube_autoscaler_models::observation::Observation;
use kube_autoscaler_models::rules::Release;
use kube_autoscaler_models::time::{Span, Time};
use kube_lockstep_scenario::Scenario;
use kube_lockstep_scenario::object::select;
use kube_lockstep_scenario::resolved::{Expectation, ExpectedValue, Since, When};

/// The longest value in a message.
const LONGEST: usize = 300;

/// Evaluates the expectations of a release on objects and on their writes, over a whole run.
#[must_use]
pub fn of_objects(
    expect: &[Expectation],
    release: Release,
    trace: &Trace,
    scenario: &Scenario,
) -> Vec<Unmet> {
    let applies = |it: &&(usize, &Expectation)| it.1.releases.contains(release);
    let applying = expect.iter().enumerate().filter(|it| applies(&it));
    let is_on_objects = |it: &Expectation| it.object.is_some() || it.is_on_writes();
    let mut on_objects = applying.filter(|(_, it)| is_on_objects(it)).peekable();
    if on_objects.peek().is_none() {
        return Vec::new();
    }
    let store = ObjectStore::new(trace, scenario.namespace.clone());
    let unmet = |(index, expected): (usize, &Expectation)| {
        let Miss { what, tick, values } = match expected.is_on_writes() {
            true => properties::miss(expected, trace, scenario)?,
            false => miss(expected, &store, &trace.ticks, scenario.until)?,
        };
        let (number, line) = (index + 1, expected.line);
        Some(Unmet { number, line, what, tick, values, ..Unmet::default() })
    };
    on_objects.filter_map(unmet).collect()
}

/// Why an expectation on an object is not met.
fn miss(
    expected: &Expectation,
    store: &ObjectStore<'_>,
    ticks: &[Observation],
    until: Time,
) -> Option<Miss> {
    let since = match expected.since {
        Since::Start => Span::ZERO,
        Since::FirstReconcile => ticks.first().map_or(Span::ZERO, |it| it.at.since_start()),
    };
    let when = match expected.when(until).later(since) {
        When::Tick(number) => match number.checked_sub(1).and_then(|index| ticks.get(index)) {
            Some(tick) => When::At(tick.at),
            None => {
                let what = format!(
                    "tick {number} never happened: the controller acted at {} times",
                    ticks.len()
                );
                return Some(Miss::plain(what));
            }
        },
        when => when,
    };
    let mut states = store.states(expected.object.as_ref()?);
    if let When::At(from)
    | When::Always(from, _)
    | When::Never(from, _)
    | When::Within { of: from, .. } = when
    {
        begin_at(&mut states, from);
    }
    let moments: Vec<Moment<'_>> = states
        .into_iter()
        .map(|ObjectState { at, object }| Moment {
            tick: ticks.partition_point(|tick| tick.at <= at),
            at,
            object,
        })
        .collect();
    when::unmet(&moments, &when, expected)
}

/// Inserts the state at a time, unless a state begins then.
fn begin_at(states: &mut Vec<ObjectState<'_>>, at: Time) {
    let next = states.partition_point(|state| state.at <= at);
    if let Some(state) = next.checked_sub(1).map(|index| states[index])
        && state.at < at
    {
        states.insert(next, ObjectState { at, ..state });
    }
}

/// An object from a time on.
struct Moment<'a> {
    /// The number of times at which the controller has acted.
    tick: usize,
    at: Time,
    object: Option<&'a Value>,
}

impl Display for Moment<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "t={}", self.at)
    }
}

impl ExpectedTick for Moment<'_> {
    type Expectation = Expectation;

    const NOUN: &'static str = "state";

    fn at(&self) -> Time {
        self.at
    }

    fn name(&self) -> UnmetTick {
        UnmetTick { tick: self.tick, at: self.at, index: self.tick.saturating_sub(1) }
    }

    fn wrong(&self, expected: &Expectation) -> Option<Wrong> {
        let mut wrong = Wrong::default();
        let name = expected.object.as_ref().map(ToString::to_string).unwrap_or_default();
        let exists = |exists: bool| if exists { "an object" } else { "no object" }.to_owned();
        // Fields require that the object exists.
        let must_exist = expected.exists.unwrap_or(true);
        if must_exist != self.object.is_some() {
            let (expected, found) = (exists(must_exist), exists(self.object.is_some()));
            let value = UnmetValue::text(&name, expected, found);
            wrong.add_value(value.with_values(must_exist.into(), self.object.is_some().into()));
        }
        let fields = expected.fields.0.iter().filter(|_| self.object.is_some());
        for (path, expected) in fields {
            let found = self.object.map(|object| select(object, path)).unwrap_or_default();
            if !expected.is_met_by(&found) {
                let value = UnmetValue::text(
                    &format!("{name}: {path}"),
                    expected.to_string(),
                    found_text(&found),
                );
                let found = match found.as_slice() {
                    [] => Value::Null,
                    [only] => (*only).clone(),
                    several => several.iter().copied().cloned().collect(),
                };
                let expected = serde_json::to_value(expected).unwrap_or_default();
                wrong.add_value(value.with_values(expected, found));
            }
        }
        (!wrong.is_empty()).then_some(wrong)
    }

    /// A path that selects several values is unwanted if any of them is the value.
    fn is_unwanted(&self, expected: &Expectation) -> bool {
        let met = |(path, expected): &(Arc<str>, ExpectedValue)| {
            let found = self.object.map(|object| select(object, path)).unwrap_or_default();
            expected.is_met_by_any(&found)
        };
        expected.exists.unwrap_or(true) == self.object.is_some()
            && (self.object.is_none() || expected.fields.0.iter().all(met))
    }

    fn unwanted(&self, expected: &Expectation) -> Miss {
        let name = expected.object.as_ref().map(ToString::to_string).unwrap_or_default();
        let field = |(path, value): &(_, ExpectedValue)| format!("{path} {value}");
        let fields: Vec<String> = expected.fields.0.iter().map(field).collect();
        let what = match (expected.exists, fields.as_slice()) {
            (Some(false), _) => format!("no {name}"),
            (_, []) => name,
            (_, fields) => format!("{name} with {}", fields.join(" and ")),
        };
        let value = UnmetValue::text("never", format!("not {what}"), what.clone());
        let what = format!("{self}: never expected {what}");
        Miss { what, tick: Some(self.name()), values: vec![value] }
    }
}

/// The values that a path selects, for a message.
fn found_text(found: &[&Value]) -> String {
    let mut text = match found {
        [] => "no value".to_owned(),
        [only] => only.to_string(),
        several => {
            let texts: Vec<String> = several.iter().map(|value| value.to_string()).collect();
            format!("{} values: {}", several.len(), texts.join(", "))
        }
    };
    if let Some((cut, _)) = text.char_indices().nth(LONGEST) {
        text.truncate(cut);
        text.push('…');
    }
    text
}

#[cfg(test)]
#[path = "object_tests.rs"]
mod tests;
