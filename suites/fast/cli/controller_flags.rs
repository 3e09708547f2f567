//! Flags of the kube-controller-manager for predictions from manifests.

use serde_json::Value;

use super::{folder, json, kube_lockstep, stderr, stdout, text};

const PHP_APACHE: [&str; 2] = ["-f", "examples/php-apache"];

/// The ticks of a prediction of the example with four replicas, as time and replicas.
fn ticks(options: &[&str]) -> Vec<(String, i64)> {
    let mut run = kube_lockstep(&["predict", "--format", "json", "--replicas", "4"]);
    let run = run.args(PHP_APACHE).args(options).assert().code(0);
    let ticks = json(&run).into_iter().filter(|line| line.get("tick").is_some());
    let tick = |tick: Value| {
        let at = tick["at"].as_str().expect("a time").to_owned();
        (at, tick["replicasAfter"].as_i64().expect("replicas"))
    };
    ticks.map(tick).collect()
}

/// The time of the first tick after which the target has other replicas than four.
fn first_change(options: &[&str]) -> Option<(String, i64)> {
    ticks(options).into_iter().find(|(_, replicas)| *replicas != 4)
}

/// Up to 1.36, the first reconcile is after one sync period.
#[test]
fn the_sync_period_is_the_time_between_reconciles() {
    let options = ["--release", "1.36", "--load", "cpu=50%", "--until", "90s"];
    let times = |flag: &[&str]| -> Vec<String> {
        ticks(&[&options, flag].concat()).into_iter().map(|(at, _)| at).collect()
    };
    assert_eq!(times(&[])[..3], ["15s", "30s", "45s"]);
    for flag in ["--horizontal-pod-autoscaler-sync-period", "--sync-period"] {
        assert_eq!(times(&[flag, "30s"]), ["30s", "1m", "1m30s"]);
    }
}

/// Four pods use 55% at a target of 50%: a ratio of 1.1 and, rounded up, 4.4 replicas.
#[test]
fn the_tolerance_decides_whether_a_ratio_has_an_effect() {
    let flag = "--horizontal-pod-autoscaler-tolerance";
    let with = |options: &[&str]| first_change(&[&["--load", "cpu=55%"], options].concat());
    assert_eq!(with(&[]), None);
    assert_eq!(with(&[flag, "0.05"]), Some(("0s".to_owned(), 5)));
}

/// The usage falls at 1m, so the last recommendation of four replicas is at 45s. It counts until
/// its age exceeds the window: at the first reconcile after 5m45s, or after 1m45s.
#[test]
fn the_window_holds_replicas() {
    let load = ["--load", "cpu=total:steps(0s:0.4,1m:0.1)"];
    let flag = "--horizontal-pod-autoscaler-downscale-stabilization";
    assert_eq!(first_change(&load), Some(("6m".to_owned(), 1)));
    assert_eq!(first_change(&[&load[..], &[flag, "1m"]].concat()), Some(("2m".to_owned(), 1)));
}

/// Each flag, with a value that is not the default.
const ALL: [[&str; 2]; 8] = [
    ["horizontal-pod-autoscaler-sync-period", "20s"],
    ["horizontal-pod-autoscaler-downscale-stabilization", "2m"],
    ["horizontal-pod-autoscaler-tolerance", "0.2"],
    ["horizontal-pod-autoscaler-cpu-initialization-period", "1m"],
    ["horizontal-pod-autoscaler-initial-readiness-delay", "10s"],
    ["horizontal-pod-autoscaler-upscale-delay", "1m"],
    ["horizontal-pod-autoscaler-downscale-delay", "2m"],
    ["concurrent-horizontal-pod-autoscaler-syncs", "1"],
];

/// The options of all flags.
fn all() -> Vec<String> {
    ALL.iter().flat_map(|[flag, value]| [format!("--{flag}"), (*value).to_owned()]).collect()
}

/// `init` writes the flags as the field `controller.flags`, and the file has the same prediction.
#[test]
fn init_writes_the_flags() {
    let load = ["--load", "cpu=total:steps(0s:0.1,1m:0.9,3m:0.2)"];
    let written = kube_lockstep(&["init"]).args(PHP_APACHE).args(load).args(all()).assert();
    let written = stdout(&written.code(0));
    for [flag, value] in ALL {
        assert!(written.contains(&format!("    {flag}: {value}\n")), "{flag}\n{written}");
    }
    let (_folder, file) = super::file_of(&written);
    let lines = |options: &[&str]| {
        let mut command = kube_lockstep(&["predict", "--release", "1.30", "--format", "json"]);
        let mut lines = json(&command.args(options).assert().code(0));
        lines.pop();
        lines
    };
    let flags = all();
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let from_file = lines(&[text(&file)]);
    assert_eq!(from_file, lines(&[&PHP_APACHE, &load[..], &flags].concat()));
    assert_ne!(from_file, lines(&[&PHP_APACHE, &load[..]].concat()));
}

