//! A prediction of the VPA's recommender alone.

use std::io;

use super::{Run, csv, lines, text};
use crate::presentation::blocks::Block;
use crate::presentation::prediction::{Figures, Head, Prediction};
use crate::presentation::{Detail, Mark, Presentation};
use crate::table::{Contents, Rows};
use kube_autoscaler_models::rules::VpaRelease;
use kube_lockstep_scenario::vpa::VpaScenario;
use kube_lockstep_sim::run::recommender::FreeRecommenderRun;

/// A prediction of the recommender.
pub(crate) struct RecommenderPrediction<'a> {
    pub scenario: &'a VpaScenario,
    pub run: &'a FreeRecommenderRun,
    pub release: VpaRelease,
}

impl<'a> Prediction<'a> for RecommenderPrediction<'a> {
    fn head(&self) -> Head<'a> {
        let RecommenderPrediction { scenario, run, release } = *self;
        Head {
            id: &scenario.id,
            path: &scenario.path,
            requirement: &scenario.requirement,
            release: release.to_string(),
            notes: &run.notes,
            undetermined: run.undetermined.as_ref(),
        }
    }

    fn figures(&self) -> Figures {
        Figures { ticks: self.run.snapshots.len(), ..Figures::default() }
    }

    fn expectations(&self) -> usize {
        self.scenario.expectations_on(self.release).count()
    }

    fn other_release(&self) -> Option<String> {
        None
    }

    fn presentation(&self, mark: Option<Mark<'a>>, detail: Detail) -> Presentation<'a> {
        let vpa = Run::from_model(self.scenario, self.run, self.release, mark, detail);
        Presentation::new(None, vpa)
    }

    fn text(&self, contents: Contents) -> Vec<Block> {
        text::alone(self.scenario, self.run, contents.rows)
    }

    fn csv(&self, rows: Rows) -> Vec<Vec<String>> {
        csv::recommendations(self.scenario, self.release, rows)
    }

    fn write_lines(
        &self,
        out: &mut dyn io::Write,
        rows: Rows,
        scenario: Option<&str>,
    ) -> io::Result<()> {
        lines::write(out, self.scenario, &self.run.snapshots, rows, scenario)
    }
}
