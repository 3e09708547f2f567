//! New clusters for a release. All scenarios on a cluster share the flags of its controller, so
//! scenarios run in groups with the same flags, each group on its own cluster.

use std::sync::Arc;

use tokio::runtime::Runtime;

use super::group::ReleaseRun;
use super::preparation::{for_new_cluster, prepare_all};
use super::requirements::groups;
use super::schedule::Schedule;
use super::template::ClusterTemplate;
use crate::engine::EngineError;
use crate::engine::runtime::{self, Threads};
use crate::run::executor::{Executor, ReadyEngine};
use crate::run::plan::{Plan, ReleasePlan};
use crate::run::record::Record;
use crate::scenario::Scenario;

/// New clusters for each release of a plan.
pub(super) struct NewClusters {
    plan: Arc<Plan>,
    name: Arc<str>,
    runtime: Runtime,
}

impl NewClusters {
    pub(super) fn new(plan: &Plan) -> Result<NewClusters, EngineError> {
        let name = plan.engine_name();
        let runtime = runtime::of_engine(&name, Threads::AllCores)?;
        Ok(NewClusters { plan: Arc::new(plan.clone()), name, runtime })
    }
}

impl Executor for NewClusters {
    fn prepare(
        &mut self,
        _: &ReleasePlan,
        _: &mut Record<'_>,
    ) -> Result<Option<Box<dyn ReadyEngine + '_>>, EngineError> {
        // Clusters are built when the settings that the scenarios require are known.
        Ok(Some(Box::new(&*self)))
    }
}

impl ReadyEngine for &NewClusters {
    fn name(&self) -> Arc<str> {
        self.name.clone()
    }

    fn note(&self) -> Option<String> {
        let cluster = &self.plan.cluster;
        let own = cluster.controller.as_ref();
        let own = own.map(|own| format!("; {}", own.note())).unwrap_or_default();
        let have_expectations =
            self.plan.scenarios.iter().any(|scenario| !scenario.expect.is_empty());
        let unchecked = match have_expectations && cluster.pace.speed.get() > 1 {
            true => ", so `expect` is not checked",
            false => "",
        };
        Some(format!("{} times as fast as in the file{unchecked}{own}", cluster.pace.speed))
    }

    fn run(
        self: Box<Self>,
        part: &ReleasePlan,
        record: &mut Record<'_>,
    ) -> Result<(), EngineError> {
        let NewClusters { plan, name, runtime } = *self;
        let prepare = |it: &Scenario| for_new_cluster(it, part.release, plan.cluster.pace);
        let prepared = prepare_all(part, name, record, prepare);
        if prepared.is_empty() {
            return Ok(());
        }
        let groups = groups(prepared, part.release, plan.cluster.controller.as_ref());
        runtime.block_on(async {
            let template = ClusterTemplate::prepare(plan, part.release, record).await?;
            let scenarios = groups.iter().flat_map(|group| &group.scenarios);
            let run = ReleaseRun::new(plan.clone(), name.clone(), part.release, scenarios);
            Schedule::new(run, &groups, &template, record).run().await
        })
    }
}
