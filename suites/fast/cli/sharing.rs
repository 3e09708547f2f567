//! Runs that are split over several machines, and the merge of their results.

use std::fs;
use std::path::Path;

use assert_cmd::assert::Assert;
use serde_json::{Value, json};

use super::{IDLE, json, kube_lockstep, program, stderr, stdout, text};

/// Runs a command and saves its output in a file.
fn saved(folder: &Path, name: &str, arguments: &[&str]) -> (String, Assert) {
    let run = kube_lockstep(arguments).args(["--format", "json"]).assert();
    let path = folder.join(name);
    fs::write(&path, stdout(&run)).expect("a file can be written");
    (text(&path).to_owned(), run)
}

fn merge(files: &[&str]) -> assert_cmd::Command {
    let mut command = kube_lockstep(&["report", "merge"]);
    command.args(files);
    command
}

#[test]
fn invalid_shards_are_rejected() {
    for (shard, message) in [
        ("0/4", "shards are numbered from 1: did you mean 1/4?"),
        ("5/4", "there is no shard 5 of 4"),
        ("half", "expected I/N, the I-th of N shards, for example 1/4"),
    ] {
        for command in ["run", "fuzz"] {
            let errors = stderr(&kube_lockstep(&[command, "--shard", shard]).assert().code(2));
            assert!(errors.contains(message), "{shard}: {errors}");
        }
    }
    let fuzz = kube_lockstep(&["fuzz", "--shard", "1/2"]).assert().code(2);
    assert!(stderr(&fuzz).contains("--shard requires --seed"), "{}", stderr(&fuzz));
}

#[test]
fn merged_shards_keep_the_details_of_divergences() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let engine = folder.path().join("idle");
    program(&engine, IDLE);
    let run = ["run", "tolerance", "--program", text(&engine), "--time-limit", "1m"];
    let shard = |index: usize| {
        let shard = format!("{index}/3");
        let arguments = [&run[..], &["--shard", &shard]].concat();
        let (file, run) = saved(folder.path(), &format!("{index}.json"), &arguments);
        assert_eq!(json(&run.code(1)).last().expect("a summary")["summary"]["shard"], *shard);
        file
    };
    let files = [1, 2, 3].map(shard);
    let [one, two, three] = files.each_ref().map(String::as_str);
    let whole = kube_lockstep(&run).assert().code(1);
    let merged = merge(&[three, one, two]).assert().code(1);
    // The texts differ only in the engine's actions around a divergence, which are not part of a
    // result.
    let plain = |assert: &Assert| {
        let text = stdout(assert);
        let lines = text.lines().filter(|line| line.starts_with(char::is_alphabetic));
        let lines = lines.map(|line| line.split(" ticks in ").next().unwrap_or_default());
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(plain(&merged), plain(&whole));
    let shown = stdout(&merged);
    assert!(shown.contains("\n    api:\n      model  stored\n"), "{shown}");
    let replay = "  replay: kube-lockstep run tolerance/upper-edge-is-inclusive --release 1.37";
    let program = format!("{replay} --program {} --time-limit 1m\n", text(&engine));
    assert!(shown.contains(&program), "{program}\n{shown}");

    let gap = merge(&[one, three, "--format", "json"]).assert().code(1);
    let summary = &json(&gap).pop().expect("a summary")["summary"];
    assert_eq!(summary["missing"][0], "shard 2/3 of the run on idle 1.37");
    let errors = stderr(&merge(&[one, two, one]).assert().code(2));
    assert!(errors.contains(" are both shard 1/3 of the same run\nhint: "), "{errors}");
}

#[test]
fn missing_or_truncated_parts_are_never_a_success() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let run = |name: &str, shard: &str| {
        let arguments = ["run", "limits", "--engine", "recorded", "--shard", shard];
        let (file, run) = saved(folder.path(), name, &arguments);
        run.code(0);
        file
    };
    let (one, two) = (run("1.json", "1/2"), run("2.json", "2/2"));
    merge(&[&one, &two]).assert().code(0);
    let shown = stdout(&merge(&[&two]).assert().code(3));
    assert!(shown.contains("missing  shard 1/2 of the run on recorded 1.37\n"), "{shown}");
    assert!(shown.contains(", 1 missing; "), "{shown}");
    let cut = folder.path().join("cut.json");
    let whole = fs::read_to_string(&one).expect("a file can be read");
    fs::write(&cut, &whole[..whole.len() / 2]).expect("a file can be written");
    let shown = stdout(&merge(&[text(&cut), &two]).assert().code(3));
    let message = format!("missing  {}: the run is incomplete\n", text(&cut));
    assert!(shown.contains(&message), "{shown}");
    fs::write(&cut, "").expect("a file can be written");
    merge(&[text(&cut)]).assert().code(3);
    // More machines than scenarios: a machine without scenarios succeeds.
    let (_, idle) = saved(
        folder.path(),
        "idle.json",
        &["run", "limits", "--engine", "recorded", "--shard", "900/1000"],
    );
    assert_eq!(json(&idle.code(0)).len(), 1);
}

