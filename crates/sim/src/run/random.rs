//! Outcomes that upstream leaves to chance. A run of a scenario ends before them, because there is
//! nothing to compare.

use std::fmt;

use serde::{Deserialize, Serialize};

use kube_autoscaler_models::time::Time;

/// The reason why a run of a scenario ended early: upstream leaves its further course to chance.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RandomOutcome {
    /// The kind of the cause.
    pub cause: RandomCause,
    /// The cause, in a sentence without a period.
    pub why: String,
}

impl RandomOutcome {
    /// The outcome of a cause; `why` is a sentence without a period.
    pub(crate) fn new(cause: RandomCause, why: impl Into<String>) -> RandomOutcome {
        RandomOutcome { cause, why: why.into() }
    }

    /// An action happened in another place than for the order that the controller chose.
    pub(super) fn selector_order(at: Time) -> RandomOutcome {
        let why = format!(
            "an action at {at} happens after a request whose number is random: it depends on the \
             order in which the controller names the HPAs that select the same pods; choose \
             another request (`after`, `nth`) for the action"
        );
        RandomOutcome::new(RandomCause::SelectorOrder, why)
    }
}

impl fmt::Display for RandomOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}

/// The kind of cause that leaves an outcome to chance. The fuzzer counts the scenarios of each.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RandomCause {
    /// An action changes an HPA, or restarts the controller, while a reconcile waits.
    ActionDuringReconcile,
    /// A reconcile is due while another one waits.
    ReconcileDuringReconcile,
    /// The caches of the controller receive a change while a reconcile waits, or exactly when one
    /// is due.
    CacheUpdate,
    /// The informer of the controller resyncs exactly when a reconcile is due while another one
    /// waits, or when a reconcile begins that waits before it retries a write of the scale.
    Resync,
    /// The recommender or the updater of a VPA runs while a reconcile waits.
    VpaDuringReconcile,
    /// A recommendation depends on the order in which upstream merges histograms, applies the
    /// settings of VPAs or lists containers.
    RecommendationOrder,
    /// An action happens after a request whose number depends on the random order in which the
    /// controller names HPAs that select the same pods.
    SelectorOrder,
}

impl RandomCause {
    /// All causes.
    pub const ALL: [RandomCause; 7] = [
        RandomCause::ActionDuringReconcile,
        RandomCause::ReconcileDuringReconcile,
        RandomCause::CacheUpdate,
        RandomCause::Resync,
        RandomCause::VpaDuringReconcile,
        RandomCause::RecommendationOrder,
        RandomCause::SelectorOrder,
    ];

    /// The name in results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            RandomCause::ActionDuringReconcile => "action-during-reconcile",
            RandomCause::ReconcileDuringReconcile => "reconcile-during-reconcile",
            RandomCause::CacheUpdate => "cache-update",
            RandomCause::Resync => "resync",
            RandomCause::VpaDuringReconcile => "vpa-during-reconcile",
            RandomCause::RecommendationOrder => "recommendation-order",
            RandomCause::SelectorOrder => "selector-order",
        }
    }
}

impl fmt::Display for RandomCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_the_words_of_json() {
        for cause in RandomCause::ALL {
            assert_eq!(serde_json::json!(cause), cause.name());
        }
    }
}
