//! The first reconcile that differs between the predictions of a scenario on two releases.

use serde::Serialize;

use super::comparison::{ComparisonRow, ticks};
use super::counted;
use super::layout::hanging;
use crate::model::as_text;
use crate::model::time::Time;
use crate::run::{FreeRun, FreeTick};
use crate::scenario::Scenario;

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
    /// The prediction on the release of the row before.
    pub before: Predicted,
    /// The prediction on the release of the row.
    pub here: Predicted,
}

/// What is predicted on one of the two releases.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Predicted {
    /// The release of Kubernetes.
    pub release: String,
    /// `spec.replicas` of the target after the reconcile.
    pub replicas: i32,
    /// The first step of the calculation that the other release does not have.
    pub step: String,
}

impl FirstDifference {
    /// Compares the reconciles of the first target that are at the same time in both predictions.
    /// Returns `None` if none of them differs.
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
        let steps = [before_tick, tick].map(|it| it.derivation.explain());
        let different =
            steps[0].iter().zip(&steps[1]).take_while(|(one, other)| one == other).count();
        let predicted = |run: &FreeRun, tick: &FreeTick, steps: &[String]| Predicted {
            release: run.trace.release.clone(),
            replicas: tick.replicas_after,
            step: steps.get(different).cloned().unwrap_or_default(),
        };
        Some(FirstDifference {
            at,
            time: scenario.clock.map(|zero| zero.plus(at.since_start()).to_string()),
            before: predicted(before, before_tick, &steps[0]),
            here: predicted(here, tick, &steps[1]),
        })
    }

    /// `web: 1.30 and 1.36 first differ at 6h52m (2025-05-06T06:52:00Z).`, and for each release a
    /// label (`1.30: 5 replicas`) and the step.
    pub(super) fn text(&self, setting: &str) -> (String, [(String, String); 2]) {
        let FirstDifference { at, time, before, here } = self;
        let time = time.as_ref().map(|time| format!(" ({time})")).unwrap_or_default();
        let sentence = format!(
            "{setting}: {} and {} first differ at {at}{time}.",
            before.release, here.release,
        );
        let parts = [before, here].map(|it| {
            let replicas = counted(it.replicas.max(0) as usize, "replica");
            let label = format!("{}: {replicas}", it.release);
            (label, it.step.clone())
        });
        (sentence, parts)
    }
}

/// The first differences of the rows, for a terminal.
pub(super) fn first_differences(rows: &[ComparisonRow], columns: usize) -> String {
    let mut out = String::new();
    for row in rows {
        let Some(difference) = &row.first_difference else { continue };
        let (sentence, parts) = difference.text(&row.setting);
        out.push_str(&hanging("", &sentence, 0, columns));
        for (label, step) in parts {
            out.push_str(&hanging(&format!("{label}.  "), &step, 2, columns));
        }
    }
    out
}
