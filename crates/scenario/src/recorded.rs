//! Signals that were recorded: a CSV file, a saved Prometheus response, or OpenMetrics text.

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::signal::count_until;
use super::syntax::Syntax;
use super::text::{AnyQuantity, As, PositiveDuration};
use kube_autoscaler_models::is_default::is_default;
use kube_autoscaler_models::quantity::Quantity;
use kube_autoscaler_models::time::{Span, Time};

/// A signal from a file. The resolution reads the file and fills `samples`.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Recorded {
    /// The file and its format.
    #[serde(flatten)]
    pub source: RecordedSource,
    /// The column of times, in a CSV file. None: the first column.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
    /// The column of values, in a CSV file; with `*` for any text, all columns that match. None:
    /// the only other column.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// The label or column that distinguishes the pods, each of which has its own series.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Labels of the series, or values of other columns, by which samples are selected.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub series: BTreeMap<String, String>,
    /// True if several series are added up.
    #[serde(skip_serializing_if = "is_default")]
    pub sum: bool,
    /// The decimal mark of the numbers, in a CSV file. None: the one that the file has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decimal: Option<DecimalMark>,
    /// The unit of the values. None: 1.
    #[serde(with = "As::<Option<AnyQuantity>>", skip_serializing_if = "Option::is_none")]
    pub unit: Option<Quantity>,
    /// The unit as a percentage of the request, if it was given as one.
    #[serde(skip)]
    pub percent: Option<f64>,
    /// How long a value is valid if no other value follows. None: one and a half times the median
    /// interval.
    #[serde(with = "As::<Option<PositiveDuration>>", skip_serializing_if = "Option::is_none")]
    pub hold: Option<Span>,
    /// The timestamp at t=0. None: the first one of the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<String>,
    /// The syntax of hints: that in which the user wrote the signal.
    #[serde(skip)]
    pub syntax: Syntax,
    /// The values. Each one holds until the next one.
    #[serde(skip)]
    pub samples: Arc<[RecordedSample]>,
}

/// The file of a recorded signal, by its format.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum RecordedSource {
    /// A CSV file with a header.
    Csv(String),
    /// The JSON of a range query to Prometheus.
    Prometheus(String),
    /// OpenMetrics text, or Prometheus' text format, with timestamps.
    OpenMetrics(String),
}

/// The decimal mark of the numbers in a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum DecimalMark {
    /// `0,25`.
    Comma,
    /// `0.25`.
    Point,
}

/// A value from a time on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RecordedSample {
    /// The time.
    pub at: Time,
    /// The value in milli-units. None: there is no sample.
    pub milli: Option<i64>,
}

impl RecordedSource {
    /// The path of the file, mutable.
    pub fn path_mut(&mut self) -> &mut String {
        match self {
            RecordedSource::Csv(path)
            | RecordedSource::Prometheus(path)
            | RecordedSource::OpenMetrics(path) => path,
        }
    }

    /// The path of the file, relative to the scenario.
    #[must_use]
    pub fn path(&self) -> &str {
        match self {
            RecordedSource::Csv(path)
            | RecordedSource::Prometheus(path)
            | RecordedSource::OpenMetrics(path) => path,
        }
    }
}

impl Recorded {
    /// A signal that is not read yet.
    pub fn new(source: RecordedSource) -> Recorded {
        Recorded {
            source,
            time: None,
            value: None,
            by: None,
            series: BTreeMap::new(),
            sum: false,
            decimal: None,
            unit: None,
            percent: None,
            hold: None,
            start: None,
            syntax: Syntax::default(),
            samples: Arc::new([]),
        }
    }

    /// The sample at a time; None if there is none.
    #[must_use]
    pub fn at(&self, time: Time) -> Option<i64> {
        let passed = count_until(&self.samples, time, |sample| sample.at);
        self.samples.get(passed.checked_sub(1)?)?.milli
    }
}
