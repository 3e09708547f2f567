//! The HPA's manifest. It is valid, because the initial HPA of a scenario must be accepted by the
//! API server.

use serde_json::{Map, Value, json};

use super::edge::Edge;
use super::{Aim, Draft, Tolerances, behavior, custom, older, resources, workload};
use crate::area::Area;
use kube_autoscaler_models::quantity::Quantity;

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

/// Metrics with their targets. Without metrics, the API server defaults to CPU at 80%.
fn metrics(draft: &mut Draft, tolerances: Tolerances) -> Vec<Value> {
    let count = match draft.edge {
        // Other metrics could determine the replicas.
        Edge::None => draft.dice.weighted(&[(1, 0), (10, 1), (7, 2), (1, 3)]),
        _ => draft.dice.weighted(&[(8, 1), (1, 2)]),
    };
    let count = if draft.podless { count.max(1) } else { count };
    if count == 0 {
        let requests = resources::requests(draft, 0);
        draft.aims.push(Aim { resource: 0, milli: requests / 100 * 80, requests, tolerances });
    }
    (0..count).map(|_| metric(draft, tolerances)).collect()
}

/// One metric of any type.
pub(super) fn metric(draft: &mut Draft, tolerances: Tolerances) -> Value {
    let custom = if draft.area == Area::Custom { 12 } else { 1 };
    let tests_readiness = draft.edge.requires_cpu() && draft.dice.percent(85);
    if tests_readiness && !draft.podless {
        return resources::pods(draft, tolerances);
    }
    // Metrics of objects and external metrics do not require pods.
    if (draft.podless || draft.edge == Edge::Zero) && draft.dice.percent(90) {
        return match draft.dice.percent(50) {
            true => custom::object(draft, tolerances),
            false => custom::external(draft, tolerances),
        };
    }
    match draft.dice.weighted(&[(8, 0), (custom, 1), (custom, 2), (custom, 3), (custom, 4)]) {
        1 => resources::container(draft, tolerances),
        2 => custom::pods(draft, tolerances),
        3 => custom::object(draft, tolerances),
        4 => custom::external(draft, tolerances),
        _ => resources::pods(draft, tolerances),
    }
}
