//! Many scenarios on somebody's cluster, whose controller is as it is.
//!
//! Its flags can't be set. The sync period is measured, and scenarios are played so fast that
//! theirs is the same; the other flags and the feature gates can't be seen, and are taken to be the
//! defaults. A scenario is played if by the model that makes no difference to it.

use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::time::Instant;

use crate::engine::cluster::Cluster;
use crate::engine::cluster::CustomKind;
use crate::engine::cluster::unfit;
use crate::engine::{EngineError, kubeconfig};
use crate::model::flags::{Flag, Flags, Gate};
use crate::model::observation::ControllerAction;
use crate::model::rules::{Release, Rules};
use crate::model::time::Span;
use crate::run::Event;
use crate::run::Summary;
use crate::run::Verdict;
use crate::run::clusters::runtime;
use crate::run::clusters::too_long;
use crate::run::clusters::unordered;
use crate::run::group::Course;
use crate::run::group::Group;
use crate::run::group::Part;
use crate::run::lockstep::free_run;
use crate::run::lockstep::unfinished;
use crate::run::plan::{Pace, Plan};
use crate::scenario::Scenario;

/// Runs all scenarios of a plan on the cluster that it names.
///
/// # Errors
/// If the cluster can't be used, or not all that was made there could be removed.
pub(super) fn run_all(
    plan: &Plan,
    parts: &[(Release, Vec<usize>)],
    sink: &mut dyn FnMut(Event),
) -> Result<Summary, EngineError> {
    let name: Arc<str> = kubeconfig::NAME.into();
    let (Some(given), [(release, part)]) = (&plan.cluster.existing, parts) else {
        return Err(EngineError::Unavailable {
            engine: name,
            why: "a cluster runs one release, and the cluster must be named".to_owned(),
            hint: "name its context".to_owned(),
        });
    };
    let runtime = runtime(&name)?;
    let scenarios: Vec<_> = part.iter().filter_map(|index| plan.scenarios.get(*index)).collect();
    let groups = groups(scenarios.iter().copied());
    let mut tell = |what: &str| sink(Event::Preparing { what: what.to_owned(), fraction: None });
    let begun = Cluster::given(&name, given, &groups, &plan.stop, &mut tell);
    let (cluster, period) = runtime.block_on(begun)?;
    let begin = Instant::now();
    let note = format!(
        "context {}; the cluster's sync period is {period}, as measured; its other flags and its \
         feature gates can't be seen and are taken to be the defaults of {release}; reads of the \
         scale can't be seen and are not compared",
        given.context
    );
    sink(plan.started(name.clone(), Some(note)));
    let mut summary = Summary::default();
    let mut parts = Vec::new();
    for scenario in scenarios {
        match play(scenario, *release, period, plan.cluster.pace) {
            Ok(played) => {
                parts.push(Part { written: scenario.clone(), played: Arc::new(played) });
            }
            Err(why) => {
                let mut outcome = unfinished(scenario, &name, *release);
                outcome.verdict = Verdict::Skipped { why };
                summary.add(&outcome);
                sink(Event::Finished(Box::new(outcome)));
            }
        }
    }
    let course = Course::new(plan, (&name, *release), &parts);
    let group = Group { course: &course, parts: &parts, cluster: &cluster };
    // What was made there is removed, also if this program has a slip.
    let played = catch_unwind(AssertUnwindSafe(|| {
        group.play(&runtime, &mut |outcome| {
            summary.add(&outcome);
            sink(Event::Finished(Box::new(outcome)));
        });
    }));
    sink(Event::Preparing { what: "removing all that was made".to_owned(), fraction: None });
    let left = runtime.block_on(cluster.leave(given));
    if let Err(slip) = played {
        resume_unwind(slip);
    }
    left?;
    summary.elapsed = begin.elapsed();
    sink(Event::Ended(summary.clone()));
    Ok(summary)
}

/// The groups of the metrics APIs that scenarios use.
fn groups<'a>(scenarios: impl Iterator<Item = &'a Arc<Scenario>> + Clone) -> Vec<&'static str> {
    let mut groups = vec!["metrics.k8s.io"];
    groups.extend(scenarios.clone().any(|it| it.uses_custom_metrics()).then_some(CUSTOM));
    groups.extend(scenarios.clone().any(|it| it.uses_external_metrics()).then_some(EXTERNAL));
    groups
}

