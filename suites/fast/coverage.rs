//! Each rule of the algorithm has fixtures that show it, and so does each finding about upstream.
//!
//! `suites/rules.yaml` lists the rules with their evidence, and a fixture names the rules that it
//! shows in its `covers:`. `docs/coverage.md` is generated from both: `cargo xtask docs`. The same
//! applies to `suites/rules-vpa.yaml` and `docs/coverage-vpa.md`, which are about the VPA's
//! recommender. The findings stand in `docs/upstream-findings.md`.
//!
//! Evidence is text that `kube-lockstep explain FIXTURE --tick N` shows, besides the answers of the
//! API server and the branches that the fuzzer counts, or, for a VPA, the writes of the recommender
//! and what it logs when it starts. Queries, answers, writes (scale, status, checkpoints, events)
//! and errors are upstream's own, from its recorded trace; derivations and branches are the
//! model's. `SHOW_EVIDENCE=FIXTURE cargo test --test fast coverage` fails with all the text of a
//! fixture.

use crate::support;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;

use kube_autoscaler_models::hpa::Decision;
use kube_autoscaler_models::rules::{Release, Releases, VpaRelease};
use kube_autoscaler_models::vpa::Write;
use kube_lockstep_engines::recorded;
use kube_lockstep_engines::recorded::{RecordedRecommender, Traces};
use kube_lockstep_fuzz::{Coverage, CoverageGroup};
use kube_lockstep_report::explain;
use kube_lockstep_scenario::Scenario;
use kube_lockstep_scenario::vpa::VpaScenario;
use kube_lockstep_sim::run::recommender::free_recommender_run;
use kube_lockstep_sim::run::recommender_lockstep::run_recommender;
use kube_lockstep_sim::run::{FreeRun, free_run};
use kube_lockstep_sim::trace::ApiOutcome;
use kube_lockstep_sim::trace::recommender::Entry;
use serde::{Deserialize, Serialize};

/// The rules.
const RULES: &str = "suites/rules.yaml";

/// The page that is generated from them and the fixtures.
const PAGE: &str = "docs/coverage.md";

/// Findings about upstream, in a table of six columns.
const FINDINGS: &str = "docs/upstream-findings.md";

/// The heading of the findings about the VPA's recommender.
const VPA_FINDINGS: &str = "\n## The recommender of the VPA\n";

/// The rules of the VPA's recommender.
const RECOMMENDER_RULES: &str = "suites/rules-vpa.yaml";

/// The page that is generated from them.
const RECOMMENDER_PAGE: &str = "docs/coverage-vpa.md";

/// The reasons and errors that recorded traces of some releases do not show.
const ABSENT: &str = "suites/absent.yaml";

/// `suites/rules.yaml` or `suites/rules-vpa.yaml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rules {
    sections: Vec<Section>,
    /// Behavior that no fixture shows, and why.
    uncovered: Vec<String>,
}

/// Rules about one subject. Their ids begin with the id of the section.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Section {
    id: String,
    title: String,
    rules: Vec<Rule>,
}

/// A rule.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rule {
    id: String,
    rule: String,
    /// The steps that are seen one after another.
    evidence: Vec<EvidenceStep>,
}

/// Texts that are found together: at one tick, in one answer of the API server, or at one start of
/// the recommender.
#[derive(Deserialize)]
#[serde(untagged)]
enum EvidenceStep {
    One(String),
    Several(Vec<String>),
}

impl EvidenceStep {
    fn texts(&self) -> &[String] {
        match self {
            EvidenceStep::One(text) => std::slice::from_ref(text),
            EvidenceStep::Several(texts) => texts,
        }
    }
}

/// A fixture that runs on the newest release.
struct Fixture {
    covers: Vec<String>,
    /// The text of each step, in order.
    steps: Vec<String>,
}

type Fixtures = BTreeMap<String, Fixture>;

