//! The plan of a run: plain data that the runner reads.

use std::collections::BTreeSet;
use std::num::NonZero;
use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest, Sha256};
use tokio_util::sync::CancellationToken;

use crate::custom::Controller;
use crate::kind::RunKind;
use crate::options::ExistingCluster;
use crate::recorded::Traces;
use crate::registry::{Clock, EngineChoice, EngineInfo};
use crate::snapshots::Snapshots;
use crate::source::{CustomProgram, name_of_program};
use crate::upstream::TIME_LIMIT;
use crate::upstream::build::BuildOptions;
use crate::upstream::checkout::Checkout;
use kube_autoscaler_models::rules::{AnyRelease, Releases, VpaRelease};
use kube_autoscaler_models::time::Span;
use kube_lockstep_scenario::vpa::VpaScenario;
use kube_lockstep_scenario::{Scenario, SkipReason};
use kube_lockstep_sim::compare::KnownDisagreement;
use kube_lockstep_sim::engine::{ControllerKind, Hpa, Vpa};
use kube_lockstep_sim::run::{Event, Outcome, Setting, Shard, Verdict};
use kube_lockstep_sim::trace::Scope;

/// The number of scenarios that run at a time on a cluster by default. They mostly wait, and the
/// cluster can keep up with this number.
pub const DEFAULT_CLUSTER_JOBS: usize = 72;

/// The maximum number of scenarios of VPAs that run at a time on a cluster. Each has a recommender,
/// which uses 50 MB of memory.
pub const MAX_RECOMMENDERS: usize = 12;

/// The scenarios, the engine and the options of a run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The scenarios, in the order of the report.
    pub scenarios: Vec<Arc<Scenario>>,
    pub engine: EngineChoice,
    /// The releases: every scenario runs on each of them, from the oldest to the newest.
    pub releases: Releases,
    /// The releases are a default. Scenarios whose expectations are all for other releases are then
    /// skipped: without its expectations, a scenario could conform and show nothing of what its
    /// author wants to know.
    pub releases_are_default: bool,
    /// The number of scenarios that run at a time, at least 1.
    pub jobs: usize,
    /// Known disagreements.
    pub known: Vec<KnownDisagreement>,
    /// The source of recorded traces.
    pub traces: Traces,
    /// The program that replaces the upstream engine.
    pub program: Option<CustomProgram>,
    /// What is done with the traces of the program, if no model predicts it.
    pub snapshots: Snapshots,
    /// A local checkout to build instead of a release.
    pub checkout: Option<Checkout>,
    /// The part of the plan to run.
    pub shard: Option<Shard>,
    /// The time limit of an engine's answer.
    pub time_limit: Duration,
    /// True if an engine that is not in the cache folder is an error, in place of a build.
    pub only_cached: bool,
    /// Settings of wall-clock engines.
    pub cluster: ClusterOptions,
    /// The arguments that repeat this plan, if the engine's name is not sufficient.
    pub replay_args: Vec<String>,
    /// The scenarios of the VPA's recommender. They run after all others.
    pub recommender: RecommenderPlan,
    /// Cancelled from outside to end the run early: running scenarios are ended, and the others are
    /// not run.
    pub stop: CancellationToken,
}

/// The scenarios of the VPA's recommender.
#[derive(Clone, Debug, Default)]
pub struct RecommenderPlan {
    /// The scenarios, in the order of the report.
    pub scenarios: Vec<Arc<VpaScenario>>,
    /// The releases: every scenario runs on each of them, from the oldest to the newest.
    pub releases: Vec<VpaRelease>,
}

impl RecommenderPlan {
    /// A plan that runs each scenario on each release.
    #[must_use]
    pub fn new(scenarios: Vec<Arc<VpaScenario>>, releases: Vec<VpaRelease>) -> RecommenderPlan {
        RecommenderPlan { scenarios, releases }
    }
}

