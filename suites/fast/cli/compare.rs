//! The comparison of settings.

use std::fs;

use serde_json::Value;

use super::{json, kube_lockstep, stderr, stdout, support, text};

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
    let run = kube_lockstep(&EXAMPLE).args(sets).assert().code(0);
    let (shown, notes) = (stdout(&run), stderr(&run));
    assert_eq!(notes.matches("no sample from 40m to 41m").count(), 1, "one note: {notes}");
    let rows: Vec<&str> = shown.lines().collect();
    assert!(rows[0].starts_with("setting  ") && rows[0].contains("pod-hours  missing"), "{shown}");
    assert!(rows[1].starts_with("current  ") && rows[2].starts_with("75 %  "), "{shown}");
    assert!(rows[3].starts_with(window), "{shown}");
    let lines = json(&kube_lockstep(&EXAMPLE).args(sets).args(["--format", "json"]).assert());
    let hours = |row: usize| lines[row]["podHours"].as_f64().expect("a number");
    assert!(hours(1) < hours(0), "a higher target costs less: {lines:?}");
    assert_eq!(lines[2]["peakReplicas"], 8);
    assert!(lines[2]["changes"].as_u64() > lines[0]["changes"].as_u64(), "{lines:?}");
    assert_eq!(lines[0]["failedSeconds"], 60.0, "the recording has a gap of one minute");
}

#[test]
fn releases_and_scenarios_are_compared() {
    let releases = ["--release", "1.22,1.37"];
    let shown = stdout(&kube_lockstep(&EXAMPLE).args(releases).assert().code(0));
    let rows: Vec<&str> = shown.lines().collect();
    assert!(
        rows[1].starts_with("current  1.22 ") && rows[2].starts_with("current  1.37 "),
        "{shown}"
    );
    let causes = rows.iter().position(|row| row.starts_with("missing by cause  release "));
    let rows = &rows[causes.expect("causes")..];
    assert!(rows[1].contains("  1.22 ") && rows[2].contains("  1.37 "), "{shown}");
    assert_eq!(rows[3], "");
    assert!(rows[4].starts_with("current: 1.22 and 1.37 first differ at "), "{shown}");
    let changes = |release: &str| {
        rows[5..].iter().filter(|row| row.starts_with(&format!("  {release}: "))).count()
    };
    assert_eq!((changes("1.22"), changes("1.37")), (1, 1), "{shown}");
    let (folder, file) = super::folder("");
    let other = folder.path().join("other.yaml");
    std::fs::copy(&file, &other).expect("a file can be copied");
    let set = ["--set", "few:spec.maxReplicas=3"];
    let run = kube_lockstep(&["compare", text(&file), text(&other)]).args(set).assert().code(0);
    let shown = stdout(&run);
    assert!(shown.contains("other.yaml: current") && shown.contains("other.yaml: few"), "{shown}");
}

