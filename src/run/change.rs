//! What changed between two releases, in one scenario: an executable changelog.
//!
//! Upstream's traces say what changed; the model's rows ([`CHANGES`]) say why. A row explains a
//! change if the model does something else with it than without it.

use std::sync::Arc;

use super::free_run_by;
use crate::compare::{self, Divergence, Scope};
use crate::model::rules::{CHANGES, Change, Release, Rules};
use crate::scenario::Scenario;
use crate::trace::Trace;

/// A scenario in which two releases differ.
#[derive(Clone, Debug)]
pub struct Changed {
    /// The first tick that differs. Of each field, `model` is the older release's value, and
    /// `upstream` the newer one's.
    pub first: Divergence,
    /// The rows by which the model does something else in this scenario, oldest first. Empty: the
    /// change is unexplained.
    pub rows: Vec<&'static Change>,
}

/// What changed in a scenario from one release to a later one, by upstream's traces on both.
/// Nothing if they are the same.
#[must_use]
pub fn changed(
    scenario: &Arc<Scenario>,
    (from, before): (Release, &Trace),
    (to, after): (Release, &Trace),
) -> Option<Changed> {
    let first = first_difference(before, after)?;
    Some(Changed { first, rows: rows(scenario, from, to) })
}

/// The rows between two releases by which the model does something else in a scenario.
#[must_use]
pub fn rows(scenario: &Arc<Scenario>, from: Release, to: Release) -> Vec<&'static Change> {
    let by = |changes: usize| {
        let run = free_run_by(scenario, Rules::after(changes), "");
        (run.trace, run.unplayable)
    };
    let known = |release: Release| CHANGES.iter().take_while(|it| it.since <= release).count();
    let mut before = by(known(from));
    let mut rows = Vec::new();
    let between = CHANGES.iter().enumerate().take(known(to)).skip(known(from));
    for (index, row) in between {
        let after = by(index + 1);
        // By what is written, as traces are compared: equal quantities can be printed otherwise.
        if first_difference(&before.0, &after.0).is_some() || before.1 != after.1 {
            rows.push(row);
            before = after;
        }
    }
    rows
}

/// Where two traces first differ. That an HPA has a generation is told only where that is all: what
/// the controller does otherwise says more.
fn first_difference(before: &Trace, after: &Trace) -> Option<Divergence> {
    let found = |tick: usize, at, fields: Vec<compare::FieldDifference>| {
        (!fields.is_empty()).then_some(Divergence { tick, at, fields })
    };
    let answers = || {
        let pairs = before.api.iter().zip(&after.api);
        let mut differing = pairs.filter_map(|((ticks, old), (_, new))| {
            found(*ticks, new.at, compare::api_answers(old, new))
        });
        differing.next()
    };
    let ticks = || {
        (0..before.ticks.len().max(after.ticks.len())).find_map(|index| {
            let (old, new) = (before.ticks.get(index), after.ticks.get(index));
            let at = new.or(old).map(|tick| tick.at)?;
            let fields = match (old, new) {
                (Some(old), Some(new)) => compare::observations(old, new, Scope::ALL),
                (old, new) => compare::unmatched(old, new),
            };
            found(index + 1, at, fields)
        })
    };
    match (answers(), ticks()) {
        (Some(answer), Some(tick)) if answer.fields.iter().all(is_generation) => Some(tick),
        (Some(answer), Some(tick)) => Some(if answer.at <= tick.at { answer } else { tick }),
        (answer, tick) => answer.or(tick),
    }
}

fn is_generation(field: &compare::FieldDifference) -> bool {
    field.field == "metadata.generation"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::rules::FirstReconcile;

    /// Rows are told in the order in which they came.
    #[test]
    fn each_number_of_rows_is_a_set_of_rules() {
        assert_eq!(Rules::after(CHANGES.len()), Rules::of(Release::newest()));
        assert_eq!(Rules::after(0).first_reconcile, FirstReconcile::AfterSyncPeriod);
    }
}
