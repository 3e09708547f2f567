//! The data of the panels below the charts, as JSON for `figure.js`: the derivations of ticks, and
//! the values of the ticks between them. Each text is stored once for a timeline, and texts that
//! differ by their numbers share a template of the section. In a page, the data of all sections is
//! compressed.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::Serialize;

use crate::presentation::{Reason, Tick, TickKind, Ticks};
use crate::scale::TimeAxis;
use kube_autoscaler_models::is_default::is_default;
use kube_autoscaler_models::time::Time;
use kube_lockstep_scenario::resolved::Timestamp;

/// The note on ticks that are left out. It follows their number.
const LEFT_OUT: &str =
    "of this timeline are left out here; kube-lockstep explain --at TIME shows each.";

/// The code of a kind of tick for `figure.js`.
const fn code(kind: TickKind) -> &'static str {
    match kind {
        TickKind::Divergent => "d",
        TickKind::Later => "p",
        TickKind::Changed => "c",
        TickKind::Change => "r",
        TickKind::Other => "",
    }
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
    /// The ticks with derivations.
    #[serde(rename = "k")]
    ticks: Vec<Row>,
    /// The ticks of which only the values are kept.
    #[serde(rename = "v", skip_serializing_if = "Option::is_none")]
    values: Option<Values>,
    /// The limits of ticks, each with the class of the color of the last one.
    #[serde(rename = "l")]
    limits: Vec<(String, &'static str)>,
    /// The date of t=0, in milliseconds since 1970.
    #[serde(rename = "z", skip_serializing_if = "Option::is_none")]
    zero: Option<i64>,
    /// The number of ticks that were left out.
    #[serde(rename = "more", skip_serializing_if = "is_default")]
    left_out: usize,
    /// The description of the omitted ones.
    #[serde(skip_serializing_if = "str::is_empty")]
    note: &'static str,
}

/// A tick: its place in percent, number, time, result, kind, the indices of its texts (the summary,
/// the steps of the derivation, and the writes and events), and the index of its limit from 1, or
/// 0.
#[derive(Debug, Serialize)]
struct Row(f64, usize, String, String, &'static str, usize, Vec<usize>, Vec<usize>, usize);

/// Ticks without derivations, as columns, which are compressed better than rows.
#[derive(Debug, Serialize)]
struct Values {
    /// The end of the axis of time, in microseconds.
    end: i64,
    /// The numbers, as differences.
    #[serde(rename = "n")]
    numbers: Vec<usize>,
    /// The times in microseconds, as differences.
    #[serde(rename = "t")]
    times: Vec<i64>,
    /// The results, each with its template.
    #[serde(rename = "r")]
    results: Vec<String>,
    /// The summaries, each with its template.
    #[serde(rename = "w")]
    summaries: Vec<String>,
    #[serde(rename = "l")]
    limits: Vec<usize>,
}

impl Values {
    fn new(end: Time) -> Values {
        let [numbers, limits] = [Vec::new(), Vec::new()];
        let [results, summaries] = [Vec::new(), Vec::new()];
        Values { end: micros(end), numbers, times: Vec::new(), results, summaries, limits }
    }
}

/// A time in whole microseconds. Resyncs are late by nanoseconds, which are irrelevant to users.
fn micros(at: Time) -> i64 {
    at.0 / 1_000
}

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
    pub(super) fn add(&mut self, ticks: Ticks, end: Time, zero: Option<Timestamp>) {
        let Ticks { shown, left_out } = ticks;
        let axis = TimeAxis::until(end);
        let mut texts = Texts { templates: &mut self.templates, texts: Distinct::default() };
        let mut limits: Vec<Vec<Reason>> = Vec::new();
        let mut limit_of = |tick: &Tick| {
            if tick.limits.is_empty() {
                return 0;
            }
            let known = limits.iter().position(|it| *it == tick.limits);
            known.map_or_else(
                || {
                    limits.push(tick.limits.clone());
                    limits.len()
                },
                |index| index + 1,
            )
        };
        let mut ticks = Vec::new();
        let mut values = Values::new(axis.end);
        let (mut number, mut at) = (0, 0);
        for tick in shown {
            let limit = limit_of(&tick);
            let Some(steps) = &tick.steps else {
                values.numbers.push(tick.number - number);
                values.times.push(micros(tick.at) - at);
                (number, at) = (tick.number, micros(tick.at));
                values.results.push(texts.line(&tick.result));
                values.summaries.push(texts.line(&tick.summary));
                values.limits.push(limit);
                continue;
            };
            ticks.push(Row(
                (axis.percent(tick.at) * 100.0).round() / 100.0,
                tick.number,
                tick.at.to_string(),
                tick.result,
                code(tick.kind),
                texts.add(&tick.summary),
                steps.iter().map(|text| texts.add(text)).collect(),
                tick.writes.iter().map(|text| texts.add(text)).collect(),
                limit,
            ));
        }
        let note = if left_out == 0 { "" } else { LEFT_OUT };
        self.figures.push(Figure {
            texts: texts.texts,
            ticks,
            values: (!values.numbers.is_empty()).then_some(values),
            limits: limits.iter().map(|all| limited_by(all)).collect(),
            zero: zero.map(Timestamp::unix_millis),
            left_out,
            note,
        });
    }

    /// The data as JSON.
    pub(super) fn into_json(self) -> String {
        serde_json::to_string(&self).unwrap_or_default()
    }
}

/// All limits of a tick, and the class of the last one.
fn limited_by(limits: &[Reason]) -> (String, &'static str) {
    let texts: Vec<&str> = limits.iter().map(|limit| &*limit.text).collect();
    (texts.join(", "), limits.last().map_or("", |limit| limit.class))
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
    /// Adds a text, and returns its index.
    fn add(&mut self, text: &str) -> usize {
        let line = self.line(text);
        self.texts.add(&line)
    }

    /// The index of the template of a text, and its numbers.
    fn line(&mut self, text: &str) -> String {
        let (template, numbers) = split(text);
        format!("{}{numbers}", self.templates.add(&template))
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
