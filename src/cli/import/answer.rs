//! The answers of Prometheus, which are merged if a range is queried in parts.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};

/// An answer to a range query.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Answer {
    status: String,
    #[serde(default)]
    error_type: String,
    #[serde(default)]
    error: String,
    #[serde(default)]
    pub(super) warnings: Vec<String>,
    data: Option<Data>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Data {
    result: Vec<Series>,
}

/// A series of the result. Texts and numbers stay as Prometheus wrote them.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Series {
    metric: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    values: Vec<(Number, String)>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    histograms: Vec<Value>,
}

/// The merged result.
#[derive(Debug, Default)]
pub(super) struct Merged {
    series: Vec<Series>,
    /// The index of each series, by its labels.
    known: BTreeMap<BTreeMap<String, String>, usize>,
}

/// The file, in the form of an answer.
#[derive(Serialize)]
struct File<'a> {
    status: &'a str,
    data: FileData<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FileData<'a> {
    result_type: &'a str,
    result: &'a [Series],
}

impl Answer {
    /// The kind of the error and its message, if Prometheus refused the query.
    pub(super) fn refusal(&self) -> Option<(&str, &str)> {
        (self.status != "success").then_some((&self.error_type, &self.error))
    }
}

impl Merged {
    /// Adds the next part of the range.
    pub(super) fn add(&mut self, answer: Answer) {
        for part in answer.data.map(|data| data.result).unwrap_or_default() {
            match self.known.get(&part.metric) {
                Some(index) => {
                    let series = &mut self.series[*index];
                    series.values.extend(part.values);
                    series.histograms.extend(part.histograms);
                }
                None => {
                    self.known.insert(part.metric.clone(), self.series.len());
                    self.series.push(part);
                }
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.series.is_empty()
    }

    /// The text of the file.
    pub(super) fn to_text(&self) -> Result<String, serde_json::Error> {
        let data = FileData { result_type: "matrix", result: &self.series };
        serde_json::to_string(&File { status: "success", data }).map(|text| text + "\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_series_are_joined() {
        let part = |values: &str, pod: &str| -> Answer {
            let result = format!(r#"[{{"metric": {{"pod": "{pod}"}}, "values": {values}}}]"#);
            let text = format!(
                r#"{{"status": "success", "data": {{"resultType": "matrix", "result": {result}}}}}"#
            );
            serde_json::from_str(&text).expect("an answer")
        };
        let mut merged = Merged::default();
        merged.add(part(r#"[[1, "0.10"], [2.5, "NaN"]]"#, "web-0"));
        merged.add(part(r#"[[4, "1e-3"]]"#, "web-1"));
        merged.add(part(r#"[[4, "2"]]"#, "web-0"));
        assert_eq!(
            merged.to_text().expect("a text"),
            concat!(
                r#"{"status":"success","data":{"resultType":"matrix","result":["#,
                r#"{"metric":{"pod":"web-0"},"values":[[1,"0.10"],[2.5,"NaN"],[4,"2"]]},"#,
                r#"{"metric":{"pod":"web-1"},"values":[[4,"1e-3"]]}]}}"#,
                "\n"
            )
        );
    }

    #[test]
    fn a_refusal_has_a_kind_and_a_message() {
        let text = r#"{"status":"error","errorType":"bad_data","error":"1:5: parse error"}"#;
        let answer: Answer = serde_json::from_str(text).expect("an answer");
        assert_eq!(answer.refusal(), Some(("bad_data", "1:5: parse error")));
    }
}
