//! `lint`: its formats, exit codes and errors, and its page. The rules have tests of their own, in
//! their crate.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;

use super::{json, kube_lockstep, stderr, stdout, support, text};
use kube_lockstep_lint::RULES;
use serde_json::Value;

const SHOP: [&str; 3] = ["lint", "-f", "examples/shop"];

/// A manifest with an error: a container without a request.
const WITHOUT_REQUEST: &str = "\
apiVersion: v1
kind: List
items:
  - apiVersion: apps/v1
    kind: Deployment
    metadata: {name: web, namespace: shop}
    spec:
      selector: {matchLabels: {app: web}}
      template:
        metadata: {labels: {app: web}}
        spec:
          containers: [{name: app, image: web}]
  - apiVersion: autoscaling/v1
    kind: HorizontalPodAutoscaler
    metadata: {name: web, namespace: shop}
    spec:
      scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
      maxReplicas: 5
      targetCPUUtilizationPercentage: 50
";

#[test]
fn findings_have_a_place_a_level_and_a_hint() {
    let run = kube_lockstep(&SHOP).assert().code(1);
    assert_eq!(stderr(&run), "");
    insta::assert_snapshot!(stdout(&run));
    // Folders and standard input are read as by `predict`.
    let run = kube_lockstep(&["lint", "-f", "-"]).write_stdin(WITHOUT_REQUEST).assert().code(1);
    let shown = stdout(&run);
    let expected = "<stdin>:12:24: error: container app requests no cpu, so HPA shop/web can't scale \
                    on the utilization of cpu [missing-request, derived]\n";
    assert!(shown.starts_with(expected), "{shown}");
    assert!(shown.contains("\n1 error in 1 HPA; `kube-lockstep lint --list`"), "{shown}");
}

#[test]
fn ordinary_manifests_have_no_findings() {
    for example in ["hamster", "orders", "php-apache"] {
        let path = format!("examples/{example}");
        let run = kube_lockstep(&["lint", "-f", &path]).assert().code(0);
        assert!(stdout(&run).starts_with("no findings in 1 "), "{}", stdout(&run));
    }
}

#[test]
fn levels_and_rules_decide_the_exit_code() {
    let none = "no findings in 3 HPAs\n";
    for (arguments, code, expected) in [
        (&["--fail-on", "error"][..], 0, "warning: spec.replicas is 3"),
        (&["--fail-on", "note"], 1, "warning: spec.replicas is 3"),
        (&["--ignore", "replicas-beside-hpa"], 0, none),
        (&["--rule", "missing-request", "--rule", "ambiguous-selector"], 0, none),
        (&["--rule", "replicas-beside-hpa"], 1, "3 warnings in 3 HPAs"),
    ] {
        let run = kube_lockstep(&SHOP).args(arguments).assert().code(code);
        assert!(stdout(&run).contains(expected), "{arguments:?}\n{}", stdout(&run));
    }
}

#[test]
fn gates_are_those_of_components() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let file = folder.path().join("worker.yaml");
    let worker = fs::read_to_string("examples/orders/worker.yaml").expect("an example");
    fs::write(&file, worker.replace("minReplicas: 2", "minReplicas: 0"))
        .expect("it can be written");
    let lint = |arguments: &[&str], code: i32| {
        let run = kube_lockstep(&["lint", "-f", text(&file)]).args(arguments).assert().code(code);
        stdout(&run)
    };
    let off = "kube-controller-manager:HPAScaleToZero=false";
    assert!(lint(&["--feature-gates", off], 1).contains("Deployment worker to 0 and never back"));
    lint(&["--feature-gates", &format!("{off},HPAScaleToZero=true")], 0);
    lint(&["--feature-gates", "kube-apiserver:HPAScaleToZero=true"], 0);
}