#[test]
fn invalid_settings_exit_with_2() {
    for (set, expected) in [
        ("maxReplicas=3", "the path must begin with `spec.`"),
        ("spec.template.spec.containers.0.resources.requests.cpu=300m", "--request cpu=300m"),
        ("spec.metrics.cpu.type=Pods", "name the element by its index in place of `cpu`"),
        ("spec.maxReplicas", "expected PATH=VALUE"),
        ("spec.maxReplica=3", "unknown field \"spec.maxReplica\""),
        ("spec.maxReplicas=0", "the API server rejects this HPA"),
        ("spec.maxReplicas=-1", "spec.maxReplicas: Invalid value: -1"),
        ("spec.maxReplicas=-1,spec.minReplicas=-1", "spec.minReplicas: Invalid value: -1"),
        ("spec.metrics.7.type=Pods", "there is no element 7: the list has 1 element, and indices"),
        (
            "spec.metrics.1.resource.target.averageUtilization=75",
            "there is no metric 1: the HPA has 1 metric, and indices count from 0",
        ),
        ("spec.maxReplicas.x=3", "`x` can't be set there"),
        ("spec.scaleTargetRef.name=api", "all settings have the same target"),
        ("spec.maxReplicas=[3", "the value is not valid YAML"),
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
    assert!(rows[1].starts_with("current: mean  ") && rows[2].starts_with("  min  "), "{shown}");
    assert!(rows[3].starts_with("  max  ") && rows[4].starts_with("75 %: mean  "), "{shown}");
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

/// The factor from which the maximum applies is checked against predictions with this load.
#[test]
fn load_factors_show_at_which_load_a_limit_applies() {
    let wave = "sine(mean=500m,amplitude=300m,period=10m)";
    let compare = |load: &str, arguments: &[&str]| {
        let load = format!("cpu=total:{load}");
        let example = ["compare", "-f", "examples/php-apache", "--load", &load, "--format=json"];
        json(&kube_lockstep(&example).args(arguments).assert().code(0))
    };
    let lines = compare(wave, &["--load-factors", "0.1,1,2,8", "--set", "spec.maxReplicas=5"]);
    let [current @ .., limits, limits_of_five] = &lines[..] else { panic!("{lines:?}") };
    let shown: Vec<_> = current.iter().map(|row| (&row["setting"], &row["loadFactor"])).collect();
    assert_eq!(shown.len(), 8);
    assert_eq!(shown[2], (&"current".into(), &2.0.into()));
    assert_eq!(shown[5], (&"spec.maxReplicas=5".into(), &1.0.into()));
    let maximum = |limits: &Value| {
        let ranges = &limits["limitsApply"]["maximum"];
        assert_eq!((ranges.as_array().map(Vec::len), &ranges[0]["to"]), (Some(1), &Value::Null));
        ranges[0]["from"].as_f64().expect("a factor")
    };
    for (limits, most) in [(limits, 10), (limits_of_five, 5)] {
        let from = maximum(limits);
        let set = format!("spec.maxReplicas={}", most + 10);
        // With a higher maximum, the replicas exceed this one from that factor on.
        for (factor, exceeds) in [(from, true), (from * 0.98, false)] {
            let rows = compare(&format!("{factor} * {wave}"), &["--set", &set]);
            let peak = rows[1]["peakReplicas"].as_i64().expect("a number");
            assert_eq!(peak > most, exceeds, "{factor}: {peak} of {most}");
        }
    }
    let twice = compare(&format!("2 * {wave}"), &[]);
    assert_eq!(twice[0]["podHours"], current[2]["podHours"]);
    assert_eq!(limits["limitsApply"]["scaleDownRate"], serde_json::json!([]));
    let example = ["compare", "-f", "examples/php-apache", "--load", "cpu=total:1"];
    for (factors, expected) in [
        ("memory=1,2", "--load-factors: the metric `memory` has no load"),
        ("2", "expected several factors"),
    ] {
        let run = kube_lockstep(&example).args(["--load-factors", factors]).assert().code(2);
        assert!(stderr(&run).contains(expected), "{factors}: {}", stderr(&run));
    }
}

#[test]
fn a_setting_names_one_of_several_hpas() {
    let scenario = "several/two-hpas-of-one-deployment-are-both-stopped";
    let compare = |set: &str| kube_lockstep(&["compare", scenario, "--set", set]).assert();
    let errors = stderr(&compare("spec.maxReplicas=3").code(2));
    assert!(errors.contains("2 HPAs are predicted together: begin the path with"), "{errors}");
    let errors = stderr(&compare("third/spec.maxReplicas=3").code(2));
    assert!(errors.contains("no such HPA") && errors.contains("the HPAs are "), "{errors}");
    let errors = stderr(&compare("second/spec.maxReplicas=0").code(2));
    assert!(errors.contains("HPA second: ") && errors.contains("Invalid value: 0"), "{errors}");
    let lines = stdout(&compare("few:second/spec.maxReplicas=3").code(0));
    assert!(lines.contains("few  "), "{lines}");
}

/// A higher target alone costs less and reaches it more often: only a common target shows what it
/// misses.
#[test]
fn settings_are_measured_against_the_targets_of_the_first_one() {
    let higher = "75%:spec.metrics[0].resource.target.averageUtilization=75";
    let lines = json(&kube_lockstep(&EXAMPLE).args(["--set", higher, "--format=json"]).assert());
    let figure = |row: usize, name: &str| lines[row][name].as_f64().expect("a number");
    assert!(figure(1, "podHours") < figure(0, "podHours"), "{lines:?}");
    for name in ["missingPodHours", "aboveTargetSeconds", "longestAboveTargetSeconds"] {
        assert!(figure(1, name) > figure(0, name), "{name}: {lines:?}");
    }
}

/// The causes are columns of a second table and an object in JSON; they add up to all that is
/// missing. With a low maximum, most of it is due to the maximum.
#[test]
fn missing_pod_hours_have_causes() {
    let low = ["--set", "low:spec.maxReplicas=5"];
    let shown = stdout(&kube_lockstep(&EXAMPLE).args(low).assert().code(0));
    let (_, causes) = shown.split_once("\n\n").expect("a second table");
    assert!(causes.starts_with("missing by cause  maximum  "), "{shown}");
    assert!(!causes.contains("window"), "no scale-up window: {shown}");
    let lines = json(&kube_lockstep(&EXAMPLE).args(low).args(["--format", "json"]).assert());
    let names =
        ["maximum", "policy", "window", "startUp", "syncPeriod", "target", "tolerance", "other"];
    for line in &lines {
        let causes = &line["missingPodHoursByCause"];
        assert_eq!(causes.as_object().map(serde_json::Map::len), Some(names.len()), "{causes}");
        let cause = |name: &str| causes[name].as_f64().expect("a cause");
        let missing = line["missingPodHours"].as_f64().expect("a number");
        let sum: f64 = names.into_iter().map(cause).sum();
        assert!((sum - missing).abs() < 1e-9, "{line}");
        assert_eq!(line["neededPeakReplicas"], 17, "1.7 cores at 50% of 200m");
    }
    let maximum = |row: usize| lines[row]["missingPodHoursByCause"]["maximum"].as_f64();
    assert!(maximum(1) > maximum(0), "{lines:?}");
}

#[test]
fn the_example_of_the_documentation_is_printed() {
    let window = "short window:spec.behavior.scaleDown.stabilizationWindowSeconds=60";
    let higher = "75%:spec.metrics.0.resource.target.averageUtilization=75";
    let sets = ["--set", window, "--set", higher];
    let shown = stdout(&kube_lockstep(&EXAMPLE).args(sets).assert().code(0));
    let vpa = [
        "compare",
        "-f=examples/hamster",
        "--load=cpu=steps(0s:300m,2d:150m,4d:600m)",
        "--load=memory=sine(mean=200Mi,amplitude=100Mi,period=24h)",
        "--price=cpu=0.03,memory=0.004",
        "--set=off:spec.updatePolicy.updateMode=\"Off\"",
        "--set=less margin:recommender.flags.recommendation-margin-fraction=0.05",
    ];
    let shown_of_vpa = stdout(&kube_lockstep(&vpa).assert().code(0));
    let page = support::repository().join("docs/predict.md");
    let page = std::fs::read_to_string(page).expect("a page");
    for shown in [shown, shown_of_vpa] {
        let example = format!("```text\n{shown}```\n");
        assert!(page.contains(&example), "docs/predict.md lacks:\n{shown}");
    }
}

#[test]
fn values_are_yaml_and_lists_can_be_extended() {
    let policies = "spec.behavior.scaleUp.policies";
    let whole = format!("whole:{policies}=[{{type: Pods, value: 1, periodSeconds: 60}}]");
    let parts = format!(
        "parts:{policies}.0.type=Pods, {policies}.0.value=1, {policies}.0.periodSeconds=60"
    );
    let sets = ["--set", &whole, "--set", &parts, "--format=json"];
    let lines = json(&kube_lockstep(&EXAMPLE).args(sets).assert().code(0));
    assert_eq!(lines[1]["podHours"], lines[2]["podHours"]);
    assert!(lines[1]["podHours"].as_f64() < lines[0]["podHours"].as_f64(), "{lines:?}");
}

#[test]
fn a_manifest_is_a_setting() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let manifest = folder.path().join("hpa.yaml");
    let hpa = std::fs::read_to_string(support::repository().join("examples/php-apache/hpa.yaml"));
    let hpa = hpa.expect("a file");
    let with = |text: &str, flag: &str| {
        std::fs::write(&manifest, text).expect("a file can be written");
        kube_lockstep(&EXAMPLE).args(["--manifest", flag, "--format=json"]).assert()
    };
    let named = format!("higher:{}", text(&manifest));
    let higher = hpa.replace("averageUtilization: 50", "averageUtilization: 75");
    let lines = json(&with(&higher, &named).code(0));
    assert_eq!(lines[1]["setting"], "higher");
    assert!(lines[1]["podHours"].as_f64() < lines[0]["podHours"].as_f64(), "{lines:?}");
    let errors = stderr(&with(&hpa.replace("maxReplicas: 10", "maxReplicas: 0"), &named).code(2));
    assert!(errors.contains("hpa.yaml:") && errors.contains("spec.maxReplicas: Invalid value: 0"));
    let other = hpa.replace("name: php-apache", "name: other");
    let errors = stderr(&with(&other, &named).code(2));
    assert!(errors.contains("--manifest higher: no such HPA"), "{errors}");
    let service = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\n";
    let errors = stderr(&with(service, &named).code(2));
    assert!(errors.contains("hpa.yaml: there is no HorizontalPodAutoscaler"), "{errors}");
    let target = hpa.replace("kind: Deployment", "kind: StatefulSet");
    let errors = stderr(&with(&target, &named).code(2));
    let expected = "it scales StatefulSet php-apache, not Deployment php-apache";
    assert!(errors.contains(expected), "{errors}");
}

#[test]
fn the_namespace_of_a_manifest_does_not_change_the_figures() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let write = |name: &str, contents: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, contents).expect("a file can be written");
        text(&path).to_owned()
    };
    let example = support::repository().join("examples/php-apache");
    let hpa = std::fs::read_to_string(example.join("hpa.yaml")).expect("a file");
    let deployment = text(&example.join("deployment.yaml")).to_owned();
    let in_shop = |hpa: &str| hpa.replacen("metadata:\n", "metadata:\n  namespace: shop\n", 1);
    assert_ne!(in_shop(&hpa), hpa);
    let higher = hpa.replace("averageUtilization: 50", "averageUtilization: 75");
    let manifests = [
        format!("with:{}", write("with.yaml", &in_shop(&higher))),
        format!("without:{}", write("without.yaml", &higher)),
    ];
    for first in [write("first.yaml", &in_shop(&hpa)), write("open.yaml", &hpa)] {
        let options = ["compare", "-f", &first, "-f", &deployment, EXAMPLE[3], EXAMPLE[4]];
        let settings = ["--manifest", &manifests[0], "--manifest", &manifests[1]];
        let run = kube_lockstep(&options).args(settings).args(["--format", "json"]).assert();
        let mut lines = json(&run.code(0));
        for line in &mut lines {
            line["setting"].take();
        }
        assert_eq!(lines[1], lines[2]);
        assert!(lines[1]["aboveTargetSeconds"].as_f64() > lines[0]["aboveTargetSeconds"].as_f64());
    }
}

