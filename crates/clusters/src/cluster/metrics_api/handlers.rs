//! Answers queries of the fake metrics API from the world of each namespace.
//!
//! Each query is reported to the scenario that runs in the namespace: that is how a reconcile is
//! observed.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Path, Query, State};
use axum::http::HeaderMap;
use axum::response::Response;
use axum::routing::get;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;

use crate::cluster::metrics_api::groups::{
    Endpoint, GROUPS, QUERIES, QueryPath, resource_of, versions,
};
use crate::cluster::metrics_api::json;
use crate::cluster::metrics_api::json::{MetricValue, PodSample};
use crate::cluster::metrics_api::query::Request;
use crate::cluster::metrics_api::response::{Answer, error, failure, not_found};
use crate::cluster::metrics_api::state::{Metrics, ServedNamespace};
use crate::cluster::observe::action::ObservedAction;
use kube_autoscaler_models::api::{ApiError, PodMetricValue, PodMetrics, Series, SeriesAnswer};
use kube_autoscaler_models::observation;
use kube_autoscaler_models::observation::{ControllerAction, Items, SeriesValue, pod_kind};
use kube_autoscaler_models::quantity::Quantity;

type Shared = State<Arc<Metrics>>;
type Segments = Path<BTreeMap<String, String>>;
type Parameters = Query<Vec<(String, String)>>;

/// The number of values that a summary shows.
const MAX_VALUES: usize = 6;

pub(crate) fn routes(mut router: Router<Arc<Metrics>>) -> Router<Arc<Metrics>> {
    for of in versions() {
        for query in QUERIES.into_iter().filter(|query| query.group == of.group) {
            let handler = async move |State(metrics): Shared,
                                      Path(segments): Segments,
                                      Query(parameters): Parameters,
                                      headers: HeaderMap| {
                let request = Request::new(query, of.version, segments, parameters, &headers);
                serve(&metrics, request).await
            };
            router = router.route(&format!("{}/{}", of.path(), query.path), get(handler));
        }
    }
    router.route("/apis/{group}/{version}/{*path}", get(unknown))
}

/// A path that does not exist in any metrics API.
async fn unknown(
    State(metrics): Shared,
    Path(segments): Segments,
    Query(parameters): Parameters,
    headers: HeaderMap,
) -> Response {
    let group = segments.get("group").cloned().unwrap_or_default();
    if !GROUPS.iter().any(|(name, _)| *name == group) {
        return failure(&not_found("the server could not find this"));
    }
    let query = QueryPath { group: "", path: "{path}", endpoint: Endpoint::Unknown };
    let request = Request::new(query, "", segments, parameters, &headers);
    serve(&metrics, Request { group, ..request }).await
}

/// Answers a query after the delay that the scenario specifies, or when a hold ends, and records
/// it.
async fn serve(metrics: &Metrics, request: Request) -> Response {
    let answer = if let Some(resource) = request.watched_resource() {
        let why = format!("watch is not supported on resources of kind \"{resource}\"");
        Answer::failed(&error(405, "MethodNotAllowed", &why))
    } else {
        let delay = request.namespace().and_then(|namespace| metrics.slowness(&namespace));
        if let Some(delay) = delay {
            tokio::time::sleep(Duration::from_nanos(delay.0.unsigned_abs())).await;
        }
        let held = request.namespace().and_then(|namespace| {
            metrics.held(&namespace, request.user.as_deref().unwrap_or_default())
        });
        let (before, after) = match held {
            Some((query, held)) if query.shows_changes => (Some(held), None),
            held => (None, held.map(|(_, held)| held)),
        };
        if let Some(held) = before {
            held.wait().await;
        }
        let answer = answer(metrics, &request);
        if let Some(held) = after {
            held.wait().await;
        }
        report(metrics, &request, &answer);
        answer
    };
    metrics.record(|| request.record(answer.response.status().as_u16(), answer.summary));
    answer.response
}

