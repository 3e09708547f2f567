//! The selection of scenarios: by id, by folder, by path or by glob.

use std::fs;
use std::path::{Path, PathBuf};

use super::{SCENARIO, folder, json, kube_lockstep, stderr, stdout, support, text};

#[test]
fn names_that_match_nothing_exit_with_2_globs_with_4_and_a_suggestion() {
    let first = support::id_of(support::fixtures().first().expect("there are fixtures"));
    let misspelt = first.replacen('e', "", 1);
    let run = kube_lockstep(&["run", "--engine", "model", &misspelt]).assert().code(2);
    assert!(stderr(&run).contains(&format!("hint: did you mean {first:?}?")), "{}", stderr(&run));
    for (nothing, code) in [("nowhere/*", 4), ("nowhere", 2), ("nowhere/file.yaml", 2)] {
        let run = kube_lockstep(&["list", nothing]).assert().code(code);
        assert!(stderr(&run).contains("hint: `kube-lockstep list` shows all"), "{}", stderr(&run));
    }
}

#[test]
fn an_empty_folder_exits_with_4() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    for command in ["run", "list"] {
        let run = kube_lockstep(&[command, "--fixtures", text(folder.path())]).assert().code(4);
        assert!(stderr(&run).contains("contains no scenarios"), "{}", stderr(&run));
    }
}

#[test]
fn several_names_select_each_scenario_once() {
    let paths = support::fixtures();
    let in_area = |path: &&PathBuf| support::id_of(path).starts_with("tolerance/");
    let count = paths.iter().filter(in_area).count();
    let first = paths.iter().find(in_area).expect("the area has scenarios");
    let (id, file) = (support::id_of(first), text(first));
    let list = kube_lockstep(&["list", "--format", "json", "tolerance/*", &id, file]).assert();
    let lines = json(&list.code(0));
    assert_eq!(lines.len(), count);
    assert_eq!(lines[0]["id"], id);
}

#[test]
fn a_file_of_the_fixtures_keeps_its_id() {
    let first = support::fixtures().remove(0);
    let list = kube_lockstep(&["list", "--format", "json", text(&first)]).assert().code(0);
    assert_eq!(json(&list)[0]["id"], support::id_of(&first));
}

#[test]
fn every_fixture_is_inside_the_program_and_listed() {
    let elsewhere = tempfile::tempdir().expect("a folder can be made");
    let mut command = kube_lockstep(&["list", "--format", "json"]);
    let lines = json(&command.current_dir(elsewhere.path()).assert().code(0));
    let mut ids: Vec<String> =
        support::all_fixtures().iter().map(|path| support::id_of(path)).collect();
    ids.sort();
    let listed: Vec<&str> = lines.iter().filter_map(|line| line["id"].as_str()).collect();
    assert_eq!(listed, ids);
}

#[test]
fn folders_are_named_by_id_or_by_path() {
    let ids = |arguments: &[&str], folder: &Path| -> Vec<String> {
        let mut command = kube_lockstep(&["list", "--format", "json"]);
        let lines = json(&command.args(arguments).current_dir(folder).assert().code(0));
        lines.iter().filter_map(|line| line["id"].as_str().map(str::to_owned)).collect()
    };
    let here = support::repository();
    let all = ids(&["tolerance/*"], here);
    assert!(all.len() > 3, "the area has several scenarios");
    let absolute = here.join("fixtures/tolerance");
    for name in ["tolerance", "tolerance/", "fixtures/tolerance", "fixtures/tolerance/"] {
        assert_eq!(ids(&[name], here), all, "{name}");
    }
    for name in ["./fixtures/tolerance", text(&absolute)] {
        assert_eq!(ids(&[name], here), all, "{name}");
    }
    // In another folder, names select the scenarios inside the program.
    let (elsewhere, file) = folder("");
    assert_eq!(ids(&["fixtures/tolerance"], elsewhere.path()), all);
    // Scenarios that are not fixtures are listed by path.
    assert_eq!(ids(&[text(elsewhere.path())], here), [text(&file)]);
}

#[test]
fn scenarios_in_json_are_found_in_folders_but_not_recorded_loads() {
    let (folder, file) = folder("");
    let scenario: serde_json::Value = serde_yaml::from_str(SCENARIO).expect("a scenario");
    let json_file = folder.path().join("same.json");
    let scenario = serde_json::to_string_pretty(&scenario).expect("a scenario as JSON");
    fs::write(&json_file, scenario).expect("a file can be written");
    fs::copy("examples/shop/tuesday.json", folder.path().join("load.json")).expect("a copy");
    let whole = text(folder.path());
    for names in [[whole, whole], [&format!("{whole}/*.yaml"), &format!("{whole}/*.json")]] {
        let list = kube_lockstep(&["list", "--format=json"]).args(names).assert().code(0);
        let lines = json(&list);
        let paths: Vec<&str> = lines.iter().filter_map(|line| line["path"].as_str()).collect();
        assert_eq!(paths, [text(&file), text(&json_file)]);
    }
}

