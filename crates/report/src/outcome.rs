//! The outcome of a scenario as text.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anstyle::Style;

use super::difference::{below_each_other, is_short, side_by_side};
use super::layout::{Align, Columns, hanging, labelled, width, wrap};
use super::style::{BAD, DIM, STRONG, WARN, paint};
use super::unmet::{UnmetOf, with_fixtures_folder};
use super::{counted, replay, writes};
use kube_autoscaler_models::observation::{Observation, ScaleWrite};
use kube_lockstep_sim::compare::Divergence;
use kube_lockstep_sim::run::{Note, Outcome, Setting, Verdict, shell_word, with_vpa};

/// The number of ticks shown before a divergence.
const BEFORE: usize = 3;
/// The number of ticks shown after a divergence.
const AFTER: usize = 2;
/// The number of lines shown of the output of a broken engine.
const OUTPUT_LINES: usize = 20;
/// The width of the column of ids, for outcomes of one line.
const ID_COLUMN: usize = 40;

/// The text of an outcome; `None` if the scenario conforms.
pub fn text(outcome: &Outcome, run: Option<&Setting>, columns: usize) -> Option<String> {
    match &outcome.verdict {
        Verdict::Conforms if outcome.known.is_empty() => None,
        Verdict::Conforms => Some(known(outcome, columns)),
        Verdict::Diverges(divergence) => Some(diverges(outcome, run, divergence, columns)),
        Verdict::Unmet => Some(with_unmet(outcome, run, columns)),
        Verdict::Inconclusive { why, output } => {
            Some(inconclusive(outcome, run, why, output, columns))
        }
        Verdict::Skipped { why } => {
            Some(line("skipped", WARN, &outcome.id, &why.to_string(), columns))
        }
    }
}

/// The notes for the author.
pub fn notes(outcome: &Outcome, columns: usize) -> String {
    outcome.notes.iter().map(|note| note_line(&outcome.path, note, columns)).collect()
}

/// A note with its file and line.
pub fn note_line(path: &str, note: &Note, columns: usize) -> String {
    note_text(&format!("{}: {}", note.place(path), note.what), columns)
}

/// A note as lines.
pub fn note_text(text: &str, columns: usize) -> String {
    labelled("note: ", WARN, text, 0, columns)
}

/// One line for a scenario with any verdict; with the release if there are several.
pub fn short(outcome: &Outcome, several: bool, columns: usize) -> String {
    let ticks = counted(outcome.ticks, "tick");
    let rest = if several { format!("{}, {ticks}", version(outcome)) } else { ticks };
    line("conforms", super::style::GOOD, &outcome.id, &rest, columns)
}

/// One line of a list: a verdict, the id of a scenario and more.
pub fn line(word: &str, style: Style, id: &str, rest: &str, columns: usize) -> String {
    let fill = ID_COLUMN.saturating_sub(width(id));
    let margin = (12 + 2 + width(id) + fill + 2).min(columns);
    let pad = 12_usize.saturating_sub(width(word));
    let rest = wrap(rest, columns.saturating_sub(margin).max(30));
    let rest = rest.join(&format!("\n{:margin$}", ""));
    format!("{}{:pad$}  {id}{:fill$}  {rest}\n", paint(style, word), "", "")
}

/// `v1.37`, `vpa-1.8`, `v1.37 with vpa-1.8`.
fn version(outcome: &Outcome) -> String {
    let release = &outcome.release;
    let release = if release.starts_with("vpa") { release.clone() } else { format!("v{release}") };
    with_vpa(&release, outcome.vpa_release.as_slice())
}

fn heading(word: &str, style: Style, outcome: &Outcome, rest: &str) -> String {
    format!(
        "{}  {}   {}   {rest}\n",
        paint(style, word),
        paint(STRONG, &outcome.id),
        version(outcome)
    )
}

fn location(outcome: &Outcome, line: usize) -> String {
    format!("{}:{line}", outcome.path)
}

