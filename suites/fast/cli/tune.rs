//! The search for settings, and the prices and capacities that it shares with `compare`.

use super::{json, kube_lockstep, stderr, stdout, text};

const EXAMPLE: [&str; 6] = [
    "tune",
    "-f",
    "examples/php-apache",
    "--load",
    "cpu=total:csv(examples/php-apache/load.csv,value=cores)",
    "--no-confirm",
];

const TARGET: &str = "spec.metrics.0.resource.target.averageUtilization=50..70:10";
const WINDOW: &str = "spec.behavior.scaleDown.stabilizationWindowSeconds=60,300";

#[test]
fn the_best_setting_of_a_grid_is_a_patch_and_a_manifest() {
    let folder = tempfile::tempdir().expect("a folder");
    let (manifest, page) = (folder.path().join("hpa.yaml"), folder.path().join("page.html"));
    let grid = ["--vary", TARGET, "--vary", WINDOW, "--objective", "missing<=1.5"];
    let files = ["--output", text(&manifest), "--html", text(&page)];
    let run = kube_lockstep(&EXAMPLE).args(grid).args(files).assert().code(0);
    let shown = stdout(&run);
    let best = shown.lines().find(|line| line.starts_with("best  ")).expect("the best setting");
    let hours = |line: &str| {
        let cells: Vec<&str> = line.split_whitespace().collect();
        cells[1].parse::<f64>().expect("pod-hours")
    };
    let current = shown.lines().find(|line| line.starts_with("current  ")).expect("a row");
    assert!(hours(best) < hours(current), "{shown}");
    assert!(shown.starts_with("The best setting changes 1 field: pod-hours "), "{shown}");
    assert!(shown.contains("Searched: all 9 settings of the grid."), "{shown}");
    let patch = r#"kubectl patch hpa php-apache --type merge -p '{"spec":{"behavior":{"scaleDown":{"stabilizationWindowSeconds":60}}}}'"#;
    assert!(shown.contains(patch), "{shown}");
    let manifest_text = std::fs::read_to_string(&manifest).expect("a manifest");
    assert!(manifest_text.contains("stabilizationWindowSeconds: 60"), "{manifest_text}");
    assert!(std::fs::read_to_string(&page).expect("a page").contains("<polyline"), "no chart");
    // The written manifest is valid, and has the predicted figures.
    let compare = ["compare", "-f", text(&manifest), "-f", "examples/php-apache/deployment.yaml"];
    let load = &EXAMPLE[3..5];
    let again = json(&kube_lockstep(&compare).args(load).args(["--format=json"]).assert().code(0));
    let lines = json(&kube_lockstep(&EXAMPLE).args(grid).args(["--format=json"]).assert().code(0));
    assert_eq!(lines[0]["best"]["podHours"], again[0]["podHours"]);
    assert_eq!(lines[0]["best"]["daysKept"], 1);
    let path = "spec.behavior.scaleDown.stabilizationWindowSeconds";
    assert_eq!(lines[0]["best"]["changedFields"][0]["path"], path);
    assert!(lines[0]["best"]["changes"].is_number(), "{}", lines[0]["best"]);
    assert_eq!((&lines[0]["evaluated"], &lines[0]["isExhaustive"]), (&9.into(), &true.into()));
}

#[test]
fn an_objective_that_no_setting_keeps_ends_with_1() {
    let grid = ["--vary", "spec.maxReplicas=3..5", "--objective", "missing<=0,peak<=3"];
    let shown = stdout(&kube_lockstep(&EXAMPLE).args(grid).assert().code(1));
    assert!(shown.starts_with("No setting meets the objective missing<=0,peak<=3."), "{shown}");
    assert!(!shown.contains("kubectl patch"), "{shown}");
}

/// Two HPAs of one Deployment stop each other.
#[test]
fn hpas_that_the_controller_stops_end_with_1() {
    let folder = tempfile::tempdir().expect("a folder");
    let other = folder.path().join("other.yaml");
    let hpa = std::fs::read_to_string("examples/php-apache/hpa.yaml").expect("a manifest");
    std::fs::write(&other, hpa.replacen("name: php-apache", "name: other", 1)).expect("a file");
    let files = ["-f", text(&other), "--settings", "20", "--load", "cpu=95%", "--no-confirm"];
    let run = kube_lockstep(&EXAMPLE[..3]).args(files).assert().code(1);
    let shown = stdout(&run);
    assert!(shown.starts_with("The controller stops the HPAs of this workload"), "{shown}");
    assert!(!shown.contains("kubectl patch"), "{shown}");
}

