//! A VPA in the world of a scenario: its recommender and its updater run at their own times.
//!
//! With an HPA, the VPA catches up before each step of the HPA, and what the recommender writes
//! decides which requests pods get. At one time, the VPA precedes the HPA. Without an HPA,
//! recommendations do not change the pods, so that an engine can get steps ahead of its answers.

use std::collections::VecDeque;
use std::sync::Arc;

use super::comparison::Comparison;
use super::lockstep::explained_free_run;
use super::random::{RandomCause, RandomOutcome};
use super::recommendation::with_reasons;
use super::recommender::{ChartedRun, Keep, Predicting};
use super::recommender_lockstep::{Lockstep, Watch};
use super::updater_lockstep::UpdaterLockstep;
use super::{ControllerRun, Outcome};
use crate::engine::{self, Engine, EngineError, RecommenderOpening, Vpa, VpaEngines};
use crate::expect::Unmet;
use crate::expect::recommender::evaluate_with_hpa;
use crate::world::{PodChange, UpdaterReport, World};
use kube_autoscaler_models::rules::{Release, VpaRelease, VpaRules};
use kube_autoscaler_models::time::Time;
use kube_autoscaler_models::vpa::{LogLine, ScriptStep, Session, Snapshot, Start, Stepped, Write};
use kube_lockstep_scenario::Scenario;
use kube_lockstep_scenario::vpa::VpaScenario;

/// The actions of a VPA in a free run of the model.
#[derive(Clone, Debug)]
pub struct VpaRun {
    /// The VPA, and the expectations of recommendations.
    pub scenario: Arc<VpaScenario>,
    /// The release of the recommender.
    pub release: VpaRelease,
    /// The runs of the recommender, with the usage that each of them read.
    pub charted: ChartedRun,
    /// The effects of the updater and the admission controller on pods.
    pub pod_changes: Vec<PodChange>,
    /// The runs of the updater between an explained run of the recommender and the next.
    pub updater_reports: Vec<UpdaterReport>,
    /// The last run of the updater.
    pub last_updater_report: Option<UpdaterReport>,
}

impl VpaRun {
    /// The state after each run of the recommender.
    #[must_use]
    pub fn snapshots(&self) -> &[Snapshot] {
        &self.charted.run.snapshots
    }

    /// The expectations of recommendations that are not met.
    #[must_use]
    pub fn unmet(&self) -> &[Unmet] {
        &self.charted.run.unmet
    }

    /// The unmet expectations about recommendations, with their reasons. `whole` is the
    /// scenario that this run is a part of.
    #[must_use]
    pub fn unmet_with_reasons(&self, whole: &Arc<Scenario>, release: Release) -> Vec<Unmet> {
        with_reasons(&self.scenario, self.unmet().to_vec(), |is_explained| {
            Some(explained_free_run(whole, release, is_explained).vpa?.charted.run)
        })
    }

    /// The index of the last run of the recommender at or before a time.
    #[must_use]
    pub fn index_at(&self, at: Time) -> Option<usize> {
        self.snapshots().partition_point(|snapshot| snapshot.at <= at).checked_sub(1)
    }
}

/// A VPA whose recommender runs in a world.
pub(super) struct RunningVpa<R> {
    scenario: Arc<VpaScenario>,
    release: VpaRelease,
    session: Session,
    runs: R,
}

/// The runs that the model predicts.
pub(super) struct Predicted<'e> {
    runs: Predicting<'e>,
    updater_reports: Vec<UpdaterReport>,
}

/// The runs of an engine, compared with the model.
pub(super) struct Comparing<'e> {
    engine: Box<dyn engine::Session<Vpa> + 'e>,
    lockstep: Lockstep,
    updater: Option<UpdaterLockstep<'e>>,
    /// The number of steps that the engine gets ahead of its answers, including the next one.
    ahead: usize,
}

/// The number of steps that an engine gets ahead of its answers, if recommendations do not change
/// the pods.
const AHEAD: usize = 16;

/// A recommender that has just started.
pub(super) struct Started {
    scenario: Arc<VpaScenario>,
    release: VpaRelease,
    start: Start,
    session: Session,
    log: Vec<LogLine>,
}

impl Started {
    /// Starts the model of the recommender of a scenario with a VPA alone.
    pub(super) fn alone(
        scenario: &Arc<VpaScenario>,
        release: VpaRelease,
        world: &mut World,
    ) -> Started {
        let start = world.recommender_start().unwrap_or_default();
        let (session, log) = Session::open(&start, VpaRules::of(release));
        Started { scenario: scenario.clone(), release, start, session, log }
    }

    /// Starts the model of the recommender beside an HPA. None: there is no VPA.
    pub(super) fn with_hpa(scenario: &Scenario, world: &mut World) -> Option<Started> {
        let vpa = scenario.vpa.as_ref()?;
        let vpa_scenario = VpaScenario {
            id: format!("{}/{}", scenario.id, vpa.release),
            path: scenario.path.clone(),
            hash: scenario.hash.clone(),
            ..(*vpa.recommender).clone()
        };
        Some(Started::alone(&Arc::new(vpa_scenario), vpa.release, world))
    }
}

