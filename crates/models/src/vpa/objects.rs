//! The objects of the cluster that the recommender reads and writes.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::api::{Checkpoint, ObjectName, VerticalPodAutoscaler};
use super::cluster::ContainerUsage;
use super::pod::{ObservedOom, Pod, observe_update};
use super::recommender::Write;
use super::time::GoTime;
use crate::api::CrossVersionObjectReference;
use crate::rules::VpaRules;
use crate::selector::Selector;

/// The objects of the cluster.
#[derive(Clone, Debug)]
pub struct Objects {
    /// All VPAs of the cluster, also those that another recommender handles.
    pub vpas: BTreeMap<ObjectName, VerticalPodAutoscaler>,
    /// All checkpoints, also those whose VPA was deleted.
    pub checkpoints: BTreeMap<ObjectName, Arc<Checkpoint>>,
    /// The pods that are not pending.
    pub pods: BTreeMap<ObjectName, Arc<Pod>>,
    /// The objects to which VPAs refer.
    pub targets: Vec<Target>,
    /// The response of the resource metrics API: usage, or an error.
    pub metrics: Result<Arc<Vec<PodMetrics>>, String>,
}

/// An object to which a VPA can refer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Target {
    /// The namespace of the target and its pods.
    pub namespace: Arc<str>,
    /// Version, kind and name.
    pub reference: CrossVersionObjectReference,
    /// The selector of its pods.
    pub selector: Selector,
    /// True if another controller owns it.
    pub has_parent: bool,
    /// The reason why the topmost controller can't be found, if any.
    pub error: Option<String>,
}

impl Target {
    /// Returns true if both describe the same object.
    #[must_use]
    pub(crate) fn is_same_object(&self, other: &Target) -> bool {
        self.namespace == other.namespace && self.reference == other.reference
    }
}

/// The usage of a pod.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PodMetrics {
    /// The pod that was measured.
    pub pod: ObjectName,
    /// The end of the measured window.
    pub timestamp: GoTime,
    /// The usage of the containers.
    pub containers: Vec<ContainerUsage>,
}

impl Default for Objects {
    fn default() -> Objects {
        Objects {
            vpas: BTreeMap::new(),
            checkpoints: BTreeMap::new(),
            pods: BTreeMap::new(),
            targets: Vec::new(),
            metrics: Ok(Arc::default()),
        }
    }
}

impl Objects {
    /// The target of a reference.
    #[must_use]
    pub fn target(
        &self,
        namespace: &str,
        reference: &CrossVersionObjectReference,
    ) -> Option<&Target> {
        let mut targets = self.targets.iter();
        targets.find(|it| &*it.namespace == namespace && it.reference == *reference)
    }

    /// Creates or replaces a pod. Returns the OOM kills that the update shows.
    pub fn set_pod(&mut self, pod: Pod, rules: &VpaRules) -> Vec<ObservedOom> {
        let pod = Arc::new(pod);
        let old = self.pods.insert(pod.name.clone(), pod.clone());
        old.map(|old| observe_update(&old, &pod, rules)).unwrap_or_default()
    }

    /// Creates a VPA, or replaces all of an existing one except its status.
    pub fn set_vpa(&mut self, mut vpa: VerticalPodAutoscaler) {
        if let Some(existing) = self.vpas.get_mut(&vpa.metadata.name) {
            vpa.status = std::mem::take(&mut existing.status);
        }
        self.vpas.insert(vpa.metadata.name.clone(), vpa);
    }

    /// Applies a request of the recommender.
    pub fn apply(&mut self, write: &Write) {
        match write {
            Write::Status { vpa, status } => {
                if let Some(vpa) = self.vpas.get_mut(vpa) {
                    vpa.status.clone_from(status);
                }
            }
            Write::Checkpoint { checkpoint, .. } => {
                let name = &checkpoint.metadata;
                match self.checkpoints.get_mut(name) {
                    Some(existing) => existing.clone_from(checkpoint),
                    None => drop(self.checkpoints.insert(name.clone(), checkpoint.clone())),
                }
            }
            Write::DeleteCheckpoint(name) => drop(self.checkpoints.remove(name)),
        }
    }
}
