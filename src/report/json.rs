//! A run as JSON, for programs: one object a line and nothing else, the summary last.
//!
//! Times are durations since the scenario's start as Go writes them (`1m30s`).

use std::io::{self, Write};
use std::path::PathBuf;

use serde::Serialize;
use serde_json::{Value, json};

use super::{Report, outcome};
use crate::compare::{Divergence, FieldDifference};
use crate::expect::Unmet;
use crate::model::rules::Release;
use crate::model::time::Span;
use crate::run::{Event, FreeRun, FreeTick, Note, Outcome, Setting, Summary, Verdict};

/// The report for programs.
#[derive(Debug)]
pub struct Json<W> {
    out: W,
    run: Option<Setting>,
}

impl<W: Write> Json<W> {
    /// A report that writes there.
    pub fn new(out: W) -> Json<W> {
        Json { out, run: None }
    }

    /// What was written to.
    pub fn into_inner(self) -> W {
        self.out
    }
}

impl<W: Write> Report for Json<W> {
    fn event(&mut self, event: &Event) -> io::Result<()> {
        match event {
            Event::Preparing { .. } => Ok(()),
            Event::Started { setting, .. } => {
                self.run = Some(setting.clone());
                Ok(())
            }
            Event::Finished(outcome) => line(&mut self.out, &ScenarioLine::of(outcome)),
            Event::Ended(summary) => {
                line(&mut self.out, &self::summary(summary, self.run.as_ref()))
            }
        }
    }
}

/// Writes a value as one line.
///
/// # Errors
/// If it can't be written.
pub fn line(out: &mut dyn Write, value: &impl Serialize) -> io::Result<()> {
    let mut text = serde_json::to_string(value)?;
    text.push('\n');
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// A free run of the model: one line a tick, the summary last, which says why a run on an engine
/// would be `skipped`.
///
/// # Errors
/// If it can't be written.
pub fn free_run(
    out: &mut dyn Write,
    run: &FreeRun,
    unmet: &[Unmet],
    skipped: Option<&str>,
) -> io::Result<()> {
    for (index, tick) in run.ticks.iter().enumerate() {
        line(out, &tick_line(index + 1, tick))?;
    }
    let rescales = run.ticks.iter().filter(|tick| tick.replicas_before != tick.replicas_after);
    let mut summary = json!({
        "engine": run.trace.engine,
        "release": run.trace.release,
        "ticks": run.ticks.len(),
        "rescales": rescales.count(),
        "unmet": unmet_lines(unmet),
    });
    if let Some(why) = skipped {
        summary["skipped"] = json!(why);
    }
    if let Some(why) = &run.unplayable {
        summary["unplayable"] = json!(why);
    }
    if !run.notes.is_empty() {
        summary["notes"] = json!(note_lines(&run.notes));
    }
    line(out, &json!({ "summary": summary }))
}

fn tick_line(number: usize, tick: &FreeTick) -> Value {
    let (observation, derivation) = (&tick.observation, &tick.derivation);
    let events: Vec<Value> = observation
        .events
        .iter()
        .map(|event| json!({"type": event.type_, "reason": event.reason, "message": event.message}))
        .collect();
    let status = observation.status_write.as_ref().map(|write| &write.status);
    let conditions = status.map(|status| {
        let conditions = status.conditions.iter().map(|condition| {
            json!({
                "type": condition.type_,
                "status": if condition.status { "True" } else { "False" },
                "reason": condition.reason,
                "message": condition.message,
                "lastTransitionTime": condition.last_transition_time.to_string(),
            })
        });
        conditions.collect::<Vec<_>>()
    });
    json!({
        "tick": number,
        "at": observation.at.to_string(),
        "hpa": observation.hpa,
        "replicasBefore": tick.replicas_before,
        "replicasAfter": tick.replicas_after,
        "proposal": derivation.proposal,
        "desiredReplicas": derivation.desired_replicas,
        "limitedBy": derivation.limited_by(),
        "why": derivation.summary(),
        "events": events,
        "conditions": conditions,
        "errors": observation.errors,
    })
}

fn note_lines(notes: &[Note]) -> Vec<Value> {
    let line = |note: &Note| match note.of_reading {
        true => json!({"line": note.line, "what": note.what, "ofReading": true}),
        false => json!({"line": note.line, "what": note.what}),
    };
    notes.iter().map(line).collect()
}

fn unmet_lines(unmet: &[Unmet]) -> Vec<Value> {
    unmet.iter().map(|unmet| json!({"line": unmet.line, "what": unmet.what})).collect()
}

fn is_none(many: &usize) -> bool {
    *many == 0
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ScenarioLine<'a> {
    id: &'a str,
    path: &'a str,
    line: usize,
    /// Told where it does not simply hold.
    #[serde(skip_serializing_if = "str::is_empty")]
    requirement: &'a str,
    engine: &'a str,
    release: &'a str,
    verdict: &'static str,
    ticks: usize,
    poisoned: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    divergence: Option<DivergenceJson<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unmet: Vec<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    known: Vec<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<Value>,
    #[serde(skip_serializing_if = "is_none")]
    boundaries: usize,
    #[serde(skip_serializing_if = "is_none")]
    replays: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<&'a str>,
    elapsed_ms: f64,
}

#[derive(Serialize)]
struct DivergenceJson<'a> {
    tick: usize,
    at: String,
    fields: Vec<FieldJson<'a>>,
    why: &'a str,
}

