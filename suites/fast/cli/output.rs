//! The streams of the output: JSON, colors, widths, and readers that close the pipe.

use kube_autoscaler_models::rules::Release;

use std::fs;

use super::{folder, json, kube_lockstep, repository_with_a_trace, stderr, stdout, support, text};

#[test]
fn json_output_is_alone_on_stdout_and_ends_with_the_summary() {
    let run = kube_lockstep(&["run", "--engine", "model", "--format", "json", "tolerance"])
        .assert()
        .code(0);
    let lines = json(&run);
    let (last, scenarios) = lines.split_last().expect("there are lines");
    let summary = last["summary"].as_object().expect("the last line is the summary");
    let keys: Vec<&str> = summary.keys().map(String::as_str).collect();
    let known = [
        "version",
        "engine",
        "release",
        "scenarios",
        "conforms",
        "diverges",
        "unmet",
        "inconclusive",
        "skipped",
        "ticks",
        "seconds",
        "plan",
    ];
    assert_eq!(keys, known);
    assert_eq!(
        (&summary["engine"], &summary["release"]),
        (&"model".into(), &Release::NEWEST.to_string().into())
    );
    assert_eq!(summary["scenarios"], scenarios.len());
    assert!(scenarios.len() > 3, "the area has several scenarios");
    for scenario in scenarios {
        assert!(scenario["id"].as_str().is_some_and(|id| id.starts_with("tolerance/")));
        assert_eq!(scenario["verdict"], "conforms");
    }
}

#[test]
fn output_to_a_pipe_has_no_colors_and_no_progress() {
    let run = kube_lockstep(&["run", "--engine", "model", "-v", "tolerance"]).assert().code(0);
    assert!(!stdout(&run).contains(['\u{1b}', '\r']), "{:?}", stdout(&run));
    assert_eq!(stderr(&run), "");
}

