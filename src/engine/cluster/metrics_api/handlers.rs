//! What the fake metrics API answers to queries of metrics: what the world tells.
//!
//! Each query is told to the one who plays in the namespace: that is how a reconcile is seen.

use crate::engine::cluster::metrics_api::response::error;
use crate::engine::cluster::metrics_api::response::failure;
use crate::engine::cluster::metrics_api::response::in_short;
use crate::engine::cluster::metrics_api::response::not_found;
use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, Query, State};
use axum::http::HeaderMap;
use axum::response::Response;
use axum::routing::get;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::engine::cluster::metrics_api::groups::resource_of;
use crate::engine::cluster::metrics_api::json as body;
use crate::engine::cluster::metrics_api::state::{Metrics, ServedNamespace};
use crate::engine::cluster::observe::action::ObservedAction;
use crate::model::api::{PodMetrics, Series, SeriesAnswer};
use crate::model::quantity::Quantity;
use crate::model::selector::Selector;

/// An answer that is no success; on the heap, since it is rare and large.
type Refused = Box<Response>;
type Shared = State<Arc<Metrics>>;
type Params = Query<BTreeMap<String, String>>;

/// No more values than this are told in short.
const FEW: usize = 6;

pub(crate) fn routes(mut router: Router<Arc<Metrics>>) -> Router<Arc<Metrics>> {
    let of_resources = "/apis/metrics.k8s.io/v1beta1";
    let of_external = "/apis/external.metrics.k8s.io/v1beta1";
    router = router
        .route(&format!("{of_resources}/nodes"), get(nodes))
        .route(&format!("{of_resources}/nodes/{{node}}"), get(nodes))
        .route(&format!("{of_resources}/pods"), get(all_pods))
        .route(&format!("{of_resources}/namespaces/{{namespace}}/pods"), get(pods))
        .route(&format!("{of_resources}/namespaces/{{namespace}}/pods/{{pod}}"), get(pod))
        .route(&format!("{of_external}/namespaces/{{namespace}}/{{metric}}"), get(external));
    for version in ["v1beta1", "v1beta2"] {
        let path = format!("/apis/custom.metrics.k8s.io/{version}/namespaces/{{namespace}}");
        let of_namespace = async move |metrics: Shared,
                                       Path((namespace, metric)): Path<(String, String)>,
                                       params: Params| {
            let of = Of { version, resource: "namespaces", name: &namespace, metric: &metric };
            object(&metrics, &namespace, &of, &params)
        };
        let of_object = async move |metrics: Shared, path: Path<[String; 4]>, params: Params| {
            let [namespace, resource, name, metric] = &path.0;
            let of = Of { version, resource, name, metric };
            match &**resource {
                "pods" => pods_metric(&metrics, namespace, &of, &params),
                _ => object(&metrics, namespace, &of, &params),
            }
        };
        router = router
            .route(&format!("{path}/metrics/{{metric}}"), get(of_namespace))
            .route(&format!("{path}/{{resource}}/{{name}}/{{metric}}"), get(of_object));
    }
    router
}

/// What a custom metric is asked of.
struct Of<'a> {
    version: &'static str,
    resource: &'a str,
    name: &'a str,
    metric: &'a str,
}

/// Nodes have no metrics here, and whoever asks for them should not wait until they have.
async fn nodes() -> Response {
    not_found(
        "kube-lockstep serves the metrics of scenarios, which have pods and no nodes; \
         `kubectl top pods` works",
    )
}

async fn all_pods(metrics: Shared, headers: HeaderMap, params: Params) -> Response {
    let (mut namespaces, at) = (metrics.lock(), Timestamp::now());
    let mut items = Vec::new();
    let mut all: Vec<(&String, &mut ServedNamespace)> = namespaces.iter_mut().collect();
    all.sort_by_key(|(name, _)| *name);
    for (namespace, served) in all {
        let (served, before) = (served.now(), items.len());
        match selected(served, namespace, &params) {
            Ok(found) => items.extend(found.map(|pod| pod_json(served, namespace, pod))),
            Err(refused) => return *refused,
        }
        if metrics.is_private() {
            // Whose reconcile this is nobody can tell: it may be of each of them.
            let selector = params.get("labelSelector").cloned().unwrap_or_default();
            let entry = json!({ "selector": selector, "items": items.len() - before });
            served.tell(asked(at, "listPodMetrics", entry));
        }
    }
    pods_answer(items, &headers)
}

