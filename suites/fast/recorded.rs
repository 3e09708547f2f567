//! The model against upstream's recorded traces.
//!
//! `cargo xtask record` writes the traces from the real controller; this suite writes them only to
//! temporary folders.

use crate::support;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::support::recording::{self, Mode};
use crate::support::trace_file;
use kube_autoscaler_models::rules::Release;
use kube_autoscaler_models::time::Span;
use kube_lockstep_engines::recorded;
use kube_lockstep_engines::recorded::{Recorded, Traces, not_recorded_on};
use kube_lockstep_engines::upstream::build;
use kube_lockstep_engines::upstream::build::Artifact;
use kube_lockstep_scenario::Scenario;
use kube_lockstep_sim::compare::KnownDisagreement;
use kube_lockstep_sim::run::{KnownHit, Outcome, Verdict, free_run, run_one};
use kube_lockstep_sim::trace::Trace;
use kube_lockstep_sim::trace::header::Build;
use rstest::rstest;

fn traces() -> PathBuf {
    support::repository().join(recorded::FOLDER)
}

/// The number of tests among which the fixtures are divided, so that they run in parallel.
const PARTS: usize = 8;

/// The fixtures are listed at run time, so that the suite need not be compiled for a new fixture.
#[rstest]
fn model_is_as_recorded(#[values(0, 1, 2, 3, 4, 5, 6, 7)] part: usize) {
    for path in support::fixtures().iter().skip(part).step_by(PARTS) {
        conforms_on_each_release(path);
    }
}

/// A fixture that is not recorded on the newest release that it supports fails, and so does a
/// fixture that has changed since it was recorded.
fn conforms_on_each_release(path: &Path) {
    let runs = all_releases(path);
    let scenario = &runs.scenario;
    for (release, Run { outcome, disagreements, has_observations }) in &runs.on {
        disagreements.as_ref().unwrap_or_else(|error| panic!("{error}"));
        match &outcome.verdict {
            Verdict::Conforms => assert!(has_observations, "{} on {release}", scenario.id),
            // The release lacks a feature, or its behavior is not deterministic.
            Verdict::Skipped { .. }
                if *release < Release::NEWEST || !scenario.releases.contains(*release) => {}
            verdict => {
                panic!("{} on {release}: {verdict:#?}\nunmet: {:#?}", scenario.id, outcome.unmet)
            }
        }
    }
}

/// A fixture, and its runs on the recorded traces of all releases.
pub(crate) struct AllReleases {
    pub(crate) scenario: Arc<Scenario>,
    pub(crate) on: Vec<(Release, Run)>,
}

/// A run on the recorded trace of a release.
pub(crate) struct Run {
    /// Without the runs of its controllers, which would fill the memory.
    pub(crate) outcome: Outcome,
    disagreements: Result<(), String>,
    has_observations: bool,
}

/// The runs of each fixture by its path: the suite `skips` requires them, too.
static RUNS: Mutex<BTreeMap<PathBuf, Arc<OnceLock<Arc<AllReleases>>>>> =
    Mutex::new(BTreeMap::new());

/// Runs a fixture on the recorded traces of all releases, once in this program.
pub(crate) fn all_releases(path: &Path) -> Arc<AllReleases> {
    let mut runs = RUNS.lock().unwrap_or_else(PoisonError::into_inner);
    let cell = runs.entry(path.to_owned()).or_default().clone();
    drop(runs);
    let run_all = || {
        let (scenario, known) = (support::load(path), support::known());
        let on = Release::supported().map(|release| (release, run(&scenario, release, &known)));
        Arc::new(AllReleases { on: on.collect(), scenario })
    };
    cell.get_or_init(run_all).clone()
}

fn run(scenario: &Arc<Scenario>, release: Release, known: &[KnownDisagreement]) -> Run {
    let mut engine = Recorded::new(release, Traces::Folder(traces()));
    let mut outcome = run_one(scenario, &mut engine, known);
    let disagreements = support::still_disagrees(&outcome, known);
    let has_answers = outcome.hpa().is_some_and(|run| !run.trace.api.is_empty());
    let has_observations = outcome.ticks > 0 || has_answers;
    outcome.controllers = Vec::new();
    Run { outcome, disagreements, has_observations }
}

