//! The search for HPAs that behave differently after an upgrade.

use std::fs;

use serde_json::Value;

use super::{json, kube_lockstep, stderr, stdout, text};

const SHOP: [&str; 6] = ["upgrade", "-f", "examples/shop", "--no-confirm", "--ticks", "8000"];

/// Two HPAs whose Deployments have the same selector.
fn overlapping() -> String {
    let one = |name: &str| {
        format!(
            "apiVersion: apps/v1
kind: Deployment
metadata: {{name: {name}}}
spec:
  replicas: 2
  selector: {{matchLabels: {{app: web}}}}
  template:
    metadata: {{labels: {{app: web, tier: {name}}}}}
    spec:
      containers: [{{name: app, image: web, resources: {{requests: {{cpu: 500m}}}}}}]
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {{name: {name}}}
spec:
  scaleTargetRef: {{apiVersion: apps/v1, kind: Deployment, name: {name}}}
  maxReplicas: 20
  metrics:
  - {{type: Resource, resource: {{name: cpu, target: {{type: Utilization, averageUtilization: 80}}}}}}
---
"
        )
    };
    one("front") + &one("back")
}

/// One HPA with its Deployment.
fn one_hpa() -> String {
    let all = overlapping();
    let (first, _) = all.split_once("metadata: {name: back}").expect("two Deployments");
    first.rsplit_once("---").expect("several objects").0.to_owned()
}

#[test]
fn hpas_are_grouped_by_the_changes_that_affect_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let (page, saved) = (folder.path().join("page.html"), folder.path().join("examples"));
    let manifest = folder.path().join("plain.yaml");
    fs::write(&manifest, one_hpa()).expect("a file");
    let arguments = ["--from", "1.32", "--to", "1.37", "-f", text(&manifest), "--ticks", "20000"];
    let files = ["--html", text(&page), "--save", text(&saved)];
    let mut command = kube_lockstep(&["upgrade", "--no-confirm"]);
    let shown = stdout(&command.args(arguments).args(files).assert().code(1));
    assert!(shown.starts_with("From 1.32 to 1.37, 1 of 1 HPA can have other replicas"), "{shown}");
    let edge = "Other replicas\n  1.33  a ratio is compared with two tolerance bounds: 1.1 is now \
                within 0.1\n        https://github.com/kubernetes/kubernetes/pull/130797\n        \
                1 HPA: front\n        For example front with ";
    assert!(shown.contains(edge), "{shown}");
    assert!(shown.contains("The first reconcile at another time\n  1.37  a new HPA"), "{shown}");
    let page = fs::read_to_string(page).expect("a page");
    assert!(page.contains("two tolerance bounds") && page.contains("<svg"), "no chart");
    for expected in ["1 of 1 HPA can have other replicas", "1 HPA: front", "(Other replicas)"] {
        assert!(page.contains(expected), "{expected}");
    }
    // The saved scenarios are valid.
    let run = kube_lockstep(&["run", "--engine", "model", text(&saved)]).assert();
    assert!(run.get_output().status.success(), "{}", stderr(&run));
    assert!(fs::read_dir(&saved).expect("a folder").count() >= 3);
}

#[test]
fn overlapping_selectors_are_stopped_from_1_26_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let manifest = folder.path().join("all.yaml");
    fs::write(&manifest, overlapping()).expect("a file");
    let run = |from: &str, to: &str| {
        let releases = ["--from", from, "--to", to, "-f", text(&manifest), "--ticks", "2000"];
        kube_lockstep(&["upgrade", "--no-confirm", "--format=json"]).args(releases).assert()
    };
    let lines = json(&run("1.25", "1.26").code(1));
    for line in &lines[..2] {
        let note = line["notes"][0].as_str().expect("a note");
        assert!(note.contains("the controller stops both (AmbiguousSelector)"), "{note}");
        assert!(note.ends_with("/pull/112011)"), "{note}");
        assert_eq!((&line["effect"], line.get("ticks")), (&"replicas".into(), None));
    }
    let summary = &lines.last().expect("a summary")["summary"];
    assert_eq!((&summary["hpas"], &summary["replicas"]), (&2.into(), &2.into()));
    // An HPA that both releases stop has no difference, whatever a search of it alone finds.
    let lines = json(&run("1.26", "1.36").code(0));
    let note = lines[0]["notes"][0].as_str().expect("a note");
    assert!(note.starts_with("on 1.26 and 1.36, HPA "), "{note}");
    let summary = &lines.last().expect("a summary")["summary"];
    assert_eq!((&summary["replicas"], &summary["notSearched"]), (&0.into(), &2.into()));
}

