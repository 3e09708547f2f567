//! Manifests of older API versions.
//!
//! Manifests of versions that current API servers serve stay unchanged. Manifests of removed
//! versions are converted to v2 beforehand, by the rules of the servers that served them, as
//! `kubectl convert` does.

use serde_json::{Value, json};

use super::cursor::{At, Problems};
use super::lenient::{Represented, represented};
use super::values::quantity;
use crate::api_schema::ApiObject;
use crate::decode::{Nulls, decode};
use crate::diagnostic::{Diagnostic, Kind};
use crate::error::suggest;
use crate::manifest::{Manifest, ManifestV1, ManifestV2beta1};
use crate::node::Node;
use kube_autoscaler_models::hpa::{FieldError, ROUND_TRIP_ANNOTATIONS, from_v2beta1};
use kube_autoscaler_models::quantity::Quantity;
use kube_autoscaler_models::rules::Release;

/// The sources of a metric, for messages.
pub(super) const METRIC_TYPES: &str =
    "Resource, ContainerResource, Pods, Object or External, as the field beside it";

/// All known versions, newest first.
const VERSIONS: [&str; 4] =
    ["autoscaling/v2", "autoscaling/v1", "autoscaling/v2beta2", "autoscaling/v2beta1"];

/// The release since which each version is served, as far as supported releases lack it.
const ADDED: [(&str, Release); 3] = [
    ("autoscaling/v2", Release { minor: 23 }),
    ("autoscaling/v2beta2", Release { minor: 12 }),
    ("autoscaling/v2beta1", Release { minor: 8 }),
];

/// The release since which each version is no longer served.
const REMOVED: [(&str, Release); 2] = [
    ("autoscaling/v2beta1", Release { minor: 25 }),
    ("autoscaling/v2beta2", Release { minor: 26 }),
];

/// A manifest as its types represent it.
pub(super) struct Shaped {
    pub typed: Manifest,
    /// The manifest without values that its types can't represent.
    pub node: Node,
    /// The errors of these values.
    pub errors: Vec<FieldError>,
}

/// Decodes the manifest as the API server does, by the types of its version.
pub(super) fn shape(at: At<'_>, problems: &mut Problems) -> Option<Shaped> {
    let node = at.node()?;
    let before = problems.len();
    let version = node.entry("apiVersion").map(|(_, version)| version.to_json());
    let version = version.as_ref().map_or(Some("autoscaling/v2"), |version| version.as_str());
    let type_name = match version {
        Some("autoscaling/v2" | "autoscaling/v2beta2") => "v2.HorizontalPodAutoscaler",
        Some("autoscaling/v1") => "v1.HorizontalPodAutoscaler",
        Some("autoscaling/v2beta1") => {
            let Represented { node, errors } = represented(node, false);
            let typed = v2beta1(At::root(&node), problems);
            let typed = typed.map_err(|problem| problems.add(problem)).ok()?;
            return (problems.len() == before).then_some(Shaped { typed, node, errors });
        }
        other => {
            let at = at.key("apiVersion");
            let found = at.node().map(|node| node.describe()).unwrap_or_default();
            let what = format!("expected the apiVersion of an HPA, found {found}");
            problems.add(at.problem(what, suggest(other.unwrap_or_default(), VERSIONS)));
            return None;
        }
    };
    // `file` is a field of scenarios.
    if node.entry("file").is_none() {
        let object = ApiObject { name: "HPA", type_name: type_name.to_owned(), node };
        let wrong = object.problems().into_iter();
        wrong.map(with_version_hint).for_each(|problem| problems.add(problem));
    }
    if problems.len() > before {
        return None;
    }
    let Represented { node, errors } = represented(node, type_name.starts_with("v2"));
    let typed = match version {
        Some("autoscaling/v1") => decode(&node, Nulls::Absent).map(ManifestV1::into),
        _ => decode(&node, Nulls::Absent),
    };
    let typed = typed.map_err(|problem| problems.add(problem)).ok()?;
    Some(Shaped { typed, node, errors })
}

/// The release since which a version is served, if that is after `release`.
pub(crate) fn not_yet_served(version: &str, release: Release) -> Option<Release> {
    let added = ADDED.iter().find(|(added, _)| *added == version);
    added.map(|(_, since)| *since).filter(|since| release < *since)
}

/// Returns true if a version is served until after `from`, and no longer by `to`.
#[must_use]
pub fn is_removed(version: &str, from: Release, to: Release) -> bool {
    let removed = REMOVED.iter().find(|(removed, _)| *removed == version);
    removed.is_some_and(|(_, since)| from < *since && to >= *since)
}

