//! The times at which a reconcile may begin.
//!
//! The next reconcile is queued a sync period after the earlier of two events: the end of the
//! current reconcile, or an update of the HPA after the current reconcile left the queue (the
//! informer delivers at least one update in each period). The time at which a reconcile leaves the
//! queue cannot be observed, only the time at which it begins: if the worker was busy, an update in
//! the meantime makes the next reconcile earlier. The model assumes a period after the current one.
//! That one may be late in turn, and then its successor may be early by the sum.
//!
//! Upstream: pkg/controller/podautoscaler/horizontal.go, enqueueHPA and processNextWorkItem

use crate::cluster::tolerances::{
    MAX_MISSING_DIVISOR, MAX_TIMING_SLACK, MISSING_AFTER_SLACKS, MISSING_WITHOUT_NOTE,
    RESUME_WITHIN_SLACKS, TIMING_SLACK_DIVISOR, WATCH_DELAY,
};
use kube_autoscaler_models::time::{Span, Time};

/// The times at which the next reconcile may begin.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReconcileWindow {
    /// The deviation that is always permitted.
    pub(super) slack: Span,
    /// The maximum time by which the next reconcile may be queued before the model expects it.
    early: Span,
    period: Span,
}

/// The times of a reconcile: when it was due, began and ended, and how long a component was
/// unresponsive since the previous reconcile.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timing {
    pub due: Time,
    pub began: Time,
    pub ended: Time,
    pub(super) stall: Span,
}

impl ReconcileWindow {
    pub(super) fn new(sync_period: Span) -> ReconcileWindow {
        let slack = Span(sync_period.0 / TIMING_SLACK_DIVISOR).min(MAX_TIMING_SLACK);
        ReconcileWindow { slack, early: Span::ZERO, period: sync_period }
    }

    /// Returns true if a reconcile is too early for the one that is due: it is an extra one.
    pub(super) fn is_too_early(&self, began: Time, due: Time) -> bool {
        began + self.slack + self.early < due
    }

    /// Returns true if a reconcile is too late for the one that is due: that one was skipped.
    pub(super) fn is_too_late(&self, began: Time, due: Time) -> bool {
        began >= due + self.period
    }

    /// The time after which the due reconcile counts as missing.
    pub(super) fn deadline(&self, due: Time) -> Time {
        due + Span(self.slack.0 * MISSING_AFTER_SLACKS)
    }

    /// Returns true if requests at `began` may belong to a reconcile whose last request ended at
    /// `ended`, if a component was unresponsive for `stall` since then.
    pub(super) fn may_continue(&self, ended: Time, began: Time, stall: Span) -> bool {
        began <= ended + Span(self.slack.0 * RESUME_WITHIN_SLACKS) + stall
    }

    /// The HPA was edited: the controller observed the edit at a time between `begin` and `end`.
    pub(super) fn edited(&mut self, begin: Time, end: Time) {
        self.early = self.early.max(end - begin);
    }

    /// Moves the window to the next reconcile after one was observed.
    pub(super) fn advance(&mut self, timing: Timing) {
        let Timing { due, began, ended, stall } = timing;
        // No reconcile waits in the queue for longer than its delay and its predecessor's allowed
        // deviation. Earlier delays do not count; otherwise a controller that reconciles too often
        // would soon be within its window.
        let longest = due.min(began) - self.slack - stall;
        let left_queue = began.min(longest.max(due - self.early));
        self.early = ended - left_queue;
    }
}

/// Returns true if a reconcile that began at `began` may not have observed an edit that was
/// complete at `edited`.
pub(super) fn may_not_have_observed(began: Time, edited: Time, stall: Span) -> bool {
    began < edited + WATCH_DELAY + stall
}

/// The note on missing reconciles.
pub(super) fn missing_note(seen: usize, expected: usize) -> Option<String> {
    (seen + MISSING_WITHOUT_NOTE < expected).then(|| {
        format!("only {seen} of {expected} expected reconciles happened before the scenario ended")
    })
}

