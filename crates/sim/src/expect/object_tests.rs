//! Tests of the expectations on objects and their writes.

use super::*;
use crate::trace::{ApiAnswer, ApiOutcome};
use kube_autoscaler_models::observation::{ControllerAction, ObjectVerb, ObjectWrite};
use kube_lockstep_scenario::testing::scenario;
use serde_json::json;

const HEAD: &str = "
apiVersion: kube-lockstep.dev/v1alpha1
kind: Scenario
requirement: The controller follows the Widget.
objects: []
until: 1m
";

/// A write of the Widget `a` by a controller; without one, by the scenario.
fn write(controller: &str, object: Option<Value>) -> ObjectWrite {
    ObjectWrite {
        verb: ObjectVerb::Update,
        controller: controller.into(),
        api_version: "example.com/v1".into(),
        kind: "Widget".into(),
        resource: "widgets.example.com".into(),
        namespace: "default".into(),
        name: "a".into(),
        subresource: "".into(),
        changed: true,
        object,
        error: None,
    }
}

fn seconds(at: i64) -> Time {
    Time::ZERO + Span::from_secs(at)
}

fn tick(at: i64, writes: impl IntoIterator<Item = ObjectWrite>) -> Observation {
    let actions = writes.into_iter().map(|write| ControllerAction::Write(Box::new(write)));
    Observation::new(seconds(at), "".into(), actions)
}

/// The scenario creates the object with size 1. At 10s, the controller sets its size to 2 and then
/// to 3; at 40s, it deletes it.
fn trace() -> Trace {
    let object = |size: u32| Some(json!({"spec": {"size": size}}));
    let created = ApiOutcome::Write(Box::new(write("", object(1))));
    Trace {
        api: vec![(0, ApiAnswer { at: Time::ZERO, outcome: created })],
        ticks: vec![
            tick(10, [write("c", object(2)), write("c", object(3))]),
            tick(40, [write("c", None)]),
        ],
        ..Trace::default()
    }
}

/// The first unmet expectation of `expect` in a trace, or `met`.
fn checked_in(expect: &str, trace: &Trace) -> String {
    let scenario = scenario(&format!("{HEAD}expect:\n  - {expect}\n"));
    let unmet = of_objects(&scenario.expect, Release::NEWEST, trace, &scenario);
    unmet.first().map_or_else(|| "met".to_owned(), |unmet| unmet.what.clone())
}

fn checked(time: &str, expect: &str) -> String {
    let object = "object: {apiVersion: example.com/v1, kind: Widget, name: a}";
    checked_in(&format!("{{{time}, {object}, {expect}}}"), &trace())
}

#[test]
fn an_object_has_the_state_of_its_last_write() {
    for (time, expect, outcome) in [
        ("at: 0s", "fields: {spec.size: 1}", "met"),
        ("at: 9s", "fields: {spec.size: 1}", "met"),
        ("at: 10s", "fields: {spec.size: 3}", "met"),
        ("at: 39s", "fields: {spec.size: {atLeast: 3}}", "met"),
        ("at: 10s", "fields: {spec.size: 2}", "t=10s: Widget a: spec.size: expected 2, was 3"),
        ("at: 10s", "fields: {spec.x: 2}", "t=10s: Widget a: spec.x: expected 2, was no value"),
        ("at: 40s", "exists: false", "met"),
        ("at: 39s", "exists: false", "t=39s: Widget a: expected no object, was an object"),
        ("at: 41s", "fields: {spec.size: 3}", "t=41s: Widget a: expected an object, was no object"),
        ("tick: 1", "fields: {spec.size: 3}", "met"),
        (
            "tick: 3",
            "fields: {spec.size: 3}",
            "tick 3 never happened: the controller acted at 2 times",
        ),
    ] {
        assert_eq!(checked(time, expect), outcome, "{time} {expect}");
    }
}

#[test]
fn intervals_contain_the_state_at_their_beginning() {
    for (time, expect, outcome) in [
        ("always: {from: 5s, to: 9s}", "fields: {spec.size: 1}", "met"),
        (
            "always: {from: 5s, to: 39s}",
            "fields: {spec.size: 1}",
            "t=10s: Widget a: spec.size: expected 1, was 3",
        ),
        ("always: {from: 20s, to: 30s}", "fields: {spec.size: 3}", "met"),
        // The size 2 lasts for no time.
        ("never: {}", "fields: {spec.size: 2}", "met"),
        (
            "never: {from: 20s}",
            "fields: {spec.size: 3}",
            "t=20s: never expected Widget a with spec.size 3",
        ),
        ("within: 10s", "fields: {spec.size: 3}", "met"),
        (
            "within: 9s",
            "fields: {spec.size: 3}",
            "not within 9s of t=0s; last at t=0s: Widget a: spec.size: expected 3, was 1",
        ),
    ] {
        assert_eq!(checked(time, expect), outcome, "{time} {expect}");
    }
}

