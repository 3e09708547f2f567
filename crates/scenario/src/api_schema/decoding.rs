//! The errors of an API server that decodes an object: unknown fields, fields that are set twice,
//! and, for built-in objects, values of the wrong type. For custom resources, the schema rejects
//! these.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::LazyLock;

use super::{Field, Shape, Struct, TYPES, VPA, boolean, join, quantity_hint, type_hint};
use crate::diagnostic::{Diagnostic, Hint, Kind};
use crate::error::{DistinctProblems, rejection, similar};
use crate::hints;
use crate::node::{Key, Node, NodeKind, Scalar};
use kube_autoscaler_models::quantity::Quantity;

/// An object that an API server decodes.
pub struct ApiObject<'n> {
    /// The object in messages, for example `HPA`.
    pub name: &'n str,
    /// Its type, for example `v1.Deployment`.
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
    /// True if the field belongs to a CRD.
    is_of_crd: bool,
}

impl FieldPosition {
    /// A field of a struct.
    fn field(&self, of: &Struct, field: &Field) -> FieldPosition {
        let indexed = join(&self.indexed, field.name);
        if of.is_of_crd {
            // The metadata, which are not part of the CRD, are decoded on their own.
            return FieldPosition { indexed, is_of_crd: true, ..FieldPosition::default() };
        }
        let name = of.name.split_once('.').map_or(of.name, |(_, name)| name);
        FieldPosition { of: name, path: join(&self.path, field.path), indexed, is_of_crd: false }
    }

    /// A value of a map.
    fn entry(&self, key: &Key) -> FieldPosition {
        FieldPosition { indexed: join(&self.indexed, &key.text), ..self.clone() }
    }

    /// An item of a list.
    fn item(&self, index: usize) -> FieldPosition {
        FieldPosition { indexed: format!("{}[{index}]", self.indexed), ..self.clone() }
    }
}

impl ApiObject<'_> {
    /// The problems for which an API server can't decode the object.
    pub fn problems(&self) -> Vec<Diagnostic> {
        let mut decoder = Decoder { name: self.name, problems: DistinctProblems::default() };
        if let Some(type_) = TYPES.get(&*self.type_name) {
            decoder.value(self.node, Some(type_.name), &FieldPosition::default());
        }
        decoder.problems.into_list()
    }
}

struct Decoder<'n> {
    /// The object in messages.
    name: &'n str,
    problems: DistinctProblems,
}