/// Settings of wall-clock engines.
#[derive(Clone, Debug, Default)]
pub struct ClusterOptions {
    /// The speed of scenarios.
    pub pace: Pace,
    /// The cluster of [`EngineChoice::Kubeconfig`].
    pub existing: Option<ExistingCluster>,
    /// The image of clusters in containers, instead of the default one.
    pub image: Option<String>,
    /// The controller that replaces upstream's.
    pub controller: Option<CustomController>,
}

/// The speed of scenarios on a wall clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pace {
    /// The factor by which scenarios run faster than written.
    pub speed: NonZero<u32>,
    /// The maximum duration: longer scenarios are skipped.
    pub longest: Duration,
}

impl Pace {
    /// The reason why a scenario of this length, at this speed, is not run, if it is too long.
    pub fn too_long(self, length: Span) -> Option<String> {
        let longest = Span(i64::try_from(self.longest.as_nanos()).unwrap_or(i64::MAX));
        (length > longest).then(|| format!("it takes {length}, but the limit is {longest}"))
    }
}

impl Default for Pace {
    fn default() -> Pace {
        // Sync periods of 15 s become 1 s: much longer than a reconcile takes.
        let speed = NonZero::<u32>::MIN.saturating_add(14);
        Pace { speed, longest: Duration::from_secs(60) }
    }
}

/// The user's own controller, and the behavior to compare with the model.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CustomController {
    pub controller: Controller,
    /// The part of its behavior that is compared.
    pub compared: Compared,
}

impl CustomController {
    /// A controller, and the part of its behavior that is compared.
    #[must_use]
    pub fn new(controller: Controller, compared: Compared) -> CustomController {
        CustomController { controller, compared }
    }
}

/// The part of a controller's behavior that is compared with the model.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Compared {
    /// The times at which it scales, and the replicas that it sets.
    #[default]
    Scale,
    /// Also the status, except the messages of conditions.
    Status,
    /// Everything that can be observed, as for upstream's controller: the requests in order,
    /// messages, events, and the times of reconciles, which are a sync period apart and may be up
    /// to a third of it early or a whole one late.
    All,
}

impl Compared {
    /// The fields to compare, or `None` to compare everything, as for upstream's controller.
    pub fn scope(self) -> Option<Scope> {
        let status = match self {
            Compared::All => return None,
            Compared::Status => true,
            Compared::Scale => false,
        };
        Some(Scope {
            reads: false,
            events: false,
            errors: false,
            status,
            messages: false,
            order: false,
            bodies: false,
            ..Scope::ALL
        })
    }

    fn description(self) -> &'static str {
        match self {
            Compared::Scale => "scale decisions only (--compare scale)",
            Compared::Status => {
                "scale decisions and the status without messages (--compare status)"
            }
            Compared::All => "all requests (--compare all)",
        }
    }
}

impl CustomController {
    /// The compared part of the behavior, for the beginning of a report.
    pub fn note(&self) -> String {
        format!("comparing {}", self.compared.description())
    }
}

/// The scenarios to run on one release.
pub struct ReleasePlan<K: ControllerKind = Hpa> {
    /// The release to run.
    pub release: K::Release,
    /// The scenarios that run on it.
    pub scenarios: Vec<Arc<K::Scenario>>,
    /// The scenarios that are skipped, and why: see [`Plan::releases_are_default`].
    for_other_releases: Vec<(Arc<K::Scenario>, SkipReason)>,
}

impl<K: RunKind> ReleasePlan<K> {
    /// The number of runs, including the skipped ones.
    fn runs(&self) -> usize {
        self.scenarios.len() + self.for_other_releases.len()
    }

    /// The outcomes of the scenarios that are skipped. `engine`: the engine's name.
    fn skipped(&self, engine: &Arc<str>) -> Vec<Outcome> {
        let skipped = |(scenario, why): &(Arc<K::Scenario>, SkipReason)| Outcome {
            verdict: Verdict::Skipped { why: why.clone() },
            ..K::unfinished(scenario, engine, self.release)
        };
        self.for_other_releases.iter().map(skipped).collect()
    }
}

