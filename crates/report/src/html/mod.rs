//! A run as one HTML page: a list of scenarios with filters, and the timeline of each scenario.
//!
//! The page loads nothing, is valid as HTML and as XML, and works without a network. The charts are
//! drawn here; the scripts of the page only filter the list (`page.js`) and show the derivation of
//! the selected tick (`figure.js`). The playground shows [parts](Part) of pages, with `page.css`
//! and `figure.js`.

mod chart;
mod comparison;
mod events;
mod figures;
mod front;
mod lane;
mod page;
mod panels;
mod path;
mod peak;
mod predictions;
mod section;
mod sections;
mod share;

use std::fmt::Display;
use std::io::{self, Write};

pub use comparison::{Compared, Comparison};
pub use predictions::Predictions;
pub use section::ScenarioChange;
use section::Section;
use sections::Sections;
use share::Share;

use maud::{Markup, html};

use super::change::Between;
use super::front::FrontChart;
use super::overview::Overview;
use super::prediction::Predicted;
use super::presentation::Detail;
pub use super::presentation::recommender::{Decision, decisions};
use super::{CutOff, Report, counted};
use kube_lockstep_sim::run::{Event, Setting, Summary};

/// The report as a page. It is written at the end of the run.
#[derive(Debug)]
pub struct Html<W> {
    out: W,
    setting: Option<Setting>,
    /// Notes on the whole run.
    notes: Vec<String>,
    sections: Sections,
    share: Share,
}

impl<W: Write> Html<W> {
    /// Creates a report that writes to `out`.
    pub fn new(out: W) -> Html<W> {
        Html {
            out,
            setting: None,
            notes: Vec::new(),
            sections: Sections::default(),
            share: Share::for_page(1),
        }
    }

    /// Returns the writer.
    pub fn into_inner(self) -> W {
        self.out
    }

    fn write(&mut self, summary: Option<&Summary>) -> io::Result<()> {
        let stale = summary.map(|summary| summary.stale_known.as_slice()).unwrap_or_default();
        let stale = stale
            .iter()
            .map(|entry| format!("{entry} no longer disagrees; remove it from divergences.yaml"));
        let missing = summary.map(|summary| summary.missing.as_slice()).unwrap_or_default();
        let missing = missing.iter().map(|part| format!("missing: {part}"));
        self.notes.extend(stale.chain(missing));
        self.notes.extend(self.sections.note());
        let subject = self.setting.as_ref().map(|setting| {
            format!("on {} {}", setting.engine, setting.releases().replace(" - ", "–"))
        });
        let text = page::page(page::Contents {
            title: "Conformance run",
            subject: &subject.unwrap_or_default(),
            notes: &self.notes,
            overview: None,
            noun: "scenario",
            sections: std::mem::take(&mut self.sections).list,
            values: None,
        });
        self.out.write_all(text.as_bytes())?;
        self.out.flush()
    }
}

impl<W: Write> Report for Html<W> {
    fn event(&mut self, event: &Event) -> io::Result<()> {
        match event {
            Event::Preparing(_) => Ok(()),
            Event::Started { scenarios, setting, note } => {
                self.share = Share::for_page(*scenarios);
                self.setting = Some(setting.clone());
                self.notes.extend(note.clone());
                Ok(())
            }
            Event::Finished(outcome) => {
                let setting = self.setting.as_ref();
                let section =
                    self.share.fit(|detail| Section::from_outcome(outcome, setting, detail));
                self.sections.add(section);
                Ok(())
            }
            Event::Ended(summary) => self.write(Some(summary)),
        }
    }

    fn cut_off(&mut self, cause: CutOff<'_>) -> io::Result<()> {
        self.notes.push(format!("the run did not finish: {}", cause.why));
        self.write(None)
    }
}

/// The content of one scenario of a page, for another page with the same style.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Part {
    /// The notes and the timelines, as HTML.
    pub body: String,
    /// The derivations of the ticks, as JSON for `figure.js`.
    pub panels: String,
}

impl Part {
    fn new(section: &Section) -> Part {
        Part { body: section.content(), panels: section.shown_panels().to_owned() }
    }

    #[must_use]
    pub fn prediction(predicted: &Predicted<'_>) -> Part {
        Part::new(&Section::from_prediction(predicted, Detail::OF_PART))
    }

    /// A change between two releases, with the timelines of both.
    #[must_use]
    pub fn change(change: &ScenarioChange<'_>) -> Part {
        Part::new(&Section::from_change(change, Detail::OF_PART))
    }
}

/// The chart of settings by cost and missing pods, as a part of a page.
#[must_use]
pub fn front_chart(chart: &FrontChart) -> String {
    front::front(chart).into_string()
}

/// A page for the changes between two releases. `same` is the number of scenarios that did not
/// change; `skipped` are the ids of those that were not compared, with the reasons. `summary` is
/// shown above them.
#[must_use]
pub fn changes<'a, R: Display>(
    between: Between<R>,
    changes: impl ExactSizeIterator<Item = ScenarioChange<'a>>,
    same: usize,
    skipped: &[(String, String)],
    summary: Option<&Overview>,
) -> String {
    let share = Share::for_page(changes.len());
    let sections = changes.map(|change| share.fit(|detail| Section::from_change(&change, detail)));
    let sections = sections.collect();
    let subject = &format!("on {} and {}", between.from, between.to);
    let unchanged = format!("{} unchanged", counted(same, "more scenario"));
    let mut notes: Vec<String> = (same > 0).then_some(unchanged).into_iter().collect();
    notes.extend(skipped.iter().map(|(id, why)| format!("not compared: {id}: {why}")));
    page::page(page::Contents {
        title: "Changes between releases",
        subject,
        notes: &notes,
        overview: summary.map(overview),
        noun: "scenario",
        sections,
        values: None,
    })
}

/// The summary of a page.
fn overview(Overview { paragraphs, items }: &Overview) -> Markup {
    html! {
        section.over {
            @for text in paragraphs { p { (text) } }
            @for item in items {
                h3 { a href=(item.link) { (item.title) } " (" (item.about) ")" }
                @for line in &item.lines { p { (line) } }
            }
        }
    }
}
