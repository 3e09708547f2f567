//! Upstream's behavior for `diff` and `bisect`, from recorded traces or live.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::args::BuildArgs;
use super::failure::Failure;
use super::output::{PreparationLog, tell};
use kube_autoscaler_models::rules::Release;
use kube_lockstep_engines::recorded::{Traces, not_recorded_on};
use kube_lockstep_engines::source::EngineSource;
use kube_lockstep_engines::upstream;
use kube_lockstep_engines::upstream::prepare_recommender;
use kube_lockstep_scenario::Scenario;
use kube_lockstep_sim::engine::{Engine, EngineError};
use kube_lockstep_sim::run::{ControllerRun, Preparation, Verdict, run_one};
use kube_lockstep_sim::trace::Trace;

/// The behavior of a scenario on a release.
pub(super) enum Behavior {
    /// The trace of upstream.
    Trace(Trace),
    /// The release does not support the scenario, for this reason.
    Unsupported(String),
    /// Upstream could not run the scenario, for this reason.
    Unknown(String),
}

/// The treatment of scenarios without a recorded trace.
#[derive(Clone, Copy, Debug)]
pub(super) enum RunsLive {
    /// They are not compared.
    Never,
    /// They are run on engines that are in the cache folder, or that are built if this is allowed.
    On(BuildArgs),
}

/// The upstream engines, started on demand.
pub(super) struct Upstreams {
    traces: Traces,
    runs_live: RunsLive,
    engines: BTreeMap<Release, Result<Box<dyn Engine>, String>>,
    preparing: PreparationLog,
    /// The last scenario that was announced to run live.
    announced: String,
}

impl Upstreams {
    pub(super) fn new(traces: Traces, runs_live: RunsLive) -> Upstreams {
        let preparing = PreparationLog::default();
        let (engines, announced) = (BTreeMap::new(), String::new());
        Upstreams { traces, runs_live, engines, preparing, announced }
    }

    /// Returns upstream's behavior in a scenario on a release.
    pub(super) fn behavior(
        &mut self,
        scenario: &Arc<Scenario>,
        release: Release,
    ) -> Result<Behavior, Failure> {
        if let Some(why) = scenario.unsupported_on(release) {
            return Ok(Behavior::Unsupported(why.to_string()));
        }
        match (self.recorded(scenario, release)?, self.runs_live) {
            (Some(trace), _) => Ok(Behavior::Trace(trace)),
            (None, RunsLive::Never) => {
                Ok(Behavior::Unsupported(not_recorded_on(release).to_string()))
            }
            (None, RunsLive::On(builds)) => Ok(self.live(scenario, release, builds)),
        }
    }

    /// The recorded trace, unless the scenario has changed since.
    fn recorded(&self, scenario: &Scenario, release: Release) -> Result<Option<Trace>, Failure> {
        let broken = |why: String| Failure::engine(format!("{}: {why}", scenario.id));
        let found = self.traces.find(&scenario.id, release).map_err(broken)?;
        let trace = found.map(|recording| recording.trace()).transpose().map_err(broken)?;
        Ok(trace.filter(|trace| trace.hash == scenario.hash))
    }

    fn live(&mut self, scenario: &Arc<Scenario>, release: Release, builds: BuildArgs) -> Behavior {
        if self.announced != scenario.id {
            self.announced.clone_from(&scenario.id);
            let text = format!("note: running {} live: it has no recorded trace\n", scenario.id);
            tell(&text);
        }
        let limits = builds.limits(&CancellationToken::new());
        let mut progress = |it: Preparation| self.preparing.log(&it);
        if let Some(vpa) = &scenario.vpa {
            prepare_recommender(vpa.release, &limits.builds, &mut progress);
        }
        let engine = self.engines.entry(release).or_insert_with(|| {
            let factory = EngineSource::Upstream.prepare(release, &limits, &mut progress);
            factory.map(|factory| factory.make()).map_err(|error| why_not_live(error, release))
        });
        let outcome = match engine {
            Ok(engine) => run_one(scenario, &mut **engine, &[]),
            Err(why) => return Behavior::Unknown(why.clone()),
        };
        match (outcome.verdict, outcome.controllers.into_iter().next()) {
            (Verdict::Skipped { why }, _) => Behavior::Unsupported(why.to_string()),
            (Verdict::Inconclusive { why, .. }, _) => Behavior::Unknown(why),
            // The model's prediction does not matter here.
            (_, Some(ControllerRun::Hpa(run))) => Behavior::Trace(run.trace),
            (_, _) => Behavior::Unknown("upstream has no reconciles".to_owned()),
        }
    }
}

/// The reason why upstream could not run a scenario on a release.
pub(super) fn why_not_live(error: EngineError, release: impl Display) -> String {
    match error {
        EngineError::Unavailable { problem, .. } => {
            format!("{} {release} can't run here: {}", upstream::NAME, problem.in_one_line("; "))
        }
        error => error.to_string(),
    }
}
