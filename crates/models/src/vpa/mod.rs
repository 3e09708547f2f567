//! The reference model of the recommender of the Vertical Pod Autoscaler (VPA).
//!
//! [`Recommender::run_once`] predicts all requests of a run, the logged errors and the content of
//! the checkpoints from the objects of the cluster ([`Objects`]). All numbers have the same bits as
//! upstream's on amd64. The model has no clock: the time is an input.
//!
//! ```
//! use kube_autoscaler_models::rules::{VpaRelease, VpaRules};
//! use kube_autoscaler_models::time::Time;
//! use kube_autoscaler_models::vpa::{Session, Start};
//!
//! let (mut session, _log) = Session::open(&Start::default(), VpaRules::of(VpaRelease::NEWEST));
//! let stepped = session.step(&[], Time::from_secs(60));
//! assert_eq!(stepped.runs.len(), 1);
//! ```
//!
//! Upstream merges the histograms of pods with different labels, and applies the memory settings of
//! several VPAs to new pods, in a random order. If the result depends on the order,
//! [`Run::is_undetermined`] is set.

mod account;
pub mod admission;
mod aggregate;
mod api;
mod checkpoint;
mod cluster;
mod container;
mod context;
mod estimation;
mod estimator;
mod flags;
mod float;
mod histogram;
mod log;
mod merged;
mod objects;
mod pod;
mod recommendation;
mod recommender;
mod script;
mod session;
mod snapshot;
#[cfg(test)]
mod tests;
mod time;
mod update_reason;
pub mod updater;

pub use account::{
    ContainerName, CountedOom, FormerPeak, IgnoredSample, Occurrence, OomMemory, OomOutcome,
};
pub use aggregate::Resource;
pub use api::{
    ChangeRequirement, Checkpoint, CheckpointSpec, ContainerPolicy, ContainerRecommendation,
    ControlledValues, EvictionRequirement, ObjectName, Recommendation, RecommenderSelector,
    ResourceList, ResourcePolicy, ScalingMode, UpdateMode, UpdatePolicy, VerticalPodAutoscaler,
    VpaCondition, VpaMetadata, VpaSpec, VpaStatus,
};
pub use checkpoint::CheckpointStatus;
pub use cluster::ContainerUsage;
pub use container::OomKill;
pub use estimation::request_text;
pub use estimator::{Bound, Confidence, Estimation};
pub use flags::{RecommenderFlagError, RecommenderFlags};
pub use float::Amount;
pub use histogram::{BUCKETS, BucketShare, BucketWeight, HistogramCheckpoint, Scheme, Shares};
pub use log::LogLine;
pub use merged::Tolerances;
pub use objects::{Objects, PodMetrics, Target};
pub use pod::{
    ContainerState, ContainerStatus, Labels, ObservedOom, Pod, PodContainer, Terminated,
};
pub use recommender::{HistorySample, PodHistory, Recommender, Run, Samples, Write};
pub use script::{Script, ScriptStep};
pub use session::{ClusterChange, RunAt, Session, Start, Stepped};
pub use snapshot::Snapshot;
pub use time::GoTime;
pub use update_reason::{KeepReason, UpdateReason};
