//! The changes between two releases as JSON: one line for each scenario that changed, and the
//! summary on the last line.

use std::io::{self, Write};

use serde::Serialize;

use super::change::{Between, ChangedScenario, Changes};
use super::json::line;
use kube_autoscaler_models::rules::ChangeRow;
use kube_lockstep_sim::run::change::Changed;

/// A scenario that changed.
#[derive(Serialize)]
struct ChangeLine<'a> {
    id: &'a str,
    from: String,
    to: String,
    /// The first tick that differs.
    tick: usize,
    at: String,
    fields: Vec<ChangedField<'a>>,
    /// The rows that explain the first field.
    rows: Vec<RowLine>,
    /// The rows that change something else.
    also: Vec<RowLine>,
}

/// A field that differs at the first tick that differs.
#[derive(Serialize)]
struct ChangedField<'a> {
    field: String,
    from: &'a str,
    to: &'a str,
}

/// A row of the model.
#[derive(Serialize)]
struct RowLine {
    since: String,
    what: &'static str,
    link: &'static str,
    beside: &'static [&'static str],
}

/// The last line.
#[derive(Serialize)]
struct SummaryLine<'a> {
    summary: Summary<'a>,
}

/// The figures of a comparison.
#[derive(Serialize)]
struct Summary<'a> {
    from: String,
    to: String,
    changed: usize,
    unexplained: usize,
    same: usize,
    skipped: Vec<SkippedScenario<'a>>,
}

/// A scenario that was not compared.
#[derive(Serialize)]
struct SkippedScenario<'a> {
    id: &'a str,
    why: &'a str,
}

impl RowLine {
    fn new(row: &impl ChangeRow) -> RowLine {
        RowLine {
            since: row.since().to_string(),
            what: row.what(),
            link: row.link(),
            beside: row.beside(),
        }
    }
}

impl<C: ChangeRow> ChangedScenario<'_, C> {
    /// Writes the line of a scenario.
    ///
    /// # Errors
    /// If writing fails.
    pub fn write_json(&self, out: &mut dyn Write, between: Between<C::Release>) -> io::Result<()> {
        let Changed { first, rows, also } = self.changed;
        let fields = first.fields.iter().map(|it| ChangedField {
            field: it.field.to_string(),
            from: &it.model,
            to: &it.upstream,
        });
        let object = ChangeLine {
            id: self.id,
            from: between.from.to_string(),
            to: between.to.to_string(),
            tick: first.tick,
            at: first.at.to_string(),
            fields: fields.collect(),
            rows: rows.iter().map(|row| RowLine::new(*row)).collect(),
            also: also.iter().map(|row| RowLine::new(*row)).collect(),
        };
        line(out, &object)
    }
}

impl<C: ChangeRow> Changes<'_, C> {
    /// Writes all lines.
    ///
    /// # Errors
    /// If writing fails.
    pub fn write_json(&self, out: &mut dyn Write) -> io::Result<()> {
        for changed in &self.changed {
            changed.write_json(out, self.between)?;
        }
        let summary = Summary {
            from: self.between.from.to_string(),
            to: self.between.to.to_string(),
            changed: self.changed.len(),
            unexplained: self.unexplained(),
            same: self.same,
            skipped: self.skipped.iter().map(|(id, why)| SkippedScenario { id, why }).collect(),
        };
        line(out, &SummaryLine { summary })
    }
}
