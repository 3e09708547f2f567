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

#[test]
fn noise_gives_the_same_figures_in_each_comparison() {
    let load = ["--load", "cpu=total:noise(20%,seed=7,sine(mean=500m,amplitude=300m,period=10m))"];
    let compare = |arguments: &[&str]| {
        let example = ["compare", "-f", "examples/php-apache"];
        kube_lockstep(&example).args(load).args(arguments).assert()
    };
    let set = ["--runs", "4", "--set", "75 %:spec.metrics.0.resource.target.averageUtilization=75"];
    let shown = stdout(&compare(&set).code(0));
    let rows: Vec<&str> = shown.lines().collect();
    assert!(rows[1].starts_with("as it is: mean  ") && rows[2].starts_with("  least  "), "{shown}");
    assert!(rows[3].starts_with("  most  ") && rows[4].starts_with("75 %: mean  "), "{shown}");
    assert_eq!(shown, stdout(&compare(&set).code(0)), "the noise is the same");
    let lines = json(&compare(&["--runs", "4", "--format", "json"]).code(0));
    let hours: Vec<f64> = lines.iter().filter_map(|line| line["podHours"].as_f64()).collect();
    assert_eq!((hours.len(), &lines[3]["run"]), (4, &4.into()), "{lines:?}");
    assert!(hours.windows(2).any(|pair| pair[0] != pair[1]), "the runs differ: {hours:?}");
    let once = json(&compare(&["--format", "json"]).code(0));
    assert_eq!(once[0]["podHours"], lines[0]["podHours"], "the first run is the load as it is");
    let errors = stderr(&kube_lockstep(&EXAMPLE).args(["--runs", "3"]).assert().code(2));
    assert!(errors.contains("no load has noise"), "{errors}");
}

#[test]
fn a_setting_names_one_of_several_hpas() {
    let scenario = "several/two-hpas-of-one-deployment-are-both-stopped";
    let compare = |set: &str| kube_lockstep(&["compare", scenario, "--set", set]).assert();
    let errors = stderr(&compare("spec.maxReplicas=3").code(2));
    assert!(errors.contains("2 HPAs are predicted together: begin the path with"), "{errors}");
    let errors = stderr(&compare("third/spec.maxReplicas=3").code(2));
    assert!(errors.contains("no such HPA") && errors.contains("the HPAs are "), "{errors}");
    let lines = stdout(&compare("few:second/spec.maxReplicas=3").code(0));
    assert!(lines.contains("few  "), "{lines}");
}
