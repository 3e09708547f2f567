//! Tests of the evaluation, message by message.

use super::*;
use kube_autoscaler_models::api::{
    ConditionType, HpaCondition, HpaStatus, MetricStatus, MetricValueStatus, ResourceMetricStatus,
};
use kube_autoscaler_models::observation::{
    ControllerAction, Event, EventType, ScaleWrite, StatusWrite,
};
use kube_autoscaler_models::quantity::Quantity;
use kube_lockstep_scenario::resolved::{
    AtMost, Between, Bounds, ExpectedCondition, ExpectedEvent, ExpectedMetric, ExpectedSeries,
    Since,
};

/// Reconciles every 15 s from t=0, each with the replicas that it writes, if any.
fn ticks(replicas: &[Option<i32>]) -> Vec<Observation> {
    let write = |replicas: i32| {
        ControllerAction::UpdateScale(ScaleWrite {
            resource: "deployments.apps".into(),
            name: "web".into(),
            replicas,
            ..ScaleWrite::default()
        })
    };
    let times = (0..).map(|index| Time::from_secs(15 * index));
    times.zip(replicas).map(|(at, to)| Observation::new(at, "".into(), to.map(write))).collect()
}

fn at(seconds: i64) -> Time {
    Time::from_secs(seconds)
}

fn replicas(min: i32, max: i32) -> Expectation {
    Expectation {
        replicas: Some(Bounds { min: Some(min), max: Some(max) }),
        ..Expectation::default()
    }
}

/// A workload of 3, scaled by an HPA without a name.
fn targets() -> ScaleTargets {
    ScaleTargets {
        until: at(999),
        all: vec![(String::new(), "".into(), 3)],
        hpas: vec![("".into(), 0)],
    }
}

fn outside(seconds: i64, replicas: i32) -> ExternalScale {
    ExternalScale { at: at(seconds), target: 0, replicas, moment: Moment::Before }
}

/// An expectation with its time.
fn timed(when: When, what: Expectation) -> Expectation {
    let between = |from, to| Some(Between { from: Some(from), to: Some(to) });
    match when {
        When::Tick(tick) => Expectation { tick: Some(tick as u32), ..what },
        When::At(at) => Expectation { at: Some(at), ..what },
        When::Always(from, to) => Expectation { always: between(from, to), ..what },
        When::Never(from, to) => Expectation { never: between(from, to), ..what },
        When::Within { of, span } => Expectation { of: Some(of), within: Some(span), ..what },
        When::Series(series) => Expectation { series: Some(series), ..what },
        When::Sequence(replicas) => Expectation { sequence: Some(replicas), ..what },
        When::Whole => what,
    }
}

/// The message of one unmet expectation of a workload of 3 replicas.
fn unmet(when: When, what: Expectation, observations: &[Observation]) -> Option<String> {
    let expectation = Expectation { line: 7, ..timed(when, what) };
    let mut unmet = evaluate(&[expectation], Release::NEWEST, observations, &targets(), &[]);
    assert!(unmet.iter().all(|unmet| unmet.line == 7));
    unmet.pop().map(|unmet| unmet.what)
}

fn limit(
    direction_changes: Option<u32>,
    rescales: Option<u32>,
    span: Option<i64>,
) -> Option<AtMost> {
    let in_ = span.map(Span::from_secs);
    Some(AtMost { direction_changes, rescales, in_, ..AtMost::default() })
}

fn some(text: &str) -> Option<String> {
    Some(text.to_owned())
}

