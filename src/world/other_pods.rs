//! Pods that no target makes. They are told once; their samples come and go with the answers of
//! metrics.k8s.io as a whole.

use std::sync::Arc;

use super::change::{Change, PodMetricsChange, PodState, Sample};
use crate::model::api::PodReady;
use crate::model::time::Time;
use crate::scenario::resolved::{OtherPods, Scenario};

/// What was told of their samples.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OtherSamples {
    /// How many samples are there.
    published: usize,
}

/// The name of a template; those of the workload's pods have another letter.
fn template(index: usize) -> Arc<str> {
    format!("o{index}").into()
}

/// The pods, with their templates.
pub(super) fn publish_pods(scenario: &Scenario, changes: &mut Vec<Change>) {
    let mut set = Vec::new();
    for (index, pods) in scenario.other_pods.iter().enumerate() {
        let (labels, spec) = (pods.labels.clone(), (*pods.spec).clone());
        changes.push(Change::PodTemplate { name: template(index), labels, spec });
        set.extend(pods.names().map(|name| state(pods, name, template(index))));
    }
    if !set.is_empty() {
        changes.push(Change::SetPods(set));
    }
}

fn state(pods: &OtherPods, name: Arc<str>, template: Arc<str>) -> PodState {
    let created = pods.created();
    let ready = pods.ready.map(|status| PodReady { status, last_transition_time: created });
    PodState {
        name,
        template,
        phase: pods.phase,
        start_time: pods.started.then_some(created),
        ready,
        deletion_timestamp: pods.terminating.then_some(Time::ZERO),
    }
}

impl OtherSamples {
    /// Tells the samples if there are none yet; or, if the answers are empty now, that they are
    /// gone. How many there are then follow the common timestamp.
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
                change.set.extend(pods.names().map(|pod| Sample {
                    pod,
                    template: template(index),
                    timestamp: None,
                    containers: pods.usage.clone(),
                }));
                self.published += pods.names().count();
            }
        }
        self.published
    }
}
