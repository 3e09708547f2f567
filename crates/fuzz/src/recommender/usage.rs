//! The usage of a generated scenario.

use serde_json::{Map, Value, json};

use super::generate::Draft;
use crate::dice::Dice;
use kube_autoscaler_models::time::Span;

/// One resource: its name, the unit of its amounts, its usual usages, and a huge usage.
struct Resource {
    name: &'static str,
    unit: &'static str,
    usual: [(u64, i64); 5],
    huge: i64,
}

const RESOURCES: [Resource; 2] = [
    Resource {
        name: "cpu",
        unit: "m",
        usual: [(10, 40), (10, 400), (5, 3000), (1, 0), (1, 900_000)],
        huge: 3_000_000,
    },
    Resource {
        name: "memory",
        unit: "",
        usual: [(10, 20 << 20), (10, 400 << 20), (5, 5 << 30), (1, 0), (1, 900 << 30)],
        huge: 3_000_000_000_000,
    },
];

impl Resource {
    fn amount(&self, amount: i64) -> Value {
        format!("{amount}{}", self.unit).into()
    }
}

/// The usage in metrics.k8s.io.
pub(super) fn metrics(draft: &mut Draft, length: Span) -> Value {
    let resource = resources(draft, length);
    let mut sampling = Map::new();
    sampling.insert("lag".to_owned(), format!("{}s", draft.dice.between(0, 20)).into());
    if draft.dice.percent(15) {
        let resolution = draft.dice.pick(&["15s", "1m", "7m"]);
        sampling.insert("resolution".to_owned(), resolution.into());
    }
    json!({ "resource": resource, "sampling": sampling })
}

/// Samples before the start.
pub(super) fn history(draft: &mut Draft) -> Value {
    let hours = draft.dice.between(1, 200);
    let step = draft.dice.weighted(&[(4, "1h"), (1, "10m"), (1, "7h")]);
    let resource = resources(draft, Span::from_mins(60 * hours));
    json!({ "length": format!("{hours}h"), "step": step, "resource": resource })
}

fn resources(draft: &mut Draft, length: Span) -> Vec<Value> {
    let mut usages = Vec::new();
    for resource in &RESOURCES {
        if draft.dice.percent(97) {
            usages.push(usage(draft, resource, length));
        }
    }
    usages
}

fn usage(draft: &mut Draft, resource: &Resource, length: Span) -> Value {
    let names: Vec<String> =
        draft.containers.iter().chain(&draft.init_containers).cloned().collect();
    let mut usage = json!({ "name": resource.name });
    match draft.dice.below(10) {
        0..=4 if names.len() == 1 => usage["perPod"] = signal(draft, resource, length),
        5..=7 if names.len() == 1 => {
            usage["load"] = signal(draft, resource, length);
            if draft.dice.percent(30) {
                usage["limit"] = resource.amount(draft.dice.weighted(&resource.usual));
            }
        }
        _ => {
            let mut containers = Map::new();
            for name in names {
                containers.insert(name, signal(draft, resource, length));
            }
            usage["containers"] = containers.into();
        }
    }
    let others: Vec<Value> = [("1", 50), ("2", 50), ("3-9", 30)]
        .into_iter()
        .filter_map(|(pods, percent)| {
            let value = draft.dice.percent(percent).then(|| signal(draft, resource, length))?;
            Some(json!({ "pods": pods, "value": value }))
        })
        .collect();
    if !others.is_empty() {
        usage["pods"] = others.into();
    }
    usage
}

/// A signal, usually with noise.
fn signal(draft: &mut Draft, resource: &Resource, length: Span) -> Value {
    let (interval, is_unusual) = (draft.interval, draft.edges > 0);
    let dice = &mut draft.dice;
    let base = dice.weighted(&resource.usual);
    let shape = match dice.below(10) {
        0 | 1 if is_unusual => spikes(dice, resource, base, interval, length),
        2 => {
            let next = dice.weighted(&resource.usual);
            points("steps", resource, &[base, next, base], length)
        }
        3 => {
            let next = dice.weighted(&resource.usual);
            points("points", resource, &[base, next], length)
        }
        4 => {
            let period = dice.pick(&["10m", "5h", "24h"]);
            let (mean, amplitude) = (resource.amount(base), resource.amount(base / 2));
            json!({ "sine": { "mean": mean, "amplitude": amplitude, "period": period } })
        }
        _ => resource.amount(base),
    };
    match dice.pick(&[0, 5, 60, 100]) {
        0 => shape,
        noise => json!({
            "noise": format!("{noise}%"),
            "every": interval.to_string(),
            "seed": dice.below(1 << 32),
            "of": shape,
        }),
    }
}

/// Usage of zero, or huge usage, in a few single samples.
fn spikes(dice: &mut Dice, resource: &Resource, base: i64, interval: Span, length: Span) -> Value {
    let runs = (length.0 / interval.0.max(1)).max(2);
    let mut steps = vec![json!({ "at": "0s", "value": resource.amount(base) })];
    let mut run = dice.between(1, runs);
    for _ in 0..dice.between(1, 4) {
        let value = dice.pick(&[0, resource.huge]);
        for (run, value) in [(run, value), (run + 1, base)] {
            let at = Span(run * interval.0);
            steps.push(json!({ "at": at.to_string(), "value": resource.amount(value) }));
        }
        run += 1 + dice.between(1, runs);
    }
    json!({ "steps": steps })
}

/// Values at equal distances.
fn points(shape: &str, resource: &Resource, values: &[i64], length: Span) -> Value {
    let distance = length.0 / values.len() as i64;
    let points = values.iter().enumerate().map(|(index, value)| {
        let at = Span(distance * index as i64);
        json!({ "at": at.to_string(), "value": resource.amount(*value) })
    });
    json!({ shape: points.collect::<Vec<Value>>() })
}
