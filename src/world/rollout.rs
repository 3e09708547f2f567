//! A rolling update: how many pods of each revision there are to be.
//!
//! What a Deployment's controller does, with its ReplicaSets reduced to their sizes: new pods come
//! up as long as there are no more pods than the size and the surge; old ones go, those first that
//! are not ready, as long as enough pods are available. A change of the size in the middle of it is
//! shared out in proportion. Everything happens at once: there is no `minReadySeconds`, no
//! `progressDeadlineSeconds`, and a new pod is available when it is ready.
//!
//! Upstream: pkg/controller/deployment/rolling.go and sync.go, and its util/deployment_util.go.

use crate::scenario::resolved::{Share, Surge};

/// The pods of one revision: a ReplicaSet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Size {
    /// The pod template, counted from 0.
    pub(super) revision: u32,
    /// How many of its pods there are to be.
    pub(super) wanted: usize,
}

/// The pods of one revision as they are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Pods {
    /// How many are ready.
    pub(super) available: usize,
}

/// A rolling update under way.
#[derive(Clone, Debug)]
pub(super) enum Update {
    /// A few pods at a time.
    Rolling(Rollout),
    /// One pod after another.
    OneByOne,
}

/// The sizes of all revisions, oldest first, while one takes the place of the others.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Rollout {
    pub(super) sizes: Vec<Size>,
    surge: Surge,
    /// The size of the Deployment that the sizes were made for.
    replicas: usize,
}

/// Of percentages, surge is rounded up and what is unavailable down; not both can be none.
///
/// Upstream: deployment_util.go, ResolveFenceposts
fn fenceposts(surge: Surge, replicas: usize) -> (usize, usize) {
    let part = |share: Share, up: bool| match share {
        Share::Pods(pods) => pods as usize,
        Share::Percent(percent) => {
            let hundredths = replicas * percent as usize;
            if up { hundredths.div_ceil(100) } else { hundredths / 100 }
        }
    };
    let (more, fewer) = (part(surge.max_surge, true), part(surge.max_unavailable, false));
    if more == 0 && fewer == 0 { (0, 1) } else { (more, fewer) }
}

impl Rollout {
    /// A new revision takes the place of what there is.
    pub(super) fn new(mut sizes: Vec<Size>, revision: u32, surge: Surge, replicas: usize) -> Self {
        sizes.push(Size { revision, wanted: 0 });
        Rollout { sizes, surge, replicas }
    }

    /// Whether only the newest revision is left.
    pub(super) fn is_over(&self) -> bool {
        let (newest, old) = self.split();
        old.iter().all(|size| size.wanted == 0) && newest.wanted == self.replicas
    }

    fn split(&self) -> (Size, &[Size]) {
        match self.sizes.split_last() {
            Some((newest, old)) => (*newest, old),
            None => (Size { revision: 0, wanted: 0 }, &[]),
        }
    }

    fn all(&self) -> usize {
        self.sizes.iter().map(|size| size.wanted).sum()
    }

