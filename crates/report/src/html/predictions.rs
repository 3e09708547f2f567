//! A page of predictions: runs of the model alone, one section for each scenario.

use super::page;
use super::section::Section;
use super::sections::Sections;
use super::share::Share;
use crate::prediction::Predicted;
use crate::presentation::prediction::Head;

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
    pub fn new(scenarios: usize) -> Predictions {
        Predictions {
            sections: Sections::default(),
            share: Share::for_page(scenarios),
            notes: Vec::new(),
            releases: Vec::new(),
            is_of_many: scenarios > 1,
        }
    }

    /// Adds a note on the whole page.
    pub fn note(&mut self, note: String) {
        self.notes.push(note);
    }

    /// Adds a prediction.
    pub fn add(&mut self, predicted: &Predicted<'_>) {
        let section = self.share.fit(|detail| Section::from_prediction(predicted, detail));
        self.sections.add(section);
        let Head { id, release, .. } = predicted.head();
        self.notes.extend(predicted.other_release().map(|note| match self.is_of_many {
            true => format!("{id}: {note}"),
            false => note,
        }));
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
