//! CSV files with a header: a column of times, and one or several columns of values. Other columns
//! can distinguish series.

use std::borrow::Cow;
use std::collections::BTreeMap;

use csv::{Reader, ReaderBuilder, StringRecord, Trim};

use super::number::{Evidence, NumberFormat};
use super::timestamp::{self, Timestamp};
use super::{MOST_LISTED, Raw, Series, open_metrics};
use crate::diagnostic::{Diagnostic, Kind};
use crate::error::similar;
use crate::node::shorten;
use crate::recorded::{DecimalMark, Recorded};
use crate::syntax::Syntax;

/// In `value`: any text, so that several columns have values.
const ANY: char = '*';

/// The label of a series whose column has a name without labels.
pub(super) const COLUMN: &str = "column";

/// The longest name of a column in a message, in characters.
const LONGEST_NAME: usize = 60;

/// Characters that separate columns: those of most programs, of spreadsheets in countries with a
/// decimal comma, and of Grafana's download for Excel.
const DELIMITERS: [char; 3] = [',', ';', '\t'];

/// The columns of a file.
struct Columns {
    time: usize,
    values: Vec<ValueColumn>,
    by: Option<usize>,
    /// Columns without a meaning.
    others: Vec<usize>,
    /// The columns by which rows are selected, each with the index of its value.
    selected: Vec<(usize, String)>,
}

struct ValueColumn {
    index: usize,
    /// The labels in its name, if each column is a series.
    labels: BTreeMap<String, String>,
}

/// A file whose columns are known.
struct File<'t> {
    text: Cow<'t, str>,
    delimiter: u8,
    /// The names of all columns.
    names: Vec<String>,
    columns: Columns,
}

/// Reads the series of a file: one, one of each column, or one for each value of the column `by`.
pub(super) fn read(recorded: &Recorded, text: &str) -> Result<Vec<Series>, Diagnostic> {
    let file = File::open(recorded, text)?;
    let format = file.format(recorded)?;
    let series = match is_pattern(recorded) {
        true => file.wide(format)?,
        false => file.long(recorded, format)?,
    };
    if series.iter().all(|series| series.samples.is_empty()) {
        file.check_selected(recorded)?;
    }
    series.into_iter().map(|series| file.unique_times(recorded, series)).collect()
}

/// The time of the first row, if it is a date without a time zone: `2025-05-06 09:00`.
pub(super) fn time_without_zone(recorded: &Recorded, text: &str) -> Option<String> {
    let file = File::open(recorded, text).ok()?;
    let mut row = StringRecord::new();
    file.reader().read_record(&mut row).ok().filter(|has_row| *has_row)?;
    let time = row.get(file.columns.time)?;
    Timestamp::lacks_zone(time).then(|| shorten(time))
}

