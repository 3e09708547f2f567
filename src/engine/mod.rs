//! Everything that a scenario can be run on.
//!
//! An [`Engine`] opens scenarios one after another, a [`Session`] is one that is open. Both are
//! small on purpose: any program that can be told of changes and of the passing of time can be an
//! engine. No engine knows of the comparison, and the runner knows of no engine in particular.

#[cfg(feature = "clusters")]
pub(crate) mod cluster;
#[cfg(feature = "clusters")]
pub mod containers;
#[cfg(feature = "engines")]
pub mod custom;
#[cfg(feature = "clusters")]
pub mod embedded;
#[cfg(feature = "clusters")]
pub mod kubeconfig;
#[cfg(feature = "clusters")]
pub mod metrics_server;
pub mod model;
#[cfg(feature = "engines")]
pub mod options;
#[cfg(feature = "engines")]
pub mod recorded;
#[cfg(feature = "engines")]
pub mod registry;
#[cfg(feature = "engines")]
pub mod upstream;

use std::sync::Arc;

use serde::Serialize;

use crate::compare::Scope;
use crate::model::rules::Release;
use crate::model::time::Time;
use crate::scenario::Scenario;
use crate::trace::Stepped;
use crate::world::Change;

/// Changes to the cluster, and how long to wait for what comes of them.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Step {
    /// What changes at the present instant, in order.
    pub apply: Vec<Change>,
    /// The instant to wait for; reconciles that are due then are part of the step.
    pub until: Time,
}

/// Something that scenarios can be run on.
pub trait Engine {
    /// Its name: as on the command line, or that of the program that it is.
    fn name(&self) -> &str;

    /// The release whose behaviour it shows.
    fn release(&self) -> Release;

    /// What can be observed of it.
    fn scope(&self) -> Scope {
        Scope::ALL
    }

    /// Why this engine cannot show a scenario that its release supports, if it cannot: the scenario
    /// is skipped.
    fn lacks(&self, _scenario: &Scenario) -> Option<String> {
        None
    }

    /// Opens a scenario on a cluster without objects, at a clock that stands just before t=0.
    ///
    /// # Errors
    /// If the engine is not fit to run; never because of what a controller does.
    fn open<'a>(&'a mut self, scenario: &Scenario) -> Result<Box<dyn Session + 'a>, EngineError>;
}

/// A scenario that is open on an engine.
pub trait Session {
    /// Hands over a step. Several may be handed over before their answers are received.
    ///
    /// # Errors
    /// If the engine is broken.
    fn send(&mut self, step: &Step) -> Result<(), EngineError>;

    /// Waits for the answer to the oldest step that has none yet.
    ///
    /// # Errors
    /// If the engine is broken, or has not answered within its time limit.
    fn receive(&mut self) -> Result<Stepped, EngineError>;

    /// Makes one step.
    ///
    /// # Errors
    /// As [`Session::send`] and [`Session::receive`].
    fn step(&mut self, step: &Step) -> Result<Stepped, EngineError> {
        self.send(step)?;
        self.receive()
    }

    /// Whether steps that are sent ahead are carried out while others are received.
    fn takes_steps_ahead(&self) -> bool {
        false
    }

    /// Ends the scenario; nothing of it is left.
    ///
    /// # Errors
    /// If the engine is broken. What was received before stays true.
    fn close(self: Box<Self>) -> Result<(), EngineError>;
}

/// An engine that cannot do its work. Never a verdict on a controller.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum EngineError {
    /// Something that it needs is not there.
    #[error("the {engine} engine cannot run: {why}")]
    Unavailable {
        /// The engine.
        engine: Arc<str>,
        /// What is missing.
        why: String,
        /// What to do about it.
        hint: String,
    },
    /// It broke, died, or did not answer in time.
    #[error("the {engine} engine failed: {why}")]
    Broken {
        /// The engine.
        engine: Arc<str>,
        /// What happened.
        why: String,
        /// The tail of what it wrote.
        output: String,
    },
}
