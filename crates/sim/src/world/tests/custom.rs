//! Tests of the responses of custom.metrics.k8s.io and external.metrics.k8s.io.

use super::*;
use kube_lockstep_scenario::resolved::{
    DescribedObject, ExternalMetric, ObjectMetric, PodsMetric, Series,
};

fn constant(value: &str) -> Signal {
    Signal::Constant(q(value))
}

fn steps(values: &[(i64, &str)]) -> Signal {
    Signal::Steps(values.iter().map(|(at, value)| Point { at: t(*at), value: q(value) }).collect())
}

fn rps(source: UsageSource) -> PodsMetric {
    let labels = BTreeMap::from([("verb".to_owned(), "GET".to_owned())]);
    PodsMetric { name: "rps".into(), labels, source, exceptions: Vec::new() }
}

fn queue(series: Vec<Series>) -> ExternalMetric {
    ExternalMetric { name: "queue".into(), value: None, series }
}

fn one(value: Signal) -> Vec<Series> {
    vec![Series { labels: BTreeMap::new(), value }]
}

fn hits(kind: &str, signal: Signal) -> ObjectMetric {
    let (kind, group) = kind.split_once('.').unwrap_or((kind, ""));
    let api_version = (!group.is_empty()).then(|| format!("{group}/v1").into());
    let object = DescribedObject { api_version, kind: kind.into(), name: "main".into() };
    ObjectMetric { name: "hits".into(), object, value: Some(signal), series: Vec::new() }
}

/// The pods' values of `rps` in the response at a second: `web-0 15s 100`.
fn values(run: &mut Run, second: i64) -> Vec<String> {
    run.at(second);
    let answer = &run.cluster.custom_metrics().pods["rps"];
    assert_eq!(answer.error, None);
    let texts = answer.values.iter().map(|it| format!("{} {} {}", it.name, it.timestamp, it.value));
    texts.collect()
}

/// The series of `queue` in the response at a second.
fn series(run: &mut Run, second: i64) -> Result<Vec<String>, u16> {
    run.at(second);
    let answer = &run.cluster.custom_metrics().externals["queue"];
    let texts = answer.series.iter().map(|it| format!("{} {}", it.timestamp, it.value)).collect();
    answer.error.as_ref().map_or(Ok(texts), |error| Err(error.code))
}

#[test]
fn each_running_pod_with_metrics_has_a_value() {
    let mut run = Run::new(&scenario(1, |s| {
        s.metrics.pods = vec![rps(UsageSource::PerPod(constant("100")))];
        s.workload.startup =
            Startup { pending: Some(secs(10)), ready: Some(secs(30)), metrics: secs(20) };
        s.workload.termination = Termination::lasting(secs(20));
        s.schedule(40, None, Action::PodsFailed(pods(0, 0)));
    }));
    assert_eq!(values(&mut run, 0), ["web-0 0s 100"]);
    run.scale(0, 2);
    assert_eq!(values(&mut run, 29), ["web-0 29s 100"]);
    assert_eq!(values(&mut run, 30), ["web-0 30s 100", "web-1 30s 100"]);
    assert_eq!(values(&mut run, 40), ["web-1 40s 100"]);
    // web-2 replaces web-0; a Terminating pod has a value until it is removed.
    run.scale(40, 0);
    assert_eq!(values(&mut run, 59), ["web-1 59s 100"]);
    assert_eq!(values(&mut run, 60), Vec::<String>::new());
    let answer = &run.cluster.custom_metrics().pods["rps"];
    assert_eq!(answer.labels["verb"], "GET");
}

