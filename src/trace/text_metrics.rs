//! Statuses of metrics in their recorded form: part of `text`.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::model::api::{
    ContainerResourceMetricStatus, CrossVersionObjectReference, ExternalMetricStatus,
    MetricIdentifier, MetricStatus, MetricValueStatus, ObjectMetricStatus, PodsMetricStatus,
    ResourceMetricStatus,
};
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
    let (form, current) = match metric.clone() {
        MetricStatus::Empty {} => return MetricForm::default(),
        MetricStatus::Resource { resource } => {
            let form = MetricForm { resource: Some(resource.name), ..MetricForm::default() };
            (form, resource.current)
        }
        MetricStatus::ContainerResource { container_resource: of } => {
            let (resource, container) = (Some(of.name), Some(of.container));
            (MetricForm { resource, container, ..MetricForm::default() }, of.current)
        }
        MetricStatus::Pods { pods } => {
            (MetricForm { pods: Some(pods.metric), ..MetricForm::default() }, pods.current)
        }
        MetricStatus::Object { object } => {
            let (metric, of) = (Some(object.metric), Some(object.described_object));
            (MetricForm { object: metric, of, ..MetricForm::default() }, object.current)
        }
        MetricStatus::External { external } => {
            let metric = Some(external.metric);
            (MetricForm { external: metric, ..MetricForm::default() }, external.current)
        }
    };
    MetricForm {
        utilization: current.average_utilization,
        average: current.average_value,
        value: current.value,
        ..form
    }
}

pub(super) fn metric_of(form: MetricForm) -> Result<MetricStatus, String> {
    let MetricForm { resource, container, pods, object, of, external, value, .. } = form;
    let current = MetricValueStatus {
        value,
        average_value: form.average,
        average_utilization: form.utilization,
    };
    Ok(match (resource, pods, object, external) {
        (None, None, None, None) => MetricStatus::Empty {},
        (Some(name), None, None, None) => match container {
            None => MetricStatus::Resource { resource: ResourceMetricStatus { name, current } },
            Some(container) => {
                let of = ContainerResourceMetricStatus { name, container, current };
                MetricStatus::ContainerResource { container_resource: of }
            }
        },
        (None, Some(metric), None, None) => {
            MetricStatus::Pods { pods: PodsMetricStatus { metric, current } }
        }
        (None, None, Some(metric), None) => {
            let described_object = of.ok_or("a metric of no object")?;
            let object = ObjectMetricStatus { metric, described_object, current };
            MetricStatus::Object { object }
        }
        (None, None, None, Some(metric)) => {
            MetricStatus::External { external: ExternalMetricStatus { metric, current } }
        }
        _ => return Err("a metric of two kinds".to_owned()),
    })
}
