//! `spec.behavior`: windows and policies at their limits and at the times of other actions.

use serde_json::{Map, Value, json};

use super::Draft;
use super::edge::Edge;
use crate::area::Area;
use kube_autoscaler_models::time::Span;

/// A valid behavior.
pub(super) fn behavior(draft: &mut Draft) -> Value {
    let mut behavior = Map::new();
    for direction in ["scaleUp", "scaleDown"] {
        let percent = match draft.edge {
            Edge::Percent { up, percent } if up == (direction == "scaleUp") => Some(percent),
            _ => None,
        };
        if percent.is_some() || draft.dice.percent(75) {
            let mut rules = rules(draft);
            if let Some(percent) = percent {
                limiting(draft, percent, &mut rules);
            }
            behavior.insert(direction.to_owned(), Value::Object(rules));
        }
    }
    Value::Object(behavior)
}

fn rules(draft: &mut Draft) -> Map<String, Value> {
    let period = draft.flags.sync_period.0 / 1_000_000_000;
    let mut rules = Map::new();
    if draft.dice.percent(60) {
        let near = (period * draft.dice.between(0, 8) + draft.dice.between(-1, 1)).clamp(0, 3600);
        let window = draft.dice.weighted(&[
            (3, 0),
            (1, 1),
            (2, 15),
            (2, 60),
            (1, 299),
            (1, 300),
            (1, 3600),
            (8, near),
        ]);
        draft.spans.push(Span::from_secs(window.max(1)));
        rules.insert("stabilizationWindowSeconds".to_owned(), json!(window));
    }
    if draft.dice.percent(70) {
        let count = draft.dice.weighted(&[(5, 1), (4, 2), (1, 4)]);
        let policies: Vec<Value> = (0..count).map(|_| policy(draft)).collect();
        rules.insert("policies".to_owned(), Value::Array(policies));
    }
    if draft.dice.percent(40) {
        let select = draft.dice.weighted(&[(4, "Max"), (5, "Min"), (1, "Disabled")]);
        rules.insert("selectPolicy".to_owned(), json!(select));
    }
    if draft.tolerance && draft.likely(Area::Ratios, 15, 50) {
        let tolerances = ["0", "0.01", "0.05", "50m", "0.1", "0.2", "333u", "1", "1.5", "1n"];
        let tolerance = draft.dice.pick(&tolerances);
        rules.insert("tolerance".to_owned(), json!(tolerance));
    }
    rules
}

/// Usually makes a policy with this percentage the limit.
fn limiting(draft: &mut Draft, percent: i32, rules: &mut Map<String, Value>) {
    let period = draft.dice.pick(&[1, 15, 60, 1800]);
    let policy = json!({ "type": "Percent", "value": percent, "periodSeconds": period });
    match rules.get_mut("policies") {
        Some(Value::Array(policies)) if draft.dice.percent(20) => policies.push(policy),
        _ => drop(rules.insert("policies".to_owned(), json!([policy]))),
    }
    if draft.dice.percent(80) {
        rules.shift_remove("selectPolicy");
    }
    if draft.dice.percent(80) {
        rules.insert("stabilizationWindowSeconds".to_owned(), json!(0));
    }
}

fn policy(draft: &mut Draft) -> Value {
    let period = draft.flags.sync_period.0 / 1_000_000_000;
    let near = (period * draft.dice.between(1, 8) + draft.dice.between(-1, 1)).clamp(1, 1800);
    let seconds = draft.dice.weighted(&[(2, 1), (3, 15), (3, 60), (1, 1800), (8, near)]);
    draft.spans.push(Span::from_secs(seconds));
    let type_ = draft.dice.pick(&["Pods", "Percent"]);
    let value = match type_ {
        "Pods" => draft.dice.pick(&[1, 1, 2, 3, 4, 5, 10, 100, 1_000_000, i32::MAX]),
        _ => draft.dice.pick(&[
            1,
            5,
            7,
            10,
            12,
            14,
            20,
            33,
            50,
            56,
            67,
            80,
            90,
            99,
            100,
            101,
            150,
            900,
            i32::MAX,
        ]),
    };
    json!({ "type": type_, "value": value, "periodSeconds": seconds })
}