#[test]
fn a_misspelt_folder_is_suggested() {
    for (name, suggested) in
        [("tolernce", "tolerance"), ("fixtures/stabilisation", "stabilization")]
    {
        let run = kube_lockstep(&["run", name]).assert().code(2);
        let hint = format!("hint: did you mean {suggested:?}?");
        assert!(stderr(&run).contains(&hint), "{}", stderr(&run));
    }
}

#[test]
fn files_with_a_misspelt_extension_are_rejected() {
    let (folder, file) = folder("");
    let misspelt = SCENARIO.replace("kind: Scenario", "kind: Scenaro");
    fs::write(folder.path().join("misspelt.yml"), misspelt).expect("a file can be written");
    // Another Kubernetes manifest in the folder is ignored: a scenario may refer to it.
    let manifest = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\n";
    fs::write(folder.path().join("service.yaml"), manifest).expect("a file can be written");
    let arguments = ["run", "--engine", "model", "--fixtures", text(folder.path())];
    let errors = stderr(&kube_lockstep(&arguments).assert().code(2));
    assert!(errors.contains("misspelt.yml:2:"), "{errors}");
    assert!(!errors.contains("service"), "{errors}");
    fs::rename(&file, folder.path().join("misspelt.yml")).expect("a file can be moved");
    let shown = stdout(&kube_lockstep(&arguments).assert().code(0));
    assert!(shown.contains("1 scenario on model"), "{shown}");
}

#[test]
fn a_binary_file_is_reported_beside_the_other_files() {
    let (folder, _file) = folder("misspelt: 1\n");
    fs::write(folder.path().join("noise.yaml"), [0xff, 0xfe, 0x00]).expect("it can be written");
    let run = kube_lockstep(&["run", "--engine", "model", text(folder.path())]).assert().code(2);
    let errors = stderr(&run);
    assert!(errors.contains("noise.yaml") && errors.contains("misspelt"), "{errors}");
}

#[test]
fn a_folder_in_place_of_one_scenario_lists_its_scenarios() {
    let (folder, file) = folder("");
    let mut command = kube_lockstep(&["explain", "--tick", "1"]);
    let errors = stderr(&command.arg(folder.path()).assert().code(2));
    assert!(
        errors.contains("is a folder, but this command requires a single scenario"),
        "{errors}"
    );
    assert!(errors.contains(&format!("hint: for example {}; ", text(&file))), "{errors}");
}

#[test]
fn globs_and_folders_on_disk_name_several_scenarios() {
    let (folder, file) = folder("");
    let below = folder.path().join("more/below");
    fs::create_dir_all(&below).expect("a folder can be created");
    fs::copy(&file, below.join("other.yaml")).expect("a file can be copied");
    let root = text(folder.path());
    for (name, count) in [
        (format!("{root}/**/*.yaml"), 2),
        (format!("{root}/more/**"), 1),
        (format!("{root}/*/*/o*r.yaml"), 1),
        (root.to_owned(), 2),
        (format!("{root}/more"), 1),
    ] {
        let run = kube_lockstep(&["run", "--engine", "model", &name]).assert().code(0);
        let noun = if count == 1 { "scenario" } else { "scenarios" };
        assert!(stdout(&run).contains(&format!("{count} {noun} on model")), "{name}");
        let lines = json(&kube_lockstep(&["predict", &name, "--format", "json"]).assert().code(0));
        let summaries = lines.iter().filter(|line| line.get("summary").is_some()).count();
        assert_eq!(summaries, count, "{name}");
    }
    let missing = format!("{root}/**/*.yml");
    let errors = stderr(&kube_lockstep(&["run", &missing]).assert().code(4));
    assert!(errors.contains("and no file matches"), "{errors}");
    // A name keeps its place, and each scenario is predicted once.
    let names = ["tolerance/upper-edge-is-inclusive", text(&file), root];
    let shown = stdout(&kube_lockstep(&["predict"]).args(names).assert().code(0));
    let heads = shown.lines().filter(|line| line.contains("  model of "));
    let heads: Vec<&str> = heads.filter_map(|line| line.split("  ").next()).collect();
    assert_eq!(heads.len(), 3, "{heads:?}");
    assert_eq!(heads[..2], names[..2], "{heads:?}");
}

#[test]
fn equal_errors_of_several_files_are_one_message() {
    let (folder, file) = folder("misspelt: 1\n");
    for index in 0..6 {
        let copy = folder.path().join(format!("z{index}.yaml"));
        fs::copy(&file, copy).expect("a file can be copied");
    }
    for command in [&["run", "--engine", "model"][..], &["predict"]] {
        let run = kube_lockstep(command).arg(folder.path()).assert().code(2);
        let errors = stderr(&run);
        assert_eq!(errors.matches("unknown field `misspelt`").count(), 1, "{errors}");
        assert!(errors.contains("  also at ") && errors.contains(" and 3 more places"), "{errors}");
    }
}

