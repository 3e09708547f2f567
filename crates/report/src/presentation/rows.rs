//! The ticks of a prediction as a table.

use kube_autoscaler_models::time::Time;

/// A table with a row for each tick.
pub(crate) struct TickTable {
    pub columns: Vec<Column>,
    pub rows: Vec<Row>,
    /// What repeated ticks have: `the same result`.
    pub repeated: &'static str,
}

/// A column.
pub(crate) struct Column {
    pub title: String,
    pub is_number: bool,
}

impl Column {
    pub(crate) fn text(title: impl Into<String>) -> Column {
        Column { title: title.into(), is_number: false }
    }

    pub(crate) fn number(title: impl Into<String>) -> Column {
        Column { title: title.into(), is_number: true }
    }
}

/// A row.
pub(crate) enum Row {
    Tick(TickRow),
    /// A change between two ticks.
    Change(String),
}

/// A tick.
pub(crate) struct TickRow {
    pub at: Time,
    /// The lines of the row, each with all cells.
    pub lines: Vec<Vec<String>>,
    pub emphasis: Emphasis,
    /// True if the result is that of an earlier tick.
    pub repeats: bool,
}

/// The emphasis of a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Emphasis {
    None,
    /// The result changes.
    Change,
    /// Something fails.
    Failure,
}
