//! The derivation of the model's decision: all numbers, limits and windows of one reconcile.
//!
//! It is built in each tick, so it contains only numbers and shared text; sentences are written on
//! request
//! ([`Derivation::summary`], [`Derivation::explain`], in `explain.rs`).

mod explain;
mod explain_metric;
mod limit;

use std::fmt::{self, Display};
use std::sync::Arc;

pub use self::limit::Limit;
use crate::api::{CrossVersionObjectReference, ScalingPolicy, SelectPolicy, Text};
use crate::rules::Within;
use crate::time::{Span, Time};

/// `1 pod`, `2 pods`.
fn count_of_pods(count: impl Display) -> String {
    count_of(count, "pod")
}

/// `1 replica`, `2 replicas`.
fn count_of_replicas(count: impl Display) -> String {
    count_of(count, "replica")
}

fn count_of(count: impl Display, one: &str) -> String {
    let count = count.to_string();
    let plural = if count == "1" { "" } else { "s" };
    format!("{count} {one}{plural}")
}

/// The derivation of one decision.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Derivation {
    /// When the reconcile began.
    pub at: Time,
    /// `spec.replicas` of the scale; absent if it could not be read.
    pub current_replicas: Option<i32>,
    /// The lower limit in force.
    pub min_replicas: i32,
    /// The upper limit.
    pub max_replicas: i32,
    /// The branch that the reconcile took.
    pub branch: Branch,
    /// One entry per metric, in the order of the spec. Empty if no metric was computed.
    pub metrics: Vec<MetricDerivation>,
    /// The index of the metric with the largest proposal.
    pub winner: Option<usize>,
    /// The largest proposal, before normalization.
    pub proposal: Option<i32>,
    /// The forbidden windows of old releases, after a first change of the replicas.
    pub forbidden: Option<Forbidden>,
    /// The effect of the stabilization window.
    pub stabilization: Option<Stabilization>,
    /// The effect of policies and limits.
    pub limits: Option<Limits>,
    /// The replicas that the reconcile wants after all limits: `status.desiredReplicas`.
    pub desired_replicas: i32,
    /// True if the replicas were changed.
    pub rescaled: bool,
    /// The reason if there was no decision.
    pub error: Option<Text>,
    /// Other changes during the reconcile, in order.
    pub during: Vec<ActionDuringReconcile>,
    /// The random part of upstream's result, if any. It can't be predicted.
    pub random_part: Option<&'static str>,
}

impl Derivation {
    /// Empties the derivation, but keeps its allocated memory. The derivation is large, so that
    /// replacing it with a new one takes longer.
    pub fn clear(&mut self) {
        let Derivation {
            at,
            current_replicas,
            min_replicas,
            max_replicas,
            branch,
            metrics,
            winner,
            proposal,
            forbidden,
            stabilization,
            limits,
            desired_replicas,
            rescaled,
            error,
            during,
            random_part,
        } = self;
        *at = Time::default();
        (*current_replicas, *min_replicas, *max_replicas) = (None, 0, 0);
        (*branch, *winner, *proposal) = (Branch::default(), None, None);
        (*forbidden, *stabilization, *limits) = (None, None, None);
        (*desired_replicas, *rescaled) = (0, false);
        (*error, *random_part) = (None, None);
        metrics.clear();
        during.clear();
    }
}

/// An action of the scenario during a reconcile.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ActionDuringReconcile {
    /// The request of the controller before it: `the 2nd getScale`.
    pub after: String,
    /// The action of the scenario: `scale 7`.
    pub action: String,
}

impl fmt::Display for ActionDuringReconcile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "during this reconcile, after {}: {}", self.after, self.action)
    }
}

/// The branch that a reconcile took.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Branch {
    /// The scale could not be read.
    #[default]
    NoScale,
    /// The controller's cache was older than its last write of the status.
    Skipped,
    /// The replicas are 0, and the controller did not scale to 0.
    Disabled,
    /// The replicas are above `maxReplicas`: metrics are ignored.
    AboveMax,
    /// The replicas are below `minReplicas`: metrics are ignored.
    BelowMin,
    /// The selector or the metrics were not usable.
    NoMetrics,
    /// The metrics determine the replicas.
    Metrics,
}

/// One metric's proposal.
#[derive(Clone, PartialEq, Debug)]
pub struct MetricDerivation {
    /// `cpu`, `memory`, or the name of a custom or external metric.
    pub name: Arc<str>,
    /// The source of the metric.
    pub source: Source,
    /// The value of the spec that the metric is compared with.
    pub target: Target,
    /// The pods by group.
    pub pods: PodCounts,
    /// The sums and ratios; absent if the metric failed.
    pub usage: Option<Usage>,
    /// The rule that determined the proposal.
    pub path: Path,
    /// The tolerances, downwards and upwards.
    pub tolerances: (f64, f64),
    /// The condition for a ratio to be within the tolerances.
    pub within: Within,
    /// The proposal; absent if the metric failed.
    pub proposal: Option<i32>,
    /// The reason if the metric failed.
    pub error: Option<Text>,
    /// The time spent waiting for slow responses.
    pub took: Span,
}

/// The source of a metric.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Source {
    /// All containers of the pods.
    Resource,
    /// One container of the pods, by its name.
    ContainerResource(Arc<str>),
    /// A custom metric of the pods.
    Pods,
    /// One object.
    Object(Arc<CrossVersionObjectReference>),
    /// An external metric.
    External,
}

/// The target of a metric.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Target {
    /// Percent of the request.
    Utilization(i32),
    /// Thousandths, averaged over the pods.
    AverageValue(i64),
    /// The total in thousandths, for objects and external metrics.
    Value(i64),
    /// The metric has no target.
    None,
}

