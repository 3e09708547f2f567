//! The expected content of a checkpoint, with the names of the API.

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::diagnostic::Diagnostic;
use crate::text::{As, Form, malformed};
use kube_autoscaler_models::vpa::{CheckpointStatus, GoTime};

/// Fields of the status of a checkpoint that must have these values.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[serde(expecting = "fields of a checkpoint, for example {totalSamplesCount: 5}")]
#[schemars(extend("minProperties" = 1))]
pub struct ExpectedCheckpoint {
    /// The time at which the checkpoint was written.
    #[serde(default, with = "As::<Option<ApiTime>>", skip_serializing_if = "Option::is_none")]
    pub last_update_time: Option<GoTime>,
    /// The version of the format.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The histogram of CPU, in cores.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_histogram: Option<ExpectedHistogram>,
    /// The histogram of memory peaks, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_histogram: Option<ExpectedHistogram>,
    /// The time of the first CPU sample.
    #[serde(default, with = "As::<Option<ApiTime>>", skip_serializing_if = "Option::is_none")]
    pub first_sample_start: Option<GoTime>,
    /// The time of the last CPU sample.
    #[serde(default, with = "As::<Option<ApiTime>>", skip_serializing_if = "Option::is_none")]
    pub last_sample_start: Option<GoTime>,
    /// The number of CPU samples.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub total_samples_count: Option<i64>,
}

/// Fields of a histogram in a checkpoint that must have these values.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[serde(expecting = "fields of a histogram, for example {totalWeight: 0.1}")]
#[schemars(extend("minProperties" = 1))]
pub struct ExpectedHistogram {
    /// The time at which a sample has its own weight, without decay.
    #[serde(default, with = "As::<Option<ApiTime>>", skip_serializing_if = "Option::is_none")]
    pub reference_timestamp: Option<GoTime>,
    /// The weight of each bucket that is not empty, by bucket number. The largest weight is 10000.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bucket_weights: Option<BTreeMap<Arc<str>, u32>>,
    /// The sum of the weights before they are scaled to integers. It is compared exactly.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub total_weight: Option<f64>,
}

/// The name of the field with the weights.
const WEIGHTS: &str = "bucketWeights";

impl ExpectedCheckpoint {
    /// The fields that do not have the expected value: `cpuHistogram.totalWeight: expected 0.1, was
    /// 0.2`.
    #[must_use]
    pub fn differences(&self, found: &CheckpointStatus) -> Vec<String> {
        let value = |value: serde_json::Result<Value>| value.unwrap_or_default();
        let mut different = Vec::new();
        let (expected, found) = (serde_json::to_value(self), serde_json::to_value(found));
        compare("", &value(expected), &value(found), &mut different);
        different
    }
}

/// Adds the fields of `expected` that `found` does not have. `path` ends with a dot.
fn compare(path: &str, expected: &Value, found: &Value, different: &mut Vec<String>) {
    for (name, expected) in expected.as_object().into_iter().flatten() {
        let found = found.get(name).unwrap_or(&Value::Null);
        if expected.is_object() && name != WEIGHTS {
            compare(&format!("{path}{name}."), expected, found, different);
        } else if expected != found && !(found.is_null() && expected == UNSET) {
            different.push(format!(
                "{path}{name}: expected {}, was {}",
                text(expected),
                text(found)
            ));
        }
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::Null => UNSET.to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// A time that is not set.
const UNSET: &str = "none";

/// A time of the API in whole seconds, or `none`, which is the zero time.
pub(crate) struct ApiTime;

impl Form for ApiTime {
    type Value = GoTime;
    const NAME: &'static str = "\0time of the api";
    const EXPECTED: &'static str = "a date and time in whole seconds, or none";
    const FALLBACK: &'static str = UNSET;
    const SCHEMA_NAME: &'static str = "ApiTimeText";

    fn read(text: &str) -> Result<GoTime, Diagnostic> {
        if text == UNSET {
            return Ok(GoTime::ZERO);
        }
        match text.parse::<jiff::Timestamp>() {
            Ok(timestamp) if timestamp.subsec_nanosecond() == 0 => {
                Ok(GoTime::from_timestamp(timestamp))
            }
            _ => Err(malformed(format!("expected {}, found {text:?}", Self::EXPECTED))
                .hint("for example 2024-03-01T12:00:00Z")),
        }
    }
    fn write(value: &GoTime) -> String {
        if value.is_zero() { UNSET.to_owned() } else { value.to_string() }
    }
    fn schema() -> Schema {
        json_schema!({
            "title": "time",
            "description": "A date and time in whole seconds, or `none`: the time is not set.",
            "type": "string",
            "pattern": r"^(none|\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}:\d{2}([Zz]|[+-].*))$",
            "examples": ["2024-03-01T12:00:00Z", "none"],
        })
    }
}
