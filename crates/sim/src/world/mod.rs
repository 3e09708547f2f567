//! The simulated cluster around a controller: pods, a workload and metric values over time, driven
//! by a scenario and by the replicas that the controller writes. All engines use it.
//!
//! - [`World`] runs the simulation and returns the changes as plain [`Change`]s;
//! - [`Cluster`] stores changes as an API server does, for the model;
//! - [`Mirror`] replaces the simulated pods by the pods of a real cluster, to serve their metrics.
//!
//! Deliberately absent: a scheduler and nodes. Pods start at the times that the scenario sets.

mod applied_vpa;
pub(crate) mod backlog;
mod change;
mod cluster;
mod custom;
mod driver;
mod held_requests;
mod hpas;
mod mirror;
mod other_namespaces;
mod other_pods;
mod pods;
mod publish;
pub mod recommender;
mod recommender_view;
mod requests_in_use;
mod rollout;
mod seen_pods;
mod signal;
mod simulation;
mod state;
#[cfg(test)]
mod tests;
mod update;
mod usage;

pub use applied_vpa::{
    AdmittedPod, ManagedPods, PodChange, PodChangeKind, UpdatedPod, UpdaterReport, UpdaterSettings,
};
pub use change::{
    Change, ExternalMetricChange, Faults, ObjectMetricChange, PodMetricsChange, PodState, PodValue,
    PodsMetricChange, Sample, Samples, ScaleTarget,
};
pub use cluster::{Cluster, UnknownTemplate};
pub use driver::World;
pub use held_requests::{HoldingPod, RequestChange};
pub use hpas::Admission;
pub use mirror::{Mirror, RealPod};
pub use requests_in_use::{InUse, RequestsInUse, ResourceInUse, pod_request};
pub use signal::{signal_at, signal_changes};
pub use simulation::{MAX_PODS, ServingChange};
