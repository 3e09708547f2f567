//! Random scenarios for the property test.

use proptest::prelude::*;

use super::*;
use kube_lockstep_scenario::resolved::{ExternalMetric, PodsMetric, RollingUpdate, Share};

fn pod_set() -> impl Strategy<Value = PodSet> {
    let ranges = proptest::collection::vec((0..4_u32, 0..3_u32), 1..3);
    prop_oneof![
        Just(PodSet::All),
        ranges.prop_map(|ranges| {
            let mut from = 0;
            let ordinals = ranges.into_iter().map(|(skip, more)| {
                let range = (from + skip, from + skip + more);
                from = range.1 + 1;
                range
            });
            PodSet::Ordinals(ordinals.collect())
        }),
    ]
}

fn action() -> impl Strategy<Value = Action> {
    (0..20_u8, pod_set(), 0..7_i32).prop_map(|(kind, set, replicas)| match kind {
        0 => Action::PodsUnready(set),
        1 => Action::PodsFailed(set),
        2 => Action::PodsDeleted(set),
        3 => Action::PodsStuckTerminating(set),
        4 => Action::MetricsMissing(set),
        5 => {
            Action::ContainerMetricsMissing(ContainerOfPods { pods: set, container: "app".into() })
        }
        6 => Action::ResourceMissing(ResourceOfPods { pods: set, resource: "cpu".into() }),
        7 | 8 => Action::MetricsStale(set),
        9 => Action::MetricsEmpty(Empty {}),
        11 => Action::MetricMissing(MetricOfPods { metric: "rps".into(), pods: set }),
        12 => Action::MetricEmpty("rps".into()),
        13 => Action::MetricEmpty("queue".into()),
        14 => Action::MetricError(MetricError { metric: "rps".into(), error: error(500) }),
        16 => Action::PodsSucceeded(set),
        19 => {
            let orphan = (replicas % 2 == 1).then_some(true);
            Action::TargetDeleted(TargetDeletion { orphan })
        }
        17 | 18 => {
            let (most, least) = (replicas.unsigned_abs() % 3, replicas.unsigned_abs() * 20);
            Action::RollingUpdate(RollingUpdate {
                max_surge: Some(Share::Pods(most)),
                max_unavailable: Some(Share::Percent(least)),
                containers: Vec::new(),
            })
        }
        15 => Action::MetricError(MetricError {
            metric: "queue".into(),
            error: error(if replicas > 3 { 500 } else { 503 }),
        }),
        _ => Action::Scale(replicas),
    })
}

fn signal() -> impl Strategy<Value = Signal> {
    let constant = (0..2000_i64).prop_map(|m| Signal::Constant(q(&format!("{m}m"))));
    let steps = proptest::collection::btree_map(0..60_i64, 0..2000_i64, 1..4).prop_map(|steps| {
        let step = |(at, milli)| Point { at: t(at), value: q(&format!("{milli}m")) };
        Signal::Steps(steps.into_iter().map(step).collect())
    });
    prop_oneof![constant, steps]
}

fn exception(value: impl Strategy<Value = Signal>) -> impl Strategy<Value = Exception> {
    (pod_set(), value).prop_map(|(pods, value)| Exception::new(pods, value))
}

fn usage() -> impl Strategy<Value = ResourceUsage> {
    let source = (signal(), 0..3_u8, proptest::option::of(100..900_i64));
    let source = source.prop_map(|(signal, kind, limit)| match kind {
        0 => UsageSource::PerPod(signal),
        1 => UsageSource::PerContainer(Entries(vec![("log".into(), signal)])),
        _ => UsageSource::Load { total: signal, limit: limit.map(|m| q(&format!("{m}m"))) },
    });
    let exceptions = proptest::collection::vec(exception(signal()), 0..3);
    (source, exceptions).prop_map(|(source, exceptions)| {
        let mut usage = cpu(source);
        usage.exceptions = exceptions;
        usage
    })
}

/// Custom metrics may be negative.
fn custom_signal() -> impl Strategy<Value = Signal> {
    let constant = (-900..900_i64).prop_map(|m| Signal::Constant(q(&format!("{m}m"))));
    prop_oneof![signal(), constant]
}

fn rps() -> impl Strategy<Value = PodsMetric> {
    let source = (custom_signal(), proptest::option::of(proptest::option::of(100..900_i64)));
    let source = source.prop_map(|(signal, load)| match load {
        None => UsageSource::PerPod(signal),
        Some(limit) => {
            UsageSource::Load { total: signal, limit: limit.map(|m| q(&format!("{m}m"))) }
        }
    });
    let exceptions = proptest::collection::vec(exception(custom_signal()), 0..3);
    (source, exceptions).prop_map(|(source, exceptions)| PodsMetric {
        name: "rps".into(),
        labels: BTreeMap::new(),
        source,
        exceptions,
    })
}

fn workload() -> impl Strategy<Value = Workload> {
    let times = (0..20_i64, proptest::option::of(0..9_i64), proptest::option::of(0..15_i64));
    let sizes = (0..6_i32, proptest::option::weighted(0.3, 0..6_u32));
    (sizes, times, 0..8_i64, (0..12_i64, 0..12_i64), 0..3_u8).prop_map(
        |((replicas, quota), (age, pending, ready), metrics, termination, victims)| {
            let mut workload = scenario(replicas, |_| {}).workload.clone();
            workload.quota = quota;
            let container = |name: &str| Container { name: name.into(), ..Container::default() };
            let containers = vec![container("app"), container("log")];
            workload.spec = Arc::new(PodSpec { containers, ..PodSpec::default() });
            workload.age = secs(age);
            let (pending, ready) = (pending.map(secs), ready.map(secs));
            workload.startup = Startup { pending, ready, metrics: secs(metrics) };
            let (duration, ready) = termination;
            workload.termination =
                Termination { duration: secs(duration), ready: secs(ready.min(duration)) };
            workload.scale_down_order =
                [ScaleDownOrder::ReplicaSet, ScaleDownOrder::Newest, ScaleDownOrder::Oldest]
                    [usize::from(victims)];
            workload
        },
    )
}

pub(super) fn scenarios() -> impl Strategy<Value = Arc<Scenario>> {
    let event = (0..60_i64, proptest::option::of(0..25_i64), action());
    let events = proptest::collection::vec(event, 0..9);
    let sampling = (0..4_i64, proptest::option::of(1..20_i64));
    let custom = (rps(), custom_signal());
    (workload(), usage(), custom, events, sampling).prop_map(
        |(workload, usage, (rps, queue), events, sampling)| {
            scenario(0, |s| {
                s.workload = workload;
                s.metrics.resources = vec![usage];
                s.metrics.pods = vec![rps];
                let (value, series) = (Some(queue), Vec::new());
                s.metrics.externals = vec![ExternalMetric { name: "queue".into(), value, series }];
                s.metrics.sampling.lag = secs(sampling.0);
                s.metrics.sampling.resolution = sampling.1.map(secs);
                for (at, lasts, what) in events {
                    s.schedule(at, lasts, what);
                }
            })
        },
    )
}
