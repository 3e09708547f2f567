//! Converts a scenario with a VPA alone to a scenario without HPAs, which the world simulates.

use std::sync::Arc;

use super::VpaScenario;
use crate::defaults::AGE;
use crate::recorded::{Recorded, RecordedSource};
use crate::releases::ReleaseRange;
use crate::resolved::{
    Action, Entries, Metrics, Observed, PodRules, QueryError, ResourceUsage, ScaleDownOrder,
    Scenario, Signal, Startup, Termination, TimelineEvent, UsageSource, Workload, usual_plural,
};
use kube_autoscaler_models::api::{ApiError, Container, PodSpec};
use kube_autoscaler_models::flags::Flags;

impl VpaScenario {
    /// The scenario without HPAs that the world simulates, with the same events in the same order.
    #[must_use]
    pub fn world(&self) -> Scenario {
        let sampling = self.metrics.sampling;
        let resources = self.usage(&self.metrics.resources);
        Scenario {
            objects: None,
            id: self.id.clone(),
            path: self.path.clone(),
            requirement: String::new(),
            upstream: String::new(),
            covers: Vec::new(),
            releases: ReleaseRange::default(),
            flags: Flags::default(),
            explicit_flags: Vec::new(),
            gate_overrides: Default::default(),
            namespace: self.namespace.clone(),
            hpas: Vec::new(),
            notes: Vec::new(),
            manifest_notes: Vec::new(),
            is_of_manifests: false,
            search: None,
            clock: None,
            workload: self.workload(),
            other_targets: Vec::new(),
            other_pods: Vec::new(),
            other_namespaces: Vec::new(),
            metrics: Metrics { resources, sampling, ..Metrics::default() },
            timeline: self.timeline.iter().map(event).collect(),
            until: self.until,
            observed: Observed::ALL,
            vpa: None,
            expect: Vec::new(),
            hash: String::new(),
            line: self.line,
        }
    }

    fn workload(&self) -> Workload {
        let labels = [&self.workload.pod_labels, &self.workload.labels].into_iter().flatten();
        let selector = self.workload.labels.iter().map(|(name, value)| format!("{name}={value}"));
        let kind = self.target.kind.clone();
        Workload {
            group: self.target.group().to_owned(),
            version: String::new(),
            resource: usual_plural(&kind),
            name: self.target.name.clone(),
            replicas: i32::try_from(self.workload.replicas).unwrap_or(i32::MAX),
            quota: None,
            selector: selector.collect::<Vec<_>>().join(",").into(),
            labels: labels.map(|(name, value)| (name.clone(), value.clone())).collect(),
            spec: Arc::new(self.pod_spec()),
            age: AGE,
            startup: Startup::default(),
            status_replicas: None,
            scale_down_order: ScaleDownOrder::Newest,
            scale_down_first: None,
            pods: Vec::new(),
            termination: Termination::default(),
            rules: PodRules {
                replaces_ended: !self.workload.keeps_ended_pods,
                reuses_names: kind == "StatefulSet",
                samples_follow_pods: true,
            },
            kind,
        }
    }

    fn pod_spec(&self) -> PodSpec {
        let init = self.workload.init_containers.iter();
        let init = init.map(|name| Container { name: name.clone(), ..Container::default() });
        PodSpec {
            containers: self.workload.containers.iter().map(|it| it.to_api()).collect(),
            init_containers: init.collect(),
            ..PodSpec::default()
        }
    }

    /// The usage by container: a container that no signal names has no samples.
    #[must_use]
    pub fn usage(&self, given: &[ResourceUsage]) -> Vec<ResourceUsage> {
        let explicit = |usage: &ResourceUsage| {
            let mut usage = usage.clone();
            if let UsageSource::PerContainer(Entries(signals)) = &mut usage.source {
                for container in &self.workload.containers {
                    if !signals.iter().any(|(name, _)| *name == container.name) {
                        signals.push((container.name.clone(), nothing()));
                    }
                }
            }
            usage
        };
        given.iter().map(explicit).collect()
    }
}

/// A signal that never has a value.
fn nothing() -> Signal {
    Signal::Recorded(Recorded::new(RecordedSource::Csv(String::new())))
}

/// The event. A message in `metricsError` becomes a response of the metrics API.
fn event(given: &TimelineEvent) -> TimelineEvent {
    let action = match &given.action {
        Action::MetricsError(QueryError::Text(message)) => {
            let (code, reason) = (503, String::new());
            Action::MetricsError(ApiError { code, reason, message: message.clone() }.into())
        }
        action => action.clone(),
    };
    TimelineEvent { action, ..given.clone() }
}
