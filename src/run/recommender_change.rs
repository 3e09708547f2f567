//! The change between two releases of the recommender in one scenario.
//!
//! Upstream's runs show the change; the model's rows ([`VPA_CHANGES`]) explain it. A row explains a
//! change if the model without that row predicts another value at the first difference.

use super::recommender::predicted;
use crate::compare::recommender::{RunDifference, logs, runs};
use crate::compare::{Divergence, FieldDifference};
use crate::model::rules::{VPA_CHANGES, VpaChange, VpaRelease, VpaRules};
use crate::model::time::Time;
use crate::scenario::vpa::VpaScenario;
use crate::trace::recommender::{Entry, RecommenderTrace};

/// A scenario in which two releases of the recommender differ.
#[derive(Clone, Debug)]
pub struct RecommenderChanged {
    /// The first run that differs. In each field, `model` is the value of the older release, and
    /// `upstream` that of the newer one.
    pub first: Divergence,
    /// The rows that account for it, oldest first. Empty: the change is unexplained.
    pub rows: Vec<&'static VpaChange>,
}

/// The runs of a scenario on one release.
#[derive(Clone, Copy, Debug)]
pub struct RunsOn<'a> {
    /// The release.
    pub release: VpaRelease,
    /// What happened.
    pub trace: &'a RecommenderTrace,
}

/// Compares the runs of a scenario on two releases, the older one first, and finds the rows that
/// account for the first difference. Returns `None` if the runs are equal.
#[must_use]
pub fn changed(
    scenario: &VpaScenario,
    before: RunsOn<'_>,
    after: RunsOn<'_>,
) -> Option<RecommenderChanged> {
    let (index, first) = first_difference(&before.trace.entries, &after.trace.entries)?;
    let field = first.fields.first()?.field.clone();
    let newest = predicted(scenario, VpaRules::of(after.release));
    let between =
        VPA_CHANGES.iter().filter(|row| before.release < row.since && row.since <= after.release);
    let accounts = |row: &&VpaChange| {
        let without = predicted(scenario, VpaRules::without(after.release, row));
        let differences = match (without.get(index), newest.get(index)) {
            (Some(one), Some(other)) => entry_differences(one, other),
            (one, other) => return one.is_some() != other.is_some(),
        };
        differences.iter().any(|it| it.field == field)
    };
    Some(RecommenderChanged { first, rows: between.filter(accounts).collect() })
}

/// The first entry that differs, with its index.
fn first_difference(before: &[Entry], after: &[Entry]) -> Option<(usize, Divergence)> {
    let mut tick = 0;
    for index in 0..before.len().max(after.len()) {
        let (old, new) = (before.get(index), after.get(index));
        let entry = new.or(old)?;
        let at = match entry {
            Entry::Run(run) => run.at,
            Entry::Start(_) => Time::ZERO,
        };
        tick += usize::from(matches!(entry, Entry::Run(_)));
        let differences = match (old, new) {
            (Some(old), Some(new)) => entry_differences(old, new),
            (old, new) => {
                let is = |entry: Option<&Entry>| entry.map_or("none", |_| "one").to_owned();
                let field = "run".to_owned();
                vec![RunDifference { field, model: is(old), observed: is(new) }]
            }
        };
        if !differences.is_empty() {
            let fields = differences.into_iter().map(|it| FieldDifference {
                field: it.field,
                model: it.model,
                upstream: it.observed,
            });
            return Some((index, Divergence { tick, at, fields: fields.collect() }));
        }
    }
    None
}

fn entry_differences(old: &Entry, new: &Entry) -> Vec<RunDifference> {
    match (old, new) {
        (Entry::Start(old), Entry::Start(new)) => logs(old, new),
        (Entry::Run(old), Entry::Run(new)) if old.at == new.at => runs(&old.run, &new.run),
        _ => {
            let at = |entry: &Entry| match entry {
                Entry::Start(_) => "a start".to_owned(),
                Entry::Run(run) => format!("a run at {}", run.at),
            };
            vec![RunDifference { field: "run".to_owned(), model: at(old), observed: at(new) }]
        }
    }
}
