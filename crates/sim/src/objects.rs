//! The objects of any kind in a run, as the API server stored them.
//!
//! The store is rebuilt from the trace: from the answers to the changes of the scenario, and from
//! the writes of the controllers. It keeps every state, since expectations are checked at the end.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::trace::{ApiOutcome, Trace};
use kube_autoscaler_models::as_text;
use kube_autoscaler_models::observation::ObjectWrite;
use kube_autoscaler_models::time::Time;
use kube_lockstep_scenario::resolved::ObjectRef;

/// A write, and its time.
#[derive(Clone, Copy, Debug)]
pub struct TimedWrite<'t> {
    /// The time.
    pub at: Time,
    /// The write.
    pub write: &'t ObjectWrite,
}

/// All writes of objects in a run, in order: those of the controllers, of the scenario and of the
/// cluster itself.
pub fn writes(trace: &Trace) -> impl Iterator<Item = TimedWrite<'_>> {
    let answers = |index: usize| {
        let first = trace.api.partition_point(|(before, _)| *before < index);
        let answers = trace.api[first..].iter().take_while(move |(before, _)| *before == index);
        answers.filter_map(|(_, answer)| match &answer.outcome {
            ApiOutcome::Write(write) => Some(TimedWrite { at: answer.at, write }),
            _ => None,
        })
    };
    let ticks = trace.ticks.iter().enumerate().flat_map(move |(index, tick)| {
        let own = tick.object_writes().map(|write| TimedWrite { at: tick.at, write });
        answers(index).chain(own)
    });
    ticks.chain(answers(trace.ticks.len()))
}

/// All writes of objects in a run, in order, each with the object before it.
pub fn writes_with_previous(
    trace: &Trace,
) -> impl Iterator<Item = (TimedWrite<'_>, Option<&Value>)> {
    let mut present: BTreeMap<(&str, &str, &str), &Value> = BTreeMap::new();
    writes(trace).map(move |timed| {
        let write = timed.write;
        let key = (&*write.resource, &*write.namespace, &*write.name);
        let previous = match &write.object {
            _ if !write.changed => present.get(&key).copied(),
            Some(object) => present.insert(key, object),
            None => present.remove(&key),
        };
        (timed, previous)
    })
}

/// The writes of the controllers, in order.
pub fn controller_writes(trace: &Trace) -> impl Iterator<Item = TimedWrite<'_>> {
    writes(trace).filter(|timed| timed.write.is_of_controller())
}

/// The writes of the controllers after the last change that neither a controller made, nor the
/// cluster because of one: a change of the scenario, or of simulated pods; and the time of that
/// change.
pub fn writes_after_outside_changes(trace: &Trace) -> (Option<Time>, Vec<TimedWrite<'_>>) {
    let answers = trace.api.iter().filter_map(|(_, answer)| match &answer.outcome {
        ApiOutcome::Write(write) if write.changed => Some(std::ptr::from_ref::<ObjectWrite>(write)),
        _ => None,
    });
    let outside: BTreeSet<*const ObjectWrite> = answers.collect();
    let mut all: Vec<TimedWrite<'_>> = writes(trace).collect();
    let last = all.iter().rposition(|it| outside.contains(&std::ptr::from_ref(it.write)));
    let at = last.map(|index| all[index].at);
    let mut after = all.split_off(last.map_or(0, |index| index + 1));
    after.retain(|it| it.write.is_of_controller());
    (at, after)
}

/// The state of an object after a write.
#[derive(Clone, Copy, Debug)]
pub struct ObjectState<'t> {
    /// The time of the write.
    pub at: Time,
    /// The object. `None`: it does not exist.
    pub object: Option<&'t Value>,
}

/// The name of an object: its group, kind, namespace and name. Versions are forms of one object.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Key<'t> {
    group: &'t str,
    kind: &'t str,
    namespace: &'t str,
    name: &'t str,
}

