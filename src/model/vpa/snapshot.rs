//! The state of a cluster after a run of the recommender, as far as users see it.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::api::{Checkpoint, ObjectName, VpaStatus};
use super::log::LogLine;
use super::objects::Objects;
use super::session::RunAt;
use crate::model::time::Time;

/// The state after a run.
#[derive(Clone, PartialEq, Debug)]
pub struct Snapshot {
    /// The time of the run since the start.
    pub at: Time,
    /// The status of each existing VPA.
    pub statuses: BTreeMap<ObjectName, VpaStatus>,
    /// The number of samples of each existing checkpoint.
    pub checkpoints: BTreeMap<Arc<str>, i64>,
    /// The contents of the checkpoints, if [`Snapshot::with_contents`] adds them.
    pub contents: BTreeMap<Arc<str>, Arc<Checkpoint>>,
    /// The errors that the run logged.
    pub log: Vec<LogLine>,
}

impl Snapshot {
    /// The state after a run.
    #[must_use]
    pub fn of(objects: &Objects, run: &RunAt) -> Snapshot {
        let statuses = objects.vpas.iter();
        let statuses = statuses.map(|(name, vpa)| (name.clone(), VpaStatus::clone(&vpa.status)));
        let checkpoints = objects
            .checkpoints
            .iter()
            .map(|(name, checkpoint)| (name.name.clone(), checkpoint.status.total_samples_count));
        Snapshot {
            at: run.at,
            statuses: statuses.collect(),
            checkpoints: checkpoints.collect(),
            contents: BTreeMap::new(),
            log: run.run.log.clone(),
        }
    }

    /// The same with the contents of the checkpoints.
    #[must_use]
    pub fn with_contents(mut self, objects: &Objects) -> Snapshot {
        let checkpoints = objects.checkpoints.iter();
        let contents = checkpoints.map(|(name, it)| (name.name.clone(), it.clone()));
        self.contents = contents.collect();
        self
    }

    /// The status of a VPA, by its name without the namespace.
    #[must_use]
    pub fn status(&self, vpa: &str) -> Option<&VpaStatus> {
        self.statuses.iter().find(|(name, _)| *name.name == *vpa).map(|(_, status)| status)
    }
}
