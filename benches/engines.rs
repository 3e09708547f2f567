//! Ticks per second of the model and of upstream's controller in one run, with their ratios.
//!
//! Each iteration is one tick of a steady scenario: new timestamps, the decision, and the full
//! observation. Upstream runs over the protocol in both modes: one step at a time, and pipelined
//! with a thousand steps ahead, as the runner does. The host measures its own loop without the
//! protocol (`BenchmarkBare`), immediately before and after. See `docs/speed.md`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group};
use kube_autoscaler_models::hpa::Decision;
use kube_autoscaler_models::rules::{Release, Rules};
use kube_autoscaler_models::time::{Span, Time};
use kube_lockstep_engines::upstream::{Upstream, build};
use kube_lockstep_scenario as scenario;
use kube_lockstep_scenario::Scenario;
use kube_lockstep_sim::engine::model::Simulation;
use kube_lockstep_sim::engine::{Engine, Step};
use kube_lockstep_sim::world::{Change, World};
use tokio_util::sync::CancellationToken;

const RELEASE: Release = Release::NEWEST;
const PODS: [u32; 5] = [1, 10, 100, 1_000, 10_000];
const PERIOD: Span = Span::from_secs(15);

/// Nanoseconds per tick by benchmark and number of pods: the minimum of all samples.
static LEAST: Mutex<BTreeMap<(&str, u32), f64>> = Mutex::new(BTreeMap::new());

fn note(benchmark: &'static str, pods: u32, ticks: u64, took: Duration) {
    let nanos = took.as_nanos() as f64 / ticks.max(1) as f64;
    if let Ok(mut least) = LEAST.lock() {
        let entry = least.entry((benchmark, pods)).or_insert(nanos);
        *entry = entry.min(nanos);
    }
}

