//! The observed actions of the VPA in a scenario with an HPA.

use std::sync::Arc;

use super::Outcome;
use super::lockstep::explained_free_run;
use super::recommendation::with_reasons;
use super::recommender::RecommenderRun;
use crate::expect::recommender::evaluate_beside_hpa;
use crate::model::rules::{Release, VpaRelease};
use crate::model::vpa::Snapshot;
use crate::scenario::Scenario;
use crate::scenario::vpa::VpaScenario;
use crate::trace::recommender::{Entry, RecommenderTrace};

/// The runs of the recommender.
pub(super) struct ObservedVpa {
    pub(super) scenario: Arc<VpaScenario>,
    pub(super) release: VpaRelease,
    pub(super) snapshots: Vec<Snapshot>,
    pub(super) entries: Vec<Entry>,
    /// Whether the scenario ran to its end.
    pub(super) is_complete: bool,
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
        outcome.recommender = Some(Box::new(RecommenderRun {
            trace: RecommenderTrace {
                release: release.to_string(),
                engine: outcome.engine.to_string(),
                scenario: self.scenario.id.clone(),
                hash: scenario.hash.clone(),
                entries: self.entries,
            },
            scenario: self.scenario,
            snapshots: self.snapshots,
        }));
    }
}