/// The command that replays the scenario, with the folder of its fixtures if necessary.
pub(super) fn replay_command(outcome: &Outcome, run: Option<&Setting>) -> String {
    let setting = Setting {
        engine: outcome.engine.clone(),
        release: outcome.release.clone(),
        ..run.cloned().unwrap_or_default()
    };
    with_fixtures_folder(&outcome.id, &outcome.path, replay(&outcome.id, &setting))
}

fn closing(out: &mut String, outcome: &Outcome, run: Option<&Setting>) {
    let _ = writeln!(out, "  {}", location(outcome, outcome.line));
    let command = replay_command(outcome, run);
    let _ = writeln!(out, "  replay: {}", paint(STRONG, &command));
}

fn diverges(
    outcome: &Outcome,
    run: Option<&Setting>,
    divergence: &Divergence,
    columns: usize,
) -> String {
    let sides = format!("model | {}", outcome.engine);
    let mut out = heading("diverges", BAD, outcome, &sides);
    out.push_str(&paint_lines(DIM, &hanging("", &outcome.requirement, 2, columns)));
    differences(&mut out, outcome, divergence, columns);
    out.push_str(&why(divergence, columns));
    out.push_str(&trace_around(outcome, divergence, columns));
    unmet(&mut out, outcome, columns);
    known_hits(&mut out, outcome, columns);
    closing(&mut out, outcome, run);
    if !divergence.is_api_answer() {
        let id = shell_word(&outcome.id);
        let (tick, release) = (divergence.scenario_tick(), &outcome.release);
        let tick = format!("kube-lockstep explain {id} --tick {tick} --release {release}");
        let command = with_fixtures_folder(&outcome.id, &outcome.path, tick);
        let _ = writeln!(out, "  full derivation of the model: {}", paint(STRONG, &command));
    }
    out
}

fn paint_lines(style: Style, text: &str) -> String {
    text.lines().map(|line| paint(style, line) + "\n").collect()
}

fn differences(out: &mut String, outcome: &Outcome, divergence: &Divergence, columns: usize) {
    let at = divergence.at;
    let position = if divergence.is_api_answer() {
        format!("the API server's answer, t={at}")
    } else {
        format!("tick {}, t={at}{}", divergence.scenario_tick(), hpa_of(outcome, divergence))
    };
    let engine = &*outcome.engine;
    let fields = &divergence.fields;
    if let [only] = fields.as_slice()
        && is_short(only)
    {
        let values = side_by_side(only, engine, 0);
        let name = paint(STRONG, &only.field.to_string());
        let _ = writeln!(out, "  {position}, {name}:  {values}");
        return;
    }
    let differ = if fields.len() == 1 { "1 field differs" } else { "fields differ" };
    let count = if fields.len() == 1 { String::new() } else { format!("{} ", fields.len()) };
    let _ = writeln!(out, "  {position}, {count}{differ}:");
    let short = || fields.iter().filter(|field| is_short(field));
    let widest = short().map(|field| width(&field.field.to_string())).max().unwrap_or(0);
    let values = short().map(|field| width(&field.model)).max().unwrap_or(0);
    for field in fields {
        let name = field.field.to_string();
        let pad = widest.saturating_sub(width(&name));
        let name = paint(STRONG, &name);
        if is_short(field) {
            let values = side_by_side(field, engine, values);
            let _ = writeln!(out, "    {name}:{:pad$}  {values}", "");
        } else {
            let _ = writeln!(out, "    {name}:");
            out.push_str(&below_each_other(field, engine, 6, columns));
        }
    }
}

/// The name of the HPA of a divergent tick, if there are several HPAs.
fn hpa_of(outcome: &Outcome, divergence: &Divergence) -> String {
    let ticks = ticks(outcome);
    let index = divergence.scenario_tick().checked_sub(1);
    match index.and_then(|index| ticks.get(index)) {
        Some(tick) if has_several_hpas(ticks) => format!(", HPA {}", tick.hpa),
        _ => String::new(),
    }
}

