//! The budget of skipped runs: `docs/skips.md` lists each reason with its number of runs, so that a
//! change of any number is part of a review. Reasons of chance need an explanation.
//!
//! The page is generated. To update it: `UPDATE_DOCS=1 cargo test --test skips`.

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;

use kube_lockstep::engine::recorded::{FOLDER, Recorded, Traces};
use kube_lockstep::model::rules::{Release, Releases};
use kube_lockstep::run::{Verdict, run_one};

/// Reasons of chance, by their first words, and why no order can be compared instead.
const CHANCE: &[(&str, &str)] = &[];

/// The runs that are skipped for one reason.
#[derive(Default)]
struct Skips {
    runs: usize,
    is_chance: bool,
    releases: BTreeSet<Release>,
    fixtures: BTreeSet<String>,
}

/// The reason without its release, time and field, which differ between runs.
fn general(why: &str, release: Release) -> String {
    let release = release.to_string();
    let why = why.strip_prefix(&format!("on {release}: ")).unwrap_or(why);
    let why = match why.split_once(", ") {
        Some((at, rest)) if at.starts_with("at ") => rest,
        _ => why,
    };
    let why = why.replace(&format!(" on {release}"), "");
    let why = why.replace(&format!("of {release}"), "of this release");
    match why.strip_prefix(&format!("{release} ")) {
        Some(rest) => format!("the release {rest}"),
        None => why,
    }
}

fn all_skips() -> BTreeMap<String, Skips> {
    let mut skips: BTreeMap<String, Skips> = BTreeMap::new();
    let traces = Traces::Folder(support::repository().join(FOLDER));
    for path in support::fixtures() {
        let scenario = support::load(&path);
        for release in Release::supported() {
            let outcome = run_one(&scenario, &mut Recorded::new(release, traces.clone()), &[]);
            let Verdict::Skipped { why } = outcome.verdict else { continue };
            let reason = skips.entry(general(&why, release)).or_default();
            reason.runs += 1;
            reason.is_chance |= outcome.undetermined;
            reason.releases.insert(release);
            reason.fixtures.insert(scenario.id.clone());
        }
    }
    skips
}

/// The page, and the reasons of chance without an explanation.
fn page(skips: &BTreeMap<String, Skips>) -> (String, Vec<&str>) {
    let explanation =
        |why: &str| CHANCE.iter().find(|(first, _)| why.starts_with(first)).map(|(_, text)| *text);
    let count = |is_chance: bool| -> usize {
        skips.values().filter(|it| it.is_chance == is_chance).map(|it| it.runs).sum()
    };
    let mut page = format!(
        "# Skipped runs\n\n\
         Each fixture runs on each release from {} to {}, except for the runs on this page. The \
         page is generated from the fixtures and their recorded traces, and a test keeps it up to \
         date: `UPDATE_DOCS=1 cargo test --test skips`.\n\n\
         ## The release does not support the scenario\n\n\
         {} runs. The API server or the controller of the release rejects or does not know a \
         field, a flag or a feature gate of the scenario.\n\n\
         | reason | runs | fixtures | releases |\n|---|---:|---:|---|\n",
        Release::OLDEST,
        Release::NEWEST,
        count(false)
    );
    let releases = |it: &Skips| it.releases.iter().copied().collect::<Releases>().to_string();
    let mut sorted: Vec<(&String, &Skips)> = skips.iter().collect();
    sorted.sort_by_key(|(why, it)| (std::cmp::Reverse(it.runs), (*why).clone()));
    for (why, it) in sorted.iter().filter(|(_, it)| !it.is_chance) {
        let (runs, fixtures) = (it.runs, it.fixtures.len());
        let _ = writeln!(page, "| {why} | {runs} | {fixtures} | {} |", releases(it));
    }
    if count(true) == 0 {
        page.push_str(
            "\n## The outcome is random\n\n\
             No run. Where upstream leaves an outcome to chance, the model follows the observed one \
             if it is possible ([up to 1.36](releases.md#up-to-136), [events](what-is-real.md#events-left-to-chance)).\n",
        );
        return (page, Vec::new());
    }
    let _ = write!(
        page,
        "\n## The outcome is random\n\n\
         {} runs. Two runs of the same controller in the same world may differ, so there is nothing \
         to compare.\n\n\
         | reason | runs | releases | fixtures | why the order can't be fixed |\n|---|---:|---|---|---|\n",
        count(true)
    );
    let mut unexplained = Vec::new();
    for (why, it) in sorted.iter().filter(|(_, it)| it.is_chance) {
        let fixtures: Vec<String> = it.fixtures.iter().map(|id| format!("`{id}`")).collect();
        let text = explanation(why).unwrap_or_else(|| {
            unexplained.push(why.as_str());
            ""
        });
        let (runs, fixtures) = (it.runs, fixtures.join(", "));
        let _ = writeln!(page, "| {why} | {runs} | {} | {fixtures} | {text} |", releases(it));
    }
    (page, unexplained)
}

#[test]
fn skipped_runs_are_as_documented_and_chance_is_explained() {
    let skips = all_skips();
    let (page, unexplained) = page(&skips);
    assert!(unexplained.is_empty(), "explain in CHANCE: {unexplained:#?}");
    let unused: Vec<_> =
        CHANCE.iter().filter(|(why, _)| !skips.keys().any(|it| it.starts_with(why))).collect();
    assert!(unused.is_empty(), "not skipped any more: {unused:#?}");
    let path = support::repository().join("docs/skips.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, &page).expect("docs/skips.md can be written");
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    assert!(written == page, "docs/skips.md: UPDATE_DOCS=1 cargo test --test skips");
}
