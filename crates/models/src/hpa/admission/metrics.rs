//! Validation of `spec.metrics`.
//!
//! Upstream: pkg/apis/autoscaling/validation/validation.go.

use super::field_error::{FieldError, forbidden, invalid, invalid_quantity, quoted, required};
use super::names::{
    is_path_segment_name, validate_container_resource_name, validate_cross_version_object_reference,
};
use crate::api::{
    ContainerResourceMetricSource, ExternalMetricSource, HpaSpec, MetricIdentifier,
    MetricSourceType, MetricSpec, MetricTarget, ObjectMetricSource, PodsMetricSource,
    ResourceMetricSource,
};
use crate::selector::is_dns1123_label;

/// Features of metrics that depend on the release, a feature gate or the stored HPA.
#[derive(Clone, Copy)]
pub(super) struct Allowed {
    /// Described objects may have an invalid apiVersion.
    pub(super) any_api_version: bool,
    /// Metrics of single containers.
    pub containers: bool,
    /// `minReplicas: 0`, for metrics of objects and external metrics.
    pub(super) scale_to_zero: bool,
}

/// Upstream: validation.go, validateMetrics
pub(super) fn validate_metrics(spec: &HpaSpec, allowed: Allowed, errors: &mut Vec<FieldError>) {
    let HpaSpec { metrics, min_replicas, .. } = spec;
    for (index, spec) in metrics.iter().enumerate() {
        validate_metric_spec(spec, &format!("spec.metrics[{index}]"), allowed, errors);
    }
    let scales_from_zero = metrics
        .iter()
        .any(|spec| matches!(spec.type_, MetricSourceType::Object | MetricSourceType::External));
    if allowed.scale_to_zero && *min_replicas == Some(0) && !scales_from_zero {
        let detail = "must specify at least one Object or External metric to support scaling to \
                      zero replicas";
        errors.push(forbidden("spec.metrics", detail));
    }
}

/// Only the first of several sources is validated, in upstream's order; the others are forbidden.
/// Upstream names the forbidden sources in random order, the model in the order of their
/// validation.
///
/// Upstream: validation.go, validateMetricSpec
fn validate_metric_spec(
    spec: &MetricSpec,
    path: &str,
    allowed: Allowed,
    errors: &mut Vec<FieldError>,
) {
    let MetricSpec { resource, container_resource, pods, object, external, .. } = spec;
    let present = metric_source(spec);
    let first = present.first().copied().unwrap_or_default();
    let field = format!("{path}.{first}");
    match (object, external, pods, resource, container_resource) {
        (Some(source), ..) => {
            validate_object_source(source, &field, allowed.any_api_version, errors)
        }
        (_, Some(source), ..) => validate_external_source(source, &field, errors),
        (_, _, Some(source), ..) => validate_pods_source(source, &field, errors),
        (_, _, _, Some(source), _) => validate_resource_source(source, &field, errors),
        (.., Some(source)) => validate_container_resource_source(source, &field, errors),
        _ => {}
    }
    other_sources(spec, present, path, !allowed.containers, errors);
}

/// The sources of a metric, in the order of their validation.
pub(super) fn metric_source(spec: &MetricSpec) -> Vec<&'static str> {
    let MetricSpec { resource, container_resource, pods, object, external, .. } = spec;
    let present = [
        ("object", object.is_some()),
        ("external", external.is_some()),
        ("pods", pods.is_some()),
        ("resource", resource.is_some()),
        ("containerResource", container_resource.is_some()),
    ];
    present.into_iter().filter(|(_, present)| *present).map(|(name, _)| name).collect()
}

/// Errors of missing and superfluous sources. `gated`: metrics of containers require a feature gate
/// that is off.
pub(super) fn other_sources(
    spec: &MetricSpec,
    mut present: Vec<&'static str>,
    path: &str,
    gated: bool,
    errors: &mut Vec<FieldError>,
) {
    let expected = match spec.type_ {
        MetricSourceType::Resource => "resource",
        MetricSourceType::ContainerResource => "containerResource",
        MetricSourceType::Pods => "pods",
        MetricSourceType::Object => "object",
        MetricSourceType::External => "external",
    };
    if !present.contains(&expected) {
        let mut detail = "must populate information for the given metric source".to_owned();
        if expected == "containerResource" && gated {
            detail += " (only allowed when HPAContainerMetrics feature is enabled)";
        }
        errors.push(required(format!("{path}.{expected}"), &detail));
    }
    if present.len() != 1 {
        present.retain(|name| *name != expected);
        for name in present {
            let detail = "must populate the given metric source only";
            errors.push(forbidden(format!("{path}.{name}"), detail));
        }
    }
}

