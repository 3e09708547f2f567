//! Scenarios with objects of any kind: programs that run them, and commands that refuse them.

use std::path::{Path, PathBuf};

use rstest::rstest;

use super::{file_of, json, kube_lockstep, program, stderr, stdout, text};

/// The controller writes a ConfigMap at the start.
const SCENARIO: &str = "\
apiVersion: kube-lockstep.dev/v1alpha1
kind: Scenario
requirement: The controller writes its settings.
objects: []
until: 1m
expect:
  - {at: 0s, object: {apiVersion: v1, kind: ConfigMap, name: settings}, fields: {data.size: {atMost: 3}}}
  - {rests: {writes: 1}}
";

/// An engine whose controller writes a ConfigMap with this size at t=0.
fn engine(folder: &Path, size: u32) -> PathBuf {
    let path = folder.join(format!("writes-{size}"));
    let write = format!(
        r#"{{"at":0,"write":{{"verb":"create","controller":"mine","apiVersion":"v1","kind":"ConfigMap","resource":"configmaps","namespace":"default","name":"settings","changed":true,"object":{{"metadata":{{"name":"settings"}},"data":{{"size":{size}}}}}}}}}"#
    );
    let script = format!(
        r#"
echo '{{"hello":{{"protocol":2,"engine":"mine","release":"v1.37.0","supports":["objects","later"]}}}}'
exec sed -u -n \
  -e 's/^{{"open".*"objects":\[\].*/{{"opened":{{"epoch":"2000-01-01T00:01:00Z"}}}}/p;t' \
  -e 's/^{{"step".*"until":0}}}}/{{"stepped":{{"now":0,"api":[],"log":[{write}]}}}}/p;t' \
  -e 's/^{{"step".*"until":\([0-9]*\).*/{{"stepped":{{"now":\1,"api":[],"log":[]}}}}/p;t' \
  -e 's/.*/{{"closed":{{}}}}/p'"#
    );
    program(&path, &script);
    path
}

#[test]
fn the_objects_that_a_controller_writes_are_checked() {
    let (folder, file) = file_of(SCENARIO);
    let run = |size: u32| {
        let engine = engine(folder.path(), size);
        let options = ["--program", text(&engine), "--compare", "expectations"];
        kube_lockstep(&["run", text(&file)]).args(options).assert()
    };
    let shown = stdout(&run(3).code(0));
    assert!(shown.contains("1 scenario on writes-3 1.37: 1 conforms"), "{shown}");
    let shown = stdout(&run(4).code(1));
    for part in [
        "doubles.yaml:7: t=0s: ConfigMap settings: data.size: expected at most 3, was 4",
        "  1 write from t=0s:\n    t=0s mine: create ConfigMap default/settings\n",
    ] {
        let joined = shown.split_whitespace().collect::<Vec<_>>().join(" ");
        let part = part.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(joined.contains(&part), "{part}\n{shown}");
    }
}

#[test]
fn a_run_is_compared_with_recorded_traces() {
    let (folder, file) = file_of(SCENARIO);
    let traces = folder.path().join("traces");
    let run = |size: u32, option: &str| {
        let engine = engine(folder.path(), size);
        let options = ["--program", text(&engine), "--compare", "expectations"];
        let traces = [option, text(&traces)];
        kube_lockstep(&["run", text(&file), "--format", "json"]).args(options).args(traces).assert()
    };
    let missing = json(&run(3, "--against").code(3));
    let why = missing[0]["why"].as_str().unwrap_or_default();
    assert!(why.contains("record it with --record"), "{why}");
    run(3, "--record").code(0);
    run(3, "--against").code(0);
    let changed = json(&run(2, "--against").code(1));
    assert_eq!(
        changed[0]["unmet"][0]["what"],
        "write 1 is not as recorded: mine: create ConfigMap default/settings at t=0s: data.size: \
         recorded 3, now 2"
    );
    assert_eq!(changed[0]["writes"][0]["kind"], "ConfigMap");
}

#[test]
fn engines_that_do_not_support_objects_skip_them() {
    let (folder, file) = file_of(SCENARIO);
    let engine = folder.path().join("idle");
    program(&engine, super::IDLE);
    let options = ["--program", text(&engine), "--compare", "expectations"];
    let run = kube_lockstep(&["run", text(&file)]).args(options).assert().code(4);
    let shown = stdout(&run);
    assert!(shown.contains("the engine does not support `objects`"), "{shown}");
    for engine in ["model", "recorded"] {
        let run = kube_lockstep(&["run", "--engine", engine, text(&file)]).assert().code(4);
        let shown = stdout(&run).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(shown.contains("no model predicts what a controller does"), "{shown}");
    }
}

#[rstest]
#[case(&["explain"], &["--tick", "1"])]
#[case(&["predict"], &[])]
#[case(&["compare"], &["--set", "spec.minReplicas=2"])]
#[case(&["check"], &[])]
#[case(&["tune"], &[])]
#[case(&["bisect"], &[])]
fn commands_that_require_a_model_refuse_objects(
    #[case] command: &[&str],
    #[case] options: &[&str],
) {
    let (_folder, file) = file_of(SCENARIO);
    let run = kube_lockstep(command).arg(&file).args(options).assert().code(2);
    let shown = stderr(&run);
    assert!(shown.contains("no model predicts what a controller does with `objects`"), "{shown}");
}

#[test]
fn traces_require_a_controller_without_a_model() {
    let (folder, file) = file_of(SCENARIO);
    let engine = engine(folder.path(), 3);
    let options = ["run", text(&file), "--program", text(&engine), "--record", "traces"];
    let run = kube_lockstep(&options).assert().code(2);
    assert!(stderr(&run).contains("--record requires --compare expectations"), "{}", stderr(&run));
}
