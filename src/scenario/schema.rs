//! The JSON Schema of scenario files, from the types in `file`.

use schemars::Schema;
use schemars::generate::SchemaSettings;
use schemars::transform::{Transform, transform_subschemas};
use serde_json::Value;

use super::file::File;

/// Where the schema of the newest version is published.
const ID: &str = "https://kube-lockstep.dev/schema/scenario.schema.json";

/// The JSON Schema (draft 2020-12) of scenario files.
#[must_use]
pub fn schema() -> Value {
    let settings = SchemaSettings::draft2020_12().with_transform(NoNulls);
    let mut schema = settings.into_generator().into_root_schema_for::<File>();
    schema.insert("$id".to_owned(), ID.into());
    // The place of a schema's version and name is the top.
    let mut value = schema.to_value();
    if let Value::Object(fields) = &mut value {
        for name in ["description", "title", "$id", "$schema"] {
            if let Some(value) = fields.shift_remove(name) {
                fields.shift_insert(0, name.to_owned(), value);
            }
        }
    }
    value
}

/// Optional fields are left out, not null.
#[derive(Clone)]
struct NoNulls;

impl Transform for NoNulls {
    fn transform(&mut self, schema: &mut Schema) {
        transform_subschemas(self, schema);
        let Some(fields) = schema.as_object_mut() else { return };
        if let Some(Value::Array(types)) = fields.get_mut("type") {
            types.retain(|name| name != "null");
            if let [only] = types.as_slice() {
                let only = only.clone();
                fields.insert("type".to_owned(), only);
            }
        }
        if let Some(Value::Array(values)) = fields.get_mut("enum") {
            values.retain(|value| !value.is_null());
        }
        let Some(Value::Array(choices)) = fields.get_mut("anyOf") else { return };
        choices.retain(|choice| choice.get("type").is_none_or(|name| name != "null"));
        if let [Value::Object(only)] = choices.as_slice() {
            let only = only.clone();
            fields.shift_remove("anyOf");
            for (name, value) in only {
                fields.entry(name).or_insert(value);
            }
        }
    }
}
