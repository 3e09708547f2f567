//! The pods of a recording by pod: a pod that replaces another one continues its series.

use super::timestamp::Timestamp;
use super::{Raw, Series};
use kube_autoscaler_models::time::Span;

/// The longest time for which a pod and its replacement have values, as in a rolling update.
const MOST_OVERLAP: Span = Span::from_mins(5);

/// Assigns series to pods. `series` are sorted by their first times. A series that begins when
/// another one has ended, or shortly before, continues it; of several, the one that ended first.
pub(super) fn assign(series: Vec<Series>) -> Vec<Series> {
    let end_of_all = series.iter().filter_map(Series::last).max();
    let mut pods: Vec<Slot> = Vec::new();
    for series in series {
        let (Some(first), Some(last)) = (series.first(), series.last()) else { continue };
        let new = Slot { first, last, series };
        let free = pods
            .iter_mut()
            // A series that lasts until the end of the recording has not ended.
            .filter(|slot| Some(slot.last) != end_of_all && slot.is_followed_by(&new))
            .min_by_key(|slot| slot.last);
        match free {
            Some(slot) => slot.continue_with(new),
            None => pods.push(new),
        }
    }
    pods.into_iter().map(|slot| slot.series).collect()
}

/// The series of a pod so far.
struct Slot {
    /// The first time of the newest series.
    first: Timestamp,
    last: Timestamp,
    series: Series,
}

impl Slot {
    fn is_followed_by(&self, new: &Slot) -> bool {
        let overlap = self.last.since(new.first);
        let shorter = self.length().min(new.length());
        overlap < 0 || (overlap <= MOST_OVERLAP.0 && overlap < shorter / 2)
    }

    fn length(&self) -> i64 {
        self.last.since(self.first)
    }

    fn continue_with(&mut self, new: Slot) {
        let samples = &mut self.series.samples;
        samples.truncate(samples.partition_point(|raw| raw.at < new.first));
        samples.extend(new.series.samples);
        self.series.hold = self.series.hold.max(new.series.hold);
        (self.first, self.last) = (new.first, new.last);
    }
}

impl Series {
    fn first(&self) -> Option<Timestamp> {
        self.samples.first().map(|raw: &Raw| raw.at)
    }

    fn last(&self) -> Option<Timestamp> {
        self.samples.last().map(|raw: &Raw| raw.at)
    }
}
