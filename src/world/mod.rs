//! The world in which a controller works: pods, a workload and metric values over time, driven by
//! a scenario and by the sizes that the controller writes. It is the same for every engine.
//!
//! - [`World`] simulates it and says what changed, as plain [`Change`]s;
//! - [`Cluster`] stores changes as an API server does, for the model;
//! - [`Mirror`] has the pods of a real cluster in place of simulated ones, for their metrics.
//!
//! Deliberately no scheduler, no nodes and no quota: a pod comes up as the scenario says.

mod change;
mod cluster;
mod custom;
mod hpas;
mod mirror;
mod other_pods;
mod pods;
mod rollout;
mod signal;
mod simulation;
mod target;
mod telling;
#[cfg(test)]
mod tests;
mod update;
mod usage;

pub use change::{
    Change, ExternalMetricChange, Faults, ObjectMetricChange, PodMetricsChange, PodState, PodValue,
    PodsMetricChange, Sample, ScaleTarget,
};
pub use cluster::{Cluster, UnknownTemplate};
pub use hpas::{Admission, HpaAnswer, HpaOutcome};
pub use mirror::{Mirror, RealPod};
pub use simulation::{MAX_PODS, World};
