//! Makes the fake metrics API known to an API server.
//!
//! The API server proxies to a Service. One of the type ExternalName needs neither endpoints nor
//! traffic of the cluster, and reaches this machine's loopback; where the API server routes to
//! endpoints itself, it refuses that type (docs/engines/embedded.md).

use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::{Namespace, Service};
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1::APIService;
use kube::api::PostParams;
use kube::{Api, Client};
use serde_json::json;
use tokio::time::sleep;

use super::client::object;
use super::metrics_api::{GROUPS, NAMESPACE, SERVICE, Server};

/// Of an object that the API server has to ask etcd for.
pub(crate) const PATH: &str = "/api/v1/namespaces/kube-lockstep-metrics";

/// How long it may take until the API server has found it.
const LIMIT: Duration = Duration::from_secs(30);

/// Registers the server for all its groups, and waits until each of them is reached.
///
/// # Errors
/// If the API server refuses, or does not reach it in time: what it says of that.
pub(crate) async fn register(client: &Client, server: &Server) -> Result<(), String> {
    let post = PostParams::default();
    let failed = |what: &str, error: kube::Error| format!("{what} can't be created: {error}");
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let namespace = object(json!({ "metadata": { "name": NAMESPACE } }))?;
    let created = namespaces.create(&post, &namespace).await;
    created.map_err(|error| failed("the metrics API's namespace", error))?;
    let services: Api<Service> = Api::namespaced(client.clone(), NAMESPACE);
    let port = server.address.port();
    let service = object(json!({
        "metadata": { "name": SERVICE },
        "spec": {
            "type": "ExternalName", "externalName": "localhost", "ports": [{ "port": port }],
        },
    }))?;
    let created = services.create(&post, &service).await;
    created.map_err(|error| failed("the metrics API's service", error))?;
    let apis: Api<APIService> = Api::all(client.clone());
    let bundle = k8s_openapi::ByteString(server.authority.as_bytes().to_vec());
    let mut names = Vec::new();
    for (group, versions) in GROUPS {
        for (index, version) in versions.iter().enumerate() {
            let name = format!("{version}.{group}");
            let api = object(json!({
                "metadata": { "name": name },
                "spec": {
                    "group": group,
                    "version": version,
                    "groupPriorityMinimum": 100,
                    "versionPriority": 100 - index,
                    "caBundle": bundle,
                    "service": { "namespace": NAMESPACE, "name": SERVICE, "port": port },
                },
            }))?;
            let created = apis.create(&post, &api).await;
            created.map_err(|error| failed(&format!("APIService {name}"), error))?;
            names.push(name);
        }
    }
    let begin = Instant::now();
    for name in names {
        loop {
            let api = apis.get(&name).await.map_err(|error| error.to_string())?;
            let conditions = api.status.and_then(|status| status.conditions).unwrap_or_default();
            let available = conditions.iter().find(|condition| condition.type_ == "Available");
            if available.is_some_and(|condition| condition.status == "True") {
                break;
            }
            if begin.elapsed() > LIMIT {
                let why = available.and_then(|condition| condition.message.clone());
                let why = why.unwrap_or_else(|| "nothing is said of why".to_owned());
                return Err(format!("the API server does not reach {name}: {why}"));
            }
            sleep(Duration::from_millis(20)).await;
        }
    }
    Ok(())
}
