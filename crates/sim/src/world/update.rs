//! Rolling updates in the simulation: the pods that are created and deleted.
//!
//! [`Rollout`] implements the updates of Deployments; custom resources are treated as Deployments.
//! A StatefulSet replaces one pod at a time, the newest first: the pod is deleted, and
//! recreated when it no longer exists. The next pod follows when the new one is ready.

use std::sync::Arc;

use super::pods::SimPod;
use super::rollout::{Pods, ReplicaSet, Rollout, Update};
use super::simulation::{NewTemplate, WorldSimulation};
use kube_autoscaler_models::api::PodSpec;
use kube_lockstep_scenario::resolved::{Container, RollingUpdate};

impl WorldSimulation {
    /// Begins the update to a new pod template.
    pub(super) fn begin_update(&mut self, update: &RollingUpdate) {
        let replicas = self.desired();
        let before = match self.update.take() {
            Some(Update::Rolling(rollout)) => rollout.replica_sets,
            _ => vec![ReplicaSet { revision: self.templates.revision(), desired: replicas }],
        };
        let revision = self.templates.revision() + 1;
        let name: Arc<str> = format!("t{revision}").into();
        let spec = match update.containers.as_slice() {
            [] => self.templates.newest.clone(),
            containers => Arc::new(PodSpec {
                containers: containers.iter().map(Container::to_api).collect(),
                ..(*self.scenario.workload.spec).clone()
            }),
        };
        self.templates.newest = spec.clone();
        self.templates.specs.push(spec.clone());
        self.templates.names.push(name.clone());
        self.touched.templates.push(NewTemplate { name, spec });
        self.update = Some(match self.scenario.workload.kind.as_str() {
            "StatefulSet" => Update::OneByOne,
            _ => {
                let surge = update.surge();
                Update::Rolling(Rollout::new(before, revision, surge, replicas))
            }
        });
    }

    /// The workload's controller acts during an update, until there is nothing to do at this time.
    pub(super) fn act_in_update(&mut self) {
        // The replicas may have changed since the last step of the update.
        loop {
            self.follow();
            let more = match self.update.take() {
                None => {
                    self.act_and_follow();
                    false
                }
                Some(Update::Rolling(mut rollout)) => {
                    // The ReplicaSets of a deleted Deployment only replace their pods.
                    let is_scaled = !self.is_target_deleted();
                    if is_scaled {
                        rollout.scale(self.desired());
                    }
                    let more = self.fit(&rollout)
                        || is_scaled && rollout.proceed(&self.available(&rollout));
                    let goes_on = more || !is_scaled || !rollout.is_over();
                    self.update = goes_on.then_some(Update::Rolling(rollout));
                    more || self.update.is_none()
                }
                Some(Update::OneByOne) => {
                    let more = self.replace_one();
                    self.update = (more || self.is_unfinished()).then_some(Update::OneByOne);
                    more || self.update.is_none()
                }
            };
            if !more {
                return;
            }
        }
    }

    /// The available pods of each revision.
    fn available(&self, rollout: &Rollout) -> Vec<Pods> {
        let mut pods = vec![Pods::default(); rollout.replica_sets.len()];
        for pod in self.pods.values().filter(|pod| pod.active() && pod.serving()) {
            let index = rollout.replica_sets.iter().position(|set| set.revision == pod.revision);
            if let Some(pods) = index.and_then(|index| pods.get_mut(index)) {
                pods.available += 1;
            }
        }
        pods
    }

    /// Creates and deletes pods until each revision has its desired pods. Returns true if there was
    /// something to do.
    fn fit(&mut self, rollout: &Rollout) -> bool {
        let mut acted = false;
        for set in &rollout.replica_sets {
            let counts = |pod: &&SimPod| pod.active() && pod.revision == set.revision;
            let active = self.pods.values().filter(counts).count();
            if active > set.desired {
                self.delete_all(self.first_to_delete(active - set.desired, Some(set.revision)));
                acted = true;
            }
            for _ in active..set.desired {
                if !self.has_room() {
                    break;
                }
                self.create(set.revision);
                acted = true;
            }
        }
        acted
    }

    fn delete_all(&mut self, ordinals: Vec<u32>) {
        let (now, termination) = (self.now, self.scenario.workload.termination);
        for ordinal in ordinals {
            self.change(ordinal, |pod| pod.delete(now, termination));
        }
    }

    /// One step of a StatefulSet's update. Returns true if there was something to do.
    fn replace_one(&mut self) -> bool {
        let desired = self.desired();
        if self.active > desired {
            self.delete_all(self.first_to_delete(self.active - desired, None));
            return true;
        }
        if self.active + self.leaving() < desired {
            self.create(self.templates.revision());
            return true;
        }
        // The newest old pod is deleted, unless a newer pod is not ready or still terminating.
        for (ordinal, pod) in
            self.pods.iter().rev().filter(|(_, pod)| !pod.deleted && pod.ended.is_none())
        {
            if pod.deletion.is_none() && pod.revision != self.templates.revision() {
                let ordinal = *ordinal;
                self.delete_all(vec![ordinal]);
                return true;
            }
            if !pod.active() || !pod.serving() {
                return false;
            }
        }
        false
    }

    /// Returns true if pods of an older revision exist or pods are missing.
    fn is_unfinished(&self) -> bool {
        let newest = self.templates.revision();
        let old = |pod: &SimPod| !pod.deleted && pod.ended.is_none() && pod.revision != newest;
        self.pods.values().any(old) || self.active < self.desired()
    }
}
