//! Compares the writes of a run with those of a recorded one, for controllers without a model.

use kube_autoscaler_models::observation::ControllerAction;
use kube_autoscaler_models::time::Time;
use serde_json::Value;

use crate::expect::{Unmet, UnmetTick, UnmetValue};
use crate::objects::{FieldChange, changed_fields};
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
    let (mut before, mut after) = (writes(recorded), writes(seen));
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

/// The writes of the controllers, in order. What the cluster itself does follows from them.
fn writes(trace: &Trace) -> impl Iterator<Item = Write<'_>> {
    trace.ticks.iter().enumerate().flat_map(|(index, tick)| {
        let actions = tick.actions().filter(|action| match action {
            ControllerAction::Write(write) => write.is_of_controller(),
            action => action.is_write(),
        });
        actions.map(move |action| Write { at: tick.at, tick: index + 1, action })
    })
}

fn is_same(old: &Write<'_>, new: &Write<'_>) -> bool {
    old.at == new.at && (old.action == new.action || content(old.action) == content(new.action))
}

/// A write without the resource version, which counts the writes of all objects.
fn content(action: &ControllerAction) -> Value {
    let mut content = serde_json::to_value(action).unwrap_or_default();
    if let Some(metadata) = content.pointer_mut("/write/object/metadata") {
        metadata.as_object_mut().map(|metadata| metadata.remove("resourceVersion"));
    }
    content
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

    /// The resource version counts the writes of all objects.
    #[test]
    fn resource_versions_are_not_compared() {
        let (recorded, mut seen) = (trace(&[(1, 1)]), trace(&[(0, 5), (1, 1)]));
        seen.ticks.remove(0);
        assert_eq!(first_difference(&recorded, &seen, 1), None);
    }
}
