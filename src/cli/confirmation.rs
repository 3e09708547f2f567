//! Runs predicted scenarios on the upstream controller.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::args::BuildArgs;
use super::output::{PreparationLog, columns};
use super::upstreams::why_not_live;
use kube_autoscaler_models::rules::Release;
use kube_lockstep_engines::source::{EngineFactory, EngineSource};
use kube_lockstep_report::{counted, wrapped};
use kube_lockstep_scenario::Scenario;
use kube_lockstep_sim::run::{Preparation, Verdict, run_one};

/// Whether the upstream controller does what the model predicts.
pub(super) enum Confirmed {
    /// It was not asked.
    NotRun,
    /// It can't run here, for this reason.
    Unavailable(String),
    /// It does. The text has the number of reconciles.
    Yes(String),
    /// It differs from the model. The text says how to find out more.
    No(String),
}

/// The parts of a confirmation's text that depend on the command.
#[derive(Clone, Copy, Default)]
pub(super) struct Wording {
    /// The beginning of the sentence, such as `with the best setting, `.
    pub(super) subject: &'static str,
    /// How to find out more about a difference.
    pub(super) solution: &'static str,
}

impl Confirmed {
    /// The result as text; empty if the controller was not asked.
    pub(super) fn text(&self) -> String {
        self.sentence().map_or_else(String::new, |text| wrapped("", &text, columns()))
    }

    /// The result in one line. None: the controller was not asked.
    pub(super) fn sentence(&self) -> Option<String> {
        match self {
            Confirmed::NotRun => None,
            Confirmed::Yes(text) => Some(format!("confirmed: {text}")),
            Confirmed::Unavailable(why) | Confirmed::No(why) => {
                Some(format!("not confirmed: {why}"))
            }
        }
    }

    /// True if it is confirmed, false if it is not, and the reason for anything but true. None: the
    /// controller did not run.
    pub(super) fn as_json(&self) -> (Option<bool>, Option<&str>) {
        match self {
            Confirmed::NotRun => (None, None),
            Confirmed::Unavailable(why) => (None, Some(why)),
            Confirmed::Yes(_) => (Some(true), None),
            Confirmed::No(why) => (Some(false), Some(why)),
        }
    }
}

/// The upstream controller of a release.
pub(super) struct UpstreamController {
    release: Release,
    factory: EngineFactory,
}

impl UpstreamController {
    /// Builds it, if necessary.
    ///
    /// # Errors
    /// Why it can't run here.
    pub(super) fn prepare(
        release: Release,
        build: &BuildArgs,
        stop: &CancellationToken,
    ) -> Result<UpstreamController, String> {
        let mut preparing = PreparationLog::default();
        let mut progress = |it: Preparation| preparing.log(&it);
        let limits = build.limits(stop);
        let factory = EngineSource::Upstream.prepare(release, &limits, &mut progress);
        let factory = factory.map_err(|error| why_not_live(error, release))?;
        Ok(UpstreamController { release, factory })
    }

    /// Runs a scenario in lockstep with the model, which predicts this verdict.
    pub(super) fn confirm(
        &self,
        scenario: &Arc<Scenario>,
        predicted: &Verdict,
        Wording { subject, solution }: Wording,
    ) -> Confirmed {
        let (controller, tick) = match scenario.vpa.as_ref().filter(|_| scenario.hpas.is_empty()) {
            Some(vpa) => (format!("upstream recommender of {}", vpa.release), "run"),
            None => (format!("upstream controller of {}", self.release), "reconcile"),
        };
        let outcome = run_one(scenario, &mut *self.factory.make(), &[]);
        match outcome.verdict {
            verdict if verdict == *predicted => Confirmed::Yes(format!(
                "{subject}the {controller} does what the model predicts, in {}",
                counted(outcome.ticks, tick)
            )),
            Verdict::Skipped { why } => Confirmed::Unavailable(why.to_string()),
            Verdict::Inconclusive { why, .. } => Confirmed::Unavailable(why),
            Verdict::Conforms | Verdict::Unmet | Verdict::Diverges(_) => Confirmed::No(format!(
                "{subject}the {controller} differs from the model; {solution}"
            )),
        }
    }
}
