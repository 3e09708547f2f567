//! Scenario files: the raw form that serde reads (`raw`), the resolved form that the rest of the
//! crate uses ([`resolved`]), and the conversions between them.
//!
//! A file is parsed into a tree that keeps positions (`yaml`, `node`). The raw types are decoded
//! from that tree (`decode`) and resolved (`resolve`): values are parsed, defaults are filled in,
//! and errors are reported with line and column. [`to_yaml`] converts back. This module does no
//! I/O: the caller reads files.
//!
//! Deliberately absent: includes, variables and templates. A reader without
//! knowledge of the format can read a scenario from top to bottom.

mod action;
pub mod api_schema;
mod assumptions;
mod autoscaler;
mod autoscalers;
mod bounds;
pub mod decode;
pub mod defaults;
mod deprecated;
pub mod diagnostic;
pub mod entries;
pub mod error;
mod event;
mod expectation;
mod expected_metric;
mod flag_values;
mod forms;
mod hash;
mod hints;
pub mod kinds;
mod known_fields;
pub mod load_factor;
mod manifest;
pub mod metrics;
mod needs;
pub mod node;
pub mod object;
pub mod object_meta;
mod other_namespaces;
mod other_pods;
mod percent;
mod podset;
pub mod raw;
pub mod recorded;
pub mod recording;
mod releases;
pub mod resolve;
pub mod resolved;
mod schema;
mod search;
pub mod signal;
mod skip_reason;
mod speed;
pub mod syntax;
pub mod text;
mod to_raw;
pub mod vpa;
mod with_vpa;
pub mod workload;
pub mod write;
pub mod yaml;

#[doc(hidden)]
pub mod testing;
#[cfg(test)]
mod tests;

use std::str::FromStr;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

pub use self::action::EVENTS_WITHOUT_VPA;
pub use self::diagnostic::{Diagnostic, Hint, Kind, Place};
pub use self::error::Error;
pub use self::error::READS_MANIFESTS;
pub use self::flag_values::FlagValues;
pub use self::podset::PodSetError;
pub use self::recording::{AnswerOverview, check_answer};
use self::resolve::Reader;
pub use self::resolved::Scenario;
pub use self::schema::schema;
pub use self::skip_reason::SkipReason;
use self::syntax::Syntax;
use self::vpa::VpaScenario;
use kube_autoscaler_models::rules::Rules;

/// A scenario of the HPA controller, or of the VPA's recommender alone.
#[derive(Clone, Debug)]
pub enum AnyScenario {
    /// The file has `hpa` or `hpas`, and possibly `vpa`.
    Hpa(Box<Scenario>),
    /// The file has `vpa` or `vpas` only.
    Vpa(Box<VpaScenario>),
}

impl FromStr for Scenario {
    type Err = Error;

    /// Reads a scenario from YAML, without references to other files.
    fn from_str(text: &str) -> Result<Scenario, Error> {
        parse(UNNAMED, text, &without_files)
    }
}

impl FromStr for VpaScenario {
    type Err = Error;

    /// Reads a scenario of a VPA from YAML, without references to other files.
    fn from_str(text: &str) -> Result<VpaScenario, Error> {
        match parse_any(UNNAMED, text, &without_files)? {
            AnyScenario::Vpa(scenario) => Ok(*scenario),
            AnyScenario::Hpa(_) => {
                let problem = Diagnostic::new("this is an HPA scenario");
                let problem = problem.at(1, 1).hint("read it as a Scenario");
                Err(Error::new(UNNAMED, vec![problem]))
            }
        }
    }
}

/// The name of a scenario that was not read from a file, in errors.
const UNNAMED: &str = "scenario.yaml";

fn without_files(_: &str) -> Result<String, Diagnostic> {
    Err("the scenario was not read from a file".into())
}

/// Reads a scenario of either kind, as [`parse`] does.
///
/// # Errors
/// All problems of the file, with line and column.
pub fn parse_any(
    path: &str,
    text: &str,
    read: &dyn Fn(&str) -> Result<String, Diagnostic>,
) -> Result<AnyScenario, Error> {
    parse_with(path, text, Reader { file: read, syntax: Syntax::Scenario })
}

