//! Discovery of the fake metrics API: groups, resources and OpenAPI.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Json, Response};
use axum::routing::get;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{
    APIGroup, APIGroupList, APIResource, APIResourceList, GroupVersionForDiscovery,
};

use crate::cluster::metrics_api::groups::{
    EXTERNAL_METRICS, GROUPS, GroupVersion, PROBE, RESOURCE_METRICS, resource_of, versions,
};
use crate::cluster::metrics_api::openapi;
use crate::cluster::metrics_api::response::{error, failure, not_found};
use crate::cluster::metrics_api::state::Metrics;

pub(crate) fn routes(router: Router<Arc<Metrics>>) -> Router<Arc<Metrics>> {
    let mut router = router
        .route("/readyz", get(async || "ok"))
        .route("/livez", get(async || "ok"))
        .route(&PROBE.path(), get(async || Json(resource_list(PROBE, Vec::new()))))
        .route("/apis", get(groups))
        .route("/openapi/v2", get(async || Json(openapi::v2())))
        .route("/openapi/v3", get(async || Json(openapi::v3())))
        .route("/openapi/v3/apis/{group}/{version}", get(openapi_of));
    for (name, versions) in GROUPS {
        let handler = async move || Json(group(name, versions));
        router = router.route(&format!("/apis/{name}"), get(handler));
    }
    for of in versions() {
        let handler = async move |State(metrics): State<Arc<Metrics>>| {
            Json(resource_list(of, resources(&metrics, of.group)))
        };
        router = router.route(&of.path(), get(handler));
    }
    router
}

/// Lists all groups. The aggregated form is not served: a client that only accepts this form gets
/// an error.
async fn groups(headers: HeaderMap) -> Response {
    let accept = headers.get("accept").and_then(|it| it.to_str().ok()).unwrap_or_default();
    if accept.split(',').all(|it| it.contains("as=APIGroupDiscoveryList")) {
        return failure(&error(406, "NotAcceptable", "only as=APIGroupList is served"));
    }
    let groups = GROUPS.iter().map(|(name, versions)| group(name, versions)).collect();
    Json(APIGroupList { groups }).into_response()
}

fn group(name: &str, versions: &[&str]) -> APIGroup {
    let version = |version: &&str| GroupVersionForDiscovery {
        group_version: format!("{name}/{version}"),
        version: (*version).to_owned(),
    };
    APIGroup {
        name: name.to_owned(),
        versions: versions.iter().map(version).collect(),
        preferred_version: versions.first().map(version),
        ..APIGroup::default()
    }
}

async fn openapi_of(Path((group, version)): Path<(String, String)>) -> Response {
    match openapi::v3_of(&group, &version) {
        Some(document) => Json(document).into_response(),
        None => failure(&not_found("the server could not find this")),
    }
}

fn resource_list(of: GroupVersion, resources: Vec<APIResource>) -> APIResourceList {
    APIResourceList { group_version: of.api_version(), resources }
}

/// The resources of a group: the fixed resources, or the metrics of all scenarios.
fn resources(metrics: &Metrics, group: &str) -> Vec<APIResource> {
    let resource = |name: &str, namespaced, kind: &str, verbs: &[&str]| APIResource {
        name: name.to_owned(),
        namespaced,
        kind: kind.to_owned(),
        verbs: verbs.iter().map(|verb| (*verb).to_owned()).collect(),
        ..APIResource::default()
    };
    let kind = match group {
        RESOURCE_METRICS => {
            let verbs = &["get", "list"];
            return vec![
                resource("nodes", false, "NodeMetrics", verbs),
                resource("pods", true, "PodMetrics", verbs),
            ];
        }
        EXTERNAL_METRICS => "ExternalMetricValueList",
        _ => "MetricValueList",
    };
    let mut names = BTreeSet::new();
    for served in metrics.lock().values_mut() {
        let known = served.now().cluster.custom_metrics();
        if group == EXTERNAL_METRICS {
            names.extend(known.externals.keys().map(ToString::to_string));
            continue;
        }
        names.extend(known.pods.keys().map(|name| format!("pods/{name}")));
        let objects = known.objects.keys();
        names.extend(objects.map(|(name, kind, _)| format!("{}/{name}", resource_of(kind))));
    }
    names.iter().map(|name| resource(name, true, kind, &["get"])).collect()
}
