//! Custom resource definitions of the kinds that scenarios scale.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::PostParams;
use kube::{Api, Client};

use crate::cluster::access::client::{object, wait_until_served};
use crate::cluster::access::error::message;
use crate::cluster::workload::CustomKind;

/// Defines custom resources, and waits until the API server serves them. A controller that starts
/// later finds them with its first discovery.
///
/// # Errors
/// If the API server rejects a definition, or does not serve it in time.
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
        created.map_err(|error| format!("{name} can't be defined: {}", message(&error)))?;
    }
    for kind in kinds {
        let path = format!("/apis/{}/{}/{}", kind.group, kind.version, kind.plural);
        wait_until_served(admin, &path).await?;
    }
    Ok(())
}
