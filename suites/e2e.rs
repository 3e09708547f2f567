//! Every fixture that can run on a wall clock, on real control planes: `cargo test --features e2e`.
//!
//! The suite runs on the newest release, or on the releases that the environment variable
//! KUBE_LOCKSTEP_E2E_RELEASES names, which it then requires. Fixtures that cannot run are reported
//! as ignored, with the reasons.

mod support;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

use kube_autoscaler_models::rules::Release;
use kube_lockstep_engines::plan::DEFAULT_CLUSTER_JOBS;
use kube_lockstep_sim::engine::EngineError;
use kube_lockstep_sim::run::{Outcome, Verdict};
use libtest_mimic::Failed;
use support::trials::{self, Suite};

/// The environment variable that names releases, in the form of `--release`.
const RELEASES: &str = "KUBE_LOCKSTEP_E2E_RELEASES";

fn main() -> ExitCode {
    let mut suite = Suite::new("e2e");
    for release in trials::releases(RELEASES).iter() {
        let program = suite.control_plane(release);
        // The variable makes its releases required.
        let is_named = std::env::var_os(RELEASES).is_some();
        let program = if is_named { program.required() } else { program };
        let is_missing = program.is_missing();
        let outcomes =
            program.get().map_err(|error| error.message().unwrap_or_default().to_owned());
        let outcomes =
            outcomes.and_then(|_| run_fixtures(&suite, release).map_err(|error| error.to_string()));
        for path in support::fixtures() {
            let id = support::id_of(&path);
            let outcome = outcomes.as_ref().map_err(String::clone).and_then(|outcomes| {
                outcomes.get(&id).cloned().ok_or_else(|| "it was not run".to_owned())
            });
            let skipped = matches!(&outcome, Ok(Outcome { verdict: Verdict::Skipped { .. }, .. }));
            let name = format!("{release}/{id}");
            suite.test_unless(skipped || is_missing, name, move || verdict(outcome));
        }
    }
    suite.run()
}

/// Runs the selected fixtures concurrently.
fn run_fixtures(suite: &Suite, release: Release) -> Result<BTreeMap<String, Outcome>, EngineError> {
    let all = support::fixtures();
    let wanted = |path: &&PathBuf| {
        suite
            .filter()
            .is_none_or(|only| format!("{release}/{}", support::id_of(path)).contains(only))
    };
    let scenarios = all.iter().filter(wanted).map(|path| support::load(path)).collect();
    let plan = support::on_a_control_plane(scenarios, release, DEFAULT_CLUSTER_JOBS);
    if plan.scenarios.is_empty() {
        return Ok(BTreeMap::new());
    }
    let (outcomes, summary) = support::outcomes(&plan)?;
    suite.say(&format!(
        "{release}: {} conform, {} diverge, {} with unmet expectations, {} without a verdict, \
         {} skipped; {} ticks in {:.0} s, {} of them ambiguous; {} scenarios were retried",
        summary.conforms,
        summary.diverges,
        summary.unmet,
        summary.inconclusive,
        summary.skipped,
        summary.ticks,
        summary.elapsed.as_secs_f64(),
        summary.ambiguous_ticks,
        summary.retried
    ));
    report_ignored(suite, release, &outcomes);
    Ok(outcomes)
}

/// Reports why fixtures are ignored, each reason once.
fn report_ignored(suite: &Suite, release: Release, outcomes: &BTreeMap<String, Outcome>) {
    let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (id, outcome) in outcomes {
        if let Verdict::Skipped { why } = &outcome.verdict {
            reasons.entry(why).or_default().push(id);
        }
    }
    for (why, ids) in reasons {
        match *ids {
            [id] => suite.say(&format!("{release}: ignored: {id}: {why}")),
            _ => suite.say(&format!("{release}: {} ignored: {why}", ids.len())),
        }
    }
}

fn verdict(outcome: Result<Outcome, String>) -> Result<(), Failed> {
    let outcome = outcome?;
    match outcome.verdict {
        Verdict::Conforms => Ok(()),
        verdict => Err(format!("{verdict:#?}").into()),
    }
}
