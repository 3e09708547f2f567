//! Changes between releases: each row of the model's table changes upstream's behavior in a
//! fixture, each change of upstream's behavior has a row, and the documents agree.

use crate::support;
use std::collections::BTreeSet;
use std::fs;
use std::process::Command;
use std::sync::Arc;

use kube_autoscaler_models::rules::{
    CHANGES, Release, VPA_CHANGES, VpaChange, VpaRelease, VpaRules,
};
use kube_autoscaler_models::vpa::Write;
use kube_lockstep_engines::recorded::{FOLDER, Traces};
use kube_lockstep_scenario::vpa::VpaScenario;
use kube_lockstep_sim::run::change::{TraceOn, changed};
use kube_lockstep_sim::run::recommender::predicted;
use kube_lockstep_sim::run::recommender_change;
use kube_lockstep_sim::run::recommender_change::RunsOn;
use kube_lockstep_sim::trace::recommender;
use kube_lockstep_sim::trace::recommender::{Entry, RecommenderTrace};

/// Rows that no fixture can show, and why.
const UNSEEN: &[(&str, &str)] = &[
    (
        "events are recorded in the order in which they occur; before, their order is random",
        "a random order is not a change",
    ),
    (
        "flags for the upscale and downscale delays",
        "a scenario that sets them is skipped without them",
    ),
    ("flag --horizontal-pod-autoscaler-tolerance", "a scenario that sets it is skipped without it"),
    (
        "the flags for the upscale and downscale delays, which had no effect, are removed",
        "a scenario that sets them is skipped without them",
    ),
    ("external metrics", "a scenario that needs them is skipped on older releases"),
    (
        "feature gate HPAConfigurableTolerance, off by default",
        "an optional gate changes nothing until it is enabled",
    ),
    (
        "an HPA has a configurable tolerance for each direction",
        "a scenario that needs it is skipped on older releases",
    ),
    (
        "behavior: policies and stabilization windows per HPA",
        "a scenario that needs it is skipped on older releases",
    ),
    (
        "feature gate HPAContainerMetrics, off by default",
        "a scenario that needs metrics of containers is skipped without the gate",
    ),
    (
        "feature gate HPAContainerMetrics is on by default",
        "a scenario that needs metrics of containers is skipped without the gate",
    ),
    (
        "container metrics are stable: feature gate HPAContainerMetrics is locked",
        "a gate that can no longer be switched does not change the behavior",
    ),
    (
        "feature gate HPAContainerMetrics is removed",
        "a gate that can no longer be switched does not change the behavior",
    ),
    (
        "the tolerance per HPA is stable: feature gate HPAConfigurableTolerance is locked",
        "a gate that can no longer be switched does not change the behavior",
    ),
];

#[test]
fn each_row_is_seen_in_a_fixture_and_each_change_has_a_row() {
    let traces = Traces::Folder(support::repository().join(FOLDER));
    let releases: Vec<Release> = Release::supported().collect();
    let mut seen = BTreeSet::new();
    let mut unexplained = Vec::new();
    for path in support::fixtures() {
        let scenario = support::load(&path);
        let recordings = traces.read(&scenario.id).expect("a trace can be read");
        let on = |release: Release| {
            let is_supported = scenario.unsupported_on(release).is_none();
            let mut recordings = recordings.iter().filter(|_| is_supported);
            recordings.find(|recording| recording.header.build_of(release).is_some())
        };
        for pair in releases.windows(2) {
            let &[from, to] = pair else { continue };
            let (Some(before), Some(after)) = (on(from), on(to)) else { continue };
            // Releases with equal traces share a recording.
            if std::ptr::eq(before, after) {
                continue;
            }
            let [before, after] =
                [before, after].map(|found| found.trace().expect("a trace can be read"));
            let before = TraceOn { release: from, trace: &before };
            let after = TraceOn { release: to, trace: &after };
            let Some(changed) = changed(&scenario, before, after) else { continue };
            if changed.rows.is_empty() {
                unexplained.push(format!("{} {from} -> {to}: {:?}", scenario.id, changed.first));
            }
            // Includes differences that appear later, after the effect of another row.
            seen.extend(changed.rows.iter().chain(&changed.also).map(|row| row.what));
        }
    }
    assert!(unexplained.is_empty(), "{}", unexplained.join("\n"));
    let is_excused = |what: &str| UNSEEN.iter().any(|(row, _)| *row == what);
    let rows = CHANGES.iter().filter(|row| row.since > Release::OLDEST).map(|row| row.what);
    let unseen: Vec<&str> = rows.filter(|row| !seen.contains(row) && !is_excused(row)).collect();
    assert!(unseen.is_empty(), "no fixture shows: {unseen:#?}");
    let outdated: Vec<_> = UNSEEN.iter().filter(|(row, _)| seen.contains(row)).collect();
    assert!(outdated.is_empty(), "seen after all: {outdated:#?}");
}

