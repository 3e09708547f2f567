//! The model against what upstream was recorded to do, one named test a fixture.
//!
//! Needs nothing but Rust. The traces are insta snapshots that `suites/live.rs` writes from the real
//! controller; nothing here can write one.

mod support;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use kube_lockstep::compare::KnownDisagreement;
use kube_lockstep::engine::recorded::{self, Recorded, Traces};
use kube_lockstep::model::rules::Release;
use kube_lockstep::run::{KnownHit, Verdict, run_one};
use rstest::rstest;

fn traces() -> PathBuf {
    support::repository().join(recorded::FOLDER)
}

/// On each release. A fixture without a trace, or with one of an earlier version of itself, fails
/// here.
#[rstest]
fn model_is_as_recorded(
    #[files("fixtures/**/*.y*ml")]
    #[exclude("fixtures/(invalid|manifests)/|divergences.yaml")]
    path: PathBuf,
) {
    let scenario = support::load(&path);
    let known = support::known();
    for release in Release::supported() {
        let mut engine = Recorded::new(release, Traces::Folder(traces()));
        let outcome = run_one(&scenario, &mut engine, &known);
        support::still_disagrees(&outcome, &known).unwrap_or_else(|gone| panic!("{gone}"));
        match outcome.verdict {
            Verdict::Conforms => assert!(outcome.ticks > 0 || !outcome.trace.api.is_empty()),
            // It lacks something, or leaves something to chance.
            Verdict::Skipped { .. }
                if release < Release::NEWEST || !scenario.releases.contains(release) => {}
            verdict => {
                panic!("{} on {release}: {verdict:#?}\nunmet: {:#?}", scenario.id, outcome.unmet)
            }
        }
    }
}

#[test]
fn no_fixture_is_without_a_trace_and_no_trace_without_a_fixture() {
    let fixtures: BTreeSet<String> =
        support::fixtures().iter().map(|path| support::id_of(path)).collect();
    let recorded_on = |release: Release| {
        let folder = traces().join(format!("v{release}"));
        let mut recorded = BTreeSet::new();
        if folder.exists() {
            collect(&folder, &folder, &mut recorded);
        }
        recorded
    };
    let on_each: Vec<_> = Release::supported().map(recorded_on).collect();
    let anywhere: BTreeSet<String> = on_each.iter().flatten().cloned().collect();
    let missing: Vec<_> = fixtures.difference(&anywhere).collect();
    assert!(missing.is_empty(), "not recorded; run ci/record: {missing:?}");
    for recorded in on_each {
        let orphans: Vec<_> = recorded.difference(&fixtures).collect();
        assert!(orphans.is_empty(), "recorded, but no longer fixtures: {orphans:?}");
    }
}

/// A release that does as the next one does shares its trace.
#[test]
fn no_trace_is_kept_twice() {
    let traces = Traces::Folder(traces());
    let parse = |text: &str| recorded::parse_snapshot(text).expect("a trace can be read");
    for path in support::fixtures() {
        let id = support::id_of(&path);
        let mut next = None;
        for release in Release::supported().rev() {
            let Some(text) = traces.read(&id, release).expect("a trace can be read") else {
                continue;
            };
            let hash = parse(&text).hash;
            // Below what names the release.
            let what = text.lines().skip_while(|line| !line.starts_with("{\"scenario\"")).skip(1);
            let what: (String, Vec<String>) = (hash, what.map(str::to_owned).collect());
            assert_ne!(Some(&what), next.as_ref(), "{id} on {release} is as on the next release");
            next = Some(what);
        }
    }
}

fn collect(root: &Path, folder: &Path, found: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).expect("recorded traces can be listed") {
        let path = entry.expect("recorded traces can be listed").path();
        if path.is_dir() {
            collect(root, &path, found);
        } else {
            let id = path.strip_prefix(root).expect("below the root").with_extension("");
            found.insert(id.to_string_lossy().replace('\\', "/"));
        }
    }
}

/// As the command does, the suites fail for an entry of `divergences.yaml` that is out of date.
#[test]
fn a_known_disagreement_that_is_gone_fails() {
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
    let gone = support::still_disagrees(&outcome, &known).expect_err("nothing disagrees");
    assert!(gone.contains("no longer disagrees") && !gone.contains("1.99"), "{gone}");
    let (field, reason, link) = ("status".to_owned(), "a reason".to_owned(), "a link".to_owned());
    outcome.known.push(KnownHit { field, reason, link });
    assert_eq!(support::still_disagrees(&outcome, &known), Ok(()));
    // Another entry for the same reason is another entry.
    let known = [entry("status", &newest), entry("events", &newest)];
    assert!(support::still_disagrees(&outcome, &known).is_err());
}

#[test]
fn each_known_disagreement_speaks_of_a_fixture() {
    let ids: BTreeSet<String> =
        support::fixtures().iter().map(|path| support::id_of(path)).collect();
    let known = support::known().into_iter();
    let lost: Vec<String> =
        known.map(|known| known.scenario).filter(|id| !ids.contains(id)).collect();
    assert!(lost.is_empty(), "divergences.yaml speaks of no fixture: {lost:?}");
}

#[test]
fn the_header_of_each_trace_names_upstream_and_its_release() {
    for path in support::fixtures() {
        let id = support::id_of(&path);
        for release in Release::supported() {
            let path = traces().join(recorded::snapshot_path(&id, release));
            let Ok(text) = std::fs::read_to_string(&path) else { continue };
            let trace = recorded::parse_snapshot(&text).expect("a recorded trace can be read");
            assert_eq!((trace.engine.as_str(), &trace.scenario), ("upstream", &id));
            assert_eq!(trace.release, release.to_string());
        }
    }
}

#[test]
fn a_trace_of_an_earlier_version_of_the_scenario_is_refused() {
    let path = support::fixtures().swap_remove(0);
    let scenario = support::load(&path);
    let changed = kube_lockstep::scenario::Scenario {
        hash: "0000000000000000".to_owned(),
        ..(*scenario).clone()
    };
    let mut engine = Recorded::new(Release::NEWEST, Traces::Folder(traces()));
    let outcome = run_one(&changed.into(), &mut engine, &[]);
    let Verdict::Inconclusive { why, .. } = outcome.verdict else {
        panic!("{:?}", outcome.verdict)
    };
    assert!(why.contains("stale"), "{why}");
}
