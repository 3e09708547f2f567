//! A cluster that the user names, whose controller can't be configured.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use tokio::runtime::Runtime;

use super::group::{GroupRun, ReleaseRun};
use super::preparation::{for_existing_cluster, prepare_all};
use crate::engine::cluster::Cluster;
use crate::engine::cluster::metrics_api::groups::{
    CUSTOM_METRICS, EXTERNAL_METRICS, RESOURCE_METRICS,
};
use crate::engine::options::ExistingCluster;
use crate::engine::runtime::{self, Threads};
use crate::engine::{EngineError, kubeconfig};
use crate::model::rules::Release;
use crate::model::time::Span;
use crate::run::executor::{Executor, ReadyEngine};
use crate::run::plan::{Plan, ReleasePlan};
use crate::run::record::Record;
use crate::scenario::Scenario;

/// The cluster that a plan names.
pub(super) struct Existing {
    plan: Arc<Plan>,
    cluster: ExistingCluster,
    name: Arc<str>,
    runtime: Runtime,
}

impl Existing {
    pub(super) fn new(plan: &Plan, parts: &[ReleasePlan]) -> Result<Existing, EngineError> {
        let name: Arc<str> = kubeconfig::NAME.into();
        let (Some(cluster), [_]) = (&plan.cluster.existing, parts) else {
            return Err(EngineError::Unavailable {
                engine: name,
                why: "an existing cluster requires one release and a kubeconfig context".to_owned(),
                hint: "select one release and name the context".to_owned(),
            });
        };
        let runtime = runtime::of_engine(&name, Threads::AllCores)?;
        let (plan, cluster) = (Arc::new(plan.clone()), cluster.clone());
        Ok(Existing { plan, cluster, name, runtime })
    }
}

impl Executor for Existing {
    fn prepare(
        &mut self,
        part: &ReleasePlan,
        record: &mut Record<'_>,
    ) -> Result<Option<Box<dyn ReadyEngine + '_>>, EngineError> {
        let Existing { plan, cluster, name, runtime } = &*self;
        let groups = groups(part.scenarios.iter());
        let mut progress = |what: &str| record.preparing(what.to_owned(), None);
        let opened = Cluster::connect(name, cluster, &groups, &plan.stop, &mut progress);
        let (cluster, period) = runtime.block_on(opened)?;
        Ok(Some(Box::new(OpenCluster { existing: self, release: part.release, cluster, period })))
    }
}

/// An existing cluster on which the metrics APIs are served.
struct OpenCluster<'a> {
    existing: &'a Existing,
    release: Release,
    cluster: Cluster,
    /// The cluster's measured sync period.
    period: Span,
}

impl ReadyEngine for OpenCluster<'_> {
    fn name(&self) -> Arc<str> {
        self.existing.name.clone()
    }

    fn note(&self) -> Option<String> {
        let OpenCluster { existing, release, period, .. } = self;
        Some(format!(
            "context {}; the cluster's measured sync period is {period}; its other flags and its \
             feature gates can't be observed and are assumed to be the defaults of {release}; \
             reads of the scale can't be observed and are not compared",
            existing.cluster.context
        ))
    }

    fn run(
        self: Box<Self>,
        part: &ReleasePlan,
        record: &mut Record<'_>,
    ) -> Result<(), EngineError> {
        let OpenCluster { existing, release, cluster, period } = *self;
        let Existing { plan, name, runtime, .. } = existing;
        let pace = plan.cluster.pace;
        let prepare = |it: &Scenario| for_existing_cluster(it, release, period, pace);
        let scenarios = prepare_all(part, name, record, prepare);
        let run = ReleaseRun::new(plan.clone(), name.clone(), release, &scenarios);
        let mut group = GroupRun::new(Arc::new(run), scenarios, cluster);
        // All created objects are removed, even after a panic of this program.
        let done = catch_unwind(AssertUnwindSafe(|| {
            runtime.block_on(group.run(&mut |outcome| record.finished(outcome)));
        }));
        record.preparing("removing everything that was created".to_owned(), None);
        let left = runtime.block_on(async {
            let Some(cluster) = group.end().await else { return Ok(()) };
            cluster.clean_up(&existing.cluster).await
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
    use crate::scenario::testing::{WEB, scenario};

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
