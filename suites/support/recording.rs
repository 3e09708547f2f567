//! Compares upstream's traces with the recorded ones, or records them.
//!
//! Recorded traces are not insta snapshots: `cargo insta accept` must not be able to write one.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use kube_autoscaler_models::rules::MinorVersion;
use kube_lockstep_engines::recorded::{self, Recording, Traces};
use kube_lockstep_scenario::Scenario;
use kube_lockstep_scenario::vpa::VpaScenario;
use kube_lockstep_sim::trace::header::Build;
use kube_lockstep_sim::trace::recommender;
use kube_lockstep_sim::trace::recommender::RecommenderTrace;
use kube_lockstep_sim::trace::{Trace, text};
use similar::TextDiff;

use super::trace_file;

/// The environment variable that `cargo xtask record` sets.
pub const RECORD: &str = "KUBE_LOCKSTEP_RECORD";

/// The handling of a trace that differs from the recorded one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// The test fails.
    Compare,
    /// The trace is recorded.
    Record,
}

impl Mode {
    /// The mode that the environment requests.
    pub fn get() -> Mode {
        if std::env::var_os(RECORD).is_some() { Mode::Record } else { Mode::Compare }
    }
}

/// Compares what a build of upstream did in a scenario with the recorded traces of the scenario, or
/// records it. There is no trace if the release does not support the scenario.
///
/// # Errors
/// Returns the difference and how to record it, or an error if files can't be read or written.
pub fn compare(
    folder: &Path,
    scenario: &Scenario,
    build: &Build,
    trace: Option<&Trace>,
    mode: Mode,
) -> Result<(), String> {
    let recorded = |build: &Build| trace.map(|trace| recorded(trace, build)).transpose();
    let subject =
        Subject { id: &scenario.id, hash: &scenario.hash, prefix: "", fixture: &scenario.id };
    compare_recorded(folder, subject, build, &recorded, mode)
}

/// The same for a scenario of the VPA's recommender.
///
/// # Errors
/// As [`compare`].
pub fn compare_recommender(
    folder: &Path,
    scenario: &VpaScenario,
    build: &Build,
    trace: Option<&RecommenderTrace>,
    mode: Mode,
) -> Result<(), String> {
    let subject =
        Subject { id: &scenario.id, hash: &scenario.hash, prefix: "vpa-", fixture: &scenario.id };
    compare_recorded(folder, subject, build, &|build| recorded_recommender(trace, build), mode)
}

/// The same for the recommender of a scenario with an HPA and a VPA, run with a build of the HPA
/// controller.
///
/// # Errors
/// As [`compare`].
pub fn compare_with_hpa(
    folder: &Path,
    scenario: &Scenario,
    build: &Build,
    trace: Option<&RecommenderTrace>,
    mode: Mode,
) -> Result<(), String> {
    let Some(id) = id_of_recommender(scenario) else { return Ok(()) };
    let subject = Subject { id: &id, hash: &scenario.hash, prefix: "", fixture: &scenario.id };
    compare_recorded(folder, subject, build, &|build| recorded_recommender(trace, build), mode)
}

/// The id of the traces of the recommender in a scenario with an HPA and a VPA.
pub fn id_of_recommender(scenario: &Scenario) -> Option<String> {
    let vpa = scenario.vpa.as_ref()?;
    Some(format!("{}/{}", scenario.id, vpa.release))
}

fn recorded_recommender(
    trace: Option<&RecommenderTrace>,
    build: &Build,
) -> Result<Option<Recording>, String> {
    let Some(trace) = trace else { return Ok(None) };
    let text = recommender::write(trace, std::slice::from_ref(build));
    let recording = Recording::new(text.map_err(|error| error.to_string())?)?;
    let again = recommender::write(&recording.recommender_trace()?, std::slice::from_ref(build));
    match again.is_ok_and(|again| *again == *recording.text) {
        true => Ok(Some(recording)),
        false => Err(format!("it is read as {:#?}", recording.recommender_trace())),
    }
}

/// The scenario of a trace.
#[derive(Clone, Copy)]
struct Subject<'s> {
    id: &'s str,
    hash: &'s str,
    /// The start of the names of releases.
    prefix: &'s str,
    /// The fixture to record.
    fixture: &'s str,
}

