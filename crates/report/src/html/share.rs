//! The shares of the sections of a page. A page of 20 scenarios has at most 300 kB, so each
//! scenario is drawn in the finest detail that fits into its share.

use super::section::{FAILURES, Section};
use crate::presentation::detail::{DETAILS, Detail, FINEST_OF_MANY};

/// The maximum size of a page of up to [`SECTIONS`] sections, in bytes.
const PAGE: usize = 300_000;

/// The maximum size of all sections of such a page, in bytes. The rest of it has up to 44 kB.
const MOST_OF_PAGE: usize = 256_000;

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
    pub(super) fn for_page(sections: usize) -> Share {
        Share::beside(0, sections)
    }

    /// The share of each section of a page with another part of this size, in bytes.
    pub(super) fn beside(size: usize, sections: usize) -> Share {
        let most = (MOST_OF_PAGE - size) / sections.clamp(1, SECTIONS);
        Share { most: most.min(MOST_OF_SECTION) }
    }

    /// The section in the finest detail that fits, or in the coarsest one. Most sections fit in the
    /// finest detail. Otherwise, details are searched by halves, because drawing takes time.
    pub(super) fn fit(self, section_in: impl Fn(Detail) -> Section) -> Section {
        let fitting =
            |detail: Detail| Some(section_in(detail)).filter(|section| section.size() <= self.most);
        let details = self.details();
        let mut found = details.first().copied().and_then(fitting);
        let mut rest = details.get(1..).filter(|_| found.is_none()).unwrap_or_default();
        while let Some(middle) = rest.get(rest.len() / 2) {
            match fitting(*middle) {
                Some(section) => {
                    found = Some(section);
                    rest = &rest[..rest.len() / 2];
                }
                None => rest = &rest[rest.len() / 2 + 1..],
            }
        }
        let [.., coarsest] = DETAILS;
        found.unwrap_or_else(|| section_in(coarsest))
    }

    /// The details to try. The share of a section beside many others has no room for the finest
    /// ones, which take longest to draw.
    fn details(self) -> &'static [Detail] {
        let first = if self.most < MOST_OF_SECTION / 4 { FINEST_OF_MANY } else { 0 };
        DETAILS.get(first..).unwrap_or(&DETAILS)
    }
}

/// Leaves out the largest timeline of a page with few sections that is too large. Timelines of
/// failures remain. Returns true if one is left out. `page`: the size of the page, in bytes.
pub(super) fn leave_out_largest(sections: &mut [Section], page: usize) -> bool {
    if page <= PAGE || sections.len() > SECTIONS {
        return false;
    }
    let shown = sections
        .iter_mut()
        .filter(|section| section.rank() >= FAILURES && !section.lacks_timelines());
    let Some(largest) = shown.max_by_key(|section| section.size()) else { return false };
    largest.leave_out_timelines();
    true
}
