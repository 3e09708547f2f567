//! Scenarios of the VPA's recommender on a real control plane, with upstream's own program.
//!
//! The recommender decides when it runs. Its query of the samples marks a run; the model runs at
//! the same time, with the samples as they were served and the objects as the API server stored
//! them. `docs/wall-clock.md` lists what is compared, and the tolerances.

mod attempt;
mod observed;
mod relocation;
mod schedule;

use std::sync::Arc;
use std::time::Instant;

use futures::StreamExt as _;
use futures::stream::iter;

use self::attempt::{Attempted, PreparedScript, attempt};
use super::context::Context;
use super::retries::Attempts;
use crate::cluster::tolerances::{RECOMMENDER_DIVERGENCES, SHORTEST_RECOMMENDER_INTERVAL};
use crate::cluster::{RecommenderCluster, recommender_unsupported_reason};
use crate::embedded;
use kube_autoscaler_models::rules::{Release, VpaRelease};
use kube_autoscaler_models::time::Span;
use kube_lockstep_engines::executor::ReadyEngine;
use kube_lockstep_engines::plan::{MAX_RECOMMENDERS, Pace, Plan, ReleasePlan};
use kube_lockstep_engines::record::Record;
use kube_lockstep_engines::upstream::recommender::deploy::Deployment;
use kube_lockstep_scenario::SkipReason;
use kube_lockstep_scenario::vpa::VpaScenario;
use kube_lockstep_sim::engine::{EngineError, Vpa};
use kube_lockstep_sim::run::lockstep::inconclusive;
use kube_lockstep_sim::run::recommender::notes;
use kube_lockstep_sim::run::recommender_lockstep::unfinished;
use kube_lockstep_sim::run::{Outcome, Preparation, Verdict};
use kube_lockstep_sim::world::recommender::{Played, play};

/// The oldest release whose program can be built: the sum files of older ones lack modules that
/// only the program requires.
const OLDEST_PROGRAM: VpaRelease = VpaRelease { major: 1, minor: 7 };

/// The recommenders of a release on a control plane.
pub(super) struct Recommenders<'a> {
    context: &'a Context,
    part: &'a ReleasePlan<Vpa>,
    prepared: Vec<PreparedScenario<'a>>,
    /// The outcomes of the scenarios that can't run on a cluster.
    skipped: Vec<Outcome>,
    /// None: no scenario can run.
    cluster: Option<RecommenderCluster>,
}

/// A scenario of the plan, and how it runs on a cluster.
struct PreparedScenario<'a> {
    written: &'a Arc<VpaScenario>,
    script: PreparedScript,
}

impl<'a> Recommenders<'a> {
    /// Prepares the scenarios of a release, and starts a control plane if any of them can run.
    ///
    /// # Errors
    /// If the control plane or the recommender can't be built or started.
    pub(super) fn prepare(
        context: &'a Context,
        part: &'a ReleasePlan<Vpa>,
        record: &mut Record<'_>,
    ) -> Result<Recommenders<'a>, EngineError> {
        let Context { plan, name, .. } = context;
        let (mut prepared, mut skipped) = (Vec::new(), Vec::new());
        for written in &part.scenarios {
            match prepare(written, part.release, plan.cluster.pace) {
                Ok(script) => prepared.push(PreparedScenario { written, script }),
                Err(why) => {
                    let verdict = Verdict::Skipped { why };
                    skipped.push(Outcome { verdict, ..unfinished(written, name, part.release) });
                }
            }
        }
        let cluster = match prepared.is_empty() {
            true => None,
            false => Some(start(context, part.release, record)?),
        };
        Ok(Recommenders { context, part, prepared, skipped, cluster })
    }
}

/// Builds and starts a control plane for recommenders.
fn start(
    context: &Context,
    release: VpaRelease,
    record: &mut Record<'_>,
) -> Result<RecommenderCluster, EngineError> {
    let Context { plan, name, runtime } = context;
    let mut progress = |it: Preparation| record.preparing(it);
    let kubernetes = control_plane_release(plan);
    let program = embedded::ensure(kubernetes, plan.builds(), &mut progress)?;
    let deployment = Deployment::prepare(release, &plan.builds(), &mut progress)?;
    let starting = format!("starting a control plane of {kubernetes}");
    record.preparing(Preparation::new(starting));
    runtime.block_on(RecommenderCluster::start(name, &program, kubernetes, &deployment))
}

