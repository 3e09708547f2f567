//! One tick in full: a controller's input, each step of its decision, and its writes.

use std::sync::Arc;

use super::presentation::blocks::Block;
use super::presentation::{hpa, recommender};
use super::table::{Contents, heading};
use super::text::text;
use kube_autoscaler_models::rules::{Release, VpaRelease};
use kube_autoscaler_models::vpa::Snapshot;
use kube_lockstep_scenario::Scenario;
use kube_lockstep_scenario::vpa::VpaScenario;
use kube_lockstep_sim::run::recommendation::amounts;
use kube_lockstep_sim::run::recommender::FreeRecommenderRun;
use kube_lockstep_sim::run::{FreeRun, VpaRun, explained_free_run, free_run};

/// Explains the tick with this index (from 0), if it exists. With a VPA, this is followed by the
/// last run of the recommender at or before the tick.
#[must_use]
pub fn tick_with_vpa(
    scenario: &Arc<Scenario>,
    release: Release,
    index: usize,
    columns: usize,
) -> Option<String> {
    let run = free_run(scenario, release);
    let mut out = tick(scenario, &run, index, &release.to_string(), columns)?;
    let at = run.ticks.get(index)?.observation.at;
    let Some(vpa) = &run.vpa else { return Some(out) };
    out.push('\n');
    match vpa.index_at(at) {
        Some(last) => {
            let run = explained_free_run(scenario, release, &|number| number == last);
            out.push_str(&recommender_run_with_hpa(run.vpa.as_ref()?, last, columns));
        }
        None => out.push_str("The recommender of the VPA has not run yet.\n"),
    }
    Some(out)
}

/// Explains the tick with this index (from 0), if it exists.
#[must_use]
pub fn tick(
    scenario: &Scenario,
    run: &FreeRun,
    index: usize,
    release: &str,
    columns: usize,
) -> Option<String> {
    let blocks = hpa::explanation::tick(scenario, run, index)?;
    let heading = heading(&scenario.id, &scenario.requirement, release, columns);
    Some(heading + &written(&blocks, columns))
}

/// Explains one run of the recommender: its samples, and how each amount follows from them.
#[must_use]
pub fn recommender_run(
    scenario: &VpaScenario,
    run: &FreeRecommenderRun,
    index: usize,
    release: VpaRelease,
    columns: usize,
) -> String {
    let (id, requirement) = (&scenario.id, &scenario.requirement);
    let heading = heading(id, requirement, &release.to_string(), columns);
    heading + &written(&recommender::explanation::alone(run, index), columns)
}

/// Explains one run of the recommender in a scenario with an HPA.
#[must_use]
pub fn recommender_run_with_hpa(vpa: &VpaRun, index: usize, columns: usize) -> String {
    written(&recommender::explanation::with_hpa(vpa, index), columns)
}

fn written(blocks: &[Block], columns: usize) -> String {
    text(blocks, Contents::all(columns))
}

/// The index of the first run that recommends resources for one of these VPAs.
#[must_use]
pub fn first_recommendation(snapshots: &[Snapshot], vpas: &[&str]) -> Option<usize> {
    snapshots.iter().position(|snapshot| {
        vpas.iter().filter_map(|vpa| snapshot.status(vpa)).any(|status| !amounts(status).is_empty())
    })
}