/// Each file contains the traces of a fixture, as `cargo xtask record` writes them. The traces of a
/// fixture differ, and each release has at most one of them.
#[test]
fn each_recorded_file_is_a_trace_of_a_fixture() {
    let mut files = BTreeSet::new();
    collect(&traces(), &traces(), &mut files);
    let scenarios: Vec<_> = support::fixtures().iter().map(|path| support::load(path)).collect();
    let hpa_traces = scenarios.iter().map(|scenario| (scenario.id.clone(), "upstream"));
    let beside = scenarios.iter().filter_map(|scenario| recording::id_of_recommender(scenario));
    for (id, engine) in hpa_traces.chain(beside.map(|id| (id, "recommender"))) {
        let recordings = Traces::Folder(traces()).read(&id).unwrap_or_else(|why| panic!("{why}"));
        assert!(!recordings.is_empty(), "{id} is not recorded; run `cargo xtask record {id}`");
        let path = recorded::path(&id);
        assert!(files.remove(&path), "{path} is missing");
        let text = std::fs::read_to_string(traces().join(&path)).expect("the file can be read");
        assert!(
            text == trace_file::write(&recordings),
            "{path} was edited; run `cargo xtask record {id}`"
        );
        let mut releases = BTreeSet::new();
        let mut bodies = BTreeSet::new();
        for recording in &recordings {
            let header = &recording.header;
            assert_eq!((&header.scenario, header.engine.as_str()), (&id, engine));
            let path = recording.name();
            for Build { version, sources } in &header.builds {
                let release = Release::from(version.release);
                assert!(releases.insert(release), "two traces of {id} are for {release}");
                let built = build::version(Artifact::Host, release);
                assert_eq!(
                    Some(version.to_string()),
                    built,
                    "{path}; run `cargo xtask record {id}`"
                );
                assert_eq!(sources.len(), 16, "{path}");
            }
            let body = recording.body();
            assert!(bodies.insert(body), "{path} is the same as another trace of {id}");
            match engine {
                "upstream" => drop(recording.trace().unwrap_or_else(|why| panic!("{why}"))),
                _ => drop(recording.recommender_trace().unwrap_or_else(|why| panic!("{why}"))),
            }
        }
    }
    // `suites/live/vpa.rs` checks the traces of VPAs.
    files.retain(|file| !file.starts_with("vpa/"));
    assert!(files.is_empty(), "not traces of fixtures; remove them: {files:#?}");
}

fn collect(root: &Path, folder: &Path, found: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).expect("recorded traces can be listed") {
        let path = entry.expect("recorded traces can be listed").path();
        if path.is_dir() {
            collect(root, &path, found);
        } else {
            let path = path.strip_prefix(root).expect("below the root");
            found.insert(path.to_string_lossy().replace('\\', "/"));
        }
    }
}

/// Compares or records a trace in a folder, and returns the recorded releases by trace.
fn compare_or_record(
    folder: &Path,
    scenario: &Scenario,
    release: &str,
    trace: Option<&Trace>,
    mode: Mode,
) -> Result<Vec<String>, String> {
    // Another build of the same release may be compared.
    let sources = if mode == Mode::Record { "0123456789abcdef" } else { "fedcba9876543210" };
    let version = format!("v{release}.1").parse().expect("it is a version");
    let build = Build { version, sources: sources.to_owned() };
    recording::compare(folder, scenario, &build, trace, mode)?;
    let mut files = BTreeSet::new();
    collect(folder, folder, &mut files);
    let recordings = Traces::Folder(folder.to_owned()).read(&scenario.id)?;
    let file = (!recordings.is_empty()).then(|| recorded::path(&scenario.id));
    assert_eq!(files, file.into_iter().collect());
    Ok(recordings.iter().map(|it| it.header.releases().to_string()).collect())
}

