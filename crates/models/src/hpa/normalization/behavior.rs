//! Normalization for HPAs with `spec.behavior`: stabilization windows in both directions, policies,
//! and the limits of the spec.

use super::{
    DESIRED_WITHIN_RANGE, Limited, Memory, SCALE_DOWN_LIMIT, SCALE_DOWN_STABILIZED, SCALE_UP_LIMIT,
    SCALE_UP_STABILIZED, TOO_FEW_REPLICAS, TOO_MANY_REPLICAS, TimestampedRecommendation,
    TimestampedScaleEvent, Why,
};
use crate::api::{Behavior, ScalingPolicy, ScalingPolicyType, ScalingRules, SelectPolicy};
use crate::derivation::{Limits, PolicyDerivation, RateLimit, Stabilization};
use crate::hpa::go::go_i32;
use crate::hpa::reconcile::Reconcile;
use crate::rules::BehaviorWindows;
use crate::time::{Span, Time};

/// The scale events that policies count.
struct Past<'a> {
    memory: &'a Memory,
    now: Time,
    /// True if changes in the other direction count as well.
    netted: bool,
}

/// The arguments of the normalization.
///
/// Upstream: horizontal.go, NormalizationArg
struct NormalizationArg<'a> {
    scale_up: Direction<'a>,
    scale_down: Direction<'a>,
    min_replicas: i32,
    max_replicas: i32,
    current_replicas: i32,
    desired_replicas: i32,
}

/// The rules of one direction. The API server sets the defaults; upstream panics on an HPA without
/// defaults, which has no policies here.
pub(super) struct Direction<'a> {
    pub(super) window: Span,
    select: SelectPolicy,
    policies: &'a [ScalingPolicy],
}

impl<'a> Direction<'a> {
    pub(super) fn new(rules: Option<&'a ScalingRules>, default_window: i32) -> Direction<'a> {
        let window = rules.and_then(|rules| rules.stabilization_window_seconds);
        Direction {
            window: Span::from_secs(i64::from(window.unwrap_or(default_window))),
            select: rules.and_then(|rules| rules.select_policy).unwrap_or(SelectPolicy::Max),
            policies: rules.and_then(|rules| rules.policies.as_deref()).unwrap_or_default(),
        }
    }
}

impl Reconcile<'_> {
    /// Upstream: horizontal.go, normalizeDesiredReplicasWithBehaviors
    pub(crate) fn normalize_desired_replicas_with_behaviors(
        &mut self,
        behavior: &Behavior,
        current_replicas: i32,
        prenormalized_desired_replicas: i32,
        min_replicas: i32,
    ) -> i32 {
        // Upstream: horizontal.go, maybeInitScaleDownStabilizationWindow
        let down_window = go_i32(self.config.flags.downscale_stabilization.as_secs_f64());
        let mut arg = NormalizationArg {
            scale_up: Direction::new(behavior.scale_up.as_ref(), 0),
            scale_down: Direction::new(behavior.scale_down.as_ref(), down_window),
            min_replicas,
            max_replicas: self.hpa.spec.max_replicas,
            current_replicas,
            desired_replicas: prenormalized_desired_replicas,
        };
        let (stabilized, why) = match self.config.rules.normalization.behavior_windows {
            BehaviorWindows::Clamp => self.stabilize_recommendation_with_behaviors(&arg),
            BehaviorWindows::Replace => self.replace_recommendation_with_behaviors(&arg),
        };
        arg.desired_replicas = stabilized;
        self.set_stabilized(stabilized != prenormalized_desired_replicas, why);
        let netted = self.config.rules.normalization.changes_are_netted;
        let past = Past { memory: self.memory, now: self.now, netted };
        let limits = convert_desired_replicas_with_behavior_rate(&past, &arg);
        self.set_limited(stabilized, limits)
    }

