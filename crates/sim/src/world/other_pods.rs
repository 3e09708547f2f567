//! Pods that belong to no target. They are published once. Their samples appear and disappear with
//! the responses of metrics.k8s.io as a whole.

use std::sync::Arc;

use super::change::{Change, PodMetricsChange, PodState};
use kube_autoscaler_models::api::PodReady;
use kube_autoscaler_models::time::Time;
use kube_lockstep_scenario::resolved::{OtherPods, Scenario};

/// The published state of the samples of these pods.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OtherSamples {
    /// The number of samples.
    published: usize,
}

/// The name of a template; the workload's templates have another prefix.
fn template(index: usize) -> Arc<str> {
    format!("o{index}").into()
}

/// Publishes the pods and their templates.
pub(super) fn publish_pods(scenario: &Scenario, changes: &mut Vec<Change>) {
    let mut set = Vec::new();
    for (index, pods) in scenario.other_pods.iter().enumerate() {
        let (labels, spec) = (pods.labels.clone(), pods.spec());
        changes.push(Change::PodTemplate { name: template(index), labels, spec });
        set.extend(pods.names().map(|name| state(pods, name, template(index))));
    }
    if !set.is_empty() {
        changes.push(Change::SetPods(set));
    }
}

fn state(pods: &OtherPods, name: Arc<str>, template: Arc<str>) -> PodState {
    let created = pods.created();
    let ready = pods.ready().map(|status| PodReady { status, last_transition_time: created });
    PodState {
        name,
        template,
        phase: pods.phase(),
        start_time: pods.has_started().then_some(created),
        ready,
        deletion_timestamp: pods.terminating.then_some(Time::ZERO),
    }
}

impl OtherSamples {
    /// Publishes the samples if they are not published yet, or removes them if the responses are
    /// empty. Returns the number of samples that follow the common timestamp.
    pub(super) fn publish(
        &mut self,
        scenario: &Scenario,
        empty: bool,
        change: &mut PodMetricsChange,
    ) -> usize {
        let reporting = scenario.other_pods.iter().enumerate();
        let reporting = reporting.filter(|(_, pods)| !pods.usage.is_empty());
        if empty && self.published > 0 {
            change.delete.extend(reporting.flat_map(|(_, pods)| pods.names()));
            self.published = 0;
        } else if !empty && self.published == 0 {
            for (index, pods) in reporting {
                let (template, containers) = (template(index), pods.metrics());
                pods.names().for_each(|pod| change.add(pod, &template, None, &containers));
                self.published += pods.names().count();
            }
        }
        self.published
    }
}
