//! What the API server refuses, in its own words.
//!
//! Deliberately absent: what the types of [`HpaSpec`] can't hold (unknown enum values, a metric's
//! source without its target), and metadata other than the name. Errors come in upstream's order:
//! hand-written checks first, then those that upstream generates from its types and that take the
//! place of hand-written ones.
//!
//! Upstream: pkg/apis/autoscaling/validation/validation.go, zz_generated.validations.go (v2) and
//! pkg/registry/autoscaling/horizontalpodautoscaler/strategy.go.

use std::fmt;

use super::reconcile::parse_group_version;
use super::validation_metrics::validate_metrics;
use crate::model::api::{
    Behavior, CrossVersionObjectReference, HpaSpec, MetricSourceType, ScalingRules,
};
use crate::model::flags::{FeatureGates, Gate};
use crate::model::quantity::Quantity;
use crate::model::rules::{InvalidQuantities, MaxReplicasError, Rules};
use crate::model::selector::is_dns1123_subdomain;

const MAX_PERIOD_SECONDS: i32 = 1800;
const MAX_STABILIZATION_WINDOW_SECONDS: i32 = 3600;

/// What is wrong with a field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FieldErrorType {
    /// It is missing.
    Required,
    /// Its value is not allowed.
    Invalid,
    /// It must not be there.
    Forbidden,
}

/// One thing that is wrong with an object.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FieldError {
    /// The field's path: `spec.metrics[0].resource.name`.
    pub field: String,
    /// What is wrong.
    pub type_: FieldErrorType,
    /// The value, as upstream prints it, if it is an invalid one.
    pub value: String,
    /// Why.
    pub detail: String,
    /// The value as older servers print it, if they do so otherwise.
    go_syntax: Option<String>,
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.field)?;
        match self.type_ {
            FieldErrorType::Required => f.write_str(": Required value")?,
            FieldErrorType::Forbidden => f.write_str(": Forbidden")?,
            FieldErrorType::Invalid => write!(f, ": Invalid value: {}", self.value)?,
        }
        if self.detail.is_empty() { Ok(()) } else { write!(f, ": {}", self.detail) }
    }
}

impl std::error::Error for FieldError {}

pub(super) fn required(field: impl Into<String>, detail: &str) -> FieldError {
    let (field, detail) = (field.into(), detail.to_owned());
    let value = String::new();
    FieldError { field, type_: FieldErrorType::Required, value, detail, go_syntax: None }
}

pub(super) fn forbidden(field: impl Into<String>, detail: &str) -> FieldError {
    FieldError { type_: FieldErrorType::Forbidden, ..required(field, detail) }
}

pub(super) fn invalid(
    field: impl Into<String>,
    value: impl fmt::Display,
    detail: &str,
) -> FieldError {
    let value = value.to_string();
    FieldError { type_: FieldErrorType::Invalid, value, ..required(field, detail) }
}

/// A quantity that is not allowed.
pub(super) fn invalid_quantity(field: String, value: &Quantity, detail: &str) -> FieldError {
    FieldError { go_syntax: Some(value.go_syntax()), ..invalid(field, quoted(value), detail) }
}

/// Text in quotes, as upstream prints it.
pub(super) fn quoted(text: impl fmt::Display) -> String {
    format!("{:?}", text.to_string())
}

