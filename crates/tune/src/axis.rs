//! The axes of the grid: fields of autoscalers, each with the values to try.

use std::str::FromStr;

use serde_json::{Value, json};

use kube_autoscaler_models::quantity::{Format, Quantity};
use kube_lockstep_manifests::AutoscalerKind;
use kube_lockstep_manifests::field::{FieldPath, split_at_commas};
use kube_lockstep_scenario as scenario;

/// A field of an autoscaler, and the values to try in addition to its current one.
#[derive(Clone, PartialEq, Debug)]
pub struct Vary {
    /// The field.
    pub path: FieldPath,
    /// The values.
    pub values: Vec<Value>,
}

/// The most values of a range.
const MOST_VALUES: i64 = 1000;

/// `spec.maxReplicas=10..40:5`, `spec.behavior.scaleDown.stabilizationWindowSeconds=0,60,300`.
impl FromStr for Vary {
    type Err = String;

    fn from_str(text: &str) -> Result<Vary, String> {
        let text = text.trim();
        let (path, values) = text.split_once('=').ok_or_else(|| {
            format!(
                "{text}: expected PATH=FIRST..LAST[:STEP] or PATH=VALUE,VALUE, for example \
                 spec.maxReplicas=10..40:5"
            )
        })?;
        let path = FieldPath::parse(path).map_err(|why| format!("{text}: {why}"))?;
        let values = match values.split_once("..") {
            Some((first, rest)) => range(first, rest).map_err(|why| format!("{text}: {why}"))?,
            None => {
                let values = split_at_commas(values).into_iter().map(yaml);
                values.collect::<Result<_, _>>().map_err(|why| format!("{text}: {why}"))?
            }
        };
        Ok(Vary { path, values })
    }
}

/// A value in YAML.
fn yaml(text: &str) -> Result<Value, String> {
    let documents = scenario::manifests(text.trim());
    let mut documents = documents.map_err(|problem| problem.what)?;
    documents.pop().ok_or_else(|| "expected a value".to_owned())
}

/// The values of `first..last` or `first..last:step`: numbers or quantities.
fn range(first: &str, rest: &str) -> Result<Vec<Value>, String> {
    let (last, step) = rest.split_once(':').map_or((rest, None), |(last, step)| (last, Some(step)));
    let quantity = |text: &str| {
        let text = text.trim();
        text.parse::<Quantity>()
            .map_err(|_| format!("expected a number or quantity, found {text:?}"))
    };
    let (low, high) = (quantity(first)?, quantity(last)?);
    let all = [Some(first), Some(last), step];
    let are = |is: fn(&str) -> bool| all.iter().flatten().all(|text| is(text.trim()));
    let are_numbers = are(|text| text.parse::<i64>().is_ok());
    let are_decimals = are(|text| text.parse::<f64>().is_ok());
    let step = match step {
        Some(step) => quantity(step)?.milli(),
        None if are_numbers => 1000,
        None => return Err(format!("a range of quantities requires a step: {last}:STEP")),
    };
    if step <= 0 || low.milli() > high.milli() {
        return Err("expected FIRST..LAST, with FIRST not above LAST and a step above 0".to_owned());
    }
    let count = (high.milli() - low.milli()) / step + 1;
    if count > MOST_VALUES {
        return Err(format!("the range has {count} values, more than {MOST_VALUES}"));
    }
    let value = |index: i64| {
        let milli = low.milli() + index * step;
        match are_numbers {
            true => json!(milli / 1000),
            false if are_decimals => json!(milli as f64 / 1000.0),
            false => json!(Quantity::from_milli(milli, format_of(first)).to_string()),
        }
    };
    Ok((0..count).map(value).collect())
}

/// The format of a quantity: binary if it has a binary suffix, such as `Mi`.
fn format_of(quantity: &str) -> Format {
    if quantity.trim().ends_with('i') { Format::BinarySI } else { Format::DecimalSI }
}

/// A field with all values to try, among them the current one.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Axis {
    /// The field.
    pub(crate) path: FieldPath,
    /// The values. Null: the field is not set.
    pub(crate) values: Vec<Value>,
    /// The index of the current value.
    pub(crate) current: usize,
}

