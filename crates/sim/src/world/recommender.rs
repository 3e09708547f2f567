//! Scenarios with a VPA alone: recommendations do not change the pods, so everything that the
//! recommender observes is known in advance.

use std::sync::Arc;

use super::driver::World;
use kube_autoscaler_models::vpa::Script;
use kube_lockstep_scenario::vpa::VpaScenario;

/// The world of a scenario with a VPA alone, from its start to its end.
#[derive(Clone, Debug)]
pub struct Played {
    /// What the recommender observes. All changes at or before a run are visible in it; a restart
    /// follows a run of the same time.
    pub script: Script,
    /// The events whose actions matched no existing pod, by their indices.
    pub unmatched: Vec<usize>,
}

/// Runs the world of a scenario.
#[must_use]
pub fn play(scenario: &VpaScenario) -> Played {
    let mut world = World::of_vpa(&Arc::new(scenario.clone()));
    let start = world.recommender_start().unwrap_or_default();
    let mut steps = Vec::new();
    while let Some(stop) = world.next_vpa_stop() {
        steps.extend(world.begin_vpa_stop(stop));
    }
    let script = Script { name: scenario.id.clone(), flags: scenario.flags.clone(), start, steps };
    Played { script, unmatched: world.unmatched_vpa_actions().to_vec() }
}

/// What the recommender observes in a scenario.
#[must_use]
pub fn script(scenario: &VpaScenario) -> Script {
    play(scenario).script
}