/// What the API server says when it refuses an HPA: all errors in one message.
///
/// Upstream: apimachinery, pkg/api/errors, NewInvalid
#[must_use]
pub fn invalid_message(name: &str, errors: &[FieldError]) -> String {
    let mut texts: Vec<String> = Vec::new();
    for error in errors {
        let text = error.to_string();
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    let all = match texts.as_slice() {
        [single] => single.clone(),
        many => format!("[{}]", many.join(", ")),
    };
    format!("HorizontalPodAutoscaler.autoscaling {} is invalid: {all}", quoted(name))
}

/// Drops what a feature gate that is off has no use for, unless the stored object has it.
///
/// Upstream: strategy.go, dropDisabledFields
pub fn drop_disabled_fields(spec: &mut HpaSpec, old: Option<&HpaSpec>, gates: &FeatureGates) {
    fn directions(behavior: &Behavior) -> impl Iterator<Item = &ScalingRules> {
        [&behavior.scale_up, &behavior.scale_down].into_iter().flatten()
    }
    if !gates.enabled(Gate::HpaContainerMetrics)
        && old.is_none_or(|old| old.metrics.iter().all(|it| it.container_resource.is_none()))
    {
        spec.metrics.iter_mut().for_each(|metric| metric.container_resource = None);
    }
    let in_use = old.and_then(|old| old.behavior.as_ref());
    let in_use = in_use.is_some_and(|it| directions(it).any(|rules| rules.tolerance.is_some()));
    if gates.enabled(Gate::HpaConfigurableTolerance) || in_use {
        return;
    }
    if let Some(behavior) = &mut spec.behavior {
        for rules in [&mut behavior.scale_up, &mut behavior.scale_down].into_iter().flatten() {
            rules.tolerance = None;
        }
    }
}

/// What the API server says of a new or changed HPA, after defaulting: nothing, or the message with
/// which it refuses it.
pub fn admit(
    name: &str,
    spec: &HpaSpec,
    old: Option<&HpaSpec>,
    server: (&Rules, &FeatureGates),
) -> Result<(), String> {
    let errors = match old {
        None => validate(name, spec, server),
        Some(old) => validate_update(spec, old, server),
    };
    if errors.is_empty() { Ok(()) } else { Err(invalid_message(name, &errors)) }
}

/// What is wrong with a new HPA, after defaulting. Empty: it is stored.
///
/// Upstream: validation.go, ValidateHorizontalPodAutoscaler
#[must_use]
pub fn validate(name: &str, spec: &HpaSpec, server: (&Rules, &FeatureGates)) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if name.is_empty() {
        errors.push(required("metadata.name", "name or generateName is required"));
    } else {
        let wrong = is_dns1123_subdomain(name, "characters");
        errors.extend(wrong.iter().map(|text| invalid("metadata.name", quoted(name), text)));
    }
    errors.extend(validate_spec(spec, None, server));
    errors
}

/// What is wrong with a changed HPA, after defaulting.
///
/// Upstream: validation.go, ValidateHorizontalPodAutoscalerUpdate
#[must_use]
pub fn validate_update(
    new: &HpaSpec,
    old: &HpaSpec,
    server: (&Rules, &FeatureGates),
) -> Vec<FieldError> {
    validate_spec(new, Some(old), server)
}