/// Adds a hint for fields that another version has.
fn with_version_hint(problem: Diagnostic) -> Diagnostic {
    let Kind::UnknownField(field) = &problem.kind else { return problem };
    let hint = match field.as_str() {
        "spec.targetCPUUtilizationPercentage" => {
            "use apiVersion autoscaling/v1, or `metrics: [{type: Resource, resource: {name: cpu, \
             target: {type: Utilization, averageUtilization: PERCENT}}}]`"
        }
        "spec.metrics" => {
            "use autoscaling/v2; autoscaling/v1 has the annotation \
             autoscaling.alpha.kubernetes.io/metrics instead"
        }
        "spec.behavior" => {
            "use autoscaling/v2; autoscaling/v1 has the annotation \
             autoscaling.alpha.kubernetes.io/behavior instead"
        }
        _ => return problem,
    };
    problem.hint(hint)
}

fn v2beta1(at: At<'_>, problems: &mut Problems) -> Result<Manifest, Diagnostic> {
    let Some(node) = at.node() else { return Ok(Manifest::default()) };
    let typed: ManifestV2beta1 = decode(node, Nulls::Absent)?;
    let metrics = typed.spec.iter().flat_map(|spec| spec.metrics.iter().flatten());
    for (index, metric) in metrics.enumerate() {
        let at = at.key("spec").key("metrics").index(index);
        if metric.type_.is_none() {
            problems.hint(at, "missing field `type` of the metric", METRIC_TYPES);
        }
        for (source, field, text) in metric.quantities() {
            quantity(text, at.key(source).key(field), problems);
        }
    }
    Ok(typed.into())
}

/// The manifest for the API server, and a note if it was converted.
pub(super) fn for_api_server(
    manifest: Value,
    at: At<'_>,
    problems: &mut Problems,
) -> Option<(Value, Option<String>)> {
    let version = manifest["apiVersion"].as_str().unwrap_or_default().to_owned();
    let Some((_, since)) = REMOVED.iter().find(|(removed, _)| *removed == version) else {
        return Some((manifest, None));
    };
    if version == "autoscaling/v2beta2" {
        no_tolerances(&manifest, at, problems);
    }
    match served(manifest) {
        Ok(converted) => {
            let note = format!(
                "{version} has not been served since Kubernetes {since}: the HPA was converted to \
                 autoscaling/v2"
            );
            Some((converted, Some(note)))
        }
        Err(why) => {
            problems.plain(at, format!("the HPA can't be converted to autoscaling/v2: {why}"));
            None
        }
    }
}

/// The manifest in a version that servers accept: v2 in place of removed versions.
///
/// # Errors
/// The reason why the manifest can't be converted.
pub fn served(manifest: Value) -> Result<Value, String> {
    match manifest["apiVersion"].as_str() {
        Some("autoscaling/v2beta1") => from_v2beta1(&manifest)
            .and_then(|spec| serde_json::to_value(spec).map_err(|error| error.to_string()))
            .map(|spec| with_spec(manifest, spec)),
        Some("autoscaling/v2beta2") => from_v2beta2(manifest),
        _ => Ok(manifest),
    }
}

fn no_tolerances(manifest: &Value, at: At<'_>, problems: &mut Problems) {
    for rules in ["scaleUp", "scaleDown"] {
        if !manifest["spec"]["behavior"][rules]["tolerance"].is_null() {
            let at = at.key("spec").key("behavior").key(rules).key_position("tolerance");
            let what = "autoscaling/v2beta2 has no `tolerance`";
            problems.hint(at, what, "use autoscaling/v2");
        }
    }
}

/// Converts a manifest. The version has the fields of v2 except for the tolerances, which are in
/// annotations.
///
/// Upstream: pkg/apis/autoscaling/v2beta2/conversion.go (until it was removed)
fn from_v2beta2(manifest: Value) -> Result<Value, String> {
    let mut spec = manifest["spec"].clone();
    for (rules, direction) in [("scaleUp", "scale-up"), ("scaleDown", "scale-down")] {
        let name = format!("autoscaling.alpha.kubernetes.io/{direction}-tolerance");
        let Some(text) = manifest["metadata"]["annotations"][&name].as_str() else { continue };
        if Quantity::parse(text).is_err() {
            return Err(format!("annotation {name}: {text:?} is not a quantity"));
        }
        spec["behavior"][rules]["tolerance"] = json!(text);
    }
    Ok(with_spec(manifest, spec))
}

/// The manifest as v2 with this spec, without the annotations that stand for fields.
fn with_spec(mut manifest: Value, spec: Value) -> Value {
    manifest["apiVersion"] = json!("autoscaling/v2");
    manifest["spec"] = spec;
    if let Some(annotations) = manifest["metadata"]["annotations"].as_object_mut() {
        annotations.retain(|name, _| !ROUND_TRIP_ANNOTATIONS.contains(&name.as_str()));
    }
    manifest
}
