//! Predictions of one scenario on one release.

use std::sync::Arc;

use kube_lockstep_report::comparison::{Figures, Reference};
use kube_lockstep_report::html::{Part, decisions};
use kube_lockstep_report::table::Rows;
use kube_lockstep_report::unmet::UnmetOf;
use kube_lockstep_report as report;
use kube_lockstep_report::{csv as spreadsheet, explain, prediction_lines, table};
use kube_lockstep_sim::trace::text;
use kube_lockstep_predict::{Predict, Prediction, Release, Scenario};
use serde_json::{Value, json};

use crate::proposals::proposals;
use crate::settings::Settings;
use crate::{Refused, load};

/// The width of texts, in columns.
pub(crate) const COLUMNS: usize = 92;

/// A prediction with its scenario.
pub(crate) struct Predicted {
    scenario: Arc<Scenario>,
    release: Release,
    prediction: Prediction,
}

impl Predicted {
    pub(crate) fn of(scenario: Arc<Scenario>, release: Release) -> Predicted {
        let prediction = Predict::new(scenario.clone()).release(release).run();
        Predicted { scenario, release, prediction }
    }

    /// The charts, the ticks and the loads of a scenario. `lines` is the output of
    /// `kube-lockstep predict --format json`.
    pub(crate) fn answer(&self) -> Result<Value, Refused> {
        let Predicted { scenario, release, prediction } = self;
        let Prediction { run, unmet, .. } = prediction;
        let Part { body, panels } = Part::prediction(scenario, run, unmet);
        let skipped = scenario.unsupported_on(*release);
        let of = UnmetOf { id: &scenario.id, path: &scenario.path, release: &run.trace.release };
        let skipped = skipped.as_deref();
        let rows = Rows::All;
        let summary =
            prediction_lines::FreeRunSummary { id: None, unmet, of, skipped, rows, scenario };
        let mut ticks = Vec::new();
        let written = prediction_lines::free_run(&mut ticks, run, &summary);
        written.map_err(|error| Refused::of(error.to_string()))?;
        let is_supported = prediction.is_supported();
        let note = (!is_supported).then(|| table::other_release_text(scenario, *release));
        Ok(json!({
            "kind": "hpa",
            "requirement": scenario.requirement,
            "body": body,
            "panels": panels,
            "lines": String::from_utf8_lossy(&ticks),
            "decisions": run.vpa.as_ref().map(|vpa| decisions(&vpa.charted.run)),
            "figures": Figures::of(scenario, run, &Reference::of(run)),
            "note": note,
            "undetermined": run.undetermined.as_ref().map(|random| &random.why),
            "unmet": unmet,
            "settings": Settings::of(scenario, *release),
            "proposals": proposals(scenario, run),
            "loads": load::curves(&scenario.metrics, scenario.until),
            "seconds": scenario.until.since_start().as_secs_f64(),
            "supported": is_supported,
        }))
    }

    /// One tick in full.
    pub(crate) fn explanation(&self, tick: usize) -> Result<Value, Refused> {
        let index = tick.checked_sub(1).unwrap_or(usize::MAX);
        let text = explain::tick_with_vpa(&self.scenario, self.release, index, COLUMNS);
        let text = text.ok_or_else(|| Refused::of(format!("there is no tick {tick}")))?;
        Ok(json!({ "text": report::plain(&text) }))
    }

    /// The ticks as CSV.
    pub(crate) fn csv(&self) -> Value {
        json!({ "text": spreadsheet::ticks(&self.scenario, &self.prediction.run, Rows::All) })
    }

    /// The trace in its recorded form, for no build.
    pub(crate) fn trace(&self) -> Result<Value, Refused> {
        let text = text::write(&self.prediction.run.trace, &[]);
        Ok(json!({ "text": text.map_err(|error| Refused::of(error.to_string()))? }))
    }
}
