//! Validation of HPAs by the API server, with its messages.
//!
//! Not covered: values that the types of [`HpaSpec`] can't represent (unknown enum values, a metric
//! source without a target), and metadata other than the name. Errors come in upstream's order.
//!
//! Upstream: pkg/apis/autoscaling/validation/validation.go, zz_generated.validations.go (v2) and
//! pkg/registry/autoscaling/horizontalpodautoscaler/strategy.go.

use super::field_error::{FieldError, invalid, invalid_message, quoted, required};
use super::metrics::{self, Allowed};
use super::metrics_v2beta1;
use super::names::validate_cross_version_object_reference;
use crate::api::{Behavior, CrossVersionObjectReference, HpaSpec, MetricSourceType, ScalingRules};
use crate::flags::{FeatureGates, Gate};
use crate::hpa::apimachinery::parse_group_version;
use crate::rules::{AtZero, InvalidQuantities, MaxReplicasError, Rules};
use crate::selector::is_dns1123_subdomain;

const MAX_PERIOD_SECONDS: i32 = 1800;
const MAX_STABILIZATION_WINDOW_SECONDS: i32 = 3600;

/// Drops fields whose feature gate is off, unless the stored object uses them.
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

/// The release and the feature gates of an API server.
#[derive(Clone, Copy, Debug)]
pub struct ApiServer<'a> {
    /// The rules of the release.
    pub rules: &'a Rules,
    /// The feature gates.
    pub gates: &'a FeatureGates,
}

/// Validates a new or changed HPA after defaulting.
///
/// # Errors
/// The message with which the API server rejects the HPA.
pub fn admit(
    name: &str,
    spec: &HpaSpec,
    old: Option<&HpaSpec>,
    server: ApiServer<'_>,
) -> Result<(), String> {
    let errors = match old {
        None => validate(name, spec, server),
        Some(old) => validate_update(spec, old, server),
    };
    if errors.is_empty() { Ok(()) } else { Err(invalid_message(name, &errors)) }
}

