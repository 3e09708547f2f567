//! The change between two releases of the recommender in one scenario.
//!
//! Upstream's runs show the change; the model's rows ([`VPA_CHANGES`]) explain it. A row explains a
//! change if the model without that row predicts another value at the first difference.

use super::explaining_rows::{Changed, Predict};
use super::recommender::{self, predicted};
use crate::compare::recommender::{logs, runs};
use crate::compare::{Controller, Divergence, FieldDifference, FieldPath};
use crate::trace::recommender::{Entry, RecommenderTrace};
use kube_autoscaler_models::rules::{VPA_CHANGES, VpaChange, VpaRelease, VpaRules};
use kube_autoscaler_models::time::Time;
use kube_lockstep_scenario::vpa::VpaScenario;

/// The runs of a scenario on one release.
#[derive(Clone, Copy, Debug)]
pub struct RunsOn<'a> {
    /// The release.
    pub release: VpaRelease,
    /// The trace.
    pub trace: &'a RecommenderTrace,
}

/// Compares the runs of a scenario on two releases, the older one first, and finds the rows that
/// account for the first difference. Returns `None` if the runs are equal.
///
/// # Errors
/// If the first difference may be due to chance: upstream's result is random on one of the
/// releases.
pub fn changed(
    scenario: &VpaScenario,
    before: RunsOn<'_>,
    after: RunsOn<'_>,
) -> Result<Option<Changed<VpaChange>>, String> {
    // The tolerances only remove differences: most scenarios need no prediction.
    match first_difference(&before.trace.entries, &after.trace.entries) {
        None => Ok(None),
        Some(_) => changed_beyond_chance(scenario, before, after),
    }
}

/// Compares runs that differ, apart from what is left to chance upstream.
fn changed_beyond_chance(
    scenario: &VpaScenario,
    before: RunsOn<'_>,
    after: RunsOn<'_>,
) -> Result<Option<Changed<VpaChange>>, String> {
    let predictions = [before, after].map(|on| predicted(scenario, VpaRules::of(on.release)));
    let mut older = before.trace.entries.clone();
    predictions.iter().for_each(|model| tolerate(&mut older, model));
    let Some((index, first)) = first_difference(&older, &after.trace.entries) else {
        return Ok(None);
    };
    let random = predictions.iter().filter_map(|model| undetermined(model)).min();
    if random.is_some_and(|random| random <= index) {
        return Err(recommender::undetermined(first.at).why);
    }
    let Some(field) = first.fields.first().map(|it| it.field.clone()) else { return Ok(None) };
    let place = RecommenderTraceField { index, field };
    Ok(Some(PredictedRuns { scenario, place }.explain(first, before.release, after.release)))
}

/// Gives the checkpoints of runs the model's tolerances for upstream's random order of
/// subtractions, which recorded runs do not have.
fn tolerate(runs: &mut [Entry], model: &[Entry]) {
    for pair in runs.iter_mut().zip(model) {
        if let (Entry::Run(run), Entry::Run(model)) = pair {
            run.run.writes.iter_mut().for_each(|write| write.tolerate(&model.run.writes));
        }
    }
}

/// A field of a trace.
struct RecommenderTraceField {
    /// The index of the entry.
    index: usize,
    /// The first field of the entry that differs.
    field: FieldPath,
}

/// The model's predictions for a scenario, compared at a place.
struct PredictedRuns<'a> {
    scenario: &'a VpaScenario,
    place: RecommenderTraceField,
}

impl Predict for PredictedRuns<'_> {
    type Row = VpaChange;
    type Rules = VpaRules;
    type Prediction = Vec<Entry>;

    const TABLE: &'static [VpaChange] = VPA_CHANGES;

    fn after(&self, rows: usize) -> VpaRules {
        VpaRules::after(rows)
    }

    fn without(&self, index: usize, rows: usize) -> VpaRules {
        VpaRules::without(index, rows)
    }

    fn predict(&self, rules: &VpaRules) -> Vec<Entry> {
        predicted(self.scenario, *rules)
    }

    fn differ(&self, before: &Vec<Entry>, after: &Vec<Entry>) -> bool {
        first_difference(before, after).is_some() || undetermined(before) != undetermined(after)
    }

    fn differ_there(&self, before: &Vec<Entry>, after: &Vec<Entry>) -> bool {
        let RecommenderTraceField { index, field } = &self.place;
        let differences = match (before.get(*index), after.get(*index)) {
            (Some(old), Some(new)) => entry_differences(old, new),
            (old, new) => return old.is_some() != new.is_some(),
        };
        differences.iter().any(|it| it.field == *field)
    }
}

/// The index of the first run whose result is random upstream.
fn undetermined(entries: &[Entry]) -> Option<usize> {
    entries.iter().position(|entry| matches!(entry, Entry::Run(run) if run.run.is_undetermined))
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
        let fields = match (old, new) {
            (Some(old), Some(new)) => entry_differences(old, new),
            (old, new) => {
                let is = |entry: Option<&Entry>| entry.map_or("none", |_| "one");
                vec![FieldDifference::new("run", is(old), is(new))]
            }
        };
        if !fields.is_empty() {
            return Some((index, Divergence::new(Controller::Recommender, tick, at, fields)));
        }
    }
    None
}

fn entry_differences(old: &Entry, new: &Entry) -> Vec<FieldDifference> {
    match (old, new) {
        (Entry::Start(old), Entry::Start(new)) => logs(old, new),
        (Entry::Run(old), Entry::Run(new)) if old.at == new.at => runs(&old.run, &new.run),
        _ => {
            let at = |entry: &Entry| match entry {
                Entry::Start(_) => "a start".to_owned(),
                Entry::Run(run) => format!("a run at {}", run.at),
            };
            vec![FieldDifference::new("run", at(old), at(new))]
        }
    }
}
