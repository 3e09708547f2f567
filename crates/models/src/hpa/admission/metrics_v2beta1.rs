//! Validation of `spec.metrics` up to Kubernetes 1.11, on the types of `autoscaling/v2beta1`: its
//! fields have other names, and fewer of them are validated.
//!
//! Upstream: pkg/apis/autoscaling/validation/validation.go at v1.11.10.

use super::field_error::{FieldError, forbidden, invalid, invalid_quantity, quoted, required};
use super::metrics::{metric_source, other_sources};
use super::names::{is_path_segment_name, validate_cross_version_object_reference};
use crate::api::{HpaSpec, MetricSpec, MetricTarget};
use crate::quantity::Quantity;

/// Upstream: validation.go, validateMetrics
pub(super) fn validate_metrics(spec: &HpaSpec, errors: &mut Vec<FieldError>) {
    for (index, spec) in spec.metrics.iter().enumerate() {
        validate_metric_spec(spec, &format!("spec.metrics[{index}]"), errors);
    }
}

/// Upstream: validation.go, validateMetricSpec
fn validate_metric_spec(spec: &MetricSpec, path: &str, errors: &mut Vec<FieldError>) {
    let present = metric_source(spec);
    let path_of =
        |field: &str| format!("{path}.{}.{field}", present.first().copied().unwrap_or_default());
    if let Some(source) = &spec.object {
        let object = &source.described_object;
        validate_cross_version_object_reference(object, &path_of("target"), None, errors);
        named(&source.metric.name, path_of("metricName"), errors);
        let detail = "must specify a positive target value";
        positive(source.target.value.as_ref(), path_of("targetValue"), detail, errors);
    } else if let Some(source) = &spec.external {
        let field = path_of("metricName");
        named(&source.metric.name, field.clone(), errors);
        if !source.metric.name.is_empty() {
            for text in is_path_segment_name(&source.metric.name) {
                errors.push(invalid(field.as_str(), quoted(&source.metric.name), &text));
            }
        }
        validate_external_target(&source.target, path_of, errors);
    } else if let Some(source) = &spec.pods {
        named(&source.metric.name, path_of("metricName"), errors);
        let detail = "must specify a positive target value";
        let value = source.target.average_value.as_ref();
        positive(value, path_of("targetAverageValue"), detail, errors);
    } else if let Some(source) = &spec.resource {
        if source.name.is_empty() {
            errors.push(required(path_of("name"), "must specify a resource name"));
        }
        validate_resource_target(&source.target, path_of, errors);
    }
    other_sources(spec, present, path, false, errors);
}

fn named(name: &str, field: String, errors: &mut Vec<FieldError>) {
    if name.is_empty() {
        errors.push(required(field, "must specify a metric name"));
    }
}

/// Checks a required quantity: an absent one is zero.
fn positive(value: Option<&Quantity>, field: String, detail: &str, errors: &mut Vec<FieldError>) {
    if value.is_none_or(|value| value.sign() != 1) {
        errors.push(required(field, detail));
    }
}

/// Upstream: validation.go, validateExternalSource
fn validate_external_target(
    MetricTarget { value, average_value, .. }: &MetricTarget,
    path_of: impl Fn(&str) -> String,
    errors: &mut Vec<FieldError>,
) {
    match (value, average_value) {
        (None, None) => errors.push(required(
            path_of("targetValue"),
            "must set either a target value for metric or a per-pod target",
        )),
        (Some(_), Some(_)) => errors.push(forbidden(
            path_of("targetValue"),
            "may not set both a target value for metric and a per-pod target",
        )),
        _ => {}
    }
    not_positive(average_value.as_ref(), path_of("targetAverageValue"), errors);
    not_positive(value.as_ref(), path_of("targetValue"), errors);
}

/// Upstream: validation.go, validateResourceSource
fn validate_resource_target(
    MetricTarget { average_utilization, average_value, .. }: &MetricTarget,
    path_of: impl Fn(&str) -> String,
    errors: &mut Vec<FieldError>,
) {
    if average_utilization.is_none() && average_value.is_none() {
        errors.push(required(
            path_of("targetAverageUtilization"),
            "must set either a target raw value or a target utilization",
        ));
    }
    if let Some(utilization) = average_utilization.filter(|value| *value < 1) {
        let field = path_of("targetAverageUtilization");
        errors.push(invalid(field, utilization, "must be greater than 0"));
    }
    if average_utilization.is_some() && average_value.is_some() {
        errors.push(forbidden(
            path_of("targetAverageValue"),
            "may not set both a target raw value and a target utilization",
        ));
    }
    not_positive(average_value.as_ref(), path_of("targetAverageValue"), errors);
}

fn not_positive(value: Option<&Quantity>, field: String, errors: &mut Vec<FieldError>) {
    if let Some(value) = value.filter(|value| value.sign() != 1) {
        errors.push(invalid_quantity(field, value, "must be positive"));
    }
}
