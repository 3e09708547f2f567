//! Changes of manifests in a repository, against a budget.

use std::fs;
use std::path::Path;
use std::process::Command as Process;

use serde_json::Value;

use super::{json, kube_lockstep, stderr, stdout, text};
use crate::support;
use assert_cmd::Command;

const LOAD: [&str; 4] =
    ["--load", "checkout:cpu=total:sine(mean=6,amplitude=4,period=2h)", "--until", "4h"];

/// Runs git in a folder, without the user's settings.
fn git(folder: &Path, arguments: &[&str]) {
    let mut git = Process::new("git");
    git.current_dir(folder).args(["-c", "user.name=a", "-c", "user.email=a@example.org"]);
    git.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    let output = git.args(arguments).output().expect("git runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// A repository with the manifests of a shop, committed on the branch main.
fn repository() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::create_dir(folder.path().join("deploy")).expect("a folder");
    for name in ["hpas.yaml", "deployments.yaml"] {
        let from = support::repository().join("examples/shop").join(name);
        fs::copy(from, folder.path().join("deploy").join(name)).expect("a copy");
    }
    git(folder.path(), &["init", "--quiet", "--initial-branch", "main"]);
    git(folder.path(), &["add", "."]);
    git(folder.path(), &["commit", "--quiet", "--message", "Manifests"]);
    folder
}

/// Replaces a text in a file of the repository.
fn edit(folder: &Path, file: &str, from: &str, to: &str) {
    let path = folder.join("deploy").join(file);
    let text = fs::read_to_string(&path).expect("a file");
    assert!(text.contains(from), "{text}");
    fs::write(path, text.replacen(from, to, 1)).expect("a file");
}

fn gate(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = kube_lockstep(&["gate"]);
    command.current_dir(folder).args(["--base", "main", "-f", "deploy"]).args(LOAD);
    command.env_remove("GITHUB_WORKSPACE").env_remove("GITHUB_STEP_SUMMARY").args(arguments);
    command
}

#[test]
fn a_changed_target_has_the_figures_of_a_comparison() {
    let repository = repository();
    let folder = repository.path();
    edit(folder, "hpas.yaml", "averageUtilization: 75", "averageUtilization: 85");
    let shown = stdout(&gate(folder, &[]).assert().code(1));
    let field = "deploy/hpas.yaml:21: HPA checkout: \
                 spec.metrics[0].resource.target.averageUtilization: 75 → 85";
    assert!(shown.contains(field), "{shown}");
    assert!(
        shown.contains("Autoscalers from main to the working tree: 1 changed, 2 unchanged"),
        "{shown}"
    );
    assert!(shown.contains("over budget: missing "), "{shown}");

    let lines = json(&gate(folder, &["--format=json", "--budget", "peak<=99"]).assert().code(0));
    let set = "spec.metrics.0.resource.target.averageUtilization=85";
    let compare = ["compare", "-f", "examples/shop", "--hpa", "checkout", "--set", set];
    let rows = json(&kube_lockstep(&compare).args(LOAD).arg("--format=json").assert().code(0));
    let names = lines[0]["base"].as_object().expect("figures").keys();
    for name in names {
        assert_eq!(lines[0]["base"][name], rows[0][name], "{name}");
        assert_eq!(lines[0]["head"][name], rows[1][name], "{name}");
    }
    assert!(lines[0]["head"]["podHours"].as_f64() < lines[0]["base"]["podHours"].as_f64());
    assert_eq!(lines[0]["verdict"], "within budget");
    assert_eq!(lines[1]["summary"]["withinBudget"], 1);
}

#[test]
fn a_change_without_effect_on_autoscalers_needs_no_load() {
    let repository = repository();
    edit(repository.path(), "deployments.yaml", "name: checkout", "name: checkout # a comment");
    let mut command = kube_lockstep(&["gate", "--base", "main", "-f", "deploy"]);
    let shown = stdout(&command.current_dir(repository.path()).assert().code(0));
    assert!(shown.contains("Autoscalers from main to the working tree: 3 unchanged"), "{shown}");
    assert!(shown.ends_with("nothing to measure\n"), "{shown}");
}

#[test]
fn a_changed_request_of_the_target_counts() {
    let repository = repository();
    edit(repository.path(), "deployments.yaml", "cpu: 500m", "cpu: 250m");
    let more = ["--price", "cpu=0.04", "--budget", "cost<=+0%,pod-hours<=+200%"];
    let shown = stdout(&gate(repository.path(), &more).assert().code(0));
    let field =
        "Deployment checkout: spec.template.spec.containers[0].resources.requests.cpu: 500m → 250m";
    let words = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains(field), "{shown}");
    assert!(shown.contains("  cost "), "{shown}");
}

