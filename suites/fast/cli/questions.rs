//! The questions in the README, and predictions of the HPAs of several workloads.

use std::fs;

use serde_json::Value;

use super::{json, kube_lockstep, stderr, stdout, support, text};

const SHOP: &str = "examples/shop";

/// The code blocks of a section of the README, each with its language.
fn blocks(section: &str) -> Vec<(String, String)> {
    let readme = fs::read_to_string(support::repository().join("README.md")).expect("the README");
    let start = readme.find(&format!("\n## {section}\n")).expect("the section");
    let section = &readme[start + 1..];
    let end = section.find("\n## ").unwrap_or(section.len());
    let mut parts = section[..end].split("```");
    parts.next();
    let blocks: Vec<&str> = parts.step_by(2).collect();
    let block = |block: &&str| {
        let (language, code) = block.split_once('\n').expect("a language");
        (language.to_owned(), code.to_owned())
    };
    blocks.iter().map(block).collect()
}

/// The words of a command, some of which are in single quotes.
fn words(command: &str) -> Vec<String> {
    let command = command.replace("\\\n", " ");
    let mut words = Vec::new();
    for (index, part) in command.split('\'').enumerate() {
        match index % 2 {
            0 => words.extend(part.split_whitespace().map(str::to_owned)),
            _ => words.push(part.to_owned()),
        }
    }
    words
}

/// The README shows these lines of an output, in this order; `…` stands for other lines.
fn is_excerpt(excerpt: &str, output: &str) -> Result<(), String> {
    let mut rest = output.lines();
    for line in excerpt.lines().filter(|line| line.trim() != "…") {
        if !rest.any(|other| other.trim_end() == line) {
            return Err(format!("the README shows {line:?}, which the output lacks:\n{output}"));
        }
    }
    Ok(())
}

#[test]
fn the_questions_of_the_readme_have_the_answers_in_the_readme() {
    let blocks = blocks("Common questions");
    let commands: Vec<&str> =
        blocks.iter().filter(|(language, _)| language == "sh").map(|(_, code)| &**code).collect();
    let answers: Vec<&str> =
        blocks.iter().filter(|(language, _)| language == "text").map(|(_, code)| &**code).collect();
    assert_eq!((commands.len(), answers.len()), (4, 4), "four questions and answers");
    for (command, answer) in commands.into_iter().zip(answers) {
        let words = words(command.strip_prefix("cargo run -- ").expect("a command"));
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let run = kube_lockstep(&words).assert().code(0);
        let output = format!("{}{}", stdout(&run), stderr(&run));
        is_excerpt(answer, &output).unwrap_or_else(|why| panic!("{command}{why}"));
    }
}

/// The generator of the example's load gives the same file.
#[cfg(unix)]
#[test]
fn the_load_of_the_example_is_generated() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let example = support::repository().join(SHOP);
    let script = folder.path().join("tuesday.sh");
    fs::copy(example.join("tuesday.sh"), &script).expect("a file can be copied");
    let status = std::process::Command::new("bash").arg(&script).status().expect("bash");
    assert!(status.success(), "{status}");
    let read = |path: std::path::PathBuf| fs::read_to_string(path).expect("a file");
    let same = read(folder.path().join("tuesday.json")) == read(example.join("tuesday.json"));
    assert!(same, "run examples/shop/tuesday.sh");
}

#[test]
fn hpas_are_selected_by_several_names_and_patterns() {
    let ids = |selection: &[&str]| {
        let options = ["predict", "-f", SHOP, "--until", "1m", "--format", "json"];
        let loads = ["--load", "cpu=50%", "--load", "mails_waiting=5"];
        let mut command = kube_lockstep(&options);
        let loads = if selection.contains(&"*ail") { &loads[2..] } else { &loads };
        let lines = json(&command.args(loads).args(selection).assert().code(0));
        let summaries = lines.iter().filter_map(|line| line["summary"].as_object().cloned());
        summaries.map(|it| it.get("scenario").cloned().unwrap_or_default()).collect::<Vec<_>>()
    };
    assert_eq!(ids(&[]), ["shop/checkout", "shop/search", "shop/mail"]);
    let two = ids(&["--hpa", "mail", "--hpa", "shop/check*"]);
    assert_eq!(two, ["shop/checkout", "shop/mail"]);
    assert_eq!(ids(&["--hpa", "*ail"]), [serde_json::Value::Null], "one has no name");
    let options = ["predict", "-f", SHOP, "--hpa", "mail", "--hpa", "serach", "--load", "cpu=50%"];
    let errors = stderr(&kube_lockstep(&options).assert().code(2));
    assert!(errors.contains("there is no HPA serach"), "{errors}");
}

#[test]
fn hpas_without_a_load_are_left_out_on_request() {
    let options = ["predict", "-f", SHOP, "--until", "1m", "--load", "search:cpu=50%"];
    let errors = stderr(&kube_lockstep(&options).assert().code(2));
    assert!(errors.contains("--skip-missing leaves out the HPAs that lack values"), "{errors}");
    let run = kube_lockstep(&options).arg("--skip-missing").assert().code(0);
    let shown = stdout(&run);
    assert!(shown.starts_with("shop/search  model of "), "{shown}");
    let notes = stderr(&run);
    for part in [
        "note: HPA shop/checkout is left out: there is no load of cpu (add --load cpu=300m (per",
        "note: HPA shop/mail is left out: there is no load of mails_waiting (add --load",
    ] {
        assert!(notes.contains(part), "{part}\n{notes}");
    }
    // If nothing is left, the values are missing.
    let options = ["compare", "-f", SHOP, "--skip-missing"];
    let errors = stderr(&kube_lockstep(&options).assert().code(2));
    assert!(errors.contains("the manifests lack values that the prediction requires"), "{errors}");
}

