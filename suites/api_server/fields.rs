//! The fields of VPAs in upstream's CRD, as `crates/scenario/src/custom_resource.rs` reads them.

use std::collections::BTreeMap;

use libtest_mimic::Failed;
use serde_json::{Value, json};

/// Prints the fields of the version `v1`: each on a line, below the field that contains it.
pub(super) fn of_vpas(definitions: &[Value]) -> Result<String, Failed> {
    const KIND: &str = "VerticalPodAutoscaler";
    let definition = definitions.iter().find(|it| it["spec"]["names"]["kind"] == KIND);
    let definition = definition.ok_or("there is no CRD of VPAs")?;
    let versions = definition["spec"]["versions"].as_array().into_iter().flatten();
    let version = versions.into_iter().find(|version| version["name"] == "v1");
    let version = version.ok_or("the CRD has no version v1")?;
    let mut out = String::new();
    print(KIND, &version["schema"]["openAPIV3Schema"], 0, &mut out)?;
    Ok(out)
}

/// Prints a schema and, with one more space, those below it.
fn print(name: &str, schema: &Value, depth: usize, out: &mut String) -> Result<(), Failed> {
    let indent = " ".repeat(depth);
    // An API server ignores the status on creation.
    if depth == 1 && name == "status" {
        out.push_str(&format!("{indent}{name} any\n"));
        return Ok(());
    }
    let keywords: BTreeMap<&String, &Value> = schema.as_object().into_iter().flatten().collect();
    let is_int_or_string = schema["x-kubernetes-int-or-string"] == true;
    let type_ = if is_int_or_string { "int-or-string" } else { text(&schema["type"])? };
    let mut words = vec![name.to_owned(), type_.to_owned()];
    for (keyword, value) in keywords {
        match keyword.as_str() {
            "description" | "type" | "properties" | "items" | "additionalProperties" => {}
            "x-kubernetes-int-or-string" | "x-kubernetes-validations" => {}
            // It matters to server-side apply only.
            "x-kubernetes-map-type" => {}
            "anyOf" if *value == json!([{"type": "integer"}, {"type": "string"}]) => {}
            "format" | "pattern" => words.push(format!("{keyword}={}", text(value)?)),
            "minimum" => words.push(format!("{keyword}={value}")),
            "enum" | "required" => {
                let values = value.as_array().into_iter().flatten().map(text);
                let values: Vec<&str> = values.collect::<Result<_, _>>()?;
                words.push(format!("{keyword}={}", values.join(",")));
            }
            other => return Err(format!("{name}: {other} is not in the table").into()),
        }
    }
    if words.iter().any(|word| word.contains(' ')) {
        return Err(format!("a word of {words:?} contains a space").into());
    }
    out.push_str(&format!("{indent}{}\n", words.join(" ")));
    for rule in schema["x-kubernetes-validations"].as_array().into_iter().flatten() {
        if rule.as_object().is_some_and(|fields| fields.len() > 2) {
            return Err(format!("{name}: a rule has more than a message: {rule}").into());
        }
        out.push_str(&format!(
            "{indent} = {} # {}\n",
            text(&rule["rule"])?,
            text(&rule["message"])?
        ));
    }
    let fields: BTreeMap<&String, &Value> =
        schema["properties"].as_object().into_iter().flatten().collect();
    for (name, schema) in fields {
        print(name, schema, depth + 1, out)?;
    }
    for (name, keyword) in [("[]", "items"), ("*", "additionalProperties")] {
        if schema[keyword].is_object() {
            print(name, &schema[keyword], depth + 1, out)?;
        }
    }
    Ok(())
}

fn text(value: &Value) -> Result<&str, Failed> {
    value.as_str().ok_or_else(|| format!("{value} is no text").into())
}