/// Answers a query.
fn answer(metrics: &Metrics, request: &Request) -> Answer {
    let mut namespaces = metrics.lock();
    let mut answer = match request.query.endpoint {
        Endpoint::PodsOfAllNamespaces => pods_of_all_namespaces(&mut namespaces, request),
        _ => {
            let served = namespaces.get_mut(request.segment("namespace"));
            answer_in_namespace(served.map(ServedNamespace::now), request)
        }
    };
    // Upstream's controller never sends these queries. A custom controller may, and in a cluster
    // that is not private, other clients do.
    let is_unusual =
        matches!(request.query.endpoint, Endpoint::PodsOfAllNamespaces | Endpoint::Pod);
    if is_unusual && !metrics.is_private() {
        answer.actions.clear();
    }
    answer
}

/// Reports an answered query to the scenarios of the queried namespaces.
fn report(metrics: &Metrics, request: &Request, answer: &Answer) {
    let namespaces = metrics.lock();
    for (namespace, action) in &answer.actions {
        let user = request.user.clone().unwrap_or_default();
        let action = ObservedAction::new(request.received, Timestamp::now(), action.clone());
        if let Some(served) = namespaces.get(namespace) {
            served.report(ObservedAction { user, ..action });
        }
    }
}

fn answer_in_namespace(served: Option<&ServedNamespace>, request: &Request) -> Answer {
    let (resource, name) = (request.segment("resource"), request.segment("name"));
    match request.query.endpoint {
        Endpoint::Pods => pods(served, request),
        Endpoint::Pod => pod(served, request),
        Endpoint::NamespaceMetric => {
            object_metric(served, request, "namespaces", request.segment("namespace"))
        }
        Endpoint::ObjectMetric if resource == "pods" => pods_metric(served, request),
        Endpoint::ObjectMetric => object_metric(served, request, resource, name),
        Endpoint::ExternalMetric => external_metric(served, request),
        // An error, so that clients do not wait for the metrics of nodes.
        Endpoint::Nodes => Answer::failed(&not_found(
            "kube-lockstep serves the metrics of scenarios, which have pods and no nodes; \
             `kubectl top pods` works",
        )),
        Endpoint::PodsOfAllNamespaces | Endpoint::Unknown => {
            Answer::failed(&not_found("the server could not find this"))
        }
    }
}

/// The answer for an observation: the number of items that were found.
fn items<T>(found: &Result<Vec<T>, ApiError>) -> observation::Answer<Items> {
    match found {
        Ok(found) => Ok(Items { items: u32::try_from(found.len()).unwrap_or(u32::MAX) }),
        Err(error) => Err(error.message.clone()),
    }
}

fn list_pod_metrics(selector: &str, found: &Result<Vec<PodSample>, ApiError>) -> ControllerAction {
    ControllerAction::ListPodMetrics { selector: selector.into(), answer: items(found) }
}

fn pods_of_all_namespaces(
    namespaces: &mut HashMap<String, ServedNamespace>,
    request: &Request,
) -> Answer {
    let (mut all, mut actions) = (Vec::new(), Vec::new());
    let mut sorted: Vec<_> = namespaces.iter_mut().collect();
    sorted.sort_by_key(|(name, _)| *name);
    for (namespace, served) in sorted {
        let served = served.now();
        let found = match served.cluster.pod_metrics() {
            Ok(_) => selected_pods(served, namespace, request),
            // The list omits namespaces with an error.
            Err(_) => Ok(Vec::new()),
        };
        // The reconcile may belong to any of the namespaces.
        let action = list_pod_metrics(request.parameter("labelSelector"), &found);
        actions.push((namespace.clone(), action));
        match found {
            Ok(pods) => all.extend(pods),
            Err(error) => return Answer::failed(&error),
        }
    }
    Answer { actions, ..pods_answer(all, request) }
}

