//! VerticalPodAutoscalers that an API server can't decode, or that the schema of their CRD rejects,
//! with the API server's errors.
//!
//! `vpa_fields.txt` lists the fields, each below the field that contains it: its name (`[]` for the
//! items of a list, `*` for the values of a map), its type, and its limits. Rules in CEL follow a
//! `=`, with their messages after a `#`. The suite `api_server` prints it from upstream's CRD.
//! Deliberately absent: the status, which API servers ignore on creation.
//!
//! An API server does not evaluate rules in CEL if the object has other errors; this program
//! evaluates the rules of each field that has none.
//!
//! Upstream: apiextensions-apiserver, pkg/apiserver/schema/pruning,
//! pkg/apiserver/validation/validation.go and pkg/registry/customresource/strategy.go;
//! kube-openapi, pkg/validation/validate

use std::collections::HashSet;
use std::iter::Peekable;
use std::str::Lines;
use std::sync::LazyLock;

use super::api_types::{boolean, int32_hint, metadata_problems, quantity_hint, type_hint};
use super::error::{DistinctProblems, rejection, similar, suggest};
use super::node::{Key, Node, NodeKind};
use super::object_meta;
use crate::diagnostic::{Diagnostic, Hint};
use kube_autoscaler_models::hpa::{FieldError, FieldErrorType};

static VPA: LazyLock<Schema> = LazyLock::new(|| {
    let mut lines = include_str!("vpa_fields.txt").lines().peekable();
    let root = lines.next().unwrap_or_default();
    Schema::read(root, 0, &mut lines)
});

/// The type of values that are not checked.
const ANY: &str = "any";

/// The type of quantities, which may be numbers or texts.
const INT_OR_STRING: &str = "int-or-string";

/// The schema of a value.
#[derive(Debug, Default)]
struct Schema {
    type_: &'static str,
    format: &'static str,
    required: Vec<&'static str>,
    /// The values of an enum.
    values: Vec<&'static str>,
    minimum: Option<i64>,
    pattern: Option<&'static str>,
    rules: Vec<Rule>,
    /// The schemas of fields, and those of items or values.
    fields: Vec<(&'static str, Schema)>,
}

/// A rule in CEL: `(self.FIELD == 'VALUE') == has(self.REQUIRED)`.
#[derive(Debug)]
struct Rule {
    field: &'static str,
    value: &'static str,
    required: &'static str,
    message: &'static str,
}

impl Rule {
    fn read(text: &'static str) -> Option<Rule> {
        let (rule, message) = text.split_once(" # ")?;
        let (field, rest) = rule.strip_prefix("(self.")?.split_once(" == '")?;
        let (value, rest) = rest.split_once("') == has(self.")?;
        Some(Rule { field, value, required: rest.strip_suffix(')')?, message })
    }

    /// Returns true if a valid object does not satisfy the rule.
    fn is_broken(&self, node: &Node) -> bool {
        let is_value = |at: &Node| at.to_json() == self.value;
        given(node, self.field).is_some_and(is_value) != given(node, self.required).is_some()
    }
}

impl Schema {
    /// Reads the schema of a line, and of the deeper lines below it.
    fn read(line: &'static str, depth: usize, lines: &mut Peekable<Lines<'static>>) -> Schema {
        let mut schema = Schema::default();
        for word in line.split(' ').skip(1) {
            match word.split_once('=') {
                Some(("format", format)) => schema.format = format,
                Some(("required", names)) => schema.required = names.split(',').collect(),
                Some(("enum", values)) => schema.values = values.split(',').collect(),
                Some(("minimum", number)) => schema.minimum = number.parse().ok(),
                Some(("pattern", pattern)) => schema.pattern = Some(pattern),
                _ => schema.type_ = word,
            }
        }
        let indent = |line: &str| line.len() - line.trim_start().len();
        while let Some(line) = lines.next_if(|line| indent(line) > depth) {
            let (depth, line) = (indent(line), line.trim_start());
            match line.split_once(' ') {
                Some(("=", rule)) => schema.rules.extend(Rule::read(rule)),
                Some((name, _)) => schema.fields.push((name, Schema::read(line, depth, lines))),
                None => {}
            }
        }
        schema
    }

    fn below(&self, name: &str) -> Option<&Schema> {
        self.fields.iter().find(|(field, _)| *field == name).map(|(_, schema)| schema)
    }

    /// The schema of a field, or of the values of a map.
    fn field(&self, name: &str) -> Option<&Schema> {
        self.below(name).or_else(|| self.below("*"))
    }

