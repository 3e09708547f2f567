//! The speed of searches on the model alone: `tune` in settings of a week of load, and `check` in
//! choices.

use std::fmt::Write as _;
use std::sync::Arc;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use kube_lockstep::{Check, Outcome, Scenario, Tune};

const WEEK: usize = 7 * 86_400;

/// An HPA with a target of 60%, and ten pods that share a load. `fields` are the rest of the file.
fn scenario(load: &str, fields: &str) -> Arc<Scenario> {
    let text = format!(
        "
apiVersion: kube-lockstep.dev/v1alpha1
kind: Scenario
requirement: A search is fast.
hpa:
  apiVersion: autoscaling/v2
  kind: HorizontalPodAutoscaler
  metadata: {{name: web}}
  spec:
    scaleTargetRef: {{apiVersion: apps/v1, kind: Deployment, name: web}}
    minReplicas: 2
    maxReplicas: 30
    behavior: {{scaleDown: {{stabilizationWindowSeconds: 60}}}}
    metrics:
    - type: Resource
      resource: {{name: cpu, target: {{type: Utilization, averageUtilization: 60}}}}
workload:
  replicas: 10
  containers: [{{name: app, requests: {{cpu: 1}}}}]
  startup: {{ready: 30s}}
metrics:
  resource: [{{name: cpu, load: {load}}}]
{fields}
"
    );
    Arc::new(text.parse().unwrap_or_else(|error| panic!("{error}")))
}

/// A week of load, with a value at each of these seconds: a wave of a day, and one of five minutes.
fn week(form: &str, interval: usize) -> Arc<Scenario> {
    let wave = |second: usize, period: f64| (second as f64 / period * std::f64::consts::TAU).sin();
    let mut load = format!("{{{form}: [");
    for second in (0..=WEEK).step_by(interval) {
        let value = 6.0 + 4.0 * wave(second, 86_400.0) + 0.3 * wave(second, 300.0);
        let _ = write!(load, "{{at: {second}s, value: {value:.3}}}, ");
    }
    scenario(&format!("{load}]}}"), &format!("until: {WEEK}s"))
}

fn settings(criterion: &mut Criterion) {
    const SETTINGS: usize = 40;
    let mut group = criterion.benchmark_group("tune a week of load");
    group.sample_size(10).throughput(Throughput::Elements(SETTINGS as u64));
    for (name, scenario) in [
        ("that changes every 15 s", week("steps", 15)),
        ("that changes all the time", week("points", 3600)),
    ] {
        let tune = Tune::new(scenario).settings(SETTINGS);
        group.bench_function(name, |bencher| bencher.iter(|| tune.run().expect("a result")));
    }
    group.finish();
}

fn choices(criterion: &mut Criterion) {
    let choose = "
until: 4m
search: {choose: [{metric: cpu, values: [4.8, 5.4, 6, 6.9, 7.8]}]}
expect: [{always: {}, replicas: {atMost: 30}}]";
    let check = Check::new(scenario("6", choose));
    let checked = check.run().expect("a result");
    assert_eq!(checked.outcome, Outcome::Holds);
    let mut group = criterion.benchmark_group("check");
    group.sample_size(10).throughput(Throughput::Elements(checked.steps));
    let name = format!("{} states at about ten pods", checked.states);
    group.bench_function(name, |bencher| bencher.iter(|| check.run().expect("a result")));
    group.finish();
}

criterion_group!(benches, settings, choices);
criterion_main!(benches);
