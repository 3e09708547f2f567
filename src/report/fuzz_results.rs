//! Results of the fuzzer, as [`super::fuzz`] has written them, read again and joined.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use super::fuzz::{self, FuzzSetting};
use super::results::{ResultsError, numbered};
use super::style::{BAD, STRONG, paint};
use crate::fuzz::Reached;
use crate::model::rules::Releases;
use crate::run::fuzzing::FuzzSummary;
use crate::run::merge::{Refused, unseen};
use crate::run::{Setting, Shard};

/// What one file of results holds.
#[derive(Clone, Debug)]
pub struct FuzzPart {
    /// The file, for messages.
    pub file: String,
    /// The version of this program.
    pub version: String,
    run: FirstJson,
    shard: Option<Shard>,
    found: Vec<Value>,
    /// The figures, and by how many workers. Nothing if the run was cut off.
    end: Option<(FuzzSummary, usize)>,
}

/// What is needed to do it again.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Deserialize)]
struct FirstJson {
    release: String,
    seed: u64,
    engine: String,
    areas: Vec<String>,
    version: String,
    shard: Option<String>,
}

#[derive(Deserialize)]
struct SummaryJson {
    scenarios: usize,
    ticks: usize,
    divergences: usize,
    inconclusive: usize,
    unplayable: usize,
    interrupted: bool,
    jobs: usize,
    seconds: f64,
    coverage: serde_json::Map<String, Value>,
}

#[derive(Deserialize)]
struct GroupJson {
    reached: serde_json::Map<String, Value>,
    never: Vec<String>,
}

