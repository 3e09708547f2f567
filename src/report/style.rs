//! The colours of all text. They are always written; the stream that is written to removes them
//! where they are not wanted (`NO_COLOR`, pipes, `--color never`).

use anstyle::{AnsiColor, Style};

/// As it should be.
pub const GOOD: Style = AnsiColor::Green.on_default();
/// Not as it should be.
pub const BAD: Style = AnsiColor::Red.on_default().bold();
/// Neither: something is missing or was left out.
pub const WARN: Style = AnsiColor::Yellow.on_default();
/// What the model says.
pub const MODEL: Style = AnsiColor::Cyan.on_default();
/// What was observed.
pub const SEEN: Style = AnsiColor::Magenta.on_default();
/// What matters in a line.
pub const STRONG: Style = Style::new().bold();
/// What can be passed over.
pub const DIM: Style = Style::new().dimmed();

/// The text in that style.
pub(crate) fn paint(style: Style, text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("{style}{text}{style:#}") }
}
