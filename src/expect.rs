//! Evaluates the expectations of a scenario over all reconciles of a run.
//!
//! The reconciles can be those of the model or of an engine. Between two writes, the status is the
//! last stored one, and the replicas are those last written, by the controller or by a user.
//!
//! Counts (`atMost…`) apply to the reconciles that an expectation selects. For a single reconcile,
//! they apply to all up to it. The interval of a count is half-open: changes at t=0s and t=60s are
//! not both within 1m.

pub mod recommender;

use std::fmt::{self, Display};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::model::api::{Condition, HpaStatus};
use crate::model::observation::{Event, Observation};
use crate::model::rules::Release;
use crate::model::time::{Span, Time};
use crate::scenario::Scenario;
use crate::scenario::resolved::{Expectation, ExpectedCondition, ExpectedEvent, NumberRange, When};

/// An expectation that was not met.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Unmet {
    /// The line in the scenario's file, from 1.
    pub line: usize,
    /// The expected and the observed value: `tick 3 (t=30s): replicas: expected 6, was 4`.
    pub what: String,
}

/// A change of a target's replicas that was not made by the controller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ExternalScale {
    /// The time of the change.
    pub at: Time,
    /// The target, by its index.
    pub target: usize,
    /// The replicas.
    pub replicas: i32,
}

/// The scale targets at t=0, the target of each HPA, and the end of the scenario.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ScaleTargets {
    /// The end.
    until: Time,
    /// The resource with its group, the name and the replicas.
    all: Vec<(String, Arc<str>, i32)>,
    /// The target of each HPA, by its index.
    hpas: Vec<(Arc<str>, usize)>,
}

impl ScaleTargets {
    /// The targets of a scenario.
    #[must_use]
    pub fn of(scenario: &Scenario) -> ScaleTargets {
        let targets = scenario.targets();
        let targets = targets.map(|it| (it.group_resource(), it.name.clone(), it.replicas));
        let hpas = scenario.hpas.iter().map(|hpa| (hpa.name.clone(), hpa.target));
        ScaleTargets { until: scenario.until, all: targets.collect(), hpas: hpas.collect() }
    }

    /// The target of a reconcile: the target whose scale it read, or else the previous target of
    /// its HPA.
    fn target(&mut self, tick: &Observation) -> usize {
        let known = self.hpas.iter_mut().find(|(name, _)| *name == tick.hpa);
        let read = tick.target().and_then(|(resource, name)| {
            let same = |(of_resource, it, _): &(String, Arc<str>, i32)| {
                **of_resource == **resource && it == name
            };
            self.all.iter().position(same)
        });
        match (known, read) {
            (Some((_, target)), Some(read)) => {
                *target = read;
                read
            }
            (Some((_, target)), None) => *target,
            (None, read) => read.unwrap_or(0),
        }
    }
}

/// Evaluates the expectations of a release over all reconciles of a run, in order of time.
/// `targets` holds the targets at t=0. `external_scales` holds changes by users, in order of time;
/// a reconcile at the same time follows them.
#[must_use]
pub fn evaluate(
    expect: &[Expectation],
    release: Release,
    observations: &[Observation],
    targets: &ScaleTargets,
    external_scales: &[ExternalScale],
) -> Vec<Unmet> {
    if expect.is_empty() {
        return Vec::new();
    }
    let all = Reconciles(fold(observations, targets.clone(), external_scales));
    let unmet = |expectation: &Expectation| {
        let when = expectation.when(targets.until);
        let what = match &expectation.hpa {
            None => all.unmet(&when, expectation)?,
            Some(hpa) => format!("HPA {hpa}: {}", all.of_hpa(hpa).unmet(&when, expectation)?),
        };
        Some(Unmet { line: expectation.line, what })
    };
    expect.iter().filter(|it| it.releases.contains(release)).filter_map(unmet).collect()
}

/// A reconcile, with the state after it.
#[derive(Clone)]
struct Tick<'a> {
    /// The number, from 1, among all reconciles or among the reconciles of one HPA.
    number: usize,
    observation: &'a Observation,
    /// The target's replicas before the reconcile.
    before: i32,
    /// The target's replicas after the reconcile.
    replicas: i32,
    /// The stored status of the HPA after the reconcile.
    status: Option<&'a HpaStatus>,
}

impl Tick<'_> {
    fn at(&self) -> Time {
        self.observation.at
    }

    fn rescaled(&self) -> bool {
        self.before != self.replicas
    }
}