impl Axis {
    /// An axis with the current value, which an HPA has, and with others. Numbers are in order.
    fn new(path: FieldPath, hpa: &Value, values: Vec<Value>) -> Axis {
        let current = path.get(hpa).cloned().unwrap_or(Value::Null);
        let mut all = vec![current.clone()];
        for value in values {
            if !all.iter().any(|known| is_same(known, &value)) {
                all.push(value);
            }
        }
        let amounts: Option<Vec<i64>> = all.iter().map(amount).collect();
        if let Some(amounts) = amounts {
            let mut order: Vec<usize> = (0..all.len()).collect();
            order.sort_by_key(|index| amounts[*index]);
            all = order.into_iter().map(|index| all[index].clone()).collect();
        }
        let index = all.iter().position(|value| *value == current).unwrap_or_default();
        Axis { path, values: all, current: index }
    }
}

fn is_same(one: &Value, other: &Value) -> bool {
    match (amount(one), amount(other)) {
        (Some(one), Some(other)) => one == other,
        _ => one == other,
    }
}

/// A number or quantity in thousandths.
fn amount(value: &Value) -> Option<i64> {
    match value {
        Value::Number(number) => Some((number.as_f64()? * 1000.0).round() as i64),
        Value::String(text) => text.parse().ok().map(|quantity: Quantity| quantity.milli()),
        _ => None,
    }
}

/// What the default axes depend on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Defaults {
    /// The most replicas that the load needs at the current targets.
    pub(crate) needed: i32,
    /// True if the release has `behavior`.
    pub(crate) has_behavior: bool,
    /// True if `behavior` has a tolerance, and the gate is on.
    pub(crate) has_tolerance: bool,
}

/// An autoscaler whose fields are varied.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Owner<'o> {
    /// Its kind, if there are several kinds.
    pub(crate) kind: Option<AutoscalerKind>,
    /// Its name, if there are several of its kind.
    pub(crate) name: Option<&'o str>,
}

impl Owner<'_> {
    /// The path of a field of this autoscaler.
    fn path(&self, path: &FieldPath) -> FieldPath {
        let mut path = path.clone();
        path.name = self.name.map(str::to_owned);
        path.kind = self.kind.filter(|_| path.flag().is_none());
        path
    }
}

/// The axes of the given fields of an autoscaler. The values of the same field are one axis.
///
/// # Errors
/// If a field does not exist among the manifests.
pub(crate) fn given_axes(
    tree: &mut Value,
    owner: Owner<'_>,
    given: &[Vary],
) -> Result<Vec<Axis>, String> {
    let mut fields: Vec<Vary> = Vec::new();
    for Vary { path, values } in given {
        let path = owner.path(path);
        match fields.iter_mut().find(|field| field.path == path) {
            Some(field) => field.values.extend(values.iter().cloned()),
            None => fields.push(Vary { path, values: values.clone() }),
        }
    }
    let axis = |Vary { path, values }: Vary| {
        let object = path.find(tree)?;
        Ok(Axis::new(path, object, values))
    };
    fields.into_iter().map(axis).collect()
}

/// The axes of the fields of an HPA that are varied by default.
pub(crate) fn default_axes(hpa: &Value, owner: Owner<'_>, defaults: Defaults) -> Vec<Axis> {
    axes_of(hpa, owner, default_values(hpa, defaults))
}

/// The axes of the fields of a VPA that are varied by default: the amounts that it may set, around
/// those that it recommends for each container.
pub(crate) fn default_axes_of_vpa(
    vpa: &Value,
    owner: Owner<'_>,
    recommended: &[Recommended],
) -> Vec<Axis> {
    let policies = vpa["spec"]["resourcePolicy"]["containerPolicies"].as_array();
    let policies = policies.map_or(&[][..], Vec::as_slice);
    let mut fields: Vec<(String, Vec<Value>)> = Vec::new();
    for (index, Recommended { container, cpu, memory }) in recommended.iter().enumerate() {
        let is = |name: &str| policies.iter().position(|it| it["containerName"] == name);
        // Without policies, each container gets one:
        // `FieldPath::add_policies`.
        let policy = match policies.is_empty() {
            true => Some(index),
            false => is(container).or_else(|| is("*")),
        };
        let Some(policy) = policy else { continue };
        let amounts = [("cpu", *cpu, Format::DecimalSI), ("memory", *memory, Format::BinarySI)];
        for (resource, amount, format) in amounts {
            let Some(amount) = amount.filter(|amount| *amount > 0) else { continue };
            for (field, percents) in [("minAllowed", MINIMUMS), ("maxAllowed", MAXIMUMS)] {
                let path = format!("{POLICIES}{policy}.{field}.{resource}");
                let values = percents.iter().filter_map(|it| part_of(amount, *it, format));
                match fields.iter_mut().find(|(known, _)| *known == path) {
                    Some((_, known)) => known.extend(values),
                    None => fields.push((path, values.collect())),
                }
            }
        }
    }
    axes_of(vpa, owner, fields)
}

