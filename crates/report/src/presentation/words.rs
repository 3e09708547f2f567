//! Values and series of charts as text: captions, and descriptions for screen readers.

use super::{Unit, Value};
use crate::counted;

/// The maximum number of changes in a description.
const CHANGES: usize = 12;

/// Cuts a text after this number of characters, and adds `…`.
pub(crate) fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// `from 1: 4 at 0s, 7 at 15s`.
pub(crate) fn changes(values: &[Value]) -> String {
    let mut known = values.iter().filter_map(|(at, value)| Some((at, (*value)?)));
    let Some((_, first)) = known.next() else { return String::new() };
    let mut before = first;
    let mut changes: Vec<String> = Vec::new();
    for (at, value) in known {
        if value != before {
            changes.push(format!("{value:.0} at {at}"));
            before = value;
        }
    }
    if changes.is_empty() {
        return format!("{first:.0} throughout");
    }
    let more = changes.len().saturating_sub(CHANGES);
    changes.truncate(CHANGES);
    let more =
        if more > 0 { format!(", and {}", counted(more, "more change")) } else { String::new() };
    format!("From {first:.0}: {}{more}", changes.join(", "))
}

/// `from 0% to 305%`, or `none` without a value.
pub(super) fn range<'v>(values: impl Iterator<Item = &'v Value>, unit: Unit) -> String {
    let known: Vec<f64> = values.filter_map(|(_, value)| *value).collect();
    let (least, most) =
        (known.iter().copied().reduce(f64::min), known.iter().copied().reduce(f64::max));
    match (least, most) {
        (Some(least), Some(most)) if least < most => {
            format!("from {} to {}", unit.text(least), unit.text(most))
        }
        (Some(only), _) => unit.text(only),
        (None, _) => "none".to_owned(),
    }
}
