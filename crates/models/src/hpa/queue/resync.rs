//! The resync of the controller's informer: periodically it sends an update event for each HPA,
//! which queues the key for one sync period later.
//!
//! A resync does not affect a waiting key, which is due within one sync period anyway. If each
//! reconcile queues the next one, a resync matters only while a key is processed, and only if the
//! processing takes time. In old releases, where a successful reconcile queues nothing, the resync
//! causes the next reconcile. The resync needs no entry in the queue.

use crate::time::{Span, Time};

/// The shortest resync period of an event handler.
///
/// Upstream: client-go, shared_informer.go, minimumResyncPeriod
const SHORTEST_PERIOD: Span = Span::from_secs(1);

/// The delay of each resync. Without it, a key that was queued by a resync would be due at the time
/// of the next resync, in random order. Upstream's timers have a longer delay; in virtual time the
/// delay is exactly this one.
const LATE: Span = Span(1);

/// The resync period of informers unless a handler requests a shorter one. The
/// kube-controller-manager picks a random period between this one and its double.
const INFORMER_PERIOD: Span = Span::from_mins(12 * 60);

/// The schedule of one controller's resyncs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Resync {
    /// When the controller was started.
    started: Time,
    period: Span,
}

impl Resync {
    /// The schedule of a controller that runs at t=0. It was started at least a second before t=0.
    /// Half a sync period lies between its resyncs and the reconciles of an HPA that is created at
    /// t=0.
    pub(crate) fn running(sync_period: Span) -> Resync {
        let mut lead = Span(sync_period.0 / 2);
        if lead < SHORTEST_PERIOD && sync_period > Span::ZERO {
            let missing = (SHORTEST_PERIOD.0 - lead.0) as u64;
            lead.0 += missing.div_ceil(sync_period.0 as u64) as i64 * sync_period.0;
        }
        Resync::started(Time::ZERO - lead, sync_period)
    }

    /// The schedule of a controller that is started at `now`.
    ///
    /// Upstream: client-go, shared_informer.go, AddEventHandlerWithOptions and determineNextResync;
    /// reflector.go, startResync
    pub(crate) fn started(now: Time, sync_period: Span) -> Resync {
        let desired = Span(sync_period.max(SHORTEST_PERIOD).0.saturating_add(LATE.0));
        // The informer periodically checks if a resync is due; its period need not divide the
        // handler's.
        let check_period = desired.min(INFORMER_PERIOD);
        let times = (desired.0 as u64).div_ceil(check_period.0 as u64) as i64;
        Resync { started: now, period: Span(check_period.0.saturating_mul(times)) }
    }

    /// The first resync after a time.
    pub(crate) fn after(&self, instant: Time) -> Time {
        let past = (instant - self.started).0.rem_euclid(self.period.0);
        instant + Span(self.period.0 - past)
    }

    /// The number of resyncs after one time and not after another.
    pub(crate) fn count(&self, after: Time, until: Time) -> u64 {
        let past = |instant: Time| (instant - self.started).0.div_euclid(self.period.0);
        u64::try_from(past(until) - past(after)).unwrap_or(0)
    }

    /// Returns true if there is a resync at exactly this time.
    pub(crate) fn is_at(&self, instant: Time) -> bool {
        (instant - self.started).0.rem_euclid(self.period.0) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A time in milliseconds plus some nanoseconds.
    fn at(millis: i64, late: i64) -> Time {
        Time::ZERO + Span(millis * 1_000_000 + late)
    }

    #[test]
    fn resyncs_are_due_halfway_between_the_reconciles_of_the_first_hpa() {
        let resync = Resync::running(Span::from_secs(15));
        assert_eq!(resync.after(Time::ZERO), at(7_500, 1));
        assert_eq!(resync.after(at(7_500, 1)), at(22_500, 2));
        // Started 1.5 s before t=0, because the lead is at least a second.
        let resync = Resync::running(Span::from_secs(1));
        assert_eq!(resync.after(Time::from_secs(12)), at(12_500, 14));
    }

    #[test]
    fn resyncs_are_at_least_a_second_apart() {
        // Started 1.05 s before t=0.
        let resync = Resync::running(Span::from_millis(300));
        assert_eq!(resync.after(Time::ZERO), at(950, 2));
        assert_eq!(resync.after(Time::from_secs(1)), at(1_950, 3));
    }

    #[test]
    fn resync_periods_longer_than_the_check_period_are_multiples_of_it() {
        let hours = |hours: i64| Span::from_mins(60 * hours);
        let day = |period| Resync::started(Time::ZERO, period).after(Time::ZERO);
        assert_eq!(day(hours(13)), Time::ZERO + hours(24));
        assert_eq!(day(hours(12)), Time::ZERO + hours(24));
        assert_eq!(day(hours(11)), Time::ZERO + hours(11) + LATE);
    }

    #[test]
    fn the_next_resync_is_later_than_the_given_time() {
        let resync = Resync::started(Time::from_secs(3), Span::from_secs(1));
        let second = at(5_000, 2);
        assert!(resync.is_at(second));
        assert_eq!(resync.after(second), at(6_000, 3));
        assert!(!resync.is_at(at(5_000, 0)));
        assert_eq!(resync.count(at(5_000, 2), at(6_000, 3)), 1);
        assert_eq!(resync.count(at(5_000, 1), at(7_000, 3)), 2);
        assert_eq!(resync.count(at(5_000, 2), at(6_000, 2)), 0);
    }
}
