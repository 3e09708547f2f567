//! What a scenario needs, and what a release lacks of it.

use serde_json::Value;

use super::resolved::{Action, Autoscaler, Scenario};
use crate::model::api::HpaSpec;
use crate::model::flags::{FeatureGates, Flag, Flags, Gate, GateError};
use crate::model::hpa::{decode_spec, set_defaults};
use crate::model::rules::{Dependent, GateRule, Release, Rules};

impl Scenario {
    /// The flags by these rules: the release's own defaults where none are given.
    #[must_use]
    pub fn flags_by(&self, rules: &Rules) -> Flags {
        let wanted = self.flags_wanted();
        let fill = |flags: Flags, flag: Flag| {
            if wanted.contains(&flag) { flags } else { flags.with(flag, &rules.default_flags) }
        };
        Flag::ALL.into_iter().fold(self.flags, fill)
    }

    /// The flags that are given, or are not as they are by default.
    fn flags_wanted(&self) -> Vec<Flag> {
        let mut wanted = self.flags.differing(&Flags::default());
        wanted.extend(&self.flags_given);
        wanted
    }

    /// The feature gates by these rules. Those that there are not are left out.
    #[must_use]
    pub fn gates_by(&self, rules: &Rules) -> FeatureGates {
        let mut gates = FeatureGates::of(rules);
        for (name, on) in &self.gate_overrides {
            // What can't be set is told by `lacking`, and the scenario not run.
            let _ = gates.set(name, *on);
        }
        gates
    }

    /// What the scenario needs and the release does not have, as a reason not to run it there.
    #[must_use]
    pub fn unsupported_on(&self, release: Release) -> Option<String> {
        let rules = Rules::of(release);
        let mut gates = FeatureGates::of(&rules);
        let unknown = |(name, on): (&String, &bool)| match gates.set(name, *on) {
            // The controller does not look at those that depend on others.
            Err(GateError::Unknown(_)) if Dependent::of(release).any(|it| it.name == name) => None,
            result => result.err(),
        };
        if let Some(error) = self.gate_overrides.iter().find_map(unknown) {
            return Some(format!("on {release}: {error}"));
        }
        let flag = self.flags_wanted().into_iter().find(|flag| !rules.flags[*flag as usize]);
        if let Some(flag) = flag {
            return Some(format!("on {release} there is no flag --{}", flag.name()));
        }
        let containers = !gates.enabled(Gate::HpaContainerMetrics)
            && !self.gate_overrides.contains_key(Gate::HpaContainerMetrics.name());
        let decoded = |hpa: &Autoscaler| decode_spec(&hpa.manifest).map(|(spec, _)| spec);
        let specs: Vec<HpaSpec> = self.hpas.iter().filter_map(|hpa| decoded(hpa).ok()).collect();
        let measured = self.specs().any(measures_containers)
            || specs.iter().any(|it| it.metrics.iter().any(|it| it.container_resource.is_some()));
        if rules.feature_gates[Gate::HpaContainerMetrics as usize] == GateRule::Absent && measured {
            return Some(format!("there are no metrics of containers on {release}"));
        }
        if containers && measured {
            let gate = Gate::HpaContainerMetrics.name();
            return Some(format!("metrics of containers need feature gate {gate} on {release}"));
        }
        if rules.stored_as_v1 && self.hpas.iter().any(|hpa| lacks_behavior_defaults(&hpa.manifest))
        {
            let what = "behavior in an annotation of autoscaling/v1 that leaves out what has \
                        defaults ends";
            return Some(format!("{what} the controller of {release}"));
        }
        let wants = |fields: &[&str]| {
            self.specs().any(|spec| fields.iter().any(|field| spec.pointer(field).is_some()))
        };
        let behavior = self.specs().any(|spec| spec.get("behavior").is_some())
            || specs.iter().any(|spec| spec.behavior.is_some());
        if !rules.has_behavior && behavior {
            return Some(format!("an HPA has no behavior on {release}"));
        }
        let of_outside = |metric: &Value| !metric["external"].is_null();
        if !rules.has_external_metrics && self.measures(&specs, of_outside) {
            return Some(format!("there are no external metrics on {release}"));
        }
        let selected = |metric: &Value| {
            ["pods", "object"].iter().any(|it| !metric[it]["metric"]["selector"].is_null())
        };
        if !rules.has_metric_selectors && self.measures(&specs, selected) {
            return Some(format!("metrics have no selectors on {release}"));
        }
        let averaged = |metric: &Value| !metric["object"]["target"]["averageValue"].is_null();
        if !rules.has_metric_selectors && self.measures(&specs, averaged) {
            return Some(format!("an object's metric has no average on {release}"));
        }
        let tolerance = ["/behavior/scaleUp/tolerance", "/behavior/scaleDown/tolerance"];
        if !rules.has_tolerance && wants(&tolerance) {
            return Some(format!("an HPA has no tolerance of its own on {release}"));
        }
        None
    }

    /// Whether there is such a metric, in the form of v2: in an edit, or in one of these specs.
    fn measures(&self, specs: &[HpaSpec], such: impl Fn(&Value) -> bool) -> bool {
        let decoded = specs.iter().flat_map(|spec| &spec.metrics);
        self.specs().flat_map(metrics).any(&such)
            || decoded.filter_map(|metric| serde_json::to_value(metric).ok()).any(|it| such(&it))
    }

    /// The specs of all HPAs and of their edits, as far as they are told.
    fn specs(&self) -> impl Iterator<Item = &Value> {
        let edits = self.timeline.iter().filter_map(|happening| match &happening.action {
            Action::EditHpa(edit) => Some(edit),
            _ => None,
        });
        let manifests = self.hpas.iter().map(|hpa| &hpa.manifest);
        manifests.chain(edits).filter_map(|object| object.get("spec"))
    }
}

/// The metrics of a spec.
fn metrics(spec: &Value) -> impl Iterator<Item = &Value> {
    spec.get("metrics").and_then(Value::as_array).into_iter().flatten()
}

/// Whether a metric of the spec is one of single containers.
fn measures_containers(spec: &Value) -> bool {
    metrics(spec).any(|metric| metric.get("containerResource").is_some())
}

/// Whether the manifest is one of autoscaling/v1 whose behavior leaves out what has defaults.
fn lacks_behavior_defaults(manifest: &Value) -> bool {
    if manifest.get("apiVersion").and_then(Value::as_str) != Some("autoscaling/v1") {
        return false;
    }
    let Ok((spec, _)) = decode_spec(manifest) else { return false };
    let mut filled = spec.clone();
    set_defaults(&mut filled);
    filled.behavior != spec.behavior
}