/// Reads a file of the repository.
fn read(name: &str) -> String {
    let path = support::repository().join(name);
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn read_rules(text: &str) -> Result<Rules, String> {
    let value: serde_json::Value = serde_yaml::from_str(text).map_err(|error| error.to_string())?;
    serde_json::from_value(value).map_err(|error| error.to_string())
}

/// The evidence of a fixture: the text of each step, in order.
fn evidence_of(scenario: &Scenario, run: &FreeRun) -> Vec<String> {
    let newest = Release::NEWEST.to_string();
    let mut steps = Vec::new();
    for (ticks, answer) in &run.trace.api {
        let action = match &answer.outcome {
            ApiOutcome::Stored { generation, spec, .. } => {
                let spec = serde_json::to_string(&**spec).expect("a spec can be written");
                format!("stores generation {generation}: {spec}")
            }
            ApiOutcome::Refused { message, .. } => format!("refuses: {message}"),
            ApiOutcome::Deleted { .. } => "deletes it".to_owned(),
            ApiOutcome::Write(write) => write.to_string(),
        };
        steps.push((*ticks, format!("the API server {action}, t={}", answer.at)));
    }
    for (index, tick) in run.ticks.iter().enumerate() {
        let text = explain::tick(scenario, run, index, &newest, usize::from(u16::MAX));
        let text = anstream::adapter::strip_str(&text.expect("there is that tick")).to_string();
        // The head of the text contains the requirement, which is not evidence.
        let (_, text) = text.split_once("\ntick ").expect("a tick has a number");
        let mut reached = Coverage::default();
        let observation = tick.observation.clone();
        let (derivation, end) = (tick.derivation.clone(), observation.at);
        reached.add(&Decision { observation, derivation, end, ..Decision::default() });
        let reached = reached.groups().into_iter().flat_map(|group| {
            group.reached.into_iter().map(move |(name, _)| format!("{}:{name}", group.group))
        });
        let reached: Vec<String> = reached.collect();
        let words: Vec<&str> = text.split_whitespace().collect();
        let text = format!("tick {} reached {}", words.join(" "), reached.join(" "));
        steps.push((index, text));
    }
    // The answers of the API server after each number of ticks.
    steps.sort_by_key(|(ticks, _)| *ticks);
    steps.into_iter().map(|(_, text)| text).collect()
}

/// Checks that steps contain the groups of texts, in order. The error is the first missing group.
fn check_evidence<T: AsRef<[String]>>(evidence: &[T], steps: &[String]) -> Result<(), String> {
    let mut rest = steps.iter();
    for texts in evidence {
        let texts = texts.as_ref();
        if !rest.any(|step| texts.iter().all(|text| contains(step, text))) {
            return Err(format!("`{}`", texts.join("` + `")));
        }
    }
    Ok(())
}

/// Returns true if a step contains the parts of `text` between its stars, in order.
fn contains(step: &str, text: &str) -> bool {
    let mut rest = step;
    text.split('*').all(|part| match rest.find(part) {
        Some(at) => {
            rest = &rest[at + part.len()..];
            true
        }
        None => false,
    })
}

/// Replaces the observations of the model by those of upstream's recorded trace. A missing or stale
/// trace counts as empty; `suites/fast/recorded.rs` reports it.
fn use_recorded_trace(run: &mut FreeRun, scenario: &Scenario, release: Release) {
    let traces = Traces::Folder(support::repository().join(recorded::FOLDER));
    let found = traces.find(&scenario.id, release).unwrap_or_default();
    let trace = found.and_then(|recording| recording.trace().ok());
    let trace = trace.filter(|trace| trace.hash == scenario.hash).unwrap_or_default();
    run.ticks.truncate(trace.ticks.len());
    for (tick, observed) in run.ticks.iter_mut().zip(trace.ticks) {
        tick.observation = observed;
    }
    run.trace.api = trace.api;
}

/// All fixtures, or one of them.
fn fixtures(wanted: Option<&str>) -> Fixtures {
    let paths = support::fixtures().into_iter();
    let paths = paths.filter(|path| wanted.is_none_or(|id| support::id_of(path) == id));
    let scenarios = paths.map(|path| support::load(&path));
    let seen = scenarios.map(|scenario| {
        // The rules belong to the newest release, except those of older releases only.
        let mut releases = Release::supported().rev();
        let supported = releases.find(|release| {
            scenario.releases.contains(*release) && scenario.unsupported_on(*release).is_none()
        });
        let release = supported.expect("a release that supports the fixture");
        let mut run = free_run(&scenario, release);
        use_recorded_trace(&mut run, &scenario, release);
        let steps = evidence_of(&scenario, &run);
        (scenario.id.clone(), Fixture { covers: scenario.covers.clone(), steps })
    });
    seen.collect()
}

/// All fixtures of VPAs, or one of them.
fn recommender_fixtures(wanted: Option<&str>) -> Fixtures {
    let paths = support::vpa_fixtures().into_iter();
    let paths = paths.filter(|path| wanted.is_none_or(|id| support::id_of(path) == id));
    let scenarios = paths.map(|path| support::load_vpa(&path));
    // The rules belong to the newest release.
    let is_current = |it: &Arc<VpaScenario>| it.unsupported_on(VpaRelease::NEWEST).is_none();
    let seen = scenarios.filter(is_current).map(|scenario| {
        let steps = recommender_evidence_of(&scenario);
        (scenario.id.clone(), Fixture { covers: scenario.covers.clone(), steps })
    });
    seen.collect()
}

/// The evidence of a fixture of a VPA: the text of each start and each run of the recommender.
/// `explain`'s account of samples and derivations is the model's, all else is from upstream's
/// recorded trace. A missing or stale trace counts as empty; `suites/live/vpa.rs` reports it.
fn recommender_evidence_of(scenario: &Arc<VpaScenario>) -> Vec<String> {
    let release = VpaRelease::NEWEST;
    let traces = Traces::Folder(support::repository().join(recorded::FOLDER));
    let mut engine = RecordedRecommender::new(traces, release);
    let outcome = run_recommender(scenario, &mut engine, &[]);
    let Some(observed) = outcome.recommender().cloned() else {
        return Vec::new();
    };
    let mut run = free_recommender_run(scenario, release, &|_| true);
    run.snapshots = observed.snapshots;
    let mut runs = 0..;
    let steps = observed.trace.entries.iter().map(|entry| match entry {
        Entry::Start(log) => {
            let log = log.iter().map(|line| format!(" log: {line}"));
            format!("the recommender starts{}", log.collect::<String>())
        }
        Entry::Run(at) => {
            let index = runs.next().expect("there is a next number");
            let text =
                explain::recommender_run(scenario, &run, index, release, usize::from(u16::MAX));
            let text = anstream::adapter::strip_str(&text).to_string();
            // The head of the text contains the requirement, which is not evidence.
            let (_, text) = text.split_once("\ntick ").expect("a tick has a number");
            let words: Vec<&str> = text.split_whitespace().collect();
            format!("tick {} {}", words.join(" "), writes(&at.run.writes))
        }
    });
    steps.collect()
}

/// A write of a run of the recommender.
fn writes(writes: &[Write]) -> String {
    fn json(value: &impl Serialize) -> String {
        serde_json::to_string(value).expect("an object can be written")
    }
    if writes.is_empty() {
        return "writes nothing".to_owned();
    }
    let texts = writes.iter().map(|write| match write {
        Write::Status { vpa, status } => {
            format!("writes the status of {}: {}", vpa.name, json(&**status))
        }
        Write::Checkpoint { checkpoint, is_new, .. } => {
            let verb = if *is_new { "creates" } else { "updates" };
            let (name, status) = (&checkpoint.metadata.name, json(&checkpoint.status));
            format!("{verb} the checkpoint {name}: {status}")
        }
        Write::DeleteCheckpoint(name) => format!("deletes the checkpoint {}", name.name),
    });
    texts.collect::<Vec<_>>().join(" ")
}

/// The problems of the rules of a file and of the fixtures that cover them.
fn check(file: &str, rules: &Rules, fixtures: &Fixtures) -> Vec<String> {
    let mut problems = Vec::new();
    let mut known = BTreeSet::new();
    for section in &rules.sections {
        for rule in &section.rules {
            let id = &rule.id;
            if id.strip_prefix(&section.id).is_none_or(|rest| !rest.starts_with('.')) {
                problems.push(format!("{file}: {id} does not begin with {}.", section.id));
            }
            if !known.insert(id) {
                problems.push(format!("{file}: {id} is listed twice"));
            }
            let texts = rule.evidence.iter().map(EvidenceStep::texts);
            if rule.evidence.is_empty()
                || texts.into_iter().any(|texts| texts.iter().all(|text| text.is_empty()))
            {
                problems.push(format!("{file}: {id} has no evidence, or an empty step"));
            }
            let mut covering = fixtures.iter().filter(|(_, fixture)| fixture.covers.contains(id));
            let mut covered = false;
            for (name, fixture) in covering.by_ref() {
                covered = true;
                let steps: Vec<_> = rule.evidence.iter().map(EvidenceStep::texts).collect();
                if let Err(missing) = check_evidence(&steps, &fixture.steps) {
                    problems.push(format!("{name} covers {id}, but does not show {missing}"));
                }
            }
            if !covered {
                problems.push(format!("{file}: no fixture covers {id}"));
            }
        }
    }
    for (name, fixture) in fixtures {
        if fixture.covers.is_empty() {
            problems.push(format!("{name} covers no rule: add `covers:` with ids of {file}"));
        }
        for id in fixture.covers.iter().filter(|id| !known.contains(id)) {
            problems.push(format!("{name} covers {id}, which is not in {file}"));
        }
    }
    problems
}

/// The start of a page: the title, and what the rules and their evidence are.
fn head(title: &str, about: &str, file: &str, evidence: &str) -> String {
    format!(
        "# {title}\n\n\
         {about}, the evidence of each, and the fixtures that show it.\n\n\
         This page is generated from [{file}](../{file}) and from `covers:` in the fixtures: \
         `cargo xtask docs`. The suite `coverage` checks that each rule has a \
         fixture, and that each fixture shows the evidence of its rules.\n\n\
         Evidence is a part of the output of `kube-lockstep explain FIXTURE --tick N`, {evidence}. \
         Texts that are joined by a plus sign appear together; a text after *then* appears at a \
         later tick; an asterisk matches any text. `SHOW_EVIDENCE=FIXTURE cargo test --test fast \
         coverage` shows all the text of a fixture.\n"
    )
}

/// The tables of a page, one for each section.
fn tables(rules: &Rules, fixtures: &Fixtures) -> String {
    let mut out = String::new();
    let span = |text: &String| format!("`{}`", text.replace('|', "\\|"));
    for section in &rules.sections {
        let _ = write!(out, "\n## {}\n", section.title);
        out.push_str("| id | rule | evidence | fixtures |\n|---|---|---|---|\n");
        for Rule { id, rule, evidence } in &section.rules {
            let together =
                |step: &EvidenceStep| step.texts().iter().map(span).collect::<Vec<_>>().join(" + ");
            let evidence: Vec<_> = evidence.iter().map(together).collect();
            let covering = fixtures.iter().filter(|(_, fixture)| fixture.covers.contains(id));
            let covering: Vec<_> = covering.map(|(name, _)| span(name)).collect();
            let (evidence, covering) = (evidence.join(", then "), covering.join(", "));
            let _ = writeln!(out, "| `{id}` | {rule} | {evidence} | {covering} |");
        }
    }
    out
}

/// The page of all rules.
fn page(rules: &Rules, fixtures: &Fixtures) -> String {
    let about =
        format!("The rules of the HPA controller's algorithm as of Kubernetes {}", Release::NEWEST);
    let evidence = "a part of an API server response, or the name of a branch in the coverage of \
                    `kube-lockstep fuzz` (`paths:Second`)";
    let mut out = head("Rules and fixtures", &about, RULES, evidence);
    out.push_str(&tables(rules, fixtures));
    out.push_str(&without_a_fixture(rules));
    out
}

/// The list of behavior that no fixture shows.
fn without_a_fixture(rules: &Rules) -> String {
    let mut out = "\n## Without a fixture\n\n".to_owned();
    for text in &rules.uncovered {
        let _ = writeln!(out, "- {text}");
    }
    out
}

/// The page of the rules of the recommender.
fn recommender_page(rules: &Rules, fixtures: &Fixtures) -> String {
    let title = "Rules of the VPA's recommender and their fixtures";
    let about = format!("The rules of the recommender as of {}", VpaRelease::NEWEST);
    let evidence = "a part of what the run writes (a status or a checkpoint), or a part of what \
                    the recommender logs when it starts";
    let head = head(title, &about, RECOMMENDER_RULES, evidence);
    head + &tables(rules, fixtures) + &without_a_fixture(rules)
}

#[test]
fn each_rule_is_shown_by_its_fixtures() {
    if let Ok(id) = std::env::var("SHOW_EVIDENCE") {
        let mut fixtures = fixtures(Some(&id));
        fixtures.extend(recommender_fixtures(Some(&id)));
        let steps = fixtures.get(&id).map(|fixture| fixture.steps.join("\n"));
        panic!("{}", steps.unwrap_or_else(|| "no such fixture exists".to_owned()));
    }
    let fixtures = fixtures(None);
    let rules = read_rules(&read(RULES)).unwrap_or_else(|error| panic!("{RULES}: {error}"));
    let mut problems = check(RULES, &rules, &fixtures);
    let findings = read(FINDINGS);
    let (hpa_findings, _) = findings.split_once(VPA_FINDINGS).expect("a section about the VPA");
    problems.extend(check_findings(hpa_findings, &fixtures));
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    support::assert_generated(PAGE, &page(&rules, &fixtures));
}

/// The releases on which each known reason and error is recorded, or has a reason for its absence:
/// one of each group with the same behavior.
const GROUPS: [&str; 6] = ["1.6", "1.9", "1.12", "1.22", "1.30", "1.37"];

/// Reasons of conditions that only older releases have, besides the items of the coverage.
const OLDER_CONDITIONS: [&str; 3] = ["BackoffBoth", "BackoffDownscale", "BackoffUpscale"];

/// Reasons and errors that recorded traces of a release do not show.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Absent {
    /// Why no trace shows them.
    reason: String,
    /// The releases: `1.6-1.9, 1.12`.
    releases: String,
    /// The items: `conditions`, `events` or `errors`, a colon, and a reason or a part of an error.
    items: BTreeSet<String>,
}