#[test]
fn replicas_are_kept_until_another_write() {
    let run = ticks(&[None, Some(6), None, None]);
    for (tick, count) in [(1, 3), (2, 6), (3, 6)] {
        assert_eq!(unmet(When::Tick(tick), replicas(count, count), &run), None);
    }
    let expect = |size| {
        let what = replicas(size, size);
        [timed(When::Tick(3), what)]
    };
    // A user's change at the time of a tick precedes the tick.
    assert_eq!(evaluate(&expect(2), Release::NEWEST, &run, &targets(), &[outside(30, 2)]), []);
    assert_eq!(evaluate(&expect(6), Release::NEWEST, &run, &targets(), &[outside(15, 2)]), []);
    assert_eq!(evaluate(&expect(6), Release::NEWEST, &run, &targets(), &[outside(31, 2)]), []);
}

#[test]
fn a_refused_write_changes_nothing() {
    let mut run = ticks(&[None, Some(6)]);
    for write in run[1].scale_writes_mut() {
        write.error = Some("conflict".into());
    }
    let rescaled = Expectation { rescaled: Some(true), ..Expectation::default() };
    assert_eq!(unmet(When::Tick(2), replicas(3, 3), &run), None);
    assert_eq!(
        unmet(When::Tick(2), rescaled, &run),
        some("tick 2 (t=15s): rescaled: expected a change of replicas, stayed at 3")
    );
}

#[test]
fn single_ticks_are_named_in_the_message() {
    let run = ticks(&[None, Some(6), None]);
    for (when, range, message) in [
        (When::Tick(2), 6.into(), None),
        (When::Tick(2), 4.into(), some("tick 2 (t=15s): replicas: expected 4, was 6")),
        (
            When::Tick(2),
            Bounds { min: Some(7), max: Some(9) },
            some("tick 2 (t=15s): replicas: expected 7 to 9, was 6"),
        ),
        (
            When::Tick(2),
            Bounds { min: Some(7), max: None },
            some("tick 2 (t=15s): replicas: expected at least 7, was 6"),
        ),
        (
            When::Tick(2),
            Bounds { min: None, max: Some(5) },
            some("tick 2 (t=15s): replicas: expected at most 5, was 6"),
        ),
        (When::Tick(4), 6.into(), some("tick 4 never happened: there were 3, the last at t=30s")),
        (When::Tick(0), 6.into(), some("tick 0 never happened: there were 3, the last at t=30s")),
        (When::At(at(14)), 3.into(), None),
        (When::At(at(15)), 6.into(), None),
        (When::At(at(99)), 3.into(), some("tick 3 (t=30s): replicas: expected 3, was 6")),
        (
            When::At(at(-1)),
            3.into(),
            some("no tick at or before t=-1s: there were 3, the last at t=30s"),
        ),
    ] {
        let what = Expectation { replicas: Some(range), ..Expectation::default() };
        assert_eq!(unmet(when.clone(), what, &run), message, "{when:?} {range:?}");
    }
}

#[test]
fn always_never_and_within_apply_to_ranges() {
    let run = ticks(&[None, Some(6), Some(5), None]);
    let always = |from, to| When::Always(at(from), at(to));
    let never = |from, to| When::Never(at(from), at(to));
    let within = |of, span| When::Within { of: at(of), span: Span::from_secs(span) };
    for (when, count, message) in [
        (always(30, 60), 5, None),
        (always(15, 15), 6, None),
        (always(0, 45), 5, some("tick 1 (t=0s): replicas: expected 5, was 3 (and 1 more tick)")),
        (always(0, 45), 9, some("tick 1 (t=0s): replicas: expected 9, was 3 (and 3 more ticks)")),
        (
            always(50, 60),
            5,
            some("no tick between t=50s and t=1m: there were 4, the last at t=45s"),
        ),
        (
            always(60, 50),
            5,
            some("no tick between t=1m and t=50s: there were 4, the last at t=45s"),
        ),
        (When::Whole, 3, some("tick 2 (t=15s): replicas: expected 3, was 6 (and 2 more ticks)")),
        (never(0, 60), 4, None),
        (never(0, 14), 6, None),
        (never(0, 15), 6, some("tick 2 (t=15s): never expected replicas 6")),
        (never(50, 60), 6, some("no tick between t=50s and t=1m: there were 4, the last at t=45s")),
        (within(0, 15), 6, None),
        (within(20, 10), 5, None),
        (
            within(20, 25),
            6,
            some(
                "not within 25s of t=20s; last at tick 4 (t=45s): \
                  replicas: expected 6, was 5",
            ),
        ),
        (
            within(46, 10),
            6,
            some("no tick between t=46s and t=56s: there were 4, the last at t=45s"),
        ),
    ] {
        assert_eq!(unmet(when.clone(), replicas(count, count), &run), message, "{when:?}");
    }
    assert_eq!(unmet(When::Whole, replicas(3, 3), &[]), some("there was no tick"));
}

