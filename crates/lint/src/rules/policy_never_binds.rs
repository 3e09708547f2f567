//! Policies that never limit anything.

use crate::context::{Context, HpaWithTarget};
use crate::{Evidence, Found, Level, Rule};
use kube_autoscaler_models::api::{
    Behavior, HpaSpec, ScalingPolicy, ScalingPolicyType, ScalingRules, SelectPolicy,
};
use kube_autoscaler_models::hpa::{policy_limit, set_defaults};

pub(super) const RULE: Rule = Rule {
    id: "policy-never-binds",
    level: Level::Note,
    summary: "A policy in `behavior` has no effect, because another one always decides.",
    reason: "With selectPolicy Max, which is the default, the policy that allows the largest \
             change decides; with Min, the one that allows the smallest. With Disabled, no policy \
             applies.",
    link: "https://kubernetes.io/docs/concepts/workloads/autoscaling/\
           horizontal-pod-autoscale/#scaling-policies",
    check,
};

/// The largest maxReplicas and value of a policy that are checked. Far above it, upstream's numbers
/// overflow.
const MOST: i32 = 100_000;

/// The rules of one direction.
struct Direction<'a> {
    /// `scaleUp` or `scaleDown`.
    name: &'static str,
    is_up: bool,
    policies: &'a [ScalingPolicy],
    select: SelectPolicy,
    min: i32,
    max: i32,
}

fn check(context: &Context<'_>) -> Vec<Found> {
    let directions = context.hpas.iter().flat_map(|hpa| {
        let behavior = hpa.hpa.hpa.behavior.as_ref();
        behavior.into_iter().flat_map(move |it| directions(hpa, it)).map(move |it| (hpa, it))
    });
    directions.flat_map(|(hpa, direction)| direction.findings(hpa)).collect()
}

/// The directions whose policies the manifest sets.
fn directions<'a>(hpa: &HpaWithTarget<'_>, behavior: &'a Behavior) -> Vec<Direction<'a>> {
    let mut defaults = HpaSpec { behavior: Some(Behavior::default()), ..HpaSpec::default() };
    set_defaults(&mut defaults);
    let defaults = defaults.behavior.unwrap_or_default();
    let (min, max) = (hpa.hpa.hpa.min_replicas, hpa.hpa.hpa.max_replicas);
    let direction =
        |name, is_up, rules: &'a Option<ScalingRules>, default: Option<ScalingRules>| {
            let rules = rules.as_ref()?;
            // In a cluster, defaults look as if they had been written.
            let is_default = rules.policies == default?.policies;
            let policies = rules.policies.as_deref().filter(|_| !is_default)?;
            let select = rules.select_policy.unwrap_or(SelectPolicy::Max);
            Some(Direction { name, is_up, policies, select, min, max })
        };
    let up = direction("scaleUp", true, &behavior.scale_up, defaults.scale_up);
    let down = direction("scaleDown", false, &behavior.scale_down, defaults.scale_down);
    [up, down].into_iter().flatten().collect()
}

impl Direction<'_> {
    fn findings(&self, hpa: &HpaWithTarget<'_>) -> Vec<Found> {
        let finding = |index: usize| {
            let own = text(&self.policies[index]);
            let (why, hint) = match self.select {
                SelectPolicy::Disabled => ("selectPolicy is Disabled".to_owned(), "remove it"),
                SelectPolicy::Max | SelectPolicy::Min => self.why(index)?,
            };
            let what = format!("the policy of {own} has no effect: {why}");
            let path = format!("spec.behavior.{}.policies.{index}", self.name);
            Some(Found::at(hpa.object(), &path, Evidence::Derived, what).hint(hint))
        };
        (0..self.policies.len()).filter_map(finding).collect()
    }

    /// Why a policy has no effect, and the solution. None: it can have one.
    fn why(&self, index: usize) -> Option<(String, &'static str)> {
        if self.max > MOST || self.policies.iter().any(|policy| policy.value > MOST) {
            return None;
        }
        let own = &self.policies[index];
        let mut others = self.policies.iter().enumerate().filter(|(other, _)| *other != index);
        // Of two policies with the same effect, the first one is kept.
        let (_, other) = others.find(|(other, it)| {
            self.replaces(it, own) && (*other < index || !self.replaces(own, it))
        })?;
        let (select, limit, hint) = match self.select {
            SelectPolicy::Min => ("Min", "at most", "remove it"),
            _ => ("Max", "at least", "remove it, or set `selectPolicy: Min` for the strictest one"),
        };
        let why = format!(
            "up to {} replicas, the policy of {} always allows {limit} as much, and selectPolicy \
             is {select}",
            self.max,
            text(other),
        );
        Some((why, hint))
    }

    /// Returns true if a policy decides in place of another one, whatever the replicas were at the
    /// starts of their periods, if only the HPA changes them.
    fn replaces(&self, decisive: &ScalingPolicy, other: &ScalingPolicy) -> bool {
        // The replicas that a policy allows, within the limits of the spec.
        let limit = |policy: &ScalingPolicy, start: i32| {
            policy_limit(policy, start, self.is_up).clamp(self.min, self.max)
        };
        let is_largest_limit = self.is_up != (self.select == SelectPolicy::Min);
        let decides =
            |one: i32, other: i32| if is_largest_limit { one >= other } else { one <= other };
        // A new workload can have fewer replicas than the minimum.
        let (fewest, most) = (self.min.min(1), self.max);
        if decisive.period_seconds == other.period_seconds {
            let decides_from = |start| decides(limit(decisive, start), limit(other, start));
            return (fewest..=most).all(decides_from);
        }
        // The periods can start with different replicas. Limits grow with them.
        let ends = [fewest, most];
        let decides_from =
            |start| ends.iter().all(|it| decides(limit(decisive, start), limit(other, *it)));
        ends.into_iter().all(decides_from)
    }
}

/// `2 pods per 60s`.
fn text(policy: &ScalingPolicy) -> String {
    let unit = match policy.type_ {
        ScalingPolicyType::Pods if policy.value == 1 => " pod",
        ScalingPolicyType::Pods => " pods",
        ScalingPolicyType::Percent => "%",
    };
    format!("{}{unit} per {}s", policy.value, policy.period_seconds)
}