    /// Moves the current replicas between the recommendations of both windows.
    ///
    /// Upstream: horizontal.go, stabilizeRecommendationWithBehaviors
    fn stabilize_recommendation_with_behaviors(
        &mut self,
        args: &NormalizationArg<'_>,
    ) -> (i32, Why) {
        let now = self.now;
        let (up_window, down_window) = (args.scale_up.window, args.scale_down.window);
        let (up_cutoff, down_cutoff) = (now - up_window, now - down_window);
        let mut lowest: Option<TimestampedRecommendation> = None;
        let mut highest: Option<TimestampedRecommendation> = None;
        let mut old_sample_index = None;
        let mut considered = 0;
        for (index, rec) in self.memory.recommendations.iter().enumerate() {
            let (in_up, in_down) = (rec.timestamp > up_cutoff, rec.timestamp > down_cutoff);
            considered += u32::from(in_up || in_down);
            if in_up && lowest.is_none_or(|it| rec.recommendation < it.recommendation) {
                lowest = Some(*rec);
            }
            if in_down && highest.is_none_or(|it| rec.recommendation > it.recommendation) {
                highest = Some(*rec);
            }
            if rec.timestamp < up_cutoff && rec.timestamp < down_cutoff {
                old_sample_index = Some(index);
            }
        }
        let (desired, current) = (args.desired_replicas, args.current_replicas);
        let lowest = lowest.map(|rec| rec.held(now, true));
        let highest = highest.map(|rec| rec.held(now, false));
        let up_held = lowest.filter(|rec| rec.replicas < desired);
        let down_held = highest.filter(|rec| rec.replicas > desired);
        let up = up_held.map_or(desired, |rec| rec.replicas);
        let down = down_held.map_or(desired, |rec| rec.replicas);
        let mut recommendation = current;
        let mut held_by = None;
        if recommendation < up {
            recommendation = up;
            held_by = up_held;
        }
        if recommendation > down {
            recommendation = down;
            held_by = down_held;
        }
        if held_by.is_none() && recommendation != desired {
            // The current replicas are within both windows: the window of the direction keeps them.
            held_by = if desired > current { up_held } else { down_held };
        }
        self.remember(old_sample_index, args.desired_replicas);
        self.derivation.stabilization = Some(Stabilization {
            behavior: true,
            up_window,
            down_window,
            held_by,
            extreme: if desired > current { lowest } else { highest },
            considered,
            result: recommendation,
        });
        let up = args.desired_replicas >= args.current_replicas;
        (recommendation, if up { SCALE_UP_STABILIZED } else { SCALE_DOWN_STABILIZED })
    }

    /// Uses the lowest or highest recommendation of the window of the direction in which the
    /// replicas would change.
    ///
    /// Upstream: horizontal.go, stabilizeRecommendationWithBehaviors, up to Kubernetes 1.20
    fn replace_recommendation_with_behaviors(&mut self, args: &NormalizationArg<'_>) -> (i32, Why) {
        let now = self.now;
        let (up_window, down_window) = (args.scale_up.window, args.scale_down.window);
        let up = args.desired_replicas >= args.current_replicas;
        let cutoff = now - if up { up_window } else { down_window };
        let obsolete_cutoff = now - up_window.max(down_window);
        let mut extreme: Option<TimestampedRecommendation> = None;
        let mut old_sample_index = None;
        let mut considered = 0;
        for (index, rec) in self.memory.recommendations.iter().enumerate() {
            if rec.timestamp > cutoff {
                considered += 1;
                let beyond = |known: TimestampedRecommendation| match up {
                    true => rec.recommendation < known.recommendation,
                    false => rec.recommendation > known.recommendation,
                };
                if extreme.is_none_or(beyond) {
                    extreme = Some(*rec);
                }
            }
            if rec.timestamp < obsolete_cutoff {
                old_sample_index = Some(index);
            }
        }
        let desired = args.desired_replicas;
        let extreme = extreme.map(|rec| rec.held(now, up));
        let held_by = extreme.filter(|rec| match up {
            true => rec.replicas < desired,
            false => rec.replicas > desired,
        });
        let recommendation = held_by.map_or(desired, |rec| rec.replicas);
        self.remember(old_sample_index, desired);
        self.derivation.stabilization = Some(Stabilization {
            behavior: true,
            up_window,
            down_window,
            held_by,
            extreme,
            considered,
            result: recommendation,
        });
        (recommendation, if up { SCALE_UP_STABILIZED } else { SCALE_DOWN_STABILIZED })
    }

