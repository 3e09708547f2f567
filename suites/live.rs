//! Upstream itself: the model against the real controller, and the real controller against what was
//! recorded of it. Needs Go; without it every test is named as ignored.
//!
//! This suite has a `main` of its own, since the engine may first have to be built, which takes
//! minutes and must be seen, and since whether Go is there is known only when it runs.

mod support;

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use kube_lockstep::engine::Engine as _;
use kube_lockstep::engine::recorded;
use kube_lockstep::engine::upstream::{Upstream, build};
use kube_lockstep::model::rules::Release;
use kube_lockstep::run::{Verdict, run_one};
use kube_lockstep::trace::text;
use libtest_mimic::{Arguments, Failed, Trial};

/// Engines that are not in use: their processes serve one scenario after another.
static IDLE: Mutex<Vec<Upstream>> = Mutex::new(Vec::new());

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let listing = arguments.list;
    let program = if listing { Err("only listed".to_owned()) } else { program() };
    let fixtures = support::fixtures();
    let trials = fixtures
        .into_iter()
        .map(|path| {
            let (name, program) = (support::id_of(&path), program.clone());
            let ignored = program.is_err() && !listing;
            Trial::test(name, move || live(&path, program)).with_ignored_flag(ignored)
        })
        .collect();
    if let (Err(why), false) = (&program, listing) {
        say(&format!("all ignored: {why}"));
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn program() -> Result<PathBuf, String> {
    let mut last = String::new();
    build::ensure(Release::V1_37, &AtomicBool::new(false), &mut |what, _| {
        // One line a stage, not one a package: this is read in logs.
        let stage = what.split_whitespace().take(3).collect::<Vec<_>>().join(" ");
        if stage != last {
            say(&stage);
            last = stage;
        }
    })
    .map_err(|error| error.to_string())
}

fn say(line: &str) {
    // Nobody reads it: nothing to be done about it.
    let _ = writeln!(std::io::stderr(), "live: {line}");
}

fn live(path: &std::path::Path, program: Result<PathBuf, String>) -> Result<(), Failed> {
    let scenario = support::load(path);
    let idle = IDLE.lock().map_err(|error| error.to_string())?.pop();
    let mut engine = match idle {
        Some(engine) => engine,
        None => Upstream::new(program?, Release::V1_37),
    };
    let outcome = run_one(&scenario, &mut engine, &support::known());
    let release = engine.release();
    IDLE.lock().map_err(|error| error.to_string())?.push(engine);

    let recordable =
        !matches!(outcome.verdict, Verdict::Inconclusive { .. } | Verdict::Skipped { .. });
    if recordable {
        record(&scenario.id, release, &outcome.trace)?;
    }
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
