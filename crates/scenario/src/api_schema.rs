//! The types of the Kubernetes API, and the errors of an API server for objects that do not match
//! them: the server can't decode these objects, or the schema of their CRD rejects them.
//!
//! Two tables list the types: `api_types.txt` lists upstream's Go types, and `vpa_types.txt` the
//! types in upstream's CRD of VPAs. The line of a type is followed by a line for each of its
//! fields: the name, after the names of embedded structs, the type (`NAME=KIND` for a named type
//! that is not a struct), and the limits of the value (for a list or a map, of its items or
//! values). `iff=FIELD:VALUE:OTHER` means that OTHER is set if and only if FIELD is VALUE, a rule
//! in CEL. The suite `api_server` prints both tables from upstream. Deliberately absent: types that
//! users of autoscalers do not write, and statuses, which API servers ignore on creation.
//!
//! The errors are those of the newest release, for requests with `fieldValidation=Strict`. Before
//! 1.25, API servers dropped unknown fields, and only kubectl refused them. The version
//! autoscaling/v2beta2 has the types of v2; v2beta1, which upstream's modules no longer contain,
//! has types of its own in `manifest`.
//!
//! Unlike an API server, which reports the first wrong type that it can't decode, this module
//! reports all. An API server does not evaluate rules in CEL if the object has other errors; this
//! module evaluates the rules of each field that has none.
//!
//! Upstream: sigs.k8s.io/json, and the package runtime/serializer/json of apimachinery;
//! apiextensions-apiserver, pkg/apiserver/schema/pruning, pkg/apiserver/validation/validation.go
//! and pkg/registry/customresource/strategy.go; kube-openapi, pkg/validation/validate

mod custom_resource;
mod decoding;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex_lite::Regex;

pub(crate) use self::custom_resource::{Checked, check_vpa};
pub use self::decoding::ApiObject;
use crate::decode::{Wanted, fraction, number_hint, shape_hint};
use crate::diagnostic::Hint;
use crate::node::{Node, NodeKind, Scalar};
use crate::text::{AnyQuantity, Form};

/// The type of values that are not checked.
const ANY: &str = "any";

/// The type of quantities in a CRD, which may be numbers or texts.
const INT_OR_STRING: &str = "int-or-string";

/// The type of VPAs.
const VPA: &str = "VerticalPodAutoscaler";

static TYPES: LazyLock<BTreeMap<&'static str, Struct>> = LazyLock::new(|| {
    let mut types = BTreeMap::new();
    add_types(include_str!("api_types.txt"), false, &mut types);
    add_types(include_str!("vpa_types.txt"), true, &mut types);
    types
});

/// A type with fields.
#[derive(Debug)]
struct Struct {
    name: &'static str,
    /// True if it belongs to a CRD. Otherwise, it is a struct in Go.
    is_of_crd: bool,
    required: Vec<&'static str>,
    rules: Vec<Rule>,
    fields: Vec<Field>,
}

#[derive(Debug)]
struct Field {
    name: &'static str,
    /// The name, after the names of embedded structs: `TypeMeta.kind`.
    path: &'static str,
    type_: &'static str,
    limits: Limits,
}

/// The limits of a value; of a list or a map, those of its items or values.
#[derive(Debug, Default)]
struct Limits {
    /// The values of an enum.
    values: Vec<&'static str>,
    minimum: Option<i64>,
    pattern: Option<Regex>,
}

/// A field that is set if and only if another one has this value.
#[derive(Debug)]
struct Rule {
    field: &'static str,
    value: &'static str,
    required: &'static str,
}