fn compare_recorded(
    folder: &Path,
    scenario: Subject<'_>,
    build: &Build,
    recorded: &dyn Fn(&Build) -> Result<Option<Recording>, String>,
    mode: Mode,
) -> Result<(), String> {
    let present = Traces::Folder(folder.to_owned()).read(scenario.id)?;
    let release = build.version.release;
    // A trace is as recorded even if it was recorded with another build of the release.
    let known = present.iter().find_map(|it| it.header.build_of(release));
    let build = known.filter(|_| mode == Mode::Compare).unwrap_or(build);
    let wanted = wanted(&present, scenario, build, recorded(build)?)?;
    if wanted == present {
        return Ok(());
    }
    if mode == Mode::Record {
        return write(folder, scenario.id, &wanted);
    }
    let Subject { id, prefix, fixture, .. } = scenario;
    let difference = difference(&present, &wanted, release);
    Err(format!(
        "{id} is not as recorded on {prefix}{release}:\n{difference}\nIf upstream is right, record it with \
         `cargo xtask record --release {prefix}{release} {fixture}`, and review the diff."
    ))
}

/// The recorded traces with the new trace of a release. Traces of other releases stay, unless they
/// belong to an earlier version of the scenario.
fn wanted(
    present: &[Recording],
    scenario: Subject<'_>,
    build: &Build,
    new: Option<Recording>,
) -> Result<Vec<Recording>, String> {
    let mut builds: BTreeMap<MinorVersion, (&Build, &Recording)> = BTreeMap::new();
    for recording in present.iter().filter(|it| it.header.hash == scenario.hash) {
        let all = recording.header.builds.iter();
        builds.extend(all.map(|build| (build.version.release, (build, recording))));
    }
    match &new {
        Some(new) => builds.insert(build.version.release, (build, new)),
        None => builds.remove(&build.version.release),
    };
    // Releases with the same trace share a section of the file.
    let mut shared: BTreeMap<&str, (Vec<Build>, &Recording)> = BTreeMap::new();
    for (build, recording) in builds.into_values() {
        let (builds, _) = shared.entry(recording.body()).or_insert((Vec::new(), recording));
        builds.push(build.clone());
    }
    let mut wanted = Vec::new();
    for (body, (builds, recording)) in shared {
        let mut header = recording.header.clone();
        header.builds = builds;
        let header = serde_json::to_string(&header).map_err(|error| error.to_string())?;
        wanted.push(Recording::new(format!("{header}\n{body}"))?);
    }
    wanted.sort_by_key(|recording| recording.header.newest());
    Ok(wanted)
}

/// A trace in its recorded form, which must be complete.
fn recorded(trace: &Trace, build: &Build) -> Result<Recording, String> {
    let builds = std::slice::from_ref(build);
    let text = text::write(trace, builds).map_err(|error| error.to_string())?;
    let recording = Recording::new(text)?;
    let read = Trace { release: trace.release.clone(), ..recording.trace()? };
    if read == *trace { Ok(recording) } else { Err(format!("it is read as {read:#?}")) }
}

fn difference(present: &[Recording], wanted: &[Recording], release: MinorVersion) -> String {
    let on = |recordings: &[Recording]| {
        recordings.iter().find(|it| it.header.build_of(release).is_some()).cloned()
    };
    match (on(present), on(wanted)) {
        (None, _) => "not recorded".to_owned(),
        (Some(old), None) => format!("{} is recorded, but the scenario is skipped", old.name()),
        (Some(old), Some(new)) if old.header.hash != new.header.hash => {
            format!("{} was recorded before the scenario changed", old.name())
        }
        (Some(old), Some(new)) if old.body() == new.body() => {
            "the headers in its file are not as `cargo xtask record` writes them".to_owned()
        }
        (Some(old), Some(new)) => TextDiff::from_lines(old.body(), new.body())
            .unified_diff()
            .context_radius(0)
            .header(&format!("recorded {}", old.name()), "upstream")
            .to_string(),
    }
}

/// Writes the file of a scenario, and reads it again.
fn write(folder: &Path, id: &str, wanted: &[Recording]) -> Result<(), String> {
    let path = folder.join(recorded::path(id));
    let failed = |error: std::io::Error| format!("{}: {error}", path.display());
    if wanted.is_empty() {
        return fs::remove_file(&path).map_err(failed);
    }
    fs::create_dir_all(path.parent().unwrap_or(folder)).map_err(failed)?;
    fs::write(&path, trace_file::write(wanted)).map_err(failed)?;
    match Traces::Folder(folder.to_owned()).read(id)? == wanted {
        true => Ok(()),
        false => Err(format!(
            "{}: the traces that are read differ from those that were written",
            path.display()
        )),
    }
}