/// The states of all objects in a run.
#[derive(Debug)]
pub struct ObjectStore<'t> {
    /// The namespace of references that name none.
    namespace: Arc<str>,
    states: BTreeMap<Key<'t>, Vec<ObjectState<'t>>>,
}

impl<'t> ObjectStore<'t> {
    /// The objects of a run in this namespace.
    #[must_use]
    pub fn new(trace: &'t Trace, namespace: Arc<str>) -> ObjectStore<'t> {
        let mut states: BTreeMap<Key<'_>, Vec<ObjectState<'_>>> = BTreeMap::new();
        for TimedWrite { at, write } in writes(trace).filter(|timed| timed.write.changed) {
            let key = Key {
                group: write.group(),
                kind: &write.kind,
                namespace: &write.namespace,
                name: &write.name,
            };
            let list = states.entry(key).or_default();
            // Of several states at one time, only the last one lasts.
            list.pop_if(|last| last.at == at);
            list.push(ObjectState { at, object: write.object.as_ref() });
        }
        ObjectStore { namespace, states }
    }

    /// Returns true if an object of the kind of this one existed at some time.
    #[must_use]
    pub fn has_kind(&self, object: &ObjectRef) -> bool {
        let kind = (object.group(), &*object.kind);
        self.states.keys().any(|key| (key.group, key.kind) == kind)
    }

    /// The states of an object that last, in order of time, from t=0 on.
    #[must_use]
    pub fn states(&self, object: &ObjectRef) -> Vec<ObjectState<'t>> {
        let namespace = object.namespace.as_ref().unwrap_or(&self.namespace);
        // An object whose kind has no namespace is in none.
        let found = [&**namespace, ""].into_iter().find_map(|namespace| {
            let (group, kind, name) = (object.group(), &*object.kind, &*object.name);
            self.states.get(&Key { group, kind, namespace, name })
        });
        let mut states = found.cloned().unwrap_or_default();
        if states.first().is_none_or(|first| first.at > Time::ZERO) {
            states.insert(0, ObjectState { at: Time::ZERO, object: None });
        }
        states
    }
}

/// The largest number of writes that a report has.
const MOST_REPORTED: usize = 500;

/// A write as reports show it: without the object, with the fields that it changed.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ReportedWrite {
    /// The time.
    #[serde(with = "as_text")]
    pub at: Time,
    /// The write, without the object.
    #[serde(flatten)]
    pub write: ObjectWrite,
    /// The fields of an existing object that it changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<FieldChange>,
}

/// A change of a field.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct FieldChange {
    /// `spec.replicas`.
    pub path: String,
    /// The value before. Absent: there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Value>,
    /// The value after. Absent: there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Value>,
}

/// The first writes of a run for a report. What the cluster itself does with pods is left out.
#[must_use]
pub fn reported(trace: &Trace) -> Vec<ReportedWrite> {
    let mut reported = Vec::new();
    for (TimedWrite { at, write }, before) in writes_with_previous(trace) {
        if !write.is_of_controller() && &*write.kind == "Pod" {
            continue;
        }
        let mut fields = Vec::new();
        if let (Some(before), Some(after)) = (before, &write.object)
            && write.changed
        {
            changed_fields(before, after, "", &mut fields);
        }
        reported.push(ReportedWrite {
            at,
            write: ObjectWrite { object: None, ..write.clone() },
            fields,
        });
        if reported.len() == MOST_REPORTED {
            break;
        }
    }
    reported
}

/// The fields of an object that have no fields below them, by their paths, except for those that
/// the API server itself sets. An item of a list is named by its value or, if it is a map, by its
/// name, type or key, as in server-side apply. Other lists are one field.
#[must_use]
pub fn leaves(object: &Value) -> BTreeMap<String, &Value> {
    let mut leaves = BTreeMap::new();
    add_leaves(object, "", &mut leaves);
    leaves
}

/// The fields by which an item of a list of maps is known.
const KEYS: [&str; 5] = ["name", "type", "key", "uid", "ip"];

