//! Resolution of the expectations.

use super::cursor::{At, Problems};
use super::expect_object::{self, Subjects};
use super::hpa::Hpas;
use super::served::Asked;
use super::values::{LATER_END, not_after_end};
use crate::error::suggest;
use crate::expectation::{AnyExpectation, Timing};
use crate::raw::ScenarioFile;
use crate::resolved::{
    Action, Bounds, Expectation, ExpectedMetric, ExpectedSeries, Since, TimelineEvent, When,
};
use kube_autoscaler_models::api::MetricSourceType;
use kube_autoscaler_models::time::{Span, Time};

/// The conditions that the HPA controller sets.
const CONDITIONS: [&str; 4] = ["AbleToScale", "ScalingActive", "ScalingLimited", "ScaledToZero"];
/// The fields for the time of an expectation.
const WHENS: [&str; 9] =
    ["tick", "at", "always", "never", "within", "atMost", "series", "sequence", "rests"];
/// The fields for the times of an expectation that contain the expected values.
const ALONE: [&str; 4] = ["atMost", "series", "sequence", "rests"];
/// The hint for ticks of 0.
const FROM_1: &str = "ticks are counted from 1";
/// The fields for expected values.
const WHATS: [&str; 8] = [
    "replicas",
    "desiredReplicas",
    "currentReplicas",
    "metrics",
    "conditions",
    "events",
    "rescaled",
    "error",
];

/// An upper bound on the number of reconciles: one per period, and the reconciles after edits and
/// restarts.
pub(super) fn most_ticks(file: &ScenarioFile, until: Time, period: Span) -> Option<usize> {
    let periods = until.since_start().0.checked_div(period.0)?;
    let ticks_of_one = usize::try_from(periods).ok()? + 1 + file.hpa_events().count();
    Some(ticks_of_one.saturating_mul(file.hpas.len().max(1)))
}

/// Checks the expectations, and removes defaults.
pub(super) fn resolve(
    file: &ScenarioFile,
    hpas: &Hpas,
    at: At<'_>,
    most_ticks: Option<usize>,
    problems: &mut Problems,
) -> Vec<Expectation> {
    let mut expectations = Vec::new();
    let subjects = Subjects {
        has_objects: file.objects.is_some(),
        has_hpa: !hpas.is_empty(),
        has_target: !hpas.is_empty() || file.workload.target.is_some(),
    };
    for (index, expectation) in file.expect.iter().enumerate() {
        let AnyExpectation::Hpa(expectation) = expectation else { continue };
        let (mut expectation, at) = ((**expectation).clone(), at.index(index));
        expectation.line = at.line;
        if let Some(name) = &expectation.hpa {
            hpas.named(name, at.key("hpa"), problems);
        } else if let [alone, ..] = at.given(&ALONE).as_slice()
            && hpas.scale_different_targets()
            && !expectation.is_on_writes()
        {
            let hint = format!("add `hpa: NAME`, one of {}", hpas.names());
            let what = "the HPA is ambiguous: the HPAs scale different targets";
            problems.hint(at.key(alone), what, hint);
        }
        check_when(&mut expectation, at, file.until, most_ticks, problems);
        if !expect_object::check(&expectation, subjects, at, problems) {
            check_values(&expectation, at, problems);
        }
        let is_edit = |event: &TimelineEvent| matches!(event.action, Action::EditHpa(_));
        if !file.timeline.iter().any(is_edit) {
            let known = hpas.asked_of(expectation.hpa.as_deref());
            check_metrics(&expectation.metrics, &known, at.key("metrics"), problems);
        }
        expectations.push(expectation);
    }
    expectations
}

fn check_when(
    expectation: &mut Expectation,
    at: At<'_>,
    until: Time,
    most_ticks: Option<usize>,
    problems: &mut Problems,
) {
    let end = RunEnd { until, most_ticks };
    let Some(name) = check_timing(expectation.timing(), &WHENS, end, at, problems) else { return };
    let value = at.key(name);
    match expectation.when(until) {
        When::Series(series) => check_series(&series, value, until, problems),
        When::Sequence(replicas) => check_sequence(&replicas, value, problems),
        _ => {}
    }
    if expectation.tolerance_ticks > 0 && !["tick", "at", "series"].contains(&name) {
        let what = "`toleranceTicks` requires `tick`, `at` or `series`";
        problems.plain(at.key_position("toleranceTicks"), what);
    }
    if expectation.since != Since::Start && ["tick", "sequence", "atMost", "rests"].contains(&name)
    {
        let what = format!("`since` does not apply to `{name}`");
        problems.hint(at.key_position("since"), what, "remove `since`");
    }
    if let Some(series) = &mut expectation.series {
        series.from = series.from.filter(|from| *from != Time::ZERO);
    }
    expectation.of = expectation.of.filter(|of| *of != Time::ZERO);
    for between in [&mut expectation.always, &mut expectation.never].into_iter().flatten() {
        between.from = between.from.filter(|from| *from != Time::ZERO);
        between.to = between.to.filter(|to| *to != until);
    }
}

