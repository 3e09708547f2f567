//! The HPAs of a scenario: typed for all that looks at them, as JSON for API servers alone.

use std::borrow::Cow;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};

use super::resolved::{Action, Scenario};
use crate::model::api::{Behavior, HpaSpec, MetricSpec};
use crate::model::hpa::{ApiVersion, decode_spec};

/// Where an older version has its behavior.
pub(super) const BEHAVIOR_ANNOTATION: &str = "autoscaling.alpha.kubernetes.io/behavior";

/// An HPA of a scenario.
#[derive(Clone, PartialEq, Debug)]
pub struct Autoscaler {
    /// Its `metadata.name`.
    pub name: Arc<str>,
    /// The apiVersion in which the user wrote it.
    pub api_version: Arc<str>,
    /// Its manifest for the API server: verbatim, or converted from a version that no server takes
    /// any more.
    pub manifest: Value,
    /// The version of the manifest.
    pub version: ApiVersion,
    /// Its spec, with the defaults of that version only.
    pub spec: Arc<HpaSpec>,
    /// Which of [`Scenario::targets`] it scales.
    pub target: usize,
}

impl Autoscaler {
    /// Decodes a manifest that was written in `api_version`. It scales the first target.
    ///
    /// # Errors
    /// Why an API server refuses to decode it.
    pub fn new(manifest: Value, api_version: &str) -> Result<Autoscaler, String> {
        let (spec, version) = decode_spec(&manifest)?;
        Ok(Autoscaler {
            name: manifest["metadata"]["name"].as_str().unwrap_or_default().into(),
            api_version: api_version.into(),
            manifest,
            version,
            spec: Arc::new(spec),
            target: 0,
        })
    }

    /// Whether an annotation holds its behavior, as in older versions, readable or not.
    pub(super) fn has_behavior_annotation(&self) -> bool {
        self.manifest["metadata"]["annotations"].get(BEHAVIOR_ANNOTATION).is_some()
    }

    /// Replaces the behavior, of the present version.
    pub(super) fn set_behavior(&mut self, behavior: Behavior) {
        self.manifest["spec"]["behavior"] = serde_json::to_value(&behavior).unwrap_or_default();
        Arc::make_mut(&mut self.spec).behavior = Some(behavior);
    }
}

/// The fields that a merge patch gives to a spec. A behavior that it removes is an empty one.
fn patched_fields(patch: &Value) -> Option<HpaSpec> {
    let mut spec = json!({ "scaleTargetRef": { "kind": "", "name": "" }, "maxReplicas": 0 });
    for (field, value) in patch.get("spec")?.as_object()? {
        match (field.as_str(), value) {
            ("metrics", Value::Array(_)) | ("behavior", Value::Object(_)) => {
                spec[field] = value.clone();
            }
            ("behavior", Value::Null) => spec[field] = json!({}),
            _ => {}
        }
    }
    HpaSpec::deserialize(spec).ok()
}

impl Scenario {
    /// The specs of the HPAs, and what edits change in them: metrics and behavior.
    pub(super) fn specs(&self) -> impl Iterator<Item = Cow<'_, HpaSpec>> {
        let edits = self.timeline.iter().filter_map(|event| match &event.action {
            Action::EditHpa(patch) => patched_fields(patch).map(Cow::Owned),
            _ => None,
        });
        self.hpas.iter().map(|hpa| Cow::Borrowed(&*hpa.spec)).chain(edits)
    }

    /// Whether an HPA has, or gets by an edit, such a metric.
    pub(super) fn has_metric(&self, such: impl Fn(&MetricSpec) -> bool) -> bool {
        self.specs().any(|spec| spec.metrics.iter().any(&such))
    }

    /// Whether an HPA scales on metrics of custom.metrics.k8s.io.
    #[must_use]
    pub fn uses_custom_metrics(&self) -> bool {
        self.has_metric(|metric| metric.pods.is_some() || metric.object.is_some())
    }

    /// Whether an HPA scales on metrics of external.metrics.k8s.io.
    #[must_use]
    pub fn uses_external_metrics(&self) -> bool {
        self.has_metric(|metric| metric.external.is_some())
    }
}