#[test]
fn custom_samples_share_the_age_of_usage_samples() {
    let signal = || steps(&[(10, "1"), (20, "2"), (30, "3"), (40, "4")]);
    for (lag, resolution, sample) in
        [(0, None, "40s 4"), (15, None, "25s 2"), (0, Some(15), "30s 3"), (11, Some(15), "15s 1")]
    {
        let mut run = Run::new(&scenario(1, |s| {
            s.metrics.pods = vec![rps(UsageSource::PerPod(signal()))];
            s.metrics.objects = vec![hits("Service", signal())];
            s.metrics.externals = vec![queue(one(signal()))];
            s.metrics.sampling.lag = secs(lag);
            s.metrics.sampling.resolution = resolution.map(secs);
        }));
        assert_eq!(values(&mut run, 40), [format!("web-0 {sample}")]);
        assert_eq!(series(&mut run, 40), Ok(vec![sample.to_owned()]));
        let objects = &run.cluster.custom_metrics().objects;
        let of_object = &objects[&("hits".into(), "Service".into(), "main".into())].series[0];
        assert_eq!(format!("{} {}", of_object.timestamp, of_object.value), sample);
    }
}

#[test]
fn unchanged_values_are_not_sent_again() {
    let mut run = Run::new(&scenario(2, |s| {
        s.metrics.resources.clear();
        s.metrics.pods = vec![rps(UsageSource::PerPod(constant("100")))];
        s.metrics.externals = vec![queue(one(constant("1")))];
        s.metrics.sampling.resolution = Some(secs(60));
        s.schedule(
            70,
            None,
            Action::MetricMissing(MetricOfPods { metric: "rps".into(), pods: pods(1, 1) }),
        );
    }));
    assert!(run.at(0).len() >= 3);
    for second in [0, 15, 59] {
        assert_eq!(run.at(second), [], "t={second}");
    }
    // A new sample: both metrics are sent completely.
    assert!(matches!(&run.at(60)[..], [Change::PodsMetric(_), Change::ExternalMetric(_)]));
    assert!(matches!(&run.at(75)[..], [Change::PodsMetric(change)] if change.values.len() == 1));
    assert_eq!(run.at(76), []);
}

#[test]
fn a_load_is_divided_among_the_ready_pods() {
    let mut run = Run::new(&scenario(3, |s| {
        let load = |total, limit| UsageSource::Load { total, limit };
        s.metrics.pods = vec![rps(load(steps(&[(0, "10"), (50, "-10")]), Some(q("4"))))];
        s.metrics.pods[0].exceptions = vec![Exception::new(pods(2, 2), constant("-7"))];
        s.schedule(15, Some(10), Action::PodsUnready(pods(0, 0)));
        s.schedule(30, Some(10), Action::PodsUnready(pods(0, 1)));
    }));
    assert_eq!(values(&mut run, 0), ["web-0 0s 3333m", "web-1 0s 3333m", "web-2 0s -7"]);
    assert_eq!(values(&mut run, 15), ["web-0 15s 0", "web-1 15s 4", "web-2 15s -7"]);
    assert_eq!(values(&mut run, 30), ["web-0 30s 0", "web-1 30s 0", "web-2 30s -7"]);
    assert_eq!(values(&mut run, 50), ["web-0 50s -3334m", "web-1 50s -3334m", "web-2 50s -7"]);
}

#[test]
fn pods_can_lack_a_value_for_a_time() {
    let mut run = Run::new(&scenario(2, |s| {
        s.metrics.pods = vec![rps(UsageSource::PerPod(constant("100")))];
        s.schedule(
            10,
            Some(20),
            Action::MetricMissing(MetricOfPods { metric: "rps".into(), pods: pods(0, 0) }),
        );
        s.schedule(
            10,
            Some(20),
            Action::MetricMissing(MetricOfPods { metric: "other".into(), pods: PodSet::All }),
        );
        // A different adapter serves metrics.k8s.io.
        s.schedule(10, None, Action::MetricsMissing(PodSet::All));
        s.schedule(10, None, Action::MetricsStale(PodSet::All));
        s.schedule(10, None, Action::MetricsEmpty(Empty {}));
    }));
    assert_eq!(values(&mut run, 9).len(), 2);
    assert_eq!(values(&mut run, 10), ["web-1 10s 100"]);
    assert_eq!(values(&mut run, 29), ["web-1 29s 100"]);
    assert_eq!(values(&mut run, 30), ["web-0 30s 100", "web-1 30s 100"]);
}

