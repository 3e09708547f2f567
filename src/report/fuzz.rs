//! A run of the fuzzer as text or JSON, and the fixture file that a finding becomes.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::time::Duration;

use serde_json::{Value, json};

use super::style::{BAD, DIM, GOOD, STRONG, WARN, paint};
use super::{counted, json as lines, layout, outcome, thousands};
use crate::fuzz::Reached;
use crate::run::fuzzing::{Failure, Finding, FuzzSummary};
use crate::run::{Setting, Verdict};
use crate::scenario::{self, Scenario};

/// What a fuzz run is made on.
#[derive(Clone, Debug)]
pub struct FuzzSetting {
    /// Engine and release.
    pub setting: Setting,
    /// Where all chance comes from.
    pub seed: u64,
    /// This program's version.
    pub version: &'static str,
    /// The areas that were asked for.
    pub areas: Vec<String>,
    /// How many workers.
    pub jobs: usize,
}

/// The first line: what is needed to do it again.
#[must_use]
pub fn first_line(of: &FuzzSetting) -> String {
    let areas = match of.areas.as_slice() {
        [] => String::new(),
        areas => format!(", areas {}", areas.join(", ")),
    };
    let shard = of.setting.shard.map(|shard| format!(", shard {shard}")).unwrap_or_default();
    format!(
        "fuzz: seed {}, release {}, engine {}, kube-lockstep {}{areas}{shard}\n",
        of.seed, of.setting.release, of.setting.engine, of.version
    )
}

/// [`first_line`] for programs.
#[must_use]
pub fn first_json(of: &FuzzSetting) -> Value {
    let mut first = json!({
        "seed": of.seed,
        "release": of.setting.release,
        "engine": &*of.setting.engine,
        "version": of.version,
        "areas": of.areas,
    });
    if let Some(shard) = of.setting.shard {
        first["shard"] = shard.to_string().into();
    }
    json!({ "fuzz": first })
}

/// How far it is, in a line.
#[must_use]
pub fn progress(scenarios: usize, ticks: usize, elapsed: Duration) -> String {
    format!(
        "{}, {}, {}",
        counted(scenarios, "scenario"),
        counted(ticks, "tick"),
        speed(scenarios, ticks, elapsed)
    )
}

fn speed(scenarios: usize, ticks: usize, elapsed: Duration) -> String {
    let rate = |count: usize| {
        let rate = count as f64 / elapsed.as_secs_f64().max(1e-9);
        thousands(rate.round() as usize)
    };
    format!("{} ticks/s, {} scenarios/s", rate(ticks), rate(scenarios))
}

/// A failure of a new kind, at once.
#[must_use]
pub fn failed(index: u64, kind: &str) -> String {
    format!("{}  scenario {index}: {kind}\n", paint(BAD, "failed"))
}

/// A finding: what differs, and where it is kept.
#[must_use]
pub fn finding(found: &Finding, of: &FuzzSetting, path: &str, columns: usize) -> String {
    let mut out = String::from("\n");
    match &found.failure {
        Failure::Outcome(failed) => {
            let mut shown = (**failed).clone();
            // Replayed from its file.
            shown.id = path.to_owned();
            shown.path = path.to_owned();
            shown.line = hpa_line(&fixture(found, of, path));
            out.push_str(&outcome::text(&shown, Some(&of.setting), columns).unwrap_or_default());
        }
        Failure::Panic(message) => {
            let _ = writeln!(out, "{}  {}", paint(BAD, "panic"), paint(STRONG, path));
            out.push_str(&layout::hanging("", message, 2, columns));
            let _ = writeln!(out, "  replay: {}", super::replay(path, &of.setting));
        }
    }
    let how = match (found.tried, found.cut_short) {
        (0, true) => "not shrunk: interrupted".to_owned(),
        (0, false) => "as generated: its file does not fail".to_owned(),
        (tried, true) => format!("shrunk in {}, then interrupted", counted(tried, "run")),
        (tried, false) => format!("shrunk in {}", counted(tried, "run")),
    };
    let seen = counted(found.times, "scenario");
    let text = format!("  first in scenario {} of the seed, in {seen}; {how}", found.index);
    let _ = writeln!(out, "{}", paint(DIM, &text));
    out
}

/// A finding for programs.
#[must_use]
pub fn finding_json(found: &Finding, of: &FuzzSetting, path: &str) -> Value {
    let failure = match &found.failure {
        Failure::Panic(message) => json!({ "panic": message }),
        Failure::Outcome(failed) => match &failed.verdict {
            Verdict::Diverges(divergence) => {
                let field = |field: &crate::compare::FieldDifference| {
                    json!({
                        "field": field.field,
                        "model": field.model,
                        "upstream": field.upstream,
                    })
                };
                json!({
                    "tick": divergence.tick,
                    "at": divergence.at.to_string(),
                    "fields": divergence.fields.iter().map(field).collect::<Vec<_>>(),
                    "why": outcome::reason(failed, divergence),
                })
            }
            Verdict::Inconclusive { why, .. } => json!({ "inconclusive": why }),
            _ => Value::Null,
        },
    };
    json!({ "found": {
        "kind": found.kind,
        "index": found.index,
        "scenarios": found.times,
        "ticks": ticks(found),
        "file": path,
        "cutShort": found.cut_short,
        "replay": super::replay(path, &of.setting),
        "failure": failure,
    }})
}