/// A scenario whose pods are always exactly on target.
fn steady(pods: u32) -> Arc<Scenario> {
    let text = format!(
        "apiVersion: kube-lockstep.dev/v1alpha1
kind: Scenario
requirement: Nothing changes.
upstream: https://kubernetes.io/docs/tasks/run-application/horizontal-pod-autoscale/
hpa:
  apiVersion: autoscaling/v2
  kind: HorizontalPodAutoscaler
  metadata: {{name: web, namespace: default}}
  spec:
    scaleTargetRef: {{apiVersion: apps/v1, kind: Deployment, name: web}}
    maxReplicas: 20000
    metrics:
    - type: Resource
      resource: {{name: cpu, target: {{type: Utilization, averageUtilization: 50}}}}
workload:
  replicas: {pods}
  containers: [{{name: app, requests: {{cpu: \"1\"}}}}]
metrics:
  resource:
  - {{name: cpu, perPod: 500m}}
until: 1h
"
    );
    let no_files = |name: &str| Err(format!("{name} is not read").into());
    match scenario::parse("benches/engines.rs", &text, &no_files) {
        Ok(scenario) => Arc::new(scenario),
        Err(error) => panic!("{error}"),
    }
}

/// The steps of a steady scenario, one tick each.
struct Ticks {
    world: World,
    next: Time,
}

impl Ticks {
    fn new(scenario: &Arc<Scenario>) -> (Ticks, Vec<Change>) {
        let mut world = World::new(scenario);
        let mut first = world.advance(Time::ZERO);
        first.extend(world.api_events(Time::ZERO));
        (Ticks { world, next: Time::ZERO + PERIOD }, first)
    }

    fn step(&mut self) -> Step {
        let until = self.next;
        self.next = until + PERIOD;
        Step { apply: self.world.advance(until), until, ..Step::default() }
    }
}

fn model(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("model");
    group.throughput(Throughput::Elements(1));
    for pods in PODS {
        let scenario = steady(pods);
        let (mut ticks, first) = Ticks::new(&scenario);
        let mut simulation = Simulation::new(&scenario, Rules::of(RELEASE));
        for change in &first {
            simulation.apply(change, Time::ZERO);
        }
        let decision = simulation.sync(Time::ZERO).expect("the first tick");
        simulation.commit(&decision.observation, decision.end, 0);
        group.bench_function(BenchmarkId::from_parameter(pods), |bencher| {
            bencher.iter_custom(|count| {
                // The changes of a tick (new timestamps) are computed by the world, not by the
                // model: they are applied once for all ticks of a sample.
                let step = ticks.step();
                for change in &step.apply {
                    simulation.apply(change, step.until);
                }
                let mut at = step.until;
                let mut decision = Decision::default();
                let begin = Instant::now();
                for _ in 0..count {
                    assert!(simulation.sync_into(at, &mut decision), "a tick");
                    simulation.commit(&decision.observation, decision.end, 0);
                    std::hint::black_box(&decision);
                    at = simulation.next_sync().expect("a next tick");
                }
                let took = begin.elapsed();
                ticks.next = at;
                note("model", pods, count, took);
                took
            });
        });
    }
    group.finish();
}

fn upstream(criterion: &mut Criterion) {
    let program =
        match build::ensure(build::Artifact::Host, RELEASE, &CancellationToken::new(), &mut |_| {})
        {
            Ok(program) => program,
            Err(error) => {
                say(&format!("SKIPPED: upstream's engine: {error}"));
                return;
            }
        };
    bare(&program);
    let mut group = criterion.benchmark_group("upstream");
    group.throughput(Throughput::Elements(1));
    group.sample_size(10);
    for pods in PODS {
        let scenario = steady(pods);
        let mut engine = Upstream::new(program.clone(), RELEASE);
        let (mut ticks, first) = Ticks::new(&scenario);
        let mut session = engine.open(&scenario).expect("it opens");
        session.step(&Step { apply: first, ..Step::default() }).expect("the first tick");
        group.bench_function(BenchmarkId::new("step by step", pods), |bencher| {
            bencher.iter_custom(|count| {
                let begin = Instant::now();
                for _ in 0..count {
                    let stepped = session.step(&ticks.step()).expect("a tick");
                    assert_eq!(stepped.ticks.len(), 1);
                }
                note("step by step", pods, count, begin.elapsed());
                begin.elapsed()
            });
        });
        group.bench_function(BenchmarkId::new("ahead", pods), |bencher| {
            bencher.iter_custom(|count| {
                let begin = Instant::now();
                let mut left = count;
                while left > 0 {
                    let chunk = left.min(1000);
                    for _ in 0..chunk {
                        session.send(&ticks.step()).expect("a step");
                    }
                    for _ in 0..chunk {
                        let stepped = session.receive().expect("a tick");
                        assert_eq!(stepped.ticks.len(), 1);
                    }
                    left -= chunk;
                }
                note("ahead", pods, count, begin.elapsed());
                begin.elapsed()
            });
        });
        session.close().expect("it closes");
    }
    group.finish();
    bare(&program);
}

/// The host's own benchmark: the same scenario with 10 pods, without the protocol.
fn bare(program: &Path) {
    let output = Command::new(program)
        .args(["-test.run=^$", "-test.bench=^BenchmarkBare$", "-test.benchtime=2s"])
        .output()
        .expect("the host's own benchmark can be run");
    let text = String::from_utf8_lossy(&output.stdout);
    for line in text.lines().filter(|line| line.starts_with("BenchmarkBare")) {
        let mut words = line.split_whitespace().rev();
        while let Some(word) = words.next() {
            if word == "ns/op" {
                let nanos: f64 = words.next().and_then(|n| n.parse().ok()).expect("ns/op");
                note("bare", 10, 1, Duration::from_nanos(nanos as u64));
            }
        }
    }
}

fn say(line: &str) {
    // A closed standard output does not stop the benchmark.
    let _ = writeln!(std::io::stdout(), "{line}");
}

/// Prints the ratios of the best samples: noise of the machine only adds time.
fn ratios() {
    let Ok(least) = LEAST.lock() else { return };
    let get = |benchmark: &'static str, pods| least.get(&(benchmark, pods)).copied();
    let rate = |nanos: Option<f64>| match nanos {
        Some(nanos) => format!("{:.0}", 1e9 / nanos),
        None => "-".to_owned(),
    };
    let ratio = |a: Option<f64>, b: Option<f64>| match (a, b) {
        (Some(a), Some(b)) => format!("{:.2}", b / a),
        _ => "-".to_owned(),
    };
    let mut table = String::from("\nticks/s (best sample)\n");
    let _ = writeln!(
        table,
        "{:>7} {:>12} {:>12} {:>12} {:>16} {:>16}",
        "pods", "model", "upstream", "upstream", "model/upstream", "model/upstream"
    );
    let _ = writeln!(
        table,
        "{:>7} {:>12} {:>12} {:>12} {:>16} {:>16}",
        "", "", "ahead", "by step", "ahead", "by step"
    );
    for pods in PODS {
        let (model, ahead, step) =
            (get("model", pods), get("ahead", pods), get("step by step", pods));
        let _ = writeln!(
            table,
            "{pods:>7} {:>12} {:>12} {:>12} {:>16} {:>16}",
            rate(model),
            rate(ahead),
            rate(step),
            ratio(model, ahead),
            ratio(model, step),
        );
    }
    let bare = get("bare", 10);
    let _ = writeln!(table, "\nupstream's bare loop, 10 pods: {} ticks/s", rate(bare));
    let _ = writeln!(
        table,
        "through the protocol, ahead: {} of the bare loop",
        ratio(get("ahead", 10), bare)
    );
    let _ = writeln!(
        table,
        "through the protocol, step by step: {} of the bare loop",
        ratio(get("step by step", 10), bare)
    );
    say(&table);
}

criterion_group!(engines, model, upstream);

fn main() {
    engines();
    Criterion::default().configure_from_args().final_summary();
    ratios();
}
