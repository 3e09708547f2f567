//! Scenario files of the recommender as serde reads them. The JSON Schema is generated from these
//! types and their doc comments.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::expectation::VpaExpectation;
use super::manifest::VpaManifest;
use super::releases::VpaReleaseRange;
use super::timeline::VpaTimelineEvent;
use crate::entries::read_object;
use crate::event::EventSchema;
use crate::hints::HintOnFields;
use crate::kinds::API_VERSION;
use crate::metrics::{ResourceUsage, Sampling};
use crate::text::{As, End, PositiveDuration};
use crate::workload::Container;
use kube_autoscaler_models::is_default::is_default;
use kube_autoscaler_models::time::{Span, Time};

/// A scenario of the VPA's recommender: VPAs, a workload, its usage over time, and expectations.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, expecting = "a scenario (a map)")]
#[schemars(
    rename = "VpaScenario",
    extend("oneOf" = [
        {"required": ["vpa"]},
        {"required": ["vpas"]},
    ])
)]
pub struct VpaScenarioFile {
    /// `kube-lockstep.dev/v1alpha1`.
    #[schemars(extend("const" = API_VERSION))]
    pub api_version: String,
    /// `Scenario`.
    #[schemars(extend("const" = "Scenario"))]
    pub kind: String,
    /// The requirement, in one sentence.
    #[schemars(length(min = 1))]
    pub requirement: String,
    /// The source of the requirement: a link to upstream's source or an issue. Optional for your
    /// own scenarios.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^https?://"))]
    pub upstream: Option<String>,
    /// The ids of the rules that the scenario demonstrates, for a catalog of rules.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub covers: Vec<String>,
    /// The releases that the requirement applies to. Default: all.
    #[serde(default, skip_serializing_if = "VpaReleaseRange::is_all")]
    pub releases: VpaReleaseRange,
    /// The recommender.
    #[serde(default, skip_serializing_if = "is_default")]
    pub recommender: RecommenderSettings,
    /// The VerticalPodAutoscaler, a complete manifest; or `file`, the path of one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vpa: Option<AnyVpa>,
    /// Several VPAs, in place of `vpa`. The target of the first one is the workload.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1))]
    pub vpas: Vec<AnyVpa>,
    /// VerticalPodAutoscalerCheckpoints that exist at the start: manifests, or `file`, the path of
    /// one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checkpoints: Vec<CheckpointManifest>,
    /// The target of the VPA, and its pods.
    #[serde(default)]
    pub workload: VpaWorkload,
    /// The usage in metrics.k8s.io.
    #[serde(default, skip_serializing_if = "is_default")]
    pub metrics: VpaMetrics,
    /// Samples before the start, which the recommender reads with `storage: prometheus`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub history: Option<History>,
    /// Events during the scenario.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<EventSchema<VpaTimelineEvent>>")]
    pub timeline: Vec<VpaTimelineEvent>,
    /// The end of the scenario: runs of the recommender up to and including this time count.
    #[serde(with = "As::<End>")]
    pub until: Time,
    /// The expected behavior. Without expectations, a run only compares model and recommender.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expect: Vec<VpaExpectation>,
}

impl VpaScenarioFile {
    pub(crate) const HINTS: &'static [HintOnFields] = &[
        HintOnFields {
            fields: &["vpaRelease"],
            hint: "remove the field, which requires an HPA and a VPA; `--release` selects the \
                   release of the VPA, and `releases` limits the scenario to some releases",
        },
        HintOnFields {
            fields: &["updater"],
            hint: "remove the field: without an HPA, only the recommender runs, and no updater",
        },
        HintOnFields {
            fields: &["scaleDownOrder", "victims"],
            hint: "remove the field, which requires an HPA: a VPA does not change the number of \
                   replicas",
        },
        HintOnFields {
            fields: &["script"],
            hint: "earlier versions of `fuzz` saved scripts: run this file with the version of \
                   kube-lockstep that saved it",
        },
    ];
}

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
    #[schemars(schema_with = "flags")]
    pub flags: BTreeMap<String, Value>,
}

/// The existing flags, for completion.
fn flags(_: &mut SchemaGenerator) -> Schema {
    let flag = |name: &&str| {
        let types = ["string", "number", "boolean"];
        ((*name).to_owned(), serde_json::json!({ "type": types }))
    };
    let names = kube_autoscaler_models::vpa::RecommenderFlags::NAMES.iter();
    let flags: serde_json::Map<String, Value> = names.map(flag).collect();
    schemars::json_schema!({
        "type": "object", "additionalProperties": false, "properties": flags,
    })
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

/// The target of the first VPA, and its pods.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[serde(expecting = "a workload (a map)")]
pub struct VpaWorkload {
    /// The number of pods at the start. Default 1.
    pub replicas: u32,
    /// The labels of each pod, which are also the selector of the workload. Default: `app`, with
    /// the name of the target.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Further labels of each pod, which the selector does not name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub pod_labels: BTreeMap<String, String>,
    /// The containers of each pod. Default: one container `app` without requests.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub containers: Vec<Container>,
    /// The names of the init containers of each pod.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub init_containers: Vec<Arc<str>>,
    /// Whether another controller owns the workload. A VPA then can't target it. Default false.
    #[serde(skip_serializing_if = "is_default")]
    pub owned: bool,
}

impl VpaWorkload {
    pub(crate) const HINTS: &'static [HintOnFields] = &[HintOnFields {
        fields: &["scaleDownOrder", "scaleDownFirst", "victims"],
        hint: "a VPA does not change the replicas: remove the field, which only a scenario with \
               an HPA can have",
    }];
}

impl Default for VpaWorkload {
    fn default() -> VpaWorkload {
        VpaWorkload {
            replicas: 1,
            labels: BTreeMap::new(),
            pod_labels: BTreeMap::new(),
            containers: Vec::new(),
            init_containers: Vec::new(),
            owned: false,
        }
    }
}

/// The usage in metrics.k8s.io.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "metrics (a map)")]
pub struct VpaMetrics {
    /// The usage of cpu and memory.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resource: Vec<ResourceUsage>,
    /// How samples are taken.
    #[serde(skip_serializing_if = "is_default")]
    pub sampling: Sampling,
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
