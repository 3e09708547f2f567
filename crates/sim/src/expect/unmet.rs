//! Unmet expectations: as text, and field by field for programs.

use std::fmt::Display;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use kube_autoscaler_models::time::Time;

/// An expectation that was not met.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Unmet {
    /// The number of the expectation in the scenario, from 1.
    #[serde(default, rename = "expectation")]
    pub number: usize,
    /// The line in the scenario's file, from 1.
    pub line: usize,
    /// The expected and the observed value: `tick 3 (t=30s): replicas: expected 6, was 4`.
    pub what: String,
    /// The HPA that the expectation is restricted to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hpa: Option<Arc<str>>,
    /// The VPA that the expectation concerns, in a scenario that also has an HPA. The tick is then
    /// a run of the recommender.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vpa: Option<Arc<str>>,
    /// The reconcile; `None` if the run has no such reconcile.
    #[serde(flatten)]
    pub tick: Option<UnmetTick>,
    /// The values that were not as expected.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<UnmetValue>,
    /// How the model derived the result of the reconcile, in one line; empty if it is not known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
}

/// The reconcile at which an expectation was not met.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct UnmetTick {
    /// Its number, from 1, among all reconciles or those of the expectation's HPA.
    pub tick: usize,
    /// Its time.
    #[serde(with = "kube_autoscaler_models::as_text")]
    pub at: Time,
    /// Its index among all reconciles.
    #[serde(skip)]
    pub index: usize,
}

/// A value that was not as expected.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UnmetValue {
    /// The field, for example `replicas` or `condition ScalingLimited`.
    pub field: String,
    /// The time, if it is not the time of the reconcile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
    /// The expected value.
    pub expected: String,
    /// The observed value.
    pub observed: String,
    /// The expected value for programs: a number, bounds, a list, a text, or several of them by
    /// name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_value: Option<Value>,
    /// The observed value in the same form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_value: Option<Value>,
}

impl UnmetValue {
    /// Returns a value whose texts and JSON values come from the same expected and observed values.
    pub(crate) fn new(
        field: &str,
        expected: &(impl Display + Serialize),
        observed: &(impl Display + Serialize),
    ) -> UnmetValue {
        UnmetValue::text(field, expected.to_string(), observed.to_string())
            .with_values(json!(expected), json!(observed))
    }

    /// A value that is only text.
    pub(crate) fn text(field: &str, expected: String, observed: String) -> UnmetValue {
        UnmetValue {
            field: field.to_owned(),
            of: None,
            expected,
            observed,
            expected_value: None,
            observed_value: None,
        }
    }

    /// Adds the values for programs.
    pub(crate) fn with_values(self, expected: Value, observed: Value) -> UnmetValue {
        UnmetValue { expected_value: Some(expected), observed_value: Some(observed), ..self }
    }
}

impl Unmet {
    /// Sets the reason for the result of the reconcile. `why` gives it for a reconcile, by its
    /// index among all reconciles.
    #[must_use]
    pub fn with_reason(mut self, why: impl Fn(usize) -> Option<String>) -> Unmet {
        self.why = self.tick.and_then(|tick| why(tick.index)).unwrap_or_default();
        self
    }
}

/// Why an expectation is not met.
#[derive(Debug)]
pub(super) struct Miss {
    /// The text.
    pub what: String,
    /// The reconcile.
    pub tick: Option<UnmetTick>,
    /// The values that were not as expected.
    pub values: Vec<UnmetValue>,
}

impl Miss {
    /// A miss that belongs to no reconcile.
    pub(super) fn plain(what: String) -> Miss {
        Miss { what, tick: None, values: Vec::new() }
    }
}
