//! Runs on real clusters, in wall-clock time. `docs/wall-clock.md` lists the compared behavior and
//! the tolerances.
//!
//! | file | subject |
//! |---|---|
//! | `context` | the plan and the runtime that the clusters of all parts share |
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
mod context;
mod custom_controller;
mod event_recorder;
mod existing_cluster;
mod group;
mod hypotheses;
mod in_flight;
mod preparation;
mod recommender;
mod requirements;
mod retries;
mod schedule;
mod template;
mod uncertainty;
mod window;

use self::clusters::NewClusters;
use self::context::Context;
use self::existing_cluster::OpenCluster;
use self::recommender::Recommenders;
use crate::kubeconfig;
use kube_lockstep_engines::executor::{Executor, ReadyEngine};
use kube_lockstep_engines::options::ExistingCluster;
use kube_lockstep_engines::plan::{Part, Plan};
use kube_lockstep_engines::record::Record;
use kube_lockstep_engines::registry::EngineChoice;
use kube_lockstep_scenario::Diagnostic;
use kube_lockstep_sim::engine::EngineError;

/// The clusters of a plan.
struct Clusters {
    context: Context,
    /// The cluster that the plan names, instead of new ones.
    existing: Option<ExistingCluster>,
}

/// The executor of a plan for clusters.
///
/// # Errors
/// If the plan does not fit the cluster that it names.
pub fn executor<'p>(
    plan: &'p Plan,
    parts: &'p [Part],
) -> Result<Box<dyn Executor + 'p>, EngineError> {
    let existing = match (plan.engine, &plan.cluster.existing, parts) {
        (EngineChoice::Kubeconfig, Some(cluster), [_]) => Some(cluster.clone()),
        (EngineChoice::Kubeconfig, ..) => {
            return Err(EngineError::Unavailable {
                engine: kubeconfig::NAME.into(),
                problem: Diagnostic::new(
                    "an existing cluster requires one release and a kubeconfig context",
                )
                .hint("select one release and name the context"),
            });
        }
        _ => None,
    };
    Ok(Box::new(Clusters { context: Context::new(plan)?, existing }))
}

impl Executor for Clusters {
    fn prepare<'a>(
        &'a mut self,
        part: &'a Part,
        record: &mut Record<'_>,
    ) -> Result<Option<Box<dyn ReadyEngine + 'a>>, EngineError> {
        let Clusters { context, existing } = &*self;
        Ok(Some(match (part, existing) {
            (Part::Hpa(part), Some(cluster)) => {
                Box::new(OpenCluster::connect(context, cluster, part, record)?)
            }
            // Clusters are built when the settings that the scenarios require are known.
            (Part::Hpa(part), None) => Box::new(NewClusters { context, part }),
            (Part::Vpa(part), _) => Box::new(Recommenders::prepare(context, part, record)?),
        }))
    }
}
