//! Changes of a cluster over time, which a recommender sees.

use std::collections::BTreeMap;

use super::session::{ClusterChange, Start};
use crate::time::Time;

/// Changes of a cluster over time, for a recommender.
#[derive(Clone, PartialEq, Debug)]
pub struct Script {
    /// The name of the script, for messages.
    pub name: String,
    /// The flags that are set, by their upstream names.
    pub flags: BTreeMap<String, String>,
    /// The start, with the same flags.
    pub start: Start,
    /// The steps, in the order of time.
    pub steps: Vec<ScriptStep>,
}

/// Changes at the end of the previous step, and the time until the end of this step.
#[derive(Clone, PartialEq, Debug)]
pub struct ScriptStep {
    /// The changes at the beginning of the step.
    pub changes: Vec<ClusterChange>,
    /// The end, since the start of the script.
    pub until: Time,
}
