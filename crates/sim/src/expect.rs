//! Evaluates the expectations of a scenario over all reconciles of a run.
//!
//! The reconciles can be those of the model or of an engine. Between two writes, the status is the
//! last stored one, and the replicas are those last written, by the controller or by a user.
//!
//! Counts (`atMost…`) apply to the reconciles that an expectation selects. For a single reconcile,
//! they apply to all up to it. The interval of a count is half-open: changes at t=0s and t=60s are
//! not both within 1m.

mod amount;
pub mod recommender;
mod replicas;
mod tick;
mod unmet;
mod values;

use serde_json::json;

pub use self::tick::{ExternalScale, Moment, ScaleTargets};
use self::tick::{Tick, fold};
use self::unmet::Miss;
pub use self::unmet::{Unmet, UnmetTick, UnmetValue};
use self::values::{describe, wrong_at};
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
    let all = Reconciles(fold(observations, targets.clone(), external_scales));
    let unmet = |(index, expectation): (usize, &Expectation)| {
        let when = expectation.when(targets.until);
        let miss = match &expectation.hpa {
            None => all.unmet(when, expectation)?,
            Some(hpa) => all.of_hpa(hpa).unmet(when, expectation)?,
        };
        let Miss { what, tick, values } = miss;
        let hpa = expectation.hpa.clone();
        let what = hpa.as_ref().map(|hpa| format!("HPA {hpa}: {what}")).unwrap_or(what);
        let (number, line) = (index + 1, expectation.line);
        Some(Unmet { number, line, what, hpa, tick, values, ..Unmet::default() })
    };
    let of_release = expect.iter().enumerate().filter(|(_, it)| it.releases.contains(release));
    of_release.filter_map(unmet).collect()
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
    fn unmet(&self, when: When, expected: &Expectation) -> Option<Miss> {
        let since = match expected.since {
            Since::Start => Span::ZERO,
            Since::FirstReconcile => self.0.first().map_or(Span::ZERO, |it| it.at().since_start()),
        };
        match &when.later(since) {
            When::Tick(number) => match number.checked_sub(1).filter(|i| *i < self.0.len()) {
                Some(index) => self.unmet_at(index, expected),
                None => {
                    Some(Miss::plain(format!("tick {number} never happened: {}", self.how_many())))
                }
            },
            When::At(at) => match self.last_until(*at) {
                Some(index) => self.unmet_at(index, expected),
                None => {
                    Some(Miss::plain(format!("no tick at or before t={at}: {}", self.how_many())))
                }
            },
            When::Always(from, to) => {
                self.always(self.between(*from, *to), expected, || self.nothing_between(*from, *to))
            }
            When::Whole => self.always(&self.0, expected, || "there was no tick".to_owned()),
            When::Never(from, to) => self.never(*from, *to, expected),
            When::Within { of, span } => self.within(*of, *span, expected),
            When::Series(series) => replicas::series(&self.0, series, tolerance(expected)),
            When::Sequence(numbers) => replicas::sequence(&self.0, numbers),
        }
    }

    /// The index of the last reconcile at or before a time.
    fn last_until(&self, at: Time) -> Option<usize> {
        self.0.partition_point(|tick| tick.at() <= at).checked_sub(1)
    }

    /// A single reconcile, or one within the tolerance; counts apply to the run up to it.
    fn unmet_at(&self, index: usize, expected: &Expectation) -> Option<Miss> {
        let tolerance = tolerance(expected);
        let near = replicas::near(&self.0, index, tolerance);
        let tick = &self.0[index];
        let Some(wrong) = wrong_at(tick, expected) else {
            return too_often(&self.0[..=index], expected);
        };
        if near.iter().any(|tick| wrong_at(tick, expected).is_none()) {
            return None;
        }
        let near = replicas::tolerance_text(tolerance);
        Some(wrong.at(tick, |wrong| format!("{tick}: {wrong}{near}")))
    }

    fn always(
        &self,
        ticks: &[Tick<'_>],
        expected: &Expectation,
        nothing: impl FnOnce() -> String,
    ) -> Option<Miss> {
        if ticks.is_empty() {
            return Some(Miss::plain(nothing()));
        }
        let mut wrong =
            ticks.iter().filter_map(|tick| wrong_at(tick, expected).map(|wrong| (tick, wrong)));
        if let Some((tick, first)) = wrong.next() {
            let more = match wrong.count() {
                0 => String::new(),
                1 => " (and 1 more tick)".to_owned(),
                more => format!(" (and {more} more ticks)"),
            };
            return Some(first.at(tick, |first| format!("{tick}: {first}{more}")));
        }
        too_often(ticks, expected)
    }

    fn never(&self, from: Time, to: Time, expected: &Expectation) -> Option<Miss> {
        let ticks = self.between(from, to);
        if ticks.is_empty() {
            return Some(Miss::plain(self.nothing_between(from, to)));
        }
        let met = ticks.iter().find(|tick| wrong_at(tick, expected).is_none());
        let Some(tick) = met.filter(|_| expected.at_most.is_none()) else {
            return too_often(ticks, expected);
        };
        let (what, never) = (describe(expected), "never expected");
        let value = UnmetValue::text("never", format!("not {what}"), what.clone());
        let (what, tick) = (format!("{tick}: {never} {what}"), Some(tick.name()));
        Some(Miss { what, tick, values: vec![value] })
    }

    fn within(&self, of: Time, span: Span, expected: &Expectation) -> Option<Miss> {
        let ticks = self.between(of, of + span);
        let Some(last) = ticks.last() else {
            return Some(Miss::plain(self.nothing_between(of, of + span)));
        };
        if ticks.iter().any(|tick| wrong_at(tick, expected).is_none()) {
            return too_often(ticks, expected);
        }
        let wrong = wrong_at(last, expected)?;
        let text = |wrong: &str| format!("not within {span} of t={of}; last at {last}: {wrong}");
        Some(wrong.at(last, text))
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