    /// Records a change of the replicas; it replaces a change that no policy counts.
    ///
    /// Upstream: horizontal.go, storeScaleEvent
    pub(crate) fn store_scale_event(&mut self, prev_replicas: i32, new_replicas: i32) {
        let Some(behavior) = &self.hpa.spec.behavior else {
            return;
        };
        let up = new_replicas > prev_replicas;
        let (rules, events, replica_change) = if up {
            let change = new_replicas.wrapping_sub(prev_replicas);
            (&behavior.scale_up, &mut self.memory.up_events, change)
        } else {
            let change = prev_replicas.wrapping_sub(new_replicas);
            (&behavior.scale_down, &mut self.memory.down_events, change)
        };
        let longest_policy_period = get_longest_policy_period(rules.as_ref());
        mark_scale_events_outdated(events, longest_policy_period, self.now);
        let timestamp = self.now;
        let new = TimestampedScaleEvent { replica_change, timestamp, outdated: false };
        match events.iter_mut().rev().find(|event| event.outdated) {
            Some(old) => *old = new,
            None => events.push(new),
        }
    }
}

/// Upstream: horizontal.go, markScaleEventsOutdated
fn mark_scale_events_outdated(
    scale_events: &mut [TimestampedScaleEvent],
    longest_policy_period: i32,
    now: Time,
) {
    let cutoff = now - Span::from_secs(i64::from(longest_policy_period));
    for event in scale_events.iter_mut().filter(|event| event.timestamp < cutoff) {
        event.outdated = true;
    }
}

/// Upstream: horizontal.go, getLongestPolicyPeriod
pub(super) fn get_longest_policy_period(scaling_rules: Option<&ScalingRules>) -> i32 {
    let policies = scaling_rules.and_then(|rules| rules.policies.as_deref()).unwrap_or_default();
    policies.iter().map(|policy| policy.period_seconds).max().unwrap_or(0).max(0)
}

/// Upstream: horizontal.go, getReplicasChangePerPeriod
fn get_replicas_change_per_period(
    period_seconds: i32,
    scale_events: &[TimestampedScaleEvent],
    now: Time,
) -> i32 {
    let cutoff = now - Span::from_secs(i64::from(period_seconds));
    let within = scale_events.iter().filter(|event| event.timestamp > cutoff);
    within.fold(0, |sum: i32, event| sum.wrapping_add(event.replica_change))
}

/// Applies policies and limits, unless the replicas are kept.
///
/// Upstream: horizontal.go, convertDesiredReplicasWithBehaviorRate
fn convert_desired_replicas_with_behavior_rate(
    past: &Past<'_>,
    args: &NormalizationArg<'_>,
) -> Limited {
    let (current, desired) = (args.current_replicas, args.desired_replicas);
    let mut limits = Limits { rate: None, lower: None, upper: None, reason: "", result: desired };
    let mut why = DESIRED_WITHIN_RANGE;
    if desired > current {
        let (limit, rate) =
            calculate_scale_up_limit_with_scaling_rules(past, current, &args.scale_up);
        let scale_up_limit = limit.max(current);
        let (maximum_allowed, limiting) = if args.max_replicas > scale_up_limit {
            (scale_up_limit, SCALE_UP_LIMIT)
        } else {
            (args.max_replicas, TOO_MANY_REPLICAS)
        };
        limits.rate = Some(rate);
        limits.upper = Some(maximum_allowed);
        if desired > maximum_allowed {
            limits.result = maximum_allowed;
            why = limiting;
        }
    } else if desired < current {
        let (limit, rate) =
            calculate_scale_down_limit_with_behaviors(past, current, &args.scale_down);
        let scale_down_limit = limit.min(current);
        let (minimum_allowed, limiting) = if args.min_replicas < scale_down_limit {
            (scale_down_limit, SCALE_DOWN_LIMIT)
        } else {
            (args.min_replicas, TOO_FEW_REPLICAS)
        };
        limits.rate = Some(rate);
        limits.lower = Some(minimum_allowed);
        if desired < minimum_allowed {
            limits.result = minimum_allowed;
            why = limiting;
        }
    }
    limits.reason = why.0;
    Limited { limits, why }
}