const CUSTOM: &str = "custom.metrics.k8s.io";
const EXTERNAL: &str = "external.metrics.k8s.io";

/// The scenario as it is played where the sync period is that, or why it can't be.
fn play(
    scenario: &Scenario,
    release: Release,
    period: Span,
    pace: Pace,
) -> Result<Scenario, String> {
    if let Some(why) = scenario.unsupported_on(release) {
        return Err(why);
    }
    let there = |why: String| format!("on this cluster: {why}");
    if let Some(why) = unfit(scenario) {
        return Err(format!("on a real cluster: {why}"));
    }
    if CustomKind::of(&scenario.workload).is_some() {
        let kind = &scenario.workload.kind;
        return Err(there(format!("the definition of the kind {kind} is not made there")));
    }
    let rules = Rules::of(release);
    let gates = scenario.gates_by(&rules);
    if let Some((gate, _)) = gates.changed().next() {
        return Err(there(told_of_gate(gate)));
    }
    let speed = speed(scenario.flags_by(&rules).sync_period, period).map_err(there)?;
    let faster = scenario.faster(speed).map_err(there)?;
    if let Some(why) = too_long(&faster, pace) {
        return Err(there(why));
    }
    with_flags_of(faster, release, period).map_err(there)
}

fn told_of_gate(gate: Gate) -> String {
    format!("the feature gate {} is taken to be as it is by default", gate.name())
}

/// How fast a scenario has to be for its sync period to be the cluster's.
fn speed(written: Span, period: Span) -> Result<NonZero<u32>, String> {
    let times = written.0.checked_div(period.0).and_then(|times| u32::try_from(times).ok());
    let times = times.and_then(NonZero::new);
    let divides = written.0.checked_rem(period.0) == Some(0);
    times.filter(|_| divides).ok_or_else(|| {
        format!("its sync period of {written} is no multiple of the cluster's, {period}")
    })
}

