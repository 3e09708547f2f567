//! Tests of the world of a scenario with a VPA alone, as the recommender observes it.

use crate::world::recommender::{Played, play};
use kube_autoscaler_models::vpa::ClusterChange;
use kube_lockstep_scenario::vpa::VpaScenario;

/// The world of a workload with two pods, whose samples are 10 s old.
fn played(kind: &str, rest: &str) -> Played {
    played_with(true, kind, rest)
}

fn played_with(replaces_ended: bool, kind: &str, rest: &str) -> Played {
    let text = format!(
        "apiVersion: kube-lockstep.dev/v1alpha1
kind: Scenario
requirement: The recommender observes the pods.
vpa:
  apiVersion: autoscaling.k8s.io/v1
  kind: VerticalPodAutoscaler
  metadata: {{name: web}}
  spec: {{targetRef: {{apiVersion: apps/v1, kind: {kind}, name: web}}}}
workload: {{replicas: 2, replacesEndedPods: {replaces_ended}}}
metrics:
  sampling: {{lag: 10s}}
  resource: [{{name: cpu, perPod: 500m}}]
until: 4m
{rest}"
    );
    let scenario: VpaScenario = text.parse().expect("a scenario");
    play(&scenario)
}

/// The changes of pods after the start: `2m +web-2 -web-0`, with the pods that have a sample.
fn observed(played: &Played) -> Vec<String> {
    let mut lines = Vec::new();
    for step in &played.script.steps {
        let mut words = vec![step.until.to_string()];
        for change in &step.changes {
            match change {
                ClusterChange::SetPod(pod) => words.push(format!("+{}", pod.name.name)),
                ClusterChange::DeletePod(name) => words.push(format!("-{}", name.name)),
                ClusterChange::SetMetrics(Ok(samples)) => {
                    words.push("samples".to_owned());
                    words.extend(samples.iter().map(|sample| sample.pod.name.to_string()));
                }
                _ => {}
            }
        }
        lines.push(words.join(" "));
    }
    lines
}

#[test]
fn an_ended_pod_is_replaced_at_once_or_when_the_workload_is_scaled() {
    let timeline = "timeline: [{at: 90s, podsFailed: 0}, {at: 150s, scale: 2}]";
    let expected = [
        "1m samples web-0 web-1",
        "2m +web-0 +web-2 samples web-1 web-2",
        "3m samples web-1 web-2",
        "4m samples web-1 web-2",
    ];
    assert_eq!(observed(&played_with(true, "Deployment", timeline)), expected);
    let played = played_with(false, "Deployment", timeline);
    let expected = [
        "1m samples web-0 web-1",
        "2m +web-0 samples web-1",
        "3m +web-2 samples web-1 web-2",
        "4m samples web-1 web-2",
    ];
    assert_eq!(observed(&played), expected);
}

#[test]
fn only_a_stateful_set_uses_names_again() {
    let timeline = "timeline: [{at: 115s, podsDeleted: 0}]";
    let expected = [
        "1m samples web-0 web-1",
        "2m -web-0 +web-2 samples web-1",
        "3m samples web-1 web-2",
        "4m samples web-1 web-2",
    ];
    assert_eq!(observed(&played("Deployment", timeline)), expected);
    let expected = [
        "1m samples web-0 web-1",
        "2m -web-0 +web-0 samples web-1",
        "3m samples web-0 web-1",
        "4m samples web-0 web-1",
    ];
    assert_eq!(observed(&played("StatefulSet", timeline)), expected);
}

#[test]
fn a_problem_with_metrics_applies_to_new_pods_if_the_event_says_so() {
    let timeline = |event: &str| {
        format!("timeline: [{{at: 90s, metricsMissing: all{event}}}, {{at: 100s, scale: 3}}]")
    };
    let last = |event: &str| observed(&played("Deployment", &timeline(event))).pop();
    assert_eq!(last("").as_deref(), Some("4m samples web-2"));
    assert_eq!(last(", newPods: true").as_deref(), Some("4m samples"));
}

#[test]
fn an_action_on_pods_that_do_not_exist_has_no_effect() {
    let timeline = "timeline: [{at: 1m, podsDeleted: 0}, {at: 2m, oomKill: {pods: 0}}]";
    assert_eq!(played("Deployment", timeline).unmatched, [1]);
}

#[test]
fn the_history_is_that_of_the_first_pod_at_the_start() {
    let rest = "recommender: {flags: {storage: prometheus}}
history: {length: 2h, resource: [{name: cpu, perPod: 100m}]}
timeline: [{at: 1m, podsDeleted: 0}]";
    let start = played("Deployment", rest).script.start;
    let [history] = start.history.as_slice() else { panic!("one pod has a history") };
    assert_eq!(&*history.pod.name, "web-0");
    assert_eq!(history.samples.len(), 2);
}