impl Display for Tick<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tick {} (t={})", self.number, self.at())
    }
}

fn fold<'a>(
    observations: &'a [Observation],
    mut targets: ScaleTargets,
    mut external_scales: &[ExternalScale],
) -> Vec<Tick<'a>> {
    let mut ticks = Vec::with_capacity(observations.len());
    // The stored status of each HPA.
    let mut statuses: Vec<(&str, &'a HpaStatus)> = Vec::new();
    for (index, observation) in observations.iter().enumerate() {
        while let [first, rest @ ..] = external_scales
            && first.at <= observation.at
        {
            targets.all[first.target].2 = first.replicas;
            external_scales = rest;
        }
        let target = targets.target(observation);
        let replicas = &mut targets.all[target].2;
        let before = *replicas;
        *replicas = observation.scaled_to().unwrap_or(before);
        let written = observation.status_write().filter(|write| write.error.is_none());
        if let Some(write) = written {
            statuses.retain(|(hpa, _)| *hpa != &*observation.hpa);
            statuses.push((&observation.hpa, &write.status));
        }
        let status = statuses.iter().find(|(hpa, _)| *hpa == &*observation.hpa);
        let status = status.map(|(_, status)| *status);
        ticks.push(Tick { number: index + 1, observation, before, replicas: *replicas, status });
    }
    ticks
}

/// All reconciles of a run.
struct Reconciles<'a>(Vec<Tick<'a>>);

impl<'a> Reconciles<'a> {
    /// The reconciles of one HPA, numbered separately.
    fn of_hpa(&self, hpa: &str) -> Reconciles<'a> {
        let ticks = self.0.iter().filter(|tick| &*tick.observation.hpa == hpa).enumerate();
        Reconciles(ticks.map(|(index, tick)| Tick { number: index + 1, ..tick.clone() }).collect())
    }

    /// Why an expectation is not met.
    fn unmet(&self, when: &When, expected: &Expectation) -> Option<String> {
        match when {
            When::Tick(number) => match number.checked_sub(1).and_then(|i| self.0.get(i)) {
                Some(tick) => self.unmet_at(tick, expected),
                None => Some(format!("tick {number} never happened: {}", self.how_many())),
            },
            When::At(at) => {
                let until = self.0.partition_point(|tick| tick.at() <= *at);
                match self.0[..until].last() {
                    Some(tick) => self.unmet_at(tick, expected),
                    None => Some(format!("no tick at or before t={at}: {}", self.how_many())),
                }
            }
            When::Always(from, to) => {
                self.always(self.between(*from, *to), expected, || self.nothing_between(*from, *to))
            }
            When::Whole => self.always(&self.0, expected, || "there was no tick".to_owned()),
            When::Never(from, to) => self.never(*from, *to, expected),
            When::Within { of, span } => self.within(*of, *span, expected),
        }
    }

    /// A single reconcile; counts apply to the run up to it.
    fn unmet_at(&self, tick: &Tick<'_>, expected: &Expectation) -> Option<String> {
        let wrong = wrong_at(tick, expected).map(|wrong| format!("{tick}: {wrong}"));
        wrong.or_else(|| too_often(&self.0[..tick.number], expected))
    }

    fn always(
        &self,
        ticks: &[Tick<'_>],
        expected: &Expectation,
        nothing: impl FnOnce() -> String,
    ) -> Option<String> {
        if ticks.is_empty() {
            return Some(nothing());
        }
        let mut wrong =
            ticks.iter().filter_map(|tick| wrong_at(tick, expected).map(|wrong| (tick, wrong)));
        if let Some((tick, first)) = wrong.next() {
            return Some(match wrong.count() {
                0 => format!("{tick}: {first}"),
                1 => format!("{tick}: {first} (and 1 more tick)"),
                more => format!("{tick}: {first} (and {more} more ticks)"),
            });
        }
        too_often(ticks, expected)
    }

    fn never(&self, from: Time, to: Time, expected: &Expectation) -> Option<String> {
        let ticks = self.between(from, to);
        if ticks.is_empty() {
            return Some(self.nothing_between(from, to));
        }
        let met = ticks.iter().find(|tick| wrong_at(tick, expected).is_none());
        let met = met.filter(|_| expected.at_most.is_none());
        met.map(|tick| format!("{tick}: never expected {}", describe(expected)))
            .or_else(|| too_often(ticks, expected))
    }

    fn within(&self, of: Time, span: Span, expected: &Expectation) -> Option<String> {
        let ticks = self.between(of, of + span);
        let Some(last) = ticks.last() else {
            return Some(self.nothing_between(of, of + span));
        };
        if ticks.iter().any(|tick| wrong_at(tick, expected).is_none()) {
            return too_often(ticks, expected);
        }
        let wrong = wrong_at(last, expected)?;
        Some(format!("not within {span} of t={of}; last at {last}: {wrong}"))
    }

    fn between(&self, from: Time, to: Time) -> &[Tick<'a>] {
        let first = self.0.partition_point(|tick| tick.at() < from);
        let end = self.0.partition_point(|tick| tick.at() <= to);
        &self.0[first..end.max(first)]
    }

    fn nothing_between(&self, from: Time, to: Time) -> String {
        format!("no tick between t={from} and t={to}: {}", self.how_many())
    }

    fn how_many(&self) -> String {
        match self.0.as_slice() {
            [] => "there was no tick".to_owned(),
            [only] => format!("the only one was at t={}", only.at()),
            [.., last] => format!("there were {}, the last at t={}", self.0.len(), last.at()),
        }
    }
}

