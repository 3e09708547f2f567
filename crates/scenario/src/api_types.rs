//! Decodes manifests by the types of the API, and reports what an API server can't decode, in its
//! words. Unlike an API server, which reports the first wrong type, it reports all.
//!
//! `api_types.txt` lists the types: the name of each struct, and below it its fields, after the
//! names of embedded structs, with their Go types (`NAME=KIND` for a named type that is not a
//! struct). The suite `api_server` prints it from upstream's Go types. Deliberately absent: types
//! that users of HPAs do not write, and statuses, which API servers ignore on creation.
//!
//! Upstream: sigs.k8s.io/json, and the package runtime/serializer/json of apimachinery

use std::collections::{BTreeMap, HashSet};
use std::sync::LazyLock;

use super::decode::{fraction, number_hint, shape_hint};
use super::error::{rejection, similar, suggest};
use super::hints;
use super::node::{Node, NodeKind, Scalar};
use super::text::{AnyQuantity, Form};
use crate::diagnostic::{Diagnostic, Hint};
use kube_autoscaler_models::quantity::Quantity;

/// The fields of a struct: their names and types.
type Fields = Vec<(&'static str, &'static str)>;

static TYPES: LazyLock<BTreeMap<&'static str, Fields>> = LazyLock::new(|| {
    let mut types: BTreeMap<&'static str, Fields> = BTreeMap::new();
    let mut fields = &mut Vec::new();
    for line in include_str!("api_types.txt").lines() {
        match line.trim_start().split_once(' ') {
            Some(field) => fields.push(field),
            None => fields = types.entry(line).or_default(),
        }
    }
    types
});

/// An object that an API server decodes.
pub struct ApiObject<'n> {
    /// The object in messages, for example `HPA`.
    pub name: &'n str,
    /// Its struct, for example `v1.Deployment`.
    pub type_name: String,
    /// The node that is checked.
    pub node: &'n Node,
}

/// The value and the field that contains it.
#[derive(Clone, Default)]
struct FieldPosition {
    /// The struct with the field, without its package.
    of: &'static str,
    /// The path in errors of types: without indices.
    path: String,
    /// The path in errors of fields: with indices.
    indexed: String,
}

impl FieldPosition {
    /// A field; `path` also names the embedded structs that lead to it.
    fn field(&self, of: &'static str, name: &str, path: &str) -> FieldPosition {
        let join = |parent: &str, name: &str| {
            if parent.is_empty() { name.to_owned() } else { format!("{parent}.{name}") }
        };
        FieldPosition { of, path: join(&self.path, path), indexed: join(&self.indexed, name) }
    }
}

/// The name of a field, without the names of embedded structs.
fn field_name(path: &str) -> &str {
    match path.rsplit_once('.') {
        // Only embedded structs begin with an upper case letter.
        Some((embedded, name)) if embedded.starts_with(char::is_uppercase) => name,
        _ => path,
    }
}

impl ApiObject<'_> {
    /// The problems for which an API server can't decode the object.
    pub fn problems(&self) -> Vec<Diagnostic> {
        self.problems_at(&FieldPosition::default())
    }

    fn problems_at(&self, at: &FieldPosition) -> Vec<Diagnostic> {
        let mut decoder = Decoder { object: self, problems: Vec::new() };
        let root = TYPES.get_key_value(&*self.type_name);
        if let Some((name, _)) = root {
            decoder.value(self.node, name, at);
        }
        decoder.problems
    }
}

/// The problems for which an API server can't decode the metadata of a custom resource, which it
/// decodes on its own. `name` is that of the object in messages.
pub(super) fn metadata_problems(name: &str, node: &Node) -> Vec<Diagnostic> {
    let object = ApiObject { name, type_name: "v1.ObjectMeta".to_owned(), node };
    let indexed = "metadata".to_owned();
    object.problems_at(&FieldPosition { indexed, ..FieldPosition::default() })
}

