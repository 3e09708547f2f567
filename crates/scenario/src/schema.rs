//! The JSON Schema of scenario files, from the types in `raw`.

use schemars::generate::SchemaSettings;
use schemars::transform::{Transform, transform_subschemas};
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value, json};

use super::raw::ScenarioFile;
use super::vpa::raw::VpaScenarioFile;
use super::with_vpa::VpaFields;

/// The URL of the schema of the newest version.
const ID: &str = "https://kube-lockstep.dev/schema/scenario.schema.json";

/// Types of the Kubernetes API, where null is the same as absent. In a patch it removes a field.
const NULLABLE: [&str; 36] = [
    "AnyVersion",
    "Behavior",
    "ContainerResourceMetric",
    "ContainerResourceV2beta1",
    "DescribedObjectReference",
    "EvictionRequirement",
    "ExternalMetricSource",
    "ExternalV2beta1",
    "LabelSelector",
    "LabelSelectorRequirement",
    "Manifest",
    "ManifestV1",
    "ManifestV2beta1",
    "Metadata",
    "Metric",
    "MetricIdentifier",
    "MetricV2beta1",
    "ObjectMetricSource",
    "ObjectV2beta1",
    "PodsMetricSource",
    "PodsV2beta1",
    "Policy",
    "Reference",
    "ResourceMetric",
    "ResourceV2beta1",
    "ScalingRules",
    "Spec",
    "SpecV1",
    "SpecV2beta1",
    "Target",
    "VpaContainerPolicy",
    "VpaManifest",
    "VpaObjectMetadata",
    "VpaObjectSpec",
    "VpaResourcePolicy",
    "VpaUpdatePolicy",
];

/// The JSON Schema (draft 2020-12) of scenario files.
#[must_use]
pub fn schema() -> Value {
    let settings = SchemaSettings::draft2020_12().with_transform(NoDefaults);
    let mut generator = settings.into_generator();
    let of_vpa = generator.subschema_for::<VpaScenarioFile>();
    let beside_hpa = VpaFields::json_schema(&mut generator);
    let mut schema = generator.into_root_schema_for::<ScenarioFile>();
    schema.insert("$id".to_owned(), ID.into());
    let mut value = schema.to_value();
    let Value::Object(fields) = &mut value else { return value };
    if let Some(Value::Object(types)) = fields.get_mut("$defs") {
        for (name, schema) in types.iter_mut() {
            if !NULLABLE.contains(&name.as_str())
                && let Ok(schema) = <&mut Schema>::try_from(schema)
            {
                NoNulls.transform(schema);
            }
        }
        types.sort_keys();
    }
    let mut own = fields.shift_remove("properties").unwrap_or_default();
    if let Value::Object(own) = &mut own {
        for schema in own.values_mut().filter_map(|value| <&mut Schema>::try_from(value).ok()) {
            NoNulls.transform(schema);
        }
    }
    // The title and description precede the types.
    for name in ["description", "title", "$id", "$schema"] {
        if let Some(value) = fields.shift_remove(name) {
            fields.shift_insert(0, name.to_owned(), value);
        }
    }
    let types = fields.shift_remove("$defs").unwrap_or_default();
    fields.insert("properties".to_owned(), own);
    // A file with `vpa` or `vpas` is a scenario of the recommender.
    let head = ["$schema", "$id", "title", "description"];
    let mut of_hpa = std::mem::take(fields);
    for name in head {
        if let Some(value) = of_hpa.shift_remove(name) {
            fields.insert(name.to_owned(), value);
        }
    }
    let with_vpa = with_vpa(&of_hpa, &beside_hpa, &types["VpaScenario"]["properties"]);
    fields.insert("if".to_owned(), any_of(&["vpa", "vpas", "script"]));
    let of_vpa =
        json!({ "if": any_of(&["hpa", "hpas"]), "then": with_vpa, "else": of_vpa.to_value() });
    fields.insert("then".to_owned(), of_vpa);
    fields.insert("else".to_owned(), Value::Object(of_hpa));
    fields.insert("$defs".to_owned(), types);
    value
}

/// A file that has one of some fields.
fn any_of(names: &[&str]) -> Value {
    let required = names.iter().map(|name| json!({ "required": [name] }));
    json!({ "anyOf": required.collect::<Vec<_>>() })
}

/// The schema of a scenario with an HPA and a VPA: that of the HPA, and fields, events and
/// expectations of the VPA.
fn with_vpa(of_hpa: &Map<String, Value>, beside_hpa: &Schema, of_vpa: &Value) -> Value {
    let mut schema = Value::Object(of_hpa.clone());
    let properties = &mut schema["properties"];
    let fields = beside_hpa.get("properties").and_then(Value::as_object);
    for (name, field) in fields.into_iter().flatten() {
        properties[name] = field.clone();
    }
    for list in ["timeline", "expect"] {
        let items = json!({ "anyOf": [properties[list]["items"], of_vpa[list]["items"]] });
        properties[list]["items"] = items;
    }
    schema
}

/// Removes defaults that are null.
#[derive(Clone)]
struct NoDefaults;

impl Transform for NoDefaults {
    fn transform(&mut self, schema: &mut Schema) {
        transform_subschemas(self, schema);
        if schema.get("default").is_some_and(|value| {
            value.is_null()
                || value.as_array().is_some_and(Vec::is_empty)
                || value.as_object().is_some_and(serde_json::Map::is_empty)
        }) {
            schema.remove("default");
        }
    }
}

/// Removes null from the types of optional fields: such fields are omitted instead.
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
