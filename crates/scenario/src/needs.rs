//! The requirements of a scenario, and those that a release does not meet.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};

use super::releases::for_others;
use super::resolved::{Action, Autoscaler, Scenario};
use super::skip_reason::SkipReason;
use super::with_vpa::WithVpa;
use kube_autoscaler_models::api::{HpaSpec, MetricSpec};
use kube_autoscaler_models::flags::{FeatureGates, Flag, Flags, Gate, GateError, GateRule};
use kube_autoscaler_models::hpa::{ApiVersion, set_defaults};
use kube_autoscaler_models::rules::{Dependent, Release, Releases, Rules};

/// Why a scenario with objects does not run with a model.
const WITHOUT_MODEL: &str = "no model predicts what a controller does with `objects`; run your \
                             controller with --program FILE --compare expectations";

impl Scenario {
    /// The flags under these rules: the release's defaults for flags that are not set.
    #[must_use]
    pub fn flags_by(&self, rules: &Rules) -> Flags {
        let required = self.required_flags();
        let fill = |flags: Flags, flag: Flag| {
            if required.contains(&flag) { flags } else { flags.with(flag, &rules.default_flags) }
        };
        Flag::ALL.into_iter().fold(self.flags, fill)
    }

    /// The flags that are set or differ from their defaults.
    fn required_flags(&self) -> Vec<Flag> {
        let mut required = self.flags.differing(&Flags::default());
        required.extend(&self.explicit_flags);
        required
    }

    /// The feature gates under these rules, without gates that do not exist.
    #[must_use]
    pub fn gates_by(&self, rules: &Rules) -> FeatureGates {
        let mut gates = rules.default_gates();
        for (name, on) in &*self.gate_settings(rules) {
            // `unsupported_on` reports gates that can't be set; such scenarios are not run.
            let _ = gates.set(name, *on);
        }
        gates
    }

    /// The feature gates that are set under these rules: those of the file, and the gate of
    /// container metrics if the scenario uses them, the file does not set it, and it is off by
    /// default.
    #[must_use]
    pub fn gate_settings(&self, rules: &Rules) -> Cow<'_, BTreeMap<String, bool>> {
        let gate = Gate::HpaContainerMetrics;
        let is_off = rules.feature_gates[gate as usize] == GateRule::Default(false);
        if !is_off
            || self.gate_overrides.contains_key(gate.name())
            || !self.has_metric(|metric| metric.container_resource.is_some())
        {
            return Cow::Borrowed(&self.gate_overrides);
        }
        let mut gates = self.gate_overrides.clone();
        gates.insert(gate.name().to_owned(), true);
        Cow::Owned(gates)
    }

    /// Returns true if the scenario has expectations, and all of them are for other releases.
    #[must_use]
    pub fn all_expectations_are_for_others(&self, release: Release) -> bool {
        let applies = self.releases.contains(release)
            && self.expect.iter().any(|expected| expected.releases.contains(release));
        let applies_to_vpa =
            |vpa: &Arc<WithVpa>| vpa.recommender.expectations_on(vpa.release).next().is_some();
        self.has_expectations() && !applies && !self.vpa.as_ref().is_some_and(applies_to_vpa)
    }

    /// Returns a message if the scenario is not for a release, with a release to choose instead.
    #[must_use]
    pub fn not_for(&self, release: Release) -> Option<SkipReason> {
        if self.releases.contains(release) {
            return None;
        }
        let named = Release::supported().filter(|release| self.releases.contains(*release));
        let named: Releases = named.collect();
        Some(for_others("the scenario is", &named, named.newest(), release))
    }

    /// Returns the reason why no expectation applies to a release, with a release to choose
    /// instead. Returns `None` if one applies, or if the scenario has no expectations.
    #[must_use]
    pub fn unchecked_on(&self, release: Release) -> Option<SkipReason> {
        if !self.all_expectations_are_for_others(release) {
            return None;
        }
        self.not_for(release).or_else(|| {
            let checked = self.checked();
            let subject = "all its expectations are";
            Some(for_others(subject, &checked, checked.newest(), release))
        })
    }

    /// The releases to which an expectation on an HPA applies.
    #[must_use]
    pub fn checked(&self) -> Releases {
        let is_checked = |release: &Release| {
            self.releases.contains(*release)
                && self.expect.iter().any(|expected| expected.releases.contains(*release))
        };
        Release::supported().filter(is_checked).collect()
    }

    /// Returns true if the scenario has expectations, on its HPAs or on its VPA.
    #[must_use]
    pub fn has_expectations(&self) -> bool {
        let expects_of_vpa =
            self.vpa.as_ref().is_some_and(|vpa| !vpa.recommender.expect.is_empty());
        expects_of_vpa || !self.expect.is_empty()
    }

    /// The reason why a release with its model does not support the scenario, if it does not.
    #[must_use]
    pub fn unsupported_on(&self, release: Release) -> Option<SkipReason> {
        let without_model = self.has_objects().then(|| WITHOUT_MODEL.into());
        without_model.or_else(|| self.missing_on(release))
    }

    /// The reason why a release lacks what the scenario requires, if it does.
    #[must_use]
    pub fn missing_on(&self, release: Release) -> Option<SkipReason> {
        let rules = Rules::of(release);
        let mut gates = rules.default_gates();
        let unknown = |(name, on): (&String, &bool)| match gates.set(name, *on) {
            // The controller does not read dependent gates.
            Err(GateError::Unknown(_)) if Dependent::of(release).any(|it| it.name == name) => None,
            result => result.err(),
        };
        if let Some(error) = self.gate_overrides.iter().find_map(unknown) {
            let (release, what) = (release.to_string(), error.to_string());
            return Some(SkipReason::OnRelease { release, what });
        }
        if let Some(missing) = self.missing_flag_on(release) {
            return Some(missing);
        }
        let measured = self.has_metric(|metric| metric.container_resource.is_some());
        if rules.feature_gates[Gate::HpaContainerMetrics as usize] == GateRule::Absent && measured {
            return Some(SkipReason::naming(
                "container metrics are not supported on ",
                release,
                "",
            ));
        }
        let why = self.unsupported_fields(&rules)?;
        Some(SkipReason::naming(format!("{why} "), release, ""))
    }

    /// The message that a release lacks a flag of the scenario, if it does.
    #[must_use]
    pub fn missing_flag_on(&self, release: Release) -> Option<SkipReason> {
        let rules = Rules::of(release);
        let flag = self.required_flags().into_iter().find(|flag| !rules.flags[*flag as usize])?;
        Some(SkipReason::naming("", release, format!(" has no flag --{}", flag.name())))
    }

    /// The reason why fields of the HPAs are not supported under these rules: a sentence without
    /// the release at its end.
    fn unsupported_fields(&self, rules: &Rules) -> Option<&'static str> {
        if !rules.admission.has_behavior && self.specs().any(|spec| spec.behavior.is_some()) {
            return Some("`behavior` is not supported on");
        }
        if rules.admission.stored_as_v1 && self.hpas.iter().any(lacks_behavior_defaults) {
            return Some(
                "a behavior in an annotation of autoscaling/v1 that lacks some of the defaults \
                 crashes the controller of",
            );
        }
        if !rules.admission.has_external_metrics && self.uses_external_metrics() {
            return Some("external metrics are not supported on");
        }
        if !rules.admission.has_metric_selectors && self.has_metric(has_selector) {
            return Some("metric selectors are not supported on");
        }
        if !rules.admission.has_metric_selectors && self.has_metric(is_average_of_object) {
            return Some("averages of object metrics are not supported on");
        }
        if !rules.admission.has_tolerance && self.specs().any(|spec| has_tolerance(&spec)) {
            return Some("`tolerance` is not supported on");
        }
        None
    }
}

