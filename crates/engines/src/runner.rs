//! The runner: runs each release of a plan on its engine, in virtual time or on a cluster.

use std::time::Instant;

use crate::executor::{Executor, WallClock};
use crate::plan::{Part, Plan};
use crate::record::Record;
use crate::registry::Clock;
use crate::virtual_time;
use kube_lockstep_sim::engine::EngineError;
use kube_lockstep_sim::run::{Event, Summary};

/// Runs all scenarios of a plan and reports events to `sink`. `clusters` runs those on the wall
/// clock; builds without clusters have none.
///
/// # Errors
/// If the engine of the only release can't be prepared. With several releases, the scenarios of a
/// release without an engine have no verdict. If an engine fails later, its scenario is
/// inconclusive.
pub fn run_all(
    plan: &Plan,
    clusters: Option<WallClock>,
    sink: &mut dyn FnMut(Event),
) -> Result<Summary, EngineError> {
    let engine = plan.engine.info();
    engine.require(clusters.is_some())?;
    let parts = plan.parts();
    let mut record = Record::new(plan, sink);
    // The engines of virtual time are built when no cluster runs: a build would delay it.
    for parts in parts.chunk_by(|one, next| one.clock(engine) == next.clock(engine)) {
        with_executor(plan, parts, clusters, |executor| run(plan, parts, executor, &mut record))?;
    }
    Ok(record.end())
}

/// Runs parts, one after the other.
fn run(
    plan: &Plan,
    parts: &[Part],
    executor: &mut dyn Executor,
    record: &mut Record<'_>,
) -> Result<(), EngineError> {
    for part in parts {
        if plan.stop.is_cancelled() {
            break;
        }
        let Some(engine) = executor.prepare(part, record)? else { break };
        let name = engine.name();
        record.start(name.clone(), engine.note());
        part.skipped(&name).into_iter().for_each(|outcome| record.finished(outcome));
        // The first preparation of an engine is not part of the run.
        let begin = Instant::now();
        engine.run(record)?;
        record.end_release(part.release(), begin.elapsed());
    }
    Ok(())
}

/// Calls `run` with the executor for parts with the same clock.
fn with_executor(
    plan: &Plan,
    parts: &[Part],
    clusters: Option<WallClock>,
    run: impl FnOnce(&mut dyn Executor) -> Result<(), EngineError>,
) -> Result<(), EngineError> {
    let is_wall = |part: &Part| part.clock(plan.engine.info()) == Clock::Wall;
    if let Some(executor) = clusters.filter(|_| parts.iter().any(is_wall)) {
        return run(&mut *executor(plan, parts)?);
    }
    virtual_time::with_engines(plan, parts, run)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::plan::RecommenderPlan;
    use crate::registry::EngineChoice;
    use kube_autoscaler_models::rules::{Release, Releases, VpaRelease};
    use kube_lockstep_scenario::testing::{WEB, scenario};
    use kube_lockstep_scenario::vpa::VpaScenario;
    use kube_lockstep_scenario::{AnyScenario, parse_any};

    const VPA: &str = "
apiVersion: kube-lockstep.dev/v1alpha1
kind: Scenario
requirement: Something holds.
vpa:
  apiVersion: autoscaling.k8s.io/v1
  kind: VerticalPodAutoscaler
  metadata: {name: web}
  spec: {targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}
workload: {replicas: 1, containers: [{name: app}]}
metrics: {resource: [{name: cpu, perPod: 500m}]}
until: 3m
";

    fn vpa_scenario(name: &str, text: &str) -> Arc<VpaScenario> {
        let none = |_: &str| Err("there is no other file".into());
        match parse_any(&format!("{name}.yaml"), text, &none).expect("a valid scenario") {
            AnyScenario::Vpa(scenario) => Arc::new(*scenario),
            AnyScenario::Hpa(_) => panic!("a scenario of an HPA"),
        }
    }

    /// A scenario with an HPA, and two of the recommender. The expectation of the first of them is
    /// for the oldest release.
    fn plan() -> Plan {
        let oldest = VpaRelease::OLDEST;
        let expect = format!("expect: [{{at: 2m, releases: \"<={oldest}\", containers: [app]}}]\n");
        let mut plan =
            Plan::new(vec![scenario(WEB)], EngineChoice::Model, Releases::only(Release::NEWEST));
        plan.releases_are_default = true;
        plan.recommender = RecommenderPlan {
            scenarios: vec![
                vpa_scenario("old", &format!("{VPA}{expect}")),
                vpa_scenario("any", VPA),
            ],
            releases: vec![oldest, VpaRelease::NEWEST],
        };
        plan
    }

    /// The outcomes, `SCENARIO on RELEASE: VERDICT`, and the figures.
    fn outcomes(plan: &Plan) -> (Vec<String>, Summary) {
        let mut outcomes = Vec::new();
        let summary = run_all(plan, None, &mut |event| {
            if let Event::Finished(it) = event {
                outcomes.push(format!("{} on {}: {}", it.id, it.release, it.verdict.name()));
            }
        });
        (outcomes, summary.expect("the model can run"))
    }

    #[test]
    fn both_kinds_run_on_each_of_their_releases() {
        let (outcomes, summary) = outcomes(&plan());
        let [hpa, oldest, newest] = [
            Release::NEWEST.to_string(),
            VpaRelease::OLDEST.to_string(),
            VpaRelease::NEWEST.to_string(),
        ];
        assert_eq!(
            outcomes,
            [
                format!("x.yaml on {hpa}: conforms"),
                format!("old.yaml on {oldest}: conforms"),
                format!("any.yaml on {oldest}: conforms"),
                format!("old.yaml on {newest}: skipped"),
                format!("any.yaml on {newest}: conforms"),
            ]
        );
        let releases = summary.releases.iter().map(|(release, _)| release.to_string());
        assert_eq!(releases.collect::<Vec<_>>(), [hpa, oldest, newest]);
        assert_eq!((summary.conforms, summary.skipped), (4, 1));
    }

    #[test]
    fn a_stopped_run_starts_no_release() {
        let plan = plan();
        plan.stop.cancel();
        let (outcomes, summary) = outcomes(&plan);
        assert!(outcomes.is_empty(), "{outcomes:?}");
        assert!(summary.releases.is_empty(), "{summary:?}");
    }
}
