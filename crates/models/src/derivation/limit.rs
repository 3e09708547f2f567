//! The limit that decided the replicas.

use super::{Branch, Derivation, Path, RateLimit};

/// Why the replicas do not follow the metrics.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Limit {
    /// The scale can't be read.
    NoScale,
    /// The controller's caches are out of date.
    StaleCache,
    /// Scaling is disabled, because the target has no replicas.
    NoReplicas,
    /// `maxReplicas`.
    Max,
    /// `minReplicas`.
    Min,
    /// The selector of the pods is invalid or ambiguous.
    Selector,
    /// Metrics failed, so the controller has no proposal.
    MetricsFailed,
    /// The delay between two changes in old releases.
    ForbiddenWindow,
    /// The policies for scaling up.
    ScaleUpPolicy,
    /// The limit for scaling up without policies.
    ScaleUpLimit,
    /// The policies for scaling down.
    ScaleDownPolicy,
    /// The stabilization window.
    Stabilization,
    /// The scale can't be written.
    ScaleNotWritten,
    /// The metric is within the tolerance.
    Tolerance,
    /// Pods that are not ready or have no metrics.
    Pods,
}

impl Limit {
    /// The name in reports: `stabilization`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Limit::NoScale => "no scale",
            Limit::StaleCache => "stale cache",
            Limit::NoReplicas => "0 replicas",
            Limit::Max => "max",
            Limit::Min => "min",
            Limit::Selector => "selector",
            Limit::MetricsFailed => "metrics failed",
            Limit::ForbiddenWindow => "forbidden window",
            Limit::ScaleUpPolicy => "scale-up policy",
            Limit::ScaleUpLimit => "scale-up limit",
            Limit::ScaleDownPolicy => "scale-down policy",
            Limit::Stabilization => "stabilization",
            Limit::ScaleNotWritten => "scale not written",
            Limit::Tolerance => "tolerance",
            Limit::Pods => "missing or unready pods",
        }
    }
}

impl Derivation {
    /// All limits that applied, in their order. The last one decided.
    pub fn applied_limits(&self) -> impl Iterator<Item = Limit> {
        let window = self.held_by_window().map(|_| Limit::Stabilization);
        window.into_iter().chain(self.limited_by().filter(move |limit| Some(*limit) != window))
    }

    /// Why the replicas do not follow the metrics.
    #[must_use]
    pub fn limited_by(&self) -> Option<Limit> {
        match self.branch {
            Branch::NoScale => return Some(Limit::NoScale),
            Branch::Skipped => return Some(Limit::StaleCache),
            Branch::Disabled => return Some(Limit::NoReplicas),
            Branch::AboveMax => return Some(Limit::Max),
            Branch::BelowMin => return Some(Limit::Min),
            // Before the query of any metric.
            Branch::NoMetrics if self.metrics.is_empty() => return Some(Limit::Selector),
            Branch::NoMetrics => return Some(Limit::MetricsFailed),
            Branch::Metrics => {}
        }
        if self.forbidden.is_some_and(|it| it.held) {
            return Some(Limit::ForbiddenWindow);
        }
        let stabilized = self.stabilized()?;
        let limits = self.limits.as_ref()?;
        if limits.result != stabilized {
            return Some(match (limits.reason, &limits.rate) {
                ("TooManyReplicas", _) => Limit::Max,
                ("TooFewReplicas", _) => Limit::Min,
                ("ScaleUpLimit", Some(RateLimit::Policies { .. })) => Limit::ScaleUpPolicy,
                ("ScaleUpLimit", _) => Limit::ScaleUpLimit,
                _ => Limit::ScaleDownPolicy,
            });
        }
        if self.proposal != Some(stabilized) {
            return Some(Limit::Stabilization);
        }
        if self.error.is_some() {
            return Some(Limit::ScaleNotWritten);
        }
        match self.metrics.get(self.winner?)?.path {
            // Within the tolerance, some metrics propose the current number of pods.
            Path::WithinTolerance => {
                (self.proposal == self.current_replicas).then_some(Limit::Tolerance)
            }
            Path::SecondWithinTolerance | Path::SecondReversed | Path::CountReversed => {
                Some(Limit::Pods)
            }
            Path::Failed
            | Path::Ready
            | Path::Replicas
            | Path::Second
            | Path::FromZero
            | Path::Total => None,
        }
    }
}
