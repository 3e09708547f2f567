//! The objects of a scenario as manifests.
//!
//! Deliberately absent: loads; other pods and targets; and the replicas of the workload, which are
//! only those at the start.

use serde_json::{Value, json};

use super::hpa::ValidHpa;
use super::manifests::{Manifests, ValidWorkload};
use super::objects::Object;
use super::pods::Pods;
use super::recommender::read_vpa;
use kube_lockstep_scenario::error::Error;
use kube_lockstep_scenario::node::{Key, Node, NodeKind};
use kube_lockstep_scenario::{Scenario, yaml};

impl Manifests {
    /// The autoscalers of a scenario and the workload that they scale, at their places in its file,
    /// whose text this is.
    ///
    /// # Errors
    /// If the text is not YAML, or a manifest is invalid.
    pub fn of_scenario(scenario: &Scenario, text: &str) -> Result<Manifests, Error> {
        let documents = yaml::documents(text);
        let mut documents =
            documents.map_err(|problem| Error::new(&scenario.path, vec![problem]))?;
        let root = documents.swap_remove(0);
        let object = |node| Object { file: scenario.path.clone(), node };
        let field = |name: &str| root.entry(name).map(|(_, node)| node);
        let hpas = scenario.hpas.iter().enumerate().map(|(index, hpa)| {
            let node = field("hpa").or_else(|| field("hpas")?.item(index)).unwrap_or(&root);
            ValidHpa::read(&object(manifest(node, &hpa.manifest)))
        });
        let vpas = scenario.vpa.iter().filter_map(|vpa| {
            let written = vpa.recommender.file.vpa.as_ref()?;
            Some(read_vpa(&object(manifest(field("vpa").unwrap_or(&root), &written.0))))
        });
        let object = object(workload(scenario, &root));
        let pods = Pods::read(&object)?;
        Ok(Manifests {
            hpas: hpas.collect::<Result<_, _>>()?,
            vpas: vpas.collect::<Result<_, _>>()?,
            workloads: vec![ValidWorkload { object, pods }],
            limit_ranges: Vec::new(),
            loads: Vec::new(),
        })
    }
}

/// The manifest at a node. If the node names a file, it has the place of that node.
fn manifest(node: &Node, manifest: &Value) -> Node {
    match node.entry("file") {
        Some(_) => placed(manifest, node),
        None => node.clone(),
    }
}

/// The workload with its pods.
fn workload(scenario: &Scenario, root: &Node) -> Node {
    let workload = &scenario.workload;
    let (group, version) = (&workload.group, &workload.version);
    let api_version =
        if group.is_empty() { version.to_string() } else { format!("{group}/{version}") };
    let name = &*workload.name;
    let place = root.entry("workload").map_or(root, |(_, node)| node);
    let field = |name: &str| place.entry(name).map(|(_, node)| node.clone());
    let pod = ["initContainers", "resources", "overhead"].into_iter().filter_map(|name| {
        let node = field(name)?;
        Some((name, if name == "initContainers" { containers(&node) } else { node }))
    });
    let default = || placed(&json!([{ "name": "app" }]), place);
    let containers = field("containers").map_or_else(default, |node| containers(&node));
    let pod = map(place, pod.chain([("containers", containers)]));
    let metadata = placed(&json!({ "labels": workload.labels }), place);
    let template = [("metadata", metadata), ("spec", pod)].into_iter();
    let spec = map(place, [("template", map(place, template))].into_iter());
    let text = |value: &str| placed(&json!(value), place);
    let fields = [
        ("apiVersion", text(&api_version)),
        ("kind", text(&workload.kind)),
        ("metadata", placed(&json!({ "name": name }), place)),
        ("spec", spec),
    ];
    map(place, fields.into_iter())
}

/// Containers with their requests and limits in `resources`, as in a manifest.
fn containers(list: &Node) -> Node {
    let container = |node: &Node| {
        let field = |name: &'static str| Some((name, node.entry(name)?.1.clone()));
        let amounts = ["requests", "limits"].into_iter().filter_map(field);
        let resources = [("resources", map(node, amounts))];
        let others = ["name", "restartPolicy"].into_iter().filter_map(field);
        map(node, others.chain(resources))
    };
    let items = match &list.kind {
        NodeKind::List(items) => items.iter().map(container).collect(),
        NodeKind::Scalar { .. } | NodeKind::Map(_) => Vec::new(),
    };
    Node { kind: NodeKind::List(items), ..*list }
}

/// A map at the place of another node. Its keys have the places of their values.
fn map<'n>(at: &Node, fields: impl Iterator<Item = (&'n str, Node)>) -> Node {
    let field = |(name, node): (&str, Node)| {
        (Key { text: name.to_owned(), line: node.line, column: node.column }, node)
    };
    Node { line: at.line, column: at.column, kind: NodeKind::Map(fields.map(field).collect()) }
}

/// A value at the place of another node.
fn placed(value: &Value, at: &Node) -> Node {
    let kind = match value {
        Value::Array(items) => NodeKind::List(items.iter().map(|it| placed(it, at)).collect()),
        Value::Object(fields) => {
            return map(at, fields.iter().map(|(name, it)| (&**name, placed(it, at))));
        }
        Value::String(text) => NodeKind::Scalar { text: text.clone(), plain: false },
        other => NodeKind::Scalar { text: other.to_string(), plain: true },
    };
    Node { line: at.line, column: at.column, kind }
}
