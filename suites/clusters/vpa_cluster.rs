//! The fixtures of VPAs that can run on a wall clock, with upstream's own recommender on a real
//! control plane.
//!
//! Fixtures that cannot run are reported as ignored. Two tests give the recommender a flag that the
//! model does not know: their scenarios must diverge.

use crate::support;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use crate::support::place::Workspace;
use crate::support::planted;
use crate::support::trials::{self, Suite};
use kube_autoscaler_models::rules::{Release, VpaRelease};
use kube_lockstep_engines::plan::RecommenderPlan;
use kube_lockstep_engines::upstream::build::{Artifact, ensure};
use kube_lockstep_sim::engine::EngineError;
use kube_lockstep_sim::run::{Outcome, Verdict};
use libtest_mimic::{Completion, Failed};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

/// The smallest number of fixtures that must run: those that are short, and whose objects can be
/// created.
const FEWEST: usize = 90;

/// The number of scenarios that run at a time.
const JOBS: usize = 12;

/// Adds the tests of this suite.
pub(crate) fn add_tests(suite: &mut Suite) {
    // The planted faults have their own control planes.
    let release = VpaRelease::NEWEST;
    let recommender = suite.require(move || {
        let (artifact, stop) = (Artifact::RecommenderProgram, CancellationToken::new());
        ensure(artifact, release, &stop, &mut |_| {})
    });
    let programs = suite.control_plane(Release::NEWEST).and(&recommender);
    let planted =
        programs.map(|(control_plane, recommender)| Programs { control_plane, recommender });
    let all = support::vpa_fixtures();
    let mut selected = all.clone();
    selected.retain(|path| suite.selects(&support::id_of(path)));
    let is_partial = selected.len() < all.len();
    let outcomes = planted.and_then(move |_| {
        run_fixtures(&selected).map(Arc::new).map_err(|error| error.to_string())
    });
    suite.test_or_ignore(&outcomes, "enough_fixtures_run", move |outcomes| {
        if is_partial {
            return Ok(Completion::ignored_with("only some fixtures are selected"));
        }
        enough(outcomes.values().filter(|outcome| !is_skipped(outcome)).count())?;
        Ok(Completion::Completed)
    });
    for id in all.iter().map(|path| support::id_of(path)) {
        suite.test_or_ignore(&outcomes, id.clone(), move |outcomes| verdict(outcomes.get(&id)));
    }
    for (name, flag, field) in FAULTS {
        suite.test_with(&planted, name, move |programs| diverges(&programs, flag, field));
    }
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

/// Runs these fixtures concurrently.
fn run_fixtures(fixtures: &[PathBuf]) -> Result<BTreeMap<String, Outcome>, EngineError> {
    let scenarios = fixtures.iter().map(|path| support::load_vpa(path)).collect();
    let mut plan = support::on_a_control_plane(Vec::new(), Release::NEWEST, JOBS);
    plan.recommender = RecommenderPlan::new(scenarios, vec![VpaRelease::NEWEST]);
    let (outcomes, summary) = support::outcomes(&plan)?;
    trials::say(
        "vpa_cluster",
        &format!(
            "{} conform, {} diverge, {} without a verdict, {} skipped; {} runs in {:.0} s; {} \
         scenarios were retried",
            summary.conforms,
            summary.diverges,
            summary.inconclusive,
            summary.skipped,
            summary.ticks,
            summary.elapsed.as_secs_f64(),
            summary.retried
        ),
    );
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

fn verdict(outcome: Option<&Outcome>) -> Result<Completion, Failed> {
    let outcome = outcome.ok_or("it was not run")?;
    match &outcome.verdict {
        Verdict::Conforms => Ok(Completion::Completed),
        Verdict::Skipped { why } => Ok(Completion::ignored_with(why.to_string())),
        // All runs before the undetermined one agreed.
        Verdict::Inconclusive { .. } if outcome.undetermined.is_some() => Ok(Completion::Completed),
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
