//! The pages of all fields of scenario files and of the engine protocol, made from the JSON Schemas.

use std::collections::{BTreeSet, VecDeque};
use std::fmt::Write as _;

use serde_json::{Map, Value};

/// Types of the Kubernetes API, which Kubernetes documents: the fields of manifests.
const MANIFESTS: [&str; 4] = ["AnyVersion", "VpaManifest", "Patch", "LabelSelector"];

const SCENARIOS: &str = "# Fields of scenario files

All fields, from the types of the program. [Scenario files](scenario.md) explains them with
examples. The fields of HPA and VPA manifests are those of the Kubernetes API.

This page is generated: `cargo xtask docs`.
";

const PROTOCOL: &str = "# Messages of the engine protocol

All messages and their fields, from the types of the program. [The engine protocol](protocol.md)
explains them with examples. The JSON Schema is `schema/protocol.schema.json`. Times and durations
are integers, in nanoseconds. Specs and statuses of HPAs have the JSON of the Kubernetes API.

This page is generated: `cargo xtask docs`.
";

/// The page of the engine protocol.
pub(crate) fn protocol_fields(schema: &Value) -> String {
    let mut page = Page::new(schema, PROTOCOL);
    page.section("Requests", &schema["$defs"]["RequestLine"]);
    page.section("Answers", &schema["$defs"]["Answer"]);
    page.others()
}

/// The page of scenario files.
pub(crate) fn scenario_fields(schema: &Value) -> String {
    let mut page = Page::new(schema, SCENARIOS);
    page.section("Scenario", schema);
    page.others()
}

struct Page<'a> {
    schema: &'a Value,
    text: String,
    /// The types that have a section, or are about to have one.
    seen: BTreeSet<&'a str>,
    next: VecDeque<&'a str>,
}