#[test]
fn invalid_results_are_reported_with_their_position() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let file = folder.path().join("notes.txt");
    fs::write(&file, "{\"id\": \"x\"}\n").expect("a file can be written");
    let errors = stderr(&merge(&[text(&file)]).assert().code(2));
    let message = format!("{}:1:", text(&file));
    assert!(errors.contains(&message), "{errors}");
    assert!(errors.contains("not a result of `run --format json`: missing field"), "{errors}");
    let errors = stderr(&merge(&["no/such/file"]).assert().code(2));
    assert!(errors.contains("no/such/file: No such file"), "{errors}");
}

#[test]
fn sums_of_results_saturate() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    const ONE: &str = "limits/a-manual-scale-to-zero-stays";
    const OTHER: &str = "limits/limits-hold-while-the-metrics-api-is-down";
    let run = ["run", "--engine", "recorded", ONE, OTHER];
    let (file, _) = saved(folder.path(), "results.json", &run);
    let results = fs::read_to_string(&file).expect("a file can be read");
    let lines: Vec<Value> =
        results.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(lines.len(), 3, "{results}");
    let most = |mut line: Value| {
        if line.get("summary").is_none() {
            let divergence =
                serde_json::json!({"tick": u64::MAX, "at": "30s", "fields": [], "why": "w"});
            line["verdict"] = "diverges".into();
            line["divergence"] = divergence;
            line["elapsedMs"] = 1.8e22.into();
            for field in ["ticks", "notCompared", "ambiguousTicks", "retries", "line"] {
                line[field] = u64::MAX.into();
            }
        }
        line.to_string() + "\n"
    };
    fs::write(&file, lines.into_iter().map(most).collect::<String>()).expect("it can be written");
    let reports = ["junit", "html", "markdown"];
    let reports = reports.map(|kind| format!("--report={kind}={file}.{kind}"));
    let merged = merge(&[&file, "--format", "json"]).args(&reports).assert().code(1);
    let summary = &json(&merged).pop().expect("a summary")["summary"];
    assert_eq!((&summary["ticks"], &summary["scenarios"]), (&u64::MAX.into(), &2.into()));
    merge(&[&file]).assert().code(1);
}

#[test]
fn the_order_of_fields_and_the_spaces_between_them_are_free_in_results() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let fuzz = ["fuzz", "--engine", "model", "--seed", "7", "--ticks", "100"];
    let runs: [&[&str]; 2] = [&["run", "limits", "--engine", "recorded"], &fuzz];
    for run in runs {
        let (file, _) = saved(folder.path(), "results.json", run);
        let as_written = stdout(&merge(&[&file]).assert().code(0));
        let results = fs::read_to_string(&file).expect("a file can be read");
        // The version of the format moves behind the other fields.
        let moved = |line: &str| {
            let (version, rest) = line.split_once(',').expect("it has several fields");
            let version = version.strip_prefix('{').expect("it is an object");
            let rest = rest.strip_suffix('}').expect("it is an object");
            format!("{{ {}, {version} }}\n", rest.replacen("\":", "\" : ", 1))
        };
        let results: String = results.lines().map(moved).collect();
        fs::write(&file, results).expect("a file can be written");
        assert_eq!(stdout(&merge(&[&file]).assert().code(0)), as_written, "{run:?}");
    }
}

/// The scenarios that are cut short, or not run, are added by their causes.
#[test]
fn scenarios_of_fuzzing_shards_that_are_cut_short_are_added() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let shard = |number: usize, causes: &str, count: usize, skipped: &str| {
        let (name, shard) = (format!("{number}.json"), format!("{number}/2"));
        let fuzz = ["fuzz", "--engine", "model", "--seed", "7", "--ticks", "100", "--shard"];
        let (file, _) = saved(folder.path(), &name, &[&fuzz[..], &[&shard]].concat());
        let results = fs::read_to_string(&file).expect("a file can be read");
        let none = "\"undetermined\":0,\"undeterminedBy\":{},";
        assert!(results.contains(none), "{results}");
        let some = format!(
            "\"undetermined\":{count},\"undeterminedBy\":{{{causes}}},\"skipped\":{{{skipped}}},"
        );
        fs::write(&file, results.replace(none, &some)).expect("a file can be written");
        file
    };
    let one = shard(1, "\"resync\":2,\"cache-update\":1", 3, "\"no flag\":1");
    let two = shard(2, "\"resync\":5", 5, "\"no flag\":3,\"no field\":1");
    let merged = json(&merge(&[&one, &two, "--format", "json"]).assert().code(0));
    let summary = &merged.last().expect("a summary")["summary"];
    assert_eq!(summary["undetermined"], 8);
    assert_eq!(summary["undeterminedBy"], json!({ "resync": 7, "cache-update": 1 }));
    assert_eq!(summary["skipped"], json!({ "no flag": 4, "no field": 1 }));
    let shown = stdout(&merge(&[&one, &two]).assert().code(0));
    let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    let cut = ", 8 cut short where the outcome is random (cache-update: 1; resync: 7), 5 not run (no \
               field: 1; no flag: 4) (seed 7; ";
    assert!(shown.contains(cut), "{shown}");
    let unknown = shard(2, "\"moon\":1", 1, "");
    let errors = stderr(&merge(&[&one, &unknown]).assert().code(2));
    assert!(errors.contains("unknown variant `moon`"), "{errors}");
}

