//! The writes of objects in a scenario whose expectations are not met, as text.

use std::fmt::Write as _;

use super::counted;
use super::layout::wrap;
use super::style::{DIM, paint};
use kube_autoscaler_models::time::Time;
use kube_lockstep_sim::objects::{FieldChange, ReportedWrite};
use kube_lockstep_sim::run::Outcome;
use serde_json::Value;

/// The number of writes that are shown before the first unmet expectation.
const SHOWN: usize = 20;
/// The number of changed fields that are shown of a write.
const FIELDS: usize = 4;
/// The longest value.
const VALUE: usize = 60;

/// The writes up to the first unmet expectation.
pub(super) struct Shown<'o> {
    writes: &'o [ReportedWrite],
    /// The number of the others.
    more: usize,
}

impl<'o> Shown<'o> {
    /// The writes of an outcome. `None`: it has none.
    pub(super) fn of(outcome: &'o Outcome) -> Option<Shown<'o>> {
        let all = outcome.writes.as_slice();
        let end = outcome.unmet.iter().filter_map(|unmet| unmet.tick).map(|tick| tick.at).min();
        let relevant = all.partition_point(|it| end.is_none_or(|end| it.at <= end));
        // Without a write up to then, the later ones show what the controller did instead.
        let relevant = if relevant == 0 { all.len() } else { relevant };
        let writes = &all[relevant.saturating_sub(SHOWN)..relevant];
        (!writes.is_empty()).then_some(Shown { writes, more: all.len() - writes.len() })
    }

    /// `2 writes from t=0s (3 more with --format json):`.
    pub(super) fn title(&self) -> String {
        let from = self.writes.first().map_or(Time::ZERO, |first| first.at);
        let more = match self.more {
            0 => String::new(),
            more => format!(" ({more} more with --format json)"),
        };
        format!("{} from t={from}{more}:", counted(self.writes.len(), "write"))
    }

    /// The writes, each with the fields that it changed.
    pub(super) fn lines(&self) -> impl Iterator<Item = String> {
        self.writes.iter().map(line)
    }
}

/// The writes as text. Empty if there are none.
pub(super) fn text(outcome: &Outcome, columns: usize) -> String {
    let Some(shown) = Shown::of(outcome) else { return String::new() };
    let mut out = format!("  {}\n", shown.title());
    for write in shown.lines() {
        for line in wrap(&write, columns.saturating_sub(4).max(40)) {
            let _ = writeln!(out, "    {}", paint(DIM, &line));
        }
    }
    out
}

/// `t=30s website: update Deployment default/shop (spec.replicas 9 -> 2)`.
fn line(reported: &ReportedWrite) -> String {
    let ReportedWrite { at, write, fields } = reported;
    let by = if write.is_of_controller() { &write.controller } else { "(not the controller)" };
    let mut text = format!("t={at} {by}: {write}");
    if fields.is_empty() {
        return text;
    }
    let mut shown: Vec<String> = fields.iter().take(FIELDS).map(field).collect();
    if fields.len() > FIELDS {
        shown.push(format!("{} more", counted(fields.len() - FIELDS, "field")));
    }
    let _ = write!(text, " ({})", shown.join(", "));
    text
}

/// `spec.replicas 9 -> 2`.
fn field(change: &FieldChange) -> String {
    let value = |value: &Option<Value>| {
        let text = value.as_ref().map_or_else(|| "none".to_owned(), Value::to_string);
        match text.char_indices().nth(VALUE) {
            Some((cut, _)) => format!("{}…", &text[..cut]),
            None => text,
        }
    };
    format!("{} {} -> {}", change.path, value(&change.before), value(&change.after))
}
