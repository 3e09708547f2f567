//! The step from a proposal to the desired replicas: windows, policies and limits.

mod behavior;
mod state;
mod without_behavior;

pub use behavior::policy_limit;
pub(crate) use state::{add_memory, add_whole_memory};

use super::memory::{Memory, TimestampedRecommendation, TimestampedScaleEvent};
use super::reconcile::Reconcile;
use crate::api::ConditionType;
use crate::derivation::Limits;

/// Reason and message of a condition.
type Why = (&'static str, &'static str);

const SCALE_UP_LIMIT: Why =
    ("ScaleUpLimit", "the desired replica count is increasing faster than the maximum scale rate");
const SCALE_DOWN_LIMIT: Why = (
    "ScaleDownLimit",
    "the desired replica count is decreasing faster than the maximum scale rate",
);
const TOO_MANY_REPLICAS: Why =
    ("TooManyReplicas", "the desired replica count is more than the maximum replica count");
const TOO_FEW_REPLICAS: Why =
    ("TooFewReplicas", "the desired replica count is less than the minimum replica count");
const DESIRED_WITHIN_RANGE: Why =
    ("DesiredWithinRange", "the desired count is within the acceptable range");
const READY_FOR_NEW_SCALE: Why = ("ReadyForNewScale", "recommended size matches current size");
const SCALE_DOWN_STABILIZED: Why = (
    "ScaleDownStabilized",
    "recent recommendations were higher than current one, applying the highest recent \
     recommendation",
);
const SCALE_UP_STABILIZED: Why = (
    "ScaleUpStabilized",
    "recent recommendations were lower than current one, applying the lowest recent \
     recommendation",
);

/// Limits and the condition for them.
struct Limited {
    limits: Limits,
    why: Why,
}

impl Reconcile<'_> {
    /// Sets the condition for stabilization.
    fn set_stabilized(&mut self, stabilized: bool, why: Why) {
        let (reason, message) = if stabilized { why } else { READY_FOR_NEW_SCALE };
        self.set_condition(ConditionType::AbleToScale, true, reason, message);
    }

    /// Sets the condition for limits.
    fn set_limited(&mut self, stabilized: i32, limited: Limited) -> i32 {
        let Limited { limits, why: (reason, message) } = limited;
        let desired = limits.result;
        let is_limited = desired != stabilized;
        let type_ = ConditionType::ScalingLimited;
        self.set_condition(type_, is_limited, reason, message);
        self.derivation.limits = Some(limits);
        desired
    }

    /// Records a recommendation, in place of an old one if its index is given.
    fn remember(&mut self, old_sample_index: Option<usize>, recommendation: i32) {
        let recommendations = &mut self.memory.recommendations;
        let new = TimestampedRecommendation { recommendation, timestamp: self.now };
        match old_sample_index.and_then(|index| recommendations.get_mut(index)) {
            Some(old) => *old = new,
            None => recommendations.push(new),
        }
    }
}
