//! Objects of any kind: manifests, references, edits, and the values that expectations compare.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Deserializer;
use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};
use serde_json_path::JsonPath;

use super::entries::{Entries, read_object};

/// A manifest of any kind, or `file`, the path of one or several.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct AnyObject(pub Value);

impl<'de> Deserialize<'de> for AnyObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<AnyObject, D::Error> {
        read_object(deserializer, "a manifest, or {file: …} with the path of one").map(AnyObject)
    }
}

impl JsonSchema for AnyObject {
    fn schema_name() -> Cow<'static, str> {
        "Object".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A manifest of any kind as for `kubectl apply`; or `file`, the path of \
                            manifests relative to the scenario.",
            "type": "object",
            "anyOf": [{"required": ["apiVersion", "kind", "metadata"]}, {"required": ["file"]}],
        })
    }
}

/// The name of an object with its kind.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[serde(expecting = "an object, for example {apiVersion: apps/v1, kind: Deployment, name: web}")]
pub struct ObjectRef {
    /// The API version, for example `apps/v1`.
    #[schemars(length(min = 1))]
    pub api_version: Arc<str>,
    /// The kind.
    #[schemars(length(min = 1))]
    pub kind: Arc<str>,
    /// The name.
    #[schemars(length(min = 1))]
    pub name: Arc<str>,
    /// The namespace. Default: that of the scenario, or none if the kind has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<Arc<str>>,
}

impl ObjectRef {
    /// The group of the API: empty for the core group.
    #[must_use]
    pub fn group(&self) -> &str {
        self.api_version.split_once('/').map_or("", |(group, _)| group)
    }
}

/// `Deployment web`, `Deployment shop/web`.
impl fmt::Display for ObjectRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{} {namespace}/{}", self.kind, self.name),
            None => write!(f, "{} {}", self.kind, self.name),
        }
    }
}

/// An edit of an object by a JSON merge patch.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[serde(expecting = "an edit, for example {apiVersion: v1, kind: Node, name: a, patch: {…}}")]
pub struct ObjectEdit {
    /// The API version, for example `apps/v1`.
    #[schemars(length(min = 1))]
    pub api_version: Arc<str>,
    /// The kind.
    #[schemars(length(min = 1))]
    pub kind: Arc<str>,
    /// The name.
    #[schemars(length(min = 1))]
    pub name: Arc<str>,
    /// The namespace. Default: that of the scenario, or none if the kind has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<Arc<str>>,
    /// The subresource that is patched. Default: the object itself, whose status stays.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subresource: Option<Subresource>,
    /// The JSON merge patch, for example `{spec: {size: 3}}`.
    #[serde(deserialize_with = "patch")]
    #[schemars(with = "serde_json::Map<String, Value>")]
    pub patch: Value,
}

fn patch<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
    read_object(deserializer, "a JSON merge patch, for example {spec: {size: 3}}")
}

impl ObjectEdit {
    /// The edited object.
    #[must_use]
    pub fn object(&self) -> ObjectRef {
        ObjectRef {
            api_version: self.api_version.clone(),
            kind: self.kind.clone(),
            name: self.name.clone(),
            namespace: self.namespace.clone(),
        }
    }
}

/// A subresource that an edit can change.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Subresource {
    /// The status of the object.
    Status,
}

/// The expected values of fields of an object, by their JSON paths.
pub type ExpectedFields = Entries<ExpectedValue>;

/// The expected value of a field: the value itself, or bounds on a number.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, try_from = "Value")]
#[schemars(!try_from)]
pub enum ExpectedValue {
    /// Bounds, both inclusive.
    Bounds(NumberBounds),
    /// Exactly this value. `null`: the field is absent or null.
    Exact(Value),
}

/// Bounds on a number, both inclusive.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", try_from = "GivenBounds")]
pub struct NumberBounds {
    /// The smallest number.
    #[serde(skip_serializing_if = "Option::is_none")]
    at_least: Option<Number>,
    /// The largest number.
    #[serde(skip_serializing_if = "Option::is_none")]
    at_most: Option<Number>,
}

