//! Rules of the step from a proposal to the desired replicas: windows, policies and limits.

/// The delay before another change of the replicas, if the HPA has no `behavior`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Windows {
    /// After a change, scaling up and scaling down are each forbidden for a duration.
    Forbidden,
    /// The replicas do not fall below the recommendations of the stabilization window.
    Recommendations,
}

/// The order in which limits are applied, if the HPA has no `behavior`. The rate limit is twice the
/// current replicas, and at least 4.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LimitOrder {
    /// At least `minReplicas` and 1, at most `maxReplicas`, and then at most the rate limit.
    RateLast,
    /// If the proposal exceeds the rate limit, the rate limit, even above `maxReplicas`. Otherwise,
    /// between `minReplicas` and `maxReplicas`.
    RateInstead,
    /// Like [`LimitOrder::RateInstead`], but never above `maxReplicas`.
    RateFirst,
    /// Between `minReplicas` and the smaller of both upper limits.
    Range,
}

/// The rule by which the stabilization windows of `behavior` apply.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BehaviorWindows {
    /// The recommendation of the window of the direction in which the replicas would change is the
    /// result, even if it reverses that direction.
    Replace,
    /// The current replicas are clamped between the recommendations of both windows.
    Clamp,
}

/// The rules by which a proposal becomes the desired replicas.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NormalizationRules {
    /// The delay before another change.
    pub windows: Windows,
    /// The order in which limits are applied.
    pub limits: LimitOrder,
    /// The rule by which the stabilization windows of `behavior` apply.
    pub behavior_windows: BehaviorWindows,
    /// True if changes in the other direction count in the policies of `behavior`.
    pub changes_are_netted: bool,
}

impl NormalizationRules {
    pub(crate) const OLDEST: NormalizationRules = NormalizationRules {
        windows: Windows::Forbidden,
        limits: LimitOrder::RateLast,
        behavior_windows: BehaviorWindows::Replace,
        changes_are_netted: false,
    };
}