fn has_several_hpas(ticks: &[Observation]) -> bool {
    let mut hpas = ticks.iter().map(|tick| &tick.hpa);
    hpas.next().is_some_and(|first| hpas.any(|hpa| hpa != first))
}

/// The observed ticks of the HPA controller.
fn ticks(outcome: &Outcome) -> &[Observation] {
    outcome.hpa().map_or(&[], |run| &run.trace.ticks)
}

/// The model's derivation of its value, if the model predicted the tick.
fn why(divergence: &Divergence, columns: usize) -> String {
    let why = &divergence.why;
    if why.is_empty() {
        return String::new();
    }
    let value = match divergence.fields.as_slice() {
        [only] if is_short(only) => only.model.as_str(),
        _ => "so",
    };
    hanging(&format!("why the model said {value}: "), why, 4, columns)
}

/// The observed ticks around a divergence.
fn trace_around(outcome: &Outcome, divergence: &Divergence, columns: usize) -> String {
    let ticks = ticks(outcome);
    let differing = divergence.scenario_tick();
    let first = differing.saturating_sub(BEFORE + 1);
    let end = differing.saturating_add(AFTER).min(ticks.len());
    if first >= end {
        return String::new();
    }
    let several = has_several_hpas(ticks);
    let mut align = vec![Align::Left, Align::Right, Align::Left, Align::Left, Align::Left];
    align.extend(several.then_some(Align::Left));
    let mut table = Columns::new(&align);
    let head = ["", "tick", "t", "hpa", "replicas", "what it did"];
    let head = head.iter().filter(|name| several || **name != "hpa");
    table.row(head.map(|name| (*name).to_owned()).collect(), DIM);
    let mut replicas_by_hpa: BTreeMap<&str, i32> = BTreeMap::new();
    for (index, tick) in ticks[..end].iter().enumerate() {
        let status = tick.status_write().map(|write| &write.status);
        let before = status.and_then(|status| status.current_replicas);
        let before = before.or(replicas_by_hpa.get(&*tick.hpa).copied());
        replicas_by_hpa.extend(tick.scaled_to().or(before).map(|replicas| (&*tick.hpa, replicas)));
        if index < first {
            continue;
        }
        let number = index + 1;
        let here = number == differing && !divergence.is_api_answer();
        let style = match number.cmp(&differing) {
            std::cmp::Ordering::Greater => DIM,
            _ if here => STRONG,
            _ => Style::new(),
        };
        let mark = if here { ">" } else { "" };
        let mut cells = vec![mark.to_owned(), number.to_string(), tick.at.to_string()];
        cells.extend(several.then(|| tick.hpa.to_string()));
        cells.extend([replicas(tick, before), actions(tick)]);
        table.row(cells, style);
    }
    let mut out = format!("    {} did:\n", outcome.engine);
    out.push_str(&table.render(4, columns));
    if outcome.not_compared > 0 {
        let later = counted(outcome.not_compared, "later tick");
        let text = format!("    {later} not compared");
        let _ = writeln!(out, "{}", paint(DIM, &text));
    }
    out
}

/// `3 → 6`: the replicas before a tick and the replicas it set.
fn replicas(tick: &Observation, before: Option<i32>) -> String {
    let before = before.map_or_else(|| "?".to_owned(), |before| before.to_string());
    match tick.scaled_to() {
        Some(after) => format!("{before} → {after}"),
        None => before,
    }
}

/// The events, errors and writes of a tick, in one line.
fn actions(tick: &Observation) -> String {
    let mut parts: Vec<String> = Vec::new();
    for write in tick.scale_writes() {
        let ScaleWrite { resource, name, replicas, error, .. } = write;
        let elsewhere = tick.is_elsewhere(write);
        let of = if elsewhere { format!(" of {resource}/{name}") } else { String::new() };
        match error {
            Some(error) => parts.push(format!("scale{of} to {replicas} refused: {error}")),
            None if elsewhere => parts.push(format!("scale{of} to {replicas}")),
            None => {}
        }
    }
    parts.extend(tick.events().map(|event| format!("{}: {}", event.reason, event.message)));
    if tick.events().next().is_none() {
        parts.extend(tick.errors().map(|error| format!("error: {error}")));
    }
    if tick.status_write().is_none() {
        parts.push("status unchanged".to_owned());
    }
    parts.join("; ")
}