/// Upstream: horizontal.go, calculateScaleUpLimitWithScalingRules
fn calculate_scale_up_limit_with_scaling_rules(
    past: &Past<'_>,
    current_replicas: i32,
    scaling_rules: &Direction<'_>,
) -> (i32, RateLimit) {
    let up = true;
    let policies = evaluate_policies(past, current_replicas, scaling_rules, up);
    let all = policies.iter().map(|policy| policy.proposed);
    let limit = match scaling_rules.select {
        SelectPolicy::Disabled => current_replicas,
        SelectPolicy::Min => all.fold(i32::MAX, i32::min),
        SelectPolicy::Max => all.fold(i32::MIN, i32::max),
    };
    let select = scaling_rules.select;
    (limit, RateLimit::Policies { up, select, policies, limit })
}

/// Upstream: horizontal.go, calculateScaleDownLimitWithBehaviors
fn calculate_scale_down_limit_with_behaviors(
    past: &Past<'_>,
    current_replicas: i32,
    scaling_rules: &Direction<'_>,
) -> (i32, RateLimit) {
    let up = false;
    let policies = evaluate_policies(past, current_replicas, scaling_rules, up);
    let all = policies.iter().map(|policy| policy.proposed);
    let limit = match scaling_rules.select {
        SelectPolicy::Disabled => current_replicas,
        SelectPolicy::Min => all.fold(i32::MIN, i32::max),
        SelectPolicy::Max => all.fold(i32::MAX, i32::min),
    };
    let select = scaling_rules.select;
    (limit, RateLimit::Policies { up, select, policies, limit })
}

/// The replicas that a policy allows, relative to the replicas at the start of its period.
///
/// Upstream: horizontal.go, calculateScaleUpLimitWithScalingRules and
/// calculateScaleDownLimitWithBehaviors
#[must_use]
pub fn policy_limit(policy: &ScalingPolicy, period_start: i32, up: bool) -> i32 {
    let (start, part) = (f64::from(period_start), f64::from(policy.value) / 100.0);
    match (policy.type_, up) {
        (ScalingPolicyType::Pods, true) => period_start.wrapping_add(policy.value),
        (ScalingPolicyType::Pods, false) => period_start.wrapping_sub(policy.value),
        // Upstream rounds up, because the replicas might otherwise never change.
        (ScalingPolicyType::Percent, true) => go_i32((start * (1.0 + part)).ceil()),
        (ScalingPolicyType::Percent, false) => go_i32(start * (1.0 - part)),
    }
}

/// The replicas that each policy of a direction allows, relative to the replicas at the start of
/// its period.
fn evaluate_policies(
    past: &Past<'_>,
    current_replicas: i32,
    scaling_rules: &Direction<'_>,
    up: bool,
) -> Vec<PolicyDerivation> {
    if scaling_rules.select == SelectPolicy::Disabled {
        return Vec::new();
    }
    let evaluate = |policy: &ScalingPolicy| {
        let period = policy.period_seconds;
        let changed = |events| get_replicas_change_per_period(period, events, past.now);
        let added = if up || past.netted { changed(&past.memory.up_events) } else { 0 };
        let removed = if !up || past.netted { changed(&past.memory.down_events) } else { 0 };
        let period_start = current_replicas.wrapping_sub(added).wrapping_add(removed);
        let proposed = policy_limit(policy, period_start, up);
        PolicyDerivation { policy: policy.clone(), added, removed, period_start, proposed }
    };
    scaling_rules.policies.iter().map(evaluate).collect()
}
