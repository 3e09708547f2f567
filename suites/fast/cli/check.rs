//! The search for choices with which an expectation is not met.

use super::{json, kube_lockstep, stderr, stdout, text};

const FIGHT: &str = "fixtures/search/two-hpas-fight.yaml";

#[test]
fn the_examples_have_the_shortest_counterexamples_or_are_proved() {
    for (name, outcome, at) in [
        ("two-hpas-fight", "counterexample", "2m"),
        ("two-metrics-oscillate", "counterexample", "2m45s"),
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

#[test]
fn a_counterexample_is_an_ordinary_scenario() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("counterexample.yaml");
    let run = kube_lockstep(&["check", FIGHT, "--no-confirm", "--output", text(&file)]);
    let shown = stdout(&{ run }.assert().code(1));
    assert!(shown.contains("t=30s  editHpa {spec: {maxReplicas: 3}}"), "{shown}");
    assert!(shown.contains("searched: all choices before t=1m30s"), "{shown}");
    kube_lockstep(&["predict", text(&file)]).assert().code(1);
    let error = stderr(&kube_lockstep(&["check", text(&file)]).assert().code(2));
    assert!(error.contains("the scenario has no `search`"), "{error}");
}

#[test]
fn a_search_ends_at_its_largest_number_of_states() {
    let run = kube_lockstep(&["check", FIGHT, "--states=2"]).assert().code(3);
    assert!(stdout(&run).contains("no result: there are more than 2 states"), "{}", stdout(&run));
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
