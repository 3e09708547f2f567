//! Lines and columns. Widths are counted in characters, because reports only contain ASCII, and
//! arrows and dots that are as wide as a letter.

use std::fmt::Write as _;

use anstyle::Style;

use super::style::paint;

/// The width of a text.
pub fn width(text: &str) -> usize {
    text.chars().count()
}

/// Breaks a text into lines at spaces, and words that are too long for a line at any character.
/// Each character is read a fixed number of times: words may have megabytes.
pub(crate) fn wrap(text: &str, columns: usize) -> Vec<String> {
    let columns = columns.max(1);
    let mut lines = Vec::new();
    for paragraph in text.lines() {
        let (mut line, mut used) = (String::new(), 0);
        for word in paragraph.split(' ').filter(|word| !word.is_empty()) {
            let (mut word, mut left) = (word, width(word));
            if used > 0 && used + 1 + left > columns {
                lines.push(std::mem::take(&mut line));
                used = 0;
            }
            while left > columns {
                let cut = word.char_indices().nth(columns).map_or(word.len(), |(at, _)| at);
                lines.push(word[..cut].to_owned());
                word = &word[cut..];
                left -= columns;
            }
            if used > 0 {
                line.push(' ');
                used += 1;
            }
            line.push_str(word);
            used += left;
        }
        lines.push(line);
    }
    if lines.is_empty() {
        lines.push(String::new());
    }
    lines
}

/// A label followed by a wrapped text. Continuation lines are aligned with the text, or indented by
/// four columns if the label is too long.
pub fn hanging(label: &str, text: &str, indent: usize, columns: usize) -> String {
    let first = indent + width(label);
    let rest = if first > columns / 3 { indent + 4 } else { first };
    let mut lines = wrap(text, columns.saturating_sub(first).max(20)).into_iter();
    let head = lines.next().unwrap_or_default();
    // Text that does not fit next to the label is wrapped to the larger width.
    let tail = lines.collect::<Vec<_>>().join(" ");
    let mut out = format!("{:indent$}{label}{head}\n", "");
    if !tail.is_empty() {
        for line in wrap(&tail, columns.saturating_sub(rest).max(20)) {
            let _ = writeln!(out, "{:rest$}{line}", "");
        }
    }
    out
}

/// Like [`hanging`], with a style for the label.
pub fn labelled(label: &str, style: Style, text: &str, indent: usize, columns: usize) -> String {
    let block = hanging(label, text, indent, columns);
    let label = label.trim_end();
    format!("{:indent$}{}{}", "", paint(style, label), &block[indent + label.len()..])
}

/// The alignment of a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Align {
    /// For text.
    Left,
    /// For numbers.
    Right,
}

/// The least width of the last column. If the others leave less, its text has lines of its own.
const LEAST_LAST: usize = 34;
/// The margin of a text below its row.
const BELOW: usize = 6;

/// Rows of cells in columns, separated by two spaces. The last column is wrapped.
pub struct Columns {
    align: Vec<Align>,
    rows: Vec<Row>,
}

/// A row of a table.
struct Row {
    cells: Vec<String>,
    style: Style,
    /// True if the row continues the one before it: text below both of them follows it.
    continues: bool,
}

impl Columns {
    pub(super) fn new(align: &[Align]) -> Columns {
        Columns { align: align.to_vec(), rows: Vec::new() }
    }

    /// Adds a row; missing cells are empty.
    pub(crate) fn row(&mut self, cells: Vec<String>, style: Style) {
        self.rows.push(Row { cells, style, continues: false });
    }

    /// Adds a further line of the last row.
    pub(crate) fn continued(&mut self, cells: Vec<String>, style: Style) {
        self.rows.push(Row { cells, style, continues: true });
    }

