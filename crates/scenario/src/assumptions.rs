//! Assumptions and omissions of a prediction, because of the defaults of the release:
//! fields that its API server drops, gates that are off by default, versions that it does not
//! serve.

use std::sync::Arc;

use serde_json::Value;

use super::resolve::not_yet_served;
use super::resolved::Scenario;
use kube_autoscaler_models::flags::{Gate, GateRule};
use kube_autoscaler_models::hpa::drop_disabled_fields;
use kube_autoscaler_models::rules::{Release, Rules};

impl Scenario {
    /// Notes on fields that have no effect on a release by default. For scenarios from manifests,
    /// also on what the prediction takes for granted: their users have a cluster with defaults.
    #[must_use]
    pub fn assumptions_on(&self, release: Release) -> Vec<String> {
        let rules = Rules::of(release);
        let mut notes = Vec::new();
        let mut ignored = |field: &str, gate: Gate| {
            notes.push(format!(
                "{field} has no effect on {release}: the API server drops it, because the feature \
                 gate {} is off by default",
                gate.name()
            ));
        };
        if self.drops_tolerance(&rules) {
            ignored("`tolerance`", Gate::HpaConfigurableTolerance);
        }
        let has_pod_requests = self.workload.spec.requests.is_some();
        if has_pod_requests && self.is_off_by_default(Gate::PodLevelResources, &rules) {
            ignored("`resources` of the pod as a whole", Gate::PodLevelResources);
        }
        if !self.is_of_manifests {
            return notes;
        }
        let container_metrics = Gate::HpaContainerMetrics.name();
        if self.gate_settings(&rules).len() > self.gate_overrides.len() {
            notes.push(format!(
                "{container_metrics} is off by default on {release}, so the API server drops \
                 container metrics; this prediction assumes that the feature gate is on"
            ));
        }
        for hpa in &self.hpas {
            if let Some(since) = not_yet_served(&hpa.api_version, release) {
                let assumed = match hpa.spec.behavior {
                    Some(_) if !rules.admission.has_behavior => "applies `behavior` nevertheless",
                    _ => "assumes the same HPA in a version that the release serves",
                };
                notes.push(format!(
                    "{release} does not serve {}, which was added in {since}; this prediction \
                     {assumed}",
                    hpa.api_version
                ));
            }
        }
        notes.dedup();
        notes
    }

    /// Returns true if the scenario is from manifests, and all that a release does not support is
    /// ignored in its predictions: tolerances.
    #[must_use]
    pub fn ignores_unsupported_fields(&self, release: Release) -> bool {
        self.is_of_manifests && self.without_tolerances().unsupported_on(release).is_none()
    }

    /// The scenario as an API server without tolerances stores its HPAs.
    #[must_use]
    pub fn without_tolerances(&self) -> Scenario {
        let mut without = self.clone();
        for hpa in &mut without.hpas {
            let spec = Arc::make_mut(&mut hpa.spec);
            let Some(behavior) = &mut spec.behavior else { continue };
            let directions = [&mut behavior.scale_up, &mut behavior.scale_down];
            directions.into_iter().flatten().for_each(|rules| rules.tolerance = None);
            for direction in ["scaleUp", "scaleDown"] {
                let rules = hpa.manifest.pointer_mut(&format!("/spec/behavior/{direction}"));
                let rules = rules.and_then(Value::as_object_mut);
                rules.map(|rules| rules.shift_remove("tolerance"));
            }
        }
        without
    }

    /// Returns true if the gate exists, is off by default, and the scenario does not set it.
    fn is_off_by_default(&self, gate: Gate, rules: &Rules) -> bool {
        rules.feature_gates[gate as usize] == GateRule::Default(false)
            && !self.gate_overrides.contains_key(gate.name())
    }

    /// Returns true if the API server drops a tolerance because its gate is off by default.
    fn drops_tolerance(&self, rules: &Rules) -> bool {
        let gates = self.gates_by(rules);
        self.is_off_by_default(Gate::HpaConfigurableTolerance, rules)
            && self.specs().any(|spec| {
                let mut kept = spec.clone().into_owned();
                drop_disabled_fields(&mut kept, None, &gates);
                kept.behavior != spec.behavior
            })
    }
}
