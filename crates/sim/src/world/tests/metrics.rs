//! Tests of the responses of metrics.k8s.io.

use super::*;
use crate::world::PodMetricsChange;

/// The change of the metrics among the changes.
fn metrics_change(changes: Vec<Change>) -> Option<PodMetricsChange> {
    changes.into_iter().find_map(|change| match change {
        Change::PodMetrics(change) => Some(change),
        _ => None,
    })
}

fn steps(values: &[(i64, &str)]) -> Signal {
    Signal::Steps(values.iter().map(|(at, value)| Point { at: t(*at), value: q(value) }).collect())
}

fn constant(value: &str) -> Signal {
    Signal::Constant(q(value))
}

fn exception(pods: PodSet, value: &str) -> Exception {
    Exception::new(pods, constant(value))
}

fn load(total: Signal, limit: Option<&str>) -> UsageSource {
    UsageSource::Load { total, limit: limit.map(q) }
}

#[test]
fn a_steady_world_only_changes_the_timestamp() {
    let mut run = Run::new(&scenario(3, |_| {}));
    run.at(0);
    for second in [15, 30, 45] {
        let timestamp = Some(t(second));
        let change = PodMetricsChange { timestamp, ..PodMetricsChange::default() };
        assert_eq!(run.at(second), [Change::PodMetrics(change)]);
        assert_eq!(run.samples(second).len(), 3);
        assert_eq!(run.samples(second)[2], format!("web-2 {second}s app=cpu:100m"));
    }
    assert_eq!(run.at(45), []);
}

#[test]
fn samples_are_published_by_class_until_a_pod_changes() {
    let mut run = Run::new(&scenario(3, |s| {
        let values = [(0, "100m"), (15, "200m"), (30, "300m"), (45, "100m")];
        let source = UsageSource::PerPod(steps(&values));
        let own = Exception::new(pods(1, 1), steps(&[(0, "10m"), (30, "30m"), (45, "10m")]));
        s.metrics.resources = vec![ResourceUsage { exceptions: vec![own], ..cpu(source) }];
        s.schedule(40, None, Action::PodsDeleted(pods(0, 0)));
    }));
    run.at(0);
    for (second, sizes) in [(15, vec![1, 1]), (30, vec![1, 1, 1])] {
        let change = metrics_change(run.at(second)).expect("samples");
        assert_eq!(change.set.iter().map(|it| it.pods.len()).collect::<Vec<_>>(), sizes);
    }
    let samples = ["web-0 30s app=cpu:300m", "web-1 30s app=cpu:30m", "web-2 30s app=cpu:300m"];
    assert_eq!(describe_samples(&run.cluster), samples);
    // The values are those of t=0 again, which were published by pod.
    let samples = ["web-1 45s app=cpu:10m", "web-2 45s app=cpu:100m", "web-3 45s app=cpu:100m"];
    assert_eq!(run.samples(45), samples);
}

#[test]
fn without_a_new_sample_nothing_changes() {
    let mut run = Run::new(&scenario(3, |s| s.metrics.sampling.resolution = Some(secs(60))));
    run.at(0);
    for second in [15, 30, 45] {
        assert_eq!(run.at(second), []);
    }
    assert_eq!(run.at(60).len(), 1);
}

#[test]
fn equal_values_are_shared_by_pods() {
    let mut run = Run::new(&scenario(3, |_| {}));
    let change = metrics_change(run.at(0)).expect("samples");
    assert_eq!(change.window, Some(secs(30)));
    assert_eq!(change.set.iter().map(|it| it.pods.len()).collect::<Vec<_>>(), [3]);
}