#[test]
fn colors_can_be_forced_and_disabled() {
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

/// Starts the command with a closed standard output.
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
fn a_closed_output_pipe_is_no_error() {
    for command in ["list", "schema"] {
        let output = with_closed_output(&[command]);
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
        assert_eq!(output.status.code(), Some(0), "{command}");
    }
}

/// `kube-lockstep run | head -1` must fail if `kube-lockstep run` does.
#[test]
fn a_closed_output_pipe_keeps_the_verdict() {
    let (_root, fixtures) = repository_with_a_trace(|trace| {
        let write = trace.ticks[0].status_write_mut().expect("the first tick writes a status");
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

#[test]
fn the_columns_flag_sets_the_table_width() {
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

/// All reports of a run have the same events; a wrong file is an error before the run.
#[test]
fn a_run_writes_several_reports() {
    let (folder, file) = folder("expect:\n  - {tick: 1, replicas: 5}\n");
    let path = |name: &str| folder.path().join(name);
    fs::write(path("old.html"), "x".repeat(1 << 20)).expect("a file can be written");
    let [html, junit, markdown] =
        [("html", "old.html"), ("junit", "results.xml"), ("markdown", "results.md")]
            .map(|(kind, name)| format!("{kind}={}", text(&path(name))));
    let mut command = kube_lockstep(&["run", "--engine", "model", text(&file), "--format", "json"]);
    command.args(["--report", &html, "--report", &junit, "--report", &markdown]);
    command.args(["--report", "github"]).env("GITHUB_STEP_SUMMARY", path("summary.md"));
    fs::write(path("summary.md"), "before\n").expect("a file can be written");
    let assert = command.env("GITHUB_WORKSPACE", folder.path()).assert().code(1);
    assert_eq!(json(&assert).len(), 2, "standard output has JSON only");
    let line = fs::read_to_string(&file).expect("the scenario");
    let line = line.lines().position(|line| line.contains("tick: 1")).expect("a line") + 1;
    let name = file.file_name().and_then(|name| name.to_str()).expect("a name");
    let annotation = format!("::error file={name},line={line},title=unmet 1.37");
    assert!(stderr(&assert).starts_with(&annotation), "{}", stderr(&assert));
    let read = |name: &str| fs::read_to_string(path(name)).expect("a report");
    assert!(read("old.html").starts_with("<!DOCTYPE html>") && read("old.html").len() < 100_000);
    let what = "tick 1 (t=0s): replicas: expected 5, was 4";
    for name in ["old.html", "results.xml", "results.md", "summary.md"] {
        assert!(read(name).contains(what), "{name}: {}", read(name));
    }
    assert!(read("summary.md").starts_with("before\n# Conformance run on model 1.37\n"));
    assert_eq!(read("summary.md").strip_prefix("before\n"), Some(&*read("results.md")));
}

#[test]
fn a_report_that_cannot_be_written_is_an_error_before_the_run() {
    let (folder, file) = folder("");
    let inside = text(&folder.path().join("missing/x.xml")).to_owned();
    for (report, code, expected) in [
        (format!("junit={inside}"), 3, "can't be written: No such file or directory"),
        (format!("markdown={inside}"), 3, "can't be written: No such file or directory"),
        (format!("html={}", text(folder.path())), 3, "can't be written: Is a directory"),
        ("html".to_owned(), 2, "the file is missing: html=FILE"),
        ("html=".to_owned(), 2, "the file is missing: html=FILE"),
        ("github=x".to_owned(), 2, "github has no file"),
        ("pdf=x".to_owned(), 2, "expected html=FILE, junit=FILE, markdown=FILE or github"),
    ] {
        let assert = kube_lockstep(&["run", text(&file), "--report", &report]).assert().code(code);
        assert_eq!(stdout(&assert), "", "{report}");
        assert!(stderr(&assert).contains(expected), "{report}: {}", stderr(&assert));
    }
    let same = folder.path().join("same").display().to_string();
    let (html, junit) = (format!("html={same}"), format!("junit={same}"));
    let twice = ["run", text(&file), "--report", &html, "--report", &junit];
    let assert = kube_lockstep(&twice).assert().code(2);
    assert!(stderr(&assert).contains("same file"), "{}", stderr(&assert));
    for (command, flag) in [("predict", "--html"), ("predict", "--csv"), ("compare", "--html")] {
        let assert = kube_lockstep(&[command, text(&file), flag, &inside]).assert().code(3);
        assert_eq!(stdout(&assert), "");
        assert!(stderr(&assert).contains(&format!("{flag}: ")), "{}", stderr(&assert));
    }
}

#[test]
fn predictions_are_written_as_csv() {
    let (folder, file) = folder("");
    let ticks = folder.path().join("ticks.csv");
    let arguments = ["predict", text(&file), "--format", "json", "--csv", text(&ticks)];
    let lines = json(&kube_lockstep(&arguments).assert().code(0));
    let rows = fs::read_to_string(&ticks).expect("the file was written");
    assert!(rows.starts_with("tick,seconds,hpa,cpu,cpu target,ready,"), "{rows}");
    // A header in place of the summary.
    assert_eq!(rows.lines().count(), lines.len());
    let fixture = "tolerance/upper-edge-is-inclusive";
    let both = ["predict", text(&file), fixture, "--csv", text(&ticks)];
    let assert = kube_lockstep(&both).assert().code(2);
    assert!(stderr(&assert).contains("--csv writes only one prediction"), "{}", stderr(&assert));
}

#[test]
fn people_read_rounded_amounts_and_programs_exact_ones() {
    let hpa = "metrics:
      - type: Resource
        resource: {name: memory, target: {type: AverageValue, averageValue: 400Mi}}
      - type: Pods
        pods: {metric: {name: rps}, target: {type: AverageValue, averageValue: \"200\"}}
workload: {replicas: 7, containers: [{name: app, requests: {memory: 512Mi}}]}
metrics:
  resource: [{name: memory, load: 2Gi}]
  pods: [{name: rps, perPod: 285714m}]
until: 30s
";
    let (before, _) = super::SCENARIO.split_once("metrics:").expect("it has metrics");
    let (folder, file) = super::file_of(&format!("{before}{hpa}"));
    let page = folder.path().join("page.html");
    let arguments = ["predict", text(&file), "--html", text(&page)];
    let shown = stdout(&kube_lockstep(&arguments).assert().code(0));
    assert!(shown.contains("292.6Mi/400Mi  285.7/200"), "{shown}");
    let explained = kube_lockstep(&["explain", text(&file), "--tick", "1"]).assert().code(0);
    let explained = stdout(&explained);
    assert!(explained.contains("2Gi in total, 292.6Mi each; the target is 400Mi"), "{explained}");
    assert!(explained.contains("2000 in total, 285.7 each; the target is 200"), "{explained}");
    let page = fs::read_to_string(page).expect("the page was written");
    assert!(page.contains("292.6Mi") && page.contains("285.7"));
    for exact in ["306783378", "419430400", "285714m"] {
        assert!(!page.contains(exact), "{exact}");
    }
    let arguments = ["predict", text(&file), "--format", "json"];
    let lines = json(&kube_lockstep(&arguments).assert().code(0));
    assert_eq!(lines[0]["metrics"][1]["averageValue"], 285.714, "{}", lines[0]);
}

#[test]
fn charts_can_be_left_out() {
    let dotted = |text: &str| text.contains("┤") || text.contains("the dotted line");
    for file in [
        "closed-loop/docs-walkthrough-php-apache",
        "vpa/aggregation/a-policy-with-its-own-oom-ratio",
    ] {
        let whole = stdout(&kube_lockstep(&["predict", file]).assert().code(0));
        let plain = stdout(&kube_lockstep(&["predict", file, "--no-charts"]).assert().code(0));
        assert!(dotted(&whole) && !dotted(&plain), "{plain}");
        let (_, table) = whole.split_once("tick  t").expect("a table");
        let (head, same) = plain.split_once("tick  t").expect("a table");
        assert_eq!(table, same);
        assert!(head.ends_with("\n\n") && !head.contains("\n\n\n"), "{head:?}");
    }
}

#[test]
fn an_unmet_expectation_says_why_and_how_to_explain_it() {
    let expect = "expect:\n  - {tick: 1, replicas: 5}\n";
    let (_folder, file) = folder(expect);
    let shown = stdout(&kube_lockstep(&["predict", text(&file)]).assert().code(1));
    let command = format!("explain it: kube-lockstep explain {} --tick 1", text(&file));
    assert!(shown.contains("replicas: expected 5, was ") && shown.contains("why: "), "{shown}");
    assert!(shown.contains(&command), "{shown}");
    let arguments = ["predict", text(&file), "--format", "json"];
    let lines = json(&kube_lockstep(&arguments).assert().code(1));
    let unmet = &lines.last().expect("a summary")["summary"]["unmet"][0];
    assert_eq!(unmet["values"][0]["expected"], "5");
    assert_eq!((&unmet["tick"], &unmet["expectation"]), (&1.into(), &1.into()), "{unmet}");
    let explain = unmet["explain"].as_str().expect("a command");
    let arguments: Vec<&str> = explain.split(' ').skip(1).collect();
    let explained = stdout(&kube_lockstep(&arguments).assert().code(0));
    assert!(explained.contains("tick 1 of "), "{explained}");
}

#[test]
fn unmet_values_are_numbers_and_lists_for_programs() {
    let expect = "expect:\n  - {tick: 1, replicas: {atLeast: 5}}\n  - {sequence: [2, 13]}\n  - \
                  {tick: 1, metrics: [{name: cpu, utilization: 101}]}\n  - {tick: 1, conditions: \
                  [{type: AbleToScale, reason: Never}]}\n  - {tick: 1, events: [{reason: Never}]}\n  \
                  - {tick: 1, error: never}\n";
    let (_folder, file) = folder(expect);
    let arguments = ["predict", text(&file), "--format", "json"];
    let lines = json(&kube_lockstep(&arguments).assert().code(1));
    let unmet = &lines.last().expect("a summary")["summary"]["unmet"];
    let value = |index: usize| &unmet[index]["values"][0];
    assert_eq!(value(0)["expectedValue"], serde_json::json!({"atLeast": 5, "min": 5}), "{unmet}");
    assert_eq!(value(0)["observedValue"], 4, "{unmet}");
    assert_eq!(value(1)["expectedValue"], serde_json::json!([2, 13]), "{unmet}");
    assert!(value(1)["observedValue"].is_array(), "{unmet}");
    assert_eq!(value(2)["expectedValue"], serde_json::json!({"utilization": 101}), "{unmet}");
    assert!(value(2)["observedValue"]["utilization"].is_number(), "{unmet}");
    assert_eq!(value(2)["expected"], "utilization 101%", "the text remains: {unmet}");
    assert_eq!(value(3)["expectedValue"], serde_json::json!({"reason": "Never"}), "{unmet}");
    assert_eq!(value(3)["observedValue"]["status"], "True", "{unmet}");
    assert_eq!(value(4)["expectedValue"], serde_json::json!({"reason": "Never"}), "{unmet}");
    assert!(value(4)["observedValue"].is_array(), "{unmet}");
    assert_eq!(value(5)["expectedValue"], "never", "{unmet}");
    assert_eq!(value(5)["observedValue"], serde_json::json!([]), "{unmet}");
}

/// Since 1.35, the controller has Prometheus metrics of its own from the first reconcile on.
#[test]
fn a_change_of_behavior_is_shown_before_one_of_the_controllers_metrics() {
    let scenario = "zero/a-failing-metric-at-zero-is-an-error";
    let diff = ["diff", scenario, "--from", "1.34", "--to", "1.36", "--format", "json"];
    let lines = json(&kube_lockstep(&diff).assert().code(0));
    assert_eq!(
        (&lines[0]["tick"], &lines[0]["fields"][0]["field"]),
        (&2.into(), &"status.conditions".into())
    );
}

/// Invalid scenarios end a run before its first event, but not without reports.
#[test]
fn invalid_scenarios_have_annotations_and_reports() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let head = "apiVersion: kube-lockstep.dev/v1alpha1\nkind: Scenario\n";
    fs::write(folder.path().join("bad.yaml"), format!("{head}hpaa: 1\n")).expect("it is written");
    let mut run = kube_lockstep(&["run", ".", "--report", "github", "--report", "junit=out.xml"]);
    run.current_dir(folder.path()).env_remove("GITHUB_WORKSPACE").env_remove("GITHUB_STEP_SUMMARY");
    let run = run.assert().code(2);
    let annotation = "::error file=./bad.yaml,line=3,col=1,title=invalid scenario::unknown field";
    assert!(stdout(&run).contains(annotation), "{}", stdout(&run));
    assert!(stderr(&run).contains("bad.yaml:3:1: unknown field"), "{}", stderr(&run));
    let junit = fs::read_to_string(folder.path().join("out.xml")).expect("there is a report");
    assert!(junit.contains("bad.yaml:3:1"), "{junit}");
}

/// A repository also contains workflows, Helm values files and manifests.
#[test]
fn folders_can_contain_other_yaml_files() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder can be made");
        fs::write(path, text).expect("a file can be written");
    };
    let fixture = "fixtures/tolerance/upper-edge-is-inclusive.yaml";
    write("hpa/edge.yaml", &fs::read_to_string(fixture).expect("a fixture"));
    write(".github/workflows/ci.yaml", "name: CI\non: push\njobs: {}\n");
    write("chart/values.yaml", "hpa:\n  enabled: true\nimage: web\n");
    write("compose.yaml", "services: {}\n");
    let run = |folder: &std::path::Path| {
        let mut run = kube_lockstep(&["run", "--engine", "model", "."]);
        run.current_dir(folder);
        run
    };
    let all = run(folder.path()).assert().code(0);
    assert!(stdout(&all).contains("1 scenario on model 1.37: 1 conform"), "{}", stdout(&all));
    // A scenario with a misspelt kind is an error, not another file.
    write("hpa/other.yaml", "kind: Scenrio\nhpa: {}\nworkload: {replicas: 2}\n");
    let errors = stderr(&run(folder.path()).assert().code(2));
    assert!(errors.contains("other.yaml:1:7: expected kind `Scenario`"), "{errors}");
}

#[test]
fn diff_of_recorded_traces_runs_no_engine() {
    let (_folder, file) = folder("");
    let options = ["diff", text(&file), "--from", "1.36", "--recorded"];
    let diff = kube_lockstep(&options).assert().code(4);
    assert!(stdout(&diff).contains("not recorded on 1.36"), "{}", stdout(&diff));
}
