//! One scenario on two releases.

use std::sync::Arc;

use kube_autoscaler_models::rules::Release;
use kube_lockstep_predict::Scenario;
use kube_lockstep_report::change::Between;
use kube_lockstep_report::comparison::Reference;
use kube_lockstep_report::figures::Figures;
use kube_lockstep_report::html::{Part, ScenarioChange};
use kube_lockstep_report::prediction::Predicted;
use kube_lockstep_sim::run::change::{TraceOn, changed};
use kube_lockstep_sim::run::free_run;
use serde_json::{Value, json};

use crate::Refused;
use crate::proposals::proposals;

/// What changes between two releases, and why, with the timelines of both.
pub(crate) fn comparison(
    scenario: &Arc<Scenario>,
    one: Release,
    other: Release,
) -> Result<Value, Refused> {
    let (from, to) = (one.min(other), one.max(other));
    let runs = [from, to].map(|release| free_run(scenario, release));
    let reference = Reference::new(&runs[0]);
    let figures: Vec<Value> = [from, to]
        .iter()
        .zip(&runs)
        .map(|(release, run)| {
            let why = scenario
                .unsupported_on(*release)
                .map(|why| why.to_string())
                .or_else(|| run.undetermined.as_ref().map(|random| random.why.clone()));
            let figures = Figures::new(scenario, run, &reference);
            let proposals = proposals(scenario, run);
            let release = release.to_string();
            json!({ "release": release, "figures": figures, "note": why, "proposals": proposals })
        })
        .collect();
    let [before, after] = &runs;
    let found = changed(
        scenario,
        TraceOn { release: from, trace: &before.trace },
        TraceOn { release: to, trace: &after.trace },
    );
    let change = |it| Part::change(&ScenarioChange::hpa(scenario, Between { from, to }, it));
    let part = found.as_ref().map(change);
    let same = part.is_none();
    let Part { body, panels } =
        part.unwrap_or_else(|| Part::prediction(&Predicted::hpa(scenario, after, &[])));
    Ok(json!({ "body": body, "panels": panels, "same": same, "runs": figures }))
}