fn ticks(found: &Finding) -> Option<usize> {
    match &found.failure {
        Failure::Outcome(outcome) => Some(outcome.ticks),
        Failure::Panic(_) => None,
    }
}

/// The fixture that a finding becomes: what it shows, how to see it again, and the scenario.
#[must_use]
pub fn fixture(found: &Finding, of: &FuzzSetting, path: &str) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "# Found by fuzzing: seed {}, scenario {}.", of.seed, found.index);
    match &found.failure {
        Failure::Panic(message) => {
            let _ = writeln!(text, "# The model panicked: {}", message.replace('\n', " "));
        }
        Failure::Outcome(failed) => match &failed.verdict {
            Verdict::Diverges(divergence) => {
                let (tick, at) = (divergence.tick, divergence.at);
                let engine = &of.setting.engine;
                let width = engine.chars().count().max("model".len());
                let _ = writeln!(text, "# At tick {tick}, t={at}:");
                for difference in &divergence.fields {
                    let one_line = |text: &str| text.replace('\n', " ");
                    let _ = writeln!(text, "#   {}", difference.field);
                    let (model, seen) = (&difference.model, &difference.upstream);
                    let _ = writeln!(text, "#     {:width$}  {}", "model", one_line(model));
                    let _ = writeln!(text, "#     {engine:width$}  {}", one_line(seen));
                }
            }
            Verdict::Inconclusive { why, .. } => {
                let _ = writeln!(text, "# No verdict: {}", why.replace('\n', " "));
            }
            _ => {}
        },
    }
    let _ = writeln!(text, "# Replay: {}", super::replay(path, &of.setting));
    let release = &of.setting.release;
    let kept = Scenario {
        upstream: format!(
            "https://github.com/kubernetes/kubernetes/blob/v{release}.0/pkg/controller/\
             podautoscaler/horizontal.go"
        ),
        ..(*found.scenario).clone()
    };
    text.push_str(&scenario::to_yaml(&kept, None));
    text
}

fn hpa_line(text: &str) -> usize {
    text.lines()
        .position(|line| line.starts_with("hpa:") || line.starts_with("hpas:"))
        .map_or(1, |index| index + 1)
}

/// The last lines: the figures, and what was reached.
#[must_use]
pub fn summary(of: &FuzzSummary, seed: u64, columns: usize) -> String {
    let mut out = String::from("\n");
    for group in of.coverage.iter().filter(|_| of.ticks > 0) {
        let all = group.reached.len() + group.never.len();
        let head = format!("{} of {all} {}: ", group.reached.len(), group.group);
        out.push_str(&layout::hanging(&head, &reached(group), 2, columns));
    }
    let interrupted = if of.interrupted { "interrupted: " } else { "" };
    let verdict = match (of.divergences, of.inconclusive) {
        _ if of.ticks == 0 => paint(WARN, "no scenario came to a tick"),
        (0, 0) => paint(GOOD, "no divergence"),
        (0, _) => paint(WARN, "no divergence, but scenarios without a verdict"),
        (count, _) => paint(BAD, &counted(count, "divergence")),
    };
    let inconclusive = match of.inconclusive {
        0 => String::new(),
        count => format!(", {} without a verdict", thousands(count)),
    };
    let unplayable = match of.unplayable {
        0 => String::new(),
        count => format!(", {} cut short where chance decides", thousands(count)),
    };
    let _ = writeln!(
        out,
        "{interrupted}{verdict} in {}, {}{inconclusive}{unplayable} (seed {seed}; {} in {:.1}s)",
        counted(of.scenarios, "scenario"),
        counted(of.ticks, "tick"),
        speed(of.scenarios, of.ticks, of.elapsed),
        of.elapsed.as_secs_f64()
    );
    out
}

fn reached(group: &Reached) -> String {
    let of = |(name, count): &(String, u64)| {
        format!("{name} {}", thousands(usize::try_from(*count).unwrap_or(usize::MAX)))
    };
    let reached: Vec<String> = group.reached.iter().map(of).collect();
    let reached = (!reached.is_empty()).then(|| reached.join(", "));
    let never = (!group.never.is_empty()).then(|| format!("never {}", group.never.join(", ")));
    reached.into_iter().chain(never).collect::<Vec<_>>().join("; ")
}

/// [`summary`] for programs.
#[must_use]
pub fn summary_json(of: &FuzzSummary, setting: &FuzzSetting) -> Value {
    let seconds = of.elapsed.as_secs_f64();
    let group = |group: &Reached| {
        let reached: serde_json::Map<String, Value> =
            group.reached.iter().map(|(name, count)| (name.clone(), json!(count))).collect();
        (group.group.clone(), json!({ "reached": reached, "never": group.never }))
    };
    let coverage: serde_json::Map<String, Value> = of.coverage.iter().map(group).collect();
    json!({ "summary": {
        "seed": setting.seed,
        "scenarios": of.scenarios,
        "ticks": of.ticks,
        "divergences": of.divergences,
        "inconclusive": of.inconclusive,
        "unplayable": of.unplayable,
        "interrupted": of.interrupted,
        "release": setting.setting.release,
        "engine": &*setting.setting.engine,
        "version": setting.version,
        "jobs": setting.jobs,
        "seconds": (seconds * 1000.0).round() / 1000.0,
        "coverage": coverage,
    }})
}

/// Writes a value as a line.
///
/// # Errors
/// If it can't be written.
pub fn json_line(out: &mut dyn Write, value: &Value) -> io::Result<()> {
    lines::line(out, value)
}