#[test]
fn a_file_with_several_objects_is_a_setting() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let file = folder.path().join("all.yaml");
    let example = support::repository().join("examples/php-apache");
    let read = |name: &str| std::fs::read_to_string(example.join(name)).expect("a file");
    let hpa = read("hpa.yaml").replace("averageUtilization: 50", "averageUtilization: 75");
    let with = |contents: &str| {
        std::fs::write(&file, contents).expect("a file can be written");
        kube_lockstep(&EXAMPLE).args(["--manifest", text(&file), "--format=json"]).assert()
    };
    let alone = json(&with(&hpa).code(0));
    let other = hpa.replace("name: php-apache", "name: other");
    let documents = [read("deployment.yaml"), other, hpa.clone()].join("---\n");
    assert_eq!(json(&with(&documents).code(0)), alone);
    let item = hpa.replace('\n', "\n  ");
    let list = format!("apiVersion: v1\nkind: List\nitems:\n- {item}\n");
    assert_eq!(json(&with(&list).code(0)), alone);
    let errors = stderr(&with(&format!("{hpa}---\n{hpa}")).code(2));
    let expected = "expected one manifest of HPA php-apache, found 2: php-apache, php-apache";
    assert!(errors.contains(expected) && errors.contains("leave out the others"), "{errors}");
    let errors = stderr(&with("{{ .Values.hpa }}").code(2));
    assert!(errors.contains("all.yaml:1:") && errors.contains("helm template"), "{errors}");
}

