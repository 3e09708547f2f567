//! A run as one HTML page: a list of scenarios with filters, and the timeline of each scenario.
//!
//! The page loads nothing, is valid as HTML and as XML, and works without a network. The charts are
//! drawn here; the scripts of the page only filter the list (`page.js`) and show the derivation of
//! the selected tick (`figure.js`). The playground shows [parts](Part) of pages, with `page.css`
//! and `figure.js`.

mod actions;
mod chart;
mod comparison;
mod lane;
mod page;
mod path;
mod section;
mod ticks;
mod timeline;
mod vpa;
mod words;

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::Arc;

pub use comparison::{Compared, Comparison};
use section::{FAILURES, Section};
use ticks::Templates;
use vpa::Detail;

pub use self::vpa::{Decision, decisions};
use super::change::Between;
use super::{Report, counted};
use crate::expect::Unmet;
use crate::model::rules::VpaRelease;
use crate::run::change::Changed;
use crate::run::recommender::FreeRecommenderRun;
use crate::run::recommender_change::RecommenderChanged;
use crate::run::{Event, FreeRun, Setting, Summary};
use crate::scenario::Scenario;
use crate::scenario::vpa::VpaScenario;

/// The report as a page. It is written at the end of the run.
#[derive(Debug)]
pub struct Html<W> {
    out: W,
    setting: Option<Setting>,
    /// Notes on the whole run.
    notes: Vec<String>,
    sections: Vec<Section>,
    templates: Templates,
    /// How much of long runs of recommenders is shown.
    detail: Detail,
    /// The sections of each scenario, by their indices.
    by_id: BTreeMap<String, Vec<usize>>,
    /// The size of the timelines on the page, in bytes.
    size: usize,
    /// The number of sections without their timelines.
    left_out: usize,
}

/// The maximum size of the timelines of a page, in bytes. Browsers become slow with more. Timelines
/// of failures are always shown.
const MOST_BYTES: usize = 4_000_000;

impl<W: Write> Html<W> {
    /// Creates a report that writes to `out`.
    pub fn new(out: W) -> Html<W> {
        Html {
            out,
            setting: None,
            notes: Vec::new(),
            sections: Vec::new(),
            templates: Templates::of_page(1),
            detail: Detail::of_page(1),
            by_id: BTreeMap::new(),
            size: 0,
            left_out: 0,
        }
    }

    /// Returns the writer.
    pub fn into_inner(self) -> W {
        self.out
    }

    fn add(&mut self, mut section: Section) {
        let known = self.by_id.entry(section.id.clone()).or_default();
        let same = known.iter().copied().find(|index| self.sections[*index].is_same(&section));
        match same {
            Some(index) => self.sections[index].releases.extend(section.releases),
            None => {
                known.push(self.sections.len());
                let size = section.size_of_timelines();
                if self.size + size > MOST_BYTES && section.rank() >= FAILURES && size > 0 {
                    section.leave_out_timelines();
                    self.left_out += 1;
                } else {
                    self.size += size;
                }
                self.sections.push(section);
            }
        }
    }

    fn write(&mut self, summary: Option<&Summary>) -> io::Result<()> {
        let stale = summary.map(|summary| summary.stale_known.as_slice()).unwrap_or_default();
        let stale = stale
            .iter()
            .map(|entry| format!("{entry} no longer disagrees; remove it from divergences.yaml"));
        let missing = summary.map(|summary| summary.missing.as_slice()).unwrap_or_default();
        let missing = missing.iter().map(|part| format!("missing: {part}"));
        self.notes.extend(stale.chain(missing));
        if self.left_out > 0 {
            let results = counted(self.left_out, "result");
            self.notes.push(format!(
                "the timelines of {results} are left out, because the page would be too large; run \
                 fewer scenarios or releases to see them"
            ));
        }
        let setting = self.setting.clone().unwrap_or_default();
        let text = page::page(page::Contents {
            title: "Conformance run",
            subject: &format!("{} {}", setting.engine, setting.release),
            notes: &self.notes,
            overview: None,
            noun: "scenario",
            sections: std::mem::take(&mut self.sections),
            templates: &self.templates,
        });
        self.out.write_all(text.as_bytes())?;
        self.out.flush()
    }
}

impl<W: Write> Report for Html<W> {
    fn event(&mut self, event: &Event) -> io::Result<()> {
        match event {
            Event::Preparing { .. } => Ok(()),
            Event::Started { scenarios, setting, note } => {
                self.detail = Detail::of_page(*scenarios);
                self.templates = Templates::of_page(*scenarios);
                self.setting = Some(setting.clone());
                self.notes.extend(note.clone());
                Ok(())
            }
            Event::Finished(outcome) => {
                let setting = self.setting.as_ref();
                let section =
                    Section::of_outcome(outcome, setting, self.detail, &mut self.templates);
                self.add(section);
                Ok(())
            }
            Event::Ended(summary) => self.write(Some(summary)),
        }
    }