#[test]
fn releases_with_the_same_trace_share_it() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let scenario = support::load(&support::fixtures().swap_remove(0));
    let alike = free_run(&scenario, Release::NEWEST).trace;
    let mut other = alike.clone();
    other.ticks.pop();
    let record = |release: &str, trace: Option<&Trace>| {
        compare_or_record(folder.path(), &scenario, release, trace, Mode::Record)
            .expect("it can be recorded")
    };
    assert_eq!(record("1.37", Some(&alike)), ["1.37"]);
    assert_eq!(record("1.30", Some(&alike)), ["1.30, 1.37"], "1.31 to 1.36 are not recorded");
    assert_eq!(record("1.36", Some(&other)), ["1.36", "1.30, 1.37"]);
    assert_eq!(record("1.36", Some(&alike)), ["1.30, 1.36 - 1.37"]);
    assert_eq!(record("1.37", Some(&other)), ["1.30, 1.36", "1.37"]);
    assert_eq!(record("1.36", None), ["1.30", "1.37"]);
    assert_eq!(record("1.37", None), ["1.30"]);
    assert_eq!(record("1.30", None), [""; 0]);
    // Traces of an earlier version of the scenario are removed.
    let changed = Scenario { hash: "0".to_owned(), ..(*scenario).clone() };
    let trace = Trace { hash: "0".to_owned(), ..alike };
    let recorded = compare_or_record(folder.path(), &changed, "1.37", Some(&trace), Mode::Record);
    assert_eq!(recorded, Ok(vec!["1.37".to_owned()]));
}

#[test]
fn a_trace_that_is_not_as_recorded_fails_and_says_how_to_record_it() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let scenario = support::load(&support::fixtures().swap_remove(0));
    let id = &scenario.id;
    let trace = free_run(&scenario, Release::NEWEST).trace;
    let compare = |release: &str, trace: Option<&Trace>| {
        compare_or_record(folder.path(), &scenario, release, trace, Mode::Compare)
    };
    let not_recorded = compare("1.37", Some(&trace)).expect_err("it is not recorded");
    assert!(not_recorded.contains("not recorded"), "{not_recorded}");
    compare_or_record(folder.path(), &scenario, "1.37", Some(&trace), Mode::Record)
        .expect("it is recorded");
    assert_eq!(compare("1.37", Some(&trace)), Ok(vec!["1.37".to_owned()]));
    let mut other = trace.clone();
    other.ticks[0].hpa = "other".into();
    let differs = compare("1.37", Some(&other)).expect_err("it differs");
    for part in [
        format!(
            "{id} is not as recorded on 1.37:\n--- recorded {id}.trace: v1.37.1\n+++ upstream\n"
        ),
        "\n-{\"reconcile\":{\"at\":\"0s\",\"hpa\":\"web\"".to_owned(),
        "\n+{\"reconcile\":{\"at\":\"0s\",\"hpa\":\"other\"".to_owned(),
        format!("`cargo xtask record --release 1.37 {id}`"),
    ] {
        assert!(differs.contains(&part), "{part}\n{differs}");
    }
    let skipped = compare("1.37", None).expect_err("it is recorded");
    assert!(skipped.contains("the scenario is skipped"), "{skipped}");
    assert_eq!(compare("1.30", None), Ok(vec!["1.37".to_owned()]));
}

/// A contributor may have the engine of one release only.
#[test]
fn a_release_on_which_a_scenario_is_not_recorded_is_skipped() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let scenario = support::load(&support::fixtures().swap_remove(0));
    let trace = free_run(&scenario, Release::NEWEST).trace;
    let run = |release: &str| {
        let release = release.parse().expect("it is a release");
        let mut engine = Recorded::new(release, Traces::Folder(folder.path().to_owned()));
        run_one(&scenario, &mut engine, &[]).verdict
    };
    assert!(matches!(run("1.37"), Verdict::Inconclusive { .. }), "it is recorded nowhere");
    compare_or_record(folder.path(), &scenario, "1.37", Some(&trace), Mode::Record)
        .expect("it is recorded");
    assert_eq!(run("1.37"), Verdict::Conforms);
    assert_eq!(run("1.36"), Verdict::Skipped { why: not_recorded_on("1.36") });
}