impl Decoder<'_> {
    fn add(&mut self, line: usize, column: usize, message: &str, hint: Option<Hint>) {
        let problem = Diagnostic::new(rejection(self.name, message)).at(line, column);
        self.problems.add(problem.with_hint(hint));
    }

    /// Checks a value. `type_` is None if the tables have no type for the value.
    fn value(&mut self, node: &Node, type_: Option<&'static str>, at: &FieldPosition) {
        let shape = type_.map(Shape::new);
        if node.is_null() || matches!(shape, Some(Shape::Any)) {
            return;
        }
        let is_of_crd = match shape {
            Some(Shape::Struct(of)) => of.is_of_crd,
            _ => at.is_of_crd,
        };
        let has_fields = matches!(shape, Some(Shape::Map(_) | Shape::Struct(_)));
        match (&node.kind, shape) {
            (NodeKind::List(items), Some(Shape::List(item))) => {
                self.items(items, Some(item), at);
            }
            (NodeKind::List(items), _) if is_of_crd => self.items(items, None, at),
            (NodeKind::Map(entries), _) if has_fields || is_of_crd => {
                self.entries(entries, shape, at);
            }
            (_, Some(Shape::Scalar(kind))) if is_decoded(node, kind) => {}
            _ if is_of_crd => {}
            _ => self.mismatch(node, type_.unwrap_or_default(), at),
        }
    }

    fn items(&mut self, items: &[Node], type_: Option<&'static str>, at: &FieldPosition) {
        for (index, node) in items.iter().enumerate() {
            self.value(node, type_, &at.item(index));
        }
    }

    /// Checks the fields of a struct, or the values of a map.
    fn entries(&mut self, entries: &[(Key, Node)], shape: Option<Shape>, at: &FieldPosition) {
        self.duplicates(entries, at);
        for (key, node) in entries {
            let found = match shape {
                Some(Shape::Struct(of)) => {
                    of.field(&key.text).map(|field| (field.type_, at.field(of, field)))
                }
                Some(Shape::Map(value)) => Some((value, at.entry(key))),
                _ => None,
            };
            if let Some((type_, at)) = found {
                self.value(node, Some(type_), &at);
                continue;
            }
            let path = at.entry(key).indexed;
            let message = format!("strict decoding error: unknown field {path:?}");
            let problem = Diagnostic::new(rejection(self.name, message)).at(key.line, key.column);
            let hint = unknown_field_hint(&key.text, shape, at);
            self.problems.add(problem.with_hint(hint).kind(Kind::UnknownField(path)));
        }
    }

    fn duplicates(&mut self, entries: &[(Key, Node)], at: &FieldPosition) {
        let mut lines = HashMap::new();
        for (key, _) in entries {
            let first = match lines.entry(&*key.text) {
                Entry::Vacant(entry) => {
                    entry.insert(key.line);
                    continue;
                }
                Entry::Occupied(entry) => *entry.get(),
            };
            let path = at.entry(key).indexed;
            let message = format!("strict decoding error: duplicate field {path:?}");
            let hint = format!("the field is first set on line {first}");
            self.add(key.line, key.column, &message, Some(hint.into()));
        }
    }

    /// Adds the error for a value of another type.
    fn mismatch(&mut self, node: &Node, type_: &str, at: &FieldPosition) {
        let (type_, kind) = type_.split_once('=').unwrap_or((type_, type_));
        let text = node.to_json().to_string();
        if kind == "resource.Quantity" {
            let text = text.trim_matches('"');
            let error = Quantity::parse(text).err().map(|error| error.to_string());
            let hint = quantity_hint(text, &at.path);
            return self.add(node.line, node.column, &error.unwrap_or_default(), hint);
        }
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
        let message = format!("json: cannot unmarshal {found} into Go {into} of type {type_}");
        self.add(node.line, node.column, &message, type_hint(node, kind));
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

/// The probable meaning of an unknown field: a similar name here, or another place.
fn unknown_field_hint(field: &str, shape: Option<Shape>, at: &FieldPosition) -> Option<Hint> {
    let (known, is_of_crd): (Vec<&str>, bool) = match shape {
        Some(Shape::Struct(of)) => (of.fields.iter().map(|it| it.name).collect(), of.is_of_crd),
        _ => (Vec::new(), at.is_of_crd),
    };
    let similar = similar(field, known.iter().copied());
    let places = if !is_of_crd {
        hints::elsewhere_in_hpa(field, &known).map(str::to_owned)
    } else if similar.is_none() {
        places_in_vpas(field)
    } else {
        None
    };
    let places = places.map(|places| format!("`{field}` belongs {places}").into());
    // A long list of names does not help.
    let names = || Hint::Values(known.iter().map(|name| (*name).to_owned()).collect());
    places.or(similar).or_else(|| (1..=8).contains(&known.len()).then(names))
}

/// The types of the CRD of VPAs that have a field of this name: ``in `spec` ``.
fn places_in_vpas(field: &str) -> Option<String> {
    static PLACES: LazyLock<HashMap<&str, Vec<String>>> = LazyLock::new(|| {
        let mut places = HashMap::<_, Vec<String>>::new();
        for (name, type_) in TYPES.range(VPA..) {
            let Some(path) = name.strip_prefix(VPA) else { continue };
            let place = match path.trim_start_matches('.') {
                "" => "at the top".to_owned(),
                place => format!("in `{place}`"),
            };
            type_.fields.iter().for_each(|field| {
                places.entry(field.name).or_default().push(place.clone());
            });
        }
        places
    });
    Some(PLACES.get(field)?.join(" or "))
}