fn unmet(out: &mut String, outcome: &Outcome, columns: usize) {
    for unmet in &outcome.unmet {
        out.push_str(&UnmetOf::outcome(outcome).text(unmet, columns));
    }
}

fn with_unmet(outcome: &Outcome, run: Option<&Setting>, columns: usize) -> String {
    let sides = match &*outcome.engine {
        engine if outcome.is_without_model => format!("{engine} does not meet the expectations"),
        "model" => "the model does not meet the expectations".to_owned(),
        engine => format!("model and {engine} agree, but do not meet the expectations"),
    };
    let mut out = heading("unmet", BAD, outcome, &sides);
    out.push_str(&paint_lines(DIM, &hanging("", &outcome.requirement, 2, columns)));
    unmet(&mut out, outcome, columns);
    out.push_str(&writes::text(outcome, columns));
    known_hits(&mut out, outcome, columns);
    let command = replay_command(outcome, run);
    let _ = writeln!(out, "  replay: {}", paint(STRONG, &command));
    out
}

fn inconclusive(
    outcome: &Outcome,
    run: Option<&Setting>,
    why: &str,
    output: &str,
    columns: usize,
) -> String {
    let mut out = heading("inconclusive", WARN, outcome, "no verdict");
    out.push_str(&reason(why, output, columns));
    closing(&mut out, outcome, run);
    out
}

/// Why an outcome is bad, without a heading: its unmet expectations, or why it has no verdict.
#[must_use]
pub fn failure(outcome: &Outcome, columns: usize) -> String {
    let mut out = String::new();
    if let Verdict::Inconclusive { why, output } = &outcome.verdict {
        out.push_str(&reason(why, output, columns));
    }
    unmet(&mut out, outcome, columns);
    out
}

/// A command for the scenario of an outcome, with the folder of its fixtures if necessary.
#[must_use]
pub fn with_folder(outcome: &Outcome, command: String) -> String {
    with_fixtures_folder(&outcome.id, &outcome.path, command)
}

/// Why there is no verdict, and the output of the engine.
fn reason(why: &str, output: &str, columns: usize) -> String {
    let mut out = hanging("", why, 2, columns);
    let lines: Vec<&str> = output.trim_end().lines().collect();
    if !lines.is_empty() {
        let omitted = lines.len().saturating_sub(OUTPUT_LINES);
        let head = if omitted == 0 {
            "its output:".to_owned()
        } else {
            format!("its output ({} omitted):", counted(omitted, "earlier line"))
        };
        let _ = writeln!(out, "  {head}");
        for line in &lines[omitted..] {
            for part in wrap_verbatim(line, columns.saturating_sub(6)) {
                let _ = writeln!(out, "    {} {part}", paint(DIM, "|"));
            }
        }
    }
    out
}

/// Wraps a line of a program's output without changing its spaces. Control characters, which could
/// change colors, are shown as dots.
fn wrap_verbatim(line: &str, columns: usize) -> Vec<String> {
    let line = line.replace('\t', "    ");
    let line: Vec<char> = line.chars().map(|c| if c.is_control() { '.' } else { c }).collect();
    if line.is_empty() {
        return vec![String::new()];
    }
    line.chunks(columns.max(20)).map(|piece| piece.iter().collect()).collect()
}

fn known(outcome: &Outcome, columns: usize) -> String {
    let mut out = heading("known", WARN, outcome, "conforms except for a known disagreement");
    known_hits(&mut out, outcome, columns);
    out
}

fn known_hits(out: &mut String, outcome: &Outcome, columns: usize) {
    for hit in &outcome.known {
        out.push_str(&hanging("known: ", &hit.reason, 2, columns));
        let _ = writeln!(out, "    {}", wrap(&hit.link, usize::MAX).concat());
    }
}
