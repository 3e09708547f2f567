//! Pods without a target whose labels match the selector completely or partly.

use std::sync::Arc;

use super::{Draft, RESOURCES, numbers, workload};
use crate::fuzz::area::Area;
use crate::model::api::{ConditionStatus, Container, ContainerMetrics, PodPhase, PodSpec};
use crate::model::time::Span;
use crate::scenario::resolved::OtherPods;

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
    let mut usage = Vec::new();
    for (index, resource) in RESOURCES.into_iter().enumerate() {
        let aim = draft.aims.iter().find(|aim| aim.resource == index).copied();
        let milli = match aim {
            Some(aim) => numbers::usage(draft, aim),
            None => known[index],
        };
        if draft.dice.percent(75) {
            let milli = if index == 1 { milli / 1000 * 1000 } else { milli };
            usage.push((Arc::from(resource), numbers::quantity(draft, milli)));
        }
    }
    let phase = draft.dice.weighted(&[
        (10, PodPhase::Running),
        (2, PodPhase::Pending),
        (2, PodPhase::Succeeded),
        (2, PodPhase::Failed),
        (1, PodPhase::Unknown),
    ]);
    let metrics = ContainerMetrics { name: container.clone(), usage };
    let metrics = (!metrics.usage.is_empty()).then_some(metrics);
    let hour = Span::from_mins(60);
    let near = draft.span();
    OtherPods {
        name: Arc::from(name),
        count: draft.dice.pick(&[1, 1, 2, 5]),
        labels,
        spec: Arc::new(PodSpec {
            containers: vec![Container { name: container, requests, sidecar: false }],
            ..PodSpec::default()
        }),
        usage: metrics.into_iter().collect(),
        phase,
        ready: draft.dice.weighted(&[
            (6, Some(ConditionStatus::True)),
            (3, Some(ConditionStatus::False)),
            (1, Some(ConditionStatus::Unknown)),
            (1, None),
        ]),
        started: draft.dice.percent(90),
        terminating: draft.dice.percent(8),
        age: draft.dice.weighted(&[(3, hour), (2, near)]),
    }
}
