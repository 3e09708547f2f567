//! Manifests of older API versions.
//!
//! Manifests of versions that current API servers serve stay unchanged. Manifests of removed
//! versions are converted to v2 beforehand, by the rules of the servers that served them, as
//! `kubectl convert` does.

use serde_json::{Value, json};

use super::cursor::{At, Problems};
use super::values::quantity;
use crate::model::hpa::{ROUND_TRIP_ANNOTATIONS, from_v2beta1};
use crate::model::quantity::Quantity;
use crate::model::rules::Release;
use crate::scenario::decode::{Nulls, decode};
use crate::scenario::error::{Problem, suggest};
use crate::scenario::manifest::{Manifest, ManifestV1, ManifestV2beta1};

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
const REMOVED: [(&str, &str); 2] =
    [("autoscaling/v2beta1", "1.25"), ("autoscaling/v2beta2", "1.26")];

/// Checks the manifest for misspelt fields and wrong types, by the fields of its version.
pub(super) fn shape(at: At<'_>, problems: &mut Problems) -> Option<Manifest> {
    let node = at.node()?;
    let before = problems.len();
    let version = node.entry("apiVersion").map(|(_, version)| version.to_json());
    let typed = match version.as_ref() {
        None => decode(node, Nulls::Absent),
        Some(version) => match version.as_str() {
            Some("autoscaling/v2" | "autoscaling/v2beta2") => {
                decode(node, Nulls::Absent).map_err(in_v2)
            }
            Some("autoscaling/v1") => {
                decode(node, Nulls::Absent).map(ManifestV1::into).map_err(in_v1)
            }
            Some("autoscaling/v2beta1") => v2beta1(at, problems),
            other => {
                let at = at.key("apiVersion");
                let found = at.node().map(|node| node.describe()).unwrap_or_default();
                let what = format!("expected an apiVersion of HPAs, found {found}");
                Err(at.problem(what, suggest(other.unwrap_or_default(), VERSIONS)))
            }
        },
    };
    match typed {
        Ok(typed) => (problems.len() == before).then_some(typed),
        Err(problem) => {
            problems.add(problem);
            None
        }
    }
}

/// The release since which a version is served, if that is after `release`.
pub(in crate::scenario) fn not_yet_served(version: &str, release: Release) -> Option<Release> {
    let added = ADDED.iter().find(|(added, _)| *added == version);
    added.map(|(_, since)| *since).filter(|since| release < *since)
}

/// Adds a hint for the field of v1 that version v2 does not have.
fn in_v2(problem: Problem) -> Problem {
    let is_of_v1 = problem.what == "unknown field `targetCPUUtilizationPercentage`";
    let hint = is_of_v1.then(|| {
        "use apiVersion autoscaling/v1, or `metrics: [{type: Resource, resource: {name: cpu, \
         target: {type: Utilization, averageUtilization: PERCENT}}}]`"
            .to_owned()
    });
    Problem { hint: hint.or(problem.hint), ..problem }
}

/// Adds a hint for fields of v2 that version v1 has in annotations.
fn in_v1(problem: Problem) -> Problem {
    let field = ["metrics", "behavior"]
        .into_iter()
        .find(|field| problem.what == format!("unknown field `{field}`"));
    let hint = field.map(|field| {
        let annotation = format!("autoscaling.alpha.kubernetes.io/{field}");
        format!("use autoscaling/v2; autoscaling/v1 has the annotation {annotation} instead")
    });
    Problem { hint: hint.or(problem.hint), ..problem }
}

fn v2beta1(at: At<'_>, problems: &mut Problems) -> Result<Manifest, Problem> {
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
                "{version} is not served since Kubernetes {since}: the HPA was converted to \
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
pub(crate) fn served(manifest: Value) -> Result<Value, String> {
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