/// A hint names neither a flag that is given already nor one that the command does not have.
#[test]
fn a_hint_on_missing_values_names_flags_that_are_not_given() {
    let hint = |command: &str, flags: &[&str]| {
        let options = [&[command, "-f", SHOP], flags].concat();
        let errors = stderr(&kube_lockstep(&options).assert().code(2));
        errors.lines().find(|line| line.starts_with("hint:")).unwrap_or_default().to_owned()
    };
    let (select, skip) =
        ("--hpa NAME selects HPAs", "--skip-missing leaves out the HPAs that lack values");
    let both = format!("hint: {select}; {skip}");
    for (command, flags, expected) in [
        ("predict", &[][..], &*both),
        ("predict", &["--skip-missing"], &format!("hint: {select}")),
        ("predict", &["--hpa", "*"], &format!("hint: {skip}")),
        ("predict", &["--hpa", "*", "--skip-missing"], ""),
        ("compare", &["--skip-missing"], &format!("hint: {select}")),
        ("explain", &["--tick", "1"], &format!("hint: {select}")),
    ] {
        assert_eq!(hint(command, flags), expected, "{command} {flags:?}");
    }
}

/// 1.36 refuses zero replicas, which 1.37 accepts.
#[test]
fn an_hpa_that_a_release_refuses_does_not_hide_the_others() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let hpas = fs::read_to_string(support::repository().join(SHOP).join("hpas.yaml"));
    let hpas = hpas.expect("a file").replace("minReplicas: 2\n", "minReplicas: 0\n");
    let hpas = hpas.replace(
        "type: Resource\n      resource:\n        name: cpu\n        target:\n          type: \
         Utilization\n          averageUtilization: 60\n",
        "type: External\n      external:\n        metric:\n          name: searches\n        \
         target:\n          type: AverageValue\n          averageValue: \"10\"\n",
    );
    let file = folder.path().join("hpas.yaml");
    fs::write(&file, hpas).expect("a file can be written");
    let deployments = format!("{SHOP}/deployments.yaml");
    let files = ["-f", text(&file), "-f", &deployments, "--until", "1m", "--release", "1.36"];
    let loads = ["--load", "cpu=50%", "--load", "searches=30", "--load", "mails_waiting=5"];
    let run = kube_lockstep(&["predict"]).args(files).args(loads).assert().code(2);
    let (shown, errors) = (stdout(&run), stderr(&run));
    assert!(shown.contains("shop/checkout  model of 1.36"), "{shown}");
    assert!(shown.contains("\n\nshop/mail  model of 1.36"), "{shown}");
    assert!(!shown.contains("\n\n\n") && !shown.contains("shop/search"), "{shown}");
    assert!(errors.contains("the API server of 1.36 rejects HPA search"), "{errors}");
    assert_eq!(errors.matches("error:").count(), 1, "{errors}");
}

