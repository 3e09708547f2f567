//! The durations in the tree of a scenario file.

use serde_json::Value;

use crate::model::time::Span;

/// Fields with durations, by name: `5m` alone could be five minutes or five thousandths.
const DURATIONS: [&str; 16] = [
    "metricsSlow",
    "cacheLag",
    "at",
    "for",
    "until",
    "age",
    "pending",
    "ready",
    "metrics",
    "termination",
    "readyWhileTerminating",
    "window",
    "lag",
    "resolution",
    "period",
    "offset",
];

/// The duration of a field, if the field has one by its name.
pub(super) fn span(name: &str, value: &Value) -> Option<Span> {
    let flag = name.starts_with("horizontal-pod-autoscaler-");
    let text = value.as_str().filter(|_| flag || DURATIONS.contains(&name))?;
    text.parse().ok()
}
