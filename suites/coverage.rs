//! `docs/coverage.md`: every rule of the algorithm has fixtures in which it can be seen at work; and
//! `docs/upstream-findings.md`: so does every finding about upstream.
//!
//! A row of its tables names a rule, what can be seen of it, and fixtures. What can be seen is text
//! that `kube-lockstep explain FIXTURE --tick N` shows, besides the answers of the API server and
//! the branches that the fuzzer counts. What was asked, answered and written (scale, status, events,
//! errors) is upstream's own, from its recorded trace; how it came about, and the branches, are the
//! model's word. `SHOW_EVIDENCE=FIXTURE cargo test --test coverage` fails
//! with all there is of a fixture.

mod support;

use std::collections::{BTreeMap, BTreeSet};

use kube_lockstep::engine::recorded::{self, Traces};
use kube_lockstep::fuzz::Coverage;
use kube_lockstep::model::hpa::Decision;
use kube_lockstep::model::rules::Release;
use kube_lockstep::report::explain;
use kube_lockstep::run::{FreeRun, free_run};
use kube_lockstep::scenario::Scenario;
use kube_lockstep::trace::{ApiOutcome, Trace};

/// The document.
const DOCUMENT: &str = "docs/coverage.md";

/// The sections that rules are numbered by, and how many each has: a row that is lost, or a table
/// that is not read any more, must be noticed. Who adds a rule counts it here.
const SECTIONS: &[(&str, usize)] = &[
    ("1.1", 9),
    ("1.2", 39),
    ("1.3", 9),
    ("1.4", 24),
    ("1.5", 39),
    ("1.6.1", 16),
    ("1.6.2", 18),
    ("1.6.3", 9),
    ("1.6.4", 33),
    ("1.6.5", 54),
    ("1.7", 15),
    ("1.9", 12),
    ("1.10", 31),
    ("1.11", 5),
    ("1.12", 6),
    ("Practice", 10),
];

/// How many findings there are.
const FINDINGS_ROWS: usize = 30;

/// One row.
#[derive(Clone, Debug)]
struct Rule {
    line: usize,
    section: String,
    text: String,
    /// What is seen at one tick after another: texts that are there all at once.
    evidence: Vec<Vec<String>>,
    fixtures: Vec<String>,
}

/// Findings about upstream, in a table of six columns.
const FINDINGS: &str = "docs/upstream-findings.md";

/// What is wrong with the table of findings, and how many rows it has.
fn check_findings(
    document: &str,
    fixtures: &BTreeMap<String, Vec<String>>,
) -> (Vec<String>, usize) {
    let (mut wrong, mut rows) = (Vec::new(), 0);
    for (index, line) in document.lines().enumerate() {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [_, finding, happens, says, link, evidence, fixture, _] = cells.as_slice() else {
            continue;
        };
        if *finding == "finding" || finding.starts_with("---") {
            continue;
        }
        rows += 1;
        let place = format!("{FINDINGS}:{}", index + 1);
        if [finding, happens, says].iter().any(|cell| cell.is_empty()) {
            wrong.push(format!("{place}: an empty cell"));
        }
        if !link.starts_with('[') || !link.contains("](https://github.com/kubernetes/") {
            wrong.push(format!("{place}: no link to upstream: {link}"));
        }
        let [fixture] = spans(fixture).try_into().unwrap_or_else(|_| [String::new()]);
        let evidence = steps(evidence);
        if evidence.iter().any(Vec::is_empty) {
            wrong.push(format!("{place}: no evidence"));
        }
        match fixtures.get(&fixture).map(|seen| is_seen(&evidence, seen)) {
            None => wrong.push(format!("{place}: there is no fixture {fixture}")),
            Some(Err(missing)) => wrong.push(format!("{place}: {fixture} does not show {missing}")),
            Some(Ok(())) => {}
        }
    }
    (wrong, rows)
}

/// The texts of a cell, by step.
fn steps(cell: &str) -> Vec<Vec<String>> {
    cell.split("`, then `").map(spans).collect()
}

/// The rows of all tables of three columns, and what is wrong with them.
fn parse(document: &str) -> (Vec<Rule>, Vec<String>) {
    let (mut rules, mut wrong) = (Vec::new(), Vec::new());
    let mut section = String::new();
    for (index, line) in document.lines().enumerate() {
        if let Some(title) = line.strip_prefix("## ") {
            section = title.split(' ').next().unwrap_or_default().to_owned();
        }
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [_, text, evidence, fixtures, _] = cells.as_slice() else { continue };
        if *text == "rule" || text.starts_with("---") {
            continue;
        }
        let rule = Rule {
            line: index + 1,
            section: section.clone(),
            text: (*text).to_owned(),
            evidence: steps(evidence),
            fixtures: spans(fixtures),
        };
        if rule.fixtures.is_empty() || rule.evidence.iter().any(Vec::is_empty) {
            wrong.push(format!("{DOCUMENT}:{}: no fixture or no evidence: {text}", rule.line));
        }
        rules.push(rule);
    }
    (rules, wrong)
}

