//! Tests of the controller on a minimal cluster, whose pods appear and disappear immediately and
//! have the state that a test sets.

mod conditions;
mod custom;
mod errors;
mod pods;
mod requests;
mod traces;

use std::sync::Arc;

use super::{Controller, Decision, Input};
use crate::api::{
    ApiError, Behavior, ConditionStatus, ConditionType, Container, ContainerMetrics,
    CrossVersionObjectReference, CustomMetrics, Hpa, HpaSpec, HpaStatus, Labels, MetricSourceType,
    MetricSpec, MetricTarget, MetricTargetType, Pod, PodMetrics, PodPhase, PodReady, PodSpec,
    ResourceMetricSource, Scale, ScalingPolicy, ScalingPolicyType, ScalingRules,
};
use crate::flags::{FeatureGates, Flags};
use crate::quantity::Quantity;
use crate::rules::Rules;
use crate::time::{Span, Time};

/// The state of a pod.
#[derive(Clone, Debug)]
pub(super) struct TestPod {
    phase: PodPhase,
    start_time: Option<Time>,
    ready: Option<(ConditionStatus, Time)>,
    terminating: bool,
    /// None: the pod has no metric.
    usage: Option<&'static str>,
}

/// A pod that has been ready for an hour, with this usage.
pub(super) fn ready(usage: &'static str) -> TestPod {
    let hour_ago = Time::from_secs(-3600);
    TestPod {
        phase: PodPhase::Running,
        start_time: Some(hour_ago),
        ready: Some((ConditionStatus::True, hour_ago)),
        terminating: false,
        usage: Some(usage),
    }
}

pub(super) struct HpaTest {
    pub controller: Controller,
    pub key: Arc<str>,
    pub hpa: Option<Hpa>,
    pub scale: Scale,
    pub request: Option<&'static str>,
    pub resource: &'static str,
    /// The states of the pods. The last state applies to all further pods.
    pub kinds: Vec<TestPod>,
    /// The number of pods above the replicas of the scale.
    pub surplus: usize,
    pub(super) metrics_at: Option<Time>,
    pub get_scale: Option<ApiError>,
    pub pod_metrics: Option<ApiError>,
    /// The metrics of the other metrics APIs.
    pub custom: CustomMetrics,
    /// The spec of the pods. None: one container that requests `request`.
    pub pod_spec: Option<PodSpec>,
    pub update_scale: Option<ApiError>,
    pub update_status: Option<ApiError>,
    pub decisions: Vec<Decision>,
}

pub(super) fn api_error(code: u16, reason: &str, message: &str) -> ApiError {
    ApiError { code, reason: reason.to_owned(), message: message.into() }
}

pub(super) fn quantity(text: &str) -> Quantity {
    Quantity::parse(text).unwrap()
}

pub(super) fn resource(name: &str, target: MetricTarget) -> MetricSpec {
    let resource = ResourceMetricSource { name: name.into(), target };
    MetricSpec {
        type_: MetricSourceType::Resource,
        resource: Some(resource),
        container_resource: None,
        pods: None,
        object: None,
        external: None,
    }
}

pub(super) fn utilization(percent: i32) -> MetricTarget {
    MetricTarget {
        type_: MetricTargetType::Utilization,
        value: None,
        average_value: None,
        average_utilization: Some(percent),
    }
}

pub(super) fn average_value(value: &str) -> MetricTarget {
    MetricTarget {
        type_: MetricTargetType::AverageValue,
        value: None,
        average_value: Some(quantity(value)),
        average_utilization: None,
    }
}

pub(super) fn policies(list: &[(ScalingPolicyType, i32, i32)]) -> ScalingRules {
    let policy = |(type_, value, period_seconds): &(ScalingPolicyType, i32, i32)| ScalingPolicy {
        type_: *type_,
        value: *value,
        period_seconds: *period_seconds,
    };
    ScalingRules { policies: Some(list.iter().map(policy).collect()), ..ScalingRules::default() }
}

