//! Helpers of several suites: the fixtures of this repository as scenarios, and upstream engines.

#![allow(dead_code, unreachable_pub, reason = "each suite uses some of the helpers")]

pub mod damage;
#[cfg(feature = "e2e")]
pub mod foreign;
#[cfg(feature = "e2e")]
pub mod moments;
pub mod place;
#[cfg(feature = "e2e")]
pub mod planted;
pub mod recording;
pub mod trace_file;
pub mod trials;

#[cfg(feature = "clusters")]
use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

#[cfg(feature = "clusters")]
use kube_autoscaler_models::rules::{Release, Releases};
#[cfg(feature = "clusters")]
use kube_lockstep::run_all;
#[cfg(feature = "clusters")]
use kube_lockstep_engines::plan::Plan;
#[cfg(feature = "clusters")]
use kube_lockstep_engines::registry::EngineChoice;
use kube_lockstep_engines::upstream::build;
use kube_lockstep_scenario as scenario;
use kube_lockstep_scenario::vpa::VpaScenario;
use kube_lockstep_scenario::{AnyScenario, Diagnostic, Scenario};
use kube_lockstep_sim::compare::{Known, KnownDisagreement};
use kube_lockstep_sim::engine::EngineError;
use kube_lockstep_sim::run::Outcome;
#[cfg(feature = "clusters")]
use kube_lockstep_sim::run::{Event, Summary};

/// The repository.
pub fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Writes a program. Another process writes it: while this process has it open, a concurrent test
/// could start a child that inherits it, and then it can't be run ("text file busy").
///
/// # Errors
/// If it can't be written.
pub fn write_program(path: &Path, script: &str) -> io::Result<()> {
    let mut install = Command::new("install")
        .args(["-m", "755", "/dev/stdin"])
        .arg(path)
        .stdin(Stdio::piped())
        .spawn()?;
    if let Some(mut input) = install.stdin.take() {
        input.write_all(script.as_bytes())?;
    }
    match install.wait()?.success() {
        true => Ok(()),
        false => Err(io::Error::other(format!("{} can't be written", path.display()))),
    }
}

/// Returns true if `cargo xtask docs` runs the tests, so that they write generated files.
pub fn updates_docs() -> bool {
    std::env::var_os("UPDATE_DOCS").is_some()
}

/// Fails if a generated file of the repository differs from this text, or writes the file.
pub fn assert_generated(name: &str, text: &str) {
    let path = repository().join(name);
    if updates_docs() {
        std::fs::write(&path, text).expect("a generated file can be written");
    }
    let is_current = std::fs::read_to_string(&path).is_ok_and(|stored| stored == text);
    assert!(is_current, "{name} is out of date: run `cargo xtask docs`");
}

