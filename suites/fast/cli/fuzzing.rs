//! The command `kube-lockstep fuzz`.

use std::fs;
use std::path::Path;

use super::{IDLE, json, kube_lockstep, program, stderr, stdout, support, text};

/// Names and contents of the saved files.
fn saved(folder: &Path) -> Vec<(String, String)> {
    let files = fs::read_dir(folder).expect("a folder can be listed");
    let mut files: Vec<_> = files
        .map(|file| {
            let path = file.expect("a folder can be listed").path();
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            (name, fs::read_to_string(&path).expect("a file can be read"))
        })
        .collect();
    files.sort();
    files
}

#[test]
fn the_first_line_contains_everything_for_a_replay() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let version = env!("CARGO_PKG_VERSION");
    let fuzz = |more: &[&str]| {
        let options = ["fuzz", "--engine", "model", "--seed", "7", "--ticks", "2000", "--save"];
        kube_lockstep(&options).arg(folder.path()).args(more).assert().code(0)
    };
    let shown = stdout(&fuzz(&[]));
    let first = format!("fuzz: seed 7, release 1.37, engine model, kube-lockstep {version}\n");
    assert!(shown.starts_with(&first), "{shown}");
    let last = shown.lines().last().unwrap_or_default();
    assert!(last.starts_with("no divergence in ") && last.contains("(seed 7; "), "{last}");
    let mut summaries = ["1", "3"].map(|jobs| {
        let mut lines = json(&fuzz(&["--format", "json", "--jobs", jobs]));
        assert_eq!(lines.len(), 2, "{lines:?}");
        let first = &lines[0]["fuzz"];
        assert_eq!((&first["seed"], &first["version"]), (&7.into(), &version.into()));
        lines.remove(1)["summary"].take()
    });
    for (summary, jobs) in summaries.iter_mut().zip([1, 3]) {
        assert_eq!(summary["jobs"], jobs);
        assert!(summary["ticks"].as_u64().is_some_and(|ticks| ticks >= 2000), "{summary}");
        let summary = summary.as_object_mut().expect("an object");
        // Only these keys may differ.
        for key in ["jobs", "seconds"] {
            assert!(summary.remove(key).is_some(), "{key}");
        }
    }
    assert_eq!(summaries[0], summaries[1]);
    assert_eq!(saved(folder.path()), []);
}

#[test]
fn a_divergence_is_shrunk_and_saved_with_any_number_of_jobs() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let engine = folder.path().join("idle");
    program(&engine, IDLE);
    let found = ["1", "3"].map(|jobs| {
        let save = folder.path().join(format!("found-{jobs}"));
        let options = ["fuzz", "--seed", "7", "--ticks", "1", "--jobs", jobs, "--format", "json"];
        let mut fuzz = kube_lockstep(&options);
        fuzz.args(["--program", text(&engine), "--save", text(&save)]);
        let fuzz = fuzz.assert().code(1);
        assert!(stderr(&fuzz).starts_with("failed  scenario "), "{}", stderr(&fuzz));
        let lines = json(&fuzz);
        let (summary, found) = lines[1..].split_last().expect("there is a summary");
        assert!(summary["summary"]["divergences"].as_u64() >= Some(1), "{summary}");
        let files: Vec<&str> =
            found.iter().filter_map(|line| line["found"]["file"].as_str()).collect();
        let saved = saved(&save);
        assert_eq!(files.len(), saved.len());
        assert!(!files.is_empty() && found.iter().all(|line| line["found"]["cutShort"] == false));
        // The saved scenario fails on the engine, and conforms on the model.
        let run = kube_lockstep(&["run", files[0], "--program", text(&engine)]);
        { run }.assert().code(1);
        kube_lockstep(&["run", files[0], "--engine", "model"]).assert().code(0);
        saved
            .into_iter()
            .map(|(name, text)| (name, text.replace(&format!("found-{jobs}"), "")))
            .collect::<Vec<_>>()
    });
    assert_eq!(found[0], found[1]);
}

#[test]
fn an_engine_that_cannot_run_ends_the_run_with_3() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let save = folder.path().join("found");
    let options = ["fuzz", "--seed", "7", "--program", "no/such/program", "--save", text(&save)];
    let fuzz = kube_lockstep(&options).assert().code(3);
    let shown = stdout(&fuzz);
    assert!(shown.contains("no scenario reached a tick in 50 scenarios"), "{shown}");
    assert!(!save.exists(), "nothing was found");
}

#[test]
fn the_scenario_of_expect_must_have_expectations_of_an_hpa() {
    let (_folder, without) = super::folder("");
    let vpa = "fixtures/vpa/runs/the-first-run.yaml";
    for (scenario, message) in [
        (text(&without), "the scenario has no expectations"),
        (vpa, "is a VPA scenario"),
        ("fixtures/tolerance", "--expect requires one scenario"),
    ] {
        let options = ["fuzz", "--program", "no/such/program", "--expect", scenario];
        let shown = stderr(&kube_lockstep(&options).assert().code(2));
        assert!(shown.contains(message), "{shown}");
    }
    let options = ["fuzz", "--expect", text(&without)];
    let shown = stderr(&kube_lockstep(&options).assert().code(2));
    assert!(shown.contains("--program <FILE>"), "{shown}");
}

/// The signal arrives while further scenarios run, long before the first finding is shrunk.
#[cfg(unix)]
#[test]
fn an_interrupted_run_saves_its_findings() {
    use std::io::{BufRead, BufReader, Read};
    use std::os::unix::process::ExitStatusExt;
    use std::process::Stdio;

    let folder = tempfile::tempdir().expect("a folder can be made");
    let (engine, save) = (folder.path().join("idle"), folder.path().join("found"));
    program(&engine, IDLE);
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_kube-lockstep"))
        .args(["fuzz", "--seed", "7", "--time", "10m", "--jobs", "1"])
        .args(["--program", text(&engine), "--save", text(&save)])
        .current_dir(support::repository())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command can be started");
    let mut errors = BufReader::new(child.stderr.take().expect("a pipe"));
    let mut line = String::new();
    errors.read_line(&mut line).expect("a line can be read");
    assert!(line.starts_with("failed  scenario 0: "), "{line}");
    let kill = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(kill.expect("kill can be run").success());
    let mut rest = String::new();
    errors.read_to_string(&mut rest).expect("it can be read");
    let output = child.wait_with_output().expect("the command ends");
    assert_eq!(output.status.signal(), Some(2), "{}", output.status);
    assert!(rest.contains("interrupted: saving the findings"), "{rest}");
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(shown.contains("; not shrunk"), "{shown}");
    let saved = saved(&save);
    assert_eq!(saved.first().map(|(name, _)| name.as_str()), Some("7-0.yaml"), "{shown}");
}
