//! The part of a scenario that has a VPA whose recommendations are applied to pods: the VPA and its
//! recommender, updater and admission controller. Usually, the scenario has an HPA as well.

use std::sync::Arc;

use super::resolved::{Scenario, TimelineEvent};
use super::vpa::VpaScenario;
use kube_autoscaler_models::rules::VpaRelease;
use kube_autoscaler_models::vpa::admission::Limits;
use kube_autoscaler_models::vpa::updater::UpdaterFlags;

/// A VPA whose recommendations are applied.
#[derive(Clone, PartialEq, Debug)]
pub struct WithVpa {
    /// The VPA, its recommender, their events and the expectations of recommendations. With an HPA,
    /// the workload has the names and limits of containers only, and there is no usage.
    pub recommender: Arc<VpaScenario>,
    /// The release of the recommender.
    pub release: VpaRelease,
    /// The flags of the updater.
    pub updater: UpdaterFlags,
}

impl WithVpa {
    /// The limits of the workload's containers.
    #[must_use]
    pub fn limits(&self) -> Limits {
        let containers = self.recommender.workload.containers.iter();
        containers.map(|container| (container.name.clone(), container.limits.clone())).collect()
    }
}

impl VpaScenario {
    /// The scenario without an HPA in which the updater and the admission controller apply the
    /// recommendations to the pods, without expectations. None: there are several VPAs.
    #[must_use]
    pub fn applied(&self, release: VpaRelease) -> Option<Scenario> {
        if self.vpas.len() > 1 {
            return None;
        }
        let is_of_recommender = |event: &TimelineEvent| {
            event.action.requires_vpa() || event.action.changes_containers()
        };
        let mut recommender = VpaScenario { expect: Vec::new(), ..self.clone() };
        recommender.timeline.retain(is_of_recommender);
        let file = Arc::make_mut(&mut recommender.file);
        // There is only one.
        file.vpa = file.vpa.take().or_else(|| file.vpas.pop());
        let mut world = self.world();
        world.timeline.retain(|event| !is_of_recommender(event));
        let (recommender, updater) = (Arc::new(recommender), UpdaterFlags::default());
        let notes = self.notes.clone();
        let vpa = Some(Arc::new(WithVpa { recommender, release, updater }));
        Some(Scenario { vpa, notes, ..world })
    }
}

impl Scenario {
    /// The scenario with another release of its VPA.
    #[must_use]
    pub fn with_vpa_release(&self, release: VpaRelease) -> Scenario {
        let with_release = |vpa: &Arc<WithVpa>| Arc::new(WithVpa { release, ..(**vpa).clone() });
        Scenario { vpa: self.vpa.as_ref().map(with_release), ..self.clone() }
    }
}
