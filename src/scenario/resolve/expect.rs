//! What the author expects.

use super::cursor::{At, Problems};
use super::hpa::Hpas;
use super::values::{positive, span, time};
use crate::model::time::{Span, Time};
use crate::scenario::error::suggest;
use crate::scenario::expect_file::{
    AtLeastAtMost, AtMost, Between, Bounds, Condition, Expect as Typed,
};
use crate::scenario::raw::ScenarioFile;
use crate::scenario::resolved::{
    Expectation, Expected, ExpectedCondition, ExpectedEvent, NumberRange, When,
};
use crate::scenario::scalars::ScalarOr;

/// The conditions that the HPA controller sets.
const CONDITIONS: [&str; 4] = ["AbleToScale", "ScalingActive", "ScalingLimited", "ScaledToZero"];
/// What says when something is expected.
const WHENS: [&str; 6] = ["tick", "at", "always", "never", "within", "atMost"];
/// What says what is expected.
const WHATS: [&str; 7] =
    ["replicas", "desiredReplicas", "currentReplicas", "conditions", "events", "rescaled", "error"];

/// More reconciles than this there can't be: those of the period, and those that edits and
/// restarts cause.
pub(super) fn most_ticks(file: &ScenarioFile, until: Option<Time>, period: Span) -> Option<usize> {
    let periods = until?.since_start().0.checked_div(period.0)?;
    let of_one = usize::try_from(periods).ok()? + 1 + file.timeline.len();
    Some(of_one.saturating_mul(file.hpas.len().max(1)))
}

pub(super) fn resolve(
    file: &ScenarioFile,
    hpas: &Hpas,
    at: At<'_>,
    (until, most_ticks): (Option<Time>, Option<usize>),
    problems: &mut Problems,
) -> Vec<Expectation> {
    let mut expectations = Vec::with_capacity(file.expect.len());
    for (index, typed) in file.expect.iter().enumerate() {
        let at = at.index(index);
        let hpa = typed.hpa.as_deref().map(|name| hpas.named(name, at.key("hpa"), problems));
        if typed.at_most.is_some() && hpa.is_none() && hpas.scale_different_targets() {
            let hint = "say of which HPA by `hpa: NAME`";
            problems.hint(at.key("atMost"), "the HPAs scale different targets", hint);
        }
        let releases = super::releases(typed.releases.as_ref(), at, problems).unwrap_or_default();
        let when = when(typed, at, until, most_ticks, problems);
        let what = what(typed, at, problems);
        if let (Some(when), Some(what)) = (when, what) {
            let (line, hpa) = (at.line, hpa.flatten());
            expectations.push(Expectation { line, releases, hpa, when, what });
        }
    }
    expectations
}

