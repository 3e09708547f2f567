//! Messages that apply to several places, for example of files.

use std::fmt::{Display, Write as _};

use super::counted;

/// The most further places that a message lists.
const MOST_PLACES: usize = 3;

/// `also at a.yaml:3, b.yaml:4 and 2 more places`: the places of a message after the first one.
pub fn also_at(others: &[impl Display]) -> String {
    let listed: Vec<String> = others.iter().take(MOST_PLACES).map(ToString::to_string).collect();
    let mut text = format!("also at {}", listed.join(", "));
    if let Some(more) = others.len().checked_sub(MOST_PLACES).filter(|more| *more > 0) {
        let _ = write!(text, " and {}", counted(more, "more place"));
    }
    text
}