/// A tick that writes a status, followed by a tick without a write.
fn with_status() -> Vec<Observation> {
    let mut run = ticks(&[None, None]);
    let condition = |type_, status, reason: &'static str, message: &'static str| HpaCondition {
        type_,
        status,
        reason: reason.into(),
        message: message.into(),
        last_transition_time: at(0),
    };
    let status = HpaStatus {
        desired_replicas: 6,
        conditions: vec![
            condition(ConditionType::AbleToScale, true, "ReadyForNewScale", "fine"),
            condition(ConditionType::ScalingLimited, true, "TooManyReplicas", "the limit"),
        ],
        ..HpaStatus::default()
    };
    run[0].push(ControllerAction::UpdateStatus(Box::new(StatusWrite {
        status,
        ..StatusWrite::default()
    })));
    run[1].push(ControllerAction::Event(Event {
        hpa: "".into(),
        type_: EventType::Warning,
        reason: "FailedGetScale".into(),
        message: "gone away".into(),
    }));
    run[1].push(ControllerAction::Error { message: "it failed".into() });
    run
}

#[test]
fn a_status_holds_until_the_next_write() {
    let mut run = with_status();
    let desired = Expectation { desired_replicas: Some(6.into()), ..Expectation::default() };
    assert_eq!(unmet(When::Tick(2), desired.clone(), &run), None);
    let mut write = run[0].status_write().cloned().expect("it is written");
    write.status.desired_replicas = 1;
    write.error = Some("conflict".into());
    run[1].push(ControllerAction::UpdateStatus(Box::new(write)));
    assert_eq!(unmet(When::Tick(2), desired.clone(), &run), None);
    run[0].retain(|action| !action.is_write());
    assert_eq!(
        unmet(When::Tick(1), desired, &run),
        some("tick 1 (t=0s): desiredReplicas: expected 6, was not set")
    );
    let current = Expectation { current_replicas: Some(6.into()), ..Expectation::default() };
    assert_eq!(
        unmet(When::Tick(1), current, &with_status()),
        some("tick 1 (t=0s): currentReplicas: expected 6, was not set")
    );
}

#[test]
fn conditions_are_matched_by_status_reason_and_message() {
    let condition = |status, reason: Option<&str>, message: Option<&str>| ExpectedCondition {
        type_: "ScalingLimited".to_owned(),
        status,
        reason: reason.map(str::to_owned),
        message: message.map(str::to_owned),
    };
    for (expected, message) in [
        (condition(Some(true), Some("TooManyReplicas"), Some("limit")), None),
        (condition(None, None, None), None),
        (
            condition(Some(false), None, None),
            some("condition ScalingLimited: expected False, was True (TooManyReplicas)"),
        ),
        (
            condition(None, Some("TooFewReplicas"), Some("less")),
            some(
                "condition ScalingLimited: expected reason TooFewReplicas, was \
                 TooManyReplicas; condition ScalingLimited: expected message \"less\", was \
                 \"the limit\"",
            ),
        ),
        (
            ExpectedCondition { type_: "ScalingActive".to_owned(), ..condition(None, None, None) },
            some("condition ScalingActive: missing; the status has AbleToScale, ScalingLimited"),
        ),
    ] {
        let what = Expectation { conditions: vec![expected.clone()], ..Expectation::default() };
        let message = message.map(|message| format!("tick 2 (t=15s): {message}"));
        assert_eq!(unmet(When::Tick(2), what, &with_status()), message, "{expected:?}");
    }
}