    /// The size that somebody wants is another one: it is shared out in proportion.
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
        // The largest get the most: of equal ones the newest when it grows, the oldest else.
        let mut order: Vec<usize> = (0..self.sizes.len()).collect();
        order.sort_by_key(|&index| {
            let age = if up { self.sizes.len() - index } else { index };
            (std::cmp::Reverse(self.sizes[index].wanted), age)
        });
        order.retain(|&index| self.sizes[index].wanted > 0);
        let mut left = difference;
        for &index in &order {
            let size = &mut self.sizes[index].wanted;
            let share = (*size * allowed * 2 + before) / (before * 2).max(1);
            let part = if up { share.saturating_sub(*size) } else { size.saturating_sub(share) };
            let part = part.min(left);
            left -= part;
            *size = if up { *size + part } else { *size - part };
        }
        // What is left over by rounding goes to the first.
        if let Some(&first) = order.first() {
            let size = &mut self.sizes[first].wanted;
            *size = if up { *size + left } else { size.saturating_sub(left) };
        }
    }

    fn surge(&self, replicas: usize) -> usize {
        fenceposts(self.surge, replicas).0
    }

    /// One round of the controller: new pods first, then old ones go. `pods` tells of each
    /// revision what there is. False: nothing is to be done for now.
    ///
    /// Upstream: rolling.go, rolloutRolling
    pub(super) fn proceed(&mut self, pods: &[Pods]) -> bool {
        self.grow() || self.shrink(pods)
    }

    /// Upstream: deployment_util.go, NewRSNewReplicas
    fn grow(&mut self) -> bool {
        let (all, replicas) = (self.all(), self.replicas);
        let most = replicas + self.surge(replicas);
        let Some(newest) = self.sizes.last_mut() else { return false };
        let before = newest.wanted;
        if before > replicas {
            newest.wanted = replicas;
        } else {
            newest.wanted += most.saturating_sub(all).min(replicas - before);
        }
        newest.wanted != before
    }

    /// Upstream: rolling.go, reconcileOldReplicaSets
    fn shrink(&mut self, pods: &[Pods]) -> bool {
        let before = self.all();
        let unavailable = fenceposts(self.surge, self.replicas).1.min(self.replicas);
        let least = self.replicas - unavailable;
        let Some((newest, old)) = self.sizes.split_last_mut() else { return false };
        let available_of = |index: usize| pods.get(index).map_or(0, |pods| pods.available);
        let new_available = available_of(old.len()).min(newest.wanted);
        let mut unhealthy =
            before.saturating_sub(least).saturating_sub(newest.wanted - new_available);
        if unhealthy == 0 {
            return false;
        }
        // Those that are not ready don't hold anything up.
        let mut available = new_available;
        for (index, size) in old.iter_mut().enumerate() {
            let ready = available_of(index).min(size.wanted);
            let gone = (size.wanted - ready).min(unhealthy);
            size.wanted -= gone;
            unhealthy -= gone;
            available += ready;
        }
        let mut spare = available.saturating_sub(least);
        for size in old {
            let gone = size.wanted.min(spare);
            size.wanted -= gone;
            spare -= gone;
        }
        self.all() != before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rollout(replicas: usize, max_surge: Share, max_unavailable: Share) -> Rollout {
        let sizes = vec![Size { revision: 0, wanted: replicas }];
        Rollout::new(sizes, 1, Surge { max_surge, max_unavailable }, replicas)
    }

    fn sizes(rollout: &Rollout) -> Vec<usize> {
        rollout.sizes.iter().map(|size| size.wanted).collect()
    }

    /// Rounds until nothing more can be done, with so many available pods of each revision.
    fn update_derived(rollout: &mut Rollout, available: [usize; 2]) -> Vec<usize> {
        let pods = available.map(|available| Pods { available });
        while rollout.proceed(&pods) {}
        sizes(rollout)
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
        assert_eq!(update_derived(&mut rollout, [4, 0]), [4, 1]);
        assert_eq!(update_derived(&mut rollout, [4, 1]), [3, 2]);
        assert!(!rollout.is_over());
        assert_eq!(update_derived(&mut rollout, [3, 2]), [2, 3]);
        assert_eq!(update_derived(&mut rollout, [2, 3]), [1, 4]);
        assert_eq!(update_derived(&mut rollout, [1, 4]), [0, 4]);
        assert!(rollout.is_over());
    }

    #[test]
    fn without_surge_old_pods_go_first() {
        let mut rollout = rollout(10, Share::Pods(0), Share::Percent(25));
        assert_eq!(update_derived(&mut rollout, [10, 0]), [8, 2]);
    }

    #[test]
    fn old_pods_that_are_not_ready_are_deleted_immediately() {
        let mut rollout = rollout(4, Share::Pods(1), Share::Pods(1));
        // Three of four are ready: the fourth may go, no other.
        assert_eq!(update_derived(&mut rollout, [3, 0]), [3, 2]);
    }

    #[test]
    fn a_change_of_replicas_is_distributed() {
        let mut rollout = rollout(10, Share::Pods(3), Share::Pods(2));
        assert_eq!(update_derived(&mut rollout, [10, 0]), [8, 5]);
        // As in the documentation of Deployments: 5 more are 3 and 2.
        rollout.scale(15);
        assert_eq!(sizes(&rollout), [11, 7]);
        rollout.scale(0);
        assert_eq!(sizes(&rollout), [0, 0]);
    }
}