/// The end of the Deployment checkout's first container.
const PROBE: &str = "initialDelaySeconds: 20\n";

/// The same with another container after it, which has no requests.
const PROXY: &str = "initialDelaySeconds: 20
        - name: proxy
          image: registry.k8s.io/e2e-test-images/agnhost:2.53
";

#[test]
fn a_container_without_a_request_stops_its_hpa() {
    let repository = repository();
    let folder = repository.path();
    edit(folder, "deployments.yaml", PROBE, PROXY);
    let shown = stdout(&gate(folder, &["--budget=peak<=99"]).assert().code(1));
    let words = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    for expected in [
        "HPA shop/checkout, changed: over budget",
        "deploy/deployments.yaml:29: Deployment checkout: spec.template.spec.containers[1]: unset",
        "over budget: HPA checkout no longer scales: failed to get cpu utilization: missing \
         request for cpu in container proxy of Pod ",
    ] {
        assert!(words.contains(expected), "{expected}: {shown}");
    }
    // The pods stay as they are, and lack capacity for the load.
    let lines = json(&gate(folder, &["--format=json"]).assert().code(1));
    let missing = |version: &str| lines[0][version]["missingPodHours"].as_f64();
    assert!(missing("head") > missing("base"), "{lines:?}");
    assert_eq!(lines[0]["head"]["changes"], 0);
    assert_eq!(lines[0]["head"]["failedSeconds"], 4.0 * 3600.0);
    // A mutating webhook may set the request.
    let set = ["--request", "checkout:cpu/proxy=1m", "--budget", "peak<=99"];
    let shown = stdout(&gate(folder, &set).assert().code(0));
    assert!(shown.contains("HPA shop/checkout, changed: within budget"), "{shown}");
}

#[test]
fn a_request_that_both_versions_lack_must_be_given() {
    let repository = repository();
    let folder = repository.path();
    edit(folder, "deployments.yaml", PROBE, PROXY);
    git(folder, &["commit", "--all", "--quiet", "--message", "A proxy"]);
    edit(folder, "hpas.yaml", "maxReplicas: 30", "maxReplicas: 20");
    let error = stderr(&gate(folder, &[]).assert().code(2));
    assert!(error.contains("add --request cpu/proxy=500m"), "{error}");
}

#[test]
fn a_change_after_which_an_hpa_can_not_scale_is_over_budget() {
    const SECOND: &str = "apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata:
  name: checkout-2
  namespace: shop
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: checkout}
  maxReplicas: 30