#[test]
fn wrong_options_and_manifests_exit_with_2() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let (broken, alone) = (folder.path().join("broken.yaml"), folder.path().join("alone.yaml"));
    let hpa = fs::read_to_string("examples/php-apache/hpa.yaml").expect("an example");
    fs::write(&broken, hpa.replace("maxReplicas", "maxReplica")).expect("a file can be written");
    fs::write(&alone, "apiVersion: v1\nkind: Service\nmetadata: {name: web}\n").expect("written");
    for (arguments, expected) in [
        (&["-f", text(&broken)][..], "broken.yaml:12:3: the API server rejects this HPA"),
        (&["-f", text(&alone)], "there is no HorizontalPodAutoscaler and no VerticalPodAutoscaler"),
        (&["-f", "no/such/file.yaml"], "no/such/file.yaml: "),
        (&["-f", "-"], "kube-lockstep lint -f -"),
        (&["-f", "examples/shop", "--rule", "missing-requests"], "did you mean `missing-request`?"),
        (&["-f", "examples/shop", "--load", "cpus=1"], "no HPA scales on cpus"),
        (
            &["-f", "examples/php-apache", "--load", "cpu=300"],
            "--load cpu: the unit seems to be wrong: the load is up to 300 cores, but a pod \
             requests 200m",
        ),
        (
            &["-f", "examples/hamster", "--load", "memory=100"],
            "--load memory: the unit seems to be wrong",
        ),
        (&["-f", "examples/shop", "--feature-gates", "A=true"], "unrecognized feature gate: A"),
        (&["-f", "examples/shop", "--feature-gates", "kubelet:A=true"], "no component kubelet"),
        (&["-f", "examples/shop", "--release", "1.99"], "1.99"),
        (&["--list", "--format", "sarif"], "--list has no format but text and json"),
        (&["--list", "-f", "examples/shop"], "cannot be used with"),
        (&[], "--filename"),
    ] {
        let run = kube_lockstep(&["lint"]).args(arguments).write_stdin("").assert().code(2);
        assert!(stderr(&run).contains(expected), "{expected}\n{}", stderr(&run));
        assert_eq!(stdout(&run), "", "{arguments:?}");
    }
}

#[test]
fn json_has_a_line_for_each_finding_and_a_summary() {
    let lines = json(&kube_lockstep(&SHOP).args(["--format", "json"]).assert().code(1));
    let [first, .., summary] = lines.as_slice() else { panic!("{lines:?}") };
    assert_eq!(first["rule"], "replicas-beside-hpa");
    assert_eq!(first["level"], "warning");
    assert_eq!(first["evidence"], "observed");
    assert_eq!(first["file"], "examples/shop/deployments.yaml");
    assert_eq!((&first["line"], &first["column"]), (&7.into(), &3.into()));
    assert_eq!(first["object"]["kind"], "Deployment");
    assert_eq!(first["object"]["namespace"], "shop");
    assert_eq!(summary["summary"]["hpas"], 3);
    assert_eq!(summary["summary"]["warnings"], 3);
    assert!(lines.iter().all(|line| line["formatVersion"] == 1), "{lines:?}");
}

/// https://docs.github.com/en/code-security/code-scanning/integrating-with-code-scanning/sarif-support-for-code-scanning
#[test]
fn sarif_has_what_code_scanning_requires() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let file = folder.path().join("lint.sarif");
    let arguments = ["--format", "sarif", "-o", text(&file)];
    let run = kube_lockstep(&SHOP).args(arguments).assert().code(1);
    assert_eq!(stdout(&run), "");
    let written = fs::read_to_string(&file).expect("a file was written");
    let log: Value = serde_json::from_str(&written).expect("SARIF is JSON");
    assert_eq!(log["version"], "2.1.0");
    assert!(log["$schema"].as_str().is_some_and(|it| it.contains("sarif-2.1.0")));
    let run = &log["runs"][0];
    assert_eq!(run["tool"]["driver"]["name"], "kube-lockstep");
    let rules = run["tool"]["driver"]["rules"].as_array().expect("rules");
    assert_eq!(rules.len(), RULES.len());
    for rule in rules {
        for field in ["/id", "/shortDescription/text", "/fullDescription/text", "/help/text"] {
            let value = rule.pointer(field).and_then(Value::as_str);
            assert!(value.is_some_and(|it| !it.is_empty()), "{field}: {rule}");
        }
        assert!(rule["helpUri"].as_str().is_some_and(|it| it.starts_with("https://")), "{rule}");
        let level = &rule["defaultConfiguration"]["level"];
        assert!(["note", "warning", "error"].iter().any(|it| level == it), "{rule}");
    }
    let results = run["results"].as_array().expect("results");
    assert_eq!(results.len(), 3);
    for result in results {
        let index =
            usize::try_from(result["ruleIndex"].as_u64().expect("an index")).expect("small");
        assert_eq!(rules[index]["id"], result["ruleId"]);
        assert!(result["message"]["text"].as_str().is_some_and(|it| !it.is_empty()), "{result}");
        let place = &result["locations"][0]["physicalLocation"];
        assert_eq!(place["artifactLocation"]["uri"], "examples/shop/deployments.yaml");
        for field in ["startLine", "startColumn"] {
            assert!(place["region"][field].as_u64().is_some_and(|it| it > 0), "{result}");
        }
    }
}