/// The end of a run.
#[derive(Clone, Copy)]
pub(super) struct RunEnd {
    /// The end of the scenario.
    pub until: Time,
    /// An upper bound on the number of ticks. `None`: unknown.
    pub(super) most_ticks: Option<usize>,
}

/// Checks that exactly one of the fields for the time is given, and that its time is not after the
/// end. Returns the name of the field, or `None` if no field or several fields are given.
pub(super) fn check_timing(
    timing: Timing<'_>,
    fields: &'static [&'static str],
    end: RunEnd,
    at: At<'_>,
    problems: &mut Problems,
) -> Option<&'static str> {
    let RunEnd { until, most_ticks } = end;
    if timing.of.is_some() && timing.within.is_none() {
        problems.plain(at.key_position("of"), "`of` requires `within`");
    }
    let given = at.given(fields);
    let &[name] = given.as_slice() else {
        let what = match given.as_slice() {
            [] => format!("the expectation has no time: set one of {}", fields.join(", ")),
            more => format!("expected one of {}, found {}", fields.join(", "), more.join(" and ")),
        };
        problems.plain(at, what);
        return None;
    };
    let value = at.key(name);
    match timing.when(until) {
        Some(When::Tick(tick)) => check_tick(tick, value, most_ticks, problems),
        Some(When::At(time)) => not_after_end(time, until, value, problems),
        Some(When::Always(from, to) | When::Never(from, to)) => {
            check_range_of_time(from, to, until, value, problems);
        }
        Some(When::Within { of, span }) => {
            not_after_end(of, until, at.key("of"), problems);
            if of <= until && of + span > until {
                let what = format!("{span} from {of} on is after the end of the scenario, {until}");
                problems.hint(value, what, LATER_END);
            }
        }
        _ => {}
    }
    Some(name)
}

fn check_series(series: &ExpectedSeries, at: At<'_>, until: Time, problems: &mut Problems) {
    let list = at.key("replicas");
    if series.replicas.is_empty() {
        problems.hint(list, "the list of replicas is empty", "for example [3, 6]");
    }
    for (index, (time, range)) in series.values().enumerate() {
        check_range(Some(range), list.index(index), problems);
        if time > until {
            let what = format!("the value at {time} is after the end of the scenario, {until}");
            return problems.hint(list.index(index), what, LATER_END);
        }
    }
}

fn check_sequence(replicas: &[i32], at: At<'_>, problems: &mut Problems) {
    if replicas.is_empty() {
        problems.hint(at, "the list of replicas is empty", "for example [3, 6]");
    }
    for (index, number) in replicas.iter().enumerate() {
        if *number < 0 {
            let what = format!("expected 0 or more replicas, found {number}");
            problems.plain(at.index(index), what);
        } else if index > 0 && replicas[index - 1] == *number {
            let what = format!("{number} follows {number}: a sequence contains only changes");
            problems.hint(at.index(index), what, "use `series` for the replicas at regular times");
        }
    }
}

/// Checks the number of a tick.
fn check_tick(tick: usize, at: At<'_>, most_ticks: Option<usize>, problems: &mut Problems) {
    match most_ticks {
        _ if tick == 0 => problems.hint(at, "expected 1 or more, found 0", FROM_1),
        Some(most) if tick > most => {
            let what =
                format!("the scenario has no tick {tick}: it ends after at most {most} ticks");
            problems.hint(at, what, LATER_END);
        }
        _ => {}
    }
}

fn check_range_of_time(from: Time, to: Time, until: Time, at: At<'_>, problems: &mut Problems) {
    not_after_end(from, until, at.key("from"), problems);
    not_after_end(to, until, at.key("to"), problems);
    if to < from && from <= until {
        problems.plain(at.key("to"), format!("{to} is before {from}"));
    }
}

fn check_values(expectation: &Expectation, at: At<'_>, problems: &mut Problems) {
    let given = at.given(&WHATS);
    if let [alone, ..] = at.given(&ALONE).as_slice() {
        if let [first, ..] = given.as_slice() {
            let what = format!("`{first}` can't be combined with `{alone}`");
            problems.hint(at.key_position(first), what, "write a separate expectation");
        }
        let bound = expectation.at_most.as_ref();
        if bound.is_some_and(|it| it.limits().into_iter().flatten().count() != 1) {
            let what = "expected exactly one of directionChanges, rescales, writes, \
                        writesWithoutChange and writersPerField";
            problems.plain(at.key("atMost"), what);
        }
        return;
    }
    if given.is_empty() {
        let what =
            format!("the expectation has no value: set at least one of {}", WHATS.join(", "));
        return problems.plain(at, what);
    }
    let numbers = [
        ("replicas", expectation.replicas),
        ("desiredReplicas", expectation.desired_replicas),
        ("currentReplicas", expectation.current_replicas),
    ];
    for (name, range) in numbers {
        check_range(range, at.key(name), problems);
    }
    for (index, metric) in expectation.metrics.iter().enumerate() {
        check_metric(metric, at.key("metrics").index(index), problems);
    }
    for (index, condition) in expectation.conditions.iter().enumerate() {
        let type_ = condition.type_.as_str();
        if !CONDITIONS.contains(&type_) {
            let at = at.key("conditions").index(index).key("type");
            let what = format!("unknown condition `{type_}`");
            problems.add(at.problem(what, suggest(type_, CONDITIONS)));
        }
    }
    for (index, event) in expectation.events.iter().enumerate() {
        if event.reason.is_empty() {
            let at = at.key("events").index(index).key("reason");
            problems.plain(at, "the reason of the event is empty");
        }
    }
}

