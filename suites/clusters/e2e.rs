//! Every fixture that can run on a wall clock, on real control planes.
//!
//! The suite runs on the newest release, or on the releases that the environment variable
//! KUBE_LOCKSTEP_E2E_RELEASES names, which it then requires. Fixtures that cannot run are reported
//! as ignored, with the reasons.

use crate::support;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::support::trials::{self, Suite};
use kube_autoscaler_models::rules::Release;
use kube_lockstep_engines::plan::DEFAULT_CLUSTER_JOBS;
use kube_lockstep_sim::engine::EngineError;
use kube_lockstep_sim::run::{Outcome, Verdict};
use libtest_mimic::{Completion, Failed};

/// The environment variable that names releases, in the form of `--release`.
const RELEASES: &str = "KUBE_LOCKSTEP_E2E_RELEASES";

/// Adds the tests of this suite.
pub(crate) fn add_tests(suite: &mut Suite) {
    for release in trials::releases(RELEASES).iter() {
        let program = suite.control_plane(release);
        // The variable makes its releases required.
        let is_named = std::env::var_os(RELEASES).is_some();
        let program = if is_named { program.required() } else { program };
        let name = |path: &Path| format!("{release}/{}", support::id_of(path));
        let mut selected = support::fixtures();
        selected.retain(|path| suite.selects(&name(path)));
        let outcomes = program.and_then(move |_| {
            run_fixtures(&selected, release).map(Arc::new).map_err(|error| error.to_string())
        });
        for path in support::fixtures() {
            suite.test_or_ignore(&outcomes, name(&path), move |outcomes| {
                verdict(outcomes.get(&support::id_of(&path)))
            });
        }
    }
}

/// Runs these fixtures concurrently.
fn run_fixtures(
    fixtures: &[PathBuf],
    release: Release,
) -> Result<BTreeMap<String, Outcome>, EngineError> {
    let scenarios = fixtures.iter().map(|path| support::load(path)).collect();
    let plan = support::on_a_control_plane(scenarios, release, DEFAULT_CLUSTER_JOBS);
    let (outcomes, summary) = support::outcomes(&plan)?;
    trials::say(
        "e2e",
        &format!(
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
        ),
    );
    Ok(outcomes)
}

fn verdict(outcome: Option<&Outcome>) -> Result<Completion, Failed> {
    match &outcome.ok_or("it was not run")?.verdict {
        Verdict::Conforms => Ok(Completion::Completed),
        Verdict::Skipped { why } => Ok(Completion::ignored_with(why.to_string())),
        verdict => Err(format!("{verdict:#?}").into()),
    }
}