/// Why the scenario can't continue at a stop, if it can't.
fn overlap(world: &World, stop: Time) -> Option<RandomOutcome> {
    (world.now() > stop).then(|| {
        let why = format!(
            "the recommender or the updater of the VPA runs at {stop}, while a reconcile waits \
             before it retries its write of the scale: their order is random; choose other \
             times for the actions"
        );
        RandomOutcome::new(RandomCause::VpaDuringReconcile, why)
    })
}

fn writes(stepped: &Stepped) -> Vec<Write> {
    stepped.runs.iter().flat_map(|run| run.run.writes.iter().cloned()).collect()
}

impl<R> RunningVpa<R> {
    /// The next stop of the VPA, at or before the next step of the HPA, or before the end.
    fn next_stop(world: &World, until: Option<Time>) -> Option<Time> {
        world.next_vpa_stop().filter(|stop| until.is_none_or(|until| *stop <= until))
    }
}

impl<'e> RunningVpa<Predicted<'e>> {
    /// A recommender that follows the model.
    pub(super) fn predicting(started: Started, keep: Keep<'e>) -> Self {
        let Started { scenario, release, session, log, .. } = started;
        let runs = Predicting::new(&scenario, log, keep);
        let runs = Predicted { runs, updater_reports: Vec::new() };
        RunningVpa { scenario, release, session, runs }
    }

    /// Lets the VPA act until a time. Returns why the scenario can't continue, if it can't.
    pub(super) fn predict(
        &mut self,
        world: &mut World,
        until: Option<Time>,
    ) -> Option<RandomOutcome> {
        let Predicted { runs, updater_reports } = &mut self.runs;
        while let Some(stop) = Self::next_stop(world, until) {
            if let Some(why) = overlap(world, stop) {
                return Some(why);
            }
            let written = match world.begin_vpa_stop(stop) {
                Some(step) => match runs.step(&mut self.session, &step) {
                    Ok(stepped) => writes(&stepped),
                    Err(why) => return Some(why),
                },
                None => Vec::new(),
            };
            world.apply_recommendations(&written);
            world.run_updater();
            let last = runs.charted.run.snapshots.len().checked_sub(1);
            if last.is_some_and(runs.keep.is_explained) {
                let report = world.last_updater_report().filter(|report| report.at == stop);
                updater_reports.extend(report.cloned());
            }
        }
        None
    }

    /// The runs of the recommender. Their expectations are not evaluated.
    pub(super) fn into_charted(self, world: &World) -> ChartedRun {
        let mut charted = self.runs.runs.charted;
        charted.run.unmatched = world.unmatched_vpa_actions().to_vec();
        charted
    }

    /// The result beside an HPA.
    pub(super) fn into_run(mut self, world: &World) -> VpaRun {
        let (scenario, release) = (self.scenario.clone(), self.release);
        let updater_reports = std::mem::take(&mut self.runs.updater_reports);
        let mut charted = self.into_charted(world);
        charted.run.unmet = evaluate_with_hpa(&scenario, release, &charted.run.snapshots);
        let pod_changes = world.pod_changes().to_vec();
        let last_updater_report = world.last_updater_report().cloned();
        VpaRun { scenario, release, charted, pod_changes, updater_reports, last_updater_report }
    }
}

impl<'e> RunningVpa<Comparing<'e>> {
    /// The recommender of an engine.
    ///
    /// # Errors
    /// If the engine can't run.
    pub(super) fn comparing(
        started: Started,
        engine: &'e mut dyn Engine<Vpa>,
        comparison: &mut Comparison<'_>,
    ) -> Result<Self, EngineError> {
        let Started { scenario, start, session, log, .. } = started;
        let release = engine.release();
        let engine = engine.open(RecommenderOpening { scenario: &scenario, start: &start })?;
        let mut lockstep = Lockstep::new(scenario.expects_contents());
        lockstep.started(&log, engine.start_log(), comparison);
        let ahead = if engine.takes_steps_ahead() { AHEAD } else { 1 };
        let runs = Comparing { engine, lockstep, updater: None, ahead };
        Ok(RunningVpa { scenario, release, session, runs })
    }

    /// The recommender and the updater of an engine, beside an HPA.
    ///
    /// # Errors
    /// If the engine can't run.
    pub(super) fn comparing_with_hpa(
        started: Started,
        engines: &'e mut VpaEngines,
        world: &mut World,
        comparison: &mut Comparison<'_>,
    ) -> Result<Self, EngineError> {
        let VpaEngines { recommender, updater } = engines;
        let mut vpa = RunningVpa::comparing(started, &mut **recommender, comparison)?;
        vpa.runs.lockstep.ticks_of_hpa = Some(0);
        // Its answers are needed before the next step.
        vpa.runs.ahead = 1;
        if let Some(updater) = updater {
            vpa.runs.updater = UpdaterLockstep::open(&mut **updater, world)?;
        }
        Ok(vpa)
    }

