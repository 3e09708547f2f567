//! Tests of the simulation: the changes, and the state of the cluster that they result in.

mod custom;
mod lifecycle;
pub(super) mod metrics;
mod mirror;
mod property;
mod strategies;
mod updates;
mod vpa;

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Change, Cluster, World};
use kube_autoscaler_models::api::{
    ApiError, ConditionStatus, Container, Pod, PodPhase, PodSpec, Scale,
};
use kube_autoscaler_models::flags::Flags;
use kube_autoscaler_models::hpa::ApiVersion;
use kube_autoscaler_models::quantity::Quantity;
use kube_autoscaler_models::time::{Span, Time};
use kube_lockstep_scenario::resolved::{
    Action, Autoscaler, ContainerOfPods, Empty, Entries, Exception, MetricError, MetricOfPods,
    Metrics, Observed, PodRules, PodSet, PodsOfWorkload, Point, ReleaseRange, ResourceOfPods,
    ResourceUsage, Sampling, ScaleDownOrder, Scenario, Signal, Startup, TargetDeletion,
    Termination, TimelineEvent, UsageSource, Workload,
};

fn q(text: &str) -> Quantity {
    Quantity::parse(text).expect("a quantity")
}

fn secs(seconds: i64) -> Span {
    Span::from_secs(seconds)
}

fn t(seconds: i64) -> Time {
    Time::from_secs(seconds)
}

/// A Deployment `web` with a container `app` that uses 100m of cpu. New pods are ready immediately.
fn scenario(replicas: i32, change: impl FnOnce(&mut Scenario)) -> Arc<Scenario> {
    let container = |name: &str| Container { name: name.into(), ..Container::default() };
    let mut scenario = Scenario {
        id: "test".to_owned(),
        path: "test.yaml".to_owned(),
        objects: None,
        requirement: String::new(),
        upstream: String::new(),
        covers: Vec::new(),
        releases: ReleaseRange::default(),
        flags: Flags::default(),
        explicit_flags: Vec::new(),
        gate_overrides: BTreeMap::new(),
        namespace: "default".into(),
        hpas: vec![Autoscaler {
            name: "web".into(),
            api_version: "autoscaling/v2".into(),
            manifest: serde_json::json!({"metadata": {"name": "web"}}),
            version: ApiVersion::V2,
            spec: Arc::default(),
            target: 0,
        }],
        other_targets: Vec::new(),
        other_pods: Vec::new(),
        other_namespaces: Vec::new(),
        notes: Vec::new(),
        manifest_notes: Vec::new(),
        is_of_manifests: false,
        search: None,
        clock: None,
        workload: Workload {
            group: "apps".to_owned(),
            version: "v1".to_owned(),
            kind: "Deployment".to_owned(),
            resource: "deployments".to_owned(),
            name: "web".into(),
            replicas,
            quota: None,
            selector: "app=web".into(),
            labels: BTreeMap::from([("app".to_owned(), "web".to_owned())]),
            spec: Arc::new(PodSpec { containers: vec![container("app")], ..PodSpec::default() }),
            age: secs(3600),
            startup: Startup { pending: Some(secs(0)), ready: Some(secs(0)), metrics: secs(0) },
            status_replicas: None,
            scale_down_first: None,
            pods: Vec::new(),
            scale_down_order: ScaleDownOrder::ReplicaSet,
            termination: Termination::default(),
            rules: PodRules::OF_HPA,
        },
        metrics: Metrics {
            resources: vec![cpu(UsageSource::PerPod(Signal::Constant(q("100m"))))],
            sampling: Sampling { window: secs(30), lag: secs(0), resolution: None },
            ..Metrics::default()
        },
        timeline: Vec::new(),
        until: t(600),
        observed: Observed::ALL,
        vpa: None,
        expect: Vec::new(),
        hash: String::new(),
        line: 1,
    };
    change(&mut scenario);
    scenario.timeline.sort_by_key(|event| event.at);
    Arc::new(scenario)
}

