//! Why the model decided as it did: every number, clamp and window of one reconcile.
//!
//! Built on every tick, so it holds numbers and shared text only; sentences are made when somebody
//! asks ([`Derivation::summary`], [`Derivation::explain`], in `explain.rs`).

mod explain;
mod explain_metric;

use std::sync::Arc;

use crate::model::api::{CrossVersionObjectReference, ScalingPolicy, SelectPolicy, Text};
use crate::model::rules::Within;
use crate::model::time::{Span, Time};

/// Everything that led to one decision.
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
    /// Which way was taken.
    pub branch: Branch,
    /// One entry per metric, in the order of the spec. Empty if none was computed.
    pub metrics: Vec<MetricDerivation>,
    /// The winning metric, by its index.
    pub winner: Option<usize>,
    /// The largest proposal, before normalising.
    pub proposal: Option<i32>,
    /// What the windows of old releases said, once the size had been changed.
    pub forbidden: Option<Forbidden>,
    /// What the stabilization window made of it.
    pub stabilization: Option<Stabilization>,
    /// What policies and limits made of that.
    pub limits: Option<Limits>,
    /// The size that was decided on.
    pub desired_replicas: i32,
    /// Whether the size was changed.
    pub rescaled: bool,
    /// Why there was no decision.
    pub error: Option<Text>,
    /// What upstream leaves to chance in it, if something: then nobody can tell what it writes.
    pub chance: Option<&'static str>,
}

/// The way that a reconcile took.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Branch {
    /// The scale could not be read.
    #[default]
    NoScale,
    /// The size is zero and was not brought there by the controller.
    Disabled,
    /// The size is above the upper limit: no metric is looked at.
    AboveMax,
    /// The size is below the lower limit: no metric is looked at.
    BelowMin,
    /// Selector or metrics were unusable.
    NoMetrics,
    /// Metrics decide.
    Metrics,
}

/// One metric's proposal.
#[derive(Clone, PartialEq, Debug)]
pub struct MetricDerivation {
    /// `cpu`, `memory`, or the name of a custom or external metric.
    pub name: Arc<str>,
    /// What is measured.
    pub source: Source,
    /// The target.
    pub target: Target,
    /// The pods by group.
    pub pods: PodCounts,
    /// The sums and ratios; absent if the metric failed.
    pub usage: Option<Usage>,
    /// How the proposal came about.
    pub path: Path,
    /// The tolerances, downwards and upwards.
    pub tolerances: (f64, f64),
    /// How they are compared with a ratio.
    pub within: Within,
    /// The proposal; absent if the metric failed.
    pub proposal: Option<i32>,
    /// Why the metric failed.
    pub error: Option<Text>,
}

/// What a metric measures.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Source {
    /// All containers of the pods.
    Resource,
    /// One container of the pods, by its name.
    ContainerResource(Arc<str>),
    /// Whatever the pods say of themselves.
    Pods,
    /// One object.
    Object(Arc<CrossVersionObjectReference>),
    /// Something outside the cluster.
    External,
}

/// What a metric is compared with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Target {
    /// Percent of the request.
    Utilization(i32),
    /// Thousandths, averaged over the pods.
    AverageValue(i64),
    /// Thousandths, in all: for objects and external metrics.
    Value(i64),
    /// Neither was given.
    None,
}

/// How many pods fell into which group.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PodCounts {
    /// Counted.
    pub ready: u32,
    /// Not ready: their metrics do not count.
    pub unready: u32,
    /// Without a metric.
    pub missing: u32,
    /// Failed or terminating.
    pub ignored: u32,
    /// Metrics of pods that the controller does not know.
    pub unknown: u32,
}

/// Sums and ratios of one metric.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Usage {
    /// The sum of usage in thousandths; of objects and external metrics the value.
    pub total: i64,
    /// How many series that is the sum of, for external metrics.
    pub series: Option<u32>,
    /// `status.replicas` of the scale, where the total is spread over them: for average values of
    /// objects and external metrics.
    pub status_replicas: Option<i32>,
    /// The sum of requests in thousandths; 0 for average values.
    pub requests: i64,
    /// Percent of the request, for utilization.
    pub utilization: Option<i32>,
    /// The average in thousandths.
    pub average: i64,
    /// Usage to target.
    pub ratio: f64,
    /// Usage to target, with missing and unready pods filled in.
    pub second: Option<SecondRatio>,
}

