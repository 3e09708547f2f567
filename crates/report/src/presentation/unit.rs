//! The units of charts: their axes, and their values as text.

use crate::metric;
use crate::scale::ValueAxis;
use kube_autoscaler_models::derivation::{MetricDerivation, Source};
use kube_autoscaler_models::quantity::{Format, Quantity, human};
use kube_autoscaler_models::vpa::Resource;

/// The unit of the values of a chart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Unit {
    /// A number of objects.
    Count,
    /// Percent of the request.
    Percent,
    /// Thousandths of a byte.
    Bytes,
    /// Thousandths of a core, in the notation of manifests: `1500m`.
    Millicores,
    /// Thousandths of a core, for people: `1.5 cores`.
    Cores,
    /// Thousandths of anything else.
    Decimal,
}

/// The size of a chart.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    /// The height, in pixels; 1 in a terminal.
    pub height: f64,
    /// The approximate number of labels above 0.
    pub labels: usize,
}

impl Unit {
    /// The unit of the values of a metric, and of its target.
    pub(crate) fn for_metric(like: &MetricDerivation) -> Unit {
        match metric::unit(like) {
            metric::Unit::Percent => Unit::Percent,
            _ if like.is_in_bytes() => Unit::Bytes,
            _ if is_resource(like) && *like.name == *"cpu" => Unit::Millicores,
            _ => Unit::Decimal,
        }
    }

    /// The unit of the amounts of a resource.
    pub(crate) fn for_resource(resource: Resource) -> Unit {
        match resource {
            Resource::Cpu => Unit::Cores,
            Resource::Memory => Unit::Bytes,
        }
    }

    /// An axis with labels at round numbers in the unit of the labels.
    pub(crate) fn axis(self, largest: f64, size: Size) -> ValueAxis {
        let Size { height, labels } = size;
        match self {
            Unit::Count | Unit::Percent => ValueAxis::up_to(largest, height, labels, true),
            Unit::Bytes => {
                let size = human::byte_unit(largest / 1000.0).size * 1000.0;
                ValueAxis::up_to(largest / size, height, labels, false).times(size)
            }
            Unit::Millicores | Unit::Cores | Unit::Decimal => {
                ValueAxis::up_to(largest, height, labels, false)
            }
        }
    }

    /// The label of a value on an axis.
    pub(crate) fn label(self, value: f64) -> String {
        match self {
            Unit::Count => format!("{value:.0}"),
            Unit::Percent => format!("{value:.0}%"),
            Unit::Bytes => human::bytes(value),
            Unit::Cores => short_cores(value),
            Unit::Millicores | Unit::Decimal => human::decimal(value.round() as i64),
        }
    }

    /// A value in a sentence.
    pub(crate) fn text(self, value: f64) -> String {
        match self {
            Unit::Percent => {
                let text = format!("{value:.1}");
                format!("{}%", text.strip_suffix(".0").unwrap_or(&text))
            }
            Unit::Cores => cores(value),
            Unit::Millicores => {
                Quantity::from_milli(value.round() as i64, Format::DecimalSI).to_string()
            }
            Unit::Count | Unit::Bytes | Unit::Decimal => self.label(value),
        }
    }
}

fn is_resource(metric: &MetricDerivation) -> bool {
    matches!(metric.source, Source::Resource | Source::ContainerResource(_))
}

/// Thousandths of a core on an axis: `250m`, `2.5`.
fn short_cores(value: f64) -> String {
    if value < 1000.0 {
        return human::decimal(value.round() as i64);
    }
    let cores = value / 1000.0;
    let text = if cores < 10.0 { format!("{cores:.2}") } else { format!("{cores:.1}") };
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Thousandths of a core: `182m`, `1 core`, `211.9 cores`.
fn cores(value: f64) -> String {
    let text = short_cores(value);
    match text.as_str() {
        "1" => "1 core".to_owned(),
        _ if value < 1000.0 => text,
        _ => format!("{text} cores"),
    }
}
