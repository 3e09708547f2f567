//! Reads and merges the results of the fuzzer that [`crate::report`] wrote.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::fuzzing::FuzzSummary;
use crate::report as fuzz;
use crate::report::{
    FindingFigures, FindingLine, First, FirstLine, FuzzSetting, SummaryFigures, SummaryLine,
};
use kube_autoscaler_models::rules::Releases;
use kube_lockstep_report::json::LineKind;
use kube_lockstep_report::results::{ResultsError, numbered};
use kube_lockstep_report::style::{BAD, STRONG, paint};
use kube_lockstep_scenario::Diagnostic;
use kube_lockstep_sim::run::merge::without_results;
use kube_lockstep_sim::run::{Setting, Shard};

/// The contents of one file of results.
#[derive(Clone, Debug)]
pub struct FuzzPart {
    /// The file, for messages.
    pub file: String,
    /// The version of this program.
    pub version: String,
    run: First,
    shard: Option<Shard>,
    found: Vec<FindingLine>,
    /// The figures and the number of workers. `None` if the run is incomplete.
    end: Option<(FuzzSummary, usize)>,
}

/// Returns true if a file contains results of the fuzzer.
#[must_use]
pub fn is_fuzz_result(text: &str) -> bool {
    numbered(text).next().is_some_and(|(_, line)| LineKind::new(line).fuzz.is_some())
}

/// Reads a file of results of `fuzz`.
///
/// # Errors
/// If a line is not a result.
pub fn read(file: &str, text: &str) -> Result<FuzzPart, ResultsError> {
    let mut part: Option<FuzzPart> = None;
    let lines: Vec<(usize, &str)> = numbered(text).collect();
    for (index, (number, line)) in lines.iter().enumerate() {
        let error = |column: usize, why: &str| ResultsError {
            file: file.to_owned(),
            line: *number,
            column: column.max(1),
            why: format!("not a result of `fuzz --format json`: {why}"),
        };
        let value: Value = match serde_json::from_str(line) {
            Ok(value) => value,
            // A killed run leaves an incomplete line.
            Err(_) if index + 1 == lines.len() && !text.ends_with('\n') && index > 0 => break,
            Err(it) => return Err(error(it.column(), &it.to_string())),
        };
        let not_a_result = |it: serde_json::Error| error(1, &it.to_string());
        match &mut part {
            None => {
                let FirstLine { fuzz: mut run } =
                    serde_json::from_value(value).map_err(not_a_result)?;
                let shard = run.shard.take().map(|shard| shard.parse::<Shard>()).transpose();
                let shard = shard.map_err(|why| error(1, &why))?;
                let (file, version) = (file.to_owned(), run.version.clone());
                part = Some(FuzzPart { file, version, run, shard, found: Vec::new(), end: None });
            }
            Some(part) if part.end.is_some() => {
                return Err(error(1, "there are more lines after the summary"));
            }
            Some(part) if value.get("found").is_some() => {
                part.found.push(serde_json::from_value(value).map_err(not_a_result)?);
            }
            Some(part) => {
                let SummaryLine { summary } =
                    serde_json::from_value(value).map_err(not_a_result)?;
                let jobs = summary.jobs;
                part.end = Some((summary.read(), jobs));
            }
        }
    }
    part.ok_or_else(|| ResultsError {
        file: file.to_owned(),
        line: 1,
        column: 1,
        why: "the file is empty".to_owned(),
    })
}

/// A merged run of the fuzzer.
#[derive(Clone, Debug)]
pub struct FuzzRun {
    /// The setting of the run.
    pub setting: FuzzSetting,
    /// The findings of all parts, as they were written.
    found: Vec<FindingLine>,
    /// The figures of all parts.
    pub summary: FuzzSummary,
    /// The missing parts. If there are any, the whole has no verdict.
    pub missing: Vec<String>,
}

