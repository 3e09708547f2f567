//! The windows of old releases: for some time after a change the size may not grow, and for some
//! time it may not shrink. They hold what metrics want, and neither limit.
//!
//! Upstream: horizontal.go, shouldScale and the end of reconcileAutoscaler, up to Kubernetes 1.11.

use super::reconcile::Reconcile;
use crate::model::api::ConditionType;
use crate::model::derivation::Forbidden;
use crate::model::time::Time;

impl Reconcile<'_> {
    /// Whether the size changes to that one, by windows that are held against `timestamp`, the time
    /// of the metric that won. The condition tells of them, whether or not a change is wanted.
    pub(super) fn should_scale(&mut self, current: i32, desired: i32, timestamp: Time) -> bool {
        let flags = self.knobs.flags;
        let last_scale_time = self.hpa.status.last_scale_time;
        let within = |window| last_scale_time.is_some_and(|last| last + window >= timestamp);
        let (up, down) = (within(flags.upscale_delay), within(flags.downscale_delay));
        let (status, reason, message) = match (up, down) {
            (false, false) => (
                true,
                "ReadyForNewScale",
                "the last scale time was sufficiently old as to warrant a new scale",
            ),
            (false, true) => (
                false,
                "BackoffDownscale",
                "the time since the previous scale is still within the downscale forbidden window",
            ),
            (true, false) => (
                false,
                "BackoffUpscale",
                "the time since the previous scale is still within the upscale forbidden window",
            ),
            (true, true) => (
                false,
                "BackoffBoth",
                "the time since the previous scale is still within both the downscale and upscale \
                 forbidden windows",
            ),
        };
        self.set_text_condition(ConditionType::AbleToScale, status, reason, &message.into());
        let held = (desired > current && up) || (desired < current && down);
        self.derivation.forbidden =
            last_scale_time.map(|since| Forbidden { since, timestamp, up, down, held });
        desired != current && !held
    }
}