fn pods(served: Option<&ServedNamespace>, request: &Request) -> Answer {
    let Some(served) = served else { return pods_answer(Vec::new(), request) };
    let namespace = request.segment("namespace");
    let found = selected_pods(served, namespace, request);
    served.report_samples(request.received, &found);
    let action = list_pod_metrics(request.parameter("labelSelector"), &found);
    let answer = match found {
        Ok(pods) => pods_answer(pods, request),
        Err(error) => Answer::failed(&error),
    };
    answer.with_action(namespace, action)
}

fn pod(served: Option<&ServedNamespace>, request: &Request) -> Answer {
    let (namespace, name) = (request.segment("namespace"), request.segment("name"));
    let found = served.map_or(Ok(Vec::new()), |served| {
        let pods = served.cluster.pod_metrics().map_err(ApiError::clone)?;
        let pod = pods.iter().find(|pod| **served.name(&pod.name) == *name);
        Ok(pod.map(|pod| sample(served, namespace, pod)).into_iter().collect())
    });
    let action = list_pod_metrics(&format!("metadata.name={name}"), &found);
    let answer = match found.as_deref() {
        Ok([]) => {
            let why = format!("pods.metrics.k8s.io \"{namespace}/{name}\" not found");
            Answer::failed(&not_found(&why))
        }
        Ok(pods) if request.wants_table => Answer::new(json::table(pods), summary_of_pods(pods)),
        Ok(pods) => Answer::new(pods.first(), summary_of_pods(pods)),
        Err(error) => Answer::failed(error),
    };
    answer.with_action(namespace, action)
}

/// Pods as a list, or as the table that kubectl prints.
fn pods_answer(pods: Vec<PodSample>, request: &Request) -> Answer {
    let summary = summary_of_pods(&pods);
    if request.wants_table {
        return Answer::new(json::table(&pods), summary);
    }
    Answer::new(json::list("metrics.k8s.io/v1beta1", "PodMetricsList", pods), summary)
}

fn summary_of_pods(pods: &[PodSample]) -> String {
    match pods.len() {
        0 => "no pods".to_owned(),
        many => format!("{}, {}", count(many, "pod"), json::total(pods)),
    }
}

fn count(many: usize, noun: &str) -> String {
    if many == 1 { format!("1 {noun}") } else { format!("{many} {noun}s") }
}

fn summary_of_values<'a>(values: impl ExactSizeIterator<Item = &'a Quantity>) -> String {
    let many = values.len();
    let mut first: Vec<String> = values.take(MAX_VALUES).map(ToString::to_string).collect();
    if many > MAX_VALUES {
        first.push("…".to_owned());
    }
    match many {
        0 => "no values".to_owned(),
        _ => format!("{}: {}", count(many, "value"), first.join(", ")),
    }
}

/// The samples of a namespace that a query selects.
fn selected_pods(
    served: &ServedNamespace,
    namespace: &str,
    request: &Request,
) -> Result<Vec<PodSample>, ApiError> {
    let pods = served.cluster.pod_metrics().map_err(ApiError::clone)?;
    let labels = request.selector("labelSelector")?;
    let fields = FieldSelector::parse(request.parameter("fieldSelector"), namespace)?;
    let is_selected =
        |pod: &&PodMetrics| labels.matches(&pod.labels) && fields.matches(served.name(&pod.name));
    Ok(pods.iter().filter(is_selected).map(|pod| sample(served, namespace, pod)).collect())
}

fn sample(served: &ServedNamespace, namespace: &str, pod: &PodMetrics) -> PodSample {
    PodSample::new(namespace, served.name(&pod.name), served.timestamp(pod.timestamp), pod)
}

/// A field selector by name and namespace.
struct FieldSelector {
    /// Names, and whether the pod's name must be equal.
    names: Vec<(String, bool)>,
    /// True if it selects another namespace.
    selects_nothing: bool,
}

