//! The rows of a table of changes that explain a difference between two releases.

use std::ops::Range;

use crate::compare::Divergence;
use kube_autoscaler_models::rules::{Change, ChangeRow};

/// A scenario in which two releases differ.
#[derive(Clone, Debug)]
pub struct Changed<C: 'static = Change> {
    /// The first tick that differs. In each field, `model` is the value of the older release, and
    /// `upstream` that of the newer one.
    pub first: Divergence,
    /// The rows that account for the first field that differs, oldest first. Empty: the change is
    /// unexplained.
    pub rows: Vec<&'static C>,
    /// Rows that change the model's predictions only later, or in another field.
    pub also: Vec<&'static C>,
}

/// The model's predictions for a scenario under some rows of a table of changes.
pub(super) trait Predict {
    /// A row of the table.
    type Row: ChangeRow;
    /// The behavior after some rows.
    type Rules: PartialEq;
    type Prediction;

    /// The table, oldest row first.
    const TABLE: &'static [Self::Row];

    /// The rules after the first `rows` rows.
    fn after(&self, rows: usize) -> Self::Rules;

    /// The rules after the first `rows` rows, but without the row `index`.
    fn without(&self, index: usize, rows: usize) -> Self::Rules;

    /// The model's prediction under some rules.
    fn predict(&self, rules: &Self::Rules) -> Self::Prediction;

    /// Returns true if two predictions differ.
    fn differ(&self, before: &Self::Prediction, after: &Self::Prediction) -> bool;

    /// Returns true if two predictions differ at the place of the first difference between the
    /// releases.
    fn differ_there(&self, before: &Self::Prediction, after: &Self::Prediction) -> bool;

    /// Explains the difference between two releases, the older one first.
    ///
    /// A row accounts for the difference if the newer release without that row has another value
    /// there. If no row alone matters, because one can replace another, the rows count that changed
    /// the value when they were added.
    fn explain(
        &self,
        first: Divergence,
        from: <Self::Row as ChangeRow>::Release,
        to: <Self::Row as ChangeRow>::Release,
    ) -> Changed<Self::Row> {
        let known = |release| Self::TABLE.iter().take_while(|it| it.since() <= release).count();
        let (effective, newest) = effective(self, known(from)..known(to));
        let needed = |row: &Effective| {
            let without = self.predict(&self.without(row.index, known(to)));
            self.differ_there(&newest, &without)
        };
        let mut accounts: Vec<bool> = effective.iter().map(needed).collect();
        if !accounts.contains(&true) {
            accounts = effective.iter().map(|row| row.differs_there).collect();
        }
        let with = |expected: bool| {
            let pairs = effective.iter().zip(&accounts);
            let rows = pairs.filter(|(_, accounts)| **accounts == expected);
            rows.map(|(row, _)| &Self::TABLE[row.index]).collect()
        };
        Changed { first, rows: with(true), also: with(false) }
    }
}

/// A row that changes the prediction when it is added to the rows before it.
struct Effective {
    index: usize,
    /// True if the row changes the prediction at the place of the first difference.
    differs_there: bool,
}

/// The rows of a range that change the prediction, and the prediction by all of them.
fn effective<P: Predict + ?Sized>(
    model: &P,
    between: Range<usize>,
) -> (Vec<Effective>, P::Prediction) {
    let mut rules = model.after(between.start);
    let mut before = model.predict(&rules);
    let mut effective = Vec::new();
    for index in between {
        let next = model.after(index + 1);
        // A row that only adds a flag changes no rules.
        if next == rules {
            continue;
        }
        let after = model.predict(&next);
        if model.differ(&before, &after) {
            let differs_there = model.differ_there(&before, &after);
            effective.push(Effective { index, differs_there });
            before = after;
        }
        rules = next;
    }
    (effective, before)
}
