//! The validation of custom resources by the schema of their CRD.

use super::decoding::ApiObject;
use super::{INT_OR_STRING, Limits, Shape, VPA, given, int32_hint, join};
use super::{quantity_hint, type_hint, value_of};
use crate::diagnostic::{Diagnostic, Hint};
use crate::error::{DistinctProblems, rejection, similar};
use crate::node::{Node, NodeKind};
use crate::object_meta;
use kube_autoscaler_models::hpa::{FieldError, FieldErrorType};

/// A VPA as an API server sees it.
pub(crate) struct Checked {
    /// The problems for which it rejects the VPA.
    pub problems: Vec<Diagnostic>,
    /// The VPA without invalid values; in lists, `null` replaces them. None: it can't be decoded.
    pub valid: Option<Node>,
}

/// Checks a VPA.
pub(crate) fn check_vpa(node: &Node) -> Checked {
    let problems = ApiObject { name: NAME, type_name: VPA.to_owned(), node }.problems();
    if !problems.is_empty() {
        return Checked { problems, valid: None };
    }
    let mut check = Check::default();
    object_meta::validate_name(node, &mut |at, error| check.add(at, &error, None));
    if let Some(metadata) = given(node, "metadata") {
        object_meta::validate(metadata, "metadata", &mut |at, error| check.add(at, &error, None));
    }
    let valid = Some(check.validate(node, VPA, &Limits::default(), ""));
    Checked { problems: check.problems.into_list(), valid }
}

/// The object in messages.
const NAME: &str = "VPA";

/// The problems found so far. A message of an API server lists equal errors once.
#[derive(Default)]
struct Check {
    problems: DistinctProblems,
}

impl Check {
    fn report(&mut self, at: &Node, message: &str, hint: Option<Hint>) {
        let problem = Diagnostic::new(rejection(NAME, message)).at_node(at);
        self.problems.add(problem.with_hint(hint));
    }

    fn add(&mut self, at: &Node, error: &FieldError, hint: Option<Hint>) {
        self.report(at, &error.to_string(), hint);
    }

    fn invalid(&mut self, at: &Node, path: &str, value: &str, detail: &str, hint: Option<Hint>) {
        let detail = format!("{path} in body {detail}");
        self.add(at, &FieldError::new(path, FieldErrorType::Invalid, value, &detail), hint);
    }

    /// Validates a value. Returns it without the invalid values in it, or `null` if it is invalid.
    fn validate(&mut self, node: &Node, type_: &'static str, limits: &Limits, path: &str) -> Node {
        let before = self.problems.len();
        let shape = Shape::new(type_);
        self.type_(node, type_, path);
        if !matches!(shape, Shape::List(_) | Shape::Map(_)) {
            self.limits(node, limits, path);
        }
        let is_valid = self.problems.len() == before;
        let kind = self.parts(node, shape, limits, path);
        if let Shape::Struct(of) = shape
            && self.problems.len() == before
        {
            for rule in of.rules.iter().filter(|rule| rule.is_broken(node)) {
                let message = format!("{path}: Invalid value: {}", rule.message());
                self.report(node, &message, None);
            }
        }
        let null = NodeKind::Scalar { text: String::new(), plain: true };
        Node { kind: if is_valid { kind } else { null }, ..*node }
    }

    /// Validates the parts of a value: its fields, values or items. Returns the value without the
    /// invalid ones.
    fn parts(&mut self, node: &Node, shape: Shape, limits: &Limits, path: &str) -> NodeKind {
        match &node.kind {
            NodeKind::Map(entries) => {
                self.required(node, shape, path);
                let validated = entries.iter().map(|(key, node)| {
                    let part = match shape {
                        Shape::Struct(of) if of.is_of_crd => {
                            of.field(&key.text).map(|field| (field.type_, &field.limits))
                        }
                        Shape::Map(of) => Some((of, limits)),
                        _ => None,
                    };
                    let is_checked = |type_| !matches!(Shape::new(type_), Shape::Any);
                    let value = match part.filter(|(type_, _)| is_checked(type_)) {
                        // An API server removes fields that are null.
                        Some((type_, limits)) if !node.is_null() => {
                            self.validate(node, type_, limits, &join(path, &key.text))
                        }
                        _ => node.clone(),
                    };
                    (key.clone(), value)
                });
                NodeKind::Map(validated.filter(|(_, value)| !value.is_null()).collect())
            }
            NodeKind::List(items) => {
                let validated = items.iter().enumerate().map(|(index, node)| match shape {
                    Shape::List(of) => self.validate(node, of, limits, &format!("{path}[{index}]")),
                    _ => node.clone(),
                });
                NodeKind::List(validated.collect())
            }
            scalar @ NodeKind::Scalar { .. } => scalar.clone(),
        }
    }

    /// Checks that a value has its required fields.
    fn required(&mut self, node: &Node, shape: Shape, path: &str) {
        let Shape::Struct(of) = shape else { return };
        for name in of.required.iter().filter(|name| given(node, name).is_none()) {
            let path = join(path, name);
            let hint = required_hint(&path);
            self.add(node, &FieldError::new(path, FieldErrorType::Required, "", ""), hint);
        }
    }

