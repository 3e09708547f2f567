//! The budget of skipped runs: `docs/skips.md` lists each reason with its number of runs, so that a
//! change of any number is part of a review. Each reason for a random outcome needs an
//! explanation, and the number of runs that are not recorded has a limit. The share of unsupported
//! runs has a budget for each release, which updating the page does not change.
//!
//! The page is generated. To update it: `cargo xtask docs`.

use crate::recorded::all_releases;
use crate::support;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use kube_autoscaler_models::rules::{Release, Releases, VpaRelease};
use kube_lockstep_engines::recorded::{FOLDER, RecordedRecommender, Traces};
use kube_lockstep_scenario::SkipReason;
use kube_lockstep_sim::run::recommender_lockstep::run_recommender;
use kube_lockstep_sim::run::{Outcome, Verdict};

/// Reasons of chance, by their first words, and why no order can be compared instead.
const CHANCE: &[(&str, &str)] = &[];

/// The largest percentage of runs that may be unsupported. Each entry applies to its release and to
/// later ones, up to the next entry.
const BUDGET: &[(&str, usize)] =
    &[("1.6", 45), ("1.10", 36), ("1.12", 31), ("1.18", 9), ("1.20", 6), ("1.33", 4), ("1.37", 1)];

/// The same for releases of the VPA.
const VPA_BUDGET: &[(&str, usize)] =
    &[("vpa-0.10", 17), ("vpa-0.13", 14), ("vpa-1.2", 10), ("vpa-1.4", 7), ("vpa-1.6", 1)];

/// Why a run is skipped.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum SkipKind {
    /// The release lacks something, or the scenario is for other releases.
    Unsupported,
    /// The release supports the scenario, but no trace is recorded.
    NotRecorded,
    /// The outcome is random.
    Random,
}

/// A skipped run.
struct Skip {
    kind: SkipKind,
    /// The reason, in the same words on each release.
    reason: String,
    release: String,
    fixture: String,
}

/// The runs of one release.
struct Runs {
    release: String,
    all: usize,
    skipped: BTreeMap<SkipKind, usize>,
}

/// All runs of fixtures of one kind on all their releases.
#[derive(Default)]
struct AllRuns {
    releases: Vec<Runs>,
    skips: Vec<Skip>,
    /// The number of releases on which each fixture is compared.
    compared: BTreeMap<String, usize>,
}

impl AllRuns {
    /// Begins the runs of the next release.
    fn begin(&mut self, release: String) {
        self.releases.push(Runs { release, all: 0, skipped: BTreeMap::new() });
    }

    /// Counts a run on the last release.
    fn add(&mut self, outcome: &Outcome, is_supported: bool) {
        let runs = self.releases.last_mut().expect("a release was begun");
        runs.all += 1;
        let Verdict::Skipped { why } = &outcome.verdict else {
            *self.compared.entry(outcome.id.clone()).or_default() += 1;
            return;
        };
        let kind = match (outcome.undetermined.is_some(), is_supported) {
            (true, _) => SkipKind::Random,
            (false, true) => SkipKind::NotRecorded,
            (false, false) => SkipKind::Unsupported,
        };
        *runs.skipped.entry(kind).or_default() += 1;
        let (release, fixture) = (runs.release.clone(), outcome.id.clone());
        self.skips.push(Skip { kind, reason: general(why), release, fixture });
    }

    /// The number of runs that are skipped for this reason.
    fn count(&self, kind: SkipKind) -> usize {
        self.skips.iter().filter(|skip| skip.kind == kind).count()
    }

    /// The releases on which the share of unsupported runs exceeds the budget.
    fn over_budget(&self, budget: &[(&str, usize)]) -> Vec<String> {
        let (mut limits, mut limit) = (budget.iter().peekable(), 0);
        let mut over = Vec::new();
        for Runs { release, all, skipped } in &self.releases {
            if let Some((_, next)) = limits.next_if(|(first, _)| first == release) {
                limit = *next;
            }
            let skips = skipped.get(&SkipKind::Unsupported).copied().unwrap_or(0);
            if skips * 100 > all * limit {
                over.push(format!("{release}: {skips} of {all} runs, more than {limit}%"));
            }
        }
        assert!(limits.next().is_none(), "a budget names a release that does not exist");
        over
    }

    /// The runs without a trace of fixtures that are recorded on several other releases. A new
    /// fixture may be recorded on one release only, by contributors who have one engine.
    fn gaps(&self) -> Vec<String> {
        let is_gap = |skip: &&Skip| {
            skip.kind == SkipKind::NotRecorded
                && self.compared.get(&skip.fixture).is_some_and(|releases| *releases > 1)
        };
        let gaps = self.skips.iter().filter(is_gap);
        gaps.map(|skip| format!("{} on {}", skip.fixture, skip.release)).collect()
    }

