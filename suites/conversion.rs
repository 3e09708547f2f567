//! The API server's processing of HPAs of version v1: the model against upstream's own conversion,
//! defaulting and validation, for many generated manifests, most of them unusual.
//!
//! Requires Go; without it, the test is reported as ignored.

mod support;

use std::process::ExitCode;

use chacha20::ChaCha8Rng;
use chacha20::rand_core::{Rng, SeedableRng};
use kube_lockstep::compare::api_answers;
use kube_lockstep::engine::model::Model;
use kube_lockstep::engine::upstream::Upstream;
use kube_lockstep::engine::{Engine, Step};
use kube_lockstep::model::rules::Release;
use kube_lockstep::model::time::Time;
use kube_lockstep::trace::{ApiAnswer, ApiOutcome};
use kube_lockstep::world::Change;
use libtest_mimic::Failed;
use serde_json::{Map, Value, json};
use support::trials::Suite;

const MANIFESTS: usize = 3000;

fn main() -> ExitCode {
    let mut suite = Suite::new("conversion");
    let upstream = suite.upstream(Release::NEWEST);
    let name = "manifests_of_version_1_are_stored_as_upstream_stores_them";
    suite.test_with(&upstream, name, |program| {
        let mut dice = Dice(ChaCha8Rng::seed_from_u64(1));
        let manifests: Vec<Value> = (0..MANIFESTS).map(|_| manifest(&mut dice)).collect();
        let seen = answers(&mut Upstream::new(program, Release::NEWEST), &manifests)?;
        let model = answers(&mut Model::new(Release::NEWEST), &manifests)?;
        compare(&manifests, &model, &seen)
    });
    suite.run()
}

fn compare(manifests: &[Value], model: &[ApiAnswer], seen: &[ApiAnswer]) -> Result<(), Failed> {
    assert_eq!((model.len(), seen.len()), (manifests.len(), manifests.len()));
    let (mut stored, mut refused) = (0, 0);
    for ((manifest, model), seen) in manifests.iter().zip(model).zip(seen) {
        let differences = api_answers(model, seen);
        if !differences.is_empty() {
            let manifest = serde_json::to_string_pretty(manifest)?;
            return Err(format!("{manifest}\n{differences:#?}").into());
        }
        match seen.outcome {
            ApiOutcome::Stored { .. } => stored += 1,
            _ => refused += 1,
        }
    }
    // Of both there must be many: else the dice are loaded.
    assert!(stored > MANIFESTS / 4 && refused > MANIFESTS / 8, "{stored} stored, {refused} not");
    Ok(())
}

/// Creates each, and deletes it again.
fn answers(engine: &mut dyn Engine, manifests: &[Value]) -> Result<Vec<ApiAnswer>, Failed> {
    let path = support::repository().join("fixtures/tolerance/upper-edge-is-inclusive.yaml");
    let scenario = support::load(&path);
    let mut session = engine.open(&scenario)?;
    let mut answers = Vec::new();
    for manifest in manifests {
        let delete = Change::DeleteHpa { name: scenario.hpas[0].name.clone() };
        let apply = vec![Change::CreateHpa(manifest.clone()), delete];
        let stepped = session.step(&Step { apply, until: Time::ZERO })?;
        answers.extend(stepped.api.into_iter().next());
    }
    session.close()?;
    Ok(answers)
}

struct Dice(ChaCha8Rng);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        (self.0.next_u64() % limit as u64) as usize
    }

    fn percent(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    fn pick<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())].clone()
    }

    /// Puts a field, mostly, and now and then spells its name in another case, or stranger.
    fn put(&mut self, fields: &mut Map<String, Value>, name: &str, percent: usize, value: Value) {
        if !self.percent(percent) {
            return;
        }
        let name = match self.below(8) {
            0 => name.to_uppercase(),
            1 => name[..1].to_uppercase() + &name[1..],
            // Two letters that Go takes for an s and a k.
            2 => name.replacen(['s', 'S'], "ſ", 1).replacen(['k', 'K'], "\u{212a}", 1),
            _ => name.to_owned(),
        };
        let value = match self.below(60) {
            0 => Value::Null,
            1 => self.pick(&[json!([]), json!({}), json!("x"), json!(1), json!(true)]),
            _ => value,
        };
        fields.insert(name, value);
    }
}

fn manifest(dice: &mut Dice) -> Value {
    let mut spec = Map::new();
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"});
    let no_group = json!({"apiVersion": "v1", "kind": "Deployment", "name": "web"});
    let target = if dice.percent(95) { target } else { no_group };
    spec.insert("scaleTargetRef".to_owned(), target);
    let max = dice.pick(&[1, 5, 10, 10, 10, 0]);
    spec.insert("maxReplicas".to_owned(), json!(max));
    if dice.percent(40) {
        let min = dice.pick(&[json!(1), json!(2), json!(0), json!(7), json!(null)]);
        spec.insert("minReplicas".to_owned(), min);
    }
    if dice.percent(40) {
        let percent = dice.pick(&[json!(50), json!(80), json!(0), json!(200), json!(null)]);
        spec.insert("targetCPUUtilizationPercentage".to_owned(), percent);
    }
    let mut annotations = Map::new();
    if dice.percent(60) {
        let metrics: Vec<Value> = (0..dice.below(3)).map(|_| metric(dice)).collect();
        let text = text(dice, &Value::Array(metrics));
        annotations.insert("autoscaling.alpha.kubernetes.io/metrics".to_owned(), json!(text));
    }
    if dice.percent(50) {
        let behavior = behavior(dice);
        let text = text(dice, &behavior);
        annotations.insert("autoscaling.alpha.kubernetes.io/behavior".to_owned(), json!(text));
    }
    if dice.percent(20) {
        let name = "autoscaling.alpha.kubernetes.io/scale-up-tolerance";
        annotations.insert(name.to_owned(), json!("0.5"));
    }
    json!({
        "apiVersion": "autoscaling/v1",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web", "annotations": annotations},
        "spec": spec,
    })
}