    /// Checks the type of a value.
    fn type_(&mut self, node: &Node, type_: &'static str, path: &str) {
        let found = type_of(node);
        if type_ == INT_OR_STRING {
            return self.int_or_string(node, found, path);
        }
        let expected = JsonType::new(type_);
        let kind = if expected.name == "integer" { "int64" } else { type_ };
        let hint = type_hint(node, kind).filter(|_| !node.is_null());
        if found == "number" || found == "integer" {
            self.range(node, expected, path);
        }
        if expected.name == found {
            return;
        }
        // Upstream compares the format of values that are neither texts, lists nor null.
        let (expected, found) = match found {
            "number" if !expected.format.is_empty() => (expected.format, "float64"),
            "boolean" | "object" if !expected.format.is_empty() => (expected.format, ""),
            found => (expected.name, found),
        };
        let value = format!("{found:?}");
        self.invalid(node, path, &value, &format!("must be of type {expected}: {value}"), hint);
    }

    /// Checks a value that has the type `integer,string`, and any of the schemas `{type: integer}`
    /// and `{type: string}`.
    fn int_or_string(&mut self, node: &Node, found: &str, path: &str) {
        if matches!(found, "integer" | "string") {
            return;
        }
        let hint = (found == "number").then(|| "put the value in quotes".into());
        let value = format!("{found:?}");
        for type_ in ["integer,string", "integer"] {
            let detail = format!("must be of type {type_}: {value}");
            self.invalid(node, path, &value, &detail, hint.clone());
        }
        let detail = format!("{path:?} must validate at least one schema (anyOf)");
        self.without_a_field(node, &detail, None);
        if found == "number" {
            self.range(node, JsonType { name: "integer", format: "" }, path);
        }
    }

    /// Checks that a number is within the range of its type.
    fn range(&mut self, node: &Node, type_: JsonType, path: &str) {
        let number = value_of(node).as_i64();
        let has_32_bits = type_.format == "int32";
        let is_in_range = |number: i64| !has_32_bits || i32::try_from(number).is_ok();
        if type_.name != "integer" || number.is_some_and(is_in_range) {
            return;
        }
        let format = match type_.format {
            "" => "(default format)".to_owned(),
            format => format!("with format {format}"),
        };
        let detail = format!("Checked value must be of type integer {format} in {path}");
        self.without_a_field(node, &detail, has_32_bits.then(int32_hint));
    }

    /// Adds an error for which upstream names no field.
    fn without_a_field(&mut self, node: &Node, detail: &str, hint: Option<Hint>) {
        self.report(node, &format!("<nil>: Invalid value: \"\": {detail}"), hint);
    }

    /// Checks the limits of a value.
    fn limits(&mut self, node: &Node, limits: &Limits, path: &str) {
        let value = value_of(node);
        let text = value.as_str();
        let known = &limits.values;
        if !known.is_empty() && text.is_none_or(|text| !known.contains(&text)) {
            let quoted: Vec<String> = known.iter().map(|value| format!("{value:?}")).collect();
            let detail = format!("supported values: {}", quoted.join(", "));
            // The error lists all values.
            let hint = text.and_then(|text| similar(text, known.iter().copied()));
            let (type_, value) = (FieldErrorType::NotSupported, value.to_string());
            self.add(node, &FieldError::new(path, type_, value, &detail), hint);
        }
        if let Some((minimum, number)) = limits.minimum.zip(value.as_f64())
            && number < minimum as f64
        {
            let detail = format!("should be greater than or equal to {minimum}");
            self.invalid(node, path, &value.to_string(), &detail, None);
        }
        if let Some((pattern, text)) = limits.pattern.as_ref().zip(text)
            && !pattern.is_match(text)
        {
            let detail = format!("should match '{pattern}'");
            self.invalid(node, path, &value.to_string(), &detail, quantity_hint(text, path));
        }
    }
}

/// The type of a value in JSON Schema.
#[derive(Clone, Copy)]
struct JsonType {
    name: &'static str,
    /// The format; empty if there is none.
    format: &'static str,
}

impl JsonType {
    fn new(type_: &'static str) -> JsonType {
        let (name, format) = match Shape::new(type_) {
            Shape::List(_) => ("array", ""),
            Shape::Map(_) | Shape::Struct(_) => ("object", ""),
            Shape::Scalar(format @ ("int32" | "int64")) => ("integer", format),
            Shape::Scalar(name) => (name, ""),
            Shape::Any => ("", ""),
        };
        JsonType { name, format }
    }
}

/// The type of a value in JSON Schema.
fn type_of(node: &Node) -> &'static str {
    match value_of(node) {
        serde_json::Value::Null => "null",
        serde_json::Value::Bool(_) => "boolean",
        serde_json::Value::Number(number) if number.is_f64() => "number",
        serde_json::Value::Number(_) => "integer",
        serde_json::Value::String(_) => "string",
        serde_json::Value::Array(_) => "array",
        serde_json::Value::Object(_) => "object",
    }
}

fn required_hint(path: &str) -> Option<Hint> {
    let example = "for example `targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}`";
    (path == "spec.targetRef").then(|| example.into())
}
