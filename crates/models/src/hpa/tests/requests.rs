//! Metrics of one container, and requests of containers, sidecars and whole pods.

use super::*;
use crate::api::{
    ContainerResourceMetricSource, ContainerResourceMetricStatus, MetricStatus, MetricValueStatus,
    Requests,
};
use crate::flags::Gate;

fn of(name: &str, target: MetricTarget) -> MetricSpec {
    let (container, name) = (name.into(), "cpu".into());
    let source = ContainerResourceMetricSource { name, container, target };
    MetricSpec {
        type_: MetricSourceType::ContainerResource,
        resource: None,
        container_resource: Some(source),
        ..resource("cpu", utilization(50))
    }
}

fn cpu(request: &str) -> Requests {
    if request.is_empty() { Requests::new() } else { [("cpu".into(), quantity(request))].into() }
}

fn container(name: &str, request: &str, sidecar: bool) -> Container {
    Container { name: name.into(), requests: cpu(request), sidecar }
}

/// The utilization in the first tick, with one pod that uses 1 cpu; or the event's message.
fn utilization_of(metric: MetricSpec, pod: PodSpec, gates: FeatureGates) -> Result<i32, String> {
    let mut test = HpaTest::with_gates(spec(1, 10, vec![metric]), 1, ready("1"), gates);
    test.pod_spec = Some(pod);
    let decision = test.first();
    let usage = decision.derivation.metrics[0].usage.and_then(|usage| usage.utilization);
    usage.ok_or_else(|| decision.observation.events().next().unwrap().message.to_string())
}

fn cpu_of(pod: PodSpec) -> Result<i32, String> {
    utilization_of(resource("cpu", utilization(50)), pod, FeatureGates::default())
}

#[test]
fn container_metrics_count_one_container() {
    let app = || PodSpec {
        containers: vec![container("proxy", "", false), container("app", "2", false)],
        ..PodSpec::default()
    };
    let metric = || of("app", utilization(50));
    assert_eq!(utilization_of(metric(), app(), FeatureGates::default()), Ok(50));
    let mut test = HpaTest::of(spec(1, 10, vec![metric()]), 1, ready("2"));
    test.pod_spec = Some(app());
    test.run(0);
    let write = test.last().observation.status_write().unwrap();
    assert_eq!(
        write.status.current_metrics,
        [MetricStatus::ContainerResource {
            container_resource: ContainerResourceMetricStatus {
                name: "cpu".into(),
                container: "app".into(),
                current: MetricValueStatus {
                    value: None,
                    average_value: Some(quantity("2")),
                    average_utilization: Some(100),
                },
            },
        }]
    );
    let name = "cpu container resource utilization (percentage of request)";
    assert_eq!(test.events()[0].1, format!("New size: 2; reason: {name} above target"));
}

#[test]
fn an_absent_container_fails_the_metric() {
    let mut test = HpaTest::of(spec(1, 10, vec![of("db", utilization(50))]), 1, ready("1"));
    test.run(0);
    // No pod has metrics of the container.
    let error = "failed to get cpu utilization: did not receive metrics for targeted pods (pods \
                 might be unready)";
    let events = test.events();
    assert_eq!(events[0], ("FailedGetContainerResourceMetric".to_owned(), error.to_owned()));
    assert!(events[1].1.ends_with(&format!("failed to get db container metric value: {error}")));
    // The container has metrics, but is not in the pod.
    let pod = PodSpec { containers: vec![container("db", "1", false)], ..PodSpec::default() };
    let error = utilization_of(of("app", utilization(50)), pod, FeatureGates::default());
    let text = "failed to get cpu utilization: container app not found in Pod web-00000";
    assert_eq!(error, Err(text.to_owned()));
}

#[test]
fn sidecars_count_and_other_init_containers_do_not() {
    let pod = |sidecar: &str| PodSpec {
        containers: vec![container("app", "1", false)],
        init_containers: vec![container("init", "", false), container("proxy", sidecar, true)],
        ..PodSpec::default()
    };
    assert_eq!(cpu_of(pod("1")), Ok(50));
    assert_eq!(
        cpu_of(pod("")),
        Err("failed to get cpu utilization: missing request for cpu in container proxy of Pod \
             web-00000"
            .to_owned())
    );
}

#[test]
fn pod_level_requests_replace_container_requests() {
    let off = || {
        let mut gates = FeatureGates::default();
        gates.set(Gate::PodLevelResources.name(), false).unwrap();
        gates
    };
    let pod = |whole: Requests, overhead: &str| PodSpec {
        containers: vec![container("app", "1", false)],
        requests: Some(whole),
        overhead: cpu(overhead),
        ..PodSpec::default()
    };
    let metric = || resource("cpu", utilization(50));
    assert_eq!(cpu_of(pod(cpu("4"), "")), Ok(25));
    assert_eq!(cpu_of(pod(cpu("1500m"), "500m")), Ok(50));
    assert_eq!(utilization_of(metric(), pod(cpu("4"), "1"), off()), Ok(100));
    // For a container metric, the request of the container applies, without overhead.
    let app = of("app", utilization(50));
    assert_eq!(utilization_of(app, pod(cpu("4"), "1"), FeatureGates::default()), Ok(100));
    // Resources that are not supported for whole pods do not make the requests pod-level.
    let gpus = || [("example.com/gpu".into(), quantity("1"))].into();
    assert_eq!(cpu_of(pod(gpus(), "1")), Ok(100));
    let memory = || -> Requests { [("memory".into(), quantity("1Gi"))].into() };
    // Without a pod-level request of the resource: the sum of the containers, and the overhead.
    assert_eq!(cpu_of(pod(memory(), "1")), Ok(50));
    let without = PodSpec {
        containers: vec![container("app", "", false)],
        requests: Some(memory()),
        ..PodSpec::default()
    };
    assert_eq!(
        cpu_of(without),
        Err("failed to get cpu utilization: missing pod-level request for cpu in Pod web-00000"
            .to_owned())
    );
}

#[test]
fn missing_pod_level_requests_are_the_peak_of_the_containers() {
    let memory: Requests = [("memory".into(), quantity("1Gi"))].into();
    let pod = |init: &[(&str, bool)]| PodSpec {
        containers: vec![container("app", "1", false)],
        init_containers: init
            .iter()
            .map(|(request, sidecar)| container("init", request, *sidecar))
            .collect(),
        requests: Some(memory.clone()),
        ..PodSpec::default()
    };
    assert_eq!(cpu_of(pod(&[("4", false)])), Ok(25));
    assert_eq!(cpu_of(pod(&[("1", true)])), Ok(50));
    // The init container runs together with the sidecar that started before it.
    assert_eq!(cpu_of(pod(&[("1", true), ("4", false)])), Ok(20));
    assert_eq!(cpu_of(pod(&[("4", false), ("1", true)])), Ok(25));
    // The sum is rounded once: three halves of a thousandth are two thousandths.
    assert_eq!(cpu_of(pod(&[("999500u", true), ("500u", true)])), Ok(50));
}
