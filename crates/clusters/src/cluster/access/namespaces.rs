//! The namespaces of scenarios. Each names its owner, so that namespaces of killed processes can be
//! removed.

use std::collections::BTreeMap;

use jiff::SignedDuration;
use k8s_openapi::api::core::v1::{Namespace, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, Client, Error, ResourceExt};
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::cluster::access::client::at_once;
use crate::cluster::access::ownership::{Owner, age};
use crate::cluster::labels::{HOLD, OWNER, SCENARIO};
use crate::cluster::timeouts::{NAMESPACE_POLL_INTERVAL, NAMESPACE_TIMEOUT, STARTING};

/// The manifest of a namespace that belongs to this process.
pub(crate) fn namespace(name: &str) -> Namespace {
    let metadata = ObjectMeta {
        name: Some(name.to_owned()),
        labels: Some([(SCENARIO.to_owned(), "true".to_owned())].into()),
        annotations: Some([(OWNER.to_owned(), Owner::here().text())].into()),
        ..ObjectMeta::default()
    };
    Namespace { metadata, ..Namespace::default() }
}

/// A namespace with an owner.
struct OwnedNamespace {
    name: String,
    owner: Option<Owner>,
    age: SignedDuration,
}

async fn list(client: &Client) -> Result<Vec<OwnedNamespace>, String> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let list = namespaces.list(&ListParams::default().labels(SCENARIO)).await;
    let list = list.map_err(|error| format!("namespaces can't be listed: {error}"))?;
    let owned = list.into_iter().map(|it| OwnedNamespace {
        name: it.name_any(),
        owner: it.annotations().get(OWNER).and_then(|text| Owner::parse(text)),
        age: age(it.metadata.creation_timestamp.map(|created| created.0)),
    });
    Ok(owned.collect())
}

/// The namespaces of dead processes. A process on another machine counts as alive if `serves` says
/// that its metrics API is available, or if the namespace is new.
pub(crate) async fn left_by_dead_processes(
    client: &Client,
    serves: impl Fn(&Owner) -> bool,
) -> Result<Vec<String>, String> {
    let is_alive = |it: &OwnedNamespace| match &it.owner {
        Some(owner) => owner.is_alive().unwrap_or_else(|| serves(owner) || it.age < STARTING),
        None => false,
    };
    let dead = list(client).await?.into_iter().filter(|it| !is_alive(it));
    Ok(dead.map(|it| it.name).collect())
}

/// The namespaces of this process.
pub(crate) async fn created_by_this_process(client: &Client) -> Result<Vec<String>, String> {
    let here = Owner::here();
    let all = list(client).await?;
    let own = all.into_iter().filter(|it| it.owner.as_ref() == Some(&here));
    Ok(own.map(|it| it.name).collect())
}

/// Removes namespaces, and waits until they are deleted.
///
/// # Errors
/// If the API server rejects a request, or namespaces remain after the timeout.
pub(crate) async fn remove(client: &Client, names: &[String]) -> Result<(), String> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    // True if the deletion was requested.
    let mut remaining: BTreeMap<&String, bool> = names.iter().map(|name| (name, false)).collect();
    let limit = Instant::now() + NAMESPACE_TIMEOUT;
    loop {
        for (name, is_requested) in &mut remaining {
            if !*is_requested {
                match namespaces.delete(name, &at_once()).await {
                    // The namespace is deleted or already terminating.
                    Err(Error::Api(status)) if matches!(status.code, 404 | 409) => {}
                    Err(error) => return Err(format!("namespace {name}: {error}")),
                    Ok(_) => {}
                }
                *is_requested = true;
            }
            release(client, name).await?;
        }
        // Copies the names, because the loop removes entries.
        for name in remaining.keys().copied().collect::<Vec<_>>() {
            let existing = namespaces.get_opt(name).await;
            if existing.map_err(|error| format!("namespace {name}: {error}"))?.is_none() {
                remaining.remove(name);
            }
        }
        if remaining.is_empty() {
            return Ok(());
        }
        if Instant::now() > limit {
            let names: Vec<&str> = remaining.into_keys().map(String::as_str).collect();
            let after = NAMESPACE_TIMEOUT.as_secs();
            return Err(format!("still being deleted after {after} s: {}", names.join(", ")));
        }
        sleep(NAMESPACE_POLL_INTERVAL).await;
    }
}

/// Removes the finalizer from the pods of a namespace.
async fn release(client: &Client, namespace: &str) -> Result<(), String> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    // All pods, not only those with the label: it had another name in earlier versions.
    let list = pods.list(&ListParams::default()).await;
    let list = list.map_err(|error| format!("pods of {namespace}: {error}"))?;
    let held = list.into_iter().filter(|pod| pod.finalizers().iter().any(|it| it == HOLD));
    for pod in held {
        match remove_finalizers(&pods, &pod.name_any()).await {
            Err(Error::Api(status)) if status.code == 404 => {}
            Err(error) => return Err(format!("a pod of {namespace}: {error}")),
            Ok(()) => {}
        }
    }
    Ok(())
}

/// Removes all finalizers of a pod.
pub(crate) async fn remove_finalizers(pods: &Api<Pod>, name: &str) -> Result<(), Error> {
    let patch = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
    pods.patch(name, &PatchParams::default(), &patch).await.map(|_| ())
}
