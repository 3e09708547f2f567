//! The sections of a page. A page that would be too large does not show all timelines.

use std::collections::BTreeMap;

use super::section::{FAILURES, Section};
use crate::counted;

/// The maximum size of the timelines of a page, in bytes. Browsers become slow with more. Timelines
/// of failures are always shown.
const MOST_BYTES: usize = 4_000_000;

/// The sections of a page.
#[derive(Debug, Default)]
pub(super) struct Sections {
    pub list: Vec<Section>,
    /// The sections of each scenario, by their indices.
    by_id: BTreeMap<String, Vec<usize>>,
    /// The size of the timelines on the page, in bytes.
    size: usize,
    /// The number of sections without their timelines.
    left_out: usize,
}

impl Sections {
    /// Adds a section. The same result on another release is added to the existing section.
    pub(super) fn add(&mut self, mut section: Section) {
        let known = self.by_id.entry(section.id.clone()).or_default();
        let same = known.iter().copied().find(|index| self.list[*index].is_same(&section));
        if let Some(index) = same {
            self.list[index].releases.extend(section.releases);
            return;
        }
        known.push(self.list.len());
        let size = section.size_of_timelines();
        if self.size + size > MOST_BYTES && section.rank() >= FAILURES && size > 0 {
            section.leave_out_timelines();
            self.left_out += 1;
        } else {
            self.size += size;
        }
        self.list.push(section);
    }

    /// The note about timelines that are left out, if any.
    pub(super) fn note(&self) -> Option<String> {
        let results = counted(self.left_out, "result");
        (self.left_out > 0).then(|| {
            format!(
                "the timelines of {results} are left out, because the page would be too large; \
                 run fewer scenarios or releases to see them"
            )
        })
    }
}
