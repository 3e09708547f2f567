//! A metric of an HPA in reports: its value and its target, in the unit of the target.

use kube_autoscaler_models::derivation::{MetricDerivation, Target};

/// A unit of values and targets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Unit {
    /// Percent of the request.
    Percent,
    /// Thousandths, averaged over the pods.
    Average,
    /// Thousandths in total.
    Total,
}

impl Unit {
    /// The unit for captions.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Unit::Percent => "percent of the request",
            Unit::Average => "average over the pods",
            Unit::Total => "value",
        }
    }
}

/// The unit of a metric's value and target.
pub(crate) fn unit(metric: &MetricDerivation) -> Unit {
    match metric.target {
        Target::Utilization(_) => Unit::Percent,
        Target::AverageValue(_) => Unit::Average,
        Target::Value(_) | Target::None => Unit::Total,
    }
}

/// The value that the controller compared with the target. `None`: the metric failed.
pub(crate) fn value(metric: &MetricDerivation) -> Option<f64> {
    let usage = metric.usage.filter(|_| metric.error.is_none())?;
    match unit(metric) {
        Unit::Percent => usage.utilization.map(f64::from),
        Unit::Average => Some(usage.average as f64),
        Unit::Total => Some(usage.total as f64),
    }
}

/// The target, in the [unit] of the metric. `None`: the metric failed before it was read.
pub(crate) fn target(metric: &MetricDerivation) -> Option<f64> {
    match metric.target {
        Target::Utilization(percent) => Some(f64::from(percent)),
        Target::AverageValue(milli) | Target::Value(milli) => Some(milli as f64),
        Target::None => None,
    }
}

/// Returns true if both are the same metric, with targets in the same unit. An edit can change a
/// metric to another one.
pub(crate) fn is_same(one: &MetricDerivation, other: &MetricDerivation) -> bool {
    (&one.name, &one.source, unit(one)) == (&other.name, &other.source, unit(other))
}