/// The scenario with the cluster's flags, if the model says the same with these; and if it shows
/// itself where only queries and writes are seen.
fn with_flags_of(faster: Scenario, release: Release, period: Span) -> Result<Scenario, String> {
    let rules = Rules::of(release);
    let wanted = faster.flags_by(&rules);
    let defaults = Flags { sync_period: period, ..rules.default_flags };
    let concurrent_syncs = wanted.concurrent_syncs;
    let there = Flags { concurrent_syncs, ..defaults };
    let faster = Arc::new(faster);
    let run = |flags: Flags| {
        let scenario = Arc::new(Scenario { flags, ..(*faster).clone() });
        free_run(&scenario, release)
    };
    let as_written = run(wanted);
    if let Some(why) = unordered(&as_written.trace).or(as_written.unplayable) {
        return Err(why);
    }
    let differs = |flags: Flags| run(flags).trace != as_written.trace;
    if wanted != there && differs(there) {
        let alone = wanted.differing(&there);
        let guilty: Vec<Flag> =
            alone.iter().copied().filter(|flag| differs(wanted.with(*flag, &there))).collect();
        let guilty = if guilty.is_empty() { alone } else { guilty };
        let names: Vec<String> = guilty.iter().map(|flag| format!("--{}", flag.name())).collect();
        return Err(format!(
            "it would need another {}: the cluster's is taken to be the default",
            names.join(" and another ")
        ));
    }
    if !as_written
        .trace
        .ticks
        .iter()
        .any(|tick| tick.reads().any(ControllerAction::is_metric_query))
    {
        let why =
            "it asks for no metrics: when it is reconciled can't be seen without an audit log";
        return Err(why.to_owned());
    }
    Ok(Scenario { flags: there, ..Arc::unwrap_or_clone(faster) })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "
apiVersion: kube-lockstep.dev/v1alpha1
kind: Scenario
requirement: Something holds.
hpa:
  apiVersion: autoscaling/v2
  kind: HorizontalPodAutoscaler
  metadata: {name: web}
  spec:
    scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
    maxReplicas: 10
    metrics:
    - type: Resource
      resource: {name: cpu, target: {type: AverageValue, averageValue: 500m}}
workload:
  replicas: 3
  containers: [{name: app, requests: {cpu: 1}}]
metrics:
  resource: [{name: cpu, perPod: 700m}]
until: 2m
";

    fn scenario(text: &str) -> Arc<Scenario> {
        let none = |_: &str| Err("there is none".to_owned());
        Arc::new(crate::scenario::parse("x.yaml", text, &none).expect("it makes sense"))
    }

    fn played(text: &str, period: Span) -> Result<Scenario, String> {
        play(&scenario(text), Release::NEWEST, period, Pace::default())
    }

    #[test]
    fn the_speed_follows_from_the_sync_period() {
        let of = |written: i64, period: i64| {
            let speed = speed(Span::from_millis(written), Span::from_millis(period));
            speed.map(NonZero::get)
        };
        assert_eq!(of(15_000, 15_000), Ok(1));
        assert_eq!(of(15_000, 1000), Ok(15));
        assert_eq!(of(30_000, 15_000), Ok(2));
        let why = of(15_000, 4000).expect_err("3.75");
        assert_eq!(why, "its sync period of 15s is no multiple of the cluster's, 4s");
        assert!(of(10_000, 15_000).is_err(), "slower than written");
        assert!(of(15_000, 0).is_err());
    }

    #[test]
    fn flags_without_effect_may_differ() {
        let played = played(TEXT, Span::from_secs(1)).expect("it only scales up");
        assert_eq!(played.flags.sync_period, Span::from_secs(1));
        assert_eq!(played.flags.downscale_stabilization, Span::from_mins(5));
        assert_eq!(played.until.since_start(), Span::from_secs(8));
    }

    #[test]
    fn flags_with_an_effect_are_reported() {
        let down = TEXT.replace("perPod: 700m", "perPod: 100m").replace("2m\n", "6m\n");
        let why = played(&down, Span::from_secs(1)).expect_err("a window of 20 s is over");
        let flag = "--horizontal-pod-autoscaler-downscale-stabilization";
        assert!(why.contains(&format!("it would need another {flag}:")), "{why}");
        let longer = Pace { longest: std::time::Duration::from_secs(900), ..Pace::default() };
        let slowly = play(&scenario(&down), Release::NEWEST, Span::from_secs(15), longer);
        assert!(slowly.is_ok(), "as it is written: {slowly:?}");
        let own =
            format!("{TEXT}controller: {{flags: {{horizontal-pod-autoscaler-tolerance: 0.5}}}}\n");
        let why = played(&own, Span::from_secs(1)).expect_err("a ratio of 1.4");
        assert!(why.contains("another --horizontal-pod-autoscaler-tolerance:"), "{why}");
    }

    #[test]
    fn gates_that_differ_from_their_default_are_reported() {
        let text = format!("{TEXT}controller: {{featureGates: {{HPAScaleToZero: false}}}}\n");
        let why = played(&text, Span::from_secs(1)).expect_err("it is on");
        assert!(why.contains("HPAScaleToZero"), "{why}");
    }

    #[test]
    fn a_controller_without_queries_is_not_detected() {
        let text = TEXT.replace("replicas: 3", "replicas: 0");
        let why = played(&text, Span::from_secs(1)).expect_err("scaling is disabled");
        assert!(why.contains("it asks for no metrics"), "{why}");
    }

    #[test]
    fn only_required_metrics_apis_are_served() {
        let of = |text: &str| groups([&scenario(text)].into_iter());
        assert_eq!(of(TEXT), ["metrics.k8s.io"]);
        let external = "type: External
      external: {metric: {name: queue}, target: {type: AverageValue, averageValue: \"30\"}}";
        let resource = "type: Resource
      resource: {name: cpu, target: {type: AverageValue, averageValue: 500m}}";
        let text = TEXT.replace(resource, external).replace(
            "resource: [{name: cpu, perPod: 700m}]",
            "external: [{name: queue, value: \"100\"}]",
        );
        assert_eq!(of(&text), ["metrics.k8s.io", EXTERNAL]);
    }
}
