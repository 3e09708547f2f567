//! A rolling update: the desired pods of each revision.
//!
//! Implements the Deployment controller, with ReplicaSets reduced to their replicas. It creates new
//! pods as long as the replicas and the surge allow, and deletes old ones as long as enough pods
//! are available, unready ones first. A change of the replicas during the update is distributed in
//! proportion. Everything is immediate: there is no `minReadySeconds` and no
//! `progressDeadlineSeconds`, and a new pod is available when it is ready.
//!
//! Upstream: pkg/controller/deployment/rolling.go and sync.go, and its util/deployment_util.go.

use kube_autoscaler_models::state::State;
use kube_lockstep_scenario::resolved::{Share, Surge};

/// The pods of one revision: a ReplicaSet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ReplicaSet {
    /// The pod template, counted from 0.
    pub revision: u32,
    /// Its desired pods.
    pub desired: usize,
}

/// The existing pods of one revision.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Pods {
    /// The number of ready pods.
    pub available: usize,
}

/// A rolling update in progress.
#[derive(Clone, Debug)]
pub(super) enum Update {
    /// A few pods at a time.
    Rolling(Rollout),
    /// One pod after another.
    OneByOne,
}

/// The replicas of all revisions, oldest first, during an update.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Rollout {
    pub replica_sets: Vec<ReplicaSet>,
    surge: Surge,
    /// The Deployment's replicas for which the revisions were calculated.
    replicas: usize,
}

/// Percentages are rounded up for the surge and down for unavailable pods. At least one of the two
/// is not zero.
///
/// Upstream: deployment_util.go, ResolveFenceposts
fn fenceposts(surge: Surge, replicas: usize) -> (usize, usize) {
    let part = |share: Share, up: bool| match share {
        Share::Pods(pods) => pods as usize,
        Share::Percent(percent) => {
            let hundredths = replicas as u64 * u64::from(percent);
            let pods = if up { hundredths.div_ceil(100) } else { hundredths / 100 };
            usize::try_from(pods).unwrap_or(usize::MAX)
        }
    };
    let (more, fewer) = (part(surge.max_surge, true), part(surge.max_unavailable, false));
    if more == 0 && fewer == 0 { (0, 1) } else { (more, fewer) }
}

impl Rollout {
    /// Starts the update to a new revision.
    pub(super) fn new(
        mut replica_sets: Vec<ReplicaSet>,
        revision: u32,
        surge: Surge,
        replicas: usize,
    ) -> Self {
        replica_sets.push(ReplicaSet { revision, desired: 0 });
        Rollout { replica_sets, surge, replicas }
    }

    /// Adds everything that its future depends on. Revisions are relative to the newest one.
    pub(super) fn add_to(&self, state: &mut State) {
        let Rollout { replica_sets, surge, replicas } = self;
        let newest = replica_sets.last().map_or(0, |set| set.revision);
        state.count(replica_sets.len());
        for ReplicaSet { revision, desired } in replica_sets {
            state.number(newest - revision);
            state.count(*desired);
        }
        for share in [surge.max_surge, surge.max_unavailable] {
            let (kind, amount) = match share {
                Share::Pods(pods) => (0, pods),
                Share::Percent(percent) => (1, percent),
            };
            state.number(kind);
            state.number(amount);
        }
        state.count(*replicas);
    }

    /// Returns true if only the newest revision has pods, and it has all replicas.
    pub(super) fn is_over(&self) -> bool {
        let (newest, old) = self.split();
        old.iter().all(|set| set.desired == 0) && newest.desired == self.replicas
    }

    fn split(&self) -> (ReplicaSet, &[ReplicaSet]) {
        match self.replica_sets.split_last() {
            Some((newest, old)) => (*newest, old),
            None => (ReplicaSet { revision: 0, desired: 0 }, &[]),
        }
    }

    fn all(&self) -> usize {
        self.replica_sets.iter().map(|set| set.desired).sum()
    }

    /// Distributes changed replicas in proportion.
    ///
    /// Upstream: sync.go, scale; deployment_util.go, GetReplicaSetProportion
    pub(super) fn scale(&mut self, replicas: usize) {
        if replicas == self.replicas {
            return;
        }
        let before = self.replicas + self.surge(self.replicas);
        let allowed = if replicas > 0 { replicas + self.surge(replicas) } else { 0 };
        self.replicas = replicas;
        let now = self.all();
        let up = allowed > now;
        let difference = allowed.abs_diff(now);
        // Larger ReplicaSets come first; of equal ones, the newest when scaling up, otherwise the
        // oldest.
        let mut order: Vec<usize> = (0..self.replica_sets.len()).collect();
        order.sort_by_key(|&index| {
            let age = if up { self.replica_sets.len() - index } else { index };
            (std::cmp::Reverse(self.replica_sets[index].desired), age)
        });
        order.retain(|&index| self.replica_sets[index].desired > 0);
        let mut left = difference;
        for &index in &order {
            let desired = &mut self.replica_sets[index].desired;
            // In 64 bits: the product of many pods exceeds the 32 bits of `usize` on WebAssembly.
            let doubled = *desired as u64 * allowed as u64 * 2;
            let share = (doubled + before as u64) / (before as u64 * 2).max(1);
            let share = usize::try_from(share).unwrap_or(usize::MAX);
            let part =
                if up { share.saturating_sub(*desired) } else { desired.saturating_sub(share) };
            let part = part.min(left);
            left -= part;
            *desired = if up { *desired + part } else { *desired - part };
        }
        // The first ReplicaSet gets the remainder of the rounding.
        if let Some(&first) = order.first() {
            let desired = &mut self.replica_sets[first].desired;
            *desired = if up { *desired + left } else { desired.saturating_sub(left) };
        }
    }

