//! Predictions from manifests, and the scenarios that `init` writes.

use std::fs;

use super::{json, kube_lockstep, stderr, stdout, support, text};

const PHP_APACHE: &str = "examples/php-apache";
const LOAD: [&str; 2] = ["--load", "cpu=total:steps(0s:100m,2m:2)"];

#[test]
fn manifests_and_a_load_are_enough_for_a_prediction() {
    let run = kube_lockstep(&["predict", "-f", PHP_APACHE]).args(LOAD).assert().code(0);
    let shown = stdout(&run);
    for part in [
        "php-apache  model of 1.37\nHPA php-apache scales Deployment php-apache from 1 to 10",
        " 1 → 4     scale-up limit",
        "10 at the end, 1 to 10 overall\n",
        "note: examples/php-apache/deployment.yaml:2: new pods are ready after 10s",
    ] {
        assert!(shown.contains(part), "{part}\n{shown}");
    }
    assert_eq!(stderr(&run), "note: ignored: Service php-apache\n");
}

#[test]
fn files_and_standard_input_give_the_same_prediction() {
    let file = |name: &str| format!("{PHP_APACHE}/{name}.yaml");
    let read = |name: &str| fs::read_to_string(file(name)).expect("an example can be read");
    let both = format!("{}---\n{}", read("hpa"), read("deployment"));
    let input = kube_lockstep(&["predict", "-f", "-", "--format", "json"])
        .args(LOAD)
        .write_stdin(both)
        .assert()
        .code(0);
    let files = ["predict", "-f", &file("deployment"), "-f", &file("hpa"), "--format", "json"];
    let files = kube_lockstep(&files).args(LOAD).assert().code(0);
    let without_notes = |mut lines: Vec<serde_json::Value>| {
        let summary = lines.last_mut().expect("a summary");
        summary["summary"]["notes"].take();
        lines
    };
    assert_eq!(without_notes(json(&input)), without_notes(json(&files)));
}

#[test]
fn the_output_of_kubectl_gives_replicas_and_labels() {
    let file = "examples/orders/worker.yaml";
    let load = "queue_messages_ready{queue=worker_tasks}=ramp(0s:120,10m:900)";
    let run = kube_lockstep(&["predict", "-f", file, "--load", load]).assert().code(0);
    let shown = stdout(&run);
    assert!(shown.starts_with("orders/worker  model of 1.37\n"), "{shown}");
    assert!(shown.contains("30 at the end, 4 to 30 overall"), "{shown}");
    let words = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("external metric queue_messages_ready above target"), "{shown}");
}

#[test]
fn missing_values_are_asked_for_with_their_flags() {
    let hpa = format!("{PHP_APACHE}/hpa.yaml");
    let run = kube_lockstep(&["predict", "-f", &hpa]).assert().code(2);
    let errors = stderr(&run);
    for part in [
        "  HPA php-apache: Deployment php-apache, which the HPA scales, is not in the manifests\n",
        "    add --filename with its manifest, or --replicas 3 (at the start) --request cpu=500m\n",
        "    add --load cpu=300m (per pod) or --load cpu=total:8 (shared)\n",
        "hint: `kube-lockstep init -f …`",
    ] {
        assert!(errors.contains(part), "{part}\n{errors}");
    }
    assert!(!errors.contains("requests no cpu"), "{errors}");
    let run = kube_lockstep(&["predict", "-f", &hpa, "--replicas", "2"]).assert().code(2);
    assert!(stderr(&run).contains("the pods request no cpu"), "{}", stderr(&run));
    let all = ["--replicas", "2", "--request", "cpu=200m", "--load", "cpu=60%"];
    let run = kube_lockstep(&["predict", "-f", &hpa]).args(all).assert().code(0);
    assert!(stdout(&run).contains("60%/50%"), "{}", stdout(&run));
}

#[test]
fn wrong_options_and_manifests_exit_with_2() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let broken = folder.path().join("broken.yaml");
    let hpa = fs::read_to_string(format!("{PHP_APACHE}/hpa.yaml")).expect("an example");
    fs::write(&broken, hpa.replace("maxReplicas", "maxReplica")).expect("a file can be written");
    let empty = tempfile::tempdir().expect("a folder can be made");
    for (arguments, expected) in [
        (&["-f", text(&broken)][..], "broken.yaml:12:3: the API server rejects"),
        (&["-f", text(empty.path())], "contains no files *.yaml"),
        (&["-f", "no/such/file.yaml"], "no/such/file.yaml: "),
        (&["-f", PHP_APACHE, "--hpa", "php-apach"], "did you mean `php-apache`?"),
        (&["-f", PHP_APACHE, "--load", "cpus=1"], "HPA php-apache does not scale on cpus"),
        (&["-f", PHP_APACHE, "--load", "cpu=fast"], "fast: expected a quantity"),
        (&["-f", PHP_APACHE, "--until=-5m"], "the value can't be negative"),
        (
            &["-f", PHP_APACHE, "--load", "cpu=1", "--until", "2562047h"],
            "hint: decrease `--until`, or increase `--horizontal-pod-autoscaler-sync-period`",
        ),
        (&["-f", PHP_APACHE, "scenario.yaml"], "cannot be used with"),
        (&["--load", "cpu=1", "scenario.yaml"], "--filename"),
        (&[], "--filename"),
        (
            &["examples/php-apache/hpa.yaml"],
            "`kube-lockstep predict -f FILE` and `compare -f FILE` read manifests",
        ),
    ] {
        let run = kube_lockstep(&["predict"]).args(arguments).assert().code(2);
        assert!(stderr(&run).contains(expected), "{expected}\n{}", stderr(&run));
        assert_eq!(stdout(&run), "", "{arguments:?}");
    }
}

