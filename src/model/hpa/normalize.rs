//! From a proposal to a size, for HPAs without `spec.behavior`: the window on the way down, twice
//! the size at most on the way up, and the limits.

use super::forbidden::limits_of_old;
use super::reconcile::Reconcile;
use super::{TimestampedRecommendation, go_i32};
use crate::model::api::{ConditionType, Text};
use crate::model::derivation::{HeldBy, Limits, RateLimit, Stabilization};
use crate::model::rules::{SizeLimits, Windows};
use crate::model::time::Span;

/// Reason and message of a condition.
pub(super) type Why = (&'static str, &'static str);

pub(super) const SCALE_UP_LIMIT: Why =
    ("ScaleUpLimit", "the desired replica count is increasing faster than the maximum scale rate");
pub(super) const SCALE_DOWN_LIMIT: Why = (
    "ScaleDownLimit",
    "the desired replica count is decreasing faster than the maximum scale rate",
);
pub(super) const TOO_MANY_REPLICAS: Why =
    ("TooManyReplicas", "the desired replica count is more than the maximum replica count");
pub(super) const TOO_FEW_REPLICAS: Why =
    ("TooFewReplicas", "the desired replica count is less than the minimum replica count");
pub(super) const DESIRED_WITHIN_RANGE: Why =
    ("DesiredWithinRange", "the desired count is within the acceptable range");
const READY_FOR_NEW_SCALE: Why = ("ReadyForNewScale", "recommended size matches current size");
pub(super) const SCALE_DOWN_STABILIZED: Why = (
    "ScaleDownStabilized",
    "recent recommendations were higher than current one, applying the highest recent \
     recommendation",
);
pub(super) const SCALE_UP_STABILIZED: Why = (
    "ScaleUpStabilized",
    "recent recommendations were lower than current one, applying the lowest recent \
     recommendation",
);

impl Reconcile<'_> {
    /// Upstream: horizontal.go, normalizeDesiredReplicas
    pub(super) fn normalize_desired_replicas(
        &mut self,
        current_replicas: i32,
        prenormalized_desired_replicas: i32,
        min_replicas: i32,
    ) -> i32 {
        let stabilized = match self.config.rules.windows {
            Windows::Forbidden => prenormalized_desired_replicas,
            Windows::Recommendations => {
                let stabilized = self.stabilize_recommendation(prenormalized_desired_replicas);
                let held = stabilized != prenormalized_desired_replicas;
                self.set_stabilized(held, SCALE_DOWN_STABILIZED);
                stabilized
            }
        };
        let max_replicas = self.hpa.spec.max_replicas;
        let limits = match self.config.rules.size_limits {
            SizeLimits::Range => convert_desired_replicas_with_rules(
                current_replicas,
                stabilized,
                min_replicas,
                max_replicas,
                self.config.rules.error_texts.too_few_is_explained,
            ),
            order => {
                let range = (min_replicas, max_replicas);
                limits_of_old(current_replicas, stabilized, range, order)
            }
        };
        self.set_limited(stabilized, limits)
    }

    /// The condition that tells what stabilization did.
    pub(super) fn set_stabilized(&mut self, stabilized: bool, why: Why) {
        let (reason, message) = if stabilized { why } else { READY_FOR_NEW_SCALE };
        let message = Text::from(message);
        self.set_text_condition(ConditionType::AbleToScale, true, reason, &message);
    }

    /// The condition that tells whether something limited the size.
    pub(super) fn set_limited(&mut self, stabilized: i32, (limits, why): (Limits, Why)) -> i32 {
        let desired = limits.result;
        let (type_, limited) = (ConditionType::ScalingLimited, desired != stabilized);
        self.set_text_condition(type_, limited, why.0, &why.1.into());
        self.derivation.limits = Some(limits);
        desired
    }

    /// The highest recommendation of the window. The oldest ones beyond it make room for the new.
    ///
    /// Upstream: horizontal.go, stabilizeRecommendation
    fn stabilize_recommendation(&mut self, prenormalized_desired_replicas: i32) -> i32 {
        let now = self.now;
        let window = self.config.flags.downscale_stabilization;
        let cutoff = now - window;
        // Without a branch on what differs from entry to entry: this is the model's longest loop
        // besides the pods.
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

    /// Records a recommendation, in place of an old one if there is one.
    pub(super) fn remember(&mut self, old_sample_index: Option<usize>, recommendation: i32) {
        let recommendations = &mut self.memory.recommendations;
        let new = TimestampedRecommendation { recommendation, timestamp: self.now };
        match old_sample_index.and_then(|index| recommendations.get_mut(index)) {
            Some(old) => *old = new,
            None => recommendations.push(new),
        }
    }
}

impl TimestampedRecommendation {
    pub(super) fn held(&self, now: crate::model::time::Time, up: bool) -> HeldBy {
        HeldBy { replicas: self.recommendation, at: self.timestamp, age: now - self.timestamp, up }
    }
}

/// Upstream: horizontal.go, convertDesiredReplicasWithRules
fn convert_desired_replicas_with_rules(
    current_replicas: i32,
    desired_replicas: i32,
    hpa_min_replicas: i32,
    hpa_max_replicas: i32,
    too_few_is_explained: bool,
) -> (Limits, Why) {
    let scale_up_limit = calculate_scale_up_limit(current_replicas);
    let (maximum_allowed, too_many) = if hpa_max_replicas > scale_up_limit {
        (scale_up_limit, SCALE_UP_LIMIT)
    } else {
        (hpa_max_replicas, TOO_MANY_REPLICAS)
    };
    let (result, why) = if desired_replicas < hpa_min_replicas {
        // Older releases take the message of the upper limit.
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
    (limits, why)
}

/// Upstream: horizontal.go, calculateScaleUpLimit
pub(super) fn calculate_scale_up_limit(current_replicas: i32) -> i32 {
    go_i32((2.0 * f64::from(current_replicas)).max(4.0))
}