    /// The skips of a kind by their reason, the most frequent reason first.
    fn reasons(&self, kind: SkipKind) -> Vec<(&str, Vec<&Skip>)> {
        let mut reasons: BTreeMap<&str, Vec<&Skip>> = BTreeMap::new();
        for skip in self.skips.iter().filter(|skip| skip.kind == kind) {
            reasons.entry(&skip.reason).or_default().push(skip);
        }
        let mut sorted: Vec<_> = reasons.into_iter().collect();
        sorted.sort_by_key(|(_, skips)| std::cmp::Reverse(skips.len()));
        sorted
    }

    /// The reasons of a kind as a table.
    fn table(&self, kind: SkipKind) -> String {
        let mut table = "| reason | runs | fixtures | releases |\n|---|---:|---:|---|\n".to_owned();
        for (reason, skips) in self.reasons(kind) {
            let (runs, fixtures, releases) =
                (skips.len(), fixtures(&skips).len(), releases(&skips));
            let _ = writeln!(table, "| {reason} | {runs} | {fixtures} | {releases} |");
        }
        table
    }

    /// The numbers of each release as a table.
    fn by_release(&self) -> String {
        let mut table = "| release | runs | not supported | not recorded | random | compared |\n\
                         |---|---:|---:|---:|---:|---:|\n"
            .to_owned();
        for Runs { release, all, skipped } in &self.releases {
            let of = |kind: SkipKind| skipped.get(&kind).copied().unwrap_or(0);
            let kinds = [SkipKind::Unsupported, SkipKind::NotRecorded, SkipKind::Random].map(of);
            let compared = all - kinds.iter().sum::<usize>();
            let [unsupported, not_recorded, random] = kinds;
            let _ = writeln!(
                table,
                "| {release} | {all} | {unsupported} | {not_recorded} | {random} | {compared} |"
            );
        }
        table
    }
}

fn fixtures<'a>(skips: &[&'a Skip]) -> BTreeSet<&'a str> {
    skips.iter().map(|skip| &*skip.fixture).collect()
}

/// The releases, as ranges if they are releases of Kubernetes.
fn releases(skips: &[&Skip]) -> String {
    let names = skips.iter().map(|skip| &*skip.release);
    match names.clone().map(str::parse).collect::<Result<BTreeSet<Release>, _>>() {
        Ok(releases) => releases.into_iter().collect::<Releases>().to_string(),
        Err(_) => {
            let releases: BTreeSet<VpaRelease> = names.flat_map(str::parse).collect();
            releases.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
        }
    }
}

/// The reason without its release, which differs between runs.
fn general(why: &SkipReason) -> String {
    match why {
        SkipReason::OnRelease { what, .. } => what.clone(),
        other => other.with_release("this release"),
    }
}

fn traces() -> Traces {
    Traces::Folder(support::repository().join(FOLDER))
}

fn runs_of_hpas() -> AllRuns {
    let fixtures: Vec<_> = support::fixtures().iter().map(|path| all_releases(path)).collect();
    let mut runs = AllRuns::default();
    for (index, release) in Release::supported().enumerate() {
        runs.begin(release.to_string());
        for fixture in &fixtures {
            let is_supported = fixture.scenario.unsupported_on(release).is_none();
            runs.add(&fixture.on[index].1.outcome, is_supported);
        }
    }
    runs
}

fn runs_of_vpas() -> AllRuns {
    let paths = support::vpa_fixtures();
    let scenarios: Vec<_> = paths.iter().map(|path| support::load_vpa(path)).collect();
    let mut runs = AllRuns::default();
    for release in VpaRelease::supported() {
        runs.begin(release.to_string());
        for scenario in &scenarios {
            let mut engine = RecordedRecommender::new(traces(), release);
            let outcome = run_recommender(scenario, &mut engine, &[]);
            runs.add(&outcome, scenario.unsupported_on(release).is_none());
        }
    }
    runs
}

/// The section about runs that are not recorded.
fn not_recorded(hpas: &AllRuns, vpas: &AllRuns) -> String {
    let why = "A new fixture may be recorded on one release only, by contributors who have one \
               engine. The test allows no other run without a recorded trace. Live runs do not skip \
               these runs: `ci/run` fails on the releases of its live suite until they are \
               recorded.\n";
    let tables: Vec<_> = [hpas, vpas]
        .into_iter()
        .filter(|runs| runs.count(SkipKind::NotRecorded) > 0)
        .map(|runs| runs.table(SkipKind::NotRecorded))
        .collect();
    match &*tables {
        [] => format!("No run. {why}"),
        tables => format!("{why}\n{}", tables.join("\n")),
    }
}