#[test]
fn usage_is_noted_only_if_it_is_always_below_zero() {
    let notes = |manifests: &str, loads: &[&str]| {
        let mut arguments = vec!["predict", "-f", manifests, "--until=1h"];
        arguments.extend(loads);
        let run = kube_lockstep(&arguments).assert().code(0);
        stdout(&run).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let note = "the usage of cpu is below zero all the time, and counts as 0";
    let hamster = |cpu: &str| notes("examples/hamster", &[cpu, "--load=memory=60Mi"]);
    for cpu in ["--load=cpu=1 - 3", "--load=cpu=ramp(0s:100m,1h:200m) - 300m"] {
        assert!(notes(PHP_APACHE, &[cpu]).contains(note), "{cpu}");
        assert!(hamster(cpu).contains(note), "{cpu}");
    }
    for cpu in ["--load=cpu=ramp(0s:100m,1h:400m) - 300m", "--load=cpu=1 - 1"] {
        assert!(!notes(PHP_APACHE, &[cpu]).contains(note), "{cpu}");
        assert!(!hamster(cpu).contains(note), "{cpu}");
    }
}

#[test]
fn each_of_several_problems_has_its_own_hint() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let load = folder.path().join("load.csv");
    fs::write(&load, "time,value\n0,5000000000\n15,3000000000\n").expect("a file can be written");
    let load = format!("cpu=total:csv({})", text(&load));
    let options = ["predict", "-f", PHP_APACHE, "--load", &load, "--until", "2562047h"];
    let shown = stderr(&kube_lockstep(&options).assert().code(2));
    for hint in ["(decrease `--until`, or increase", "(add `unit=1m` for millicores"] {
        assert!(shown.contains(hint), "{shown}");
    }
    assert!(!shown.contains("`kube-lockstep init`"), "{shown}");
}

#[test]
fn one_tick_of_manifests_is_explained() {
    let options = ["explain", "-f", PHP_APACHE, "--load", "cpu=100m", "--tick", "2"];
    let shown = stdout(&kube_lockstep(&options).assert().code(0));
    assert!(shown.contains("tick 2 of 41") && shown.contains("usage 100m of 200m"), "{shown}");
}

#[test]
fn init_writes_a_scenario_that_predicts_the_same() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let file = folder.path().join("mine.yaml");
    let init = ["init", "-f", PHP_APACHE, "-o", text(&file)];
    let run = kube_lockstep(&init).args(LOAD).assert().code(0);
    assert_eq!(stdout(&run), "");
    let ticks = |arguments: &[&str]| {
        let run = kube_lockstep(&["predict", "--format", "json"]).args(arguments).assert().code(0);
        let mut lines = json(&run);
        lines.pop();
        lines
    };
    let from_manifests = ticks(&["-f", PHP_APACHE, LOAD[0], LOAD[1]]);
    assert_eq!(ticks(&[text(&file)]), from_manifests);
    // An existing file is kept.
    let before = fs::read_to_string(&file).expect("the file can be read");
    let run = kube_lockstep(&["init", "-o", text(&file)]).assert().code(2);
    assert!(stderr(&run).contains("mine.yaml exists, and is not overwritten"), "{}", stderr(&run));
    assert_eq!(fs::read_to_string(&file).expect("the file can be read"), before);
    let run = kube_lockstep(&["init", "-o", "no/such/folder/file.yaml"]).assert().code(3);
    assert!(stderr(&run).contains("no/such/folder/file.yaml: "), "{}", stderr(&run));
}

#[test]
fn init_writes_examples_in_place_of_missing_values() {
    let hpa = format!("{PHP_APACHE}/hpa.yaml");
    let shown = stdout(&kube_lockstep(&["init", "-f", &hpa]).assert().code(0));
    for part in [
        "# Replace the example: there is no load of cpu\n",
        "containers: [{name: app, requests: {cpu: \"1\"}}]\n",
        "resource: [{name: cpu, perPod: 500m}]\n",
    ] {
        assert!(shown.contains(part), "{part}\n{shown}");
    }
}

#[test]
fn the_template_of_init_is_a_scenario() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let file = folder.path().join("template.yaml");
    let template = stdout(&kube_lockstep(&["init"]).assert().code(0));
    // The commented parts are valid as well.
    let uncommented: Vec<String> = template
        .lines()
        .map(|line| match line.strip_prefix("# ") {
            Some(part) if part.starts_with(['t', 'e', ' ']) => part.to_owned(),
            _ => line.to_owned(),
        })
        .collect();
    fs::write(&file, uncommented.join("\n")).expect("a file can be written");
    let shown = stdout(&kube_lockstep(&["predict", text(&file)]).assert().code(0));
    assert!(
        shown.contains("metricsMissing") && shown.contains("2 expectations are met"),
        "{shown}"
    );
}

#[test]
fn a_recorded_load_is_predicted_to_its_end() {
    let load = "cpu=total:csv(examples/php-apache/load.csv,value=cores)";
    let predict =
        |arguments: &[&str]| stdout(&kube_lockstep(&["predict"]).args(arguments).assert().code(0));
    let from_manifests = predict(&["-f", PHP_APACHE, "--load", load]);
    assert!(from_manifests.contains("\n241 ticks, 14 changes of replicas"), "{from_manifests}");
    let gap = "load.csv: no sample from 40m to 41m";
    assert!(from_manifests.contains(gap), "{from_manifests}");
    // A scenario in another folder finds the file.
    let folder = tempfile::tempdir().expect("a folder can be made");
    let file = folder.path().join("recorded.yaml");
    let init = ["init", "-f", PHP_APACHE, "--load", load, "-o", text(&file)];
    kube_lockstep(&init).assert().code(0);
    assert!(predict(&[text(&file)]).contains("\n241 ticks, 14 changes of replicas"));
    for (load, expected) in [
        ("cpu=csv(no-such-file.csv)", "the path is relative to the current folder"),
        (
            "cpu=csv(examples/php-apache/load.csv)",
            "add `value=COLUMN` with one of cores, requests_per_second",
        ),
    ] {
        let run = kube_lockstep(&["predict", "-f", PHP_APACHE, "--load", load]).assert().code(2);
        assert!(stderr(&run).contains(expected), "{expected}\n{}", stderr(&run));
    }
}

