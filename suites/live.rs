//! Upstream itself: the model against the real controller, and the real controller against what was
//! recorded of it. Needs Go; without it every test is named as ignored.
//!
//! This suite has a `main` of its own, since the engine may first have to be built, which takes
//! minutes and must be seen, and since whether Go is there is known only when it runs.

mod support;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Mutex;

use kube_lockstep::engine::upstream::Upstream;
use kube_lockstep::engine::{Engine as _, EngineError, recorded};
use kube_lockstep::model::rules::Release;
use kube_lockstep::run::{Verdict, run_one};
use kube_lockstep::trace::text;
use libtest_mimic::{Arguments, Failed, Trial};

/// Engines that are not in use: their processes serve one scenario after another.
static IDLE: Mutex<Vec<Upstream>> = Mutex::new(Vec::new());

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let listing = arguments.list;
    let program = support::upstream("live", listing);
    let fixtures = support::fixtures();
    let trials = fixtures
        .into_iter()
        .map(|path| {
            let (name, program) = (support::id_of(&path), program.clone());
            let ignored = support::is_missing(&program) && !listing;
            Trial::test(name, move || live(&path, program)).with_ignored_flag(ignored)
        })
        .collect();
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn live(path: &std::path::Path, program: Result<PathBuf, EngineError>) -> Result<(), Failed> {
    let scenario = support::load(path);
    let idle = IDLE.lock().map_err(|error| error.to_string())?.pop();
    let mut engine = match idle {
        Some(engine) => engine,
        None => Upstream::new(program?, Release::V1_37),
    };
    let known = support::known();
    let outcome = run_one(&scenario, &mut engine, &known);
    let release = engine.release();
    IDLE.lock().map_err(|error| error.to_string())?.push(engine);

    let recordable =
        !matches!(outcome.verdict, Verdict::Inconclusive { .. } | Verdict::Skipped { .. });
    if recordable {
        record(&scenario.id, release, &outcome.trace)?;
    }
    support::still_disagrees(&outcome, &known)?;
    match outcome.verdict {
        Verdict::Conforms => Ok(()),
        Verdict::Skipped { .. } if !scenario.releases.contains(release) => Ok(()),
        verdict => Err(format!("{verdict:#?}\nunmet: {:#?}", outcome.unmet).into()),
    }
}

/// Holds upstream's trace against the recorded one; with `INSTA_UPDATE=always` records it.
fn record(id: &str, release: Release, trace: &kube_lockstep::trace::Trace) -> Result<(), Failed> {
    let path =
        support::repository().join(recorded::FOLDER).join(recorded::snapshot_path(id, release));
    let (Some(folder), Some(name)) = (path.parent(), path.file_stem()) else {
        return Err(format!("{} is no path of a trace", path.display()).into());
    };
    let text = text::write(trace)?;
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(folder);
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.set_description(format!("upstream v{release}, scenario {}", trace.hash));
    settings.bind(|| insta::assert_snapshot!(name.to_string_lossy().into_owned(), text));
    Ok(())
}
