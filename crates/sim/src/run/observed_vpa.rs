//! The observed actions of the VPA in a scenario with an HPA.

use std::sync::Arc;

use super::lockstep::explained_free_run;
use super::recommendation::with_reasons;
use super::recommender::RecommenderRun;
use super::{ControllerRun, Outcome};
use crate::expect::recommender::evaluate_beside_hpa;
use crate::trace::recommender::{Entry, RecommenderTrace};
use kube_autoscaler_models::rules::{Release, VpaRelease};
use kube_autoscaler_models::vpa::Snapshot;
use kube_lockstep_scenario::Scenario;
use kube_lockstep_scenario::vpa::VpaScenario;

/// The runs of the recommender.
pub(super) struct ObservedVpa {
    pub scenario: Arc<VpaScenario>,
    pub release: VpaRelease,
    pub snapshots: Vec<Snapshot>,
    pub entries: Vec<Entry>,
    /// Whether the scenario ran to its end.
    pub is_complete: bool,
}

impl ObservedVpa {
    /// Adds the recommender's part to the outcome: its runs, and the expectations of
    /// recommendations.
    pub(super) fn conclude(
        self,
        outcome: &mut Outcome,
        scenario: &Arc<Scenario>,
        release: Release,
    ) {
        if self.is_complete && scenario.releases.contains(release) {
            let unmet = evaluate_beside_hpa(&self.scenario, self.release, &self.snapshots);
            outcome.unmet.extend(with_reasons(&self.scenario, unmet, |is_explained| {
                Some(explained_free_run(scenario, release, is_explained).vpa?.charted.run)
            }));
        }
        let trace = RecommenderTrace {
            release: release.to_string(),
            engine: outcome.engine.to_string(),
            scenario: self.scenario.id.clone(),
            hash: scenario.hash.clone(),
            entries: self.entries,
        };
        let run = RecommenderRun { scenario: self.scenario, trace, snapshots: self.snapshots };
        outcome.controllers.push(ControllerRun::Recommender(run));
    }
}
