//! Values that the types of an HPA can't represent, and that an API server decodes: it rejects them
//! when it validates the HPA, together with all other errors.
//!
//! Required fields that are missing have the zero value of their type. Unknown values of enums are
//! reported here, with upstream's errors, and replaced by known ones.
//!
//! Upstream: pkg/apis/autoscaling/validation/validation.go

use crate::node::{Key, Node, NodeKind};
use kube_autoscaler_models::hpa::{FieldError, FieldErrorType};

/// The sources of a metric and their types, in the order in which upstream validates them.
const SOURCES: [(&str, &str); 5] = [
    ("object", "Object"),
    ("external", "External"),
    ("pods", "Pods"),
    ("resource", "Resource"),
    ("containerResource", "ContainerResource"),
];

/// An HPA that its types can represent.
pub(super) struct Represented {
    pub node: Node,
    /// The errors of the values that were replaced.
    pub errors: Vec<FieldError>,
}

/// Replaces the values that the types of an HPA can't represent. `is_v2`: it has the fields of
/// autoscaling/v2.
pub(super) fn represented(object: &Node, is_v2: bool) -> Represented {
    let mut node = object.clone();
    let mut errors = Errors(Vec::new());
    if let Some(spec) = or_map(&mut node, "spec") {
        errors.spec(spec, is_v2);
    }
    Represented { node, errors: errors.0 }
}

struct Errors(Vec<FieldError>);

impl Errors {
    fn spec(&mut self, spec: &mut Node, is_v2: bool) {
        if let Some(target) = or_map(spec, "scaleTargetRef") {
            or_text(target, "kind");
            or_text(target, "name");
        }
        or_zero(spec, "maxReplicas");
        if !is_v2 {
            return;
        }
        for (index, metric) in items(spec, "metrics").enumerate() {
            self.metric(metric, &format!("spec.metrics[{index}]"));
        }
        let Some(behavior) = given(spec, "behavior") else { return };
        for direction in ["scaleUp", "scaleDown"] {
            if let Some(rules) = given(behavior, direction) {
                self.rules(rules, &format!("spec.behavior.{direction}"));
            }
        }
    }

    fn add(&mut self, field: String, type_: FieldErrorType, value: &str, detail: &str) {
        self.0.push(FieldError::new(field, type_, format!("{value:?}"), detail));
    }

    fn metric(&mut self, metric: &mut Node, path: &str) {
        let present = SOURCES.into_iter().filter(|(field, _)| given(metric, field).is_some());
        let present: Vec<(&str, &str)> = present.collect();
        let type_ = or_text(metric, "type");
        if SOURCES.iter().all(|(_, known)| *known != type_) {
            let field = format!("{path}.type");
            if type_.is_empty() {
                let detail = "must specify a metric source type";
                self.add(field.clone(), FieldErrorType::Required, "", detail);
            }
            let known = quoted_list(SOURCES.map(|(_, known)| known));
            self.add(field, FieldErrorType::NotSupported, &type_, &known);
            // No source belongs to the type.
            if let [(first, _), _, ..] = present.as_slice() {
                let detail = "must populate the given metric source only";
                self.add(format!("{path}.{first}"), FieldErrorType::Forbidden, "", detail);
            }
            let (source, type_) = present.first().copied().unwrap_or(("resource", "Resource"));
            let (type_, valid) = (text(metric, type_), valid_resource(metric));
            set(metric, "type", type_);
            if present.is_empty() {
                set(metric, source, valid);
            }
        }
        for (field, _) in present {
            let Some(source) = given(metric, field) else { continue };
            let path = format!("{path}.{field}");
            match field {
                "resource" | "containerResource" => {
                    or_text(source, "name");
                    if field == "containerResource" {
                        or_text(source, "container");
                    }
                }
                _ => {
                    or_map(source, "metric").map(|metric| or_text(metric, "name"));
                }
            }
            if field == "object"
                && let Some(described) = or_map(source, "describedObject")
            {
                or_text(described, "kind");
                or_text(described, "name");
            }
            if let Some(target) = or_map(source, "target") {
                self.target(target, &format!("{path}.target"));
            }
        }
    }

