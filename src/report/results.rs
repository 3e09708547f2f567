//! Results of runs, as [`super::json`] has written them, read again.

use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::compare::{Divergence, FieldDifference};
use crate::expect::Unmet;
use crate::model::time::{Span, Time};
use crate::run::merge::{End, Part};
use crate::run::{KnownHit, Note, Outcome, Setting, Shard, Summary, Verdict};
use crate::trace::Trace;

/// A file that holds no results.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{file}:{line}:{column}: {why}")]
pub struct ResultsError {
    /// The file.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1.
    pub column: usize,
    /// What is wrong.
    pub why: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ScenarioLine {
    id: String,
    path: String,
    line: usize,
    #[serde(default)]
    requirement: String,
    engine: String,
    release: String,
    verdict: String,
    ticks: usize,
    poisoned: usize,
    divergence: Option<DivergenceJson>,
    #[serde(default)]
    unmet: Vec<UnmetJson>,
    #[serde(default)]
    known: Vec<KnownJson>,
    #[serde(default)]
    notes: Vec<NoteJson>,
    #[serde(default)]
    boundaries: usize,
    #[serde(default)]
    replays: usize,
    why: Option<String>,
    #[serde(default)]
    output: String,
    elapsed_ms: f64,
}

#[derive(Deserialize)]
struct DivergenceJson {
    tick: usize,
    at: String,
    fields: Vec<FieldJson>,
    why: String,
}

#[derive(Deserialize)]
struct FieldJson {
    field: String,
    model: String,
    upstream: String,
}

#[derive(Deserialize)]
struct UnmetJson {
    line: usize,
    what: String,
}

#[derive(Deserialize)]
struct KnownJson {
    field: String,
    reason: String,
    link: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct NoteJson {
    line: usize,
    what: String,
    #[serde(default)]
    of_reading: bool,
}

#[derive(Deserialize)]
struct SummaryLine {
    summary: SummaryJson,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SummaryJson {
    version: String,
    engine: String,
    release: String,
    scenarios: usize,
    seconds: f64,
    program: Option<PathBuf>,
    upstream_path: Option<PathBuf>,
    time_limit: Option<String>,
    #[serde(default)]
    arguments: Vec<String>,
    shard: Option<String>,
    #[serde(default)]
    plan: String,
    #[serde(default)]
    releases: Vec<serde_json::Value>,
    #[serde(default)]
    stale_known: Vec<String>,
    #[serde(default)]
    missing: Vec<String>,
}

/// Reads a file of results of `run`.
///
/// # Errors
/// If a line of it is none.
pub fn read(file: &str, text: &str) -> Result<Part, ResultsError> {
    let mut part = Part { file: file.to_owned(), outcomes: Vec::new(), end: None };
    let lines: Vec<(usize, &str)> = numbered(text).collect();
    for (index, (number, line)) in lines.iter().enumerate() {
        let error = |column: usize, why: String| ResultsError {
            file: file.to_owned(),
            line: *number,
            column: column.max(1),
            why,
        };
        if part.end.is_some() {
            return Err(error(1, "there is more after the summary".to_owned()));
        }
        // A run that was killed leaves half a line.
        let last = index + 1 == lines.len() && !text.ends_with('\n');
        if last && serde_json::from_str::<serde_json::Value>(line).is_err() {
            break;
        }
        let not_ours = |it: serde_json::Error| {
            let why = it.to_string();
            let why = why.rsplit_once(" at line ").map_or(&*why, |(why, _)| why);
            error(it.column(), format!("no result of `run --format json`: {why}"))
        };
        if line.starts_with(r#"{"summary":"#) {
            let SummaryLine { summary } = parse(line).map_err(not_ours)?;
            part.end = Some(end(summary).map_err(|why| error(1, why))?);
        } else {
            let line: ScenarioLine = parse(line).map_err(not_ours)?;
            part.outcomes.push(outcome(line).map_err(|why| error(1, why))?);
        }
    }
    Ok(part)
}

/// The lines that are not empty, with their numbers.
pub(super) fn numbered(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
    lines.filter(|(_, line)| !line.is_empty())
}

fn parse<T: DeserializeOwned>(line: &str) -> Result<T, serde_json::Error> {
    serde_json::from_str(line)
}

fn span(text: &str) -> Result<Span, String> {
    text.parse().map_err(|error| format!("{error}"))
}

fn end(of: SummaryJson) -> Result<End, String> {
    let limit = of.time_limit.as_deref().map(span).transpose()?;
    let limit = limit.and_then(|limit| u64::try_from(limit.0).ok()).map(Duration::from_nanos);
    let shard = of.shard.as_deref().map(str::parse::<Shard>).transpose()?;
    if !of.missing.is_empty() {
        return Err("it is merged already, and not whole: merge its parts anew".to_owned());
    }
    Ok(End {
        version: of.version,
        setting: Setting {
            engine: of.engine.into(),
            release: of.release,
            program: of.program,
            checkout: of.upstream_path,
            time_limit: limit,
            replay_args: of.arguments,
            shard,
            plan: of.plan,
        },
        summary: Summary {
            scenarios: of.scenarios,
            elapsed: Duration::try_from_secs_f64(of.seconds).unwrap_or_default(),
            stale_known: of.stale_known,
            // Which they are is told by the scenarios.
            releases: of
                .releases
                .iter()
                .filter_map(|it| Some((it["release"].as_str()?.parse().ok()?, Summary::default())))
                .collect(),
            ..Summary::default()
        },
    })
}

fn outcome(of: ScenarioLine) -> Result<Outcome, String> {
    let mut reasons = Vec::new();
    let why = of.why.unwrap_or_default();
    let verdict = match (&*of.verdict, of.divergence) {
        ("conforms", _) => Verdict::Conforms,
        ("unexpected", _) => Verdict::Unexpected,
        ("skipped", _) => Verdict::Skipped { why },
        ("inconclusive", _) => Verdict::Inconclusive { why, output: of.output },
        ("diverges", Some(divergence)) => {
            let field = |it: FieldJson| FieldDifference {
                field: it.field,
                model: it.model,
                upstream: it.upstream,
            };
            // The reason stands where that of its tick would.
            reasons = vec![String::new(); divergence.tick.saturating_sub(1)];
            reasons.push(divergence.why);
            Verdict::Diverges(Divergence {
                tick: divergence.tick,
                at: Time::ZERO + span(&divergence.at)?,
                fields: divergence.fields.into_iter().map(field).collect(),
            })
        }
        (other, _) => return Err(format!("{other:?} is no verdict")),
    };
    let note = |it: NoteJson| Note { line: it.line, what: it.what, of_reading: it.of_reading };
    let known = |it: KnownJson| KnownHit { field: it.field, reason: it.reason, link: it.link };
    Ok(Outcome {
        id: of.id,
        path: of.path,
        line: of.line,
        requirement: of.requirement,
        engine: of.engine.into(),
        release: of.release,
        verdict,
        unplayable: false,
        known: of.known.into_iter().map(known).collect(),
        ticks: of.ticks,
        poisoned: of.poisoned,
        // What was observed is not part of a result.
        trace: Trace::default(),
        why: reasons,
        unmet: of.unmet.into_iter().map(|it| Unmet { line: it.line, what: it.what }).collect(),
        notes: of.notes.into_iter().map(note).collect(),
        boundaries: of.boundaries,
        replays: of.replays,
        elapsed: Duration::try_from_secs_f64(of.elapsed_ms / 1e3).unwrap_or_default(),
    })
}
