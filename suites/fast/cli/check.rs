//! The search for choices with which an expectation is not met.

use std::fs;
use std::path::Path;

use super::{json, kube_lockstep, stderr, stdout, text};

const FIGHT: &str = "fixtures/search/two-hpas-fight.yaml";

#[test]
fn the_examples_have_the_shortest_counterexamples_or_are_proved() {
    for (name, outcome, at) in [
        ("two-hpas-fight", "counterexample", "2m"),
        ("two-metrics-oscillate", "counterexample", "10m45s"),
        ("rollouts-ratchet-upwards", "counterexample", "1m30s"),
        ("a-window-prevents-reversals", "alwaysHolds", ""),
    ] {
        let file = format!("fixtures/search/{name}.yaml");
        let code = i32::from(outcome == "counterexample");
        let run = kube_lockstep(&["check", &file, "--no-confirm", "--format=json"]);
        let lines = json(&{ run }.assert().code(code));
        assert_eq!(lines[0]["outcome"], outcome, "{name}");
        assert_eq!(lines[0]["counterexample"]["at"].as_str().unwrap_or_default(), at, "{name}");
        // Without the search, the expectations are met.
        kube_lockstep(&["predict", &file]).assert().code(0);
    }
}

/// The HPA, the load and the choices of a metric of `two-metrics-oscillate`.
const METRICS: [[&str; 3]; 2] = [
    [
        "      - type: Resource
        resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}
",
        "  resource: [{name: cpu, load: \"1\"}]\n",
        "    - {metric: cpu, values: [\"1\", \"2\"], from: 4m, every: 3m}\n",
    ],
    [
        "      - type: External
        external:
          metric: {name: queue_length}
          target: {type: AverageValue, averageValue: \"30\"}
",
        "  external: [{name: queue_length, value: \"90\"}]\n",
        "    - {metric: queue_length, values: [\"60\", \"180\"], from: 2m, every: 3m, to: 5m}\n",
    ],
];

#[test]
fn two_metrics_oscillate_only_together() {
    let folder = tempfile::tempdir().expect("a folder");
    let both = fs::read_to_string("fixtures/search/two-metrics-oscillate.yaml").expect("a file");
    for parts in METRICS {
        assert!(parts.iter().all(|part| both.matches(part).count() == 1), "{both}");
        let one = parts.iter().fold(both.clone(), |text, part| text.replace(part, ""));
        let file = folder.path().join("one.yaml");
        fs::write(&file, one).expect("a file can be written");
        let run = kube_lockstep(&["check", text(&file), "--no-confirm", "--format=json"]);
        let lines = json(&{ run }.assert().code(0));
        assert_eq!(lines[0]["outcome"], "holds", "{lines:?}");
    }
}

#[test]
fn a_counterexample_is_an_ordinary_scenario() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("counterexample.yaml");
    let run = kube_lockstep(&["check", FIGHT, "--no-confirm", "--output", text(&file)]);
    let shown = stdout(&{ run }.assert().code(1));
    assert!(shown.contains("t=30s  editHpa {spec: {maxReplicas: 3}} of HPA by-work\n"), "{shown}");
    assert!(shown.contains("searched: all choices before t=1m30s"), "{shown}");
    kube_lockstep(&["predict", text(&file)]).assert().code(1);
    let error = stderr(&kube_lockstep(&["check", text(&file)]).assert().code(2));
    assert!(error.contains("the scenario has no `search`"), "{error}");
}

#[test]
fn a_search_ends_at_its_largest_number_of_states() {
    let run = kube_lockstep(&["check", FIGHT, "--states=2"]).assert().code(3);
    assert!(
        stdout(&run).contains("no result: there are more than 2 states, the limit of --states"),
        "{}",
        stdout(&run)
    );
}

