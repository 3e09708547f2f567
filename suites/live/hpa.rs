//! Upstream itself: the model against the real controller, and the real controller against its
//! recorded traces. Requires Go; without it, every test is ignored.
//!
//! The suite runs on the newest release, or on the releases that the environment variable
//! KUBE_LOCKSTEP_RELEASES names. `cargo xtask record` runs it to record the traces.

mod flags;
mod unsupported;

use crate::support;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use crate::support::recording::{self, Mode};
use crate::support::trials::{self, Suite};
use kube_autoscaler_models::rules::Release;
use kube_lockstep_engines::recorded;
use kube_lockstep_engines::recorded::{Recorded, Traces};
use kube_lockstep_engines::upstream::Upstream;
use kube_lockstep_engines::upstream::build;
use kube_lockstep_engines::upstream::build::Artifact;
use kube_lockstep_scenario::Scenario;
use kube_lockstep_sim::engine::Engine as _;
use kube_lockstep_sim::run::{Verdict, run_one};
use kube_lockstep_sim::trace::header::Build;
use libtest_mimic::Failed;
use unsupported::unsupported;

/// Engines that are not in use: their processes serve one scenario after another.
static IDLE: Mutex<Vec<Upstream>> = Mutex::new(Vec::new());

/// The environment variable that names releases, in the form of `--release`.
const RELEASES: &str = "KUBE_LOCKSTEP_RELEASES";

/// Adds the tests of this suite.
pub(crate) fn add_tests(suite: &mut Suite) {
    let programs = suite.upstreams(trials::releases(RELEASES).iter().rev());
    let mut programs = programs.map(|programs| {
        programs.into_iter().map(|(release, program)| (build_of(release), program)).collect()
    });
    if Mode::get() == Mode::Record {
        programs = programs.required();
    }
    for path in support::fixtures() {
        suite.test_with(&programs, support::id_of(&path), move |programs: Programs| {
            programs.into_iter().try_for_each(|(build, program)| live(&path, &build, program))
        });
    }
    suite.test_with(&programs, "unsupported_features", |programs: Programs| {
        programs.into_iter().try_for_each(|(build, program)| unsupported(&build, program))
    });
    suite.test_with(&programs, "flags", |programs: Programs| {
        programs.iter().try_for_each(|(build, _)| flags::flags(build.version.release.into()))
    });
}

type Programs = Vec<(Build, PathBuf)>;

/// The build of a release that the suite runs.
fn build_of(release: Release) -> Build {
    let version = build::version(Artifact::Host, release).expect("a release with an engine");
    Build {
        version: version.parse().expect("a patch release"),
        sources: build::sources_hash(Artifact::Host, release),
    }
}

/// Takes an engine of the release that is not in use.
fn idle(release: Release) -> Result<Option<Upstream>, Failed> {
    let mut idle = IDLE.lock().map_err(|error| error.to_string())?;
    let found = idle.iter().position(|engine| engine.release() == release);
    Ok(found.map(|index| idle.swap_remove(index)))
}

/// Returns true if the build has a recorded trace, and the model agrees with it.
fn is_as_recorded(scenario: &Arc<Scenario>, build: &Build, folder: &Path) -> bool {
    let traces = Traces::Folder(folder.to_owned());
    let recordings = traces.read(&scenario.id).unwrap_or_default();
    let mut engine = Recorded::new(Release::from(build.version.release), traces);
    recordings.iter().any(|recording| recording.header.builds.contains(build))
        && matches!(run_one(scenario, &mut engine, &support::known()).verdict, Verdict::Conforms)
}

fn live(path: &Path, build: &Build, program: PathBuf) -> Result<(), Failed> {
    let scenario = support::load(path);
    let release = Release::from(build.version.release);
    let mut engine = match idle(release)? {
        Some(engine) => engine,
        None => Upstream::new(program, release),
    };
    let known = support::known();
    let outcome = run_one(&scenario, &mut engine, &known);
    IDLE.lock().map_err(|error| error.to_string())?.push(engine);

    if !matches!(outcome.verdict, Verdict::Inconclusive { .. }) {
        // A scenario that is skipped during its run has a trace up to that point.
        let run = outcome.hpa();
        let trace = run.map(|run| &run.trace);
        let trace = trace.filter(|trace| !trace.ticks.is_empty() || !trace.api.is_empty());
        let folder = support::repository().join(recorded::FOLDER);
        // What is left to chance differs from the recorded trace, which shows another outcome.
        let is_random = run
            .is_some_and(|run| run.derivations.iter().flatten().any(|it| it.random_part.is_some()));
        let stays = is_random
            && (Mode::get() == Mode::Compare || is_as_recorded(&scenario, build, &folder));
        if !stays {
            recording::compare(&folder, &scenario, build, trace, Mode::get())?;
        }
        let trace = outcome.recommender().map(|run| &run.trace);
        recording::compare_with_hpa(&folder, &scenario, build, trace, Mode::get())?;
    }
    support::still_disagrees(&outcome, &known)?;
    match outcome.verdict {
        Verdict::Conforms => Ok(()),
        Verdict::Skipped { .. }
            if release < Release::NEWEST || !scenario.releases.contains(release) =>
        {
            Ok(())
        }
        verdict => Err(format!("{release}: {verdict:#?}\nunmet: {:#?}", outcome.unmet).into()),
    }
}
