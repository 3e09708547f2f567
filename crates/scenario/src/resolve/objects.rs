//! The objects of a scenario, and the actions on them.
//!
//! The API server of the engine validates them. Only what no API server accepts is reported here.

use serde_json::Value;

use super::Reader;
use super::cursor::{At, Problems};
use super::hpa::Hpas;
use super::require;
use super::target::Target;
use crate::error::unreadable;
use crate::manifest::Reference;
use crate::node::{Node, NodeKind};
use crate::object::ObjectRef;
use crate::raw::{ScenarioFile, Workload};
use crate::yaml;

/// The kind whose objects are created first: the kinds of the others depend on them.
const DEFINITION: &str = "CustomResourceDefinition";

/// The objects of a scenario, and the workload as the file and the objects describe it.
pub(super) struct Objects {
    /// The manifests: definitions of custom resources first, otherwise in the file's order. `None`:
    /// the file has no `objects`.
    pub manifests: Option<Vec<Value>>,
    pub workload: Workload,
    /// The target of the workload. `None`: it is not valid.
    pub target: Option<Target>,
}

/// Resolves `objects`, and the target of the workload.
pub(super) fn resolve(
    file: &ScenarioFile,
    hpas: Option<&Hpas>,
    at: At<'_>,
    read: Reader<'_>,
    problems: &mut Problems,
) -> Objects {
    let all = at.key("objects");
    let manifests = file.objects.as_ref().map(|given| {
        let found = (0..given.len()).flat_map(|index| manifests(all.index(index), read, problems));
        let mut found: Vec<Value> = found.collect();
        found.sort_by_key(|object| object["kind"] != DEFINITION);
        found
    });
    let Described { workload, target } =
        workload(file, hpas, manifests.as_deref().unwrap_or_default(), at, problems);
    Objects { manifests, workload, target }
}

/// The workload as the file and its objects describe it.
struct Described {
    workload: Workload,
    target: Option<Target>,
}

/// The workload and its target: that of the first HPA, or the one that the workload names. Without
/// an HPA, the object of the target gives the replicas and the labels that the workload does not
/// have.
fn workload(
    file: &ScenarioFile,
    hpas: Option<&Hpas>,
    objects: &[Value],
    at: At<'_>,
    problems: &mut Problems,
) -> Described {
    let mut workload = file.workload.clone();
    let (has_hpa, given) = (file.hpa.is_some() || !file.hpas.is_empty(), at.key("workload"));
    if has_hpa || at.key("objects").node().is_none() {
        require("workload", at, problems);
        if given.is_map() {
            require("replicas", given, problems);
        }
        if workload.target.is_some() {
            let hint = "remove `target`: the target of the HPA is the workload";
            problems.hint(given.key_position("target"), "the workload has two targets", hint);
        }
        return Described { workload, target: hpas.and_then(Hpas::target).cloned() };
    }
    if given.node().is_none() {
        return Described { workload, target: Some(Target::default()) };
    }
    let Some(object) = &workload.target else {
        let hint = "for example `target: {apiVersion: apps/v1, kind: Deployment, name: web}`";
        problems.hint(given, "missing field `target` of the workload", hint);
        return Described { workload, target: None };
    };
    check_ref(object, given.key("target"), problems);
    if object.namespace.is_some() {
        let hint = "remove `namespace`: the pods are in the namespace of the scenario";
        let at = given.key("target").key_position("namespace");
        problems.hint(at, "the target of the workload has no namespace", hint);
    }
    let reference = Reference {
        api_version: Some(object.api_version.to_string()),
        kind: Some(object.kind.to_string()),
        name: Some(object.name.to_string()),
    };
    let target = Target::of(&reference, given.key("target"), problems);
    let object = target.as_ref().and_then(|target| manifest_of(objects, target));
    if let Some(spec) = object.map(|object| &object["spec"]) {
        let replicas = spec["replicas"].as_i64().and_then(|it| i32::try_from(it).ok());
        workload.replicas = workload.replicas.or(replicas);
        if workload.labels.is_empty() {
            let labels = spec["selector"]["matchLabels"].as_object().into_iter().flatten();
            let text =
                |(name, value): (&String, &Value)| Some((name.clone(), value.as_str()?.to_owned()));
            workload.labels = labels.filter_map(text).collect();
        }
    }
    Described { workload, target }
}