";
    let requests =
        "requests:\n              cpu: 500m\n            limits:\n              cpu: \"2\"";
    for (file, from, to, expected) in [
        (
            "deployments.yaml",
            "replicas: 3",
            "replicas: 0",
            "HPA checkout no longer scales: the target has 0 replicas",
        ),
        (
            "deployments.yaml",
            requests,
            "requests: {memory: 1Gi}",
            "HPA checkout no longer scales: failed to get cpu utilization: missing request for cpu",
        ),
        (
            "hpas.yaml",
            "apiVersion",
            &format!("{SECOND}---\napiVersion"),
            "HPA shop/checkout scales Deployment checkout, as does HPA shop/checkout-2 \
             (deploy/hpas.yaml:3): the controller stops both (AmbiguousSelector)",
        ),
        (
            "deployments.yaml",
            "name: checkout",
            "name: checkout-2",
            "Deployment checkout, which the HPA scales, is not in the manifests: did you mean",
        ),
        (
            "hpas.yaml",
            "- type: Resource\n      resource:\n        name: cpu",
            "- type: ContainerResource\n      containerResource:\n        name: cpu\n        \
             container: app",
            "Deployment checkout has no container app, on which the HPA scales",
        ),
        (
            "hpas.yaml",
            "kind: Deployment",
            "kind: StatefulSet",
            "StatefulSet checkout, which the HPA scales, is not in the manifests",
        ),
    ] {
        let repository = repository();
        edit(repository.path(), file, from, to);
        let shown = stdout(&gate(repository.path(), &["--budget=peak<=99"]).assert().code(1));
        let words = shown.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains(&format!("over budget: {expected}")), "{expected}: {shown}");
    }
    // A load in percent of a request that is gone can't be predicted.
    let repository = repository();
    edit(repository.path(), "deployments.yaml", requests, "requests: {memory: 1Gi}");
    let load = ["--load", "checkout:cpu=60%", "--until", "1h"];
    let mut command = kube_lockstep(&["gate", "--base", "main", "-f", "deploy"]);
    let shown = stdout(&command.current_dir(repository.path()).args(load).assert().code(1));
    let words = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    let expected = "over budget: container checkout requests no cpu, so the HPA can't calculate";
    assert!(words.contains(expected), "{shown}");
}

#[test]
fn hpas_of_two_targets_that_select_the_same_pods_are_over_budget() {
    let stopped = "select the same pods, of Deployment";
    let end = "the controller stops both (AmbiguousSelector)";
    let check = |folder: &Path, more: &[&str], expected: &[&str], code: i32| {
        let shown = stdout(&gate(folder, more).assert().code(code));
        let words = shown.split_whitespace().collect::<Vec<_>>().join(" ");
        for expected in expected {
            assert!(words.contains(expected), "{expected}: {shown}");
        }
        shown
    };
    let repository = repository();
    let folder = repository.path();
    let read = |name: &str| {
        let all = fs::read_to_string(folder.join("deploy").join(name)).expect("a file");
        let mut all = all.split("\n---\n").map(str::to_owned);
        all.find(|it| it.contains("name: checkout")).expect("an object")
    };
    let deployment = read("deployments.yaml").replacen("name: checkout", "name: other", 1);
    let hpa = read("hpas.yaml").replace("name: checkout", "name: other");
    let added = format!("{deployment}\n---\n{hpa}");
    fs::write(folder.join("deploy/other.yaml"), &added).expect("a file");
    let pair = format!("over budget: HPA shop/other and HPA shop/checkout {stopped} checkout");
    // No load is required, and no figures are predicted. The other HPAs do not matter.
    let expected = [
        "1 added, 3 unchanged",
        "HPA shop/other, added: over budget",
        "HPA shop/checkout, unchanged: over budget deploy/hpas.yaml:3 over budget: ",
        &*pair,
        end,
        "2 over budget",
    ];
    let shown = check(folder, &["--budget=peak<=99"], &expected, 1);
    assert!(!shown.contains("missing"), "{shown}");
    let lines = json(&gate(folder, &["--format=json"]).assert().code(1));
    assert_eq!((&lines[0]["change"], &lines[1]["change"]), (&"unchanged".into(), &"added".into()));
    assert_eq!(lines[2]["summary"]["unchanged"], 3);
    let expected = ["HPA shop/checkout, unchanged: over budget"];
    check(folder, &["--hpa=checkout"], &expected, 1);
    // Releases before 1.26 do not check the selectors.
    let load = "--load=other:cpu=total:1";
    check(folder, &["--release=1.25", load], &["HPA shop/other, added: not checked"], 0);
    // A change of HPAs that were stopped before stops none.
    git(folder, &["add", "."]);
    git(folder, &["commit", "--quiet", "--message", "Another"]);
    check(folder, &[], &["4 unchanged"], 0);
    edit(folder, "other.yaml", "maxReplicas: 30", "maxReplicas: 40");
    let shown = check(folder, &[load], &["1 changed, 3 unchanged"], 0);
    assert!(!shown.contains("over budget"), "{shown}");
}

