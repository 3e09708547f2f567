//! Runs on real clusters, in wall-clock time. `docs/wall-clock.md` lists the compared behavior and
//! the tolerances.
//!
//! | file | subject |
//! |---|---|
//! | `preparation` | a scenario as it runs on a cluster, or why it can't |
//! | `clusters`, `existing_cluster` | the clusters of a run: new ones for each release, or a given one |
//! | `requirements` | groups of scenarios that can share a cluster |
//! | `template` | the program or image of new clusters |
//! | `schedule` | which scenarios run next on which cluster |
//! | `group` | scenarios side by side on one cluster, and retries |
//! | `attempt` | one attempt at a scenario: applies the world to the cluster, and waits |
//! | `recommender` | scenarios of the VPA's recommender |
//! | `checker` | compares the observed reconciles with the model: pure |

mod attempt;
mod checker;
mod clusters;
mod custom_controller;
mod event_recorder;
mod existing_cluster;
mod group;
mod hypotheses;
mod in_flight;
mod preparation;
pub(super) mod recommender;
mod requirements;
mod schedule;
mod template;
mod uncertainty;
mod window;

use self::clusters::NewClusters;
use self::existing_cluster::Existing;
use super::executor::Executor;
use super::plan::{Plan, ReleasePlan};
use crate::engine::EngineError;
use crate::engine::registry::EngineChoice;

/// The executor of a plan for clusters.
///
/// # Errors
/// If the plan does not fit the cluster that it names.
pub(super) fn executor(
    plan: &Plan,
    parts: &[ReleasePlan],
) -> Result<Box<dyn Executor>, EngineError> {
    Ok(match plan.engine {
        EngineChoice::Kubeconfig => Box::new(Existing::new(plan, parts)?),
        _ => Box::new(NewClusters::new(plan)?),
    })
}