#[test]
fn a_download_from_grafana_is_a_load() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("grafana.csv");
    let csv = "\"Time\",\"{pod=\"\"web-0\"\"}\",\"{pod=\"\"web-1\"\"}\"\r\n\
               1746522000000,62.5,50\r\n1746522060000,62.5,\r\n1746522120000,62.5,50";
    let predict = |options: &str| {
        let load = format!("cpu=csv({},{options})", text(&path));
        let arguments = ["predict", "-f", PHP_APACHE, "--replicas", "2", "--load", &load];
        kube_lockstep(&arguments).assert()
    };
    // For Excel, the file is UTF-16 with tabs.
    let excel = format!("\u{feff}{}", csv.replace(',', "\t"));
    let excel: Vec<u8> = excel.encode_utf16().flat_map(u16::to_le_bytes).collect();
    for bytes in [csv.as_bytes(), &excel] {
        fs::write(&path, bytes).expect("a file can be written");
        let shown = stdout(&predict("value=*,by=pod,unit=1%").code(0));
        assert!(shown.contains("56%/50%  2/2"), "{shown}");
    }
    let errors = stderr(&predict("by=pod").code(2));
    assert!(errors.contains("no column `pod`"), "{errors}");
    let errors = stderr(&predict("value=*").code(2));
    let hint = "`by=pod` for the usage of each, or `total:…` and `sum` for the total";
    assert!(errors.contains(hint), "{errors}");
}

#[test]
fn several_scenarios_are_predicted_in_order() {
    let (folder, first) = super::folder("expect:\n  - {tick: 1, replicas: 4}\n");
    let second = folder.path().join("second.yaml");
    fs::copy(&first, &second).expect("a file can be copied");
    let run = kube_lockstep(&["predict", text(&second), text(&first)]).assert().code(0);
    let shown = stdout(&run);
    assert!(shown.find("second.yaml  model") < shown.find("doubles.yaml  model"), "{shown}");
    let options = ["predict", "--format", "json", text(&first), text(&second)];
    let lines = json(&kube_lockstep(&options).assert().code(0));
    assert_eq!(lines[0]["scenario"], text(&first));
    assert_eq!(lines.last().expect("a summary")["summary"]["scenario"], text(&second));
}

#[test]
fn a_load_in_another_unit_is_an_error_unless_its_unit_is_set() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let load = folder.path().join("load.csv");
    fs::write(&load, "time,value\n0,300\n60,900\n").expect("a file can be written");
    let predict = |unit: &str| {
        let load = format!("cpu=total:csv({}{unit})", text(&load));
        kube_lockstep(&["predict", "-f", PHP_APACHE, "--load", &load]).assert()
    };
    let errors = stderr(&predict("").code(2));
    for part in ["load.csv seems to be wrong: up to 90 cores", "hint: add `unit=1m`"] {
        assert!(errors.contains(part), "{part}\n{errors}");
    }
    predict(",unit=1m").code(0);
    predict(",unit=1").code(0);
}

const HAMSTER: &str = "examples/hamster";
const USAGE: [&str; 4] = ["--load", "cpu=500m", "--load", "memory=20Mi"];

/// The target after a week is that of the VPA's documentation: 587m and 250Mi.
#[test]
fn a_vpa_and_usage_are_enough_for_a_prediction() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let (page, csv) = (folder.path().join("page.html"), folder.path().join("runs.csv"));
    let run = kube_lockstep(&["predict", "-f", HAMSTER])
        .args(USAGE)
        .args(["--html", text(&page), "--csv", text(&csv)])
        .assert()
        .code(0);
    let shown = stdout(&run);
    for part in [
        "hamster-vpa  model of vpa-1.8\nVPA hamster-vpa recommends requests for the pods",
        "11520  192h    hamster    cpu        586m    587m     660m",
        "11,520 ticks; ",
    ] {
        assert!(shown.contains(part), "{part}\n{shown}");
    }
    let words = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("the pods keep their requests: for a VPA without an HPA,"), "{shown}");
    let page = fs::read_to_string(&page).expect("the page can be read");
    assert!(page.contains("bounds 586m to 660m"), "no caption");
    let csv = fs::read_to_string(&csv).expect("the file can be read");
    let last = "11520,691200,hamster-vpa,hamster,memory,20971520,20971520,262144000,262144000,";
    assert!(csv.lines().last().is_some_and(|line| line.starts_with(last)), "{last}");
    let explain = ["explain", "-f", HAMSTER, "--at", "2d"];
    let shown = stdout(&kube_lockstep(&explain).args(USAGE).assert().code(0));
    assert!(shown.contains("tick 2880 of 11520, t=48h"), "{shown}");
    assert!(shown.contains("5,760 cpu samples"), "{shown}");
}