/// Pods as a list, or as the table that kubectl prints.
fn pods_answer(items: Vec<Value>, headers: &HeaderMap) -> Response {
    let short = match items.len() {
        0 => "no pods".to_owned(),
        many => format!("{}, {}", count(many, "pod"), body::total(&items)),
    };
    let answer = if wants_table(headers) { body::table(&items) } else { body::pod_list(&items) };
    in_short(answer, short)
}

fn wants_table(headers: &HeaderMap) -> bool {
    let accept = headers.get("accept").and_then(|it| it.to_str().ok()).unwrap_or_default();
    accept.contains("as=Table")
}

fn count(many: usize, what: &str) -> String {
    if many == 1 { format!("1 {what}") } else { format!("{many} {what}s") }
}

fn values<'a>(values: impl ExactSizeIterator<Item = &'a Quantity>) -> String {
    let many = values.len();
    let mut few: Vec<String> = values.take(FEW).map(ToString::to_string).collect();
    if many > FEW {
        few.push("…".to_owned());
    }
    match many {
        0 => "no values".to_owned(),
        _ => format!("{}: {}", count(many, "value"), few.join(", ")),
    }
}

/// The samples of a namespace that a request selects; an error of the API is none here.
fn selected<'a>(
    served: &'a ServedNamespace,
    namespace: &str,
    params: &Params,
) -> Result<impl Iterator<Item = &'a PodMetrics> + use<'a>, Refused> {
    let selector = selector(params, "labelSelector")?;
    let fields = Fields::of(params, namespace)?;
    let pods = served.cluster.pod_metrics().unwrap_or_default();
    let wanted = move |pod: &&PodMetrics| {
        selector.matches(&pod.labels) && fields.matches(served.name(&pod.name))
    };
    Ok(pods.iter().filter(wanted))
}

/// A field selector, as far as there are fields.
struct Fields {
    /// Names that are wanted, or are not.
    names: Vec<(String, bool)>,
    nothing: bool,
}

impl Fields {
    fn of(params: &Params, namespace: &str) -> Result<Fields, Refused> {
        let text = params.get("fieldSelector").map_or("", String::as_str);
        let mut fields = Fields { names: Vec::new(), nothing: false };
        for term in text.split(',').filter(|term| !term.is_empty()) {
            let (field, value, same) = match term.split_once("!=") {
                Some((field, value)) => (field, value, false),
                None => {
                    let (field, value) = term.split_once('=').unwrap_or((term, ""));
                    (field, value.trim_start_matches('='), true)
                }
            };
            match field {
                "metadata.name" => fields.names.push((value.to_owned(), same)),
                "metadata.namespace" => fields.nothing |= (value == namespace) != same,
                _ => {
                    let why = format!("field label not supported: {field}");
                    return Err(Box::new(failure(&error(400, "BadRequest", &why))));
                }
            }
        }
        Ok(fields)
    }

    fn matches(&self, name: &str) -> bool {
        !self.nothing && self.names.iter().all(|(other, same)| (name == other) == *same)
    }
}

fn selector(params: &Params, name: &str) -> Result<Selector, Refused> {
    let text = params.get(name).map_or("", String::as_str);
    Selector::parse(text).map_err(|why| {
        let why = format!("unable to parse requirement: {why}");
        Box::new(failure(&error(400, "BadRequest", &why)))
    })
}

fn pod_json(served: &ServedNamespace, namespace: &str, pod: &PodMetrics) -> Value {
    body::pod(namespace, served.name(&pod.name), &served.timestamp(pod.timestamp), pod)
}

async fn pods(
    metrics: Shared,
    Path(namespace): Path<String>,
    headers: HeaderMap,
    params: Params,
) -> Response {
    let mut namespaces = metrics.lock();
    let Some(served) = namespaces.get_mut(&namespace).map(ServedNamespace::now) else {
        return pods_answer(Vec::new(), &headers);
    };
    let (selector, at) =
        (params.get("labelSelector").cloned().unwrap_or_default(), Timestamp::now());
    let tell = |answer: Value| {
        let mut entry = json!({ "selector": selector });
        merge(&mut entry, answer);
        served.tell(asked(at, "listPodMetrics", entry));
    };
    if let Err(fault) = served.cluster.pod_metrics() {
        tell(json!({ "error": fault.message }));
        return failure(fault);
    }
    match selected(served, &namespace, &params) {
        Ok(found) => {
            let items: Vec<Value> = found.map(|pod| pod_json(served, &namespace, pod)).collect();
            tell(json!({ "items": items.len() }));
            pods_answer(items, &headers)
        }
        Err(refused) => *refused,
    }
}

