//! `kube-lockstep diff` between two releases of the VPA's recommender.

use std::io::Write as _;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::args::vpa_release;
use super::diff::{Args, Compared, NotCompared, code, in_order, print};
use super::fixtures::Fixtures;
use super::output::PreparationLog;
use super::reports::ReportFile;
use super::run::{Parsed, parse_all};
use super::upstreams::{RunsLive, why_not_live};
use kube_autoscaler_models::rules::{VpaChange, VpaRelease};
use kube_lockstep_engines::recorded::not_recorded_on;
use kube_lockstep_engines::source::{EngineFactory, EngineSource};
use kube_lockstep_report::change::{Between, ChangedScenario, Changes};
use kube_lockstep_report::html::{self, ScenarioChange};
use kube_lockstep_scenario::Scenario;
use kube_lockstep_scenario::vpa::VpaScenario;
use kube_lockstep_sim::engine::Vpa;
use kube_lockstep_sim::run::recommender_change::{RunsOn, changed};
use kube_lockstep_sim::run::recommender_lockstep::run_recommender;
use kube_lockstep_sim::run::{ControllerRun, Preparation, Verdict};
use kube_lockstep_sim::trace::recommender::RecommenderTrace;

/// Compares the scenarios of VPAs on two releases.
pub(super) fn run(args: &Args, from: VpaRelease) -> anyhow::Result<u8> {
    let to = vpa_release(args.to)?;
    in_order(from, to)?;
    let between = Between { from, to };
    let fixtures = Fixtures::find(args.source.fixtures.as_deref())?;
    let Parsed { vpa: scenarios, hpa } = parse_all(&fixtures.select(&args.names)?)?;
    let mut page = args.html.as_deref().map(|path| ReportFile::open("--html", path)).transpose()?;
    let (mut found, mut skipped) = (Vec::new(), skipped_with_hpas(&hpa));
    let (mut same, mut unknown) = (0, false);
    for scenario in &scenarios {
        match compare(&fixtures, args.runs_live(), scenario, between) {
            Compared::Changed(changed) => found.push((scenario.clone(), changed)),
            Compared::Same => same += 1,
            Compared::Not(not) => {
                unknown |= not.is_unknown;
                skipped.push((scenario.id.clone(), not.why));
            }
        }
    }
    let changed =
        found.iter().map(|(scenario, changed)| ChangedScenario { id: &scenario.id, changed });
    let changes = Changes { between, changed: changed.collect(), same, skipped: &skipped };
    if let Some(file) = &mut page {
        let drawn = found.iter().map(|(scenario, it)| ScenarioChange::vpa(scenario, between, it));
        file.write_all(html::changes(between, drawn, same, &skipped, None).as_bytes())?;
    }
    print(&changes, args)?;
    Ok(code(changes.unexplained() > 0, unknown, found.len() + same))
}

/// The scenarios of HPAs that also have a VPA, with the reason why they are not compared.
fn skipped_with_hpas(scenarios: &[Arc<Scenario>]) -> Vec<(String, String)> {
    const WHY: &str = "an HPA and a VPA run on the release of the VPA that `vpaRelease` names; to \
                       compare two, run the scenario with each of them";
    let with_vpa = scenarios.iter().filter(|scenario| scenario.vpa.is_some());
    with_vpa.map(|scenario| (scenario.id.clone(), WHY.to_owned())).collect()
}

/// Compares a scenario on two releases.
pub(super) fn compare(
    fixtures: &Fixtures,
    runs_live: RunsLive,
    scenario: &Arc<VpaScenario>,
    between: Between<VpaRelease>,
) -> Compared<VpaChange> {
    let on = |release| {
        let trace = behavior(fixtures, runs_live, scenario, release)?;
        Ok((release, trace))
    };
    let pair = on(between.from).and_then(|before| Ok((before, on(between.to)?)));
    match pair {
        Ok(((from, before), (to, after))) => {
            let before = RunsOn { release: from, trace: &before };
            let after = RunsOn { release: to, trace: &after };
            match changed(scenario, before, after) {
                Ok(changed) => changed.map_or(Compared::Same, Compared::Changed),
                Err(why) => Compared::Not(NotCompared { why, is_unknown: false }),
            }
        }
        Err(not) => Compared::Not(not),
    }
}

/// The actions of the real recommender: from a recorded trace or, if there is none, live.
fn behavior(
    fixtures: &Fixtures,
    runs_live: RunsLive,
    scenario: &Arc<VpaScenario>,
    release: VpaRelease,
) -> Result<RecommenderTrace, NotCompared> {
    if let Some(why) = scenario.unsupported_on(release) {
        return Err(NotCompared { why: why.to_string(), is_unknown: false });
    }
    let unknown = |why: String| NotCompared { why, is_unknown: true };
    let trace = fixtures.traces().find(&scenario.id, release).map_err(unknown)?;
    if let Some(recording) = trace.filter(|it| it.header.hash == scenario.hash) {
        return recording.recommender_trace().map_err(unknown);
    }
    let RunsLive::On(builds) = runs_live else {
        let why = not_recorded_on(release).to_string();
        return Err(NotCompared { why, is_unknown: false });
    };
    let mut preparing = PreparationLog::default();
    let mut progress = |it: Preparation| preparing.log(&it);
    let limits = builds.limits(&CancellationToken::new());
    let engine: EngineFactory<Vpa> = EngineSource::Upstream
        .prepare(release, &limits, &mut progress)
        .map_err(|error| unknown(why_not_live(error, release)))?;
    let outcome = run_recommender(scenario, &mut *engine.make(), &[]);
    match (outcome.verdict, outcome.controllers.into_iter().next()) {
        (Verdict::Inconclusive { why, .. }, _) => Err(unknown(why)),
        (Verdict::Skipped { why }, _) => Err(unknown(why.to_string())),
        (_, Some(ControllerRun::Recommender(run))) => Ok(run.trace),
        (_, _) => Err(unknown("upstream has no runs".to_owned())),
    }
}
