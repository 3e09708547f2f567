//! `kube-lockstep diff` between two releases of the VPA's recommender.

use std::io::{self, Write as _};
use std::sync::Arc;

use serde_json::json;

use super::args::{WithMarkdown as Format, of_vpa};
use super::diff::{Args, code};
use super::failure::Failure;
use super::fixtures::Fixtures;
use super::output::{PreparationLog, columns, show, unless_closed};
use super::reports::ReportFile;
use super::run::parse_all;
use crate::engine::Vpa;
use crate::engine::recorded::not_recorded_on;
use crate::engine::source::{EngineFactory, EngineLimits, EngineSource};
use crate::model::rules::VpaRelease;
use crate::report::change::{Between, ChangedScenario, Changes};
use crate::report::{html, json};
use crate::run::Verdict;
use crate::run::recommender_change::{RecommenderChanged, RunsOn, changed};
use crate::run::recommender_lockstep::run_recommender;
use crate::scenario::vpa::VpaScenario;
use crate::trace::recommender::RecommenderTrace;

/// Compares the scenarios of VPAs on two releases.
pub(super) fn run(args: &Args, from: VpaRelease) -> anyhow::Result<u8> {
    let to = of_vpa(args.to)?;
    if from >= to {
        let what = format!("--from {from} --to {to}: --from must be older than --to");
        return Err(Failure::usage(what).into());
    }
    let fixtures = Fixtures::find(args.source.fixtures.as_deref())?;
    let scenarios = parse_all(&fixtures.select(&args.names)?)?.vpa;
    let mut page = args.html.as_deref().map(|path| ReportFile::open("--html", path)).transpose()?;
    let (mut found, mut skipped) = (Vec::new(), Vec::new());
    let (mut same, mut unknown) = (0, false);
    for scenario in &scenarios {
        let pair = behavior(args, &fixtures, scenario, from)
            .and_then(|before| Ok((before, behavior(args, &fixtures, scenario, to)?)));
        match pair {
            Ok((before, after)) => {
                let (before, after) = (
                    RunsOn { release: from, trace: &before },
                    RunsOn { release: to, trace: &after },
                );
                match changed(scenario, before, after) {
                    Some(changed) => found.push((scenario.clone(), changed)),
                    None => same += 1,
                }
            }
            Err(NotCompared { why, is_unknown }) => {
                unknown |= is_unknown;
                skipped.push((scenario.id.clone(), why));
            }
        }
    }
    let between = Between { from, to };
    let changed =
        found.iter().map(|(scenario, changed)| ChangedScenario::of_vpa(&scenario.id, changed));
    let changes = Changes { between, changed: changed.collect(), same, skipped: &skipped };
    let unexplained = changes.unexplained();
    if let Some(file) = &mut page {
        let text = html::recommender_changes(between, &found, same, &skipped);
        file.write_all(text.as_bytes())?;
    }
    match args.format {
        Format::Json => {
            for (scenario, changed) in &found {
                unless_closed(json::line(&mut io::stdout(), &line(scenario, from, to, changed)))?;
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
            unless_closed(json::line(&mut io::stdout(), &summary))?;
        }
        Format::Markdown => show(&changes.markdown())?,
        Format::Text => show(&changes.text(args.shown(), columns()))?,
    }
    Ok(code(unexplained > 0, unknown, found.len() + same))
}

/// The reason why a scenario was not compared.
struct NotCompared {
    why: String,
    /// Whether the release supports the scenario, but upstream could not run it.
    is_unknown: bool,
}

/// What the real recommender does: from a recorded trace or, if there is none, live. With
/// `--recorded`, a scenario without a recorded trace is not compared.
fn behavior(
    args: &Args,
    fixtures: &Fixtures,
    scenario: &Arc<VpaScenario>,
    release: VpaRelease,
) -> Result<RecommenderTrace, NotCompared> {
    if let Some(why) = scenario.unsupported_on(release) {
        return Err(NotCompared { why, is_unknown: false });
    }
    let unknown = |why: String| NotCompared { why, is_unknown: true };
    let recorded = fixtures.traces().find(&scenario.id, release).map_err(unknown)?;
    if let Some(recording) = recorded.filter(|it| it.header.hash == scenario.hash) {
        return recording.recommender_trace().map_err(unknown);
    }
    if args.recorded {
        return Err(NotCompared { why: not_recorded_on(release), is_unknown: false });
    }
    let mut preparing = PreparationLog::default();
    let mut progress = |what: &str, done| preparing.log(what, done);
    let limits = EngineLimits::default();
    let engine: EngineFactory<Vpa> = EngineSource::Upstream
        .prepare(release, &limits, &mut progress)
        .map_err(|error| unknown(error.to_string()))?;
    let outcome = run_recommender(scenario, &mut *engine.make(), &[]);
    match (outcome.verdict, outcome.recommender) {
        (Verdict::Inconclusive { why, .. } | Verdict::Skipped { why }, _) => Err(unknown(why)),
        (_, Some(run)) => Ok(run.trace),
        (_, None) => Err(unknown("upstream has no runs".to_owned())),
    }
}

fn line(
    scenario: &VpaScenario,
    from: VpaRelease,
    to: VpaRelease,
    changed: &RecommenderChanged,
) -> serde_json::Value {
    let fields = changed
        .first
        .fields
        .iter()
        .map(|field| json!({"field": field.field, "from": field.model, "to": field.upstream}));
    let rows = changed
        .rows
        .iter()
        .map(|row| json!({"since": row.since.to_string(), "what": row.what, "link": row.source}));
    json!({
        "id": scenario.id,
        "from": from.to_string(),
        "to": to.to_string(),
        "tick": changed.first.tick,
        "at": changed.first.at.to_string(),
        "fields": fields.collect::<Vec<_>>(),
        "rows": rows.collect::<Vec<_>>(),
    })
}