/// Whether that is what a query is called in the log.
pub(crate) fn is_query(what: &str) -> bool {
    ["listPodMetrics", "podsMetric", "objectMetric", "externalMetric"].contains(&what)
}

/// A query, for the log.
fn asked(at: Timestamp, what: &'static str, entry: Value) -> ObservedAction {
    ObservedAction { at, done: Timestamp::now(), what, entry, by: String::new() }
}

fn merge(entry: &mut Value, answer: Value) {
    if let (Value::Object(entry), Value::Object(answer)) = (entry, answer) {
        entry.extend(answer);
    }
}

async fn pod(
    metrics: Shared,
    Path((namespace, name)): Path<(String, String)>,
    headers: HeaderMap,
) -> Response {
    let (mut namespaces, at) = (metrics.lock(), Timestamp::now());
    let served = namespaces.get_mut(&namespace).map(ServedNamespace::now);
    let fault = served.and_then(|served| served.cluster.pod_metrics().err());
    let found = served.and_then(|served| {
        let pods = served.cluster.pod_metrics().unwrap_or_default();
        let pod = pods.iter().find(|pod| **served.name(&pod.name) == *name)?;
        Some(pod_json(served, &namespace, pod))
    });
    if let Some(served) = served.filter(|_| metrics.is_private()) {
        let items = usize::from(found.is_some());
        let mut entry = json!({ "selector": format!("metadata.name={name}"), "items": items });
        if let Some(fault) = fault {
            entry["error"] = fault.message.to_string().into();
        }
        served.tell(asked(at, "listPodMetrics", entry));
    }
    if let Some(fault) = fault {
        return failure(fault);
    }
    match found {
        Some(pod) => {
            let items = [pod];
            let short = format!("1 pod, {}", body::total(&items));
            let table = wants_table(&headers).then(|| body::table(&items));
            let [pod] = items;
            in_short(table.unwrap_or(pod), short)
        }
        None => not_found(&format!("pods.metrics.k8s.io \"{namespace}/{name}\" not found")),
    }
}

/// A custom metric of pods: of those that are selected, or of one by its name.
fn pods_metric(metrics: &Metrics, namespace: &str, of: &Of<'_>, params: &Params) -> Response {
    let mut namespaces = metrics.lock();
    let Some(served) = namespaces.get_mut(namespace).map(ServedNamespace::now) else {
        return not_found(&missing(of.metric, Some("pods")));
    };
    let at = Timestamp::now();
    let text = |name: &str| params.get(name).cloned().unwrap_or_default();
    let tell = |answer: Value| {
        let mut entry = json!({
            "metric": of.metric,
            "selector": text("labelSelector"),
            "metricSelector": text("metricLabelSelector"),
        });
        merge(&mut entry, answer);
        served.tell(asked(at, "podsMetric", entry));
    };
    let known = served.cluster.custom_metrics().pods.get(of.metric);
    let fault = match known {
        None => Some(error(404, "NotFound", &missing(of.metric, Some("pods")))),
        Some(known) => known.error.clone(),
    };
    if let Some(fault) = fault {
        tell(json!({ "error": fault.message }));
        return failure(&fault);
    }
    let selectors = selector(params, "labelSelector")
        .and_then(|pods| Ok((pods, selector(params, "metricLabelSelector")?)));
    let (of_pods, of_series) = match selectors {
        Ok(selectors) => selectors,
        Err(refused) => return *refused,
    };
    let series = known.filter(|known| of_series.matches(&known.labels));
    let all = series.into_iter().flat_map(|known| &known.values);
    let wanted: Vec<_> = all
        .filter(|value| of_pods.matches(&value.labels))
        .filter(|value| of.name == "*" || **served.name(&value.name) == *of.name)
        .collect();
    let items: Vec<Value> = wanted
        .iter()
        .map(|value| {
            let object = json!({
                "kind": "Pod",
                "namespace": namespace,
                "name": served.name(&value.name),
                "apiVersion": "/v1",
            });
            let at = served.timestamp(value.timestamp);
            body::value(of.version, &object, of.metric, (&at, value.window, &value.value))
        })
        .collect();
    if items.is_empty() && of.name != "*" {
        return not_found(&missing(of.metric, Some(&format!("pods {}", of.name))));
    }
    tell(json!({ "items": items.len() }));
    let short = values(wanted.iter().map(|value| &value.value));
    in_short(body::value_list(of.version, &items), short)
}