#[test]
fn releases_that_begin_at_another_time_are_noted() {
    let compare = |releases: &str| {
        let options = ["compare", "-f", SHOP, "--hpa", "search", "--load", "cpu=50%"];
        let run = kube_lockstep(&options).args(["--release", releases]).assert().code(0);
        stderr(&run).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let expected = "the first reconcile is at 15s on 1.30 to 1.36, and at 0s on 1.37;";
    let notes = compare("1.30,1.36,1.37");
    assert_eq!(notes.matches(expected).count(), 1, "{notes}");
    assert!(!compare("1.30,1.36").contains("the first reconcile"), "the same beginning");
}

/// Since 1.33, a ratio of 1.1 is within the tolerance.
#[test]
fn the_first_difference_between_releases_is_explained() {
    let load = "cpu=total:prometheus(examples/shop/tuesday.json,container=search)";
    let options = ["compare", "-f", SHOP, "--hpa", "search", "--load", load];
    let releases = ["--release", "1.30,1.36,1.37"];
    let shown = stdout(&kube_lockstep(&options).args(releases).assert().code(0));
    let words = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    let expected = "current: 1.30 and 1.36 first differ at 6h52m (2025-05-06T06:52:00Z). 1.30: 5 \
                    replicas. They use 660m of the requested 1: 66%, rounded down; the target is \
                    60%. The ratio is 1.1. That is outside the tolerance, 0.1 on either side of 1";
    assert!(words.contains(expected), "{shown}");
    let newer = "1.36: 4 replicas. They use 660m of the requested 1: 66%, rounded down; the target \
                 is 60%. The ratio is 1.1. That is within the tolerance, 0.9 to 1.1";
    assert!(words.contains(newer), "{shown}");
    assert!(!shown.contains("1.36 and 1.37 first differ"), "{shown}");
    let json_format = ["--format", "json"];
    let rows = json(&kube_lockstep(&options).args(releases).args(json_format).assert().code(0));
    assert_eq!((&rows[0]["hpa"], &rows[0]["namespace"]), (&"search".into(), &"shop".into()));
    let difference = |row: usize| &rows[row]["firstDifference"];
    assert!(difference(0).is_null() && difference(2).is_null(), "{rows:#?}");
    assert_eq!(difference(1)["at"], "6h52m");
    assert_eq!(difference(1)["before"]["release"], "1.30");
    assert_eq!(difference(1)["here"]["replicas"], 4);
}

/// The output of `compare --release`, with single spaces.
fn compared(arguments: &[&str], releases: &str) -> String {
    let options = [&["compare"], arguments, &["--release", releases]].concat();
    let shown = stdout(&kube_lockstep(&options).assert().code(0));
    shown.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The first differences in the rows of `compare --release`.
fn differences(arguments: &[&str], releases: &str) -> Vec<Value> {
    let options = [&["compare"], arguments, &["--release", releases, "--format", "json"]].concat();
    let rows = json(&kube_lockstep(&options).assert().code(0));
    rows.iter().map(|row| row["firstDifference"].clone()).collect()
}

/// 1.37 reconciles at 0s. If it did at 15s, the replicas would be the same as on 1.36.
#[test]
fn an_earlier_first_reconcile_is_the_only_reason_of_a_difference() {
    let load = "cpu=total:ramp(0s:2,30m:3)";
    let options = ["-f", "examples/php-apache", "--load", load];
    let shown = compared(&options, "1.36,1.37");
    let expected = "1.36 and 1.37 first differ at 15s, only because the first reconcile is at \
                    different times. 1.36: 4 replicas. Before this reconcile, the target has 1 \
                    replica: earlier reconciles are at different times. 1.37: 5 replicas. Before \
                    this reconcile, the target has 4 replicas";
    assert!(shown.contains(expected), "{shown}");
    let difference = &differences(&options, "1.36,1.37")[1];
    let remaining = difference.get("withSameFirstReconcile");
    assert_eq!((&difference["at"], remaining), (&"15s".into(), Some(&Value::Null)), "{difference}");
}

/// 1.37 reconciles at 0s, so the replicas differ at 15s: one pod uses its limit, 250% of its
/// request at a target of 50%, and four replicas are the most after one. From 10m on, each of five
/// pods uses 110m, 55% of its request: a ratio of 1.1, which 1.33 and newer tolerate.
#[test]
fn an_earlier_first_reconcile_hides_no_later_difference() {
    let options = ["-f", "examples/php-apache", "--load", "cpu=total:steps(0s:0.5,10m:0.55)"];
    let shown = compared(&options, "1.30,1.37");
    let expected = "1.30 and 1.37 first differ at 15s; with the first reconcile at the same time, \
                    they first differ at 10m. 1.30: 6 replicas. They use 550m of the requested 1: \
                    55%, rounded down; the target is 50%. The ratio is 1.1. That is outside the \
                    tolerance, 0.1 on either side of 1";
    assert!(shown.contains(expected), "{shown}");
    let newer = "1.37: 5 replicas. They use 550m of the requested 1: 55%, rounded down; the target \
                 is 50%. The ratio is 1.1. That is within the tolerance, 0.9 to 1.1";
    assert!(shown.contains(newer), "{shown}");
    let difference = &differences(&options, "1.30,1.37")[1];
    let remaining = &difference["withSameFirstReconcile"];
    assert_eq!((&difference["at"], &remaining["at"]), (&"15s".into(), &"10m".into()));
    assert_eq!(
        (&difference["here"]["replicas"], &remaining["here"]["replicas"]),
        (&5.into(), &5.into())
    );
}

/// A pod that starts 15 seconds earlier is ready 15 seconds earlier, so at 1m30s, 1.37 goes from
/// three to four replicas, and 1.30 does not yet. With the first reconcile at the same time, both
/// have four until each of them uses 110m, 55% of its request.
#[test]
fn pods_that_are_ready_earlier_hide_no_later_difference() {
    let load = "cpu=total:steps(0s:0.3,1m15s:0.4,30m:0.44)";
    let options = ["-f", "examples/php-apache", "--load", load, "--startup", "1m"];
    let shown = compared(&options, "1.30,1.37");
    let expected = "1.30 and 1.37 first differ at 1m30s; with the first reconcile at the same \
                    time, they first differ at 30m. 1.30: 5 replicas. They use 440m";
    assert!(shown.contains(expected) && shown.contains("1.37: 4 replicas. They use"), "{shown}");
}

/// A first reconcile at another time is not mentioned if the first difference is the same without
/// it: both have four replicas at 10m, of which each uses 110m.
#[test]
fn a_first_reconcile_without_an_effect_is_not_mentioned() {
    let load = "cpu=total:steps(0s:0.4,10m:0.44)";
    let options = ["-f", "examples/php-apache", "--replicas", "4", "--load", load];
    let shown = compared(&options, "1.30,1.37");
    assert!(shown.contains("1.30 and 1.37 first differ at 10m. 1.30: 5 replicas."), "{shown}");
    let difference = &differences(&options, "1.30,1.37")[1];
    assert_eq!(difference.get("withSameFirstReconcile"), None, "{difference}");
}

/// Since 1.33, the condition of the tolerance is written differently, which is no reason if the
/// outcome is the same.
#[test]
fn a_step_with_the_same_outcome_is_no_reason_of_a_difference() {
    let id = "external-metric/minus-one-milli-unit-is-taken-for-an-overflow";
    let shown = compared(&[id], "1.30,1.36");
    let [older, newer] = ["1.30: ", "1.36: "].map(|release| {
        let (_, rest) = shown.split_once(" first differ at ").expect("a difference");
        rest.split_once(release).expect("a release").1.split(" 1.36: ").next().expect("a text")
    });
    assert!(older.contains("-1m") && newer.contains("9223372036854775807m"), "{shown}");
}

#[test]
fn runs_with_a_difference_are_counted() {
    let load = "cpu=total:noise(3%,seed=1,csv(examples/php-apache/load.csv,value=cores))";
    let options = ["-f", "examples/php-apache", "--load", load, "--runs", "4"];
    let shown = compared(&options, "1.30,1.36");
    let (_, rest) = shown.split_once("current: 1.30 and 1.36 differ in ").expect("differences");
    let (count, rest) = rest.split_once(" of 4 runs; in run ").expect("a count");
    let (run, _) = rest.split_once(", first at ").expect("a run");
    let options = [&["compare"], &options[..], &["--release", "1.30,1.36", "--format", "json"]];
    let rows = json(&kube_lockstep(&options.concat()).assert().code(0));
    let differing = || rows.iter().filter(|row| !row["firstDifference"].is_null());
    assert_eq!(differing().count().to_string(), count, "{rows:#?}");
    assert_eq!(differing().next().map(|row| row["run"].to_string()), Some(run.to_owned()));
}

/// In some runs, only the time of the first reconcile differs: another one is explained.
#[test]
fn a_run_whose_difference_has_another_cause_is_explained() {
    // With five pods, 0.55 to 0.56 cores are 55% at a target of 50%: a ratio of 1.1.
    let load = "cpu=total:noise(5%,seed=3,0.53)";
    let options = ["-f", "examples/php-apache", "--load", load, "--runs", "6", "--until", "90s"];
    let differences = &differences(&options, "1.30,1.37")[6..];
    let is_only_later =
        |difference: &Value| difference.get("withSameFirstReconcile").is_some_and(Value::is_null);
    let has_other_cause = |it: &&Value| !it.is_null() && !is_only_later(it);
    let run = 1 + differences.iter().position(|it| has_other_cause(&it)).expect("a run");
    assert!(is_only_later(&differences[0]) && run > 1, "{differences:#?}");
    let shown = compared(&options, "1.30,1.37");
    assert!(shown.contains(&format!(" runs; in run {run}, first at ")), "{shown}");
    assert!(shown.contains("; with the first reconcile at the same time, they first differ at"));
}

/// Up to 1.11, the controller reconciles every 30 seconds.
#[test]
fn releases_with_another_sync_period_are_noted() {
    let options = ["compare", "-f", SHOP, "--hpa", "search", "--load", "cpu=50%"];
    let run = kube_lockstep(&options).args(["--release", "1.11,1.12"]).assert().code(0);
    let notes = stderr(&run).split_whitespace().collect::<Vec<_>>().join(" ");
    let expected = "the controller reconciles at 30s and then every 30s on 1.11, and at 15s and \
                    then every 15s on 1.12, so that figures differ";
    assert!(notes.contains(expected), "{notes}");
}

/// The recorded load of one HPA lasts a day, the constant load of the other one as long as needed.
#[test]
fn all_hpas_are_compared_for_the_same_time() {
    let load = "checkout:cpu=total:prometheus(examples/shop/tuesday.json,container=checkout)";
    let options = ["compare", "-f", SHOP, "--skip-missing", "--load", load, "--format", "json"];
    let loads = ["--load", "mails_waiting=30"];
    let rows = json(&kube_lockstep(&options).args(loads).assert().code(0));
    let mail = rows.iter().find(|row| row["hpa"] == "mail").expect("a row");
    assert!(mail["podHours"].as_f64().is_some_and(|hours| hours >= 24.0), "{mail}");
}

/// A recorded total is easily given to each pod, or to each of several HPAs.
#[test]
fn loads_that_may_be_meant_for_others_are_noted() {
    let notes = |load: &str| {
        let options = ["compare", "-f", SHOP, "--skip-missing", "--load", load];
        let run = kube_lockstep(&options).assert().code(0);
        stderr(&run).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let each_pod = "tuesday.json: each pod has the recorded usage, however many pods there are; if it \
                   is the usage of all pods together, use --load cpu=total:…";
    let twice = "--load cpu: Deployment checkout and Deployment search each have the total in full; \
                 for the pods of one of them only, put the name of its HPA first: --load \
                 NAME:cpu=total:…";
    let recording = "prometheus(examples/shop/tuesday.json,container=checkout)";
    let shown = notes(&format!("cpu={recording}"));
    assert!(shown.contains(each_pod) && !shown.contains("in full"), "{shown}");
    let shown = notes(&format!("cpu=total:{recording}"));
    assert!(shown.contains(twice) && !shown.contains("each pod has"), "{shown}");
    let shown = notes(&format!("checkout:cpu=total:{recording}"));
    assert!(!shown.contains("in full") && !shown.contains("each pod has"), "{shown}");
}

#[test]
fn a_file_that_is_named_twice_is_read_once() {
    let file = format!("./{SHOP}/hpas.yaml");
    let options = ["predict", "-f", SHOP, "-f", &file, "-f", "examples/../examples/shop"];
    let more = ["--hpa", "search", "--until", "1m", "--load", "cpu=50%"];
    kube_lockstep(&options).args(more).assert().code(0);
}

#[test]
fn two_manifests_of_one_object_are_named() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let example = support::repository().join(SHOP);
    for name in ["hpas.yaml", "deployments.yaml"] {
        let copy = folder.path().join(name);
        fs::copy(example.join(name), copy).expect("a file can be copied");
    }
    let options = ["--hpa", "search", "--until", "1m", "--load", "cpu=50%"];
    let with = |name: &str| {
        let file = folder.path().join(name);
        let folder = ["predict", "-f", SHOP, "-f", text(&file)];
        let errors = stderr(&kube_lockstep(&folder).args(options).assert().code(2));
        errors.replace(text(&file), name)
    };
    let errors = with("hpas.yaml");
    let expected = "hpas.yaml:31:1: HPA shop/search is also in examples/shop/hpas.yaml:31\n";
    assert!(errors.contains(expected), "{errors}");
    assert!(errors.contains("hint: a cluster has only one of them"), "{errors}");
    let errors = with("deployments.yaml");
    let expected = "deployments.yaml:30:1: Deployment shop/search is also in \
                    examples/shop/deployments.yaml:30\n";
    assert!(errors.contains(expected), "{errors}");
}

/// `kubectl get --raw` prints the lists of the API server, whose items have no kind.
#[test]
fn lists_of_one_kind_are_read() {
    let hpa = r#"{"metadata": {"name": "web"}, "spec": {"maxReplicas": 9, "scaleTargetRef":
        {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}}}"#;
    let hpas = format!(
        r#"{{"kind": "HorizontalPodAutoscalerList", "apiVersion": "autoscaling/v2",
        "metadata": {{}}, "items": [{hpa}]}}"#
    );
    let deployment = "{metadata: {name: web}, spec: {replicas: 2, selector: {matchLabels: {a: b}}, \
                      template: {metadata: {labels: {a: b}}, spec: {containers: [{name: web, \
                      image: web, resources: {requests: {cpu: 1}}}]}}}}";
    let deployments =
        format!("{{kind: DeploymentList, apiVersion: apps/v1, items: [{deployment}]}}");
    let options = ["predict", "-f", "-", "--load", "cpu=50%", "--until", "1m"];
    let input = format!(
        "{hpas}\n---\n{deployments}\n---\nkind: PodList\napiVersion: v1\nitems: \
                         null\n"
    );
    let run = kube_lockstep(&options).write_stdin(input).assert().code(0);
    assert!(stdout(&run).contains("HPA web scales Deployment web from 1 to 9"), "{}", stdout(&run));
    assert_eq!(stderr(&run), "");
}

