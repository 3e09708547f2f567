//! The command line: exit codes, output streams, and the reference in the docs.

mod building;
mod check;
mod compare;
mod controller_flags;
mod engines;
mod explore;
mod fuzzing;
mod gate;
mod hard_inputs;
mod lint;
mod manifests;
mod objects;
mod output;
mod plugin;
mod questions;
mod selection;
mod sharing;
mod tune;
mod upgrade;

use crate::support::{self, trace_file};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use assert_cmd::Command;
use assert_cmd::assert::Assert;
use kube_autoscaler_models::rules::Release;
use kube_lockstep_engines::recorded::Recording;
use kube_lockstep_scenario as scenario;
use kube_lockstep_scenario::Scenario;
use kube_lockstep_sim::run::free_run;
use kube_lockstep_sim::trace::header::Build;
use kube_lockstep_sim::trace::{Trace, text};
use serde_json::Value;

/// The command in the repository, where `./fixtures` is found.
fn kube_lockstep(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kube-lockstep"));
    // The environment must not affect the output.
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
requirement: Twice the target doubles the replicas.
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

/// A folder of fixtures with one scenario, to which `more` is appended.
fn folder(more: &str) -> (tempfile::TempDir, PathBuf) {
    file_of(&format!("{SCENARIO}{more}"))
}

/// A folder of fixtures with one scenario.
fn file_of(scenario: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let file = folder.path().join("doubles.yaml");
    fs::write(&file, scenario).expect("a file can be written");
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

/// A repository with one scenario and a recorded trace, which is the model's trace after `change`.
fn repository_with_a_trace(change: fn(&mut Trace)) -> (tempfile::TempDir, String) {
    let root = tempfile::tempdir().expect("a folder can be made");
    let fixtures = root.path().join("fixtures");
    let traces = root.path().join("suites/recorded");
    for folder in [&fixtures, &traces] {
        fs::create_dir_all(folder).expect("a folder can be made");
    }
    fs::write(fixtures.join("doubles.yaml"), SCENARIO).expect("a file can be written");
    let no_files = |_: &str| Err("there is no other file".into());
    let scenario = scenario::parse("doubles.yaml", SCENARIO, &no_files).expect("it is a scenario");
    let scenario = Arc::new(Scenario { id: "doubles".to_owned(), ..scenario });
    let mut trace = free_run(&scenario, Release::NEWEST).trace;
    change(&mut trace);
    let version = "v1.37.2".parse().expect("it is a version");
    let build = Build { version, sources: "0123456789abcdef".to_owned() };
    let recorded = text::write(&trace, &[build]).expect("a trace can be written");
    let recording = Recording::new(recorded).expect("a header");
    fs::write(traces.join("doubles.trace"), trace_file::write(&[recording]))
        .expect("a file can be written");
    let fixtures = text(&fixtures).to_owned();
    (root, fixtures)
}

fn run_recorded(fixtures: &str) -> Command {
    kube_lockstep(&["run", "--engine", "recorded", "--fixtures", fixtures])
}

#[test]
fn a_divergence_exits_with_1_and_can_be_replayed() {
    let (_root, fixtures) = repository_with_a_trace(|trace| {
        let write = trace.ticks[0].status_write_mut().expect("the first tick writes a status");
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
fn a_write_of_another_scale_diverges_and_names_its_target() {
    let (_root, fixtures) = repository_with_a_trace(|trace| {
        let write = trace.ticks[0].scale_writes_mut().next().expect("the first tick scales");
        write.name = "other".into();
    });
    let shown = stdout(&run_recorded(&fixtures).assert().code(1));
    for part in ["4 of deployments.apps/web", "4 of deployments.apps/other"] {
        assert!(shown.contains(part), "{part}\n{shown}");
    }
    assert!(shown.contains("scale of deployments.apps/other to 4; "), "{shown}");
}

#[test]
fn a_resolved_known_disagreement_exits_with_1() {
    let (_root, fixtures) = repository_with_a_trace(|_| {});
    run_recorded(&fixtures).assert().code(0);
    let known = "divergences:\n  - {scenario: doubles, field: status, reason: none, link: none}\n";
    fs::write(Path::new(&fixtures).join("divergences.yaml"), known).expect("it can be written");
    let run = run_recorded(&fixtures).assert().code(1);
    assert!(stdout(&run).contains("\nstale  doubles: status (none) no longer disagrees"));
    let last = stdout(&run).lines().last().unwrap_or_default().to_owned();
    assert!(last.contains("0 skipped, 1 stale; "), "{last}");
}

#[test]
fn a_trace_of_another_scenario_gives_no_verdict_and_exits_with_3() {
    let (_root, fixtures) = repository_with_a_trace(|trace| trace.hash = "0".repeat(16));
    let run = run_recorded(&fixtures).assert().code(3);
    assert!(stdout(&run).contains("is stale"), "{}", stdout(&run));
}

#[test]
fn an_invalid_scenario_exits_with_2_and_the_whole_message() {
    let (_folder, file) = folder("untill: 30s\n");
    for command in ["run", "predict", "list"] {
        let run = kube_lockstep(&[command, text(&file)]).assert().code(2);
        let errors = stderr(&run);
        assert!(errors.starts_with(&format!("error: {}:18:1: ", text(&file))), "{errors}");
        assert!(errors.contains("did you mean `until`?"), "{errors}");
        assert_eq!(stdout(&run), "");
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
fn scenarios_that_a_release_does_not_support_exit_with_4() {
    let (_folder, file) = folder("controller: {featureGates: {HPAGeneration: false}}\n");
    let old = ["run", "--engine", "model", "--release", "1.36", text(&file)];
    let run = kube_lockstep(&old).assert().code(4);
    assert!(stdout(&run).starts_with("kube-lockstep"), "{}", stdout(&run));
    assert!(stdout(&run).contains("\nskipped "), "{}", stdout(&run));
    kube_lockstep(&["run", "--engine", "model", text(&file)]).assert().code(0);
}

#[test]
fn expectations_for_other_releases_do_not_apply() {
    fn newest(file: &Path) -> [&str; 6] {
        ["run", "--engine", "model", "--release", "1.37", text(file)]
    }
    let more = "expect:\n  - {releases: \"<=1.36\", at: 0s, replicas: 7}\n";
    let (_folder, file) = folder(more);
    kube_lockstep(&newest(&file)).assert().code(0);
    let old = ["run", "--engine", "model", "--release", "1.36", text(&file)];
    kube_lockstep(&old).assert().code(1);
    let (_folder, file) = folder("releases: \"<=1.36\"\nexpect:\n  - {at: 0s, replicas: 7}\n");
    kube_lockstep(&newest(&file)).assert().code(0);
}

#[test]
fn several_releases_run_in_order_with_one_summary() {
    let options =
        ["run", "--engine", "recorded", "--release", "1.33-1.34,1.36", "--format", "json"];
    let lines = json(&kube_lockstep(&[&options[..], &["tolerance"]].concat()).assert().code(0));
    let summary = &lines.last().expect("a summary")["summary"];
    assert_eq!(summary["release"], "1.33 - 1.34, 1.36");
    let releases = summary["releases"].as_array().expect("one entry a release");
    let names: Vec<_> = releases.iter().map(|it| it["release"].as_str()).collect();
    assert_eq!(names, [Some("1.33"), Some("1.34"), Some("1.36")]);
    let sum: u64 = releases.iter().filter_map(|it| it["conforms"].as_u64()).sum();
    assert_eq!(summary["conforms"].as_u64(), Some(sum));
    let options = ["run", "--engine", "recorded", "--release", "1.36,1.37", "-v", "tolerance"];
    let text = stdout(&kube_lockstep(&options).assert().code(0));
    for release in ["  v1.36, ", "  v1.37, "] {
        let conforms = |line: &&str| line.starts_with("conforms  ") && line.contains(release);
        assert!(text.lines().any(|line| conforms(&line)), "{release}: {text}");
    }
    for wrong in ["1.5", "1.36-1.33", "1.30,x", "1.18.3", "1.9.99", ""] {
        let run = kube_lockstep(&["run", "--release", wrong]).assert().code(2);
        assert!(stderr(&run).contains("--release"), "{wrong}: {}", stderr(&run));
    }
}

#[test]
fn up_to_1_32_an_explanation_shows_the_deciding_distance_at_the_edge() {
    let edge = "tolerance/upper-edge-is-inclusive";
    let explain = |release: &str| {
        let options = ["explain", edge, "--tick", "1", "--release", release];
        let text = stdout(&kube_lockstep(&options).assert().code(0));
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let old = explain("1.32");
    assert!(old.contains("outside the tolerance, 0.1 on either side of 1"), "{old}");
    assert!(old.contains("the ratio is 0.10000000000000009 away"), "{old}");
    assert!(explain("1.33").contains("within the tolerance, 0.9 to 1.1"), "{}", explain("1.33"));
}

#[test]
fn diff_shows_the_first_tick_that_differs_and_the_row_that_explains_it() {
    let options = ["diff", "--from", "1.32", "--to", "1.33", "--format", "json"];
    let lines = json(&kube_lockstep(&options).assert().code(0));
    let (summary, changed) = lines.split_last().expect("a summary");
    assert_eq!(summary["summary"]["unexplained"], 0);
    assert_eq!(summary["summary"]["changed"].as_u64(), Some(changed.len() as u64));
    let tolerance = "https://github.com/kubernetes/kubernetes/pull/130797";
    let row = |line: &&serde_json::Value| {
        let rows = line["rows"].as_array();
        rows.is_some_and(|rows| rows.iter().any(|row| row["link"] == tolerance))
    };
    assert!(changed.iter().any(|line| row(&line)), "{changed:#?}");
    let first = changed[0]["id"].as_str().expect("an id");
    let text = stdout(&kube_lockstep(&["bisect", first]).assert().code(0));
    assert!(text.contains("1.32 -> 1.33"), "{text}");
    let options = ["diff", "--from", "1.32", "--to", "1.33", "--format", "markdown"];
    let text = stdout(&kube_lockstep(&options).assert().code(0));
    assert!(text.starts_with("# From 1.32 to 1.33") && text.contains(tolerance), "{text}");
    // The text shows three scenarios for each explanation. Its end counts the scenarios of each row,
    // and shows each reason once.
    let text = stdout(&kube_lockstep(&options[..5]).assert().code(0));
    let headings =
        |text: &str| text.lines().filter(|line| line.ends_with("  1.32 -> 1.33")).count();
    let all = stdout(&kube_lockstep(&[&options[..5], &["--all"]].concat()).assert().code(0));
    assert_eq!(headings(&all), changed.len(), "{all}");
    let left_out = text.lines().filter_map(|line| line.strip_prefix("… ")).map(|line| {
        assert!(line.ends_with(" with the same explanation; --all shows them"), "{line}");
        let number = line.split(' ').next().expect("a number");
        number.replace(',', "").parse::<usize>().expect("a number")
    });
    assert_eq!(headings(&text) + left_out.sum::<usize>(), changed.len(), "{text}");
    let mut parts = text.rsplit("\n\n");
    let (ending, rows) = (parts.next().expect("an end"), parts.next().expect("rows"));
    let heading = "Changes, with the number of scenarios whose first difference they explain:\n";
    assert!(rows.starts_with(&format!("{heading}  1.33  ")), "{rows}");
    assert!(rows.contains(" scenarios, for example "), "{rows}");
    assert_eq!(ending.matches("`tolerance` is not supported on 1.32 (").count(), 1, "{ending}");
    let diff = ["diff", "--from", "vpa-1.7", "--to", "vpa-1.8", "--format", "markdown"];
    let text = stdout(&kube_lockstep(&diff).assert().code(0));
    let row = "\n## vpa-1.8: OOM kills and samples of a pod that was deleted since the last run";
    assert!(text.starts_with("# From vpa-1.7 to vpa-1.8\n") && text.contains(row), "{text}");
    assert!(text.contains("\n- `vpa/oom/an-oom-kill-of-a-deleted-pod`, tick 3 "), "{text}");
    for command in ["diff", "bisect"] {
        let options = [command, "tolerance/docs-five-percent-of-100mi", "--from", "1.12"];
        let run = kube_lockstep(&[&options[..], &["--to", "1.13"]].concat()).assert().code(4);
        let printed = stdout(&run) + &stderr(&run);
        assert!(printed.contains("`behavior` is not supported on 1.12"), "{printed}");
    }
    let wrong = kube_lockstep(&["diff", "--from", "1.37", "--to", "1.33"]).assert().code(2);
    assert!(stderr(&wrong).contains("--from must be older than --to"), "{}", stderr(&wrong));
}

/// A row about errors does not explain a difference in an earlier field.
#[test]
fn diff_separates_the_rows_that_explain_the_first_field() {
    let id = "external-metric/on-target-pods-are-not-counted";
    let options = ["diff", id, "--from", "1.15", "--to", "1.16", "--format", "json"];
    let lines = json(&kube_lockstep(&options).assert().code(0));
    assert_eq!(lines[0]["fields"][0]["field"], "status.desiredReplicas");
    let rows = |key: &str| {
        let rows = lines[0][key].as_array().expect("a list").iter();
        rows.map(|row| row["what"].as_str().unwrap_or_default().to_owned()).collect::<Vec<_>>()
    };
    let ratio = "the ratio of an external metric is checked before pods are counted";
    assert_eq!(rows("rows"), [ratio]);
    assert_eq!(
        rows("also"),
        ["the first of several failing metrics is reported instead of the last"]
    );
}

/// The first difference of this scenario is the observed generation, as of each scenario.
#[test]
fn diff_lists_the_rows_of_the_vpa_that_change_something_later() {
    let diff = ["diff", "vpa/oom/a-terminated-container", "--from", "vpa-1.6", "--to", "vpa-1.7"];
    let lines = json(&kube_lockstep(&[&diff[..], &["--format", "json"]].concat()).assert().code(0));
    let rows = |key: &str| {
        let rows = lines[0][key].as_array().expect("a list").iter();
        rows.map(|row| row["what"].as_str().unwrap_or_default().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(rows("rows"), ["the status contains the observed generation"]);
    let oom = "an OOM kill counts when the container ends; before, it counted after the restart";
    assert_eq!(rows("also"), [oom]);
    assert_eq!(lines[0]["also"][0]["beside"], serde_json::json!([]), "as for HPAs");
    let text = stdout(&kube_lockstep(&diff).assert().code(0));
    assert!(text.contains("\n  also vpa-1.7  an OOM kill counts when"), "{text}");
}

#[test]
fn scenarios_without_a_trace_are_not_compared_without_upstream() {
    let (_folder, file) = folder("");
    let empty = tempfile::tempdir().expect("a folder can be made");
    let without_go = |arguments: &[&str]| {
        let mut command = kube_lockstep(arguments);
        command.env("PATH", empty.path()).env("KUBE_LOCKSTEP_CACHE", empty.path());
        command.assert().code(3)
    };
    let (from, file) = (["--from", "1.36"], text(&file));
    let diff = without_go(&[&["diff", file], &from[..]].concat());
    assert!(stderr(&diff).contains("live: it has no recorded trace"), "{}", stderr(&diff));
    assert!(stdout(&diff).contains("upstream 1.36 can't run here: "), "{}", stdout(&diff));
    let bisect = without_go(&[&["bisect", file], &from[..]].concat());
    assert!(stderr(&bisect).contains("can't be compared: "), "{}", stderr(&bisect));
}

/// Writes a script that replaces a program.
fn program(path: &Path, script: &str) {
    use std::os::unix::fs::PermissionsExt;
    fs::write(path, format!("#!/bin/sh\n{script}\n")).expect("a file can be written");
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("it can be run");
}

/// An engine whose controller does nothing.
const IDLE: &str = r#"
echo '{"hello":{"protocol":2,"engine":"idle","release":"v1.37.0"}}'
exec sed -u -n \
  -e 's/^{"open".*/{"opened":{"epoch":"2000-01-01T00:01:00Z"}}/p;t' \
  -e 's/^{"step".*\(createHpa\|patchHpa\|deleteHpa\).*"until":\([0-9]*\).*/{"stepped":{"now":\2,"api":[{"deleted":{"name":"web"}}],"log":[]}}/p;t' \
  -e 's/^{"step".*"until":\([0-9]*\).*/{"stepped":{"now":\1,"api":[],"log":[]}}/p;t' \
  -e 's/.*/{"closed":{}}/p'"#;

#[test]
fn actions_on_no_pod_are_noted_with_their_line() {
    let (_folder, file) = folder("timeline:\n- {at: 20s, podsUnready: \"7\"}\n");
    let note =
        format!("{}:19: the action at t=20s has no effect: none of its pods exists", text(&file));
    let run = kube_lockstep(&["run", "--engine", "model", text(&file)]).assert().code(0);
    let predict = kube_lockstep(&["predict", text(&file)]).assert().code(0);
    for shown in [stdout(&run), stdout(&predict)] {
        let joined = shown.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(joined.contains(&format!("note: {note}")), "{shown}");
    }
    let options = ["run", "--engine", "model", "--format", "json", text(&file)];
    let lines = json(&kube_lockstep(&options).assert().code(0));
    assert_eq!(lines[0]["notes"][0]["line"], 19);
    let options = ["predict", "--format", "json", text(&file)];
    let lines = json(&kube_lockstep(&options).assert().code(0));
    assert_eq!(lines.last().expect("a summary")["summary"]["notes"][0]["line"], 19);
}

/// Both parts of a scenario with an HPA and a VPA, and a scenario of a VPA.
#[test]
fn events_of_a_vpa_on_no_pod_are_noted_with_their_line() {
    let spec = "targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}";
    let vpa = format!(
        "vpa:\n  apiVersion: autoscaling.k8s.io/v1\n  kind: VerticalPodAutoscaler\n  \
         metadata: {{name: web}}\n  spec:\n    {spec}\n"
    );
    let alone = "apiVersion: kube-lockstep.dev/v1alpha1\nkind: Scenario\nrequirement: No pod.\n";
    let events = "timeline:\n\
                  - {at: 3m, podsDeleted: all}\n\
                  - {at: 4m, oomKill: {pods: \"0\"}}\n\
                  - {at: 4m, evict: {pods: 5-6, usage: 1Gi}}\n\
                  - {at: 5m, oomKill: {pods: all}}\n";
    let relabel = "- {at: 5m, relabel: {pods: \"0\", labels: {app: other}}}\nuntil: 6m\n";
    let (folder, both) = folder("");
    let until_6m = SCENARIO.replace("until: 30s", "until: 6m");
    fs::write(&both, format!("{until_6m}{vpa}{events}")).expect("it can be written");
    let alone_file = folder.path().join("alone.yaml");
    fs::write(&alone_file, format!("{alone}{vpa}{events}{relabel}")).expect("it can be written");
    for (file, expected) in [(both, &[4, 4][..]), (alone_file, &[4, 4, 5])] {
        let content = fs::read_to_string(&file).expect("the file can be read");
        let first = content.lines().position(|line| line == "timeline:").expect("events") + 3;
        let lines = [first, first + 1, first + 3];
        let notes: Vec<String> = expected
            .iter()
            .zip(lines)
            .map(|(minute, line)| {
                format!(
                    "{}:{line}: the action at t={minute}m has no effect: none of its pods exists",
                    text(&file)
                )
            })
            .collect();
        let run = kube_lockstep(&["run", "--engine", "model", text(&file)]).assert();
        let predict = kube_lockstep(&["predict", text(&file)]).assert().code(0);
        for shown in [stdout(&run), stdout(&predict)] {
            let joined = shown.split_whitespace().collect::<Vec<_>>().join(" ");
            assert_eq!(joined.matches("has no effect").count(), notes.len(), "{shown}");
            for note in &notes {
                assert!(joined.contains(&format!("note: {note}")), "{note}: {shown}");
            }
        }
        let options = ["predict", "--format", "json", text(&file)];
        let lines = json(&kube_lockstep(&options).assert().code(0));
        let noted = lines.last().expect("a summary")["summary"]["notes"].clone();
        assert_eq!(noted.as_array().map(Vec::len), Some(notes.len()), "{noted}");
    }
}

#[test]
fn predict_ignores_expectations_for_other_releases() {
    let more = "releases: \"<=1.30\"\nexpect:\n  - {tick: 1, replicas: 5}\n";
    let (_folder, file) = folder(more);
    let shown = stdout(&kube_lockstep(&["predict", text(&file)]).assert().code(0));
    let in_one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let choose = "the scenario is for 1.6 - 1.30, not for 1.37: choose another release, for \
                  example --release 1.30";
    let note = format!("note: no expectation is checked: {choose}");
    assert!(in_one_line(&shown).contains(&note), "{shown}");
    assert!(!shown.contains("not met"), "{shown}");
    let explain = kube_lockstep(&["explain", text(&file), "--tick", "1"]).assert().code(0);
    assert!(in_one_line(&stdout(&explain)).contains(&note), "{}", stdout(&explain));
    let run = kube_lockstep(&["run", "--engine", "model", text(&file)]).assert().code(4);
    assert!(in_one_line(&stdout(&run)).contains(choose), "{}", stdout(&run));
    let generation = "fixtures/vpa/policies/the-generation-is-observed.yaml";
    let generation = support::repository().join(generation);
    let vpa = fs::read_to_string(generation).expect("a fixture can be read");
    let (_folder, file) = file_of(&vpa.replace(">=vpa-1.7", "<=vpa-0.12"));
    let shown = in_one_line(&stdout(&kube_lockstep(&["predict", text(&file)]).assert().code(0)));
    assert!(
        shown.contains("other releases, vpa-0.10, vpa-0.11, vpa-0.12 (see --release)"),
        "{shown}"
    );
    let run = kube_lockstep(&["run", "--engine", "model", text(&file)]).assert().code(4);
    let choose = "the scenario is for vpa-0.10, vpa-0.11, vpa-0.12, not for vpa-1.8: choose another \
                  release, for example --release vpa-0.12";
    assert!(in_one_line(&stdout(&run)).contains(choose), "{}", stdout(&run));
    let behavior = "tolerance/docs-five-percent-of-100mi";
    let old = ["predict", behavior, "--release", "1.17"];
    let shown = stdout(&kube_lockstep(&old).assert().code(0));
    assert!(shown.starts_with("note: `behavior` is not supported on 1.17: `run` skips"), "{shown}");
    let lines = json(&kube_lockstep(&[&old[..], &["--format", "json"]].concat()).assert().code(0));
    let summary = &lines.last().expect("a summary")["summary"];
    assert_eq!(summary["skipped"], "`behavior` is not supported on 1.17");
}

#[test]
fn predict_marks_restarts_and_ignored_pods() {
    let shown = |id: &str| stdout(&kube_lockstep(&["predict", id]).assert().code(0));
    let restart = shown("restart/a-restart-forgets-the-stabilization-window");
    let rows: Vec<&str> = restart.lines().skip_while(|line| !line.starts_with("tick")).collect();
    assert!(rows[0].contains(" counted  proposal "), "{restart}");
    assert!(restart.contains(": the controller restarts\n"), "{restart}");
    let ignored = shown("terminating/failed-pods-are-ignored");
    assert!(ignored.contains(" 2/4 ") && ignored.contains("2 unready; 2 ignored"), "{ignored}");
    let one_metric = shown("errors/one-failing-metric-blocks-a-scale-down");
    let one_metric = one_metric.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(one_metric.contains("3 without metrics (memory)"), "{one_metric}");
    let failed = shown("errors/an-empty-answer-of-the-metrics-api-is-an-error");
    assert!(
        !failed.contains("0/4"),
        "pods that the controller did not look at are counted: {failed}"
    );
}

#[test]
fn predict_shows_each_tick_or_counts_the_omitted_ticks() {
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
fn explain_shows_one_tick_in_full() {
    let (folder, file) = folder("");
    let explain = |which: &[&str]| {
        let mut command = kube_lockstep(&["explain", text(&file)]);
        stdout(&command.args(which).assert().code(0)).replace(text(folder.path()), "FOLDER")
    };
    insta::assert_snapshot!(explain(&["--tick", "1"]));
    assert_eq!(explain(&["--at", "29s"]), explain(&["--tick", "2"]));
    let bare = kube_lockstep(&["explain", text(&file), "--at", "2"]).assert().code(2);
    assert!(
        stderr(&bare).contains("for a time, write 2s; for a tick, use --tick 2"),
        "{}",
        stderr(&bare)
    );
    let wrong = kube_lockstep(&["explain", text(&file), "--tick", "9"]).assert().code(2);
    assert!(stderr(&wrong).contains("the scenario has 3 ticks"), "{}", stderr(&wrong));
}

#[test]
fn explain_shows_the_first_change_by_default() {
    let explain = |file: &str, which: &[&str]| {
        stdout(&kube_lockstep(&[&["explain", file], which].concat()).assert().code(0))
    };
    let later = SCENARIO.replace(
        "perPod: \"1\"",
        "load: {steps: [{at: 0s, value: \"1\"}, {at: \
                                                   15s, value: \"2\"}]}",
    );
    let (_folder, file) = file_of(&later);
    let [note, shown] = split(&explain(text(&file), &[]));
    let change = "This is the first tick that changes the replicas. --tick and --at select others.";
    assert_eq!(note, change);
    assert_eq!(shown, explain(text(&file), &["--tick", "2"]));
    let (_folder, file) = file_of(&SCENARIO.replace("maxReplicas: 10", "maxReplicas: 2"));
    let [note, shown] = split(&explain(text(&file), &[]));
    let none =
        "No tick changes the replicas; this is the first one. --tick and --at select others.";
    assert_eq!(note, none);
    assert_eq!(shown, explain(text(&file), &["--tick", "1"]));
    let vpa = "hpa-and-vpa/requests-stay-within-the-limits";
    let shown = explain(vpa, &["--vpa", "web"]);
    assert!(shown.starts_with("This is the first tick that recommends resources. "), "{shown}");
}

/// The first paragraph of a text, and the others.
fn split(text: &str) -> [String; 2] {
    let (first, others) = text.split_once("\n\n").expect("several paragraphs");
    [first.to_owned(), others.to_owned()]
}

/// With a VPA, a tick is followed by the last run of the recommender.
#[test]
fn explain_shows_the_recommendation_with_an_hpa() {
    let id = "hpa-and-vpa/requests-stay-within-the-limits";
    let explain = |which: &[&str]| kube_lockstep(&[&["explain", id], which].concat()).assert();
    let whole = stdout(&explain(&["--at", "2m15s"]).code(0));
    let (hpa, vpa) = whole.split_once("\nrun 2 of 5 of the recommender, t=2m  ").expect("both");
    assert!(hpa.contains("\nDecision\n"), "{hpa}");
    assert!(vpa.contains("target.cpu: the 90th percentile is in bucket 18"), "{vpa}");
    let first = stdout(&explain(&["--tick", "1"]).code(0));
    assert!(first.ends_with("\nThe recommender of the VPA has not run yet.\n"), "{first}");
    let alone = stdout(&explain(&["--vpa", "web", "--tick", "2"]).code(0));
    assert!(whole.ends_with(&alone) && alone.starts_with("run 2 of 5 "), "{alone}");
    for (which, what) in [
        (&["--vpa", "api", "--tick", "2"][..], "there is no VPA api"),
        (&["--vpa", "web", "--tick", "6"], "the recommender has 5 ticks"),
        (&["--vpa", "web", "--hpa", "web", "--tick", "2"], "--hpa can't be combined with --vpa"),
    ] {
        let errors = stderr(&explain(which).code(2));
        assert!(errors.contains(what), "{errors}");
    }
}

#[test]
fn doctor_lists_each_engine_and_its_missing_requirements() {
    let cache = tempfile::tempdir().expect("a folder can be made");
    let doctor = kube_lockstep(&["doctor"])
        .env("PATH", cache.path())
        .env("KUBE_LOCKSTEP_CACHE", cache.path())
        .env("DOCKER_HOST", format!("unix://{}/docker.sock", cache.path().display()))
        .env("KUBECONFIG", cache.path().join("config"))
        .assert()
        .code(3);
    let text = stdout(&doctor);
    assert!(text.contains("missing  Go                Go is not installed"), "{text}");
    assert!(text.contains("install Go 1.26 or newer"), "{text}");
    assert!(text.contains("missing  upstream 1.37"), "{text}");
    assert!(text.contains("missing  embedded"), "{text}");
    for (name, needs) in [("image ", "Docker"), ("k3s ", "Docker"), ("kind ", "kind")] {
        let needs = if cfg!(feature = "clusters") { needs } else { "`--features clusters`" };
        let row = text.lines().find(|line| line.contains(&format!("  {name}")));
        let row = row.unwrap_or_default();
        assert!(row.contains("missing") && row.contains(needs), "{name}: {text}");
    }
    assert!(text.contains("missing  kubeconfig"), "{text}");
    assert!(text.contains("ok       loopback"), "{text}");
    assert!(text.contains("ok       model 1.37"), "{text}");
    assert!(text.ends_with("`kube-lockstep run` uses recorded\n"), "{text}");
}

#[test]
fn completions_are_generated_for_common_shells() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = kube_lockstep(&["completions", shell]).assert().code(0);
        assert!(stdout(&script).contains("KUBE_LOCKSTEP_COMPLETE"), "{shell}");
    }
}

/// The scripts ask the program for completions.
#[test]
fn a_shell_completes_commands_releases_and_scenarios() {
    let completed = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kube-lockstep"));
        command.current_dir(support::repository()).env("KUBE_LOCKSTEP_COMPLETE", "fish");
        let done = command.args(["--", "kube-lockstep"]).args(words).assert().code(0);
        stdout(&done).lines().map(str::to_owned).collect::<Vec<_>>()
    };
    assert!(completed(&["pre"])[0].starts_with("predict\t"));
    assert_eq!(completed(&["predict", "--release", "1.3"])[..2], ["1.37", "1.36"]);
    assert_eq!(completed(&["predict", "closed-l"]), ["closed-loop/"]);
    let id = "closed-loop/docs-walkthrough-php-apache";
    assert_eq!(completed(&["predict", "closed-loop/docs-w"]), [id]);
    assert_eq!(completed(&["predict", "fixtures/clos"]), ["fixtures/closed-loop/"]);
}

#[test]
fn the_schema_command_prints_the_schema_of_the_library() {
    let schema = kube_lockstep(&["schema"]).assert().code(0);
    let schema: Value = serde_json::from_str(&stdout(&schema)).expect("the schema is JSON");
    assert_eq!(schema, kube_lockstep_scenario::schema());
}

#[test]
fn an_action_during_a_waiting_reconcile_gives_no_verdict() {
    let timeline = "\
timeline:
- {at: 0s, for: 40s, updateScaleError: {code: 409, reason: Conflict, message: changed}}
- {at: 15060ms, editHpa: {spec: {maxReplicas: 5}}}
";
    let (_folder, file) = folder(timeline);
    let overlaps = ") overlaps the reconcile that began at 15.04s";
    let run = kube_lockstep(&["run", "--engine", "model", text(&file)]).assert().code(3);
    assert!(stdout(&run).contains(overlaps), "{}", stdout(&run));
    let predict = kube_lockstep(&["predict", text(&file)]).assert().code(3);
    assert!(stderr(&predict).contains("the action at 15.06s (line "), "{}", stderr(&predict));
    assert!(stderr(&predict).contains(overlaps), "{}", stderr(&predict));
    // The ticks before the action are shown.
    assert!(stdout(&predict).contains("tick"), "{}", stdout(&predict));
    kube_lockstep(&["explain", text(&file), "--tick", "1"]).assert().code(0);
    let after = kube_lockstep(&["explain", text(&file), "--tick", "5"]).assert().code(2);
    assert!(stderr(&after).contains(overlaps), "{}", stderr(&after));
}

#[test]
fn an_hpa_can_be_selected_by_name() {
    let id = "several/more-hpas-than-workers";
    let explain = |hpa: &str| {
        let explain = kube_lockstep(&["explain", id, "--tick", "1", "--hpa", hpa]);
        { explain }.assert().code(0)
    };
    let (first, second) = (explain("web"), explain("h1"));
    assert_ne!(stdout(&first), stdout(&second));
    let misspelt = kube_lockstep(&["explain", id, "--tick", "1", "--hpa", "wep"]).assert().code(2);
    assert!(stderr(&misspelt).contains("there is no HPA wep"), "{}", stderr(&misspelt));
    assert!(stderr(&misspelt).contains("h1"), "{}", stderr(&misspelt));
}

#[test]
fn the_readme_shows_the_output_of_a_run() {
    let run = kube_lockstep(&["run", "--engine", "recorded"]).assert().code(0);
    let shown = stdout(&run).replace("recorded", "upstream");
    let before_time = |line| str::split(line, " in ").next().unwrap_or_default();
    let current = [shown.lines().next(), shown.lines().last()].map(|it| before_time(it.unwrap()));
    // Lines that differ in numbers only.
    let words = |line: &str| line.replace(|c: char| c.is_ascii_digit() || c == ',', "");
    let readme = fs::read_to_string(support::repository().join("README.md")).expect("a README");
    let mut found = 0;
    let lines = readme.lines().map(|line| {
        let start = before_time(line);
        let same = current.iter().find(|current| words(current) == words(start));
        found += usize::from(same.is_some());
        format!("{}{}\n", same.unwrap_or(&start), &line[start.len()..])
    });
    let written: String = lines.collect();
    assert_eq!(found, 2, "README does not have these lines: {current:#?}");
    support::assert_generated("README.md", &written);
}

#[test]
fn metrics_without_any_value_are_reported() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let file = folder.path().join("metrics.yaml");
    let text_of = |labels: &str| {
        format!(
            "apiVersion: kube-lockstep.dev/v1alpha1
kind: Scenario
requirement: R.
hpa:
  apiVersion: autoscaling/v2
  kind: HorizontalPodAutoscaler
  metadata: {{name: web}}
  spec:
    scaleTargetRef: {{apiVersion: apps/v1, kind: Deployment, name: web}}
    maxReplicas: 5
    metrics:
      - {{type: Resource, resource: {{name: cpu, target: {{type: Utilization, averageUtilization: 5}}}}}}
      - type: External
        external:
          metric: {{name: queue, selector: {{matchLabels: {{queue: orders}}}}}}
          target: {{type: AverageValue, averageValue: 10}}
workload: {{replicas: 2}}
metrics:
  resource: [{{name: cpu, perPod: 100m}}]
  external: [{{name: queue, series: [{{labels: {{queue: {labels}}}, value: 10}}]}}]
until: 1m
"
        )
    };
    fs::write(&file, text_of("order")).expect("it can be written");
    let predict = kube_lockstep(&["predict", text(&file)]).assert().code(0);
    let shown = stdout(&predict).split_whitespace().collect::<Vec<_>>().join(" ");
    let selects = "the HPA selects series of `queue` with queue=orders, which matches none; the \
                   series have the labels {queue: order}";
    assert!(shown.contains(selects), "{shown}");
    assert!(shown.contains("a utilization of `cpu`, but no container requests it"), "{shown}");
    fs::write(&file, text_of("orders")).expect("it can be written");
    let predict = kube_lockstep(&["predict", text(&file)]).assert().code(0);
    assert!(!stdout(&predict).contains("the HPA selects"), "{}", stdout(&predict));
}

/// The current context may have been set for another purpose.
#[test]
#[cfg_attr(not(feature = "clusters"), ignore = "requires --features clusters")]
fn an_existing_cluster_requires_a_named_context() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let file = folder.path().join("config");
    let config = "
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}]
users: [{name: u, user: {token: t}}]
contexts:
  - {name: staging, context: {cluster: c, user: u}}
  - {name: production, context: {cluster: c, user: u}}
current-context: production
";
    fs::write(&file, config).expect("a file can be written");
    let run = |arguments: &[&str], code: i32| {
        let common = ["run", "tolerance", "--kubeconfig", text(&file)];
        stderr(&kube_lockstep(&[&common, arguments].concat()).assert().code(code))
    };
    let unnamed = run(&["--engine", "kubeconfig"], 2);
    assert!(
        unnamed.contains("hint: --context NAME; the contexts are staging, production"),
        "{unnamed}"
    );
    let wrong = run(&["--engine", "kubeconfig", "--context", "test"], 2);
    assert!(
        wrong.contains("no context \"test\"") && wrong.contains("the contexts are staging"),
        "{wrong}"
    );
    let other = run(&["--engine", "embedded", "--context", "staging"], 2);
    assert!(other.contains("--context requires --engine kubeconfig"), "{other}");
    let fast = run(&["--engine", "kubeconfig", "--context", "staging", "--speed", "2"], 2);
    assert!(fast.contains("it is derived from the cluster's sync period"), "{fast}");
    for flag in [["--speed", "3"], ["--longest", "10m"]] {
        let virtual_time = ["run", "tolerance", "--engine", "recorded", flag[0], flag[1]];
        let errors = stderr(&kube_lockstep(&virtual_time).assert().code(2));
        let message = format!("{} requires an engine with a real cluster", flag[0]);
        assert!(errors.contains(&message), "{errors}");
    }
    let unreachable = run(&["--engine", "kubeconfig", "--context", "staging", "--yes"], 3);
    assert!(unreachable.contains("the kubeconfig engine failed: "), "{unreachable}");
    let none = ["cluster", "clean", "--kubeconfig", text(&file)];
    let none = stderr(&kube_lockstep(&none).assert().code(2));
    assert!(none.contains("the contexts are staging, production"), "{none}");
}

#[test]
fn cluster_list_without_control_planes_succeeds() {
    let cache = tempfile::tempdir().expect("a folder can be made");
    let mut command = kube_lockstep(&["cluster", "list"]);
    let list = command.env("KUBE_LOCKSTEP_CACHE", cache.path()).assert().code(0);
    assert_eq!(stdout(&list), "");
    assert_eq!(stderr(&list), "no control plane is running\n");
}

/// The command line is the same as with the feature; only the engines are missing.
#[cfg(not(feature = "clusters"))]
#[test]
fn a_build_without_clusters_names_the_feature_to_build_with() {
    for arguments in [
        &["run", "tolerance", "--engine", "embedded", "--speed", "30"][..],
        &["run", "tolerance", "--engine", "kubeconfig", "--context", "staging"],
        &["cluster", "start"],
        &["cluster", "clean", "--context", "staging"],
        &["metrics-server", "--remove"],
        &["prune", "--images"],
    ] {
        let cache = tempfile::tempdir().expect("a folder can be made");
        let mut command = kube_lockstep(arguments);
        let errors = stderr(&command.env("KUBE_LOCKSTEP_CACHE", cache.path()).assert().code(3));
        assert!(errors.contains("requires a build with `--features clusters`"), "{errors}");
        assert!(errors.contains("`cargo install --path . --features clusters`"), "{errors}");
    }
}
