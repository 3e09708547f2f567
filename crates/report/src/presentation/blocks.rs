//! Text about a run, as blocks below each other. A controller fills them; a medium renders them.

use super::Chart;
use super::rows::{Column, TickTable};
use kube_autoscaler_models::time::Time;

/// A block of a text.
pub(crate) enum Block {
    /// An empty line.
    Space,
    /// A heading, with a remark that may be empty.
    Heading(String, String),
    /// Charts with a single line each, up to the end of the axis of time.
    Charts(Vec<Chart>, Time),
    /// The ticks of a controller.
    Ticks(TickTable),
    /// Rows of cells, with this indentation. Columns without titles have no header.
    Table(usize, Vec<Column>, Vec<Vec<String>>),
    /// A sentence, or an entry of a list.
    Entry(Entry),
}

/// A sentence, or an entry of a list.
pub(crate) struct Entry {
    /// The indentation in columns.
    pub indent: usize,
    /// The text at the beginning. Further lines are below the text after it.
    pub label: String,
    pub tone: Tone,
    pub text: String,
    /// True if the text is on a single line, however long it is.
    pub is_one_line: bool,
}

/// The importance of an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Tone {
    Plain,
    /// Further information.
    Detail,
    /// The label is important.
    Strong,
    /// The label is about a success.
    Good,
    /// The label is about a warning.
    Warning,
    /// The label is about a failure.
    Failure,
}

impl Block {
    /// A heading without a remark.
    pub(crate) fn heading(text: impl Into<String>) -> Block {
        Block::Heading(text.into(), String::new())
    }

    /// A text that is wrapped.
    pub(crate) fn text(indent: usize, label: impl Into<String>, text: impl Into<String>) -> Block {
        let (label, text) = (label.into(), text.into());
        Block::Entry(Entry { indent, label, tone: Tone::Plain, text, is_one_line: false })
    }

    /// A text on a single line.
    pub(crate) fn line(indent: usize, text: impl Into<String>) -> Block {
        Block::labelled_line(indent, String::new(), text.into())
    }

    /// A text on a single line, after a label.
    pub(crate) fn labelled_line(indent: usize, label: String, text: String) -> Block {
        Block::Entry(Entry { indent, label, tone: Tone::Plain, text, is_one_line: true })
    }

    /// The entry with another importance.
    pub(crate) fn with(self, tone: Tone) -> Block {
        match self {
            Block::Entry(entry) => Block::Entry(Entry { tone, ..entry }),
            other => other,
        }
    }
}