/// The calculation with missing and unready pods filled in.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SecondRatio {
    /// Usage to target.
    pub ratio: f64,
    /// How many pods it is of.
    pub pods: u32,
    /// What a missing pod counts: its low value, nothing, or not at all.
    pub missing_as: Option<Filled>,
    /// Whether unready pods count as using nothing.
    pub unready_as_zero: bool,
    /// `ceil(ratio × pods)`.
    pub proposal: i32,
}

/// What a missing pod is taken to use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Filled {
    /// On the way down: this percentage of its request.
    Percent(i64),
    /// On the way down: exactly the target.
    Target,
    /// On the way up: nothing.
    Zero,
}

/// Which rule made the proposal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Path {
    /// The metric failed.
    Failed,
    /// The ratio is within the tolerance: no change.
    WithinTolerance,
    /// `ceil(ratio × ready pods)`.
    Ready,
    /// `ceil(ratio × size)`: old releases, for the value of objects and external metrics.
    Replicas,
    /// From a size of 0: `ceil(ratio)`.
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

/// The windows after a change of the size, up to Kubernetes 1.11.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Forbidden {
    /// When the size was changed.
    pub since: Time,
    /// The time that the windows are held against: that of the metric that won.
    pub timestamp: Time,
    /// Whether the size may not grow yet.
    pub up: bool,
    /// Whether it may not shrink yet.
    pub down: bool,
    /// Whether that kept it from changing.
    pub held: bool,
}

/// What the stabilization window did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stabilization {
    /// Whether `spec.behavior` is there: then there are windows in both directions.
    pub behavior: bool,
    /// The window for scaling up.
    pub up_window: Span,
    /// The window for scaling down.
    pub down_window: Span,
    /// The recommendation that held the proposal, if one did.
    pub held_by: Option<HeldBy>,
    /// What the window of the direction has of earlier recommendations: the highest if the size
    /// is to shrink (and always without `behavior`), the lowest if it is to grow.
    pub extreme: Option<HeldBy>,
    /// How many recommendations were in a window.
    pub considered: u32,
    /// The stabilized recommendation.
    pub result: i32,
}

/// An earlier recommendation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HeldBy {
    /// What was recommended.
    pub replicas: i32,
    /// When.
    pub at: Time,
    /// How long ago.
    pub age: Span,
    /// The window that it is in: the one for scaling up, or the one for scaling down.
    pub up: bool,
}

/// What policies and limits did.
#[derive(Clone, PartialEq, Debug)]
pub struct Limits {
    /// The bound that applies in the direction of the change, if there is a direction.
    pub rate: Option<RateLimit>,
    /// The least size that was allowed.
    pub lower: Option<i32>,
    /// The largest size that was allowed.
    pub upper: Option<i32>,
    /// The reason as in the condition ScalingLimited.
    pub reason: &'static str,
    /// The result.
    pub result: i32,
}

/// How fast the size may change.
#[derive(Clone, PartialEq, Debug)]
pub enum RateLimit {
    /// Without `behavior`: twice the size, at least four.
    Legacy(i32),
    /// The policies of one direction.
    Policies {
        /// Upwards, or else downwards.
        up: bool,
        /// Which policy wins.
        select: SelectPolicy,
        /// The policies with what they allow. Empty if the direction is disabled.
        policies: Vec<PolicyDerivation>,
        /// The bound.
        limit: i32,
    },
}

/// One policy's bound.
#[derive(Clone, PartialEq, Debug)]
pub struct PolicyDerivation {
    /// The policy.
    pub policy: ScalingPolicy,
    /// Pods added within its period.
    pub added: i32,
    /// Pods removed within its period.
    pub removed: i32,
    /// The size at the period's start.
    pub period_start: i32,
    /// The size that it allows.
    pub proposed: i32,
}