/// Bounds as they are given: an empty map is an exact value.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "NumberBounds", extend("minProperties" = 1))]
struct GivenBounds {
    /// The smallest number.
    #[schemars(with = "Option<f64>")]
    at_least: Option<Number>,
    /// The largest number.
    #[schemars(with = "Option<f64>")]
    at_most: Option<Number>,
}

impl JsonSchema for NumberBounds {
    fn schema_name() -> Cow<'static, str> {
        GivenBounds::schema_name()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        GivenBounds::json_schema(generator)
    }
}

impl TryFrom<GivenBounds> for NumberBounds {
    type Error = &'static str;

    fn try_from(given: GivenBounds) -> Result<NumberBounds, &'static str> {
        let GivenBounds { at_least, at_most } = given;
        match (&at_least, &at_most) {
            (None, None) => Err("expected atLeast, atMost or both"),
            _ => Ok(NumberBounds { at_least, at_most }),
        }
    }
}

impl NumberBounds {
    /// Returns true if no number is within the bounds.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let (least, most) = (float(self.at_least.as_ref()), float(self.at_most.as_ref()));
        least.zip(most).is_some_and(|(least, most)| least > most)
    }

    fn contains(&self, number: &Number) -> bool {
        let Some(number) = number.as_f64() else { return false };
        float(self.at_least.as_ref()).is_none_or(|least| least <= number)
            && float(self.at_most.as_ref()).is_none_or(|most| number <= most)
    }
}

fn float(number: Option<&Number>) -> Option<f64> {
    number.and_then(Number::as_f64)
}

/// A map with the name of a bound is bounds: a mistake in them must not become an exact value.
impl TryFrom<Value> for ExpectedValue {
    type Error = String;

    fn try_from(value: Value) -> Result<ExpectedValue, String> {
        let is_bound = |name: &String| ["atleast", "atmost"].contains(&&*name.to_lowercase());
        if !value.as_object().is_some_and(|fields| fields.keys().any(is_bound)) {
            return Ok(ExpectedValue::Exact(value));
        }
        let bounds = serde_json::from_value::<NumberBounds>(value);
        bounds.map(ExpectedValue::Bounds).map_err(|error| format!("bounds on a number: {error}"))
    }
}

impl ExpectedValue {
    /// Returns true if the values that a path selects are as expected: each of them is, and there
    /// is at least one, unless the field is expected to be absent.
    #[must_use]
    pub fn is_met_by(&self, found: &[&Value]) -> bool {
        match self {
            ExpectedValue::Exact(Value::Null) => found.iter().all(|value| value.is_null()),
            _ => !found.is_empty() && found.iter().all(|value| self.matches(value)),
        }
    }

    /// Returns true if any of the values that a path selects is this one. `null` also stands for no
    /// value.
    #[must_use]
    pub fn is_met_by_any(&self, found: &[&Value]) -> bool {
        match self {
            ExpectedValue::Exact(Value::Null) if found.is_empty() => true,
            _ => found.iter().any(|value| self.matches(value)),
        }
    }

    fn matches(&self, found: &Value) -> bool {
        match (self, found) {
            (ExpectedValue::Bounds(bounds), Value::Number(number)) => bounds.contains(number),
            (ExpectedValue::Bounds(_), _) => false,
            (ExpectedValue::Exact(expected), found) => is_equal(expected, found),
        }
    }
}

/// Compares values; 3 and 3.0 are the same number.
fn is_equal(expected: &Value, found: &Value) -> bool {
    match (expected, found) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_equal(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            let same = |(name, a): (&String, &Value)| b.get(name).is_some_and(|b| is_equal(a, b));
            a.len() == b.len() && a.iter().all(same)
        }
        (expected, found) => expected == found,
    }
}

/// `3`, `"True"`, `at least 3`, `3 to 5`.
impl fmt::Display for ExpectedValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ExpectedValue::Exact(Value::Null) => f.write_str("no value"),
            ExpectedValue::Exact(value) => write!(f, "{value}"),
            ExpectedValue::Bounds(NumberBounds { at_least, at_most }) => {
                match (at_least, at_most) {
                    (Some(least), Some(most)) => write!(f, "{least} to {most}"),
                    (Some(least), None) => write!(f, "at least {least}"),
                    (None, Some(most)) => write!(f, "at most {most}"),
                    (None, None) => f.write_str("any number"),
                }
            }
        }
    }
}

