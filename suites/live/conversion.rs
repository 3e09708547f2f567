//! The API server's processing of HPAs of version v1: the model against upstream's own conversion,
//! defaulting and validation, for many generated manifests, most of them unusual.
//!
//! Requires Go; without it, the test is reported as ignored.

use crate::support;

use crate::support::trials::Suite;
use chacha20::ChaCha8Rng;
use chacha20::rand_core::{Rng, SeedableRng};
use kube_autoscaler_models::rules::Release;
use kube_lockstep_engines::upstream::Upstream;
use kube_lockstep_sim::compare::api_answers;
use kube_lockstep_sim::engine::model::Model;
use kube_lockstep_sim::engine::{Engine, Step};
use kube_lockstep_sim::trace::{ApiAnswer, ApiOutcome};
use kube_lockstep_sim::world::Change;
use libtest_mimic::Failed;
use serde_json::{Map, Value, json};

const MANIFESTS: usize = 3000;

/// Adds the tests of this suite.
pub(crate) fn add_tests(suite: &mut Suite) {
    let upstream = suite.upstream(Release::NEWEST);
    let name = "manifests_of_version_1_are_stored_as_upstream_stores_them";
    suite.test_with(&upstream, name, |program| {
        let mut random = Random(ChaCha8Rng::seed_from_u64(1));
        let manifests: Vec<Value> = (0..MANIFESTS).map(|_| manifest(&mut random)).collect();
        let upstream = answers(&mut Upstream::new(program, Release::NEWEST), &manifests)?;
        let model = answers(&mut Model::new(Release::NEWEST), &manifests)?;
        compare(&manifests, &model, &upstream)
    });
}

fn compare(manifests: &[Value], model: &[ApiAnswer], upstream: &[ApiAnswer]) -> Result<(), Failed> {
    assert_eq!((model.len(), upstream.len()), (manifests.len(), manifests.len()));
    let (mut stored, mut refused) = (0, 0);
    for ((manifest, model), upstream) in manifests.iter().zip(model).zip(upstream) {
        let differences = api_answers(model, upstream);
        if !differences.is_empty() {
            let manifest = serde_json::to_string_pretty(manifest)?;
            return Err(format!("{manifest}\n{differences:#?}").into());
        }
        match upstream.outcome {
            ApiOutcome::Stored { .. } => stored += 1,
            _ => refused += 1,
        }
    }
    // The generated manifests must include many of both.
    assert!(stored > MANIFESTS / 4 && refused > MANIFESTS / 8, "{stored} stored, {refused} not");
    Ok(())
}

/// Creates an HPA of each manifest and deletes it again; returns the answers to the creations.
fn answers(engine: &mut dyn Engine, manifests: &[Value]) -> Result<Vec<ApiAnswer>, Failed> {
    let path = support::repository().join("fixtures/tolerance/upper-edge-is-inclusive.yaml");
    let scenario = support::load(&path);
    let mut session = engine.open(&scenario)?;
    let mut answers = Vec::new();
    for manifest in manifests {
        let delete = Change::DeleteHpa { name: scenario.hpas[0].name.clone() };
        let apply = vec![Change::CreateHpa(manifest.clone()), delete];
        let stepped = session.step(&Step { apply, ..Step::default() })?;
        answers.extend(stepped.api.into_iter().next());
    }
    session.close()?;
    Ok(answers)
}

