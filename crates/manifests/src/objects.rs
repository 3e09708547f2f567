//! The objects in manifests: the HPAs, the VPAs, and all others, among which are their targets.

use super::AutoscalerKind;
use kube_lockstep_scenario::diagnostic::Diagnostic;
use kube_lockstep_scenario::error::Error;
use kube_lockstep_scenario::node::{Key, Node, NodeKind};
use kube_lockstep_scenario::yaml;

/// A file with manifests.
#[derive(Clone, Debug)]
pub struct ManifestFile {
    /// The file as the user named it, for messages.
    pub name: String,
    /// Its text: YAML or JSON, any number of documents.
    pub text: String,
    /// True if a document that is not an object of the Kubernetes API is ignored, as in a folder.
    pub lenient: bool,
}

/// The end of the kinds of lists.
const LIST: &str = "List";

/// An object of the Kubernetes API in a file.
#[derive(Clone, Debug)]
pub struct Object {
    pub(crate) file: String,
    pub(crate) node: Node,
}

/// The objects of all files.
#[derive(Clone, Debug, Default)]
pub(crate) struct Objects {
    pub hpas: Vec<Object>,
    pub vpas: Vec<Object>,
    pub others: Vec<Object>,
}

impl Object {
    /// The text of a field; empty if it is absent.
    fn text(&self, path: &[&str]) -> String {
        let found =
            path.iter().try_fold(&self.node, |node, name| node.entry(name).map(|(_, value)| value));
        match found.map(|node| &node.kind) {
            Some(NodeKind::Scalar { text, .. }) => text.clone(),
            _ => String::new(),
        }
    }

    /// Returns true if the object has the status of a cluster: more than the zeros of a manifest
    /// that `kubectl` generates.
    pub(crate) fn has_status(&self) -> bool {
        let is_set = |node: &Node| match &node.kind {
            NodeKind::Map(entries) => !entries.is_empty(),
            NodeKind::List(items) => !items.is_empty(),
            NodeKind::Scalar { text, .. } => !node.is_null() && text != "0",
        };
        self.node.entry("status").is_some_and(|(_, status)| match &status.kind {
            NodeKind::Map(entries) => entries.iter().any(|(_, value)| is_set(value)),
            _ => false,
        })
    }

    /// The strategy of updates of a Rollout, which has another one than a Deployment: `canary`.
    pub(crate) fn rollout_strategy(&self) -> Option<&'static str> {
        let is_rollout = self.kind() == "Rollout" && self.group() == "argoproj.io";
        let (_, strategy) = self.node.entry("spec").filter(|_| is_rollout)?.1.entry("strategy")?;
        ["canary", "blueGreen"].into_iter().find(|name| strategy.entry(name).is_some())
    }

    /// Returns true if the object comes from a cluster: an API server has stored it.
    #[must_use]
    pub fn is_stored(&self) -> bool {
        ["uid", "resourceVersion"].iter().any(|field| !self.text(&["metadata", field]).is_empty())
    }

    /// Returns true if another object has created this one, as a Deployment creates ReplicaSets.
    #[must_use]
    pub fn has_owner(&self) -> bool {
        self.field("metadata.ownerReferences.0").is_some()
    }

    /// The value of a field, such as `spec.behavior.scaleUp.policies.0`. None: it is absent or
    /// null.
    #[must_use]
    pub fn field(&self, path: &str) -> Option<&Node> {
        let mut names = path.split('.');
        names.try_fold(&self.node, child).filter(|node| !node.is_null())
    }

    /// A diagnostic at a field, or at the innermost one of its parents that exists.
    #[must_use]
    pub fn diagnostic(&self, path: &str, what: impl Into<String>) -> Diagnostic {
        let (mut node, mut position) = (&self.node, (self.node.line, self.node.column));
        for name in path.split('.') {
            let Some(next) = child(node, name) else { break };
            let key = node.entry(name).map(|(key, _)| (key.line, key.column));
            position = key.unwrap_or((next.line, next.column));
            node = next;
        }
        Diagnostic::new(what).at(position.0, position.1).in_file(&self.file)
    }

    /// The kind.
    #[must_use]
    pub fn kind(&self) -> String {
        self.text(&["kind"])
    }

    /// The API version, such as `autoscaling/v2`.
    pub(crate) fn api_version(&self) -> String {
        self.text(&["apiVersion"])
    }

    /// The API group; empty for core.
    pub(crate) fn group(&self) -> String {
        let version = self.text(&["apiVersion"]);
        version.split_once('/').map_or_else(String::new, |(group, _)| group.to_owned())
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> String {
        self.text(&["metadata", "name"])
    }

    /// `NAMESPACE/NAME`, or the name if the manifest leaves the namespace open.
    #[must_use]
    pub fn full_name(&self) -> String {
        let namespace = self.namespace().map(|namespace| namespace + "/");
        namespace.unwrap_or_default() + &self.name()
    }

    /// The namespace. None: the manifest leaves it open.
    #[must_use]
    pub fn namespace(&self) -> Option<String> {
        Some(self.text(&["metadata", "namespace"])).filter(|namespace| !namespace.is_empty())
    }

    /// Returns true if another object can be in the same namespace.
    #[must_use]
    pub fn shares_namespace(&self, other: &Object) -> bool {
        same_namespace(self.namespace().as_ref(), other.namespace().as_ref())
    }

    /// Returns true if the object is the target of this autoscaler, which may be invalid.
    pub(super) fn refers_to(&self, kind: AutoscalerKind, object: &Object) -> bool {
        let reference = match kind {
            AutoscalerKind::Hpa => "scaleTargetRef",
            AutoscalerKind::Vpa => "targetRef",
        };
        let text = |name: &str| self.text(&["spec", reference, name]);
        let version = text("apiVersion");
        self.shares_namespace(object)
            && object.kind() == text("kind")
            && object.name() == text("name")
            && object.group() == version.split_once('/').map_or("", |(group, _)| group)
    }

    /// The place of the object, for messages about another one: `FILE:LINE`.
    #[must_use]
    pub fn place(&self) -> String {
        format!("{}:{}", self.file, self.node.line)
    }

    /// Returns true if the object is a list: of any kinds (`List`), or of one, as an API server
    /// returns it (`DeploymentList`). Unlike an object of a kind with such a name, it has no name.
    fn is_list(&self) -> bool {
        let items = self.node.entry("items").map(|(_, items)| &items.kind);
        let is_of_one_kind = || {
            let is_empty = items.is_some_and(|items| matches!(items, NodeKind::Scalar { .. }));
            self.kind().ends_with(LIST)
                && self.name().is_empty()
                && (matches!(items, Some(NodeKind::List(_))) || is_empty)
        };
        self.kind() == LIST || is_of_one_kind()
    }

    /// Notes on the object.
    pub(crate) fn notes(&self, list: Vec<String>) -> Vec<Diagnostic> {
        let note = |what| Diagnostic::new(what).at_node(&self.node).in_file(&self.file);
        list.into_iter().map(note).collect()
    }

    pub(crate) fn problems(&self, mut problems: Vec<Diagnostic>) -> Error {
        for place in problems.iter_mut().filter_map(|problem| problem.place.as_mut()) {
            place.file = None;
        }
        Error::new(&self.file, problems)
    }
}