/// The JSON path of a field below its object: `spec.replicas`, or a whole path, `$.spec.replicas`.
fn whole_path(path: &str) -> Cow<'_, str> {
    match path {
        path if path.starts_with('$') => Cow::Borrowed(path),
        path if path.starts_with('[') => Cow::Owned(format!("${path}")),
        path => Cow::Owned(format!("$.{path}")),
    }
}

/// Checks a JSON path.
///
/// # Errors
/// The reason why it is none.
pub(crate) fn check_path(path: &str) -> Result<(), String> {
    JsonPath::parse(&whole_path(path)).map(drop).map_err(|error| error.message().to_owned())
}

/// The values that a JSON path selects in an object. Empty if it selects none.
#[must_use]
pub fn select<'v>(object: &'v Value, path: &str) -> Vec<&'v Value> {
    let parsed = JsonPath::parse(&whole_path(path));
    parsed.map(|path| path.query(object).all()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn paths_select_values() {
        let object = json!({
            "metadata": {"labels": {"app.kubernetes.io/name": "web"}},
            "spec": {"replicas": 3, "ports": [{"port": 80}, {"port": 81}]},
            "status": {"conditions": [
                {"type": "Ready", "status": "True"},
                {"type": "Stalled", "status": "False"},
            ]},
        });
        for (path, expected) in [
            ("spec.replicas", json!([3])),
            ("$.spec.replicas", json!([3])),
            ("status.conditions[?(@.type=='Ready')].status", json!(["True"])),
            ("status.conditions[?@.type == 'Stalled'].status", json!(["False"])),
            ("metadata.labels['app.kubernetes.io/name']", json!(["web"])),
            ("['spec']['replicas']", json!([3])),
            ("spec.ports[*].port", json!([80, 81])),
            ("spec.ports[1].port", json!([81])),
            ("spec.missing.field", json!([])),
        ] {
            check_path(path).expect(path);
            assert_eq!(json!(select(&object, path)), expected, "{path}");
        }
        for wrong in ["spec.", "spec[", "status.conditions[?(@.type=Ready)].status", ""] {
            let why = check_path(wrong).expect_err(wrong);
            assert!(!why.is_empty() && !why.contains('\n'), "{wrong}: {why}");
        }
    }

    #[test]
    fn values_are_exact_or_within_bounds() {
        let expected = |value: Value| -> ExpectedValue {
            serde_json::from_value(value).expect("any value is an expected value")
        };
        for (value, found, is_met) in [
            (json!(3), vec![json!(3)], true),
            (json!(3), vec![json!(3.0)], true),
            (json!(3), vec![json!("3")], false),
            (json!(3), vec![], false),
            (json!(3), vec![json!(3), json!(4)], false),
            (json!({"atLeast": 3}), vec![json!(3), json!(4)], true),
            (json!({"atLeast": 3, "atMost": 5}), vec![json!(6)], false),
            (json!({"atMost": 5}), vec![json!("5")], false),
            (json!({}), vec![json!({})], true),
            (json!(null), vec![], true),
            (json!(null), vec![json!(null)], true),
            (json!(null), vec![json!(0)], false),
        ] {
            let seen: Vec<&Value> = found.iter().collect();
            assert_eq!(expected(value.clone()).is_met_by(&seen), is_met, "{value} {found:?}");
        }
        let several = [&json!(3), &json!(4)];
        assert!(expected(json!(4)).is_met_by_any(&several));
        assert!(!expected(json!(5)).is_met_by_any(&several));
        assert!(expected(json!(null)).is_met_by_any(&[]));
    }

    #[test]
    fn mistakes_in_bounds_are_errors() {
        for wrong in
            [json!({"atleast": 3}), json!({"atLeast": "3"}), json!({"atMost": 5, "other": 1})]
        {
            let error = serde_json::from_value::<ExpectedValue>(wrong.clone());
            let text = error.expect_err("a mistake").to_string();
            assert!(text.contains("bounds on a number: "), "{wrong}: {text}");
        }
    }
}
