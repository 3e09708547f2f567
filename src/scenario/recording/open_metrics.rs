//! OpenMetrics text and Prometheus' text format: lines `NAME{LABEL="VALUE",…} VALUE TIME`. Each
//! sample requires a timestamp, since a recording has several samples of each series.

use std::collections::BTreeMap;

use super::timestamp::Timestamp;
use super::{Raw, RecordingError, Series};

/// Reads all series. The name of the metric is the label `__name__`.
pub(super) fn read(text: &str) -> Result<Vec<Series>, RecordingError> {
    let mut series: BTreeMap<&str, Series> = BTreeMap::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let at_line = |what: &str| RecordingError::new(format!(":{}: {what}", index + 1));
        let sample = Sample::read(line).map_err(|what| match what {
            NO_TIME => at_line(what).hint(
                "save a range of times, with `kube-lockstep import prometheus` or `promtool tsdb \
                 dump-openmetrics`",
            ),
            _ => at_line(what),
        })?;
        let known = series.entry(sample.series).or_default();
        if known.labels.is_empty() {
            known.labels = labels(sample.series).map_err(at_line)?;
        }
        known.samples.push(sample.raw);
    }
    Ok(series.into_values().collect())
}

/// The problem of a sample without a timestamp, as on a page of metrics.
const NO_TIME: &str = "a sample of a recording requires a timestamp";

struct Sample<'t> {
    /// The name with its labels.
    series: &'t str,
    raw: Raw,
}

impl<'t> Sample<'t> {
    fn read(line: &'t str) -> Result<Sample<'t>, &'static str> {
        let end = match line.find('{') {
            Some(open) => open + end_of_labels(&line[open..]).ok_or("a `}` is missing")?,
            None => line.find(char::is_whitespace).ok_or("expected NAME VALUE TIME")?,
        };
        let (series, rest) = line.split_at(end);
        // An exemplar follows the sample.
        let rest = rest.split(" # ").next().unwrap_or_default();
        let mut parts = rest.split_whitespace();
        let value = parts.next().ok_or("a value is missing")?;
        let value = value.parse().map_err(|_| "the value is not a number")?;
        let at = parts.next().ok_or(NO_TIME)?;
        let at = at.parse().ok().and_then(Timestamp::of_unix);
        let at = at.ok_or("the timestamp is not a Unix time")?;
        match parts.next() {
            None => Ok(Sample { series, raw: Raw { at, value } }),
            Some(_) => Err("expected NAME VALUE TIME"),
        }
    }
}

/// The length of `{…}`, whose values may contain braces.
fn end_of_labels(text: &str) -> Option<usize> {
    let (mut quoted, mut escaped) = (false, false);
    for (index, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            '}' if !quoted => return Some(index + 1),
            _ => {}
        }
    }
    None
}

/// The labels of `NAME{LABEL="VALUE",…}`, with the name.
pub(super) fn labels(series: &str) -> Result<BTreeMap<String, String>, &'static str> {
    let (name, mut rest) = series.split_once('{').unwrap_or((series, ""));
    let mut labels = BTreeMap::from([("__name__".to_owned(), name.to_owned())]);
    loop {
        rest = rest.trim_start_matches([',', ' ']);
        if rest.is_empty() || rest == "}" {
            return Ok(labels);
        }
        let (label, quoted) = rest.split_once("=\"").ok_or("expected LABEL=\"VALUE\"")?;
        let mut value = String::new();
        let mut chars = quoted.char_indices();
        let end = loop {
            match chars.next() {
                Some((index, '"')) => break index,
                Some((_, '\\')) => match chars.next() {
                    Some((_, 'n')) => value.push('\n'),
                    Some((_, c)) => value.push(c),
                    None => return Err("a quotation mark is missing"),
                },
                Some((_, c)) => value.push(c),
                None => return Err("a quotation mark is missing"),
            }
        };
        labels.insert(label.trim().to_owned(), value);
        rest = &quoted[end + 1..];
    }
}