#[test]
fn events_and_errors_belong_to_one_tick() {
    let event = |reason: &str, message: Option<&str>| Expectation {
        events: vec![ExpectedEvent {
            reason: reason.to_owned(),
            message: message.map(str::to_owned),
        }],
        ..Expectation::default()
    };
    let error = |part: &str| Expectation { error: Some(part.to_owned()), ..Expectation::default() };
    for (tick, what, message) in [
        (2, event("FailedGetScale", Some("gone")), None),
        (
            2,
            event("FailedGetScale", Some("lost")),
            some(
                "tick 2 (t=15s): event: expected FailedGetScale \"lost\", was \
                 FailedGetScale \"gone away\"",
            ),
        ),
        (
            1,
            event("FailedGetScale", None),
            some("tick 1 (t=0s): event: expected FailedGetScale, was none"),
        ),
        (2, error("failed"), None),
        (
            2,
            error("conflict"),
            some("tick 2 (t=15s): error: expected \"conflict\", was \"it failed\""),
        ),
    ] {
        assert_eq!(unmet(When::Tick(tick), what.clone(), &with_status()), message, "{what:?}");
    }
    assert_eq!(
        unmet(When::Never(at(0), at(15)), event("FailedGetScale", Some("gone")), &with_status()),
        some("tick 2 (t=15s): never expected event FailedGetScale \"gone\"")
    );
}

#[test]
fn never_requires_all_fields_to_match() {
    let run = ticks(&[None, Some(6), None]);
    let what = |rescaled| Expectation { rescaled: Some(rescaled), ..replicas(6, 6) };
    let never = When::Never(at(0), at(15));
    assert_eq!(unmet(never.clone(), what(false), &run), None);
    assert_eq!(
        unmet(never, what(true), &run),
        some("tick 2 (t=15s): never expected replicas 6 with a change of replicas")
    );
}

#[test]
fn counts_apply_to_any_span() {
    let run = ticks(&[Some(4), Some(5), None, None, Some(3), Some(6)]);
    let rescales = |most, span: Option<i64>| Expectation {
        at_most: limit(None, Some(most), span),
        ..Expectation::default()
    };
    let turns = |most, span: Option<i64>| Expectation {
        at_most: limit(Some(most), None, span),
        ..Expectation::default()
    };
    for (when, what, message) in [
        (When::Whole, rescales(4, None), None),
        (
            When::Whole,
            rescales(3, None),
            some("tick 6 (t=1m15s): rescales: expected at most 3, 3 -> 6 was number 4 since t=0s"),
        ),
        (
            When::Whole,
            rescales(0, None),
            some("tick 1 (t=0s): rescales: expected at most 0, 3 -> 4 was number 1"),
        ),
        // Two rescales that are 15 s apart are not both within 15 s.
        (When::Whole, rescales(1, Some(15)), None),
        (
            When::Whole,
            rescales(1, Some(16)),
            some(
                "tick 2 (t=15s): rescales: expected at most 1 within 16s, 4 -> 5 was number 2 \
                 since t=0s",
            ),
        ),
        (When::Always(at(20), at(60)), rescales(1, None), None),
        (When::Tick(4), rescales(2, None), None),
        (
            When::Tick(5),
            rescales(2, None),
            some("tick 5 (t=1m): rescales: expected at most 2, 5 -> 3 was number 3 since t=0s"),
        ),
        (When::Whole, turns(2, None), None),
        (
            When::Whole,
            turns(1, None),
            some(
                "tick 6 (t=1m15s): changes of direction: expected at most 1, 3 -> 6 was \
                 number 2 since t=1m",
            ),
        ),
        (When::Whole, turns(1, Some(15)), None),
        (When::Always(at(0), at(60)), turns(1, None), None),
    ] {
        assert_eq!(unmet(when, what.clone(), &run), message, "{what:?}");
    }
}

