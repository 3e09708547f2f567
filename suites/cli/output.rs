//! The streams of the output: JSON, colors, widths, and readers that close the pipe.

use kube_lockstep::model::rules::Release;

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
