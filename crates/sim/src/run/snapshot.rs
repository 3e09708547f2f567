//! Compares the writes of a run with those of a recorded one, for controllers without a model.
//!
//! Which goroutine of a controller receives an event first is left to chance, and so is whether one
//! acts on a stale cache. Therefore writes that are rejected or change nothing are not compared,
//! nor are the order of writes of different objects at one time, and numbers that count them.

use kube_autoscaler_models::observation::ControllerAction;
use kube_autoscaler_models::time::Time;
use serde_json::Value;

use crate::expect::{Unmet, UnmetTick, UnmetValue};
use crate::objects::{FieldChange, changed_fields, controller_writes};
use crate::trace::Trace;

/// The number of fields that a difference names.
const FIELDS: usize = 5;

/// A write of a controller in a run.
struct Write<'t> {
    at: Time,
    /// The number of its tick, from 1.
    tick: usize,
    action: &'t ControllerAction,
}

/// The first write in which a run differs from a recorded one. `line`: that of the scenario.
#[must_use]
pub fn first_difference(recorded: &Trace, seen: &Trace, line: usize) -> Option<Unmet> {
    let is_of_objects =
        [recorded, seen].iter().any(|trace| controller_writes(trace).next().is_some());
    let mut before = writes(recorded, is_of_objects).into_iter();
    let mut after = writes(seen, is_of_objects).into_iter();
    let mut number = 0;
    loop {
        number += 1;
        let (old, new) = match (before.next(), after.next()) {
            (None, None) => return None,
            (Some(old), Some(new)) if is_same(&old, &new) => continue,
            pair => pair,
        };
        let tick = new.as_ref().or(old.as_ref()).map(|write| UnmetTick {
            tick: write.tick,
            at: write.at,
            index: write.tick.saturating_sub(1),
        });
        let (expected, observed) = (described(old.as_ref()), described(new.as_ref()));
        let what = match old.zip(new).map(|(old, new)| fields(&old, &new)) {
            Some(fields) if !fields.is_empty() => {
                format!("write {number} is not as recorded: {observed}: {}", fields.join(", "))
            }
            _ => format!("write {number} is not as recorded: recorded {expected}, now {observed}"),
        };
        let values = vec![UnmetValue::text("write", expected, observed)];
        return Some(Unmet { line, what, tick, values, ..Unmet::default() });
    }
}

/// The writes of the controllers, by time and object: of all objects, or only of scales and the
/// statuses of HPAs. What the cluster itself does follows from them.
fn writes(trace: &Trace, is_of_objects: bool) -> Vec<Write<'_>> {
    let ticks = trace.ticks.iter().enumerate();
    let writes = ticks.flat_map(|(index, tick)| {
        let actions = tick.actions().filter(|action| match action {
            ControllerAction::Write(write) => write.is_of_controller() && write.changed,
            action => !is_of_objects && action.is_write(),
        });
        actions.map(move |action| Write { at: tick.at, tick: index + 1, action })
    });
    let mut writes: Vec<Write<'_>> = writes.collect();
    writes.sort_by_key(|write| (write.at, object(write.action)));
    writes
}

/// The object of a write of any object.
fn object(action: &ControllerAction) -> Option<(&str, &str, &str)> {
    match action {
        ControllerAction::Write(write) => Some((&write.resource, &write.namespace, &write.name)),
        _ => None,
    }
}

fn is_same(old: &Write<'_>, new: &Write<'_>) -> bool {
    old.at == new.at && (old.action == new.action || content(old.action) == content(new.action))
}

/// A write without the resource versions and the UIDs of objects, which count writes and objects.
fn content(action: &ControllerAction) -> Value {
    let mut content = serde_json::to_value(action).unwrap_or_default();
    remove_counts(&mut content);
    content
}

/// Removes them from the metadata of objects, and from references, which name a kind.
fn remove_counts(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            if fields.contains_key("kind") {
                fields.retain(|name, _| name != "resourceVersion" && name != "uid");
            }
            if let Some(Value::Object(metadata)) = fields.get_mut("metadata") {
                metadata.retain(|name, _| name != "resourceVersion" && name != "uid");
            }
            fields.values_mut().for_each(remove_counts);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_counts),
        _ => {}
    }
}

/// `website: update Website default/shop status at t=30s`.
fn described(write: Option<&Write<'_>>) -> String {
    let Some(Write { at, action, .. }) = write else { return "no write".to_owned() };
    let by = match action {
        ControllerAction::Write(write) => format!("{}: ", write.controller),
        _ => String::new(),
    };
    format!("{by}{action} at t={at}")
}