#[test]
fn a_prediction_of_one_target_notes_that_another_hpa_stops_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let manifest = folder.path().join("all.yaml");
    fs::write(&manifest, overlapping()).expect("a file");
    for command in ["predict", "compare", "tune"] {
        let options = ["-f", text(&manifest), "--load", "cpu=95%", "--until", "1m"];
        let own: &[&str] = match command {
            "predict" => &[],
            "compare" => &["--set", "x:spec.maxReplicas=4"],
            _ => &["--no-confirm", "--settings", "3"],
        };
        let run = kube_lockstep(&[command, "--hpa", "back"]).args(options).args(own).assert();
        let all = format!("{}{}", stdout(&run), stderr(&run));
        let shown = all.split_whitespace().collect::<Vec<_>>().join(" ");
        let note = "the controller stops both (AmbiguousSelector) from Kubernetes 1.26 on; the \
                    prediction does not show this";
        assert!(shown.contains(note), "{command}: {all}");
    }
}

#[test]
fn an_hpa_that_a_release_does_not_support_is_named() {
    let releases = ["--from", "1.10", "--to", "1.20", "--hpa", "checkout"];
    let shown = stdout(&kube_lockstep(&SHOP).args(releases).assert().code(1));
    assert!(shown.contains("shop/checkout: "), "{shown}");
    assert!(shown.contains("`behavior`"), "{shown}");
}

#[test]
fn an_api_version_that_is_no_longer_served_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let manifest = folder.path().join("old.yaml");
    fs::write(&manifest, one_hpa().replace("autoscaling/v2", "autoscaling/v2beta2"))
        .expect("a file");
    let run = |from: &str, to: &str| {
        let releases = ["--from", from, "--to", to, "-f", text(&manifest), "--ticks", "2000"];
        kube_lockstep(&["upgrade", "--no-confirm"]).args(releases).assert()
    };
    let shown = stdout(&run("1.25", "1.26").code(1));
    let headline = "From 1.25 to 1.26, 0 of 1 HPA can have other replicas; 1 in an API version that \
                    1.26 no longer serves;";
    let in_one_line = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(in_one_line.starts_with(headline), "{shown}");
    let note = "front: 1.26 no longer serves autoscaling/v2beta2: apply the HPA as autoscaling/v2";
    assert!(shown.contains(note), "{shown}");
    assert!(!stdout(&run("1.26", "1.27").code(0)).contains("no longer serves"));
}

