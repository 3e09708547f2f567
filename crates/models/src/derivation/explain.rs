//! A [`Derivation`] as text: in one line for tables and reports, or step by step. `explain_metric`
//! explains single metrics.

use std::cmp::Ordering;

use super::{
    ActionDuringReconcile, Branch, Derivation, Forbidden, HeldBy, Limits, MetricDerivation,
    PolicyDerivation, RateLimit, Stabilization, count_of_pods, count_of_replicas,
};
use crate::api::{ScalingPolicyType, SelectPolicy};
use crate::time::Span;

impl Derivation {
    /// The derivation in one line: `resource cpu 40% of 50% (ratio 0.8, 7 ready) -> 6; stabilize: 7
    /// recommended at t=15s, 45s old, window 5m -> 7`.
    #[must_use]
    pub fn summary(&self) -> String {
        let mut parts: Vec<String> =
            self.during.iter().map(ActionDuringReconcile::summary).collect();
        let current = self.current_replicas.unwrap_or(0);
        match self.branch {
            Branch::NoScale => parts.push("scale not read".to_owned()),
            Branch::Skipped => parts.push("skipped: the cache is stale".to_owned()),
            Branch::Disabled => parts.push("0 replicas -> disabled".to_owned()),
            Branch::AboveMax => {
                parts.push(format!("{current} replicas above max {0} -> {0}", self.max_replicas));
            }
            Branch::BelowMin => {
                parts.push(format!("{current} replicas below min {0} -> {0}", self.min_replicas));
            }
            Branch::NoMetrics | Branch::Metrics => {
                parts.extend(self.metrics.iter().map(MetricDerivation::summary));
            }
        }
        if let Some(stabilization) = &self.stabilization {
            if self.proposal != Some(stabilization.result) {
                parts.push(stabilization.summary());
            } else {
                parts.extend(stabilization.held_nothing(current));
            }
        }
        if let Some(limits) = &self.limits
            && self.stabilized() != Some(limits.result)
        {
            parts.push(self.limits_summary(limits));
        }
        parts.extend(self.forbidden.filter(|it| it.held).map(Forbidden::summary));
        if let Some(error) = &self.error {
            parts.push(format!("error: {error}"));
        }
        parts.join("; ")
    }

    fn limits_summary(&self, limits: &Limits) -> String {
        let bound = match limits.reason {
            "TooManyReplicas" => format!("max {}", self.max_replicas),
            "TooFewReplicas" => format!("min {}", self.min_replicas),
            "ScaleUpLimit" => format!("scale-up limit {}", limits.upper.unwrap_or(0)),
            _ => format!("scale-down limit {}", limits.lower.unwrap_or(0)),
        };
        format!("limit: {bound} -> {}", limits.result)
    }

    /// The recommendation before the limits: the proposal after stabilization.
    pub(super) fn stabilized(&self) -> Option<i32> {
        self.stabilization.map(|it| it.result).or(self.proposal)
    }

    /// The recommendation after stabilization, if it differs from the proposal.
    #[must_use]
    pub fn held_by_window(&self) -> Option<i32> {
        let held = self.stabilization?.result;
        (self.branch == Branch::Metrics && self.proposal != Some(held)).then_some(held)
    }

