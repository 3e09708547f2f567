//! Objects in other namespaces that have the same names as those of the scenario. They are
//! published once and never change.

use std::sync::Arc;

use super::change::{Change, PodMetricsChange, PodState, ScaleTarget};
use kube_autoscaler_models::api::{ConditionStatus, ContainerMetrics, PodPhase, PodReady};
use kube_autoscaler_models::time::Time;
use kube_lockstep_scenario::resolved::{OtherNamespace, Scenario};

/// The name of the template of all pods; the other templates have other prefixes.
const TEMPLATE: &str = "n0";

/// Publishes the objects of all other namespaces.
pub(super) fn publish(scenario: &Scenario, changes: &mut Vec<Change>) {
    let workload = &scenario.workload;
    if scenario.other_namespaces.is_empty() {
        return;
    }
    changes.push(Change::PodTemplate {
        name: TEMPLATE.into(),
        labels: workload.labels.clone(),
        spec: (*workload.spec).clone(),
    });
    for other in &scenario.other_namespaces {
        let objects = [scale(scenario, other), pods(scenario, other), samples(scenario, other)];
        changes.extend(objects.into_iter().map(|change| Change::InNamespace {
            namespace: other.name.clone(),
            change: Box::new(change),
        }));
    }
}

fn scale(scenario: &Scenario, other: &OtherNamespace) -> Change {
    let replicas = i32::try_from(other.replicas()).unwrap_or(i32::MAX);
    let resource = scenario.targets().next().map(|target| target.group_resource());
    Change::SetScale(ScaleTarget {
        resource: resource.unwrap_or_default().into(),
        name: scenario.workload.name.clone(),
        replicas: Some(replicas),
        status_replicas: replicas,
        selector: scenario.workload.selector.clone(),
    })
}

fn names(scenario: &Scenario, other: &OtherNamespace) -> impl Iterator<Item = Arc<str>> {
    let workload = scenario.workload.name.clone();
    (0..other.replicas()).map(move |index| format!("{workload}-{index}").into())
}

fn pods(scenario: &Scenario, other: &OtherNamespace) -> Change {
    let created = (Time::ZERO - scenario.workload.age).truncate_to_second();
    let ready = PodReady { status: ConditionStatus::True, last_transition_time: created };
    let pod = |name| PodState {
        name,
        template: TEMPLATE.into(),
        phase: PodPhase::Running,
        start_time: Some(created),
        ready: Some(ready),
        deletion_timestamp: None,
    };
    Change::SetPods(names(scenario, other).map(pod).collect())
}

fn samples(scenario: &Scenario, other: &OtherNamespace) -> Change {
    let container = scenario.workload.spec.containers.first();
    let usage = other.usage.iter().map(|(name, amount)| (name.clone(), amount.clone())).collect();
    let metrics = container.map(|it| ContainerMetrics { name: it.name.clone(), usage });
    let containers: Arc<[ContainerMetrics]> = metrics.into_iter().collect();
    let mut change = PodMetricsChange {
        timestamp: Some(Time::ZERO),
        window: Some(scenario.metrics.sampling.window),
        ..PodMetricsChange::default()
    };
    if !other.usage.is_empty() {
        let template = TEMPLATE.into();
        names(scenario, other).for_each(|pod| change.add(pod, &template, None, &containers));
    }
    Change::PodMetrics(change)
}
