//! Generates loads and events for a given HPA: its manifest and its pods stay as they are.
//!
//! Loads are drawn around the boundaries of that HPA: its targets, tolerances, windows and limits.

use std::collections::BTreeMap;
use std::ops::Range;

use serde_json::{Map, Value, json};

use super::dice::Dice;
use kube_autoscaler_models::api::{MetricSpec, MetricTarget};
use kube_autoscaler_models::time::Span;
use kube_lockstep_scenario as scenario;
use kube_lockstep_scenario::Scenario;

/// The parts of a scenario file that are generated.
const GENERATED: [&str; 3] = ["metrics", "timeline", "until"];

/// Generates loads for the HPAs of a scenario.
#[derive(Debug)]
pub struct Loads {
    /// The tree of the scenario.
    tree: Value,
    /// The targets of the metrics, by name.
    targets: BTreeMap<String, Vec<MetricTarget>>,
    /// The request of a pod for a resource in milli-units, or that of one of its containers.
    requests: BTreeMap<(Option<String>, String), i64>,
    /// The tolerances, in thousandths.
    tolerances: Vec<i64>,
    /// Replicas at boundaries.
    replicas: Vec<i32>,
    /// The fewest replicas of a generated scenario: those of an HPA in operation.
    least: i32,
    /// Windows and periods, in sync periods.
    windows: Vec<i64>,
    /// True if an HPA can scale to zero.
    scales_to_zero: bool,
    sync_period: Span,
}

/// The times of a generated load, in sync periods.
#[derive(Clone, Debug)]
struct Times {
    /// The number of periods.
    until: i64,
    /// When all metrics are zero for long enough to scale to zero.
    idle: Option<Range<i64>>,
}

/// The ratio of a metric to its target, in thousandths, and how far the amount is beyond it in its
/// smallest unit.
#[derive(Clone, Copy, Debug)]
struct Ratio {
    thousandths: i64,
    beyond: i64,
}

impl Loads {
    /// Creates the generator. The scenario must have entries for the metrics of its HPAs.
    #[must_use]
    pub fn new(scenario: &Scenario) -> Loads {
        let specs = || scenario.hpas.iter().map(|hpa| &hpa.spec);
        let mut targets: BTreeMap<String, Vec<MetricTarget>> = BTreeMap::new();
        for metric in specs().flat_map(|spec| &spec.metrics) {
            if let (Some(name), Some(target)) = (metric.name(), target(metric)) {
                targets.entry(name.to_owned()).or_default().push(target.clone());
            }
        }
        let thousandths = |tolerance: f64| (tolerance * 1000.0).round() as i64;
        let mut tolerances = vec![thousandths(scenario.flags.tolerance)];
        let mut windows = vec![20];
        for behavior in specs().filter_map(|spec| spec.behavior.as_ref()) {
            for rules in [&behavior.scale_up, &behavior.scale_down].into_iter().flatten() {
                tolerances.extend(rules.tolerance.as_ref().map(|it| it.milli()));
                let period = scenario.flags.sync_period.as_secs_f64().max(1.0);
                let periods = rules.policies.iter().flatten().map(|it| it.period_seconds);
                let all = periods.chain(rules.stabilization_window_seconds);
                windows.extend(all.map(|seconds| (f64::from(seconds) / period).ceil() as i64));
            }
        }
        windows.retain(|periods| (1..=40).contains(periods));
        let mut replicas = vec![scenario.workload.replicas, 10, 3, 2, 1];
        for spec in specs() {
            let least = spec.min_replicas.unwrap_or(1);
            replicas.extend([least, least + 1, spec.max_replicas, spec.max_replicas - 1]);
        }
        let least = specs().filter_map(|spec| spec.min_replicas).min().unwrap_or(1).max(1);
        let most = specs().map(|spec| spec.max_replicas).max().unwrap_or(10);
        let most = most.clamp(1, MOST_PODS).max(least);
        replicas.iter_mut().for_each(|it| *it = (*it).clamp(least, most));
        Loads {
            tree: scenario::to_tree(scenario),
            targets,
            requests: requests(scenario),
            tolerances,
            replicas,
            least,
            windows,
            scales_to_zero: specs().any(|spec| spec.min_replicas == Some(0)),
            sync_period: scenario.flags.sync_period,
        }
    }

    /// The generated parts of the scenario with this index, as the tree of an incomplete file.
    #[must_use]
    pub fn generate(&self, seed: u64, index: u64) -> Value {
        let mut dice = Dice::new(seed, index);
        let replicas = dice.pick(&self.replicas);
        let times = self.times(&mut dice);
        let mut metrics = self.tree["metrics"].clone();
        for kind in ["resource", "pods", "object", "external"] {
            let Some(entries) = metrics.get_mut(kind).and_then(Value::as_array_mut) else {
                continue;
            };
            for entry in entries {
                self.set_load(&mut dice, entry, replicas, &times);
            }
        }
        let mut timeline = Vec::new();
        if dice.percent(35) {
            for _ in 0..dice.between(1, 2) {
                timeline.push(self.event(&mut dice, times.until));
            }
        }
        json!({
            "workload": { "replicas": replicas },
            "metrics": metrics,
            "timeline": timeline,
            "until": self.time_of(times.until),
        })
    }