/// The scenarios to run on one release of either kind of controller.
pub enum Part {
    /// Scenarios with an HPA.
    Hpa(ReleasePlan),
    /// Scenarios with a VPA alone.
    Vpa(ReleasePlan<Vpa>),
}

impl Part {
    /// The release to run.
    pub fn release(&self) -> AnyRelease {
        match self {
            Part::Hpa(part) => part.release.into(),
            Part::Vpa(part) => part.release.into(),
        }
    }

    /// The clock of its scenarios on an engine.
    pub fn clock(&self, engine: &EngineInfo) -> Clock {
        match self {
            Part::Hpa(_) => Hpa::clock(engine),
            Part::Vpa(_) => Vpa::clock(engine),
        }
    }

    /// The number of runs, including the skipped ones.
    fn runs(&self) -> usize {
        match self {
            Part::Hpa(part) => part.runs(),
            Part::Vpa(part) => part.runs(),
        }
    }

    /// The outcomes of the scenarios that are skipped. `engine`: the engine's name.
    pub fn skipped(&self, engine: &Arc<str>) -> Vec<Outcome> {
        match self {
            Part::Hpa(part) => part.skipped(engine),
            Part::Vpa(part) => part.skipped(engine),
        }
    }
}

impl Plan {
    /// A plan with default settings: no known disagreements, one scenario at a time (on a cluster
    /// [`DEFAULT_CLUSTER_JOBS`]), the traces inside this binary.
    #[must_use]
    pub fn new(scenarios: Vec<Arc<Scenario>>, engine: EngineChoice, releases: Releases) -> Plan {
        Plan {
            scenarios,
            engine,
            releases,
            releases_are_default: false,
            jobs: if engine.is_wall_clock() { DEFAULT_CLUSTER_JOBS } else { 1 },
            known: Vec::new(),
            traces: Traces::Embedded,
            program: None,
            snapshots: Snapshots::None,
            checkout: None,
            shard: None,
            time_limit: TIME_LIMIT,
            only_cached: false,
            cluster: ClusterOptions::default(),
            replay_args: Vec::new(),
            recommender: RecommenderPlan::default(),
            stop: CancellationToken::new(),
        }
    }

    /// Whether engines are built, and how a build is stopped.
    pub fn builds(&self) -> BuildOptions {
        BuildOptions::new(self.stop.clone(), self.only_cached)
    }

    /// The scenarios to run on each release: first those of HPAs, then those of the recommender.
    /// Releases on which a shard runs nothing are left out: their engines are not needed.
    pub fn parts(&self) -> Vec<Part> {
        let hpa = self.parts_of::<Hpa>(self.releases.iter(), &self.scenarios);
        let RecommenderPlan { scenarios, releases } = &self.recommender;
        let vpa = self.parts_of::<Vpa>(releases.iter().copied(), scenarios);
        // A plan without scenarios prepares its engines, and so reports whether they can run.
        let keeps_empty = self.shard.is_none() && scenarios.is_empty();
        let hpa = hpa.into_iter().filter(|part| keeps_empty || part.runs() > 0).map(Part::Hpa);
        let vpa = vpa.into_iter().filter(|part| part.runs() > 0).map(Part::Vpa);
        hpa.chain(vpa).collect()
    }

    /// The scenarios of one kind to run on each release.
    fn parts_of<K: RunKind>(
        &self,
        releases: impl Iterator<Item = K::Release>,
        scenarios: &[Arc<K::Scenario>],
    ) -> Vec<ReleasePlan<K>> {
        let releases: Vec<K::Release> = releases.collect();
        let shard = self.shard.unwrap_or(Shard::WHOLE);
        let indices = shard.split_runs(releases.len(), scenarios.len());
        let part = |(release, indices): (K::Release, Vec<usize>)| {
            let mut part = ReleasePlan { release, scenarios: vec![], for_other_releases: vec![] };
            for scenario in indices.into_iter().filter_map(|index| scenarios.get(index)).cloned() {
                let why = K::unchecked_on(&scenario, release).filter(|_| self.releases_are_default);
                match why {
                    Some(why) => part.for_other_releases.push((scenario, why)),
                    None => part.scenarios.push(scenario),
                }
            }
            part
        };
        releases.into_iter().zip(indices).map(part).collect()
    }

