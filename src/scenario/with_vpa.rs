//! The part of a scenario that has a VPA beside an HPA: the VPA and its recommender, updater and
//! admission controller. Workload, metrics and time are those of the HPA.

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::vpa::VpaScenario;
use crate::model::rules::VpaRelease;
use crate::model::vpa::admission::Limits;
use crate::model::vpa::updater::UpdaterFlags;

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
    /// How it is written.
    pub(super) written: Written,
}

impl WithVpa {
    /// The limits of the workload's containers.
    #[must_use]
    pub fn limits(&self) -> Limits {
        let containers = self.recommender.workload.containers.iter();
        containers.map(|container| (container.name.clone(), container.limits.clone())).collect()
    }
}

/// The part of a file that describes a VPA beside an HPA.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Written {
    /// The fields of the file.
    pub(super) fields: Map<String, Value>,
    /// The events.
    pub(super) timeline: Vec<Value>,
    /// The expectations.
    pub(super) expect: Vec<Value>,
}

impl Written {
    /// Adds the part to a file that describes the HPA.
    pub(super) fn add_to(&self, file: &mut Value) {
        let Value::Object(file) = file else { return };
        let until = file.shift_remove("until");
        let mut expect = file.shift_remove("expect").unwrap_or_else(|| Value::Array(Vec::new()));
        for (name, value) in &self.fields {
            file.insert(name.clone(), value.clone());
        }
        let timeline = file.entry("timeline").or_insert_with(|| Value::Array(Vec::new()));
        for (list, more) in [(timeline, &self.timeline), (&mut expect, &self.expect)] {
            if let Value::Array(list) = list {
                list.extend(more.iter().cloned());
            }
        }
        if file["timeline"].as_array().is_some_and(Vec::is_empty) {
            file.shift_remove("timeline");
        }
        file.extend(until.map(|until| ("until".to_owned(), until)));
        if expect.as_array().is_some_and(|list| !list.is_empty()) {
            file.insert("expect".to_owned(), expect);
        }
    }
}

/// The VPA's updater, which is simulated.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a map of flags")]
pub(super) struct UpdaterSettings {
    /// Command-line flags, under upstream's names without the leading dashes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "flags")]
    pub(super) flags: BTreeMap<String, Value>,
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