    /// The whole file with generated parts.
    #[must_use]
    pub fn with(&self, generated: &Value) -> Value {
        let mut tree = self.tree.clone();
        for name in GENERATED {
            tree[name] = generated.get(name).cloned().unwrap_or(Value::Null);
        }
        if let Some(fields) = tree.as_object_mut() {
            fields.retain(|_, value| !value.is_null());
        }
        let replicas = generated.get("workload").and_then(|it| it.get("replicas"));
        tree["workload"]["replicas"] = replicas.cloned().unwrap_or(json!(self.least));
        tree
    }

    /// Returns true if generated parts, or smaller ones, have all series of all metrics, and at
    /// least the minimum of replicas.
    #[must_use]
    pub fn are_usual(&self, generated: &Value) -> bool {
        let replicas = generated.get("workload").and_then(|it| it["replicas"].as_i64());
        if replicas.is_some_and(|replicas| replicas < self.least.into()) {
            return false;
        }
        let series = |tree: &Value| -> Vec<[Value; 3]> {
            let kinds = tree["metrics"].as_object().into_iter().flatten();
            let entries = kinds.filter_map(|(_, entries)| entries.as_array()).flatten();
            let of = |entry: &Value, series: &Value| {
                [entry["name"].clone(), entry["labels"].clone(), series["labels"].clone()]
            };
            let series = entries.flat_map(|entry| match entry["series"].as_array() {
                Some(all) => all.iter().map(|series| of(entry, series)).collect(),
                None => vec![of(entry, &Value::Null)],
            });
            series.collect()
        };
        series(generated) == series(&self.tree)
    }

    fn set_load(&self, dice: &mut Dice, entry: &mut Value, replicas: i32, times: &Times) {
        let name = entry["name"].as_str().unwrap_or_default().to_owned();
        let Some(targets) = self.targets.get(&name) else { return };
        let target = match targets.as_slice() {
            [only] => only,
            several => &several[dice.below(several.len() as u64) as usize],
        };
        let Some(fields) = entry.as_object_mut() else { return };
        let is_total = fields.contains_key("value") || fields.contains_key("series");
        let about = |container: Option<&String>| Amounts {
            target,
            request: self.requests.get(&(container.cloned(), name.clone())).copied(),
            replicas: is_total.then_some(replicas),
        };
        if let Some(containers) = fields.get_mut("containers").and_then(Value::as_object_mut) {
            let ratios = self.ratios(dice, times);
            for (container, usage) in containers {
                *usage = ratios.signal(&about(Some(container)));
            }
            return;
        }
        let signal = self.ratios(dice, times).signal(&about(None));
        if let Some(series) = fields.get_mut("series").and_then(Value::as_array_mut) {
            let first = series.first_mut();
            first.into_iter().for_each(|series| series["value"] = signal.clone());
        } else if is_total {
            fields.insert("value".to_owned(), signal);
        } else {
            let kept: Map<String, Value> = fields
                .iter()
                .filter(|(field, _)| !["load", "limit", "pods"].contains(&field.as_str()))
                .map(|(field, value)| (field.clone(), value.clone()))
                .collect();
            *fields = kept;
            fields.insert("perPod".to_owned(), signal);
        }
    }

    fn times(&self, dice: &mut Dice) -> Times {
        if self.scales_to_zero && dice.percent(25) {
            let start = dice.between(0, 2);
            let end = start + dice.pick(&self.windows).min(40) + dice.between(1, 3);
            return Times { until: end + dice.between(2, 4), idle: Some(start..end) };
        }
        let until = match dice.below(10) {
            0..6 => dice.between(2, 6),
            6..8 => dice.between(6, 12),
            _ => dice.pick(&self.windows).min(40) + dice.between(2, 6),
        };
        Times { until, idle: None }
    }

    /// A constant, or up to three steps.
    fn ratios(&self, dice: &mut Dice, times: &Times) -> Ratios {
        let mut steps = vec![("0s".to_owned(), self.ratio(dice))];
        if let Some(Range { start, end }) = times.idle {
            steps.truncate(usize::from(start > 0));
            steps.push((self.time_of(start), Ratio { thousandths: 0, beyond: 0 }));
            steps.push((self.time_of(end), self.ratio(dice)));
        } else if dice.percent(40) {
            let times = (0..dice.between(1, 3)).map(|_| dice.between(1, times.until));
            let mut times: Vec<i64> = times.collect();
            times.sort_unstable();
            times.dedup();
            steps.extend(times.into_iter().map(|tick| (self.time_of(tick), self.ratio(dice))));
        }
        Ratios { steps }
    }

    /// The time after a number of sync periods.
    fn time_of(&self, periods: i64) -> String {
        Span(self.sync_period.0.saturating_mul(periods)).to_string()
    }