#[test]
fn samples_have_the_age_of_the_scenario() {
    for (lag, resolution, query, sample) in [
        (0, None, 40, "web-0 40s app=cpu:400m"),
        (15, None, 40, "web-0 25s app=cpu:200m"),
        (0, Some(15), 40, "web-0 30s app=cpu:300m"),
        (11, Some(15), 40, "web-0 15s app=cpu:100m"),
        (11, Some(15), 0, "web-0 -15s app=cpu:100m"),
    ] {
        let mut run = Run::new(&scenario(1, |s| {
            let values = [(10, "100m"), (20, "200m"), (30, "300m"), (40, "400m")];
            s.metrics.resources = vec![cpu(UsageSource::PerPod(steps(&values)))];
            s.metrics.sampling.lag = secs(lag);
            s.metrics.sampling.resolution = resolution.map(secs);
        }));
        assert_eq!(run.samples(query), [sample], "lag {lag}, resolution {resolution:?}");
    }
}

#[test]
fn a_sample_has_every_container_and_every_resource() {
    let mut run = Run::new(&scenario(2, |s| {
        let container = |name: &str| Container { name: name.into(), ..Container::default() };
        s.workload.spec = Arc::new(PodSpec {
            containers: vec![container("app"), container("log")],
            ..PodSpec::default()
        });
        let per_container = vec![("log".into(), constant("7Mi"))];
        s.metrics.resources[0].exceptions =
            vec![exception(PodSet::All, "200m"), exception(pods(1, 1), "300m")];
        s.metrics.resources.push(ResourceUsage {
            name: "memory".into(),
            source: UsageSource::PerContainer(Entries(per_container)),
            exceptions: Vec::new(),
        });
    }));
    assert_eq!(
        run.samples(0),
        [
            "web-0 0s app=cpu:200m,memory:0 log=cpu:0,memory:7Mi",
            "web-1 0s app=cpu:300m,memory:0 log=cpu:0,memory:7Mi",
        ]
    );
}

#[test]
fn a_load_is_divided_among_the_ready_pods() {
    let mut run = Run::new(&scenario(3, |s| {
        s.metrics.resources = vec![cpu(load(steps(&[(0, "1"), (50, "4")]), Some("900m")))];
        s.workload.startup.ready = Some(secs(10));
        s.workload.termination = Termination::lasting(secs(30));
        s.schedule(15, Some(10), Action::PodsUnready(pods(0, 0)));
    }));
    let values = |run: &mut Run, second| -> Vec<String> {
        let samples = run.samples(second).into_iter();
        samples.map(|sample| sample.rsplit(':').next().unwrap_or_default().to_owned()).collect()
    };
    assert_eq!(values(&mut run, 0), ["333m", "333m", "333m"]);
    assert_eq!(values(&mut run, 15), ["0", "500m", "500m"]);
    assert_eq!(values(&mut run, 25), ["333m", "333m", "333m"]);
    run.scale(30, 4);
    assert_eq!(values(&mut run, 30), ["333m", "333m", "333m", "0"]);
    assert_eq!(values(&mut run, 40), ["250m", "250m", "250m", "250m"]);
    // The share of two pods exceeds the limit; Terminating pods receive no share.
    run.scale(45, 2);
    assert_eq!(values(&mut run, 50), ["900m", "900m", "0", "0"]);
    run.scale(60, 0);
    assert_eq!(values(&mut run, 61), ["0", "0", "0", "0"]);
    assert_eq!(values(&mut run, 100), Vec::<String>::new());
}

#[test]
fn a_pod_has_metrics_from_its_delay_until_its_deletion() {
    let mut run = Run::new(&scenario(0, |s| {
        s.workload.startup =
            Startup { pending: Some(secs(10)), ready: Some(secs(20)), metrics: secs(30) };
        s.workload.termination = Termination::lasting(secs(20));
    }));
    run.scale(0, 1);
    for (second, samples) in [(39, 0), (40, 1)] {
        assert_eq!(run.samples(second).len(), samples, "t={second}");
    }
    run.scale(50, 0);
    for (second, samples) in [(50, 1), (69, 1), (70, 0)] {
        assert_eq!(run.samples(second).len(), samples, "t={second}");
    }
}