/// JSON as text, now and then broken.
fn text(dice: &mut Dice, json: &Value) -> String {
    let text = json.to_string();
    match dice.below(40) {
        0 => text[..text.len() - 1].to_owned(),
        1 => format!("{text} {{"),
        2 => format!(" {text}\n"),
        3 => "null".to_owned(),
        4 => String::new(),
        _ => text,
    }
}

fn quantity(dice: &mut Dice) -> Value {
    dice.pick(&[
        json!("100m"),
        json!("0.5"),
        json!("2k"),
        json!("64Mi"),
        json!(" 3 "),
        json!(7),
        json!(0.25),
        json!("1"),
        json!("12"),
        json!("0"),
        json!("-1"),
        json!("many"),
        json!(""),
    ])
}

fn metric(dice: &mut Dice) -> Value {
    let mut source = Map::new();
    let name = dice.pick(&["rps", "hits", "hits", "a/b", ""]);
    let mut selector = Map::new();
    let labels = json!({"verb": "GET"});
    dice.put(&mut selector, "matchLabels", 70, labels);
    let values = dice.pick(&[json!(["a"]), json!([]), json!(null)]);
    let operator = dice.pick(&["In", "Exists", "Like"]);
    let expression = json!({"key": "tier", "operator": operator, "values": values});
    dice.put(&mut selector, "matchExpressions", 30, json!([expression]));
    let selector = Value::Object(selector);
    let percent = dice.pick(&[50, 80, 1, 0]);
    let (average, total) = (quantity(dice), quantity(dice));
    let (type_, field) = dice.pick(&[
        ("Resource", "resource"),
        ("ContainerResource", "containerResource"),
        ("Pods", "pods"),
        ("Object", "object"),
        ("External", "external"),
    ]);
    match field {
        "resource" | "containerResource" => {
            let name = dice.pick(&["cpu", "memory", "cpu", "gpu"]);
            dice.put(&mut source, "name", 97, json!(name));
            let utilization = dice.percent(50);
            let (by_percent, by_value) = if utilization { (95, 5) } else { (5, 95) };
            dice.put(&mut source, "targetAverageUtilization", by_percent, json!(percent));
            dice.put(&mut source, "targetAverageValue", by_value, average);
            if field == "containerResource" {
                dice.put(&mut source, "container", 97, json!("app"));
            }
        }
        "pods" => {
            dice.put(&mut source, "metricName", 97, json!(name));
            dice.put(&mut source, "targetAverageValue", 97, average);
            dice.put(&mut source, "selector", 30, selector);
        }
        "object" => {
            let mut target = Map::new();
            dice.put(&mut target, "apiVersion", 80, json!("networking.k8s.io/v1"));
            dice.put(&mut target, "kind", 97, json!("Ingress"));
            dice.put(&mut target, "name", 97, json!("main"));
            dice.put(&mut source, "target", 97, Value::Object(target));
            dice.put(&mut source, "metricName", 97, json!(name));
            dice.put(&mut source, "targetValue", 80, total);
            dice.put(&mut source, "averageValue", 40, average);
            dice.put(&mut source, "selector", 30, selector);
        }
        _ => {
            dice.put(&mut source, "metricName", 97, json!(name));
            dice.put(&mut source, "metricSelector", 30, selector);
            dice.put(&mut source, "targetValue", 60, total);
            dice.put(&mut source, "targetAverageValue", 50, average);
        }
    }
    dice.put(&mut source, "unheardOf", 5, json!({"a": 1}));
    // A type that does not exist can't be held by the model, and is refused with the scenario.
    let mut metric = Map::from_iter([("type".to_owned(), json!(type_))]);
    dice.put(&mut metric, field, 97, Value::Object(source));
    // The same field twice, in two spellings, is nothing that anybody ever wrote.
    if dice.percent(3) && field != "resource" {
        dice.put(&mut metric, "resource", 100, json!({"name": "cpu"}));
    }
    Value::Object(metric)
}

fn behavior(dice: &mut Dice) -> Value {
    let mut behavior = Map::new();
    for direction in ["scaleUp", "scaleDown"] {
        let rules = rules(dice);
        dice.put(&mut behavior, direction, 65, rules);
    }
    Value::Object(behavior)
}

fn rules(dice: &mut Dice) -> Value {
    let mut rules = Map::new();
    let window = dice.pick(&[0, 60, 300, 3600, 3601, -1]);
    dice.put(&mut rules, "stabilizationWindowSeconds", 50, json!(window));
    if dice.percent(40) {
        let policy = dice.pick(&["Max", "Min", "Disabled"]);
        rules.insert("selectPolicy".to_owned(), json!(policy));
    }
    let policies: Vec<Value> = (0..dice.pick(&[1, 1, 1, 2, 0]))
        .map(|_| {
            let kind = dice.pick(&["Pods", "Percent"]);
            let mut policy = Map::from_iter([("type".to_owned(), json!(kind))]);
            let (value, period) = (dice.pick(&[4, 100, 1, 0]), dice.pick(&[15, 60, 1800, 1801]));
            dice.put(&mut policy, "value", 95, json!(value));
            dice.put(&mut policy, "periodSeconds", 95, json!(period));
            Value::Object(policy)
        })
        .collect();
    dice.put(&mut rules, "policies", 90, Value::Array(policies));
    let tolerance = quantity(dice);
    dice.put(&mut rules, "tolerance", 20, tolerance);
    Value::Object(rules)
}
