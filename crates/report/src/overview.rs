//! The summary at the top of a page.

/// A summary: paragraphs, and a list of items.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Overview {
    /// The paragraphs.
    pub paragraphs: Vec<String>,
    /// The items, the most important ones first.
    pub items: Vec<OverviewItem>,
}

/// An item of a summary.
#[derive(Clone, PartialEq, Eq, Debug)]
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
