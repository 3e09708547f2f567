//! The ticks of a timeline for the panel below its charts, as JSON in the page: the script shows
//! the derivation of the selected tick. Each text is stored once for a timeline, and texts that
//! differ by their numbers share a template of the page.

use std::collections::BTreeMap;

use maud::{Markup, PreEscaped, html};
use serde::Serialize;

use super::timeline::{Tick, Timeline};
use crate::model::api::HpaStatus;
use crate::model::observation::{EventVerb, SentEvent};
use crate::model::time::Time;
use crate::report::explain::delivery;
use crate::report::scale::TimeAxis;
use crate::report::table;

/// The maximum number of ticks of all timelines of a page, unless there are very many.
const MOST_OF_PAGE: usize = 1600;

/// The maximum numbers of ticks of a timeline: on a page with few and with many timelines.
const MOST: usize = 500;
const MOST_OF_MANY: usize = 18;

/// The data of one timeline.
#[derive(Serialize)]
struct Data {
    /// The texts: the index of the template, and the numbers, separated by spaces.
    s: Vec<String>,
    /// The ticks.
    k: Vec<Row>,
    /// The number of ticks that were left out.
    #[serde(skip_serializing_if = "is_zero")]
    more: usize,
    /// Which ones were left out.
    #[serde(skip_serializing_if = "str::is_empty")]
    note: &'static str,
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// A tick: its place in percent, number, time, result, kind, and the indices of its texts: the
/// summary, the steps of the derivation, and the writes and events.
#[derive(Serialize)]
struct Row(f64, usize, String, String, &'static str, usize, Vec<usize>, Vec<usize>);

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
/// The maximum number of characters of a summary.
const SUMMARY: usize = 240;

/// The place of a number in a template.
const NUMBER: char = '¤';

/// Different texts, each with an index.
#[derive(Debug, Default)]
struct Distinct {
    all: Vec<String>,
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

/// The templates of a page: texts with [`NUMBER`] in the place of each number.
#[derive(Debug)]
pub(super) struct Templates {
    texts: Distinct,
    /// The maximum number of ticks of a timeline.
    most_ticks: usize,
}

impl Default for Templates {
    fn default() -> Templates {
        Templates::of_page(1)
    }
}

impl Templates {
    /// The templates of a page with this number of timelines. With many, each has fewer ticks.
    pub(super) fn of_page(timelines: usize) -> Templates {
        let most_ticks = (MOST_OF_PAGE / timelines.max(1)).clamp(MOST_OF_MANY, MOST);
        Templates { texts: Distinct::default(), most_ticks }
    }

    /// Returns true if the page has so many timelines that each has fewer ticks.
    pub(super) fn is_of_many(&self) -> bool {
        self.most_ticks < MOST
    }

    /// The texts.
    pub(super) fn texts(self) -> Vec<String> {
        self.texts.all
    }

    /// The templates as JSON in the page.
    pub(super) fn html(&self) -> Markup {
        json("templates", &self.texts.all)
    }
}

struct Texts<'a> {
    templates: &'a mut Templates,
    texts: Distinct,
}

impl Texts<'_> {
    fn add(&mut self, text: &str) -> usize {
        let (template, numbers) = split(text);
        let template = self.templates.texts.add(&template);
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

/// The panel of a timeline and its data.
pub(super) fn panel(timeline: &Timeline<'_>, templates: &mut Templates) -> Markup {
    panel_of(of_timeline(timeline, templates.most_ticks), templates)
}

/// The panel and its data.
pub(super) fn panel_of(ticks: PanelTicks, templates: &mut Templates) -> Markup {
    html! {
        div.panel {}
        (json("ticks", &data(ticks, templates)))
    }
}

pub(super) fn json(class: &str, value: &impl Serialize) -> Markup {
    let text = serde_json::to_string(value).unwrap_or_default();
    // Neither HTML nor XML sees a tag or an entity in it.
    let text = text.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026");
    html! { script.(class) type="application/json" { (PreEscaped(text)) } }
}

fn data(panel: PanelTicks, templates: &mut Templates) -> Data {
    let axis = TimeAxis::until(panel.end);
    let mut texts = Texts { templates, texts: Distinct::default() };
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
    let rows: Vec<Row> = rows.collect();
    let note = if panel.left_out == 0 { "" } else { panel.note };
    Data { s: texts.texts.all, k: rows, more: panel.left_out, note }
}

/// The ticks of a timeline: at most about `most`.
fn of_timeline(timeline: &Timeline<'_>, most: usize) -> PanelTicks {
    let divergent = timeline.divergent_tick();
    let mut ticks = Vec::new();
    let mut before: Option<&HpaStatus> = None;
    let kept = kept(timeline, most);
    for (index, tick) in timeline.ticks.iter().enumerate() {
        let changed = table::changed_conditions(tick.observation, before);
        before = tick.observation.status_write().map(|write| &write.status).or(before);
        if !kept[index] {
            continue;
        }
        let kind = match divergent {
            Some(divergent) if index == divergent => TickKind::Divergent,
            Some(divergent) if index > divergent => TickKind::Later,
            _ if tick.observation.scaled_to().is_some() => TickKind::Change,
            _ => TickKind::Other,
        };
        ticks.push(PanelTick {
            number: tick.number,
            at: tick.observation.at,
            result: replicas(tick),
            kind,
            summary: summary(tick, &changed),
            steps: steps(tick),
            writes: writes(tick, &changed),
        });
    }
    let left_out = timeline.ticks.len() - ticks.len();
    let note = "are left out here.";
    PanelTicks { end: timeline.end(), ticks, left_out, note }
}

/// Whether each tick is part of the data: at most about `most` ticks. Half of them have events,
/// and half are at equal distances. If there are more ticks with events, these are at equal
/// distances as well.
fn kept(timeline: &Timeline<'_>, most: usize) -> Vec<bool> {
    let ticks = &timeline.ticks;
    if ticks.len() <= most {
        return vec![true; ticks.len()];
    }
    let half = most / 2;
    let has_event = |tick: &&Tick<'_>| tick.observation.events().next().is_some();
    let every = ticks.len().div_ceil(half);
    let every_eventful = ticks.iter().filter(has_event).count().div_ceil(half).max(1);
    let divergent = timeline.divergent_tick();
    let mut eventful = 0;
    let keep = ticks.iter().enumerate().map(|(index, tick)| {
        let has_event = has_event(&tick);
        let is_kept = has_event && eventful % every_eventful == 0;
        eventful += usize::from(has_event);
        is_kept || index.is_multiple_of(every) || Some(index) == divergent
    });
    keep.collect()
}

/// `replicas 4 → 7`, or `7 replicas`.
fn replicas(tick: &Tick<'_>) -> String {
    match tick.change() {
        Some((before, after)) if before != after => format!("replicas {before} → {after}"),
        Some((_, 1)) => "1 replica".to_owned(),
        Some((_, after)) => format!("{after} replicas"),
        None => String::new(),
    }
}

/// Why, in one line. The whole messages of events are in the list below it.
fn summary(tick: &Tick<'_>, changed: &[String]) -> String {
    match tick.derivation {
        Some(derivation) => {
            let why = table::why(tick.observation, derivation, changed);
            match why.char_indices().nth(SUMMARY) {
                Some((end, _)) => format!("{}…", &why[..end]),
                None => why,
            }
        }
        None => "the model predicted no reconcile at this time".to_owned(),
    }
}

fn steps(tick: &Tick<'_>) -> Vec<String> {
    tick.derivation.map(|derivation| derivation.explain()).unwrap_or_default()
}

/// Refused writes, events, errors and changed conditions.
fn writes(tick: &Tick<'_>, changed: &[String]) -> Vec<String> {
    let observation = tick.observation;
    let refused = observation.scale_writes().filter_map(|write| {
        let error = write.error.as_ref()?;
        Some(format!("scale to {} refused: {error}", write.replicas))
    });
    let is_sent = observation.sent_events().next().is_some();
    let events = observation.deliveries().map(|(event, sent)| match sent {
        Some(SentEvent { verb: EventVerb::Create, .. }) => event.to_string(),
        // On a cluster, the requests are not observed.
        None if !is_sent => event.to_string(),
        sent => format!("{event} ({})", delivery(sent)),
    });
    let errors = observation.errors().map(|error| format!("error: {error}"));
    refused.chain(events).chain(errors).chain(changed.iter().cloned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_differ_by_their_numbers_share_a_template() {
        let mut templates = Templates::of_page(1);
        let mut texts = Texts { templates: &mut templates, texts: Distinct::default() };
        let indices = ["7 of 10", "3 of 10", "7 of 10", "none", "¤ 5"].map(|text| texts.add(text));
        assert_eq!(indices, [0, 1, 0, 2, 3]);
        assert_eq!(texts.templates.texts.all, ["¤ of ¤", "none", "¤ 5"]);
        assert_eq!(texts.texts.all, ["0 7 10", "0 3 10", "1", "2"]);
    }
}