impl<'a> Page<'a> {
    fn new(schema: &'a Value, head: &str) -> Page<'a> {
        Page { schema, text: head.to_owned(), seen: BTreeSet::new(), next: VecDeque::new() }
    }

    /// Adds the sections of all types that are referred to, and returns the page.
    fn others(mut self) -> String {
        while let Some(name) = self.next.pop_front() {
            self.section(name, &self.schema["$defs"][name]);
        }
        self.text
    }

    fn resolve(&self, schema: &'a Value) -> &'a Value {
        reference(schema).map_or(schema, |name| &self.schema["$defs"][name])
    }

    fn section(&mut self, name: &str, schema: &'a Value) {
        let _ = write!(self.text, "\n## {name}\n");
        if let Some(description) = description(schema) {
            let _ = write!(self.text, "\n{description}\n");
        }
        if let Some(fields) = schema["properties"].as_object() {
            self.fields(fields, schema);
        }
        self.values(schema);
        if let Some(pattern) = schema["pattern"].as_str() {
            let _ = write!(self.text, "\nPattern: `{pattern}`\n");
        }
        if let Some(examples) = schema["examples"].as_array() {
            let examples: Vec<String> =
                examples.iter().map(|it| format!("`{}`", plain(it))).collect();
            let _ = write!(self.text, "\nExamples: {}\n", examples.join(", "));
        }
    }

    fn fields(&mut self, fields: &'a Map<String, Value>, schema: &Value) {
        self.text.push_str("\n| field | type | description |\n|---|---|---|\n");
        let required = schema["required"].as_array();
        for (name, field) in fields {
            let is_required = required.is_some_and(|names| names.iter().any(|it| it == name));
            let required = if is_required { " (required)" } else { "" };
            let kind = self.kind(field);
            let described = description(field).or_else(|| description(self.resolve(field)));
            let described = described.unwrap_or_default();
            let _ = writeln!(self.text, "| `{name}`{required} | {kind} | {} |", cell(&described));
        }
    }

    /// The alternatives of a type: words with their meaning, or other types.
    fn values(&mut self, schema: &'a Value) {
        for alternatives in ["oneOf", "anyOf"].iter().filter_map(|it| schema[it].as_array()) {
            alternatives.iter().for_each(|it| self.message(it));
            let alternatives = alternatives.iter().filter(|it| message(it).is_none());
            // Alternatives that only require fields are in the description.
            let alternatives =
                alternatives.filter(|it| it.get("type").or(it.get("$ref")).is_some());
            let lines: Vec<String> = alternatives.map(|it| self.alternative(it)).collect();
            if !lines.is_empty() {
                let _ = write!(self.text, "\n{}", lines.concat());
            }
        }
        if let Some(words) = schema["enum"].as_array() {
            let words: Vec<String> = words.iter().map(|it| format!("`{}`", plain(it))).collect();
            let _ = write!(self.text, "\nOne of {}\n", words.join(", "));
        }
    }

    /// Adds the heading and the fields of an alternative that is a message with a name.
    fn message(&mut self, schema: &'a Value) {
        let Some((name, content)) = message(schema) else { return };
        let _ = write!(self.text, "\n### {name}\n");
        let described = description(schema).or_else(|| description(content));
        if let Some(described) = described {
            let _ = write!(self.text, "\n{described}\n");
        }
        match content["properties"].as_object() {
            Some(fields) => {
                self.fields(fields, content);
                self.values(content);
            }
            None if reference(content).is_none() && content["type"] == "object" => {}
            None => {
                let kind = self.kind(content);
                let _ = write!(self.text, "\nValue: {kind}\n");
            }
        }
    }

    fn alternative(&mut self, schema: &'a Value) -> String {
        let described = description(schema).map(|it| format!(": {it}")).unwrap_or_default();
        let pattern = schema["pattern"].as_str().map(|it| format!(" (`{it}`)")).unwrap_or_default();
        format!("- {}{pattern}{described}\n", self.kind(schema))
    }

    /// The name of a type, with a link to its section.
    fn kind(&mut self, schema: &'a Value) -> String {
        if let Some(name) = reference(schema) {
            if !MANIFESTS.contains(&name) && self.seen.insert(name) {
                self.next.push_back(name);
            }
            return match MANIFESTS.contains(&name) {
                true => "manifest".to_owned(),
                false => format!("[{name}](#{})", name.to_lowercase()),
            };
        }
        if let Some(word) = schema.get("const") {
            return format!("`{}`", plain(word));
        }
        if let Some(words) = schema["enum"].as_array() {
            let words: Vec<String> = words.iter().map(|it| format!("`{}`", plain(it))).collect();
            return words.join(" or ");
        }
        let several = ["anyOf", "oneOf"].iter().find_map(|it| schema[it].as_array());
        if let Some(several) = several {
            let kinds: Vec<String> = several.iter().map(|it| self.kind(it)).collect();
            return kinds.join(" or ");
        }
        let of = |kind: &str, page: &mut Self| match kind {
            "array" => format!("list of {}", page.kind(&schema["items"])),
            "object" if schema["additionalProperties"].is_object() => {
                format!("map of {}", page.kind(&schema["additionalProperties"]))
            }
            "object" => "map".to_owned(),
            other => other.to_owned(),
        };
        match &schema["type"] {
            Value::String(kind) => of(kind, self),
            Value::Array(kinds) => {
                let kinds = kinds.iter().filter_map(Value::as_str).filter(|it| *it != "null");
                let kinds: Vec<String> = kinds.map(|kind| of(kind, self)).collect();
                kinds.join(" or ")
            }
            _ => "any value".to_owned(),
        }
    }
}

/// The name and the content of a message: an object with a single field.
fn message(schema: &Value) -> Option<(&str, &Value)> {
    let [name] = schema["required"].as_array()?.as_slice() else { return None };
    let name = name.as_str()?;
    let fields = schema["properties"].as_object().filter(|fields| fields.len() == 1)?;
    Some((name, fields.get(name)?))
}

fn reference(schema: &Value) -> Option<&str> {
    schema["$ref"].as_str().and_then(|it| it.strip_prefix("#/$defs/"))
}

/// The description as one line.
fn description(schema: &Value) -> Option<String> {
    let text = schema["description"].as_str()?;
    Some(text.split_whitespace().collect::<Vec<_>>().join(" "))
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The text of a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}