/// A value has the same error as in a scenario file.
#[test]
fn values_are_checked_as_in_a_scenario_file() {
    let period = "horizontal-pod-autoscaler-sync-period";
    let tolerance = "horizontal-pod-autoscaler-tolerance";
    let window = "horizontal-pod-autoscaler-downscale-stabilization";
    for (flag, value, expected) in [
        (period, "50ms", "a sync period of 50ms is too short: the minimum is 100ms"),
        (period, "15", "expected a duration such as 15s, 1m30s or 500ms, found 15"),
        (tolerance, "-0.1", "expected a tolerance of 0 or more, found -0.1"),
        (tolerance, "10%", "expected a number, found the string \"10%\""),
        (tolerance, "high", "expected a number, found the string \"high\""),
        ("concurrent-horizontal-pod-autoscaler-syncs", "0", "expected at least 1 worker, found 0"),
        (window, "-1m", "expected a duration of 0s or more, found -1m"),
        (window, "''", "the duration is empty"),
    ] {
        let (_folder, file) = folder(&format!("controller: {{flags: {{{flag}: {value}}}}}\n"));
        let from_file = stderr(&kube_lockstep(&["predict", text(&file)]).assert().code(2));
        let option = format!("--{flag}={}", value.trim_matches('\''));
        for command in ["predict", "compare", "init"] {
            let run = kube_lockstep(&[command, &option]).args(PHP_APACHE).assert().code(2);
            let shown = stderr(&run);
            assert!(shown.contains(expected) && from_file.contains(expected), "{shown}{from_file}");
            assert!(shown.contains(&format!("--{flag}")), "{shown}");
        }
    }
}

/// A setting changes the HPA only: the flags apply to all rows.
#[test]
fn compare_uses_the_flags_for_all_settings() {
    let set = ["--set", "spec.maxReplicas=9", "--format", "json", "--replicas", "4"];
    let changes = |flag: &[&str]| -> Vec<Value> {
        let load = ["--load", "cpu=55%", "--until", "10s"];
        let mut run = kube_lockstep(&["compare"]);
        let run = run.args(PHP_APACHE).args(load).args(set).args(flag).assert().code(0);
        json(&run).into_iter().map(|row| row["peakReplicas"].clone()).collect()
    };
    assert_eq!(changes(&[]), [4, 4]);
    // The only reconcile is at 0s.
    assert_eq!(changes(&["--horizontal-pod-autoscaler-tolerance", "0.05"]), [5, 5]);
}

/// The controller of a release without the flag would not start.
#[test]
fn a_release_may_not_have_the_flag() {
    let flag = ["--horizontal-pod-autoscaler-downscale-stabilization", "1m"];
    let old = ["--load", "cpu=55%", "--release", "1.11"];
    for command in [&["predict"][..], &["explain", "--tick", "1"]] {
        let run = kube_lockstep(command).args(PHP_APACHE).args(old).args(flag).assert().code(2);
        let shown = stderr(&run);
        assert!(shown.contains(&format!("error: 1.11 has no flag {}\n", flag[0])), "{shown}");
        assert!(shown.contains("hint: leave the flag out, or choose another release"), "{shown}");
    }
    let options = ["--load", "cpu=55%", "--release", "1.11,1.12"];
    let run = kube_lockstep(&["compare"]).args(PHP_APACHE).args(options).args(flag).assert();
    let shown = stdout(&run.code(0));
    let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(shown.contains("1.11") && shown.contains(&flag[0][2..]), "{shown}");
}

#[test]
fn the_flags_are_for_hpas_in_manifests() {
    let (_folder, file) = folder("");
    let flag = ["--horizontal-pod-autoscaler-tolerance", "0.2"];
    for command in ["predict", "compare"] {
        let run = kube_lockstep(&[command, text(&file)]).args(flag).assert().code(2);
        let shown = stderr(&run);
        assert!(shown.contains(&format!("{} requires manifests", flag[0])), "{shown}");
        assert!(shown.contains("a scenario file contains this value: edit it"), "{shown}");
    }
    let vpa = ["predict", "-f", "examples/hamster", "--load", "cpu=total:500m"];
    let shown = stderr(&kube_lockstep(&vpa).args(flag).assert().code(2));
    assert!(shown.contains(&format!("{} is for HPAs", flag[0])), "{shown}");
}