/// A type, as it is checked.
#[derive(Clone, Copy)]
enum Shape {
    Any,
    /// A list, with the type of its items.
    List(&'static str),
    /// A map, with the type of its values.
    Map(&'static str),
    Struct(&'static Struct),
    /// A type without parts, with its kind in Go.
    Scalar(&'static str),
}

fn add_types(text: &'static str, is_of_crd: bool, types: &mut BTreeMap<&'static str, Struct>) {
    let mut current = None;
    for line in text.lines() {
        match (line.strip_prefix(' '), current.as_mut()) {
            (Some(line), Some(Struct { fields, .. })) => fields.extend(Field::read(line)),
            _ => types.extend(current.replace(Struct::read(line, is_of_crd)).map(named)),
        }
    }
    types.extend(current.map(named));
}

fn named(type_: Struct) -> (&'static str, Struct) {
    (type_.name, type_)
}

impl Struct {
    fn read(line: &'static str, is_of_crd: bool) -> Struct {
        let mut words = line.split(' ');
        let name = words.next().unwrap_or_default();
        let (mut required, mut rules) = (Vec::new(), Vec::new());
        for word in words {
            match word.split_once('=') {
                Some(("required", names)) => required.extend(names.split(',')),
                Some(("iff", rule)) => rules.extend(Rule::read(rule)),
                _ => {}
            }
        }
        Struct { name, is_of_crd, required, rules, fields: Vec::new() }
    }

    fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }
}

impl Field {
    fn read(line: &'static str) -> Option<Field> {
        let mut words = line.split(' ');
        let (path, type_) = (words.next()?, words.next()?);
        let mut limits = Limits::default();
        for word in words {
            match word.split_once('=')? {
                ("enum", values) => limits.values = values.split(',').collect(),
                ("minimum", number) => limits.minimum = number.parse().ok(),
                ("pattern", pattern) => limits.pattern = Regex::new(pattern).ok(),
                _ => {}
            }
        }
        let name = match path.rsplit_once('.') {
            // Only embedded structs begin with an upper case letter.
            Some((embedded, name)) if embedded.starts_with(char::is_uppercase) => name,
            _ => path,
        };
        Some(Field { name, path, type_, limits })
    }
}

impl Rule {
    fn read(text: &'static str) -> Option<Rule> {
        let (field, rest) = text.split_once(':')?;
        let (value, required) = rest.split_once(':')?;
        Some(Rule { field, value, required })
    }

    /// Returns true if a valid object does not satisfy the rule.
    fn is_broken(&self, node: &Node) -> bool {
        let has_value = given(node, self.field).is_some_and(|found| found.to_json() == self.value);
        has_value != given(node, self.required).is_some()
    }

    /// The message of a broken rule.
    fn message(&self) -> String {
        let Rule { field, value, required } = self;
        format!("{required} is required when {field} is {value} and forbidden otherwise")
    }
}

impl Shape {
    fn new(type_: &'static str) -> Shape {
        let kind = type_.split_once('=').map_or(type_, |(_, kind)| kind);
        if type_ == ANY {
            Shape::Any
        } else if let Some(item) = type_.strip_prefix("[]") {
            Shape::List(item)
        } else if let Some(value) = kind.strip_prefix("map[string]") {
            Shape::Map(value)
        } else {
            TYPES.get(kind).map_or(Shape::Scalar(kind), Shape::Struct)
        }
    }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// A field that is not null.
fn given<'n>(node: &'n Node, name: &str) -> Option<&'n Node> {
    node.entry(name).map(|(_, value)| value).filter(|value| !value.is_null())
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

/// The value as kubectl and API servers read it.
fn value_of(node: &Node) -> serde_json::Value {
    boolean(node).map_or_else(|| node.to_json(), serde_json::Value::from)
}

/// The hint for a value that does not have this kind in Go.
fn type_hint(node: &Node, kind: &str) -> Option<Hint> {
    match (node.scalar(), kind) {
        (Some(Scalar::Text(text)), "int32" | "int64") => number_hint(text, true),
        (Some(Scalar::Int(_) | Scalar::Float(_)), "int32") => Some(int32_hint()),
        (Some(_), "string") => Some("put the value in quotes".into()),
        (_, kind) if kind.starts_with("[]") => shape_hint(Wanted::List, node),
        _ => None,
    }
}

/// The hint for a number that is not an int32.
fn int32_hint() -> Hint {
    format!("expected a whole number from {} to {}", i32::MIN, i32::MAX).into()
}

fn quantity_hint(text: &str, path: &str) -> Option<Hint> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_types_limits_and_rules_of_the_tables_are_checked() {
        let scalars = ["string", "bool", "int32", "int64", "resource.Quantity", "v1.Time"];
        let others = ["intstr.IntOrString", INT_OR_STRING, "v1.FieldsV1"];
        for type_ in TYPES.values() {
            for Field { type_: field_type, .. } in &type_.fields {
                let mut shape = Shape::new(field_type);
                while let Shape::List(of) | Shape::Map(of) = shape {
                    shape = Shape::new(of);
                }
                if let Shape::Scalar(kind) = shape {
                    assert!(scalars.contains(&kind) || others.contains(&kind), "{field_type}");
                }
            }
        }
        let fields = || TYPES.values().flat_map(|type_| &type_.fields);
        let text = include_str!("vpa_types.txt");
        let patterns = fields().filter(|field| field.limits.pattern.is_some()).count();
        assert_eq!(patterns, text.matches(" pattern=").count());
        let enums = fields().filter(|field| !field.limits.values.is_empty()).count();
        assert_eq!(enums, text.matches(" enum=").count());
        let minimums = fields().filter(|field| field.limits.minimum.is_some()).count();
        assert_eq!(minimums, text.matches(" minimum=").count());
        let rules = TYPES.values().map(|type_| type_.rules.len()).sum::<usize>();
        assert_eq!(rules, text.matches(" iff=").count());
        assert!(patterns >= 4 && enums >= 5 && minimums >= 3 && rules >= 4);
    }
}