/// The largest amounts that a VPA recommends for a container, in thousandths.
#[derive(Clone, Debug)]
pub(crate) struct Recommended {
    pub(crate) container: String,
    pub(crate) cpu: Option<i64>,
    pub(crate) memory: Option<i64>,
}

/// The values of `minAllowed` in percent of the recommendation.
const MINIMUMS: &[i64] = &[50, 75, 100, 125, 150];

/// The values of `maxAllowed` in percent of the recommendation.
const MAXIMUMS: &[i64] = &[50, 75, 90, 110];

/// The policies of containers in the path of a field of a VPA.
const POLICIES: &str = "spec.resourcePolicy.containerPolicies.";

/// The axes of fields of an autoscaler.
fn axes_of(object: &Value, owner: Owner<'_>, fields: Vec<(String, Vec<Value>)>) -> Vec<Axis> {
    let own = |path: String| Some(owner.path(&FieldPath::parse(&path).ok()?));
    let axes =
        fields.into_iter().filter_map(|(path, values)| Some(Axis::new(own(path)?, object, values)));
    axes.filter(|axis| axis.values.len() > 1).collect()
}

/// The fields that are varied by default, with their values.
fn default_values(hpa: &Value, defaults: Defaults) -> Vec<(String, Vec<Value>)> {
    let spec = &hpa["spec"];
    let mut all = targets(spec);
    all.extend(default_target(hpa));
    let (least, most) = (spec["minReplicas"].as_i64().unwrap_or(1), &spec["maxReplicas"]);
    let most = most.as_i64().unwrap_or(1);
    let needed = i64::from(defaults.needed);
    // A minReplicas below 2 also affects availability, so it is not proposed.
    let lowest = least.min(2);
    let part = |percent: i64| (needed * percent + 99) / 100;
    let minimums = [2, 3, 4, 6, part(25), part(50), part(75)];
    let minimums = minimums.into_iter().filter(|it| (lowest..=needed.max(least)).contains(it));
    all.push(("spec.minReplicas".to_owned(), minimums.map(Value::from).collect()));
    let maximums = [part(100), part(125), part(150), part(200)];
    let maximums = maximums.into_iter().filter(|it| *it >= least.max(1) && *it != most);
    all.push(("spec.maxReplicas".to_owned(), maximums.map(Value::from).collect()));
    if defaults.has_behavior && has_behavior(hpa) {
        all.extend(behavior(needed, defaults.has_tolerance));
    }
    all
}

/// Returns true if the version of the manifest has `behavior`.
fn has_behavior(hpa: &Value) -> bool {
    let version = hpa["apiVersion"].as_str().unwrap_or_default();
    matches!(version, "autoscaling/v2" | "autoscaling/v2beta2")
}

/// The targets of the metrics, in each version of the API.
fn targets(spec: &Value) -> Vec<(String, Vec<Value>)> {
    let mut all = Vec::new();
    let mut add = |path: String, value: &Value| match value {
        Value::Number(_) if path.ends_with("tilization") || path.ends_with("Percentage") => {
            all.push((path, (40..=95).step_by(5).map(Value::from).collect()));
        }
        // A quantity can be written without quotes.
        Value::Number(quantity) => all.push((path, around(&quantity.to_string()))),
        Value::String(quantity) => all.push((path, around(quantity))),
        _ => {}
    };
    add("spec.targetCPUUtilizationPercentage".to_owned(), &spec["targetCPUUtilizationPercentage"]);
    for (index, metric) in spec["metrics"].as_array().into_iter().flatten().enumerate() {
        for source in ["resource", "containerResource", "pods", "object", "external"] {
            let of_version = ["target", ""].map(|field| match field {
                "" => (String::new(), &metric[source]),
                field => (format!(".{field}"), &metric[source][field]),
            });
            for (field, target) in of_version {
                for name in [
                    "averageUtilization",
                    "averageValue",
                    "value",
                    "targetAverageUtilization",
                    "targetAverageValue",
                    "targetValue",
                ] {
                    add(format!("spec.metrics.{index}.{source}{field}.{name}"), &target[name]);
                }
            }
        }
    }
    all
}