/// Upstream: validation.go, validateHorizontalPodAutoscalerSpec
fn validate_spec(
    spec: &HpaSpec,
    old: Option<&HpaSpec>,
    (rules, gates): (&Rules, &FeatureGates),
) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let had_zero = old.is_some_and(|old| old.min_replicas == Some(0));
    let lower_bound = i32::from(!(gates.enabled(Gate::HpaScaleToZero) || had_zero));
    // Checks that upstream generates from its types. They come last, and are not repeated for a
    // field that did not change; then the hand-written ones stand, at their own place.
    let mut generated = Vec::new();
    if let Some(min) = spec.min_replicas.filter(|min| *min < lower_bound) {
        let detail = match rules.error_texts.least_is_told {
            true => format!("must be greater than or equal to {lower_bound}"),
            false => "must be greater than 0".to_owned(),
        };
        let error = invalid("spec.minReplicas", min, &detail);
        let unchanged = old.is_some_and(|old| old.min_replicas == spec.min_replicas)
            || !rules.generated_validation;
        if unchanged { &mut errors } else { &mut generated }.push(error);
    }
    let max = spec.max_replicas;
    if max < 1 {
        let unchanged =
            old.is_some_and(|old| old.max_replicas == max) || !rules.generated_validation;
        match (max, unchanged) {
            _ if rules.max_replicas_error == MaxReplicasError::Invalid => {
                errors.push(invalid("spec.maxReplicas", max, "must be greater than 0"));
            }
            (0, true) => {
                errors.push(required("spec.maxReplicas", "must be set and greater than 0"));
            }
            (0, false) => generated.push(required("spec.maxReplicas", "")),
            _ => {
                let detail = "must be greater than or equal to 1";
                let error = invalid("spec.maxReplicas", max, detail);
                if unchanged { &mut errors } else { &mut generated }.push(error);
            }
        }
    }
    if spec.min_replicas.is_some_and(|min| max < min) {
        let detail = "must be greater than or equal to `minReplicas`";
        errors.push(invalid("spec.maxReplicas", max, detail));
    }
    let target = &spec.scale_target_ref;
    let version =
        |target: &CrossVersionObjectReference| target.api_version.clone().unwrap_or_default();
    let unchanged = old.is_some_and(|old| {
        let old = &old.scale_target_ref;
        old.kind == target.kind && version(old) == version(target)
    });
    let checked = rules.api_version_is_checked;
    let allow_empty_group =
        (!unchanged && checked).then_some(target.kind == "ReplicationController");
    let path = "spec.scaleTargetRef";
    validate_cross_version_object_reference(target, path, allow_empty_group, &mut errors);
    let any_version = !checked || old.is_some_and(describes_unknown_versions);
    let containers = gates.enabled(Gate::HpaContainerMetrics);
    validate_metrics(spec, rules, (any_version, containers), &mut errors);
    if let Some(behavior) = &spec.behavior {
        validate_scaling_rules(behavior.scale_up.as_ref(), "scaleUp", &mut errors);
        validate_scaling_rules(behavior.scale_down.as_ref(), "scaleDown", &mut errors);
    }
    errors.append(&mut generated);
    if rules.invalid_quantities == InvalidQuantities::GoSyntax {
        for error in &mut errors {
            error.value =
                error.go_syntax.take().unwrap_or_else(|| std::mem::take(&mut error.value));
        }
    }
    errors
}

/// Whether a stored HPA has a metric of an object whose apiVersion is none: then a new one may,
/// too.
///
/// Upstream: strategy.go, validationOptionsForHorizontalPodAutoscaler
fn describes_unknown_versions(old: &HpaSpec) -> bool {
    old.metrics.iter().filter(|spec| spec.type_ == MetricSourceType::Object).any(|spec| {
        let object = spec.object.as_ref().map(|source| &source.described_object);
        let version = object.and_then(|object| object.api_version.as_deref());
        parse_group_version(version.unwrap_or_default()).is_err()
    })
}

/// Without `allow_empty_group` the apiVersion is not looked at.
///
/// Upstream: validation.go, ValidateCrossVersionObjectReference and ValidateAPIVersion
pub(super) fn validate_cross_version_object_reference(
    target: &CrossVersionObjectReference,
    path: &str,
    allow_empty_group: Option<bool>,
    errors: &mut Vec<FieldError>,
) {
    for (name, value) in [("kind", &target.kind), ("name", &target.name)] {
        let field = format!("{path}.{name}");
        if value.is_empty() {
            errors.push(required(field, ""));
            continue;
        }
        for text in is_path_segment_name(value) {
            errors.push(invalid(field.as_str(), quoted(value), &text));
        }
    }
    let Some(allow_empty_group) = allow_empty_group else { return };
    let api_version = target.api_version.as_deref().unwrap_or("");
    let wrong = match parse_group_version(api_version) {
        Err(error) => error,
        Ok(("", _)) if !allow_empty_group => "apiVersion must specify API group".to_owned(),
        Ok(_) => return,
    };
    errors.push(invalid(format!("{path}.apiVersion"), quoted(api_version), &wrong));
}