/// A load of 12 on pods that use at most 2: their demand is not visible.
#[test]
fn a_load_above_the_limits_is_noted() {
    let notes = |load: &str| {
        let options = ["compare", "-f", SHOP, "--hpa", "checkout", "--load", load, "--until=1m"];
        let notes = stderr(&kube_lockstep(&options).assert().code(0));
        notes.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let expected = "at times, the load exceeds the cpu limits of the pods";
    assert!(notes("cpu=total:12").contains(expected), "{}", notes("cpu=total:12"));
    assert!(!notes("cpu=total:5").contains(expected), "{}", notes("cpu=total:5"));
    let later = notes("cpu=total:backlog(12)");
    assert!(!later.contains(expected), "{later}");
}

/// At 5m15s, the queue has 600 items: for 15 s, 40 more items arrived per second than four workers
/// process.
#[test]
fn a_queue_grows_if_there_are_too_few_workers() {
    let orders = ["predict", "-f", "examples/orders", "--load"];
    let load = "queue_messages_ready=backlog(perPod=5,steps(0s:15,5m:60,15m:20))";
    let shown = stdout(&kube_lockstep(&orders).args([load, "--no-charts"]).assert().code(0));
    assert!(shown.contains("  22  5m15s   150/30  "), "{shown}");
    let folder = tempfile::tempdir().expect("a folder can be made");
    let scenario = folder.path().join("queue.yaml");
    let init = ["init", "-f", "examples/orders", "-o", text(&scenario), "--load", load];
    kube_lockstep(&init).assert().code(0);
    let from_file = kube_lockstep(&["predict", text(&scenario), "--no-charts"]).assert().code(0);
    let ticks = |shown: &str| {
        let shown = shown.split("note: ").next().unwrap_or_default();
        shown[shown.find("tick  t").expect("ticks")..].trim_end().to_owned()
    };
    assert_eq!(ticks(&stdout(&from_file)), ticks(&shown));
    for (load, expected) in [
        ("queue_messages_ready=backlog(5)", "requires perPod="),
        ("queue_messages_ready=1 + backlog(perPod=1,5)", "can't be part of another value"),
    ] {
        let errors = stderr(&kube_lockstep(&orders).arg(load).assert().code(2));
        assert!(errors.contains(expected), "{load}: {errors}");
    }
    let hamster = ["predict", "-f", "examples/hamster", "--load", "memory=20Mi", "--load"];
    let errors = stderr(&kube_lockstep(&hamster).arg("cpu=total:backlog(1)").assert().code(2));
    assert!(
        errors.contains("a backlog of cpu requires a cpu limit, but the pods have none"),
        "{errors}"
    );
}

/// The names of this file have a comma, which separates options.
#[test]
fn a_file_with_a_comma_is_named_in_quotes() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let file = folder.path().join("load, May.csv");
    fs::write(&file, "time,\"a, b\"\n0,1\n60,1\n").expect("a file can be written");
    let load = format!("cpu=total:csv(\"{}\",value='a, b')", text(&file));
    let options = ["predict", "-f", SHOP, "--hpa", "search", "--load", &load];
    kube_lockstep(&options).assert().code(0);
}