struct Decoder<'n> {
    object: &'n ApiObject<'n>,
    problems: Vec<Diagnostic>,
}

impl Decoder<'_> {
    fn add(&mut self, line: usize, column: usize, message: &str, hint: Option<Hint>) {
        let problem = Diagnostic::new(rejection(self.object.name, message)).at(line, column);
        self.problems.push(problem.with_hint(hint));
    }

    fn value(&mut self, node: &Node, type_: &'static str, at: &FieldPosition) {
        if node.is_null() || type_ == "any" {
            return;
        }
        if let Some(item) = type_.strip_prefix("[]") {
            let NodeKind::List(items) = &node.kind else {
                return self.mismatch(node, type_, at);
            };
            for (index, node) in items.iter().enumerate() {
                let indexed = format!("{}[{index}]", at.indexed);
                self.value(node, item, &FieldPosition { indexed, ..at.clone() });
            }
            return;
        }
        let kind = type_.split_once('=').map_or(type_, |(_, kind)| kind);
        if let Some(of) = kind.strip_prefix("map[string]") {
            let NodeKind::Map(entries) = &node.kind else {
                return self.mismatch(node, type_, at);
            };
            self.duplicates(node, at);
            for (key, node) in entries {
                let indexed = format!("{}.{}", at.indexed, key.text);
                self.value(node, of, &FieldPosition { indexed, ..at.clone() });
            }
            return;
        }
        match TYPES.get_key_value(kind) {
            Some((name, fields)) => self.fields(node, name, fields, at),
            None if !is_decoded(node, kind) => self.mismatch(node, type_, at),
            None => {}
        }
    }

    fn fields(&mut self, node: &Node, name: &'static str, fields: &Fields, at: &FieldPosition) {
        let NodeKind::Map(entries) = &node.kind else { return self.mismatch(node, name, at) };
        self.duplicates(node, at);
        let of = name.split_once('.').map_or(name, |(_, name)| name);
        for (key, node) in entries {
            match fields.iter().find(|(path, _)| field_name(path) == key.text) {
                Some((path, type_)) => self.value(node, type_, &at.field(of, &key.text, path)),
                None => {
                    let at = at.field(of, &key.text, &key.text);
                    let known: Vec<&str> =
                        fields.iter().map(|(path, _)| field_name(path)).collect();
                    let hint = unknown_field_hint(&key.text, &known);
                    let message = format!("strict decoding error: unknown field {:?}", at.indexed);
                    self.add(key.line, key.column, &message, hint);
                }
            }
        }
    }

    fn duplicates(&mut self, node: &Node, at: &FieldPosition) {
        let NodeKind::Map(entries) = &node.kind else { return };
        let mut known = HashSet::new();
        for (key, _) in entries.iter().filter(|(key, _)| !known.insert(&*key.text)) {
            let path = at.field("", &key.text, &key.text).indexed;
            let message = format!("strict decoding error: duplicate field {path:?}");
            let first = entries.iter().find(|(other, _)| other.text == key.text);
            let hint = first
                .map(|(first, _)| format!("the field is first set on line {}", first.line).into());
            self.add(key.line, key.column, &message, hint);
        }
    }

    /// Adds the error for a value of another type.
    fn mismatch(&mut self, node: &Node, type_: &str, at: &FieldPosition) {
        let (type_, kind) = type_.split_once('=').unwrap_or((type_, type_));
        let text = node.to_json().to_string();
        let (message, hint) = match kind {
            "resource.Quantity" => {
                let text = text.trim_matches('"');
                let error = Quantity::parse(text).err().map(|error| error.to_string());
                (error.unwrap_or_default(), quantity_hint(text, &at.path))
            }
            _ => {
                let found = match node.scalar() {
                    None if matches!(node.kind, NodeKind::List(_)) => "array".to_owned(),
                    None => "object".to_owned(),
                    Some(Scalar::Int(_) | Scalar::Float(_)) if kind.starts_with("int") => {
                        format!("number {text}")
                    }
                    Some(Scalar::Int(_) | Scalar::Float(_)) => "number".to_owned(),
                    _ if boolean(node).is_some() => "bool".to_owned(),
                    _ => "string".to_owned(),
                };
                // It is decoded as a number, unless it is a text.
                let type_ = if kind == "intstr.IntOrString" { "int32" } else { type_ };
                let into = match at.path.as_str() {
                    "" => "value".to_owned(),
                    path => format!("struct field {}.{path}", at.of),
                };
                let message =
                    format!("json: cannot unmarshal {found} into Go {into} of type {type_}");
                (message, type_hint(node, kind))
            }
        };
        self.add(node.line, node.column, &message, hint);
    }
}