    fn cut_off(&mut self, why: &str) -> io::Result<()> {
        self.notes.push(format!("the run did not finish: {why}"));
        self.write(None)
    }
}

/// The content of one scenario of a page, for another page with the same style.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Part {
    /// The notes and the timelines, as HTML.
    pub body: String,
    /// The texts of the ticks, without their numbers: `figure.js` requires them.
    pub templates: Vec<String>,
}

impl Part {
    /// A run of the model alone.
    #[must_use]
    pub fn prediction(scenario: &Scenario, run: &FreeRun, unmet: &[Unmet]) -> Part {
        let mut templates = Templates::of_page(1);
        let section = Section::of_model(scenario, run, unmet, &mut templates);
        Part { body: section.into_body(), templates: templates.texts() }
    }

    /// A run of the model of the VPA's recommender alone.
    #[must_use]
    pub fn recommendations(
        scenario: &VpaScenario,
        run: &FreeRecommenderRun,
        release: VpaRelease,
    ) -> Part {
        let mut templates = Templates::default();
        let section = Section::of_vpa(scenario, run, release, &mut templates);
        Part { body: section.into_body(), templates: templates.texts() }
    }

    /// A change between two releases of the VPA's recommender, with the timelines of both.
    #[must_use]
    pub fn recommender_change(
        scenario: &VpaScenario,
        between: Between<VpaRelease>,
        changed: &RecommenderChanged,
    ) -> Part {
        let mut templates = Templates::default();
        let section = Section::of_vpa_change(scenario, between, changed, &mut templates);
        Part { body: section.into_body(), templates: templates.texts() }
    }

    /// A change between two releases, with the timelines of both.
    #[must_use]
    pub fn change(scenario: &Arc<Scenario>, between: Between, changed: &Changed) -> Part {
        let mut templates = Templates::of_page(2);
        let section = Section::of_change(scenario, between, changed, &mut templates);
        Part { body: section.into_body(), templates: templates.texts() }
    }
}

/// A page for a run of the model alone.
#[must_use]
pub fn prediction(
    scenario: &Scenario,
    run: &FreeRun,
    unmet: &[Unmet],
    note: Option<&str>,
) -> String {
    let mut templates = Templates::of_page(1);
    let section = Section::of_model(scenario, run, unmet, &mut templates);
    let notes: Vec<String> = note.map(str::to_owned).into_iter().collect();
    page::page(page::Contents {
        title: "Prediction",
        subject: &format!("the model of {}", run.trace.release),
        notes: &notes,
        overview: None,
        noun: "scenario",
        sections: vec![section],
        templates: &templates,
    })
}

/// A page for a run of the model of the VPA's recommender alone.
#[must_use]
pub fn recommendations(
    scenario: &VpaScenario,
    run: &FreeRecommenderRun,
    release: VpaRelease,
) -> String {
    let mut templates = Templates::default();
    let section = Section::of_vpa(scenario, run, release, &mut templates);
    page::page(page::Contents {
        title: "Prediction",
        subject: &format!("the model of {release}"),
        notes: &[],
        overview: None,
        noun: "scenario",
        sections: vec![section],
        templates: &templates,
    })
}

/// A page for the changes between two releases. `same` is the number of scenarios that did not
/// change; `skipped` are the ids of those that were not compared, with the reasons.
#[must_use]
pub fn changes(
    between: Between,
    found: &[(Arc<Scenario>, Changed)],
    same: usize,
    skipped: &[(String, String)],
) -> String {
    // Each has a timeline of both releases, and the table of changed fields.
    let mut templates = Templates::of_page(3 * found.len());
    let sections = found
        .iter()
        .map(|(scenario, changed)| Section::of_change(scenario, between, changed, &mut templates));
    let sections: Vec<Section> = sections.collect();
    let subject = format!("{} and {}", between.from, between.to);
    changes_page(&subject, sections, &templates, same, skipped)
}

/// A page for the changes between two releases of the VPA's recommender, as [`changes`].
#[must_use]
pub fn recommender_changes(
    between: Between<VpaRelease>,
    found: &[(Arc<VpaScenario>, RecommenderChanged)],
    same: usize,
    skipped: &[(String, String)],
) -> String {
    let mut templates = Templates::default();
    let sections = found.iter().map(|(scenario, changed)| {
        Section::of_vpa_change(scenario, between, changed, &mut templates)
    });
    let sections: Vec<Section> = sections.collect();
    let subject = format!("{} and {}", between.from, between.to);
    changes_page(&subject, sections, &templates, same, skipped)
}

fn changes_page(
    subject: &str,
    sections: Vec<Section>,
    templates: &Templates,
    same: usize,
    skipped: &[(String, String)],
) -> String {
    let mut notes = vec![format!("{} unchanged", counted(same, "more scenario"))];
    notes.extend(skipped.iter().map(|(id, why)| format!("not compared: {id}: {why}")));
    page::page(page::Contents {
        title: "Changes between releases",
        subject,
        notes: &notes,
        overview: None,
        noun: "scenario",
        sections,
        templates,
    })
}