#[test]
fn a_changed_selector_can_stop_two_hpas() {
    let repository = repository();
    let folder = repository.path();
    for name in ["search", "checkout"] {
        let labels = format!("labels:\n        app: {name}\n");
        edit(folder, "deployments.yaml", &labels, &format!("{labels}        tier: shop\n"));
    }
    git(folder, &["commit", "--all", "--quiet", "--message", "Labels"]);
    edit(folder, "deployments.yaml", "app: search\n  template", "tier: shop\n  template");
    let shown = stdout(&gate(folder, &[]).assert().code(1));
    let words = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    for expected in [
        "HPA shop/search, changed: over budget",
        "HPA shop/checkout, unchanged: over budget",
        "HPA shop/search and HPA shop/checkout select the same pods, of Deployment checkout",
    ] {
        assert!(words.contains(expected), "{expected}: {shown}");
    }
}

#[test]
fn added_and_removed_autoscalers_are_listed() {
    let repository = repository();
    let folder = repository.path();
    let path = folder.join("deploy/hpas.yaml");
    let text = fs::read_to_string(&path).expect("a file");
    // It scales another Deployment.
    let renamed = text.replacen("name: checkout", "name: checkout-2", 2);
    fs::write(&path, renamed).expect("a file");
    let deployments = folder.join("deploy/deployments.yaml");
    let text = fs::read_to_string(&deployments).expect("a file");
    fs::write(&deployments, text.replacen("name: checkout", "name: checkout-2", 1))
        .expect("a file");
    // Without a load for the new HPA, there is no verdict.
    let error = stderr(&gate(folder, &[]).assert().code(2));
    assert!(error.contains("the manifests lack values"), "{error}");
    let load = ["--load", "checkout-2:cpu=total:4"];
    let shown = stdout(&gate(folder, &load).args(["--budget", "peak<=20"]).assert().code(0));
    assert!(shown.contains("1 added, 1 removed, 2 unchanged"), "{shown}");
    assert!(shown.contains("HPA shop/checkout-2, added: within budget"), "{shown}");
    assert!(shown.contains("HPA shop/checkout: removed"), "{shown}");
    let shown = stdout(&gate(folder, &load).assert().code(0));
    assert!(shown.contains("HPA shop/checkout-2, added: not checked"), "{shown}");
    let note = "not checked: missing<=+0: there is nothing to compare with";
    assert!(shown.contains(note), "{shown}");
}