/// Merges parts into runs, ordered by release and seed. Missing parts that belong to no run (empty
/// files, and releases without results) are reported with the last run.
///
/// # Errors
/// If a part occurs twice, or the shards of a run have different counts.
pub fn merge(
    parts: Vec<FuzzPart>,
    empty: &[String],
    expected: Option<&Releases>,
    version: &'static str,
) -> Result<Vec<FuzzRun>, Diagnostic> {
    let mut runs: BTreeMap<First, Vec<FuzzPart>> = BTreeMap::new();
    for part in parts {
        kube_lockstep_sim::run::merge::check_version(&part.file, &part.version, version)?;
        runs.entry(part.run.clone()).or_default().push(part);
    }
    let joined = runs.into_iter().map(|(run, parts)| join(run, parts, version));
    let mut joined = joined.collect::<Result<Vec<FuzzRun>, Diagnostic>>()?;
    let releases = joined.iter().map(|run| run.setting.setting.release.clone());
    let releases: BTreeSet<String> = releases.collect();
    let seen = releases.iter().map(String::as_str).collect();
    if let Some(last) = joined.last_mut() {
        last.missing.extend(empty.iter().map(|file| cut_off(file)));
        last.missing.extend(without_results(expected, &seen));
    }
    Ok(joined)
}

fn cut_off(file: &str) -> String {
    format!("{file}: the run is incomplete")
}

fn join(run: First, parts: Vec<FuzzPart>, version: &'static str) -> Result<FuzzRun, Diagnostic> {
    let refused = |what: String, hint: &str| Diagnostic::new(what).hint(hint);
    let name = format!("seed {} on {} {}", run.seed, run.engine, run.release);
    let mut present: BTreeMap<Shard, &str> = BTreeMap::new();
    for part in &parts {
        let shard = part.shard.unwrap_or(Shard::WHOLE);
        if let Some(other) = present.insert(shard, &part.file) {
            let what = format!("{other} and {} are both shard {shard} of {name}", part.file);
            return Err(refused(what, "merge each result only once"));
        }
        if let Some((other, file)) = present.iter().find(|(other, _)| other.of != shard.of) {
            let what = format!("{file} is shard {other}, and {} shard {shard}", part.file);
            return Err(refused(what, "all shards of a run must have the same N in I/N"));
        }
    }
    let count = present.keys().next().map_or(1, |shard| shard.of);
    let indices: BTreeSet<usize> = present.keys().map(|shard| shard.index).collect();
    let absent = (1..=count).filter(|index| !indices.contains(index));
    let mut missing: Vec<String> =
        absent.map(|index| format!("shard {} of {name}", Shard { index, of: count })).collect();
    let mut summary = FuzzSummary::default();
    let (mut jobs, mut found) = (0, Vec::new());
    for part in parts {
        match part.end {
            Some((figures, workers)) => {
                summary.join(&figures);
                jobs = workers.saturating_add(jobs);
            }
            None => missing.push(cut_off(&part.file)),
        }
        found.extend(part.found);
    }
    let engine = run.engine.as_str().into();
    let setting = Setting { engine, release: run.release, ..Setting::default() };
    let setting = FuzzSetting { setting, seed: run.seed, version, areas: run.areas, jobs };
    Ok(FuzzRun { setting, found, summary, missing })
}

/// A merged run as text. Findings are shown in short form, because each is a fixture that can be
/// run.
#[must_use]
pub fn text(run: &FuzzRun, columns: usize) -> String {
    let mut out = fuzz::first_line(&run.setting);
    for line in &run.found {
        let FindingFigures { kind, file, replay, .. } = &line.found;
        let _ = writeln!(out, "{}  {}", paint(BAD, "found"), paint(STRONG, file));
        let _ = writeln!(out, "  {kind}\n  replay: {replay}");
    }
    for part in &run.missing {
        let _ = writeln!(out, "{}  {part}", paint(BAD, "missing"));
    }
    out.push_str(&fuzz::summary(&run.summary, run.setting.seed, columns));
    out
}

/// A merged run as JSON: one object per line, like an unsharded run.
#[must_use]
pub fn json(run: &FuzzRun) -> Vec<Value> {
    let mut summary = SummaryFigures::new(&run.summary, &run.setting);
    summary.missing.clone_from(&run.missing);
    let last = json!(SummaryLine { summary });
    let first = fuzz::first_json(&run.setting);
    let found = run.found.iter().map(|line| json!(line));
    [first].into_iter().chain(found).chain([last]).collect()
}