/// The paths of a manifest are relative to the current folder, wherever the scenario is.
#[test]
fn the_error_of_a_manifest_names_the_file_as_it_was_given() {
    let (folder, file) = super::folder("");
    std::fs::create_dir(folder.path().join("below")).expect("a folder can be made");
    let hpa = "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: web}\n\
               spec: {maxReplica: 3}\n";
    std::fs::write(folder.path().join("hpa.yaml"), hpa).expect("a file can be written");
    std::fs::rename(&file, folder.path().join("below/web.yaml")).expect("a file can be moved");
    let run = kube_lockstep(&["compare", "below/web.yaml", "--manifest", "hpa.yaml"])
        .current_dir(folder.path())
        .assert();
    let errors = stderr(&run.code(2));
    let expected = " hpa.yaml:4:8: the API server rejects this HPA: strict decoding error";
    assert!(errors.contains(expected), "{errors}");
    assert!(!errors.contains("below/hpa.yaml"), "{errors}");
}

#[test]
fn settings_have_different_names() {
    for name in ["fast", "current"] {
        let set = ["--set", "fast:spec.maxReplicas=9"];
        let again = format!("{name}:spec.maxReplicas=8");
        let run = kube_lockstep(&EXAMPLE).args(set).args(["--set", &again]).assert().code(2);
        assert!(stderr(&run).contains(&format!("another setting is named `{name}`")));
    }
}