#[test]
fn an_hpa_that_moves_to_another_workload_is_not_compared() {
    let repository = repository();
    let folder = repository.path();
    edit(folder, "hpas.yaml", "name: checkout\n  minReplicas", "name: cart\n  minReplicas");
    let all = fs::read_to_string(folder.join("deploy/deployments.yaml")).expect("a file");
    let first = all.split("\n---\n").find(|it| it.contains("name: checkout")).expect("a target");
    fs::write(folder.join("deploy/cart.yaml"), first.replace("checkout", "cart")).expect("a file");
    let shown = stdout(&gate(folder, &[]).assert().code(0));
    for expected in [
        "1 moved",
        "HPA shop/checkout, moved: not checked",
        "spec.scaleTargetRef.name: checkout → cart",
        "not checked: missing<=+0: the new target has a different load",
        "note: Deployment checkout no longer has an HPA",
    ] {
        assert!(shown.contains(expected), "{expected}: {shown}");
    }
    let lines = json(&gate(folder, &["--format=json", "--budget", "peak<=0"]).assert().code(1));
    assert_eq!((&lines[0]["change"], &lines[0]["base"]), (&"moved".into(), &Value::Null));
    assert_eq!(lines[0]["verdict"], "over budget");
    assert_eq!(lines[0]["targetsWithoutAutoscaler"], serde_json::json!(["Deployment checkout"]));
    // Another HPA scales the old target, whether or not it is selected.
    let hpas = fs::read_to_string(folder.join("deploy/hpas.yaml")).expect("a file");
    let first =
        hpas.split("\n---\n").next().expect("an HPA").replace("name: cart", "name: checkout");
    let other = first.replacen("name: checkout", "name: other", 1);
    fs::write(folder.join("deploy/other.yaml"), other).expect("a file");
    for more in [&["--load", "other:cpu=total:4"][..], &["--hpa", "checkout"]] {
        let shown = stdout(&gate(folder, more).assert().code(0));
        assert!(shown.contains("1 moved") && !shown.contains("note: "), "{shown}");
    }
    // Without the old target, there is no note either.
    fs::remove_file(folder.join("deploy/other.yaml")).expect("a file");
    fs::write(
        folder.join("deploy/deployments.yaml"),
        all.replacen("name: checkout", "name: old", 1),
    )
    .expect("a file");
    let shown = stdout(&gate(folder, &[]).assert().code(0));
    assert!(shown.contains("1 moved") && !shown.contains("note: "), "{shown}");
}

#[test]
fn a_target_whose_hpa_moves_to_another_workload_is_noted() {
    let repository = repository();
    let folder = repository.path();
    edit(folder, "hpas.yaml", "    name: search\n", "    name: checkout\n");
    let shown = stdout(&gate(folder, &[]).assert().code(1));
    assert!(shown.contains("note: Deployment search no longer has an HPA"), "{shown}");
}

#[test]
fn another_type_of_target_is_not_within_budget() {
    let repository = repository();
    let (from, to) = (
        "type: Utilization\n          averageUtilization: 75",
        "type: AverageValue\n          averageValue: 600m",
    );
    edit(repository.path(), "hpas.yaml", from, to);
    let shown = stdout(&gate(repository.path(), &[]).assert().code(0));
    assert!(shown.contains("HPA shop/checkout, changed: not checked"), "{shown}");
    let note = "missing<=+0: the targets of cpu before and after the change can't be compared";
    assert!(shown.contains(note), "{shown}");
    // Figures by these targets are left out, and the others are not.
    let row = |name: &str| {
        let mut lines = shown.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        lines.find(|words| words.first() == Some(&name)).map(|words| words[1..].join(" "))
    };
    assert_eq!([row("missing"), row("above")], [Some("-".to_owned()), Some("-".to_owned())]);
    assert_eq!(row("longest"), None);
    assert!(row("pod-hours").is_some_and(|it| it.contains('→')), "{shown}");
    let mut command = gate(repository.path(), &["--report=github", "--report=markdown=gate.md"]);
    let shown = stdout(&command.assert().code(0));
    let annotation = shown.lines().find(|line| line.starts_with("::warning")).expect("a warning");
    assert!(annotation.contains("pod-hours") && !annotation.contains("%0Amissing"), "{annotation}");
    let table = fs::read_to_string(repository.path().join("gate.md")).expect("a report");
    let rows: Vec<Vec<&str>> = table
        .lines()
        .filter(|line| line.starts_with('|'))
        .map(|line| line.split('|').map(str::trim).collect())
        .collect();
    let missing = rows[0].iter().position(|it| *it == "missing").expect("a column");
    assert_eq!(rows[2][missing], "-", "{table}");
}

