//! The round trip of an HPA through `autoscaling/v1`, the storage version of older releases. It
//! loses information: the percentage of cpu has a separate field in v1, so that it comes last
//! and only once; the types of targets follow from their values; and the totals of objects and
//! external metrics can't be omitted.
//!
//! Upstream: pkg/apis/autoscaling/v1/conversion.go.

use crate::api::{
    ContainerResourceMetricStatus, ExternalMetricStatus, HpaSpec, MetricSpec, MetricStatus,
    MetricTarget, MetricTargetType, ObjectMetricStatus, PodsMetricStatus, ResourceMetricStatus,
};
use crate::quantity::{Format, Quantity};

/// Replaces the spec by the result of the round trip. `all_percentages`: a percentage of cpu is
/// kept even if another metric of cpu precedes it.
///
/// Upstream: Convert_autoscaling_HorizontalPodAutoscaler_To_v1_… and back
pub fn spec_through_v1(spec: &mut HpaSpec, all_percentages: bool) {
    let is_cpu_utilization =
        |metric: &&MetricSpec| metric.resource.as_ref().is_some_and(|it| &*it.name == "cpu");
    let first = spec.metrics.iter().find(is_cpu_utilization);
    let lost = !all_percentages && first.is_some_and(|first| !is_cpu_percentage(first));
    let mut percentage = None;
    let mut others = Vec::with_capacity(spec.metrics.len());
    for mut metric in spec.metrics.drain(..) {
        if is_cpu_percentage(&metric) {
            // v1 keeps only the percentage.
            if let Some(resource) = &mut metric.resource {
                resource.target.average_value = None;
            }
            percentage.get_or_insert(metric);
        } else {
            others.push(metric);
        }
    }
    spec.metrics = others;
    spec.metrics.extend(percentage.filter(|_| !lost));
    spec.metrics.iter_mut().for_each(metric_through_v1);
}

fn is_cpu_percentage(metric: &MetricSpec) -> bool {
    let resource = metric.resource.as_ref().filter(|resource| &*resource.name == "cpu");
    resource.is_some_and(|resource| resource.target.average_utilization.is_some())
}

fn metric_through_v1(metric: &mut MetricSpec) {
    let MetricSpec { resource, container_resource, pods, object, external, .. } = metric;
    let pod_targets = [
        resource.as_mut().map(|source| &mut source.target),
        container_resource.as_mut().map(|source| &mut source.target),
    ];
    for target in pod_targets.into_iter().flatten() {
        target.type_ = match target.average_utilization {
            Some(_) => MetricTargetType::Utilization,
            None => MetricTargetType::AverageValue,
        };
        target.value = None;
    }
    if let Some(pods) = pods {
        let average_value = Some(pods.target.average_value.take().unwrap_or_else(zero));
        pods.target = target(MetricTargetType::AverageValue, None, average_value);
    }
    if let Some(object) = object {
        let average_value = object.target.average_value.take();
        let type_ = match average_value {
            None => MetricTargetType::Value,
            Some(_) => MetricTargetType::AverageValue,
        };
        let value = Some(object.target.value.take().unwrap_or_else(zero));
        object.target = target(type_, value, average_value);
    }
    if let Some(external) = external {
        let (value, average_value) =
            (external.target.value.take(), external.target.average_value.take());
        let type_ = match value {
            None => MetricTargetType::AverageValue,
            Some(_) => MetricTargetType::Value,
        };
        external.target = target(type_, value, average_value);
    }
}

/// Replaces the status of metrics by the result of the round trip.
///
/// Upstream: Convert_autoscaling_MetricStatus_To_v1_MetricStatus and back, and the functions that
/// they call
pub(crate) fn metrics_through_v1(metrics: &mut [MetricStatus]) {
    for metric in metrics {
        match metric {
            MetricStatus::Object { object: ObjectMetricStatus { current, .. } }
            | MetricStatus::External { external: ExternalMetricStatus { current, .. } } => {
                current.value.get_or_insert_with(zero);
            }
            MetricStatus::Resource { resource: ResourceMetricStatus { current, .. } }
            | MetricStatus::ContainerResource {
                container_resource: ContainerResourceMetricStatus { current, .. },
            }
            | MetricStatus::Pods { pods: PodsMetricStatus { current, .. } } => {
                current.average_value.get_or_insert_with(zero);
            }
            MetricStatus::Empty {} => {}
        }
    }
}

fn target(
    type_: MetricTargetType,
    value: Option<Quantity>,
    average_value: Option<Quantity>,
) -> MetricTarget {
    MetricTarget { type_, value, average_value, average_utilization: None }
}

fn zero() -> Quantity {
    Quantity::from_milli(0, Format::DecimalSI)
}
