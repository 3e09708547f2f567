//! The command as users call it: exit codes, what is written where, and its reference in the docs.

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use assert_cmd::Command;
use assert_cmd::assert::Assert;
use kube_lockstep::model::rules::Release;
use kube_lockstep::run::free_run;
use kube_lockstep::scenario::{self, Scenario};
use kube_lockstep::trace::Trace;
use rstest::rstest;
use serde_json::Value;

/// The command in the repository, where `./fixtures` is found.
fn kube_lockstep(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kube-lockstep"));
    // Nothing of the surroundings decides how it looks.
    for variable in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "COLUMNS"] {
        command.env_remove(variable);
    }
    command.current_dir(support::repository()).args(arguments);
    command
}

fn stdout(assert: &Assert) -> String {
    String::from_utf8(assert.get_output().stdout.clone()).expect("output is UTF-8")
}

fn stderr(assert: &Assert) -> String {
    String::from_utf8(assert.get_output().stderr.clone()).expect("output is UTF-8")
}

/// The lines of standard output, each of which must be JSON.
fn json(assert: &Assert) -> Vec<Value> {
    let parse = |line: &str| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
    stdout(assert).lines().map(parse).collect()
}

const SCENARIO: &str = "\
apiVersion: kube-lockstep.dev/v1alpha1
kind: Scenario
requirement: Twice the target doubles the size.
upstream: https://kubernetes.io/docs/concepts/workloads/autoscaling/horizontal-pod-autoscale/
hpa:
  apiVersion: autoscaling/v2
  kind: HorizontalPodAutoscaler
  metadata: {name: web}
  spec:
    scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
    maxReplicas: 10
    metrics:
      - type: Resource
        resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}