fn cpu(source: UsageSource) -> ResourceUsage {
    ResourceUsage { name: "cpu".into(), source, exceptions: Vec::new() }
}

fn error(code: u16) -> ApiError {
    ApiError { code, reason: "Test".to_owned(), message: format!("error {code}").into() }
}

/// The pods with ordinals from `first` to `last`.
fn pods(first: u32, last: u32) -> PodSet {
    PodSet::Ordinals(vec![(first, last)])
}

trait Schedule {
    /// Adds an event to the timeline, which lasts forever or for the given seconds.
    fn schedule(&mut self, at: i64, lasts: Option<i64>, action: Action);
}

impl Schedule for Scenario {
    fn schedule(&mut self, at: i64, lasts: Option<i64>, action: Action) {
        let lasts = lasts.map(secs);
        self.timeline.push(TimelineEvent { lasts, line: 1, ..TimelineEvent::new(t(at), action) });
    }
}

/// A world and the cluster that receives its changes.
struct Run {
    world: World,
    cluster: Cluster,
}

impl Run {
    fn new(scenario: &Arc<Scenario>) -> Run {
        Run { world: World::new(scenario), cluster: Cluster::new(true) }
    }

    /// Applies the changes since the last query. Returns them.
    fn at(&mut self, second: i64) -> Vec<Change> {
        let changes = self.world.advance(t(second));
        for change in &changes {
            self.cluster.apply(change, &|_, _| Ok(())).expect("a template");
        }
        changes
    }

    /// Applies the changes, then writes replicas as the controller.
    fn scale(&mut self, second: i64, replicas: i32) {
        self.at(second);
        self.world.scaled(t(second), 0, replicas);
        assert!(self.cluster.write_scale("deployments.apps", "web", replicas));
    }

    /// A description of each pod at a second.
    fn pods(&mut self, second: i64) -> Vec<String> {
        self.at(second);
        self.cluster.pods().iter().map(|pod| describe_pod(pod)).collect()
    }

    /// A description of each sample at a second.
    fn samples(&mut self, second: i64) -> Vec<String> {
        self.at(second);
        describe_samples(&self.cluster)
    }

    /// `spec.replicas`, `status.replicas`.
    fn replicas(&mut self, second: i64) -> (i32, i32) {
        self.at(second);
        let target = self.world.simulation.scenario.targets().next().expect("the workload");
        let resource: Arc<str> = target.group_resource().into();
        let scale = self.cluster.scale(&resource, "web");
        let scale = scale.get(|| resource.to_string()).expect("a scale");
        let Scale { replicas, status_replicas, .. } = scale;
        (*replicas, *status_replicas)
    }
}

/// For example `web-0 Running 0s ready 5s`, in the scenario's time.
fn describe_pod(pod: &Pod) -> String {
    let mut text = format!("{} {:?}", pod.name, pod.phase);
    text.extend(pod.start_time.map(|start| format!(" {start}")));
    text.extend(pod.ready.map(|ready| {
        let status = if ready.status == ConditionStatus::True { "ready" } else { "unready" };
        format!(" {status} {}", ready.last_transition_time)
    }));
    text.extend(pod.deletion_timestamp.map(|at| format!(" terminating {at}")));
    text
}

/// For example `web-0 15s app=cpu:100m`.
fn describe_samples(cluster: &Cluster) -> Vec<String> {
    let samples = cluster.pod_metrics().expect("no fault").iter();
    let texts = samples.map(|sample| {
        let mut text = format!("{} {}", sample.name, sample.timestamp);
        for container in sample.containers.iter() {
            let usage = container.usage.iter();
            let usage: Vec<_> = usage.map(|(name, value)| format!("{name}:{value}")).collect();
            text += &format!(" {}={}", container.name, usage.join(","));
        }
        text
    });
    texts.collect()
}

/// The number of pods in a phase.
fn count(cluster: &Cluster, phase: PodPhase) -> usize {
    cluster.pods().iter().filter(|pod| pod.phase == phase).count()
}
