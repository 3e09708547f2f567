//! Properties of the writes of any controllers, over a whole run: how many there are, whether they
//! change anything, whose they are, and whether they end.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::unmet::{Miss, UnmetTick, UnmetValue};
use crate::objects::{
    TimedWrite, controller_writes, leaves, writes_after_outside_changes, writes_with_previous,
};
use crate::trace::Trace;
use kube_autoscaler_models::observation::ObjectWrite;
use kube_autoscaler_models::time::{Span, Time};
use kube_lockstep_scenario::Scenario;
use kube_lockstep_scenario::resolved::{AtMost, Expectation, Rests};

/// Why the writes of a run do not meet an expectation on them.
pub(super) fn miss(expected: &Expectation, trace: &Trace, scenario: &Scenario) -> Option<Miss> {
    let own: Vec<TimedWrite<'_>> = controller_writes(trace).filter(|it| counts(it.write)).collect();
    if let Some(rests) = &expected.rests {
        return restless(rests, &own, trace, scenario);
    }
    let AtMost { writes, writes_without_change, writers_per_field, in_, .. } =
        expected.at_most.as_ref()?;
    if let Some(most) = *writes {
        return too_many("writes", most, *in_, &own, trace);
    }
    if let Some(most) = *writes_without_change {
        let idle = |it: &TimedWrite<'_>| !it.write.changed && it.write.error.is_none();
        let idle: Vec<TimedWrite<'_>> = own.into_iter().filter(idle).collect();
        return too_many("writesWithoutChange", most, *in_, &idle, trace);
    }
    too_many_writers((*writers_per_field)?, trace)
}

/// Leases are renewed as long as a controller runs.
fn counts(write: &ObjectWrite) -> bool {
    &*write.kind != "Lease"
}

/// The first write that exceeds a count within any period.
fn too_many(
    name: &str,
    most: u32,
    period: Option<Span>,
    writes: &[TimedWrite<'_>],
    trace: &Trace,
) -> Option<Miss> {
    let allowed = usize::try_from(most).unwrap_or(usize::MAX);
    let mut pairs = writes.iter().zip(writes.get(allowed..)?);
    // Exceeded if the n-th write before this one is also within the period.
    let (first, last) = pairs.find(|(old, new)| period.is_none_or(|it| new.at - old.at < it))?;
    let within = period.map(|period| format!(" within {period}")).unwrap_or_default();
    let since = if most > 0 { format!(" since t={}", first.at) } else { String::new() };
    let total = writes.len();
    let expected = format!("at most {most}{within}");
    let observed = format!("number {}{since} is: {}; the run has {total}", allowed + 1, by(last));
    Some(at(last.at, trace, name, expected, observed, json!({ "max": most }), json!(total)))
}

/// The first field that too many controllers change.
fn too_many_writers(most: u32, trace: &Trace) -> Option<Miss> {
    let most_writers = usize::try_from(most).unwrap_or(usize::MAX);
    let mut writers: BTreeMap<(&str, &str, &str, String), Vec<&str>> = BTreeMap::new();
    let writes = writes_with_previous(trace);
    for (timed, before) in writes.filter(|(it, _)| it.write.changed && counts(it.write)) {
        let TimedWrite { at: time, write } = timed;
        let (resource, namespace, name) = (&*write.resource, &*write.namespace, &*write.name);
        let Some(after) = write.object.as_ref().filter(|_| write.is_of_controller()) else {
            continue;
        };
        let (before, after) = (before.map(leaves).unwrap_or_default(), leaves(after));
        let changed = |path: &&String| before.get(*path) != after.get(*path);
        for path in before.keys().chain(after.keys()).filter(changed) {
            let of = writers.entry((resource, namespace, name, path.clone())).or_default();
            if !of.contains(&&*write.controller) {
                of.push(&write.controller);
            }
            if of.len() > most_writers {
                let object = format!("{} {name}", write.kind);
                let expected = format!("at most {most} controllers of a field");
                let observed = format!("{object}: {path} is written by {}", of.join(", "));
                let (max, seen) = (json!({ "max": most }), json!(of));
                return Some(at(time, trace, "writersPerField", expected, observed, max, seen));
            }
        }
    }
    None
}

/// Why the controllers do not come to rest.
fn restless(
    rests: &Rests,
    own: &[TimedWrite<'_>],
    trace: &Trace,
    scenario: &Scenario,
) -> Option<Miss> {
    let actions = scenario.timeline.iter();
    let actions =
        actions.map(|it| it.at + it.lasts.unwrap_or_default()).filter(|at| *at <= scenario.until);
    let (changed, mut after) = writes_after_outside_changes(trace);
    let outside = changed.into_iter().chain(actions).max().unwrap_or_default();
    if let Some(most) = rests.writes {
        // What is done at the time of an action follows it.
        after.retain(|it| it.at >= outside && counts(it.write));
        if let Some(first) = after.get(usize::try_from(most).unwrap_or(usize::MAX)) {
            let expected =
                format!("at most {most} writes after the last change from outside, at t={outside}");
            let observed = format!("{}, the first one too many is: {}", after.len(), by(first));
            let (max, seen) = (json!({ "max": most }), json!(after.len()));
            return Some(at(first.at, trace, "rests", expected, observed, max, seen));
        }
    }
    let span = rests.lasts.unwrap_or(scenario.flags.sync_period);
    let late = own.iter().filter(|it| it.at > scenario.until - span);
    let late: Vec<&TimedWrite<'_>> = late.collect();
    let last = late.last()?;
    let expected = format!("no write in the last {span}");
    let observed = format!("{}, the last one is: {}", late.len(), by(last));
    Some(at(last.at, trace, "rests", expected, observed, json!(0), json!(late.len())))
}

/// `website: update Website default/shop status`.
fn by(timed: &TimedWrite<'_>) -> String {
    format!("{}: {}", timed.write.controller, timed.write)
}

/// A miss at a time.
fn at(
    at: Time,
    trace: &Trace,
    name: &str,
    expected: String,
    observed: String,
    expected_value: Value,
    observed_value: Value,
) -> Miss {
    let number = trace.ticks.partition_point(|tick| tick.at <= at);
    let what = format!("t={at}: {name}: expected {expected}, but {observed}");
    let value = UnmetValue::text(name, expected, observed);
    let value = value.with_values(expected_value, observed_value);
    let tick = UnmetTick { tick: number, at, index: number.saturating_sub(1) };
    Miss { what, tick: Some(tick), values: vec![value] }
}
