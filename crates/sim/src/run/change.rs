//! The change between two releases in one scenario: an executable changelog.
//!
//! Upstream's traces show the change; the model's rows ([`CHANGES`]) explain it. A row explains a
//! change if it changes the model's prediction at the first difference.

use std::borrow::Cow;
use std::sync::Arc;

pub use super::explaining_rows::Changed;
use super::explaining_rows::Predict;
use super::random::RandomOutcome;
use super::{free_run, free_run_by};
use crate::compare::{self, ApiField, Controller, Divergence, FieldDifference, FieldPath};
use crate::trace::{Scope, Trace};
use kube_autoscaler_models::rules::{CHANGES, Change, Release, Rules};
use kube_lockstep_scenario::Scenario;

/// The trace of a scenario on one release.
#[derive(Clone, Copy, Debug)]
pub struct TraceOn<'a> {
    /// The release whose controller was observed.
    pub release: Release,
    /// The observations.
    pub trace: &'a Trace,
}

/// Compares upstream's traces of a scenario on two releases, the older one first, and finds the
/// model's rows that account for the first difference. Returns `None` if the traces are equal.
#[must_use]
pub fn changed(
    scenario: &Arc<Scenario>,
    before: TraceOn<'_>,
    after: TraceOn<'_>,
) -> Option<Changed> {
    if left_to_chance(scenario, [before.release, after.release]).is_some() {
        return None;
    }
    let old = match Rules::of(before.release).events.in_order {
        true => Cow::Borrowed(before.trace),
        false => Cow::Owned(with_events_as(before.trace, after.trace)),
    };
    let (place, first) = first_difference(&old, after.trace)?;
    Some(FreeRuns { scenario, place }.explain(first, before.release, after.release))
}

/// The trace with the events of each tick in the order of another trace, where both have the same
/// events.
fn with_events_as(trace: &Trace, other: &Trace) -> Trace {
    let mut ordered = trace.clone();
    ordered.ticks.iter_mut().zip(&other.ticks).for_each(|(tick, other)| {
        tick.order_events_as(other);
    });
    ordered
}

/// Why a scenario can't be compared on two releases: the part of its outcome that both leave to
/// chance. If only one of them does, its first difference from the other release is certain.
#[must_use]
pub fn left_to_chance(scenario: &Arc<Scenario>, releases: [Release; 2]) -> Option<&'static str> {
    let random_part = |release| {
        let ticks = free_run(scenario, release).ticks.into_iter();
        ticks.filter_map(|tick| tick.derivation.random_part).next()
    };
    let [one, other] = releases;
    if !scenario.has_several_hpas() {
        return None;
    }
    random_part(one).and(random_part(other))
}

/// The model's free runs of a scenario, compared at a place.
struct FreeRuns<'a> {
    scenario: &'a Arc<Scenario>,
    place: TraceField,
}

/// A prediction for [`FreeRuns`].
struct Predicted {
    trace: Trace,
    undetermined: Option<RandomOutcome>,
}

impl Predict for FreeRuns<'_> {
    type Row = Change;
    type Rules = Rules;
    type Prediction = Predicted;

    const TABLE: &'static [Change] = CHANGES;

    fn after(&self, rows: usize) -> Rules {
        Rules::after(rows)
    }

    fn without(&self, index: usize, rows: usize) -> Rules {
        Rules::without(index, rows)
    }

    fn predict(&self, rules: &Rules) -> Predicted {
        let run = free_run_by(self.scenario, *rules, "");
        Predicted { trace: run.trace, undetermined: run.undetermined }
    }

    fn differ(&self, before: &Predicted, after: &Predicted) -> bool {
        // Compared in their written form, as traces are: equal quantities can be printed in
        // different ways.
        first_difference(&before.trace, &after.trace).is_some()
            || before.undetermined != after.undetermined
    }

    fn differ_there(&self, before: &Predicted, after: &Predicted) -> bool {
        self.place.differs(&before.trace, &after.trace)
    }
}

/// The first difference between two traces of a scenario, the older one first: in each field,
/// `model` is the older value, and `upstream` the newer one.
#[must_use]
pub fn difference(before: &Trace, after: &Trace) -> Option<Divergence> {
    first_difference(before, after).map(|(_, first)| first)
}

#[derive(Debug)]
struct TraceField {
    entry: Entry,
    /// The first field of the entry that differs.
    field: FieldPath,
}

#[derive(Clone, Copy, Debug)]
enum Entry {
    /// An answer of the API server, by its index.
    Answer(usize),
    /// A tick, by its index.
    Tick(usize),
}

impl TraceField {
    /// Returns true if two traces differ in this field.
    fn differs(&self, before: &Trace, after: &Trace) -> bool {
        let fields = match self.entry {
            Entry::Answer(index) => match (before.api.get(index), after.api.get(index)) {
                (Some((_, old)), Some((_, new))) => compare::api_answers(old, new),
                (old, new) => return old.is_some() != new.is_some(),
            },
            Entry::Tick(index) => match (before.ticks.get(index), after.ticks.get(index)) {
                (Some(old), Some(new)) => compare::observations(old, new, Scope::ALL),
                (old, new) => return old.is_some() != new.is_some(),
            },
        };
        fields.iter().any(|it| it.field == self.field)
    }
}

/// The first difference between two traces. Differences in the controller's own Prometheus metrics
/// and in the generation of an HPA are reported only if nothing else differs: a difference in the
/// controller's behavior is more informative.
fn first_difference(before: &Trace, after: &Trace) -> Option<(TraceField, Divergence)> {
    let found = |entry, tick: usize, at, fields: Vec<FieldDifference>| {
        let field = fields.first()?.field.clone();
        let divergence = Divergence::new(Controller::Hpa, tick, at, fields);
        Some((TraceField { entry, field }, divergence))
    };
    let answers = || {
        let mut pairs = before.api.iter().zip(&after.api).enumerate();
        pairs.find_map(|(index, ((ticks, old), (_, new)))| {
            found(Entry::Answer(index), *ticks, new.at, compare::api_answers(old, new))
        })
    };
    let ticks = |scope: Scope| {
        (0..before.ticks.len().max(after.ticks.len())).find_map(|index| {
            let (old, new) = (before.ticks.get(index), after.ticks.get(index));
            let at = new.or(old).map(|tick| tick.at)?;
            let fields = match (old, new) {
                (Some(old), Some(new)) => compare::observations(old, new, scope),
                (old, new) => compare::unmatched(old, new),
            };
            found(Entry::Tick(index), index + 1, at, fields)
        })
    };
    let behavior = Scope { controller_metrics: false, details: false, ..Scope::ALL };
    match (answers(), ticks(behavior).or_else(|| ticks(Scope::ALL))) {
        (Some((_, answer)), Some(tick)) if answer.fields.iter().all(is_generation) => Some(tick),
        (Some(answer), Some(tick)) => Some(if answer.1.at <= tick.1.at { answer } else { tick }),
        (answer, tick) => answer.or(tick),
    }
}

fn is_generation(field: &FieldDifference) -> bool {
    field.field == ApiField::Generation.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube_autoscaler_models::rules::FirstReconcile;

    #[test]
    fn all_rows_are_the_newest_rules_and_no_rows_the_oldest() {
        assert_eq!(Rules::after(CHANGES.len()), Rules::of(Release::NEWEST));
        assert_eq!(Rules::after(0).queue.first_reconcile, FirstReconcile::AfterSyncPeriod);
    }
}