#[test]
fn missing_usage_of_a_vpa_is_asked_for() {
    let vpa = format!("{HAMSTER}/vpa.yaml");
    let run = kube_lockstep(&["predict", "-f", &vpa]).assert().code(2);
    let errors = stderr(&run);
    for part in [
        "  VPA hamster-vpa: Deployment hamster, the target of the VPA, is not in the manifests\n",
        "    add --load cpu=300m (per pod) or --load cpu=total:8 (shared)\n",
        "    add --load memory=200Mi (per pod) or --load memory=total:8Gi (shared)\n",
    ] {
        assert!(errors.contains(part), "{part}\n{errors}");
    }
    let given = ["--replicas", "2", "--until", "1d"];
    let run = kube_lockstep(&["predict", "-f", &vpa]).args(given).args(USAGE).assert().code(0);
    assert!(stdout(&run).contains("1,440 ticks; "), "{}", stdout(&run));
    for (arguments, expected) in [
        (&["--load", "qps=1"][..], "a VPA does not use qps, which has a load"),
        (&["--startup", "10s"], "--startup is for HPAs"),
        (&["--vpa", "hamster"], "did you mean `hamster-vpa`?"),
        (&["--release", "1.37"], "VPAs have no release 1.37: it is a release of Kubernetes"),
    ] {
        let mut command = kube_lockstep(&["predict", "-f", HAMSTER]);
        let errors = stderr(&command.args(arguments).args(USAGE).assert().code(2));
        assert!(errors.contains(expected), "{expected}\n{errors}");
    }
    let compare = ["compare", "-f", HAMSTER, "--load", "cpu=1"];
    let errors = stderr(&kube_lockstep(&compare).assert().code(2));
    assert!(errors.contains("no load of memory"), "{errors}");
}

#[test]
fn an_hpa_and_a_vpa_of_the_same_pods_are_predicted_together() {
    let hpa = fs::read_to_string(format!("{PHP_APACHE}/hpa.yaml")).expect("an example");
    let hpa = hpa.replace("php-apache", "hamster");
    let files = ["-f", HAMSTER, "-f", "-"];
    let predict = |arguments: &[&str]| {
        let mut command = kube_lockstep(&["predict", "--until", "10m"]);
        let command = command.args(files).args(arguments).args(USAGE);
        stdout(&command.write_stdin(hpa.clone()).assert().code(0))
    };
    let both = predict(&["--release", "1.36"]);
    let both = both.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "hamster model of 1.36",
        "10 runs of the recommender; 10 pods evicted",
        "the HPA and VPA hamster-vpa are predicted together, because the VPA changes the requests",
    ] {
        assert!(both.contains(part), "{part}\n{both}");
    }
    let only = predict(&["--vpa", "hamster-vpa"]);
    assert!(only.starts_with("hamster-vpa  model of vpa-1.8"), "{only}");
    let only = only.split_whitespace().collect::<Vec<_>>().join(" ");
    let note = "HPA hamster scales the same pods on cpu, and the VPA changes their requests";
    assert!(only.contains(note), "{only}");
    let hpa_only = ["predict", "--hpa", "hamster", "--load", "cpu=500m"];
    let run = kube_lockstep(&hpa_only).args(files).write_stdin(hpa.clone()).assert().code(0);
    let shown = stdout(&run);
    assert!(!shown.contains("of the recommender"), "{shown}");
    let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    let note = "this prediction does not include VPA hamster-vpa, which changes the requests of \
                these pods; to include it, add --vpa hamster-vpa";
    assert!(shown.contains(note), "{shown}");
    let loads = [&hpa_only[..], &["--load", "memory=20Mi"]].concat();
    let run = kube_lockstep(&loads).args(files).write_stdin(hpa.clone()).assert().code(2);
    let hint = "hint: leave out the load, or add --vpa hamster-vpa, to predict this VPA as well\n";
    assert!(stderr(&run).contains(hint), "{}", stderr(&run));
    let init = kube_lockstep(&["init"]).args(files).write_stdin(hpa.clone()).assert().code(0);
    let shown = stdout(&init);
    assert!(shown.contains("\nhpa:\n") && shown.contains("\nvpa:\n"), "{shown}");
    let off = hpa.clone()
        + "---\n"
        + &fs::read_to_string(format!("{HAMSTER}/vpa.yaml"))
            .expect("an example")
            .replace("hamster-vpa", "other")
            .replace("name: hamster", "name: absent");
    let init = kube_lockstep(&["init"]).args(files).write_stdin(off).assert().code(2);
    let errors = stderr(&init);
    let expected = "the manifests contain 2 autoscalers: HPA hamster, VPA other";
    assert!(errors.contains(expected), "{errors}");
}

#[test]
fn init_writes_the_scenario_of_a_vpa() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let file = folder.path().join("mine.yaml");
    let init = ["init", "-f", HAMSTER, "-o", text(&file), "--until", "2h"];
    kube_lockstep(&init).args(USAGE).assert().code(0);
    let ticks = |arguments: &[&str]| {
        let run = kube_lockstep(&["predict", "--format", "json"]).args(arguments).assert().code(0);
        let mut lines = json(&run);
        lines.pop();
        lines
    };
    let manifests = ["-f", HAMSTER, "--until", "2h", USAGE[0], USAGE[1], USAGE[2], USAGE[3]];
    let from_manifests = ticks(&manifests);
    assert_eq!(from_manifests.len(), 120);
    assert_eq!(ticks(&[text(&file)]), from_manifests);
    let shown = stdout(&kube_lockstep(&["init", "-f", HAMSTER]).assert().code(0));
    for part in [
        "# Replace the example: there is no load of memory\n",
        "resource: [{name: cpu, perPod: 300m}, {name: memory, perPod: 200Mi}]\nuntil: 192h\n",
    ] {
        assert!(shown.contains(part), "{part}\n{shown}");
    }
}

/// Runs `predict` on the example with loads, and returns its standard output and error.
fn predict_with(loads: &[&str], code: i32) -> [String; 2] {
    let mut command = kube_lockstep(&["predict", "-f", PHP_APACHE]);
    for load in loads {
        command.args(["--load", load]);
    }
    let run = command.assert().code(code);
    [stdout(&run), stderr(&run)]
}

