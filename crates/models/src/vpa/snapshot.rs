//! The state of a cluster that users see after a run of the recommender.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::api::{Checkpoint, ObjectName, VpaStatus};
use super::log::LogLine;
use super::objects::Objects;
use super::session::RunAt;
use crate::time::Time;

/// The state after a run.
#[derive(Clone, PartialEq, Debug)]
pub struct Snapshot {
    /// The time of the run since the start.
    pub at: Time,
    /// The status of each existing VPA.
    pub statuses: BTreeMap<ObjectName, VpaStatus>,
    /// The number of samples of each existing checkpoint.
    pub checkpoints: BTreeMap<Arc<str>, i64>,
    /// The contents of the checkpoints, if they were asked for.
    pub contents: BTreeMap<Arc<str>, Arc<Checkpoint>>,
    /// The errors that the run logged.
    pub log: Vec<LogLine>,
}

impl Snapshot {
    /// The state after a run. `with_contents`: with the contents of the checkpoints, which then
    /// stay in memory after they are replaced.
    #[must_use]
    pub fn new(objects: &Objects, run: &RunAt, with_contents: bool) -> Snapshot {
        let statuses = objects.vpas.iter();
        let statuses = statuses.map(|(name, vpa)| (name.clone(), VpaStatus::clone(&vpa.status)));
        let checkpoints = objects
            .checkpoints
            .iter()
            .map(|(name, checkpoint)| (name.name.clone(), checkpoint.status.total_samples_count));
        let contents = objects.checkpoints.iter().filter(|_| with_contents);
        let contents = contents.map(|(name, checkpoint)| (name.name.clone(), checkpoint.clone()));
        Snapshot {
            at: run.at,
            statuses: statuses.collect(),
            checkpoints: checkpoints.collect(),
            contents: contents.collect(),
            log: run.run.log.clone(),
        }
    }

    /// The status of a VPA, by its name without the namespace.
    #[must_use]
    pub fn status(&self, vpa: &str) -> Option<&VpaStatus> {
        self.statuses.iter().find(|(name, _)| *name.name == *vpa).map(|(_, status)| status)
    }
}
