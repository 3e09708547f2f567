//! A cluster that the user names, whose controller can't be configured.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use super::context::Context;
use super::group::{GroupRun, ReleaseRun};
use super::preparation::{for_existing_cluster, prepare_all};
use crate::cluster::Cluster;
use crate::cluster::metrics_api::groups::{CUSTOM_METRICS, EXTERNAL_METRICS, RESOURCE_METRICS};
use kube_autoscaler_models::time::Span;
use kube_lockstep_engines::executor::ReadyEngine;
use kube_lockstep_engines::options::ExistingCluster;
use kube_lockstep_engines::plan::ReleasePlan;
use kube_lockstep_engines::record::Record;
use kube_lockstep_scenario::Scenario;
use kube_lockstep_sim::engine::EngineError;
use kube_lockstep_sim::run::Preparation;

/// An existing cluster on which the metrics APIs are served.
pub(super) struct OpenCluster<'a> {
    context: &'a Context,
    existing: &'a ExistingCluster,
    part: &'a ReleasePlan,
    cluster: Cluster,
    /// The cluster's measured sync period.
    period: Span,
}

impl<'a> OpenCluster<'a> {
    /// Connects to a cluster, and serves the metrics APIs that the scenarios of a part use.
    ///
    /// # Errors
    /// If the cluster can't run scenarios.
    pub(super) fn connect(
        context: &'a Context,
        existing: &'a ExistingCluster,
        part: &'a ReleasePlan,
        record: &mut Record<'_>,
    ) -> Result<OpenCluster<'a>, EngineError> {
        let Context { plan, name, runtime } = context;
        let groups = groups(part.scenarios.iter());
        let mut progress = |what: &str| record.preparing(Preparation::new(what));
        let opened = Cluster::connect(name, existing, &groups, &plan.stop, &mut progress);
        let (cluster, period) = runtime.block_on(opened)?;
        Ok(OpenCluster { context, existing, part, cluster, period })
    }
}

impl ReadyEngine for OpenCluster<'_> {
    fn name(&self) -> Arc<str> {
        self.context.name.clone()
    }

    fn note(&self) -> Option<String> {
        let OpenCluster { existing, part: ReleasePlan { release, .. }, period, .. } = self;
        Some(format!(
            "context {}; the cluster's measured sync period is {period}; its other flags and its \
             feature gates can't be observed and are assumed to be the defaults of {release}; \
             reads of the scale can't be observed and are not compared",
            existing.context
        ))
    }

    fn run(self: Box<Self>, record: &mut Record<'_>) -> Result<(), EngineError> {
        let OpenCluster { context, existing, part, cluster, period } = *self;
        let Context { plan, name, runtime } = context;
        let (release, pace) = (part.release, plan.cluster.pace);
        let prepare = |it: &Scenario| for_existing_cluster(it, release, period, pace);
        let scenarios = prepare_all(part, name, record, prepare);
        let run = ReleaseRun::new(plan.clone(), name.clone(), release, &scenarios);
        let mut group = GroupRun::new(Arc::new(run), scenarios, cluster);
        // All created objects are removed, even after a panic of this program.
        let done = catch_unwind(AssertUnwindSafe(|| {
            runtime.block_on(group.run(&mut |outcome| record.finished(outcome)));
        }));
        record.preparing(Preparation::new("removing everything that was created"));
        let left = runtime.block_on(async {
            let Some(cluster) = group.end().await else { return Ok(()) };
            cluster.clean_up(existing).await
        });
        if let Err(panic) = done {
            resume_unwind(panic);
        }
        left
    }
}

/// The groups of the metrics APIs that scenarios use.
fn groups<'a>(scenarios: impl Iterator<Item = &'a Arc<Scenario>> + Clone) -> Vec<&'static str> {
    let mut groups = vec![RESOURCE_METRICS];
    if scenarios.clone().any(|it| it.uses_custom_metrics()) {
        groups.push(CUSTOM_METRICS);
    }
    if scenarios.clone().any(|it| it.uses_external_metrics()) {
        groups.push(EXTERNAL_METRICS);
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube_lockstep_scenario::testing::{WEB, scenario};

    #[test]
    fn only_required_metrics_apis_are_served() {
        let groups_of = |text: &str| groups([&scenario(text)].into_iter());
        assert_eq!(groups_of(WEB), [RESOURCE_METRICS]);
        let external = "type: External
      external: {metric: {name: queue}, target: {type: AverageValue, averageValue: \"30\"}}";
        let resource = "type: Resource
      resource: {name: cpu, target: {type: AverageValue, averageValue: 500m}}";
        let text = WEB.replace(resource, external).replace(
            "resource: [{name: cpu, perPod: 500m}]",
            "external: [{name: queue, value: \"100\"}]",
        );
        assert_eq!(groups_of(&text), [RESOURCE_METRICS, EXTERNAL_METRICS]);
    }
}
