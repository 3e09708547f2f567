//! A prediction of the model, in all media: text, JSON, CSV and pages.

use std::io;
use std::sync::Arc;

use super::table::{self, Contents, Rows};
use super::unmet::UnmetOf;
use super::{csv, outcome, prediction_lines, recommender};
use kube_autoscaler_models::rules::{Release, VpaRelease};
use kube_lockstep_scenario::Scenario;
use kube_lockstep_scenario::resolved::Expectation;
use kube_lockstep_scenario::vpa::VpaScenario;
use kube_lockstep_sim::expect::Unmet;
use kube_lockstep_sim::run::recommender::FreeRecommenderRun;
use kube_lockstep_sim::run::{FreeRun, Note, RandomOutcome};

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
    /// A run of the HPA controller, with the VPA beside it if there is one.
    Hpa(&'a Arc<Scenario>, &'a FreeRun),
    /// A run of the VPA's recommender alone.
    Vpa(&'a VpaScenario, &'a FreeRecommenderRun, VpaRelease),
}

/// The scenario of a prediction, and the parts that all runs have.
#[derive(Debug)]
pub(super) struct Head<'a> {
    pub id: &'a str,
    pub path: &'a str,
    pub requirement: &'a str,
    pub release: String,
    pub notes: &'a [Note],
    pub undetermined: Option<&'a RandomOutcome>,
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

    pub(super) fn head(&self) -> Head<'a> {
        match self.run {
            PredictedRun::Hpa(scenario, run) => Head {
                id: &scenario.id,
                path: &scenario.path,
                requirement: &scenario.requirement,
                release: run.trace.release.clone(),
                notes: &run.notes,
                undetermined: run.undetermined.as_ref(),
            },
            PredictedRun::Vpa(scenario, run, release) => Head {
                id: &scenario.id,
                path: &scenario.path,
                requirement: &scenario.requirement,
                release: release.to_string(),
                notes: &run.notes,
                undetermined: run.undetermined.as_ref(),
            },
        }
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
        let PredictedRun::Hpa(scenario, run) = self.run else { return None };
        let release = run.trace.release.parse().ok()?;
        let applies =
            scenario.releases.contains(release) && scenario.unsupported_on(release).is_none();
        (!applies).then(|| table::other_release_text(scenario, release))
    }

    /// The scenario, the charts and the table of each controller, the summary and the notes.
    #[must_use]
    pub fn text(&self, contents: Contents) -> String {
        let Head { id, path, requirement, release, notes, .. } = self.head();
        let columns = contents.columns;
        let mut out = table::heading(id, requirement, &release, columns);
        out.push_str(&match self.run {
            PredictedRun::Hpa(scenario, run) => table::body(scenario, run, contents),
            PredictedRun::Vpa(scenario, run, _) => recommender::body(scenario, run, contents),
        });
        for note in notes {
            out.push_str(&outcome::note_line(path, note, columns));
        }
        out
    }

    /// The expectations that are not met, or the number of expectations if all are met.
    #[must_use]
    pub fn expectations(&self, columns: usize) -> String {
        let Head { id, path, release, .. } = self.head();
        let expected = match self.run {
            PredictedRun::Hpa(..) if self.other_release().is_some() => 0,
            PredictedRun::Hpa(scenario, run) => {
                let on = run.trace.release.parse::<Release>();
                let is_here =
                    |it: &&Expectation| on.as_ref().is_ok_and(|on| it.releases.contains(*on));
                let vpa = run.vpa.as_ref();
                let beside = vpa.map_or(0, |it| it.scenario.expectations_on(it.release).count());
                scenario.expect.iter().filter(is_here).count() + beside
            }
            PredictedRun::Vpa(scenario, _, release) => scenario.expectations_on(release).count(),
        };
        let of = UnmetOf { id, path, release: &release };
        table::expectations(of, expected, self.unmet, columns)
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
        csv::written(match self.run {
            PredictedRun::Hpa(scenario, run) => csv::ticks(scenario, run, rows),
            PredictedRun::Vpa(scenario, _, release) => {
                csv::recommendations(scenario, release, rows)
            }
        })
    }
}
