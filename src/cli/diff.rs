//! `kube-lockstep diff` and `bisect`: what changed between releases, and in which.

use std::fmt::Write as _;
use std::io;
use std::sync::Arc;

use serde_json::{Value, json};

use super::failure::Failure;
use super::fixtures::Fixtures;
use super::run::parse_all;
use super::{Source, WithMarkdown as Format, columns, exit, show, unless_closed};
use crate::engine::recorded::{Traces, parse_snapshot};
use crate::model::rules::{Change, Release};
use crate::report::{self, change};
use crate::run::change::{Changed, changed};
use crate::scenario::Scenario;
use crate::trace::Trace;

/// The arguments of `diff`.
#[derive(clap::Args, Debug)]
pub(super) struct Args {
    /// What to compare: ids, folders, globs, or files [default: every fixture]
    #[arg(value_name = "SCENARIO")]
    names: Vec<String>,
    /// The older release
    #[arg(long, value_name = "RELEASE", value_parser = Release::known)]
    from: Release,
    /// The newer release
    #[arg(long, value_name = "RELEASE", value_parser = Release::known)]
    #[arg(default_value_t = Release::newest())]
    to: Release,
    /// How results are shown
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    #[command(flatten)]
    source: Source,
}

/// The arguments of `bisect`.
#[derive(clap::Args, Debug)]
pub(super) struct BisectArgs {
    /// The scenario: an id or a file
    #[arg(value_name = "SCENARIO")]
    name: String,
    /// How results are shown
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    #[command(flatten)]
    source: Source,
}

/// What came of comparing one scenario on two releases.
enum Compared {
    Same,
    Changed(Changed),
    Skipped(String),
}

/// The recorded trace that holds for a release.
fn trace(
    traces: &Traces,
    scenario: &Scenario,
    release: Release,
) -> Result<Result<Trace, String>, Failure> {
    if let Some(why) = scenario.lacking(release) {
        return Ok(Err(why));
    }
    let broken = |why: String| Failure::engine(format!("{}: {why}", scenario.id));
    match traces.find(&scenario.id, release).map_err(broken)? {
        None => Ok(Err(format!("no trace of it is recorded on {release}"))),
        Some((_, text)) => {
            let trace = parse_snapshot(&text).map_err(broken)?;
            let stale = trace.hash != scenario.hash;
            Ok(if stale { Err("its recorded trace is stale".to_owned()) } else { Ok(trace) })
        }
    }
}

fn compare(
    traces: &Traces,
    scenario: &Arc<Scenario>,
    from: Release,
    to: Release,
) -> Result<Compared, Failure> {
    let before = match trace(traces, scenario, from)? {
        Ok(trace) => trace,
        Err(why) => return Ok(Compared::Skipped(why)),
    };
    let after = match trace(traces, scenario, to)? {
        Ok(trace) => trace,
        Err(why) => return Ok(Compared::Skipped(why)),
    };
    Ok(match changed(scenario, (from, &before), (to, &after)) {
        None => Compared::Same,
        Some(changed) => Compared::Changed(changed),
    })
}