    /// All steps, each in one or more sentences.
    #[must_use]
    pub fn explain(&self) -> Vec<String> {
        let mut steps: Vec<String> =
            self.during.iter().map(ActionDuringReconcile::explain).collect();
        let Some(current) = self.current_replicas else {
            let error = self.error.as_ref().map_or("", |error| error.as_str());
            if self.branch == Branch::Skipped {
                steps.push(format!(
                    "The reconcile is skipped, because the controller's cache of HPAs is older \
                     than its last write of the status ({error})."
                ));
                return steps;
            }
            steps.push(format!("The target's scale can't be read ({error}). The reconcile ends."));
            return steps;
        };
        let (min, max) = (self.min_replicas, self.max_replicas);
        steps.push(format!(
            "The target has {}; {min} to {max} are allowed.",
            count_of_replicas(current)
        ));
        match self.branch {
            Branch::Disabled => steps.push(
                "Scaling is disabled: the target has 0 replicas, and the controller did not scale \
                 it to 0."
                    .to_owned(),
            ),
            Branch::AboveMax => steps.push(format!(
                "{current} is more than maxReplicas: {max} replicas are desired, regardless of \
                 metrics, policies and windows."
            )),
            Branch::BelowMin => steps.push(format!(
                "{current} is less than minReplicas: {min} replicas are desired, regardless of \
                 metrics, policies and windows."
            )),
            _ => {}
        }
        for metric in &self.metrics {
            metric.explain(current, &mut steps);
        }
        if self.metrics.len() > 1
            && let Some(winner) = self.winner.and_then(|index| self.metrics.get(index))
        {
            let proposal = self.proposal.unwrap_or(0);
            steps.push(format!("The largest proposal wins: {proposal}, from {}.", winner.title()));
        }
        if self.branch == Branch::Metrics && self.winner.is_none() {
            steps.push("No metric proposes more than 0, so the proposal is 0.".to_owned());
        }
        if let Some(stabilization) = &self.stabilization {
            steps.push(stabilization.explain(self.proposal.unwrap_or(0), current));
        }
        if let Some(limits) = &self.limits {
            self.explain_limits(limits, current, &mut steps);
        }
        steps.extend(self.forbidden.map(Forbidden::explain));
        if let Some(error) = &self.error {
            steps.push(format!("The reconcile ends with an error: {error}."));
        }
        steps.push(if self.rescaled {
            format!(
                "The target is scaled from {current} to {}.",
                count_of_replicas(self.desired_replicas)
            )
        } else {
            format!("The target stays at {}.", count_of_replicas(current))
        });
        steps
    }

    fn explain_limits(&self, limits: &Limits, current: i32, steps: &mut Vec<String>) {
        match &limits.rate {
            Some(RateLimit::Legacy(limit)) => steps.push(format!(
                "Without behavior, {} may increase to at most {limit} (twice as many, or 4 if \
                 that is more).",
                count_of_replicas(current)
            )),
            Some(RateLimit::Policies { up, select, policies, limit }) => {
                explain_policies(*up, *select, policies, *limit, steps);
            }
            None => {}
        }
        let stabilized = self.stabilized().unwrap_or(limits.result);
        if stabilized != limits.result {
            let why = match limits.reason {
                "TooManyReplicas" => format!("maxReplicas is {}", self.max_replicas),
                "TooFewReplicas" => format!("minReplicas is {}", self.min_replicas),
                "ScaleUpLimit" => "the rate of scaling up is limited".to_owned(),
                _ => "the rate of scaling down is limited".to_owned(),
            };
            steps.push(format!(
                "{stabilized} becomes {}: {why} ({}).",
                limits.result, limits.reason
            ));
        }
    }
}

impl ActionDuringReconcile {
    fn summary(&self) -> String {
        format!("meanwhile, after {}: {}", self.after, self.action)
    }

    fn explain(&self) -> String {
        let ActionDuringReconcile { after, action } = self;
        format!("During this reconcile, after {after}, this action happens: {action}.")
    }
}

impl Forbidden {
    fn summary(self) -> String {
        let windows = match (self.up, self.down) {
            (true, true) => "upscale and downscale windows forbid",
            (true, false) => "upscale window forbids",
            _ => "downscale window forbids",
        };
        format!("{windows} a change since t={}", self.since.since_start())
    }