impl Objects {
    /// The kind of an autoscaler with this name: `NAME` or `NAMESPACE/NAME`. None: there is none.
    pub(super) fn kind_of_autoscaler(&self, name: &str) -> Option<AutoscalerKind> {
        let is_in = |objects: &[Object]| {
            objects.iter().any(|object| object.name() == name || object.full_name() == name)
        };
        let kinds = [(AutoscalerKind::Hpa, &self.hpas), (AutoscalerKind::Vpa, &self.vpas)];
        kinds.into_iter().find(|(_, objects)| is_in(objects)).map(|(kind, _)| kind)
    }

    /// Reads all objects.
    pub(crate) fn read(files: &[ManifestFile]) -> Result<Objects, Error> {
        let mut objects = Objects::default();
        for file in files {
            let failed = |problem| Error { path: file.name.clone(), problems: vec![problem] };
            table(&file.text).map_or(Ok(()), |problem| Err(failed(problem)))?;
            let documents = yaml::manifests(&file.text)
                .map_err(|problem| failed(with_template_hint(problem, &file.text)))?;
            for document in documents {
                several_objects(&document).map_or(Ok(()), |problem| Err(failed(problem)))?;
                objects.add(document, file).map_err(failed)?;
            }
        }
        Ok(objects)
    }

    /// Adds an object, or the items of a list.
    fn add(&mut self, node: Node, file: &ManifestFile) -> Result<(), Diagnostic> {
        if node.is_null() {
            return Ok(());
        }
        let object = Object { file: file.name.clone(), node };
        let kind = object.kind();
        if kind.is_empty() || object.text(&["apiVersion"]).is_empty() {
            return if file.lenient { Ok(()) } else { Err(not_an_object(&object.node)) };
        }
        if object.text(&["apiVersion"]).starts_with("kube-lockstep") {
            if file.lenient {
                return Ok(());
            }
            let hint = "to use a scenario file, pass it without --filename";
            return Err(problem(&object.node, "a scenario is not a manifest", hint));
        }
        let items_kind =
            object.is_list().then(|| kind.strip_suffix(LIST).unwrap_or_default().to_owned());
        let version = object.text(&["apiVersion"]);
        match object.node.kind {
            NodeKind::Map(entries) if items_kind.is_some() => {
                let kind = items_kind.unwrap_or_default();
                for (key, value) in entries {
                    if let (NodeKind::List(items), "items") = (value.kind, &*key.text) {
                        let items = items.into_iter().map(|item| typed(item, &kind, &version));
                        items.into_iter().try_for_each(|item| self.add(item, file))?;
                    }
                }
            }
            _ if kind == "HorizontalPodAutoscaler" => self.hpas.push(object),
            _ if kind == "VerticalPodAutoscaler" => self.vpas.push(object),
            _ => self.others.push(object),
        }
        Ok(())
    }
}

