//! `kube-lockstep import prometheus`.

use std::io;
use std::path::Path;

use jiff::{Timestamp, Zoned};

use super::PrometheusArgs;
use super::answer::Merged;
use super::connection::Connection;
use super::containers;
use super::times::{self, TimeRange};
use crate::cli::exit;
use crate::cli::failure::Failure;
use crate::cli::output::{show, tell};
use crate::cli::whole_file::{Existing, folder, write_whole};
use kube_lockstep_report::counted;
use kube_lockstep_report::style::{WARN, paint};
use kube_lockstep_scenario::{AnswerOverview, check_answer};
use kube_lockstep_sim::run::shell_word;

/// The most values of a series in one query. Prometheus allows 11,000.
const MOST_VALUES: i64 = 10_000;

pub(super) fn run(args: &PrometheusArgs) -> Result<u8, Failure> {
    let now = Zoned::now().with_time_zone(times::zone(args.time_zone.as_deref())?);
    let range = times::range(&args.from, &args.to, &now)?;
    check_output(args)?;
    let connection = Connection::new(args)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::engine(format!("no runtime: {error}")))?;
    let merged = runtime.block_on(query(&connection, range, args))?;
    if merged.is_empty() {
        let (from, to) = (shown(range.from), shown(range.to));
        let what = format!("the query has no result between {from} and {to}");
        let hint = "check the names and labels in --query, the range, and how long Prometheus \
                    keeps its data";
        return Err(Failure::usage(what).hint(hint));
    }
    let invalid = |error: &dyn std::fmt::Display| Failure::engine(format!("the result: {error}"));
    let text = merged.to_text().map_err(|error| invalid(&error))?;
    let overview = check_answer("the result", &text, args.by.as_deref()).map_err(Failure::usage)?;
    write(&args.output, args.force, &text)?;
    if let Some(note) = containers::note(&args.query) {
        show_note(&note);
    }
    show(&summary(args, &overview)).map_err(|error| Failure::engine(error.to_string()))?;
    Ok(exit::CONFORMS)
}

/// Fails before the query if the output can't be written.
fn check_output(args: &PrometheusArgs) -> Result<(), Failure> {
    let path = &args.output;
    if path.is_dir() {
        return Err(Failure::engine(format!("--output {}: it is a folder", path.display())));
    }
    if path.exists() && !args.force {
        return Err(exists(path));
    }
    if !folder(path).is_dir() {
        let what = format!("--output {}: there is no folder", path.display());
        return Err(Failure::engine(format!("{what} {}", folder(path).display())));
    }
    Ok(())
}

fn exists(path: &Path) -> Failure {
    let what = format!("{} exists, and is not overwritten", path.display());
    Failure::usage(what).hint("choose another name, or add --force")
}

/// Queries the range, in parts if it has too many values.
async fn query(
    connection: &Connection<'_>,
    range: TimeRange,
    args: &PrometheusArgs,
) -> Result<Merged, Failure> {
    let mut merged = Merged::default();
    let mut warnings: Vec<String> = Vec::new();
    for part in parts(range, args.step.as_secs()) {
        let mut answer = connection.query(part).await?;
        for warning in answer.warnings.drain(..) {
            if !warnings.contains(&warning) {
                warnings.push(warning);
            }
        }
        merged.add(answer);
    }
    warnings.iter().for_each(|warning| show_note(&format!("Prometheus warns: {warning}")));
    Ok(merged)
}

fn show_note(note: &str) {
    let text = format!("{} {note}\n", paint(WARN, "note:"));
    tell(&text);
}

/// The parts of a range, each with at most [`MOST_VALUES`] values. Their values are those of the
/// whole range.
fn parts(range: TimeRange, step: u64) -> Vec<TimeRange> {
    let step = i64::try_from(step).unwrap_or(i64::MAX).max(1);
    let length = step.saturating_mul(MOST_VALUES);
    let mut parts = Vec::new();
    let mut from = range.from;
    while from <= range.to {
        let next = from.saturating_add(length);
        parts.push(TimeRange { from, to: next.saturating_sub(step).min(range.to) });
        from = next;
    }
    parts
}

fn write(path: &Path, force: bool, text: &str) -> Result<(), Failure> {
    let existing = if force { Existing::Replace } else { Existing::Keep };
    write_whole(path, text, existing).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => exists(path),
        _ => Failure::engine(format!("--output {}: {error}", path.display())),
    })
}

/// A description of the file, and of its use.
fn summary(args: &PrometheusArgs, overview: &AnswerOverview) -> String {
    let AnswerOverview { series, samples, first, last } = overview;
    let path = args.output.display();
    let file = path.to_string();
    let file = if file.contains(',') { format!("\"{file}\"") } else { file };
    let load = match (&args.by, series) {
        (Some(by), _) => format!("NAME=prometheus({file},by={by})"),
        (None, 1) => format!("NAME=total:prometheus({file})"),
        (None, _) => format!("NAME=total:prometheus({file},sum)"),
    };
    format!(
        "{path}: {}, {}, from {first} to {last}\nuse it, with the name of the metric: \
         kube-lockstep predict -f … --load {}\n",
        counted(*series, "series"),
        counted(*samples, "value"),
        shell_word(&load)
    )
}

/// A Unix time in RFC 3339.
fn shown(seconds: i64) -> String {
    Timestamp::from_second(seconds).map_or_else(|_| seconds.to_string(), |time| time.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_have_the_values_of_the_whole_range() {
        let week = TimeRange { from: 1_000_000, to: 1_000_000 + 7 * 86_400 };
        let parts = parts(week, 15);
        let values = |range: &TimeRange| (range.from..=range.to).step_by(15).collect::<Vec<_>>();
        let all: Vec<i64> = parts.iter().flat_map(values).collect();
        assert_eq!(all, values(&week));
        assert!(parts.len() == 5 && parts.iter().all(|part| values(part).len() <= 10_000));
    }

    #[test]
    fn a_short_range_is_one_query() {
        let hour = TimeRange { from: 0, to: 3600 };
        assert_eq!(parts(hour, 15), [hour]);
    }
}
