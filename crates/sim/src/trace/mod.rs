//! Traces: the observations of a scenario, one [`Observation`] per tick.
//!
//! [`wire`] reads the answers of the engine protocol. [`text`] and [`recommender`] are the forms in
//! which upstream's traces are recorded, and `file` is the file with those of a scenario. Traces
//! are not compared here.

pub mod broken;
pub mod file;
pub mod header;
mod members;
pub mod recommender;
mod scope;
pub mod text;
pub mod wire;

pub use self::scope::Scope;
pub use kube_autoscaler_models::observation::{
    ApiAnswer, ApiOutcome, ControllerAction, Observation,
};

use kube_autoscaler_models::time::Time;

/// The observations of one scenario on one engine.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Trace {
    /// The release as reported by the engine, for example `v1.37.0`.
    pub release: String,
    pub engine: String,
    /// The scenario's id.
    pub scenario: String,
    /// The scenario's content hash.
    pub hash: String,
    /// The API server's answers to changes of HPAs and other objects, in order, each with the
    /// number of preceding ticks: times alone do not order an answer and a tick of the same
    /// instant.
    pub api: Vec<(usize, ApiAnswer)>,
    /// The reconciles, in order of time.
    pub ticks: Vec<Observation>,
    /// The reconciles that had not ended at the end of the scenario, by the names of their HPAs.
    pub unfinished: Vec<Observation>,
}

impl Trace {
    /// Adds the observations of a step.
    pub fn extend(&mut self, stepped: Stepped) {
        let before = self.ticks.len();
        self.api.extend(stepped.api.into_iter().map(|answer| (before, answer)));
        self.ticks.extend(stepped.ticks);
    }
}

/// The observations of an engine in one step.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Stepped {
    /// The time that the engine reached.
    pub now: Time,
    /// The API server's answers, one for each change of an HPA or another object in the step. The
    /// changes that the cluster itself makes to objects outside of reconciles follow.
    pub api: Vec<ApiAnswer>,
    /// The reconciles that began in the step, in order of time.
    pub ticks: Vec<Observation>,
}
