//! The common parts of the rows of both tables of changes.

use std::fmt;

use super::{Change, Release, VpaChange, VpaRelease};

/// A row of a table of changes: one change of upstream's behavior.
pub trait ChangeRow: Copy + 'static {
    /// A release of this upstream.
    type Release: Copy + Ord + fmt::Display;

    /// The release that introduced the change.
    fn since(&self) -> Self::Release;

    /// The change, in one line.
    fn what(&self) -> &'static str;

    /// The source of the change: the pull request, the issue or the file.
    fn link(&self) -> &'static str;

    /// Further sources.
    fn beside(&self) -> &'static [&'static str] {
        &[]
    }

    /// All sources of the change.
    fn links(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.link()).chain(self.beside().iter().copied())
    }
}

impl ChangeRow for Change {
    type Release = Release;

    fn since(&self) -> Release {
        self.since
    }

    fn what(&self) -> &'static str {
        self.what
    }

    fn link(&self) -> &'static str {
        self.link
    }

    fn beside(&self) -> &'static [&'static str] {
        self.beside
    }
}

impl ChangeRow for VpaChange {
    type Release = VpaRelease;

    fn since(&self) -> VpaRelease {
        self.since
    }

    fn what(&self) -> &'static str {
        self.what
    }

    fn link(&self) -> &'static str {
        self.source
    }
}
