//! Rolling updates in the simulation: which pods go and which come.
//!
//! A Deployment's are in [`Rollout`]; custom resources are taken for Deployments. A StatefulSet
//! replaces one pod at a time, the newest first: it is deleted, and when it is gone, another comes;
//! when that is ready, it is the next one's turn.

use std::sync::Arc;

use super::pods::SimPod;
use super::rollout::{Pods, Rollout, Size, Update};
use super::simulation::{NewTemplate, Simulation};
use crate::model::api::PodSpec;
use crate::scenario::resolved::{Container, RollingUpdate};

impl Simulation {
    /// The pod template changes.
    pub(super) fn begin_update(&mut self, update: &RollingUpdate) {
        let replicas = self.wanted();
        let before = match self.update.take() {
            Some(Update::Rolling(rollout)) => rollout.sizes,
            _ => vec![Size { revision: self.templates.revision(), wanted: replicas }],
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

    /// The workload's controller acts in the middle of an update, as often as there is anything to
    /// do at this instant.
    pub(super) fn act_in_update(&mut self) {
        // What was wanted when the update was last looked at may have changed.
        loop {
            self.follow();
            let more = match self.update.take() {
                None => {
                    self.act_and_follow();
                    false
                }
                Some(Update::Rolling(mut rollout)) => {
                    rollout.scale(self.wanted());
                    let more = self.fit(&rollout) || rollout.proceed(&self.available(&rollout));
                    self.update = (more || !rollout.is_over()).then_some(Update::Rolling(rollout));
                    more || self.update.is_none()
                }
                Some(Update::OneByOne) => {
                    let more = self.replace_one();
                    self.update = (more || self.is_old()).then_some(Update::OneByOne);
                    more || self.update.is_none()
                }
            };
            if !more {
                return;
            }
        }
    }

    /// What there is of each revision.
    fn available(&self, rollout: &Rollout) -> Vec<Pods> {
        let mut pods = vec![Pods::default(); rollout.sizes.len()];
        for pod in self.pods.values().filter(|pod| pod.active() && pod.serving()) {
            let of = rollout.sizes.iter().position(|size| size.revision == pod.revision);
            if let Some(pods) = of.and_then(|index| pods.get_mut(index)) {
                pods.available += 1;
            }
        }
        pods
    }

    /// Creates and deletes pods until there are as many of each revision as are wanted. True: there
    /// was something to do.
    fn fit(&mut self, rollout: &Rollout) -> bool {
        let mut acted = false;
        for size in &rollout.sizes {
            let of = |pod: &&SimPod| pod.active() && pod.revision == size.revision;
            let there = self.pods.values().filter(of).count();
            if there > size.wanted {
                self.delete_all(self.first_to_delete(there - size.wanted, Some(size.revision)));
                acted = true;
            }
            for _ in there..size.wanted {
                if !self.has_room() {
                    break;
                }
                self.create(size.revision);
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

    /// One step of a StatefulSet's update. True: there was something to do.
    fn replace_one(&mut self) -> bool {
        let wanted = self.wanted();
        if self.active > wanted {
            self.delete_all(self.first_to_delete(self.active - wanted, None));
            return true;
        }
        if self.active + self.leaving() < wanted {
            self.create(self.templates.revision());
            return true;
        }
        // The newest that is old goes, unless a newer one is not ready yet or still going.
        for (ordinal, pod) in
            self.pods.iter().rev().filter(|(_, pod)| !pod.gone && pod.ended.is_none())
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

    /// Whether there are pods of an older revision.
    fn is_old(&self) -> bool {
        let newest = self.templates.revision();
        let old = |pod: &SimPod| !pod.gone && pod.ended.is_none() && pod.revision != newest;
        self.pods.values().any(old) || self.active < self.wanted()
    }
}
