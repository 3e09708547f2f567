//! Reads the results of runs that [`super::json`] wrote.

use std::time::Duration;

use serde::de::DeserializeOwned;

use super::json::{LineKind, ScenarioLine, SummaryFigures, SummaryLine, VerdictName};
use kube_autoscaler_models::time::Span;
use kube_lockstep_scenario::SkipReason;
use kube_lockstep_sim::run::merge::{End, ResultFile};
use kube_lockstep_sim::run::{Outcome, Setting, Shard, Summary, Verdict};

/// The error for a file that does not contain results.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{file}:{line}:{column}: {why}")]
pub struct ResultsError {
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1.
    pub column: usize,
    /// The problem.
    pub why: String,
}

/// Reads a file of results of `run`.
///
/// # Errors
/// If a line is not a result.
pub fn read(file: &str, text: &str) -> Result<ResultFile, ResultsError> {
    let mut part = ResultFile { file: file.to_owned(), outcomes: Vec::new(), end: None };
    let lines: Vec<(usize, &str)> = numbered(text).collect();
    for (index, (number, line)) in lines.iter().enumerate() {
        let error = |column: usize, why: String| ResultsError {
            file: file.to_owned(),
            line: *number,
            column: column.max(1),
            why,
        };
        if part.end.is_some() {
            return Err(error(1, "there are more lines after the summary".to_owned()));
        }
        // A killed run leaves an incomplete line.
        let last = index + 1 == lines.len() && !text.ends_with('\n');
        if last && serde_json::from_str::<serde_json::Value>(line).is_err() {
            break;
        }
        let not_a_result = |it: serde_json::Error| {
            let why = it.to_string();
            let why = why.rsplit_once(" at line ").map_or(&*why, |(why, _)| why);
            error(it.column(), format!("not a result of `run --format json`: {why}"))
        };
        if LineKind::new(line).summary.is_some() {
            let SummaryLine { summary } = parse(line).map_err(not_a_result)?;
            part.end = Some(end(summary).map_err(|why| error(1, why))?);
        } else {
            let line: ScenarioLine = parse(line).map_err(not_a_result)?;
            part.outcomes.push(outcome(line).map_err(|why| error(1, why))?);
        }
    }
    Ok(part)
}

/// The lines that are not empty, with their numbers.
pub fn numbered(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
    lines.filter(|(_, line)| !line.is_empty())
}

fn parse<T: DeserializeOwned>(line: &str) -> Result<T, serde_json::Error> {
    serde_json::from_str(line)
}

fn span(text: &str) -> Result<Span, String> {
    text.parse().map_err(|error| format!("{error}"))
}

fn end(figures: SummaryFigures) -> Result<End, String> {
    let limit = figures.time_limit.as_deref().map(span).transpose()?;
    let limit = limit.and_then(|limit| u64::try_from(limit.0).ok()).map(Duration::from_nanos);
    let shard = figures.shard.as_deref().map(str::parse::<Shard>).transpose()?;
    if !figures.missing.is_empty() {
        return Err(
            "it is an incomplete merged result: merge the original results instead".to_owned()
        );
    }
    Ok(End {
        version: figures.version,
        setting: Setting {
            engine: figures.engine.unwrap_or_default().into(),
            release: figures.release.unwrap_or_default(),
            vpa_releases: Vec::new(),
            program: figures.program,
            checkout: figures.upstream_path,
            time_limit: limit,
            replay_args: figures.arguments,
            shard,
            plan: figures.plan,
        },
        summary: Summary {
            scenarios: figures.counts.scenarios,
            elapsed: Duration::try_from_secs_f64(figures.seconds).unwrap_or_default(),
            stale_known: figures.stale_known,
            // The figures of releases are counted from the scenarios.
            releases: figures
                .releases
                .iter()
                .filter_map(|it| Some((it.release.parse().ok()?, Summary::default())))
                .collect(),
            ..Summary::default()
        },
    })
}

fn outcome(line: ScenarioLine) -> Result<Outcome, String> {
    let why = line.why.unwrap_or_default();
    let verdict = match (line.verdict, line.divergence) {
        (VerdictName::Conforms, _) => Verdict::Conforms,
        (VerdictName::Unmet, _) => Verdict::Unmet,
        (VerdictName::Skipped, _) => {
            Verdict::Skipped { why: SkipReason::read(&why, &line.release) }
        }
        (VerdictName::Inconclusive, _) => Verdict::Inconclusive { why, output: line.output },
        (VerdictName::Diverges, Some(divergence)) => Verdict::Diverges(divergence.read()?),
        (VerdictName::Diverges, None) => return Err("the divergence is missing".to_owned()),
    };
    Ok(Outcome {
        id: line.id,
        path: line.path,
        line: line.line,
        requirement: line.requirement,
        engine: line.engine.into(),
        release: line.release,
        vpa_release: line.vpa_release.and_then(|release| release.parse().ok()),
        verdict,
        undetermined: None,
        known: line.known,
        ticks: line.ticks,
        not_compared: line.not_compared,
        controllers: Vec::new(),
        unmet: line.unmet.into_iter().map(|line| line.unmet).collect(),
        writes: line.writes,
        notes: line.notes,
        ambiguous_ticks: line.ambiguous_ticks,
        retries: line.retries,
        is_without_model: line.is_without_model,
        elapsed: Duration::try_from_secs_f64(line.elapsed_ms / 1e3).unwrap_or_default(),
    })
}