#[test]
fn two_files_with_the_same_id_are_rejected() {
    let (folder, file) = folder("");
    fs::copy(&file, folder.path().join("doubles.yml")).expect("a file can be copied");
    let list = kube_lockstep(&["list", "--fixtures", text(folder.path())]).assert().code(2);
    let errors = stderr(&list);
    assert!(errors.contains("doubles.yaml and "), "{errors}");
    assert!(errors.contains("doubles.yml both have the scenario id \"doubles\""), "{errors}");
}

#[test]
fn a_filtered_list_states_the_total() {
    let last = |arguments: &[&str]| {
        let list = kube_lockstep(&["list"]).args(arguments).assert().code(0);
        stdout(&list).lines().last().unwrap_or_default().to_owned()
    };
    let (folder, file) = folder("");
    let elsewhere = text(folder.path());
    assert_eq!(last(&[text(&file)]), "1 scenario");
    assert_eq!(last(&["--fixtures", elsewhere]), format!("1 scenario in {elsewhere}/"));
    let all = support::all_fixtures().len();
    let first = support::id_of(&support::fixtures()[0]);
    assert_eq!(last(&[&first]), format!("1 of {all} scenarios in fixtures/"));
}

#[test]
fn a_scenario_with_expectations_for_other_releases_only_is_not_green_by_default() {
    let expect = "expect:\n  - {releases: \"<=1.30\", at: 0s, replicas: 77}\n";
    let (folder, file) = folder(expect);
    let run = |arguments: &[&str], code: i32| {
        let all = ["run", "--engine", "model", "--format", "json", text(&file)];
        let mut command = kube_lockstep(&all);
        let lines = json(&command.args(arguments).current_dir(folder.path()).assert().code(code));
        lines[0].clone()
    };
    let skipped = run(&[], 4);
    assert_eq!(skipped["verdict"], "skipped", "{skipped}");
    let why = skipped["why"].as_str().expect("a reason");
    assert_eq!(
        why,
        "all its expectations are for 1.6 - 1.30, not for 1.37: choose another release, for \
         example --release 1.30"
    );
    // A named release runs the scenario, whether its expectations apply or not. A note says so.
    assert_eq!(run(&["--release", "1.37"], 0)["verdict"], "conforms");
    let other = folder.path().join("other.yaml");
    fs::copy(&file, &other).expect("a file can be copied");
    let junit = folder.path().join("junit.xml");
    let report = format!("junit={}", text(&junit));
    let shown = |arguments: &[&str]| {
        let mut command = kube_lockstep(&["run", "--engine", "model", "--report", &report]);
        stdout(&command.args(arguments).current_dir(folder.path()).assert().code(0))
    };
    let unchecked = "no expectation is checked: all of them are for other releases, 1.6 - 1.30 \
                     (see --release)";
    // Words may be on the next line.
    let in_one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let two_scenarios = shown(&["--release", "1.37", text(&file), text(&other)]);
    let note = format!("doubles.yaml:5: {unchecked}; also at {}:5", text(&other));
    assert!(in_one_line(&two_scenarios).contains(&note), "{two_scenarios}");
    let written = fs::read_to_string(&junit).expect("a report");
    assert_eq!(written.matches(unchecked).count(), 2, "{written}");
    let two_releases = shown(&["--release", "1.36-1.37", text(&file)]);
    let note = format!("doubles.yaml:5: {unchecked} (1.36, 1.37)");
    assert!(in_one_line(&two_releases).contains(&note), "{two_releases}");
    let all_releases = shown(&["--release", "1.31-1.37", text(&file)]);
    assert_eq!(all_releases.matches("note: ").count(), 1, "{all_releases}");
    assert!(in_one_line(&all_releases).contains("(on 7 releases)"), "{all_releases}");
    assert_eq!(run(&["--release", "1.30"], 1)["verdict"], "unexpected");
}

/// The model always conforms to itself.
#[test]
fn a_scenario_without_expectations_says_that_the_model_checks_nothing() {
    let (_folder, file) = folder("");
    let run = |release: &str| {
        let run = ["run", "--engine", "model", "--release", release, text(&file)];
        stdout(&kube_lockstep(&run).assert().code(0))
    };
    for shown in [run("1.37"), run("1.31-1.37")] {
        assert_eq!(shown.matches("nothing is checked").count(), 1, "{shown}");
    }
    let (_folder, file) = folder("expect:\n  - {at: 0s, replicas: 4}\n");
    let checked = kube_lockstep(&["run", "--engine", "model", text(&file)]).assert().code(0);
    assert!(!stdout(&checked).contains("note: "), "{}", stdout(&checked));
}