#[test]
fn init_names_recordings_relative_to_the_folder_of_the_scenario() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let example = support::repository().join(SHOP);
    for name in ["hpas.yaml", "deployments.yaml", "tuesday.json"] {
        fs::copy(example.join(name), folder.path().join(name)).expect("a file can be copied");
    }
    fs::create_dir(folder.path().join("tests")).expect("a folder can be made");
    for (output, path) in
        [("tests/web.yaml", "../tuesday.json"), ("web.yaml", "tuesday.json"), ("./b.yaml", "tues")]
    {
        let load = "cpu=total:prometheus(tuesday.json,container=search)";
        let init = ["init", "-f", ".", "--hpa", "search", "--load", load, "-o", output];
        kube_lockstep(&init).current_dir(folder.path()).assert().code(0);
        let written = fs::read_to_string(folder.path().join(output)).expect("a scenario");
        let written = written.replace('"', "");
        assert!(written.contains(&format!("prometheus: {path}")), "{written}");
        let predict = ["predict", output, "--changes"];
        kube_lockstep(&predict).current_dir(folder.path()).assert().code(0);
    }
}

/// The pods of a VPA have a sidecar. One pod uses 100m and the other one 700m: the target follows
/// the busier one, not the average.
#[test]
fn a_recording_by_pod_is_the_usage_of_one_of_several_containers() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let example = support::repository().join("examples/hamster");
    let deployment = fs::read_to_string(example.join("deployment.yaml")).expect("a file");
    let sidecar = "        - name: proxy\n          image: registry.k8s.io/pause:3.10\n";
    let file = folder.path().join("deployment.yaml");
    fs::write(&file, deployment + sidecar).expect("a file can be written");
    let rows = (0..=120).flat_map(|minute| {
        [("a", 0.1), ("b", 0.7)].map(|(pod, cores)| format!("{},{pod},{cores}\n", minute * 60))
    });
    let load = folder.path().join("cpu.csv");
    fs::write(&load, "time,pod,cores\n".to_owned() + &rows.collect::<String>()).expect("a file");
    let vpa = example.join("vpa.yaml");
    let target = |options: &str, container: &str| {
        let cpu = format!("cpu{container}=csv({},value=cores,{options})", text(&load));
        let loads = ["--load", &cpu, "--load", "cpu/proxy=10m", "--load", "memory/proxy=20Mi"];
        let options = ["predict", "-f", text(&vpa), "-f", text(&file), "--format", "json"];
        let mut command = kube_lockstep(&options);
        command.args(loads).args(["--load", "memory/hamster=20Mi", "--until", "2h"]);
        let lines = json(&command.assert().code(0));
        let last = &lines[lines.len() - 2];
        let recommendation = &last["vpas"][0]["recommendation"]["containerRecommendations"];
        let containers = recommendation.as_array().cloned().unwrap_or_default();
        let hamster = containers.iter().find(|it| it["containerName"] == "hamster");
        hamster.unwrap_or_else(|| panic!("{last}"))["target"]["cpu"].clone()
    };
    let by_pod = target("by=pod", "/hamster");
    assert_eq!(by_pod, target("by=pod", ""), "the only container without a load");
    assert_eq!(by_pod, target("pod=b", "/hamster"), "the busier pod");
    assert_ne!(by_pod, target("pod=a", "/hamster"));
}

