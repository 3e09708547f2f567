//! The events of the scenario on the axis of time: faults, edits, manual scaling.

use maud::{Markup, html};

use super::lane::ChartAxis;
use crate::counted;
use crate::presentation::{EventMark, Lasts};

/// The maximum number of rows. More events share the last one, without their texts.
const ROWS: usize = 10;

/// The width of a character, in percent of the chart on a large screen. On a small one, texts that
/// do not fit are cut.
const CHARACTER: f64 = 0.6;

/// The events in rows. Events whose texts fit side by side share a row.
pub(super) fn lane(events: &[EventMark], axis: ChartAxis) -> Markup {
    if events.is_empty() {
        return html! {};
    }
    let packed = packed(events, axis);
    let most = if packed.len() > ROWS { ROWS - 1 } else { ROWS };
    let (shown, more) = packed.split_at(packed.len().min(most));
    let more: Vec<&EventMark> = more.iter().flatten().map(|placed| placed.entry).collect();
    html! {
        div.lane {
            div.cap { b { "Changes and faults" } }
            @for row in shown {
                div.act { @for placed in row { (placed.draw(axis)) } }
            }
            @if let [first, ..] = more.as_slice() {
                @let text = format!("{}, listed below", counted(more.len(), "more event"));
                div.act {
                    span.t.more style=(whole_side(first, axis)) { (text) }
                    @for event in more { (bar(event, axis)) }
                }
            }
        }
    }
}

/// An event in a row, with the ends of the space for its text, in percent.
struct Placed<'e> {
    entry: &'e EventMark,
    is_left: bool,
    from: f64,
    to: f64,
}

/// The events in rows: each in the first one with space for its bar and its text.
fn packed(events: &[EventMark], axis: ChartAxis) -> Vec<Vec<Placed<'_>>> {
    let mut rows: Vec<Vec<Placed<'_>>> = Vec::new();
    for entry in events {
        let [from, to] = ends(entry, axis);
        let width = (entry.text.chars().count() + 3) as f64 * CHARACTER;
        let is_left = from <= 50.0 || from + width <= 100.0;
        let begin = if is_left { from } else { (to - width).max(0.0).min(from) };
        let end = if is_left { (from + width).min(100.0).max(to) } else { to };
        let is_free =
            |row: &&mut Vec<Placed<'_>>| row.last().is_none_or(|last: &Placed<'_>| last.to < begin);
        let placed = Placed { entry, is_left, from: begin, to: end };
        match rows.iter_mut().find(is_free) {
            Some(row) => row.push(placed),
            None => rows.push(vec![placed]),
        }
    }
    for row in &mut rows {
        // A text may use all space up to the next event, or after the one before.
        let begins: Vec<f64> = row.iter().skip(1).map(|it| it.from).chain([100.0]).collect();
        let mut end = 0.0;
        for (placed, begin) in row.iter_mut().zip(begins) {
            let [from, to] = ends(placed.entry, axis);
            let last = placed.to.max(to);
            (placed.from, placed.to) = if placed.is_left { (from, begin) } else { (end, to) };
            end = last;
        }
    }
    rows
}

impl Placed<'_> {
    fn draw(&self, axis: ChartAxis) -> Markup {
        let Placed { entry, is_left, from, to } = self;
        let width = to - from;
        let style = match is_left {
            true => format!("left:{from:.2}%;max-width:{width:.2}%"),
            false => {
                format!("right:{:.2}%;max-width:{width:.2}%;text-align:right", 100.0 - to)
            }
        };
        html! {
            span.t title=(title(entry)) style=(style) { (entry.text) }
            (bar(entry, axis))
        }
    }
}

/// All events as text. `figure.js` hides it if all texts of the rows are visible.
pub(super) fn list(events: &[EventMark]) -> Markup {
    if events.is_empty() {
        return html! {};
    }
    html! {
        details.notes.all-events {
            summary { (listed(events.len())) " as text" }
            ul { @for event in events { li { (title(event)) } } }
        }
    }
}

fn listed(count: usize) -> String {
    match count {
        1 => "1 change or fault".to_owned(),
        _ => format!("{count} changes and faults"),
    }
}

/// `1m to 2m: metricsMissing 0`.
fn title(event: &EventMark) -> String {
    let EventMark { at, text, .. } = event;
    match event.lasts {
        Lasts::Instant => format!("{at}: {text}"),
        Lasts::Until(end) => format!("{at} to {end}: {text}"),
        Lasts::ToTheEnd => format!("from {at}: {text}"),
    }
}

/// The places of both ends, in percent.
fn ends(event: &EventMark, axis: ChartAxis) -> [f64; 2] {
    let from = axis.percent(event.at);
    match event.lasts {
        Lasts::Instant => [from, from],
        Lasts::Until(end) => [from, axis.percent(end)],
        Lasts::ToTheEnd => [from, 100.0],
    }
}

fn bar(event: &EventMark, axis: ChartAxis) -> Markup {
    let [from, to] = ends(event, axis);
    let style = format!("left:{from:.2}%;width:{:.2}%", to - from);
    html! { span.bar.(event.class) style=(style) {} }
}

/// The place of a text in a row of its own: it begins or ends with its bar, on the side with more
/// space.
fn whole_side(event: &EventMark, axis: ChartAxis) -> String {
    let [from, to] = ends(event, axis);
    if from <= 50.0 {
        return format!("left:{from:.2}%;max-width:{:.2}%", 100.0 - from);
    }
    format!("right:{:.2}%;max-width:{to:.2}%;text-align:right", 100.0 - to)
}
