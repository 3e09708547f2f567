//! CSV files with a header: a column of times, a column of values, and possibly columns that
//! distinguish series.

use std::collections::BTreeMap;

use csv::{ReaderBuilder, StringRecord, Trim};

use super::timestamp::{self, Timestamp};
use super::{Raw, RecordingError, Series};
use crate::model::quantity::Quantity;
use crate::scenario::error::suggest;
use crate::scenario::node::shorten;
use crate::scenario::recorded::Recorded;

/// The columns of a file.
struct Columns {
    time: usize,
    value: usize,
    by: Option<usize>,
    /// The columns by which rows are selected, each with the index of its value.
    selected: Vec<(usize, String)>,
}

/// Reads the series of a file: one, or one for each value of the column `by`.
pub(super) fn read(recorded: &Recorded, text: &str) -> Result<Vec<Series>, RecordingError> {
    let mut builder = ReaderBuilder::new();
    builder.trim(Trim::All).comment(Some(b'#'));
    // Spreadsheets of many countries separate columns by semicolons.
    let head = text.lines().find(|line| !line.starts_with('#')).unwrap_or_default();
    if head.contains(';') && !head.contains(',') {
        builder.delimiter(b';');
    }
    let mut reader = builder.from_reader(text.trim_start_matches('\u{feff}').as_bytes());
    let header = reader.headers().map_err(|error| problem(&error))?.clone();
    let columns = Columns::find(recorded, &header)?;
    let mut series: BTreeMap<String, Series> = BTreeMap::new();
    let mut row = StringRecord::new();
    while reader.read_record(&mut row).map_err(|error| problem(&error))? {
        let line = row.position().map_or(0, csv::Position::line);
        let field = |column: usize| row.get(column).unwrap_or_default();
        if columns.selected.iter().any(|(column, value)| field(*column) != value) {
            continue;
        }
        let at_line = |what: String| RecordingError::new(format!(":{line}: {what}"));
        let time = field(columns.time);
        let at = Timestamp::parse(time).ok_or_else(|| {
            let what = format!("expected a time, found {}", shorten(time));
            at_line(what).hint(timestamp::EXAMPLE)
        })?;
        let text = field(columns.value);
        let value = number(text).ok_or_else(|| {
            let what = format!("expected a number or a quantity, found {}", shorten(text));
            at_line(what).hint("leave a field empty if there is no value")
        })?;
        let key = columns.by.map_or("", field);
        let known = match series.get_mut(key) {
            Some(known) => known,
            None => series.entry(key.to_owned()).or_default(),
        };
        known.samples.push(Raw { at, value });
    }
    let with_labels = |(key, mut series): (String, Series)| {
        if let Some(by) = &recorded.by {
            series.labels.insert(by.clone(), key);
        }
        // The rows that `series` selects have these labels.
        series.labels.extend(recorded.series.clone());
        unique_times(recorded, series)
    };
    series.into_iter().map(with_labels).collect()
}

/// Adds up rows with the same time, or refuses them.
fn unique_times(recorded: &Recorded, mut series: Series) -> Result<Series, RecordingError> {
    series.samples.sort_by_key(|raw| raw.at);
    let same = series.samples.windows(2).find(|pair| pair[0].at == pair[1].at);
    match same {
        None => Ok(series),
        Some(_) if recorded.sum => {
            let labels = std::mem::take(&mut series.labels);
            Ok(Series { labels, ..super::combine(&[series], |sum, _| sum) })
        }
        Some(pair) => {
            let hint = "if the file has several series: select one with `series: {COLUMN: VALUE}`, \
                        or add them up with `sum: true`";
            Err(RecordingError::new(format!(" has two rows of {}", pair[0].at)).hint(hint))
        }
    }
}

impl Columns {
    fn find(recorded: &Recorded, header: &StringRecord) -> Result<Columns, RecordingError> {
        let names: Vec<&str> = header.iter().collect();
        if names.len() < 2 {
            let what = format!(": expected at least two columns, found {}", names.len());
            return Err(RecordingError::new(what).hint("the first line names the columns"));
        }
        let named = |name: &str| {
            let found = names.iter().position(|known| *known == name);
            found.ok_or_else(|| {
                let hint = suggest(name, names.iter().copied());
                RecordingError { what: format!(" has no column `{name}`"), hint }
            })
        };
        let time = recorded.time.as_deref().map_or(Ok(0), named)?;
        let by = recorded.by.as_deref().map(named).transpose()?;
        let mut selected = Vec::new();
        for (name, value) in &recorded.series {
            selected.push((named(name)?, value.clone()));
        }
        let value = match recorded.value.as_deref() {
            Some(name) => named(name)?,
            None => {
                let is_other = |column: &usize| {
                    *column != time
                        && Some(*column) != by
                        && selected.iter().all(|(selected, _)| selected != column)
                };
                let others: Vec<usize> = (0..names.len()).filter(is_other).collect();
                let &[only] = others.as_slice() else {
                    let others: Vec<&str> = others.iter().map(|it| names[*it]).collect();
                    let what = " has several columns, and `value` names none of them";
                    let hint = format!("set `value` to one of {}", others.join(", "));
                    return Err(RecordingError::new(what).hint(hint));
                };
                only
            }
        };
        Ok(Columns { time, value, by, selected })
    }
}

/// A number or a quantity. NaN: there is no value.
fn number(text: &str) -> Option<f64> {
    if matches!(text, "" | "-" | "null" | "NaN") {
        return Some(f64::NAN);
    }
    text.parse().ok().or_else(|| Some(Quantity::parse(text).ok()?.milli() as f64 / 1000.0))
}

fn problem(error: &csv::Error) -> RecordingError {
    match error.kind() {
        csv::ErrorKind::UnequalLengths { pos, expected_len, len } => {
            let line = pos.as_ref().map_or(0, csv::Position::line);
            let what =
                format!(":{line}: expected {expected_len} fields as in the header, found {len}");
            RecordingError::new(what)
        }
        _ => RecordingError::new(format!(": not valid CSV: {error}")),
    }
}