/// The fields in which two writes of the same kind differ. Empty: they are different writes.
fn fields(old: &Write<'_>, new: &Write<'_>) -> Vec<String> {
    if old.at != new.at || old.action.to_string() != new.action.to_string() {
        return Vec::new();
    }
    let mut changes = Vec::new();
    changed_fields(&content(old.action), &content(new.action), "", &mut changes);
    let text = |value: &Option<Value>| value.as_ref().map_or("none".to_owned(), Value::to_string);
    let line = |FieldChange { path, before, after }: &FieldChange| {
        let path = path.trim_start_matches("write.").trim_start_matches("object.");
        format!("{path}: recorded {}, now {}", text(before), text(after))
    };
    changes.iter().take(FIELDS).map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube_autoscaler_models::observation::{ObjectVerb, ObjectWrite, Observation};
    use kube_autoscaler_models::time::Span;
    use serde_json::json;

    fn trace(writes: &[(i64, u32)]) -> Trace {
        let tick = |(index, (at, size)): (usize, &(i64, u32))| {
            let version = index.to_string();
            let write = ObjectWrite {
                verb: ObjectVerb::Update,
                controller: "c".into(),
                api_version: "example.com/v1".into(),
                kind: "Widget".into(),
                resource: "widgets.example.com".into(),
                namespace: "default".into(),
                name: "a".into(),
                subresource: "".into(),
                changed: true,
                object: Some(
                    json!({"metadata": {"resourceVersion": version}, "spec": {"size": size}}),
                ),
                error: None,
            };
            let at = Time::ZERO + Span::from_secs(*at);
            Observation::new(at, "".into(), [ControllerAction::Write(Box::new(write))])
        };
        Trace { ticks: writes.iter().enumerate().map(tick).collect(), ..Trace::default() }
    }

    #[test]
    fn the_first_different_write_is_named() {
        let recorded = trace(&[(1, 1), (2, 2)]);
        let found = |seen: &[(i64, u32)]| {
            first_difference(&recorded, &trace(seen), 7).map(|it| (it.line, it.what))
        };
        assert_eq!(found(&[(1, 1), (2, 2)]), None);
        for (seen, what) in [
            (
                &[(1, 1), (2, 3)][..],
                "write 2 is not as recorded: c: update Widget default/a at t=2s: spec.size: \
                 recorded 2, now 3",
            ),
            (
                &[(1, 1), (3, 2)],
                "write 2 is not as recorded: recorded c: update Widget default/a at t=2s, now c: \
                 update Widget default/a at t=3s",
            ),
            (
                &[(1, 1)],
                "write 2 is not as recorded: recorded c: update Widget default/a at t=2s, now no \
                 write",
            ),
            (
                &[(1, 1), (2, 2), (2, 2)],
                "write 3 is not as recorded: recorded no write, now c: update Widget default/a at \
                 t=2s",
            ),
        ] {
            assert_eq!(found(seen), Some((7, what.to_owned())), "{seen:?}");
        }
    }

    /// What is left to chance: writes that are rejected or change nothing, resource versions, and
    /// the order of writes of different objects at one time.
    #[test]
    fn what_is_left_to_chance_is_not_compared() {
        let write = |tick: &mut Observation, change: &dyn Fn(&mut ObjectWrite)| {
            let mut write = tick.object_writes().next().expect("a write").clone();
            change(&mut write);
            tick.push(ControllerAction::Write(Box::new(write)));
        };
        let (mut recorded, mut seen) = (trace(&[(1, 1), (2, 2)]), trace(&[(0, 5), (1, 1), (2, 2)]));
        seen.ticks.remove(0);
        write(&mut seen.ticks[0], &|write| write.changed = false);
        write(&mut seen.ticks[0], &|write| {
            write.changed = false;
            write.error = Some("the object has been modified; please apply".into());
        });
        assert_eq!(first_difference(&recorded, &seen, 1), None);
        write(&mut recorded.ticks[1], &|write| write.name = "b".into());
        let mut other = seen.ticks[1].clone();
        other.retain(|_| false);
        write(&mut recorded.ticks[1], &|_| {});
        let first = seen.ticks[1].object_writes().next().expect("a write").clone();
        let named = |name: &str| ObjectWrite { name: name.into(), ..first.clone() };
        for name in ["b", "a", "a"] {
            other.push(ControllerAction::Write(Box::new(named(name))));
        }
        seen.ticks[1] = other;
        assert_eq!(first_difference(&recorded, &seen, 1), None);
    }
}
