//! Helpers of several suites: the fixtures of this repository as scenarios, and upstream engines.

#![allow(dead_code, unreachable_pub, reason = "each suite uses some of the helpers")]

#[cfg(feature = "clusters")]
pub mod foreign;
#[cfg(feature = "clusters")]
pub mod moments;
#[cfg(feature = "cli")]
pub mod place;
#[cfg(feature = "engines")]
pub mod recording;
#[cfg(feature = "engines")]
pub mod trials;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use kube_lockstep::compare::KnownDisagreement;
#[cfg(feature = "engines")]
use kube_lockstep::engine::{EngineError, upstream::build};
#[cfg(feature = "engines")]
use kube_lockstep::run::Outcome;
use kube_lockstep::scenario::{self, Scenario};
#[cfg(feature = "clusters")]
use kube_lockstep::{
    model::rules::{Release, Releases},
    run::{EngineChoice, Plan},
};

/// The repository.
pub fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The id of a fixture: its path below `fixtures/`, without the extension.
pub fn id_of(path: &Path) -> String {
    let path = path.strip_prefix(repository().join("fixtures")).unwrap_or(path);
    path.with_extension("").to_string_lossy().replace('\\', "/")
}

/// Reads one fixture, which may be invalid.
pub fn parse(path: &Path) -> Result<Scenario, scenario::Error> {
    let text = std::fs::read_to_string(path).expect("a fixture can be read");
    let shown = path.strip_prefix(repository()).unwrap_or(path).to_string_lossy().into_owned();
    let folder = path.parent().expect("a fixture lies in a folder").to_owned();
    let read = move |name: &str| {
        std::fs::read_to_string(folder.join(name)).map_err(|error| error.to_string())
    };
    scenario::parse(&shown, &text, &read)
}

/// Reads one fixture.
pub fn load(path: &Path) -> Arc<Scenario> {
    match parse(path) {
        Ok(scenario) => Arc::new(Scenario { id: id_of(path), ..scenario }),
        Err(error) => panic!("{error}"),
    }
}

/// All fixtures that are scenarios, sorted by path.
pub fn fixtures() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![repository().join("fixtures")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("fixtures/ can be listed") {
            let path = entry.expect("fixtures/ can be listed").path();
            if path.is_dir() {
                let name = path.file_name().unwrap_or_default();
                if name != "invalid" && name != "manifests" {
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
#[cfg(feature = "engines")]
pub fn is_missing<T>(thing: &Result<T, EngineError>) -> bool {
    matches!(thing, Err(EngineError::Unavailable { .. })) && build::find_go().is_err()
}

/// Fails if the scenario no longer shows one of its known disagreements.
#[cfg(feature = "engines")]
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
    match scenario::parse_known("fixtures/divergences.yaml", &text) {
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
