//! Pods without a target whose labels match the selector completely or partly, and objects in other
//! namespaces.

use std::sync::Arc;

use super::{Draft, RESOURCES, numbers, workload};
use crate::area::Area;
use kube_autoscaler_models::api::{PodPhase, Requests};
use kube_autoscaler_models::time::Span;
use kube_lockstep_scenario::resolved::{OtherNamespace, OtherPods, Readiness};

/// Names of pods that sort before and after the workload's pods.
const NAMES: [&str; 3] = ["batch", "report", "zoo"];

/// Draws other pods; usually none.
pub(super) fn other_pods(draft: &mut Draft) -> Vec<OtherPods> {
    if !draft.likely(Area::Pods, 4, 15) {
        return Vec::new();
    }
    let count = draft.dice.weighted(&[(4, 1), (1, 2)]);
    let first = draft.dice.below(2) as usize;
    NAMES[first..].iter().take(count).map(|name| one(draft, name)).collect()
}

/// Draws a namespace with objects of the same names; usually none.
pub(super) fn other_namespaces(draft: &mut Draft) -> Vec<OtherNamespace> {
    if !draft.dice.percent(8) {
        return Vec::new();
    }
    let replicas = Some(draft.dice.pick(&[0, 3, 9])).filter(|_| draft.dice.percent(80));
    let milli = draft.dice.pick(&[1, 250, 4000]);
    let usage = Requests::from([(Arc::from("cpu"), numbers::quantity(draft, milli))]);
    vec![OtherNamespace { name: Arc::from("elsewhere"), replicas, usage }]
}

fn one(draft: &mut Draft, name: &str) -> OtherPods {
    let mut labels = draft.labels.clone();
    if draft.dice.percent(10) {
        // A selector for one label matches the pods; a selector for all labels does not.
        labels.insert("tier".to_owned(), "other".to_owned());
    }
    let (requests, known) = workload::requests(draft);
    let container = match draft.dice.percent(70) {
        true => draft.containers[0].0.clone(),
        false => Arc::from("job"),
    };
    let mut usage = Requests::new();
    for (index, resource) in RESOURCES.into_iter().enumerate() {
        let aim = draft.aims.iter().find(|aim| aim.resource == index).copied();
        let milli = match aim {
            Some(aim) => numbers::usage(draft, aim),
            None => known[index],
        };
        if draft.dice.percent(75) {
            let milli = if index == 1 { milli / 1000 * 1000 } else { milli };
            usage.insert(Arc::from(resource), numbers::quantity(draft, milli));
        }
    }
    let phase = draft.dice.weighted(&[
        (10, PodPhase::Running),
        (2, PodPhase::Pending),
        (2, PodPhase::Succeeded),
        (2, PodPhase::Failed),
        (1, PodPhase::Unknown),
    ]);
    let hour = Span::from_mins(60);
    let near = draft.span();
    let pods = OtherPods {
        name: Arc::from(name),
        count: Some(draft.dice.pick(&[1, 1, 2, 5])),
        labels,
        container: Some(container),
        requests,
        usage,
        phase: Some(phase),
        ready: Some(draft.dice.weighted(&[
            (6, Readiness::True),
            (3, Readiness::False),
            (1, Readiness::Unknown),
            (1, Readiness::Absent),
        ])),
        started: Some(draft.dice.percent(90)),
        terminating: draft.dice.percent(8),
        age: Some(draft.dice.weighted(&[(3, hour), (2, near)])),
    };
    pods.without_defaults()
}