/// All unmet expectations of one reconcile, separated by semicolons.
fn wrong_at(tick: &Tick<'_>, expected: &Expectation) -> Option<String> {
    let mut wrong = Wrong(Vec::new());
    if let Some(range) = expected.replicas {
        wrong.number("replicas", range, Some(tick.replicas));
    }
    if let Some(range) = expected.desired_replicas {
        wrong.number("desiredReplicas", range, tick.status.map(|status| status.desired_replicas));
    }
    if let Some(range) = expected.current_replicas {
        let current = tick.status.and_then(|status| status.current_replicas);
        wrong.number("currentReplicas", range, current);
    }
    let conditions = tick.status.map_or(&[][..], |status| &status.conditions);
    for condition in &expected.conditions {
        wrong.condition(condition, conditions);
    }
    for event in &expected.events {
        wrong.event(event, tick.observation);
    }
    if let Some(rescaled) = expected.rescaled
        && rescaled != tick.rescaled()
    {
        wrong.add(match (rescaled, tick.before, tick.replicas) {
            (true, _, after) => {
                format!("rescaled: expected a change of replicas, stayed at {after}")
            }
            (false, before, after) => {
                format!("rescaled: expected no change of replicas, was {before} -> {after}")
            }
        });
    }
    if let Some(part) = &expected.error {
        let errors = tick.observation.errors();
        if !errors.clone().any(|error| error.as_str().contains(part.as_str())) {
            let errors = errors.map(|error| quoted(error.as_str()));
            wrong.add(format!("error: expected {}, was {}", quoted(part), list(errors)));
        }
    }
    (!wrong.0.is_empty()).then(|| wrong.0.join("; "))
}

struct Wrong(Vec<String>);

impl Wrong {
    fn add(&mut self, what: String) {
        self.0.push(what);
    }

    fn number(&mut self, field: &str, range: NumberRange, seen: Option<i32>) {
        if seen.is_some_and(|seen| range.min <= seen && seen <= range.max) {
            return;
        }
        let seen = seen.map_or_else(|| "not set".to_owned(), |seen| seen.to_string());
        self.add(format!("{field}: expected {}, was {seen}", Range(range)));
    }

    fn condition(&mut self, expected: &ExpectedCondition, conditions: &[Condition]) {
        let type_ = &expected.type_;
        let of_type = |condition: &&Condition| format!("{:?}", condition.type_) == *type_;
        let Some(seen) = conditions.iter().find(of_type) else {
            let types = list(conditions.iter().map(|condition| format!("{:?}", condition.type_)));
            self.add(format!("condition {type_}: missing; the status has {types}"));
            return;
        };
        if let Some(status) = expected.status
            && status != seen.status
        {
            let (status, seen_status) = (truth(status), truth(seen.status));
            let reason = seen.reason.as_str();
            self.add(format!("condition {type_}: expected {status}, was {seen_status} ({reason})"));
        }
        if let Some(reason) = &expected.reason
            && reason != seen.reason.as_str()
        {
            let seen = seen.reason.as_str();
            self.add(format!("condition {type_}: expected reason {reason}, was {seen}"));
        }
        if let Some(part) = &expected.message
            && !seen.message.as_str().contains(part.as_str())
        {
            let (part, seen) = (quoted(part), quoted(seen.message.as_str()));
            self.add(format!("condition {type_}: expected message {part}, was {seen}"));
        }
    }

