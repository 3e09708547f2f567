//! Evaluates the expectations of a scenario over all reconciles of a run.
//!
//! The reconciles can be those of the model or of an engine. Between two writes, the status is the
//! last stored one, and the replicas are those last written, by the controller or by a user.
//!
//! Counts (`atMost…`) apply to the reconciles that an expectation selects. For a single reconcile,
//! they apply to all up to it. The interval of a count is half-open: changes at t=0s and t=60s are
//! not both within 1m.

mod amount;
mod object;
mod properties;
pub mod recommender;
mod reconciled;
mod replicas;
mod tick;
mod unmet;
mod values;
mod when;

use serde_json::json;

pub use self::object::of_objects;
pub use self::reconciled::Reconciled;
pub use self::tick::{ExternalScale, Moment, ScaleTargets};
use self::tick::{Tick, fold};
use self::unmet::Miss;
pub use self::unmet::{Unmet, UnmetTick, UnmetValue};
use self::values::{Wrong, describe, wrong_at};
use self::when::ExpectedTick;
use kube_autoscaler_models::observation::Observation;
use kube_autoscaler_models::rules::Release;
use kube_autoscaler_models::time::{Span, Time};
use kube_lockstep_scenario::resolved::{Expectation, Since, When};

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
    let all = fold(observations, targets.clone(), external_scales);
    let on_reconciles = |it: &&Expectation| it.object.is_none() && !it.is_on_writes();
    let unmet = |(index, expectation): (usize, &Expectation)| {
        let when = expectation.when(targets.until);
        let miss = match &expectation.hpa {
            None => unmet(&all, when, expectation)?,
            Some(hpa) => unmet(&reconciles_of(&all, hpa), when, expectation)?,
        };
        let Miss { what, tick, values } = miss;
        let hpa = expectation.hpa.clone();
        let what = hpa.as_ref().map(|hpa| format!("HPA {hpa}: {what}")).unwrap_or(what);
        let (number, line) = (index + 1, expectation.line);
        Some(Unmet { number, line, what, hpa, tick, values, ..Unmet::default() })
    };
    let applying = expect.iter().enumerate().filter(|(_, it)| it.releases.contains(release));
    applying.filter(|(_, it)| on_reconciles(it)).filter_map(unmet).collect()
}

/// The reconciles of one HPA, numbered separately.
fn reconciles_of<'a>(all: &[Tick<'a>], hpa: &str) -> Vec<Tick<'a>> {
    let ticks = all.iter().filter(|tick| &*tick.observation.hpa == hpa).enumerate();
    ticks.map(|(index, tick)| Tick { number: index + 1, ..tick.clone() }).collect()
}

/// Why an expectation is not met.
fn unmet(ticks: &[Tick<'_>], when: When, expected: &Expectation) -> Option<Miss> {
    let since = match expected.since {
        Since::Start => Span::ZERO,
        Since::FirstReconcile => ticks.first().map_or(Span::ZERO, |it| it.at().since_start()),
    };
    when::unmet(ticks, &when.later(since), expected)
}

impl ExpectedTick for Tick<'_> {
    type Expectation = Expectation;

    fn at(&self) -> Time {
        self.observation.at
    }

    fn name(&self) -> UnmetTick {
        UnmetTick { tick: self.number, at: self.at(), index: self.index }
    }

    fn wrong(&self, expected: &Expectation) -> Option<Wrong> {
        wrong_at(self, expected)
    }

    fn unwanted(&self, expected: &Expectation) -> Miss {
        let (what, never) = (describe(expected), "never expected");
        let value = UnmetValue::text("never", format!("not {what}"), what.clone());
        let what = format!("{self}: {never} {what}");
        Miss { what, tick: Some(self.name()), values: vec![value] }
    }

    fn tolerance(expected: &Expectation) -> usize {
        tolerance(expected)
    }

    fn is_only_count(expected: &Expectation) -> bool {
        expected.at_most.is_some()
    }

    fn too_often(ticks: &[Self], expected: &Expectation) -> Option<Miss> {
        too_often(ticks, expected)
    }

    fn unmet_series(ticks: &[Self], when: &When, expected: &Expectation) -> Option<Miss> {
        match when {
            When::Series(series) => replicas::series(ticks, series, tolerance(expected)),
            When::Sequence(numbers) => replicas::sequence(ticks, numbers),
            _ => None,
        }
    }
}

/// The tolerance of an expectation, in ticks.
fn tolerance(expected: &Expectation) -> usize {
    usize::try_from(expected.tolerance_ticks).unwrap_or(usize::MAX)
}

/// The first reconcile that exceeds a count.
fn too_often(ticks: &[Tick<'_>], expected: &Expectation) -> Option<Miss> {
    let rescales: Vec<&Tick<'_>> = ticks.iter().filter(|tick| tick.rescaled).collect();
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
        let expected = format!("at most {most}{within}");
        let observed = format!("{before} -> {after} was number {number}{since}");
        let text = format!("{new}: {what}: expected {expected}, {observed}");
        let value = UnmetValue::text(what, expected, observed)
            .with_values(json!({ "max": most }), json!(number));
        Some(Miss { what: text, tick: Some(new.name()), values: vec![value] })
    };
    let direction_changes: Vec<&Tick<'_>> =
        rescales.windows(2).filter(|pair| up(pair[0]) != up(pair[1])).map(|pair| pair[1]).collect();
    exceeds(limits.rescales, &rescales, "rescales")
        .or_else(|| exceeds(limits.direction_changes, &direction_changes, "changes of direction"))
}

#[cfg(test)]
mod tests;