#[test]
fn a_deleted_pod_has_no_custom_value_while_its_usage_sample_stays() {
    let mut run = Run::new(&scenario(2, |s| {
        s.metrics.pods = vec![rps(UsageSource::PerPod(constant("100")))];
        s.schedule(5, None, Action::MetricsStale(pods(0, 0)));
        s.schedule(10, None, Action::Scale(1));
        s.workload.scale_down_order = ScaleDownOrder::Oldest;
    }));
    assert_eq!(values(&mut run, 10), ["web-1 10s 100"]);
    assert_eq!(run.samples(10).len(), 2);
}

#[test]
fn queries_of_one_metric_can_fail_or_be_empty() {
    let mut run = Run::new(&scenario(1, |s| {
        s.metrics.pods = vec![rps(UsageSource::PerPod(constant("100")))];
        s.metrics.externals = vec![queue(one(constant("1")))];
        s.schedule(
            10,
            Some(40),
            Action::MetricError(MetricError { metric: "queue".into(), error: error(500) }),
        );
        s.schedule(
            20,
            Some(20),
            Action::MetricError(MetricError { metric: "queue".into(), error: error(503) }),
        );
        s.schedule(30, Some(40), Action::MetricEmpty("queue".into()));
    }));
    let fresh = |second: i64| Ok(vec![format!("{} 1", t(second))]);
    assert_eq!(series(&mut run, 9), fresh(9));
    assert_eq!(series(&mut run, 10), Err(500));
    assert_eq!(series(&mut run, 20), Err(503));
    // An error takes precedence over an empty response.
    assert_eq!(series(&mut run, 30), Err(503));
    assert_eq!(series(&mut run, 40), Err(500));
    assert_eq!(series(&mut run, 50), Ok(Vec::new()));
    assert_eq!(series(&mut run, 70), fresh(70));
    assert_eq!(values(&mut run, 70), ["web-0 1m10s 100"]);
}

#[test]
fn objects_are_distinguished_by_kind_and_group() {
    let mut run = Run::new(&scenario(1, |s| {
        s.metrics.objects = vec![
            hits("Ingress.networking.k8s.io", constant("1")),
            hits("Ingress.example.com", constant("2")),
        ];
        s.schedule(15, None, Action::MetricEmpty("hits".into()));
    }));
    let value = |run: &Run, kind: &str| {
        let objects = &run.cluster.custom_metrics().objects;
        let answer = &objects[&("hits".into(), kind.into(), "main".into())];
        answer.series.iter().map(|it| it.value.to_string()).collect::<Vec<_>>()
    };
    run.at(0);
    assert_eq!(value(&run, "Ingress.networking.k8s.io"), ["1"]);
    assert_eq!(value(&run, "Ingress.example.com"), ["2"]);
    // The action names only the metric, so it affects both objects.
    run.at(15);
    assert_eq!(value(&run, "Ingress.networking.k8s.io"), Vec::<String>::new());
    assert_eq!(value(&run, "Ingress.example.com"), Vec::<String>::new());
}

#[test]
fn only_sidecars_among_init_containers_have_usage() {
    let mut run = Run::new(&scenario(1, |s| {
        let container =
            |name: &str, sidecar| Container { name: name.into(), sidecar, ..Container::default() };
        s.workload.spec = Arc::new(PodSpec {
            containers: vec![container("app", false)],
            init_containers: vec![container("setup", false), container("mesh", true)],
            requests: Some(BTreeMap::from([("cpu".into(), q("2"))])),
            overhead: BTreeMap::from([("cpu".into(), q("100m"))]),
        });
        let usage = vec![("mesh".into(), constant("7m"))];
        s.metrics.resources = vec![cpu(UsageSource::PerContainer(Entries(usage)))];
    }));
    assert_eq!(run.samples(0), ["web-0 0s app=cpu:0 mesh=cpu:7m"]);
    let spec = &run.cluster.pods()[0].spec;
    assert_eq!(spec.overhead["cpu"], q("100m"));
    assert_eq!(spec.requests.as_ref().map(|requests| &requests["cpu"]), Some(&q("2")));
}