/// The target of 80% of the CPU request, which an HPA without metrics has.
///
/// Upstream: pkg/apis/autoscaling/v2/defaults.go, `SetDefaults_HorizontalPodAutoscaler`
fn default_target(hpa: &Value) -> Option<(String, Vec<Value>)> {
    let (spec, version) = (&hpa["spec"], hpa["apiVersion"].as_str().unwrap_or_default());
    let has_metrics = spec["metrics"].as_array().is_some_and(|metrics| !metrics.is_empty());
    let percents = (40..=95).step_by(5).filter(|percent| *percent != 80);
    if matches!(version, "autoscaling/v2" | "autoscaling/v2beta2") && !has_metrics {
        let metric = |percent: i64| {
            let target = json!({ "type": "Utilization", "averageUtilization": percent });
            json!([{ "type": "Resource", "resource": { "name": "cpu", "target": target } }])
        };
        return Some(("spec.metrics".to_owned(), percents.map(metric).collect()));
    }
    // In v1, an annotation has the other metrics.
    let (field, annotations) = ("targetCPUUtilizationPercentage", &hpa["metadata"]["annotations"]);
    let is_default = version == "autoscaling/v1"
        && spec[field].is_null()
        && annotations["autoscaling.alpha.kubernetes.io/metrics"].is_null();
    is_default.then(|| (format!("spec.{field}"), percents.map(Value::from).collect()))
}

/// Values between 60 % and 150 % of a quantity.
fn around(quantity: &str) -> Vec<Value> {
    let Ok(current) = quantity.parse::<Quantity>() else { return Vec::new() };
    let format = format_of(quantity);
    let part = |percent: i64| part_of(current.milli(), percent, format);
    (60..=150).step_by(10).filter_map(part).collect()
}

/// A part of an amount in thousandths, with two digits. None: it is 0 or too large.
fn part_of(milli: i64, percent: i64, format: Format) -> Option<Value> {
    let unit: i64 = if format == Format::BinarySI { 1000 * 1024 * 1024 } else { 1 };
    let part = i128::from(milli) * i128::from(percent) / 100 / i128::from(unit);
    let mut rounding = 1;
    while part / rounding >= 100 {
        rounding *= 10;
    }
    let part = i64::try_from(part / rounding * rounding * i128::from(unit)).ok();
    let part = part.filter(|part| *part > 0)?;
    Some(json!(Quantity::from_milli(part, format).to_string()))
}

