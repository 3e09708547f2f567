//! Statuses of metrics in their recorded form: part of `text`.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::model::api::{CrossVersionObjectReference, MetricIdentifier, MetricStatus};
use crate::model::quantity::Quantity;

/// One of `resource`, `pods`, `object` and `external`, or none of them: the metric failed.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MetricForm {
    #[serde(skip_serializing_if = "Option::is_none")]
    resource: Option<Arc<str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    container: Option<Arc<str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pods: Option<Arc<MetricIdentifier>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    object: Option<Arc<MetricIdentifier>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    of: Option<Arc<CrossVersionObjectReference>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    external: Option<Arc<MetricIdentifier>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    utilization: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    average: Option<Quantity>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<Quantity>,
}

pub(super) fn metric_form(metric: &MetricStatus) -> MetricForm {
    match metric.clone() {
        MetricStatus::Empty => MetricForm::default(),
        MetricStatus::Resource { name, average_utilization, average_value } => MetricForm {
            resource: Some(name),
            utilization: average_utilization,
            average: average_value,
            ..MetricForm::default()
        },
        MetricStatus::ContainerResource { name, container, average_utilization, average_value } => {
            MetricForm {
                resource: Some(name),
                container: Some(container),
                utilization: average_utilization,
                average: average_value,
                ..MetricForm::default()
            }
        }
        MetricStatus::Pods { metric, average_value } => {
            MetricForm { pods: Some(metric), average: average_value, ..MetricForm::default() }
        }
        MetricStatus::Object { metric, described_object, value, average_value } => MetricForm {
            object: Some(metric),
            of: Some(described_object),
            value,
            average: average_value,
            ..MetricForm::default()
        },
        MetricStatus::External { metric, value, average_value } => MetricForm {
            external: Some(metric),
            value,
            average: average_value,
            ..MetricForm::default()
        },
    }
}

pub(super) fn metric_of(form: MetricForm) -> Result<MetricStatus, String> {
    let MetricForm { resource, container, pods, object, of, external, value, .. } = form;
    let (average_utilization, average_value) = (form.utilization, form.average);
    Ok(match (resource, pods, object, external) {
        (None, None, None, None) => MetricStatus::Empty,
        (Some(name), None, None, None) => match container {
            None => MetricStatus::Resource { name, average_utilization, average_value },
            Some(container) => MetricStatus::ContainerResource {
                name,
                container,
                average_utilization,
                average_value,
            },
        },
        (None, Some(metric), None, None) => MetricStatus::Pods { metric, average_value },
        (None, None, Some(metric), None) => {
            let described_object = of.ok_or("a metric of no object")?;
            MetricStatus::Object { metric, described_object, value, average_value }
        }
        (None, None, None, Some(metric)) => MetricStatus::External { metric, value, average_value },
        _ => return Err("a metric of two kinds".to_owned()),
    })
}