fn given<'a>(at: At<'_>, names: &[&'a str]) -> Vec<&'a str> {
    names.iter().copied().filter(|name| at.key(name).node().is_some()).collect()
}

fn when(
    typed: &Typed,
    at: At<'_>,
    until: Option<Time>,
    most_ticks: Option<usize>,
    problems: &mut Problems,
) -> Option<When> {
    if typed.of.is_some() && typed.within.is_none() {
        problems.plain(at.key_position("of"), "`of` goes with `within` only");
    }
    let given = given(at, &WHENS);
    let &[name] = given.as_slice() else {
        let what = match given.as_slice() {
            [] => format!("expected one of {}: when is this expected?", WHENS.join(", ")),
            more => format!("expected one of {}, found {}", WHENS.join(", "), more.join(" and ")),
        };
        problems.plain(at, what);
        return None;
    };
    let value = at.key(name);
    if let Some(tick) = typed.tick {
        return tick_of(tick, value, most_ticks, problems);
    }
    if let Some(text) = &typed.at {
        return time(text, until, value, problems).map(When::At);
    }
    if let Some(between) = &typed.always {
        return range(between, until, value, problems).map(|(from, to)| When::Always(from, to));
    }
    if let Some(between) = &typed.never {
        return range(between, until, value, problems).map(|(from, to)| When::Never(from, to));
    }
    if let Some(text) = &typed.within {
        let of = match &typed.of {
            Some(text) => time(text, until, at.key("of"), problems)?,
            None => Time::ZERO,
        };
        let span = span(text, value, problems)?;
        if until.is_some_and(|until| of + span > until) {
            let what = format!("{span} from {of} on is after the end of the scenario");
            problems.plain(value, what);
        }
        return Some(When::Within { of, span });
    }
    typed.at_most.as_ref().map(|_| When::Whole)
}

fn tick_of(
    tick: u32,
    at: At<'_>,
    most_ticks: Option<usize>,
    problems: &mut Problems,
) -> Option<When> {
    if tick == 0 {
        problems.plain(at, "ticks are counted from 1");
        return None;
    }
    let tick = usize::try_from(tick).ok()?;
    match most_ticks {
        Some(most) if tick > most => {
            let what = format!("there is no tick {tick}: the scenario ends after at most {most}");
            problems.hint(at, what, "let it run longer by `until`");
            None
        }
        _ => Some(When::Tick(tick)),
    }
}

fn range(
    typed: &Between,
    until: Option<Time>,
    at: At<'_>,
    problems: &mut Problems,
) -> Option<(Time, Time)> {
    let from = match &typed.from {
        Some(text) => time(text, until, at.key("from"), problems)?,
        None => Time::ZERO,
    };
    let to = match &typed.to {
        Some(text) => time(text, until, at.key("to"), problems)?,
        None => until?,
    };
    if to < from {
        problems.plain(at.key("to"), format!("{to} is before {from}"));
        return None;
    }
    Some((from, to))
}

fn what(typed: &Typed, at: At<'_>, problems: &mut Problems) -> Option<Expected> {
    let given = given(at, &WHATS);
    if let Some(bound) = &typed.at_most {
        if let [first, ..] = given.as_slice() {
            problems.plain(at.key_position(first), format!("`{first}` can't go with `atMost`"));
        }
        return at_most(bound, at.key("atMost"), problems);
    }
    if given.is_empty() {
        problems.plain(at, format!("nothing is expected: give one of {}", WHATS.join(", ")));
        return None;
    }
    let mut bounds = |typed: &Option<Bounds>, name| {
        typed.as_ref().and_then(|typed| bounds_of(typed, at.key(name), problems))
    };
    let replicas = bounds(&typed.replicas, "replicas");
    let desired_replicas = bounds(&typed.desired_replicas, "desiredReplicas");
    let current_replicas = bounds(&typed.current_replicas, "currentReplicas");
    let conditions = typed.conditions.iter().enumerate().map(|(index, condition)| {
        condition_of(condition, at.key("conditions").index(index), problems)
    });
    let conditions = conditions.collect();
    for (index, event) in typed.events.iter().enumerate() {
        if event.reason.is_empty() {
            let at = at.key("events").index(index).key("reason");
            problems.plain(at, "an empty reason of an event");
        }
    }
    let events = typed.events.iter().map(|event| ExpectedEvent {
        reason: event.reason.clone(),
        message: event.message.clone(),
    });
    Some(Expected {
        replicas,
        desired_replicas,
        current_replicas,
        conditions,
        events: events.collect(),
        rescaled: typed.rescaled,
        error: typed.error.clone(),
        ..Expected::default()
    })
}

fn at_most(typed: &AtMost, at: At<'_>, problems: &mut Problems) -> Option<Expected> {
    let within = match &typed.in_ {
        Some(text) => Some(positive(text, at.key("in"), problems)?),
        None => None,
    };
    let mut expected = Expected::default();
    match (typed.direction_changes, typed.rescales) {
        (Some(count), None) => expected.at_most_direction_changes = Some((count, within)),
        (None, Some(count)) => expected.at_most_rescales = Some((count, within)),
        _ => {
            let what = "expected exactly one of directionChanges and rescales";
            problems.plain(at, what);
            return None;
        }
    }
    Some(expected)
}

fn bounds_of(typed: &Bounds, at: At<'_>, problems: &mut Problems) -> Option<NumberRange> {
    let map = match &typed.0 {
        ScalarOr::Scalar(text) => match text.0.parse::<i32>() {
            Ok(number) if number >= 0 => {
                return Some(NumberRange { min: number, max: number });
            }
            _ => {
                let what = format!("expected a number of replicas, found {}", text.0);
                let hint = "or bounds: {atLeast: 3, atMost: 10}";
                problems.hint(at, what, hint);
                return None;
            }
        },
        ScalarOr::Map(map) => map,
    };
    let AtLeastAtMost { at_least, at_most } = *map;
    if at_least.is_none() && at_most.is_none() {
        problems.plain(at, "expected atLeast, atMost or both");
        return None;
    }
    let range = NumberRange { min: at_least.unwrap_or(0), max: at_most.unwrap_or(i32::MAX) };
    if range.min > range.max {
        problems
            .plain(at, format!("no number is at least {} and at most {}", range.min, range.max));
        return None;
    }
    Some(range)
}

fn condition_of(typed: &Condition, at: At<'_>, problems: &mut Problems) -> ExpectedCondition {
    if !CONDITIONS.contains(&typed.type_.as_str()) {
        let what = format!("unknown condition `{}`", typed.type_);
        problems.add(at.key("type").problem(what, suggest(&typed.type_, CONDITIONS)));
    }
    let status = typed.status.as_ref().and_then(|status| match status.0.as_str() {
        "True" | "true" => Some(true),
        "False" | "false" => Some(false),
        other => {
            let what = format!("expected status True or False, found {other}");
            problems.plain(at.key("status"), what);
            None
        }
    });
    ExpectedCondition {
        type_: typed.type_.clone(),
        status,
        reason: typed.reason.clone(),
        message: typed.message.clone(),
    }
}
