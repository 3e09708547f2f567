//! The shares of the sections of a page. A page of 20 scenarios has at most 300 kB, so each
//! scenario is drawn in the finest detail that fits into its share.

use super::detail::{DETAILS, Detail};
use super::section::{FAILURES, Section};

/// The size of all sections of a page of up to [`SECTIONS`] sections, in bytes. The rest of the
/// page has up to 30 kB.
const MOST_OF_PAGE: usize = 270_000;

/// The number of sections from which on each section has the same share.
const SECTIONS: usize = 20;

/// The maximum size of a section, in bytes.
const MOST_OF_SECTION: usize = 240_000;

/// The share of each section of a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Share {
    /// The maximum size, in bytes.
    most: usize,
}

impl Share {
    /// The share of each section of a page with this number of sections.
    pub(super) fn of_page(sections: usize) -> Share {
        Share::beside(0, sections)
    }

    /// The share of each section of a page with another part of this size, in bytes.
    pub(super) fn beside(size: usize, sections: usize) -> Share {
        let most = (MOST_OF_PAGE - size) / sections.clamp(1, SECTIONS);
        Share { most: most.min(MOST_OF_SECTION) }
    }

    /// The section in the finest detail that fits, or in the coarsest one.
    pub(super) fn fit(self, section_in: impl Fn(Detail) -> Section) -> Section {
        let [finer @ .., coarsest] = DETAILS;
        let finer = finer.into_iter().map(&section_in);
        let fitting = finer.into_iter().find(|section| section.size() <= self.most);
        fitting.unwrap_or_else(|| section_in(coarsest))
    }
}

/// Leaves out the largest timelines of a page with few sections that is too large. Timelines of
/// failures remain.
pub(super) fn leave_out(sections: &mut [Section]) {
    if sections.len() > SECTIONS {
        return;
    }
    let mut sizes: Vec<usize> = sections.iter().map(Section::size).collect();
    while sizes.iter().sum::<usize>() > MOST_OF_PAGE {
        let shown = (0..sections.len()).filter(|index| {
            let section = &sections[*index];
            section.rank() >= FAILURES && !section.lacks_timelines()
        });
        let Some(largest) = shown.max_by_key(|index| sizes[*index]) else { return };
        sections[largest].leave_out_timelines();
        sizes[largest] = sections[largest].size();
    }
}
