//! Metrics of CPU and memory.

use serde_json::{Value, json};

use super::{Aim, Draft, RESOURCES, Tolerances, numbers};

/// A metric of a resource of the pods.
pub(super) fn pods(draft: &mut Draft, tolerances: Tolerances) -> Value {
    let memory = if draft.edge.requires_cpu() { 3 } else { 30 };
    let index = usize::from(draft.dice.percent(memory));
    let requests = requests(draft, index);
    let (target, aim) = aim(draft, index, requests, tolerances);
    draft.aims.push(aim);
    json!({ "type": "Resource", "resource": { "name": RESOURCES[index], "target": target } })
}

/// A metric of one container.
pub(super) fn container(draft: &mut Draft, tolerances: Tolerances) -> Value {
    let resource = usize::from(draft.dice.percent(30));
    let containers = draft.containers.clone();
    let (container, known) = draft.dice.pick(&containers);
    let (target, aim) = aim(draft, resource, known[resource], tolerances);
    draft.aims.push(aim);
    let name = RESOURCES[resource];
    let source = json!({ "name": name, "container": &*container, "target": target });
    json!({ "type": "ContainerResource", "containerResource": source })
}

/// The target of a CPU or memory metric, and the usage that meets it.
pub(super) fn aim(
    draft: &mut Draft,
    resource: usize,
    requests: i64,
    tolerances: Tolerances,
) -> (Value, Aim) {
    if draft.dice.percent(60) {
        let percent = draft.dice.pick(&[1, 10, 33, 50, 50, 60, 66, 80, 99, 100, 101, 150, 500]);
        let milli = (i128::from(requests) * i128::from(percent) / 100) as i64;
        let target = json!({ "type": "Utilization", "averageUtilization": percent });
        return (target, Aim { resource, milli, requests, tolerances });
    }
    let milli = match resource {
        0 => draft.dice.pick(&[1, 3, 7, 10, 50, 100, 333, 500, 1000, 1500]),
        _ => draft.dice.pick(&[1, 100, 1 << 20, 64 << 20, 100 << 20]) * 1000,
    };
    let value = numbers::positive(draft, milli);
    let target = json!({ "type": "AverageValue", "averageValue": value.to_string() });
    (target, Aim { resource, milli: value.milli(), requests: 0, tolerances })
}

/// The total request of a pod.
pub(super) fn requests(draft: &Draft, resource: usize) -> i64 {
    if let Some(requests) = draft.pod_requests[resource] {
        return requests;
    }
    draft.containers.iter().fold(0, |sum, (_, known)| known[resource].saturating_add(sum))
}
