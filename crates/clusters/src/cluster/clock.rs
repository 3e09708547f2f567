//! The clock of a scenario on a cluster.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::time::sleep;

use kube_autoscaler_models::time::{Span, Time};

/// Converts between instants and the time since a scenario's start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ScenarioClock {
    /// The instant of t=0.
    epoch: Timestamp,
}

impl ScenarioClock {
    /// Starts at the next whole second that is at least `lead` away.
    pub(crate) fn after(lead: SignedDuration) -> ScenarioClock {
        let at = Timestamp::now() + lead;
        ScenarioClock { epoch: Timestamp::from_second(at.as_second() + 1).unwrap_or(at) }
    }

    /// The instant of t=0.
    pub(crate) fn epoch(self) -> Timestamp {
        self.epoch
    }

    pub(crate) fn now(self) -> Time {
        self.time(Timestamp::now())
    }

    /// The time of an instant.
    pub(crate) fn time(self, at: Timestamp) -> Time {
        let nanos = at.as_nanosecond() - self.epoch.as_nanosecond();
        Time(i64::try_from(nanos).unwrap_or(i64::MAX))
    }

    /// The instant of a time.
    pub(crate) fn instant(self, at: Time) -> Timestamp {
        self.epoch + SignedDuration::from_nanos(at.0)
    }

    /// Waits until a time.
    pub(crate) async fn wait_until(self, at: Time) {
        let left = at - self.now();
        if left > Span::ZERO {
            sleep(Duration::from_nanos(left.0.unsigned_abs())).await;
        }
    }
}
