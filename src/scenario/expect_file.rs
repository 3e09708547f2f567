//! `expect` of scenario files, as typed.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize};

use super::scalars::{Duration, ReleasesText, ScalarOr, StatusText};

/// Something that is expected: when (exactly one of `tick`, `at`, `always`, `never`, `within`), and
/// what; or `atMost`, alone.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[serde(expecting = "an expectation, for instance {tick: 1, replicas: 6}")]
#[schemars(extend(
    "oneOf" = [
        {"required": ["tick"]},
        {"required": ["at"]},
        {"required": ["always"]},
        {"required": ["never"]},
        {"required": ["within"]},
        {"required": ["atMost"]},
    ],
    "anyOf" = [
        {"required": ["atMost"]},
        {"required": ["replicas"]},
        {"required": ["desiredReplicas"]},
        {"required": ["currentReplicas"]},
        {"required": ["conditions"]},
        {"required": ["events"]},
        {"required": ["rescaled"]},
        {"required": ["error"]},
    ],
))]
pub(super) struct Expect {
    /// The releases on which it is expected. Default: all those of the scenario.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) releases: Option<ReleasesText>,
    /// Only the reconciles of the HPA of this name are looked at, and counted. Default: those of
    /// all HPAs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) hpa: Option<String>,
    /// At the n-th reconcile, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub(super) tick: Option<u32>,
    /// At the last reconcile at or before this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) at: Option<Duration>,
    /// At every reconcile between two times; `{}`: in the whole run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) always: Option<Between>,
    /// At no reconcile between two times; `{}`: in the whole run. Of several things, never all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) never: Option<Between>,
    /// At some reconcile that is at most so much later than `of`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) within: Option<Duration>,
    /// With `within`: from when on. Default 0s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) of: Option<Duration>,
    /// A bound on how often something happens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) at_most: Option<AtMost>,
    /// The target's size after the reconcile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) replicas: Option<Bounds>,
    /// `status.desiredReplicas`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) desired_replicas: Option<Bounds>,
    /// `status.currentReplicas`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) current_replicas: Option<Bounds>,
    /// Conditions that must be among those of the status.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) conditions: Vec<Condition>,
    /// Events that must be among those of the reconcile.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) events: Vec<Event>,
    /// Whether the reconcile changed the size.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) rescaled: Option<bool>,
    /// A part of the error with which the reconcile ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
}

/// A span of the run, both ends included.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[serde(expecting = "a map: {from: …, to: …}, or {} for the whole run")]
pub(super) struct Between {
    /// Default: the start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) from: Option<Duration>,
    /// Default: the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) to: Option<Duration>,
}

/// A bound on how often something happens: exactly one of `directionChanges` and `rescales`.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[serde(expecting = "a map such as {rescales: 1, in: 10m}")]
#[schemars(extend("oneOf" = [
    {"required": ["directionChanges"]},
    {"required": ["rescales"]},
]))]
pub(super) struct AtMost {
    /// Changes of direction: up after down, down after up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) direction_changes: Option<u32>,
    /// Changes of the size.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) rescales: Option<u32>,
    /// Within any such span of time. Default: in the whole run.
    #[serde(rename = "in", skip_serializing_if = "Option::is_none")]
    pub(super) in_: Option<Duration>,
}

/// A number, or bounds on it.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(transparent)]
pub(super) struct Bounds(pub(super) ScalarOr<Number, AtLeastAtMost>);

/// A number, as written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Number(pub(super) String);

impl From<String> for Number {
    fn from(text: String) -> Number {
        Number(text)
    }
}

impl Serialize for Number {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.parse::<i32>() {
            Ok(number) => serializer.serialize_i32(number),
            Err(_) => serializer.serialize_str(&self.0),
        }
    }
}

impl<'de> Deserialize<'de> for Bounds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Bounds, D::Error> {
        let expected = "a number of replicas, or {atLeast: …, atMost: …}";
        ScalarOr::read(deserializer, expected).map(Bounds)
    }
}

impl JsonSchema for Bounds {
    fn schema_name() -> Cow<'static, str> {
        "Bounds".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let bounds = generator.subschema_for::<AtLeastAtMost>();
        json_schema!({
            "description": "A number of replicas, or bounds on it.",
            "anyOf": [{ "type": "integer", "minimum": 0, "maximum": i32::MAX }, bounds],
        })
    }
}

/// Bounds, both included.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(extend("minProperties" = 1))]
pub(super) struct AtLeastAtMost {
    /// Not less.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub(super) at_least: Option<i32>,
    /// Not more.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub(super) at_most: Option<i32>,
}

/// A condition of the HPA's status.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[serde(expecting = "a condition, for instance {type: ScalingActive, status: \"True\"}")]
pub(super) struct Condition {
    /// Its type.
    #[serde(rename = "type")]
    #[schemars(extend("enum" = ["AbleToScale", "ScalingActive", "ScalingLimited", "ScaledToZero"]))]
    pub(super) type_: String,
    /// True or False.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) status: Option<StatusText>,
    /// Its reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [
        "ReadyForNewScale", "SucceededRescale", "SucceededGetScale", "ScaleDownStabilized",
        "ScaleUpStabilized", "FailedGetScale", "FailedUpdateScale", "ValidMetricFound",
        "ScalingDisabled", "FailedGetResourceMetric", "InvalidSelector", "DesiredWithinRange",
        "TooFewReplicas", "TooManyReplicas", "ScaleUpLimit", "ScaleDownLimit",
    ]))]
    pub(super) reason: Option<String>,
    /// A part of its message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) message: Option<String>,
}

/// An event on the HPA.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[serde(expecting = "an event, for instance {reason: SuccessfulRescale}")]
pub(super) struct Event {
    /// Its reason.
    #[schemars(extend("examples" = [
        "SuccessfulRescale", "FailedRescale", "FailedGetScale", "FailedGetResourceMetric",
        "FailedComputeMetricsReplicas", "FailedUpdateStatus", "SelectorRequired",
    ]))]
    pub(super) reason: String,
    /// A part of its message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) message: Option<String>,
}
