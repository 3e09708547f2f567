//! Runs per second of the recommender of the Vertical Pod Autoscaler: the model, upstream over the
//! protocol, and upstream's own loop without it, in one run. See `docs/speed.md`.
//!
//! The workload has three pods with two containers each, over eight days of one-minute runs. Requires
//! Go.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kube_autoscaler_models::api::{CrossVersionObjectReference, PodPhase};
use kube_autoscaler_models::rules::{VpaRelease, VpaRules};
use kube_autoscaler_models::selector::Selector;
use kube_autoscaler_models::time::{Span, Time};
use kube_autoscaler_models::vpa::{
    ClusterChange, ContainerUsage, GoTime, Labels, ObjectName, Pod, PodContainer, PodMetrics,
    RecommenderFlags, Session, Start, Target, VerticalPodAutoscaler, VpaMetadata, VpaSpec,
};
use kube_lockstep_engines::upstream::recommender;
use kube_lockstep_engines::upstream::recommender::RecommenderHost;
use tokio_util::sync::CancellationToken;

const RELEASE: VpaRelease = VpaRelease::NEWEST;
const MINUTES: i64 = 8 * 24 * 60;
const PODS: i64 = 3;
const CONTAINERS: [&str; 2] = ["app", "sidecar"];

/// The number of steps that are sent before the first answer is awaited.
const AHEAD: usize = 1000;

fn main() {
    let stop = CancellationToken::new();
    let program = match recommender::ensure(RELEASE, &stop, &mut |_| {}) {
        Ok(program) => program,
        Err(error) => return say(&format!("skipped: {error}")),
    };
    let (start, steps) = (start(), steps());
    let (mut model, mut protocol, mut bare_loop) = (Duration::MAX, Duration::MAX, Duration::MAX);
    for _ in 0..3 {
        model = model.min(time_model(&start, &steps));
        bare_loop = bare_loop.min(bare(&program));
        protocol = protocol.min(time_upstream(&program, &start, &steps));
        bare_loop = bare_loop.min(bare(&program));
    }
    let rate = |time: Duration| 1.0 / time.as_secs_f64();
    say(&format!(
        "{RELEASE}: runs/s (best of 3): model {:.0}, upstream {:.0}, bare loop {:.0}; \
         model/upstream {:.0}, upstream/bare {:.2}",
        rate(model),
        rate(protocol),
        rate(bare_loop),
        rate(model) / rate(protocol),
        rate(protocol) / rate(bare_loop),
    ));
}

fn say(line: &str) {
    // A closed standard output does not stop the benchmark.
    let _ = writeln!(std::io::stdout(), "{line}");
}

fn start() -> Start {
    let reference = CrossVersionObjectReference::new("apps/v1", "Deployment", "web");
    let vpa = VerticalPodAutoscaler {
        metadata: VpaMetadata {
            name: ObjectName::new("ns", "web"),
            annotations: BTreeMap::new(),
            generation: 1,
        },
        spec: VpaSpec {
            target_ref: reference.clone(),
            update_policy: None,
            resource_policy: None,
            recommenders: Vec::new(),
        },
        status: Arc::default(),
    };
    let target = Target {
        namespace: "ns".into(),
        reference,
        selector: Selector::parse("app=web").expect("a selector"),
        has_parent: false,
        error: None,
    };
    let mut objects = vec![ClusterChange::SetTarget(target), ClusterChange::SetVpa(vpa)];
    objects.extend((0..PODS).map(|index| ClusterChange::SetPod(pod(index))));
    let at = GoTime::from_unix(946_684_800);
    Start { at, flags: RecommenderFlags::default(), objects, history: Vec::new() }
}

fn pod_name(index: i64) -> ObjectName {
    ObjectName::new("ns", format!("web-{index}"))
}

fn pod(index: i64) -> Pod {
    let containers =
        CONTAINERS.iter().map(|name| PodContainer { name: (*name).into(), memory_request: 0 });
    Pod {
        name: pod_name(index),
        labels: Labels::new(BTreeMap::from([("app".to_owned(), "web".to_owned())])),
        phase: PodPhase::Running,
        containers: containers.collect(),
        init_containers: Vec::new(),
        statuses: Vec::new(),
    }
}

/// The usage of all containers, minute by minute.
fn steps() -> Vec<[ClusterChange; 1]> {
    let usage = |minute: i64| {
        let items = (0..PODS).map(|pod| {
            let containers = CONTAINERS.iter().zip(0..).map(|(name, container)| {
                let varied = (minute * 31 + pod * 17 + container * 5) % 100;
                ContainerUsage {
                    container: (*name).into(),
                    cpu: Some(100 + varied * 7),
                    memory: Some((200 + varied) << 20),
                }
            });
            PodMetrics {
                pod: pod_name(pod),
                timestamp: GoTime::from_unix(946_684_800).plus(Span::from_mins(minute)),
                containers: containers.collect(),
            }
        });
        [ClusterChange::SetMetrics(Ok(items.collect::<Vec<_>>().into()))]
    };
    (1..=MINUTES).map(usage).collect()
}

fn until(step: usize) -> Time {
    Time::from_secs(60 * (step as i64 + 1))
}

/// The time of one run of the model.
fn time_model(start: &Start, steps: &[[ClusterChange; 1]]) -> Duration {
    let (mut session, _) = Session::open(start, VpaRules::of(RELEASE));
    let began = Instant::now();
    for (index, changes) in steps.iter().enumerate() {
        assert_eq!(session.step(changes, until(index)).runs.len(), 1);
    }
    began.elapsed() / steps.len() as u32
}

/// The time of one run of upstream over the protocol.
fn time_upstream(program: &Path, start: &Start, steps: &[[ClusterChange; 1]]) -> Duration {
    let mut host = RecommenderHost::start(program, RELEASE).expect("the host can be started");
    host.open("bench", start, &BTreeMap::new()).expect("the scenario can be opened");
    let began = Instant::now();
    let mut sent = 0;
    for index in 0..steps.len() {
        while sent < steps.len().min(index + AHEAD) {
            host.send(&steps[sent], until(sent)).expect("a step can be sent");
            sent += 1;
        }
        assert_eq!(host.receive().expect("an answer").runs.len(), 1);
    }
    let took = began.elapsed() / steps.len() as u32;
    host.close().expect("the scenario can be closed");
    took
}

/// The time of one run in the host's own loop.
fn bare(program: &Path) -> Duration {
    let arguments = ["-test.run=^$", "-test.bench=^BenchmarkBare$", "-test.benchtime=5760x"];
    let output = Command::new(program).args(arguments).output();
    let output = output.expect("the host's own benchmark can be run");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let words: Vec<&str> = text.split_whitespace().collect();
    let value = words.windows(2).find(|pair| pair[1] == "ns/op").map(|pair| pair[0]);
    let nanos: f64 = value.and_then(|value| value.parse().ok()).expect("ns/op");
    Duration::from_nanos(nanos as u64)
}
