//! Statuses in a line, for people who look at a difference.

use std::fmt::Write as _;

use crate::model::api::{CrossVersionObjectReference, HpaStatus, MetricIdentifier, MetricStatus};

/// A status in one line, for people.
#[must_use]
pub fn status_line(status: &HpaStatus) -> String {
    let mut line = format!("desiredReplicas {}", status.desired_replicas);
    if let Some(current) = status.current_replicas {
        let _ = write!(line, ", currentReplicas {current}");
    }
    for metric in &status.current_metrics {
        let _ = write!(line, ", {}", metric_status_line(metric));
    }
    for condition in &status.conditions {
        let on = if condition.status { "True" } else { "False" };
        let _ = write!(line, ", {:?}={on}/{}", condition.type_, condition.reason);
    }
    line
}

/// A metric's status in one line, for people. Two statuses that differ have different lines.
#[must_use]
pub fn metric_status_line(metric: &MetricStatus) -> String {
    let (mut line, utilization, value, average) = match metric {
        MetricStatus::Empty => return "(failed metric)".to_owned(),
        MetricStatus::Resource { name, average_utilization, average_value } => {
            (name.to_string(), average_utilization, &None, average_value)
        }
        MetricStatus::ContainerResource { name, container, average_utilization, average_value } => {
            (format!("{name} of container {container}"), average_utilization, &None, average_value)
        }
        MetricStatus::Pods { metric, average_value } => {
            (format!("pods metric {}", metric_line(metric)), &None, &None, average_value)
        }
        MetricStatus::Object { metric, described_object, value, average_value } => {
            let metric = metric_line(metric);
            let CrossVersionObjectReference { kind, name, api_version } = &**described_object;
            let version = api_version.as_ref().map(|it| format!("{it} ")).unwrap_or_default();
            let line = format!("metric {metric} of {version}{kind} {name}");
            (line, &None, value, average_value)
        }
        MetricStatus::External { metric, value, average_value } => {
            (format!("external metric {}", metric_line(metric)), &None, value, average_value)
        }
    };
    if let Some(utilization) = utilization {
        let _ = write!(line, " {utilization}%");
    }
    if let Some(value) = value {
        let _ = write!(line, " {value}");
    }
    if let Some(value) = average {
        let _ = write!(line, " ({value} each)");
    }
    line
}

/// A metric's name, with the selector as it is written in the HPA.
fn metric_line(metric: &MetricIdentifier) -> String {
    let selector = metric.selector.as_ref().and_then(|it| serde_json::to_string(it).ok());
    match selector {
        None => metric.name.to_string(),
        Some(selector) => format!("{} {selector}", metric.name),
    }
}
