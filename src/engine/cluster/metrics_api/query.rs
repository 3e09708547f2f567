//! A query of a metric, for people to read, and the user who sends it.

use jiff::Timestamp;
use serde::Serialize;

/// A query of a metric.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Query {
    /// When it came.
    pub at: Timestamp,
    /// The program that asked, by what it says of itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_agent: Option<String>,
    /// The user that asked, if an API server has handed it on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The group: `metrics.k8s.io`.
    pub group: String,
    /// The namespace; none: all of them, or nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// What was asked for, below the namespace: `pods`, `pods/*/jobs`, `queue_length`.
    pub what: String,
    /// Selectors and other parameters, by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parameters: Vec<(String, String)>,
    /// The HTTP status.
    pub code: u16,
    /// The answer, in short.
    pub answer: String,
}

tokio::task_local! {
    /// Who asks what is being answered.
    pub(crate) static ASKING: String;
}

/// The user that asks, as the API server has handed it on.
pub(crate) fn asking() -> String {
    ASKING.try_with(Clone::clone).unwrap_or_default()
}
