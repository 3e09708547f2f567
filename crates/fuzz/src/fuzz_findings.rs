//! The figures and findings of a run of the fuzzer.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::CoverageGroup;
use kube_autoscaler_models::time::Time;
use kube_lockstep_scenario::Scenario;
use kube_lockstep_sim::compare::Controller;
use kube_lockstep_sim::run::{Outcome, RandomCause, Verdict};

/// The number of kinds of failures that end a run by default.
pub(super) const MAX_FINDINGS: usize = 20;

/// The run ends after this many consecutive scenarios that failed before their first tick, or were
/// not run. Otherwise, a run that is limited by a number of ticks might never end.
pub(super) const MAX_WITHOUT_TICKS: usize = 50;

/// When a run of the fuzzer ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RunLimit {
    /// After a number of ticks: the same scenarios in every run.
    Ticks(usize),
    /// After a duration: the number of scenarios depends on the machine.
    Time(Duration),
}

/// A shrunk failure.
#[derive(Clone, Debug)]
pub struct Finding<S = Scenario> {
    /// The index of the first scenario that showed it.
    pub index: u64,
    /// The number of scenarios with this kind of failure.
    pub times: usize,
    /// The kind: the fields that differ, or an error message.
    pub kind: String,
    /// The smallest scenario with this failure.
    pub scenario: Arc<S>,
    /// The tree of its file.
    pub tree: Value,
    pub failure: Failure,
    /// The number of scenarios that were tried while shrinking; 0: the scenario is as generated.
    pub tried: usize,
    /// True if shrinking is incomplete, because the run was stopped. If false, a scenario that is
    /// as generated could not be shrunk because its file does not reproduce the failure.
    pub cut_short: bool,
}

/// The failure of a scenario.
#[derive(Clone, Debug)]
pub enum Failure {
    /// Model and engine differ, an expectation is not met, or the engine failed.
    Outcome(Box<Outcome>),
    /// The model, or the simulated world, panicked.
    Panic(String),
}

/// The figures of a run.
#[derive(Clone, Debug, Default)]
pub struct FuzzSummary {
    /// Scenarios that were run.
    pub scenarios: usize,
    /// Ticks that were compared.
    pub ticks: usize,
    /// Scenarios that diverged, whose expectations were not met, or on which the model panicked.
    pub divergences: usize,
    /// Scenarios without a verdict.
    pub inconclusive: usize,
    /// Scenarios that were compared only up to a result that upstream leaves to chance, by cause.
    pub undetermined: BTreeMap<RandomCause, usize>,
    /// Scenarios that were not run, by the reason: the release or the engine does not support them.
    pub skipped: BTreeMap<String, usize>,
    /// True if the run was stopped from outside.
    pub interrupted: bool,
    /// True if no model predicts the controller.
    pub is_without_model: bool,
    /// The parts of the controller that were reached.
    pub coverage: Vec<CoverageGroup>,
    /// Wall-clock time, without shrinking.
    pub elapsed: Duration,
}

impl FuzzSummary {
    /// Adds the figures of another shard of the same run, which ran in parallel.
    pub fn join(&mut self, other: &FuzzSummary) {
        self.scenarios = self.scenarios.saturating_add(other.scenarios);
        self.ticks = self.ticks.saturating_add(other.ticks);
        self.divergences = self.divergences.saturating_add(other.divergences);
        self.inconclusive = self.inconclusive.saturating_add(other.inconclusive);
        add(&mut self.undetermined, &other.undetermined);
        add(&mut self.skipped, &other.skipped);
        self.interrupted |= other.interrupted;
        self.is_without_model |= other.is_without_model;
        self.elapsed = self.elapsed.max(other.elapsed);
        for theirs in &other.coverage {
            let Some(ours) = self.coverage.iter_mut().find(|ours| ours.group == theirs.group)
            else {
                self.coverage.push(theirs.clone());
                continue;
            };
            for (name, count) in &theirs.reached {
                match ours.reached.iter_mut().find(|(known, _)| known == name) {
                    Some((_, ours)) => *ours = ours.saturating_add(*count),
                    None => ours.reached.push((name.clone(), *count)),
                }
            }
            let new = theirs.never.iter().filter(|name| !ours.never.contains(name)).cloned();
            let new: Vec<String> = new.collect();
            ours.never.extend(new);
            ours.never.retain(|name| !ours.reached.iter().any(|(reached, _)| reached == name));
        }
    }
}

/// Adds counts.
fn add<K: Clone + Ord>(counts: &mut BTreeMap<K, usize>, others: &BTreeMap<K, usize>) {
    for (key, count) in others {
        let sum = counts.entry(key.clone()).or_default();
        *sum = sum.saturating_add(*count);
    }
}

impl Failure {
    /// The kind of failure: the fields that differ, or the error message. Most differences of a
    /// recommender are in many fields, of which the first is the kind.
    #[must_use]
    pub fn kind(&self) -> String {
        match self {
            Failure::Panic(message) => format!("panic: {message}"),
            Failure::Outcome(outcome) => match &outcome.verdict {
                Verdict::Diverges(found) if found.controller == Controller::Recommender => {
                    let first = found.fields.first();
                    first.map(|it| it.field.kind().into_owned()).unwrap_or_default()
                }
                Verdict::Diverges(_) => self.fields().into_iter().collect::<Vec<_>>().join(", "),
                Verdict::Inconclusive { why, .. } => format!("no verdict: {why}"),
                _ => {
                    let first = outcome.unmet.first();
                    first.map_or_else(String::new, |it| format!("expectation {}", it.number))
                }
            },
        }
    }

    /// The kinds of the fields that differ.
    fn fields(&self) -> BTreeSet<String> {
        let Failure::Outcome(outcome) = self else { return BTreeSet::new() };
        let Verdict::Diverges(divergence) = &outcome.verdict else { return BTreeSet::new() };
        divergence.fields.iter().map(|difference| difference.field.kind().into_owned()).collect()
    }

    /// The time of the failure: the divergence, or the end of the scenario.
    pub(super) fn at(&self, until: Time) -> Time {
        match self {
            Failure::Outcome(outcome) => match &outcome.verdict {
                Verdict::Diverges(divergence) => divergence.at,
                _ => until,
            },
            Failure::Panic(_) => until,
        }
    }

    pub(super) fn is_verdict(&self) -> bool {
        match self {
            Failure::Panic(_) => true,
            Failure::Outcome(outcome) => {
                matches!(outcome.verdict, Verdict::Diverges(_) | Verdict::Unmet)
            }
        }
    }

    pub(crate) fn count<'s>(&self, summary: &'s mut FuzzSummary) -> &'s mut usize {
        if self.is_verdict() { &mut summary.divergences } else { &mut summary.inconclusive }
    }

    /// Returns true if both may have the same cause: they have a differing field in common.
    pub(super) fn is_like(&self, other: &Failure) -> bool {
        match (self.is_verdict(), other.is_verdict()) {
            (true, true) => {
                let (mine, theirs) = (self.fields(), other.fields());
                // If only the model or only the engine wrote a status, no field of it is compared.
                let whole = |one: &BTreeSet<String>, other: &BTreeSet<String>| {
                    one.contains("status") && other.iter().any(|it| it.starts_with("status."))
                };
                self.kind() == other.kind()
                    || !mine.is_disjoint(&theirs)
                    || whole(&mine, &theirs)
                    || whole(&theirs, &mine)
            }
            (false, false) => true,
            _ => false,
        }
    }
}