#[test]
fn a_scenario_without_a_determined_end_does_not_hide_the_others() {
    let timeline = "\
timeline:
- {at: 0s, for: 40s, updateScaleError: {code: 409, reason: Conflict, message: changed}}
- {at: 15060ms, editHpa: {spec: {maxReplicas: 5}}}
";
    let (_one, random) = super::folder(timeline);
    let (other, file) = super::folder("");
    let file_of_other = other.path().join("other.yaml");
    fs::rename(&file, &file_of_other).expect("a file can be moved");
    let files = [text(&random), text(&file_of_other)];
    let run = kube_lockstep(&["predict"]).args(files).assert().code(3);
    assert!(stdout(&run).contains("other.yaml  model of 1.37"), "{}", stdout(&run));
    assert!(
        stderr(&run).contains("overlaps the reconcile that began at 15.04s"),
        "{}",
        stderr(&run)
    );
    let run = kube_lockstep(&["compare"]).args(files).assert().code(3);
    let shown = stdout(&run).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(shown.contains("other.yaml 0.03 "), "{shown}");
    assert!(shown.contains("not compared: ") && shown.contains("overlaps the recon"), "{shown}");
    let run = kube_lockstep(&["compare", text(&random)]).assert().code(3);
    assert!(
        stderr(&run).contains("overlaps the reconcile that began at 15.04s"),
        "{}",
        stderr(&run)
    );
}

#[test]
fn options_for_manifests_are_not_ignored_with_a_scenario() {
    let (_folder, file) = super::folder("");
    for command in ["predict", "compare"] {
        for option in [&["--hpa", "web"][..], &["--skip-missing"]] {
            let run = kube_lockstep(&[command, text(&file)]).args(option).assert().code(2);
            let expected = format!("{} requires manifests", option[0]);
            assert!(stderr(&run).contains(&expected), "{}", stderr(&run));
        }
    }
}

/// Of several targets, only one has the container.
#[test]
fn a_load_of_a_container_is_for_the_targets_that_have_it() {
    let options = ["predict", "-f", SHOP, "--until", "1m", "--skip-missing", "--load", "cpu=50%"];
    let with = |load: &str| kube_lockstep(&options).args(["--load", load]).assert();
    let run = with("cpu/search=50m");
    let (shown, errors) = (stdout(&run), stderr(&run));
    assert_eq!(run.get_output().status.code(), Some(0), "{errors}");
    assert!(shown.contains("20%/60%") && shown.contains("50%/75%"), "{shown}");
    let errors = stderr(&with("cpu/serach=50m").code(2));
    assert!(errors.contains("no target has a container serach"), "{errors}");
    assert!(errors.contains("did you mean `search`?"), "{errors}");
    let errors = stderr(&with("checkout:cpu/search=50m").code(2));
    assert!(errors.contains("Deployment checkout has no container search"), "{errors}");
}

#[test]
fn mistakes_in_recordings_are_named() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let with = |format: &str, contents: &str| {
        let file = folder.path().join("load");
        fs::write(&file, contents).expect("a file can be written");
        let load = format!("cpu=total:{format}({})", text(&file));
        let options = ["predict", "-f", SHOP, "--hpa", "search", "--load", &load];
        stderr(&kube_lockstep(&options).assert().code(2)).replace(text(&file), "load")
    };
    for (format, contents, expected) in [
        ("csv", "0,1\n60,2\n", "load:1: expected the names of the columns, found 0, 1\n"),
        ("csv", "time,v\n2025-05-06T09:00:00Z,1\n60,2\n", "load has times with and without a"),
        (
            "prometheus",
            "<html>login</html>",
            "load:1:1: not a Prometheus response: expected value\n",
        ),
        ("prometheus", "<html>login</html>", "hint: this is a web page"),
        ("prometheus", "{\"status\": \"succ", "hint: the file ends too early"),
        ("prometheus", "time,v\n0,1\n", "use `csv` or `openMetrics` in place of `prometheus`"),
    ] {
        let errors = with(format, contents);
        assert!(errors.contains(expected), "{expected}\n{errors}");
    }
}

const HPA_AND_TARGET: [&str; 3] = ["predict", "-f", "examples/php-apache"];