fn has_selector(metric: &MetricSpec) -> bool {
    let pods = metric.pods.as_ref().map(|source| &source.metric);
    let object = metric.object.as_ref().map(|source| &source.metric);
    pods.into_iter().chain(object).any(|metric| metric.selector.is_some())
}

fn is_average_of_object(metric: &MetricSpec) -> bool {
    metric.object.as_ref().is_some_and(|source| source.target.average_value.is_some())
}

fn has_tolerance(spec: &HpaSpec) -> bool {
    let behavior = spec.behavior.iter();
    let rules = behavior.flat_map(|behavior| [&behavior.scale_up, &behavior.scale_down]);
    rules.flatten().any(|rules| rules.tolerance.is_some())
}

/// Returns true if the manifest is in version autoscaling/v1 and its behavior omits fields that
/// have defaults.
fn lacks_behavior_defaults(hpa: &Autoscaler) -> bool {
    let mut filled = (*hpa.spec).clone();
    set_defaults(&mut filled);
    hpa.version == ApiVersion::V1 && filled.behavior != hpa.spec.behavior
}

/// The metrics and behavior in a merge patch, as a spec. A removed behavior is an empty one.
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
    /// The specs of the HPAs, and the metrics and behavior of edits.
    pub(crate) fn specs(&self) -> impl Iterator<Item = Cow<'_, HpaSpec>> {
        let edits = self.timeline.iter().filter_map(|event| match &event.action {
            Action::EditHpa(patch) => patched_fields(patch).map(Cow::Owned),
            _ => None,
        });
        self.hpas.iter().map(|hpa| Cow::Borrowed(&*hpa.spec)).chain(edits)
    }

    /// Returns true if an HPA has a matching metric, initially or after an edit.
    pub(super) fn has_metric(&self, matches: impl Fn(&MetricSpec) -> bool) -> bool {
        self.specs().any(|spec| spec.metrics.iter().any(&matches))
    }

    /// Returns true if an HPA scales on metrics of custom.metrics.k8s.io.
    #[must_use]
    pub fn uses_custom_metrics(&self) -> bool {
        self.has_metric(|metric| metric.pods.is_some() || metric.object.is_some())
    }

    /// Returns true if an HPA scales on metrics of external.metrics.k8s.io.
    #[must_use]
    pub fn uses_external_metrics(&self) -> bool {
        self.has_metric(|metric| metric.external.is_some())
    }
}