/// A custom metric of one object.
fn object(metrics: &Metrics, namespace: &str, of: &Of<'_>, params: &Params) -> Response {
    let mut namespaces = metrics.lock();
    let served = namespaces.get_mut(namespace).map(ServedNamespace::now);
    let objects = served.map(|served| &served.cluster.custom_metrics().objects);
    // A namespace is asked for by its name in the cluster.
    let wanted = match (of.resource, served) {
        ("namespaces", Some(served)) => &*served.called,
        _ => of.name,
    };
    let known = objects.into_iter().flatten().find(|((metric, kind, name), _)| {
        **metric == *of.metric && **name == *wanted && resource_of(kind) == of.resource
    });
    let Some((served, ((_, kind, _), answer))) = served.zip(known) else {
        let what = format!("{} {}", of.resource, of.name);
        if let Some(served) = served {
            let entry = json!({
                "metric": of.metric, "kind": of.resource, "name": of.name,
                "metricSelector": params.get("metricLabelSelector").cloned().unwrap_or_default(),
                "error": missing(of.metric, Some(&what)),
            });
            served.tell(asked(Timestamp::now(), "objectMetric", entry));
        }
        return not_found(&missing(of.metric, Some(&what)));
    };
    let at = Timestamp::now();
    let tell = |answer: Value| {
        let mut entry = json!({
            "metric": of.metric, "kind": kind, "name": of.name,
            "metricSelector": params.get("metricLabelSelector").cloned().unwrap_or_default(),
        });
        merge(&mut entry, answer);
        served.tell(asked(at, "objectMetric", entry));
    };
    if let Some(fault) = &answer.error {
        tell(json!({ "error": fault.message }));
        return failure(fault);
    }
    let found = match series(answer, params, "metricLabelSelector") {
        Ok(found) => found,
        Err(refused) => return *refused,
    };
    tell(match found.as_slice() {
        [only] => json!({ "value": only.value }),
        many => json!({ "error": format!(
            "the custom metrics API server returned {} results when we asked for exactly one",
            many.len()
        ) }),
    });
    let (kind, group) = kind.split_once('.').unwrap_or((kind, ""));
    let object = json!({
        "kind": kind, "namespace": namespace, "name": of.name, "apiVersion": format!("{group}/v1"),
    });
    let items: Vec<Value> = found
        .iter()
        .map(|series| {
            let at = served.timestamp(series.timestamp);
            body::value(of.version, &object, of.metric, (&at, None, &series.value))
        })
        .collect();
    let short = values(found.iter().map(|series| &series.value));
    in_short(body::value_list(of.version, &items), short)
}

/// The series of an answer that a request selects.
fn series<'a>(
    answer: &'a SeriesAnswer,
    params: &Params,
    name: &str,
) -> Result<Vec<&'a Series>, Refused> {
    let selector = selector(params, name)?;
    Ok(answer.series.iter().filter(|series| selector.matches(&series.labels)).collect())
}

async fn external(
    metrics: Shared,
    Path((namespace, metric)): Path<(String, String)>,
    params: Params,
) -> Response {
    let mut namespaces = metrics.lock();
    let Some(served) = namespaces.get_mut(&namespace).map(ServedNamespace::now) else {
        return not_found(&missing(&metric, None));
    };
    let at = Timestamp::now();
    let tell = |answer: Value| {
        let mut entry = json!({
            "metric": metric,
            "metricSelector": params.get("labelSelector").cloned().unwrap_or_default(),
        });
        merge(&mut entry, answer);
        served.tell(asked(at, "externalMetric", entry));
    };
    let answer = served.cluster.custom_metrics().externals.get(&*metric);
    let fault = match answer {
        None => Some(error(404, "NotFound", &missing(&metric, None))),
        Some(answer) => answer.error.clone(),
    };
    if let Some(fault) = fault {
        tell(json!({ "error": fault.message }));
        return failure(&fault);
    }
    match answer.map_or(Ok(Vec::new()), |answer| series(answer, &params, "labelSelector")) {
        Ok(found) => {
            tell(json!({ "items": found.len() }));
            let items: Vec<Value> = found
                .iter()
                .map(|series| body::external(&metric, &served.timestamp(series.timestamp), series))
                .collect();
            let short = values(found.iter().map(|series| &series.value));
            in_short(body::external_list(&items), short)
        }
        Err(refused) => *refused,
    }
}

fn missing(metric: &str, of: Option<&str>) -> String {
    let what = format!("the server could not find the metric {metric}");
    of.map_or_else(|| what.clone(), |of| format!("{what} for {of}"))
}