#[test]
fn an_output_never_replaces_an_input() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("text").to_owned();
    let recorded = "time,value\n0,1\n60,2\n";
    fs::write(path("rec.csv"), recorded).expect("a file can be written");
    let load = format!("cpu=total:csv({})", path("rec.csv"));
    let run = |outputs: &[&str]| {
        let mut command = kube_lockstep(&HPA_AND_TARGET);
        let run = command.args(["--load", &load]).args(outputs).assert().code(2);
        assert_eq!(stdout(&run), "");
        stderr(&run)
    };
    let shown = run(&["--csv", &path("rec.csv")]);
    let expected = format!("--csv {} is a file that this command reads", path("rec.csv"));
    assert!(shown.contains(&expected) && shown.contains("choose another name"), "{shown}");
    assert_eq!(fs::read_to_string(path("rec.csv")).expect("the recording"), recorded);
    let shown = run(&["--html", "examples/php-apache/hpa.yaml"]);
    assert!(shown.contains("hpa.yaml is a file that this command reads"), "{shown}");
    let shown = run(&["--html", &path("a.html"), "--csv", &path("a.html")]);
    assert!(shown.contains("--html and --csv name the same file"), "{shown}");
    assert!(!folder.path().join("a.html").exists());
}

#[test]
fn habits_from_kubectl_have_hints() {
    let error = |arguments: &[&str]| stderr(&kube_lockstep(arguments).assert().code(2));
    let (hpa, deployment) = ("examples/php-apache/hpa.yaml", "examples/php-apache/deployment.yaml");
    let shown = error(&["predict", "-f", hpa, deployment]);
    assert!(shown.contains(&format!("repeat -f: -f {hpa} -f {deployment}")), "{shown}");
    let shown = error(&["predict", "-f", hpa, "-n", "prod"]);
    assert!(shown.contains("--hpa 'prod/*'") && !shown.contains("-- -n"), "{shown}");
    let shown = error(&["predict", "-f", hpa, "--replicas", "-1"]);
    assert!(shown.contains("expected a whole number from 0 to 2147483647"), "{shown}");
    let both = format!("{hpa},{deployment}");
    kube_lockstep(&["predict", "-f", &both, "--load", "cpu=total:1"]).assert().code(0);
}

#[test]
fn a_time_after_the_end_can_not_be_explained() {
    let explain = |load: &str, at: &str| {
        let mut run = kube_lockstep(&["explain", "-f", "examples/php-apache"]);
        run.args(["--load", load, "--at", at]).assert()
    };
    let run = explain("cpu=total:1", "20m").code(2);
    let shown = stderr(&run);
    assert!(shown.contains("--at 20m: the prediction ends at t=10m"), "{shown}");
    assert!(shown.contains("increase the end (`--until`)"), "{shown}");
    let file = "fixtures/closed-loop/docs-walkthrough-php-apache.yaml";
    let shown = stderr(&kube_lockstep(&["explain", file, "--at", "20h"]).assert().code(2));
    assert!(shown.contains("increase the end (`until`)"), "{shown}");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("rec.csv");
    let recorded = "time,value\n2025-05-06T12:00:00Z,1\n2025-05-06T13:00:00Z,2\n";
    fs::write(&path, recorded).expect("a file can be written");
    let load = format!("cpu=total:csv({})", path.display());
    assert!(stdout(&explain(&load, "12:30").code(0)).contains("t=30m"));
    let shown = stderr(&explain(&load, "14:30").code(2));
    assert!(shown.contains("--at 14:30: the prediction has no such time"), "{shown}");
}

#[test]
fn init_names_a_folder_that_does_not_exist() {
    let load = "cpu=total:csv(suites/support/missing.csv)";
    let run = kube_lockstep(&["init", "-f", "examples/php-apache", "--load", load])
        .args(["-o", "/nonexistent/x.yaml"])
        .assert()
        .code(3);
    assert!(stderr(&run).contains("there is no folder /nonexistent"), "{}", stderr(&run));
}

#[cfg(target_os = "linux")]
#[test]
fn an_output_that_can_not_be_written_is_named() {
    let run = |output: std::process::Stdio, arguments: &[&str]| {
        let program = env!("CARGO_BIN_EXE_kube-lockstep");
        let mut command = std::process::Command::new(program);
        command.current_dir(support::repository()).args(HPA_AND_TARGET);
        let command = command.args(["--load", "cpu=total:1"]).args(arguments).stdout(output);
        let run = command.output().expect("the command runs");
        assert_eq!(run.status.code(), Some(3));
        String::from_utf8_lossy(&run.stderr).into_owned()
    };
    let full = fs::OpenOptions::new().write(true).open("/dev/full").expect("a device");
    let shown = run(full.into(), &[]);
    assert!(shown.contains("standard output can't be written"), "{shown}");
    let shown = run(std::process::Stdio::null(), &["--csv", "/dev/full"]);
    assert!(shown.contains("/dev/full can't be written"), "{shown}");
}

#[test]
fn repeated_ticks_of_several_hpas_are_folded() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("other.yaml");
    let hpa = fs::read_to_string(support::repository().join("examples/php-apache/hpa.yaml"));
    let hpa = hpa.expect("the example").replacen("name: php-apache", "name: other", 1);
    fs::write(&path, hpa).expect("a file can be written");
    let other = path.to_str().expect("text");
    let run = kube_lockstep(&HPA_AND_TARGET)
        .args(["-f", other, "--load", "cpu=total:100m", "--until", "4h"])
        .assert()
        .code(0);
    let shown = stdout(&run);
    assert!(shown.contains("more ticks with the same result, until 4h"), "{shown}");
    assert!(shown.lines().count() < 80, "{shown}");
}

#[test]
fn an_unmet_expectation_of_a_vpa_has_a_reason() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("vpa.yaml");
    let text = "
apiVersion: kube-lockstep.dev/v1alpha1
kind: Scenario
requirement: It recommends a tenth of a core.
vpa:
  apiVersion: autoscaling.k8s.io/v1
  kind: VerticalPodAutoscaler
  metadata: {name: web}
  spec: {targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}
