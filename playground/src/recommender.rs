//! Predictions of one scenario of a VPA on one release.

use kube_autoscaler_models::rules::{VpaRelease, VpaRules};
use kube_lockstep_report as report;
use kube_lockstep_report::change::Between;
use kube_lockstep_report::explain;
use kube_lockstep_report::html::{Part, ScenarioChange, decisions};
use kube_lockstep_report::prediction::Predicted;
use kube_lockstep_report::table::Rows;
use kube_lockstep_scenario::vpa::VpaScenario;
use kube_lockstep_sim::run::recommender::{
    MODEL, free_recommender_run, predicted, predicted_recommender_run,
};
use kube_lockstep_sim::run::recommender_change::{RunsOn, changed};
use kube_lockstep_sim::trace::recommender::{RecommenderTrace, write};
use serde_json::{Value, json};

use crate::predict::COLUMNS;
use crate::request::{Request, Subject};
use crate::{Refused, load};

/// Of a run with more ticks, the answer contains only the summary as JSON: days of them would take
/// longer to read than to predict.
const MOST_LINES: usize = 1000;

/// Answers a request about the scenario of a VPA.
pub(crate) fn respond(
    request: &Request,
    subject: &Subject,
    scenario: &VpaScenario,
) -> Result<Value, Refused> {
    let release = release(&subject.vpa_release)?;
    match request {
        Request::Explain { tick, .. } => explanation(scenario, release, *tick),
        Request::Tune { .. } => {
            Err(Refused::new("only settings of HPAs can be searched, not settings of VPAs"))
        }
        Request::Check { .. } => Err(Refused::new("a search of choices does not support VPAs")),
        Request::Upgrade { .. } => {
            Err(Refused::new("a search for differences between releases requires an HPA"))
        }
        Request::Csv(_) => {
            let run = predicted_recommender_run(scenario, release);
            Ok(json!({ "text": Predicted::vpa(scenario, &run, release).csv(Rows::All) }))
        }
        Request::Trace(_) => {
            let text = write(&trace(scenario, release), &[]);
            Ok(json!({ "text": text.map_err(|error| Refused::new(error.to_string()))? }))
        }
        Request::Compare { vpa_with, .. } => {
            Ok(comparison(scenario, release, self::release(vpa_with)?))
        }
        _ => prediction(scenario, release),
    }
}

/// The release with a name; the newest one for an empty name.
fn release(name: &str) -> Result<VpaRelease, Refused> {
    match name {
        "" => Ok(VpaRelease::NEWEST),
        name => name.parse().map_err(|why: String| Refused::new(why)),
    }
}

/// The charts, the decisions and the loads of a scenario. `lines` is the output of
/// `kube-lockstep predict --format json`; of long runs, only the summary.
fn prediction(scenario: &VpaScenario, release: VpaRelease) -> Result<Value, Refused> {
    let run = predicted_recommender_run(scenario, release);
    let predicted = Predicted::vpa(scenario, &run, release);
    let Part { body, panels } = Part::prediction(&predicted);
    let skipped = scenario.unsupported_on(release);
    Ok(json!({
        "kind": "vpa",
        "requirement": scenario.requirement,
        "body": body,
        "panels": panels,
        "lines": lines(&predicted, run.snapshots.len())?,
        "decisions": decisions(&run),
        "note": skipped,
        "undetermined": run.undetermined.as_ref().map(|random| &random.why),
        "unmet": run.unmet,
        "loads": load::curves(&scenario.metrics, scenario.until),
        "seconds": scenario.until.since_start().as_secs_f64(),
        "supported": skipped.is_none(),
    }))
}

fn lines(predicted: &Predicted<'_>, ticks: usize) -> Result<String, Refused> {
    let mut lines = Vec::new();
    let written = predicted.write_json(&mut lines, Rows::All, false);
    written.map_err(|error| Refused::new(error.to_string()))?;
    let text = String::from_utf8_lossy(&lines).into_owned();
    if ticks <= MOST_LINES {
        return Ok(text);
    }
    Ok(text.lines().last().map(|line| format!("{line}\n")).unwrap_or_default())
}

/// One run in full.
fn explanation(scenario: &VpaScenario, release: VpaRelease, tick: usize) -> Result<Value, Refused> {
    let index = tick.checked_sub(1).unwrap_or(usize::MAX);
    let run = free_recommender_run(scenario, release, &|number| number == index);
    if index >= run.snapshots.len() {
        return Err(Refused::new(format!("there is no tick {tick}")));
    }
    let text = explain::recommender_run(scenario, &run, index, release, COLUMNS);
    Ok(json!({ "text": report::plain(&text) }))
}

/// What the model predicts, in the form of recordings.
fn trace(scenario: &VpaScenario, release: VpaRelease) -> RecommenderTrace {
    RecommenderTrace {
        release: release.to_string(),
        engine: MODEL.to_owned(),
        scenario: scenario.id.clone(),
        hash: scenario.hash.clone(),
        entries: predicted(scenario, VpaRules::of(release)),
    }
}

/// What changes between two releases, and why, with the timelines of both.
fn comparison(scenario: &VpaScenario, one: VpaRelease, other: VpaRelease) -> Value {
    let (from, to) = (one.min(other), one.max(other));
    let [before, after] = [from, to].map(|release| trace(scenario, release));
    let found = changed(
        scenario,
        RunsOn { release: from, trace: &before },
        RunsOn { release: to, trace: &after },
    );
    // Runs that are random upstream are not compared: the page shows the newer release only.
    let found = found.unwrap_or_default();
    let change = |it| Part::change(&ScenarioChange::vpa(scenario, Between { from, to }, it));
    let part = found.as_ref().map(change);
    let same = part.is_none();
    let Part { body, panels } = part.unwrap_or_else(|| {
        let run = free_recommender_run(scenario, to, &|_| false);
        Part::prediction(&Predicted::vpa(scenario, &run, to))
    });
    let runs = [from, to].map(|release| {
        json!({ "release": release.to_string(), "note": scenario.unsupported_on(release) })
    });
    json!({ "body": body, "panels": panels, "same": same, "runs": runs })
}
