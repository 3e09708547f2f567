//! Expected and observed amounts. Each has one form for people and one for programs.

use std::fmt::{self, Display};

use serde::{Serialize, Serializer};

use kube_autoscaler_models::api::MetricValueStatus;
use kube_autoscaler_models::quantity::Quantity;
use kube_lockstep_scenario::resolved::{Bounds, ExpectedMetric};

/// An amount. In JSON, a range that contains one value is that value. Any other range is an object
/// with [`BoundsJson`].
#[derive(Clone, Copy)]
pub(super) enum Amount<'a> {
    Number(Option<i32>),
    Numbers(Bounds<i32>),
    Percent(Option<i32>),
    Percents(Bounds<i32>),
    Quantity(Option<&'a Quantity>),
    Quantities(&'a Bounds<Quantity>),
}

impl Display for Amount<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Amount::Number(None) | Amount::Percent(None) | Amount::Quantity(None) => {
                f.write_str("not set")
            }
            Amount::Number(Some(number)) => write!(f, "{number}"),
            Amount::Percent(Some(percent)) => write!(f, "{percent}%"),
            Amount::Quantity(Some(quantity)) => write!(f, "{quantity}"),
            Amount::Numbers(range) => range.fmt(f),
            Amount::Percents(range) => write!(f, "{range}%"),
            Amount::Quantities(range) => range.fmt(f),
        }
    }
}

impl Serialize for Amount<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match *self {
            Amount::Number(number) | Amount::Percent(number) => number.serialize(serializer),
            Amount::Quantity(quantity) => quantity.serialize(serializer),
            Amount::Numbers(range) | Amount::Percents(range) => match range.only() {
                Some(only) => only.serialize(serializer),
                // A number of replicas or of percent is at least 0.
                None => {
                    BoundsJson::new(Some(range.min.unwrap_or(0)), range.max).serialize(serializer)
                }
            },
            Amount::Quantities(range) => match range.only() {
                Some(only) => only.serialize(serializer),
                None => {
                    BoundsJson::new(range.min.as_ref(), range.max.as_ref()).serialize(serializer)
                }
            },
        }
    }
}

/// Bounds, for programs, as in scenarios. Version 1 of the JSON output also has the names `min` and
/// `max`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct BoundsJson<T> {
    #[serde(skip_serializing_if = "Option::is_none")]
    at_least: Option<T>,
    #[serde(skip_serializing_if = "Option::is_none")]
    at_most: Option<T>,
    #[serde(skip_serializing_if = "Option::is_none")]
    min: Option<T>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max: Option<T>,
}

impl<T: Copy> BoundsJson<T> {
    fn new(at_least: Option<T>, at_most: Option<T>) -> BoundsJson<T> {
        BoundsJson { at_least, at_most, min: at_least, max: at_most }
    }
}

/// The amounts of a metric, by field.
pub(super) struct MetricAmounts<'a>([Option<(&'static str, Amount<'a>)>; 3]);

impl<'a> MetricAmounts<'a> {
    /// Returns the expected amounts.
    pub(super) fn expected(metric: &'a ExpectedMetric) -> MetricAmounts<'a> {
        let ExpectedMetric { utilization, average_value, value, .. } = metric;
        MetricAmounts([
            utilization.map(|range| ("utilization", Amount::Percents(range))),
            average_value.as_ref().map(|range| ("averageValue", Amount::Quantities(range))),
            value.as_ref().map(|range| ("value", Amount::Quantities(range))),
        ])
    }

    /// Returns the amounts in the status, for the expected fields only.
    pub(super) fn observed(
        metric: &ExpectedMetric,
        current: &'a MetricValueStatus,
    ) -> MetricAmounts<'a> {
        let MetricAmounts(expected) = MetricAmounts::expected(metric);
        MetricAmounts(expected.map(|field| {
            let (name, _) = field?;
            let seen = match name {
                "utilization" => Amount::Percent(current.average_utilization),
                "averageValue" => Amount::Quantity(current.average_value.as_ref()),
                _ => Amount::Quantity(current.value.as_ref()),
            };
            Some((name, seen))
        }))
    }
}

impl Display for MetricAmounts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fields = self.0.iter().flatten();
        let fields: Vec<String> = fields.map(|(name, amount)| format!("{name} {amount}")).collect();
        f.write_str(&fields.join(" and "))
    }
}

impl Serialize for MetricAmounts<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().flatten().copied())
    }
}

/// A text: quoted for people, unquoted in JSON.
#[derive(Serialize)]
pub(super) struct Quoted<'a>(pub(super) &'a str);

impl Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.0)
    }
}

/// A list: `4, 6`, or `none`.
#[derive(Serialize)]
pub(super) struct List<T>(pub(super) Vec<T>);

impl<T: Display> Display for List<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let items: Vec<String> = self.0.iter().map(T::to_string).collect();
        f.write_str(if items.is_empty() { "none".to_owned() } else { items.join(", ") }.as_str())
    }
}