    fn event(&mut self, expected: &ExpectedEvent, tick: &Observation) {
        let matches = |event: &Event| {
            let part = expected.message.as_deref().unwrap_or_default();
            event.reason.as_str() == expected.reason && event.message.as_str().contains(part)
        };
        if tick.events().any(matches) {
            return;
        }
        let part = expected.message.as_ref().map(|part| format!(" {}", quoted(part)));
        let seen = tick
            .events()
            .map(|event| format!("{} {}", event.reason.as_str(), quoted(event.message.as_str())));
        self.add(format!(
            "event: expected {}{}, was {}",
            expected.reason,
            part.unwrap_or_default(),
            list(seen)
        ));
    }
}

/// The first reconcile that exceeds a count.
fn too_often(ticks: &[Tick<'_>], expected: &Expectation) -> Option<String> {
    let rescales: Vec<&Tick<'_>> = ticks.iter().filter(|tick| tick.rescaled()).collect();
    let up = |tick: &Tick<'_>| tick.replicas > tick.before;
    let limits = expected.at_most.as_ref()?;
    let exceeds = |most: Option<u32>, changes: &[&Tick<'_>], what: &str| {
        let (most, span) = (usize::try_from(most?).unwrap_or(usize::MAX), limits.in_);
        // Exceeded if the n-th change before this one is also within the interval.
        let pairs = changes.iter().zip(changes.get(most..)?);
        let mut exceeding =
            pairs.filter(|(old, new)| span.is_none_or(|span| new.at() - old.at() < span));
        let (old, new) = exceeding.next()?;
        let within = span.map(|span| format!(" within {span}")).unwrap_or_default();
        let since = if most > 0 { format!(" since t={}", old.at()) } else { String::new() };
        let (before, after, number) = (new.before, new.replicas, most + 1);
        Some(format!(
            "{new}: {what}: expected at most {most}{within}, {before} -> {after} was number \
             {number}{since}"
        ))
    };
    let direction_changes: Vec<&Tick<'_>> =
        rescales.windows(2).filter(|pair| up(pair[0]) != up(pair[1])).map(|pair| pair[1]).collect();
    exceeds(limits.rescales, &rescales, "rescales")
        .or_else(|| exceeds(limits.direction_changes, &direction_changes, "changes of direction"))
}

/// The text of the unmet part of an expectation.
fn describe(expected: &Expectation) -> String {
    let mut parts = Vec::new();
    for (field, range) in [
        ("replicas", expected.replicas),
        ("desiredReplicas", expected.desired_replicas),
        ("currentReplicas", expected.current_replicas),
    ] {
        parts.extend(range.map(|range| format!("{field} {}", Range(range))));
    }
    for condition in &expected.conditions {
        let mut part = format!("condition {}", condition.type_);
        part.extend(condition.status.map(|status| format!(" {}", truth(status))));
        part.extend(condition.reason.as_ref().map(|reason| format!(" {reason}")));
        part.extend(condition.message.as_ref().map(|message| format!(" {}", quoted(message))));
        parts.push(part);
    }
    for event in &expected.events {
        let message = event.message.as_ref().map(|message| format!(" {}", quoted(message)));
        parts.push(format!("event {}{}", event.reason, message.unwrap_or_default()));
    }
    parts.extend(expected.rescaled.map(|rescaled| {
        if rescaled {
            "a change of replicas".to_owned()
        } else {
            "no change of replicas".to_owned()
        }
    }));
    parts.extend(expected.error.as_ref().map(|error| format!("error {}", quoted(error))));
    parts.join(" with ")
}

/// Formats bounds.
struct Range(NumberRange);

impl Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            NumberRange { min, max } if min == max => write!(f, "{min}"),
            NumberRange { min: i32::MIN, max } => write!(f, "at most {max}"),
            NumberRange { min, max: i32::MAX } => write!(f, "at least {min}"),
            NumberRange { min, max } => write!(f, "{min} to {max}"),
        }
    }
}

fn truth(status: bool) -> &'static str {
    if status { "True" } else { "False" }
}

fn quoted(text: &str) -> String {
    format!("\"{text}\"")
}

fn list(items: impl Iterator<Item = String>) -> String {
    let items: Vec<String> = items.collect();
    if items.is_empty() { "none".to_owned() } else { items.join(", ") }
}

#[cfg(test)]
mod tests;
