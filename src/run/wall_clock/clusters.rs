//! New clusters for a release. All scenarios on a cluster share the flags of its controller, so
//! scenarios run in groups with the same flags, each group on its own cluster.

use std::cmp::Reverse;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::runtime::Runtime;

use super::group::ReleaseRun;
use super::preparation::{PreparedScenario, for_new_cluster, prepare_all};
use super::schedule::Schedule;
use crate::engine::cluster::provision::{docker, image, k3s, kind};
use crate::engine::cluster::settings::Settings;
use crate::engine::cluster::{Cluster, CustomKind};
use crate::engine::registry::EngineChoice;
use crate::engine::runtime::{self, Threads};
use crate::engine::{EngineError, embedded};
use crate::model::rules::{Release, Rules};
use crate::run::executor::{Executor, Part, ReadyEngine};
use crate::run::plan::{CustomController, Plan};
use crate::run::record::Record;
use crate::scenario::Scenario;

/// The number of control planes that run at a time: each uses almost a gigabyte of memory.
const CLUSTERS: usize = 6;

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
        _: &Part,
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
        Some(format!("{} times as fast as written{unchecked}{own}", cluster.pace.speed))
    }

    fn run(self: Box<Self>, part: &Part, record: &mut Record<'_>) -> Result<(), EngineError> {
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

/// Scenarios that require the same settings of their cluster.
pub(super) struct Group {
    pub(super) settings: Settings,
    pub(super) scenarios: Vec<PreparedScenario>,
}

/// Groups scenarios by their required settings, in the order in which they run.
fn groups(
    prepared: Vec<PreparedScenario>,
    release: Release,
    own: Option<&CustomController>,
) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for scenario in prepared {
        let settings = settings(&scenario.prepared, release, own);
        match groups.iter_mut().find(|group| group.settings.agrees(&settings)) {
            Some(group) => {
                group.settings.custom_kinds.extend(settings.custom_kinds);
                group.scenarios.push(scenario);
            }
            None => groups.push(Group { settings, scenarios: vec![scenario] }),
        }
    }
    sort(&mut groups);
    groups
}

/// Sorts the largest group first, because it has most of the scenarios. The other groups, and the
/// scenarios of each group, are sorted by length, the longest first.
fn sort(groups: &mut Vec<Group>) {
    for group in &mut *groups {
        group.scenarios.sort_by_key(|scenario| Reverse(scenario.length()));
    }
    groups.sort_by_key(|group| Reverse(group.scenarios.first().map(PreparedScenario::length)));
    let count = |number: &usize| groups.get(*number).map(|group| group.scenarios.len());
    let largest = (0..groups.len()).rev().max_by_key(count);
    if let Some(largest) = largest.and_then(|number| groups.get_mut(..=number)) {
        largest.rotate_right(1);
    }
}

/// The settings of the cluster that a scenario requires.
fn settings(scenario: &Scenario, release: Release, own: Option<&CustomController>) -> Settings {
    let rules = Rules::of(release);
    let mut flags = scenario.flags_by(&rules);
    // With one HPA, the number of workers has no effect.
    flags.concurrent_syncs = 1;
    let mut gates = scenario.gate_overrides.clone();
    if own.is_none() {
        // Upstream's defaults need no override. A custom controller may have other defaults.
        let mut as_by_default = scenario.gates_by(&rules);
        let changed: Vec<&str> = as_by_default.changed().map(|(gate, _)| gate.name()).collect();
        gates.retain(|name, on| {
            changed.contains(&name.as_str()) || as_by_default.set(name, *on).is_err()
        });
    }
    Settings {
        gates,
        hpa_controller: own.is_none(),
        custom_kinds: CustomKind::of(&scenario.workload).into_iter().collect(),
        controller: own.map(|own| own.controller.clone()),
        ..Settings::of(flags)
    }
}

/// The program or image from which the clusters of a release are started.
pub(super) enum ClusterTemplate {
    /// The program of a control plane.
    Embedded(PathBuf),
    /// An image with that program.
    Image(String),
    /// An image of k3s.
    K3s(String),
    /// An image of kind's nodes.
    Kind(String),
}

impl ClusterTemplate {
    /// The number of clusters that may run at a time.
    pub(super) fn at_once(&self, plan: &Plan) -> usize {
        match self {
            // A custom controller may require exclusive access to a resource, such as a port.
            ClusterTemplate::Embedded(_) | ClusterTemplate::Image(_)
                if plan.cluster.controller.is_none() =>
            {
                CLUSTERS
            }
            _ => 1,
        }
    }