/// Parses a draft like [`parse_any`]. The user wrote the loads of the draft as flags, so the hints
/// name flags instead of fields.
///
/// # Errors
/// All problems of the draft, with line and column.
pub fn parse_draft(
    path: &str,
    text: &str,
    read: &dyn Fn(&str) -> Result<String, Diagnostic>,
) -> Result<AnyScenario, Error> {
    parse_with(path, text, Reader { file: read, syntax: Syntax::Flags })
}

fn parse_with(path: &str, text: &str, read: Reader<'_>) -> Result<AnyScenario, Error> {
    let root = single(text).map_err(|problem| Error::new(path, vec![problem]))?;
    let resolved = resolve::resolve(path, root, read);
    resolved.map_err(|problems| Error::new(path, beside(path, problems)))
}

/// Reads a scenario with an HPA. `path` is the file as the user named it, for messages; it is also
/// the id unless the caller sets another one. `read` reads the manifest of `hpa.file`, by a path
/// relative to the scenario's folder.
///
/// # Errors
/// All problems of the file, with line and column.
pub fn parse(
    path: &str,
    text: &str,
    read: &dyn Fn(&str) -> Result<String, Diagnostic>,
) -> Result<Scenario, Error> {
    match parse_any(path, text, read)? {
        AnyScenario::Hpa(scenario) => Ok(*scenario),
        AnyScenario::Vpa(_) => {
            let problem = Diagnostic::new("expected an HPA scenario, found a VPA scenario");
            let problem = problem.at(1, 1).hint("`kube-lockstep run` and `predict` support both");
            Err(Error::new(path, vec![problem]))
        }
    }
}

/// Makes the files of problems relative to the current folder instead of the scenario's.
fn beside(path: &str, mut problems: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let folder = path.rfind('/').map_or("", |end| &path[..=end]);
    let places = problems.iter_mut().filter_map(|problem| problem.place.as_mut());
    for file in places.filter_map(|place| place.file.as_mut()) {
        let below = file.strip_prefix("./").unwrap_or(file);
        if !below.starts_with('/') {
            *file = format!("{folder}{below}");
        }
    }
    problems
}

/// The scenario with other noise in its signals, for a repeated run. `run` is counted from 0: the
/// first run is the scenario as it is. None: no signal has noise.
#[must_use]
pub fn with_noise_of_run(scenario: &Scenario, run: u32) -> Option<Scenario> {
    let mut varied = scenario.clone();
    let mut noise = varied.metrics.noise_mut().peekable();
    noise.peek()?;
    noise.for_each(|noise| noise.seed = noise.seed.wrapping_add(run));
    Some(varied)
}

/// The parts of a scenario that settings change: the manifests of the HPAs in the list `hpas`, that
/// of the VPA in `vpa`, and the flags of the components of the VPA in `recommender.flags` and
/// `updater.flags`.
#[must_use]
pub fn to_manifests(scenario: &Scenario) -> Value {
    let hpas: Value = scenario.hpas.iter().map(|hpa| hpa.manifest.clone()).collect();
    let mut tree = json!({ "hpas": hpas });
    if let Some(vpa) = &scenario.vpa {
        let file = &vpa.recommender.file;
        tree["vpa"] = file.vpa.as_ref().map(|vpa| vpa.0.clone()).unwrap_or_default();
        for (name, flags) in
            [("recommender", &file.recommender.flags), ("updater", &file.updater.flags)]
        {
            tree[name] = json!({ "flags": flags });
        }
    }
    tree
}