    /// Sets the number of ticks of the HPA controller so far.
    pub(super) fn after_ticks_of_hpa(&mut self, ticks: usize) {
        self.runs.lockstep.ticks_of_hpa = Some(ticks);
        if let Some(updater) = &mut self.runs.updater {
            updater.ticks_of_hpa = ticks;
        }
    }

    /// Compares the requests of the pods that were created since the last call.
    ///
    /// # Errors
    /// If the engine is broken.
    pub(super) fn admit(
        &mut self,
        world: &mut World,
        comparison: &mut Comparison<'_>,
    ) -> Result<(), EngineError> {
        self.runs.updater.as_mut().map_or(Ok(()), |updater| updater.admit(world, comparison))
    }

    /// Lets the VPA act until a time, and calls `watch` after each step. Returns why the scenario
    /// can't continue, if it can't.
    ///
    /// # Errors
    /// If the engine is broken.
    pub(super) fn compare(
        &mut self,
        world: &mut World,
        until: Option<Time>,
        comparison: &mut Comparison<'_>,
        watch: &mut Watch<'_>,
    ) -> Result<Option<RandomOutcome>, EngineError> {
        let mut under_way = VecDeque::new();
        loop {
            while under_way.len() < self.runs.ahead
                && let Some(stop) = Self::next_stop(world, until)
            {
                if let Some(why) = overlap(world, stop) {
                    return Ok(Some(why));
                }
                let step = world.begin_vpa_stop(stop);
                if let Some(step) = &step {
                    self.runs.engine.send(step)?;
                }
                self.admit(world, comparison)?;
                under_way.push_back(step);
            }
            let Some(step) = under_way.pop_front() else { return Ok(None) };
            let random = self.end_stop(world, step, comparison, watch)?;
            if random.is_some() {
                for _ in under_way.iter().flatten() {
                    self.runs.engine.receive()?;
                }
                return Ok(random);
            }
        }
    }

    /// Ends a stop: compares the run of the recommender, if there is one, then that of the updater.
    fn end_stop(
        &mut self,
        world: &mut World,
        step: Option<ScriptStep>,
        comparison: &mut Comparison<'_>,
        watch: &mut Watch<'_>,
    ) -> Result<Option<RandomOutcome>, EngineError> {
        let Comparing { engine, lockstep, updater, .. } = &mut self.runs;
        let mut written = Vec::new();
        if let Some(step) = step {
            let observed = engine.receive()?;
            written = writes(&observed);
            let predicted = lockstep.step(&mut self.session, &step, observed, comparison);
            watch(&mut self.session, &step, &predicted);
            if let Some(why) = comparison.undetermined.take() {
                return Ok(Some(why));
            }
        }
        world.apply_recommendations(&written);
        match updater {
            Some(updater) => updater.run(world, comparison)?,
            None => world.run_updater(),
        }
        Ok(None)
    }

    /// Ends the controllers, and returns the runs of the recommender.
    ///
    /// # Errors
    /// If the engine is broken, or a recorded trace has more entries.
    pub(super) fn close(self) -> Result<Lockstep, EngineError> {
        let Comparing { engine, lockstep, updater, .. } = self.runs;
        engine.close()?;
        updater.map_or(Ok(()), UpdaterLockstep::close)?;
        Ok(lockstep)
    }

    /// As [`close`](Self::close), beside an HPA.
    ///
    /// # Errors
    /// As [`close`](Self::close).
    pub(super) fn close_with_hpa(self, world: &World) -> Result<Box<ObservedVpa>, EngineError> {
        let (scenario, release) = (self.scenario.clone(), self.release);
        let lockstep = self.close()?;
        let is_complete = world.next_vpa_stop().is_none();
        Ok(Box::new(ObservedVpa { scenario, release, lockstep, is_complete }))
    }
}

/// The observed runs of the recommender.
pub(super) struct ObservedVpa {
    scenario: Arc<VpaScenario>,
    release: VpaRelease,
    lockstep: Lockstep,
    /// True if the scenario ran to its end.
    is_complete: bool,
}

impl ObservedVpa {
    /// Adds the recommender's part to the outcome: its runs, and the expectations of
    /// recommendations.
    pub(super) fn conclude(self, outcome: &mut Outcome, whole: &Arc<Scenario>, release: Release) {
        let ObservedVpa { scenario, release: vpa_release, lockstep, is_complete } = self;
        if is_complete && whole.releases.contains(release) {
            let unmet = evaluate_with_hpa(&scenario, vpa_release, &lockstep.snapshots);
            outcome.unmet.extend(with_reasons(&scenario, unmet, |is_explained| {
                Some(explained_free_run(whole, release, is_explained).vpa?.charted.run)
            }));
        }
        let run = lockstep.into_run(&scenario, &whole.hash, outcome);
        outcome.controllers.push(ControllerRun::Recommender(run));
    }
}
