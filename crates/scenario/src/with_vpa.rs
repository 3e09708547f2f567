//! The part of a scenario that has a VPA beside an HPA: the VPA and its recommender, updater and
//! admission controller. Workload, metrics and time are those of the HPA.

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::vpa::raw::{AnyVpa, RecommenderSettings, VpaScenarioFile};
use super::vpa::{CheckpointManifest, VpaExpectation, VpaScenario, VpaTimelineEvent};
use super::write;
use kube_autoscaler_models::as_text;
use kube_autoscaler_models::is_default::is_default;
use kube_autoscaler_models::rules::VpaRelease;
use kube_autoscaler_models::vpa::admission::Limits;
use kube_autoscaler_models::vpa::updater::UpdaterFlags;

/// The VPA of a scenario with an HPA.
#[derive(Clone, PartialEq, Debug)]
pub struct WithVpa {
    /// The VPA, its recommender, their events and the expectations of recommendations. The workload
    /// has the names of containers only, and there is no usage.
    pub recommender: Arc<VpaScenario>,
    /// The release of the recommender.
    pub release: VpaRelease,
    /// The flags of the updater.
    pub updater: UpdaterFlags,
    /// The part of the file.
    pub(crate) file: VpaPart,
}

impl WithVpa {
    /// The limits of the workload's containers.
    #[must_use]
    pub fn limits(&self) -> Limits {
        let containers = self.recommender.workload.containers.iter();
        containers.map(|container| (container.name.clone(), container.limits.clone())).collect()
    }
}

/// The part of a scenario file that describes the VPA, if the file also has an HPA.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct VpaPart {
    /// The fields of the VPA alone.
    pub fields: VpaFields,
    /// The events of the VPA, in the order of the file.
    pub timeline: Vec<VpaTimelineEvent>,
    /// The expectations of the VPA.
    pub expect: Vec<VpaExpectation>,
}

/// The fields that describe the VPA, in a scenario file that also has an HPA.
#[derive(Clone, PartialEq, Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VpaFields {
    /// The VerticalPodAutoscaler, a complete manifest; or `file`, the path of one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "AnyVpa")]
    pub vpa: Option<AnyVpa>,
    /// The release of the VPA's recommender. Default: the newest.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_text::optional")]
    #[schemars(schema_with = "releases")]
    pub vpa_release: Option<VpaRelease>,
    /// The recommender.
    #[serde(skip_serializing_if = "is_default")]
    pub recommender: RecommenderSettings,
    /// The VPA's updater, which is simulated.
    #[serde(skip_serializing_if = "is_default")]
    pub updater: UpdaterSettings,
    /// VerticalPodAutoscalerCheckpoints that exist at the start: manifests, or `file`, the path of
    /// one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub checkpoints: Vec<CheckpointManifest>,
}

impl VpaPart {
    /// The part of a file with an HPA, as the recommender's file. `vpa_release` and `updater` are
    /// not in that file.
    pub(crate) fn new(
        file: VpaScenarioFile,
        vpa_release: Option<VpaRelease>,
        updater: UpdaterSettings,
    ) -> VpaPart {
        let VpaScenarioFile { vpa, recommender, checkpoints, timeline, expect, .. } = file;
        let fields = VpaFields { vpa, vpa_release, recommender, updater, checkpoints };
        VpaPart { fields, timeline, expect }
    }

    /// Adds the part to a file that describes the HPA.
    pub(crate) fn add_to(&self, file: &mut Map<String, Value>) {
        let until = file.shift_remove("until");
        let mut expect = file.shift_remove("expect");
        let mut timeline = file.shift_remove("timeline");
        add_items(&mut timeline, &self.timeline);
        add_items(&mut expect, &self.expect);
        file.extend(write::fields(&self.fields));
        let last = [("timeline", timeline), ("until", until), ("expect", expect)];
        file.extend(last.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
    }
}

/// Adds elements to a list, which is absent if it is empty.
fn add_items(list: &mut Option<Value>, items: &[impl Serialize]) {
    if items.is_empty() {
        return;
    }
    let list = list.get_or_insert_with(|| Value::Array(Vec::new()));
    if let Value::Array(list) = list {
        list.extend(items.iter().filter_map(|item| serde_json::to_value(item).ok()));
    }
}

fn releases(_: &mut SchemaGenerator) -> Schema {
    let names: Vec<_> = VpaRelease::supported().map(|release| release.to_string()).collect();
    schemars::json_schema!({ "type": "string", "enum": names })
}

/// The VPA's updater, which is simulated.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a map of flags")]
pub struct UpdaterSettings {
    /// Command-line flags, under upstream's names without the leading dashes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "flags")]
    pub flags: BTreeMap<String, Value>,
}

/// The existing flags, for completion.
fn flags(_: &mut SchemaGenerator) -> Schema {
    let flag = |name: &str| {
        let types = ["string", "number", "boolean"];
        (name.to_owned(), serde_json::json!({ "type": types }))
    };
    let flags: Map<String, Value> = UpdaterFlags::NAMES.into_iter().map(flag).collect();
    schemars::json_schema!({
        "type": "object", "additionalProperties": false, "properties": flags,
    })
}