/// The number of pods in each group.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PodCounts {
    /// Pods that count.
    pub ready: u32,
    /// Unready pods, whose metrics do not count.
    pub unready: u32,
    /// Pods without a metric.
    pub missing: u32,
    /// Failed or Terminating pods.
    pub ignored: u32,
    /// Metrics of unknown pods.
    pub unknown: u32,
}

/// Sums and ratios of one metric.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Usage {
    /// The sum of the usage in thousandths; for objects and external metrics, the value.
    pub total: i64,
    /// The number of series in the sum, for external metrics.
    pub series: Option<u32>,
    /// `status.replicas` of the scale, by which the total is divided: for average values of objects
    /// and external metrics.
    pub status_replicas: Option<i32>,
    /// The sum of requests in thousandths; 0 for average values.
    pub requests: i64,
    /// Percent of the request, for utilization.
    pub utilization: Option<i32>,
    /// The average in thousandths.
    pub average: i64,
    /// The ratio of usage to target.
    pub ratio: f64,
    /// The ratio of usage to target, with missing and unready pods filled in.
    pub second: Option<SecondRatio>,
}

/// The calculation with missing and unready pods filled in.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SecondRatio {
    /// The ratio of usage to target.
    pub ratio: f64,
    /// The number of pods in the ratio.
    pub pods: u32,
    /// The value of a missing pod, if missing pods count.
    pub missing_as: Option<Filled>,
    /// True if unready pods count as zero.
    pub unready_as_zero: bool,
    /// `ceil(ratio × pods)`.
    pub proposal: i32,
}

/// The assumed usage of a missing pod.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Filled {
    /// For scaling down: this percentage of its request.
    Percent(i64),
    /// For scaling down: the target.
    Target,
    /// For scaling up: zero.
    Zero,
}

/// The rule that determined the proposal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Path {
    /// The metric failed.
    Failed,
    /// The ratio is within the tolerance: no change.
    WithinTolerance,
    /// `ceil(ratio × ready pods)`.
    Ready,
    /// `ceil(ratio × replicas)`: old releases, for the value of objects and external metrics.
    Replicas,
    /// From zero replicas: `ceil(ratio)`.
    FromZero,
    /// `ceil(total / target)`: average values of objects and external metrics.
    Total,
    /// With filled-in pods the ratio is within the tolerance: no change.
    SecondWithinTolerance,
    /// With filled-in pods the direction would change: no change.
    SecondReversed,
    /// The number of pods alone would change the direction: no change.
    CountReversed,
    /// `ceil(second ratio × pods)`.
    Second,
}

/// The forbidden windows after a change of the replicas, up to Kubernetes 1.11.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Forbidden {
    /// When the replicas were changed.
    pub since: Time,
    /// The time that the windows are compared with: the time of the metric with the largest
    /// proposal.
    pub timestamp: Time,
    /// True if scaling up is still forbidden.
    pub up: bool,
    /// True if scaling down is still forbidden.
    pub down: bool,
    /// True if a window prevented a change.
    pub held: bool,
}

/// The effect of the stabilization window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stabilization {
    /// True if the HPA has `spec.behavior`, and thus windows in both directions.
    pub behavior: bool,
    /// The window for scaling up.
    pub up_window: Span,
    /// The window for scaling down.
    pub down_window: Span,
    /// The recommendation that replaced the proposal, if any.
    pub held_by: Option<HeldBy>,
    /// The extreme recommendation in the window of the direction: the highest for scaling down (and
    /// always without `behavior`), the lowest for scaling up.
    pub extreme: Option<HeldBy>,
    /// The number of recommendations in a window.
    pub considered: u32,
    /// The stabilized recommendation.
    pub result: i32,
}

/// An earlier recommendation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HeldBy {
    /// The recommended replicas.
    pub replicas: i32,
    /// The time of the recommendation.
    pub at: Time,
    /// The age of the recommendation.
    pub age: Span,
    /// The window that contains the recommendation: for scaling up or for scaling down.
    pub up: bool,
}

/// The effect of policies and limits.
#[derive(Clone, PartialEq, Debug)]
pub struct Limits {
    /// The bound that applies in the direction of the change, if there is a direction.
    pub rate: Option<RateLimit>,
    /// The smallest allowed number of replicas.
    pub lower: Option<i32>,
    /// The largest allowed number of replicas.
    pub upper: Option<i32>,
    /// The reason in the condition ScalingLimited.
    pub reason: &'static str,
    /// The number of replicas after the limits.
    pub result: i32,
}

/// The rate limit of a change.
#[derive(Clone, PartialEq, Debug)]
pub enum RateLimit {
    /// Without `behavior`: twice the replicas, and at least 4.
    Legacy(i32),
    /// The policies of one direction.
    Policies {
        /// True if the direction is upwards.
        up: bool,
        /// The choice among the policies.
        select: SelectPolicy,
        /// The policies with their limits. Empty if the direction is disabled.
        policies: Vec<PolicyDerivation>,
        /// The bound.
        limit: i32,
    },
}

/// The bound of one policy.
#[derive(Clone, PartialEq, Debug)]
pub struct PolicyDerivation {
    /// The policy of `spec.behavior`.
    pub policy: ScalingPolicy,
    /// Pods added within the period.
    pub added: i32,
    /// Pods removed within the period.
    pub removed: i32,
    /// The replicas at the start of the period.
    pub period_start: i32,
    /// The replicas that the policy allows.
    pub proposed: i32,
}
