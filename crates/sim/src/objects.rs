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

/// The writes of the controllers, in order.
pub fn controller_writes(trace: &Trace) -> impl Iterator<Item = TimedWrite<'_>> {
    writes(trace).filter(|timed| timed.write.is_of_controller())
}

/// The times of the changes that neither a controller made, nor the cluster because of one: those
/// of the scenario, and those of simulated pods.
pub fn outside_changes(trace: &Trace) -> impl Iterator<Item = Time> {
    trace.api.iter().filter_map(|(_, answer)| match &answer.outcome {
        ApiOutcome::Write(write) if write.changed => Some(answer.at),
        _ => None,
    })
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
    let mut present: BTreeMap<(&str, &str, &str), &Value> = BTreeMap::new();
    let mut reported = Vec::new();
    for TimedWrite { at, write } in writes(trace) {
        let key = (&*write.resource, &*write.namespace, &*write.name);
        let before = present.get(&key).copied();
        if write.changed {
            match &write.object {
                Some(object) => drop(present.insert(key, object)),
                None => drop(present.remove(&key)),
            }
        }
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

/// Fields that the API server sets in each write.
const OF_API_SERVER: [&str; 3] =
    ["metadata.resourceVersion", "metadata.generation", "metadata.managedFields"];

/// Adds the fields in which two values differ, except for those that the API server itself sets.
/// Lists of the same length are compared item by item.
pub fn changed_fields(before: &Value, after: &Value, path: &str, into: &mut Vec<FieldChange>) {
    if before == after || OF_API_SERVER.contains(&path) {
        return;
    }
    let below = |name: &str| match path {
        "" => name.to_owned(),
        path if name.contains(['.', '/']) => format!("{path}['{name}']"),
        path => format!("{path}.{name}"),
    };
    match (before, after) {
        (Value::Object(old), Value::Object(new)) => {
            let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
            for name in names {
                let path = below(name);
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