#[test]
fn annotations_are_at_the_lines_of_the_repository() {
    let shown = stdout(&kube_lockstep(&SHOP).args(["--format", "github"]).assert().code(1));
    let first = "::warning file=examples/shop/deployments.yaml,line=7,col=3,title=replicas-beside-hpa\
                 ::spec.replicas is 3, but HPA shop/checkout";
    assert!(shown.starts_with(first), "{shown}");
    assert!(shown.contains("%0Ahint: leave out spec.replicas"), "{shown}");
    assert_eq!(shown.lines().count(), 3);
}

#[test]
fn each_rule_has_a_fixture_that_shows_its_effect() {
    let listed = stdout(&kube_lockstep(&["lint", "--list"]).assert().code(0));
    let mut expected = BTreeSet::new();
    for rule in RULES {
        assert!(listed.contains(&format!("{} ({})\n", rule.id, rule.level)), "{listed}");
        assert!(
            listed.contains(&format!("`kube-lockstep predict {}`", rule.fixture())),
            "{listed}"
        );
        let path = support::repository().join("fixtures").join(rule.fixture() + ".yaml");
        let fixture = fs::read_to_string(&path).expect("each rule has a fixture");
        assert!(fixture.contains(&format!("covers: [lint.{}]", rule.id)), "{}", path.display());
        assert!(fixture.contains("\nexpect:\n"), "{}", path.display());
        expected.insert(format!("{}.yaml", rule.id));
    }
    let files = fs::read_dir(support::repository().join("fixtures/lint")).expect("a folder");
    let files = files.map(|file| file.expect("a file").file_name().to_string_lossy().into_owned());
    assert_eq!(files.collect::<BTreeSet<_>>(), expected);
    let rules = json(&kube_lockstep(&["lint", "--list", "--format", "json"]).assert().code(0));
    assert_eq!(rules.len(), RULES.len());
}

/// The rules in `docs/lint.md` are those of the program: `cargo xtask docs`.
#[test]
fn the_page_of_rules_is_up_to_date() {
    const PAGE: &str = "docs/lint.md";
    const BEGIN: &str = "<!-- The rules: generated by `cargo xtask docs`. -->\n";
    let page = fs::read_to_string(support::repository().join(PAGE)).expect("a page");
    let (before, after) = page.split_once(BEGIN).expect("the begin of the rules");
    let (_, after) = after.split_once("<!-- End. -->").expect("the end of the rules");
    let mut rules = "| rule | level | finds | why | fixture |\n|---|---|---|---|---|\n".to_owned();
    for rule in RULES {
        let fixture = rule.fixture();
        let _ = writeln!(
            rules,
            "| `{}` | {} | {} | {} [More]({}) | [`{fixture}`](../fixtures/{fixture}.yaml) |",
            rule.id, rule.level, rule.summary, rule.reason, rule.link
        );
    }
    support::assert_generated(PAGE, &format!("{before}{BEGIN}{rules}<!-- End. -->{after}"));
}