#[test]
fn failed_and_pending_pods_have_no_entry() {
    let mut run = Run::new(&scenario(1, |s| {
        s.workload.startup.pending = None;
        s.schedule(10, None, Action::PodsFailed(PodSet::All));
    }));
    assert_eq!(run.samples(9).len(), 1);
    assert_eq!(run.samples(10), Vec::<String>::new());
    // No sample has the common timestamp, so nothing is sent.
    assert_eq!(run.at(25), []);
}

#[test]
fn missing_values_return() {
    let hidden: [(Action, &[&str]); 4] = [
        (Action::MetricsMissing(pods(0, 0)), &["web-1 10s app=cpu:100m"]),
        (Action::MetricsEmpty(Empty {}), &[]),
        (
            Action::ContainerMetricsMissing(ContainerOfPods {
                pods: pods(0, 0),
                container: "app".into(),
            }),
            &["web-0 10s app=", "web-1 10s app=cpu:100m"],
        ),
        (
            Action::ResourceMissing(ResourceOfPods { pods: pods(1, 1), resource: "cpu".into() }),
            &["web-0 10s app=cpu:100m", "web-1 10s app="],
        ),
    ];
    for (what, samples) in hidden {
        let mut run = Run::new(&scenario(2, |s| s.schedule(10, Some(20), what.clone())));
        run.at(0);
        assert_eq!(run.samples(10), samples, "{what:?}");
        assert_eq!(run.samples(29).len(), samples.len(), "{what:?}");
        let again = ["web-0 30s app=cpu:100m", "web-1 30s app=cpu:100m"];
        assert_eq!(run.samples(30), again, "{what:?}");
    }
}

#[test]
fn stale_samples_keep_their_values_and_timestamps() {
    let mut run = Run::new(&scenario(2, |s| {
        let values = [(0, "100m"), (20, "200m"), (30, "300m")];
        s.metrics.resources = vec![cpu(UsageSource::PerPod(steps(&values)))];
        // Between two reconciles: the stale sample has the value and the timestamp of t=22s.
        s.schedule(22, Some(40), Action::MetricsStale(pods(0, 0)));
        s.schedule(50, Some(20), Action::MetricsStale(pods(0, 0)));
    }));
    run.at(15);
    for (second, samples) in [
        (30, ["web-0 22s app=cpu:200m", "web-1 30s app=cpu:300m"]),
        (69, ["web-0 22s app=cpu:200m", "web-1 1m9s app=cpu:300m"]),
        (70, ["web-0 1m10s app=cpu:300m", "web-1 1m10s app=cpu:300m"]),
    ] {
        assert_eq!(run.samples(second), samples, "t={second}");
    }
}

#[test]
fn a_stale_sample_has_the_age_of_the_samples_of_its_pod() {
    let mut run = Run::new(&scenario(2, |s| {
        let values = [(0, "100m"), (10, "200m"), (30, "300m")];
        s.metrics.resources = vec![cpu(UsageSource::PerPod(steps(&values)))];
        s.workload.pods = vec![PodsOfWorkload {
            pods: pods(0, 0),
            age: None,
            startup: None,
            sample_lag: Some(secs(20)),
        }];
        s.schedule(22, Some(40), Action::MetricsStale(PodSet::All));
    }));
    run.at(15);
    for second in [30, 61] {
        let samples = ["web-0 2s app=cpu:100m", "web-1 22s app=cpu:200m"];
        assert_eq!(run.samples(second), samples, "t={second}");
    }
    let samples = ["web-0 42s app=cpu:300m", "web-1 1m2s app=cpu:300m"];
    assert_eq!(run.samples(62), samples);
}

