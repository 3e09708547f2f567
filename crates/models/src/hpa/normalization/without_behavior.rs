//! Normalization for HPAs without `spec.behavior`: the stabilization window for scaling down, the
//! forbidden windows of older releases, a rate limit for scaling up, and the limits of the spec.

use super::{
    DESIRED_WITHIN_RANGE, Limited, SCALE_DOWN_STABILIZED, SCALE_UP_LIMIT, TOO_FEW_REPLICAS,
    TOO_MANY_REPLICAS, TimestampedRecommendation, Why,
};
use crate::api::ConditionType;
use crate::derivation::{Forbidden, Limits, RateLimit, Stabilization};
use crate::hpa::go::go_i32;
use crate::hpa::reconcile::Reconcile;
use crate::rules::{LimitOrder, Windows};
use crate::time::{Span, Time};

// Up to Kubernetes 1.8, the messages are in the past tense.
const PAST_TOO_MANY_REPLICAS: Why =
    ("TooManyReplicas", "the desired replica count was more than the maximum replica count");
const PAST_TOO_FEW_REPLICAS: Why =
    ("TooFewReplicas", "the desired replica count was less than the minimum replica count");
const PAST_DESIRED_WITHIN_RANGE: Why =
    ("DesiredWithinRange", "the desired replica count is within the acceptible range");

impl Reconcile<'_> {
    /// Upstream: horizontal.go, normalizeDesiredReplicas
    pub(crate) fn normalize_desired_replicas(
        &mut self,
        current_replicas: i32,
        prenormalized_desired_replicas: i32,
        min_replicas: i32,
    ) -> i32 {
        let stabilized = match self.config.rules.normalization.windows {
            Windows::Forbidden => prenormalized_desired_replicas,
            Windows::Recommendations => {
                let stabilized = self.stabilize_recommendation(prenormalized_desired_replicas);
                let held = stabilized != prenormalized_desired_replicas;
                self.set_stabilized(held, SCALE_DOWN_STABILIZED);
                stabilized
            }
        };
        let max_replicas = self.hpa.spec.max_replicas;
        let limits = match self.config.rules.normalization.limits {
            LimitOrder::Range => convert_desired_replicas_with_rules(
                current_replicas,
                stabilized,
                min_replicas,
                max_replicas,
                self.config.rules.texts.too_few_is_explained,
            ),
            order => convert_desired_replicas_up_to_1_8(
                current_replicas,
                stabilized,
                min_replicas,
                max_replicas,
                order,
            ),
        };
        self.set_limited(stabilized, limits)
    }

    /// The highest recommendation of the window. The new one replaces the last one before the
    /// window.
    ///
    /// Upstream: horizontal.go, stabilizeRecommendation
    fn stabilize_recommendation(&mut self, prenormalized_desired_replicas: i32) -> i32 {
        let now = self.now;
        let window = self.config.flags.downscale_stabilization;
        let cutoff = now - window;
        // This loop has no branches: it is the model's longest one apart from the loop over the
        // pods.
        let recommendations = &self.memory.recommendations;
        let mut highest = i32::MIN;
        let mut considered = 0;
        let mut old = 0;
        for (rec, after) in recommendations.iter().zip(1..) {
            let within = rec.timestamp >= cutoff;
            considered += u32::from(within);
            old = if within { old } else { after };
            highest = highest.max(if within { rec.recommendation } else { i32::MIN });
        }
        let old_sample_index = usize::checked_sub(old, 1);
        let is_highest = |rec: &&TimestampedRecommendation| {
            rec.timestamp >= cutoff && rec.recommendation == highest
        };
        let extreme = recommendations.iter().find(is_highest).map(|rec| rec.held(now, false));
        let held_by = extreme.filter(|rec| rec.replicas > prenormalized_desired_replicas);
        let max_recommendation = held_by.map_or(prenormalized_desired_replicas, |rec| rec.replicas);
        self.remember(old_sample_index, prenormalized_desired_replicas);
        self.derivation.stabilization = Some(Stabilization {
            behavior: false,
            up_window: Span::ZERO,
            down_window: window,
            held_by,
            extreme,
            considered,
            result: max_recommendation,
        });
        max_recommendation
    }

    /// Returns true if the forbidden windows permit a change to the desired replicas. After a
    /// change, scaling up and scaling down are forbidden for different times, which are compared
    /// with `timestamp`, the time of the winning metric. The condition is set even if no change is
    /// desired.
    ///
    /// Upstream: horizontal.go, shouldScale, up to Kubernetes 1.11
    pub(crate) fn should_scale(&mut self, current: i32, desired: i32, timestamp: Time) -> bool {
        let flags = &self.config.flags;
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
        self.set_condition(ConditionType::AbleToScale, status, reason, message);
        let held = (desired > current && up) || (desired < current && down);
        self.derivation.forbidden =
            last_scale_time.map(|since| Forbidden { since, timestamp, up, down, held });
        desired != current && !held
    }
}