#[test]
fn paths_lead_through_the_repository_of_the_current_folder() {
    let repository = repository();
    let folder = repository.path();
    fs::create_dir(folder.join("deploy/sub")).expect("a folder");
    #[cfg(unix)]
    std::os::unix::fs::symlink("deploy", folder.join("link")).expect("a link");
    git(folder, &["add", "."]);
    git(folder, &["commit", "--quiet", "--message", "A link"]);
    edit(folder, "hpas.yaml", "maxReplicas: 30", "maxReplicas: 10");
    let run = |current: &str, path: &str| {
        let mut command = kube_lockstep(&["gate", "--base", "main", "-f", path]);
        command.current_dir(folder.join(current)).args(LOAD);
        stdout(&command.assert().code(1))
    };
    let links: &[(&str, &str)] =
        if cfg!(unix) { &[(".", "link"), (".", "link/hpas.yaml")] } else { &[] };
    let whole = folder.join("deploy");
    let others =
        [("deploy/sub", ".."), ("deploy", "."), (".", "./deploy/sub/.."), (".", text(&whole))];
    for (current, path) in others.iter().chain(links) {
        // Without the Deployment, its replicas must be given.
        if *path == "link/hpas.yaml" {
            continue;
        }
        let shown = run(current, path);
        assert!(shown.contains("1 changed, 2 unchanged"), "{current} {path}: {shown}");
    }
}

#[test]
fn versions_can_be_folders_and_files() {
    let repository = repository();
    let folder = repository.path();
    let old = folder.join("old");
    fs::create_dir(&old).expect("a folder");
    for name in ["hpas.yaml", "deployments.yaml"] {
        fs::copy(folder.join("deploy").join(name), old.join(name)).expect("a copy");
    }
    edit(folder, "hpas.yaml", "maxReplicas: 30", "maxReplicas: 10");
    let shown = |base: &Path, head: &Path| {
        let mut command = kube_lockstep(&["gate", "--base", text(base), "--head", text(head)]);
        stdout(&command.current_dir(folder).args(LOAD).assert().code(1))
    };
    let (base, head) = (Path::new("./old"), Path::new("deploy"));
    let from_folders = shown(base, head);
    assert!(from_folders.contains("spec.maxReplicas: 30 → 10"), "{from_folders}");
    for (folder, file) in [(&old, "base.yaml"), (&folder.join("deploy"), "head.yaml")] {
        let read = |name: &str| fs::read_to_string(folder.join(name)).expect("a file");
        let all = read("hpas.yaml") + "\n---\n" + &read("deployments.yaml");
        fs::write(repository.path().join(file), all).expect("a file");
    }
    let from_files = shown(Path::new("base.yaml"), Path::new("head.yaml"));
    let figures = |shown: &str| shown.lines().skip(5).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(figures(&from_files), figures(&from_folders));
}

