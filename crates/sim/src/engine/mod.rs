//! The engines that run scenarios.
//!
//! An [`Engine`] opens scenarios one after another; a [`Session`] is an open scenario. Both traits
//! are deliberately small: any program that can receive changes and let time pass can be an engine.
//! Engines do not depend on the comparison. Only the registry and the code that prepares engines
//! (`run::virtual_time`, `run::wall_clock`) name particular engines; the runner does not.
//!
//! Engines run one kind of controller ([`ControllerKind`]): [`Hpa`], the default, [`Vpa`], or
//! [`VpaUpdater`].
//!
//! Real clusters are not sessions: a session lets exactly the requested time pass and answers with
//! the effects of that time, while a cluster has its own clock, and a reconcile can be seen only
//! partly or at an uncertain time. Clusters share the registry, the factories and the executor of
//! the runner with engines in virtual time; `run/wall_clock` compares what they show.

pub mod disturbance;
pub mod model;
pub mod model_recommender;
pub mod sent_events;
pub mod shell;
pub mod updater;

use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;

use self::disturbance::{Disturbable, Disturbance};
use self::updater::VpaUpdater;
use crate::trace::{Scope, Stepped};
use crate::world::Change;
use kube_autoscaler_models::observation::{Observation, Request};
use kube_autoscaler_models::rules::{AnyRelease, MinorVersion, Release, VpaRelease};
use kube_autoscaler_models::time::Time;
use kube_autoscaler_models::vpa;
use kube_lockstep_scenario::vpa::VpaScenario;
use kube_lockstep_scenario::{Diagnostic, Scenario, SkipReason};

/// Changes to the cluster, and the time to wait for their effects.
#[derive(Clone, PartialEq, Debug, Default, Serialize, JsonSchema)]
pub struct Step {
    /// The changes at the current time, in order.
    pub apply: Vec<Change>,
    /// Changes in the middle of the step's reconciles.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub during: Vec<During>,
    /// The instant to wait for; reconciles that are due then are part of the step.
    pub until: Time,
}

/// Changes right after the response to a request of the controller, before its next request.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct During {
    /// The kind of request.
    pub after: Request,
    /// The number of the request among all of its kind in the step, from 1.
    pub number: usize,
    /// The changes, in order.
    pub apply: Vec<Change>,
}

impl Step {
    /// All changes: those at the current time, and those in the middle of reconciles.
    pub fn changes(&self) -> impl Iterator<Item = &Change> {
        self.apply.iter().chain(self.during.iter().flat_map(|during| &during.apply))
    }

    /// [`Step::changes`], mutable.
    pub fn changes_mut(&mut self) -> impl Iterator<Item = &mut Change> {
        self.apply.iter_mut().chain(self.during.iter_mut().flat_map(|during| &mut during.apply))
    }
}

/// A kind of controller: the types of its scenarios, and of the steps and answers of its engines.
pub trait ControllerKind: Sized + 'static {
    /// A scenario, as it was read.
    type Scenario: Send + Sync;
    /// The input with which an engine opens a scenario.
    type Opening<'a>;
    /// A release of the controller.
    type Release: Copy
        + PartialEq
        + fmt::Debug
        + fmt::Display
        + Into<AnyRelease>
        + Into<MinorVersion>
        + Send
        + Sync;
    /// Changes to the cluster, and the time to wait for their effects.
    type Step;
    /// The actions of the controller in a step.
    type Stepped;
    /// The lines that the controller logs while it starts.
    type StartLog: Default;
    /// The actions of the controller that are not complete at the end of a scenario.
    type Unfinished;
}

/// The HPA controller of Kubernetes.
#[derive(Clone, Copy, Debug)]
pub enum Hpa {}

impl ControllerKind for Hpa {
    type Scenario = Scenario;
    type Opening<'a> = &'a Scenario;
    type Release = Release;
    type Step = Step;
    type Stepped = Stepped;
    /// Its log is not compared.
    type StartLog = ();
    /// The reconciles that have begun and not ended, by the names of their HPAs.
    type Unfinished = Vec<Observation>;
}

/// The recommender of the Vertical Pod Autoscaler.
#[derive(Clone, Copy, Debug)]
pub enum Vpa {}

impl ControllerKind for Vpa {
    type Scenario = VpaScenario;
    type Opening<'a> = RecommenderOpening<'a>;
    type Release = VpaRelease;
    type Step = vpa::ScriptStep;
    type Stepped = vpa::Stepped;
    type StartLog = Vec<vpa::LogLine>;
    /// A run takes no time.
    type Unfinished = ();
}

/// A scenario of the recommender, and the objects with which it starts.
#[derive(Clone, Copy, Debug)]
pub struct RecommenderOpening<'a> {
    pub scenario: &'a VpaScenario,
    pub start: &'a vpa::Start,
}