#[test]
fn an_hpa_that_both_releases_reject_is_no_difference() {
    let folder = tempfile::tempdir().expect("a folder");
    let manifest = folder.path().join("zero.yaml");
    let (cpu, queue) = (
        "{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 80}}}",
        "{type: External, external: {metric: {name: queue}, target: {type: AverageValue, averageValue: 30}}}",
    );
    let text_of_hpa = one_hpa().replace("  maxReplicas", "  minReplicas: 0\n  maxReplicas");
    fs::write(&manifest, text_of_hpa.replace(cpu, queue)).expect("a file");
    let run = |from: &str, to: &str| {
        let releases = ["--from", from, "--to", to, "-f", text(&manifest), "--ticks", "2000"];
        let mut command = kube_lockstep(&["upgrade", "--no-confirm", "--format=json"]);
        json(&command.args(releases).assert())
    };
    let lines = run("1.32", "1.36");
    assert_eq!((&lines[0]["effect"], &lines[0]["ticks"]), (&Value::Null, &Value::Null));
    assert!(lines[0]["notes"][0].as_str().expect("a note").contains("minReplicas"), "{}", lines[0]);
    // From 1.37 on, the feature gate is on by default.
    assert_eq!(run("1.36", "1.37")[0]["effect"], "replicas");
    // An HPA that the older release stored is kept, but not scaled up from zero.
    let releases = ["--from", "1.35", "--to", "1.36", "-f", text(&manifest), "--ticks", "2000"];
    let gate = ["--from-feature-gates", "HPAScaleToZero=true"];
    let mut command = kube_lockstep(&["upgrade", "--no-confirm"]);
    let shown = stdout(&command.args(releases).args(gate).assert().code(1));
    let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    for expected in [
        "front: the API server of 1.36 accepts the HPA only because it is already stored; it would \
         reject a new HPA: the API server of 1.36 rejects HPA front",
        "(the feature gate HPAScaleToZero is off)",
        "to 0 and never back: the feature gate HPAScaleToZero is off in the kube-controller-manager",
        "1.36 the feature gate HPAScaleToZero is now off",
    ] {
        assert!(shown.contains(expected), "{expected}: {shown}");
    }
}

#[test]
fn the_result_is_also_markdown() {
    let releases = ["--from", "1.33", "--to", "1.34", "--format", "markdown"];
    let shown = stdout(&kube_lockstep(&SHOP).args(releases).assert().code(0));
    assert!(
        shown.starts_with("# HPAs from 1.33 to 1.34\n\nFrom 1.33 to 1.34, 0 of 3 HPAs"),
        "{shown}"
    );
}

#[test]
fn invalid_manifests_are_left_out() {
    let folder = tempfile::tempdir().expect("a folder");
    let manifest = folder.path().join("cluster.yaml");
    let other_container = overlapping().replace("name: front", "name: third").replace(
        "type: Resource, resource: {name",
        "type: ContainerResource, containerResource: {container: side, name",
    );
    let (third, _) = other_container.split_once("metadata: {name: back}").expect("two Deployments");
    let third = third.rsplit_once("---").expect("several objects").0;
    let without_version = "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: \
                           {name: fourth}\nspec: {scaleTargetRef: {kind: Deployment, name: x}, \
                           maxReplicas: 3}\n";
    let all = format!("{}---\n{third}---\n{without_version}", one_hpa());
    fs::write(&manifest, &all).expect("a file");
    let arguments = ["upgrade", "--from", "1.36", "--ticks", "2000", "--no-confirm", "-f"];
    let upgrade = |format: &str| {
        kube_lockstep(&arguments).args([text(&manifest), "--format", format]).assert().code(0)
    };
    let shown = stdout(&upgrade("text"));
    let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    for expected in [
        "0 of 1 HPA can have other replicas",
        "invalid manifests are left out",
        "missing field `apiVersion` of the Deployment",
        "HPA third: the HPA scales on the container `side`, which no pod has",
    ] {
        assert!(shown.contains(expected), "{expected}: {shown}");
    }
    let lines = json(&upgrade("json"));
    let invalid = lines.last().expect("a summary")["summary"]["invalid"].as_array();
    assert_eq!(invalid.map(Vec::len), Some(2), "{lines:?}");
    let only_invalid = folder.path().join("invalid.yaml");
    fs::write(&only_invalid, third).expect("a file");
    let run = kube_lockstep(&arguments).arg(&only_invalid).assert().code(2);
    assert!(stderr(&run).contains("which no pod has"), "{}", stderr(&run));
}