/// Upstream: apimachinery, content/path.go, IsPathSegmentName
pub(super) fn is_path_segment_name(name: &str) -> Vec<String> {
    if name == "." || name == ".." {
        return vec![format!("may not be '{name}'")];
    }
    let wrong = ["/", "%"].into_iter().filter(|illegal| name.contains(illegal));
    wrong.map(|illegal| format!("may not contain '{illegal}'")).collect()
}

/// Upstream: validation.go, validateScalingRules and validateScalingPolicy
fn validate_scaling_rules(
    rules: Option<&ScalingRules>,
    direction: &str,
    errors: &mut Vec<FieldError>,
) {
    let Some(rules) = rules else { return };
    let path = format!("spec.behavior.{direction}");
    if let Some(window) = rules.stabilization_window_seconds {
        let field = format!("{path}.stabilizationWindowSeconds");
        if window < 0 {
            errors.push(invalid(field, window, "must be greater than or equal to zero"));
        } else if window > MAX_STABILIZATION_WINDOW_SECONDS {
            let detail =
                format!("must be less than or equal to {MAX_STABILIZATION_WINDOW_SECONDS}");
            errors.push(invalid(field, window, &detail));
        }
    }
    let policies = rules.policies.as_deref().unwrap_or_default();
    if policies.is_empty() {
        errors.push(required(format!("{path}.policies"), "must specify at least one Policy"));
    }
    for (index, policy) in policies.iter().enumerate() {
        let path = format!("{path}.policies[{index}]");
        if policy.value <= 0 {
            let detail = "must be greater than zero";
            errors.push(invalid(format!("{path}.value"), policy.value, detail));
        }
        let field = format!("{path}.periodSeconds");
        if policy.period_seconds <= 0 {
            errors.push(invalid(field, policy.period_seconds, "must be greater than zero"));
        } else if policy.period_seconds > MAX_PERIOD_SECONDS {
            let detail = format!("must be less than or equal to {MAX_PERIOD_SECONDS}");
            errors.push(invalid(field, policy.period_seconds, &detail));
        }
    }
    if let Some(tolerance) = rules.tolerance.as_ref().filter(|it| it.sign() < 0) {
        let field = format!("{path}.tolerance");
        errors.push(invalid(field, quoted(tolerance), "must be greater than or equal to 0"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::api::{
        MetricSpec, MetricTarget, MetricTargetType, ScalingPolicy, ScalingPolicyType,
    };
    use crate::model::quantity::Quantity;

    fn stored() -> HpaSpec {
        let mut spec = HpaSpec {
            scale_target_ref: CrossVersionObjectReference {
                kind: "Deployment".to_owned(),
                name: "web".to_owned(),
                api_version: Some("apps/v1".to_owned()),
            },
            max_replicas: 10,
            ..HpaSpec::default()
        };
        super::super::set_defaults(&mut spec);
        spec
    }

    /// The message for a spec that is changed like this, without its beginning.
    fn refused(edit: impl FnOnce(&mut HpaSpec)) -> String {
        let mut spec = stored();
        edit(&mut spec);
        super::super::set_defaults(&mut spec);
        let message =
            admit("web", &spec, None, (&Rules::default(), &FeatureGates::default())).unwrap_err();
        let begin = "HorizontalPodAutoscaler.autoscaling \"web\" is invalid: ";
        message.strip_prefix(begin).unwrap().to_owned()
    }

    #[test]
    fn a_plain_hpa_is_admitted() {
        assert_eq!(
            admit("web", &stored(), None, (&Rules::default(), &FeatureGates::default())),
            Ok(())
        );
        let wrong = admit("Web", &stored(), None, (&Rules::default(), &FeatureGates::default()))
            .unwrap_err();
        assert!(wrong.contains("metadata.name: Invalid value: \"Web\": a lowercase RFC 1123"));
    }

    #[test]
    fn sizes() {
        assert_eq!(
            refused(|spec| spec.max_replicas = 0),
            "[spec.maxReplicas: Invalid value: 0: must be greater than or equal to `minReplicas`, \
             spec.maxReplicas: Required value]"
        );
        assert_eq!(
            refused(|spec| (spec.min_replicas, spec.max_replicas) = (Some(-2), -1)),
            "[spec.minReplicas: Invalid value: -2: must be greater than or equal to 0, \
             spec.maxReplicas: Invalid value: -1: must be greater than or equal to 1]"
        );
        assert_eq!(
            refused(|spec| spec.min_replicas = Some(0)),
            "spec.metrics: Forbidden: must specify at least one Object or External metric to \
             support scaling to zero replicas"
        );
    }

    #[test]
    fn targets() {
        assert_eq!(
            refused(|spec| spec.scale_target_ref.api_version = None),
            "spec.scaleTargetRef.apiVersion: Invalid value: \"\": apiVersion must specify API group"
        );
        assert_eq!(
            refused(|spec| spec.scale_target_ref.name = "a/b".to_owned()),
            "spec.scaleTargetRef.name: Invalid value: \"a/b\": may not contain '/'"
        );
        // What was stored once may stay.
        let mut old = stored();
        old.scale_target_ref.api_version = Some("v1".to_owned());
        let new = HpaSpec { max_replicas: 9, ..old.clone() };
        assert_eq!(
            admit("web", &new, Some(&old), (&Rules::default(), &FeatureGates::default())),
            Ok(())
        );
    }

    #[test]
    fn metrics() {
        let target = |edit: fn(&mut MetricTarget)| {
            refused(|spec| {
                if let Some(resource) = &mut spec.metrics[0].resource {
                    edit(&mut resource.target);
                }
            })
        };
        let path = "spec.metrics[0].resource.target";
        assert_eq!(
            target(|target| target.average_utilization = Some(0)),
            format!("{path}.averageUtilization: Invalid value: 0: must be greater than 0")
        );
        assert_eq!(
            target(|target| target.average_utilization = None),
            format!(
                "{path}.averageUtilization: Required value: must set either a target raw value or \
                 a target utilization"
            )
        );
        assert_eq!(
            target(|target| {
                target.type_ = MetricTargetType::AverageValue;
                target.average_utilization = None;
                target.average_value = Some(Quantity::parse("-100m").unwrap());
            }),
            format!("{path}.averageValue: Invalid value: \"-100m\": must be positive")
        );
        assert_eq!(
            refused(|spec| spec.metrics[0].resource = None),
            "spec.metrics[0].resource: Required value: must populate information for the given \
             metric source"
        );
    }

    /// What is said of this metric alone.
    fn refused_metric(json: serde_json::Value) -> String {
        let metric: MetricSpec = serde_json::from_value(json).unwrap();
        refused(|spec| spec.metrics = vec![metric])
    }

    #[test]
    fn other_metrics() {
        let path = "spec.metrics[0]";
        let average = serde_json::json!({"type": "AverageValue", "averageValue": "1"});
        let nothing = serde_json::json!({"type": "Utilization"});
        let both = serde_json::json!({"type": "Value", "value": "0", "averageValue": "1"});
        assert_eq!(
            refused_metric(serde_json::json!({
                "type": "Pods", "pods": {"metric": {"name": "a/b"}, "target": nothing}
            })),
            format!(
                "[{path}.pods.metric.name: Invalid value: \"a/b\": may not contain '/', \
                 {path}.pods.target.averageValue: Required value: must specify a positive target \
                 averageValue]"
            )
        );
        assert_eq!(
            refused_metric(serde_json::json!({
                "type": "External", "external": {"metric": {"name": ""}, "target": both}
            })),
            format!(
                "[{path}.external.metric.name: Required value: must specify a metric name, \
                 {path}.external.target.value: Invalid value: \"0\": must be positive, \
                 {path}.external.target.value: Forbidden: may not set both a target value for \
                 metric and a per-pod target]"
            )
        );
        assert_eq!(
            refused_metric(serde_json::json!({"type": "Object", "object": {
                "metric": {"name": "rps"}, "target": nothing,
                "describedObject": {"kind": "", "name": "a%b", "apiVersion": "a/b/c"}
            }})),
            format!(
                "[{path}.object.describedObject.kind: Required value, \
                 {path}.object.describedObject.name: Invalid value: \"a%b\": may not contain \
                 '%', {path}.object.describedObject.apiVersion: Invalid value: \"a/b/c\": \
                 unexpected GroupVersion string: a/b/c, {path}.object.target.averageValue: \
                 Required value: must set either a target value or averageValue]"
            )
        );
        assert_eq!(
            refused_metric(serde_json::json!({"type": "ContainerResource", "containerResource": {
                "name": "gpu", "container": "a.b", "target": average
            }})),
            format!(
                "[{path}.containerResource.name: Invalid value: \"gpu\": must be a standard \
                 resource type or fully qualified, {path}.containerResource.name: Invalid value: \
                 \"gpu\": must be a standard resource for containers, \
                 {path}.containerResource.container: Invalid value: \"a.b\": must not contain \
                 dots]"
            )
        );
        assert_eq!(
            refused_metric(serde_json::json!({
                "type": "Pods",
                "pods": {"metric": {"name": "a"}, "target": average},
                "resource": {"name": "cpu", "target": nothing}
            })),
            format!("{path}.resource: Forbidden: must populate the given metric source only")
        );
        assert_eq!(
            refused_metric(serde_json::json!({"type": "External"})),
            format!(
                "{path}.external: Required value: must populate information for the given metric \
                 source"
            )
        );
    }

    #[test]
    fn behaviors() {
        let up = |edit: fn(&mut ScalingRules)| {
            refused(|spec| {
                let mut rules = ScalingRules::default();
                edit(&mut rules);
                spec.behavior = Some(Behavior { scale_up: Some(rules), scale_down: None });
            })
        };
        let path = "spec.behavior.scaleUp";
        assert_eq!(
            up(|rules| rules.stabilization_window_seconds = Some(3601)),
            format!(
                "{path}.stabilizationWindowSeconds: Invalid value: 3601: must be less than or \
                 equal to 3600"
            )
        );
        assert_eq!(
            up(|rules| rules.policies = Some(Vec::new())),
            format!("{path}.policies: Required value: must specify at least one Policy")
        );
        assert_eq!(
            up(|rules| {
                let type_ = ScalingPolicyType::Pods;
                rules.policies =
                    Some(vec![ScalingPolicy { type_, value: 0, period_seconds: 1801 }]);
            }),
            format!(
                "[{path}.policies[0].value: Invalid value: 0: must be greater than zero, \
                 {path}.policies[0].periodSeconds: Invalid value: 1801: must be less than or equal \
                 to 1800]"
            )
        );
        assert_eq!(
            up(|rules| rules.tolerance = Some(Quantity::parse("-0.1").unwrap())),
            format!(
                "{path}.tolerance: Invalid value: \"-100m\": must be greater than or equal to 0"
            )
        );
    }

    #[test]
    fn defaults_are_filled_in_per_field() {
        let mut spec = stored();
        assert_eq!((spec.min_replicas, spec.metrics.len()), (Some(1), 1));
        assert_eq!(spec.behavior, None);
        let down = ScalingRules { policies: Some(Vec::new()), ..ScalingRules::default() };
        spec.behavior = Some(Behavior { scale_up: None, scale_down: Some(down) });
        super::super::set_defaults(&mut spec);
        let behavior = spec.behavior.unwrap();
        let (up, down) = (behavior.scale_up.unwrap(), behavior.scale_down.unwrap());
        assert_eq!(up.policies.unwrap().len(), 2);
        assert_eq!(up.stabilization_window_seconds, Some(0));
        assert_eq!(down.policies, Some(Vec::new()));
        assert_eq!(down.stabilization_window_seconds, None);
    }
}