#[test]
fn writes_are_limited_in_the_whole_run() {
    for (expect, outcome) in [
        ("atMost: {writes: 3}", "met"),
        ("atMost: {writes: 2, in: 30s}", "met"),
        (
            "atMost: {writes: 2, in: 31s}",
            "t=40s: writes: expected at most 2 within 31s, but number 3 since t=10s is: c: update \
             Widget default/a; the run has 3",
        ),
        ("atMost: {writesWithoutChange: 0}", "met"),
        ("atMost: {writersPerField: 1}", "met"),
        ("rests: {writes: 3}", "met"),
        (
            "rests: {writes: 2}",
            "t=40s: rests: expected at most 2 writes after the last change from outside, at t=0s, \
             but 3, the first one too many is: c: update Widget default/a",
        ),
        ("rests: {for: 20s}", "met"),
        (
            "rests: {for: 21s}",
            "t=40s: rests: expected no write in the last 21s, but 1, the last one is: c: update \
             Widget default/a",
        ),
    ] {
        assert_eq!(checked_in(&format!("{{{expect}}}"), &trace()), outcome, "{expect}");
    }
}

#[test]
fn writes_without_a_change_and_second_writers_are_found() {
    let mut trace = trace();
    let object = json!({"spec": {"size": 4}});
    let idle = ObjectWrite { changed: false, ..write("c", Some(object.clone())) };
    trace.ticks.insert(1, tick(20, [write("d", Some(object)), idle]));
    assert_eq!(
        checked_in("{atMost: {writesWithoutChange: 0}}", &trace),
        "t=20s: writesWithoutChange: expected at most 0, but number 1 is: c: update Widget \
         default/a: no change; the run has 1"
    );
    assert_eq!(
        checked_in("{atMost: {writersPerField: 1}}", &trace),
        "t=20s: writersPerField: expected at most 1 controllers of a field, but Widget a: \
         spec.size is written by c, d"
    );
    assert_eq!(checked_in("{atMost: {writersPerField: 2}}", &trace), "met");
}

/// What a creator sets is its write. Controllers that add items of their own to a list, or fields
/// of their own to a map, do not write the same field.
#[test]
fn fields_and_items_have_writers_of_their_own() {
    let widget = |data: Value| Some(json!({"spec": data}));
    let outcome = |first: Value, second: Value| {
        let ticks =
            vec![tick(10, [write("c", widget(first))]), tick(20, [write("d", widget(second))])];
        let trace = Trace { ticks, ..Trace::default() };
        checked_in("{atMost: {writersPerField: 1}}", &trace)
    };
    for (first, second, met) in [
        (json!({"size": 1}), json!({"size": 2}), false),
        (json!({"size": 1}), json!({"size": 1, "color": "red"}), true),
        (json!({"tags": ["a"]}), json!({"tags": ["a", "b"]}), true),
        (json!({"tags": ["a"]}), json!({"tags": ["b"]}), false),
        (
            json!({"parts": [{"name": "a", "count": 1}]}),
            json!({"parts": [{"name": "a", "count": 1}, {"name": "b", "count": 1}]}),
            true,
        ),
        (
            json!({"parts": [{"name": "a", "count": 1}]}),
            json!({"parts": [{"name": "a", "count": 2}]}),
            false,
        ),
    ] {
        let found = outcome(first.clone(), second.clone());
        assert_eq!(found == "met", met, "{first} {second}: {found}");
    }
}

/// At one instant, what precedes the last change from outside does not count.
#[test]
fn writes_before_a_change_of_the_same_instant_do_not_count() {
    let object = |size: u32| Some(json!({"spec": {"size": size}}));
    let edited = ApiOutcome::Write(Box::new(write("", object(5))));
    let mut trace = trace();
    // Before the second tick, at the time of the first one.
    trace.api.push((1, ApiAnswer { at: seconds(10), outcome: edited }));
    assert_eq!(checked_in("{rests: {writes: 1}}", &trace), "met");
    trace.api[1].0 = 0;
    let missed = checked_in("{rests: {writes: 1}}", &trace);
    assert!(missed.contains("at most 1 writes after the last change from outside"), "{missed}");
}