#[test]
fn hints_for_loads_have_the_syntax_of_the_command_line() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let write = |name: &str, contents: &str| {
        let path = folder.path().join(name);
        fs::write(&path, contents).expect("a file can be written");
        text(&path).to_owned()
    };
    let pods = write("pods.csv", "time,pod,cores\n0,a,1\n0,b,1\n60,a,1\n60,b,1\n");
    let gaps = write("gaps.csv", "time,cores\n0,\n60,NaN\n");
    let negative = write("negative.csv", "time,cores\n0,0.1\n60,-0.1\n");
    for (load, expected) in [
        (
            format!("cpu=csv({pods},value=cores)"),
            "`by=COLUMN` for the usage of each, or `total:…` and",
        ),
        (format!("cpu=csv({pods})"), "one of pod, cores; if each column is a series, `value=*`\n"),
        (format!("cpu=total:csv({pods},value=cores,by=pod)"), "leave out `total:`"),
        (format!("cpu=csv({gaps})"), "gaps.csv contains only gaps: no sample from 0s to 1m"),
        (format!("cpu=csv({negative})"), "negative.csv: the usage at 1m is negative: -100m\n"),
    ] {
        let [_, errors] = predict_with(&[&load], 2);
        assert!(errors.contains(expected), "{load}\n{errors}");
        assert!(!errors.contains("`sum: true`") && !errors.contains("series: {"), "{errors}");
    }
}

#[test]
fn errors_of_recorded_loads_name_a_remedy() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let write = |name: &str, contents: &str| {
        let path = folder.path().join(name);
        fs::write(&path, contents).expect("a file can be written");
        text(&path).to_owned()
    };
    let pods: String = (0..100).map(|pod| format!(",web-{pod}")).collect();
    let wide = write("wide.csv", &format!("time{pods}\n"));
    let answer = |result: &str| {
        format!(r#"{{"status":"success","data":{{"resultType":"matrix","result":[{result}]}}}}"#)
    };
    let many: Vec<String> = (0..5000).map(|at| format!("[{at},\"1\"]")).collect();
    let many = format!(r#"{{"metric":{{}},"values":[{}]}}"#, many.join(","));
    let saved = write("saved.json", &answer(&many));
    let refused = r#"{"status":"error","errorType":"bad_data","error":"parse error"}"#;
    let refused = write("refused.json", refused);
    let page = write("page.txt", "cpu{pod=\"web-0\"} 1\n");
    let broken = write("broken.json", &answer(r#"{"metric":{},"values":[[0,"x"]]}"#));
    for (load, expected) in [
        (
            format!("csv({wide})"),
            "hint: if each column is the series of a pod, add `value=*,by=pod`",
        ),
        (format!("csv({saved})"), "if it is a Prometheus response, use `prometheus` in place of"),
        (format!("prometheus({refused})"), "hint: correct the query, and save the response again"),
        (format!("openMetrics({page})"), "hint: save a range of times, with `kube-lockstep import"),
        (format!("prometheus({broken})"), "expected [TIME, \"VALUE\"]"),
        (
            "csv(examples/php-apache/load.csv,value=cores,start=2025-07-01T00:00:00Z)".to_owned(),
            "t=0s is the time 2025-07-01T00:00:00Z, as `start=TIME` says: change `start` to a time",
        ),
    ] {
        let [_, errors] = predict_with(&[&format!("cpu=total:{load}")], 2);
        assert!(errors.contains(expected), "{load}\n{errors}");
        assert!(errors.len() < 600, "{load}\n{errors}");
        assert!(!errors.contains("`kube-lockstep init`"), "{load}\n{errors}");
    }
    let hpa = format!("{PHP_APACHE}/hpa.yaml");
    let again = write("again.yaml", &fs::read_to_string(&hpa).expect("an example"));
    let twice = ["predict", "-f", PHP_APACHE, "-f", &again, LOAD[0], LOAD[1]];
    let errors = stderr(&kube_lockstep(&twice).assert().code(2));
    let expected = "again.yaml:2:1: HPA php-apache is also in examples/php-apache/hpa.yaml:2\n";
    assert!(errors.contains(expected), "{errors}");
    assert!(errors.contains("has only one of them") && !errors.contains("init"), "{errors}");
}

#[test]
fn a_scenario_on_standard_output_has_paths_of_the_current_folder() {
    let load = ["--load", "cpu=total:csv(examples/php-apache/load.csv,value=cores)"];
    let run = kube_lockstep(&["init", "-f", PHP_APACHE]).args(load).assert().code(0);
    assert!(stdout(&run).contains("csv: examples/php-apache/load.csv"), "{}", stdout(&run));
    let notes = stderr(&run).split_whitespace().collect::<Vec<_>>().join(" ");
    let expected = "note: examples/php-apache/load.csv is relative to the current folder: save";
    assert!(notes.contains(expected) && notes.contains("--output"), "{notes}");
    let folder = tempfile::tempdir().expect("a folder can be made");
    let file = folder.path().join("web.yaml");
    let to_file = ["init", "-f", PHP_APACHE, "-o", text(&file)];
    let run = kube_lockstep(&to_file).args(load).assert().code(0);
    assert!(!stderr(&run).contains("relative"), "{}", stderr(&run));
    kube_lockstep(&["predict", text(&file)]).assert().code(0);
}

#[test]
fn recorded_loads_share_their_start() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let write = |name: &str, contents: &str| {
        let path = folder.path().join(name);
        fs::write(&path, contents).expect("a file can be written");
        text(&path).to_owned()
    };
    let rows = |start: u32, value: &str| {
        let row =
            |minute: u32| format!("2025-05-06T{:02}:{:02}:00Z,{value}\n", minute / 60, minute % 60);
        format!("time,value\n{}", (start..120).map(row).collect::<String>())
    };
    let cpu = write("cpu.csv", &rows(30, "0.5"));
    let requests = write("requests.csv", &rows(0, "50"));
    let hpa = write(
        "hpa.yaml",
        "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: php-apache}\n\
         spec:\n  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: php-apache}\n  \
         maxReplicas: 10\n  metrics:\n  - type: Resource\n    resource: {name: cpu, target: \
         {type: Utilization, averageUtilization: 50}}\n  - type: Pods\n    pods: {metric: {name: \
         requests}, target: {type: AverageValue, averageValue: 40}}\n",
    );
    let loads =
        [format!("--load=cpu=total:csv({cpu})"), format!("--load=requests=csv({requests})")];
    let deployment = format!("{PHP_APACHE}/deployment.yaml");
    let options = ["predict", "-f", &hpa, "-f", &deployment, &loads[0], &loads[1]];
    let shown = stdout(&kube_lockstep(&options).assert().code(0));
    let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in ["begins at 30m: t=0s is 2025-05-06T00:00:00Z, the first time of", "1h59m"] {
        assert!(shown.contains(part), "{part}\n{shown}");
    }
    let other_day = fs::read_to_string(&requests).expect("the file").replace("05-06", "05-07");
    let other_day = write("other.csv", &other_day);
    let other = format!("--load=requests=csv({other_day})");
    let options = ["predict", "-f", &hpa, "-f", &deployment, &loads[0], &other];
    let errors = stderr(&kube_lockstep(&options).assert().code(2));
    assert!(errors.contains("do not overlap") && errors.contains("`start=TIME`"), "{errors}");
}

#[test]
fn replaced_pods_continue_the_series_of_pods() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let file = folder.path().join("pods.csv");
    let mut rows = "time,pod,cores\n".to_owned();
    for minute in 0..60 {
        let pods = if minute < 30 { ["a", "b", "c"] } else { ["d", "e", "f"] };
        for pod in pods {
            rows.push_str(&format!("{},web-{pod},0.1\n", minute * 60));
        }
    }
    fs::write(&file, rows).expect("a file can be written");
    let load = format!("--load=cpu=csv({},value=cores,by=pod)", text(&file));
    let options = ["predict", "-f", PHP_APACHE, "--replicas", "3", &load];
    let shown = stdout(&kube_lockstep(&options).assert().code(0));
    let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        shown.contains("6 series belong to 3 pods") && shown.contains("from ordinal 3"),
        "{shown}"
    );
    assert!(!shown.contains("failed"), "{shown}");
}

