//! Resolves the expectations.

use super::cursor::{At, Problems};
use super::hpa::Hpas;
use super::values::not_after_end;
use crate::model::time::{Span, Time};
use crate::scenario::error::suggest;
use crate::scenario::expectation::{AtMost, Between, Expect as Typed};
use crate::scenario::raw::ScenarioFile;
use crate::scenario::resolved::{Expectation, Expected, NumberRange, When};

/// The conditions that the HPA controller sets.
const CONDITIONS: [&str; 4] = ["AbleToScale", "ScalingActive", "ScalingLimited", "ScaledToZero"];
/// The fields for the time of an expectation.
const WHENS: [&str; 6] = ["tick", "at", "always", "never", "within", "atMost"];
/// The fields for expected values.
const WHATS: [&str; 7] =
    ["replicas", "desiredReplicas", "currentReplicas", "conditions", "events", "rescaled", "error"];

/// An upper bound on the number of reconciles: one per period, and the reconciles after edits and
/// restarts.
pub(super) fn most_ticks(file: &ScenarioFile, until: Time, period: Span) -> Option<usize> {
    let periods = until.since_start().0.checked_div(period.0)?;
    let of_one = usize::try_from(periods).ok()? + 1 + file.timeline.len();
    Some(of_one.saturating_mul(file.hpas.len().max(1)))
}

pub(super) fn resolve(
    file: &ScenarioFile,
    hpas: &Hpas,
    at: At<'_>,
    most_ticks: Option<usize>,
    problems: &mut Problems,
) -> Vec<Expectation> {
    let mut expectations = Vec::with_capacity(file.expect.len());
    for (index, typed) in file.expect.iter().enumerate() {
        let at = at.index(index);
        let hpa = typed.hpa.as_deref().map(|name| hpas.named(name, at.key("hpa"), problems));
        if typed.at_most.is_some() && hpa.is_none() && hpas.scale_different_targets() {
            let hint = "add `hpa: NAME`";
            problems.hint(at.key("atMost"), "the HPAs scale different targets", hint);
        }
        let releases = typed.releases;
        let when = when(typed, at, file.until, most_ticks, problems);
        let what = what(typed, at, problems);
        if let (Some(when), Some(what)) = (when, what) {
            let (line, hpa) = (at.line, hpa.flatten());
            expectations.push(Expectation { line, releases, hpa, when, what });
        }
    }
    expectations
}

fn when(
    typed: &Typed,
    at: At<'_>,
    until: Time,
    most_ticks: Option<usize>,
    problems: &mut Problems,
) -> Option<When> {
    if typed.of.is_some() && typed.within.is_none() {
        problems.plain(at.key_position("of"), "`of` requires `within`");
    }
    let given = at.given(&WHENS);
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
    if let Some(time) = typed.at {
        not_after_end(time, until, value, problems);
        return Some(When::At(time));
    }
    if let Some(between) = &typed.always {
        let (from, to) = range(between, until, value, problems);
        return Some(When::Always(from, to));
    }
    if let Some(between) = &typed.never {
        let (from, to) = range(between, until, value, problems);
        return Some(When::Never(from, to));
    }
    if let Some(span) = typed.within {
        let of = typed.of.unwrap_or(Time::ZERO);
        not_after_end(of, until, at.key("of"), problems);
        if of <= until && of + span > until {
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
            problems.hint(at, what, "increase `until`");
            None
        }
        _ => Some(When::Tick(tick)),
    }
}

fn range(typed: &Between, until: Time, at: At<'_>, problems: &mut Problems) -> (Time, Time) {
    let (from, to) = (typed.from.unwrap_or(Time::ZERO), typed.to.unwrap_or(until));
    not_after_end(from, until, at.key("from"), problems);
    not_after_end(to, until, at.key("to"), problems);
    if to < from && from <= until {
        problems.plain(at.key("to"), format!("{to} is before {from}"));
    }
    (from, to)
}

fn what(typed: &Typed, at: At<'_>, problems: &mut Problems) -> Option<Expected> {
    let given = at.given(&WHATS);
    if let Some(bound) = &typed.at_most {
        if let [first, ..] = given.as_slice() {
            problems.plain(at.key_position(first), format!("`{first}` can't go with `atMost`"));
        }
        return at_most(bound, at.key("atMost"), problems);
    }
    if given.is_empty() {
        problems.plain(at, format!("no expected value: set at least one of {}", WHATS.join(", ")));
        return None;
    }
    let numbers = [
        ("replicas", typed.replicas),
        ("desiredReplicas", typed.desired_replicas),
        ("currentReplicas", typed.current_replicas),
    ];
    for (name, range) in numbers {
        check_range(range, at.key(name), problems);
    }
    for (index, condition) in typed.conditions.iter().enumerate() {
        let type_ = condition.type_.as_str();
        if !CONDITIONS.contains(&type_) {
            let at = at.key("conditions").index(index).key("type");
            let what = format!("unknown condition `{type_}`");
            problems.add(at.problem(what, suggest(type_, CONDITIONS)));
        }
    }
    for (index, event) in typed.events.iter().enumerate() {
        if event.reason.is_empty() {
            let at = at.key("events").index(index).key("reason");
            problems.plain(at, "the reason of the event is empty");
        }
    }
    Some(Expected {
        replicas: typed.replicas,
        desired_replicas: typed.desired_replicas,
        current_replicas: typed.current_replicas,
        conditions: typed.conditions.clone(),
        events: typed.events.clone(),
        rescaled: typed.rescaled,
        error: typed.error.clone(),
        ..Expected::default()
    })
}

fn at_most(typed: &AtMost, at: At<'_>, problems: &mut Problems) -> Option<Expected> {
    let within = typed.in_;
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

fn check_range(range: Option<NumberRange>, at: At<'_>, problems: &mut Problems) {
    let Some(NumberRange { min, max }) = range else { return };
    if at.is_map() && at.given(&["atLeast", "atMost"]).is_empty() {
        problems.plain(at, "expected atLeast, atMost or both");
    } else if min > max {
        problems.plain(at, format!("no number is at least {min} and at most {max}"));
    }
}