/// 1.6 has no behavior, and the API server of 1.36 refuses zero replicas.
#[test]
fn a_release_that_cannot_run_a_setting_is_named() {
    let window = "short:spec.behavior.scaleDown.stabilizationWindowSeconds=60";
    let shown = kube_lockstep(&EXAMPLE).args(["--set", window, "--release", "1.6,1.37"]).assert();
    let shown = stdout(&shown.code(0));
    assert!(shown.contains("not compared: short on 1.6: `behavior` is not supported"), "{shown}");
    let zero = ["--set", "zero:spec.minReplicas=0"];
    let load = ["compare", "-f", "examples/orders", "--load", "queue_messages_ready=30"];
    let releases = ["--release", "1.36,1.37", "--replicas", "1", "--format", "json"];
    let lines = json(&kube_lockstep(&load).args(zero).args(releases).assert().code(0));
    let zero = |release: &str| {
        lines.iter().find(|it| it["setting"] == "zero" && it["release"] == release).expect("a row")
    };
    let why = zero("1.36")["notCompared"].as_str().expect("a reason");
    assert!(why.contains("spec.minReplicas: Invalid value: 0"), "{why}");
    assert!(zero("1.37")["podHours"].is_number());
}

#[test]
fn a_comparison_shows_the_notes_and_writes_no_page_after_an_error() {
    let notes = stderr(&kube_lockstep(&EXAMPLE).assert().code(0));
    let notes = notes.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(notes.contains("sets no replicas, so it starts with 1"), "{notes}");
    let folder = tempfile::tempdir().expect("a folder can be made");
    let page = folder.path().join("page.html");
    let arguments = ["--set", "spec.maxReplicas=0", "--html", text(&page)];
    kube_lockstep(&EXAMPLE).args(arguments).assert().code(2);
    assert!(!page.exists(), "an empty page is left");
}

#[test]
fn a_field_without_effect_on_a_release_is_a_note() {
    let tolerance = ["--set", "calm:spec.behavior.scaleUp.tolerance=0.5"];
    let releases = ["--release", "1.33-1.37"];
    let notes = stderr(&kube_lockstep(&EXAMPLE).args(tolerance).args(releases).assert().code(0));
    let notes = notes.split_whitespace().collect::<Vec<_>>().join(" ");
    for release in ["1.33", "1.34"] {
        let expected = format!("`tolerance` has no effect on {release}: the API server drops it");
        assert_eq!(notes.matches(&expected).count(), 1, "{notes}");
    }
    assert!(!notes.contains("has no effect on 1.35"), "{notes}");
}

