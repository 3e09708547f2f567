//! The first reconcile that differs between the predictions of a scenario on two releases.

use serde::Serialize;

use super::comparison::{ComparisonRow, by_runs, ticks};
use super::counted;
use super::layout::hanging;
use kube_autoscaler_models::as_text;
use kube_autoscaler_models::derivation::Derivation;
use kube_autoscaler_models::time::Time;
use kube_lockstep_scenario::Scenario;
use kube_lockstep_sim::run::{FreeRun, FreeTick};

/// The first reconcile after which the replicas differ between two releases.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FirstDifference {
    /// The virtual time.
    #[serde(with = "as_text")]
    pub at: Time,
    /// The time in UTC, if the load is a recording with dates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
    /// The prediction on the previous release.
    pub before: Predicted,
    /// The prediction on the release of this row.
    pub here: Predicted,
    /// The first difference if the first reconcile of a new HPA were at the same time on both
    /// releases. Absent if it is, or if the first difference is the same without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub with_same_first_reconcile: Option<Remaining>,
}

/// The first difference that remains without a cause.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(untagged)]
pub enum Remaining {
    /// None: this is the only cause.
    Nothing,
    /// This difference has another cause.
    Difference(Box<FirstDifference>),
}

/// The prediction on one of the two releases.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Predicted {
    /// The release of Kubernetes.
    pub release: String,
    /// `spec.replicas` of the target after the reconcile.
    pub replicas: i32,
    /// The first step of the calculation that differs from that on the other release, after the
    /// step before it. Empty: no step differs.
    pub step: String,
}

impl FirstDifference {
    /// Compares the reconciles of the first target that are at the same time in both predictions.
    /// Returns `None` if the replicas are the same after each of them.
    #[must_use]
    pub fn between(
        scenario: &Scenario,
        before: &FreeRun,
        here: &FreeRun,
    ) -> Option<FirstDifference> {
        let others: Vec<&FreeTick> = ticks(before).collect();
        let same_reconcile = |tick: &FreeTick| {
            let (at, hpa) = (tick.observation.at, &tick.observation.hpa);
            let from = others.partition_point(|other| other.observation.at < at);
            let same_time = others[from..].iter().take_while(|it| it.observation.at == at);
            same_time.copied().find(|other| other.observation.hpa == *hpa)
        };
        let mut pairs = ticks(here).filter_map(|tick| Some((same_reconcile(tick)?, tick)));
        let (before_tick, tick) =
            pairs.find(|(other, tick)| other.replicas_after != tick.replicas_after)?;
        let at = tick.observation.at;
        let steps = steps(before_tick, tick);
        let predicted = |run: &FreeRun, tick: &FreeTick, step: &str| Predicted {
            release: run.trace.release.clone(),
            replicas: tick.replicas_after,
            step: step.to_owned(),
        };
        Some(FirstDifference {
            at,
            time: scenario.clock.map(|zero| zero.plus(at.since_start()).to_string()),
            before: predicted(before, before_tick, &steps[0]),
            here: predicted(here, tick, &steps[1]),
            with_same_first_reconcile: None,
        })
    }

    /// Adds the first difference that remains if the first reconcile of a new HPA is at the same
    /// time on both releases.
    #[must_use]
    pub fn with_remaining(mut self, remaining: Option<FirstDifference>) -> FirstDifference {
        self.with_same_first_reconcile = match remaining {
            Some(same) if same == self => None,
            Some(other) => Some(Remaining::Difference(Box::new(other))),
            None => Some(Remaining::Nothing),
        };
        self
    }

    /// The difference to explain: the first one that has another cause than the time of the first
    /// reconcile, if any.
    fn explained(&self) -> &FirstDifference {
        match &self.with_same_first_reconcile {
            Some(Remaining::Difference(other)) => other,
            None | Some(Remaining::Nothing) => self,
        }
    }

    /// `at 6h52m (2025-05-06T06:52:00Z)`
    fn when(&self) -> String {
        let time = self.time.as_ref().map(|time| format!(" ({time})")).unwrap_or_default();
        format!("at {}{time}", self.at)
    }