    /// Builds or fetches the program or image for the clusters of the release.
    async fn prepare(
        plan: &Plan,
        release: Release,
        record: &mut Record<'_>,
    ) -> Result<ClusterTemplate, EngineError> {
        let name = &plan.engine_name();
        let image = || plan.cluster.image.clone();
        match plan.engine {
            EngineChoice::K3s => {
                let image = docker::image(name, release, image(), k3s::default_image)?;
                docker::ensure(name, &image, &mut |what| record.preparing(what.into(), None))
                    .await?;
                Ok(ClusterTemplate::K3s(image))
            }
            // kind pulls the image.
            EngineChoice::Kind => Ok(ClusterTemplate::Kind(docker::image(
                name,
                release,
                image(),
                kind::default_image,
            )?)),
            EngineChoice::Image => {
                // Fails before the build, which takes minutes, if Docker is not available.
                docker::connect(name).await?;
                if let Some(image) = image() {
                    let progress = &mut |what: &str| record.preparing(what.into(), None);
                    docker::ensure(name, &image, progress).await?;
                    return Ok(ClusterTemplate::Image(image));
                }
                let program = control_plane(plan, release, record)?;
                let progress = &mut |what: &str| record.preparing(what.into(), None);
                let image = image::ensure(name, &program, release, progress).await?;
                Ok(ClusterTemplate::Image(image))
            }
            _ => control_plane(plan, release, record).map(ClusterTemplate::Embedded),
        }
    }

    /// Starts a cluster with these settings.
    pub(super) async fn start(
        &self,
        name: &Arc<str>,
        settings: &Settings,
    ) -> Result<Cluster, EngineError> {
        let settings = settings.clone();
        match self {
            ClusterTemplate::Embedded(program) => Cluster::embedded(name, program, settings).await,
            ClusterTemplate::Image(image) => Cluster::image(name, image, settings).await,
            ClusterTemplate::K3s(image) => Cluster::k3s(name, image, settings).await,
            ClusterTemplate::Kind(image) => Cluster::kind(name, image, &settings).await,
        }
    }
}

/// The program of a control plane; builds it if necessary.
fn control_plane(
    plan: &Plan,
    release: Release,
    record: &mut Record<'_>,
) -> Result<PathBuf, EngineError> {
    embedded::ensure(release, &plan.stop, &mut |what, done| record.preparing(what.into(), done))
}

#[cfg(test)]
mod tests {
    use super::super::preparation::tests::fixture;
    use super::*;

    #[test]
    fn a_gate_at_its_default_requires_no_other_control_plane() {
        let scenario = fixture("zero/by-gate-a-raised-minimum-revives-the-workload");
        let gates = |release| settings(&scenario, release, None).gates;
        assert!(gates(Release::NEWEST).is_empty(), "it is on");
        assert!(
            gates(Release::known("1.35").expect("known")).contains_key("HPAScaleToZero"),
            "it is off"
        );
        // Upstream has the gate, but the model does not.
        let without = fixture("requests/without-the-gate-pod-level-requests-say-nothing");
        assert_eq!(settings(&without, Release::NEWEST, None).gates, without.gate_overrides);
    }

    #[test]
    fn the_largest_group_runs_first_and_then_long_scenarios() {
        let group = |ids: &[&str]| {
            let one = |id: &&str| PreparedScenario { written: fixture(id), prepared: fixture(id) };
            let scenarios: Vec<PreparedScenario> = ids.iter().map(one).collect();
            Group { settings: settings(&scenarios[0].prepared, Release::NEWEST, None), scenarios }
        };
        let (long, short) = (
            "stabilization/kep-853-story-5-ten-minutes-of-recommendations",
            "tolerance/just-above-the-upper-edge-scales-up",
        );
        let one = "tolerance/flag-of-the-controller";
        let mut groups = vec![group(&[one]), group(&[long]), group(&[short, long, one])];
        sort(&mut groups);
        let ids = |group: &Group| {
            group.scenarios.iter().map(|it| it.written.id.clone()).collect::<Vec<_>>()
        };
        let ids: Vec<Vec<String>> = groups.iter().map(ids).collect();
        assert_eq!(ids, [vec![long, short, one], vec![long], vec![one]]);
    }
}