workload: {replicas: 2, containers: [{name: app, requests: {cpu: \"1\"}}]}
metrics: {resource: [{name: cpu, perPod: \"1\"}]}
until: 30s
";

/// A folder of fixtures with one scenario and what is to be added to it.
fn folder(more: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let file = folder.path().join("doubles.yaml");
    fs::write(&file, format!("{SCENARIO}{more}")).expect("a file can be written");
    (folder, file)
}

fn text(path: &Path) -> &str {
    path.to_str().expect("paths of temporary files are UTF-8")
}

#[test]
fn a_run_that_conforms_exits_with_0() {
    let (folder, _) = folder("expect:\n  - {tick: 1, replicas: 4}\n");
    let run = kube_lockstep(&["run", "--engine", "model", "--fixtures", text(folder.path())])
        .assert()
        .code(0);
    let last = stdout(&run).lines().last().unwrap_or_default().to_owned();
    assert!(last.starts_with("1 scenario on model 1.37: 1 conforms, 0 diverge, "), "{last}");
}

#[test]
fn an_unmet_expectation_exits_with_1_and_names_its_line() {
    let (_folder, file) = folder("expect:\n  - {tick: 1, replicas: 5}\n");
    let run = kube_lockstep(&["run", "--engine", "model", text(&file)]).assert().code(1);
    let expected = format!("{}:19: tick 1 (t=0s)", text(&file));
    assert!(stdout(&run).contains(&expected), "{expected}\n{}", stdout(&run));
    kube_lockstep(&["predict", text(&file)]).assert().code(1);
}

/// A repository with one scenario and a trace beside it, as if upstream had done this.
fn repository_with_a_trace(change: fn(&mut Trace)) -> (tempfile::TempDir, String) {
    let root = tempfile::tempdir().expect("a folder can be made");
    let fixtures = root.path().join("fixtures");
    let traces = root.path().join("suites/recorded/v1.37");
    for folder in [&fixtures, &traces] {
        fs::create_dir_all(folder).expect("a folder can be made");
    }
    fs::write(fixtures.join("doubles.yaml"), SCENARIO).expect("a file can be written");
    let nothing = |_: &str| Err("there is no other file".to_owned());
    let scenario = scenario::parse("doubles.yaml", SCENARIO, &nothing).expect("it is a scenario");
    let scenario = Arc::new(Scenario { id: "doubles".to_owned(), ..scenario });
    let mut trace = free_run(&scenario, Release::V1_37).trace;
    change(&mut trace);
    let recorded = kube_lockstep::trace::text::write(&trace).expect("a trace can be written");
    let snapshot = format!("---\nsource: none\n---\n{recorded}");
    fs::write(traces.join("doubles.snap"), snapshot).expect("a file can be written");
    let fixtures = text(&fixtures).to_owned();
    (root, fixtures)
}

fn run_recorded(fixtures: &str) -> Command {
    kube_lockstep(&["run", "--engine", "recorded", "--fixtures", fixtures])
}

#[test]
fn a_divergence_exits_with_1_and_can_be_replayed() {
    let (_root, fixtures) = repository_with_a_trace(|trace| {
        let write = trace.ticks[0].status_write.as_mut().expect("the first tick writes a status");
        write.status.desired_replicas += 1;
    });
    let run = run_recorded(&fixtures).assert().code(1);
    let shown = stdout(&run);
    for part in [
        "diverges  doubles   v1.37   model | recorded\n",
        "  tick 1, t=0s, status.desiredReplicas:  model 4 | recorded 5\n",
        "    why the model said 4: resource cpu 100% of 50%",
        "  replay: kube-lockstep run doubles --release 1.37 --engine recorded --fixtures /",
    ] {
        assert!(shown.contains(part), "{part}\n{shown}");
    }
    assert!(shown.contains(&format!("  {fixtures}/doubles.yaml:")), "{shown}");
}

#[test]
fn a_known_disagreement_that_is_gone_exits_with_1() {
    let (_root, fixtures) = repository_with_a_trace(|_| {});
    run_recorded(&fixtures).assert().code(0);
    let known = "divergences:\n  - {scenario: doubles, field: status, reason: none, link: none}\n";
    fs::write(Path::new(&fixtures).join("divergences.yaml"), known).expect("it can be written");
    let run = run_recorded(&fixtures).assert().code(1);
    assert!(stdout(&run).contains("\nstale  doubles: status (none) no longer disagrees"));
}

#[test]
fn a_trace_of_another_scenario_is_no_verdict_and_exits_with_3() {
    let (_root, fixtures) = repository_with_a_trace(|trace| trace.hash = "0".repeat(16));
    let run = run_recorded(&fixtures).assert().code(3);
    assert!(stdout(&run).contains("is stale"), "{}", stdout(&run));
}

#[test]
fn an_invalid_scenario_exits_with_2_and_the_whole_message() {
    let (_folder, file) = folder("untill: 30s\n");
    for command in ["run", "predict", "list"] {
        let run = kube_lockstep(&[command, text(&file)]).assert().code(2);
        let complaint = stderr(&run);
        assert!(complaint.starts_with(&format!("error: {}:18:1: ", text(&file))), "{complaint}");
        assert!(complaint.contains("did you mean `until`?"), "{complaint}");
        assert_eq!(stdout(&run), "");
    }
}

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
fn a_wrong_command_line_exits_with_2() {
    for arguments in [
        &["run", "--engine", "upstraem"][..],
        &["run", "--release", "1.99"],
        &["run", "--jobs", "0"],
        &["run", "--fixtures", "no/such/folder"],
        &["explain", "file.yaml"],
        &["frobnicate"],
    ] {
        let run = kube_lockstep(arguments).assert().code(2);
        assert!(stderr(&run).starts_with("error: "), "{arguments:?}: {}", stderr(&run));
    }
}

#[test]
fn an_engine_that_cannot_run_exits_with_3() {
    let (_folder, file) = folder("");
    let arguments = ["run", "--engine", "upstream", "--program", "no/such/program", text(&file)];
    let run = kube_lockstep(&arguments).assert().code(3);
    assert!(stdout(&run).contains("inconclusive  "), "{}", stdout(&run));
}

#[test]
fn an_empty_folder_exits_with_4() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    for command in ["run", "list"] {
        let run = kube_lockstep(&[command, "--fixtures", text(folder.path())]).assert().code(4);
        assert!(stderr(&run).contains("holds no scenarios"), "{}", stderr(&run));
    }
}

#[test]
fn scenarios_of_other_releases_only_exit_with_4() {
    let (_folder, file) = folder("releases: \"<=1.30\"\n");
    let run = kube_lockstep(&["run", "--engine", "model", text(&file)]).assert().code(4);
    assert!(stdout(&run).starts_with("kube-lockstep"), "{}", stdout(&run));
    assert!(stdout(&run).contains("\nskipped "), "{}", stdout(&run));
}

#[test]
fn json_is_all_there_is_on_standard_output_and_ends_with_the_summary() {
    let run = kube_lockstep(&["run", "--engine", "model", "--format", "json", "tolerance"])
        .assert()
        .code(0);
    let lines = json(&run);
    let (last, scenarios) = lines.split_last().expect("there are lines");
    let summary = last["summary"].as_object().expect("the last line is the summary");
    let keys: Vec<&str> = summary.keys().map(String::as_str).collect();
    let known = [
        "engine",
        "release",
        "scenarios",
        "conforms",
        "diverges",
        "inconclusive",
        "skipped",
        "ticks",
    ];
    assert_eq!(keys, known);
    assert_eq!((&summary["engine"], &summary["release"]), (&"model".into(), &"1.37".into()));
    assert_eq!(summary["scenarios"], scenarios.len());
    assert!(scenarios.len() > 3, "the area has several scenarios");
    for scenario in scenarios {
        assert!(scenario["id"].as_str().is_some_and(|id| id.starts_with("tolerance/")));
        assert_eq!(scenario["verdict"], "conforms");
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
        support::fixtures().iter().map(|path| support::id_of(path)).collect();
    ids.sort();
    let listed: Vec<&str> = lines.iter().filter_map(|line| line["id"].as_str()).collect();
    assert_eq!(listed, ids);
}

#[test]
fn pipes_get_neither_colours_nor_progress() {
    let run = kube_lockstep(&["run", "--engine", "model", "-v", "tolerance"]).assert().code(0);
    assert!(!stdout(&run).contains(['\u{1b}', '\r']), "{:?}", stdout(&run));
    assert_eq!(stderr(&run), "");
}

#[test]
fn colours_can_be_asked_for_and_switched_off() {
    let run = |color: &[&str], no_color: bool| {
        let mut command = kube_lockstep(&["run", "--engine", "model", "tolerance"]);
        command.args(color);
        if no_color {
            command.env("NO_COLOR", "1");
        }
        stdout(&command.assert().code(0)).contains('\u{1b}')
    };
    assert!(run(&["--color", "always"], false));
    assert!(!run(&["--color", "never"], false));
    assert!(!run(&["--color", "auto"], false));
    assert!(!run(&[], true));
}

/// Starts the command with a standard output that nobody reads.
fn with_closed_output(arguments: &[&str]) -> std::process::Output {
    use std::process::Stdio;
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_kube-lockstep"))
        .args(arguments)
        .current_dir(support::repository())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command can be started");
    drop(child.stdout.take());
    child.wait_with_output().expect("the command ends")
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    for command in ["list", "schema"] {
        let output = with_closed_output(&[command]);
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
        assert_eq!(output.status.code(), Some(0), "{command}");
    }
}

/// `kube-lockstep run | head -1` has to fail as it does without `head`.
#[test]
fn a_reader_that_has_seen_enough_does_not_change_the_verdict() {
    let (_root, fixtures) = repository_with_a_trace(|trace| {
        let write = trace.ticks[0].status_write.as_mut().expect("the first tick writes a status");
        write.status.desired_replicas += 1;
    });
    let (_folder, unmet) = folder("expect:\n  - {tick: 1, replicas: 5}\n");
    for arguments in [
        &["run", "--engine", "recorded", "--fixtures", &fixtures][..],
        &["run", "--engine", "recorded", "--fixtures", &fixtures, "--format", "json"],
        &["predict", text(&unmet)],
        &["predict", text(&unmet), "--format", "json"],
    ] {
        let output = with_closed_output(arguments);
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
    }
}

/// A program in place of an engine.
fn program(path: &Path, script: &str) {
    use std::os::unix::fs::PermissionsExt;
    fs::write(path, format!("#!/bin/sh\n{script}\n")).expect("a file can be written");
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("it can be run");
}

/// An engine whose controller does nothing at all.
const IDLE: &str = r#"
echo '{"hello":{"protocol":1,"engine":"idle","release":"v1.37.0"}}'
while read -r line; do
  until=${line##*\"until\":}
  case $line in
    '{"open"'*) echo '{"opened":{"epoch":"2000-01-01T00:01:00Z"}}' ;;
    '{"step"'*) echo "{\"stepped\":{\"now\":${until%%[!0-9]*},\"api\":[],\"log\":[]}}" ;;
    *) echo '{"closed":{}}' ;;
  esac
done"#;

#[test]
fn another_program_is_called_by_its_name_and_can_be_replayed() {
    let (folder, file) = folder("");
    let engine = folder.path().join("my-autoscaler");
    program(&engine, IDLE);
    let options = ["--program", text(&engine), "--time-limit", "1m"];
    let run = kube_lockstep(&["run", text(&file)]).args(options).assert().code(1);
    let shown = stdout(&run);
    for part in [
        "1 scenario on my-autoscaler 1.37\n",
        "model | my-autoscaler\n",
        "1 scenario on my-autoscaler 1.37: 0 conform, 1 diverges",
        &format!(
            "  replay: kube-lockstep run {0} --release 1.37 --program {1} --time-limit 1m\n",
            text(&file),
            text(&engine)
        ),
    ] {
        assert!(shown.contains(part), "{part}\n{shown}");
    }
    assert!(!shown.contains("upstream"), "{shown}");
    let run = kube_lockstep(&["run", "--format", "json", text(&file)]).args(options).assert();
    let lines = json(&run.code(1));
    assert_eq!(lines[0]["engine"], "my-autoscaler");
    assert_eq!(lines[1]["summary"]["engine"], "my-autoscaler");
}

#[test]
fn a_failure_that_all_scenarios_share_is_told_once() {
    let arguments = ["run", "--program", "no/such/program", "tolerance"];
    let shown = stdout(&kube_lockstep(&arguments).assert().code(3));
    let all = json(&kube_lockstep(&["list", "--format", "json", "tolerance"]).assert()).len();
    assert_eq!(shown.matches("\n  replay: ").count(), 1, "{shown}");
    let more = format!("\ninconclusive  {} more scenarios for the same reason: the ", all - 1);
    assert!(shown.contains(&more), "{more}\n{shown}");
    assert!(shown.contains(&format!(" {all} inconclusive")), "{shown}");
    // Who asks for all of them gets a line for each.
    let shown = stdout(&kube_lockstep(&arguments).arg("-v").assert().code(3));
    assert_eq!(shown.matches("\ninconclusive  tolerance/").count(), all, "{shown}");
}

/// A folder with a `go` that says its version, builds a program that dies, and may fail before.
fn fake_go(failure: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let script = format!(
        r#"case $1 in
env) echo go1.26.0; exit 0 ;;
list) {failure} ;;
test) printf '#!/bin/sh\necho the engine from the cache >&2\nexit 7\n' >engine; chmod +x engine ;;
esac"#
    );
    program(&folder.path().join("go"), &script);
    folder
}

fn path_with(folder: &Path) -> String {
    format!("{}:{}", folder.display(), std::env::var("PATH").expect("there is a PATH"))
}

#[test]
fn an_engine_that_was_built_needs_no_go_any_more() {
    let (cache, empty, go) = (
        tempfile::tempdir().expect("a folder can be made"),
        tempfile::tempdir().expect("a folder can be made"),
        fake_go(""),
    );
    let (_folder, file) = folder("");
    let run = |path: &str| {
        let mut command = kube_lockstep(&["run", text(&file)]);
        command.env("KUBE_LOCKSTEP_CACHE", cache.path()).env("PATH", path);
        command.assert()
    };
    // Without Go and without an engine, recorded traces are what is left, and that is said.
    let shown = stdout(&run(text(empty.path())).code(3));
    assert!(shown.contains("note: recorded traces, since upstream can't run here: Go is not"));
    run(&path_with(go.path())).code(3);
    let shown = stdout(&run(text(empty.path())).code(3));
    assert!(shown.contains("1 scenario on upstream 1.37"), "{shown}");
    assert!(shown.contains("| the engine from the cache"), "{shown}");
    let doctor = kube_lockstep(&["doctor"])
        .env("KUBE_LOCKSTEP_CACHE", cache.path())
        .env("PATH", empty.path())
        .assert()
        .code(0);
    assert!(stdout(&doctor).contains("ok       upstream 1.37  built, "), "{}", stdout(&doctor));
}

#[test]
fn a_first_build_without_network_says_what_can_be_done() {
    let cache = tempfile::tempdir().expect("a folder can be made");
    let go = fake_go(
        "echo 'go: k8s.io/api@v0.37.0: Get \"https://proxy.example/\": dial tcp: no such host' >&2
         exit 1",
    );
    let run = |engine: &[&str]| {
        let mut command = kube_lockstep(&["run", "tolerance"]);
        command.env("KUBE_LOCKSTEP_CACHE", cache.path()).env("PATH", path_with(go.path()));
        command.args(engine).assert()
    };
    let complaint = stderr(&run(&["--engine", "upstream"]).code(3));
    assert!(complaint.contains("upstream's modules can't be downloaded: go: k8s.io/api@"));
    assert!(complaint.contains("hint: Go needs its module proxy"), "{complaint}");
    assert!(complaint.contains("`--engine recorded`"), "{complaint}");
    let shown = stdout(&run(&[]).code(0));
    assert!(shown.contains("note: recorded traces, since upstream can't run here: "), "{shown}");
}

#[test]
fn a_cache_that_cannot_be_written_is_told_with_what_can_be_done() {
    let (folder, file) = folder("");
    // Below a file there can be no folder, not even for root.
    let cache = file.join("cache");
    let go = fake_go("");
    let command = |arguments: &[&str]| {
        let mut command = kube_lockstep(arguments);
        command.env("KUBE_LOCKSTEP_CACHE", &cache).env("PATH", path_with(go.path()));
        command
    };
    let run = command(&["run", "--engine", "upstream", text(&file)]).assert().code(3);
    let complaint = stderr(&run);
    assert!(complaint.contains("KUBE_LOCKSTEP_CACHE names another folder"), "{complaint}");
    assert!(complaint.contains("`--engine recorded`"), "{complaint}");
    let doctor = command(&["doctor"]).assert().code(3);
    let shown = stdout(&doctor).replace(text(folder.path()), "FOLDER");
    assert!(
        shown.contains("missing  cache folder   FOLDER/doubles.yaml/cache can't be written"),
        "{shown}"
    );
    assert!(shown.contains("missing  upstream 1.37  not built yet, and can't be"), "{shown}");
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
    // Also of those inside the program.
    let (elsewhere, file) = folder("");
    assert_eq!(ids(&["fixtures/tolerance"], elsewhere.path()), all);
    // Scenarios that are no fixtures go by their paths.
    assert_eq!(ids(&[text(elsewhere.path())], here), [text(&file)]);
}

#[test]
fn a_misspelt_folder_is_suggested() {
    for (name, meant) in [("tolernce", "tolerance"), ("fixtures/stabilisation", "stabilization")] {
        let run = kube_lockstep(&["run", name]).assert().code(2);
        let hint = format!("hint: did you mean {meant:?}?");
        assert!(stderr(&run).contains(&hint), "{}", stderr(&run));
    }
}

#[test]
fn misspelt_scenarios_are_refused_not_passed_over() {
    let (folder, file) = folder("");
    let misspelt = SCENARIO.replace("kind: Scenario", "kind: Scenaro");
    fs::write(folder.path().join("misspelt.yml"), misspelt).expect("a file can be written");
    // An object of Kubernetes' is a neighbour that a scenario may name.
    let manifest = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\n";
    fs::write(folder.path().join("service.yaml"), manifest).expect("a file can be written");
    let arguments = ["run", "--engine", "model", "--fixtures", text(folder.path())];
    let complaint = stderr(&kube_lockstep(&arguments).assert().code(2));
    assert!(complaint.contains("misspelt.yml:2:"), "{complaint}");
    assert!(!complaint.contains("service"), "{complaint}");
    fs::rename(&file, folder.path().join("misspelt.yml")).expect("a file can be moved");
    let shown = stdout(&kube_lockstep(&arguments).assert().code(0));
    assert!(shown.contains("1 scenario on model"), "{shown}");
}

#[test]
fn columns_says_how_wide_tables_are() {
    let widest = |columns: Option<&str>| {
        let mut command = kube_lockstep(&["predict", "errors/metrics-api-unavailable-and-back"]);
        columns.map(|columns| command.env("COLUMNS", columns));
        let shown = stdout(&command.assert().code(0));
        shown.lines().map(|line| line.chars().count()).max().unwrap_or(0)
    };
    assert!((95..=100).contains(&widest(None)));
    assert!((130..=140).contains(&widest(Some("140"))));
    assert!(widest(Some("70")) <= 70);
    assert_eq!(widest(Some("wide")), widest(None));
}

#[test]
fn predict_marks_restarts_and_pods_that_do_not_count() {
    let shown = |id: &str| stdout(&kube_lockstep(&["predict", id]).assert().code(0));
    let restart = shown("restart/forgets-the-window");
    let rows: Vec<&str> = restart.lines().skip_while(|line| !line.starts_with("tick")).collect();
    assert!(rows[0].contains(" counted  wants "), "{restart}");
    assert!(restart.contains(": the controller restarts\n"), "{restart}");
    let ignored = shown("terminating/failed-pods-are-ignored");
    assert!(ignored.contains(" 2/4 ") && ignored.contains("2 unready; 2 ignored"), "{ignored}");
    let one_metric = shown("errors/one-failing-metric-blocks-a-scale-down");
    assert!(one_metric.contains("3 without metrics (memory)"), "{one_metric}");
    let failed = shown("errors/an-empty-answer-of-the-metrics-api-is-an-error");
    assert!(!failed.contains("0/4"), "pods that nobody looked at were not left out: {failed}");
}

#[test]
fn predict_shows_each_tick_or_says_what_is_left_out() {
    let (folder, file) = folder("expect:\n  - {tick: 1, replicas: 4}\n");
    let predict = kube_lockstep(&["predict", text(&file)]).assert().code(0);
    let shown = stdout(&predict).replace(text(folder.path()), "FOLDER");
    insta::assert_snapshot!(shown);
    let predict = kube_lockstep(&["predict", "--format", "json", text(&file)]).assert().code(0);
    let lines = json(&predict);
    assert_eq!(lines.len(), 4);
    assert_eq!((&lines[0]["tick"], &lines[0]["replicasAfter"]), (&1.into(), &4.into()));
    assert_eq!(lines[3]["summary"]["ticks"], 3);
}

#[test]
fn explain_tells_one_tick_in_full() {
    let (folder, file) = folder("");
    let explain = |which: &[&str]| {
        let mut command = kube_lockstep(&["explain", text(&file)]);
        stdout(&command.args(which).assert().code(0)).replace(text(folder.path()), "FOLDER")
    };
    insta::assert_snapshot!(explain(&["--tick", "1"]));
    assert_eq!(explain(&["--at", "29s"]), explain(&["--tick", "2"]));
    let wrong = kube_lockstep(&["explain", text(&file), "--tick", "9"]).assert().code(2);
    assert!(stderr(&wrong).contains("the scenario has 3 ticks"), "{}", stderr(&wrong));
}

#[test]
fn doctor_names_every_engine_and_says_what_is_missing() {
    let cache = tempfile::tempdir().expect("a folder can be made");
    let doctor = kube_lockstep(&["doctor"])
        .env("PATH", cache.path())
        .env("KUBE_LOCKSTEP_CACHE", cache.path())
        .assert()
        .code(3);
    let text = stdout(&doctor);
    assert!(text.contains("missing  Go             Go is not installed"), "{text}");
    assert!(text.contains("install Go 1.26 or newer"), "{text}");
    assert!(text.contains("missing  upstream 1.37"), "{text}");
    assert!(text.contains("ok       model 1.37"), "{text}");
    assert!(text.ends_with("`kube-lockstep run` takes recorded\n"), "{text}");
}

#[test]
fn completions_are_made_for_the_usual_shells() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = kube_lockstep(&["completions", shell]).assert().code(0);
        assert!(stdout(&script).contains("predict"), "{shell}");
    }
}