metrics: {resource: [{name: cpu, perPod: 500m}]}
until: 5m
expect: [{at: 5m, target: {cpu: 100m}}]
";
    fs::write(&path, text).expect("a file can be written");
    let run = kube_lockstep(&["predict", path.to_str().expect("text")]).assert().code(1);
    let shown = stdout(&run);
    assert!(shown.contains("why: target.cpu: "), "{shown}");
    assert!(!shown.contains("target.memory: "), "{shown}");
}

/// `--changes` selects the rows of the recommender with an HPA as well.
#[test]
fn changes_select_the_runs_of_a_recommender_with_an_hpa() {
    let fixture = "hpa-and-vpa/both-on-cpu-feed-back";
    let runs = |options: &[&str]| {
        let arguments = [&["predict", fixture, "--format", "json"], options].concat();
        let lines = json(&kube_lockstep(&arguments).assert().code(0));
        let summary = lines.last().expect("a summary")["summary"].clone();
        assert_eq!(summary["vpaRelease"], "vpa-1.8");
        lines.iter().filter(|line| line.get("recommender").is_some()).count()
    };
    let (all, changed) = (runs(&[]), runs(&["--changes"]));
    assert!(0 < changed && changed < all, "{changed} of {all}");
    let text = stdout(&kube_lockstep(&["predict", fixture, "--changes"]).assert().code(0));
    assert!(!text.contains("more tick"), "{text}");
}

/// `explain` states what the updater does with each pod, and `predict` why it changes none.
#[test]
fn the_reasons_of_the_updater_are_shown() {
    let words = |arguments: &[&str]| {
        let shown = stdout(&kube_lockstep(arguments).assert().code(0));
        shown.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let fixture = "hpa-and-vpa/both-on-cpu-feed-back";
    let shown = words(&["explain", fixture, "--at", "1m"]);
    for part in [
        "run of the updater, t=1m evicted web-0, web-1: the requests are within the bounds, but \
         the age, 1h1m, is at least 5m",
        "unchanged web-2, web-3: 2 of 4 replicas run and are not being changed, and at most 2 may \
         be missing",
    ] {
        assert!(shown.contains(part), "{part}\n{shown}");
    }
    let shown = words(&["explain", fixture, "--vpa", "web", "--at", "30m"]);
    assert!(shown.contains("the change would be 0%, less than 10%"), "{shown}");
    let shown = words(&["predict", "hpa-and-vpa/a-single-pod-is-not-evicted"]);
    let why = "Why the updater changes no pods (its last run, t=10m): unchanged web-0: the \
               workload has 1 live pod, and the updater requires 2";
    assert!(shown.contains(why), "{shown}");
    let lines = json(&kube_lockstep(&["predict", fixture, "--format", "json"]).assert().code(0));
    let change = |kind: &str| {
        let has_kind = |line: &&serde_json::Value| line["pod"]["change"] == kind;
        lines.iter().find(has_kind).expect("a change")["pod"].clone()
    };
    assert!(change("evicted")["why"].is_string(), "{}", change("evicted"));
    assert!(change("created").get("why").is_none(), "{}", change("created"));
}

/// While the target of a VPA is deleted, its pods stay as they are, and new ones have the requests of
/// the template.
#[test]
fn a_vpa_without_its_target_changes_no_pods() {
    let fixture = "fixtures/hpa-and-vpa/two-pods-are-replaced-one-at-a-time.yaml";
    let text = fs::read_to_string(support::repository().join(fixture)).expect("a fixture");
    let (scenario, _) = text.split_once("\nexpect:").expect("expectations");
    let folder = tempfile::tempdir().expect("a folder can be made");
    let file = folder.path().join("scenario.yaml");
    let changes = |deleted: &str| {
        let timeline = format!("timeline:\n{deleted}  - {{at: 5m, podsDeleted: \"0-9\"}}\n");
        fs::write(&file, format!("{scenario}\n{timeline}")).expect("a file can be written");
        let path = file.to_str().expect("a path in UTF-8");
        let lines = json(&kube_lockstep(&["predict", path, "--format", "json"]).assert().code(0));
        lines.iter().filter(|line| line.get("pod").is_some()).count()
    };
    assert!(changes("") > 4);
    assert_eq!(changes("  - {at: 90s, targetDeleted: {orphan: true}}\n"), 0);
}

/// Reports of a scenario with an HPA and a VPA name both releases.
#[test]
fn a_run_with_a_vpa_with_an_hpa_names_both_releases() {
    let fixture = "hpa-and-vpa/an-older-recommender-continues-from-a-checkpoint";
    let options = ["run", "--engine", "model", "--release", "1.37", fixture];
    let text = stdout(&kube_lockstep(&options).assert().code(0));
    let release = "vpa-1.7";
    assert!(text.contains(&format!("1 scenario on model 1.37 with {release}")), "{text}");
    let lines = json(&kube_lockstep(&[&options[..], &["--format", "json"]].concat()).assert());
    assert_eq!(lines[0]["vpaRelease"], release);
}

/// `bisect` finds the releases in which a scenario of a VPA changed.
#[test]
fn bisect_finds_the_changes_of_a_recommender() {
    let fixture = "vpa/oom/an-oom-kill-of-a-deleted-pod";
    let from = ["--from", "vpa-1.6"];
    let bisect =
        |more: &[&str]| kube_lockstep(&[&["bisect", fixture], &from[..], more].concat()).assert();
    let text = stdout(&bisect(&[]).code(0));
    assert!(text.contains("vpa-1.7 -> vpa-1.8"), "{text}");
    let lines = json(&bisect(&["--format", "json"]).code(0));
    let last = lines.last().expect("a change");
    assert_eq!((&last["from"], &last["to"]), (&"vpa-1.7".into(), &"vpa-1.8".into()));
    assert!(last["rows"][0]["what"].is_string(), "{last}");
    let mixed = kube_lockstep(&["bisect", fixture, "--to", "1.37"]).assert().code(2);
    assert!(stderr(&mixed).contains("VPAs have no release 1.37"), "{}", stderr(&mixed));
}