    fn target(&mut self, target: &mut Node, path: &str) {
        let type_ = or_text(target, "type");
        if ["Utilization", "Value", "AverageValue"].contains(&&*type_) {
            return;
        }
        let field = format!("{path}.type");
        if type_.is_empty() {
            let detail = "must specify a metric target type";
            self.add(field.clone(), FieldErrorType::Required, "", detail);
        }
        let detail = "must be either Utilization, Value, or AverageValue";
        self.add(field, FieldErrorType::Invalid, &type_, detail);
        let valid = text(target, "Value");
        set(target, "type", valid);
    }

    fn rules(&mut self, rules: &mut Node, path: &str) {
        let known = ["Disabled", "Max", "Min"];
        self.known(rules, "selectPolicy", path, &known);
        for (index, policy) in items(rules, "policies").enumerate() {
            let path = format!("{path}.policies[{index}]");
            or_text(policy, "type");
            self.known(policy, "type", &path, &["Percent", "Pods"]);
            or_zero(policy, "value");
            or_zero(policy, "periodSeconds");
        }
    }

    /// Replaces an unknown value of an enum.
    fn known(&mut self, node: &mut Node, name: &str, path: &str, known: &[&str]) {
        let Some(value) = given(node, name) else { return };
        let NodeKind::Scalar { text: found, .. } = &value.kind else { return };
        if !known.contains(&&**found) {
            let list = quoted_list(known.iter().copied());
            let found = found.clone();
            self.add(format!("{path}.{name}"), FieldErrorType::NotSupported, &found, &list);
            let valid = text(node, known[0]);
            set(node, name, valid);
        }
    }
}

/// `supported values: "A", "B"`, in alphabetical order.
fn quoted_list<'a>(known: impl IntoIterator<Item = &'a str>) -> String {
    let mut known: Vec<String> = known.into_iter().map(|it| format!("{it:?}")).collect();
    known.sort_unstable();
    format!("supported values: {}", known.join(", "))
}

/// A field that is not null.
fn given<'n>(node: &'n mut Node, name: &str) -> Option<&'n mut Node> {
    node.entry_mut(name).filter(|value| !value.is_null())
}

fn items<'n>(node: &'n mut Node, name: &str) -> impl Iterator<Item = &'n mut Node> {
    let list = given(node, name).and_then(|list| match &mut list.kind {
        NodeKind::List(items) => Some(items),
        NodeKind::Map(_) | NodeKind::Scalar { .. } => None,
    });
    list.into_iter().flatten()
}

/// The value of a field, after a missing one was set.
fn or<'n>(node: &'n mut Node, name: &str, value: Node) -> Option<&'n mut Node> {
    if node.is_null() {
        node.kind = NodeKind::Map(Vec::new());
    }
    if given(node, name).is_none() {
        set(node, name, value);
    }
    node.entry_mut(name)
}

fn set(node: &mut Node, name: &str, value: Node) {
    let NodeKind::Map(entries) = &mut node.kind else { return };
    match entries.iter_mut().find(|(key, _)| key.text == name) {
        Some((_, old)) => *old = value,
        None => {
            let key = Key { text: name.to_owned(), line: node.line, column: node.column };
            entries.push((key, value));
        }
    }
}

/// A valid source of a metric that has none.
fn valid_resource(at: &Node) -> Node {
    let mut target = Node { kind: NodeKind::Map(Vec::new()), ..*at };
    set(&mut target, "type", text(at, "Utilization"));
    set(&mut target, "averageUtilization", scalar(at, "80", true));
    let mut source = Node { kind: NodeKind::Map(Vec::new()), ..*at };
    set(&mut source, "name", text(at, "cpu"));
    set(&mut source, "target", target);
    source
}

fn or_map<'n>(node: &'n mut Node, name: &str) -> Option<&'n mut Node> {
    let empty = Node { kind: NodeKind::Map(Vec::new()), ..*node };
    or(node, name, empty)
}

/// The text of a field, after a missing one became empty.
fn or_text(node: &mut Node, name: &str) -> String {
    let empty = text(node, "");
    match or(node, name, empty).map(|value| &value.kind) {
        Some(NodeKind::Scalar { text, .. }) => text.clone(),
        _ => String::new(),
    }
}

fn or_zero(node: &mut Node, name: &str) {
    let zero = scalar(node, "0", true);
    or(node, name, zero);
}

fn text(at: &Node, text: &str) -> Node {
    scalar(at, text, false)
}

fn scalar(at: &Node, text: &str, plain: bool) -> Node {
    let kind = NodeKind::Scalar { text: text.to_owned(), plain };
    Node { line: at.line, column: at.column, kind }
}