/// Both settings have the same requests, but only one of them scales on each metric.
#[test]
fn settings_can_scale_on_different_metrics() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let file = folder.path().join("rps.yaml");
    std::fs::write(&file, by_requests("php-apache", "php-apache")).expect("a file can be written");
    let manifest = format!("rps:{}", text(&file));
    let compare = |more: &[&str]| {
        let options = ["compare", "-f", "examples/php-apache", "--load", "cpu=total:1"];
        kube_lockstep(&options).args(more).assert()
    };
    let by_rps = |more: &[&str]| compare(&[&["--manifest", &manifest], more].concat());
    let run = by_rps(&["--load", "rps=total:ramp(0s:1,30m:60)", "--format=json"]).code(0);
    let lines = json(&run);
    assert_eq!((&lines[1]["setting"], &lines[1]["peakReplicas"]), (&"rps".into(), &6.into()));
    // The load of the other setting lasts longer.
    assert!(lines[0]["podHours"].as_f64().expect("a number") > 1.0, "{lines:?}");
    let notes = stderr(&run).split_whitespace().collect::<Vec<_>>().join(" ");
    let expected = "rps: the first row has no comparable target for rps, so `missing`, `above`";
    assert!(notes.contains(expected), "{notes}");
    let errors = stderr(&by_rps(&[]).code(2));
    let expected =
        "HPA php-apache with --manifest rps: there is no load of rps\n    add --load rps=";
    assert!(errors.contains(expected), "{errors}");
    let errors = stderr(&by_rps(&["--load", "rps=total:9", "--load", "foo=1"]).code(2));
    let expected = "HPA php-apache does not scale on foo, which has a load, with any of the settin";
    assert!(errors.contains(expected) && errors.contains("it scales on cpu, rps"), "{errors}");
    let errors = stderr(&compare(&["--set", "spec.metrics.0.resource.name=memory"]).code(2));
    assert!(errors.contains("there is no load of memory"), "{errors}");
    assert!(errors.contains("--load memory=200Mi") && errors.contains("--request memory="));
}

/// An HPA that scales a Deployment on requests per second.
fn by_requests(name: &str, deployment: &str) -> String {
    format!(
        "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {{name: {name}}}\n\
         spec:\n  scaleTargetRef: {{apiVersion: apps/v1, kind: Deployment, name: {deployment}}}\n  \
         maxReplicas: 10\n  metrics:\n  - type: Pods\n    pods: {{metric: {{name: rps}}, target: \
         {{type: AverageValue, averageValue: 10}}}}\n"
    )
}

#[test]
fn a_setting_that_lacks_a_value_can_be_left_out() {
    let set = "memory:spec.metrics.0.resource.name=memory";
    let options = ["--skip-missing", "--set", set, "--set", "few:spec.maxReplicas=3"];
    let run = kube_lockstep(&EXAMPLE).args(options).assert().code(0);
    let (shown, notes) = (stdout(&run), stderr(&run));
    assert!(shown.contains("\nfew ") && !shown.contains("\nmemory "), "{shown}");
    let expected = "note: HPA php-apache with --set memory is left out: ";
    assert!(notes.contains(expected), "{notes}");
}

/// The new manifests of all HPAs, against the current ones.
#[test]
fn a_file_with_several_hpas_is_a_setting_of_each() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let file = folder.path().join("new.yaml");
    let hpas = support::repository().join("examples/shop/hpas.yaml");
    let hpas = std::fs::read_to_string(hpas).expect("a file");
    let larger = hpas.replace("maxReplicas: ", "maxReplicas: 1");
    assert_ne!(larger, hpas);
    let manifest = format!("new:{}", text(&file));
    let compare = |contents: &str, more: &[&str]| {
        std::fs::write(&file, contents).expect("a file can be written");
        let options = ["compare", "-f", "examples/shop", "--load", "cpu=total:12"];
        let more = [&["--manifest", &manifest, "--format", "json", "--until", "5m"], more].concat();
        kube_lockstep(&options).args(more).assert()
    };
    let mails = ["--load", "mails_waiting=500"];
    let lines = json(&compare(&larger, &mails).code(0));
    let settings: Vec<&str> = lines.iter().filter_map(|line| line["setting"].as_str()).collect();
    assert_eq!(
        settings,
        ["checkout", "search", "mail"]
            .iter()
            .flat_map(|hpa| [format!("shop/{hpa}: current"), format!("shop/{hpa}: new")])
            .collect::<Vec<_>>()
    );
    // Only one HPA is predicted, and only one is in the file.
    let checkout = larger.split("---\n").next().expect("a document");
    let notes = |contents: &str, more: &[&str]| {
        let run = compare(contents, more).code(0);
        stderr(&run).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let only = notes(&larger, &["--hpa", "search"]);
    let expected = "HPA shop/mail is ignored, because no predicted HPA has this name";
    assert!(only.contains(expected), "{only}");
    let only = notes(checkout, &mails);
    assert!(only.contains("it has no HPA shop/search, which keeps its manifest"), "{only}");
    // The namespace matters if several HPAs have the name.
    let elsewhere = checkout.replace("namespace: shop", "namespace: other");
    compare(&elsewhere, &["--hpa", "checkout"]).code(0);
    let both = format!("{checkout}---\n{elsewhere}");
    let only = notes(&both, &["--hpa", "checkout"]);
    let expected = "HPA other/checkout is ignored";
    assert!(only.contains(expected), "{only}");
}