#[test]
fn each_change_of_the_recommender_has_a_row() {
    let traces = Traces::Folder(support::repository().join(FOLDER));
    let releases: Vec<VpaRelease> = VpaRelease::supported().collect();
    let (mut compared, mut unexplained) = (0, Vec::new());
    for path in support::vpa_fixtures() {
        let scenario = support::load_vpa(&path);
        let trace = |release| {
            let found = traces.find(&scenario.id, release).expect("a trace can be read");
            let found = found.filter(|_| scenario.unsupported_on(release).is_none())?;
            Some(found.recommender_trace().expect("a trace can be read"))
        };
        let recorded: Vec<_> = releases.iter().map(|release| trace(*release)).collect();
        for (releases, traces) in releases.windows(2).zip(recorded.windows(2)) {
            let (&[from, to], [Some(before), Some(after)]) = (releases, traces) else { continue };
            compared += 1;
            let before = RunsOn { release: from, trace: before };
            let after = RunsOn { release: to, trace: after };
            let changed = recommender_change::changed(&scenario, before, after);
            if let Ok(Some(changed)) = changed
                && changed.rows.is_empty()
            {
                unexplained.push(format!("{} {from} -> {to}: {:?}", scenario.id, changed.first));
            }
        }
    }
    assert!(compared > 0, "no fixture is recorded on two adjacent releases");
    assert!(unexplained.is_empty(), "{}", unexplained.join("\n"));
}

/// Upstream subtracts the memory peaks of pods of different ages in a random order, so the last bits
/// of weights differ between identical runs: such a difference is no change between releases.
#[test]
fn a_difference_of_rounding_is_no_change_of_the_recommender() {
    let path = support::repository()
        .join("fixtures/vpa/checkpoints/without-the-peaks-of-pods-of-different-ages.yaml");
    let (scenario, release) = (support::load_vpa(&path), VpaRelease::NEWEST);
    let found = Traces::Folder(support::repository().join(FOLDER)).find(&scenario.id, release);
    let recording = found.expect("a trace can be read").expect("the fixture is recorded");
    let before = recording.recommender_trace().expect("a trace can be read");
    let changed = |difference: f64| {
        let mut after = before.clone();
        let last = after.entries.iter_mut().rev().find_map(|entry| match entry {
            Entry::Run(run) => run.run.writes.iter_mut().find_map(|write| match write {
                Write::Checkpoint { checkpoint, .. } => Some(checkpoint),
                _ => None,
            }),
            Entry::Start(_) => None,
        });
        let status = &mut Arc::make_mut(last.expect("a checkpoint")).status;
        Arc::make_mut(&mut status.memory).total += difference;
        let [before, after] = [&before, &after].map(|trace| RunsOn { release, trace });
        recommender_change::changed(&scenario, before, after).expect("nothing is random").is_some()
    };
    assert!(!changed(1e-15));
    assert!(changed(1e-9));
}