impl Absent {
    fn is_of(&self, release: Release) -> bool {
        let releases = self.releases.parse::<Releases>();
        releases.unwrap_or_else(|error| panic!("{ABSENT}: {error}")).contains(release)
    }
}

/// The known conditions, events and errors that no recorded trace of a release shows.
fn absent_on(release: Release, scenarios: &[Arc<Scenario>]) -> BTreeSet<String> {
    let traces = Traces::Folder(support::repository().join(recorded::FOLDER));
    let mut reached = Coverage::default();
    for scenario in scenarios {
        let recording = traces.find(&scenario.id, release).ok().flatten();
        let Some(Ok(trace)) = recording.map(|recording| recording.trace()) else { continue };
        for observation in trace.ticks.into_iter().filter(|_| trace.hash == scenario.hash) {
            let end = observation.at;
            reached.add(&Decision { observation, end, ..Decision::default() });
        }
    }
    let mut absent = BTreeSet::new();
    for CoverageGroup { group, reached, never } in reached.groups() {
        let is_known = |name: &str| reached.iter().any(|(reached, _)| reached == name);
        let older = OLDER_CONDITIONS.into_iter().filter(|name| !is_known(name)).map(str::to_owned);
        let older: Vec<String> = older.filter(|_| group == "conditions").collect();
        if ["conditions", "events", "errors"].contains(&&*group) {
            absent.extend(never.into_iter().chain(older).map(|name| format!("{group}:{name}")));
        }
    }
    absent
}

