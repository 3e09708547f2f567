//! A run of the model alone that can be copied at any time, and continued in several ways.

use std::sync::Arc;

use super::lockstep::{HpaLockstep, Spare};
use super::random::RandomOutcome;
use crate::expect::Reconciled;
use educe::Educe;
use kube_autoscaler_models::rules::{Release, Rules};
use kube_autoscaler_models::state::{State, StateScope};
use kube_autoscaler_models::time::Time;
use kube_lockstep_scenario::Scenario;
use kube_lockstep_scenario::resolved::{Action, PodSet};

/// A run of the model alone: its own decisions drive the world. The scenario has no VPA.
#[derive(Educe)]
#[educe(Clone)]
pub struct ModelRun<'a>(HpaLockstep<'a>);

impl<'a> ModelRun<'a> {
    /// A run that has not started. Everything at t=0 is still to come, apart from the creation of
    /// the objects.
    #[must_use]
    pub fn new(scenario: &'a Arc<Scenario>, release: Release) -> ModelRun<'a> {
        ModelRun(HpaLockstep::new(scenario, Rules::of(release)))
    }

    /// Continues with other values of the metrics. The scenarios must not differ otherwise.
    pub fn continue_with(&mut self, scenario: &'a Arc<Scenario>) {
        self.0.scenario = scenario;
        self.0.world.continue_with(scenario);
    }

    /// Lets an event of the timeline, by its index, happen at a time that has not been reached.
    pub fn begin_at(&mut self, at: Time, index: usize) {
        self.0.world.begin_at(at, index);
    }

    /// Runs up to a time, which is not included, and passes each reconcile to `watch`. If that
    /// returns false, the run ends.
    ///
    /// # Errors
    /// If upstream leaves the further course to chance.
    pub fn run_before(
        &mut self,
        at: Time,
        watch: &mut dyn FnMut(&Reconciled<'_>) -> bool,
    ) -> Result<(), RandomOutcome> {
        let run = &mut self.0;
        while run.next_stop().is_some_and(|stop| stop < at) {
            let Some(predicted) = run.predict() else { break };
            for decision in &predicted.decisions {
                let tick = &decision.observation;
                let target = run.target_of(tick);
                let before = run.world.replicas(target);
                run.apply_observed(tick, Some(decision));
                if !watch(&run.reconciled(tick, before)) {
                    return Ok(());
                }
            }
            run.external_scales.clear();
            run.spare.0.extend(predicted.decisions);
        }
        match run.undetermined.take() {
            Some(random) => Err(random),
            None => Ok(()),
        }
    }

    /// Releases memory that is kept for the next reconcile, of a run that does not continue soon.
    pub fn release_memory(&mut self) {
        self.0.spare = Spare::default();
    }

    /// Adds everything that the future of the run depends on, at the time of the state. The run
    /// must have [run](ModelRun::run_before) before that time. Returns false if a part of it can't
    /// be added; the state is then not complete.
    #[must_use]
    pub fn add_to(&mut self, state: &mut State) -> bool {
        let HpaLockstep { world, simulation, events, pending, happened, start, .. } = &mut self.0;
        world.run_before(state.now());
        let is_idle = events.is_empty() && pending.is_empty() && happened.is_empty();
        world.add_to(state) && simulation.add_to(state) && is_idle && start.is_empty()
    }
}

/// The scope of the states of a scenario's runs.
#[must_use]
pub fn state_scope(scenario: &Scenario, release: Release, statuses: bool) -> StateScope {
    let actions = || scenario.timeline.iter().map(|event| &event.action);
    let flags = scenario.flags_by(&Rules::of(release));
    let some = |pods: &PodSet| *pods != PodSet::All;
    let workload = &scenario.workload;
    let metrics = &scenario.metrics;
    let exceptions = metrics.resources.iter().map(|it| &it.exceptions);
    let exceptions = exceptions.chain(metrics.pods.iter().map(|it| &it.exceptions));
    StateScope {
        changing_hpas: actions().any(|action| {
            matches!(action, Action::EditHpa(_) | Action::DeleteHpa(_) | Action::CreateHpa(_))
        }),
        statuses: statuses
            || actions().any(|action| matches!(action, Action::UpdateStatusError(_))),
        waits: actions()
            .any(|action| matches!(action, Action::UpdateScaleError(_) | Action::MetricsSlow(_))),
        ordinals: !workload.pods.is_empty()
            || workload.scale_down_first.as_ref().is_some_and(some)
            || exceptions.flatten().next().is_some()
            || actions().filter_map(Action::pods).any(some),
        initialization: flags.cpu_initialization_period,
        readiness_delay: flags.initial_readiness_delay,
    }
}
