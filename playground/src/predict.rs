//! Predictions of one scenario on one release.

use std::sync::Arc;

use kube_lockstep_predict::{Predict, Prediction, Release, Scenario};
use kube_lockstep_report as report;
use kube_lockstep_report::comparison::Reference;
use kube_lockstep_report::explain;
use kube_lockstep_report::figures::Figures;
use kube_lockstep_report::html::{Part, decisions};
use kube_lockstep_report::table::Rows;
use kube_lockstep_sim::trace::text;
use serde_json::{Value, json};

use crate::proposals::proposals;
use crate::settings::Settings;
use crate::{Refused, lint, load};

/// The width of texts, in columns.
pub(crate) const COLUMNS: usize = 92;

/// A prediction with its scenario.
pub(crate) struct Predicted {
    scenario: Arc<Scenario>,
    release: Release,
    prediction: Prediction,
}

impl Predicted {
    pub(crate) fn new(scenario: Arc<Scenario>, release: Release) -> Predicted {
        let prediction = Predict::new(scenario.clone()).release(release).run();
        Predicted { scenario, release, prediction }
    }

    fn predicted(&self) -> report::prediction::Predicted<'_> {
        let Prediction { run, unmet, .. } = &self.prediction;
        report::prediction::Predicted::hpa(&self.scenario, run, unmet)
    }

    /// The charts, the ticks and the loads of a scenario with this text. `lines` is the output of
    /// `kube-lockstep predict --format json`.
    pub(crate) fn answer(&self, text: &str) -> Result<Value, Refused> {
        let Predicted { scenario, release, prediction } = self;
        let Prediction { run, unmet, .. } = prediction;
        let predicted = self.predicted();
        let Part { body, panels } = Part::prediction(&predicted);
        let mut ticks = Vec::new();
        let written = predicted.write_json(&mut ticks, Rows::All, false);
        written.map_err(|error| Refused::new(error.to_string()))?;
        let note = predicted.other_release();
        Ok(json!({
            "kind": "hpa",
            "requirement": scenario.requirement,
            "body": body,
            "panels": panels,
            "lines": String::from_utf8_lossy(&ticks),
            "decisions": run.vpa.as_ref().map(|vpa| decisions(&vpa.charted.run)),
            "figures": Figures::new(scenario, run, &Reference::new(run)),
            "note": note,
            "undetermined": run.undetermined.as_ref().map(|random| &random.why),
            "unmet": unmet,
            "settings": Settings::new(scenario, *release),
            "proposals": proposals(scenario, run),
            "loads": load::curves(&scenario.metrics, scenario.until),
            "seconds": scenario.until.since_start().as_secs_f64(),
            "supported": prediction.is_supported(),
            "hasSearch": scenario.search.is_some(),
            "findings": lint::of_scenario(scenario, text, *release).unwrap_or_default(),
        }))
    }

    /// One tick in full.
    pub(crate) fn explanation(&self, tick: usize) -> Result<Value, Refused> {
        let index = tick.checked_sub(1).unwrap_or(usize::MAX);
        let text = explain::tick_with_vpa(&self.scenario, self.release, index, COLUMNS);
        let text = text.ok_or_else(|| Refused::new(format!("there is no tick {tick}")))?;
        Ok(json!({ "text": report::plain(&text) }))
    }

    /// The ticks as CSV.
    pub(crate) fn csv(&self) -> Value {
        json!({ "text": self.predicted().csv(Rows::All) })
    }

    /// The trace in its recorded form, for no build.
    pub(crate) fn trace(&self) -> Result<Value, Refused> {
        let text = text::write(&self.prediction.run.trace, &[]);
        Ok(json!({ "text": text.map_err(|error| Refused::new(error.to_string()))? }))
    }
}