pub(super) fn run(args: &Args) -> anyhow::Result<u8> {
    let (from, to) = (args.from, args.to);
    if from >= to {
        let what = format!("--from {from} --to {to}: the first is the older release");
        return Err(Failure::usage(what).into());
    }
    let fixtures = Fixtures::find(args.source.fixtures.as_deref())?;
    let scenarios = parse_all(&fixtures.select(&args.names)?)?;
    let traces = fixtures.traces();
    let mut found: Vec<(Arc<Scenario>, Changed)> = Vec::new();
    let mut skipped: Vec<(String, String)> = Vec::new();
    let mut same = 0;
    for scenario in scenarios {
        match compare(&traces, &scenario, from, to)? {
            Compared::Same => same += 1,
            Compared::Changed(changed) => found.push((scenario, changed)),
            Compared::Skipped(why) => skipped.push((scenario.id.clone(), why)),
        }
    }
    let unexplained = found.iter().filter(|(_, changed)| changed.rows.is_empty()).count();
    match args.format {
        Format::Json => {
            for (scenario, changed) in &found {
                let line = line(&scenario.id, from, to, changed);
                unless_closed(report::json::line(&mut io::stdout(), &line))?;
            }
            let summary = json!({"summary": {
                "from": from.to_string(),
                "to": to.to_string(),
                "changed": found.len(),
                "unexplained": unexplained,
                "same": same,
                "skipped": skipped.iter().map(|(id, why)| json!({"id": id, "why": why}))
                    .collect::<Vec<_>>(),
            }});
            unless_closed(report::json::line(&mut io::stdout(), &summary))?;
        }
        Format::Text => {
            let mut text = String::new();
            for (scenario, changed) in &found {
                text.push_str(&change::text(&scenario.id, (from, to), changed, columns()));
            }
            text.push_str(&change::ending((from, to), found.len(), unexplained, same, &skipped));
            show(&text)?;
        }
        Format::Markdown => show(&change::markdown((from, to), &found, same, &skipped))?,
    }
    Ok(if unexplained > 0 { exit::DIVERGES } else { exit::CONFORMS })
}

pub(super) fn bisect(args: &BisectArgs) -> anyhow::Result<u8> {
    let fixtures = Fixtures::find(args.source.fixtures.as_deref())?;
    let scenario = fixtures.one(&args.name)?.parse()?;
    let traces = fixtures.traces();
    let releases: Vec<Release> = Release::supported().collect();
    let mut text = String::new();
    let mut unexplained = false;
    let mut compared = 0;
    for pair in releases.windows(2) {
        let &[from, to] = pair else { continue };
        let changed = match compare(&traces, &scenario, from, to)? {
            Compared::Same => {
                compared += 1;
                continue;
            }
            Compared::Skipped(why) => {
                if args.format != Format::Json {
                    let _ = writeln!(text, "{from} -> {to}: not compared: {why}");
                }
                continue;
            }
            Compared::Changed(changed) => changed,
        };
        compared += 1;
        unexplained |= changed.rows.is_empty();
        match args.format {
            Format::Json => {
                let line = line(&scenario.id, from, to, &changed);
                unless_closed(report::json::line(&mut io::stdout(), &line))?;
            }
            Format::Text => {
                text.push_str(&change::text(&scenario.id, (from, to), &changed, columns()));
            }
            Format::Markdown => {
                let found = [(scenario.clone(), changed)];
                text.push_str(&change::markdown((from, to), &found, 0, &[]));
            }
        }
    }
    if compared == 0 {
        let what = format!("{} has no recorded traces of two releases", scenario.id);
        return Err(Failure::nothing(what).into());
    }
    if text.is_empty() && args.format != Format::Json {
        let (oldest, newest) = (Release::OLDEST, Release::newest());
        let _ = writeln!(text, "{} is the same from {oldest} to {newest}", scenario.id);
    }
    show(&text)?;
    Ok(if unexplained { exit::DIVERGES } else { exit::CONFORMS })
}

fn line(id: &str, from: Release, to: Release, changed: &Changed) -> Value {
    let fields = changed
        .first
        .fields
        .iter()
        .map(|field| json!({"field": field.field, "from": field.model, "to": field.upstream}));
    let row =
        |row: &&Change| json!({"since": row.since.to_string(), "what": row.what, "link": row.link});
    json!({
        "id": id,
        "from": from.to_string(),
        "to": to.to_string(),
        "tick": changed.first.tick,
        "at": changed.first.at.to_string(),
        "fields": fields.collect::<Vec<_>>(),
        "rows": changed.rows.iter().map(row).collect::<Vec<_>>(),
        "also": changed.also.iter().map(row).collect::<Vec<_>>(),
    })
}
