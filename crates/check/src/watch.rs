//! Watches the expectations of a scenario while a run goes on.

use kube_autoscaler_models::state::State;
use kube_autoscaler_models::time::{Span, Time};
use kube_lockstep_scenario::resolved::{AtMost, Expectation, When};
use kube_lockstep_sim::expect::Reconciled;

/// The expectations.
#[derive(Clone, Debug)]
pub(crate) struct Expectations {
    all: Vec<Expected>,
}

/// An expectation, with its time.
#[derive(Clone, Debug)]
struct Expected {
    /// Its index in the scenario.
    index: usize,
    expectation: Expectation,
    when: When,
}

/// What has been seen of each expectation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Seen(Vec<SeenOf>);

/// What has been seen of an expectation.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct SeenOf {
    /// `within` is met.
    met: bool,
    /// The direction of the last change.
    up: Option<bool>,
    /// The times of the last changes, at most as many as are allowed.
    changes: Vec<Time>,
}

/// An expectation that is not met.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Violation {
    /// The earliest time at which that is certain.
    pub(crate) at: Time,
    /// Its index in the scenario.
    pub(crate) index: usize,
}

impl Expectations {
    /// Watches these expectations, with their indices in a scenario that ends at `until`.
    pub(crate) fn new<'e>(
        expectations: impl Iterator<Item = (usize, &'e Expectation)>,
        until: Time,
    ) -> Expectations {
        let expected = |(index, expectation): (usize, &Expectation)| Expected {
            index,
            expectation: expectation.clone(),
            when: expectation.when(until),
        };
        Expectations { all: expectations.map(expected).collect() }
    }

    /// True if there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// True if an expectation reads the status of an HPA.
    pub(crate) fn read_statuses(&self) -> bool {
        self.all.iter().any(|Expected { expectation: it, .. }| {
            it.desired_replicas.is_some()
                || it.current_replicas.is_some()
                || !it.metrics.is_empty()
                || !it.conditions.is_empty()
        })
    }

    /// Nothing has been seen yet.
    pub(crate) fn nothing_seen(&self) -> Seen {
        Seen(vec![SeenOf::default(); self.all.len()])
    }

    /// Watches a reconcile. Returns the first expectation that is not met.
    pub(crate) fn watch(&self, tick: &Reconciled<'_>, seen: &mut Seen) -> Option<Violation> {
        let at = tick.at();
        let mut violation = None;
        for (expected, seen) in self.all.iter().zip(&mut seen.0) {
            let Expected { index, expectation, when } = expected;
            if expectation.hpa.as_ref().is_some_and(|hpa| **hpa != *tick.hpa()) {
                continue;
            }
            let is_within = |from: Time, to: Time| from <= at && at <= to;
            let fails = match *when {
                When::Always(from, to) => is_within(from, to) && !tick.meets(expectation),
                When::Never(from, to) => is_within(from, to) && tick.meets(expectation),
                When::Within { of, span } => {
                    seen.met |= is_within(of, of + span) && tick.meets(expectation);
                    false
                }
                _ => {
                    let limit = expectation.at_most.as_ref();
                    limit.is_some_and(|limit| is_exceeded(limit, tick, seen))
                }
            };
            if fails && violation.is_none() {
                violation = Some(Violation { at, index: *index });
            }
        }
        violation
    }

    /// The expectation that can't be met any more before a time, which no reconcile has reached.
    pub(crate) fn expired(&self, seen: &Seen, before: Time) -> Option<Violation> {
        let expired = self.all.iter().zip(&seen.0).filter_map(|(expected, seen)| {
            let When::Within { of, span } = expected.when else { return None };
            let at = of + span;
            (!seen.met && at < before).then_some(Violation { at, index: expected.index })
        });
        expired.min()
    }

    /// Adds what later violations depend on.
    pub(crate) fn add_to(&self, seen: &Seen, until: Time, state: &mut State) {
        let now = state.now();
        for (Expected { expectation, when, .. }, seen) in self.all.iter().zip(&seen.0) {
            match *when {
                When::Always(from, to) | When::Never(from, to) => {
                    state.optional_time(Some(from).filter(|from| *from > now));
                    // An interval up to the end of the scenario has no end.
                    state.optional_time(Some(to).filter(|to| *to < until && *to >= now));
                    state.number(to < now);
                }
                When::Within { of, span } => {
                    state.number(seen.met);
                    if !seen.met {
                        state.time(of.max(now));
                        state.time(of + span);
                    }
                }
                _ => add_changes(seen, expectation.at_most.as_ref(), state),
            }
        }
    }
}

/// Adds the changes that still count.
fn add_changes(seen: &SeenOf, limit: Option<&AtMost>, state: &mut State) {
    let now = state.now();
    state.number(seen.up.map_or(0, |up| 1 + i64::from(up)));
    let span = limit.and_then(|limit| limit.in_);
    let counted = seen.changes.iter().filter(|at| span.is_none_or(|span| now - **at < span));
    state.count(counted.clone().count());
    if span.is_some() {
        counted.for_each(|at| state.time(*at));
    }
}

/// Counts the change of a reconcile. Returns true if it is one more than allowed.
fn is_exceeded(limit: &AtMost, tick: &Reconciled<'_>, seen: &mut SeenOf) -> bool {
    let (before, after) = tick.replicas();
    if before == after {
        return false;
    }
    let up = after > before;
    let turns = seen.up.is_some_and(|last| last != up);
    let most = match (limit.rescales, limit.direction_changes) {
        (Some(most), _) => most,
        (None, Some(most)) if turns => {
            seen.up = Some(up);
            most
        }
        (None, _) => {
            seen.up = Some(up);
            return false;
        }
    };
    let (at, most) = (tick.at(), most as usize);
    // Exceeded if the change that many changes earlier is also within the interval.
    let first = if most == 0 { Some(at) } else { first_of(most, &seen.changes) };
    let is_recent = |first: Time| limit.in_.is_none_or(|Span(span)| (at - first).0 < span);
    seen.changes.push(at);
    if seen.changes.len() > most {
        seen.changes.remove(0);
    }
    first.is_some_and(is_recent)
}

/// The first of as many changes as are allowed, if there have been so many.
fn first_of(most: usize, changes: &[Time]) -> Option<Time> {
    (changes.len() == most).then(|| changes.first().copied()).flatten()
}