const VPA: [&str; 6] =
    ["compare", "-f", "examples/hamster", "--load=cpu=300m", "--load=memory=100Mi", "--until=3h"];

#[test]
fn settings_and_releases_of_a_vpa_are_compared() {
    let sets = [
        "--set=off:spec.updatePolicy.updateMode=\"Off\"",
        "--set=vpa/spec.resourcePolicy.containerPolicies.0.minAllowed.cpu=500m",
        "--set=recommender.flags.recommendation-margin-fraction=0",
    ];
    let run = kube_lockstep(&VPA).args(sets).assert().code(0);
    let (shown, notes) = (stdout(&run), stderr(&run));
    assert!(!notes.contains("the pods keep their requests"), "{notes}");
    let head: Vec<&str> = shown.lines().take(1).collect();
    assert_eq!(head[0].split_whitespace().collect::<Vec<_>>(), ["setting", "pod-hours", "peak"]);
    assert!(shown.contains("requests ") && shown.contains("cpu-unused"), "{shown}");
    let rows = json(&kube_lockstep(&VPA).args(sets).arg("--format=json").assert().code(0));
    assert_eq!(rows[0]["vpa"], "hamster-vpa");
    assert_eq!((rows[0].get("hpa"), rows[0].get("missingPodHours")), (None, None));
    let cpu = |row: usize| rows[row]["cpu"]["requested"].as_f64().expect("core-hours");
    // The mode Off leaves 100m; the usage is 300m, and the margin 15%.
    assert!((cpu(1) - 2.0 * 3.0 * 0.1).abs() < 1e-9, "{rows:?}");
    assert!(cpu(2) > cpu(0) && cpu(3) < cpu(0), "{rows:?}");
    assert_eq!(rows[1]["evictions"], 0);
    let releases = ["--release=vpa-1.0,vpa-1.8,1.36", "--format=json"];
    let rows = json(&kube_lockstep(&VPA).args(releases).assert().code(0));
    let releases: Vec<&str> = rows.iter().filter_map(|row| row["release"].as_str()).collect();
    assert_eq!(releases, ["vpa-1.0", "vpa-1.8"]);
    let wrong = ["--set=hamster/spec.updatePolicy.minReplicas=3"];
    let error = stderr(&kube_lockstep(&VPA).args(wrong).assert().code(2));
    assert!(error.contains("no such VPA") && error.contains("the VPAs are hamster-vpa"), "{error}");
}

#[test]
fn a_cost_of_zero_is_noted_for_each_setting_that_has_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("hamster.yaml");
    let read = |name: &str| {
        fs::read_to_string(format!("examples/hamster/{name}.yaml")).expect("an example")
    };
    let requests = "            requests:\n              cpu: 100m\n              memory: 50Mi\n";
    let deployment = read("deployment").replace(requests, "");
    fs::write(&path, format!("{deployment}---\n{}", read("vpa"))).expect("manifests");
    let of = ["-f", text(&path), "--load=cpu=300m", "--load=memory=100Mi", "--until=3h"];
    let off = "--set=off:spec.updatePolicy.updateMode=\"Off\"";
    let run = kube_lockstep(&["compare"]).args(of).args([off, "--price=cpu=0.03"]).assert().code(0);
    let notes = stderr(&run).split_whitespace().collect::<Vec<_>>().join(" ");
    let note = "the cost is 0, because the pods never have a request with a price";
    assert!(notes.contains(&format!("off: {note}")), "{notes}");
    assert_eq!(notes.matches(note).count(), 1, "{notes}");
    let vary = "--vary=spec.updatePolicy.updateMode=\"Off\"";
    let options = [vary, "--price=cpu=0.03", "--objective=oom-kills<=9", "--no-confirm"];
    let run = kube_lockstep(&["tune"]).args(of).args(options).assert().code(0);
    let notes = stderr(&run).split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(notes.matches(note).count(), 1, "{notes}");
}