/// A trace is read to its end: entries after the end of the scenario are not ignored.
#[test]
fn a_trace_that_continues_after_the_scenario_is_damaged() {
    let scenario = support::load(&support::fixtures().swap_remove(0));
    let trace = free_run(&scenario, Release::NEWEST).trace;
    let mut longer = trace.clone();
    let mut last = longer.ticks.last().expect("a tick").clone();
    last.at = scenario.until + Span::from_secs(60);
    longer.ticks.push(last);
    let mut answers = trace.clone();
    answers.api.push((answers.ticks.len(), answers.api[0].1.clone()));
    for (damaged, left) in
        [(longer, "1 more reconciles and 0 more"), (answers, "0 more reconciles and 1 more")]
    {
        let folder = tempfile::tempdir().expect("a folder can be made");
        compare_or_record(folder.path(), &scenario, "1.37", Some(&damaged), Mode::Record)
            .expect("it can be recorded");
        let traces = Traces::Folder(folder.path().to_owned());
        let mut engine = Recorded::new(Release::NEWEST, traces);
        match run_one(&scenario, &mut engine, &[]).verdict {
            Verdict::Inconclusive { why, .. } => assert!(why.contains(left), "{why}"),
            verdict => panic!("{verdict:?}"),
        }
    }
}

#[test]
fn a_trace_that_was_edited_is_rejected() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let scenario = support::load(&support::fixtures().swap_remove(0));
    let trace = free_run(&scenario, Release::NEWEST).trace;
    compare_or_record(folder.path(), &scenario, "1.37", Some(&trace), Mode::Record)
        .expect("it can be recorded");
    let file = folder.path().join(recorded::path(&scenario.id));
    let text = std::fs::read_to_string(&file).expect("a file");
    let edited = text.replacen(r#""desiredReplicas":"#, r#""desiredReplicas":1"#, 1);
    assert_ne!(edited, text);
    std::fs::write(&file, edited).expect("the file can be written");
    let mut engine = Recorded::new(Release::NEWEST, Traces::Folder(folder.path().to_owned()));
    match run_one(&scenario, &mut engine, &[]).verdict {
        Verdict::Inconclusive { why, .. } => {
            assert!(why.contains(".trace: v1.37.1: the trace was changed"), "{why}");
            assert!(why.contains(&format!("`cargo xtask record {}`", scenario.id)), "{why}");
        }
        verdict => panic!("{verdict:?}"),
    }
}

/// Like the command, the suites fail for a stale entry of `divergences.yaml`.
#[test]
fn a_resolved_known_disagreement_fails() {
    let path = support::fixtures().swap_remove(0);
    let entry = |field: &str, release: &str| KnownDisagreement {
        scenario: support::id_of(&path),
        releases: vec![release.to_owned()],
        field: field.to_owned(),
        reason: "a reason".to_owned(),
        link: "a link".to_owned(),
    };
    let newest = Release::NEWEST.to_string();
    let mut engine = Recorded::new(Release::NEWEST, Traces::Folder(traces()));
    let known = [entry("status", &newest), entry("status", "1.99")];
    let mut outcome = run_one(&support::load(&path), &mut engine, &known);
    let stale = support::still_disagrees(&outcome, &known).expect_err("nothing disagrees");
    assert!(stale.contains("no longer disagrees") && !stale.contains("1.99"), "{stale}");
    let (field, reason, link) = ("status".to_owned(), "a reason".to_owned(), "a link".to_owned());
    outcome.known.push(KnownHit { field, reason, link });
    assert_eq!(support::still_disagrees(&outcome, &known), Ok(()));
    // Entries with the same reason are independent.
    let known = [entry("status", &newest), entry("events", &newest)];
    assert!(support::still_disagrees(&outcome, &known).is_err());
}

#[test]
fn each_known_disagreement_names_a_fixture() {
    let ids: BTreeSet<String> = support::fixtures()
        .iter()
        .chain(&support::vpa_fixtures())
        .map(|path| support::id_of(path))
        .collect();
    let known = support::known().into_iter();
    let unknown: Vec<String> =
        known.map(|known| known.scenario).filter(|id| !ids.contains(id)).collect();
    assert!(unknown.is_empty(), "divergences.yaml names unknown fixtures: {unknown:?}");
}

#[test]
fn a_trace_of_an_earlier_scenario_version_is_rejected() {
    let path = support::fixtures().swap_remove(0);
    let scenario = support::load(&path);
    let changed = Scenario { hash: "0000000000000000".to_owned(), ..(*scenario).clone() };
    let mut engine = Recorded::new(Release::NEWEST, Traces::Folder(traces()));
    let outcome = run_one(&changed.into(), &mut engine, &[]);
    let Verdict::Inconclusive { why, .. } = outcome.verdict else {
        panic!("{:?}", outcome.verdict)
    };
    assert!(why.contains("stale"), "{why}");
}