#[test]
fn a_write_of_the_same_replicas_is_not_a_change() {
    let run = ticks(&[Some(3), Some(4)]);
    let what = Expectation { at_most: limit(None, Some(1), None), ..Expectation::default() };
    assert_eq!(unmet(When::Whole, what, &run), None);
    let rescaled = Expectation { rescaled: Some(false), ..Expectation::default() };
    assert_eq!(unmet(When::Tick(1), rescaled.clone(), &run), None);
    assert_eq!(
        unmet(When::Tick(2), rescaled, &run),
        some("tick 2 (t=15s): rescaled: expected no change of replicas, was 3 -> 4")
    );
}

/// Reconciles of a metric at these percentages of the request.
fn percentages(percent: &[i32]) -> Vec<Observation> {
    let mut run = ticks(&vec![None; percent.len()]);
    for (tick, percent) in run.iter_mut().zip(percent) {
        let current = MetricValueStatus {
            average_utilization: Some(*percent),
            average_value: Quantity::parse(&format!("{percent}0m")).ok(),
            value: None,
        };
        let resource = ResourceMetricStatus { name: "cpu".into(), current };
        let status = HpaStatus {
            current_metrics: vec![MetricStatus::Resource { resource }],
            ..HpaStatus::default()
        };
        tick.push(ControllerAction::UpdateStatus(Box::new(StatusWrite {
            status,
            ..StatusWrite::default()
        })));
    }
    run
}

fn metric(name: &str, utilization: Option<Bounds<i32>>) -> Expectation {
    let metric = ExpectedMetric { name: name.into(), utilization, ..ExpectedMetric::default() };
    Expectation { metrics: vec![metric], ..Expectation::default() }
}

#[test]
fn metrics_are_those_of_the_status() {
    let run = percentages(&[101, 80]);
    let percent = |min, max| Some(Bounds { min: Some(min), max: Some(max) });
    assert_eq!(unmet(When::Tick(1), metric("cpu", percent(101, 101)), &run), None);
    assert_eq!(unmet(When::Tick(2), metric("cpu", percent(0, 80)), &run), None);
    assert_eq!(
        unmet(When::Tick(2), metric("cpu", percent(101, 101)), &run),
        some("tick 2 (t=15s): metric cpu: expected utilization 101%, was utilization 80%")
    );
    assert_eq!(
        unmet(When::Tick(2), metric("memory", percent(0, 5)), &run),
        some("tick 2 (t=15s): metric memory: missing; the status has cpu 80% (800m each)")
    );
    let quantity = |text: &str| Quantity::parse(text).ok();
    let mut average = metric("cpu", None);
    let range = Bounds { min: quantity("1"), max: quantity("1010m") };
    average.metrics[0].average_value = Some(range);
    assert_eq!(unmet(When::Tick(1), average.clone(), &run), None);
    average.metrics[0].value = Some(Bounds { min: quantity("3"), max: None });
    assert_eq!(
        unmet(When::Tick(2), average, &run),
        some(
            "tick 2 (t=15s): metric cpu: expected averageValue 1 to 1010m and value at least 3, \
             was averageValue 800m and value not set"
        )
    );
}

#[test]
fn a_tolerance_accepts_the_values_of_ticks_nearby() {
    let run = ticks(&[None, None, Some(6), None]);
    let expect = |tolerance_ticks| Expectation { tolerance_ticks, ..replicas(6, 6) };
    assert_eq!(unmet(When::Tick(2), expect(1), &run), None);
    assert_eq!(unmet(When::At(at(20)), expect(1), &run), None);
    assert_eq!(
        unmet(When::Tick(1), expect(1), &run),
        some(
            "tick 1 (t=0s): replicas: expected 6, was 3, and not as expected 1 tick earlier or \
             later either"
        )
    );
    assert_eq!(unmet(When::Tick(1), expect(2), &run), None);
}

