//! The HPA's metadata: fields that an API server rejects, or that have effects that are not
//! simulated.
//!
//! The model only validates specs, so other fields that an API server could reject are rejected
//! here.

use std::str::FromStr;

use jiff::Timestamp;
use serde_json::Value;

use super::cursor::{At, Problems};
use crate::error::rejection;
use crate::manifest::Metadata;
use crate::object_meta;
use kube_autoscaler_models::selector::is_dns1123_label;

/// The hint for invalid names of namespaces.
pub(super) const VALID_NAMESPACE: &str = "use at most 63 lowercase letters, digits and `-`";

/// Fields that only an API server sets. It rejects the first one, and some of the others if they
/// are malformed.
const SET_BY_THE_SERVER: [&str; 8] = [
    "resourceVersion",
    "uid",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "managedFields",
    "selfLink",
];

/// Fields with effects that are not simulated.
const NOT_SIMULATED: [&str; 3] = ["finalizers", "ownerReferences", "generateName"];

/// Checks the metadata of a new object.
pub(super) fn check_manifest(at: At<'_>, metadata: &Metadata, problems: &mut Problems) {
    if let Some(namespace) = &metadata.namespace
        && !is_dns1123_label(namespace).is_empty()
    {
        let what = format!("{namespace:?} is not a valid namespace");
        problems.hint(at.key("namespace"), what, VALID_NAMESPACE);
    }
    texts(at, problems);
    for field in SET_BY_THE_SERVER.into_iter().chain(NOT_SIMULATED) {
        let at = at.key(field);
        if at.node().is_some_and(|node| !harmless(field, &node.to_json())) {
            reject(field, at, problems);
        }
    }
}

/// Checks the metadata of an edit: only labels and annotations can be edited.
pub(super) fn check_edit(at: At<'_>, problems: &mut Problems) {
    texts(at, problems);
    let others = SET_BY_THE_SERVER.into_iter().chain(NOT_SIMULATED).chain(["name", "namespace"]);
    for field in others {
        if at.key(field).node().is_some() {
            let what = format!("`editHpa` can't change `metadata.{field}`");
            let hint = "in `metadata`, only labels and annotations can be edited";
            problems.hint(at.key_position(field), what, hint);
        }
    }
}

fn reject(field: &str, at: At<'_>, problems: &mut Problems) {
    if NOT_SIMULATED.contains(&field) {
        let what = format!("`metadata.{field}` of an HPA is not supported");
        problems.hint(at, what, "remove the field: the controller does not read it");
    } else {
        let what = format!("the API server sets `metadata.{field}` itself, and rejects this value");
        problems.hint(at, what, "remove the field, which `kubectl get -o yaml` prints");
    }
}

/// Returns true for fields that an API server accepts and ignores.
fn harmless(field: &str, value: &Value) -> bool {
    match (field, value) {
        (_, Value::Null) => true,
        ("resourceVersion" | "uid" | "selfLink", Value::String(text)) => {
            field != "resourceVersion" || text.is_empty()
        }
        ("generation", Value::Number(number)) => number.is_i64(),
        ("creationTimestamp", Value::String(text)) => Timestamp::from_str(text).is_ok(),
        ("managedFields" | "finalizers" | "ownerReferences", Value::Array(list)) => list.is_empty(),
        _ => false,
    }
}

/// Checks labels and annotations.
fn texts(at: At<'_>, problems: &mut Problems) {
    let Some(metadata) = at.node() else { return };
    object_meta::validate(metadata, "metadata", &mut |node, error| {
        problems.plain(At::root(node), rejection("HPA", error));
    });
}