    /// Returns the effect of the first reconcile, as the end of a sentence.
    fn effect_of_first_reconcile(&self) -> String {
        match &self.with_same_first_reconcile {
            None => String::new(),
            Some(Remaining::Nothing) => {
                ", only because the first reconcile is at different times".to_owned()
            }
            Some(Remaining::Difference(other)) => format!(
                "; with the first reconcile at the same time, they first differ {}",
                other.when()
            ),
        }
    }
}

impl Predicted {
    /// `1.30: 5 replicas.`
    pub(crate) fn label(&self) -> String {
        format!("{}: {}.", self.release, replicas(self.replicas))
    }
}

fn replicas(count: i32) -> String {
    counted(count.max(0) as usize, "replica")
}

/// The first steps that differ, each after the common step before it, which says what it is about.
fn steps(before: &FreeTick, here: &FreeTick) -> [String; 2] {
    if before.replicas_before != here.replicas_before {
        return [before, here].map(|tick| {
            let replicas = replicas(tick.replicas_before);
            format!(
                "Before this reconcile, the target has {replicas}: earlier reconciles are at \
                 different times."
            )
        });
    }
    let alike = with_tolerances_as(&before.derivation, &here.derivation).explain();
    let steps = [before, here].map(|tick| tick.derivation.explain());
    let same = alike.iter().zip(&steps[1]).take_while(|(one, other)| one == other).count();
    let both = [(before, &steps[0]), (here, &steps[1])];
    both.map(|(tick, steps)| match steps.get(same) {
        Some(different) => {
            let common = same.checked_sub(1).and_then(|index| steps.get(index));
            common.into_iter().chain([different]).cloned().collect::<Vec<_>>().join(" ")
        }
        None => tick.derivation.error.as_ref().map(ToString::to_string).unwrap_or_default(),
    })
}

/// The derivation, with the condition of the tolerances written as in another one for metrics with
/// the same outcome: 1.33 writes it differently, which explains no difference of replicas.
fn with_tolerances_as(derivation: &Derivation, other: &Derivation) -> Derivation {
    let mut derivation = derivation.clone();
    for (metric, other) in derivation.metrics.iter_mut().zip(&other.metrics) {
        if (&metric.path, metric.proposal) == (&other.path, other.proposal) {
            metric.within = other.within;
        }
    }
    derivation
}

/// The releases that differ, with the first difference of the first run that has one.
pub(super) struct Differing<'a> {
    /// `web: 1.30 and 1.36 first differ at 6h52m (2025-05-06T06:52:00Z).`
    pub sentence: String,
    /// The predictions on the two releases.
    pub predicted: [&'a Predicted; 2],
}

/// The releases that differ, in the order of the rows.
pub(crate) fn differing(rows: &[ComparisonRow]) -> Vec<Differing<'_>> {
    let differences = by_runs(rows).filter_map(|runs| {
        let differing = || runs.iter().filter(|row| row.first_difference.is_some());
        let has_other_cause = |row: &&ComparisonRow| {
            let difference = row.first_difference.as_ref();
            difference.is_some_and(|it| it.with_same_first_reconcile != Some(Remaining::Nothing))
        };
        let row = differing().find(has_other_cause).or_else(|| differing().next())?;
        let difference = row.first_difference.as_ref()?;
        let FirstDifference { before, here, .. } = difference.explained();
        let setting = &row.setting;
        let releases = format!("{} and {}", before.release, here.release);
        let first = difference.when() + &difference.effect_of_first_reconcile();
        let sentence = match row.run {
            None => format!("{setting}: {releases} first differ {first}."),
            Some(run) => format!(
                "{setting}: {releases} differ in {} of {} runs; in run {run}, first {first}.",
                differing().count(),
                runs.len()
            ),
        };
        Some(Differing { sentence, predicted: [before, here] })
    });
    differences.collect()
}

/// The releases that differ, for a terminal.
pub(super) fn first_differences(rows: &[ComparisonRow], columns: usize) -> String {
    let mut out = String::new();
    for Differing { sentence, predicted } in differing(rows) {
        out.push_str(&hanging("", &sentence, 0, columns));
        for predicted in predicted {
            out.push_str(&hanging(
                &format!("{}  ", predicted.label()),
                &predicted.step,
                2,
                columns,
            ));
        }
    }
    out
}