    fn surge(&self, replicas: usize) -> usize {
        fenceposts(self.surge, replicas).0
    }

    /// Takes one step of the controller: creates new pods, then deletes old ones. `pods` holds the
    /// existing pods of each revision. Returns false if there is nothing to do now.
    ///
    /// Upstream: rolling.go, rolloutRolling
    pub(super) fn proceed(&mut self, pods: &[Pods]) -> bool {
        self.grow() || self.shrink(pods)
    }

    /// Upstream: deployment_util.go, NewRSNewReplicas
    fn grow(&mut self) -> bool {
        let (all, replicas) = (self.all(), self.replicas);
        let most = replicas + self.surge(replicas);
        let Some(newest) = self.replica_sets.last_mut() else { return false };
        let before = newest.desired;
        if before > replicas {
            newest.desired = replicas;
        } else {
            newest.desired += most.saturating_sub(all).min(replicas - before);
        }
        newest.desired != before
    }

    /// Upstream: rolling.go, reconcileOldReplicaSets
    fn shrink(&mut self, pods: &[Pods]) -> bool {
        let before = self.all();
        let unavailable = fenceposts(self.surge, self.replicas).1.min(self.replicas);
        let least = self.replicas - unavailable;
        let Some((newest, old)) = self.replica_sets.split_last_mut() else { return false };
        let available_of = |index: usize| pods.get(index).map_or(0, |pods| pods.available);
        let new_available = available_of(old.len()).min(newest.desired);
        let mut unhealthy =
            before.saturating_sub(least).saturating_sub(newest.desired - new_available);
        if unhealthy == 0 {
            return false;
        }
        // Unready pods of old revisions are deleted first: their deletion reduces no availability.
        let mut available = new_available;
        for (index, set) in old.iter_mut().enumerate() {
            let ready = available_of(index).min(set.desired);
            let deleted = (set.desired - ready).min(unhealthy);
            set.desired -= deleted;
            unhealthy -= deleted;
            available += ready;
        }
        let mut spare = available.saturating_sub(least);
        for set in old {
            let deleted = set.desired.min(spare);
            set.desired -= deleted;
            spare -= deleted;
        }
        self.all() != before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rollout(replicas: usize, max_surge: Share, max_unavailable: Share) -> Rollout {
        let replica_sets = vec![ReplicaSet { revision: 0, desired: replicas }];
        Rollout::new(replica_sets, 1, Surge { max_surge, max_unavailable }, replicas)
    }

    fn replicas(rollout: &Rollout) -> Vec<usize> {
        rollout.replica_sets.iter().map(|set| set.desired).collect()
    }

    /// Runs steps until there is nothing to do, with the given available pods of each revision.
    fn run_steps(rollout: &mut Rollout, available: [usize; 2]) -> Vec<usize> {
        let pods = available.map(|available| Pods { available });
        while rollout.proceed(&pods) {}
        replicas(rollout)
    }

    #[test]
    fn surge_is_rounded_up_and_unavailable_down() {
        let surge = |max_surge, max_unavailable| Surge { max_surge, max_unavailable };
        let quarter = surge(Share::Percent(25), Share::Percent(25));
        assert_eq!(fenceposts(quarter, 10), (3, 2));
        assert_eq!(fenceposts(quarter, 1), (1, 0));
        assert_eq!(fenceposts(surge(Share::Pods(0), Share::Percent(25)), 3), (0, 1));
    }

    #[test]
    fn no_pod_is_deleted_before_another_is_ready() {
        let mut rollout = rollout(4, Share::Pods(1), Share::Pods(0));
        assert_eq!(run_steps(&mut rollout, [4, 0]), [4, 1]);
        assert_eq!(run_steps(&mut rollout, [4, 1]), [3, 2]);
        assert!(!rollout.is_over());
        assert_eq!(run_steps(&mut rollout, [3, 2]), [2, 3]);
        assert_eq!(run_steps(&mut rollout, [2, 3]), [1, 4]);
        assert_eq!(run_steps(&mut rollout, [1, 4]), [0, 4]);
        assert!(rollout.is_over());
    }

    #[test]
    fn without_surge_old_pods_are_deleted_first() {
        let mut rollout = rollout(10, Share::Pods(0), Share::Percent(25));
        assert_eq!(run_steps(&mut rollout, [10, 0]), [8, 2]);
    }

    #[test]
    fn old_pods_that_are_not_ready_are_deleted_immediately() {
        let mut rollout = rollout(4, Share::Pods(1), Share::Pods(1));
        // Three of four pods are ready: only the fourth may be deleted.
        assert_eq!(run_steps(&mut rollout, [3, 0]), [3, 2]);
    }

    #[test]
    fn a_change_of_replicas_is_distributed() {
        let mut rollout = rollout(10, Share::Pods(3), Share::Pods(2));
        assert_eq!(run_steps(&mut rollout, [10, 0]), [8, 5]);
        // As in the documentation of Deployments: 5 additional replicas are split into 3 and 2.
        rollout.scale(15);
        assert_eq!(replicas(&rollout), [11, 7]);
        rollout.scale(0);
        assert_eq!(replicas(&rollout), [0, 0]);
    }

    /// The parts are relative to the replicas and the surge before the change: 8 and 5 of 10 + 3
    /// become 15 and 10 of 20 + 5.
    #[test]
    fn the_surge_before_a_change_decides_its_distribution() {
        let mut rollout = rollout(10, Share::Percent(25), Share::Percent(25));
        assert_eq!(run_steps(&mut rollout, [10, 0]), [8, 5]);
        rollout.scale(20);
        assert_eq!(replicas(&rollout), [15, 10]);
    }
}
