//! A page of predictions: runs of the model alone, one section for each scenario.

use std::sync::Arc;

use super::page;
use super::section::Section;
use super::sections::Sections;
use super::share::Share;
use kube_autoscaler_models::rules::VpaRelease;
use kube_lockstep_scenario::Scenario;
use kube_lockstep_scenario::vpa::VpaScenario;
use kube_lockstep_sim::expect::Unmet;
use kube_lockstep_sim::run::FreeRun;
use kube_lockstep_sim::run::recommender::FreeRecommenderRun;

/// The prediction of a scenario with an HPA.
#[derive(Clone, Copy, Debug)]
pub struct Predicted<'a> {
    /// The scenario.
    pub scenario: &'a Arc<Scenario>,
    /// The prediction.
    pub run: &'a FreeRun,
    /// The expectations that are not met.
    pub unmet: &'a [Unmet],
    /// Why the scenario does not apply to the release, if it does not.
    pub note: Option<&'a str>,
}

/// The page of predictions.
#[derive(Debug)]
pub struct Predictions {
    sections: Sections,
    share: Share,
    notes: Vec<String>,
    /// The releases of the models, each once.
    releases: Vec<String>,
    is_of_many: bool,
}

impl Predictions {
    /// Creates a page for a number of scenarios.
    #[must_use]
    pub fn of(scenarios: usize) -> Predictions {
        Predictions {
            sections: Sections::default(),
            share: Share::of_page(scenarios),
            notes: Vec::new(),
            releases: Vec::new(),
            is_of_many: scenarios > 1,
        }
    }

    /// Adds a note on the whole page.
    pub fn note(&mut self, note: String) {
        self.notes.push(note);
    }

    /// Adds the prediction of a scenario with an HPA.
    pub fn add(&mut self, predicted: Predicted<'_>) {
        let Predicted { scenario, run, unmet, note } = predicted;
        let section = self.share.fit(|detail| Section::of_model(scenario, run, unmet, detail));
        self.sections.add(section);
        let named = |note: &str| match self.is_of_many {
            true => format!("{}: {note}", scenario.id),
            false => note.to_owned(),
        };
        self.notes.extend(note.map(named));
        self.on(run.trace.release.clone());
    }

    /// Adds the prediction of a scenario of the VPA's recommender.
    pub fn add_vpa(
        &mut self,
        scenario: &VpaScenario,
        run: &FreeRecommenderRun,
        release: VpaRelease,
    ) {
        let section =
            self.share.fit(|detail| Section::of_recommender(scenario, run, release, detail));
        self.sections.add(section);
        self.on(release.to_string());
    }

    fn on(&mut self, release: String) {
        if !self.releases.contains(&release) {
            self.releases.push(release);
        }
    }

    /// The page; `None` without a prediction.
    #[must_use]
    pub fn page(mut self) -> Option<String> {
        if self.releases.is_empty() {
            return None;
        }
        self.notes.extend(self.sections.note());
        Some(page::page(page::Contents {
            title: "Prediction",
            subject: &format!("by the model of {}", self.releases.join(" and ")),
            notes: &self.notes,
            overview: None,
            noun: "scenario",
            sections: self.sections.list,
            values: None,
        }))
    }
}