/// The page, and the reasons of chance without an explanation.
fn page<'a>(hpas: &'a AllRuns, vpas: &AllRuns) -> (String, Vec<&'a str>) {
    let mut page = format!(
        "# Skipped runs\n\n\
         Each fixture runs on each release from {} to {}, except for the runs on this page. The \
         page is generated from the fixtures and their recorded traces, and a test keeps it up to \
         date: `cargo xtask docs`.\n\n\
         ## The release does not support the scenario\n\n\
         {} runs. The API server or the controller of the release rejects or does not know a \
         field, a flag or a feature gate of the scenario. On the releases of the live suite, \
         `suites/live/hpa/unsupported.rs` shows each reason except flags with one of the fixtures on \
         upstream, and `suites/live/hpa/flags.rs` compares the flags with the sources of the release.\
         \n\n{}\n\
         ## Not recorded\n\n{}\n",
        Release::OLDEST,
        Release::NEWEST,
        hpas.count(SkipKind::Unsupported),
        hpas.table(SkipKind::Unsupported),
        not_recorded(hpas, vpas),
    );
    let (random, unexplained) = random(hpas);
    page.push_str(&random);
    let _ = write!(
        page,
        "\n## By release\n\n{}\n## VPA\n\n\
         Each fixture of a VPA runs on each release from {} to {}, except for these runs.\n\n\
         {}\n{}",
        hpas.by_release(),
        VpaRelease::OLDEST,
        VpaRelease::NEWEST,
        vpas.table(SkipKind::Unsupported),
        vpas.by_release(),
    );
    (page, unexplained)
}

/// The section on chance, and its reasons without an explanation.
fn random(runs: &AllRuns) -> (String, Vec<&str>) {
    let mut section = "## The outcome is random\n\n".to_owned();
    if runs.count(SkipKind::Random) == 0 {
        section.push_str(
            "No run. Where upstream leaves an outcome to chance, the model follows the observed one \
             if it is possible ([up to 1.36](releases.md#up-to-136), [events](what-is-real.md#events-left-to-chance)).\n",
        );
        return (section, Vec::new());
    }
    let _ = write!(
        section,
        "{} runs. Two runs of the same controller in the same world may differ, so there is nothing \
         to compare.\n\n\
         | reason | runs | releases | fixtures | why the order can't be fixed |\n|---|---:|---|---|---|\n",
        runs.count(SkipKind::Random)
    );
    let mut unexplained = Vec::new();
    for (why, skips) in runs.reasons(SkipKind::Random) {
        let found = CHANCE.iter().find(|(first, _)| why.starts_with(first));
        let text = found.map_or_else(
            || {
                unexplained.push(why);
                ""
            },
            |(_, text)| *text,
        );
        let ids: Vec<String> = fixtures(&skips).iter().map(|id| format!("`{id}`")).collect();
        let (count, ids, releases) = (skips.len(), ids.join(", "), releases(&skips));
        let _ = writeln!(section, "| {why} | {count} | {releases} | {ids} | {text} |");
    }
    (section, unexplained)
}

#[test]
fn skipped_runs_are_as_documented_and_chance_is_explained() {
    let (hpas, vpas) = (runs_of_hpas(), runs_of_vpas());
    let (page, unexplained) = page(&hpas, &vpas);
    assert!(unexplained.is_empty(), "explain in CHANCE: {unexplained:#?}");
    let unused: Vec<_> = CHANCE
        .iter()
        .filter(|(why, _)| !hpas.skips.iter().any(|skip| skip.reason.starts_with(why)))
        .collect();
    assert!(unused.is_empty(), "not skipped any more: {unused:#?}");
    assert_eq!(vpas.count(SkipKind::Random), 0, "runs of VPAs that depend on chance");
    let over = [hpas.over_budget(BUDGET), vpas.over_budget(VPA_BUDGET)].concat();
    assert!(over.is_empty(), "too many unsupported runs: {over:#?}");
    support::assert_generated("docs/skips.md", &page);
    let gaps = [hpas.gaps(), vpas.gaps()].concat();
    assert!(
        gaps.is_empty(),
        "not recorded, although other releases are: run `cargo xtask record`: {gaps:#?}"
    );
}
