//! The types of VPAs in upstream's CRD, as `crates/scenario/src/api_schema.rs` reads them.

use std::collections::BTreeMap;

use libtest_mimic::Failed;
use serde_json::{Value, json};

/// The types by name: the words after the name, and the fields.
type Types = BTreeMap<String, (Vec<String>, Vec<String>)>;

/// Prints the types of the version `v1`: each on a line, above its fields.
pub(super) fn types_of_vpas(definitions: &[Value]) -> Result<String, Failed> {
    const KIND: &str = "VerticalPodAutoscaler";
    let definition = definitions.iter().find(|it| it["spec"]["names"]["kind"] == KIND);
    let definition = definition.ok_or("there is no CRD of VPAs")?;
    let versions = definition["spec"]["versions"].as_array().into_iter().flatten();
    let version = versions.into_iter().find(|version| version["name"] == "v1");
    let version = version.ok_or("the CRD has no version v1")?;
    let mut types = Types::new();
    words_of(KIND, &version["schema"]["openAPIV3Schema"], &mut types)?;
    let mut out = String::new();
    for (name, (words, fields)) in types {
        let words: Vec<String> = std::iter::once(name).chain(words).collect();
        out.push_str(&format!("{}\n", words.join(" ")));
        fields.iter().for_each(|field| out.push_str(&format!(" {field}\n")));
    }
    Ok(out)
}

/// The words of a field: its type, and the limits of its value. Adds the types with fields.
fn words_of(path: &str, schema: &Value, types: &mut Types) -> Result<Vec<String>, Failed> {
    let mut limits = Vec::new();
    let mut type_words = Vec::new();
    for (keyword, value) in schema.as_object().into_iter().flatten() {
        match keyword.as_str() {
            "description" | "type" | "format" | "properties" | "items" => {}
            "additionalProperties" | "x-kubernetes-int-or-string" => {}
            // It matters to server-side apply only.
            "x-kubernetes-map-type" => {}
            "anyOf" if *value == json!([{"type": "integer"}, {"type": "string"}]) => {}
            "pattern" => limits.push(format!("{keyword}={}", text(value)?)),
            "minimum" => limits.push(format!("{keyword}={value}")),
            "enum" => limits.push(format!("{keyword}={}", list(value)?)),
            "required" => type_words.insert(0, format!("{keyword}={}", list(value)?)),
            "x-kubernetes-validations" => {
                let rules = value.as_array().into_iter().flatten().map(rule);
                type_words.extend(rules.collect::<Result<Vec<_>, _>>()?);
            }
            other => return Err(format!("{path}: the table has no form for {other}").into()),
        }
    }
    limits.sort_unstable();
    let (items, values) = (&schema["items"], &schema["additionalProperties"]);
    let is_int_or_string = schema["x-kubernetes-int-or-string"] == true;
    let mut words = match schema["type"].as_str().unwrap_or_default() {
        _ if is_int_or_string => vec!["int-or-string".to_owned()],
        "integer" => vec![text(&schema["format"])?.to_owned()],
        "array" => prefixed("[]", words_of(&format!("{path}[]"), items, types)?),
        "object" if values.is_object() => {
            prefixed("map[string]", words_of(&format!("{path}.*"), values, types)?)
        }
        "object" => {
            let fields = fields_of(path, schema, types)?;
            types.insert(path.to_owned(), (std::mem::take(&mut type_words), fields));
            vec![path.to_owned()]
        }
        other => vec![other.to_owned()],
    };
    words.extend(limits);
    if !type_words.is_empty() || words.iter().any(|word| word.is_empty() || word.contains(' ')) {
        return Err(
            format!("{path}: the table has no form for {words:?} and {type_words:?}").into()
        );
    }
    Ok(words)
}

/// The words of each field of a type.
fn fields_of(path: &str, schema: &Value, types: &mut Types) -> Result<Vec<String>, Failed> {
    let fields: BTreeMap<&String, &Value> =
        schema["properties"].as_object().into_iter().flatten().collect();
    let mut all = Vec::new();
    for (name, schema) in fields {
        let is_at_the_top = !path.contains('.');
        let words = match name.as_str() {
            // An API server decodes the metadata as those of all objects.
            "metadata" if is_at_the_top => "v1.ObjectMeta".to_owned(),
            // An API server ignores the status on creation.
            "status" if is_at_the_top => "any".to_owned(),
            _ => words_of(&format!("{path}.{name}"), schema, types)?.join(" "),
        };
        all.push(format!("{name} {words}"));
    }
    Ok(all)
}

fn prefixed(prefix: &str, mut words: Vec<String>) -> Vec<String> {
    words[0].insert_str(0, prefix);
    words
}

/// A rule in CEL, without its message, which follows from the rule.
fn rule(rule: &Value) -> Result<String, Failed> {
    let parts = text(&rule["rule"])?.strip_prefix("(self.").and_then(|rest| {
        let (field, rest) = rest.split_once(" == '")?;
        let (value, rest) = rest.split_once("') == has(self.")?;
        Some((field, value, rest.strip_suffix(')')?))
    });
    let (field, value, required) =
        parts.ok_or_else(|| format!("the table has no form for the rule {rule}"))?;
    let message = format!("{required} is required when {field} is {value} and forbidden otherwise");
    if *rule != json!({"rule": rule["rule"], "message": message}) {
        return Err(format!("a rule has more than its usual message: {rule}").into());
    }
    Ok(format!("iff={field}:{value}:{required}"))
}

fn list(value: &Value) -> Result<String, Failed> {
    let values = value.as_array().into_iter().flatten().map(text);
    Ok(values.collect::<Result<Vec<_>, _>>()?.join(","))
}

fn text(value: &Value) -> Result<&str, Failed> {
    value.as_str().ok_or_else(|| format!("{value} is no text").into())
}
