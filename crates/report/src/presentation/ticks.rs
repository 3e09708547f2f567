//! The ticks of a controller: their results, and how the model derives them.

use super::{Mark, Reason};
use kube_autoscaler_models::time::Time;

/// A tick.
pub(crate) struct Tick {
    /// The number in the run, from 1.
    pub number: usize,
    pub at: Time,
    /// The result: `replicas 4 → 7`.
    pub result: String,
    pub kind: TickKind,
    /// The limits that applied, for users; the last one decided.
    pub limits: Vec<Reason>,
    /// Why, in one line. Without steps, with the values of the tick.
    pub summary: String,
    /// The steps of the derivation; `None`: only the values of this tick are shown.
    pub steps: Option<Vec<String>>,
    /// Writes, events and errors.
    pub writes: Vec<String>,
}

/// The kind of a tick.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TickKind {
    /// The first one that diverges.
    Divergent,
    /// It follows a divergence.
    Later,
    /// The first one that differs between two releases.
    Changed,
    /// The result changes.
    Change,
    /// Any other tick.
    Other,
}

/// The ticks that are shown.
pub(crate) struct Ticks {
    pub shown: Vec<Tick>,
    /// The number of ticks that are left out.
    pub left_out: usize,
}

/// The ticks to show.
pub(crate) struct Selection<'a> {
    /// True for each tick whose derivation is shown.
    pub kept: &'a [bool],
    /// The n for which every n-th tick is shown, even without its derivation.
    pub every: Option<usize>,
    /// The first tick that differs from another run, and its index.
    pub mark: Option<(&'a Mark<'a>, usize)>,
}

impl Selection<'_> {
    /// The selected ticks. `tick` makes the one with an index, with its derivation or without it.
    pub(crate) fn ticks(&self, tick: impl Fn(usize, bool) -> Tick) -> Ticks {
        let Selection { kept, every, mark } = *self;
        let has_values = |index: usize| every.is_some_and(|every| index.is_multiple_of(every));
        let shown = (0..kept.len()).filter(|index| kept[*index] || has_values(*index));
        let shown = shown.map(|index| {
            let tick = tick(index, kept[index]);
            match mark {
                Some((mark, marked)) => mark.applied(tick, index, marked),
                None => tick,
            }
        });
        let shown: Vec<Tick> = shown.collect();
        Ticks { left_out: kept.len() - shown.len(), shown }
    }
}

/// Selects ticks: those at which something happens, and as many others at equal distances as fit.
/// If something happens at more ticks, these are at equal distances as well. The result is true for
/// each tick that is kept. `most`: the maximum number of ticks at which something happens, and that
/// of all ticks, about. `marked`: the index of a tick that is kept.
pub(crate) fn kept(most: usize, marked: Option<usize>, happens: &[bool]) -> Vec<bool> {
    if happens.len() <= most {
        return vec![true; happens.len()];
    }
    let eventful = happens.iter().filter(|happens| **happens).count();
    let every_eventful = eventful.div_ceil(most.max(1)).max(1);
    // A quarter of the ticks are always at equal distances.
    let others = most.saturating_sub(eventful).max(most / 4).max(1);
    let every = happens.len().div_ceil(others);
    let mut seen = 0;
    let last = happens.len() - 1;
    let keep = happens.iter().enumerate().map(|(index, happens)| {
        let is_kept = *happens && seen % every_eventful == 0;
        seen += usize::from(*happens);
        is_kept || index.is_multiple_of(every) || index == last || Some(index) == marked
    });
    keep.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_kept_with_ticks_between_them() {
        let indices = |most, marked, happens: &[bool]| -> Vec<usize> {
            let kept = kept(most, marked, happens);
            (0..happens.len()).filter(|index| kept[*index]).collect()
        };
        let mut happens = [false; 100];
        assert_eq!(indices(4, Some(31), &happens), [0, 25, 31, 50, 75, 99]);
        for index in [7, 8, 9] {
            happens[index] = true;
        }
        assert_eq!(indices(5, None, &happens), [0, 7, 8, 9, 50, 99]);
        assert_eq!(indices(100, None, &happens).len(), 100);
        // Something happens at each tick.
        assert_eq!(indices(10, None, &[true; 100]).len(), 11);
    }
}