/// Returns true if the observed reconciles are too few for a verdict: even if all of them are
/// right, they may not include the behavior under test.
pub(super) fn are_too_few(seen: usize, expected: usize) -> bool {
    seen * MAX_MISSING_DIVISOR < expected * (MAX_MISSING_DIVISOR - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: i64) -> Time {
        Time(millis * 1_000_000)
    }

    /// Observes reconciles with the times at which they were due, began and ended, in milliseconds.
    fn advance(window: &mut ReconcileWindow, ticks: &[[i64; 3]], stall: i64) {
        for [due, began, ended] in ticks.iter().map(|tick| tick.map(at)) {
            window.advance(Timing { due, began, ended, stall: Span::from_millis(stall) });
        }
    }

    /// The time by which the next reconcile may be early, in milliseconds.
    fn early(ticks: &[[i64; 3]]) -> i64 {
        let mut window = ReconcileWindow::new(Span::from_secs(1));
        advance(&mut window, ticks, 0);
        window.early.0 / 1_000_000
    }

    #[test]
    fn after_a_late_reconcile_the_next_may_be_early_by_as_much() {
        assert_eq!(early(&[[0, 0, 20]]), 20);
        assert_eq!(early(&[[0, 600, 620]]), 620);
        // An early reconcile was queued early.
        assert_eq!(early(&[[1000, 800, 820]]), 20);
    }

    #[test]
    fn two_delays_add_up() {
        // The second reconcile was queued at 1000, so the third, which is due at 2520, may be
        // queued at 2000.
        assert_eq!(early(&[[0, 200, 220], [1220, 1520, 1540]]), 540);
        // A reconcile that did not wait ends the delay.
        assert_eq!(early(&[[0, 200, 220], [1220, 1000, 1020]]), 20);
    }

    #[test]
    fn many_delays_add_up_to_a_bound() {
        let each = |number: i64| [number * 1020, number * 1020, number * 1020 + 20];
        let ticks: Vec<_> = (0..5).map(each).collect();
        assert_eq!(early(&ticks), 100);
        let ticks: Vec<_> = (0..100).map(each).collect();
        assert_eq!(early(&ticks), 353);
        let mut window = ReconcileWindow::new(Span::from_secs(1));
        advance(&mut window, &ticks, 200);
        assert_eq!(window.early.0 / 1_000_000, 553);
    }

    #[test]
    fn an_edit_is_observed_after_the_watch_delay_and_a_stall() {
        let may =
            |began, stall| may_not_have_observed(at(began), at(350), Span::from_millis(stall));
        assert_eq!((may(340, 0), may(449, 0), may(450, 0)), (true, true, false));
        assert_eq!((may(640, 200), may(660, 200)), (true, false));
    }

    #[test]
    fn two_thirds_of_the_reconciles_are_enough_for_a_verdict() {
        let few = [(0, 0), (1, 1), (1, 2), (2, 3), (1, 3), (26, 40), (27, 40)];
        let few = few.map(|(seen, expected)| are_too_few(seen, expected));
        assert_eq!(few, [false, false, true, false, true, true, false]);
        assert_eq!(missing_note(2, 3), None);
        let note = missing_note(3, 5).unwrap_or_default();
        assert_eq!(note, "only 3 of 5 expected reconciles happened before the scenario ended");
    }

    #[test]
    fn a_reconcile_that_is_late_by_a_period_counts_as_skipped() {
        let window = ReconcileWindow::new(Span::from_secs(1));
        assert!(!window.is_too_late(at(1999), at(1000)));
        assert!(window.is_too_late(at(2000), at(1000)));
    }

    #[test]
    fn an_extra_reconcile_differs_from_an_early_one() {
        let mut window = ReconcileWindow::new(Span::from_secs(15));
        assert!(!window.is_too_early(at(14_100), at(15_000)));
        assert!(window.is_too_early(at(13_900), at(15_000)));
        window.edited(at(0), at(500));
        assert!(!window.is_too_early(at(13_900), at(15_000)));
    }
}