#[test]
fn reports_are_for_pull_requests_and_ci_systems() {
    let repository = repository();
    let folder = repository.path();
    edit(folder, "hpas.yaml", "averageUtilization: 75", "averageUtilization: 85");
    let reports = ["markdown=gate.md", "junit=gate.xml", "html=gate.html", "github"];
    let mut command = gate(folder, &[]);
    for report in reports {
        command.args(["--report", report]);
    }
    let shown = stdout(&command.env("GITHUB_STEP_SUMMARY", "summary.md").assert().code(1));
    let annotation = "::error file=deploy/hpas.yaml,line=21,title=HPA shop/checkout%3A over budget";
    assert!(shown.contains(annotation), "{shown}");
    // Also from a subfolder, the paths are relative to the repository.
    for manifests in [&[][..], &["-f", "."], &["-f", "hpas.yaml", "-f", "deployments.yaml"]] {
        let mut command = kube_lockstep(&["gate", "--base", "main", "--report", "github"]);
        command.current_dir(folder.join("deploy")).args(LOAD).args(manifests);
        command.env_remove("GITHUB_STEP_SUMMARY").env("GITHUB_WORKSPACE", folder);
        let shown = stdout(&command.assert().code(1));
        assert!(shown.contains(annotation), "{manifests:?}: {shown}");
    }
    let read = |name: &str| fs::read_to_string(folder.join(name)).expect("a report");
    assert!(read("gate.md").starts_with("# Autoscalers: 1 over budget\n"), "{}", read("gate.md"));
    assert_eq!(read("gate.md"), read("summary.md"));
    assert!(read("gate.xml").contains(r#"tests="1" skipped="0" errors="0" failures="1""#));
    // The message has what is broken, and the text the rest.
    let (from, to) = (
        "type: Utilization\n          averageUtilization: 85",
        "type: AverageValue\n          averageValue: 600m",
    );
    edit(folder, "hpas.yaml", from, to);
    let mut command = gate(folder, &["--budget", "peak<=5,missing<=+0,above<=+0s"]);
    command.args(["--report", "junit=gate.xml"]).assert().code(1);
    let junit = read("gate.xml");
    let message = junit.split("message=\"").nth(1).and_then(|it| it.split('"').next());
    assert!(
        message.is_some_and(|it| it.starts_with("peak ") && !it.contains("missing")),
        "{junit}"
    );
    assert!(junit.contains("not checked: missing&lt;=+0"), "{junit}");
    let page = read("gate.html");
    assert!(page.contains("<svg") && page.contains("averageUtilization: 75 → 85"), "{page}");
}

#[test]
fn mistakes_are_explained() {
    let repository = repository();
    let folder = repository.path();
    let error = |arguments: &[&str]| {
        let mut command = kube_lockstep(&["gate"]);
        stderr(&command.current_dir(folder).args(arguments).assert().code(2))
    };
    for (arguments, message) in [
        (&["--base", "nain", "-f", "deploy"][..], "git knows no such revision here"),
        (
            &["--base", "main", "-f", "other"],
            "neither main nor the working tree has this file or folder",
        ),
        (&["--base", "main", "-f", "/deploy"], "it is outside of the repository"),
        (
            &["--base", "main", "-f", "deploy", "--load", "x:cpu=1"],
            "the autoscalers are shop/checkout, shop/search, shop/mail\n",
        ),
        (&["--base", "main", "--budget", "mising<=0"], "did you mean `missing`?"),
        (&["-f", "deploy"], "--base <VERSION>"),
        (&["--base", "main", "-f", "deploy", "--capacity", "x"], "expected METRIC=AMOUNT"),
    ] {
        let error = error(arguments);
        assert!(error.contains(message), "{arguments:?}: {error}");
    }
    fs::create_dir(folder.join("main")).expect("a folder");
    let both = error(&["--base", "main", "-f", "deploy"]);
    assert!(both.contains("is both a git revision and a path"), "{both}");
}

#[test]
fn a_version_without_manifests_is_an_error() {
    let repository = repository();
    let folder = repository.path();
    let gate = |arguments: &[&str], code: i32| {
        let mut command = kube_lockstep(&["gate"]);
        let assert = command.current_dir(folder).args(arguments).assert().code(code);
        (stderr(&assert), stdout(&assert))
    };
    fs::create_dir_all(folder.join("new/shop")).expect("a folder");
    fs::create_dir(folder.join("none")).expect("a folder");
    for name in ["hpas.yaml", "deployments.yaml"] {
        fs::copy(folder.join("deploy").join(name), folder.join("new/shop").join(name))
            .expect("a copy");
    }
    let below = "there are no manifests in the folder new\nhint: -R also reads its subfolders";
    let none = "there are no manifests in the folder none\n";
    for (versions, expected) in [
        (["--base=deploy", "--head=new"], below),
        (["--base=new", "--head=deploy"], below),
        (["--base=deploy", "--head=none"], none),
        (["--base=none", "--head=deploy"], none),
    ] {
        let (error, shown) = gate(&versions, 2);
        assert!(error.contains(expected) && shown.is_empty(), "{versions:?}: {error} {shown}");
        assert_eq!(error.contains("hint:"), expected == below, "{error}");
    }
    let (_, shown) = gate(&["--base=deploy", "--head=new", "-R"], 0);
    assert!(shown.contains("3 unchanged"), "{shown}");
    // Also in a revision, and if the manifests move to a subfolder.
    let (error, _) = gate(&["--base=main"], 2);
    assert!(error.contains("in the current folder of main\nhint: -R also"), "{error}");
    fs::remove_dir_all(folder.join("deploy")).expect("a folder");
    fs::rename(folder.join("new"), folder.join("deploy")).expect("a folder");
    let (error, _) = gate(&["--base=main", "-f", "deploy"], 2);
    assert!(error.contains("in the folder deploy\nhint: -R also"), "{error}");
    // A folder that only one version has is legitimate.
    fs::rename(folder.join("deploy"), folder.join("other")).expect("a folder");
    let (note, shown) = gate(&["--base=main", "-f", "deploy"], 0);
    let expected = "note: the working tree does not have deploy, so its autoscalers count as \
                    removed\n";
    assert!(note.contains(expected) && shown.contains("3 removed"), "{note} {shown}");
    let (note, shown) = gate(&["--base=main", "-f", "other/shop", "--skip-missing"], 0);
    let expected = "note: main does not have other/shop, so its autoscalers count as added\n";
    assert!(note.contains(expected) && shown.contains("3 added"), "{note} {shown}");
    let mut command = kube_lockstep(&["gate", "--base=main", "--skip-missing"]);
    let note = stderr(&command.current_dir(folder.join("other/shop")).assert().code(0));
    let expected = "main does not have the current folder, so its autoscalers count as added\n";
    assert!(note.contains(expected), "{note}");
}

/// The manifests of a VPA in two folders: before and after a change.
fn vpa_in_two_versions(from: &str, to: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (version, from, to) in [("before", "", ""), ("after", from, to)] {
        let version = folder.path().join(version);
        fs::create_dir(&version).expect("a folder");
        for name in ["vpa.yaml", "deployment.yaml"] {
            let path = support::repository().join("examples/hamster").join(name);
            let text = fs::read_to_string(path).expect("a manifest");
            fs::write(version.join(name), text.replace(from, to)).expect("a file");
        }
    }
    folder
}

#[test]
fn a_change_of_a_vpa_is_measured_by_its_requests() {
    let folder = vpa_in_two_versions("cpu: 1\n", "cpu: 200m\n");
    let gate = |arguments: &[&str]| {
        let mut command = kube_lockstep(&["gate", "--base=before", "--head=after", "--until=3h"]);
        command.current_dir(folder.path()).args(["--load=cpu=300m", "--load=memory=100Mi"]);
        command.args(arguments);
        command
    };
    let shown = stdout(&gate(&[]).assert().code(1));
    let words = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    let field = "vpa.yaml:18: VPA hamster-vpa: \
                 spec.resourcePolicy.containerPolicies[0].maxAllowed.cpu: 1 → 200m";
    assert!(words.contains(field), "{shown}");
    assert!(shown.contains("VPA hamster-vpa, changed: over budget"), "{shown}");
    assert!(
        shown.contains("over budget: cpu-short ") && shown.contains("  cpu-unused "),
        "{shown}"
    );
    assert!(!shown.contains("over budget: missing"), "{shown}");
    // The figures are those of a comparison.
    let budget = ["--budget=cpu-requested<=+0%", "--format=json"];
    let lines = json(&gate(&budget).assert().code(0));
    let set = "--set=spec.resourcePolicy.containerPolicies.0.maxAllowed.cpu=200m";
    let compare = ["compare", "-f=before", "--load=cpu=300m", "--load=memory=100Mi", "--until=3h"];
    let mut compare = kube_lockstep(&compare);
    let rows = compare.current_dir(folder.path()).args([set, "--format=json"]).assert().code(0);
    let rows = json(&rows);
    for name in ["podHours", "cpu", "memory", "shortPodHours", "evictions"] {
        assert_eq!(lines[0]["base"][name], rows[0][name], "{name}");
        assert_eq!(lines[0]["head"][name], rows[1][name], "{name}");
    }
    let other = stdout(&gate(&["--budget=missing<=0"]).assert().code(0));
    assert!(
        other.contains("not checked: missing<=0: a VPA without an HPA has no such figures"),
        "{other}"
    );
}
