//! The kinds of controllers that the runner can run, and their engines in virtual time.

use std::sync::Arc;
use std::time::Instant;

use crate::recorded::{Recorded, RecordedRecommender, Traces};
use crate::registry::{Clock, EngineInfo};
use crate::source::Host;
use crate::upstream::Upstream;
use crate::upstream::build::Artifact;
use crate::upstream::checkout::Checkout;
use crate::upstream::recommender::UpstreamRecommender;
use kube_autoscaler_models::rules::{Release, VpaRelease};
use kube_lockstep_scenario::vpa::VpaScenario;
use kube_lockstep_scenario::{Scenario, SkipReason};
use kube_lockstep_sim::compare::KnownDisagreement;
use kube_lockstep_sim::engine::model::{self, Model};
use kube_lockstep_sim::engine::model_recommender::ModelRecommender;
use kube_lockstep_sim::engine::{ControllerKind, Engine, Hpa, Vpa};
use kube_lockstep_sim::run::recommender_lockstep::run_recommender;
use kube_lockstep_sim::run::{Outcome, lockstep, recommender_lockstep, run_one};

/// A kind of controller whose scenarios the runner can run, and that has engines in virtual time.
pub trait RunKind: ControllerKind {
    /// The program that hosts upstream's controller.
    const ARTIFACT: Artifact;

    /// True if a program that implements the engine protocol can replace upstream's controller.
    const TAKES_PROGRAMS: bool;

    /// The release whose rules the model follows for a checkout by default, and the reason.
    fn rules(checkout: &Checkout) -> (Self::Release, String);

    /// The checkout to build in order to compare it with the rules of a release.
    fn checkout(checkout: &Checkout, rules: Self::Release) -> Checkout;

    /// The controller that a program runs.
    fn hosted(host: &Host, release: Self::Release) -> Box<dyn Engine<Self>>;

    /// The reference model.
    fn model(release: Self::Release) -> Box<dyn Engine<Self>>;

    /// The recorded traces of upstream's controller.
    fn recorded(release: Self::Release, traces: Traces) -> Box<dyn Engine<Self>>;

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
    const ARTIFACT: Artifact = Artifact::Host;
    const TAKES_PROGRAMS: bool = true;

    fn rules(checkout: &Checkout) -> (Release, String) {
        checkout.rules()
    }

    fn checkout(checkout: &Checkout, _: Release) -> Checkout {
        checkout.clone()
    }

    fn hosted(host: &Host, release: Release) -> Box<dyn Engine> {
        let Host { program, name, is_checkout, has_model, limits } = host.clone();
        let engine = match is_checkout {
            true => Upstream::from_checkout(program, name, release),
            false => Upstream::new(program, release).called(name),
        };
        let engine = if has_model { engine } else { engine.without_model() };
        Box::new(engine.with_time_limit(limits.answer).with_builds(limits.builds))
    }

    fn model(release: Release) -> Box<dyn Engine> {
        Box::new(Model::new(release))
    }

    fn recorded(release: Release, traces: Traces) -> Box<dyn Engine> {
        Box::new(Recorded::new(release, traces))
    }

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
    const ARTIFACT: Artifact = Artifact::Recommender;
    const TAKES_PROGRAMS: bool = false;

    fn rules(checkout: &Checkout) -> (VpaRelease, String) {
        checkout.vpa_rules()
    }

    fn checkout(checkout: &Checkout, rules: VpaRelease) -> Checkout {
        checkout.clone().with_release(rules)
    }

    fn hosted(host: &Host, release: VpaRelease) -> Box<dyn Engine<Vpa>> {
        let Host { program, name, is_checkout, limits, .. } = host.clone();
        let engine = match is_checkout {
            true => UpstreamRecommender::from_checkout(program, name, release),
            false => UpstreamRecommender::new(program, release),
        };
        Box::new(engine.with_time_limit(limits.answer))
    }

    fn model(release: VpaRelease) -> Box<dyn Engine<Vpa>> {
        Box::new(ModelRecommender::new(model::NAME, release))
    }

    fn recorded(release: VpaRelease, traces: Traces) -> Box<dyn Engine<Vpa>> {
        Box::new(RecordedRecommender::new(traces, release))
    }

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