#[test]
fn usage_by_container_and_percents_of_a_total_are_checked() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let file = folder.path().join("percent.csv");
    fs::write(&file, "time,value\n0,30\n60,70\n").expect("a file can be written");
    let load = format!("cpu/php-apache=csv({})", text(&file));
    let [_, errors] = predict_with(&[&load], 2);
    let expected = "up to 70 cores, but the container `php-apache` requests 200m";
    assert!(errors.contains(expected), "{errors}");
    let load = format!("cpu=total:csv({})", text(&file));
    let [_, errors] = predict_with(&[&load], 2);
    let expected = "up to 7 cores for each of 10 pods, but a pod requests 200m";
    assert!(
        errors.contains(expected) && errors.contains("add `unit=1m` for millicores"),
        "{errors}"
    );
}

#[test]
fn only_the_ticks_with_changes_are_shown() {
    let options = ["predict", "-f", PHP_APACHE, LOAD[0], LOAD[1], "--changes"];
    let shown = stdout(&kube_lockstep(&options).assert().code(0));
    assert!(shown.contains(" 1 → 4 ") && !shown.contains("with the same result"), "{shown}");
    let run = kube_lockstep(&options).args(["--format", "json"]).assert().code(0);
    let lines = json(&run);
    let ticks = &lines[..lines.len() - 1];
    assert!((3..20).contains(&ticks.len()), "{} ticks", ticks.len());
    let first = &ticks[0];
    assert_eq!((&first["namespace"], &first["hpa"]), (&"default".into(), &"php-apache".into()));
    let metric = &first["metrics"][0];
    assert_eq!((&metric["name"], &metric["target"]), (&"cpu".into(), &50.into()), "{first}");
}

#[test]
fn a_recording_with_dates_has_clock_times() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let file = folder.path().join("ticks.csv");
    let load = "cpu=total:csv(examples/php-apache/load.csv,value=cores)";
    let options = ["predict", "-f", PHP_APACHE, "--load", load, "--csv", text(&file)];
    let shown = stdout(&kube_lockstep(&options).assert().code(0));
    assert!(shown.contains("UTC") && shown.contains("05-06 09:00:15"), "{shown}");
    let rows = fs::read_to_string(&file).expect("the CSV file");
    assert!(rows.starts_with("tick,seconds,hpa,time,cpu,"), "{rows}");
    assert!(rows.contains("2,15,php-apache,2025-05-06T09:00:15Z,"), "{rows}");
}

#[test]
fn a_tick_is_explained_at_the_clock_time_that_a_prediction_shows() {
    let load = "cpu=total:csv(examples/php-apache/load.csv,value=cores)";
    let explain =
        |at: &str| kube_lockstep(&["explain", "-f", PHP_APACHE, "--load", load, "--at", at]);
    for at in ["05-06 09:00:15", "2025-05-06T09:00:20Z", "2025-05-06T11:00:15+02:00", "9:00:15"] {
        let shown = stdout(&explain(at).assert().code(0));
        assert!(shown.contains("tick 2 of ") && shown.contains("t=15s"), "{at}: {shown}");
    }
    let errors = stderr(&explain("noon: 12").assert().code(2));
    assert!(errors.contains("as `predict` prints it: \"05-06 09:00:00\""), "{errors}");
    let options = ["explain", "-f", PHP_APACHE, LOAD[0], LOAD[1], "--at", "2025-05-06 09:00"];
    let errors = stderr(&kube_lockstep(&options).assert().code(2));
    assert!(errors.contains("a date requires an HPA scenario"), "{errors}");
}

