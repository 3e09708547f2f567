//! The colors of reports. They are always written; the output stream removes them if colors are
//! disabled (`NO_COLOR`, pipes, `--color never`).

use anstyle::{AnsiColor, Style};

/// Success.
pub const GOOD: Style = AnsiColor::Green.on_default();
/// Failure.
pub const BAD: Style = AnsiColor::Red.on_default().bold();
/// Warning: something is missing or was omitted.
pub const WARN: Style = AnsiColor::Yellow.on_default();
/// The value from the model.
pub const MODEL: Style = AnsiColor::Cyan.on_default();
/// The observed value.
pub(crate) const SEEN: Style = AnsiColor::Magenta.on_default();
/// Emphasis.
pub const STRONG: Style = Style::new().bold();
/// Less important text.
pub const DIM: Style = Style::new().dimmed();

/// Applies a style to a text.
pub fn paint(style: Style, text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("{style}{text}{style:#}") }
}
