//! The namespaces of scenarios: each says whose it is, so that all of them can be removed, also
//! those of a process that was killed.

use crate::engine::cluster::labels::SCENARIO;
use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, Client, Error, ResourceExt};
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::engine::cluster::access::client::{at_once, object};
use crate::engine::cluster::access::ownership::{Owner, age};
use crate::engine::cluster::labels::{HOLD, OWNER, PLAYED};

/// How long they may take to go: a cluster's namespace controller is in no hurry.
const LIMIT: Duration = Duration::from_secs(120);

const GLANCE: Duration = Duration::from_millis(100);

/// Of a process elsewhere that has no metrics API yet: less than these seconds old, it may only be
/// starting.
const YOUNG: i64 = 60;

/// A namespace of ours.
pub(crate) fn namespace(name: &str) -> Result<Namespace, String> {
    object(json!({
        "metadata": {
            "name": name,
            "labels": { SCENARIO: "true" },
            "annotations": { OWNER: Owner::here().text() },
        },
    }))
}

/// A namespace, whose it is, and how many seconds old.
struct Claimed {
    name: String,
    owner: Option<Owner>,
    age: i64,
}

async fn claimed(client: &Client) -> Result<Vec<Claimed>, String> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let list = namespaces.list(&ListParams::default().labels(SCENARIO)).await;
    let list = list.map_err(|error| format!("namespaces can't be listed: {error}"))?;
    let claimed = list.into_iter().map(|it| Claimed {
        name: it.name_any(),
        owner: it.annotations().get(OWNER).and_then(|text| Owner::of_text(text)),
        age: age(it.metadata.creation_timestamp.map(|created| created.0)),
    });
    Ok(claimed.collect())
}

/// The namespaces of dead processes. A process of another machine counts as alive if `serves` says
/// that its metrics API is available, or if the namespace is new.
pub(crate) async fn left(
    client: &Client,
    serves: impl Fn(&Owner) -> bool,
) -> Result<Vec<String>, String> {
    let lives = |it: &Claimed| match &it.owner {
        Some(owner) => owner.lives().unwrap_or_else(|| serves(owner) || it.age < YOUNG),
        None => false,
    };
    let claimed = claimed(client).await?.into_iter().filter(|it| !lives(it));
    Ok(claimed.map(|it| it.name).collect())
}

/// Those of this process.
pub(crate) async fn own(client: &Client) -> Result<Vec<String>, String> {
    let here = Owner::here();
    let claimed = claimed(client).await?;
    let own = claimed.into_iter().filter(|it| it.owner.as_ref() == Some(&here));
    Ok(own.map(|it| it.name).collect())
}

/// Removes namespaces, and waits until they are gone.
///
/// # Errors
/// What the API server refuses, and which are still there after a long time.
pub(crate) async fn remove(client: &Client, names: &[String]) -> Result<(), String> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    // Those that were told to go.
    let mut left: BTreeMap<&String, bool> = names.iter().map(|name| (name, false)).collect();
    let limit = Instant::now() + LIMIT;
    loop {
        for (name, told) in &mut left {
            if !*told {
                match namespaces.delete(name, &at_once()).await {
                    // It is going already, or gone.
                    Err(Error::Api(status)) if matches!(status.code, 404 | 409) => {}
                    Err(error) => return Err(format!("namespace {name}: {error}")),
                    Ok(_) => {}
                }
                *told = true;
            }
            release(client, name).await?;
        }
        // A copy of the names: those that are gone are taken out.
        for name in left.keys().copied().collect::<Vec<_>>() {
            let there = namespaces.get_opt(name).await;
            if there.map_err(|error| format!("namespace {name}: {error}"))?.is_none() {
                left.remove(name);
            }
        }
        if left.is_empty() {
            return Ok(());
        }
        if Instant::now() > limit {
            let names: Vec<&str> = left.into_keys().map(String::as_str).collect();
            let after = LIMIT.as_secs();
            return Err(format!("still being deleted after {after} s: {}", names.join(", ")));
        }
        sleep(GLANCE).await;
    }
}

/// Lets go of the pods that are held in a namespace.
async fn release(client: &Client, namespace: &str) -> Result<(), String> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let list = pods.list(&ListParams::default().labels(PLAYED)).await;
    let list = list.map_err(|error| format!("pods of {namespace}: {error}"))?;
    let held = list.into_iter().filter(|pod| pod.finalizers().iter().any(|it| it == HOLD));
    for pod in held {
        let patch = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
        match pods.patch(&pod.name_any(), &PatchParams::default(), &patch).await {
            Err(Error::Api(status)) if status.code == 404 => {}
            Err(error) => return Err(format!("a pod of {namespace}: {error}")),
            Ok(_) => {}
        }
    }
    Ok(())
}
