//! Blocks as text.

use std::fmt::Write as _;

use super::layout::{Align, Columns, labelled, wrap};
use super::plot;
use super::presentation::blocks::{Block, Entry, Tone};
use super::presentation::rows::Column;
use super::style::{BAD, DIM, GOOD, STRONG, WARN, paint};
use super::table::{self, Contents};
use anstyle::Style;

/// Blocks below each other.
pub(super) fn text(blocks: &[Block], contents: Contents) -> String {
    let mut out = String::new();
    let columns = contents.columns;
    for block in blocks {
        match block {
            Block::Space => out.push('\n'),
            Block::Heading(text, about) => {
                let about = match about.is_empty() {
                    true => String::new(),
                    false => format!("  {}", paint(DIM, about)),
                };
                let _ = writeln!(out, "{}{about}", paint(STRONG, text));
            }
            Block::Charts(charts, end) if contents.has_charts => {
                let charts = plot::all(charts, *end, columns);
                // The first chart follows the title.
                let charts = charts.strip_prefix('\n').map(|charts| format!("{charts}\n"));
                out.push_str(&charts.unwrap_or_default());
            }
            Block::Charts(..) => {}
            Block::Ticks(table) => out.push_str(&table::ticks(table, columns)),
            Block::Table(indent, head, rows) => out.push_str(&cells(*indent, head, rows, columns)),
            Block::Entry(entry) => out.push_str(&self::entry(entry, columns)),
        }
    }
    out
}

/// Rows of cells, below the titles of their columns if those have titles.
fn cells(indent: usize, head: &[Column], rows: &[Vec<String>], columns: usize) -> String {
    let mut table = Columns::new(&head.iter().map(Column::align).collect::<Vec<_>>());
    if head.iter().any(|column| !column.title.is_empty()) {
        table.row(head.iter().map(|column| column.title.clone()).collect(), DIM);
    }
    rows.iter().for_each(|row| table.row(row.clone(), Style::new()));
    table.render(indent, columns)
}

fn entry(entry: &Entry, columns: usize) -> String {
    let Entry { indent, label, tone, text, is_one_line } = entry;
    let (indent, style) = (*indent, style(*tone));
    match (is_one_line, tone) {
        (true, Tone::Detail) => format!("{:indent$}{}\n", "", paint(DIM, text)),
        (true, _) => format!("{:indent$}{}{text}\n", "", paint(style, label)),
        (false, Tone::Detail) => {
            let lines = wrap(text, columns.saturating_sub(indent)).into_iter();
            lines.map(|line| format!("{:indent$}{}\n", "", paint(DIM, &line))).collect()
        }
        (false, _) => labelled(label, style, text, indent, columns),
    }
}

fn style(tone: Tone) -> Style {
    match tone {
        Tone::Plain => Style::new(),
        Tone::Detail => DIM,
        Tone::Strong => STRONG,
        Tone::Good => GOOD,
        Tone::Warning => WARN,
        Tone::Failure => BAD,
    }
}

impl Column {
    /// The alignment of its cells.
    pub(super) fn align(&self) -> Align {
        if self.is_number { Align::Right } else { Align::Left }
    }
}