/// Upstream: validation.go, validateObjectSource
fn validate_object_source(
    source: &ObjectMetricSource,
    path: &str,
    any_version: bool,
    errors: &mut Vec<FieldError>,
) {
    let ObjectMetricSource { described_object, metric, target } = source;
    let field = format!("{path}.describedObject");
    // Core objects have no group.
    let allow_empty_group = (!any_version).then_some(true);
    validate_cross_version_object_reference(described_object, &field, allow_empty_group, errors);
    validate_metric_identifier(metric, &format!("{path}.metric"), errors);
    validate_metric_target(target, &format!("{path}.target"), errors);
    if target.value.is_none() && target.average_value.is_none() {
        let detail = "must set either a target value or averageValue";
        errors.push(required(format!("{path}.target.averageValue"), detail));
    }
}

/// Upstream: validation.go, validateExternalSource
fn validate_external_source(
    source: &ExternalMetricSource,
    path: &str,
    errors: &mut Vec<FieldError>,
) {
    let ExternalMetricSource { metric, target } = source;
    validate_metric_identifier(metric, &format!("{path}.metric"), errors);
    validate_metric_target(target, &format!("{path}.target"), errors);
    match (&target.value, &target.average_value) {
        (None, None) => errors.push(required(
            format!("{path}.target.averageValue"),
            "must set either a target value for metric or a per-pod target",
        )),
        (Some(_), Some(_)) => errors.push(forbidden(
            format!("{path}.target.value"),
            "may not set both a target value for metric and a per-pod target",
        )),
        _ => {}
    }
}

/// Upstream: validation.go, validatePodsSource
fn validate_pods_source(source: &PodsMetricSource, path: &str, errors: &mut Vec<FieldError>) {
    let PodsMetricSource { metric, target } = source;
    validate_metric_identifier(metric, &format!("{path}.metric"), errors);
    validate_metric_target(target, &format!("{path}.target"), errors);
    if target.average_value.is_none() {
        let detail = "must specify a positive target averageValue";
        errors.push(required(format!("{path}.target.averageValue"), detail));
    }
}

/// Upstream: validation.go, validateContainerResourceSource
fn validate_container_resource_source(
    source: &ContainerResourceMetricSource,
    path: &str,
    errors: &mut Vec<FieldError>,
) {
    let ContainerResourceMetricSource { name, container, target } = source;
    if name.is_empty() {
        errors.push(required(format!("{path}.name"), "must specify a resource name"));
    } else {
        for text in validate_container_resource_name(name) {
            errors.push(invalid(format!("{path}.name"), quoted(name), &text));
        }
    }
    if container.is_empty() {
        errors.push(required(format!("{path}.container"), "must specify a container"));
    } else {
        for text in is_dns1123_label(container) {
            errors.push(invalid(format!("{path}.container"), quoted(container), &text));
        }
    }
    validate_resource_target(target, path, errors);
}

/// Upstream: validation.go, validateResourceSource
fn validate_resource_source(
    source: &ResourceMetricSource,
    path: &str,
    errors: &mut Vec<FieldError>,
) {
    if source.name.is_empty() {
        errors.push(required(format!("{path}.name"), "must specify a resource name"));
    }
    validate_resource_target(&source.target, path, errors);
}

/// The checks that both kinds of resource metrics share.
fn validate_resource_target(target: &MetricTarget, path: &str, errors: &mut Vec<FieldError>) {
    validate_metric_target(target, &format!("{path}.target"), errors);
    match (target.average_utilization, &target.average_value) {
        (None, None) => errors.push(required(
            format!("{path}.target.averageUtilization"),
            "must set either a target raw value or a target utilization",
        )),
        (Some(_), Some(_)) => errors.push(forbidden(
            format!("{path}.target.averageValue"),
            "may not set both a target raw value and a target utilization",
        )),
        _ => {}
    }
}

/// Upstream: validation.go, validateMetricTarget
fn validate_metric_target(target: &MetricTarget, path: &str, errors: &mut Vec<FieldError>) {
    for (name, value) in [("value", &target.value), ("averageValue", &target.average_value)] {
        if let Some(value) = value.as_ref().filter(|value| value.sign() != 1) {
            errors.push(invalid_quantity(format!("{path}.{name}"), value, "must be positive"));
        }
    }
    if let Some(utilization) = target.average_utilization.filter(|value| *value < 1) {
        let field = format!("{path}.averageUtilization");
        errors.push(invalid(field, utilization, "must be greater than 0"));
    }
}

/// Upstream: validation.go, validateMetricIdentifier
fn validate_metric_identifier(metric: &MetricIdentifier, path: &str, errors: &mut Vec<FieldError>) {
    let field = format!("{path}.name");
    if metric.name.is_empty() {
        errors.push(required(field, "must specify a metric name"));
        return;
    }
    for text in is_path_segment_name(&metric.name) {
        errors.push(invalid(field.as_str(), quoted(&metric.name), &text));
    }
}
