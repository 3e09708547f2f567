//! The HPAs of a scenario: typed for the harness, and as JSON for API servers.

use std::sync::Arc;

use serde_json::Value;

use kube_autoscaler_models::api::{Behavior, HpaSpec};
use kube_autoscaler_models::hpa::{ApiVersion, decode_spec};

/// The annotation that holds the behavior in older versions.
pub(super) const BEHAVIOR_ANNOTATION: &str = "autoscaling.alpha.kubernetes.io/behavior";

/// An HPA of a scenario.
#[derive(Clone, PartialEq, Debug)]
pub struct Autoscaler {
    /// The HPA's `metadata.name`.
    pub name: Arc<str>,
    /// The apiVersion in the user's manifest.
    pub api_version: Arc<str>,
    /// The manifest for the API server: verbatim, or converted from a version that no server
    /// accepts any more.
    pub manifest: Value,
    /// The version of the manifest.
    pub version: ApiVersion,
    /// The spec, with the defaults of that version only.
    pub spec: Arc<HpaSpec>,
    /// The index of the target in [`Scenario::targets`](super::resolved::Scenario::targets).
    pub target: usize,
}

impl Autoscaler {
    /// Decodes a manifest that was written in `api_version`. The HPA scales the first target.
    ///
    /// # Errors
    /// The reason why an API server rejects the manifest when it decodes it.
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

    /// Returns true if an annotation holds the behavior, valid or not, as in older versions.
    pub(super) fn has_behavior_annotation(&self) -> bool {
        self.manifest["metadata"]["annotations"].get(BEHAVIOR_ANNOTATION).is_some()
    }

    /// Replaces the behavior in the manifest's version.
    pub(super) fn set_behavior(&mut self, behavior: Behavior) {
        self.manifest["spec"]["behavior"] = serde_json::to_value(&behavior).unwrap_or_default();
        Arc::make_mut(&mut self.spec).behavior = Some(behavior);
    }
}