    fn ratio(&self, dice: &mut Dice) -> Ratio {
        let tolerance = dice.pick(&self.tolerances);
        let beyond = dice.pick(&[0, 0, 0, 1, -1]);
        match dice.below(10) {
            0..3 => Ratio { thousandths: 1000 + tolerance, beyond },
            3..5 => Ratio { thousandths: 1000 - tolerance, beyond },
            5 => Ratio { thousandths: 1000, beyond },
            _ => {
                let others = [0, 300, 500, 900, 1200, 1500, 2000, 3000, 10_000, 1_000_000];
                Ratio { thousandths: dice.pick(&others), beyond: 0 }
            }
        }
    }

    fn event(&self, dice: &mut Dice, ticks: i64) -> Value {
        let at = self.time_of(dice.between(0, ticks - 1));
        let pods = if dice.percent(50) { "all" } else { "0" };
        let names: Vec<&String> = self.targets.keys().collect();
        let metric = if names.is_empty() { "cpu" } else { dice.pick(&names) };
        let missing = match metric {
            "cpu" | "memory" => json!({ "resourceMissing": { "pods": pods, "resource": metric } }),
            _ => json!({ "metricEmpty": metric }),
        };
        let error = json!({ "code": 503, "message": "unavailable" });
        let mut event = match dice.below(9) {
            0 => json!({ "scale": dice.pick(&self.replicas) }),
            1 => json!({ "scale": 0 }),
            2 => json!({ "podsUnready": pods }),
            3 => json!({ "podsFailed": pods }),
            4 => json!({ "metricsMissing": pods }),
            5 => missing,
            6 => json!({ "restartController": {} }),
            7 => json!({ "metricsError": error }),
            _ => json!({ "getScaleError": error }),
        };
        event["at"] = at.into();
        event
    }
}

/// The most pods of a generated scenario.
const MOST_PODS: i32 = 50;

/// The target of a metric.
fn target(metric: &MetricSpec) -> Option<&MetricTarget> {
    let targets = [
        metric.resource.as_ref().map(|it| &it.target),
        metric.container_resource.as_ref().map(|it| &it.target),
        metric.pods.as_ref().map(|it| &it.target),
        metric.object.as_ref().map(|it| &it.target),
        metric.external.as_ref().map(|it| &it.target),
    ];
    targets.into_iter().flatten().next()
}

/// The request of a pod for each resource in milli-units, and that of each of its containers.
fn requests(scenario: &Scenario) -> BTreeMap<(Option<String>, String), i64> {
    let mut requests = BTreeMap::new();
    for container in &scenario.workload.spec.containers {
        for resource in ["cpu", "memory"] {
            let Some(request) = container.requests.get(resource) else { continue };
            let of = |container: Option<String>| (container, resource.to_owned());
            requests.insert(of(Some(container.name.to_string())), request.milli());
            *requests.entry(of(None)).or_default() += request.milli();
        }
    }
    requests
}

/// The ratios of a metric to its target, each from a time on.
struct Ratios {
    steps: Vec<(String, Ratio)>,
}

impl Ratios {
    fn signal(&self, about: &Amounts<'_>) -> Value {
        match self.steps.as_slice() {
            [(_, only)] => about.amount(*only).into(),
            steps => {
                let step = |(at, ratio): &(String, Ratio)| {
                    let value = about.amount(*ratio);
                    json!({ "at": at, "value": value })
                };
                json!({ "steps": steps.iter().map(step).collect::<Vec<_>>() })
            }
        }
    }
}

/// What the amounts of a metric depend on.
struct Amounts<'a> {
    target: &'a MetricTarget,
    /// The request in milli-units. None: it is unknown, or the metric is not a resource.
    request: Option<i64>,
    /// The replicas, if the amount is that of all pods together.
    replicas: Option<i32>,
}

impl Amounts<'_> {
    /// The amount that has this ratio to its target: a percentage of the request, or a quantity.
    fn amount(&self, ratio: Ratio) -> String {
        let Ratio { thousandths, beyond } = ratio;
        let of = |on_target: i64| {
            let amount = i128::from(on_target) * i128::from(thousandths) / 1000;
            (amount + i128::from(beyond)).max(0)
        };
        let MetricTarget { average_utilization, average_value, value, .. } = self.target;
        match (average_utilization, average_value, value) {
            (Some(target), ..) => {
                let percent = of((*target).into());
                match self.request.map(|request| i128::from(request) * percent) {
                    // The controller rounds a utilization down, so that only a higher usage has it.
                    Some(hundredths) if hundredths % 100 != 0 => {
                        format!("{}m", hundredths / 100 + 1)
                    }
                    _ => format!("{percent}%"),
                }
            }
            (_, Some(average), _) => {
                let pods = i64::from(self.replicas.unwrap_or(1));
                format!("{}m", of(average.milli().saturating_mul(pods)))
            }
            (_, _, Some(value)) => format!("{}m", of(value.milli())),
            _ => "1".to_owned(),
        }
    }
}
