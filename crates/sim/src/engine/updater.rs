//! The updater and the admission controller of the VPA as a kind of controller.

use std::collections::BTreeMap;

use super::ControllerKind;
use crate::world::{ManagedPods, UpdaterSettings};
use kube_autoscaler_models::api::{PodSpec, Requests};
use kube_autoscaler_models::rules::VpaRelease;
use kube_autoscaler_models::time::Time;
use kube_autoscaler_models::vpa::updater::PodUpdate;
use kube_lockstep_scenario::Scenario;

/// The updater of the Vertical Pod Autoscaler, with its admission controller.
#[derive(Clone, Copy, Debug)]
pub enum VpaUpdater {}

impl ControllerKind for VpaUpdater {
    type Scenario = Scenario;
    type Opening<'a> = &'a UpdaterSettings;
    type Release = VpaRelease;
    type Step = UpdaterStep;
    /// One answer for each group of pods.
    type Stepped = Vec<UpdaterAnswer>;
    /// Its log is not compared.
    type StartLog = ();
    /// A run takes no time.
    type Unfinished = ();
}

/// A run of the updater, or new pods. The pods of each VPA are independent of those of the others.
#[derive(Clone, Debug)]
pub enum UpdaterStep {
    /// The updater runs once at a time, which is not before the time of the previous run. The
    /// admission controller is asked about each pod, too.
    Run(Time, Vec<ManagedPods>),
    /// The admission controller is asked about each pod.
    Admit(Vec<ManagedPods>),
}

impl UpdaterStep {
    /// The pods, by VPA.
    #[must_use]
    pub fn pods(&self) -> &[ManagedPods] {
        match self {
            UpdaterStep::Run(_, pods) | UpdaterStep::Admit(pods) => pods,
        }
    }
}

/// The decisions of the updater and the admission controller about the pods of one VPA.
#[derive(Clone, Debug, Default)]
pub struct UpdaterAnswer {
    /// The evictions and updates that the updater requests, in order.
    pub updates: Vec<PodUpdate>,
    /// The requests with which running pods are updated in place, by the pod's ordinal.
    pub updated_requests: BTreeMap<u32, PodRequests>,
    /// The requests that the admission controller would give to each pod, in the order of the pods.
    pub admitted: Vec<PodRequests>,
}

/// The requests of each container of a pod.
pub type PodRequests = Vec<Requests>;

/// The requests of each container of a pod.
#[must_use]
pub fn requests_of(spec: &PodSpec) -> PodRequests {
    spec.containers.iter().map(|container| container.requests.clone()).collect()
}

/// The spec of a pod with other requests of its containers.
#[must_use]
pub fn with_requests(spec: &PodSpec, requests: &PodRequests) -> PodSpec {
    let mut spec = spec.clone();
    for (container, requests) in spec.containers.iter_mut().zip(requests) {
        container.requests.clone_from(requests);
    }
    spec
}

/// Returns true if all amounts are equal, in whatever form they are written.
#[must_use]
pub fn are_equal(one: &PodRequests, other: &PodRequests) -> bool {
    let equal = |one: &Requests, other: &Requests| {
        let mut pairs = one.iter().zip(other);
        one.len() == other.len()
            && pairs.all(|((name, amount), (other_name, other))| {
                name == other_name && amount.compare(other).is_eq()
            })
    };
    one.len() == other.len() && one.iter().zip(other).all(|(one, other)| equal(one, other))
}
