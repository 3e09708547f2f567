//! The fixtures of VPAs that can run on a wall clock, with upstream's own recommender on a real
//! control plane: `cargo test --features e2e --test vpa_cluster`.
//!
//! Fixtures that cannot run are reported as ignored. Two tests give the recommender a flag that the
//! model does not know: their scenarios must diverge.

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use kube_autoscaler_models::rules::{Release, VpaRelease};
use kube_lockstep_engines::plan::RecommenderPlan;
use kube_lockstep_engines::upstream::build::{Artifact, ensure};
use kube_lockstep_sim::engine::EngineError;
use kube_lockstep_sim::run::{Outcome, Verdict};
use libtest_mimic::Failed;
use serde_json::Value;
use support::place::Workspace;
use support::planted;
use support::trials::Suite;
use tokio_util::sync::CancellationToken;

/// The smallest number of fixtures that must run: those that are short, and whose objects can be
/// created.
const FEWEST: usize = 90;

/// The number of scenarios that run at a time.
const JOBS: usize = 12;

fn main() -> ExitCode {
    // The planted faults have their own control planes.
    let mut suite = Suite::one_at_a_time("vpa_cluster");
    let release = VpaRelease::NEWEST;
    let recommender = suite.require("the recommender of a release", || {
        let (artifact, stop) = (Artifact::RecommenderProgram, CancellationToken::new());
        ensure(artifact, release, &stop, &mut |_, _| {})
    });
    let programs = suite.control_plane(Release::NEWEST).and(recommender);
    let is_missing = programs.is_missing();
    let planted =
        programs.map(|(control_plane, recommender)| Programs { control_plane, recommender });
    let ready = planted.clone().get().map(|_| ());
    let ready = ready.map_err(|error| error.message().unwrap_or_default().to_owned());
    let outcomes = ready.and_then(|()| run_fixtures(&suite).map_err(|error| error.to_string()));
    let ran = outcomes
        .as_ref()
        .map_err(String::clone)
        .map(|outcomes| outcomes.values().filter(|outcome| !is_skipped(outcome)).count());
    // With a filter, only some fixtures run.
    let is_partial = suite.filter().is_some();
    suite.test_unless(is_missing || is_partial, "enough_fixtures_run", move || enough(ran?));
    for path in support::vpa_fixtures() {
        let id = support::id_of(&path);
        let outcome = outcomes.as_ref().map_err(String::clone).and_then(|outcomes| {
            outcomes.get(&id).cloned().ok_or_else(|| "it was not run".to_owned())
        });
        let skipped = outcome.as_ref().is_ok_and(is_skipped);
        suite.test_unless(skipped || is_missing, id, move || verdict(outcome));
    }
    for (name, flag, field) in FAULTS {
        suite.test_with(&planted, name, move |programs| diverges(&programs, flag, field));
    }
    suite.run()
}

/// The name of a test, a flag that only the recommender gets, and a field that then differs.
const FAULTS: [(&str, &str, &str); 2] = [
    ("another_margin_diverges", "--recommendation-margin-fraction=0.2", "target.cpu"),
    (
        "another_half_life_diverges",
        "--cpu-histogram-decay-half-life=1m",
        "cpuHistogram.totalWeight",
    ),
];

/// The programs of a control plane and of a recommender.
#[derive(Clone)]
struct Programs {
    control_plane: PathBuf,
    recommender: PathBuf,
}

/// Runs the selected fixtures concurrently.
fn run_fixtures(suite: &Suite) -> Result<BTreeMap<String, Outcome>, EngineError> {
    let all = support::vpa_fixtures();
    let wanted =
        |path: &&PathBuf| suite.filter().is_none_or(|only| support::id_of(path).contains(only));
    let scenarios = all.iter().filter(wanted).map(|path| support::load_vpa(path)).collect();
    let mut plan = support::on_a_control_plane(Vec::new(), Release::NEWEST, JOBS);
    plan.recommender = RecommenderPlan::new(scenarios, vec![VpaRelease::NEWEST]);
    if plan.recommender.scenarios.is_empty() {
        return Ok(BTreeMap::new());
    }
    let (outcomes, summary) = support::outcomes(&plan)?;
    suite.say(&format!(
        "{} conform, {} diverge, {} without a verdict, {} skipped; {} runs in {:.0} s; {} \
         scenarios were retried",
        summary.conforms,
        summary.diverges,
        summary.inconclusive,
        summary.skipped,
        summary.ticks,
        summary.elapsed.as_secs_f64(),
        summary.retried
    ));
    Ok(outcomes)
}

fn is_skipped(outcome: &Outcome) -> bool {
    matches!(outcome.verdict, Verdict::Skipped { .. })
}

/// Checks the number of fixtures that ran: if all were skipped, no test would fail.
fn enough(ran: usize) -> Result<(), Failed> {
    if ran >= FEWEST {
        return Ok(());
    }
    let what = "a change of the harness or of the fixtures skips others, or FEWEST is too high";
    Err(format!("only {ran} fixtures ran on the wall clock, fewer than {FEWEST}: {what}").into())
}

fn verdict(outcome: Result<Outcome, String>) -> Result<(), Failed> {
    let outcome = outcome?;
    match outcome.verdict {
        Verdict::Conforms => Ok(()),
        // All runs before the undetermined one agreed.
        Verdict::Inconclusive { .. } if outcome.undetermined.is_some() => Ok(()),
        verdict => Err(format!("{verdict:#?}").into()),
    }
}

/// Runs a scenario with a recommender that gets one more flag.
fn diverges(programs: &Programs, flag: &str, field: &str) -> Result<(), Failed> {
    let Programs { control_plane, recommender } = programs;
    let workspace = Workspace::new()?;
    let cache = tempfile::tempdir()?;
    let engines = cache.path().join("engines");
    fs::create_dir(&engines)?;
    planted::replace(&engines, control_plane, "")?;
    planted::replace(&engines, recommender, &format!("set -- \"$@\" {flag}\n"))?;
    let id = "vpa/runs/the-first-run";
    let args = ["run", "--engine", "embedded", "--release", "vpa-1.8", "--format", "json", id];
    let output = workspace.command(&args).env("KUBE_LOCKSTEP_CACHE", cache.path()).output()?;
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    let lines = String::from_utf8(output.stdout)?;
    let outcome = lines
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .find(|line| line["verdict"].is_string())
        .ok_or_else(|| format!("no outcome: {errors}"))?;
    assert_eq!(outcome["verdict"], "diverges", "{errors}\n{outcome:#}");
    let found = outcome["divergence"].to_string();
    assert!(found.contains(field), "{found}");
    workspace.wait_until_empty()?;
    Ok(())
}