/// Rows of the VPA's recommender that no fixture can show, and why.
const UNSEEN_OF_VPA: &[(&str, &str)] = &[
    (
        "the containers of a recommendation are sorted by name; before, their order is random",
        "a random order is not recorded",
    ),
    (
        "policies change the increase of memory after an OOM kill: feature gate PerVPAConfig, off \
         by default",
        "a scenario that sets the gate is skipped without it",
    ),
];

/// The rules of the release of a row without that row.
fn without(row: &VpaChange) -> VpaRules {
    let known = VPA_CHANGES.iter().take_while(|it| it.since <= row.since).count();
    let index = VPA_CHANGES.iter().position(|it| it.what == row.what).expect("it is a row");
    VpaRules::without(index, known)
}

/// Returns true if a fixture is recorded on the release of a row and on the one before, and the row
/// changes the model's prediction, which agrees with the recordings. The first difference between
/// two recordings does not suffice: some rows change each first run.
fn shows(scenario: &VpaScenario, row: &VpaChange, traces: &Traces) -> bool {
    let before = VpaRelease::supported().rfind(|release| *release < row.since);
    let is_recorded = |release| {
        let found = traces.find(&scenario.id, release).expect("a trace can be read");
        scenario.unsupported_on(release).is_none() && found.is_some()
    };
    // As text: equal amounts can have different units.
    let by = |rules| {
        let entries = predicted(scenario, rules);
        recommender::write(&RecommenderTrace { entries, ..RecommenderTrace::default() }, &[])
            .expect("a trace can be written")
    };
    before.is_some_and(is_recorded)
        && is_recorded(row.since)
        && by(VpaRules::of(row.since)) != by(without(row))
}

/// A row that only adds flags shows nothing: scenarios that set them are skipped without them.
#[test]
fn each_row_of_the_recommender_changes_a_recorded_fixture() {
    let traces = Traces::Folder(support::repository().join(FOLDER));
    let fixtures = support::vpa_fixtures();
    let mut scenarios: Vec<_> = fixtures.iter().map(|path| support::load_vpa(path)).collect();
    // Short scenarios first, which are predicted faster.
    scenarios.sort_by_key(|scenario| scenario.until);
    let changes_rules = |row: &&VpaChange| without(row) != VpaRules::of(row.since);
    let is_excused = |what: &str| UNSEEN_OF_VPA.iter().any(|(row, _)| *row == what);
    let rows = VPA_CHANGES.iter().filter(changes_rules).filter(|row| !is_excused(row.what));
    let unseen = rows.filter(|row| !scenarios.iter().any(|it| shows(it, row, &traces)));
    let unseen: Vec<&str> = unseen.map(|row| row.what).collect();
    assert!(unseen.is_empty(), "no fixture shows: {unseen:#?}");
    let known = |what: &str| VPA_CHANGES.iter().any(|row| row.what == what);
    let outdated: Vec<_> = UNSEEN_OF_VPA.iter().filter(|(what, _)| !known(what)).collect();
    assert!(outdated.is_empty(), "there are no such rows: {outdated:#?}");
}

#[test]
fn the_table_in_the_docs_is_up_to_date() {
    let path = support::repository().join("docs/releases.md");
    let text = fs::read_to_string(&path).expect("docs/releases.md can be read");
    let output = Command::new(env!("CARGO_BIN_EXE_kube-lockstep"))
        .current_dir(support::repository())
        .args(["releases", "--format", "markdown"])
        .output()
        .expect("it runs");
    let table = String::from_utf8(output.stdout).expect("it is text");
    let (begin, rest) = text.split_once("<!-- table -->\n").expect("the table has markers");
    let (_, end) = rest.split_once("<!-- end -->").expect("the table has markers");
    let new = format!("{begin}<!-- table -->\n{table}<!-- end -->{end}");
    support::assert_generated("docs/releases.md", &new);
}
