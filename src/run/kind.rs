//! The interface of each kind of controller to the runner.

use std::sync::Arc;

use super::recommender_lockstep::run_recommender;
use super::{Outcome, lockstep, recommender_lockstep, run_one};
use crate::compare::KnownDisagreement;
use crate::engine::registry::{Clock, EngineInfo};
use crate::engine::source::VirtualTimeKind;
use crate::engine::{Engine, Hpa, Vpa};
use crate::model::rules::{Release, VpaRelease};
use crate::scenario::Scenario;
use crate::scenario::vpa::VpaScenario;

/// A kind of controller whose scenarios the runner can run.
pub(crate) trait RunKind: VirtualTimeKind {
    /// The clock of the controller on an engine.
    fn clock(engine: &EngineInfo) -> Clock;

    /// Returns the reason why the expectations of a scenario do not apply to a release, with a
    /// release to choose instead. Returns `None` if one applies.
    fn unchecked_on(scenario: &Self::Scenario, release: Self::Release) -> Option<String>;

    /// The release of the recommender that runs beside the controller, if one does.
    fn recommender(scenario: &Self::Scenario) -> Option<VpaRelease>;

    /// The outcome of a scenario before it is run. `engine`: the engine's name.
    fn unfinished(
        scenario: &Arc<Self::Scenario>,
        engine: &Arc<str>,
        release: Self::Release,
    ) -> Outcome;

    /// Runs a scenario in lockstep with the model.
    fn run(
        scenario: &Arc<Self::Scenario>,
        engine: &mut dyn Engine<Self>,
        known: &[KnownDisagreement],
    ) -> Outcome;
}

impl RunKind for Hpa {
    fn clock(engine: &EngineInfo) -> Clock {
        engine.clock
    }

    fn unchecked_on(scenario: &Scenario, release: Release) -> Option<String> {
        scenario.unchecked_on(release)
    }

    fn recommender(scenario: &Scenario) -> Option<VpaRelease> {
        scenario.vpa.as_ref().map(|vpa| vpa.release)
    }

    fn unfinished(scenario: &Arc<Scenario>, engine: &Arc<str>, release: Release) -> Outcome {
        lockstep::unfinished(scenario, engine, release)
    }

    fn run(
        scenario: &Arc<Scenario>,
        engine: &mut dyn Engine,
        known: &[KnownDisagreement],
    ) -> Outcome {
        run_one(scenario, engine, known)
    }
}

impl RunKind for Vpa {
    fn clock(engine: &EngineInfo) -> Clock {
        engine.recommender_clock
    }

    fn unchecked_on(scenario: &VpaScenario, release: VpaRelease) -> Option<String> {
        scenario.unchecked_on(release)
    }

    fn recommender(_: &VpaScenario) -> Option<VpaRelease> {
        None
    }

    fn unfinished(scenario: &Arc<VpaScenario>, engine: &Arc<str>, release: VpaRelease) -> Outcome {
        recommender_lockstep::unfinished(scenario, engine, release)
    }

    fn run(
        scenario: &Arc<VpaScenario>,
        engine: &mut dyn Engine<Vpa>,
        known: &[KnownDisagreement],
    ) -> Outcome {
        run_recommender(scenario, engine, known)
    }
}