#[test]
fn feature_gates_are_those_of_the_cluster() {
    let folder = tempfile::tempdir().expect("a folder");
    let manifest = folder.path().join("tolerance.yaml");
    let text_of_hpa = one_hpa()
        .replace("  maxReplicas", "  behavior: {scaleUp: {tolerance: 20m}}\n  maxReplicas");
    fs::write(&manifest, text_of_hpa).expect("a file");
    let saved = folder.path().join("examples");
    let run = |arguments: &[&str]| {
        let mut command = kube_lockstep(&["upgrade", "--no-confirm", "--ticks", "8000", "-f"]);
        let run = command.arg(&manifest).args(["--save", text(&saved)]).args(arguments).assert();
        stdout(&run).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let shown = run(&["--from", "1.32", "--to", "1.33"]);
    assert!(!shown.contains("apply the manifest again"), "{shown}");
    assert!(shown.contains("HPAConfigurableTolerance is off by default"), "{shown}");
    let on = ["--to-feature-gates", "HPAConfigurableTolerance=true"];
    let shown = run(&[&["--from", "1.32", "--to", "1.33"], &on[..]].concat());
    assert!(shown.contains("1.33 the feature gate HPAConfigurableTolerance is now on"), "{shown}");
    let note = "the API server of 1.32 stores the HPA without `tolerance`: to set the field, apply";
    assert!(shown.contains(note), "{shown}");
    // The same release with other gates.
    let shown_again = run(&[&["--from", "1.33", "--to", "1.33"], &on[..]].concat());
    assert!(shown_again.contains("1.33 the feature gate HPAConfigurableTolerance is now on"));
    // Each file has the gates of its release, and shows its side of the difference.
    let shown = ["1.32", "1.33"].map(|release| {
        let file = saved.join(format!("1.33-HPAConfigurableTolerance-on-{release}.yaml"));
        let arguments = ["predict", "--release", release, "--format", "json", text(&file)];
        let run = kube_lockstep(&arguments).assert();
        let lines = stdout(&run);
        let lines = lines.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
        lines.map(|tick| tick["replicasAfter"].clone()).collect::<Vec<Value>>()
    });
    assert_ne!(shown[0], shown[1]);
    // A gate that one of the releases does not have.
    let both = ["--feature-gates", "HPAContainerMetrics=true"];
    let shown = run(&[&["--from", "1.29", "--to", "1.33"], &both[..]].concat());
    let note = "components of 1.33 do not start with HPAContainerMetrics=true";
    assert!(shown.contains(note), "{shown}");
}

#[test]
fn mistakes_are_explained() {
    for (arguments, message) in [
        (&["--from", "1.32", "--feature-gates", "HPAScaleToZer=true"][..], "did you mean"),
        (
            &["--from", "1.36", "--to-feature-gates", "HPAConfigurableTolerance=false"],
            "--to-feature-gates: cannot set feature gate HPAConfigurableTolerance to false",
        ),
        (&["--from", "1.36", "--to", "1.32"][..], "--from must be older than --to"),
        (&["--from", "1.36", "--to", "1.36"][..], "set other feature gates"),
        (
            &["--from", "1.37", "--to", "1.37", "--to-feature-gates", "HPAScaleToZero=true"],
            "the feature gates before and after the upgrade are the same",
        ),
        (
            &["--from", "1.32", "--from-feature-gates", "HPAConfigurableTolerance=true"],
            "feature gate HPAConfigurableTolerance does not exist in Kubernetes 1.32",
        ),
        (&["--from", "1.99"], "1.99"),
        (&["--from", "1.32", "--load", "queue=3"], "no HPA scales on queue"),
        (&["--from", "1.32", "--until", "5m"], "--load <LOAD>"),
        (&["--from", "1.32", "--skip-missing"], "unexpected argument '--skip-missing'"),
    ] {
        let error = stderr(&kube_lockstep(&SHOP).args(arguments).assert().code(2));
        assert!(error.contains(message), "{arguments:?}: {error}");
    }
}