/// The fields of `behavior`.
fn behavior(needed: i64, has_tolerance: bool) -> Vec<(String, Vec<Value>)> {
    let seconds = [0, 60, 120, 300, 600, 900].map(Value::from).to_vec();
    let policy = |kind: &str, value: i64, seconds: i64| {
        let policy = json!({ "type": kind, "value": value, "periodSeconds": seconds });
        Value::Array(vec![policy])
    };
    let up = vec![
        policy("Pods", (needed / 8).max(2), 60),
        policy("Pods", (needed / 4).max(4), 60),
        policy("Percent", 50, 60),
        // The default of the API server, and without a limit in practice.
        json!([
            { "type": "Pods", "value": 4, "periodSeconds": 15 },
            { "type": "Percent", "value": 100, "periodSeconds": 15 },
        ]),
        policy("Percent", 900, 15),
    ];
    let down =
        vec![policy("Percent", 10, 60), policy("Percent", 50, 60), policy("Percent", 100, 15)];
    let mut fields = vec![
        ("spec.behavior.scaleDown.stabilizationWindowSeconds", seconds),
        ("spec.behavior.scaleUp.policies", up),
        ("spec.behavior.scaleDown.policies", down),
    ];
    if has_tolerance {
        let tolerances = ["0", "20m", "50m", "100m"].map(Value::from).to_vec();
        fields.push(("spec.behavior.scaleUp.tolerance", tolerances));
    }
    fields.into_iter().map(|(path, values)| (path.to_owned(), values)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str) -> Value {
        text.parse::<Vary>().expect(text).values.into()
    }

    #[test]
    fn values_are_ranges_or_lists() {
        assert_eq!(values("spec.maxReplicas=10..30:10"), json!([10, 20, 30]));
        assert_eq!(values("spec.minReplicas=1..3"), json!([1, 2, 3]));
        assert_eq!(values("spec.maxReplicas=10..29:10"), json!([10, 20]));
        assert_eq!(
            values("spec.a.averageValue=100m..1:300m"),
            json!(["100m", "400m", "700m", "1"])
        );
        assert_eq!(values("spec.a.averageValue=1Gi..2Gi:512Mi"), json!(["1Gi", "1536Mi", "2Gi"]));
        let flag = values("recommender.flags.target-cpu-percentile=0.5..0.9:0.2");
        assert_eq!(flag, json!([0.5, 0.7, 0.9]), "numbers, as flags require");
        assert_eq!(values("spec.a=0,60,300"), json!([0, 60, 300]));
        let policies = values("spec.a=[{type: Pods, value: 4}],null");
        assert_eq!(policies, json!([[{ "type": "Pods", "value": 4 }], null]));
    }

    #[test]
    fn errors_name_the_mistake() {
        let error = |text: &str| text.parse::<Vary>().expect_err("a mistake");
        assert!(error("spec.maxReplicas").contains("expected PATH=FIRST..LAST"));
        assert!(error("maxReplicas=1..2").contains("the path must begin with `spec.`"));
        assert!(error("spec.a=9..1").contains("expected FIRST..LAST, with FIRST not above LAST"));
        assert!(error("spec.a=1..9:0").contains("a step above 0"));
        assert!(error("spec.a=100m..1").contains("a range of quantities requires a step"));
        assert!(error("spec.a=1..x").contains("expected a number or quantity, found \"x\""));
        assert!(error("spec.a=0..100000").contains("has 100001 values"));
        assert!(error("spec.a=[1").contains("not valid YAML"));
    }

    const ALONE: Owner<'static> = Owner { kind: None, name: None };

    const NEEDED: Defaults = Defaults { needed: 20, has_behavior: true, has_tolerance: false };

    #[test]
    fn the_current_value_is_among_the_values_in_order() {
        let hpa = json!({ "spec": { "maxReplicas": 12 } });
        let vary = ["spec.maxReplicas=10..30:10".parse().expect("values")];
        let axes = given_axes(&mut json!({ "hpa": hpa }), ALONE, &vary).expect("axes");
        assert_eq!(Value::from(axes[0].values.clone()), json!([10, 12, 20, 30]));
        assert_eq!(axes[0].current, 1);
    }

    #[test]
    fn the_default_target_is_varied() {
        let first = |version: &str, spec: Value| {
            let hpa = json!({ "apiVersion": version, "spec": spec });
            let axes = default_axes(&hpa, ALONE, NEEDED);
            (axes[0].path.to_string(), axes[0].values.len())
        };
        let most = || json!({ "maxReplicas": 10 });
        assert_eq!(first("autoscaling/v2", most()), ("spec.metrics".to_owned(), 12));
        let percentage = "spec.targetCPUUtilizationPercentage".to_owned();
        assert_eq!(first("autoscaling/v1", most()), (percentage, 12));
        let others = json!({ "maxReplicas": 10, "metrics": [{ "type": "Pods" }] });
        assert_eq!(first("autoscaling/v2", others).0, "spec.minReplicas");
    }

    #[test]
    fn default_axes_follow_the_version_of_the_manifest() {
        let paths = |hpa: &Value| -> Vec<String> {
            default_axes(hpa, ALONE, NEEDED).iter().map(|axis| axis.path.to_string()).collect()
        };
        let hpa = json!({
            "apiVersion": "autoscaling/v1",
            "spec": { "maxReplicas": 10, "targetCPUUtilizationPercentage": 70 },
        });
        let v1 = ["spec.targetCPUUtilizationPercentage", "spec.minReplicas", "spec.maxReplicas"];
        assert_eq!(paths(&hpa), v1);
        let target = json!({ "type": "AverageValue", "averageValue": "300" });
        let hpa = json!({
            "apiVersion": "autoscaling/v2",
            "spec": {
                "maxReplicas": 10,
                "metrics": [{ "type": "Pods", "pods": { "target": target } }],
            },
        });
        let v2 = [
            "spec.metrics.0.pods.target.averageValue",
            "spec.minReplicas",
            "spec.maxReplicas",
            "spec.behavior.scaleDown.stabilizationWindowSeconds",
            "spec.behavior.scaleUp.policies",
            "spec.behavior.scaleDown.policies",
        ];
        assert_eq!(paths(&hpa), v2);
        let v2beta1 = json!({
            "apiVersion": "autoscaling/v2beta1",
            "spec": { "maxReplicas": 10, "metrics": [{ "pods": { "targetAverageValue": "300" } }] },
        });
        assert_eq!(paths(&v2beta1)[0], "spec.metrics.0.pods.targetAverageValue");
    }

    #[test]
    fn quantities_are_varied_in_round_numbers() {
        let values = |quantity: &str| Value::from(around(quantity));
        assert_eq!(values("300")[0], json!("180"));
        assert_eq!(values("400Mi")[0], json!("240Mi"));
        assert_eq!(values("1Gi")[9], json!("1500Mi"));
        assert_eq!(values("250m")[1], json!("170m"));
        assert_eq!(values("many"), json!([]));
    }
}