#[test]
fn mistakes_are_explained() {
    let error =
        |arguments: &[&str]| stderr(&kube_lockstep(&EXAMPLE).args(arguments).assert().code(2));
    for (arguments, message) in [
        (["--objective", "mising<=1"], "there is no figure `mising`; did you mean `missing`?"),
        (["--objective", "cost<=1"], "the objective limits `cost`, which requires prices"),
        (["--vary", "maxReplicas=3"], "the path must begin with `spec.`"),
        (["--vary", "web/spec.maxReplicas=3"], "--vary spec.maxReplicas: there is no HPA `web`"),
        (["--vary", "vpa/spec.a=3"], "--vary vpa/spec.a: there is no VPA"),
        (["--objective", "short<=1"], "the objective limits `short`, which requires a VPA"),
        (["--vary", "spec.metrics.3.type=Pods"], "there is no element 3"),
        (["--capacity", "memory=90%"], "--capacity: no HPA scales on memory"),
        (["--capacity", "cpu=2"], "the capacity of cpu must be in percent of the request"),
        (["--price", "gpu=3"], "expected a price of cpu, memory or pod"),
        (["--price", "memory=3"], "the pods have no requests with a price"),
        (["--vary", "spec.maxReplicass=10,20"], "unknown field \"spec.maxReplicass\""),
        (["--runs", "3"], "no load has noise, so all runs are the same"),
        (["--minimize", "latency"], "there is no figure `latency`; the figures are pod-hours, "),
    ] {
        let error = error(&arguments).replace("\n  ", " ").replace("\n      ", " ");
        assert!(error.contains(message), "{arguments:?}: {error}");
    }
    let error = stderr(&kube_lockstep(&VPA[..7]).assert().code(2)).replace("\n  ", " ");
    assert!(error.contains("the cost requires prices"), "{error}");
    let vary = ["--vary", "spec.updatePolicy.updateMod=\"Off\""];
    let error = stderr(&kube_lockstep(&VPA).args(vary).assert().code(2));
    assert!(error.contains("unknown field \"spec.updatePolicy.updateMod\""), "{error}");
}

/// A VPA without an HPA.
const VPA: [&str; 9] = [
    "tune",
    "-f",
    "examples/hamster",
    "--load=cpu=noise(40%,300m)",
    "--load=memory=sine(mean=150Mi,amplitude=80Mi,period=6h)",
    "--until=3h",
    "--no-confirm",
    "--price=cpu=0.03,memory=0.004",
    "--objective=short<=4",
];

#[test]
fn the_best_setting_of_a_vpa_has_a_patch_and_flags() {
    let grid = [
        "--vary=spec.resourcePolicy.containerPolicies.0.maxAllowed.memory=220Mi,300Mi",
        "--vary=recommender.flags.recommendation-margin-fraction=0.05,0.15",
    ];
    let shown = stdout(&kube_lockstep(&VPA).args(grid).assert().code(0));
    assert!(shown.starts_with("The best setting changes 2 fields: cost "), "{shown}");
    assert!(shown.contains("Searched: all 9 settings of the grid."), "{shown}");
    assert!(shown.contains("kubectl patch vpa hamster-vpa --type merge"), "{shown}");
    let flag = "# flag of the recommender: --recommendation-margin-fraction=0.05";
    assert!(shown.contains(flag), "{shown}");
    let lines = json(&kube_lockstep(&VPA).args(grid).arg("--format=json").assert().code(0));
    assert_eq!(
        (&lines[0]["vpa"], &lines[0]["release"]),
        (&"hamster-vpa".into(), &"vpa-1.8".into())
    );
    assert_eq!(lines[0].get("hpa"), None);
    assert_eq!(lines[0]["patches"][0]["vpa"], "hamster-vpa");
    // `compare` has the same figures.
    let compare = ["compare", VPA[1], VPA[2], VPA[3], VPA[4], VPA[5], VPA[7], "--format=json"];
    let sets = lines[0]["best"]["changedFields"].as_array().expect("changes").iter();
    let sets: Vec<String> = sets
        .map(|change| format!("{}={}", change["path"].as_str().expect("a path"), change["to"]))
        .collect();
    let set = format!("--set={}", sets.join(","));
    let rows = json(&kube_lockstep(&compare).arg(set).assert().code(0));
    for field in ["cost", "cpu", "memory", "shortPodHours", "evictions"] {
        assert_eq!(rows[1][field], lines[0]["best"][field], "{field}");
    }
}

#[test]
fn prices_and_capacities_are_those_of_compare() {
    let compare = |arguments: &[&str]| {
        let example = ["compare", EXAMPLE[1], EXAMPLE[2], EXAMPLE[3], EXAMPLE[4]];
        json(&kube_lockstep(&example).args(arguments).args(["--format=json"]).assert().code(0))
    };
    let plain = compare(&[]);
    assert_eq!(plain[0].get("cost"), None);
    let priced = compare(&["--price", "cpu=0.03,pod=0.001"]);
    // Each pod requests 200m.
    let hours = plain[0]["podHours"].as_f64().expect("a number");
    let cost = priced[0]["cost"].as_f64().expect("a cost");
    assert!((cost - hours * (0.2 * 0.03 + 0.001)).abs() < 1e-9, "{cost}");
    let missing = |lines: &[serde_json::Value]| lines[0]["missingPodHours"].as_f64();
    assert!(missing(&compare(&["--capacity", "cpu=90%"])) < missing(&plain));
    let shown = stdout(
        &kube_lockstep(&["compare", EXAMPLE[1], EXAMPLE[2], EXAMPLE[3], EXAMPLE[4]])
            .args(["--price", "cpu=0.03"])
            .assert()
            .code(0),
    );
    assert!(shown.starts_with("setting  pod-hours    cost  missing"), "{shown}");
}

#[test]
fn a_default_that_contradicts_the_manifest_is_not_an_error() {
    let tune = ["tune", VPA[1], VPA[2], "--load=cpu=2", "--load=memory=100Mi", "--until=1h"];
    let more = ["--price=cpu=1,memory=1", "--settings=12", "--no-confirm"];
    let shown = stdout(&kube_lockstep(&tune).args(more).assert().code(0));
    let words = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("invalid: the VPA's admission webhook rejects this VPA"), "{shown}");
}