/// Copies a file or a folder. Identical files are not written again.
///
/// # Errors
/// If something can't be read or written.
pub fn copy(from: &Path, to: &Path) -> io::Result<()> {
    if !from.is_dir() {
        let text = std::fs::read(from)?;
        if std::fs::read(to).is_ok_and(|existing| existing == text) {
            return Ok(());
        }
        // Not `fs::copy`: Go's files are read-only, and the copy must be writable.
        return std::fs::write(to, text);
    }
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        copy(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}

/// The id of a fixture: its path below `fixtures/`, without the extension.
pub fn id_of(path: &Path) -> String {
    let path = path.strip_prefix(repository().join("fixtures")).unwrap_or(path);
    path.with_extension("").to_string_lossy().replace('\\', "/")
}

/// Reads one fixture of an HPA, which may be invalid.
pub fn parse(path: &Path) -> Result<Scenario, scenario::Error> {
    read_fixture(path, scenario::parse)
}

/// Reads one fixture of either kind, which may be invalid.
pub fn parse_any(path: &Path) -> Result<AnyScenario, scenario::Error> {
    read_fixture(path, scenario::parse_any)
}

/// A function that reads scenarios: path, text, and the reader of other files.
type Parse<T> =
    fn(&str, &str, &dyn Fn(&str) -> Result<String, Diagnostic>) -> Result<T, scenario::Error>;

fn read_fixture<T>(path: &Path, parse: Parse<T>) -> Result<T, scenario::Error> {
    let text = std::fs::read_to_string(path).expect("a fixture can be read");
    let shown = path.strip_prefix(repository()).unwrap_or(path).to_string_lossy().into_owned();
    let folder = path.parent().expect("a fixture lies in a folder").to_owned();
    let read = move |name: &str| {
        std::fs::read_to_string(folder.join(name)).map_err(|error| error.to_string().into())
    };
    parse(&shown, &text, &read)
}

/// Reads one fixture of a VPA.
pub fn load_vpa(path: &Path) -> Arc<VpaScenario> {
    match parse_any(path) {
        Ok(AnyScenario::Vpa(scenario)) => Arc::new(VpaScenario { id: id_of(path), ..*scenario }),
        Ok(AnyScenario::Hpa(_)) => panic!("{} is not about a VPA", path.display()),
        Err(error) => panic!("{error}"),
    }
}

/// The folder of the fixtures of VPAs.
const OF_VPAS: &str = "vpa";

/// All fixtures of VPAs, sorted by path.
pub fn vpa_fixtures() -> Vec<PathBuf> {
    fixtures_below(&repository().join("fixtures").join(OF_VPAS))
}

/// Reads one fixture.
pub fn load(path: &Path) -> Arc<Scenario> {
    match parse(path) {
        Ok(scenario) => Arc::new(Scenario { id: id_of(path), ..scenario }),
        Err(error) => panic!("{error}"),
    }
}

/// All fixtures of HPAs, sorted by path.
pub fn fixtures() -> Vec<PathBuf> {
    fixtures_below(&repository().join("fixtures"))
}

/// All fixtures of both kinds, sorted by path.
pub fn all_fixtures() -> Vec<PathBuf> {
    let mut all = fixtures();
    all.extend(vpa_fixtures());
    all.sort();
    all
}

fn fixtures_below(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("fixtures/ can be listed") {
            let path = entry.expect("fixtures/ can be listed").path();
            if path.is_dir() {
                let name = path.file_name().unwrap_or_default();
                if name != "invalid" && name != "manifests" && name != OF_VPAS {
                    folders.push(path);
                }
            } else if path.extension().is_some_and(|it| it == "yaml" || it == "yml")
                && path.parent() != Some(&repository().join("fixtures"))
            {
                found.push(path);
            }
        }
    }
    found.sort();
    assert!(!found.is_empty(), "no fixtures were found");
    found
}

/// Returns true if `thing` is unavailable because this machine has no Go to build it: then the
/// tests that require it are ignored. Any other reason fails them: an unsupported release,
/// unreachable modules, a broken build.
pub fn is_missing<T>(thing: &Result<T, EngineError>) -> bool {
    matches!(thing, Err(EngineError::Unavailable { .. })) && build::find_go(&mut |_| {}).is_err()
}

/// Fails if the scenario no longer shows one of its known disagreements.
pub fn still_disagrees(outcome: &Outcome, known: &[KnownDisagreement]) -> Result<(), String> {
    match outcome.resolved_disagreements(known).as_slice() {
        [] => Ok(()),
        stale => {
            Err(format!("{} no longer disagrees, see divergences.yaml: {stale:#?}", outcome.id))
        }
    }
}

/// The known disagreements.
pub fn known() -> Vec<KnownDisagreement> {
    let path = repository().join("fixtures/divergences.yaml");
    let text = std::fs::read_to_string(&path).expect("fixtures/divergences.yaml can be read");
    match scenario::decode_file("fixtures/divergences.yaml", &text, Known::flaw) {
        Ok(known) => known.divergences,
        Err(error) => panic!("{error}"),
    }
}

/// The plan of a run on embedded control planes.
#[cfg(feature = "clusters")]
pub fn on_a_control_plane(scenarios: Vec<Arc<Scenario>>, release: Release, jobs: usize) -> Plan {
    let mut plan = Plan::new(scenarios, EngineChoice::Embedded, Releases::only(release));
    plan.jobs = jobs;
    plan.known = known();
    plan
}

/// Runs a plan, and returns the outcomes by the ids of their scenarios, and the summary.
#[cfg(feature = "clusters")]
pub fn outcomes(plan: &Plan) -> Result<(BTreeMap<String, Outcome>, Summary), EngineError> {
    let mut outcomes = BTreeMap::new();
    let summary = run_all(plan, &mut |event| {
        if let Event::Finished(outcome) = event {
            outcomes.insert(outcome.id.clone(), *outcome);
        }
    })?;
    Ok((outcomes, summary))
}
