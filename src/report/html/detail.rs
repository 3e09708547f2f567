//! How much of a long run a section of a page shows.

/// How much of a long run a section shows. Short runs are the same in every detail.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Detail {
    /// The maximum number of columns of the charts of an HPA. Charts of a VPA, which has more
    /// lines, have half of them.
    pub(super) columns: usize,
    /// The maximum number of ticks of an HPA whose derivations are kept.
    pub(super) ticks: usize,
    /// The approximate number of amounts of a VPA whose derivations are kept.
    pub(super) amounts: usize,
}

/// The details, the finest first.
pub(super) const DETAILS: [Detail; 6] = [
    Detail { columns: 500, ticks: 500, amounts: 900 },
    Detail { columns: 320, ticks: 200, amounts: 400 },
    Detail { columns: 200, ticks: 100, amounts: 200 },
    Detail { columns: 120, ticks: 50, amounts: 100 },
    Detail { columns: 70, ticks: 25, amounts: 48 },
    Detail { columns: 40, ticks: 12, amounts: 24 },
];

impl Detail {
    /// The finest detail.
    pub(super) const FINEST: Detail = DETAILS[0];
}