impl ReadyEngine for Recommenders<'_> {
    fn name(&self) -> Arc<str> {
        self.context.name.clone()
    }

    fn note(&self) -> Option<String> {
        self.cluster.as_ref()?;
        let plan = &self.context.plan;
        let (kubernetes, speed) = (control_plane_release(plan), plan.cluster.pace.speed);
        let unchecked = if speed.get() > 1 { ", so `expect` is not checked" } else { "" };
        Some(format!(
            "recommenders on a control plane of {kubernetes}, {speed} times as fast as in the \
             file{unchecked}"
        ))
    }

    fn run(self: Box<Self>, record: &mut Record<'_>) -> Result<(), EngineError> {
        let Recommenders { context, part, prepared, skipped, cluster } = *self;
        let Context { plan, runtime, .. } = context;
        skipped.into_iter().for_each(|outcome| record.finished(outcome));
        let Some(cluster) = cluster else { return Ok(()) };
        runtime.block_on(async {
            let group = Group { context, cluster: &cluster, release: part.release };
            let at_once = plan.jobs.clamp(1, MAX_RECOMMENDERS);
            let mut runs = iter(prepared.iter().map(|scenario| group.outcome(scenario)))
                .buffer_unordered(at_once);
            while let Some(outcome) = runs.next().await {
                outcome.into_iter().for_each(|it| record.finished_with_known(&plan.known, it));
            }
            drop(runs);
            cluster.stop().await;
        });
        Ok(())
    }
}

/// The release of the control plane: the newest one of the plan that has one.
fn control_plane_release(plan: &Plan) -> Release {
    let has_control_plane = |release: &Release| embedded::supported().any(|it| it == *release);
    plan.releases.iter().rfind(has_control_plane).unwrap_or(Release::NEWEST)
}

/// A scenario as it runs on a cluster, or the reason why it can't.
fn prepare(
    scenario: &VpaScenario,
    release: VpaRelease,
    pace: Pace,
) -> Result<PreparedScript, SkipReason> {
    if let Some(why) = scenario.unsupported_on(release) {
        return Err(why);
    }
    let on_a_cluster = |why: String| SkipReason::from(format!("on a real cluster: {why}"));
    if release < OLDEST_PROGRAM {
        return Err(format!("only {OLDEST_PROGRAM} and newer run on control planes").into());
    }
    if scenario.expects_contents() {
        let why = "the contents of checkpoints depend on the time of the start";
        return Err(on_a_cluster(why.to_owned()));
    }
    let Played { script, unmatched } = play(scenario);
    if let Some(why) = recommender_unsupported_reason(&script) {
        return Err(on_a_cluster(why));
    }
    let speed = pace.speed.get();
    let faster = |span: Span| Span(span.0 / i64::from(speed));
    let interval = faster(scenario.parsed_flags.recommender_interval);
    let shortest = SHORTEST_RECOMMENDER_INTERVAL;
    if interval < shortest {
        let why = format!("its interval would be {interval}, but the minimum is {shortest}");
        return Err(on_a_cluster(why));
    }
    if let Some(why) = pace.too_long(faster(scenario.until.since_start())) {
        return Err(on_a_cluster(why));
    }
    Ok(PreparedScript { script, unmatched, interval, speed })
}

/// The scenarios of a control plane.
struct Group<'a> {
    context: &'a Context,
    cluster: &'a RecommenderCluster,
    release: VpaRelease,
}

impl Group<'_> {
    /// Runs a scenario, and retries it if there is no verdict. Returns `None` if the run was
    /// stopped before.
    ///
    /// A retry follows at once. In `group`, retries wait for each other, because all scenarios
    /// share a controller; here, each scenario has its own recommender.
    async fn outcome(&self, scenario: &PreparedScenario<'_>) -> Option<Outcome> {
        let begin = Instant::now();
        let mut attempts = Attempts::new(RECOMMENDER_DIVERGENCES);
        loop {
            let outcome = tokio::select! {
                biased;
                () = self.context.plan.stop.cancelled() => return None,
                outcome = self.attempt(scenario) => outcome,
            };
            // A retry on a broken control plane would fail, too.
            if let Some(mut outcome) = attempts.ended(outcome, || self.cluster.check().is_ok()) {
                outcome.elapsed = begin.elapsed();
                return Some(outcome);
            }
        }
    }

    /// The outcome of one attempt at a scenario.
    async fn attempt(&self, scenario: &PreparedScenario<'_>) -> Outcome {
        let PreparedScenario { written: scenario, script } = scenario;
        let Context { plan, name, .. } = self.context;
        let mut outcome = unfinished(scenario, name, self.release);
        match attempt(script, self.cluster, self.release, &plan.known).await {
            Ok(Attempted { lockstep, comparison }) => {
                let expects = script.speed == 1;
                outcome.notes = notes(scenario, self.release, &script.unmatched);
                lockstep.conclude(&mut outcome, scenario, self.release, comparison, expects);
            }
            Err(error) => outcome.verdict = inconclusive(error),
        }
        outcome
    }
}
