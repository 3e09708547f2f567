//! The part of a scenario that has a VPA with an HPA: the VPA and its recommender, updater and
//! admission controller. Workload, metrics and time are those of the HPA.

use std::sync::Arc;

use super::raw::ScenarioFile;
use super::vpa::VpaScenario;
use kube_autoscaler_models::rules::VpaRelease;
use kube_autoscaler_models::vpa::admission::Limits;
use kube_autoscaler_models::vpa::updater::UpdaterFlags;

/// The VPA of a scenario with an HPA.
#[derive(Clone, PartialEq, Debug)]
pub struct WithVpa {
    /// The VPA, its recommender, their events and the expectations of recommendations. The workload
    /// has the names of containers only, and there is no usage.
    pub recommender: Arc<VpaScenario>,
    /// The release of the recommender.
    pub release: VpaRelease,
    /// The flags of the updater.
    pub updater: UpdaterFlags,
    /// The file, from which the VPA is written.
    pub(crate) file: ScenarioFile,
}

impl WithVpa {
    /// The limits of the workload's containers.
    #[must_use]
    pub fn limits(&self) -> Limits {
        let containers = self.recommender.workload.containers.iter();
        containers.map(|container| (container.name.clone(), container.limits.clone())).collect()
    }
}