/// Returns true if a node that is not null has this type, which is neither a struct nor a map.
fn is_decoded(node: &Node, kind: &str) -> bool {
    let number = || match node.to_json() {
        serde_json::Value::Number(number) => number.as_i64(),
        _ => None,
    };
    let is_text = || boolean(node).is_none() && matches!(node.scalar(), Some(Scalar::Text(_)));
    match kind {
        "string" | "v1.Time" => is_text(),
        "bool" => boolean(node).is_some(),
        "int32" => number().is_some_and(|number| i32::try_from(number).is_ok()),
        "int64" => number().is_some(),
        "intstr.IntOrString" => is_text() || is_decoded(node, "int32"),
        "resource.Quantity" => match &node.kind {
            NodeKind::Scalar { text, .. } => Quantity::parse(text).is_ok(),
            NodeKind::List(_) | NodeKind::Map(_) => false,
        },
        _ => true,
    }
}

/// The value of a boolean. kubectl and API servers read YAML 1.1, which has more words for them.
pub fn boolean(node: &Node) -> Option<bool> {
    match (node.scalar(), &node.kind) {
        (Some(Scalar::Bool(value)), _) => Some(value),
        (_, NodeKind::Scalar { text, plain: true }) => match text.as_str() {
            "y" | "Y" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" => Some(true),
            "n" | "N" | "no" | "No" | "NO" | "off" | "Off" | "OFF" => Some(false),
            _ => None,
        },
        _ => None,
    }
}

fn unknown_field_hint(field: &str, known: &[&str]) -> Option<Hint> {
    let place = hints::elsewhere_in_hpa(field, known);
    place.map(|place| format!("`{field}` belongs {place}").into()).or_else(|| {
        // A long list of names does not help.
        let suggested = if known.len() <= 8 { suggest } else { similar };
        suggested(field, known.iter().copied())
    })
}

pub(super) fn type_hint(node: &Node, kind: &str) -> Option<Hint> {
    match (node.scalar(), kind) {
        (Some(Scalar::Text(text)), "int32" | "int64") => number_hint(text, true),
        (Some(Scalar::Int(_) | Scalar::Float(_)), "int32") => Some(int32_hint()),
        (Some(_), "string") => Some("put the value in quotes".into()),
        (_, kind) if kind.starts_with("[]") => shape_hint("a list", node),
        _ => None,
    }
}

/// The hint for a number that is not an int32.
pub(super) fn int32_hint() -> Hint {
    format!("expected a whole number from {} to {}", i32::MIN, i32::MAX).into()
}

pub(super) fn quantity_hint(text: &str, path: &str) -> Option<Hint> {
    let percent = text.strip_suffix('%').map(str::trim_end);
    match percent.and_then(fraction).zip(percent) {
        Some((fraction, _)) if path.ends_with(".tolerance") => Some(Hint::Meant(fraction)),
        Some((_, percent)) if path.contains("esource.target.") => {
            let meant = format!("{{type: Utilization, averageUtilization: {percent}}}");
            Some(Hint::Meant(meant))
        }
        _ => AnyQuantity::read(text).err()?.hint,
    }
}
