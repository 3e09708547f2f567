//! The interface of each kind of controller to the runner.

use std::sync::Arc;
use std::time::Instant;

use crate::registry::{Clock, EngineInfo};
use crate::source::VirtualTimeKind;
use kube_autoscaler_models::rules::{Release, VpaRelease};
use kube_lockstep_scenario::vpa::VpaScenario;
use kube_lockstep_scenario::{Scenario, SkipReason};
use kube_lockstep_sim::compare::KnownDisagreement;
use kube_lockstep_sim::engine::{Engine, Hpa, Vpa};
use kube_lockstep_sim::run::recommender_lockstep::run_recommender;
use kube_lockstep_sim::run::{Outcome, lockstep, recommender_lockstep, run_one};

/// A kind of controller whose scenarios the runner can run.
pub trait RunKind: VirtualTimeKind {
    /// The clock of the controller on an engine.
    fn clock(engine: &EngineInfo) -> Clock;

    /// Returns the reason why the expectations of a scenario do not apply to a release, with a
    /// release to choose instead. Returns `None` if one applies.
    fn unchecked_on(scenario: &Self::Scenario, release: Self::Release) -> Option<SkipReason>;

    /// The release of the recommender that runs with the controller, if one does.
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

    fn unchecked_on(scenario: &Scenario, release: Release) -> Option<SkipReason> {
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
        timed(|| run_one(scenario, engine, known))
    }
}

impl RunKind for Vpa {
    fn clock(engine: &EngineInfo) -> Clock {
        engine.recommender_clock
    }

    fn unchecked_on(scenario: &VpaScenario, release: VpaRelease) -> Option<SkipReason> {
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
        timed(|| run_recommender(scenario, engine, known))
    }
}

/// Sets the duration of a run, which has no clock itself.
fn timed(run: impl FnOnce() -> Outcome) -> Outcome {
    let begin = Instant::now();
    let outcome = run();
    Outcome { elapsed: begin.elapsed(), ..outcome }
}
