//! A prediction of the model, in all media: text, JSON, CSV and pages.

use std::io;
use std::sync::Arc;

use super::presentation::hpa::prediction::HpaPrediction;
use super::presentation::prediction::{Head, Prediction};
use super::presentation::recommender::prediction::RecommenderPrediction;
use super::table::{self, Contents, Rows};
use super::text::text;
use super::unmet::UnmetOf;
use super::{csv, outcome, prediction_lines};
use kube_autoscaler_models::rules::VpaRelease;
use kube_lockstep_scenario::Scenario;
use kube_lockstep_scenario::vpa::VpaScenario;
use kube_lockstep_sim::expect::Unmet;
use kube_lockstep_sim::run::recommender::FreeRecommenderRun;
use kube_lockstep_sim::run::{FreeRun, RandomOutcome};

/// A prediction.
#[derive(Clone, Copy, Debug)]
pub struct Predicted<'a> {
    pub run: PredictedRun<'a>,
    /// The expectations that are not met.
    pub unmet: &'a [Unmet],
}

/// The run of a prediction.
#[derive(Clone, Copy, Debug)]
pub enum PredictedRun<'a> {
    /// A run of the HPA controller, with the VPA of the scenario if it has one.
    Hpa(&'a Arc<Scenario>, &'a FreeRun),
    /// A run of the VPA's recommender alone.
    Vpa(&'a VpaScenario, &'a FreeRecommenderRun, VpaRelease),
}

impl<'a> Predicted<'a> {
    /// The prediction of a scenario with an HPA.
    #[must_use]
    pub fn hpa(scenario: &'a Arc<Scenario>, run: &'a FreeRun, unmet: &'a [Unmet]) -> Predicted<'a> {
        Predicted { run: PredictedRun::Hpa(scenario, run), unmet }
    }

    /// The prediction of a scenario of the VPA's recommender.
    #[must_use]
    pub fn vpa(
        scenario: &'a VpaScenario,
        run: &'a FreeRecommenderRun,
        release: VpaRelease,
    ) -> Predicted<'a> {
        Predicted { run: PredictedRun::Vpa(scenario, run, release), unmet: &run.unmet }
    }

    /// The controller's part of reports.
    pub(super) fn prediction(&self) -> Box<dyn Prediction<'a> + 'a> {
        match self.run {
            PredictedRun::Hpa(scenario, run) => Box::new(HpaPrediction { scenario, run }),
            PredictedRun::Vpa(scenario, run, release) => {
                Box::new(RecommenderPrediction { scenario, run, release })
            }
        }
    }

    pub(super) fn head(&self) -> Head<'a> {
        self.prediction().head()
    }

    /// The scenario's file.
    #[must_use]
    pub fn path(&self) -> &'a str {
        self.head().path
    }

    /// Why the scenario can't be run to its end, if it can't.
    #[must_use]
    pub fn undetermined(&self) -> Option<&'a RandomOutcome> {
        self.head().undetermined
    }

    /// Why the release does not check the expectations of the scenario, if it does not.
    #[must_use]
    pub fn other_release(&self) -> Option<String> {
        self.prediction().other_release()
    }

    /// The scenario, the charts and the table of each controller, the summary and the notes.
    #[must_use]
    pub fn text(&self, contents: Contents) -> String {
        let Head { id, path, requirement, release, notes, .. } = self.head();
        let columns = contents.columns;
        let mut out = table::heading(id, requirement, &release, columns);
        out.push_str(&text(&self.prediction().text(contents), contents));
        for note in notes {
            out.push_str(&outcome::note_line(path, note, columns));
        }
        out
    }

    /// The expectations that are not met, or the number of expectations if all are met.
    #[must_use]
    pub fn expectations(&self, columns: usize) -> String {
        let Head { id, path, release, .. } = self.head();
        let of = UnmetOf { id, path, release: &release, is_without_model: false };
        table::expectations(of, self.prediction().expectations(), self.unmet, columns)
    }

    /// Writes a line of JSON for each tick, and a summary on the last line. `several`: with the id
    /// of the scenario.
    ///
    /// # Errors
    /// If writing fails.
    pub fn write_json(&self, out: &mut dyn io::Write, rows: Rows, several: bool) -> io::Result<()> {
        prediction_lines::write(out, self, rows, several)
    }

    /// The ticks as CSV, with a header.
    #[must_use]
    pub fn csv(&self, rows: Rows) -> String {
        csv::written(self.prediction().csv(rows))
    }
}