#[test]
fn other_commands_note_that_they_ignore_the_search() {
    for command in [&["run", "--engine=model"][..], &["predict", "--no-charts"], &["explain"]] {
        let run = kube_lockstep(command).arg(FIGHT).assert().code(0);
        let shown = stdout(&run);
        let words: Vec<&str> = shown.split_whitespace().collect();
        let note = "note: fixtures/search/two-hpas-fight.yaml:40: `search` is ignored:";
        assert!(words.join(" ").contains(note), "{command:?}: {shown}");
    }
    let shown = stdout(&kube_lockstep(&["check", FIGHT, "--no-confirm"]).assert().code(1));
    assert!(!shown.contains("ignored"), "{shown}");
}

/// Writes an example with this expectation in place of its own. Returns the path of the file.
fn with_expectation(folder: &Path, example: &str, expectation: &str) -> String {
    let text = fs::read_to_string(format!("fixtures/search/{example}.yaml")).expect("an example");
    let (head, rest) = text.split_once("expect:\n").expect("expectations");
    let (_, search) = rest.split_once("search:\n").expect("a search");
    let file = folder.join(format!("{example}.yaml"));
    let changed = format!("{head}expect: [{expectation}]\nsearch:\n{search}");
    fs::write(&file, changed).expect("a file can be written");
    file.to_str().expect("UTF-8").to_owned()
}

#[test]
fn an_expectation_that_is_not_met_without_choices_has_a_counterexample_without_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let expectation = "{always: {from: 1m}, replicas: {atLeast: 5}}";
    let file = with_expectation(folder.path(), "a-window-prevents-reversals", expectation);
    let run = kube_lockstep(&["check", &file, "--no-confirm"]).assert().code(1);
    let shown = stdout(&run);
    assert!(shown.contains("is not met, even if nothing is chosen:\n  tick 5 (t=1m)"), "{shown}");
}

#[test]
fn scenarios_without_a_search_are_left_out_or_refused() {
    let run = kube_lockstep(&["check", FIGHT, "tolerance", "vpa/oom", "--no-confirm"]);
    let notes = stderr(&{ run }.assert().code(1));
    let words = notes.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        words.contains("note: left out because of a missing `search`: fixtures/tolerance/"),
        "{words}"
    );
    assert!(words.contains("more scenarios"), "{words}");
    for (names, expected) in [
        (&["tolerance"][..], "scenarios has `search`"),
        (&["tolerance/upper-edge-is-inclusive"], "the scenario has no `search`"),
        (&["vpa/oom"], "has `search`"),
    ] {
        let run = kube_lockstep(&["check"]).args(names).assert().code(2);
        let error = stderr(&run);
        assert!(error.contains(expected) && error.contains("hint: add `search`"), "{error}");
    }
}

#[test]
fn a_counterexample_in_another_folder_reads_the_same_recordings() {
    let folder = tempfile::tempdir().expect("a folder");
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    [&from, &to].into_iter().for_each(|it| fs::create_dir(it).expect("a folder can be made"));
    fs::write(from.join("load.csv"), "time,value\n0,1\n600,1\n").expect("a load");
    let expectation = "{atMost: {directionChanges: 0, in: 10m}}";
    let file = with_expectation(&from, "two-metrics-oscillate", expectation);
    let text_of_file = fs::read_to_string(&file).expect("a scenario");
    let recorded = "resource: [{name: cpu, load: {csv: load.csv}}]";
    let text_of_file = text_of_file.replace("resource: [{name: cpu, load: \"1\"}]", recorded);
    fs::write(&file, text_of_file.replace(METRICS[0][2], "")).expect("a scenario");
    let output = to.join("counterexample.yaml");
    let run = kube_lockstep(&["check", &file, "--no-confirm", "--output", text(&output)]);
    { run }.assert().code(1);
    kube_lockstep(&["predict", text(&output)]).assert().code(1);
    let written = fs::read_to_string(&output).expect("a counterexample");
    assert!(written.contains("../from/load.csv"), "{written}");
}