impl<'t> File<'t> {
    fn open(recorded: &Recorded, text: &'t str) -> Result<File<'t>, Diagnostic> {
        let mut text = Cow::Borrowed(text.trim_start_matches('\u{feff}'));
        if is_json(&text) {
            let hint = "if it is a Prometheus response, use `prometheus` in place of `csv`";
            return Err(Diagnostic::new(": this looks like JSON, not CSV").hint(hint));
        }
        // Excel reads the delimiter from the first line: `sep=;`.
        if let Some(rest) = text.strip_prefix("sep=") {
            text = format!("#ep={rest}").into();
        }
        let head = text.lines().find(|line| !line.starts_with('#')).unwrap_or_default();
        let delimiter = delimiter(head);
        let header = reader(&text, delimiter).headers().map_err(|it| problem(&it))?.clone();
        let columns = Columns::find(recorded, &header)?;
        let names = header.iter().map(str::to_owned).collect();
        Ok(File { text, delimiter, names, columns })
    }

    fn reader(&self) -> Reader<&[u8]> {
        reader(&self.text, self.delimiter)
    }

    /// The format of the numbers.
    fn format(&self, recorded: &Recorded) -> Result<NumberFormat, Diagnostic> {
        let mark = self.mark(recorded)?;
        let percent = recorded.unit.as_ref().map(|_| 1.0 / recorded.percent.unwrap_or(1.0));
        Ok(NumberFormat { mark, percent, syntax: recorded.syntax })
    }

    fn mark(&self, recorded: &Recorded) -> Result<DecimalMark, Diagnostic> {
        if let Some(mark) = recorded.decimal {
            return Ok(mark);
        }
        // In a field, a comma that separates columns is within quotes.
        let rows = self.text.find('\n').map_or("", |end| &self.text[end..]);
        let has_commas =
            if self.delimiter == b',' { rows.contains('"') } else { rows.contains(',') };
        let mut evidence = Evidence::default();
        if has_commas {
            let mut reader = self.reader();
            let mut row = StringRecord::new();
            while reader.read_record(&mut row).map_err(|error| problem(&error))? {
                let line = row.position().map_or(0, csv::Position::line);
                for column in &self.columns.values {
                    evidence.add(row.get(column.index).unwrap_or_default(), line);
                }
            }
        }
        evidence.mark(recorded.syntax)
    }

    /// Rows with one value each. Series that are added up are distinguished by all other columns.
    fn long(&self, recorded: &Recorded, format: NumberFormat) -> Result<Vec<Series>, Diagnostic> {
        let Columns { values, by, others, .. } = &self.columns;
        let value = values.first().map_or(0, |column| column.index);
        let others = if recorded.sum { others.as_slice() } else { &[] };
        let mut series: BTreeMap<String, Series> = BTreeMap::new();
        let mut key = String::new();
        self.each_row(|row, at| {
            let field = |column: usize| row.get(column).unwrap_or_default();
            let value = self.number(format, row, value)?;
            key.clear();
            for column in by.iter().chain(others) {
                key.push_str(field(*column));
                key.push('\0');
            }
            let known = match series.get_mut(&key) {
                Some(known) => known,
                None => {
                    let new = series.entry(key.clone()).or_default();
                    // The rows that `series` selects have these labels.
                    new.labels.clone_from(&recorded.series);
                    if let (Some(by), Some(column)) = (&recorded.by, by) {
                        new.labels.insert(by.clone(), field(*column).to_owned());
                    }
                    new
                }
            };
            known.samples.push(Raw { at, value });
            Ok(())
        })?;
        Ok(series.into_values().collect())
    }

    /// Rows with a value in each column. An empty field is no sample: a pod has values only while
    /// it exists.
    fn wide(&self, format: NumberFormat) -> Result<Vec<Series>, Diagnostic> {
        let columns = &self.columns.values;
        let mut series: Vec<Series> = columns
            .iter()
            .map(|column| Series { labels: column.labels.clone(), ..Series::default() })
            .collect();
        self.each_row(|row, at| {
            for (column, series) in columns.iter().zip(&mut series) {
                let text = row.get(column.index).unwrap_or_default();
                if !text.is_empty() {
                    let value = self.number(format, row, column.index)?;
                    series.samples.push(Raw { at, value });
                }
            }
            Ok(())
        })?;
        Ok(series)
    }

    /// Adds up rows with the same time, or refuses them.
    fn unique_times(&self, recorded: &Recorded, mut series: Series) -> Result<Series, Diagnostic> {
        series.samples.sort_by_key(|raw| raw.at);
        let same = series.samples.windows(2).find(|pair| pair[0].at == pair[1].at);
        match same {
            None => Ok(series),
            Some(_) if recorded.sum => {
                let labels = std::mem::take(&mut series.labels);
                Ok(Series { labels, ..super::combine(&[series], |sum, _| sum) })
            }
            Some(pair) => {
                let at = pair[0].at;
                let what = match self.lines_of(recorded, &series, at)?[..] {
                    [first, second, ..] => {
                        format!(":{second}: two rows with the time {at}: see line {first}")
                    }
                    _ => format!(" has two rows with the time {at}"),
                };
                let introduction = "if the file has several series: ";
                let (column, syntax) = ("COLUMN", recorded.syntax);
                Err(super::several_series(what, introduction, column, column, syntax))
            }
        }
    }

    /// The lines of a series at a time.
    fn lines_of(
        &self,
        recorded: &Recorded,
        series: &Series,
        at: Timestamp,
    ) -> Result<Vec<u64>, Diagnostic> {
        let Columns { values, by, .. } = &self.columns;
        let wanted_name = recorded.by.as_ref().and_then(|by| series.labels.get(by));
        let column = values.iter().find(|column| column.labels == series.labels);
        let column = column.filter(|_| is_pattern(recorded));
        let mut lines = Vec::new();
        self.each_row(|row, time| {
            let field = |column: usize| row.get(column).unwrap_or_default();
            let is_of_series = match (column, by, wanted_name) {
                (Some(column), ..) => !field(column.index).is_empty(),
                (None, Some(by), Some(name)) => field(*by) == *name,
                _ => true,
            };
            if time == at && is_of_series {
                lines.push(row.position().map_or(0, csv::Position::line));
            }
            Ok(())
        })?;
        Ok(lines)
    }

    /// The number in a column of a row.
    fn number(
        &self,
        format: NumberFormat,
        row: &StringRecord,
        column: usize,
    ) -> Result<f64, Diagnostic> {
        format.read(row.get(column).unwrap_or_default()).map_err(|error| {
            let name = self.names.get(column).map_or("", String::as_str);
            let name = listed([name]);
            Diagnostic { what: format!("column {name}: {}", error.what), ..error }
        })
    }

    /// Fails if no row has the values that `series` selects.
    fn check_selected(&self, recorded: &Recorded) -> Result<(), Diagnostic> {
        let selected = &self.columns.selected;
        if selected.is_empty() {
            return Ok(());
        }
        let mut known: Vec<BTreeMap<String, String>> = Vec::new();
        let mut reader = self.reader();
        let mut row = StringRecord::new();
        while known.len() <= MOST_LISTED
            && reader.read_record(&mut row).map_err(|error| problem(&error))?
        {
            let field = |column: usize| row.get(column).unwrap_or_default();
            if selected.iter().all(|(column, value)| field(*column) == value) {
                return Ok(());
            }
            let label = |(column, _): &(usize, String)| {
                (self.names[*column].clone(), field(*column).to_owned())
            };
            let labels = selected.iter().map(label).collect();
            if !known.contains(&labels) {
                known.push(labels);
            }
        }
        match known.is_empty() {
            true => Ok(()),
            false => Err(super::no_series(recorded, &known)),
        }
    }

    /// Visits the selected rows.
    fn each_row(
        &self,
        mut visit: impl FnMut(&StringRecord, Timestamp) -> Result<(), Diagnostic>,
    ) -> Result<(), Diagnostic> {
        let Columns { time, selected, .. } = &self.columns;
        let mut reader = self.reader();
        let mut row = StringRecord::new();
        while reader.read_record(&mut row).map_err(|error| problem(&error))? {
            let field = |column: usize| row.get(column).unwrap_or_default();
            if selected.iter().any(|(column, value)| field(*column) != value) {
                continue;
            }
            let visited = timestamp(field(*time)).and_then(|at| visit(&row, at));
            visited.map_err(|error| {
                let line = row.position().map_or(0, csv::Position::line);
                Diagnostic { what: format!(":{line}: {}", error.what), ..error }
            })?;
        }
        Ok(())
    }
}

/// Returns true if a text begins like an object or a list of JSON. A name of a column can begin
/// with labels: `{pod="web-0"}`.
fn is_json(text: &str) -> bool {
    let mut characters = text.chars().filter(|c| !c.is_whitespace());
    matches!(
        [characters.next(), characters.next()],
        [Some('{'), Some('"')] | [Some('['), Some('{' | '[')]
    )
}

/// The names of columns for a message.
fn listed<'n>(names: impl IntoIterator<Item = &'n str>) -> String {
    let mut names = names.into_iter();
    let shown =
        names.by_ref().take(MOST_LISTED).map(|name| match name.char_indices().nth(LONGEST_NAME) {
            Some((end, _)) => format!("{}…", &name[..end]),
            None => name.to_owned(),
        });
    let shown = shown.collect::<Vec<_>>().join(", ");
    match names.count() {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

fn timestamp(text: &str) -> Result<Timestamp, Diagnostic> {
    Timestamp::parse(text).ok_or_else(|| {
        let error = Diagnostic::new(format!("expected a time, found {}", shorten(text)));
        match text.contains('/') {
            true => error.hint(
                "write the date as 2025-05-06: with slashes, the day and the month can be confused",
            ),
            false => error.hint(timestamp::EXAMPLE),
        }
    })
}

/// Returns true if several columns may have values.
fn is_pattern(recorded: &Recorded) -> bool {
    recorded.value.as_ref().is_some_and(|value| value.contains(ANY))
}

/// The delimiter of a header: the most frequent one outside quotation marks.
fn delimiter(head: &str) -> u8 {
    let outside: Vec<&str> = head.split('"').step_by(2).collect();
    let count = |delimiter: char| outside.iter().map(|part| part.matches(delimiter).count()).sum();
    let counted = DELIMITERS.map(|delimiter| (count(delimiter), delimiter));
    // The first of several maxima.
    let most = counted.into_iter().rev().max_by_key(|(count, _): &(usize, char)| *count);
    most.map_or(b',', |(_, delimiter)| delimiter as u8)
}

fn reader(text: &str, delimiter: u8) -> Reader<&[u8]> {
    let mut builder = ReaderBuilder::new();
    builder.trim(Trim::All).comment(Some(b'#')).delimiter(delimiter);
    builder.from_reader(text.as_bytes())
}

impl Columns {
    fn find(recorded: &Recorded, header: &StringRecord) -> Result<Columns, Diagnostic> {
        let names: Vec<&str> = header.iter().collect();
        if names.len() < 2 {
            let what = format!(": expected at least two columns, found {}", names.len());
            return Err(Diagnostic::new(what).hint("the first line names the columns"));
        }
        if names.iter().all(|name| Timestamp::parse(name).is_some() || name.parse::<f64>().is_ok())
        {
            let what = format!(":1: expected the names of the columns, found {}", listed(names));
            let hint = "add a first line with names, for example `time,value`";
            return Err(Diagnostic::new(what).hint(hint));
        }
        let find = |name: &str| names.iter().position(|known| *known == name);
        let named = |name: &str, field: &'static str| {
            find(name).ok_or_else(|| {
                let hint = similar(name, names.iter().copied()).unwrap_or_else(|| {
                    format!("expected one of {}", listed(names.iter().copied())).into()
                });
                Diagnostic::new(format!(" has no column `{name}`"))
                    .hint(hint)
                    .kind(Kind::InvalidField(field))
            })
        };
        let time = recorded.time.as_deref().map_or(Ok(0), |name| named(name, "time"))?;
        let several = is_pattern(recorded);
        let by = match recorded.by.as_deref() {
            // The names of the columns have this label, or are its values.
            Some(by) if several && find(by).is_none() => None,
            Some(by) if several => {
                let what = format!(" has a column `{by}`, so `value` must name one column");
                return Err(Diagnostic::new(what)
                    .hint("remove the `*`")
                    .kind(Kind::InvalidField("value")));
            }
            by => by.map(|name| named(name, "by")).transpose()?,
        };
        let mut selected = Vec::new();
        for (name, value) in &recorded.series {
            match find(name) {
                Some(column) => selected.push((column, value.clone())),
                // The names of the columns may have this label.
                None if several => {}
                None => selected.push((named(name, "series")?, value.clone())),
            }
        }
        let is_free = |column: &usize| {
            *column != time
                && Some(*column) != by
                && selected.iter().all(|(selected, _)| selected != column)
        };
        let free: Vec<usize> = (0..names.len()).filter(is_free).collect();
        let values = match recorded.value.as_deref() {
            Some(pattern) if several => columns_of(recorded, pattern, &free, &names, &selected)?,
            Some(name) => vec![ValueColumn::single(named(name, "value")?)],
            None if free.is_empty() && !selected.is_empty() => {
                let what = ": `series` names all columns, so none is left for the values";
                return Err(Diagnostic::new(what).kind(Kind::InvalidField("series")));
            }
            None => vec![ValueColumn::single(only(&free, &names, recorded.syntax)?)],
        };
        check_roles(time, &values, &selected, &names)?;
        let is_other = |column: &usize| values.iter().all(|value| value.index != *column);
        let others = free.into_iter().filter(is_other).collect();
        Ok(Columns { time, values, by, others, selected })
    }
}

/// Refuses the columns of the times and of the values as those that select a series.
fn check_roles(
    time: usize,
    values: &[ValueColumn],
    selected: &[(usize, String)],
    names: &[&str],
) -> Result<(), Diagnostic> {
    let is_value = |column: usize| values.iter().any(|value| value.index == column);
    let role = |(column, _): &(usize, String)| match *column {
        column if column == time => Some((column, "times")),
        column if is_value(column) => Some((column, "values")),
        _ => None,
    };
    match selected.iter().find_map(role) {
        None => Ok(()),
        Some((column, role)) => {
            let what = format!(": `{}` is the column of the {role}", names[column]);
            let hint = "`series` selects rows by another column, such as that of the pods";
            Err(Diagnostic::new(what).hint(hint).kind(Kind::InvalidField("series")))
        }
    }
}

/// The only column that is left.
fn only(free: &[usize], names: &[&str], syntax: Syntax) -> Result<usize, Diagnostic> {
    if let &[only] = free {
        return Ok(only);
    }
    let what = " has several columns, and `value` names none of them";
    let columns = listed(free.iter().map(|it| names[*it]));
    let one = syntax.pick("set `value` to one of", "add `value=COLUMN` with one of");
    let hint = match free.len() > MOST_LISTED {
        true => {
            let all = syntax.pick("set `value` to \"*\" and `by` to pod", "add `value=*,by=pod`");
            format!("if each column is the series of a pod, {all}; otherwise, {one} {columns}")
        }
        false => {
            let all = syntax.pick("set `value` to \"*\"", "`value=*`");
            format!("{one} {columns}; if each column is a series, {all}")
        }
    };
    Err(Diagnostic::new(what).hint(hint))
}

/// The columns whose names match a pattern, each of which is a series.
fn columns_of(
    recorded: &Recorded,
    pattern: &str,
    free: &[usize],
    names: &[&str],
    selected: &[(usize, String)],
) -> Result<Vec<ValueColumn>, Diagnostic> {
    let matching = free.iter().filter(|index| matches(pattern, names[**index]));
    let column = |index: &usize| {
        let mut labels = labels_of(names[*index], recorded.by.as_deref());
        // The rows that `series` selects have these labels.
        labels.extend(
            selected.iter().map(|(column, value)| (names[*column].to_owned(), value.clone())),
        );
        ValueColumn { index: *index, labels }
    };
    let found: Vec<ValueColumn> = matching.map(column).collect();
    if found.is_empty() {
        let columns = listed(free.iter().map(|it| names[*it]));
        let what = format!(" has no column that matches `{pattern}`");
        let hint = format!("the columns are {columns}");
        return Err(Diagnostic::new(what).hint(hint).kind(Kind::InvalidField("value")));
    }
    Ok(found)
}

/// The labels in the name of a column: `{pod="web-0"}`, as Grafana writes it, or `up{pod="web-0"}`.
/// Any other name is that of the pod.
fn labels_of(name: &str, by: Option<&str>) -> BTreeMap<String, String> {
    if name.ends_with('}')
        && let Ok(mut labels) = open_metrics::labels(name)
    {
        labels.retain(|_, value| !value.is_empty());
        return labels;
    }
    let labels = [Some(COLUMN), by].into_iter().flatten();
    labels.map(|label| (label.to_owned(), name.to_owned())).collect()
}

/// Returns true if a name matches a pattern, in which `*` is any text.
pub fn matches(pattern: &str, name: &str) -> bool {
    let Some((first, rest)) = pattern.split_once(ANY) else { return pattern == name };
    let Some(mut name) = name.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = rest.split(ANY).collect();
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        match name.find(part) {
            Some(at) => name = &name[at + part.len()..],
            None => return false,
        }
    }
    name.ends_with(last)
}

