//! Engines: external programs, the first build of upstream's, and interrupted runs.

use std::fs;
use std::path::{Path, PathBuf};

use rstest::rstest;

use super::{IDLE, folder, json, kube_lockstep, program, stderr, stdout, support, text};

#[test]
fn an_external_engine_is_named_and_can_be_replayed() {
    let (folder, file) = folder("");
    let engine = folder.path().join("my-autoscaler");
    program(&engine, IDLE);
    let options = ["--program", text(&engine), "--time-limit", "1m"];
    let run = kube_lockstep(&["run", text(&file)]).args(options).assert().code(1);
    let shown = stdout(&run);
    for part in [
        "1 scenario on my-autoscaler 1.37\n",
        "model | my-autoscaler\n",
        "1 scenario on my-autoscaler 1.37: 0 conform, 1 diverges",
        &format!(
            "  replay: kube-lockstep run {0} --release 1.37 --program {1} --time-limit 1m\n",
            text(&file),
            text(&engine)
        ),
    ] {
        assert!(shown.contains(part), "{part}\n{shown}");
    }
    assert!(!shown.contains("upstream"), "{shown}");
    let run = kube_lockstep(&["run", "--format", "json", text(&file)]).args(options).assert();
    let lines = json(&run.code(1));
    assert_eq!(lines[0]["engine"], "my-autoscaler");
    assert_eq!(lines[1]["summary"]["engine"], "my-autoscaler");
}

#[test]
fn the_expectations_alone_can_be_checked() {
    let (folder, file) = folder("expect: [{at: 15s, replicas: 17}]\n");
    let engine = folder.path().join("my-autoscaler");
    program(&engine, IDLE);
    let options = ["--program", text(&engine), "--compare", "expectations"];
    let run = kube_lockstep(&["run", text(&file)]).args(options).assert().code(1);
    let shown = stdout(&run);
    for part in [
        "note: nothing is compared with the model (--compare expectations)\n",
        "my-autoscaler does not meet the expectations\n",
        &format!(" --program {} --compare expectations\n", text(&engine)),
        "1 scenario on my-autoscaler 1.37: 0 conform, 0 diverge, 1 with unmet expectations",
    ] {
        assert!(shown.contains(part), "{part}\n{shown}");
    }
    assert!(!shown.contains("kube-lockstep explain"), "{shown}");
    // Without an expectation, there is no verdict.
    let (_folder, file) = self::folder("");
    let run = kube_lockstep(&["run", text(&file)]).args(options).assert().code(4);
    let shown = stdout(&run);
    assert!(shown.contains("it has no expectations, and nothing else is"), "{shown}");
}

#[rstest]
#[case(&["--compare", "expectations"], "requires --program or --controller")]
#[case(&["--compare", "scale", "--program", "x"], "with --program, use `all` or")]
fn what_to_compare_depends_on_the_controller(#[case] options: &[&str], #[case] message: &str) {
    let run = kube_lockstep(&["run", "tolerance"]).args(options).assert().code(2);
    assert!(stderr(&run).contains(message), "{}", stderr(&run));
}

#[test]
fn a_common_failure_is_reported_once() {
    let arguments = ["run", "--program", "no/such/program", "tolerance"];
    let shown = stdout(&kube_lockstep(&arguments).assert().code(3));
    let all = json(&kube_lockstep(&["list", "--format", "json", "tolerance"]).assert()).len();
    assert_eq!(shown.matches("\n  replay: ").count(), 1, "{shown}");
    let more = format!("\ninconclusive  {} more scenarios for the same reason: the ", all - 1);
    assert!(shown.contains(&more), "{more}\n{shown}");
    assert!(shown.contains(&format!(" {all} inconclusive")), "{shown}");
    // With `-v`, each scenario has a line.
    let shown = stdout(&kube_lockstep(&arguments).arg("-v").assert().code(3));
    assert_eq!(shown.matches("\ninconclusive  tolerance/").count(), all, "{shown}");
}

/// A folder with a stand-in for `go`, which runs `failure` for `go list` and builds an engine that
/// exits.
fn fake_go(failure: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let script = format!(
        r#"case $1 in
env) echo go1.26.0; exit 0 ;;
list) {failure} ;;
test) printf '#!/bin/sh\necho the engine from the cache >&2\nexit 7\n' >engine; chmod +x engine ;;
esac"#
    );
    program(&folder.path().join("go"), &script);
    folder
}

fn path_with(folder: &Path) -> String {
    format!("{}:{}", folder.display(), std::env::var("PATH").expect("there is a PATH"))
}