#[test]
fn fuzzing_shards_run_different_scenarios_of_the_same_seed() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let engine = folder.path().join("idle");
    program(&engine, IDLE);
    let save = folder.path().join("found");
    let fuzz = |name: &str, more: &[&str], code: i32| {
        let options = ["fuzz", "--seed", "7", "--ticks", "400", "--save", text(&save)];
        let (file, run) = saved(folder.path(), name, &[&options[..], more].concat());
        (file, json(&run.code(code)))
    };
    let model = |name: &str, shard: &str| fuzz(name, &["--engine", "model", "--shard", shard], 0);
    let (one, lines) = model("1.json", "1/2");
    assert_eq!(lines[0]["fuzz"]["shard"], "1/2");
    // The shard runs its share of the ticks, and a second run gives the same result.
    assert!(
        (200..400).contains(&lines[1]["summary"]["ticks"].as_u64().expect("ticks")),
        "{lines:?}"
    );
    let without_times = |lines: &[Value]| {
        let mut last = lines.last().expect("a summary")["summary"].clone();
        last.as_object_mut().expect("an object").remove("seconds");
        last
    };
    assert_eq!(without_times(&lines), without_times(&model("again.json", "1/2").1));
    let (two, other) = model("2.json", "2/2");
    assert_ne!(without_times(&lines)["coverage"], without_times(&other)["coverage"]);
    let merged = json(&merge(&[&two, &one, "--format", "json"]).assert().code(0));
    let figure = |lines: &[Value], key: &str| {
        lines.last().expect("a summary")["summary"][key].as_u64().expect("a number")
    };
    for key in ["ticks", "scenarios", "undetermined", "jobs"] {
        assert_eq!(figure(&merged, key), figure(&lines, key) + figure(&other, key), "{key}");
    }
    let reached = |lines: &[Value]| {
        let last = lines.last().expect("a summary");
        last["summary"]["coverage"]["events"]["reached"]["SuccessfulRescale"].as_u64()
    };
    let sum = reached(&lines).zip(reached(&other)).map(|(one, two)| one + two);
    assert!(sum.is_some() && reached(&merged) == sum, "{:?}", merged.last());
    let shown = stdout(&merge(&[&two]).assert().code(3));
    assert!(shown.contains("missing  shard 1/2 of seed 7 on model 1.37\n"), "{shown}");
    merge(&[&one, &one]).assert().code(2);

    // A finding is named by its index in the whole seed, so that names are unique across shards.
    let (found, lines) = fuzz("found.json", &["--program", text(&engine), "--shard", "2/3"], 1);
    for line in lines.iter().filter(|line| line.get("found").is_some()) {
        let index = line["found"]["index"].as_u64().expect("an index");
        assert_eq!(index % 3, 1, "{line}");
        assert!(save.join(format!("7-{index}.yaml")).exists());
    }
    let shown = stdout(&merge(&[&found]).assert().code(1));
    let replay = format!("  replay: kube-lockstep run {}/7-", text(&save));
    assert!(shown.contains("\nfound  ") && shown.contains(&replay), "{shown}");
    let errors = stderr(&merge(&[&found, "README.md"]).assert().code(2));
    assert!(errors.contains("README.md is not a result of `fuzz`"), "{errors}");
}

#[test]
fn fuzzing_shards_of_the_recommender_are_merged() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let save = folder.path().join("found");
    let part = |name: &str, shard: &str| {
        let options = ["fuzz", "--area", "vpa", "--engine", "model", "--seed", "7"];
        let rest = ["--ticks", "800", "--shard", shard, "--save", text(&save)];
        let (file, run) = saved(folder.path(), name, &[&options[..], &rest].concat());
        (file, json(&run.code(0)))
    };
    let ((one, first), (two, second)) = (part("1.json", "1/2"), part("2.json", "2/2"));
    assert_eq!(first[0]["fuzz"]["areas"][0], "vpa");
    assert_eq!(first[0]["fuzz"]["shard"], "1/2");
    let ticks = |lines: &[Value]| {
        lines.last().expect("a summary")["summary"]["ticks"].as_u64().expect("a number")
    };
    let merged = json(&merge(&[&two, &one, "--format", "json"]).assert().code(0));
    assert_eq!(ticks(&merged), ticks(&first) + ticks(&second));
    let shown = stdout(&merge(&[&one]).assert().code(3));
    assert!(shown.contains("missing  shard 2/2 of seed 7 on model vpa-1.8\n"), "{shown}");
}