/// The code spans of a cell; one that is cut by the split between steps counts, too.
fn spans(cell: &str) -> Vec<String> {
    let cell = cell.trim().trim_matches('`');
    if cell.is_empty() {
        return Vec::new();
    }
    let parts = cell.split('`').enumerate();
    parts.filter(|(index, _)| index % 2 == 0).map(|(_, span)| span.to_owned()).collect()
}

/// All that can be seen of a fixture: the text of each step, in order.
fn evidence_of(scenario: &Scenario, run: &FreeRun) -> Vec<String> {
    let mut steps = Vec::new();
    for (ticks, answer) in &run.trace.api {
        let what = match &answer.outcome {
            ApiOutcome::Stored { generation, spec } => {
                let spec = serde_json::to_string(&**spec).expect("a spec can be written");
                format!("stores generation {generation}: {spec}")
            }
            ApiOutcome::Refused(message) => format!("refuses: {message}"),
            ApiOutcome::Deleted => "deletes it".to_owned(),
        };
        steps.push((*ticks, format!("the API server {what}, t={}", answer.at)));
    }
    for (index, tick) in run.ticks.iter().enumerate() {
        let text = explain::tick(scenario, run, index, "1.37", usize::from(u16::MAX));
        let text = anstream::adapter::strip_str(&text.expect("there is that tick")).to_string();
        // The head of the text has the requirement, which proves nothing.
        let (_, text) = text.split_once("\ntick ").expect("a tick has a number");
        let mut reached = Coverage::default();
        let observation = tick.observation.clone();
        let (derivation, end) = (tick.derivation.clone(), observation.at);
        reached.add(&Decision { observation, derivation, end });
        let reached = reached.groups().into_iter().flat_map(|group| {
            group.reached.into_iter().map(move |(name, _)| format!("{}:{name}", group.group))
        });
        let reached: Vec<String> = reached.collect();
        let words: Vec<&str> = text.split_whitespace().collect();
        let text = format!("tick {} reached {}", words.join(" "), reached.join(" "));
        steps.push((index, text));
    }
    // An answer comes after so many ticks.
    steps.sort_by_key(|(ticks, _)| *ticks);
    steps.into_iter().map(|(_, text)| text).collect()
}

/// Whether each group of texts is found in a step, one after another.
fn is_seen(evidence: &[Vec<String>], steps: &[String]) -> Result<(), String> {
    let mut rest = steps.iter();
    for texts in evidence {
        if !rest.any(|step| texts.iter().all(|text| contains(step, text))) {
            return Err(format!("`{}`", texts.join("` + `")));
        }
    }
    Ok(())
}

/// Whether the parts of a text, which stars stand between, are found in order.
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

/// Puts what upstream was recorded to do in the place of what the model says that it does. A trace
/// that is missing or out of date is for `suites/recorded.rs` to find; here it counts for nothing.
fn as_recorded(run: &mut FreeRun, scenario: &Scenario, release: Release) {
    let traces = Traces::Folder(support::repository().join(recorded::FOLDER));
    let text = traces.read(&scenario.id, release).unwrap_or_default().unwrap_or_default();
    let trace = recorded::parse_snapshot(&text).unwrap_or_default();
    let trace = if trace.hash == scenario.hash { trace } else { Trace::default() };
    run.ticks.truncate(trace.ticks.len());
    for (tick, observed) in run.ticks.iter_mut().zip(trace.ticks) {
        tick.observation = observed;
    }
    run.trace.api = trace.api;
}

/// All fixtures, or the one that is wanted, with what can be seen of them.
fn fixtures(wanted: Option<&str>) -> BTreeMap<String, Vec<String>> {
    let release = Release::newest();
    let paths = support::fixtures().into_iter();
    let paths = paths.filter(|path| wanted.is_none_or(|id| support::id_of(path) == id));
    let scenarios = paths.map(|path| (support::load(&path), path));
    // The document is about the newest release.
    let of_today = scenarios.filter(|(scenario, _)| scenario.unsupported_on(release).is_none());
    let seen = of_today.map(|(scenario, path)| {
        let mut run = free_run(&scenario, release);
        as_recorded(&mut run, &scenario, release);
        (support::id_of(&path), evidence_of(&scenario, &run))
    });
    seen.collect()
}

