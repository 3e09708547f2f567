//! OpenMetrics text and Prometheus' text format: lines `NAME{LABEL="VALUE",…} VALUE TIME`, in which
//! the name can also be `{"NAME",LABEL="VALUE",…}`, and names of labels can be quoted as well. Each
//! sample requires a timestamp, since a recording has several samples of each series.
//!
//! The published parsers do not fit: `openmetrics-parser` 0.5 has a copyleft license (LGPL-3.0);
//! `prometheus-parse` 0.2 ignores lines that it can't read, has no positions in errors, and knows
//! neither quoted names, colons in names, nor timestamps with fractions.

use std::collections::{BTreeMap, BTreeSet};

use super::timestamp::Timestamp;
use super::{Raw, Series};
use crate::diagnostic::Diagnostic;

/// Reads all series. The name of the metric is the label `__name__`.
pub(super) fn read(text: &str) -> Result<Vec<Series>, Diagnostic> {
    // Each text of a series, which may write the labels in another order, with its index.
    let mut known: BTreeMap<&str, usize> = BTreeMap::new();
    let mut indices: BTreeMap<BTreeMap<String, String>, usize> = BTreeMap::new();
    let mut all: Vec<Series> = Vec::new();
    let counters: BTreeSet<&str> = text.lines().filter_map(declared_counter).collect();
    for (number, sample) in samples(text) {
        let at_line = |what: &str| Diagnostic::new(format!(":{number}: {what}"));
        let sample = sample.map_err(|what| match what {
            NO_TIME => at_line(what).hint(
                "save a range of times, with `kube-lockstep import prometheus` or `promtool tsdb \
                 dump-openmetrics`",
            ),
            _ => at_line(what),
        })?;
        let index = match known.get(sample.series) {
            Some(index) => *index,
            None => {
                let labels = labels(sample.series).map_err(at_line)?;
                let index = *indices.entry(labels.clone()).or_insert(all.len());
                if index == all.len() {
                    let name = labels.get("__name__").map_or("", String::as_str);
                    let is_counter = counters.contains(name);
                    all.push(Series { labels, is_counter, ..Series::default() });
                }
                known.insert(sample.series, index);
                index
            }
        };
        all[index].samples.push(sample.raw);
    }
    for series in &mut all {
        unique_times(series, text)?;
    }
    Ok(all)
}

/// The name in a line such as `# TYPE requests counter`.
fn declared_counter(line: &str) -> Option<&str> {
    let mut words = line.split_whitespace();
    let is_type = words.next() == Some("#") && words.next() == Some("TYPE");
    let name = words.next().filter(|_| is_type)?;
    (words.next() == Some("counter")).then_some(name)
}

/// The samples, each with the number of its line.
fn samples(text: &str) -> impl Iterator<Item = (usize, Result<Sample<'_>, &'static str>)> {
    let lines = (1..).zip(text.lines().map(str::trim));
    let samples = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    samples.map(|(number, line)| (number, Sample::read(line)))
}

/// Sorts the samples of a series, and drops repetitions. Two values at one time are an error.
fn unique_times(series: &mut Series, text: &str) -> Result<(), Diagnostic> {
    series.samples.sort_by_key(|raw| raw.at);
    let is_same = |one: &Raw, other: &Raw| one.value.to_bits() == other.value.to_bits();
    let mut pairs = series.samples.windows(2);
    let twice = pairs.find(|pair| pair[0].at == pair[1].at && !is_same(&pair[0], &pair[1]));
    if let Some([first, second]) = twice {
        let is_one = |sample: &Sample<'_>| {
            sample.raw.at == second.at
                && is_same(&sample.raw, second)
                && labels(sample.series).is_ok_and(|labels| labels == series.labels)
        };
        let line = samples(text).find(|(_, sample)| sample.as_ref().is_ok_and(is_one));
        let (line, of) = (line.map_or(0, |(line, _)| line), super::shown(&series.labels));
        let what = format!(
            ":{line}: a second value of {of} at {}: {}, and before {}",
            second.at, second.value, first.value
        );
        let hint = "a series has one value at each time: remove the other one, or set a label that \
                    distinguishes the series";
        return Err(Diagnostic::new(what).hint(hint));
    }
    series.samples.dedup_by_key(|raw| raw.at);
    Ok(())
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
        let space = line.find(char::is_whitespace).ok_or("expected NAME VALUE TIME")?;
        // An exemplar, which has braces as well, follows the sample.
        let labels = line.find('{').filter(|open| line[..*open].trim_end().len() <= space);
        let end = match labels {
            Some(open) => open + end_of_labels(&line[open..]).ok_or("a `}` is missing")?,
            None => space,
        };
        let (series, rest) = line.split_at(end);
        // An exemplar follows the sample.
        let rest = rest.split(" # ").next().unwrap_or_default();
        let mut parts = rest.split_whitespace();
        let value = parts.next().ok_or("a value is missing")?;
        let value = value.parse().map_err(|_| "the value is not a number")?;
        let at = parts.next().ok_or(NO_TIME)?;
        let at = at.parse().ok().and_then(Timestamp::from_unix);
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

/// The problem of a malformed label.
const NO_LABEL: &str = "expected LABEL=\"VALUE\"";

/// The labels of `NAME{LABEL="VALUE",…}` or `{"NAME",LABEL="VALUE",…}`, with the name.
pub(super) fn labels(series: &str) -> Result<BTreeMap<String, String>, &'static str> {
    let (name, mut rest) = series.split_once('{').unwrap_or((series, ""));
    let mut name = name.trim_end().to_owned();
    let mut labels = BTreeMap::new();
    loop {
        rest = rest.trim_start_matches(|c: char| c == ',' || c.is_whitespace());
        if rest.is_empty() || rest == "}" {
            break;
        }
        let (label, after) = match rest.strip_prefix('"') {
            Some(text) => quoted(text)?,
            None => {
                let end = rest.find('=').ok_or(NO_LABEL)?;
                (rest[..end].trim_end().to_owned(), &rest[end..])
            }
        };
        let Some(value) = after.trim_start().strip_prefix('=') else {
            if !name.is_empty() {
                return Err("a second name of the metric");
            }
            (name, rest) = (label, after);
            continue;
        };
        let text = value.trim_start().strip_prefix('"').ok_or(NO_LABEL)?;
        let (value, after) = quoted(text)?;
        if labels.insert(label, value).is_some() {
            return Err("a label is given twice");
        }
        rest = after;
    }
    labels.insert("__name__".to_owned(), name);
    Ok(labels)
}

/// Reads a text up to its quotation mark. Returns it, and what follows.
fn quoted(text: &str) -> Result<(String, &str), &'static str> {
    let mut value = String::new();
    let mut chars = text.char_indices();
    loop {
        match chars.next() {
            Some((end, '"')) => return Ok((value, &text[end + 1..])),
            Some((_, '\\')) => match chars.next() {
                Some((_, 'n')) => value.push('\n'),
                Some((_, c)) => value.push(c),
                None => return Err("a quotation mark is missing"),
            },
            Some((_, c)) => value.push(c),
            None => return Err("a quotation mark is missing"),
        }
    }
}