pub(super) fn spec(min: i32, max: i32, metrics: Vec<MetricSpec>) -> HpaSpec {
    let mut spec = HpaSpec {
        scale_target_ref: CrossVersionObjectReference {
            kind: "Deployment".to_owned(),
            name: "web".into(),
            api_version: Some("apps/v1".to_owned()),
        },
        min_replicas: Some(min),
        max_replicas: max,
        metrics,
        behavior: None,
    };
    super::set_defaults(&mut spec);
    spec
}

pub(super) fn labels(app: &str) -> Labels {
    Arc::new([("app".to_owned(), app.to_owned())].into())
}

impl HpaTest {
    /// An HPA on cpu with a target in percent, created at t=0; pods request 1 cpu.
    pub(super) fn new(replicas: i32, min: i32, max: i32, percent: i32, kind: TestPod) -> HpaTest {
        HpaTest::of(spec(min, max, vec![resource("cpu", utilization(percent))]), replicas, kind)
    }

    pub(super) fn of(spec: HpaSpec, replicas: i32, kind: TestPod) -> HpaTest {
        HpaTest::with_gates(spec, replicas, kind, FeatureGates::default())
    }

    pub(super) fn with_gates(
        spec: HpaSpec,
        replicas: i32,
        kind: TestPod,
        gates: FeatureGates,
    ) -> HpaTest {
        let mut test = HpaTest {
            controller: Controller::new(Rules::default(), Flags::default(), gates),
            key: "default/web".into(),
            hpa: None,
            scale: Scale {
                replicas,
                status_replicas: replicas,
                selector: "app=web".into(),
                resource_version: 0,
            },
            request: Some("1"),
            resource: "cpu",
            kinds: vec![kind],
            surplus: 0,
            metrics_at: None,
            get_scale: None,
            pod_metrics: None,
            custom: CustomMetrics::default(),
            pod_spec: None,
            update_scale: None,
            update_status: None,
            decisions: Vec::new(),
        };
        test.create(spec, Time::ZERO);
        test
    }

    pub(super) fn create(&mut self, spec: HpaSpec, now: Time) {
        self.hpa = Some(Hpa {
            namespace: "default".into(),
            name: "web".into(),
            generation: 1,
            spec: Arc::new(spec),
            status: HpaStatus::default(),
            uid: 1,
            resource_version: 0,
        });
        self.controller.hpa_added(&self.key, now);
    }

    pub(super) fn behavior(mut self, behavior: Behavior) -> HpaTest {
        self.edit_spec(|spec| spec.behavior = Some(behavior));
        self
    }

    fn edit_spec(&mut self, edit: impl FnOnce(&mut HpaSpec)) {
        let hpa = self.hpa.as_mut().unwrap();
        let mut spec = hpa.spec.as_ref().clone();
        edit(&mut spec);
        super::set_defaults(&mut spec);
        hpa.spec = Arc::new(spec);
    }

    /// A user edits the HPA.
    pub(super) fn edit(&mut self, now: Time, edit: impl FnOnce(&mut HpaSpec)) {
        self.edit_spec(edit);
        self.hpa.as_mut().unwrap().generation += 1;
        self.controller.hpa_updated(&self.key, true, now);
    }

    pub(super) fn delete(&mut self, now: Time) {
        self.hpa = None;
        self.controller.hpa_deleted(&self.key, now);
    }

