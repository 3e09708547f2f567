//! Faults that are planted in upstream's controller diverge on a real control plane.
//!
//! The tolerance for a busy machine must not hide them.

use std::fs;
use std::path::Path;

use crate::support::place::Workspace;
use crate::support::planted;
use crate::support::trials::Suite;
use kube_autoscaler_models::rules::Release;
use libtest_mimic::Failed;
use serde_json::Value;

/// A scenario in which the tolerance matters only after an edit of the HPA.
const EDITED: &str = "
apiVersion: kube-lockstep.dev/v1alpha1
kind: Scenario
requirement: A lower target counts from when it is written.
hpa:
  apiVersion: autoscaling/v2
  kind: HorizontalPodAutoscaler
  metadata: {name: web}
  spec:
    scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
    maxReplicas: 20
    metrics:
      - type: Resource
        resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}
workload:
  replicas: 3
  containers: [{name: app, requests: {cpu: \"1\"}}]
metrics:
  resource: [{name: cpu, perPod: 500m}]
timeline:
  - at: 20s
    editHpa:
      spec:
        metrics:
          - type: Resource
            resource: {name: cpu, target: {type: Utilization, averageUtilization: 42}}
until: 45s
expect:
  - {at: 15s, replicas: 3}
  - {at: 45s, replicas: 4}
";

/// Adds the tests of this suite.
pub(crate) fn add_tests(suite: &mut Suite) {
    // Each test has a control plane and runs in real time.
    let program = suite.control_plane(Release::NEWEST);
    for (name, test) in TESTS {
        suite.test_with(&program, name, move |program| test(&program));
    }
}

type Test = fn(&Path) -> Result<(), Failed>;

const TESTS: [(&str, Test); 4] = [
    ("another_tolerance_and_another_validation_diverge", other_flags),
    ("windows_that_are_too_short_diverge", short_windows),
    ("too_frequent_reconciles_diverge", |program| other_sync_period(program, "300ms")),
    ("too_infrequent_reconciles_diverge", |program| other_sync_period(program, "2s")),
];

/// The outcomes of scenarios on a control plane whose components get more arguments.
fn outcomes(
    program: &Path,
    more: &[(&str, &str)],
    scenarios: &[&str],
) -> Result<Vec<Value>, Failed> {
    let workspace = Workspace::new()?;
    let cache = tempfile::tempdir()?;
    let engines = cache.path().join("engines");
    fs::create_dir(&engines)?;
    let script = |(component, more): &(&str, &str)| {
        format!("[ \"$1\" != {component} ] || set -- \"$@\" {more}\n")
    };
    let scripts: String = more.iter().map(script).collect();
    planted::replace(&engines, program, &scripts)?;
    let edited = cache.path().join("edited.yaml");
    fs::write(&edited, EDITED)?;
    let edited = edited.display().to_string();
    let mut command = workspace.command(&["run", "--engine", "embedded", "--format", "json"]);
    command.args(scenarios.iter().map(|it| if *it == "edited" { &*edited } else { *it }));
    let output = command.env("KUBE_LOCKSTEP_CACHE", cache.path()).output()?;
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    let lines = String::from_utf8(output.stdout)?;
    let lines: Result<Vec<Value>, _> = lines.lines().map(serde_json::from_str).collect();
    let outcomes: Vec<Value> =
        lines?.into_iter().filter(|line| line["verdict"].is_string()).collect();
    assert_eq!(output.status.code(), Some(1), "{errors}\n{outcomes:#?}");
    assert_eq!(outcomes.len(), scenarios.len(), "{errors}\n{outcomes:#?}");
    workspace.wait_until_empty()?;
    Ok(outcomes)
}

/// The tick of the divergence, and its message.
fn divergence<'a>(outcomes: &'a [Value], id: &str) -> Result<(i64, &'a Value), Failed> {
    let matches = |it: &&Value| it["id"].as_str().is_some_and(|other| other.contains(id));
    let outcome = outcomes.iter().find(matches).ok_or_else(|| format!("no {id}: {outcomes:#?}"))?;
    assert_eq!(outcome["verdict"], "diverges", "{outcome:#}");
    let divergence = &outcome["divergence"];
    Ok((divergence["tick"].as_i64().ok_or("a tick")?, divergence))
}

fn other_flags(program: &Path) -> Result<(), Failed> {
    let more = [
        ("kube-controller-manager", "--horizontal-pod-autoscaler-tolerance=0.5"),
        ("kube-apiserver", "--feature-gates=HPAScaleToZero=false"),
    ];
    let (first, zero) = (
        "tolerance/just-above-the-upper-edge-scales-up",
        "zero/an-empty-queue-scales-to-zero-and-work-brings-it-back",
    );
    let outcomes = outcomes(program, &more, &[first, "edited", zero])?;
    // At the first tick, right after the HPA is created.
    let (tick, what) = divergence(&outcomes, first)?;
    assert_eq!(tick, 1, "{what:#}");
    assert!(what.to_string().contains("desiredReplicas"), "{what:#}");
    // After the edit, but not before it.
    let (tick, what) = divergence(&outcomes, "edited")?;
    assert!(tick > 1, "{what:#}");
    assert!(what.to_string().contains("desiredReplicas"), "{what:#}");
    // The responses of the API server.
    let (tick, what) = divergence(&outcomes, zero)?;
    assert_eq!(tick, 0, "{what:#}");
    assert!(what.to_string().contains("minReplicas"), "{what:#}");
    Ok(())
}

/// The downscale window is two reconciles too short, and there is no initialization period: pods
/// count as soon as they are ready, a change of the cluster that a reconcile may observe in part.
fn short_windows(program: &Path) -> Result<(), Failed> {
    let flags = "--horizontal-pod-autoscaler-downscale-stabilization=18s \
                 --horizontal-pod-autoscaler-cpu-initialization-period=1ms";
    let (down, up) = (
        "stabilization/downscale-window-holds-the-highest",
        "readiness/metrics-count-one-window-after-readiness",
    );
    let outcomes = outcomes(program, &[("kube-controller-manager", flags)], &[down, up])?;
    // The first window ends with the 21st reconcile.
    let (tick, what) = divergence(&outcomes, down)?;
    assert!((18..=20).contains(&tick), "{what:#}");
    assert!(what.to_string().contains("desiredReplicas"), "{what:#}");
    let (tick, what) = divergence(&outcomes, up)?;
    assert!((5..=6).contains(&tick), "{what:#}");
    assert!(what.to_string().contains("desiredReplicas"), "{what:#}");
    Ok(())
}

/// The sync period differs from the requested second.
fn other_sync_period(program: &Path, period: &str) -> Result<(), Failed> {
    let flag = format!("--horizontal-pod-autoscaler-sync-period={period}");
    let id = "tolerance/just-above-the-upper-edge-scales-up";
    let outcomes = outcomes(program, &[("kube-controller-manager", &flag)], &[id])?;
    let (tick, what) = divergence(&outcomes, id)?;
    assert_eq!(tick, 2, "{what:#}");
    assert!(what.to_string().contains("no reconcile"), "{what:#}");
    let retries = outcomes.first().and_then(|outcome| outcome["retries"].as_i64());
    assert!(retries >= Some(1), "a single difference may be due to timing: {outcomes:#?}");
    Ok(())
}