/// Whether a file of results is one of the fuzzer.
#[must_use]
pub fn is_of_the_fuzzer(text: &str) -> bool {
    numbered(text).next().is_some_and(|(_, line)| line.starts_with(r#"{"fuzz":"#))
}

/// Reads a file of results of `fuzz`.
///
/// # Errors
/// If a line of it is none.
pub fn read(file: &str, text: &str) -> Result<FuzzPart, ResultsError> {
    let mut part: Option<FuzzPart> = None;
    let lines: Vec<(usize, &str)> = numbered(text).collect();
    for (index, (number, line)) in lines.iter().enumerate() {
        let error = |column: usize, why: &str| ResultsError {
            file: file.to_owned(),
            line: *number,
            column: column.max(1),
            why: format!("no result of `fuzz --format json`: {why}"),
        };
        let mut value: Value = match serde_json::from_str(line) {
            Ok(value) => value,
            // A run that was killed leaves half a line.
            Err(_) if index + 1 == lines.len() && !text.ends_with('\n') && index > 0 => break,
            Err(it) => return Err(error(it.column(), &it.to_string())),
        };
        let not_ours = |it: serde_json::Error| error(1, &it.to_string());
        match &mut part {
            None => {
                let mut run: FirstJson =
                    serde_json::from_value(value["fuzz"].take()).map_err(not_ours)?;
                let shard = run.shard.take().map(|shard| shard.parse::<Shard>()).transpose();
                let shard = shard.map_err(|why| error(1, &why))?;
                let (file, version) = (file.to_owned(), run.version.clone());
                part = Some(FuzzPart { file, version, run, shard, found: Vec::new(), end: None });
            }
            Some(part) if part.end.is_some() => {
                return Err(error(1, "there is more after the summary"));
            }
            Some(part) if value.get("found").is_some() => part.found.push(value),
            Some(part) => {
                let figures: SummaryJson =
                    serde_json::from_value(value["summary"].take()).map_err(not_ours)?;
                let jobs = figures.jobs;
                part.end = Some((summary(figures).map_err(not_ours)?, jobs));
            }
        }
    }
    part.ok_or_else(|| ResultsError {
        file: file.to_owned(),
        line: 1,
        column: 1,
        why: "it is empty".to_owned(),
    })
}

fn summary(of: SummaryJson) -> Result<FuzzSummary, serde_json::Error> {
    let group = |(group, value): (String, Value)| {
        let GroupJson { reached, never } = serde_json::from_value(value)?;
        let count = |(name, count): (String, Value)| (name, count.as_u64().unwrap_or(0));
        Ok(Reached { group, reached: reached.into_iter().map(count).collect(), never })
    };
    Ok(FuzzSummary {
        scenarios: of.scenarios,
        ticks: of.ticks,
        divergences: of.divergences,
        inconclusive: of.inconclusive,
        unplayable: of.unplayable,
        interrupted: of.interrupted,
        coverage: of.coverage.into_iter().map(group).collect::<Result<_, _>>()?,
        elapsed: Duration::try_from_secs_f64(of.seconds).unwrap_or_default(),
    })
}

/// A run of the fuzzer whose parts were joined.
#[derive(Clone, Debug)]
pub struct FuzzRun {
    /// What it was made on.
    pub setting: FuzzSetting,
    /// What was found, as each part has told it.
    pub found: Vec<Value>,
    /// The figures of all parts.
    pub summary: FuzzSummary,
    /// Parts that are not there: there is no verdict on the whole.
    pub missing: Vec<String>,
}

/// Joins parts into the runs that they are of, ordered by release and seed. What is missing of no
/// run in particular is told with the last one: files that hold nothing, and releases without any.
///
/// # Errors
/// If a part is there twice, or the parts of a run are not split alike.
pub fn merge(
    parts: Vec<FuzzPart>,
    empty: &[String],
    expected: Option<&Releases>,
    version: &'static str,
) -> Result<Vec<FuzzRun>, Refused> {
    let mut runs: BTreeMap<FirstJson, Vec<FuzzPart>> = BTreeMap::new();
    for part in parts {
        crate::run::merge::is_of(&part.file, &part.version, version)?;
        runs.entry(part.run.clone()).or_default().push(part);
    }
    let joined = runs.into_iter().map(|(run, parts)| join(run, parts, version));
    let mut joined = joined.collect::<Result<Vec<FuzzRun>, Refused>>()?;
    let releases = joined.iter().map(|run| run.setting.setting.release.clone());
    let releases: BTreeSet<String> = releases.collect();
    let seen = releases.iter().map(String::as_str).collect();
    if let Some(last) = joined.last_mut() {
        last.missing.extend(empty.iter().map(|file| cut_off(file)));
        last.missing.extend(unseen(expected, &seen));
    }
    Ok(joined)
}

fn cut_off(file: &str) -> String {
    format!("{file}: its run did not come to its end")
}

fn join(of: FirstJson, parts: Vec<FuzzPart>, version: &'static str) -> Result<FuzzRun, Refused> {
    let refused = |what: String, hint: &str| Refused { what, hint: hint.to_owned() };
    let name = format!("seed {} on {} {}", of.seed, of.engine, of.release);
    let mut there: BTreeMap<Shard, &str> = BTreeMap::new();
    for part in &parts {
        let shard = part.shard.unwrap_or(Shard::WHOLE);
        if let Some(other) = there.insert(shard, &part.file) {
            let what = format!("{other} and {} are both shard {shard} of {name}", part.file);
            return Err(refused(what, "each result is merged once"));
        }
        if let Some((other, file)) = there.iter().find(|(other, _)| other.of != shard.of) {
            let what = format!("{file} is shard {other}, and {} shard {shard}", part.file);
            return Err(refused(what, "shards of one run are split into as many"));
        }
    }
    let split = there.keys().next().map_or(1, |shard| shard.of);
    let indices: BTreeSet<usize> = there.keys().map(|shard| shard.index).collect();
    let gone = (1..=split).filter(|index| !indices.contains(index));
    let mut missing: Vec<String> =
        gone.map(|index| format!("shard {} of {name}", Shard { index, of: split })).collect();
    let mut summary = FuzzSummary::default();
    let (mut jobs, mut found) = (0, Vec::new());
    for part in parts {
        match part.end {
            Some((figures, workers)) => {
                summary.join(&figures);
                jobs += workers;
            }
            None => missing.push(cut_off(&part.file)),
        }
        found.extend(part.found);
    }
    let engine = of.engine.as_str().into();
    let setting = Setting { engine, release: of.release, ..Setting::default() };
    let setting = FuzzSetting { setting, seed: of.seed, version, areas: of.areas, jobs };
    Ok(FuzzRun { setting, found, summary, missing })
}

/// A joined run for people. What was found is told in short: each is a fixture that can be run.
#[must_use]
pub fn text(run: &FuzzRun, columns: usize) -> String {
    let mut out = fuzz::first_line(&run.setting);
    for found in &run.found {
        let of = |key: &str| found["found"][key].as_str().unwrap_or_default().to_owned();
        let _ = writeln!(out, "{}  {}", paint(BAD, "found"), paint(STRONG, &of("file")));
        let _ = writeln!(out, "  {}\n  replay: {}", of("kind"), of("replay"));
    }
    for part in &run.missing {
        let _ = writeln!(out, "{}  {part}", paint(BAD, "missing"));
    }
    out.push_str(&fuzz::summary(&run.summary, run.setting.seed, columns));
    out
}

/// A joined run for programs: one object a line, as a run in one go would have it.
#[must_use]
pub fn json(run: &FuzzRun) -> Vec<Value> {
    let mut last = fuzz::summary_json(&run.summary, &run.setting);
    if !run.missing.is_empty() {
        last["summary"]["missing"] = run.missing.clone().into();
    }
    let first = fuzz::first_json(&run.setting);
    [first].into_iter().chain(run.found.iter().cloned()).chain([last]).collect()
}