    fn items(&self) -> Option<&Schema> {
        self.below("[]")
    }

    /// The paths of all fields with this name: `spec.resourcePolicy.containerPolicies[]`.
    fn places(&self, name: &str, path: &str, places: &mut Vec<String>) {
        for (field, schema) in &self.fields {
            if *field == name {
                places.push(path.to_owned());
            }
            let path = if *field == "[]" { format!("{path}[]") } else { join(path, field) };
            schema.places(name, &path, places);
        }
    }
}

/// A VPA as an API server sees it.
pub(super) struct Checked {
    /// The problems for which it rejects the VPA.
    pub problems: Vec<Diagnostic>,
    /// The VPA without invalid values; in lists, `null` replaces them. None: it can't be decoded.
    pub valid: Option<Node>,
}

/// Checks a VPA.
pub(crate) fn check_vpa(node: &Node) -> Checked {
    let schema = &*VPA;
    let mut check = Check::default();
    if let Some(metadata) = given(node, "metadata") {
        metadata_problems(NAME, metadata).into_iter().for_each(|it| check.problems.add(it));
    }
    check.decode(node, Some(schema), "");
    if check.problems.len() > 0 {
        return Checked { problems: check.problems.into_list(), valid: None };
    }
    object_meta::validate_name(node, &mut |at, error| check.add(at, &error, None));
    if let Some(metadata) = given(node, "metadata") {
        object_meta::validate(metadata, "metadata", &mut |at, error| check.add(at, &error, None));
    }
    let valid = Some(check.validate(node, schema, ""));
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
    fn report(&mut self, line: usize, column: usize, message: &str, hint: Option<Hint>) {
        let problem = Diagnostic::new(rejection(NAME, message)).at(line, column);
        self.problems.add(problem.with_hint(hint));
    }

    fn add(&mut self, at: &Node, error: &FieldError, hint: Option<Hint>) {
        self.report(at.line, at.column, &error.to_string(), hint);
    }

    fn invalid(&mut self, at: &Node, path: &str, value: &str, detail: &str, hint: Option<Hint>) {
        let detail = format!("{path} in body {detail}");
        self.add(at, &FieldError::new(path, FieldErrorType::Invalid, value, &detail), hint);
    }

    /// Reports the fields that no schema has, and those that are set twice.
    fn decode(&mut self, node: &Node, schema: Option<&Schema>, path: &str) {
        match &node.kind {
            NodeKind::Map(entries) => {
                self.duplicates(entries, path);
                for (key, node) in entries {
                    let is_decoded_apart =
                        path.is_empty() && ["apiVersion", "kind", "metadata"].contains(&&*key.text);
                    let schema_of_field = schema.and_then(|schema| schema.field(&key.text));
                    match schema_of_field {
                        _ if is_decoded_apart => {}
                        Some(Schema { type_: ANY, .. }) => {}
                        Some(_) => self.decode(node, schema_of_field, &join(path, &key.text)),
                        None => {
                            let message = strict("unknown", &join(path, &key.text));
                            let hint = unknown_field_hint(&key.text, schema);
                            self.report(key.line, key.column, &message, hint);
                        }
                    }
                }
            }
            NodeKind::List(items) => {
                let schema = schema.and_then(Schema::items);
                for (index, node) in items.iter().enumerate() {
                    self.decode(node, schema, &format!("{path}[{index}]"));
                }
            }
            NodeKind::Scalar { .. } => {}
        }
    }

    fn duplicates(&mut self, entries: &[(Key, Node)], path: &str) {
        let mut known = HashSet::new();
        for (key, _) in entries.iter().filter(|(key, _)| !known.insert(&*key.text)) {
            let message = strict("duplicate", &join(path, &key.text));
            let first = entries.iter().find(|(other, _)| other.text == key.text);
            let first = first.map(|(first, _)| format!("it is first set on line {}", first.line));
            let hint = first.map(Hint::from);
            self.report(key.line, key.column, &message, hint);
        }
    }

    /// Validates a value. Returns it without the invalid values in it, or `null` if it is invalid.
    fn validate(&mut self, node: &Node, schema: &Schema, path: &str) -> Node {
        let before = self.problems.len();
        self.type_(node, schema, path);
        self.limits(node, schema, path);
        let is_valid = self.problems.len() == before;
        let kind = match &node.kind {
            NodeKind::Map(entries) => {
                for name in schema.required.iter().filter(|name| given(node, name).is_none()) {
                    let path = join(path, name);
                    let hint = required_hint(&path);
                    self.add(node, &FieldError::new(path, FieldErrorType::Required, "", ""), hint);
                }
                let validated = entries.iter().map(|(key, node)| {
                    let schema = schema.field(&key.text).filter(|schema| schema.type_ != ANY);
                    let value = match schema {
                        // An API server removes them.
                        _ if node.is_null() => node.clone(),
                        None => node.clone(),
                        Some(schema) => self.validate(node, schema, &join(path, &key.text)),
                    };
                    (key.clone(), value)
                });
                NodeKind::Map(validated.filter(|(_, value)| !value.is_null()).collect())
            }
            NodeKind::List(items) => {
                let validated = items.iter().enumerate().map(|(index, node)| {
                    let item = |schema| self.validate(node, schema, &format!("{path}[{index}]"));
                    schema.items().map_or_else(|| node.clone(), item)
                });
                NodeKind::List(validated.collect())
            }
            scalar @ NodeKind::Scalar { .. } => scalar.clone(),
        };
        if self.problems.len() == before {
            for rule in schema.rules.iter().filter(|rule| rule.is_broken(node)) {
                let message = format!("{path}: Invalid value: {}", rule.message);
                self.report(node.line, node.column, &message, None);
            }
        }
        let null = NodeKind::Scalar { text: String::new(), plain: true };
        Node { kind: if is_valid { kind } else { null }, ..*node }
    }

    /// Checks the type of a value.
    fn type_(&mut self, node: &Node, schema: &Schema, path: &str) {
        let found = type_of(node);
        if schema.type_ == INT_OR_STRING {
            return self.int_or_string(node, found, path);
        }
        let hint = type_hint(node, kind_of(schema.type_)).filter(|_| !node.is_null());
        if found == "number" || found == "integer" {
            self.range(node, schema, path);
        }
        if schema.type_ == found {
            return;
        }
        // Upstream compares the format of values that are neither texts, lists nor null.
        let (expected, found) = match found {
            "number" if !schema.format.is_empty() => (schema.format, "float64"),
            "boolean" | "object" if !schema.format.is_empty() => (schema.format, ""),
            found => (schema.type_, found),
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
            self.range(node, &Schema { type_: "integer", ..Schema::default() }, path);
        }
    }

    /// Checks that a number is within the range of its type.
    fn range(&mut self, node: &Node, schema: &Schema, path: &str) {
        let number = value_of(node).as_i64();
        let has_32_bits = schema.format == "int32";
        let is_in_range = |number: i64| !has_32_bits || i32::try_from(number).is_ok();
        if schema.type_ != "integer" || number.is_some_and(is_in_range) {
            return;
        }
        let format = match schema.format {
            "" => "(default format)".to_owned(),
            format => format!("with format {format}"),
        };
        let detail = format!("Checked value must be of type integer {format} in {path}");
        self.without_a_field(node, &detail, has_32_bits.then(int32_hint));
    }

    /// Adds an error for which upstream names no field.
    fn without_a_field(&mut self, node: &Node, detail: &str, hint: Option<Hint>) {
        let message = format!("<nil>: Invalid value: \"\": {detail}");
        self.report(node.line, node.column, &message, hint);
    }

    /// Checks the limits of a value.
    fn limits(&mut self, node: &Node, schema: &Schema, path: &str) {
        let value = value_of(node);
        let text = value.as_str();
        if !schema.values.is_empty() && text.is_none_or(|text| !schema.values.contains(&text)) {
            let quoted: Vec<String> = schema.values.iter().map(|it| format!("{it:?}")).collect();
            let detail = format!("supported values: {}", quoted.join(", "));
            let (type_, value) = (FieldErrorType::NotSupported, value.to_string());
            // The error lists all values.
            let hint = text.and_then(|text| similar(text, schema.values.iter().copied()));
            self.add(node, &FieldError::new(path, type_, value, &detail), hint);
        }
        let number = value.as_f64();
        if let Some((minimum, number)) = schema.minimum.zip(number)
            && number < minimum as f64
        {
            let detail = format!("should be greater than or equal to {minimum}");
            self.invalid(node, path, &value.to_string(), &detail, None);
        }
        if let Some((pattern, text)) = schema.pattern.zip(text)
            && !is_quantity(text)
        {
            let detail = format!("should match '{pattern}'");
            self.invalid(node, path, &value.to_string(), &detail, quantity_hint(text, path));
        }
    }
}

/// The error for an unknown or a duplicate field.
fn strict(which: &str, path: &str) -> String {
    format!("strict decoding error: {which} field {path:?}")
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// A field that is not null.
fn given<'n>(node: &'n Node, name: &str) -> Option<&'n Node> {
    node.entry(name).map(|(_, value)| value).filter(|value| !value.is_null())
}