/// Upstream: horizontal.go, convertDesiredReplicasWithRules
fn convert_desired_replicas_with_rules(
    current_replicas: i32,
    desired_replicas: i32,
    hpa_min_replicas: i32,
    hpa_max_replicas: i32,
    too_few_is_explained: bool,
) -> Limited {
    let scale_up_limit = calculate_scale_up_limit(current_replicas);
    let (maximum_allowed, too_many) = if hpa_max_replicas > scale_up_limit {
        (scale_up_limit, SCALE_UP_LIMIT)
    } else {
        (hpa_max_replicas, TOO_MANY_REPLICAS)
    };
    let (result, why) = if desired_replicas < hpa_min_replicas {
        // Older releases use the message of the upper limit.
        let message = if too_few_is_explained { TOO_FEW_REPLICAS.1 } else { too_many.1 };
        (hpa_min_replicas, (TOO_FEW_REPLICAS.0, message))
    } else if desired_replicas > maximum_allowed {
        (maximum_allowed, too_many)
    } else {
        (desired_replicas, DESIRED_WITHIN_RANGE)
    };
    let limits = Limits {
        rate: Some(RateLimit::Legacy(scale_up_limit)),
        lower: Some(hpa_min_replicas),
        upper: Some(maximum_allowed),
        reason: why.0,
        result,
    };
    Limited { limits, why }
}

/// Upstream: horizontal.go, calculateScaleUpLimit
fn calculate_scale_up_limit(current_replicas: i32) -> i32 {
    go_i32((2.0 * f64::from(current_replicas)).max(4.0))
}

/// Upstream: horizontal.go, the end of reconcileAutoscaler, up to Kubernetes 1.8
fn convert_desired_replicas_up_to_1_8(
    current: i32,
    desired: i32,
    min: i32,
    max: i32,
    order: LimitOrder,
) -> Limited {
    let limit = calculate_scale_up_limit(current);
    let (result, why) = match order {
        LimitOrder::RateLast => {
            let raised = desired.max(min);
            let raised = if raised == 0 { 1 } else { raised };
            let why = match desired {
                _ if raised.min(max) > limit => SCALE_UP_LIMIT,
                _ if raised > max => PAST_TOO_MANY_REPLICAS,
                _ if desired < min => PAST_TOO_FEW_REPLICAS,
                _ => PAST_DESIRED_WITHIN_RANGE,
            };
            (raised.min(max).min(limit), why)
        }
        _ if desired > limit => match order {
            LimitOrder::RateFirst if limit > max => (max, PAST_TOO_MANY_REPLICAS),
            _ => (limit, SCALE_UP_LIMIT),
        },
        _ if desired < min => (min, PAST_TOO_FEW_REPLICAS),
        _ if desired > max => (max, PAST_TOO_MANY_REPLICAS),
        _ => (desired, PAST_DESIRED_WITHIN_RANGE),
    };
    let limits = Limits {
        rate: Some(RateLimit::Legacy(limit)),
        lower: Some(min),
        upper: Some(if order == LimitOrder::RateInstead { limit } else { limit.min(max) }),
        reason: why.0,
        result,
    };
    Limited { limits, why }
}
