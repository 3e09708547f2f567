//! The JSON Schema of scenario files, from the types in `raw`.

use schemars::Schema;
use schemars::generate::SchemaSettings;
use schemars::transform::{Transform, transform_subschemas};
use serde_json::{Value, json};

use super::autoscalers::Autoscalers;
use super::known_fields::KnownFields;
use super::raw::ScenarioFile;

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
    let mut schema = settings.into_generator().into_root_schema_for::<ScenarioFile>();
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
    let mut types = fields.shift_remove("$defs").unwrap_or_default();
    describe(&mut own, "ScenarioFile");
    for name in ["Workload", "Metrics", "TimelineEvent"] {
        describe(&mut types[name]["properties"], name);
    }
    fields.insert("properties".to_owned(), own);
    let hpas = any_of(&["hpa", "hpas"]);
    let vpas = any_of(&["vpa", "vpas"]);
    let with_vpa = json!({
        "if": vpas, "then": narrowed(Autoscalers::HpasAndVpa), "else": narrowed(Autoscalers::Hpas),
    });
    let only_vpas = narrowed(Autoscalers::Vpas);
    fields.insert("if".to_owned(), json!({ "anyOf": [hpas, { "not": vpas }] }));
    fields.insert("then".to_owned(), with_vpa);
    fields.insert("else".to_owned(), only_vpas);
    fields.insert("$defs".to_owned(), types);
    value
}

/// A file that has one of some fields.
fn any_of(names: &[&str]) -> Value {
    let required = names.iter().map(|name| json!({ "required": [name] }));
    json!({ "anyOf": required.collect::<Vec<_>>() })
}

/// Adds to the descriptions of the fields of a type which autoscalers they require.
fn describe(fields: &mut Value, type_name: &str) {
    use Autoscalers::{Hpas, HpasAndVpa, Vpas};
    let [hpas, vpas, both] = [Hpas, Vpas, HpasAndVpa].map(|it| impossible(type_name, it));
    for (name, field) in fields.as_object_mut().into_iter().flatten() {
        if ["hpa", "hpas", "vpa", "vpas"].contains(&name.as_str()) {
            continue;
        }
        let is_possible = |fields: &Value| fields.get(name).is_none();
        let requirement = match [&hpas, &vpas, &both].map(is_possible) {
            [true, false, true] => "Not in scenarios with a VPA alone.",
            [true, false, false] => "Not in scenarios with a VPA.",
            [false, true, true] => "Requires a VPA.",
            [false, true, false] => "Requires a VPA, without an HPA.",
            [false, false, true] => "Requires an HPA and a VPA.",
            _ => continue,
        };
        if let Some(Value::String(text)) = field.get_mut("description") {
            *text = format!("{text} {requirement}");
        }
    }
}

/// The schemas of the fields that a type has only in other scenarios.
fn impossible(type_name: &str, autoscalers: Autoscalers) -> Value {
    let known = KnownFields::in_type(type_name, autoscalers);
    let fields = known.into_iter().flat_map(KnownFields::impossible);
    fields.map(|name| (name.to_owned(), Value::from(false))).collect()
}

/// The differences of a scenario with these autoscalers from the type of the file: the fields that
/// it can't have, the fields that it must have, and the forms of values.
fn narrowed(autoscalers: Autoscalers) -> Value {
    let mut fields = impossible("ScenarioFile", autoscalers);
    let mut workload = json!({ "properties": impossible("Workload", autoscalers) });
    let mut event = impossible("TimelineEvent", autoscalers);
    fields["metrics"] = json!({ "properties": impossible("Metrics", autoscalers) });
    let (error, init_container, releases, expectation) = match autoscalers {
        Autoscalers::Vpas => ("string", "string", "VpaReleasesText", Some("VpaExpectation")),
        Autoscalers::Hpas => ("object", "object", "ReleasesText", Some("Expect")),
        Autoscalers::HpasAndVpa => ("object", "object", "ReleasesText", None),
    };
    let type_of = |name: &str| json!({ "$ref": format!("#/$defs/{name}") });
    event["metricsError"] = json!({ "type": error });
    let init_containers = json!({ "items": { "type": init_container } });
    workload["properties"]["initContainers"] = init_containers;
    fields["releases"] = type_of(releases);
    fields["timeline"] = json!({ "items": { "properties": event } });
    if let Some(expectation) = expectation {
        fields["expect"] = json!({ "items": type_of(expectation) });
    }
    let one_of = |names: &[&str]| -> Value {
        names.iter().map(|name| json!({ "required": [name] })).collect()
    };
    let mut schema = match autoscalers {
        Autoscalers::Vpas => json!({ "oneOf": one_of(&["vpa", "vpas"]) }),
        Autoscalers::Hpas | Autoscalers::HpasAndVpa => {
            workload["required"] = json!(["replicas"]);
            json!({ "required": ["workload"], "oneOf": one_of(&["hpa", "hpas"]) })
        }
    };
    if autoscalers == Autoscalers::HpasAndVpa {
        fields["vpas"] = false.into();
    }
    fields["workload"] = workload;
    schema["properties"] = fields;
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
