//! New clusters for a release. All scenarios on a cluster share the flags of its controller, so
//! scenarios run in groups with the same flags, each group on its own cluster.

use std::sync::Arc;

use super::context::Context;
use super::group::ReleaseRun;
use super::preparation::{for_new_cluster, prepare_all};
use super::requirements::groups;
use super::schedule::Schedule;
use super::template::ClusterTemplate;
use kube_lockstep_engines::executor::ReadyEngine;
use kube_lockstep_engines::plan::ReleasePlan;
use kube_lockstep_engines::record::Record;
use kube_lockstep_scenario::Scenario;
use kube_lockstep_sim::engine::EngineError;

/// New clusters for the scenarios of a release.
pub(super) struct NewClusters<'a> {
    pub context: &'a Context,
    pub part: &'a ReleasePlan,
}

impl ReadyEngine for NewClusters<'_> {
    fn name(&self) -> Arc<str> {
        self.context.name.clone()
    }

    fn note(&self) -> Option<String> {
        let cluster = &self.context.plan.cluster;
        let own = cluster.controller.as_ref();
        let own = own.map(|own| format!("; {}", own.note())).unwrap_or_default();
        let have_expectations =
            self.context.plan.scenarios.iter().any(|scenario| !scenario.expect.is_empty());
        let unchecked = match have_expectations && cluster.pace.speed.get() > 1 {
            true => ", so `expect` is not checked",
            false => "",
        };
        Some(format!("{} times as fast as in the file{unchecked}{own}", cluster.pace.speed))
    }

    fn run(self: Box<Self>, record: &mut Record<'_>) -> Result<(), EngineError> {
        let NewClusters { context: Context { plan, name, runtime }, part } = *self;
        let is_custom = plan.cluster.controller.is_some();
        let prepare = |it: &Scenario| match is_custom && it.interrupts_reconciles() {
            true => Err("with a custom controller: actions during a reconcile, because the \
                         controller may send its requests in another order than upstream's"
                .into()),
            false => for_new_cluster(it, part.release, plan.cluster.pace),
        };
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
