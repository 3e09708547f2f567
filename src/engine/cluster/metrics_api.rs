//! The fake metrics API: metrics.k8s.io, custom.metrics.k8s.io and external.metrics.k8s.io for many
//! scenarios at once, each in its namespace.
//!
//! It answers with what the world tells, and keeps a log of what was asked: that is how a reconcile
//! is seen. What it says of itself (groups, resources) is in `discovery`, the bodies of its answers
//! are made in `metrics_json`.

use std::collections::{BTreeMap, HashMap};
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::Router;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Json, Response};
use axum::routing::get;
use axum_server::Handle;
use axum_server::tls_rustls::RustlsConfig;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedSender;

use super::audit::Did;
use super::metrics_json as body;
use super::pki::{Authority, Identity};
use crate::model::api::{ApiError, PodMetrics, Series, SeriesAnswer};
use crate::model::selector::Selector;
use crate::model::time::Time;
use crate::scenario::meant::usual_plural;
use crate::world::{Change, Cluster};

/// The names by which the API server knows it: those of a Service.
pub(crate) const NAMESPACE: &str = "kube-lockstep-metrics";
pub(crate) const SERVICE: &str = "metrics";

/// The groups that it serves, each with its versions, the best first.
pub(crate) const GROUPS: [(&str, &[&str]); 3] = [
    ("metrics.k8s.io", &["v1beta1"]),
    ("custom.metrics.k8s.io", &["v1beta2", "v1beta1"]),
    ("external.metrics.k8s.io", &["v1beta1"]),
];

/// What is served in one namespace.
#[derive(Debug)]
struct Served {
    cluster: Cluster,
    /// What the scenario calls it.
    called: Arc<str>,
    /// Which instant is t=0.
    epoch: Timestamp,
    /// The names that the scenario's pods have in the cluster.
    names: HashMap<Arc<str>, Arc<str>>,
    log: UnboundedSender<Did>,
}

impl Served {
    fn timestamp(&self, at: Time) -> String {
        let nanos = self.epoch.as_nanosecond() + i128::from(at.0);
        let at = Timestamp::from_nanosecond(nanos).unwrap_or(self.epoch);
        // Times cross the API in whole seconds.
        Timestamp::from_second(at.as_second()).unwrap_or(at).to_string()
    }

    /// A pod's name in the cluster. A sample may outlive its pod.
    fn name<'a>(&'a self, pod: &'a Arc<str>) -> &'a Arc<str> {
        self.names.get(pod).unwrap_or(pod)
    }
}

/// What the server and those who tell it of changes share.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    namespaces: Mutex<HashMap<String, Served>>,
}

impl Metrics {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Served>> {
        self.namespaces.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on a namespace is served. Queries are told to `log`.
    pub(crate) fn open(
        &self,
        namespace: &str,
        called: &Arc<str>,
        epoch: Timestamp,
        log: UnboundedSender<Did>,
    ) {
        let (cluster, names, called) = (Cluster::default(), HashMap::new(), called.clone());
        self.lock().insert(namespace.to_owned(), Served { cluster, called, epoch, names, log });
    }

    /// Its t=0 is another instant.
    pub(crate) fn begin_at(&self, namespace: &str, epoch: Timestamp) {
        if let Some(served) = self.lock().get_mut(namespace) {
            served.epoch = epoch;
        }
    }

    /// It no longer is.
    pub(crate) fn close(&self, namespace: &str) {
        self.lock().remove(namespace);
    }

    /// What a namespace's metrics APIs answer changes.
    pub(crate) fn apply(&self, namespace: &str, change: &Change) {
        if let Some(served) = self.lock().get_mut(namespace) {
            // The world defines a template before it uses it, and HPAs are not applied here.
            let _ = served.cluster.apply(change, &|_, _| Ok(()));
        }
    }

    /// The scenario's pods have these names in the cluster.
    pub(crate) fn rename(&self, namespace: &str, names: HashMap<Arc<str>, Arc<str>>) {
        if let Some(served) = self.lock().get_mut(namespace) {
            served.names = names;
        }
    }
}

/// The server, until it is dropped.
#[derive(Debug)]
pub(crate) struct Server {
    /// Where it listens.
    pub(crate) address: SocketAddr,
    /// What the API server knows it by.
    pub(crate) authority: String,
    handle: Handle<SocketAddr>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.handle.shutdown();
    }
}

impl Server {
    /// Serves at an address, whose port may be 0: then it is one that is free.
    ///
    /// # Errors
    /// If it can't listen there, or no certificate can be made.
    pub(crate) async fn start(metrics: Arc<Metrics>, address: &str) -> Result<Server, String> {
        let listener = TcpListener::bind(address)
            .map_err(|error| format!("the metrics API can't listen at {address}: {error}"))?;
        listener.set_nonblocking(true).map_err(|error| error.to_string())?;
        let address = listener.local_addr().map_err(|error| error.to_string())?;
        let authority = Authority::new().map_err(|error| error.to_string())?;
        let name = format!("{SERVICE}.{NAMESPACE}.svc");
        let Identity { certificate, key } =
            authority.server(&name, &[&name, "localhost"]).map_err(|error| error.to_string())?;
        let _ = rustls::crypto::ring::default_provider().install_default();
        let tls = RustlsConfig::from_pem(certificate.into_bytes(), key.into_bytes()).await;
        let tls = tls.map_err(|error| error.to_string())?;
        let handle = Handle::new();
        let server = axum_server::from_tcp_rustls(listener, tls)
            .map_err(|error| error.to_string())?
            .handle(handle.clone());
        tokio::spawn(server.serve(router(metrics).into_make_service()));
        Ok(Server { address, authority: authority.pem(), handle })
    }
}

