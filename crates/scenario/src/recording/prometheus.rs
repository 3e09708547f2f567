//! Saved answers of Prometheus' HTTP API to a range query, and the output of
//! `promtool query range -o json`.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::timestamp::Timestamp;
use super::{Raw, Series};
use crate::diagnostic::Diagnostic;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Answer<'t> {
    status: Option<String>,
    error: Option<String>,
    error_type: Option<String>,
    #[serde(borrow)]
    data: Option<Data<'t>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Data<'t> {
    result_type: String,
    #[serde(borrow)]
    result: &'t RawValue,
}

#[derive(Deserialize)]
struct Result_<'t> {
    #[serde(default)]
    metric: BTreeMap<String, String>,
    #[serde(borrow, default)]
    values: Vec<(f64, &'t str)>,
    #[serde(default)]
    histograms: Option<serde::de::IgnoredAny>,
}

/// An answer to a range query as Prometheus writes it, read in one pass.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct UsualAnswer<'t> {
    #[serde(borrow)]
    data: UsualData<'t>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct UsualData<'t> {
    result_type: String,
    #[serde(borrow)]
    result: Vec<Result_<'t>>,
}

/// Reads all series.
pub(super) fn read(text: &str) -> Result<Vec<Series>, Diagnostic> {
    if let Ok(UsualAnswer { data }) = serde_json::from_str(text)
        && data.result_type == "matrix"
    {
        return data.result.into_iter().map(series).collect();
    }
    // Anything else, with a message for each mistake.
    let matrix = if text.trim_start().starts_with('[') { text } else { matrix(text)? };
    let results: Vec<Result_<'_>> = serde_json::from_str(matrix).map_err(|error| {
        Diagnostic::new(format!(": the result of the query can't be read: {error}"))
    })?;
    results.into_iter().map(series).collect()
}

/// The result of a successful range query.
fn matrix(text: &str) -> Result<&str, Diagnostic> {
    let query = "save the response of /api/v1/query_range";
    let answer: Answer<'_> = serde_json::from_str(text).map_err(|error| {
        let place = format!("{}:{}", error.line(), error.column());
        let why = error.to_string();
        let why = why.split(" at line ").next().unwrap_or_default();
        let hint = match text.trim_start().chars().next() {
            Some('<') => {
                "this is a web page, for example of a login or of an error: save the \
                          response with `kube-lockstep import prometheus`, which has options for \
                          authentication"
            }
            Some('{') if error.is_eof() => "the file ends too early: save the response again",
            Some('{') | None => query,
            Some(_) => {
                "if it is a CSV file or OpenMetrics text, use `csv` or `openMetrics` in \
                        place of `prometheus`"
            }
        };
        Diagnostic::new(format!(":{place}: not a Prometheus response: {why}")).hint(hint)
    })?;
    if answer.status.as_deref() == Some("error") {
        let kind = answer.error_type.unwrap_or_else(|| "error".to_owned());
        let error = answer.error.unwrap_or_default();
        let what = format!(": Prometheus did not answer the query: {kind}: {error}");
        let hint = "correct the query, and save the response again";
        return Err(Diagnostic::new(what).hint(hint));
    }
    let Some(data) = answer.data else {
        return Err(Diagnostic::new(": not a Prometheus response: it has no `data`").hint(query));
    };
    if data.result_type != "matrix" {
        let what = format!(": expected the result of a range query, found a {}", data.result_type);
        return Err(Diagnostic::new(what).hint(query));
    }
    Ok(data.result.get())
}

fn series(result: Result_<'_>) -> Result<Series, Diagnostic> {
    let Result_ { metric, values, histograms } = result;
    if values.is_empty() && histograms.is_some() {
        let what = ": a native histogram has no single value";
        return Err(Diagnostic::new(what).hint("query one, for example histogram_avg(…)"));
    }
    let raw = |(at, value): (f64, &str)| {
        let found = Timestamp::from_unix(at).zip(value.parse().ok());
        let malformed =
            || Diagnostic::new(format!(": expected [TIME, \"VALUE\"], found [{at}, {value:?}]"));
        found.map(|(at, value)| Raw { at, value }).ok_or_else(malformed)
    };
    let samples = values.into_iter().map(raw).collect::<Result<_, _>>()?;
    Ok(Series { labels: metric, samples, ..Series::default() })
}
