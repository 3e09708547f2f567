//! Custom resource definitions of the kinds that scenarios scale.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::PostParams;
use kube::{Api, Client};
use tokio::time::sleep;

use crate::engine::cluster::access::client;
use crate::engine::cluster::access::client::object;
use crate::engine::cluster::access::error::told;
use crate::engine::cluster::workload::CustomKind;

/// How long it may take until the API server serves a new kind.
const LIMIT: Duration = Duration::from_secs(20);

/// Makes custom kinds known to an API server, and waits until it serves them: a controller that
/// starts later finds them at once, and not only when it looks for new ones.
///
/// # Errors
/// If the API server refuses, or does not serve them in time.
pub(crate) async fn install(admin: &Client, kinds: &BTreeSet<CustomKind>) -> Result<(), String> {
    let definitions: Api<CustomResourceDefinition> = Api::all(admin.clone());
    let mut by_name: BTreeMap<String, Vec<&CustomKind>> = BTreeMap::new();
    for kind in kinds {
        by_name.entry(kind.name()).or_default().push(kind);
    }
    for (name, kinds) in by_name {
        let Some(kind) = kinds.first() else { continue };
        let versions: Vec<&str> = kinds.iter().map(|kind| kind.version.as_str()).collect();
        let definition = object(kind.definition(&versions))?;
        let created = definitions.create(&PostParams::default(), &definition).await;
        created.map_err(|error| format!("{name} can't be defined: {}", told(&error)))?;
    }
    let begin = Instant::now();
    for kind in kinds {
        let path = format!("/apis/{}/{}/{}", kind.group, kind.version, kind.plural);
        while let Err(error) = client::get(admin, &path).await {
            if begin.elapsed() > LIMIT {
                return Err(format!("{} is not served: {}", kind.name(), told(&error)));
            }
            sleep(Duration::from_millis(20)).await;
        }
    }
    Ok(())
}
