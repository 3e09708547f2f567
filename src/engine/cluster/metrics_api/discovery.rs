//! What the fake metrics API says of itself: its groups and their resources, and how these look.

use crate::engine::cluster::metrics_api::groups::resource_of;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Json, Response};
use axum::routing::get;
use serde_json::{Value, json};

use crate::engine::cluster::metrics_api::groups::{GROUPS, PROBE};
use crate::engine::cluster::metrics_api::response::{error, failure, not_found};
use crate::engine::cluster::metrics_api::state::Metrics;
use crate::engine::cluster::metrics_api::{json as body, openapi};

type Shared = State<Arc<Metrics>>;

pub(crate) fn routes(router: Router<Arc<Metrics>>) -> Router<Arc<Metrics>> {
    let (group, version) = PROBE;
    let probe = async move || Json(body::resources(group, version, &[]));
    let mut router = router
        .route("/readyz", get(async || "ok"))
        .route("/livez", get(async || "ok"))
        .route(&format!("/apis/{group}/{version}"), get(probe))
        .route("/apis", get(groups))
        .route("/openapi/v2", get(async || Json(openapi::v2())))
        .route("/openapi/v3", get(async || Json(openapi::v3())))
        .route("/openapi/v3/apis/{group}/{version}", get(openapi_of));
    for (group, versions) in GROUPS {
        let path = format!("/apis/{group}");
        router = router.route(&path, get(async move || Json(body::group(group, versions))));
        for version in versions {
            let list = async move |metrics: Shared| Json(resources(&metrics, group, version));
            router = router.route(&format!("{path}/{version}"), get(list));
        }
    }
    router
}

/// All groups; there is no aggregated form, and whoever prefers that is told to ask otherwise.
async fn groups(headers: HeaderMap) -> Response {
    let accept = headers.get("accept").and_then(|it| it.to_str().ok()).unwrap_or_default();
    let aggregated = |it: &str| it.contains("as=APIGroupDiscoveryList");
    if accept.split(',').all(aggregated) {
        return failure(&error(406, "NotAcceptable", "only as=APIGroupList is served"));
    }
    let groups: Vec<Value> =
        GROUPS.iter().map(|(group, versions)| body::group(group, versions)).collect();
    Json(json!({ "kind": "APIGroupList", "apiVersion": "v1", "groups": groups })).into_response()
}

async fn openapi_of(Path((group, version)): Path<(String, String)>) -> Response {
    match openapi::v3_of(&group, &version) {
        Some(spec) => Json(spec).into_response(),
        None => not_found("the server could not find this"),
    }
}

/// The resources of a version: of metrics that have names, those that some scenario has.
fn resources(metrics: &Metrics, group: &str, version: &str) -> Value {
    let mut namespaces = metrics.lock();
    let mut names: Vec<String> = Vec::new();
    for served in namespaces.values_mut() {
        let known = served.now().cluster.custom_metrics();
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