/// Each known reason and error is in a recorded trace of each group of releases, or in the list of
/// those that are absent. No trace may contain an item of the list.
#[test]
fn each_reason_and_error_is_recorded_on_each_group_of_releases() {
    let text = std::fs::read_to_string(support::repository().join(ABSENT)).unwrap_or_default();
    let listed: Vec<Absent> =
        serde_yaml::from_str(&text).unwrap_or_else(|error| panic!("{ABSENT}: {error}"));
    let unexplained = listed.iter().filter(|absent| absent.reason.trim().is_empty()).count();
    assert_eq!(unexplained, 0, "{ABSENT}: an entry has no reason");
    let scenarios: Vec<_> = support::fixtures().iter().map(|path| support::load(path)).collect();
    let mut problems = Vec::new();
    for name in GROUPS {
        let release: Release = name.parse().expect("a release");
        let absent = listed.iter().filter(|absent| absent.is_of(release));
        let explained: BTreeSet<String> = absent.flat_map(|it| it.items.clone()).collect();
        let absent = absent_on(release, &scenarios);
        let missing = absent.difference(&explained);
        problems.extend(missing.map(|item| format!("{release}: no trace shows {item}")));
        let shown = explained.difference(&absent);
        problems.extend(shown.map(|item| format!("{release}: a trace shows {item}: {ABSENT}")));
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// The same for the VPA's recommender. Each fixture of a VPA also has expectations, which upstream
/// meets, and a link to upstream.
#[test]
fn each_rule_of_the_recommender_is_shown_by_its_fixtures() {
    let rules = read_rules(&read(RECOMMENDER_RULES))
        .unwrap_or_else(|error| panic!("{RECOMMENDER_RULES}: {error}"));
    let fixtures = recommender_fixtures(None);
    let mut problems = check(RECOMMENDER_RULES, &rules, &fixtures);
    for path in support::vpa_fixtures() {
        let scenario = support::load_vpa(&path);
        if scenario.expect.is_empty() || scenario.upstream.is_empty() {
            problems.push(format!("{} has no expectations, or no link to upstream", scenario.id));
        }
    }
    let findings = read(FINDINGS);
    let (_, vpa_findings) = findings.split_once(VPA_FINDINGS).expect("a section about the VPA");
    problems.extend(check_findings(vpa_findings, &fixtures));
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    support::assert_generated(RECOMMENDER_PAGE, &recommender_page(&rules, &fixtures));
}

/// The amount after policies and rounding differs from the derived one.
#[test]
fn no_derivation_repeats_its_own_amount() {
    const THEN: &str = "; with the policy and rounding: ";
    let (mut changed, mut repeated) = (0, Vec::new());
    for path in support::vpa_fixtures() {
        let (scenario, release) = (support::load_vpa(&path), VpaRelease::NEWEST);
        // The first runs have the most different amounts.
        let run = free_recommender_run(&scenario, release, &|run| run < 20);
        for index in run.explained.keys() {
            let text =
                explain::recommender_run(&scenario, &run, *index, release, usize::from(u16::MAX));
            for (before, after) in text.lines().filter_map(|line| line.split_once(THEN)) {
                changed += 1;
                if before.ends_with(after) {
                    repeated.push(format!("{}: {before}{THEN}{after}", scenario.id));
                }
            }
        }
    }
    assert!(changed > 20, "only {changed} amounts that a policy or rounding changes");
    assert!(repeated.is_empty(), "{}", repeated.join("\n"));
}

/// The problems of the table of findings.
fn check_findings(document: &str, fixtures: &Fixtures) -> Vec<String> {
    let mut problems = Vec::new();
    let mut rows = 0;
    let rows_of_table = document.lines().enumerate().filter(|(_, line)| line.starts_with('|'));
    for (index, line) in rows_of_table {
        let place = format!("{FINDINGS}:{}", index + 1);
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [_, finding, happens, says, link, evidence, fixture, _] = cells.as_slice() else {
            problems.push(format!("{place}: a row has six cells"));
            continue;
        };
        if *finding == "finding" || finding.starts_with("---") {
            continue;
        }
        rows += 1;
        if [finding, happens, says].iter().any(|cell| cell.is_empty()) {
            problems.push(format!("{place}: an empty cell"));
        }
        if !link.starts_with('[') || !link.contains("](https://github.com/kubernetes/") {
            problems.push(format!("{place}: no link to upstream: {link}"));
        }
        let [fixture] = spans(fixture).try_into().unwrap_or_else(|_| [String::new()]);
        let evidence: Vec<_> = evidence.split("`, then `").map(spans).collect();
        if evidence.iter().any(Vec::is_empty) {
            problems.push(format!("{place}: no evidence"));
        }
        match fixtures.get(&fixture).map(|fixture| check_evidence(&evidence, &fixture.steps)) {
            None => problems.push(format!("{place}: there is no fixture {fixture}")),
            Some(Err(missing)) => {
                problems.push(format!("{place}: {fixture} does not show {missing}"));
            }
            Some(Ok(())) => {}
        }
    }
    if rows == 0 {
        problems.push(format!("{FINDINGS}: it has no findings"));
    }
    problems
}

/// The code spans of a cell, even if the split between steps cuts them.
fn spans(cell: &str) -> Vec<String> {
    let cell = cell.trim().trim_matches('`');
    if cell.is_empty() {
        return Vec::new();
    }
    let parts = cell.split('`').enumerate();
    parts.filter(|(index, _)| index % 2 == 0).map(|(_, span)| span.to_owned()).collect()
}

/// Fixtures with these names, covered rules and steps.
fn fixtures_with(steps: &[(&str, &[&str], &[&str])]) -> Fixtures {
    let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    let fixture = |&(name, covers, steps): &(&str, &[&str], &[&str])| {
        (name.to_owned(), Fixture { covers: owned(covers), steps: owned(steps) })
    };
    steps.iter().map(fixture).collect()
}

#[test]
fn problems_of_rules_are_found() {
    let rules = |rules: &str| {
        let text = format!("sections: [{{id: a, title: A, rules: [{rules}]}}]\nuncovered: []\n");
        read_rules(&text).unwrap_or_else(|error| panic!("{text}: {error}"))
    };
    let seen = ["size 1", "size 2 and more", "size 3"];
    let problems = |rule: &str, covers: &[&str]| {
        check(RULES, &rules(rule), &fixtures_with(&[("a/one", covers, &seen)])).join("; ")
    };
    let with =
        |evidence: &str| problems(&format!("{{id: a.b, rule: R, evidence: {evidence}}}"), &["a.b"]);
    for evidence in ["[[size 2, more]]", "['1', 'size*more', '3']"] {
        assert_eq!(with(evidence), "");
    }
    for (evidence, finds) in [
        ("[]", "a.b has no evidence"),
        ("[[]]", "a.b has no evidence"),
        ("['']", "a.b has no evidence"),
        ("[size 4]", "a/one covers a.b, but does not show `size 4`"),
        ("[[size 1, size 2]]", "does not show `size 1` + `size 2`"),
        ("[size 3, size 2]", "does not show `size 2`"),
        ("['more*2']", "does not show `more*2`"),
    ] {
        assert!(with(evidence).contains(finds), "{evidence}: {}", with(evidence));
    }
    let rule = "{id: a.b, rule: R, evidence: [size]}";
    for (rule, covers, finds) in [
        (rule, [].as_slice(), "no fixture covers a.b"),
        (rule, &[], "a/one covers no rule"),
        (rule, &["a.b", "a.c"], "a/one covers a.c, which is not in"),
        ("{id: b.b, rule: R, evidence: [size]}", &["b.b"], "b.b does not begin with a."),
        (&format!("{rule}, {rule}"), &["a.b"], "a.b is listed twice"),
    ] {
        let problems = problems(rule, covers);
        assert!(problems.contains(finds), "{rule}: {problems}");
    }
}

#[test]
fn problems_of_findings_are_found() {
    let fixtures = fixtures_with(&[("a/two", &[], &["size 1"])]);
    let link = "[#1](https://github.com/kubernetes/kubernetes/issues/1)";
    let row = |link: &str, seen: &str, fixture: &str| {
        let row = format!("| it is | so | says so | {link} | {seen} | {fixture} |");
        check_findings(&row, &fixtures).join("; ")
    };
    assert_eq!(row(link, "`size 1`", "`a/two`"), "");
    let check = |document: &str| check_findings(document, &fixtures).join("; ");
    for (problems, finds) in [
        (check(&format!("| it is | so | | {link} | `size 1` | `a/two` |")), "an empty cell"),
        (check("| it is | so |"), "a row has six cells"),
        (check("no table"), "it has no findings"),
        (row("[#1](https://example.com)", "`size 1`", "`a/two`"), "no link to upstream"),
        (row(link, "", "`a/two`"), "no evidence"),
        (row(link, "`size 2`", "`a/two`"), "a/two does not show `size 2`"),
        (row(link, "`size 1`", "`a/three`"), "there is no fixture a/three"),
    ] {
        assert!(problems.contains(finds), "{problems}");
    }
}