/// The value as kubectl and API servers read it.
fn value_of(node: &Node) -> serde_json::Value {
    boolean(node).map_or_else(|| node.to_json(), serde_json::Value::from)
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

/// The Go type that corresponds to a type in JSON Schema.
fn kind_of(type_: &str) -> &str {
    match type_ {
        "integer" => "int64",
        "array" => "[]",
        other => other,
    }
}

/// Returns true if a text matches the pattern of quantities: a number, and a unit or an exponent.
fn is_quantity(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let end = |text: &str| text.find(|c: char| !c.is_ascii_digit() && c != '.');
    let (number, unit) = unsigned.split_at(end(unsigned).unwrap_or(unsigned.len()));
    let is_number = |text: &str| {
        let dots = text.bytes().filter(|byte| *byte == b'.').count();
        dots <= 1
            && text.bytes().any(|byte| byte.is_ascii_digit())
            && text.bytes().all(|byte| byte == b'.' || byte.is_ascii_digit())
    };
    let is_exponent = |text: &str| {
        let exponent = text.strip_prefix(['e', 'E']);
        exponent.is_some_and(|it| is_number(it.strip_prefix(['+', '-']).unwrap_or(it)))
    };
    let is_unit = |text: &str| match text.as_bytes() {
        [] => true,
        [unit] => b"numkMGTPE".contains(unit),
        [unit, b'i'] => b"KMGTPE".contains(unit),
        _ => false,
    };
    is_number(number) && (is_unit(unit) || is_exponent(unit))
}

fn required_hint(path: &str) -> Option<Hint> {
    let example = "for example `targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}`";
    (path == "spec.targetRef").then(|| example.into())
}

/// The probable meaning of an unknown field: a similar name here, or another place.
fn unknown_field_hint(field: &str, schema: Option<&Schema>) -> Option<Hint> {
    let known = schema.map_or_else(Vec::new, |schema| {
        schema.fields.iter().map(|(name, _)| *name).filter(|name| *name != "[]").collect()
    });
    if let Some(similar) = similar(field, known.iter().copied()) {
        return Some(similar);
    }
    let mut places = Vec::new();
    VPA.places(field, "", &mut places);
    if places.is_empty() {
        // A long list of names does not help.
        return if known.len() <= 8 { suggest(field, known) } else { None };
    }
    let place = |place: &String| match place.as_str() {
        "" => "at the top".to_owned(),
        place => format!("in `{place}`"),
    };
    let places: Vec<String> = places.iter().map(place).collect();
    Some(format!("`{field}` belongs {}", places.join(" or ")).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All schemas of the table.
    fn schemas(schema: &'static Schema) -> Vec<&'static Schema> {
        let below = schema.fields.iter().flat_map(|(_, schema)| schemas(schema));
        std::iter::once(schema).chain(below).collect()
    }

    #[test]
    fn the_table_has_only_types_patterns_and_rules_that_are_checked() {
        const QUANTITY: &str = concat!(
            r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))",
            r"(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
        );
        let all = schemas(&VPA);
        assert!(all.len() > 40, "only {} fields", all.len());
        for schema in &all {
            assert!(schema.pattern.is_none_or(|it| it == QUANTITY), "{schema:?}");
            let known = ["object", "array", "string", "integer", INT_OR_STRING, ANY];
            assert!(known.contains(&schema.type_), "{schema:?}");
        }
        let rules: usize = all.iter().map(|schema| schema.rules.len()).sum();
        let text = include_str!("vpa_fields.txt").lines();
        assert_eq!(rules, text.filter(|line| line.trim_start().starts_with("= ")).count());
    }

    #[test]
    fn quantities_match_the_pattern() {
        for text in ["1", "+1.", "-.5", "100m", "1.5Gi", "1e3", "1E-.5", "2k", "3E", "1Ki"] {
            assert!(is_quantity(text), "{text}");
        }
        for text in ["", ".", "1.2.3", "1K", "1ki", "1 Gi", "1e", "1mi", "m", "--1", "1e+", "½"] {
            assert!(!is_quantity(text), "{text}");
        }
    }
}
