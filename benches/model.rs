//! The speed of the reference model by number of pods: a tick with observation and derivation.

use std::hint::black_box;
use std::sync::Arc;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use kube_autoscaler_models::api::{
    ConditionStatus, Container, ContainerMetrics, CustomMetrics, Hpa, HpaSpec, HpaStatus, Labels,
    Pod, PodMetrics, PodPhase, PodReady, PodSpec, Scale,
};
use kube_autoscaler_models::flags::{FeatureGates, Flags};
use kube_autoscaler_models::hpa::{Controller, Decision, Input, set_defaults};
use kube_autoscaler_models::quantity::Quantity;
use kube_autoscaler_models::rules::Rules;
use kube_autoscaler_models::time::{Span, Time};

/// A steady cluster: the usage is 2% above the target, within the tolerance.
struct SteadyCluster {
    controller: Controller,
    hpa: Hpa,
    scale: Scale,
    resource: Arc<str>,
    pods: Vec<Arc<Pod>>,
    metrics: Vec<PodMetrics>,
}

fn quantity(text: &str) -> Quantity {
    Quantity::parse(text).expect("a quantity")
}

/// An HPA with a target of 50% CPU utilization.
fn hpa() -> Hpa {
    let spec = serde_json::json!({
        "scaleTargetRef": { "apiVersion": "apps/v1", "kind": "Deployment", "name": "web" },
        "minReplicas": 1,
        "maxReplicas": 20_000,
        "metrics": [{
            "type": "Resource",
            "resource": {
                "name": "cpu",
                "target": { "type": "Utilization", "averageUtilization": 50 },
            },
        }],
    });
    let mut spec: HpaSpec = serde_json::from_value(spec).expect("a spec");
    set_defaults(&mut spec);
    Hpa {
        namespace: "default".into(),
        name: "web".into(),
        generation: 1,
        spec: Arc::new(spec),
        status: HpaStatus::default(),
        uid: 0,
        resource_version: 0,
    }
}

impl SteadyCluster {
    fn new(replicas: i32) -> SteadyCluster {
        let controller =
            Controller::new(Rules::default(), Flags::default(), FeatureGates::default());
        let mut cluster = SteadyCluster {
            controller,
            hpa: hpa(),
            scale: Scale {
                replicas,
                status_replicas: replicas,
                selector: "app=web".into(),
                resource_version: 0,
            },
            resource: "deployments.apps".into(),
            pods: Vec::new(),
            metrics: Vec::new(),
        };
        cluster.add_pods(replicas);
        cluster.controller.hpa_added(&"default/web".into(), Time::ZERO);
        cluster
    }

    /// Adds ready pods that share their labels, their spec and their usage.
    fn add_pods(&mut self, replicas: i32) {
        let labels: Labels = Arc::new([("app".to_owned(), "web".to_owned())].into());
        let requests = [(Arc::from("cpu"), quantity("500m"))].into();
        let containers = vec![Container { name: "app".into(), requests, sidecar: false }];
        let spec = Arc::new(PodSpec { containers, ..PodSpec::default() });
        let hour_ago = Time::from_secs(-3600);
        let usage = vec![("cpu".into(), quantity("255m"))];
        let containers: Arc<[_]> = Arc::new([ContainerMetrics { name: "app".into(), usage }]);
        for index in 0..replicas {
            let name: Arc<str> = format!("web-{index:05}").into();
            let ready = PodReady { status: ConditionStatus::True, last_transition_time: hour_ago };
            self.pods.push(Arc::new(Pod {
                name: name.clone(),
                labels: labels.clone(),
                deletion_timestamp: None,
                phase: PodPhase::Running,
                start_time: Some(hour_ago),
                ready: Some(ready),
                spec: spec.clone(),
            }));
            self.metrics.push(PodMetrics {
                name,
                labels: labels.clone(),
                timestamp: Time::ZERO,
                window: Span::from_secs(30),
                containers: containers.clone(),
            });
        }
    }

    fn tick(&mut self) -> Decision {
        let now = self.controller.next_sync().expect("there is an HPA");
        let input = Input {
            now,
            hpa: Some(&self.hpa),
            hpa_version: Some(0),
            cache_version: None,
            scale_version: Some(0),
            scale: Ok(&self.scale),
            scale_resource: &self.resource,
            mapping_error: None,
            pods: &self.pods,
            pod_metrics: Ok(&self.metrics),
            custom_metrics: &CustomMetrics::default(),
            update_scale: None,
            update_status: None,
            slow_metrics: None,
        };
        let decision = self.controller.sync(&input).expect("there is an HPA");
        if let Some(write) = decision.observation.status_write() {
            self.hpa.status = write.status.clone();
        }
        decision
    }
}

fn ticks(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("model/tick");
    for replicas in [1, 10, 100, 1_000, 10_000] {
        let mut cluster = SteadyCluster::new(replicas);
        cluster.tick();
        let second = cluster.tick();
        assert_eq!(second.observation.status_write(), None, "the cluster is steady");
        assert_eq!(second.derivation.metrics[0].pods.ready, replicas.unsigned_abs());
        group.throughput(Throughput::Elements(1));
        group.bench_function(BenchmarkId::from_parameter(replicas), |bencher| {
            bencher.iter(|| black_box(cluster.tick()));
        });
    }
    group.finish();
}

criterion_group!(benches, ticks);
criterion_main!(benches);
