//! The workload as a whole: it is deleted, and created again.
//!
//! What it had written of it besides its size is forgotten, but for its pod template: whoever
//! creates it again has the newest manifest.

use super::simulation::World;
use crate::scenario::resolved::Action;

impl World {
    /// Whether the workload is deleted now.
    pub(super) fn is_target_gone(&self) -> bool {
        let gone = |&index: &usize| {
            matches!(self.scenario.timeline[index].action, Action::TargetDeleted(_))
        };
        self.disturbances.iter().any(gone)
    }

    /// Without their owner all pods are deleted, also those that have ended.
    pub(super) fn delete_target(&mut self) {
        self.replicas = 0;
        self.update = None;
        let (now, termination) = (self.now, self.scenario.workload.termination);
        let ordinals: Vec<u32> = self.pods.keys().copied().collect();
        for ordinal in ordinals {
            self.change(ordinal, |pod| {
                pod.orphan = true;
                pod.delete(now, termination);
            });
        }
    }

    /// Somebody creates it again, unless it is to stay deleted for another reason.
    pub(super) fn create_target(&mut self) {
        if !self.is_target_gone() {
            self.replicas = self.scenario.workload.replicas;
            self.published.person = true;
        }
    }
}