impl FieldSelector {
    fn parse(text: &str, namespace: &str) -> Result<FieldSelector, ApiError> {
        let mut fields = FieldSelector { names: Vec::new(), selects_nothing: false };
        for term in text.split(',').filter(|term| !term.is_empty()) {
            let (field, value, equal) = match term.split_once("!=") {
                Some((field, value)) => (field, value, false),
                None => {
                    let (field, value) = term.split_once('=').unwrap_or((term, ""));
                    (field, value.trim_start_matches('='), true)
                }
            };
            match field {
                "metadata.name" => fields.names.push((value.to_owned(), equal)),
                "metadata.namespace" => fields.selects_nothing |= (value == namespace) != equal,
                _ => {
                    let why = format!("field label not supported: {field}");
                    return Err(error(400, "BadRequest", &why));
                }
            }
        }
        Ok(fields)
    }

    fn matches(&self, name: &str) -> bool {
        !self.selects_nothing && self.names.iter().all(|(other, equal)| (name == other) == *equal)
    }
}

/// A custom metric of the selected pods, or of one pod by its name.
fn pods_metric(served: Option<&ServedNamespace>, request: &Request) -> Answer {
    let (namespace, metric) = (request.segment("namespace"), request.segment("metric"));
    let Some(served) = served else { return Answer::failed(&missing(metric, Some("pods"))) };
    let found = selected_values(served, request);
    let action = ControllerAction::PodsMetric {
        metric: metric.into(),
        kind: pod_kind(),
        selector: request.parameter("labelSelector").into(),
        metric_selector: request.parameter("metricLabelSelector").into(),
        answer: items(&found),
    };
    let answer = match found {
        Ok(values) => {
            let items = values.iter().map(|value| {
                let object = ObjectReference {
                    kind: Some("Pod".to_owned()),
                    namespace: Some(namespace.to_owned()),
                    name: Some(served.name(&value.name).to_string()),
                    api_version: Some("/v1".to_owned()),
                    ..ObjectReference::default()
                };
                let at = served.timestamp(value.timestamp);
                MetricValue::custom(&request.version, object, metric, at, &value.value)
                    .over(value.window)
            });
            let summary = summary_of_values(values.iter().map(|value| &value.value));
            Answer::new(value_list(request, items.collect()), summary)
        }
        Err(error) => Answer::failed(&error),
    };
    answer.with_action(namespace, action)
}

fn selected_values<'a>(
    served: &'a ServedNamespace,
    request: &Request,
) -> Result<Vec<&'a PodMetricValue>, ApiError> {
    let (metric, name) = (request.segment("metric"), request.segment("name"));
    let known = served.cluster.custom_metrics().pods.get(metric);
    let known = known.ok_or_else(|| missing(metric, Some("pods")))?;
    if let Some(error) = &known.error {
        return Err(error.clone());
    }
    let pods = request.selector("labelSelector")?;
    let series = request.selector("metricLabelSelector")?;
    let is_selected = |value: &&PodMetricValue| {
        series.matches(&known.labels)
            && pods.matches(&value.labels)
            && (name == "*" || **served.name(&value.name) == *name)
    };
    let values: Vec<_> = known.values.iter().filter(is_selected).collect();
    if values.is_empty() && name != "*" {
        return Err(missing(metric, Some(&format!("pods {name}"))));
    }
    Ok(values)
}

fn value_list(request: &Request, items: Vec<MetricValue>) -> impl serde::Serialize {
    let api_version = format!("custom.metrics.k8s.io/{}", request.version);
    json::list(&api_version, "MetricValueList", items)
}

