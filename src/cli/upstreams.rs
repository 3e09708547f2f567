//! Upstream's behavior for `diff` and `bisect`, from recorded traces or live.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::failure::Failure;
use super::output::{PreparationLog, tell};
use crate::engine::recorded::{Traces, not_recorded_on};
use crate::engine::source::{EngineLimits, EngineSource};
use crate::engine::{Engine, EngineError, upstream};
use crate::model::rules::Release;
use crate::run::{Verdict, run_one};
use crate::scenario::Scenario;
use crate::trace::Trace;

/// The behavior of a scenario on a release.
pub(super) enum Behavior {
    /// The trace of upstream.
    Trace(Trace),
    /// The release does not support the scenario, for this reason.
    Unsupported(String),
    /// Upstream could not run the scenario, for this reason.
    Unknown(String),
}

/// The upstream engines, started on demand.
pub(super) struct Upstreams {
    traces: Traces,
    /// Whether scenarios without a recorded trace are run.
    runs_live: bool,
    engines: BTreeMap<Release, Result<Box<dyn Engine>, String>>,
    preparing: PreparationLog,
    /// The last scenario that was announced to run live.
    announced: String,
}

impl Upstreams {
    pub(super) fn new(traces: Traces) -> Upstreams {
        let preparing = PreparationLog::default();
        let (engines, announced) = (BTreeMap::new(), String::new());
        Upstreams { traces, runs_live: true, engines, preparing, announced }
    }

    /// Upstream's behavior from recorded traces only.
    pub(super) fn recorded_only(traces: Traces) -> Upstreams {
        Upstreams { runs_live: false, ..Upstreams::new(traces) }
    }

    /// Returns upstream's behavior in a scenario on a release.
    pub(super) fn behavior(
        &mut self,
        scenario: &Arc<Scenario>,
        release: Release,
    ) -> Result<Behavior, Failure> {
        if let Some(why) = scenario.unsupported_on(release) {
            return Ok(Behavior::Unsupported(why));
        }
        match self.recorded(scenario, release)? {
            Some(trace) => Ok(Behavior::Trace(trace)),
            None if !self.runs_live => Ok(Behavior::Unsupported(not_recorded_on(release))),
            None => Ok(self.live(scenario, release)),
        }
    }

    /// The recorded trace, unless the scenario has changed since.
    fn recorded(&self, scenario: &Scenario, release: Release) -> Result<Option<Trace>, Failure> {
        let broken = |why: String| Failure::engine(format!("{}: {why}", scenario.id));
        let found = self.traces.find(&scenario.id, release).map_err(broken)?;
        let trace = found.map(|recording| recording.trace()).transpose().map_err(broken)?;
        Ok(trace.filter(|trace| trace.hash == scenario.hash))
    }

    fn live(&mut self, scenario: &Arc<Scenario>, release: Release) -> Behavior {
        if self.announced != scenario.id {
            self.announced.clone_from(&scenario.id);
            let text = format!("note: running {} live: it has no recorded trace\n", scenario.id);
            tell(&text);
        }
        let engine = self.engines.entry(release).or_insert_with(|| {
            let mut progress = |what: &str, done| self.preparing.log(what, done);
            let factory =
                EngineSource::Upstream.prepare(release, &EngineLimits::default(), &mut progress);
            factory.map(|factory| factory.make()).map_err(|error| match error {
                EngineError::Unavailable { why, hint, .. } => {
                    format!("{} {release} can't run here: {why}; {hint}", upstream::NAME)
                }
                error => error.to_string(),
            })
        });
        let outcome = match engine {
            Ok(engine) => run_one(scenario, &mut **engine, &[]),
            Err(why) => return Behavior::Unknown(why.clone()),
        };
        match outcome.verdict {
            Verdict::Skipped { why } => Behavior::Unsupported(why),
            Verdict::Inconclusive { why, .. } => Behavior::Unknown(why),
            // The model's prediction does not matter here.
            Verdict::Conforms | Verdict::Diverges(_) | Verdict::Unmet => {
                Behavior::Trace(outcome.trace)
            }
        }
    }
}