/// An answer that is no success; on the heap, since it is rare and large.
type Refused = Box<Response>;
type Shared = State<Arc<Metrics>>;
type Params = Query<BTreeMap<String, String>>;

fn router(metrics: Arc<Metrics>) -> Router {
    let mut router = Router::new();
    for (group, versions) in GROUPS {
        let path = format!("/apis/{group}");
        router = router.route(&path, get(async move || Json(body::group(group, versions))));
        for version in versions {
            let list = async move |metrics: Shared| Json(resources(&metrics, group, version));
            router = router.route(&format!("{path}/{version}"), get(list));
        }
    }
    let of_resources = "/apis/metrics.k8s.io/v1beta1";
    let of_external = "/apis/external.metrics.k8s.io/v1beta1";
    router = router
        .route("/readyz", get(async || "ok"))
        .route(&format!("{of_resources}/nodes"), get(async || Json(body::node_list())))
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
            match (&**resource, &**name) {
                ("pods", "*") => pods_metric(&metrics, namespace, &of, &params),
                _ => object(&metrics, namespace, &of, &params),
            }
        };
        router = router
            .route(&format!("{path}/metrics/{{metric}}"), get(of_namespace))
            .route(&format!("{path}/{{resource}}/{{name}}/{{metric}}"), get(of_object));
    }
    router
        .fallback(async || failure(&error(404, "NotFound", "the server could not find this")))
        .with_state(metrics)
}

/// What a custom metric is asked of.
struct Of<'a> {
    version: &'static str,
    resource: &'a str,
    name: &'a str,
    metric: &'a str,
}

/// The resources of a version: of metrics that have names, those that some scenario has.
fn resources(metrics: &Metrics, group: &str, version: &str) -> Value {
    let namespaces = metrics.lock();
    let mut names: Vec<String> = Vec::new();
    for served in namespaces.values() {
        let known = served.cluster.custom_metrics();
        match group {
            "metrics.k8s.io" => {}
            "external.metrics.k8s.io" => {
                names.extend(known.externals.keys().map(|name| name.to_string()));
            }
            _ => {
                names.extend(known.pods.keys().map(|name| format!("pods/{name}")));
                let of_objects = known.objects.keys();
                names.extend(
                    of_objects.map(|(metric, kind, _)| format!("{}/{metric}", resource_of(kind))),
                );
            }
        }
    }
    names.sort();
    names.dedup();
    body::resources(group, version, &names)
}

/// The resource of a kind, both with their groups.
fn resource_of(kind: &str) -> String {
    match kind.split_once('.') {
        Some((kind, group)) => format!("{}.{group}", usual_plural(kind)),
        None => usual_plural(kind),
    }
}

async fn all_pods(metrics: Shared, params: Params) -> Response {
    let namespaces = metrics.lock();
    let (mut items, at) = (Vec::new(), Timestamp::now());
    let mut names: Vec<&String> = namespaces.keys().collect();
    names.sort();
    for namespace in names {
        let served = &namespaces[namespace];
        let before = items.len();
        match selected(served, &params) {
            Ok(found) => items.extend(found.map(|pod| pod_json(served, namespace, pod))),
            Err(refused) => return *refused,
        }
        // Whose reconcile this is nobody can tell: it may be of each of them.
        let selector = params.get("labelSelector").cloned().unwrap_or_default();
        let entry = json!({ "selector": selector, "items": items.len() - before });
        let _ = served.log.send(asked(at, "listPodMetrics", entry));
    }
    Json(body::pod_list(&items)).into_response()
}

/// The samples of a namespace that a request selects; an error of the API is none here.
fn selected<'a>(
    served: &'a Served,
    params: &Params,
) -> Result<impl Iterator<Item = &'a PodMetrics>, Refused> {
    let selector = selector(params, "labelSelector")?;
    let pods = served.cluster.pod_metrics().unwrap_or_default();
    Ok(pods.iter().filter(move |pod| selector.matches(&pod.labels)))
}

fn selector(params: &Params, name: &str) -> Result<Selector, Refused> {
    let text = params.get(name).map_or("", String::as_str);
    Selector::parse(text).map_err(|why| {
        let why = format!("unable to parse requirement: {why}");
        Box::new(failure(&error(400, "BadRequest", &why)))
    })
}

fn pod_json(served: &Served, namespace: &str, pod: &PodMetrics) -> Value {
    body::pod(namespace, served.name(&pod.name), &served.timestamp(pod.timestamp), pod)
}