/// The controllers of a VPA that run with an HPA controller.
pub struct VpaEngines {
    pub recommender: Box<dyn Engine<Vpa>>,
    /// The updater and the admission controller. None: their simulation is not compared.
    pub updater: Option<Box<dyn Engine<VpaUpdater>>>,
}

/// A controller that scenarios can be run on.
pub trait Engine<K: ControllerKind = Hpa> {
    /// The name on the command line, or the name of the program.
    fn name(&self) -> &str;

    /// The release whose behavior it has.
    fn release(&self) -> K::Release;

    /// False if no model predicts the controller. Only the expectations of scenarios are then
    /// checked.
    fn has_model(&self) -> bool {
        true
    }

    /// The observable fields of an HPA controller. Those of a recommender are always the same.
    fn scope(&self) -> Scope {
        Scope::ALL
    }

    /// The reason why this engine can't run a scenario that its release supports, if any. The
    /// scenario is then skipped.
    fn unsupported_reason(&mut self, _scenario: &K::Scenario) -> Option<SkipReason> {
        None
    }

    /// Disturbs the scenarios that are opened from now on. Without disturbances, the engine still
    /// reports what can be disturbed.
    ///
    /// # Errors
    /// If the engine can't run, or can't disturb scenarios.
    fn disturb(&mut self, _disturbances: &[Disturbance]) -> Result<(), EngineError> {
        let problem = Diagnostic::new("it does not support disturbances");
        let hint = "use a program of the Go SDK";
        Err(EngineError::Unavailable { engine: self.name().into(), problem: problem.hint(hint) })
    }

    /// What could be disturbed in the last scenario, after [`Engine::disturb`]. `None`: the
    /// scenario has not ended.
    fn disturbable(&mut self) -> Option<Disturbable> {
        None
    }

    /// The controllers of a VPA that run with an HPA controller in scenarios with a VPA.
    ///
    /// # Errors
    /// If the engine has none, or they can't run.
    fn vpa(&mut self, _release: VpaRelease) -> Result<VpaEngines, EngineError> {
        Err(EngineError::Unavailable {
            engine: self.name().into(),
            problem: Diagnostic::new("it has no recommender")
                .hint("run scenarios with a VPA on another engine"),
        })
    }

    /// Opens a scenario on a cluster without objects, with the clock just before t=0.
    ///
    /// # Errors
    /// If the engine can't run; never because of decisions of the controller.
    fn open<'a>(
        &'a mut self,
        opening: K::Opening<'_>,
    ) -> Result<Box<dyn Session<K> + 'a>, EngineError>;
}

/// A scenario that is open on an engine.
pub trait Session<K: ControllerKind = Hpa> {
    /// The lines that the controller logged while it started.
    fn start_log(&self) -> K::StartLog {
        K::StartLog::default()
    }

    /// Sends a step. Several steps may be sent before their answers are received.
    ///
    /// # Errors
    /// If the engine is broken. Earlier answers stay valid.
    fn send(&mut self, step: &K::Step) -> Result<(), EngineError>;

    /// Waits for the answer to the oldest step without an answer.
    ///
    /// # Errors
    /// If the engine is broken, or has not answered within its time limit.
    fn receive(&mut self) -> Result<K::Stepped, EngineError>;

    /// Sends a step, and waits for its answer.
    ///
    /// # Errors
    /// As [`Session::send`] and [`Session::receive`].
    fn step(&mut self, step: &K::Step) -> Result<K::Stepped, EngineError> {
        self.send(step)?;
        self.receive()
    }

    /// Returns true if the engine runs steps that were sent ahead while answers are received.
    fn takes_steps_ahead(&self) -> bool {
        false
    }

    /// Ends the scenario and removes all its objects. Returns the actions that are not complete.
    ///
    /// # Errors
    /// If the engine is broken, or a recorded trace has more entries. Earlier answers stay valid.
    fn close(self: Box<Self>) -> Result<K::Unfinished, EngineError>;
}

/// The failure of an engine. It is never a verdict on a controller.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum EngineError {
    /// A requirement of the engine is missing.
    #[error("the {engine} engine cannot run: {problem}")]
    Unavailable {
        engine: Arc<str>,
        /// The missing requirement, and the solution.
        problem: Diagnostic,
    },
    /// The engine cannot run the scenario.
    #[error("the {engine} engine cannot run the scenario: {why}")]
    Unsupported {
        engine: Arc<str>,
        /// The reason.
        why: String,
    },
    /// The engine failed, exited, or did not answer in time.
    #[error("the {engine} engine failed: {why}")]
    Broken {
        engine: Arc<str>,
        /// The failure.
        why: String,
        /// The end of its error output.
        output: String,
    },
}

impl EngineError {
    /// The name of the engine.
    #[must_use]
    pub fn engine(&self) -> &Arc<str> {
        match self {
            EngineError::Unavailable { engine, .. }
            | EngineError::Unsupported { engine, .. }
            | EngineError::Broken { engine, .. } => engine,
        }
    }
}