/// The value of a field of a map, or the item of a list with this index.
fn child<'n>(node: &'n Node, name: &str) -> Option<&'n Node> {
    let field = || node.entry(name).map(|(_, value)| value);
    name.parse().ok().and_then(|index| node.item(index)).or_else(field)
}

/// An item of a list of this kind. In the list of an API server, the items have neither a kind nor
/// a version.
fn typed(mut item: Node, kind: &str, version: &str) -> Node {
    let (line, column) = (item.line, item.column);
    let has = |item: &Node, field: &str| item.entry(field).is_some();
    for (field, text) in [("kind", kind), ("apiVersion", version)] {
        if kind.is_empty() || has(&item, field) {
            continue;
        }
        if let NodeKind::Map(entries) = &mut item.kind {
            let key = Key { text: field.to_owned(), line, column };
            let kind = NodeKind::Scalar { text: text.to_owned(), plain: false };
            entries.push((key, Node { line, column, kind }));
        }
    }
    item
}

/// Returns true if two objects can be in the same namespace. A manifest can leave it open.
pub(super) fn same_namespace(one: Option<&String>, other: Option<&String>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => one == other,
        _ => true,
    }
}

fn problem(node: &Node, what: &str, hint: &str) -> Diagnostic {
    Diagnostic::new(what).at_node(node).hint(hint)
}

/// The problem of a table, as `kubectl get` prints it without `-o yaml`. None: it is none.
fn table(text: &str) -> Option<Diagnostic> {
    let (index, header) = text.lines().enumerate().find(|(_, line)| !line.trim().is_empty())?;
    let words: Vec<&str> = header.split_whitespace().collect();
    let is_title = |word: &&str| !word.contains(|c: char| c.is_lowercase() || c == ':');
    let is_header = matches!(words.as_slice(), ["NAME" | "NAMESPACE", _, ..]);
    (is_header && words.iter().all(is_title)).then(|| {
        Diagnostic::new("this is the table that `kubectl get` prints, not a manifest")
            .at(index + 1, 1)
            .hint("add `-o yaml`: `kubectl get hpa,deployment -o yaml`")
    })
}

/// The problem of a document with the fields of several objects, if it is one.
fn several_objects(document: &Node) -> Option<Diagnostic> {
    let NodeKind::Map(entries) = &document.kind else { return None };
    let repeated = |name: &str| {
        let mut keys = entries.iter().map(|(key, _)| key).filter(|key| key.text == name);
        Some((keys.next()?.line, keys.next()?))
    };
    let (first_of_kind, kind) = repeated("kind")?;
    let (first_of_version, version) = repeated("apiVersion")?;
    let (first, key) = match kind.line < version.line {
        true => (first_of_kind, kind),
        false => (first_of_version, version),
    };
    let what = format!("duplicate field `{}`, first on line {first}", key.text);
    let problem = Diagnostic::new(what).at(key.line, key.column);
    Some(problem.hint("separate two objects with a line `---`"))
}

fn not_an_object(node: &Node) -> Diagnostic {
    let what = "expected an object of the Kubernetes API, with apiVersion and kind";
    problem(node, what, "for example the output of `kubectl get hpa,deployment -o yaml`")
}

/// Adds a hint to an error in the template of a Helm chart, which is not YAML.
fn with_template_hint(mut problem: Diagnostic, text: &str) -> Diagnostic {
    if text.contains("{{") {
        let hint = "this looks like a template: `helm template CHART | kube-lockstep predict -f -`";
        problem.hint = Some(hint.into());
    }
    problem
}

/// Removes what an API server adds to an object, and what it ignores on creation.
pub(super) fn without_server_fields(node: &mut Node) {
    const SET_BY_THE_SERVER: [&str; 11] = [
        "creationTimestamp",
        "deletionGracePeriodSeconds",
        "deletionTimestamp",
        "finalizers",
        "generateName",
        "generation",
        "managedFields",
        "ownerReferences",
        "resourceVersion",
        "selfLink",
        "uid",
    ];
    const NOT_CONFIGURED: [&str; 3] = [
        "kubectl.kubernetes.io/last-applied-configuration",
        "autoscaling.alpha.kubernetes.io/conditions",
        "autoscaling.alpha.kubernetes.io/current-metrics",
    ];
    remove(node, &["status"]);
    if let Some(metadata) = node.entry_mut("metadata") {
        remove(metadata, &SET_BY_THE_SERVER);
        if let Some(annotations) = metadata.entry_mut("annotations") {
            remove(annotations, &NOT_CONFIGURED);
        }
        let is_empty = |node: &Node| matches!(&node.kind, NodeKind::Map(it) if it.is_empty());
        if let NodeKind::Map(entries) = &mut metadata.kind {
            entries.retain(|(key, value)| key.text != "annotations" || !is_empty(value));
        }
    }
}

fn remove(node: &mut Node, names: &[&str]) {
    if let NodeKind::Map(entries) = &mut node.kind {
        entries.retain(|(key, _)| !names.contains(&&*key.text));
    }
}