    /// Renders the rows as indented lines. A row with a single cell spans all columns.
    pub(super) fn render(&self, indent: usize, columns: usize) -> String {
        let count = self.align.len();
        let mut widths = vec![0; count];
        for Row { cells, .. } in self.rows.iter().filter(|row| row.cells.len() > 1) {
            for (cell, widest) in cells.iter().zip(&mut widths) {
                *widest = (*widest).max(width(cell));
            }
        }
        let before: usize = widths.iter().take(count - 1).map(|width| width + 2).sum();
        let room = columns.saturating_sub(indent + before).max(20);
        let mut out = String::new();
        let mut below = String::new();
        for Row { cells, style, continues } in &self.rows {
            if !continues {
                out.push_str(&std::mem::take(&mut below));
            }
            if let [only] = cells.as_slice() {
                let margin = only.len() - only.trim_start().len();
                for line in wrap(only, columns.saturating_sub(indent + margin)) {
                    push(&mut out, indent + margin, &line, *style);
                }
                continue;
            }
            let mut line = String::new();
            for (index, cell) in cells.iter().take(count - 1).enumerate() {
                let pad = " ".repeat(widths[index].saturating_sub(width(cell)));
                match self.align[index] {
                    Align::Left => line.extend([cell, pad.as_str()]),
                    Align::Right => line.extend([pad.as_str(), cell]),
                }
                line.push_str("  ");
            }
            let last = cells.get(count - 1).map_or("", String::as_str);
            if width(last) > room && room < LEAST_LAST && columns >= indent + BELOW + 2 * room {
                push(&mut out, indent, line.trim_end(), *style);
                for part in wrap(last, columns - indent - BELOW) {
                    push(&mut below, indent + BELOW, &part, *style);
                }
                continue;
            }
            for (index, part) in wrap(last, room).iter().enumerate() {
                if index > 0 {
                    line = " ".repeat(before);
                }
                line.push_str(part);
                push(&mut out, indent, line.trim_end(), *style);
            }
        }
        out.push_str(&below);
        out
    }
}

fn push(out: &mut String, indent: usize, text: &str, style: Style) {
    if text.is_empty() {
        out.push('\n');
    } else {
        let _ = writeln!(out, "{:indent$}{}", "", paint(style, text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_wrap_at_spaces_and_inside_long_words() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("abcdefghij kl", 4), ["abcd", "efgh", "ij", "kl"]);
        assert_eq!(wrap("", 10), [""]);
        assert_eq!(wrap("a\nb", 10), ["a", "b"]);
    }

    #[test]
    fn a_narrow_last_column_has_lines_of_its_own() {
        let mut table = Columns::new(&[Align::Left, Align::Left]);
        let long = "1234567890".repeat(5);
        table.row(vec![long.clone(), "short".to_owned()], Style::new());
        let why = "FailedGetResourceMetric: no metrics returned from resource metrics API";
        table.row(vec!["x".to_owned(), why.to_owned()], Style::new());
        assert_eq!(table.render(0, 78), format!("{long}  short\nx\n      {why}\n"));
    }

    #[test]
    fn a_row_of_several_lines_is_not_split_by_the_text_below_it() {
        let mut table = Columns::new(&[Align::Left, Align::Left]);
        let long = "1234567890".repeat(5);
        let status = "a status that is longer than the room beside the columns";
        table.row(vec![long.clone(), status.to_owned()], Style::new());
        table.continued(vec!["second".to_owned(), String::new()], Style::new());
        table.row(vec!["third".to_owned(), String::new()], Style::new());
        let expected = format!("{long}\nsecond\n      {status}\nthird\n");
        assert_eq!(table.render(0, 78), expected);
    }

    #[test]
    fn columns_fit_their_widest_cell_and_the_last_column_wraps() {
        let mut columns = Columns::new(&[Align::Right, Align::Left, Align::Left]);
        let row = |cells: &[&str]| cells.iter().map(|cell| (*cell).to_owned()).collect();
        columns.row(row(&["1", "3 → 6", "a reason that is long enough"]), Style::new());
        columns.row(row(&["   a row with a single cell is wide"]), Style::new());
        columns.row(row(&["12", "6", ""]), Style::new());
        assert_eq!(
            columns.render(1, 32),
            "  1  3 → 6  a reason that is\n            long enough\n\
             \x20   a row with a single cell is\n\
             \x20   wide\n 12  6\n"
        );
    }
}