#[test]
fn the_schema_is_that_of_the_library() {
    let schema = kube_lockstep(&["schema"]).assert().code(0);
    let schema: Value = serde_json::from_str(&stdout(&schema)).expect("the schema is JSON");
    assert_eq!(schema, kube_lockstep::scenario::schema());
}

/// `docs/cli.md` is the program's own help. To write it anew: `UPDATE_DOCS=1 cargo test --test cli`.
#[test]
fn the_reference_in_the_docs_is_up_to_date() {
    let path = support::repository().join("docs/cli.md");
    let reference = kube_lockstep::cli::reference();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, &reference).expect("the reference can be written");
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == reference,
        "docs/cli.md is not the program's help; UPDATE_DOCS=1 cargo test --test cli"
    );
}

/// An engine that dies when it is first started, and then only waits for its input to end.
#[cfg(unix)]
fn waiting_engine(folder: &Path) -> PathBuf {
    let engine = folder.join("engine");
    let script = format!(
        "[ -e {0}/first ] || {{ echo >{0}/first; exit 1; }}\necho begun > {0}/begun\n\
         while read line; do :; done\necho ended > {0}/ended",
        text(folder)
    );
    program(&engine, &script);
    engine
}

/// The engine sees the end of its input and ends; the interrupted program leaves nothing behind.
#[cfg(unix)]
#[rstest]
fn an_interrupted_run_says_so_and_leaves_no_engine_behind(
    #[values(("INT", 2), ("TERM", 15))] signal: (&str, i32),
) {
    use std::io::{BufRead, BufReader};
    use std::os::unix::process::ExitStatusExt;
    use std::process::Stdio;
    use std::time::{Duration, Instant};

    let (folder, file) = folder("");
    let second = folder.path().join("second.yaml");
    fs::copy(&file, &second).expect("a file can be copied");
    let engine = waiting_engine(folder.path());
    let wait_for = |name: &str| {
        let begin = Instant::now();
        while !folder.path().join(name).exists() {
            assert!(begin.elapsed() < Duration::from_secs(20), "the engine has not {name}");
            std::thread::sleep(Duration::from_millis(10));
        }
    };
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_kube-lockstep"))
        .args(["run", "--jobs", "1", "--program", text(&engine), text(&file), text(&second)])
        .current_dir(support::repository())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command can be started");
    // What was told was counted.
    let out = BufReader::new(child.stdout.take().expect("its output is a pipe"));
    let mut lines = out.lines().map_while(Result::ok);
    assert!(lines.any(|line| line.contains("replay: ")), "the first scenario is told");
    wait_for("begun");
    let (name, number) = signal;
    let kill = std::process::Command::new("kill");
    let kill = { kill }.args([&format!("-{name}"), &child.id().to_string()]).status();
    assert!(kill.expect("kill can be run").success());
    let output = child.wait_with_output().expect("the command ends");
    assert_eq!(output.status.signal(), Some(number), "{}", output.status);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(told, "interrupted: 1 of 2 scenarios were done\n");
    wait_for("ended");
}