fn check_metric(metric: &ExpectedMetric, at: At<'_>, problems: &mut Problems) {
    const VALUES: [&str; 3] = ["utilization", "averageValue", "value"];
    if at.given(&VALUES).is_empty() {
        let what = format!("the metric has no value: set at least one of {}", VALUES.join(", "));
        problems.plain(at, what);
    }
    for (name, empty) in [
        ("utilization", metric.utilization.as_ref().is_some_and(Bounds::is_empty)),
        ("averageValue", metric.average_value.as_ref().is_some_and(Bounds::is_empty)),
        ("value", metric.value.as_ref().is_some_and(Bounds::is_empty)),
    ] {
        let at = at.key(name);
        if at.is_map() && at.given(&["atLeast", "atMost"]).is_empty() {
            problems.plain(at, "expected atLeast, atMost or both");
        } else if empty {
            reversed(at, problems);
        }
    }
}

/// Checks that the HPA has the metrics, and that their types have the expected values.
fn check_metrics(
    metrics: &[ExpectedMetric],
    known: &[&Asked],
    at: At<'_>,
    problems: &mut Problems,
) {
    for (index, metric) in metrics.iter().enumerate() {
        let at = at.index(index);
        let ExpectedMetric { name, container, .. } = metric;
        let named: Vec<&Asked> =
            known.iter().copied().filter(|known| *known.name().0 == **name).collect();
        if known.is_empty() {
            return;
        } else if named.is_empty() {
            let names: Vec<&str> = known.iter().map(|known| known.name().0).collect();
            let hint = match names.as_slice() {
                [only] => Some(format!("the metric of the HPA is `{only}`").into()),
                names => suggest(name, names.iter().copied()),
            };
            let what = format!("the HPA has no metric `{name}`");
            problems.add(at.key("name").problem(what, hint));
        } else if let Some(container) = container {
            let containers: Vec<&str> = named.iter().filter_map(|known| known.name().1).collect();
            if !containers.contains(&&**container) {
                let what = format!("the HPA has no metric `{name}` of the container `{container}`");
                let hint = suggest(container, containers);
                let hint = hint.unwrap_or_else(|| "remove `container`".into());
                problems.hint(at.key("container"), what, hint);
            }
        }
        check_types(metric, &named, at, problems);
    }
}

/// Checks that the status of one of the metrics of a name can have the expected values.
fn check_types(metric: &ExpectedMetric, named: &[&Asked], at: At<'_>, problems: &mut Problems) {
    use MetricSourceType::{ContainerResource, External, Object, Resource};
    let Some(first) = named.first() else { return };
    let is_any =
        |types: &[MetricSourceType]| named.iter().any(|known| types.contains(&known.source_type()));
    let values = match first.source_type() {
        Resource | ContainerResource => "`utilization` or `averageValue`",
        Object | External => "`value` or `averageValue`",
        _ => "`averageValue`",
    };
    for (field, is_expected, types) in [
        ("value", metric.value.is_some(), [Object, External]),
        ("utilization", metric.utilization.is_some(), [Resource, ContainerResource]),
    ] {
        if is_expected && !is_any(&types) {
            let (name, of) = (&metric.name, first.source_type());
            let what = format!("`{name}` has no `{field}`: its type is {of:?}");
            problems.hint(at.key(field), what, format!("expect {values}"));
        }
    }
}

fn check_range(range: Option<Bounds<i32>>, at: At<'_>, problems: &mut Problems) {
    let Some(range) = range else { return };
    if at.is_map() && at.given(&["atLeast", "atMost"]).is_empty() {
        problems.plain(at, "expected atLeast, atMost or both");
    } else if !refuse_negative(range, at, problems) && range.is_empty() {
        reversed(at, problems);
    }
}

/// Refuses negative bounds on a number that can't be negative. Returns true if one is.
fn refuse_negative(range: Bounds<i32>, at: At<'_>, problems: &mut Problems) -> bool {
    let is_negative = |bound: &i32| *bound < 0;
    let bounds = [("atLeast", range.min), ("atMost", range.max)];
    for (name, bound) in bounds {
        if let Some(bound) = bound.filter(is_negative) {
            problems.plain(at.key(name), format!("expected 0 or more, found {bound}"));
        }
    }
    bounds.iter().any(|(_, bound)| bound.as_ref().is_some_and(is_negative))
}

/// Adds the problem of bounds that exclude each other.
pub(super) fn reversed(at: At<'_>, problems: &mut Problems) {
    problems.hint(at, "`atLeast` is greater than `atMost`", "swap the two values");
}
