//! Scenarios of the recommender of the Vertical Pod Autoscaler: files with `vpa` in place of `hpa`.
//!
//! `raw` has the types that serde reads, and `resolve::vpa` checks them. [`VpaScenario`] is the
//! result.

mod expectation;
mod expected_checkpoint;
pub mod manifest;
pub mod raw;
mod releases;
mod world;

use std::collections::BTreeMap;
use std::sync::Arc;

pub(super) use self::expectation::ExpectedAmountText;
pub use self::expectation::{
    ExpectedAmount, ExpectedAmounts, ExpectedVpaCondition, VpaExpectation, VpaValue,
};
pub(super) use self::expected_checkpoint::ApiTime;
pub use self::expected_checkpoint::{ExpectedCheckpoint, ExpectedHistogram};
pub use self::raw::{CheckpointManifest, History, VpaWorkload};
pub use self::releases::VpaReleaseRange;
use super::raw::ScenarioFile;
use super::releases::for_others;
use super::resolved::{Metrics, TimelineEvent};
use crate::diagnostic::Diagnostic;
use crate::skip_reason::SkipReason;
use kube_autoscaler_models::api::CrossVersionObjectReference;
use kube_autoscaler_models::rules::VpaRelease;
use kube_autoscaler_models::time::Time;
use kube_autoscaler_models::vpa::{
    Checkpoint, GoTime, ObjectName, RecommenderFlags, VerticalPodAutoscaler,
};

/// A scenario of the recommender.
#[derive(Clone, PartialEq, Debug)]
pub struct VpaScenario {
    /// The path below the fixtures without extension, or the file.
    pub id: String,
    /// The file, for messages.
    pub path: String,
    /// The line of the first VPA.
    pub line: usize,
    /// The requirement, in one sentence.
    pub requirement: String,
    /// A link to the source of the requirement; may be empty.
    pub upstream: String,
    /// The ids of the rules that the scenario shows.
    pub covers: Vec<String>,
    /// The releases that the requirement applies to.
    pub releases: VpaReleaseRange,
    /// The hash of everything that affects a run.
    pub hash: String,
    /// Notes on how the file was read.
    pub notes: Vec<Diagnostic>,
    /// The time of t=0.
    pub start: GoTime,
    /// The flags that are set, by their upstream names.
    pub flags: BTreeMap<String, String>,
    pub parsed_flags: RecommenderFlags,
    /// The VPAs at the start, in the order of the file.
    pub vpas: Vec<VerticalPodAutoscaler>,
    /// The checkpoints at the start.
    pub checkpoints: Vec<Checkpoint>,
    /// The namespace of the workload.
    pub namespace: Arc<str>,
    /// The workload: the target of the first VPA.
    pub target: CrossVersionObjectReference,
    /// The pods of the workload.
    pub workload: VpaWorkload,
    /// The usage; only resources and sampling.
    pub metrics: Metrics,
    /// The samples before the start.
    pub history: Option<History>,
    /// The events, sorted by time.
    pub timeline: Vec<TimelineEvent>,
    /// The end.
    pub until: Time,
    /// The expectations.
    pub expect: Vec<VpaExpectation>,
    /// The file, from which the VPA is written.
    pub file: Arc<ScenarioFile>,
}

impl VpaScenario {
    /// The names of the VPAs at the start.
    pub fn names(&self) -> impl Iterator<Item = &ObjectName> {
        self.vpas.iter().map(|vpa| &vpa.metadata.name)
    }

    /// The reason why a release does not support the scenario, if it does not.
    #[must_use]
    pub fn unsupported_on(&self, release: VpaRelease) -> Option<SkipReason> {
        if !self.releases.contains(release) {
            return Some(format!("the scenario is for {}", self.releases).into());
        }
        let later =
            |flag: &&String| VpaRelease::introducing(flag).is_some_and(|since| release < since);
        let flag = self.flags.keys().find(later)?;
        let since = VpaRelease::introducing(flag)?;
        Some(format!("the recommender has no flag {flag} before {since}").into())
    }

    /// Returns true if the scenario has expectations, and none of them applies to a release.
    #[must_use]
    pub fn all_expectations_are_for_others(&self, release: VpaRelease) -> bool {
        !self.expect.is_empty() && self.expectations_on(release).next().is_none()
    }

    /// Returns a message if the scenario is not for a release, or if it has expectations, none of
    /// which applies to the release. The message names a release to choose instead.
    #[must_use]
    pub fn unchecked_on(&self, release: VpaRelease) -> Option<SkipReason> {
        let (subject, releases): (_, Vec<VpaRelease>) = if !self.releases.contains(release) {
            let named = VpaRelease::supported().filter(|it| self.releases.contains(*it));
            ("the scenario is", named.collect())
        } else if self.all_expectations_are_for_others(release) {
            ("all its expectations are", self.checked().collect())
        } else {
            return None;
        };
        let names: Vec<String> = releases.iter().map(ToString::to_string).collect();
        Some(for_others(subject, &names.join(", "), releases.last().copied(), release))
    }

    /// The releases to which an expectation applies.
    pub fn checked(&self) -> impl Iterator<Item = VpaRelease> {
        VpaRelease::supported().filter(|it| self.expectations_on(*it).next().is_some())
    }

    /// Returns true if an expectation names the content of a checkpoint.
    #[must_use]
    pub fn expects_contents(&self) -> bool {
        self.expect.iter().any(|expected| !expected.checkpoint_status.is_empty())
    }

    /// The expectations that apply to a release.
    pub fn expectations_on(&self, release: VpaRelease) -> impl Iterator<Item = &VpaExpectation> {
        self.expect.iter().filter(move |expected| self.expects(expected, release))
    }

    /// Returns true if an expectation of the scenario applies to a release.
    #[must_use]
    pub fn expects(&self, expected: &VpaExpectation, release: VpaRelease) -> bool {
        self.releases.contains(release) && expected.releases.contains(release)
    }
}