/// The scenario with other manifests of its autoscalers, in the form of [`to_manifests`]. They keep
/// their targets, and scale on metrics that the scenario has.
///
/// # Errors
/// The problems of a manifest that API servers reject, or of a flag.
pub fn with_manifests(scenario: &Scenario, tree: &Value) -> Result<Scenario, Vec<Diagnostic>> {
    let gates = scenario.gates_by(&Rules::default());
    let mut varied = scenario.clone();
    let manifests = tree["hpas"].as_array().map_or(&[][..], Vec::as_slice);
    for (hpa, manifest) in varied.hpas.iter_mut().zip(manifests) {
        if hpa.manifest != *manifest {
            *hpa = hpa.with_manifest(manifest, &gates)?;
        }
    }
    if let Some(vpa) = &mut varied.vpa {
        let before = to_manifests(scenario);
        if ["vpa", "recommender", "updater"].iter().any(|part| tree[part] != before[part]) {
            *vpa = Arc::new(vpa.with_manifest(tree)?);
        }
    }
    // It identifies the recorded traces of a file.
    varied.hash = String::new();
    Ok(varied)
}

/// Converts an HPA's manifest to v2 if API servers no longer accept its version.
///
/// # Errors
/// The reason why the manifest can't be converted.
pub fn served(manifest: Value) -> Result<Value, String> {
    resolve::served(manifest)
}

/// Reads the documents of a text with manifests.
///
/// # Errors
/// The first problem, with line and column.
pub fn manifests(text: &str) -> Result<Vec<Value>, Diagnostic> {
    Ok(yaml::documents(text)?.iter().map(node::Node::to_json).collect())
}

/// Reads a file with one value that is not a scenario, for example `divergences.yaml`. `flaw`
/// returns the error of a value that has the right shape.
///
/// # Errors
/// The first problem of the file, with line and column.
pub fn decode_file<T: DeserializeOwned>(
    path: &str,
    text: &str,
    flaw: impl FnOnce(&T) -> Option<String>,
) -> Result<T, Error> {
    let failed = |problem| Error::new(path, vec![problem]);
    let root = single(text).map_err(failed)?;
    let value = decode::decode(&root, decode::Nulls::Refused).map_err(failed)?;
    let Some(what) = flaw(&value) else { return Ok(value) };
    Err(failed(Diagnostic::new(what).at_node(&root)))
}

/// Writes a scenario as a readable file, which is parsed to the same scenario. `schema` is the path
/// of the schema, relative to the file, for the first line.
#[must_use]
pub fn to_yaml(scenario: &Scenario, schema: Option<&str>) -> String {
    let mut text = String::new();
    if let Some(schema) = schema {
        text.push_str(&format!("# yaml-language-server: $schema={schema}\n"));
    }
    if let Value::Object(fields) = to_raw::to_value(scenario) {
        text.push_str(&write::document(&fields));
    }
    text
}

/// The tree that [`to_yaml`] writes. The shrinker removes parts of it.
#[must_use]
pub fn to_tree(scenario: &Scenario) -> Value {
    to_raw::to_value(scenario)
}

/// Writes a tree as YAML. The tree may be incomplete; [`parse`] checks whether it is a valid
/// scenario.
#[must_use]
pub fn tree_to_yaml(tree: &Value) -> String {
    tree.as_object().map(write::document).unwrap_or_default()
}

/// Parses a text that contains exactly one document.
fn single(text: &str) -> Result<node::Node, Diagnostic> {
    let problem = |node: &node::Node, what: &str| Diagnostic::new(what).at_node(node);
    let mut documents = yaml::documents(text)?.into_iter();
    let first = documents.next().filter(|first| !first.is_null());
    match (first, documents.next()) {
        (Some(only), None) => Ok(only),
        (None, None) => {
            let hint = "a scenario begins with `apiVersion: kube-lockstep.dev/v1alpha1`";
            Err(Diagnostic::new("the file is empty").at(1, 1).hint(hint))
        }
        (_, Some(second)) => {
            let is_manifest = |node: &node::Node| {
                let text = |name| node.entry(name).map(|(_, value)| value.to_json());
                let version = text("apiVersion").unwrap_or_default();
                let version = version.as_str().unwrap_or(kinds::API_VERSION);
                text("kind").is_some() && version != kinds::API_VERSION
            };
            if is_manifest(&second) {
                let what = "expected a scenario, found several manifests";
                return Err(problem(&second, what).hint(READS_MANIFESTS));
            }
            let hint = "one file holds one scenario: remove the line `---`, or make two files";
            Err(problem(&second, "a second document begins here").hint(hint))
        }
    }
}
