//! The events of the scenario on the axis of time: faults, edits, manual scaling.

use maud::{Markup, html};

use super::timeline::Timeline;
use crate::report::scale::TimeAxis;
use crate::scenario::resolved::{ActionScope, TimelineEvent};

/// The maximum number of rows. Later events share the last one.
const ROWS: usize = 10;

/// A longer description is cut; its title has all of it.
const LONGEST: usize = 46;

/// One row for each event.
pub(super) fn lane(timeline: &Timeline<'_>, axis: TimeAxis) -> Markup {
    let events: Vec<&TimelineEvent> = timeline.actions().collect();
    if events.is_empty() {
        return html! {};
    }
    let (shown, more) = events.split_at(events.len().min(ROWS));
    html! {
        div.lane {
            div.cap {
                b { "Events of the scenario" }
                @if !more.is_empty() { span.hint { "and " (more.len()) " more" } }
            }
            @for event in shown { (row(event, axis)) }
        }
    }
}

fn row(event: &TimelineEvent, axis: TimeAxis) -> Markup {
    let from = axis.percent(event.at);
    let lasts = event.lasts.map(|span| event.at + span);
    let end = if event.action.can_end() { Some(lasts.unwrap_or(axis.end)) } else { None };
    let to = end.map_or(from, |end| axis.percent(end));
    let text = describe(event);
    let title = match (end, lasts) {
        (Some(_), Some(end)) => format!("{} to {end}: {text}", event.at),
        (Some(_), None) => format!("from {}: {text}", event.at),
        (None, _) => format!("{}: {text}", event.at),
    };
    let side = if from <= 50.0 { format!("left:{from:.2}%") } else { right(to) };
    let bar = format!("left:{from:.2}%;width:{:.2}%", to - from);
    html! {
        div.act title=(title) {
            span.t style=(side) { (cut(&text)) }
            span.bar.(class(event)) style=(bar) {}
        }
    }
}

/// The place of a text that ends at the right end of its bar.
fn right(to: f64) -> String {
    format!("right:{:.2}%;text-align:right", 100.0 - to)
}

fn class(event: &TimelineEvent) -> &'static str {
    match event.action.scope() {
        ActionScope::Pods => "pods",
        ActionScope::Samples | ActionScope::MetricsApis | ActionScope::ApiServer => "fault",
        ActionScope::Target | ActionScope::Hpa | ActionScope::Controller => "edit",
    }
}

/// The action as in the scenario's file, in one line: `podsUnready 0-2`.
pub(super) fn describe(event: &TimelineEvent) -> String {
    let fields = serde_json::to_value(&event.action).unwrap_or_default();
    let field = fields.as_object().and_then(|fields| fields.iter().next());
    let Some((name, value)) = field else { return String::new() };
    let value = match value {
        serde_json::Value::String(text) => text.clone(),
        serde_json::Value::Object(fields) if fields.is_empty() => String::new(),
        other => other.to_string().replace('"', "").replace(':', ": ").replace(',', ", "),
    };
    format!("{name} {value}").trim_end().to_owned()
}

fn cut(text: &str) -> String {
    if text.chars().count() <= LONGEST {
        return text.to_owned();
    }
    let start: String = text.chars().take(LONGEST - 1).collect();
    format!("{}…", start.trim_end())
}
