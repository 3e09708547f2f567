//! How far from its time a reconcile may come.
//!
//! The next one is queued a sync period after the first of what queues it: the end of this one, and
//! what the controller hears of the HPA, at least once in each period, since this one has left the
//! queue. When it left the queue is not seen, only when it began: where the controller had no time
//! for it, what it heard meanwhile brings the next one early. The model has it a period after this
//! one; that one may be late in its turn, and then the one after it be early by both.
//!
//! Upstream: pkg/controller/podautoscaler/horizontal.go, enqueueHPA and processNextWorkItem

use crate::model::time::{Span, Time};

/// No more than this is a reconcile early or late, however long the sync period.
const LONGEST_SLACK: Span = Span::from_secs(1);

/// How long the controller may take to hear of an edit, where nothing is held up.
const HEARING: Span = Span::from_millis(100);

/// Since when the next reconcile may come.
#[derive(Clone, Copy, Debug)]
pub(super) struct Due {
    /// How far from its time a reconcile may be, whatever was before.
    pub(super) slack: Span,
    /// How much earlier than the model has it the next one may be queued.
    early: Span,
    period: Span,
}

impl Due {
    pub(super) fn of(sync_period: Span) -> Due {
        let slack = Span(sync_period.0 / 3).min(LONGEST_SLACK);
        Due { slack, early: Span::ZERO, period: sync_period }
    }

    /// Whether one that began then was not to come at all.
    pub(super) fn is_too_early(&self, began: Time, due: Time) -> bool {
        began + self.slack + self.early < due
    }

    /// Whether one that began then is not the one that was to come: that one came not at all.
    pub(super) fn is_too_late(&self, began: Time, due: Time) -> bool {
        began >= due + self.period
    }

    /// Somebody edited the HPA, in a time in which the controller may have heard of it.
    pub(super) fn edited(&mut self, begin: Time, end: Time) {
        self.early = self.early.max(end - begin);
    }

    /// A reconcile came that was due then, when something was held up for so long.
    pub(super) fn came(&mut self, due: Time, (began, ended): (Time, Time), stall: Span) {
        // None waits longer in the queue than it is late and one may be: what lies before that is
        // forgotten, or else a controller that does too much would soon be right.
        let longest = due.min(began) - self.slack - stall;
        let left = began.min(longest.max(due - self.early));
        self.early = ended - left;
    }
}

/// Whether a reconcile that began then need not have heard of an edit that was done by then, where
/// something was held up for so long.
pub(super) fn may_not_have_heard(began: Time, edited: Time, stall: Span) -> bool {
    began < edited + HEARING + stall
}

/// What has to be said if fewer reconciles came than were to come: more than one, since each may be
/// a little late.
pub(super) fn missed(came: usize, expected: usize) -> Option<String> {
    (came + 1 < expected).then(|| {
        format!("so late were its reconciles that only {came} of {expected} came before its end")
    })
}

/// Whether so many are too few for a verdict: each of them may have been as it should be, and what
/// the scenario is about need not have been among them.
pub(super) fn are_too_few(came: usize, expected: usize) -> bool {
    came * 3 < expected * 2
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: i64) -> Time {
        Time(millis * 1_000_000)
    }

    /// How much earlier than due each may come, in milliseconds, after these: when they were due,
    /// began and ended.
    fn early(ticks: &[(i64, i64, i64)]) -> i64 {
        let mut it = Due::of(Span::from_secs(1));
        for (due, began, ended) in ticks {
            it.came(at(*due), (at(*began), at(*ended)), Span::ZERO);
        }
        it.early.0 / 1_000_000
    }

    #[test]
    fn the_one_after_a_late_one_may_be_early_by_as_much() {
        assert_eq!(early(&[(0, 0, 20)]), 20);
        assert_eq!(early(&[(0, 600, 620)]), 620);
        // One that is early has been queued early.
        assert_eq!(early(&[(1000, 800, 820)]), 20);
    }

    #[test]
    fn what_two_late_ones_leave_adds_up() {
        // The second was queued at 1000, and so may the third be at 2000, which is due at 2520.
        assert_eq!(early(&[(0, 200, 220), (1220, 1520, 1540)]), 540);
        // After one that waited for nobody, nothing of it is left.
        assert_eq!(early(&[(0, 200, 220), (1220, 1000, 1020)]), 20);
    }

    #[test]
    fn what_many_leave_does_not_add_up_for_ever() {
        let each = |number: i64| (number * 1020, number * 1020, number * 1020 + 20);
        let ticks: Vec<_> = (0..5).map(each).collect();
        assert_eq!(early(&ticks), 100);
        let ticks: Vec<_> = (0..100).map(each).collect();
        assert_eq!(early(&ticks), 353);
        let mut it = Due::of(Span::from_secs(1));
        for (due, began, ended) in ticks {
            it.came(at(due), (at(began), at(ended)), Span::from_millis(200));
        }
        assert_eq!(it.early.0 / 1_000_000, 553);
    }

    #[test]
    fn an_edit_is_heard_of_when_nothing_holds_it_up_any_more() {
        let may = |began, stall| may_not_have_heard(at(began), at(350), Span::from_millis(stall));
        assert_eq!((may(340, 0), may(449, 0), may(450, 0)), (true, true, false));
        assert_eq!((may(640, 200), may(660, 200)), (true, false));
    }

    #[test]
    fn of_two_thirds_of_them_there_is_a_verdict() {
        let few = [(0, 0), (1, 1), (1, 2), (2, 3), (1, 3), (26, 40), (27, 40)];
        let few = few.map(|(came, of)| are_too_few(came, of));
        assert_eq!(few, [false, false, true, false, true, true, false]);
        assert_eq!(missed(2, 3), None);
        let told = missed(3, 5).unwrap_or_default();
        assert_eq!(told, "so late were its reconciles that only 3 of 5 came before its end");
    }

    #[test]
    fn one_that_is_a_period_late_did_not_come() {
        let due = Due::of(Span::from_secs(1));
        assert!(!due.is_too_late(at(1999), at(1000)));
        assert!(due.is_too_late(at(2000), at(1000)));
    }

    #[test]
    fn one_that_was_not_to_come_is_told_from_one_that_is_early() {
        let mut due = Due::of(Span::from_secs(15));
        assert!(!due.is_too_early(at(14_100), at(15_000)));
        assert!(due.is_too_early(at(13_900), at(15_000)));
        due.edited(at(0), at(500));
        assert!(!due.is_too_early(at(13_900), at(15_000)));
    }
}
