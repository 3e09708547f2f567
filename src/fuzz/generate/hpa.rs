//! The HPA's manifest. It is valid, because the initial HPA of a scenario must be accepted by the
//! API server.

use serde_json::{Map, Value, json};

use super::edge::Edge;
use super::{Aim, Draft, Tolerances, behavior, custom, numbers, older, workload};
use crate::fuzz::area::Area;
use crate::model::quantity::Quantity;

/// The HPA's name.
pub(super) const NAME: &str = "web";

pub(super) fn manifest(draft: &mut Draft) -> Value {
    let (kind, api_version) = draft.kind;
    let mut spec = Map::new();
    let target = json!({ "apiVersion": api_version, "kind": kind, "name": workload::NAME });
    spec.insert("scaleTargetRef".to_owned(), target);
    let default = tolerance(draft.flags.tolerance);
    let mut tolerances = Tolerances { down: default, up: default };
    let percent = matches!(draft.edge, Edge::Percent { .. });
    let behaves = draft.likely(Area::Behavior, 40, 95) || percent;
    let behavior = behaves.then(|| behavior::behavior(draft));
    if let Some(behavior) = &behavior {
        let own = |direction: &str| {
            let tolerance = behavior.get(direction)?.get("tolerance")?.as_str()?;
            Some(Quantity::parse(tolerance).ok()?.milli())
        };
        tolerances = Tolerances {
            down: own("scaleDown").unwrap_or(default),
            up: own("scaleUp").unwrap_or(default),
        };
    }
    let outside = |draft: &Draft| draft.served.objects.len() + draft.served.externals.len();
    let before = outside(draft);
    let metrics = metrics(draft, tolerances);
    let from_outside = outside(draft) > before;
    let zero = if draft.edge == Edge::Zero { 95 } else { 50 };
    if from_outside && draft.to_zero && draft.dice.percent(zero) {
        draft.min = 0;
    }
    if draft.min != 1 || draft.dice.percent(50) {
        spec.insert("minReplicas".to_owned(), json!(draft.min));
    }
    spec.insert("maxReplicas".to_owned(), json!(draft.max));
    if !metrics.is_empty() {
        spec.insert("metrics".to_owned(), Value::Array(metrics));
    }
    if let Some(behavior) = behavior {
        spec.insert("behavior".to_owned(), behavior);
    }
    older::in_some_version(draft, &spec)
}

/// A fraction in thousandths.
fn tolerance(fraction: f64) -> i64 {
    (fraction * 1000.0).round() as i64
}

/// Metrics with their targets. Without metrics, the API server defaults to CPU at 80 %.
fn metrics(draft: &mut Draft, tolerances: Tolerances) -> Vec<Value> {
    let count = match draft.edge {
        // Other metrics could determine the replicas.
        Edge::None => draft.dice.weighted(&[(1, 0), (10, 1), (7, 2), (1, 3)]),
        _ => draft.dice.weighted(&[(8, 1), (1, 2)]),
    };
    let count = if draft.podless { count.max(1) } else { count };
    if count == 0 {
        let requests = requests(draft, 0);
        draft.aims.push(Aim { resource: 0, milli: requests / 100 * 80, requests, tolerances });
    }
    (0..count).map(|_| metric(draft, tolerances)).collect()
}

/// The total request of a pod.
pub(super) fn requests(draft: &Draft, resource: usize) -> i64 {
    if let Some(requests) = draft.pod_requests[resource] {
        return requests;
    }
    draft.containers.iter().fold(0, |sum, (_, known)| known[resource].saturating_add(sum))
}

/// One metric of any type.
pub(super) fn metric(draft: &mut Draft, tolerances: Tolerances) -> Value {
    let custom = if draft.area == Area::Custom { 12 } else { 1 };
    let of_readiness = draft.edge.requires_cpu() && draft.dice.percent(85);
    if of_readiness && !draft.podless {
        return custom::of_resource(draft, tolerances);
    }
    // Metrics of objects and external metrics do not require pods.
    if (draft.podless || draft.edge == Edge::Zero) && draft.dice.percent(90) {
        return match draft.dice.percent(50) {
            true => custom::object(draft, tolerances),
            false => custom::external(draft, tolerances),
        };
    }
    match draft.dice.weighted(&[(8, 0), (custom, 1), (custom, 2), (custom, 3), (custom, 4)]) {
        1 => custom::container_resource(draft, tolerances),
        2 => custom::pods(draft, tolerances),
        3 => custom::object(draft, tolerances),
        4 => custom::external(draft, tolerances),
        _ => custom::of_resource(draft, tolerances),
    }
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