/// A custom metric of one object.
fn object_metric(
    served: Option<&ServedNamespace>,
    request: &Request,
    resource: &str,
    name: &str,
) -> Answer {
    let (namespace, metric) = (request.segment("namespace"), request.segment("metric"));
    let missing = |kind: &str| missing(metric, Some(&format!("{kind} {name}")));
    let Some(served) = served else { return Answer::failed(&missing(resource)) };
    // A query contains the name of a namespace in the cluster.
    let wanted = if resource == "namespaces" { &*served.scenario_name } else { name };
    let objects = &served.cluster.custom_metrics().objects;
    let mut same_kind = objects.iter().filter(|((_, kind, _), _)| resource_of(kind) == resource);
    // Queries contain the resource, but errors name the kind.
    let kind = same_kind.clone().next().map_or(resource, |((_, kind, _), _)| kind);
    let known = same_kind.find(|((of, _, name), _)| **of == *metric && **name == *wanted);
    let found = match known {
        Some((_, answer)) => selected_series(answer, request, "metricLabelSelector"),
        None => Err(missing(kind)),
    };
    let action = ControllerAction::ObjectMetric {
        metric: metric.into(),
        kind: kind.into(),
        name: name.into(),
        metric_selector: request.parameter("metricLabelSelector").into(),
        answer: match found.as_deref() {
            Ok([only]) => Ok(SeriesValue { value: only.value.to_string().into() }),
            Ok(many) => Err(format!(
                "the custom metrics API server returned {} results when we asked for exactly one",
                many.len()
            )
            .into()),
            Err(error) => Err(error.message.clone()),
        },
    };
    let answer = match found {
        Ok(series) => {
            let (kind, group) = kind.split_once('.').unwrap_or((kind, ""));
            let object = ObjectReference {
                kind: Some(kind.to_owned()),
                namespace: Some(namespace.to_owned()),
                name: Some(name.to_owned()),
                api_version: Some(format!("{group}/v1")),
                ..ObjectReference::default()
            };
            let items = series.iter().map(|series| {
                let at = served.timestamp(series.timestamp);
                MetricValue::custom(&request.version, object.clone(), metric, at, &series.value)
            });
            let summary = summary_of_values(series.iter().map(|series| &series.value));
            Answer::new(value_list(request, items.collect()), summary)
        }
        Err(error) => Answer::failed(&error),
    };
    answer.with_action(namespace, action)
}

/// The series of a metric that a query selects.
fn selected_series<'a>(
    answer: &'a SeriesAnswer,
    request: &Request,
    parameter: &str,
) -> Result<Vec<&'a Series>, ApiError> {
    if let Some(error) = &answer.error {
        return Err(error.clone());
    }
    let selector = request.selector(parameter)?;
    Ok(answer.series.iter().filter(|series| selector.matches(&series.labels)).collect())
}

fn external_metric(served: Option<&ServedNamespace>, request: &Request) -> Answer {
    let (namespace, metric) = (request.segment("namespace"), request.segment("metric"));
    let Some(served) = served else { return Answer::failed(&missing(metric, None)) };
    let found = match served.cluster.custom_metrics().externals.get(metric) {
        Some(answer) => selected_series(answer, request, "labelSelector"),
        None => Err(missing(metric, None)),
    };
    let action = ControllerAction::ExternalMetric {
        metric: metric.into(),
        metric_selector: request.parameter("labelSelector").into(),
        answer: items(&found),
    };
    let answer = match found {
        Ok(series) => {
            let items = series.iter().map(|series| {
                let at = served.timestamp(series.timestamp);
                MetricValue::external(metric, &series.labels, at, &series.value)
            });
            let list = json::list(
                "external.metrics.k8s.io/v1beta1",
                "ExternalMetricValueList",
                items.collect(),
            );
            Answer::new(list, summary_of_values(series.iter().map(|series| &series.value)))
        }
        Err(error) => Answer::failed(&error),
    };
    answer.with_action(namespace, action)
}

fn missing(metric: &str, of: Option<&str>) -> ApiError {
    let of = of.map_or(String::new(), |of| format!(" for {of}"));
    not_found(&format!("the server could not find the metric {metric}{of}"))
}