/// Validates a new HPA after defaulting. It is stored if there are no errors.
///
/// Upstream: validation.go, ValidateHorizontalPodAutoscaler
#[must_use]
pub fn validate(name: &str, spec: &HpaSpec, server: ApiServer<'_>) -> Vec<FieldError> {
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

/// Validates a changed HPA after defaulting.
///
/// Upstream: validation.go, ValidateHorizontalPodAutoscalerUpdate
#[must_use]
pub fn validate_update(new: &HpaSpec, old: &HpaSpec, server: ApiServer<'_>) -> Vec<FieldError> {
    validate_spec(new, Some(old), server)
}

/// Errors of upstream's hand-written checks and of the checks that it generates from its types. The
/// generated checks come last. A field that did not change is not checked by the generated checks,
/// but by the hand-written checks that they replace.
#[derive(Default)]
struct Errors {
    hand_written: Vec<FieldError>,
    generated: Vec<FieldError>,
}

/// Upstream: validation.go, validateHorizontalPodAutoscalerSpec
fn validate_spec(spec: &HpaSpec, old: Option<&HpaSpec>, server: ApiServer<'_>) -> Vec<FieldError> {
    let ApiServer { rules, gates } = server;
    let mut all = Errors::default();
    validate_min_replicas(spec, old, server, &mut all);
    validate_max_replicas(spec, old, rules, &mut all);
    let Errors { hand_written: mut errors, mut generated } = all;
    let max = spec.max_replicas;
    if spec.min_replicas.is_some_and(|min| max < min) {
        let detail = "must be greater than or equal to `minReplicas`";
        errors.push(invalid("spec.maxReplicas", max, detail));
    }
    validate_scale_target_ref(spec, old, rules, &mut errors);
    if rules.admission.has_metric_selectors {
        let allowed = Allowed {
            any_api_version: !rules.admission.api_version_is_checked
                || old.is_some_and(describes_unknown_versions),
            containers: gates.enabled(Gate::HpaContainerMetrics),
            scale_to_zero: rules.scale.at_zero != AtZero::Disabled,
        };
        metrics::validate_metrics(spec, allowed, &mut errors);
    } else {
        metrics_v2beta1::validate_metrics(spec, &mut errors);
    }
    if let Some(behavior) = &spec.behavior {
        validate_scaling_rules(behavior.scale_up.as_ref(), "scaleUp", &mut errors);
        validate_scaling_rules(behavior.scale_down.as_ref(), "scaleDown", &mut errors);
    }
    errors.append(&mut generated);
    if rules.admission.invalid_quantities == InvalidQuantities::GoSyntax {
        for error in &mut errors {
            error.value =
                error.go_syntax.take().unwrap_or_else(|| std::mem::take(&mut error.value));
        }
    }
    errors
}

fn validate_min_replicas(
    spec: &HpaSpec,
    old: Option<&HpaSpec>,
    server: ApiServer<'_>,
    errors: &mut Errors,
) {
    let admission = &server.rules.admission;
    let had_zero = old.is_some_and(|old| old.min_replicas == Some(0));
    let lower_bound = i32::from(!(server.gates.enabled(Gate::HpaScaleToZero) || had_zero));
    let Some(min) = spec.min_replicas.filter(|min| *min < lower_bound) else { return };
    let detail = match admission.least_is_named {
        true => format!("must be greater than or equal to {lower_bound}"),
        false => "must be greater than 0".to_owned(),
    };
    let error = invalid("spec.minReplicas", min, &detail);
    let unchanged = old.is_some_and(|old| old.min_replicas == spec.min_replicas);
    match admission.generated_validation && !unchanged {
        true => errors.generated.push(error),
        false => errors.hand_written.push(error),
    }
}

fn validate_max_replicas(
    spec: &HpaSpec,
    old: Option<&HpaSpec>,
    rules: &Rules,
    errors: &mut Errors,
) {
    let (field, max) = ("spec.maxReplicas", spec.max_replicas);
    if max >= 1 {
        return;
    }
    let unchanged = old.is_some_and(|old| old.max_replicas == max);
    let generated = rules.admission.generated_validation && !unchanged;
    let error = match (rules.admission.max_replicas_error, max) {
        (MaxReplicasError::Invalid, _) => {
            return errors.hand_written.push(invalid(field, max, "must be greater than 0"));
        }
        (MaxReplicasError::Required, 0) if generated => required(field, ""),
        (MaxReplicasError::Required, 0) => required(field, "must be set and greater than 0"),
        _ => invalid(field, max, "must be greater than or equal to 1"),
    };
    if generated { &mut errors.generated } else { &mut errors.hand_written }.push(error);
}

fn validate_scale_target_ref(
    spec: &HpaSpec,
    old: Option<&HpaSpec>,
    rules: &Rules,
    errors: &mut Vec<FieldError>,
) {
    let target = &spec.scale_target_ref;
    let version =
        |target: &CrossVersionObjectReference| target.api_version.clone().unwrap_or_default();
    let unchanged = old.is_some_and(|old| {
        let old = &old.scale_target_ref;
        old.kind == target.kind && version(old) == version(target)
    });
    let checked = rules.admission.api_version_is_checked && !unchanged;
    let allow_empty_group = checked.then_some(target.kind == "ReplicationController");
    let path = "spec.scaleTargetRef";
    validate_cross_version_object_reference(target, path, allow_empty_group, errors);
}

/// Returns true if a stored HPA has a metric of an object with an invalid apiVersion: then a
/// changed HPA may have one as well.
///
/// Upstream: strategy.go, validationOptionsForHorizontalPodAutoscaler
fn describes_unknown_versions(old: &HpaSpec) -> bool {
    old.metrics.iter().filter(|spec| spec.type_ == MetricSourceType::Object).any(|spec| {
        let object = spec.object.as_ref().map(|source| &source.described_object);
        let version = object.and_then(|object| object.api_version.as_deref());
        parse_group_version(version.unwrap_or_default()).is_err()
    })
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
    use crate::api::{
        MetricSpec, MetricTarget, MetricTargetType, ScalingPolicy, ScalingPolicyType,
    };
    use crate::quantity::Quantity;

    /// The rules and gates of the newest release.
    struct Newest(Rules, FeatureGates);

    impl Newest {
        fn server(&self) -> ApiServer<'_> {
            ApiServer { rules: &self.0, gates: &self.1 }
        }
    }

    fn newest() -> Newest {
        Newest(Rules::default(), FeatureGates::default())
    }

    fn stored() -> HpaSpec {
        let mut spec = HpaSpec {
            scale_target_ref: CrossVersionObjectReference {
                kind: "Deployment".to_owned(),
                name: "web".into(),
                api_version: Some("apps/v1".to_owned()),
            },
            max_replicas: 10,
            ..HpaSpec::default()
        };
        crate::hpa::set_defaults(&mut spec);
        spec
    }

    /// The message for an edited spec, without its beginning.
    fn refused(edit: impl FnOnce(&mut HpaSpec)) -> String {
        let mut spec = stored();
        edit(&mut spec);
        crate::hpa::set_defaults(&mut spec);
        let message = admit("web", &spec, None, newest().server()).unwrap_err();
        let begin = "HorizontalPodAutoscaler.autoscaling \"web\" is invalid: ";
        message.strip_prefix(begin).unwrap().to_owned()
    }

    #[test]
    fn a_minimal_hpa_is_admitted() {
        assert_eq!(admit("web", &stored(), None, newest().server()), Ok(()));
        let wrong = admit("Web", &stored(), None, newest().server()).unwrap_err();
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
            refused(|spec| spec.scale_target_ref.name = "a/b".into()),
            "spec.scaleTargetRef.name: Invalid value: \"a/b\": may not contain '/'"
        );
        // A stored value may remain.
        let mut old = stored();
        old.scale_target_ref.api_version = Some("v1".to_owned());
        let new = HpaSpec { max_replicas: 9, ..old.clone() };
        assert_eq!(admit("web", &new, Some(&old), newest().server()), Ok(()));
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

    /// The errors of this metric alone.
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
        crate::hpa::set_defaults(&mut spec);
        let behavior = spec.behavior.unwrap();
        let (up, down) = (behavior.scale_up.unwrap(), behavior.scale_down.unwrap());
        assert_eq!(up.policies.unwrap().len(), 2);
        assert_eq!(up.stabilization_window_seconds, Some(0));
        assert_eq!(down.policies, Some(Vec::new()));
        assert_eq!(down.stabilization_window_seconds, None);
    }
}
