//! Resolution of the expectations.

use super::super::cursor::{At, Problems};
use super::super::expect::{check_tick, reversed};
use super::super::values::{LATER_END, not_after_end};
use super::manifest::Vpa;
use super::timeline::{container, named};
use crate::model::time::Time;
use crate::scenario::error::suggest;
use crate::scenario::resolved::When;
use crate::scenario::vpa::raw::VpaScenarioFile;
use crate::scenario::vpa::{AmountRange, VpaExpectation, VpaValue, VpaWorkload};

/// The conditions that the recommender sets.
const CONDITIONS: [&str; 3] = ["RecommendationProvided", "NoPodsMatched", "ConfigUnsupported"];
/// The fields for the time of an expectation.
const WHENS: [&str; 5] = ["tick", "at", "always", "never", "within"];
/// The fields for expected values.
const WHATS: [&str; 11] = [
    "target",
    "lowerBound",
    "upperBound",
    "uncappedTarget",
    "containers",
    "conditions",
    "noConditions",
    "observedGeneration",
    "checkpoints",
    "samples",
    "log",
];

/// Checks the expectations, and fills in the VPA and the container.
pub(super) fn resolve(
    file: &VpaScenarioFile,
    vpas: &[Vpa],
    workload: &VpaWorkload,
    most_runs: i64,
    at: At<'_>,
    problems: &mut Problems,
) -> Vec<VpaExpectation> {
    let mut expectations = file.expect.clone();
    for (index, expectation) in expectations.iter_mut().enumerate() {
        let at = at.index(index);
        expectation.line = at.line;
        check_when(expectation, at, file.until, most_runs, problems);
        for (name, samples) in &expectation.samples {
            if *samples < 0 {
                let what = format!("expected 0 or more samples, found {samples}");
                problems.plain(at.key("samples").key(name), what);
            }
        }
        let given = at.given(&WHATS);
        if given.is_empty() {
            let what =
                format!("the expectation has no value: set at least one of {}", WHATS.join(", "));
            problems.plain(at, what);
        }
        let of_vpa = given.iter().any(|name| !matches!(*name, "checkpoints" | "samples" | "log"));
        if of_vpa || expectation.vpa.is_some() {
            let vpa = named(expectation.vpa.as_ref(), vpas, at, problems);
            expectation.vpa = vpa.map(|vpa| vpa.name().clone());
        }
        if expectation.amounts().next().is_some() {
            expectation.container = match expectation.container.take() {
                // A container that no longer exists can have a recommendation.
                Some(name) => Some(name),
                None => container(None, workload, at, problems),
            };
        } else if expectation.container.is_some() {
            let what = "`container` requires an expected amount";
            problems.plain(at.key_position("container"), what);
        }
        check_amounts(expectation, at, problems);
        check_conditions(expectation, at, problems);
    }
    expectations
}

fn check_when(
    expectation: &VpaExpectation,
    at: At<'_>,
    until: Time,
    most_runs: i64,
    problems: &mut Problems,
) {
    if expectation.of.is_some() && expectation.within.is_none() {
        problems.plain(at.key_position("of"), "`of` requires `within`");
    }
    let given = at.given(&WHENS);
    let &[name] = given.as_slice() else {
        let what = match given.as_slice() {
            [] => format!("the expectation has no time: set one of {}", WHENS.join(", ")),
            more => format!("expected one of {}, found {}", WHENS.join(", "), more.join(" and ")),
        };
        return problems.plain(at, what);
    };
    let value = at.key(name);
    match expectation.when(until) {
        When::Tick(tick) => check_tick(tick, value, usize::try_from(most_runs).ok(), problems),
        When::At(time) => not_after_end(time, until, value, problems),
        When::Always(from, to) | When::Never(from, to) => {
            not_after_end(from, until, value.key("from"), problems);
            not_after_end(to, until, value.key("to"), problems);
            if to < from && from <= until {
                problems.plain(value.key("to"), format!("{to} is before {from}"));
            }
        }
        When::Within { of, span } => {
            not_after_end(of, until, at.key("of"), problems);
            if of <= until && of + span > until {
                let what = format!("{span} from {of} on is after the end of the scenario, {until}");
                problems.hint(value, what, LATER_END);
            }
        }
        When::Whole | When::Series(_) | When::Sequence(_) => {}
    }
}

fn check_amounts(expectation: &VpaExpectation, at: At<'_>, problems: &mut Problems) {
    for (value, amounts) in expectation.amounts() {
        let at = at.key(VpaValue::name(value));
        if amounts.ranges().next().is_none() {
            problems.plain(at, "expected an amount of cpu, memory or both");
        }
        for (resource, range) in amounts.ranges() {
            let at = at.key(resource.name());
            match range {
                AmountRange::Bounds { at_least: None, at_most: None } => {
                    problems.plain(at, "expected atLeast, atMost or both");
                }
                AmountRange::Bounds { at_least: Some(least), at_most: Some(most) }
                    if most.compare(least).is_lt() =>
                {
                    reversed(at, problems);
                }
                _ => {}
            }
        }
    }
}

fn check_conditions(expectation: &VpaExpectation, at: At<'_>, problems: &mut Problems) {
    let types = expectation.conditions.iter().map(|condition| condition.type_.as_str());
    let places = types
        .enumerate()
        .map(|(index, type_)| (type_, at.key("conditions").index(index).key("type")));
    let absent = expectation.no_conditions.iter().enumerate();
    let absent = absent.map(|(index, type_)| (type_.as_str(), at.key("noConditions").index(index)));
    for (type_, at) in places.chain(absent) {
        if !CONDITIONS.contains(&type_) {
            let what = format!("unknown condition `{type_}`");
            problems.add(at.problem(what, suggest(type_, CONDITIONS)));
        }
    }
}