/// Resolves the manifest of an action.
pub(super) fn resolve_one(at: At<'_>, read: Reader<'_>, problems: &mut Problems) -> Option<Value> {
    let before = problems.len();
    let mut found = manifests(at, read, problems);
    if found.len() != 1 && problems.len() == before {
        let what = format!("expected one object in the file, found {}", found.len());
        problems.hint(at.key("file"), what, "write a separate event for each object");
    }
    found.pop()
}

/// The manifests at a position, or in the file that it names.
fn manifests(at: At<'_>, read: Reader<'_>, problems: &mut Problems) -> Vec<Value> {
    let Some(node) = at.node() else { return Vec::new() };
    let Some((_, path)) = node.entry("file").filter(|_| node.entry("apiVersion").is_none()) else {
        return checked(node, problems).into_iter().collect();
    };
    let at = at.key("file");
    let Value::String(path) = path.to_json() else {
        problems.plain(at, format!("expected a path, found {}", path.describe()));
        return Vec::new();
    };
    if let Some(NodeKind::Map(entries)) = Some(&node.kind)
        && let Some((other, _)) = entries.iter().find(|(key, _)| key.text != "file")
    {
        problems.plain(at, format!("expected `file` alone, found also `{}`", other.text));
    }
    let documents = match read.read(&path) {
        Ok(text) => yaml::manifests(&text).map_err(|problem| problem.in_file(&path)),
        Err(why) => {
            problems.add_at(at, unreadable(&path, why, read.syntax));
            return Vec::new();
        }
    };
    let documents = match documents {
        Ok(documents) => documents,
        Err(problem) => {
            problems.add(problem);
            return Vec::new();
        }
    };
    if documents.is_empty() {
        problems.plain(at, format!("there is no object in {path}"));
    }
    let inside = problems.len();
    let objects = documents.iter().filter_map(|node| checked(node, problems)).collect();
    problems.in_file(inside, &path);
    objects
}

/// The manifest, if it has a kind and a name.
fn checked(node: &Node, problems: &mut Problems) -> Option<Value> {
    let (at, before) = (At::root(node), problems.len());
    let manifest = node.to_json();
    for (field, example) in [
        ("apiVersion", "for example `apiVersion: apps/v1`"),
        ("kind", "for example `kind: Deployment`"),
    ] {
        match &manifest[field] {
            Value::String(text) if !text.is_empty() => {}
            Value::Null => {
                problems.hint(at, format!("missing field `{field}` of the object"), example);
            }
            _ => {
                let found = at.key(field).node().map(Node::describe).unwrap_or_default();
                problems.hint(at.key(field), format!("expected a text, found {found}"), example);
            }
        }
    }
    match &manifest["metadata"]["name"] {
        Value::String(name) if !name.is_empty() => {}
        _ => {
            let hint = "for example `metadata: {name: web}`";
            problems.hint(at.key("metadata"), "missing field `name` of the object", hint);
        }
    }
    (problems.len() == before).then_some(manifest)
}

/// Checks that the texts of a reference are not empty.
pub(super) fn check_ref(object: &ObjectRef, at: At<'_>, problems: &mut Problems) {
    for (field, text) in
        [("apiVersion", &object.api_version), ("kind", &object.kind), ("name", &object.name)]
    {
        if text.is_empty() {
            problems.plain(at.key(field), format!("the {field} of the object is empty"));
        }
    }
}

/// The manifest of a target among the objects.
fn manifest_of<'o>(objects: &'o [Value], target: &Target) -> Option<&'o Value> {
    let group = |object: &Value| {
        let version = object["apiVersion"].as_str().unwrap_or_default();
        version.split_once('/').map_or(String::new(), |(group, _)| group.to_owned())
    };
    objects.iter().find(|object| {
        object["kind"] == target.kind.as_str()
            && object["metadata"]["name"] == *target.name
            && group(object) == target.group
    })
}
