//! Metrics of pods and objects, and external metrics: the HPA's queries and the entries for their
//! responses.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::{Aim, CUSTOM, Draft, Tolerances, metrics, numbers};
use kube_lockstep_scenario::resolved::{
    DescribedObject, ExternalMetric, ObjectMetric, PodsMetric, Series, Signal, UsageSource,
};

/// The value of a metric, or its series.
type ValueOrSeries = (Option<Signal>, Vec<Series>);

type Labels = BTreeMap<String, String>;

/// The objects of object metrics: apiVersion, kind, name.
const OBJECTS: [(&str, &str, &str); 5] = [
    ("networking.k8s.io/v1", "Ingress", "main"),
    ("v1", "Service", "web"),
    ("example.com/v1alpha1", "Queue", "jobs"),
    // The metrics of a namespace have their own path, unless its group is another one.
    ("v1", "Namespace", "default"),
    ("example.com/v1alpha1", "Namespace", "main"),
];

/// A metric of the pods.
pub(super) fn pods(draft: &mut Draft, tolerances: Tolerances) -> Value {
    let name = name(draft, "pods");
    let (target, aim) = average(draft, tolerances);
    draft.aims.push(aim);
    let (labels, selector) = labels_and_selector(draft);
    let source = match draft.dice.percent(30) {
        true => {
            let total = {
                let times = i64::from(draft.replicas.max(1));
                metrics::signal(draft, aim, times, 1)
            };
            let limit = draft.dice.percent(30).then(|| {
                let limit = numbers::usage(draft, aim);
                numbers::quantity(draft, limit)
            });
            UsageSource::Load { total, limit }
        }
        false => UsageSource::PerPod(metrics::signal(draft, aim, 1, 1)),
    };
    let exceptions = metrics::exceptions(draft, aim);
    draft.served.pods.push(PodsMetric { name: name.clone(), labels, source, exceptions });
    let metric = identifier(&name, selector);
    json!({ "type": "Pods", "pods": { "metric": metric, "target": target } })
}

/// A metric of an object.
pub(super) fn object(draft: &mut Draft, tolerances: Tolerances) -> Value {
    let name = name(draft, "object");
    let (target, aim, times) = value_or_average(draft, tolerances);
    let (api_version, kind, object) = draft.dice.pick(&OBJECTS);
    let (series, selector) = series(draft, aim, times);
    let group = api_version.split_once('/').map(|(group, _)| group);
    let served = DescribedObject {
        api_version: group.map(|group| format!("{group}/v1").into()),
        kind: Arc::from(kind),
        name: Arc::from(object),
    };
    let (value, series) = series;
    draft.served.objects.push(ObjectMetric { name: name.clone(), object: served, value, series });
    let metric = identifier(&name, selector);
    let described = json!({ "apiVersion": api_version, "kind": kind, "name": object });
    let source = json!({ "describedObject": described, "metric": metric, "target": target });
    json!({ "type": "Object", "object": source })
}

/// An external metric.
pub(super) fn external(draft: &mut Draft, tolerances: Tolerances) -> Value {
    let name = name(draft, "external");
    let (target, aim, times) = value_or_average(draft, tolerances);
    let (series, selector) = series(draft, aim, times);
    let (value, series) = series;
    draft.served.externals.push(ExternalMetric { name: name.clone(), value, series });
    let metric = identifier(&name, selector);
    json!({ "type": "External", "external": { "metric": metric, "target": target } })
}

/// A unique name for a metric of its kind.
fn name(draft: &mut Draft, kind: &str) -> Arc<str> {
    draft.named += 1;
    let odd = draft.dice.weighted(&[(20, ""), (1, ".per-second"), (1, ":rate")]);
    Arc::from(format!("{kind}_{}{odd}", draft.named))
}

fn average(draft: &mut Draft, tolerances: Tolerances) -> (Value, Aim) {
    let milli = draft.dice.pick(&[1, 3, 7, 10, 100, 333, 500, 1000, 10_000, 30_000, 1_000_000]);
    let value = numbers::positive(draft, milli);
    let aim = Aim { resource: CUSTOM, milli: value.milli(), requests: 0, tolerances };
    (json!({ "type": "AverageValue", "averageValue": value.to_string() }), aim)
}

/// A target of type Value or AverageValue, its aim, and the factor from the aim to the total.
fn value_or_average(draft: &mut Draft, tolerances: Tolerances) -> (Value, Aim, i64) {
    let (average, aim) = average(draft, tolerances);
    match draft.dice.percent(50) {
        true => (average, aim, i64::from(draft.replicas.max(1))),
        false => (json!({ "type": "Value", "value": average["averageValue"] }), aim, 1),
    }
}

fn identifier(name: &str, selector: Option<Value>) -> Value {
    let mut metric = Map::from_iter([("name".to_owned(), json!(name))]);
    metric.extend(selector.map(|selector| ("selector".to_owned(), selector)));
    Value::Object(metric)
}

/// Usually one series without labels; otherwise several, with a selector for some, one or none.
fn series(draft: &mut Draft, aim: Aim, times: i64) -> (ValueOrSeries, Option<Value>) {
    let count = draft.dice.weighted(&[(24, 1), (3, 2), (2, 3)]);
    if count == 1 {
        let (labels, selector) = labels_and_selector(draft);
        let value = metrics::signal(draft, aim, times, 1);
        let only = match labels.is_empty() {
            true => (Some(value), Vec::new()),
            false => (None, vec![Series { labels, value }]),
        };
        return (only, selector);
    }
    let series = ["a", "b", "c"].into_iter().take(count).map(|queue| {
        let labels = Labels::from([("queue".to_owned(), queue.to_owned())]);
        Series { labels, value: metrics::signal(draft, aim, times, count as i64) }
    });
    let series = series.collect();
    let selector = draft.dice.weighted(&[
        (4, None),
        (4, Some(json!({ "matchLabels": { "queue": "a" } }))),
        (2, Some(in_("queue", "In", &["a", "b"]))),
        (1, Some(in_("queue", "NotIn", &["a"]))),
        (1, Some(json!({ "matchLabels": { "queue": "none" } }))),
    ]);
    ((None, series), selector)
}

fn labels_and_selector(draft: &mut Draft) -> (Labels, Option<Value>) {
    if draft.dice.percent(80) {
        return (Labels::new(), None);
    }
    let labels = Labels::from([("verb".to_owned(), "GET".to_owned())]);
    let selector = draft.dice.pick(&[
        json!({ "matchLabels": { "verb": "GET" } }),
        json!({ "matchLabels": { "verb": "GET" }, "matchExpressions": [
            { "key": "path", "operator": "DoesNotExist" },
        ] }),
        in_("verb", "In", &["POST", "GET"]),
        in_("verb", "NotIn", &["PUT"]),
        in_("verb", "Exists", &[]),
        // The controller can't parse these.
        in_("verb", "In", &[]),
        in_("verb", "Exists", &["GET"]),
        json!({ "matchLabels": { "verb": "POST" } }),
        json!({}),
    ]);
    (labels, Some(selector))
}

fn in_(key: &str, operator: &str, values: &[&str]) -> Value {
    let mut requirement = Map::new();
    requirement.insert("key".to_owned(), json!(key));
    requirement.insert("operator".to_owned(), json!(operator));
    if !values.is_empty() {
        requirement.insert("values".to_owned(), json!(values));
    }
    json!({ "matchExpressions": [requirement] })
}
