//! Evaluates an expectation at the ticks to which it applies: at one tick, or at all, none or some
//! ticks of an interval.
//!
//! Ticks are the reconciles of the HPA controller, or the runs of the recommender.

use std::fmt::Display;

use super::unmet::{Miss, UnmetTick};
use super::values::Wrong;
use kube_autoscaler_models::time::{Span, Time};
use kube_lockstep_scenario::resolved::When;

/// A tick with expectations. Its text is its name: `tick 3 (t=30s)`.
pub(super) trait ExpectedTick: Display + Sized {
    /// An expectation of the values of a tick.
    type Expectation;

    /// The word for a tick in messages.
    const NOUN: &'static str = "tick";

    /// The time since the start of the scenario.
    fn at(&self) -> Time;

    /// The tick in results.
    fn name(&self) -> UnmetTick;

    /// The values that are not as expected. None: all are.
    fn wrong(&self, expected: &Self::Expectation) -> Option<Wrong>;

    /// Returns true if it is what must never be.
    fn is_unwanted(&self, expected: &Self::Expectation) -> bool {
        self.wrong(expected).is_none()
    }

    /// The miss at a tick that meets a `never` expectation.
    fn unwanted(&self, expected: &Self::Expectation) -> Miss;

    /// The number of ticks before and after the expected one that may meet the expectation instead.
    fn tolerance(_: &Self::Expectation) -> usize {
        0
    }

    /// Returns true if a `never` expectation only limits counts.
    fn is_only_count(_: &Self::Expectation) -> bool {
        false
    }

    /// The miss at the first tick that exceeds an expected count.
    fn too_often(_: &[Self], _: &Self::Expectation) -> Option<Miss> {
        None
    }

    /// Why the replicas of a run are not as expected at regular times, or in their order.
    fn unmet_series(_: &[Self], _: &When, _: &Self::Expectation) -> Option<Miss> {
        None
    }
}

/// Why the ticks of a run, which are sorted by time, do not meet an expectation.
pub(super) fn unmet<T: ExpectedTick>(
    ticks: &[T],
    when: &When,
    expected: &T::Expectation,
) -> Option<Miss> {
    match *when {
        When::Tick(number) => match number.checked_sub(1).filter(|index| *index < ticks.len()) {
            Some(index) => unmet_at(ticks, index, expected),
            None => Some(Miss::plain(format!("tick {number} never happened: {}", how_many(ticks)))),
        },
        When::At(at) => match ticks.partition_point(|tick| tick.at() <= at).checked_sub(1) {
            Some(index) => unmet_at(ticks, index, expected),
            None => Some(Miss::plain(format!("no tick at or before t={at}: {}", how_many(ticks)))),
        },
        When::Whole if ticks.is_empty() => Some(Miss::plain(how_many(ticks))),
        When::Whole => always(ticks, expected),
        When::Always(from, to) => match between(ticks, from, to) {
            [] => Some(nothing_between(ticks, from, to)),
            selected => always(selected, expected),
        },
        When::Never(from, to) => match between(ticks, from, to) {
            [] => Some(nothing_between(ticks, from, to)),
            selected => never(selected, expected),
        },
        When::Within { of, span } => match between(ticks, of, of + span) {
            [] => Some(nothing_between(ticks, of, of + span)),
            selected => within(selected, of, span, expected),
        },
        When::Series(_) | When::Sequence(_) => T::unmet_series(ticks, when, expected),
    }
}

/// Checks a tick, or the ticks within the tolerance. Counts apply to the run up to this tick.
fn unmet_at<T: ExpectedTick>(ticks: &[T], index: usize, expected: &T::Expectation) -> Option<Miss> {
    let tick = &ticks[index];
    let Some(wrong) = tick.wrong(expected) else {
        return T::too_often(&ticks[..=index], expected);
    };
    let tolerance = T::tolerance(expected);
    if near(ticks, index, tolerance).iter().any(|tick| tick.wrong(expected).is_none()) {
        return None;
    }
    let near = tolerance_text(tolerance);
    Some(wrong.at(tick, |wrong| format!("{tick}: {wrong}{near}")))
}

fn always<T: ExpectedTick>(ticks: &[T], expected: &T::Expectation) -> Option<Miss> {
    let mut wrong = ticks.iter().filter_map(|tick| Some((tick, tick.wrong(expected)?)));
    let Some((tick, first)) = wrong.next() else { return T::too_often(ticks, expected) };
    let more = match wrong.count() {
        0 => String::new(),
        1 => format!(" (and 1 more {})", T::NOUN),
        more => format!(" (and {more} more {}s)", T::NOUN),
    };
    Some(first.at(tick, |first| format!("{tick}: {first}{more}")))
}

fn never<T: ExpectedTick>(ticks: &[T], expected: &T::Expectation) -> Option<Miss> {
    let met = ticks.iter().find(|tick| tick.is_unwanted(expected));
    match met.filter(|_| !T::is_only_count(expected)) {
        Some(tick) => Some(tick.unwanted(expected)),
        None => T::too_often(ticks, expected),
    }
}

fn within<T: ExpectedTick>(
    ticks: &[T],
    of: Time,
    span: Span,
    expected: &T::Expectation,
) -> Option<Miss> {
    if ticks.iter().any(|tick| tick.wrong(expected).is_none()) {
        return T::too_often(ticks, expected);
    }
    let last = ticks.last()?;
    let text = |wrong: &str| format!("not within {span} of t={of}; last at {last}: {wrong}");
    Some(last.wrong(expected)?.at(last, text))
}

/// The ticks of an interval, with both ends.
fn between<T: ExpectedTick>(ticks: &[T], from: Time, to: Time) -> &[T] {
    let first = ticks.partition_point(|tick| tick.at() < from);
    let end = ticks.partition_point(|tick| tick.at() <= to);
    &ticks[first..end.max(first)]
}

fn nothing_between<T: ExpectedTick>(ticks: &[T], from: Time, to: Time) -> Miss {
    Miss::plain(format!("no tick between t={from} and t={to}: {}", how_many(ticks)))
}

fn how_many<T: ExpectedTick>(ticks: &[T]) -> String {
    match ticks {
        [] => "there was no tick".to_owned(),
        [only] => format!("the only one was at t={}", only.at()),
        [.., last] => format!("there were {}, the last at t={}", ticks.len(), last.at()),
    }
}

/// The ticks up to `tolerance` before and after one.
pub(super) fn near<T>(ticks: &[T], index: usize, tolerance: usize) -> &[T] {
    let end = index.saturating_add(tolerance).saturating_add(1).min(ticks.len());
    &ticks[index.saturating_sub(tolerance)..end]
}

/// The tolerance in a message, after a value that is not as expected.
pub(super) fn tolerance_text(tolerance: usize) -> String {
    match tolerance {
        0 => String::new(),
        1 => ", and not as expected 1 tick earlier or later either".to_owned(),
        more => format!(", and not as expected up to {more} ticks earlier or later either"),
    }
}
