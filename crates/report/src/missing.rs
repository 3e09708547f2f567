//! The replicas that are missing at a time, by cause.

use serde::Serialize;

use kube_autoscaler_models::derivation::{Derivation, Path};
use kube_autoscaler_models::time::Span;

/// A cause of missing replicas.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Cause {
    Maximum,
    SyncPeriod,
    Target,
    Tolerance,
    Window,
    Policy,
    StartUp,
    Other,
}

/// Missing pod-hours by cause. The causes add up to all missing pod-hours.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MissingByCause {
    /// The need is above `maxReplicas`.
    pub maximum: f64,
    /// A scale-up policy limits the change, or without `behavior` the doubling.
    pub policy: f64,
    /// A stabilization window, or a delay of an old release, holds the replicas.
    pub window: f64,
    /// Replicas without a ready pod.
    pub start_up: f64,
    /// The need has risen since the last reconcile.
    pub sync_period: f64,
    /// The targets of the setting are higher than those of the reference.
    pub target: f64,
    /// The controller's metric is within the tolerance.
    pub tolerance: f64,
    /// The controller proposes less than the load needs for other reasons, or its request failed.
    pub other: f64,
}

impl MissingByCause {
    /// The sum, by cause.
    pub(super) fn plus(self, other: MissingByCause) -> MissingByCause {
        MissingByCause {
            maximum: self.maximum + other.maximum,
            policy: self.policy + other.policy,
            window: self.window + other.window,
            start_up: self.start_up + other.start_up,
            sync_period: self.sync_period + other.sync_period,
            target: self.target + other.target,
            tolerance: self.tolerance + other.tolerance,
            other: self.other + other.other,
        }
    }
}

/// Replicas that are missing at a time, by [`Cause`].
pub(super) type MissingReplicas = [i32; 8];

/// Replicas that are missing, integrated over time, exactly.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MissingTime {
    /// In pods × nanoseconds, by [`Cause`].
    by_cause: [i128; 8],
}

impl MissingTime {
    /// Adds replicas that are missing for a time.
    pub(super) fn add(&mut self, missing: &MissingReplicas, lasts: Span) {
        for (sum, replicas) in self.by_cause.iter_mut().zip(missing) {
            *sum += i128::from(*replicas) * i128::from(lasts.0);
        }
    }

    /// All missing pod-hours.
    pub(super) fn pod_hours(&self) -> f64 {
        pod_hours(self.by_cause.iter().sum())
    }

    /// The missing pod-hours by cause.
    pub(super) fn by_cause(&self) -> MissingByCause {
        let hours = |cause: Cause| pod_hours(self.by_cause[cause as usize]);
        MissingByCause {
            maximum: hours(Cause::Maximum),
            policy: hours(Cause::Policy),
            window: hours(Cause::Window),
            start_up: hours(Cause::StartUp),
            sync_period: hours(Cause::SyncPeriod),
            target: hours(Cause::Target),
            tolerance: hours(Cause::Tolerance),
            other: hours(Cause::Other),
        }
    }
}

/// Pod-hours, of pods × nanoseconds.
pub(super) fn pod_hours(pod_time: i128) -> f64 {
    pod_time as f64 / 3.6e12
}

/// The limits of the replicas on the way from the load to the ready pods. If several HPAs scale the
/// target, each limit is the highest one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Decided {
    /// `maxReplicas`.
    pub(super) max_replicas: Option<i32>,
    /// The last reconcile; None before the first one.
    pub(super) last: Option<Reconciled>,
}

/// The steps of a reconcile. None: the reconcile does not get there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reconciled {
    /// The need at this time.
    pub(super) needed: Option<i32>,
    /// The need at this time, with the targets of the setting.
    pub(super) needed_for_own_targets: Option<i32>,
    proposal: Option<i32>,
    is_within_tolerance: bool,
    stabilized: Option<i32>,
    desired: Option<i32>,
}

impl Reconciled {
    /// The steps of a reconcile, whose needs are added later.
    pub(super) fn new(derivation: &Derivation) -> Reconciled {
        let winner = derivation.winner.and_then(|index| derivation.metrics.get(index));
        let winner = winner.or(match &derivation.metrics[..] {
            [only] => Some(only),
            _ => None,
        });
        let is_within_tolerance = winner.is_some_and(|metric| {
            matches!(metric.path, Path::WithinTolerance | Path::SecondWithinTolerance)
        });
        let proposal = derivation.proposal;
        let held = derivation.forbidden.filter(|forbidden| forbidden.held);
        let held = held.and(derivation.current_replicas);
        let stabilized = derivation.stabilization.map(|it| it.result);
        Reconciled {
            needed: None,
            needed_for_own_targets: None,
            proposal,
            is_within_tolerance,
            stabilized: proposal.and(held.or(stabilized).or(proposal)),
            desired: proposal.map(|_| derivation.desired_replicas),
        }
    }

    fn join(self, other: Reconciled) -> Reconciled {
        Reconciled {
            needed: self.needed.max(other.needed),
            needed_for_own_targets: self.needed_for_own_targets.max(other.needed_for_own_targets),
            proposal: self.proposal.max(other.proposal),
            is_within_tolerance: match self.proposal >= other.proposal {
                true => self.is_within_tolerance,
                false => other.is_within_tolerance,
            },
            stabilized: self.stabilized.max(other.stabilized),
            desired: self.desired.max(other.desired),
        }
    }
}

/// The replicas of a workload at a time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Supply {
    /// `spec.replicas`.
    pub(super) replicas: i32,
    /// Pods that serve the load.
    pub(super) serving: i32,
}

impl Decided {
    /// The limits of two HPAs of the same target.
    pub(super) fn join(self, other: Decided) -> Decided {
        Decided {
            max_replicas: self.max_replicas.max(other.max_replicas),
            last: match (self.last, other.last) {
                (Some(one), Some(other)) => Some(one.join(other)),
                (one, other) => one.or(other),
            },
        }
    }

    /// The missing replicas by cause. Each cause has the replicas between its limit and the limit
    /// before it: those above `maxReplicas` first.
    pub(super) fn missing(&self, needed: i32, supply: Supply) -> MissingReplicas {
        let Supply { replicas, serving } = supply;
        let mut missing = MissingReplicas::default();
        let mut top = needed;
        let mut step = |cause: Cause, limit: Option<i32>, least: i32| {
            let bottom = limit.map_or(top, |limit| limit.max(least)).min(top);
            missing[cause as usize] += top - bottom;
            top = bottom;
        };
        // The replicas that exist are not missing because of a limit.
        let existing = replicas.max(serving);
        step(Cause::Maximum, self.max_replicas, existing);
        match self.last {
            None => step(Cause::SyncPeriod, Some(replicas), existing),
            Some(last) => {
                let low = match last.is_within_tolerance {
                    true => Cause::Tolerance,
                    false => Cause::Other,
                };
                step(Cause::SyncPeriod, last.needed, existing);
                step(Cause::Target, last.needed_for_own_targets, existing);
                step(low, last.proposal.or(Some(replicas)), existing);
                step(Cause::Window, last.stabilized, existing);
                step(Cause::Policy, last.desired, existing);
                step(Cause::Other, Some(replicas), existing);
            }
        }
        step(Cause::StartUp, Some(serving), serving);
        missing
    }
}