#[test]
fn a_built_engine_requires_no_go() {
    let (cache, empty, go) = (
        tempfile::tempdir().expect("a folder can be made"),
        tempfile::tempdir().expect("a folder can be made"),
        fake_go(""),
    );
    let (_folder, file) = folder("");
    let run = |path: &str| {
        let mut command = kube_lockstep(&["run", text(&file)]);
        command.env("KUBE_LOCKSTEP_CACHE", cache.path()).env("PATH", path);
        command.assert()
    };
    // Without Go and without a built engine, recorded traces are used, with a note.
    let shown = stdout(&run(text(empty.path())).code(3));
    assert!(
        shown.contains("note: using recorded traces, because upstream can't run here: Go is not")
    );
    run(&path_with(go.path())).code(3);
    let shown = stdout(&run(text(empty.path())).code(3));
    assert!(shown.contains("1 scenario on upstream 1.37"), "{shown}");
    assert!(shown.contains("| the engine from the cache"), "{shown}");
    let doctor = kube_lockstep(&["doctor"])
        .env("KUBE_LOCKSTEP_CACHE", cache.path())
        .env("PATH", empty.path())
        .assert()
        .code(0);
    assert!(stdout(&doctor).contains("ok       upstream 1.37     built, "), "{}", stdout(&doctor));
}

#[test]
fn a_first_build_without_network_has_a_hint() {
    let cache = tempfile::tempdir().expect("a folder can be made");
    let go = fake_go(
        "echo 'go: k8s.io/api@v0.37.0: Get \"https://proxy.example/\": dial tcp: no such host' >&2
         exit 1",
    );
    let run = |engine: &[&str]| {
        let mut command = kube_lockstep(&["run", "tolerance"]);
        command.env("KUBE_LOCKSTEP_CACHE", cache.path()).env("PATH", path_with(go.path()));
        command.args(engine).assert()
    };
    let errors = stderr(&run(&["--engine", "upstream"]).code(3));
    assert!(errors.contains("upstream's modules can't be downloaded: go: k8s.io/api@"));
    assert!(errors.contains("hint: the first build requires a Go module proxy"), "{errors}");
    assert!(errors.contains("`--engine recorded`"), "{errors}");
    let shown = stdout(&run(&[]).code(0));
    assert!(
        shown.contains("note: using recorded traces, because upstream can't run here: "),
        "{shown}"
    );
}

#[test]
fn a_read_only_cache_has_a_hint() {
    let (folder, file) = folder("");
    // A file cannot contain a folder, not even for root.
    let cache = file.join("cache");
    let go = fake_go("");
    let command = |arguments: &[&str]| {
        let mut command = kube_lockstep(arguments);
        command.env("KUBE_LOCKSTEP_CACHE", &cache).env("PATH", path_with(go.path()));
        command
    };
    let run = command(&["run", "--engine", "upstream", text(&file)]).assert().code(3);
    let errors = stderr(&run);
    assert!(errors.contains("set KUBE_LOCKSTEP_CACHE to another folder"), "{errors}");
    assert!(errors.contains("`--engine recorded`"), "{errors}");
    let doctor = command(&["doctor"]).assert().code(3);
    let shown = stdout(&doctor).replace(text(folder.path()), "FOLDER");
    assert!(
        shown.contains("missing  cache folder      FOLDER/doubles.yaml/cache is not writable"),
        "{shown}"
    );
    assert!(shown.contains("missing  upstream 1.37     not built yet, and cannot be"), "{shown}");
}

#[test]
fn doctor_reports_unbuilt_engines() {
    let cache = tempfile::tempdir().expect("a folder can be made");
    let go = fake_go("");
    let doctor = kube_lockstep(&["doctor"])
        .env("KUBE_LOCKSTEP_CACHE", cache.path())
        .env("PATH", path_with(go.path()))
        .assert()
        .code(0);
    let shown = stdout(&doctor);
    assert!(shown.contains("unbuilt  upstream 1.37     not built yet\n"), "{shown}");
    let embedded = match cfg!(feature = "clusters") {
        true => "unbuilt  embedded 1.37     not built yet\n",
        false => "missing  embedded          requires a build with `--features clusters`\n",
    };
    assert!(shown.contains(embedded), "{shown}");
    let builds = "build it with `kube-lockstep run --engine upstream --release 1.37`";
    assert!(shown.contains(builds), "{shown}");
}

/// An engine that exits at its first two starts, both for the first scenario. When it is started
/// again, it waits for the end of its input.
#[cfg(unix)]
fn waiting_engine(folder: &Path) -> PathBuf {
    let engine = folder.join("engine");
    let script = format!(
        "echo >> {0}/starts\n[ $(wc -l < {0}/starts) -gt 2 ] || exit 1\n\
         echo $$ > {0}/pid\nmv {0}/pid {0}/begun\nwhile read line; do :; done",
        text(folder)
    );
    program(&engine, &script);
    engine
}

