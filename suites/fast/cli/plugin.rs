//! The program as a plugin of kubectl.

use std::os::unix::fs::symlink;

use assert_cmd::Command;
use tempfile::TempDir;

use super::{folder, stderr, stdout, support};

/// Runs the program under another name.
fn under_name(name: &str, arguments: &[&str]) -> Command {
    let folder = support::repository().join("target/tmp");
    std::fs::create_dir_all(&folder).expect("a folder");
    let folder = TempDir::new_in(folder).expect("a folder").keep();
    let path = folder.join(name);
    symlink(env!("CARGO_BIN_EXE_kube-lockstep"), &path).expect("a link");
    let mut command = Command::new(path);
    command.current_dir(support::repository()).args(arguments);
    command
}

/// The completions of the last argument.
fn completions(arguments: &[&str]) -> Vec<String> {
    let done = under_name("kubectl_complete-lockstep", arguments).assert().code(0);
    stdout(&done).lines().map(str::to_owned).collect()
}

#[test]
fn the_plugin_is_called_kubectl_lockstep_in_its_help() {
    let help = under_name("kubectl-lockstep", &["predict", "--help"]).assert().code(0);
    assert!(stdout(&help).contains("Usage: kubectl lockstep predict"), "{}", stdout(&help));
    let wrong = under_name("kubectl-lockstep", &["predictt"]).assert().code(2);
    assert!(stderr(&wrong).contains("Usage: kubectl lockstep"), "{}", stderr(&wrong));
}

#[test]
fn errors_hints_and_texts_name_the_command_that_the_user_typed() {
    let fails = |arguments: &[&str]| stderr(&under_name("kubectl-lockstep", arguments).assert());
    let unknown = fails(&["run", "no-such/scenario"]);
    assert!(unknown.contains("`kubectl lockstep list` shows all scenarios"), "{unknown}");
    let releases = fails(&["predict", "x.yaml", "--release", "1.36,1.37"]);
    let compares = "`kubectl lockstep compare --release 1.36,1.37` compares several";
    assert!(releases.contains(compares), "{releases}");
    let manifests = fails(&["predict", "examples/php-apache/hpa.yaml"]);
    assert!(manifests.contains("`kubectl lockstep predict -f FILE`"), "{manifests}");
    let doctor = stdout(&under_name("kubectl-lockstep", &["doctor"]).assert());
    assert!(doctor.contains("`kubectl lockstep run` uses"), "{doctor}");
    let help = stdout(&under_name("kubectl-lockstep", &["help", "import"]).assert());
    for text in [unknown, releases, manifests, doctor, help] {
        assert!(!text.contains("kube-lockstep "), "{text}");
    }
}

/// Programs read JSON, and others may run its commands.
#[test]
fn commands_in_json_do_not_depend_on_the_name() {
    let (_folder, file) = folder("expect:\n  - {tick: 1, replicas: 5}\n");
    let file = file.to_str().expect("UTF-8");
    let shown = under_name("kubectl-lockstep", &["predict", file]).assert().code(1);
    let command = format!("explain it: kubectl lockstep explain {file} --tick 1");
    assert!(stdout(&shown).contains(&command), "{}", stdout(&shown));
    let arguments = ["predict", file, "--format", "json"];
    let plugin = under_name("kubectl-lockstep", &arguments).assert().code(1);
    assert!(stdout(&plugin).contains("\"kube-lockstep explain"), "{}", stdout(&plugin));
}

#[test]
fn the_plugin_does_what_the_program_does() {
    let scenario = "fixtures/closed-loop/docs-walkthrough-php-apache.yaml";
    let plugin = under_name("kubectl-lockstep", &["predict", scenario]).assert().code(0);
    let program = super::kube_lockstep(&["predict", scenario]).assert().code(0);
    assert_eq!(stdout(&plugin), stdout(&program));
}

#[test]
fn kubectl_completes_commands_options_values_and_files() {
    let commands = completions(&["pre"]);
    assert!(commands[0].starts_with("predict\tPredict what an HPA or a VPA does"), "{commands:?}");
    assert_eq!(commands[1..], [":4"]);
    let options = completions(&["predict", "--rel"]);
    assert!(options[0].starts_with("--release\t"), "{options:?}");
    let values = completions(&["run", "--format", ""]);
    assert!(values.iter().any(|value| value.starts_with("json\t")), "{values:?}");
    let reports = completions(&["run", "--report", ""]);
    assert_eq!(reports, ["html=", "junit=", "markdown=", "github", ":6"]);
    let releases = completions(&["predict", "--release", ""]);
    assert_eq!(releases[..2], ["1.37", "1.36"]);
    assert!(releases.iter().any(|release| release == "vpa-1.8"), "{releases:?}");
    assert_eq!(completions(&["run", "--release", "a"]), ["all", ":4"]);
    assert_eq!(completions(&["diff", "--from", "1.3"])[..2], ["1.37", "1.36"]);
    let folders = completions(&["predict", "fixtures/clos"]);
    assert_eq!(folders, ["fixtures/closed-loop/", ":6"]);
    assert_eq!(completions(&["explain", "closed-l"]), ["closed-loop/", ":6"]);
    let ids = completions(&["explain", "closed-loop/docs-w"]);
    assert_eq!(ids, ["closed-loop/docs-walkthrough-php-apache", ":4"]);
}