#[test]
fn only_the_changes_of_a_recommendation_are_shown() {
    let options = ["predict", "-f", HAMSTER, "--until", "2d", "--changes"];
    let load = ["--load", "cpu=steps(0s:100m,6h:900m)", "--load", "memory=200Mi"];
    let shown = stdout(&kube_lockstep(&options).args(load).assert().code(0));
    assert!(!shown.contains("with similar results"), "{shown}");
    let run = kube_lockstep(&options).args(load).args(["--format", "json"]).assert().code(0);
    let lines = json(&run);
    let ticks = &lines[..lines.len() - 1];
    let target = |tick: &serde_json::Value| {
        tick["vpas"][0]["recommendation"]["containerRecommendations"][0]["target"].clone()
    };
    assert!((2..500).contains(&ticks.len()), "{} ticks", ticks.len());
    assert_ne!(target(&ticks[0]), target(&ticks[ticks.len() - 1]), "{ticks:?}");
}

#[test]
fn folders_are_read_with_and_without_their_folders() {
    let run = kube_lockstep(&["predict", "-f", "examples"]).args(LOAD).assert().code(2);
    let errors = stderr(&run);
    assert!(errors.contains("hint: --recursive (-R) also reads the folders in it"), "{errors}");
    let options = ["predict", "-f", "examples", "-R", "--hpa", "php-apache"];
    kube_lockstep(&options).args(LOAD).assert().code(0);
    let several = ["predict", "examples/php-apache/deployment.yaml"];
    let errors = stderr(&kube_lockstep(&several).assert().code(2));
    assert!(errors.contains("found several manifests"), "{errors}");
    assert!(
        errors.contains("`kube-lockstep predict -f FILE` and `compare -f FILE` read manifests"),
        "{errors}"
    );
}

/// A folder with an HPA `web` in a version, with `spec` as further lines, and its Deployment with
/// a container `app` that requests 200m.
fn web(version: &str, spec: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let hpa = format!(
        "apiVersion: {version}\nkind: HorizontalPodAutoscaler\nmetadata: {{name: web}}\nspec:\n  \
         scaleTargetRef: {{apiVersion: apps/v1, kind: Deployment, name: web}}\n  \
         maxReplicas: 10\n{spec}"
    );
    let deployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  \
                      replicas: 1\n  selector: {matchLabels: {app: web}}\n  template:\n    \
                      metadata: {labels: {app: web}}\n    spec:\n      containers:\n      - {name: \
                      app, image: web, resources: {requests: {cpu: 200m, memory: 1Gi}}}\n";
    for (name, contents) in [("hpa.yaml", &*hpa), ("deployment.yaml", deployment)] {
        fs::write(folder.path().join(name), contents).expect("a file can be written");
    }
    folder
}

/// Text without line breaks and indentation.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

const CPU: &str = "  metrics:\n  - type: Resource\n    resource: {name: cpu, target: {type: \
                   Utilization, averageUtilization: 50}}\n";
const CONTAINER: &str = "  metrics:\n  - type: ContainerResource\n    containerResource: {name: \
                         cpu, container: app, target: {type: Utilization, averageUtilization: \
                         50}}\n";

#[test]
fn what_a_release_lacks_or_disables_by_default_is_a_note() {
    let tolerance = format!("{CPU}  behavior: {{scaleUp: {{tolerance: 0.5}}}}\n");
    let window = format!("{CPU}  behavior: {{scaleUp: {{stabilizationWindowSeconds: 5}}}}\n");
    let gate = "HPAContainerMetrics is off by default on 1.26, so the API server drops container";
    let drops = "drops it, because the feature gate HPAConfigurableTolerance is off by default";
    for (version, spec, release, expected) in [
        ("autoscaling/v2", &*tolerance, "1.34", Some(drops)),
        ("autoscaling/v2", &tolerance, "1.37", None),
        ("autoscaling/v2", &tolerance, "1.32", Some("has no effect in the prediction below")),
        ("autoscaling/v2", CONTAINER, "1.26", Some(gate)),
        ("autoscaling/v2", CONTAINER, "1.27", None),
        ("autoscaling/v2", CPU, "1.22", Some("1.22 does not serve autoscaling/v2, which was")),
        ("autoscaling/v2", CPU, "1.23", None),
        ("autoscaling/v1", "", "1.22", None),
        ("autoscaling/v2beta2", &window, "1.16", Some("to predict what 1.16 does, remove it")),
    ] {
        let folder = web(version, spec);
        let arguments = ["predict", "-f", text(folder.path()), "--load", "cpu=100m"];
        let run = kube_lockstep(&arguments).args(["--release", release]).assert().code(0);
        let shown = words(&stdout(&run));
        let name = format!("{version} on {release}");
        match expected {
            Some(expected) => assert!(shown.contains(expected), "{name}\n{shown}"),
            None => {
                let notes = ["by default", "does not serve", "drops"];
                assert!(notes.iter().all(|part| !shown.contains(part)), "{name}\n{shown}");
            }
        }
        assert!(!shown.contains("`run` skips this scenario"), "{name}\n{shown}");
    }
}

#[test]
fn a_constant_or_a_recording_of_a_vpa_in_another_unit_is_an_error() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let write = |name: &str, rows: &str| {
        let path = folder.path().join(name);
        fs::write(&path, format!("time,value\n{rows}")).expect("a file can be written");
        text(&path).to_owned()
    };
    let (millicores, mebibytes) =
        (write("mc.csv", "0,300\n60,359\n"), write("mib.csv", "0,150\n60,140\n"));
    let sound = ("cpu=300m", "memory=20Mi");
    for (from, cpu, memory, expected) in [
        (PHP_APACHE, "cpu=300Mi", "", "up to 314572800 cores, but a pod requests 200m"),
        (HAMSTER, "cpu=300", sound.1, "up to 300 cores, but a pod requests 100m"),
        (HAMSTER, sound.0, "memory=200", "up to 200 bytes, but a pod requests 50Mi"),
        (HAMSTER, &format!("cpu=csv({millicores})"), sound.1, "add `unit=1m` for millicores"),
        (HAMSTER, sound.0, &format!("memory=csv({mebibytes})"), "add `unit=1Mi` for MiB"),
    ] {
        let loads = [cpu, memory].into_iter().filter(|load| !load.is_empty());
        let loads: Vec<&str> = loads.flat_map(|load| ["--load", load]).collect();
        let run = kube_lockstep(&["predict", "-f", from]).args(&loads).assert().code(2);
        let errors = words(&stderr(&run));
        assert!(errors.contains("seems to be wrong: "), "{loads:?}\n{errors}");
        assert!(errors.contains(expected), "{loads:?}\n{errors}");
    }
    for (cpu, memory) in [
        (format!("cpu=csv({millicores},unit=1m)"), format!("memory=csv({mebibytes},unit=1Mi)")),
        (sound.0.to_owned(), sound.1.to_owned()),
    ] {
        let loads = ["--load", &cpu, "--load", &memory, "--until", "1h"];
        kube_lockstep(&["predict", "-f", HAMSTER]).args(loads).assert().code(0);
    }
}