    fn explain(self) -> String {
        let rule = match (self.up, self.down) {
            (true, true) => "neither scaling up nor scaling down is allowed",
            (true, false) => "scaling up is not allowed",
            (false, true) => "scaling down is not allowed",
            (false, false) => "scaling up and down is allowed",
        };
        format!(
            "The target was last scaled at t={}. At the time of the metric, t={}, {rule}.",
            self.since.since_start(),
            self.timestamp.since_start()
        )
    }
}

impl Stabilization {
    fn summary(&self) -> String {
        match self.held_by {
            Some(HeldBy { replicas, at, age, up }) => {
                let window = if up { self.up_window } else { self.down_window };
                let (at, result) = (at.since_start(), self.result);
                format!(
                    "stabilize: {replicas} recommended at t={at}, {age} old, window {window} -> \
                     {result}"
                )
            }
            None => format!("stabilize -> {}", self.result),
        }
    }

    /// Explains a window that had no effect on the change, because none of its recommendations is
    /// beyond the proposal.
    fn held_nothing(&self, current: i32) -> Option<String> {
        let (window, which) = match self.result.cmp(&current) {
            Ordering::Less => (self.down_window, "highest"),
            Ordering::Greater if self.behavior => (self.up_window, "lowest"),
            Ordering::Greater | Ordering::Equal => return None,
        };
        if window <= Span::ZERO {
            return None;
        }
        Some(match self.extreme {
            Some(HeldBy { replicas, at, .. }) => {
                let at = at.since_start();
                format!("window {window} has no effect: its {which} is {replicas}, from t={at}")
            }
            None => format!("window {window} has no effect: it is empty"),
        })
    }

    fn explain(&self, proposal: i32, current: i32) -> String {
        let windows = if self.behavior {
            format!("windows {} up, {} down", self.up_window, self.down_window)
        } else {
            format!("window {}", self.down_window)
        };
        let (seen, result) = (self.considered, self.result);
        let plural = if seen == 1 { "" } else { "s" };
        let begin =
            format!("Stabilization ({windows}) considers {seen} earlier recommendation{plural}");
        match self.held_by {
            Some(HeldBy { replicas, at, age, up }) => {
                let (which, at) = (if up { "lowest" } else { "highest" }, at.since_start());
                let stays = if result == current && result != replicas {
                    format!(", so the target stays at {current}")
                } else {
                    String::new()
                };
                format!(
                    "{begin}; the {which} is {replicas}, from t={at}, {age} ago{stays}: {proposal} \
                     becomes {result}."
                )
            }
            None if result == proposal => {
                let extreme = self.extreme.map(|HeldBy { replicas, at, age, up }| {
                    let (which, at) = (if up { "lowest" } else { "highest" }, at.since_start());
                    format!("; the {which} is {replicas}, from t={at}, {age} ago")
                });
                format!("{begin}{}, and keeps {proposal}.", extreme.unwrap_or_default())
            }
            None => format!("{begin}: {proposal} becomes {result}."),
        }
    }
}

fn explain_policies(
    up: bool,
    select: SelectPolicy,
    policies: &[PolicyDerivation],
    limit: i32,
    steps: &mut Vec<String>,
) {
    let direction = if up { "up" } else { "down" };
    if select == SelectPolicy::Disabled {
        steps.push(format!("Scaling {direction} is disabled: the replicas stay at {limit}."));
        return;
    }
    for PolicyDerivation { policy, added, removed, period_start, proposed } in policies {
        let change = match policy.type_ {
            ScalingPolicyType::Pods => count_of_pods(policy.value),
            ScalingPolicyType::Percent => format!("{} percent", policy.value),
        };
        steps.push(format!(
            "Policy: {change} per {} s. Pods in this period: {added} added, {removed} removed, so \
             it began with {period_start}; scaling {direction} to {proposed} is allowed.",
            policy.period_seconds
        ));
    }
    if policies.len() > 1 {
        let which = if select == SelectPolicy::Min { "smallest" } else { "largest" };
        steps.push(format!("The policy that allows the {which} change applies: {limit}."));
    }
}