    /// The releases on which scenarios run, of both kinds.
    pub(super) fn used_releases(&self) -> Vec<AnyRelease> {
        let RecommenderPlan { scenarios, releases } = &self.recommender;
        let uses_hpa = !self.scenarios.is_empty() || scenarios.is_empty();
        let hpa = self.releases.iter().filter(|_| uses_hpa).map(AnyRelease::Kubernetes);
        let vpa = releases.iter().filter(|_| !scenarios.is_empty()).copied();
        hpa.chain(vpa.map(AnyRelease::Vpa)).collect()
    }

    /// The releases as text: `1.37`, `1.37, vpa-1.8`.
    fn releases_text(&self) -> String {
        let RecommenderPlan { scenarios, releases } = &self.recommender;
        let mut texts = Vec::new();
        if !self.scenarios.is_empty() || scenarios.is_empty() {
            texts.push(self.releases.to_string());
        }
        if !scenarios.is_empty() {
            texts.extend(releases.iter().map(ToString::to_string));
        }
        texts.join(", ")
    }

    /// The releases of the VPAs with an HPA, oldest first. Empty if scenarios with a VPA alone run.
    fn vpa_releases(&self) -> Vec<VpaRelease> {
        if !self.recommender.scenarios.is_empty() {
            return Vec::new();
        }
        let vpas = self.scenarios.iter().filter_map(|scenario| scenario.vpa.as_ref());
        vpas.map(|vpa| vpa.release).collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// The number of scenarios to run, on all releases together.
    #[must_use]
    pub fn runs(&self) -> usize {
        self.parts().iter().map(Part::runs).sum()
    }

    /// An identifier that all shards of a plan share, and other plans do not: a hash of the
    /// releases and the content of each scenario.
    fn identifier(&self) -> String {
        let mut hash = Sha256::new();
        hash.update(self.releases_text());
        let scenarios = self.scenarios.iter().map(|scenario| (&scenario.id, &scenario.hash));
        let recommender = self.recommender.scenarios.iter();
        for (id, of) in scenarios.chain(recommender.map(|it| (&it.id, &it.hash))) {
            hash.update(format!("\n{id} {of}"));
        }
        hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
    }

    /// The event with which the run begins.
    pub fn started(&self, engine: Arc<str>, note: Option<String>) -> Event {
        Event::Started {
            scenarios: self.runs(),
            setting: Setting {
                engine,
                release: self.releases_text(),
                vpa_releases: self.vpa_releases(),
                program: self.program.as_ref().map(|program| program.path.clone()),
                checkout: self.checkout.as_ref().map(|checkout| checkout.path.clone()),
                time_limit: Some(self.time_limit).filter(|limit| *limit != TIME_LIMIT),
                replay_args: self.replay_args.clone(),
                shard: self.shard,
                plan: self.identifier(),
            },
            note,
        }
    }

    /// Returns false if the controller is a program that no model predicts.
    pub(crate) fn has_model(&self) -> bool {
        self.program.as_ref().is_none_or(|program| program.has_model)
    }

    /// The name of the engine, as far as it is known before the engine is prepared.
    pub fn engine_name(&self) -> Arc<str> {
        match (&self.program, &self.checkout, &self.cluster.controller) {
            (Some(program), ..) => name_of_program(&program.path),
            (_, Some(checkout), _) => checkout.name().into(),
            (_, _, Some(own)) => {
                format!("{} + {}", self.engine.info().name, own.controller.name()).into()
            }
            _ => self.engine.info().name.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_compare_flag_narrows_the_scope() {
        assert_eq!(Compared::All.scope(), None);
        let [scale, status] = [Compared::Scale, Compared::Status].map(|it| it.scope().unwrap());
        assert_eq!(Scope { status: true, ..scale }, status);
        assert!(!status.messages && !status.reads && !status.events && !status.errors);
    }
}