impl ValueColumn {
    /// The only column of values.
    fn single(index: usize) -> ValueColumn {
        ValueColumn { index, labels: BTreeMap::new() }
    }
}

fn problem(error: &csv::Error) -> Diagnostic {
    match error.kind() {
        csv::ErrorKind::UnequalLengths { pos, expected_len, len } => {
            let line = pos.as_ref().map_or(0, csv::Position::line);
            let what =
                format!(":{line}: expected {expected_len} fields as in the header, found {len}");
            let error = Diagnostic::new(what);
            match len > expected_len {
                true => error.hint(
                    "if numbers have a decimal comma, separate the columns by semicolons, or put \
                     the numbers in quotation marks",
                ),
                false => error,
            }
        }
        _ => Diagnostic::new(format!(": not valid CSV: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_delimiter_is_outside_quotation_marks() {
        for (head, expected) in [
            ("time,cores", b','),
            ("time;cores", b';'),
            ("Time\tweb-0\tweb-1", b'\t'),
            (r#""Time";"{a=""1"", b=""2"", c=""3""}""#, b';'),
            (r#""Time","a;b;c""#, b','),
            ("time", b','),
        ] {
            assert_eq!(delimiter(head), expected, "{head}");
        }
    }

    #[test]
    fn patterns_match_whole_names() {
        for (pattern, name) in
            [("*", "web-0"), ("web-*", "web-0"), ("*-0", "web-0"), ("w*b-*", "web-")]
        {
            assert!(matches(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [("web-*", "api-0"), ("*-0", "web-01"), ("a*b", "ab-")] {
            assert!(!matches(pattern, name), "{pattern} {name}");
        }
    }
}
