//! Predictions of one scenario on one release.

use std::sync::Arc;

use kube_lockstep::report::comparison::{Figures, Reference};
use kube_lockstep::report::html::Part;
use kube_lockstep::report::unmet::UnmetOf;
use kube_lockstep::report::{self, csv as spreadsheet, explain, json as lines, table};
use kube_lockstep::trace::text;
use kube_lockstep::{Predict, Prediction, Release, Scenario};
use serde_json::{Value, json};

use crate::request::Subject;
use crate::{Refused, load, parse, release};

/// The width of texts, in columns.
const COLUMNS: usize = 92;

/// A prediction with its scenario.
struct Predicted {
    scenario: Arc<Scenario>,
    release: Release,
    prediction: Prediction,
}

impl Predicted {
    fn of(subject: &Subject) -> Result<Predicted, Refused> {
        let release = release(&subject.release)?;
        let scenario = Arc::new(parse(subject)?);
        let prediction = Predict::new(scenario.clone()).release(release).run();
        Ok(Predicted { scenario, release, prediction })
    }
}

/// The charts, the ticks and the loads of a scenario. `lines` is the output of
/// `kube-lockstep predict --format json`.
pub(crate) fn prediction(subject: &Subject) -> Result<Value, Refused> {
    let Predicted { scenario, release, prediction } = Predicted::of(subject)?;
    let Prediction { run, unmet, .. } = &prediction;
    let Part { body, templates } = Part::prediction(&scenario, run, unmet);
    let skipped = scenario.unsupported_on(release);
    let of = UnmetOf { id: &scenario.id, path: &scenario.path, release: &run.trace.release };
    let summary = lines::FreeRunSummary { id: None, unmet, of, skipped: skipped.as_deref() };
    let mut ticks = Vec::new();
    lines::free_run(&mut ticks, run, &summary).map_err(|error| Refused::of(error.to_string()))?;
    let note = (!prediction.is_supported()).then(|| table::other_release_text(&scenario, release));
    Ok(json!({
        "requirement": scenario.requirement,
        "body": body,
        "templates": templates,
        "lines": String::from_utf8_lossy(&ticks),
        "figures": Figures::of(&scenario, run, &Reference::of(run)),
        "note": note,
        "undetermined": run.undetermined,
        "unmet": unmet,
        "loads": load::curves(&scenario),
        "seconds": scenario.until.since_start().as_secs_f64(),
        "supported": prediction.is_supported(),
    }))
}

/// One tick in full.
pub(crate) fn explanation(subject: &Subject, tick: usize) -> Result<Value, Refused> {
    let Predicted { scenario, release, prediction } = Predicted::of(subject)?;
    let index = tick.checked_sub(1).unwrap_or(usize::MAX);
    let release = release.to_string();
    let text = explain::tick(&scenario, &prediction.run, index, &release, COLUMNS);
    let text = text.ok_or_else(|| Refused::of(format!("there is no tick {tick}")))?;
    Ok(json!({ "text": report::plain(&text) }))
}

/// The ticks as CSV.
pub(crate) fn csv(subject: &Subject) -> Result<Value, Refused> {
    let predicted = Predicted::of(subject)?;
    Ok(json!({ "text": spreadsheet::ticks(&predicted.prediction.run) }))
}

/// The trace in its recorded form, for no build.
pub(crate) fn trace(subject: &Subject) -> Result<Value, Refused> {
    let predicted = Predicted::of(subject)?;
    let text = text::write(&predicted.prediction.run.trace, &[]);
    Ok(json!({ "text": text.map_err(|error| Refused::of(error.to_string()))? }))
}