#[test]
fn a_series_compares_the_replicas_at_regular_times() {
    let run = ticks(&[None, Some(4), None, Some(6), None, Some(9)]);
    let expect = |from, numbers: &[i32]| {
        let replicas = numbers.iter().map(|it| Bounds::from(*it)).collect();
        When::Series(ExpectedSeries { every: Span::from_secs(30), from, replicas })
    };
    assert_eq!(unmet(expect(None, &[3, 4, 6]), Expectation::default(), &run), None);
    assert_eq!(unmet(expect(Some(at(20)), &[4, 6, 9]), Expectation::default(), &run), None);
    assert_eq!(
        unmet(expect(None, &[3, 5, 7]), Expectation::default(), &run),
        some("t=30s, tick 3 (t=30s): replicas: expected 5, was 4; 1 more of 3 values differs")
    );
    let near = Expectation { tolerance_ticks: 1, ..Expectation::default() };
    assert_eq!(unmet(expect(None, &[4, 6, 9]), near, &run), None);
}

#[test]
fn a_sequence_is_all_numbers_of_replicas_in_order() {
    let run = ticks(&[None, Some(4), None, Some(6)]);
    let expect = |replicas: &[i32]| When::Sequence(replicas.to_vec());
    assert_eq!(unmet(expect(&[3, 4, 6]), Expectation::default(), &run), None);
    for (replicas, difference) in [
        (&[3, 6][..], "number 2 differs first, at tick 2 (t=15s): expected 6, was 4"),
        (&[3, 4], "number 3 differs first, at tick 4 (t=45s): expected no change, was 6"),
        (&[3, 4, 6, 7], "number 4 differs first, at tick 4 (t=45s): expected 7, was no change"),
    ] {
        let text = unmet(expect(replicas), Expectation::default(), &run).unwrap_or_default();
        assert!(text.ends_with(difference), "{text}");
    }
    // A user's change is part of the sequence.
    let expectation = timed(expect(&[3, 8, 4, 6]), Expectation::default());
    let user = [outside(10, 8)];
    assert_eq!(evaluate(&[expectation], Release::NEWEST, &run, &targets(), &user), []);
}

#[test]
fn times_can_count_from_the_first_reconcile() {
    let mut run = ticks(&[None, Some(6), Some(8)]);
    for tick in &mut run {
        tick.at = tick.at + Span::from_secs(15);
    }
    let expect = |since, size| Expectation { since, ..replicas(size, size) };
    assert_eq!(unmet(When::At(at(15)), expect(Since::FirstReconcile, 6), &run), None);
    assert_eq!(unmet(When::At(at(15)), expect(Since::Start, 3), &run), None);
    assert_eq!(unmet(When::Always(at(30), at(900)), expect(Since::FirstReconcile, 8), &run), None);
}

#[test]
fn an_unmet_expectation_names_its_values_and_its_tick() {
    let run = ticks(&[None, Some(6)]);
    let expect = [timed(When::Tick(1), replicas(3, 3)), timed(When::Tick(2), replicas(7, 9))];
    let unmet = evaluate(&expect, Release::NEWEST, &run, &targets(), &[]);
    let [unmet] = unmet.as_slice() else { panic!("{unmet:?}") };
    assert_eq!((unmet.number, unmet.tick), (2, Some(UnmetTick { tick: 2, at: at(15), index: 1 })));
    let [value] = unmet.values.as_slice() else { panic!("{unmet:?}") };
    assert_eq!((&*value.field, &*value.expected, &*value.observed), ("replicas", "7 to 9", "6"));
    let explained = unmet.clone().with_reason(|index| Some(format!("reason {index}")));
    assert_eq!(explained.why, "reason 1");
}