#[test]
fn a_stale_sample_outlives_its_pod() {
    let mut run = Run::new(&scenario(2, |s| {
        s.schedule(5, Some(40), Action::MetricsStale(pods(0, 0)));
        s.schedule(10, None, Action::PodsDeleted(pods(0, 0)));
        // Actions on a removed pod have no effect.
        s.schedule(20, None, Action::PodsFailed(pods(0, 0)));
        s.schedule(20, None, Action::PodsStuckTerminating(pods(0, 0)));
        s.schedule(20, None, Action::MetricsMissing(pods(0, 0)));
    }));
    assert_eq!(run.samples(0), ["web-0 0s app=cpu:100m", "web-1 0s app=cpu:100m"]);
    for second in [15, 30] {
        let names: Vec<_> = {
            run.at(second);
            run.cluster.pods()
        }
        .iter()
        .map(|p| &*p.name)
        .collect();
        assert_eq!(names, ["web-1", "web-2"], "t={second}");
        let fresh = |pod: u32| format!("web-{pod} {second}s app=cpu:100m");
        assert_eq!(run.samples(second), ["web-0 5s app=cpu:100m".to_owned(), fresh(1), fresh(2)]);
    }
    assert_eq!(run.samples(45), ["web-1 45s app=cpu:100m", "web-2 45s app=cpu:100m"]);
}

#[test]
fn a_stale_sample_is_published_when_its_age_differs() {
    let mut run = Run::new(&scenario(2, |s| {
        s.schedule(15, None, Action::MetricsStale(PodSet::All));
    }));
    run.at(0);
    let timestamp = Some(t(15));
    let change = PodMetricsChange { timestamp, ..PodMetricsChange::default() };
    assert_eq!(run.at(15), [Change::PodMetrics(change)]);
    let change = metrics_change(run.at(30)).expect("a change");
    assert_eq!((change.timestamp, change.set[0].pods.len()), (None, 2));
    assert_eq!(run.samples(30), ["web-0 15s app=cpu:100m", "web-1 15s app=cpu:100m"]);
    assert_eq!(run.at(45), []);
}

#[test]
fn a_hidden_container_is_hidden_in_stale_samples() {
    let mut run = Run::new(&scenario(1, |s| {
        s.schedule(10, Some(60), Action::MetricsStale(PodSet::All));
        s.schedule(
            20,
            Some(20),
            Action::ContainerMetricsMissing(ContainerOfPods {
                pods: PodSet::All,
                container: "app".into(),
            }),
        );
        s.schedule(40, Some(5), Action::MetricsMissing(PodSet::All));
    }));
    assert_eq!(run.samples(10), ["web-0 10s app=cpu:100m"]);
    assert_eq!(run.samples(20), ["web-0 10s app="]);
    assert_eq!(run.samples(44), Vec::<String>::new());
    assert_eq!(run.samples(45), ["web-0 10s app=cpu:100m"]);
}

#[test]
fn a_pod_without_a_sample_gets_none_while_stale() {
    let mut run = Run::new(&scenario(0, |s| {
        s.workload.startup.metrics = secs(10);
        s.schedule(5, Some(20), Action::MetricsStale(PodSet::All));
    }));
    run.scale(0, 1);
    assert_eq!(run.samples(15), Vec::<String>::new());
    assert_eq!(run.samples(25), ["web-0 25s app=cpu:100m"]);
}

#[test]
fn stale_samples_keep_the_load_of_their_time() {
    let mut run = Run::new(&scenario(1, |s| {
        s.metrics.resources = vec![cpu(load(constant("1"), None))];
        s.schedule(10, None, Action::Scale(2));
        s.schedule(20, None, Action::MetricsStale(pods(0, 0)));
        s.schedule(25, None, Action::Scale(4));
    }));
    run.at(0);
    assert_eq!(run.samples(30)[..2], ["web-0 20s app=cpu:500m", "web-1 30s app=cpu:250m"]);
}

#[test]
fn metrics_without_an_entry_are_an_empty_list() {
    let mut run = Run::new(&scenario(1, |s| s.metrics.resources.clear()));
    assert_eq!(run.samples(0), Vec::<String>::new());
}