/// The engine exits at the end of its input, unless it is killed before: the interrupted command
/// leaves no process behind.
#[cfg(unix)]
#[rstest]
#[case::interrupt("INT", 2)]
#[case::terminate("TERM", 15)]
fn an_interrupted_run_is_reported_and_stops_its_engine(#[case] name: &str, #[case] number: i32) {
    use std::io::{BufRead, BufReader};
    use std::os::unix::process::ExitStatusExt;
    use std::process::Stdio;
    use std::time::{Duration, Instant};

    let (folder, file) = folder("");
    let second = folder.path().join("second.yaml");
    fs::copy(&file, &second).expect("a file can be copied");
    let engine = waiting_engine(folder.path());
    let wait_until = |what: &str, is_done: &dyn Fn() -> bool| {
        let begin = Instant::now();
        while !is_done() {
            assert!(begin.elapsed() < Duration::from_secs(20), "the engine has not {what}");
            std::thread::sleep(Duration::from_millis(10));
        }
    };
    let page = folder.path().join("report.html");
    let report = format!("html={}", text(&page));
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_kube-lockstep"))
        .args(["run", "--jobs", "1", "--report", &report])
        .args(["--program", text(&engine), text(&file), text(&second)])
        .current_dir(support::repository())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command can be started");
    // The first scenario must be reported, so that it is counted.
    let out = BufReader::new(child.stdout.take().expect("its output is a pipe"));
    let mut lines = out.lines().map_while(Result::ok);
    assert!(lines.any(|line| line.contains("replay: ")), "the first scenario is reported");
    let begun = folder.path().join("begun");
    wait_until("begun", &|| begun.exists());
    let id = fs::read_to_string(&begun).expect("the engine writes its id");
    let kill = std::process::Command::new("kill");
    let kill = { kill }.args([&format!("-{name}"), &child.id().to_string()]).status();
    assert!(kill.expect("kill can be run").success());
    let output = child.wait_with_output().expect("the command ends");
    assert_eq!(output.status.signal(), Some(number), "{}", output.status);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(errors, "interrupted: 1 of 2 scenarios were done\n");
    wait_until("ended", &|| {
        let state =
            std::process::Command::new("ps").args(["-o", "stat=", "-p", id.trim()]).output();
        let state = state.expect("ps can be run").stdout;
        state.is_empty() || state.starts_with(b"Z")
    });
    let page = fs::read_to_string(page).expect("the report is written");
    assert!(page.contains("the run did not finish: interrupted: 1 of 2"), "{page}");
    assert!(page.contains("class=\"badge inconclusive\"") && page.ends_with("</html>"), "{page}");
}

#[test]
fn a_program_with_an_endless_line_is_stopped_with_its_children() {
    let (folder, file) = folder("");
    let (script, child) = (folder.path().join("drips"), folder.path().join("child"));
    let child = text(&child);
    program(
        &script,
        &format!("sleep 300 &\necho $! >'{child}'\nwhile :; do printf x; sleep 0.2; done"),
    );
    let options = ["--program", text(&script), "--time-limit", "2s"];
    let run = kube_lockstep(&["run", text(&file)]).args(options).assert().code(3);
    assert!(stdout(&run).contains("it did not answer within 2 s"), "{}", stdout(&run));
    let id = fs::read_to_string(child).expect("the program has run");
    // On a busy machine, a killed process takes a while to exit, and it is a zombie until its new
    // parent waits for it.
    let is_running = || {
        let state = fs::read_to_string(format!("/proc/{}/stat", id.trim()));
        state.is_ok_and(|text| !text.contains(") Z "))
    };
    let end = std::time::Instant::now() + std::time::Duration::from_secs(10);
    while is_running() && std::time::Instant::now() < end {
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    assert!(!is_running(), "{id} is still running");
}

#[test]
#[cfg_attr(not(feature = "clusters"), ignore = "requires --features clusters")]
fn container_engines_without_docker_have_a_hint() {
    let nowhere = "unix:///nowhere/docker.sock";
    for engine in ["image", "k3s"] {
        let run = kube_lockstep(&["run", "--engine", engine, "tolerance"])
            .env("DOCKER_HOST", nowhere)
            .assert()
            .code(3);
        let errors = stderr(&run);
        assert!(errors.contains("no Docker engine can be reached: "), "{errors}");
        assert!(errors.contains("start Docker") && errors.contains("DOCKER_HOST"), "{errors}");
    }
    let doctor = kube_lockstep(&["doctor"]).env("DOCKER_HOST", nowhere).output().expect("it runs");
    let shown = String::from_utf8_lossy(&doctor.stdout).into_owned();
    assert!(shown.contains("warning  Docker "), "{shown}");
}

#[test]
fn the_image_flag_requires_a_container_engine() {
    let run = kube_lockstep(&["run", "--engine", "embedded", "--image", "none"]).assert().code(2);
    assert!(
        stderr(&run).contains("--image requires an engine that creates clusters in containers"),
        "{}",
        stderr(&run)
    );
}
