//! Resolution of the expectations on objects, and of those without an HPA.

use super::cursor::{At, Problems};
use super::objects::check_ref;
use crate::object::{ExpectedValue, check_path};
use crate::resolved::Expectation;

/// The values that an expectation on an object can have.
const VALUES: [&str; 2] = ["exists", "fields"];
/// The fields that an expectation on an object can't have.
const OTHERS: [&str; 14] = [
    "hpa",
    "atMost",
    "series",
    "sequence",
    "rests",
    "toleranceTicks",
    "replicas",
    "desiredReplicas",
    "currentReplicas",
    "metrics",
    "conditions",
    "events",
    "rescaled",
    "error",
];
/// The values that require an HPA.
const OF_HPA: [&str; 6] =
    ["hpa", "desiredReplicas", "currentReplicas", "metrics", "conditions", "events"];
/// The values that require a target.
const OF_TARGET: [&str; 5] = ["replicas", "rescaled", "atMost", "series", "sequence"];

/// The parts of a scenario that expectations can be about.
#[derive(Clone, Copy)]
pub(super) struct Subjects {
    pub has_objects: bool,
    pub has_hpa: bool,
    /// The scenario has a workload or an HPA.
    pub has_target: bool,
}

/// Checks the values of an expectation on an object. Returns false for all other expectations.
pub(super) fn check(
    expectation: &Expectation,
    subjects: Subjects,
    at: At<'_>,
    problems: &mut Problems,
) -> bool {
    let Some(object) = &expectation.object else {
        if let [first, ..] = at.given(&VALUES).as_slice() {
            let hint = "for example `object: {apiVersion: apps/v1, kind: Deployment, name: web}`";
            problems.hint(at.key_position(first), format!("`{first}` requires `object`"), hint);
            return true;
        }
        if expectation.is_on_writes() {
            check_writes(expectation, subjects, at, problems);
        } else {
            check_subjects(subjects, at, problems);
        }
        return false;
    };
    if !subjects.has_objects {
        let hint = "add `objects`, which may be an empty list, or remove the expectation";
        problems.hint(at.key_position("object"), "`object` requires `objects`", hint);
    }
    check_ref(object, at.key("object"), problems);
    if let [first, ..] = at.given(&OTHERS).as_slice() {
        let what = format!("`{first}` can't be combined with `object`");
        problems.hint(at.key_position(first), what, "write a separate expectation");
    }
    match (expectation.exists, expectation.fields.0.as_slice()) {
        (None, []) => {
            let what = "the expectation has no value: set `exists` or `fields`";
            problems.hint(at, what, "for example `fields: {spec.replicas: 3}`");
        }
        (Some(false), [_, ..]) => {
            let what = "an object that does not exist has no fields";
            problems.hint(at.key_position("fields"), what, "remove `fields`, or `exists: false`");
        }
        _ => {}
    }
    let fields = at.key("fields");
    for (path, expected) in &expectation.fields.0 {
        if let Err(why) = check_path(path) {
            let hint = "for example spec.replicas, spec.ports[0].port, \
                        metadata.labels['app.kubernetes.io/name'] or \
                        status.conditions[?(@.type=='Ready')].status";
            let what = format!("`{path}` is not a JSON path: {why}");
            problems.hint(fields.key_position(path), what, hint);
        }
        if let ExpectedValue::Bounds(bounds) = expected
            && bounds.is_empty()
        {
            problems.plain(fields.key(path), "`atLeast` is greater than `atMost`");
        }
    }
    true
}

/// Checks a limit on the writes of the whole run.
fn check_writes(
    expectation: &Expectation,
    subjects: Subjects,
    at: At<'_>,
    problems: &mut Problems,
) {
    let name = if expectation.rests.is_some() { "rests" } else { "atMost" };
    if !subjects.has_objects {
        let hint = "add `objects`, which may be an empty list, or remove the expectation";
        let what = "the writes of objects are only observed in scenarios with `objects`";
        problems.hint(at.key_position(name), what, hint);
    }
    if expectation.hpa.is_some() {
        let what = format!("`hpa` can't be combined with `{name}` of writes");
        problems.hint(at.key_position("hpa"), what, "remove `hpa`");
    }
    let per_field = expectation.at_most.as_ref().filter(|it| it.writers_per_field.is_some());
    if per_field.is_some_and(|it| it.in_.is_some()) {
        let what = "`in` does not apply to `writersPerField`";
        problems.hint(at.key("atMost").key_position("in"), what, "remove `in`");
    }
}

/// Checks that the scenario has what the values are about. A file without `objects` has an HPA.
fn check_subjects(subjects: Subjects, at: At<'_>, problems: &mut Problems) {
    let Subjects { has_objects, has_hpa, has_target } = subjects;
    for (fields, exists, what) in
        [(&OF_HPA[..], has_hpa, "an HPA"), (&OF_TARGET, has_target, "a workload")]
    {
        if let [first, ..] = at.given(fields).as_slice()
            && has_objects
            && !exists
        {
            let hint = "expect `fields` of an `object`";
            problems.hint(at.key_position(first), format!("`{first}` requires {what}"), hint);
        }
    }
}
