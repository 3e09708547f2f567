//! Upstream itself: the model against the real controller, and the real controller against what was
//! recorded of it. Needs Go; without it every test is named as ignored.
//!
//! It runs on the newest release; on others, or on `all`, if the environment variable
//! KUBE_LOCKSTEP_RELEASES says so. A scenario goes from the newest to the oldest of them, since a
//! trace is kept only where it is not the same as on the next release.

mod support;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Mutex;

use kube_lockstep::engine::Engine as _;
use kube_lockstep::engine::recorded::{self, Traces};
use kube_lockstep::engine::upstream::Upstream;
use kube_lockstep::model::rules::Release;
use kube_lockstep::run::{Verdict, run_one};
use kube_lockstep::trace::text;
use libtest_mimic::Failed;
use support::trials::{self, Suite};

/// Engines that are not in use: their processes serve one scenario after another.
static IDLE: Mutex<Vec<Upstream>> = Mutex::new(Vec::new());

/// Names releases, in the form of `--release`.
const RELEASES: &str = "KUBE_LOCKSTEP_RELEASES";

fn main() -> ExitCode {
    let mut suite = Suite::new("live");
    let programs = suite.upstreams(trials::releases(RELEASES).iter().rev());
    for path in support::fixtures() {
        suite.test_with(&programs, support::id_of(&path), move |programs| {
            programs.into_iter().try_for_each(|(release, program)| live(&path, release, program))
        });
    }
    suite.run()
}

/// An engine of that release that is not in use.
fn idle(release: Release) -> Result<Option<Upstream>, Failed> {
    let mut idle = IDLE.lock().map_err(|error| error.to_string())?;
    let found = idle.iter().position(|engine| engine.release() == release);
    Ok(found.map(|index| idle.swap_remove(index)))
}

fn live(path: &std::path::Path, release: Release, program: PathBuf) -> Result<(), Failed> {
    let scenario = support::load(path);
    let mut engine = match idle(release)? {
        Some(engine) => engine,
        None => Upstream::new(program, release),
    };
    let known = support::known();
    let outcome = run_one(&scenario, &mut engine, &known);
    IDLE.lock().map_err(|error| error.to_string())?.push(engine);

    // What was skipped halfway was seen halfway.
    let seen = !outcome.trace.ticks.is_empty() || !outcome.trace.api.is_empty();
    if seen && !matches!(outcome.verdict, Verdict::Inconclusive { .. }) {
        record(&scenario.id, release, &outcome.trace)?;
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

/// A trace's text but for its first line, which names the release.
fn below_header(text: &str) -> &str {
    text.split_once('\n').map_or("", |(_, below)| below)
}

/// Holds upstream's trace against the recorded one; with `INSTA_UPDATE=always` records it. One that
/// is the same as on the next release is not kept.
fn record(id: &str, release: Release, trace: &kube_lockstep::trace::Trace) -> Result<(), Failed> {
    let folder = support::repository().join(recorded::FOLDER);
    let path = folder.join(recorded::snapshot_path(id, release));
    let next = Release { minor: release.minor + 1 };
    let text = text::write(trace)?;
    if let Some((of, next)) = Traces::Folder(folder).find(id, next)? {
        let next = recorded::parse_snapshot(&next)?;
        let same =
            trace.hash == next.hash && below_header(&text) == below_header(&text::write(&next)?);
        if same && !path.exists() {
            return Ok(());
        }
        if same && std::env::var_os("INSTA_UPDATE").is_some_and(|it| it == "always") {
            std::fs::remove_file(&path)?;
            return Ok(());
        }
        if same {
            return Err(format!("{}: it is as on {of}, and not needed", path.display()).into());
        }
    }
    let (Some(folder), Some(name)) = (path.parent(), path.file_stem()) else {
        return Err(format!("{} is no path of a trace", path.display()).into());
    };
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(folder);
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.set_description(format!("upstream v{release}, scenario {}", trace.hash));
    settings.bind(|| insta::assert_snapshot!(name.to_string_lossy().into_owned(), text));
    Ok(())
}
