//! Limits and windows of old releases: for some time after a change the size may not grow, and for
//! some time it may not shrink. They hold what metrics want, and neither limit.
//!
//! Upstream: horizontal.go, shouldScale and the end of reconcileAutoscaler, up to Kubernetes 1.11.

use super::normalize::{SCALE_UP_LIMIT, Why, calculate_scale_up_limit};
use super::reconcile::Reconcile;
use crate::model::api::ConditionType;
use crate::model::derivation::{Forbidden, Limits, RateLimit};
use crate::model::rules::SizeLimits;
use crate::model::time::Time;

const TOO_MANY_REPLICAS: Why =
    ("TooManyReplicas", "the desired replica count was more than the maximum replica count");
const TOO_FEW_REPLICAS: Why =
    ("TooFewReplicas", "the desired replica count was less than the minimum replica count");
const ZERO: Why = ("TooFewReplicas", "the desired replica count was zero");
const DESIRED_WITHIN_RANGE: Why =
    ("DesiredWithinRange", "the desired replica count is within the acceptible range");

/// The limits up to Kubernetes 1.8.
///
/// Upstream: horizontal.go, reconcileAutoscaler
pub(super) fn limits_of_old(
    current: i32,
    desired: i32,
    (min, max): (i32, i32),
    order: SizeLimits,
) -> (Limits, Why) {
    let limit = calculate_scale_up_limit(current);
    let (result, why) = match order {
        SizeLimits::RateLast => {
            let wanted = desired.max(min);
            let wanted = if wanted == 0 { 1 } else { wanted };
            let why = match desired {
                _ if wanted.min(max) > limit => SCALE_UP_LIMIT,
                _ if wanted > max => TOO_MANY_REPLICAS,
                _ if desired < min => TOO_FEW_REPLICAS,
                _ => DESIRED_WITHIN_RANGE,
            };
            (wanted.min(max).min(limit), why)
        }
        _ if desired > limit => match order {
            SizeLimits::RateFirst if limit > max => (max, TOO_MANY_REPLICAS),
            _ => (limit, SCALE_UP_LIMIT),
        },
        SizeLimits::RateInstead if desired == 0 => (1, ZERO),
        _ if desired < min => (min, TOO_FEW_REPLICAS),
        _ if desired > max => (max, TOO_MANY_REPLICAS),
        _ => (desired, DESIRED_WITHIN_RANGE),
    };
    let limits = Limits {
        rate: Some(RateLimit::Legacy(limit)),
        lower: Some(min),
        upper: Some(if order == SizeLimits::RateInstead { limit } else { limit.min(max) }),
        reason: why.0,
        result,
    };
    (limits, why)
}

impl Reconcile<'_> {
    /// Whether the size changes to that one, by windows that are held against `timestamp`, the time
    /// of the metric that won. The condition tells of them, whether or not a change is wanted.
    pub(super) fn should_scale(&mut self, current: i32, desired: i32, timestamp: Time) -> bool {
        let flags = self.config.flags;
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