#[test]
fn manifests_in_place_of_scenarios_are_recognized() {
    let list = format!("{PHP_APACHE}/hpa.yaml");
    for (arguments, code, expected) in [
        (&[PHP_APACHE][..], 4, "name it with -f: `predict -f examples/php-apache`"),
        (
            &["examples/php-apache/*.yml"],
            4,
            "`kube-lockstep predict -f FILE` and `compare -f FILE` read manifests",
        ),
        (&[&*list, "--load", "cpu=1"], 2, "hpa.yaml contains manifests: name it with `-f examples"),
        (&[PHP_APACHE, "--load", "cpu=1"], 2, "name it with `-f examples/php-apache`"),
        (&["-f", PHP_APACHE, "--release", "1.36,1.37"], 2, "compare --release 1.36,1.37`"),
    ] {
        let run = kube_lockstep(&["predict"]).args(arguments).assert().code(code);
        assert!(stderr(&run).contains(expected), "{expected}\n{}", stderr(&run));
    }
    let help = stdout(&kube_lockstep(&["predict", "--help"]).assert().code(0));
    assert!(help.contains("  4    a folder or a glob contains no scenarios"), "{help}");
    let run = kube_lockstep(&["predict", "-f", "-"]).write_stdin("\n").assert().code(2);
    let errors = stderr(&run);
    assert!(errors.contains("<stdin>: it is empty") && errors.contains("kubectl get"), "{errors}");
}

#[test]
fn a_kustomization_is_built_by_kubectl() {
    let folder = web("autoscaling/v1", "");
    let kustomization = folder.path().join("kustomization.yaml");
    let contents = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: \
                    [hpa.yaml]\n";
    fs::write(&kustomization, contents).expect("a file can be written");
    let run = kube_lockstep(&["predict", "-f", text(&kustomization)]).assert().code(2);
    let errors = words(&stderr(&run));
    assert!(errors.contains("`kubectl kustomize DIR | kube-lockstep predict -f -`"), "{errors}");
    let both = ["predict", "-f", text(folder.path()), "--load", "cpu=1"];
    let run = kube_lockstep(&both).assert().code(0);
    assert_eq!(stderr(&run), "note: ignored: Kustomization\n");
}

#[test]
fn a_field_of_another_version_has_a_hint() {
    let folder = web("autoscaling/v2", "  targetCPUUtilizationPercentage: 50\n");
    let run = kube_lockstep(&["predict", "-f", text(folder.path())]).assert().code(2);
    let errors = words(&stderr(&run));
    for part in ["use apiVersion autoscaling/v1", "averageUtilization: PERCENT"] {
        assert!(errors.contains(part), "{part}\n{errors}");
    }
}

#[test]
fn a_sum_for_each_pod_is_a_note() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let file = folder.path().join("pods.csv");
    fs::write(&file, "Time,pod-a,pod-b\n0,0.1,0.2\n60,0.1,0.2\n").expect("a file can be written");
    let file = text(&file);
    let [each, _] = predict_with(&[&format!("cpu=csv({file},value=*,sum)")], 0);
    let note = "each pod has the sum of all series; for a total that the pods share, use `total:…`";
    assert!(words(&each).contains(note), "{each}");
    let [total, _] = predict_with(&[&format!("cpu=total:csv({file},value=*,sum)")], 0);
    assert!(!words(&total).contains("each pod has the sum"), "{total}");
}

/// The patch of an overlay is not a complete HPA.
#[test]
fn an_overlay_has_a_hint_on_kustomize() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let write = |name: &str, contents: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, contents).expect("a file can be written");
        path
    };
    write("kustomization.yaml", "resources: [../base]\npatches: [{path: patch.yaml}]\n");
    let patch = "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: web}\n\
                 spec: {minReplicas: 3}\n";
    let patch = write("patch.yaml", patch);
    for path in [folder.path(), &patch] {
        for command in ["predict", "compare"] {
            let errors = stderr(&kube_lockstep(&[command, "-f", text(path)]).assert().code(2));
            let expected = format!("`kubectl kustomize {} | kube-lockstep", text(folder.path()));
            assert!(errors.contains(&expected), "{errors}");
        }
    }
}

#[test]
fn urls_are_not_read() {
    let url = "https://example.org/hpa.yaml";
    let errors = stderr(&kube_lockstep(&["predict", "-f", url]).assert().code(2));
    assert!(errors.contains("manifests are not read from URLs"), "{errors}");
    assert!(errors.contains(&format!("`curl -fsSL {url} | kube-lockstep predict -f -")));
}

#[test]
fn a_page_is_not_written_to_a_file_named_like_standard_output() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let example = support::repository().join("examples/php-apache");
    let options = ["predict", "-f", text(&example), "--load", "cpu=1", "--html", "-"];
    let run = kube_lockstep(&options).current_dir(folder.path()).assert().code(2);
    assert!(stderr(&run).contains("--html: `-` is not a file"), "{}", stderr(&run));
    assert!(!folder.path().join("-").exists());
}