async fn pods(metrics: Shared, Path(namespace): Path<String>, params: Params) -> Response {
    let namespaces = metrics.lock();
    let Some(served) = namespaces.get(&namespace) else {
        return Json(body::pod_list(&[])).into_response();
    };
    let (selector, at) =
        (params.get("labelSelector").cloned().unwrap_or_default(), Timestamp::now());
    let tell = |answer: Value| {
        let mut entry = json!({ "selector": selector });
        merge(&mut entry, answer);
        // Nobody listens any more when a scenario is over.
        let _ = served.log.send(asked(at, "listPodMetrics", entry));
    };
    if let Err(fault) = served.cluster.pod_metrics() {
        tell(json!({ "error": fault.message }));
        return failure(fault);
    }
    match selected(served, &params) {
        Ok(found) => {
            let items: Vec<Value> = found.map(|pod| pod_json(served, &namespace, pod)).collect();
            tell(json!({ "items": items.len() }));
            Json(body::pod_list(&items)).into_response()
        }
        Err(refused) => *refused,
    }
}

/// A query, for the log.
fn asked(at: Timestamp, what: &'static str, entry: Value) -> Did {
    Did { at, done: Timestamp::now(), what, entry }
}

fn merge(entry: &mut Value, answer: Value) {
    if let (Value::Object(entry), Value::Object(answer)) = (entry, answer) {
        entry.extend(answer);
    }
}

async fn pod(metrics: Shared, Path((namespace, name)): Path<(String, String)>) -> Response {
    let (namespaces, at) = (metrics.lock(), Timestamp::now());
    let served = namespaces.get(&namespace);
    let fault = served.and_then(|served| served.cluster.pod_metrics().err());
    let found = served.and_then(|served| {
        let pods = served.cluster.pod_metrics().unwrap_or_default();
        let pod = pods.iter().find(|pod| **served.name(&pod.name) == *name)?;
        Some(pod_json(served, &namespace, pod))
    });
    if let Some(served) = served {
        let items = usize::from(found.is_some());
        let mut entry = json!({ "selector": format!("metadata.name={name}"), "items": items });
        if let Some(fault) = fault {
            entry["error"] = fault.message.to_string().into();
        }
        let _ = served.log.send(asked(at, "listPodMetrics", entry));
    }
    if let Some(fault) = fault {
        return failure(fault);
    }
    match found {
        Some(pod) => Json(pod).into_response(),
        None => {
            let why = format!("pods.metrics.k8s.io \"{namespace}/{name}\" not found");
            failure(&error(404, "NotFound", &why))
        }
    }
}

/// A custom metric of pods.
fn pods_metric(metrics: &Metrics, namespace: &str, of: &Of<'_>, params: &Params) -> Response {
    let namespaces = metrics.lock();
    let Some(served) = namespaces.get(namespace) else {
        return failure(&error(404, "NotFound", &missing(of.metric, Some("pods"))));
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
        let _ = served.log.send(asked(at, "podsMetric", entry));
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
    let values = known.filter(|known| of_series.matches(&known.labels));
    let values = values.into_iter().flat_map(|known| &known.values);
    let items: Vec<Value> = values
        .filter(|value| of_pods.matches(&value.labels))
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
    tell(json!({ "items": items.len() }));
    Json(body::value_list(of.version, &items)).into_response()
}

/// A custom metric of one object.
fn object(metrics: &Metrics, namespace: &str, of: &Of<'_>, params: &Params) -> Response {
    let namespaces = metrics.lock();
    let served = namespaces.get(namespace);
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
            let _ = served.log.send(asked(Timestamp::now(), "objectMetric", entry));
        }
        return failure(&error(404, "NotFound", &missing(of.metric, Some(&what))));
    };
    let at = Timestamp::now();
    let tell = |answer: Value| {
        let mut entry = json!({
            "metric": of.metric, "kind": kind, "name": of.name,
            "metricSelector": params.get("metricLabelSelector").cloned().unwrap_or_default(),
        });
        merge(&mut entry, answer);
        let _ = served.log.send(asked(at, "objectMetric", entry));
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
    Json(body::value_list(of.version, &items)).into_response()
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
    let namespaces = metrics.lock();
    let Some(served) = namespaces.get(&namespace) else {
        return failure(&error(404, "NotFound", &missing(&metric, None)));
    };
    let at = Timestamp::now();
    let tell = |answer: Value| {
        let mut entry = json!({
            "metric": metric,
            "metricSelector": params.get("labelSelector").cloned().unwrap_or_default(),
        });
        merge(&mut entry, answer);
        let _ = served.log.send(asked(at, "externalMetric", entry));
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
            Json(body::external_list(&items)).into_response()
        }
        Err(refused) => *refused,
    }
}

fn missing(metric: &str, of: Option<&str>) -> String {
    let what = format!("the server could not find the metric {metric}");
    of.map_or_else(|| what.clone(), |of| format!("{what} for {of}"))
}

fn error(code: u16, reason: &str, message: &str) -> ApiError {
    ApiError { code, reason: reason.to_owned(), message: message.into() }
}

fn failure(error: &ApiError) -> Response {
    let code = StatusCode::from_u16(error.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    (code, Json(body::status(error))).into_response()
}
