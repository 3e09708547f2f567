//! A scenario with an HPA and a VPA: the recommender in the clock and the world of the HPA.
//!
//! Before each step of the HPA, the VPA catches up: its recommender runs at its own times, and what
//! it writes decides which requests pods get. At one time, the VPA precedes the HPA.

use std::sync::Arc;

use super::comparison::Comparison;
use super::findings::Findings;
use super::lockstep::explained_free_run;
use super::random::{RandomCause, RandomOutcome};
use super::recommendation::with_reasons;
use super::recommender::{ChartedRun, Keep, Predicting};
use super::recommender_lockstep::Lockstep;
use super::updater_lockstep::UpdaterLockstep;
use super::{ControllerRun, Outcome};
use crate::engine::{self, EngineError, RecommenderOpening, Vpa, VpaEngines};
use crate::expect::Unmet;
use crate::expect::recommender::evaluate_with_hpa;
use crate::world::{PodChange, UpdaterReport, World};
use kube_autoscaler_models::rules::{Release, VpaRelease, VpaRules};
use kube_autoscaler_models::time::Time;
use kube_autoscaler_models::vpa::{LogLine, Session, Snapshot, Start, Stepped, Write};
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

/// The recommender with an HPA controller.
pub(super) struct HpaWithVpa<R> {
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
}

/// A recommender that has just started.
struct Started {
    scenario: Arc<VpaScenario>,
    start: Start,
    session: Session,
    log: Vec<LogLine>,
}

/// Starts the model of the recommender. None: there is no VPA.
fn start(scenario: &Scenario, world: &mut World) -> Option<Started> {
    let vpa = scenario.vpa.as_ref()?;
    let start = world.recommender_start()?;
    let vpa_scenario = VpaScenario {
        id: format!("{}/{}", scenario.id, vpa.release),
        path: scenario.path.clone(),
        hash: scenario.hash.clone(),
        ..(*vpa.recommender).clone()
    };
    let (session, log) = Session::open(&start, VpaRules::of(vpa.release));
    Some(Started { scenario: Arc::new(vpa_scenario), start, session, log })
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

impl<R> HpaWithVpa<R> {
    /// The next stop of the VPA, at or before the next step of the HPA, or before the end.
    fn next_stop(world: &World, until: Option<Time>) -> Option<Time> {
        world.next_vpa_stop().filter(|stop| until.is_none_or(|until| *stop <= until))
    }
}

impl<'e> HpaWithVpa<Predicted<'e>> {
    /// A recommender that follows the model. `is_explained` selects the runs, by index, whose
    /// amounts are derived. None: there is no VPA.
    pub(super) fn predicting(
        scenario: &Scenario,
        world: &mut World,
        is_explained: &'e dyn Fn(usize) -> bool,
    ) -> Option<Self> {
        let release = scenario.vpa.as_ref()?.release;
        let Started { scenario, session, log, .. } = start(scenario, world)?;
        let runs = Predicting::new(&scenario, log, Keep { is_explained, usage: true });
        let runs = Predicted { runs, updater_reports: Vec::new() };
        Some(HpaWithVpa { scenario, release, session, runs })
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

    /// The result.
    pub(super) fn into_run(self, world: &World) -> VpaRun {
        let HpaWithVpa { scenario, release, runs, .. } = self;
        let Predicted { runs: Predicting { mut charted, .. }, updater_reports } = runs;
        charted.run.unmet = evaluate_with_hpa(&scenario, release, &charted.run.snapshots);
        let pod_changes = world.pod_changes().to_vec();
        charted.run.unmatched = world.unmatched_vpa_actions().to_vec();
        let last_updater_report = world.last_updater_report().cloned();
        VpaRun { scenario, release, charted, pod_changes, updater_reports, last_updater_report }
    }
}

impl<'e> HpaWithVpa<Comparing<'e>> {
    /// A recommender of an engine. None: there is no VPA.
    ///
    /// # Errors
    /// If the engine can't run.
    pub(super) fn comparing(
        scenario: &Scenario,
        world: &mut World,
        engines: &'e mut VpaEngines,
        comparison: &mut Comparison<'_>,
    ) -> Result<Option<Self>, EngineError> {
        let Some(Started { scenario: vpa, start, session, log }) = start(scenario, world) else {
            return Ok(None);
        };
        let VpaEngines { recommender, updater } = engines;
        let release = recommender.release();
        let engine = recommender.open(RecommenderOpening { scenario: &vpa, start: &start })?;
        let mut lockstep = Lockstep::new(vpa.expects_contents());
        lockstep.ticks_of_hpa = Some(0);
        lockstep.started(&log, engine.start_log(), comparison);
        let updater = match updater {
            Some(updater) => UpdaterLockstep::open(&mut **updater, world, &scenario.workload.name)?,
            None => None,
        };
        let runs = Comparing { engine, lockstep, updater };
        Ok(Some(HpaWithVpa { scenario: vpa, release, session, runs }))
    }

    /// Compares the requests of the pods that were created since the last call.
    ///
    /// # Errors
    /// If the engine is broken.
    pub(super) fn admit(
        &mut self,
        world: &mut World,
        findings: &mut Findings<'_>,
    ) -> Result<(), EngineError> {
        self.runs.updater.as_mut().map_or(Ok(()), |updater| updater.admit(world, findings))
    }

    /// Lets the VPA act until a time. Returns why the scenario can't continue, if it can't.
    ///
    /// # Errors
    /// If the engine is broken.
    pub(super) fn compare(
        &mut self,
        world: &mut World,
        until: Option<Time>,
        findings: &mut Findings<'_>,
    ) -> Result<Option<RandomOutcome>, EngineError> {
        let Comparing { engine, lockstep, updater } = &mut self.runs;
        lockstep.ticks_of_hpa = Some(findings.trace.ticks.len());
        while let Some(stop) = Self::next_stop(world, until) {
            if let Some(why) = overlap(world, stop) {
                return Ok(Some(why));
            }
            let step = world.begin_vpa_stop(stop);
            if let Some(updater) = updater {
                updater.admit(world, findings)?;
            }
            let mut written = Vec::new();
            if let Some(step) = step {
                let observed = engine.step(&step)?;
                written = writes(&observed);
                let comparison = &mut findings.comparison;
                lockstep.step(&mut self.session, &step, observed, comparison);
                if let Some(why) = comparison.undetermined.take() {
                    return Ok(Some(why));
                }
            }
            world.apply_recommendations(&written);
            match updater {
                Some(updater) => updater.run(world, findings)?,
                None => world.run_updater(),
            }
        }
        Ok(None)
    }

    /// Ends the recommender, and adds its runs to the findings.
    ///
    /// # Errors
    /// If the engine is broken, or a recorded trace has more entries.
    pub(super) fn close(
        self,
        world: &World,
        findings: &mut Findings<'_>,
    ) -> Result<(), EngineError> {
        let HpaWithVpa { scenario, release, runs, .. } = self;
        let Comparing { engine, lockstep, updater } = runs;
        engine.close()?;
        updater.map_or(Ok(()), UpdaterLockstep::close)?;
        let is_complete = world.next_vpa_stop().is_none();
        findings.vpa = Some(Box::new(ObservedVpa { scenario, release, lockstep, is_complete }));
        Ok(())
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