#[test]
fn an_hpa_with_a_vpa_has_the_figures_of_both() {
    let scenario = "hpa-and-vpa/both-on-cpu-feed-back";
    let off = "--set=off:vpa/spec.updatePolicy.updateMode=\"Off\",web/spec.maxReplicas=8";
    let price = "--price=cpu=0.03,memory=0.004";
    let run = kube_lockstep(&["compare", scenario, off, price, "--format=json"]).assert().code(0);
    let rows = json(&run);
    for row in &rows {
        assert_eq!((&row["hpa"], &row["vpa"]), (&"web".into(), &"web".into()), "{row}");
        let figure = |name: &str| row[name]["requested"].as_f64().expect("requests");
        let cost = 0.03 * figure("cpu") + 0.004 * figure("memory");
        let found = row["cost"].as_f64().expect("a cost");
        assert!((cost - found).abs() < 1e-9, "{row}");
    }
    assert_eq!((&rows[0]["peakReplicas"], &rows[1]["peakReplicas"]), (&10.into(), &4.into()));
    assert!(rows[0]["evictions"].as_u64() > Some(0) && rows[1]["evictions"] == 0, "{rows:?}");
}

#[test]
fn a_vpa_alone_has_the_requests_of_whole_pods() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("all.yaml");
    let manifests = "
apiVersion: autoscaling.k8s.io/v1
kind: VerticalPodAutoscaler
metadata: {name: web}
spec:
  targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  updatePolicy: {updateMode: \"Off\"}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      overhead: {cpu: 10m}
      initContainers:
        - {name: setup, image: i, resources: {requests: {cpu: 2}}}
      containers:
        - {name: app, image: i, resources: {requests: {cpu: 200m, memory: 256Mi}}}
";
    std::fs::write(&path, manifests).expect("a file");
    let compare = ["compare", "-f", text(&path), "--load=cpu=1", "--load=memory=1Gi", "--until=1h"];
    let run = kube_lockstep(&compare).arg("--format=json").assert().code(0);
    assert!(stderr(&run).contains("updateMode Off"), "{}", stderr(&run));
    let cpu = json(&run)[0]["cpu"]["requested"].as_f64().expect("core-hours");
    assert!((cpu - 3.0 * 2.01).abs() < 1e-9, "the init container and the overhead count: {cpu}");
    // Beside an HPA, a VPA that changes nothing needs no load.
    let hpa = folder.path().join("hpa.yaml");
    let manifest = "
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, maxReplicas: 9}
";
    std::fs::write(&hpa, manifest).expect("a file");
    let both = ["compare", "-f", text(&path), "-f", text(&hpa), "--load=cpu=total:2"];
    let run = kube_lockstep(&both).arg("--set=spec.maxReplicas=3").assert().code(0);
    assert!(stderr(&run).contains("ignored: VPA web with updateMode Off"), "{}", stderr(&run));
    assert_eq!(
        stdout(&run).lines().filter(|line| line.starts_with("spec.maxReplicas=3")).count(),
        2
    );
}

#[test]
fn settings_of_a_vpa_can_change_policies_flags_and_releases() {
    let policies = "--set=spec.resourcePolicy.containerPolicies.0.maxAllowed.cpu=200m";
    let updater = "--set=updater.flags.min-replicas=3";
    let rows = json(&kube_lockstep(&VPA).args([policies, updater, "--format=json"]).assert());
    assert_eq!((&rows[0]["evictions"], &rows[2]["evictions"]), (&2.into(), &0.into()));
    let mode = "--set=spec.updatePolicy.updateMode=InPlaceOrRecreate";
    let run = kube_lockstep(&VPA).args([mode, "--release=vpa-1.2,vpa-1.8"]).assert().code(0);
    let words = stdout(&run).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("on vpa-1.2: the API of vpa-1.2 rejects this VPA"), "{words}");
    for (arguments, expected) in [
        (["--release=1.36", "--until=1h"], "VPAs have no release 1.36"),
        (["--set=hpa/spec.maxReplicas=3", "--until=1h"], "no such HPA"),
        (["--set=recommender.start=5", "--until=1h"], "or for flags of a VPA's components with"),
    ] {
        let command = ["compare", VPA[1], VPA[2], VPA[3], VPA[4]];
        let error = stderr(&kube_lockstep(&command).args(arguments).assert().code(2));
        assert!(error.contains(expected), "{expected}: {error}");
    }
}