fn add_leaves<'v>(value: &'v Value, path: &str, into: &mut BTreeMap<String, &'v Value>) {
    if OF_API_SERVER.contains(&path) || OF_CREATION.contains(&path) {
        return;
    }
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            for (name, value) in fields {
                add_leaves(value, &below(path, name), into);
            }
        }
        Value::Array(items) if items.iter().all(is_scalar) => {
            into.extend(items.iter().map(|item| (format!("{path}[{item}]"), item)));
        }
        Value::Array(items) => {
            let key = KEYS.into_iter().find(|key| {
                let names: BTreeSet<&str> =
                    items.iter().filter_map(|item| item.get(key)?.as_str()).collect();
                names.len() == items.len()
            });
            let Some(key) = key else {
                into.insert(path.to_owned(), value);
                return;
            };
            for item in items {
                let name = item.get(key).and_then(Value::as_str).unwrap_or_default();
                add_leaves(item, &format!("{path}[{key}={name}]"), into);
            }
        }
        value => drop(into.insert(path.to_owned(), value)),
    }
}

fn is_scalar(value: &Value) -> bool {
    !value.is_object() && !value.is_array()
}

/// Fields that the API server sets when an object is created.
const OF_CREATION: [&str; 2] = ["metadata.uid", "metadata.creationTimestamp"];

/// Fields that the API server sets in each write.
const OF_API_SERVER: [&str; 3] =
    ["metadata.resourceVersion", "metadata.generation", "metadata.managedFields"];

/// The path of a field below another one.
fn below(path: &str, name: &str) -> String {
    match path {
        "" => name.to_owned(),
        path if name.contains(['.', '/']) => format!("{path}['{name}']"),
        path => format!("{path}.{name}"),
    }
}

/// Adds the fields in which two values differ, except for those that the API server itself sets.
/// Lists of the same length are compared item by item.
pub fn changed_fields(before: &Value, after: &Value, path: &str, into: &mut Vec<FieldChange>) {
    if before == after || OF_API_SERVER.contains(&path) {
        return;
    }
    match (before, after) {
        (Value::Object(old), Value::Object(new)) => {
            let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
            for name in names {
                let path = below(path, name);
                match (old.get(name), new.get(name)) {
                    (Some(old), Some(new)) => changed_fields(old, new, &path, into),
                    (before, after) => {
                        into.push(FieldChange {
                            path,
                            before: before.cloned(),
                            after: after.cloned(),
                        });
                    }
                }
            }
        }
        (Value::Array(old), Value::Array(new)) if old.len() == new.len() => {
            for (index, (old, new)) in old.iter().zip(new).enumerate() {
                changed_fields(old, new, &format!("{path}[{index}]"), into);
            }
        }
        (before, after) => into.push(FieldChange {
            path: path.to_owned(),
            before: Some(before.clone()),
            after: Some(after.clone()),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_items_of_lists_are_fields_of_their_own() {
        let object = json!({
            "metadata": {
                "uid": "1", "resourceVersion": "2", "finalizers": ["a", "b"],
                "labels": {"app.kubernetes.io/name": "web"},
            },
            "spec": {"replicas": 3, "ports": [{"port": 80}, {"port": 81}], "empty": {}},
            "status": {"conditions": [
                {"type": "Ready", "status": "True"},
                {"type": "Stalled", "status": "False"},
            ]},
        });
        let paths: Vec<String> = leaves(&object).into_keys().collect();
        assert_eq!(
            paths,
            [
                "metadata.finalizers[\"a\"]",
                "metadata.finalizers[\"b\"]",
                "metadata.labels['app.kubernetes.io/name']",
                "spec.empty",
                "spec.ports",
                "spec.replicas",
                "status.conditions[type=Ready].status",
                "status.conditions[type=Ready].type",
                "status.conditions[type=Stalled].status",
                "status.conditions[type=Stalled].type",
            ]
        );
    }
}
