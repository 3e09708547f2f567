//! The parts of scenario files that only scenarios with a VPA have, as serde reads them. The JSON
//! Schema is generated from these types and their doc comments.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::manifest::VpaManifest;
use crate::diagnostic::Diagnostic;
use crate::entries::read_object;
use crate::metrics::ResourceUsage;
use crate::text::{As, Form, PositiveDuration, malformed};
use crate::workload::Container;
use kube_autoscaler_models::is_default::is_default;
use kube_autoscaler_models::rules::VpaRelease;
use kube_autoscaler_models::time::Span;
use kube_autoscaler_models::vpa::RecommenderFlags;
use kube_autoscaler_models::vpa::updater::UpdaterFlags;

/// The recommender.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[serde(expecting = "a map of start and flags")]
pub struct RecommenderSettings {
    /// The date and time of t=0, in whole seconds of UTC. It matters because histograms decay in
    /// steps that begin at midnight. The scenario must start at 2000-01-01T00:00:00Z or later, and
    /// end before 2262-04-11T00:00:00Z: this is the range of the virtual clock. Default
    /// 2000-01-01T00:00:00Z.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub start: Option<String>,
    /// Command-line flags, under upstream's names without the leading dashes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "recommender_flags")]
    pub flags: BTreeMap<String, Value>,
}

/// The VPA's updater, which is simulated.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a map of flags")]
pub struct UpdaterSettings {
    /// Command-line flags, under upstream's names without the leading dashes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "updater_flags")]
    pub flags: BTreeMap<String, Value>,
}

fn recommender_flags(_: &mut SchemaGenerator) -> Schema {
    flags(&RecommenderFlags::NAMES)
}

fn updater_flags(_: &mut SchemaGenerator) -> Schema {
    flags(&UpdaterFlags::NAMES)
}

/// The existing flags, for completion.
fn flags(names: &[&str]) -> Schema {
    let flag = |name: &&str| {
        let types = ["string", "number", "boolean"];
        ((*name).to_owned(), serde_json::json!({ "type": types }))
    };
    let flags: serde_json::Map<String, Value> = names.iter().map(flag).collect();
    json_schema!({ "type": "object", "additionalProperties": false, "properties": flags })
}

pub struct VpaReleaseText;

impl Form for VpaReleaseText {
    type Value = VpaRelease;
    const NAME: &'static str = "\0release of the vpa";
    const EXPECTED: &'static str = "a release such as vpa-1.8";
    const FALLBACK: &'static str = "vpa-1.8";
    const SCHEMA_NAME: &'static str = "VpaReleaseText";

    fn read(text: &str) -> Result<VpaRelease, Diagnostic> {
        text.parse().map_err(|why: String| {
            malformed(why).hint(match format!("vpa-{text}").parse::<VpaRelease>() {
                Ok(meant) => format!("did you mean {meant}?"),
                Err(_) => format!("for example {}", VpaRelease::NEWEST),
            })
        })
    }
    fn write(value: &VpaRelease) -> String {
        value.to_string()
    }
    fn schema() -> Schema {
        let names: Vec<_> = VpaRelease::supported().map(|release| release.to_string()).collect();
        json_schema!({ "type": "string", "enum": names })
    }
}

/// Any map: the manifest is checked separately.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct AnyVpa(pub Value);

impl<'de> Deserialize<'de> for AnyVpa {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<AnyVpa, D::Error> {
        let expected = "a VerticalPodAutoscaler, or {file: …} with the path of one";
        read_object(deserializer, expected).map(AnyVpa)
    }
}

impl JsonSchema for AnyVpa {
    fn inline_schema() -> bool {
        VpaManifest::inline_schema()
    }
    fn schema_name() -> Cow<'static, str> {
        VpaManifest::schema_name()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        VpaManifest::json_schema(generator)
    }
}

/// A VerticalPodAutoscalerCheckpoint manifest, or `{file: …}` with the path of one.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[schemars(rename = "VpaCheckpoint", extend("type" = "object"))]
pub struct CheckpointManifest(pub Value);

impl<'de> Deserialize<'de> for CheckpointManifest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<CheckpointManifest, D::Error> {
        let expected = "a VerticalPodAutoscalerCheckpoint, or {file: …} with the path of one";
        read_object(deserializer, expected).map(CheckpointManifest)
    }
}

/// The target of the first VPA, and its pods, as the recommender sees them.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VpaWorkload {
    /// The number of pods at the start.
    pub replicas: u32,
    /// The labels of each pod, which are also the selector of the workload.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Further labels of each pod, which the selector does not name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub pod_labels: BTreeMap<String, String>,
    /// The containers of each pod.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub containers: Vec<Container>,
    /// The names of the init containers of each pod.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub init_containers: Vec<Arc<str>>,
    /// True if another controller owns the workload. A VPA then can't target it.
    #[serde(skip_serializing_if = "is_default")]
    pub owned: bool,
    /// True if pods that have ended count as replicas until the workload is scaled.
    #[serde(skip_serializing_if = "is_default")]
    pub keeps_ended_pods: bool,
}

/// The usage of the first pod before the start of the scenario.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "a history, for example {length: 192h, step: 1h, resource: […]}")]
pub struct History {
    /// How long before the start the samples begin.
    #[serde(with = "As::<PositiveDuration>")]
    pub length: Span,
    /// The time between two samples. Default 1h.
    #[serde(with = "As::<PositiveDuration>", default = "hour")]
    pub step: Span,
    /// The usage of each container. The time 0s is the beginning of the history.
    pub resource: Vec<ResourceUsage>,
}

fn hour() -> Span {
    Span::from_mins(60)
}
