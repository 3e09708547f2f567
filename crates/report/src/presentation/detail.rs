//! How much of a long run a report shows.

/// How much of a long run a section of a page shows. Short runs are the same in every detail.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Detail {
    /// The maximum number of columns of the charts of an HPA. Charts of a VPA, which has more
    /// lines, have half of them.
    pub columns: usize,
    /// The maximum number of ticks of an HPA whose derivations are kept.
    pub ticks: usize,
    /// The approximate number of amounts of a VPA whose derivations are kept.
    pub amounts: usize,
    /// The maximum number of ticks whose values are kept, if they have no derivations.
    values: usize,
}

/// The number of columns of the charts in the finest detail.
const COLUMNS: usize = 500;

/// The details, the finest first.
pub(crate) static DETAILS: [Detail; 10] = [
    Detail { columns: COLUMNS, ticks: 1500, amounts: 9000, values: 40_000 },
    Detail { columns: COLUMNS, ticks: 1000, amounts: 6000, values: 20_000 },
    Detail { columns: COLUMNS, ticks: 600, amounts: 3000, values: 12_000 },
    Detail { columns: COLUMNS, ticks: 400, amounts: 1500, values: 6000 },
    Detail { columns: 320, ticks: 200, amounts: 800, values: 2000 },
    Detail { columns: 200, ticks: 100, amounts: 400, values: 1000 },
    Detail { columns: 160, ticks: 70, amounts: 200, values: 400 },
    Detail { columns: 120, ticks: 50, amounts: 100, values: 150 },
    Detail { columns: 70, ticks: 25, amounts: 48, values: 60 },
    Detail { columns: 40, ticks: 12, amounts: 24, values: 0 },
];

/// The index of the finest detail of a page with many sections.
pub(crate) const FINEST_OF_MANY: usize = 3;

impl Detail {
    /// The finest detail of a part of another page, which can have many parts one after the other.
    /// It has only ticks with derivations.
    pub(crate) const OF_PART: Detail =
        Detail { columns: COLUMNS, ticks: 600, amounts: 1800, values: 0 };

    /// Returns true if the charts have fewer columns than in the finest detail.
    pub(crate) fn is_coarse(self) -> bool {
        self.columns < COLUMNS
    }

    /// For a run with `ticks` ticks, the n for which the page has the values of every n-th tick;
    /// `None` if only ticks with derivations have values.
    pub(crate) fn every_value(self, ticks: usize) -> Option<usize> {
        (self.values > 0).then(|| ticks.div_ceil(self.values).max(1))
    }
}
