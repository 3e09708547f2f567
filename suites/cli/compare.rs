//! The comparison of settings.

use super::{json, kube_lockstep, stderr, stdout, text};

const EXAMPLE: [&str; 5] = [
    "compare",
    "-f",
    "examples/php-apache",
    "--load",
    "cpu=total:csv(examples/php-apache/load.csv,value=cores)",
];

#[test]
fn settings_are_compared_on_the_same_load() {
    let higher = "75 %:spec.metrics.0.resource.target.averageUtilization=75";
    let window = "spec.behavior.scaleDown.stabilizationWindowSeconds=0,spec.maxReplicas=8";
    let sets = ["--set", higher, "--set", window];
    let shown = stdout(&kube_lockstep(&EXAMPLE).args(sets).assert().code(0));
    let rows: Vec<&str> = shown.lines().collect();
    assert!(rows[0].starts_with("setting  ") && rows[0].contains("pod-hours  missing"), "{shown}");
    assert!(rows[1].starts_with("as it is  ") && rows[2].starts_with("75 %  "), "{shown}");
    assert!(rows[3].starts_with(window), "{shown}");
    let lines = json(&kube_lockstep(&EXAMPLE).args(sets).args(["--format", "json"]).assert());
    let hours = |row: usize| lines[row]["podHours"].as_f64().expect("a number");
    assert!(hours(1) < hours(0), "a higher target costs less: {lines:?}");
    assert_eq!(lines[2]["mostReplicas"], 8);
    assert!(lines[2]["changes"].as_u64() > lines[0]["changes"].as_u64(), "{lines:?}");
    assert_eq!(lines[0]["failedSeconds"], 60.0, "the recording has a gap of one minute");
}

#[test]
fn releases_and_scenarios_are_compared() {
    let releases = ["--release", "1.22,1.37"];
    let shown = stdout(&kube_lockstep(&EXAMPLE).args(releases).assert().code(0));
    assert_eq!(shown.lines().count(), 3, "{shown}");
    assert!(shown.contains("as it is  1.22 "), "{shown}");
    let (folder, file) = super::folder("");
    let other = folder.path().join("other.yaml");
    std::fs::copy(&file, &other).expect("a file can be copied");
    let set = ["--set", "few:spec.maxReplicas=3"];
    let run = kube_lockstep(&["compare", text(&file), text(&other)]).args(set).assert().code(0);
    let shown = stdout(&run);
    assert!(shown.contains("other.yaml: as it is") && shown.contains("other.yaml: few"), "{shown}");
}

#[test]
fn invalid_settings_exit_with_2() {
    for (set, expected) in [
        ("maxReplicas=3", "the path begins with `spec.`"),
        ("spec.maxReplicas", "expected PATH=VALUE"),
        ("spec.maxReplica=3", "unknown field `maxReplica`"),
        ("spec.maxReplicas=0", "the API server rejects this HPA"),
        ("spec.metrics.7.type=Pods", "there is no element 7"),
        ("spec.maxReplicas.x=3", "`x` can't be set there"),
    ] {
        let run = kube_lockstep(&EXAMPLE).args(["--set", set]).assert().code(2);
        assert!(stderr(&run).contains(expected), "{set}: {}", stderr(&run));
        assert_eq!(stdout(&run), "");
    }
}
