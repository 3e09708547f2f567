//! The names of metrics in conditions, events and errors.

use std::fmt;

use crate::api::{
    LabelSelector, MetricIdentifier, MetricSourceType, MetricSpec, MetricTarget, MetricTargetType,
};
use crate::rules::{ObjectAverage, Rules};

/// The name of a metric in conditions and events. A metric without its source has no name, because
/// it fails before upstream names it.
///
/// Upstream: horizontal.go, metricNameProposal of each computeStatusFor…
pub(super) struct MetricName<'a> {
    /// Without a metric, the name is empty.
    pub metric: Option<&'a MetricSpec>,
    pub rules: &'a Rules,
}

impl fmt::Display for MetricName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(metric) = self.metric else { return Ok(()) };
        let MetricSpec { type_, resource, container_resource, pods, object, external } = metric;
        match type_ {
            MetricSourceType::Resource => resource.as_ref().map_or(Ok(()), |it| {
                resource_name(f, &it.name, &it.target, "resource utilization")
            }),
            MetricSourceType::ContainerResource => {
                container_resource.as_ref().map_or(Ok(()), |it| {
                    let utilization = match self.rules.texts.container_utilization_is_named {
                        true => "container resource utilization",
                        false => "resource utilization",
                    };
                    resource_name(f, &it.name, &it.target, utilization)
                })
            }
            MetricSourceType::Pods => {
                pods.as_ref().map_or(Ok(()), |it| write!(f, "pods metric {}", it.metric.name))
            }
            MetricSourceType::Object => object.as_ref().map_or(Ok(()), |it| {
                let by_value = self.rules.metrics.object_average == ObjectAverage::Total
                    || (it.target.type_ == MetricTargetType::Value && it.target.value.is_some());
                if by_value {
                    write!(f, "{} metric {}", it.described_object.kind, it.metric.name)
                } else {
                    external_name(f, &it.metric, self.rules)
                }
            }),
            MetricSourceType::External => {
                external.as_ref().map_or(Ok(()), |it| external_name(f, &it.metric, self.rules))
            }
        }
    }
}

fn resource_name(
    f: &mut fmt::Formatter<'_>,
    name: &str,
    target: &MetricTarget,
    utilization: &str,
) -> fmt::Result {
    match target.average_value {
        Some(_) => write!(f, "{name} resource"),
        None => write!(f, "{name} {utilization} (percentage of request)"),
    }
}

/// Upstream also calls an object's metric external if its target is an average.
fn external_name(
    f: &mut fmt::Formatter<'_>,
    metric: &MetricIdentifier,
    rules: &Rules,
) -> fmt::Result {
    let selector =
        GoSelector { selector: metric.selector.as_ref(), typed: rules.texts.expressions_are_typed };
    write!(f, "external metric {}({selector})", metric.name)
}

/// A selector as Go prints it with `%+v`.
///
/// Upstream: apimachinery, meta/v1/generated.pb.go, LabelSelector.String
pub(crate) struct GoSelector<'a> {
    pub selector: Option<&'a LabelSelector>,
    /// True if the expressions are printed with their types.
    pub typed: bool,
}

impl fmt::Display for GoSelector<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(selector) = self.selector else {
            return f.write_str("nil");
        };
        f.write_str("&LabelSelector{MatchLabels:map[string]string{")?;
        for (key, value) in &selector.match_labels {
            write!(f, "{key}: {value},")?;
        }
        f.write_str("},MatchExpressions:[")?;
        if !self.typed {
            for (index, expression) in selector.match_expressions.iter().enumerate() {
                let before = if index > 0 { " " } else { "" };
                let values = expression.values.join(" ");
                let (key, operator) = (&expression.key, &expression.operator);
                write!(f, "{before}{{{key} {operator} [{values}]}}")?;
            }
            return f.write_str("],}");
        }
        f.write_str("]LabelSelectorRequirement{")?;
        for expression in &selector.match_expressions {
            let values = expression.values.join(" ");
            write!(
                f,
                "LabelSelectorRequirement{{Key:{},Operator:{},Values:[{values}],}},",
                expression.key, expression.operator
            )?;
        }
        f.write_str("},}")
    }
}
