//! The data of the panels below the charts: the derivation of each tick, as JSON for `figure.js`.
//! Each text is stored once for a timeline, and texts that differ by their numbers share a template
//! of the section. In a page, the data of all sections is compressed.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::Serialize;

use crate::model::time::Time;
use crate::report::scale::TimeAxis;

/// A tick of the panel.
pub(super) struct PanelTick {
    /// The number in the run, from 1.
    pub(super) number: usize,
    pub(super) at: Time,
    /// The result: `replicas 4 → 7`.
    pub(super) result: String,
    pub(super) kind: TickKind,
    /// Why, in one line.
    pub(super) summary: String,
    /// The steps of the derivation.
    pub(super) steps: Vec<String>,
    /// Writes, events and errors.
    pub(super) writes: Vec<String>,
}

/// The kind of a tick.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum TickKind {
    /// The first one that diverges.
    Divergent,
    /// It follows a divergence.
    Later,
    /// The first one that differs between two releases.
    Changed,
    /// The result changes.
    Change,
    /// Any other tick.
    Other,
}

impl TickKind {
    const fn code(self) -> &'static str {
        match self {
            TickKind::Divergent => "d",
            TickKind::Later => "p",
            TickKind::Changed => "c",
            TickKind::Change => "r",
            TickKind::Other => "",
        }
    }
}

/// The ticks of a panel.
pub(super) struct PanelTicks {
    pub(super) end: Time,
    pub(super) ticks: Vec<PanelTick>,
    /// The number of ticks that were left out.
    pub(super) left_out: usize,
    /// Which ones were left out, after their number.
    pub(super) note: &'static str,
}

/// The data of the figures of a section, in the order of the page.
#[derive(Debug, Default, Serialize)]
pub(super) struct Panels {
    /// The templates: texts with [`NUMBER`] in the place of each number.
    #[serde(rename = "t")]
    templates: Distinct,
    #[serde(rename = "f")]
    figures: Vec<Figure>,
}

/// The data of a figure.
#[derive(Debug, Serialize)]
struct Figure {
    /// The texts: the index of the template, and the numbers, separated by spaces.
    #[serde(rename = "s")]
    texts: Distinct,
    #[serde(rename = "k")]
    ticks: Vec<Row>,
    /// The number of ticks that were left out.
    #[serde(rename = "more", skip_serializing_if = "is_zero")]
    left_out: usize,
    /// Which ones were left out.
    #[serde(skip_serializing_if = "str::is_empty")]
    note: &'static str,
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// A tick: its place in percent, number, time, result, kind, and the indices of its texts: the
/// summary, the steps of the derivation, and the writes and events.
#[derive(Debug, Serialize)]
struct Row(f64, usize, String, String, &'static str, usize, Vec<usize>, Vec<usize>);

/// The place of a number in a template.
const NUMBER: char = '¤';

/// Different texts, each with an index.
#[derive(Debug, Default, Serialize)]
#[serde(transparent)]
struct Distinct {
    all: Vec<String>,
    #[serde(skip)]
    index: BTreeMap<String, usize>,
}

impl Distinct {
    fn add(&mut self, text: &str) -> usize {
        if let Some(index) = self.index.get(text) {
            return *index;
        }
        let index = self.all.len();
        self.all.push(text.to_owned());
        self.index.insert(text.to_owned(), index);
        index
    }
}

impl Panels {
    /// Adds the data of the next figure.
    pub(super) fn add(&mut self, panel: PanelTicks) {
        let axis = TimeAxis::until(panel.end);
        let mut texts = Texts { templates: &mut self.templates, texts: Distinct::default() };
        let rows = panel.ticks.into_iter().map(|tick| {
            let place = (axis.percent(tick.at) * 100.0).round() / 100.0;
            Row(
                place,
                tick.number,
                tick.at.to_string(),
                tick.result,
                tick.kind.code(),
                texts.add(&tick.summary),
                tick.steps.iter().map(|text| texts.add(text)).collect(),
                tick.writes.iter().map(|text| texts.add(text)).collect(),
            )
        });
        let ticks: Vec<Row> = rows.collect();
        let note = if panel.left_out == 0 { "" } else { panel.note };
        let texts = texts.texts;
        self.figures.push(Figure { texts, ticks, left_out: panel.left_out, note });
    }

    /// The data as JSON.
    pub(super) fn into_json(self) -> String {
        serde_json::to_string(&self).unwrap_or_default()
    }
}

/// The level of compression of zlib: higher levels take much longer for a few percent.
const LEVEL: u8 = 6;

/// A text, compressed (raw DEFLATE) and encoded, as `page.js` reads it.
pub(super) fn compressed(text: &str) -> String {
    BASE64_STANDARD.encode(miniz_oxide::deflate::compress_to_vec(text.as_bytes(), LEVEL))
}

struct Texts<'a> {
    templates: &'a mut Distinct,
    texts: Distinct,
}

impl Texts<'_> {
    fn add(&mut self, text: &str) -> usize {
        let (template, numbers) = split(text);
        let template = self.templates.add(&template);
        self.texts.add(&format!("{template}{numbers}"))
    }
}

/// The template of a text, and its numbers, each after a space.
fn split(text: &str) -> (String, String) {
    let (mut template, mut numbers) = (String::new(), String::new());
    if text.contains(NUMBER) {
        return (text.to_owned(), numbers);
    }
    let mut in_number = false;
    for c in text.chars() {
        match (c.is_ascii_digit(), in_number) {
            (true, true) => numbers.push(c),
            (true, false) => {
                template.push(NUMBER);
                numbers.push(' ');
                numbers.push(c);
            }
            (false, _) => template.push(c),
        }
        in_number = c.is_ascii_digit();
    }
    (template, numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_differ_by_their_numbers_share_a_template() {
        let mut templates = Distinct::default();
        let mut texts = Texts { templates: &mut templates, texts: Distinct::default() };
        let indices = ["7 of 10", "3 of 10", "7 of 10", "none", "¤ 5"].map(|text| texts.add(text));
        assert_eq!(indices, [0, 1, 0, 2, 3]);
        assert_eq!(texts.texts.all, ["0 7 10", "0 3 10", "1", "2"]);
        assert_eq!(templates.all, ["¤ of ¤", "none", "¤ 5"]);
    }
}
