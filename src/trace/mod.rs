//! Traces: what was observed of a scenario, one [`Observation`] a tick.
//!
//! `wire` reads the answers of the engine protocol, `text` is the form in which upstream's traces
//! are recorded and reviewed. Deliberately no comparison and no opinion here.

pub mod text;
mod text_metrics;
pub mod wire;

use std::sync::Arc;

pub use crate::model::observation::{ControllerAction, Observation};

use crate::model::api::HpaSpec;
use crate::model::time::Time;

/// What was observed of one scenario on one engine.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Trace {
    /// The release as the engine named it, for instance `v1.37.0`.
    pub release: String,
    /// The engine.
    pub engine: String,
    /// The scenario's id.
    pub scenario: String,
    /// The scenario's content hash.
    pub hash: String,
    /// The API server's answers to what people did to the HPA, in order, each with the number of
    /// ticks that preceded it (at one instant, only this tells which came first).
    pub api: Vec<(usize, ApiAnswer)>,
    /// One a reconcile, in order of time.
    pub ticks: Vec<Observation>,
}

impl Trace {
    /// Adds what was observed in a step.
    pub fn extend(&mut self, stepped: Stepped) {
        let before = self.ticks.len();
        self.api.extend(stepped.api.into_iter().map(|answer| (before, answer)));
        self.ticks.extend(stepped.ticks);
    }
}

/// What the API server answered to somebody who created, edited or deleted the HPA.
#[derive(Clone, PartialEq, Debug)]
pub struct ApiAnswer {
    /// When.
    pub at: Time,
    /// The HPA's name.
    pub name: Arc<str>,
    /// What came of it.
    pub outcome: ApiOutcome,
}

/// What came of a request to create, edit or delete the HPA.
#[derive(Clone, PartialEq, Debug)]
pub enum ApiOutcome {
    /// Accepted; this is now stored, with all defaults.
    Stored {
        /// `metadata.generation`.
        generation: i64,
        /// The whole spec.
        spec: Box<HpaSpec>,
    },
    /// Refused, with the API server's message.
    Refused(String),
    /// The object is gone.
    Deleted,
}

/// What an engine observed in one step.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Stepped {
    /// The instant that was reached.
    pub now: Time,
    /// The API server's answers, one for each change of an HPA in the step.
    pub api: Vec<ApiAnswer>,
    /// The reconciles that began in the step, in order of time.
    pub ticks: Vec<Observation>,
}
