//! The events of the scenario on the axis of time: faults, edits, manual scaling.

use maud::{Markup, html};

use super::lane::ChartAxis;
use super::timeline::Timeline;
use crate::model::time::Time;
use crate::scenario::resolved::{ActionScope, TimelineEvent};

/// The maximum number of rows. Later events share the last one.
const ROWS: usize = 10;

/// A longer description is cut; its title has all of it.
const LONGEST: usize = 46;

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
    let (shown, more) = events.split_at(events.len().min(ROWS));
    html! {
        div.lane {
            div.cap {
                b { "Events" }
                @if !more.is_empty() { span.hint { "and " (more.len()) " more" } }
            }
            @for event in shown { (row(event, axis)) }
        }
    }
}

fn row(event: &Entry, axis: ChartAxis) -> Markup {
    let Entry { at, text, class, .. } = event;
    let from = axis.percent(*at);
    let (to, title) = match event.lasts {
        Lasts::Instant => (from, format!("{at}: {text}")),
        Lasts::Until(end) => (axis.percent(end), format!("{at} to {end}: {text}")),
        Lasts::ToTheEnd => (100.0, format!("from {at}: {text}")),
    };
    let side = if from <= 50.0 { left(from) } else { right(to) };
    let bar = format!("left:{from:.2}%;width:{:.2}%", to - from);
    html! {
        div.act title=(title) {
            span.t style=(side) { (cut(text)) }
            span.bar.(class) style=(bar) {}
        }
    }
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

fn cut(text: &str) -> String {
    if text.chars().count() <= LONGEST {
        return text.to_owned();
    }
    let start: String = text.chars().take(LONGEST - 1).collect();
    format!("{}…", start.trim_end())
}
