//! The events of the scenario on the axis of time: faults, edits, manual scaling.

use maud::{Markup, html};

use super::lane::ChartAxis;
use super::timeline::Timeline;
use crate::model::time::Time;
use crate::report::counted;
use crate::scenario::resolved::{ActionScope, TimelineEvent};

/// The maximum number of rows. More events share the last one, without their texts.
const ROWS: usize = 10;

/// A longer text may not fit beside its bar on a phone.
const LONGEST: usize = 36;

/// An event.
pub(super) struct Entry {
    pub(super) at: Time,
    /// The time until which it lasts.
    pub(super) lasts: Lasts,
    /// The description, in one line.
    pub(super) text: String,
    /// The class of its bar.
    pub(super) class: &'static str,
}

/// The time until which an event lasts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Lasts {
    /// It is a change at one time.
    Instant,
    /// A given time.
    Until(Time),
    /// The end of the scenario.
    ToTheEnd,
}

/// The events of a timeline.
pub(super) fn of(timeline: &Timeline<'_>) -> Vec<Entry> {
    let entry = |event: &TimelineEvent| Entry {
        at: event.at,
        lasts: match (event.action.can_end(), event.lasts) {
            (false, _) => Lasts::Instant,
            (true, Some(span)) => Lasts::Until(event.at + span),
            (true, None) => Lasts::ToTheEnd,
        },
        text: describe(event),
        class: class(event),
    };
    timeline.actions().map(entry).collect()
}

/// One row for each event.
pub(super) fn lane(events: &[Entry], axis: ChartAxis) -> Markup {
    if events.is_empty() {
        return html! {};
    }
    let rows = if events.len() > ROWS { ROWS - 1 } else { ROWS };
    let (shown, more) = events.split_at(events.len().min(rows));
    html! {
        div.lane {
            div.cap { b { "Events" } }
            @for event in shown { (row(event, axis)) }
            @if let [first, ..] = more {
                @let text = format!("{}, listed below", counted(more.len(), "more event"));
                div.act {
                    span.t style=(side(first, axis)) { (text) }
                    @for event in more { (bar(event, axis)) }
                }
            }
        }
    }
}

/// All events as text, if the rows may not have all of them.
pub(super) fn list(events: &[Entry]) -> Markup {
    let is_long = |event: &Entry| event.text.chars().count() > LONGEST;
    if events.len() <= ROWS && !events.iter().any(is_long) {
        return html! {};
    }
    html! {
        details.notes.all-events {
            summary { (counted(events.len(), "event")) " as text" }
            ul { @for event in events { li { (event.title()) } } }
        }
    }
}

impl Entry {
    /// `1m to 2m: metricsMissing 0`.
    fn title(&self) -> String {
        let Entry { at, text, .. } = self;
        match self.lasts {
            Lasts::Instant => format!("{at}: {text}"),
            Lasts::Until(end) => format!("{at} to {end}: {text}"),
            Lasts::ToTheEnd => format!("from {at}: {text}"),
        }
    }

    /// The places of both ends, in percent.
    fn ends(&self, axis: ChartAxis) -> [f64; 2] {
        let from = axis.percent(self.at);
        match self.lasts {
            Lasts::Instant => [from, from],
            Lasts::Until(end) => [from, axis.percent(end)],
            Lasts::ToTheEnd => [from, 100.0],
        }
    }
}

fn row(event: &Entry, axis: ChartAxis) -> Markup {
    html! {
        div.act title=(event.title()) {
            span.t style=(side(event, axis)) { (event.text) }
            (bar(event, axis))
        }
    }
}

fn bar(event: &Entry, axis: ChartAxis) -> Markup {
    let [from, to] = event.ends(axis);
    let style = format!("left:{from:.2}%;width:{:.2}%", to - from);
    html! { span.bar.(event.class) style=(style) {} }
}

/// The place of a text: it begins or ends with its bar, on the side with more space.
fn side(event: &Entry, axis: ChartAxis) -> String {
    let [from, to] = event.ends(axis);
    if from <= 50.0 { left(from) } else { right(to) }
}

/// The place of a text that begins with its bar. It may reach the right end of the chart.
fn left(from: f64) -> String {
    format!("left:{from:.2}%;max-width:{:.2}%", 100.0 - from)
}

/// The place of a text that ends with its bar. It may reach the left end of the chart.
fn right(to: f64) -> String {
    format!("right:{:.2}%;max-width:{to:.2}%;text-align:right", 100.0 - to)
}

fn class(event: &TimelineEvent) -> &'static str {
    match event.action.scope() {
        ActionScope::Pods => "pods",
        ActionScope::Samples | ActionScope::MetricsApis | ActionScope::ApiServer => "fault",
        ActionScope::Target | ActionScope::Hpa | ActionScope::Controller => "edit",
    }
}

/// The action as in the scenario's file, in one line: `podsUnready 0-2`.
fn describe(event: &TimelineEvent) -> String {
    match event.during {
        Some(during) => format!("{} during a reconcile, after {during}", event.action),
        None => event.action.to_string(),
    }
}