    fn pods(&self, now: Time) -> (Vec<Arc<Pod>>, Vec<PodMetrics>) {
        let labels = labels("web");
        let requests = self.request.map(|request| (Arc::from(self.resource), quantity(request)));
        let container = Container {
            name: "app".into(),
            requests: requests.into_iter().collect(),
            sidecar: false,
        };
        let spec = PodSpec { containers: vec![container], ..PodSpec::default() };
        let spec = Arc::new(self.pod_spec.clone().unwrap_or(spec));
        let (mut pods, mut metrics) = (Vec::new(), Vec::new());
        for index in 0..usize::try_from(self.scale.replicas).unwrap() + self.surplus {
            let kind = &self.kinds[index.min(self.kinds.len() - 1)];
            let name: Arc<str> = format!("web-{index:05}").into();
            pods.push(Arc::new(Pod {
                name: name.clone(),
                labels: labels.clone(),
                deletion_timestamp: kind.terminating.then_some(now),
                phase: kind.phase,
                start_time: kind.start_time,
                ready: kind.ready.map(|(status, last_transition_time)| PodReady {
                    status,
                    last_transition_time,
                }),
                spec: spec.clone(),
            }));
            let Some(usage) = kind.usage else { continue };
            let usage = vec![(Arc::from(self.resource), quantity(usage))];
            metrics.push(PodMetrics {
                name,
                labels: labels.clone(),
                timestamp: self.metrics_at.unwrap_or(now),
                window: Span::from_secs(30),
                containers: Arc::new([ContainerMetrics { name: "app".into(), usage }]),
            });
        }
        (pods, metrics)
    }

    /// Runs the reconciles that are due up to a time in seconds.
    pub(super) fn run(&mut self, until: i64) -> &mut HpaTest {
        let until = Time::from_secs(until);
        while let Some(due) = self.controller.next_sync().filter(|due| *due <= until) {
            self.step(due);
        }
        self
    }

    /// Reconciles the key that is due. Only the HPA of this test exists.
    fn step(&mut self, now: Time) {
        let due = self.controller.due().map(|(_, key)| key);
        let (pods, metrics) = self.pods(now);
        let input = Input {
            now,
            hpa: self.hpa.as_ref().filter(|_| due.as_ref() == Some(&self.key)),
            hpa_version: Some(0),
            cache_version: None,
            scale: self.get_scale.as_ref().map_or(Ok(&self.scale), Err),
            scale_resource: &"deployments.apps".into(),
            mapping_error: None,
            pods: &pods,
            pod_metrics: self.pod_metrics.as_ref().map_or(Ok(&metrics), Err),
            custom_metrics: &self.custom,
            update_scale: self.update_scale.as_ref(),
            scale_version: Some(0),
            update_status: self.update_status.as_ref(),
            slow_metrics: None,
        };
        let Some(decision) = self.controller.sync(&input) else { return };
        if let Some(replicas) = decision.observation.scaled_to() {
            self.scale.replicas = replicas;
            self.scale.status_replicas = replicas;
        }
        let written = decision.observation.status_write();
        if let Some(write) = written.filter(|write| write.error.is_none()) {
            self.hpa.as_mut().unwrap().status = write.status.clone();
            self.controller.hpa_updated(&self.key, false, now);
        }
        self.decisions.push(decision);
    }

    /// The first reconcile.
    pub(super) fn first(&mut self) -> &Decision {
        self.run(0);
        self.decisions.first().unwrap()
    }

    pub(super) fn last(&self) -> &Decision {
        self.decisions.last().unwrap()
    }

    /// All changes of the replicas: times in seconds and replicas.
    pub(super) fn scales(&self) -> Vec<(i64, i32)> {
        let ticks = self.decisions.iter().map(|decision| &decision.observation);
        let sizes = ticks.filter_map(|tick| Some((seconds(tick.at), tick.scaled_to()?)));
        sizes.collect()
    }

    /// All events: reason and message.
    pub(super) fn events(&self) -> Vec<(String, String)> {
        let all = self.decisions.iter().flat_map(|decision| decision.observation.events());
        all.map(|event| (event.reason.to_string(), event.message.to_string())).collect()
    }

    /// A condition of the stored status: status and reason.
    pub(super) fn condition(&self, type_: ConditionType) -> Option<(bool, &str)> {
        let conditions = &self.hpa.as_ref().unwrap().status.conditions;
        let condition = conditions.iter().find(|condition| condition.type_ == type_)?;
        Some((condition.status, condition.reason.as_str()))
    }
}

pub(super) fn seconds(at: Time) -> i64 {
    at.0.div_euclid(1_000_000_000)
}
