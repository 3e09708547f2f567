//! The summary at the top of a page.

use serde::Serialize;

/// A summary: paragraphs, and a list of items.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Overview {
    /// The paragraphs.
    pub paragraphs: Vec<String>,
    /// The items, the most important ones first.
    pub items: Vec<OverviewItem>,
}

/// An item of a summary.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct OverviewItem {
    /// The title, which is a link.
    pub title: String,
    /// The address of the link.
    pub link: String,
    /// A few words on its kind.
    pub about: String,
    /// The text, as lines.
    pub lines: Vec<String>,
}