struct Random(ChaCha8Rng);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        (self.0.next_u64() % limit as u64) as usize
    }

    fn percent(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    fn pick<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())].clone()
    }

    /// Inserts a field with a probability, sometimes with another spelling or another value.
    fn put(&mut self, fields: &mut Map<String, Value>, name: &str, percent: usize, value: Value) {
        if !self.percent(percent) {
            return;
        }
        let name = match self.below(8) {
            0 => name.to_uppercase(),
            1 => name[..1].to_uppercase() + &name[1..],
            // Two letters that Go's case folding equates with s and k.
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

fn manifest(random: &mut Random) -> Value {
    let mut spec = Map::new();
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"});
    let no_group = json!({"apiVersion": "v1", "kind": "Deployment", "name": "web"});
    let target = if random.percent(95) { target } else { no_group };
    spec.insert("scaleTargetRef".to_owned(), target);
    let max = random.pick(&[1, 5, 10, 10, 10, 0]);
    spec.insert("maxReplicas".to_owned(), json!(max));
    if random.percent(40) {
        let min = random.pick(&[json!(1), json!(2), json!(0), json!(7), json!(null)]);
        spec.insert("minReplicas".to_owned(), min);
    }
    if random.percent(40) {
        let percent = random.pick(&[json!(50), json!(80), json!(0), json!(200), json!(null)]);
        spec.insert("targetCPUUtilizationPercentage".to_owned(), percent);
    }
    let mut annotations = Map::new();
    if random.percent(60) {
        let metrics: Vec<Value> = (0..random.below(3)).map(|_| metric(random)).collect();
        let text = text(random, &Value::Array(metrics));
        annotations.insert("autoscaling.alpha.kubernetes.io/metrics".to_owned(), json!(text));
    }
    if random.percent(50) {
        let behavior = behavior(random);
        let text = text(random, &behavior);
        annotations.insert("autoscaling.alpha.kubernetes.io/behavior".to_owned(), json!(text));
    }
    if random.percent(20) {
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

/// JSON as text, sometimes changed or invalid.
fn text(random: &mut Random, json: &Value) -> String {
    let text = json.to_string();
    match random.below(40) {
        0 => text[..text.len() - 1].to_owned(),
        1 => format!("{text} {{"),
        2 => format!(" {text}\n"),
        3 => "null".to_owned(),
        4 => String::new(),
        _ => text,
    }
}

fn quantity(random: &mut Random) -> Value {
    random.pick(&[
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

fn metric(random: &mut Random) -> Value {
    let mut source = Map::new();
    let name = random.pick(&["rps", "hits", "hits", "a/b", ""]);
    let mut selector = Map::new();
    let labels = json!({"verb": "GET"});
    random.put(&mut selector, "matchLabels", 70, labels);
    let values = random.pick(&[json!(["a"]), json!([]), json!(null)]);
    let operator = random.pick(&["In", "Exists", "Like"]);
    let expression = json!({"key": "tier", "operator": operator, "values": values});
    random.put(&mut selector, "matchExpressions", 30, json!([expression]));
    let selector = Value::Object(selector);
    let percent = random.pick(&[50, 80, 1, 0]);
    let (average, total) = (quantity(random), quantity(random));
    let (type_, field) = random.pick(&[
        ("Resource", "resource"),
        ("ContainerResource", "containerResource"),
        ("Pods", "pods"),
        ("Object", "object"),
        ("External", "external"),
    ]);
    match field {
        "resource" | "containerResource" => {
            let name = random.pick(&["cpu", "memory", "cpu", "gpu"]);
            random.put(&mut source, "name", 97, json!(name));
            let utilization = random.percent(50);
            let (by_percent, by_value) = if utilization { (95, 5) } else { (5, 95) };
            random.put(&mut source, "targetAverageUtilization", by_percent, json!(percent));
            random.put(&mut source, "targetAverageValue", by_value, average);
            if field == "containerResource" {
                random.put(&mut source, "container", 97, json!("app"));
            }
        }
        "pods" => {
            random.put(&mut source, "metricName", 97, json!(name));
            random.put(&mut source, "targetAverageValue", 97, average);
            random.put(&mut source, "selector", 30, selector);
        }
        "object" => {
            let mut target = Map::new();
            random.put(&mut target, "apiVersion", 80, json!("networking.k8s.io/v1"));
            random.put(&mut target, "kind", 97, json!("Ingress"));
            random.put(&mut target, "name", 97, json!("main"));
            random.put(&mut source, "target", 97, Value::Object(target));
            random.put(&mut source, "metricName", 97, json!(name));
            random.put(&mut source, "targetValue", 80, total);
            random.put(&mut source, "averageValue", 40, average);
            random.put(&mut source, "selector", 30, selector);
        }
        _ => {
            random.put(&mut source, "metricName", 97, json!(name));
            random.put(&mut source, "metricSelector", 30, selector);
            random.put(&mut source, "targetValue", 60, total);
            random.put(&mut source, "targetAverageValue", 50, average);
        }
    }
    random.put(&mut source, "unheardOf", 5, json!({"a": 1}));
    // Unknown types are not generated: the model cannot represent them.
    let mut metric = Map::from_iter([("type".to_owned(), json!(type_))]);
    random.put(&mut metric, field, 97, Value::Object(source));
    // A second source. The same field in two spellings is unrealistic, and is not generated.
    if random.percent(3) && field != "resource" {
        random.put(&mut metric, "resource", 100, json!({"name": "cpu"}));
    }
    Value::Object(metric)
}

fn behavior(random: &mut Random) -> Value {
    let mut behavior = Map::new();
    for direction in ["scaleUp", "scaleDown"] {
        let rules = rules(random);
        random.put(&mut behavior, direction, 65, rules);
    }
    Value::Object(behavior)
}

fn rules(random: &mut Random) -> Value {
    let mut rules = Map::new();
    let window = random.pick(&[0, 60, 300, 3600, 3601, -1]);
    random.put(&mut rules, "stabilizationWindowSeconds", 50, json!(window));
    if random.percent(40) {
        let policy = random.pick(&["Max", "Min", "Disabled"]);
        rules.insert("selectPolicy".to_owned(), json!(policy));
    }
    let policies: Vec<Value> = (0..random.pick(&[1, 1, 1, 2, 0]))
        .map(|_| {
            let kind = random.pick(&["Pods", "Percent"]);
            let mut policy = Map::from_iter([("type".to_owned(), json!(kind))]);
            let (value, period) =
                (random.pick(&[4, 100, 1, 0]), random.pick(&[15, 60, 1800, 1801]));
            random.put(&mut policy, "value", 95, json!(value));
            random.put(&mut policy, "periodSeconds", 95, json!(period));
            Value::Object(policy)
        })
        .collect();
    random.put(&mut rules, "policies", 90, Value::Array(policies));
    let tolerance = quantity(random);
    random.put(&mut rules, "tolerance", 20, tolerance);
    Value::Object(rules)
}