/// What is wrong with a document.
fn check(document: &str, fixtures: &BTreeMap<String, Vec<String>>) -> Vec<String> {
    let (rules, mut wrong) = parse(document);
    let mut named = BTreeSet::new();
    for rule in &rules {
        let place = format!("{DOCUMENT}:{}", rule.line);
        for fixture in &rule.fixtures {
            named.insert(fixture.as_str());
            match fixtures.get(fixture) {
                None => wrong.push(format!("{place}: there is no fixture {fixture}")),
                Some(steps) => {
                    if let Err(missing) = is_seen(&rule.evidence, steps) {
                        let text = &rule.text;
                        wrong.push(format!("{place}: {fixture} does not show {missing}: {text}"));
                    }
                }
            }
        }
    }
    for fixture in fixtures.keys().filter(|fixture| !named.contains(fixture.as_str())) {
        wrong.push(format!("{fixture} stands for no rule of {DOCUMENT}"));
    }
    for (section, expected) in SECTIONS {
        let count = rules.iter().filter(|rule| rule.section == *section).count();
        if count != *expected {
            wrong.push(format!("{DOCUMENT}: section {section} has {count} rules, not {expected}"));
        }
    }
    for rule in &rules {
        if !SECTIONS.iter().any(|(section, _)| *section == rule.section) {
            let place = format!("{DOCUMENT}:{}", rule.line);
            wrong.push(format!("{place}: no section {} is counted", rule.section));
        }
    }
    wrong
}

#[test]
fn every_rule_is_seen_in_its_fixtures() {
    let wanted = std::env::var("SHOW_EVIDENCE").ok();
    let fixtures = fixtures(wanted.as_deref());
    if let Some(id) = wanted {
        panic!("{}", fixtures.get(&id).map_or("no such fixture".to_owned(), |all| all.join("\n")));
    }
    let read = |document: &str| {
        let path = support::repository().join(document);
        std::fs::read_to_string(path).expect("the document can be read")
    };
    let mut wrong = check(&read(DOCUMENT), &fixtures);
    let (findings, rows) = check_findings(&read(FINDINGS), &fixtures);
    wrong.extend(findings);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(rows, FINDINGS_ROWS, "{FINDINGS}: its rows");
}

/// What the test above is there to find, it finds.
#[test]
fn what_is_wrong_is_found() {
    let seen = |steps: &[&str]| steps.iter().map(|step| (*step).to_owned()).collect::<Vec<_>>();
    let fixtures = BTreeMap::from([
        ("a/one".to_owned(), seen(&["size 1", "size 2 and more", "size 3"])),
        ("a/two".to_owned(), seen(&["size 1"])),
    ]);
    let first = |row: &str| {
        let document = format!("## 1.5 Title\n| rule | seen | fixtures |\n|---|---|---|\n{row}\n");
        check(&document, &fixtures).into_iter().next().expect("a wrong number of rules, at least")
    };
    let fine = "| it is | `size 2` + `more` | `a/one` |\n| too | `size` | `a/two` |";
    assert!(first(fine).contains("has 0 rules, not"), "{}", first(fine));
    let steps = "| it is | `1`, then `size*more`, then `3` | `a/one` |\n| it | `size` | `a/two` |";
    assert!(first(steps).contains("has 0 rules, not"), "{}", first(steps));
    for (row, finds) in [
        ("| a rule | `size 2` | |", "no fixture or no evidence"),
        ("| a rule | | `a/one` |", "no fixture or no evidence"),
        ("| a rule | `size 2` | `a/three` |", "there is no fixture a/three"),
        ("| a rule | `size 2` | `a/one`, `a/two` |", "a/two does not show `size 2`"),
        ("| a rule | `size 1` + `size 2` | `a/one` |", "does not show `size 1` + `size 2`"),
        ("| a rule | `size 3`, then `size 2` | `a/one` |", "does not show `size 2`"),
        ("| a rule | `more*2` | `a/one` |", "does not show `more*2`"),
        ("| a rule | `size 2` | `a/one` |", "a/two stands for no rule"),
    ] {
        assert!(first(row).contains(finds), "{row}: {}", first(row));
    }
    let finding = |row: &str| check_findings(row, &fixtures);
    let link = "[#1](https://github.com/kubernetes/kubernetes/issues/1)";
    let row = |link: &str, seen: &str, fixture: &str| {
        finding(&format!("| it is | so | says so | {link} | {seen} | {fixture} |"))
    };
    assert_eq!(row(link, "`size 1`", "`a/two`"), (Vec::new(), 1));
    for (wrong, finds) in [
        (finding(&format!("| it is | so | | {link} | `size 1` | `a/two` |")), "an empty cell"),
        (row("[#1](https://example.com)", "`size 1`", "`a/two`"), "no link to upstream"),
        (row(link, "", "`a/two`"), "no evidence"),
        (row(link, "`size 2`", "`a/two`"), "a/two does not show `size 2`"),
        (row(link, "`size 1`", "`a/three`"), "there is no fixture a/three"),
    ] {
        assert!(wrong.0.concat().contains(finds), "{wrong:?}");
    }
}
