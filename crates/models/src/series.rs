//! Changes of the controller's own Prometheus metrics.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

use super::api::Text;

/// The change of one series of the controller's own metrics in a reconcile.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SeriesChange {
    /// The series without the prefix `horizontal_pod_autoscaler_controller_` and without quotation
    /// marks: `reconciliations_total{action=none,error=none}`. Those of the work queue have no
    /// labels: `workqueue_adds_total`.
    #[schemars(with = "String")]
    pub series: Text,
    /// The change.
    #[serde(flatten)]
    pub change: Amount,
}

/// The change of a series.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Amount {
    /// The increase of a counter; in seconds, if it counts time.
    #[serde(serialize_with = "number")]
    Increase(f64),
    /// The new value of a gauge.
    #[serde(serialize_with = "number")]
    Value(f64),
}

/// Writes a number without a fraction as an integer.
fn number<S: Serializer>(number: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    match *number as i64 {
        integer if integer as f64 == *number => serializer.serialize_i64(integer),
        _ => serializer.serialize_f64(*number),
    }
}

impl SeriesChange {
    /// Returns true if the series is one of the controller's work queue.
    #[must_use]
    pub fn is_of_work_queue(&self) -> bool {
        self.series.as_str().starts_with("workqueue_")
    }

    /// Returns true if the series is a bucket of a histogram.
    #[must_use]
    pub fn is_bucket(&self) -> bool {
        let series = self.series.as_str();
        series.split_once('{').is_some_and(|(name, _)| name.ends_with("_bucket"))
    }

    /// The increase of a counter.
    pub(crate) fn increase(series: impl Into<Text>, increase: f64) -> SeriesChange {
        SeriesChange { series: series.into(), change: Amount::Increase(increase) }
    }

    /// The new value of a gauge.
    pub(crate) fn value(series: impl Into<Text>, value: f64) -> SeriesChange {
        SeriesChange { series: series.into(), change: Amount::Value(value) }
    }
}

/// `+1` for a counter, `3` for a gauge.
impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Amount::Increase(increase) => write!(f, "{increase:+}"),
            Amount::Value(value) => value.fmt(f),
        }
    }
}

impl fmt::Display for SeriesChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.series, self.change)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_and_gauges_have_different_json() {
        for (change, json, text) in [
            (
                SeriesChange::increase("a_total{b=c}", 1.0),
                r#"{"series":"a_total{b=c}","increase":1}"#,
                "a_total{b=c} +1",
            ),
            (
                SeriesChange::increase("a_seconds_sum", 0.02),
                r#"{"series":"a_seconds_sum","increase":0.02}"#,
                "a_seconds_sum +0.02",
            ),
            (SeriesChange::value("a", -3.0), r#"{"series":"a","value":-3}"#, "a -3"),
        ] {
            assert_eq!(serde_json::to_string(&change).unwrap(), json);
            assert_eq!(serde_json::from_str::<SeriesChange>(json).unwrap(), change);
            assert_eq!(change.to_string(), text);
        }
    }
}
