//! Generates scripts for the recommender of the Vertical Pod Autoscaler, and shrinks failing ones.

mod edge;
mod generate;
mod plan;
mod shrink;

use std::collections::BTreeMap;

pub use self::generate::script;
pub use self::shrink::shrink;
use crate::model::time::Time;
use crate::model::vpa::{ClusterChange, Start};

/// Changes of a cluster over time, for a recommender.
#[derive(Clone, PartialEq, Debug)]
pub struct Script {
    /// The seed and the index.
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
    /// The changes.
    pub changes: Vec<ClusterChange>,
    /// The end, since the start of the script.
    pub until: Time,
}