#[derive(Serialize)]
struct FieldJson<'a> {
    field: &'a str,
    model: &'a str,
    upstream: &'a str,
}

impl<'a> ScenarioLine<'a> {
    fn of(outcome: &'a Outcome) -> ScenarioLine<'a> {
        let (verdict, divergence, why, output) = match &outcome.verdict {
            Verdict::Conforms => ("conforms", None, None, None),
            Verdict::Diverges(divergence) => {
                ("diverges", Some(divergence_json(outcome, divergence)), None, None)
            }
            Verdict::Unexpected => ("unexpected", None, None, None),
            Verdict::Inconclusive { why, output } => {
                let output = Some(output.as_str()).filter(|output| !output.is_empty());
                ("inconclusive", None, Some(why.as_str()), output)
            }
            Verdict::Skipped { why } => ("skipped", None, Some(why.as_str()), None),
        };
        let known = outcome.known.iter();
        ScenarioLine {
            id: &outcome.id,
            path: &outcome.path,
            line: outcome.line,
            requirement: if divergence.is_some() || verdict == "unexpected" {
                &outcome.requirement
            } else {
                ""
            },
            engine: &outcome.engine,
            release: &outcome.release,
            verdict,
            ticks: outcome.ticks,
            poisoned: outcome.poisoned,
            divergence,
            unmet: unmet_lines(&outcome.unmet),
            known: known
                .map(|hit| json!({"field": hit.field, "reason": hit.reason, "link": hit.link}))
                .collect(),
            notes: note_lines(&outcome.notes),
            boundaries: outcome.boundaries,
            replays: outcome.replays,
            why,
            output,
            elapsed_ms: (outcome.elapsed.as_secs_f64() * 1e6).round() / 1e3,
        }
    }
}

fn divergence_json<'a>(outcome: &'a Outcome, divergence: &'a Divergence) -> DivergenceJson<'a> {
    let field = |difference: &'a FieldDifference| FieldJson {
        field: &difference.field,
        model: &difference.model,
        upstream: &difference.upstream,
    };
    DivergenceJson {
        tick: divergence.tick,
        at: divergence.at.to_string(),
        fields: divergence.fields.iter().map(field).collect(),
        why: outcome::reason(outcome, divergence),
    }
}

/// What makes a run another one than that of its releases on its engine: `report merge` reads it.
fn how(figures: &mut Value, run: &Setting) {
    let path = |path: &Option<PathBuf>| path.as_ref().map(|path| path.to_string_lossy().into());
    let limit = run.time_limit.map(|limit| {
        Value::from(Span(i64::try_from(limit.as_nanos()).unwrap_or(i64::MAX)).to_string())
    });
    let parts = [
        ("program", path(&run.program)),
        ("upstreamPath", path(&run.checkout)),
        ("timeLimit", limit),
        ("arguments", (!run.replay_args.is_empty()).then(|| run.replay_args.clone().into())),
        ("shard", run.shard.map(|shard| shard.to_string().into())),
        ("plan", Some(run.plan.as_str()).filter(|plan| !plan.is_empty()).map(Value::from)),
    ];
    for (name, value) in parts {
        if let Some(value) = value {
            figures[name] = value;
        }
    }
}

fn summary(summary: &Summary, run: Option<&Setting>) -> Value {
    let mut figures = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "engine": run.map(|run| &*run.engine),
        "release": run.map(|run| &run.release),
        "scenarios": summary.scenarios,
        "conforms": summary.conforms,
        "diverges": summary.diverges,
        "inconclusive": summary.inconclusive,
        "skipped": summary.skipped,
        "ticks": summary.ticks,
        "seconds": (summary.elapsed.as_secs_f64() * 1e3).round() / 1e3,
    });
    if let Some(run) = run {
        how(&mut figures, run);
    }
    if !summary.releases.is_empty() {
        let of_release = |(release, of): &(Release, Summary)| {
            json!({
                "release": release.to_string(),
                "scenarios": of.scenarios,
                "conforms": of.conforms,
                "diverges": of.diverges,
                "inconclusive": of.inconclusive,
                "skipped": of.skipped,
                "ticks": of.ticks,
            })
        };
        figures["releases"] = summary.releases.iter().map(of_release).collect();
    }
    for (name, many) in [("boundaries", summary.boundaries), ("replayed", summary.replayed)] {
        if many > 0 {
            figures[name] = json!(many);
        }
    }
    if !summary.stale_known.is_empty() {
        figures["staleKnown"] = json!(summary.stale_known);
    }
    if !summary.missing.is_empty() {
        figures["missing"] = json!(summary.missing);
    }
    json!({ "summary": figures })
}