#[test]
fn a_program_that_never_ends_its_line_is_stopped_in_time_with_all_that_it_started() {
    let (folder, file) = folder("");
    let (script, child) = (folder.path().join("drips"), folder.path().join("child"));
    let child = text(&child);
    program(
        &script,
        &format!("sleep 300 &\necho $! >'{child}'\nwhile :; do printf x; sleep 0.2; done"),
    );
    let options = ["--program", text(&script), "--time-limit", "1s"];
    let run = kube_lockstep(&["run", text(&file)]).args(options).assert().code(3);
    assert!(stdout(&run).contains("it did not answer within 1 s"), "{}", stdout(&run));
    let id = fs::read_to_string(child).expect("the program has run");
    // One that was killed may still have to be waited for by whoever inherited it.
    let state = fs::read_to_string(format!("/proc/{}/stat", id.trim()));
    assert!(state.is_err() || state.is_ok_and(|text| text.contains(") Z ")), "{id} still runs");
}

#[test]
fn what_overlaps_a_reconcile_that_waits_is_no_verdict() {
    let timeline = "\
timeline:
- {at: 0s, for: 40s, updateScaleError: {code: 409, reason: Conflict, message: changed}}
- {at: 15060ms, editHpa: {spec: {maxReplicas: 5}}}
";
    let (_folder, file) = folder(timeline);
    let said = "what happens at 15.06s falls into the reconcile of 15.04s";
    let run = kube_lockstep(&["run", "--engine", "model", text(&file)]).assert().code(3);
    assert!(stdout(&run).contains(said), "{}", stdout(&run));
    let predict = kube_lockstep(&["predict", text(&file)]).assert().code(3);
    assert!(stderr(&predict).contains(said), "{}", stderr(&predict));
}

#[test]
fn a_file_that_is_no_text_is_named_and_hides_no_other() {
    let (folder, _file) = folder("misspelt: 1\n");
    fs::write(folder.path().join("noise.yaml"), [0xff, 0xfe, 0x00]).expect("it can be written");
    let run = kube_lockstep(&["run", "--engine", "model", text(folder.path())]).assert().code(2);
    let said = stderr(&run);
    assert!(said.contains("noise.yaml") && said.contains("misspelt"), "{said}");
}

#[test]
fn the_readme_shows_what_a_run_says() {
    let run = kube_lockstep(&["run", "--engine", "recorded"]).assert().code(0);
    let said = stdout(&run);
    let count = said.lines().last().and_then(|line| line.split_once(" in ")).expect("a summary").0;
    let readme = fs::read_to_string(support::repository().join("README.md")).expect("a README");
    let count = count.replace("recorded", "upstream");
    assert!(readme.contains(&count), "README does not say {count}");
}
