//! Files that no one writes on purpose: huge, binary, endless. Each gives an error with a position,
//! in bounded memory and time.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command as Process, Stdio};
use std::time::{Duration, Instant};

use assert_cmd::Command;
use assert_cmd::assert::Assert;
use rstest::rstest;

use super::{SCENARIO, kube_lockstep, program, stderr, stdout, support, text};

/// The address space of the command, in KiB.
const MEMORY: usize = 1 << 20;

/// The processor time of the command, in seconds. It depends less on other processes than
/// wall-clock time. The slowest command takes 3 s on an idle machine; in quadratic time, it would
/// take minutes.
const PROCESSOR_TIME: usize = 30;

/// Far more than any of these commands takes, even on a busy machine.
const TIME_LIMIT: Duration = Duration::from_secs(180);

/// Runs a file on the model, with limited memory and time.
fn run(file: &Path) -> Assert {
    limited(&["run", "--engine", "model", text(file)])
}

/// Merges a file of results, with limited memory and time.
fn merge(file: &str) -> Assert {
    limited(&["report", "merge", file])
}

/// Runs a command with limited memory, processor time and wall-clock time.
fn limited(arguments: &[&str]) -> Assert {
    let script = format!("ulimit -v {MEMORY}; ulimit -t {PROCESSOR_TIME}; exec \"$@\"");
    let mut command = Command::new("sh");
    command
        .args(["-c", &script, "sh", env!("CARGO_BIN_EXE_kube-lockstep")])
        .args(arguments)
        .timeout(TIME_LIMIT);
    command.assert()
}

/// The error of a file with this content.
fn error_of(content: impl AsRef<[u8]>) -> String {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let file = folder.path().join("hard.yaml");
    fs::write(&file, content).expect("a file can be written");
    let error = stderr(&run(&file).code(2));
    error.replace(text(&file), "hard.yaml")
}

#[test]
fn an_alias_bomb_is_refused_at_the_alias() {
    let mut nested = format!("a: &a \"{}\"\n", "x".repeat(10_000));
    for (this, last) in [('b', 'a'), ('c', 'b'), ('d', 'c'), ('e', 'd')] {
        let aliases = vec![format!("*{last}"); 10].join(", ");
        nested += &format!("{this}: &{this} [{aliases}]\n");
    }
    let flat = format!("a: &a \"{}\"\nb: [{}]\n", "x".repeat(10_000), "*a,".repeat(8_000));
    for (bomb, line) in [(nested, 5), (flat, 2)] {
        let error = error_of(&bomb);
        assert!(error.contains(&format!("hard.yaml:{line}:")), "{error}");
        assert!(error.contains("the document is too large"), "{error}");
    }
}

#[test]
fn many_unknown_fields_are_reported_in_linear_time() {
    let fields: String = (0..40_000).map(|number| format!("field{number}: 1\n")).collect();
    let error = error_of(format!("{SCENARIO}{fields}"));
    assert!(error.contains("unknown field `field0`"), "{}", &error[..error.len().min(2000)]);
    let indented = fields.replace("field", "    field");
    for (place, with_fields) in [
        ("  spec:\n", format!("  spec:\n{indented}")),
        ("  metadata: {name: web}\n", format!("  metadata:\n    name: web\n{indented}")),
    ] {
        let error = error_of(SCENARIO.replacen(place, &with_fields, 1));
        assert!(error.contains("field0"), "{}", &error[..error.len().min(2000)]);
        assert!(error.ends_with("… and 39,900 more problems\n"), "{}", error.len());
    }
}

#[test]
fn many_unknown_fields_of_a_manifest_are_reported_in_linear_time() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let file = folder.path().join("objects.yaml");
    let fields: String = (0..40_000).map(|number| format!("  field{number}: 1\n")).collect();
    let deployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n";
    let hpa = "---\napiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\n\
               metadata: {name: web}\nspec:\n  maxReplicas: 5\n  scaleTargetRef: \
               {apiVersion: apps/v1, kind: Deployment, name: web}\n";
    fs::write(&file, format!("{deployment}{fields}{hpa}")).expect("a file can be written");
    let error = stderr(&limited(&["predict", "-f", text(&file)]).code(2));
    assert!(error.contains("field0"), "{}", &error[..error.len().min(2000)]);
    assert!(error.contains("more problems"), "{}", &error[..error.len().min(2000)]);
}

#[test]
fn many_equal_problems_are_reported_in_linear_time() {
    let events = "  - {at: 1s, scale: -7}\n".repeat(100_000);
    let error = error_of(format!("{SCENARIO}timeline:\n{events}"));
    assert!(error.contains("and 99,996 more places"), "{}", &error[..error.len().min(2000)]);
}

#[test]
fn a_number_of_megabytes_is_refused_in_linear_time() {
    let digits = "9".repeat(3_000_000);
    for quantity in ["perPod: \"1\"", "cpu: \"1\""] {
        let (name, _) = quantity.split_once(' ').expect("a name and a value");
        let error = error_of(SCENARIO.replacen(quantity, &format!("{name} \"{digits}\""), 1));
        assert!(error.contains("a quantity of more than 4000 digits"), "{}", error.len());
        assert!(error.len() < 2000, "the value is cut: {}", error.len());
    }
}

#[test]
fn a_duration_that_is_too_long_has_no_hint() {
    for until in ["100000000h", "100000000000d"] {
        let error = error_of(SCENARIO.replacen("until: 30s", &format!("until: {until}"), 1));
        assert!(error.contains(until) && !error.contains("did you mean"), "{error}");
    }
}

#[test]
fn a_word_of_megabytes_is_read_in_linear_time() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let file = folder.path().join("long.yaml");
    let long = "x".repeat(4 << 20);
    fs::write(&file, SCENARIO.replace("Twice", &long)).expect("a file can be written");
    run(&file).code(0);
    let error = error_of(SCENARIO.replace("Deployment", &long));
    assert!(error.contains("hard.yaml:"), "{}", &error[..error.len().min(2000)]);
}

#[test]
fn a_word_of_megabytes_is_wrapped_in_linear_time() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let file = folder.path().join("long.yaml");
    // In quadratic time, the shortest of these words takes more than 40 s.
    for mebibytes in [4, 8, 15] {
        let long = "x".repeat(mebibytes << 20);
        let scenario = SCENARIO.replace("Twice", &long) + "expect: [{tick: 1, replicas: 9}]\n";
        fs::write(&file, scenario).expect("a file can be written");
        let report = stdout(&run(&file).code(1));
        let shown = report.bytes().filter(|byte| *byte == b'x').count();
        assert!(shown >= long.len(), "{shown} of {} characters", long.len());
    }
}

#[test]
fn results_with_a_line_that_is_too_long_are_refused() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let file = folder.path().join("results.json");
    let line = vec![b'x'; (64 << 20) + 1];
    fs::write(&file, [&b"{}\n"[..], &line].concat()).expect("a file can be written");
    let error = stderr(&merge(text(&file)).code(2));
    assert!(error.contains("results.json:2: the line is longer than 64 MiB"), "{error}");
}

/// A named pipe.
fn pipe(folder: &Path, name: &str) -> PathBuf {
    let pipe = folder.join(name);
    let made = Process::new("mkfifo").arg(&pipe).status().expect("mkfifo can be run");
    assert!(made.success());
    pipe
}

/// No command waits for the writer of a named pipe, or reads a device.
#[test]
fn inputs_without_an_end_are_refused() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let pipe = pipe(folder.path(), "pipe.yaml");
    let manifest = support::repository().join("examples/php-apache/hpa.yaml");
    let load = "cpu=total:csv(FILE)";
    let commands: &[&[&str]] = &[
        &["run", "--engine", "model", "FILE"],
        &["list", "FILE"],
        &["predict", "FILE"],
        &["compare", "FILE", "--set", "fast:spec.maxReplicas=5"],
        &["explain", "FILE", "--tick", "1"],
        &["predict", "-f", "FILE"],
        &["compare", "-f", "FILE", "--set", "fast:spec.maxReplicas=5"],
        &["explain", "-f", "FILE", "--tick", "1"],
        &["init", "-f", "FILE"],
        &["predict", "-f", text(&manifest), "--load", load],
        &["report", "merge", "FILE"],
        &["run", "--engine", "embedded", "--controller", "sh", "--controller-role", "FILE"],
    ];
    for command in commands {
        for file in ["/dev/zero", text(&pipe)] {
            let arguments: Vec<String> =
                command.iter().map(|it| it.replace("FILE", file)).collect();
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            let run = limited(&arguments);
            let error = stderr(&run);
            assert!(!run.get_output().status.success(), "{arguments:?}: {error}");
            // Names of scenarios may also be ids.
            let is_refused =
                ["is not a regular file", "nor a file"].iter().any(|it| error.contains(it));
            assert!(is_refused, "{arguments:?}: {error}");
        }
    }
}

/// The hint on a recording that is not text is about its content: its path was right.
#[test]
fn a_recording_that_is_not_text_has_a_hint_on_its_content() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let manifest = support::repository().join("examples/php-apache");
    for (bytes, expected) in [
        (&b"\x1f\x8b\x08\0"[..], "hint: the file is compressed with gzip: unpack it first"),
        (b"PAR1\x15\0\xff", "hint: the file has the format Parquet: convert it to CSV"),
    ] {
        let path = folder.path().join("load.csv");
        fs::write(&path, bytes).expect("a file can be written");
        let load = format!("cpu=total:csv({})", text(&path));
        let error = stderr(&limited(&["predict", "-f", text(&manifest), "--load", &load]).code(2));
        assert!(error.contains(expected), "{error}");
    }
}

/// Unlike a named pipe, a pipe that the command inherits has a writer. Its size is limited as well.
#[test]
fn inherited_pipes_are_read_up_to_a_limit() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let results = folder.path().join("results.json");
    let run = kube_lockstep(&["run", "limits", "--engine", "recorded", "--format", "json"]);
    fs::write(&results, stdout(&{ run }.assert())).expect("a file can be written");
    let piped = |input: &str, arguments: &[&str]| {
        let script = format!("ulimit -v {MEMORY}; {input} | \"$@\"");
        let mut command = Command::new("sh");
        command
            .args(["-c", &script, "sh", env!("CARGO_BIN_EXE_kube-lockstep")])
            .args(arguments)
            .timeout(TIME_LIMIT);
        command.assert()
    };
    let from_file = stdout(&merge(text(&results)).code(0));
    let input = format!("cat '{}'", text(&results));
    for path in ["/dev/stdin", "/dev/fd/0"] {
        assert_eq!(stdout(&piped(&input, &["report", "merge", path]).code(0)), from_file);
        let error = stderr(&piped("cat /dev/zero", &["predict", "-f", path]).code(2));
        assert!(error.contains(&format!("{path}: it is larger than 16 MiB")), "{error}");
    }
    let error = stderr(&piped("cat /dev/zero", &["predict", "-f", "-"]).code(2));
    assert!(error.contains("<stdin>: it is larger than 16 MiB"), "{error}");
    let error = stderr(&piped("printf 'a: \\377'", &["predict", "-f", "-"]).code(2));
    assert!(error.contains("<stdin>:1:4: not UTF-8 text: the byte 0xff"), "{error}");
}

#[test]
fn files_that_are_too_large_are_refused() {
    let error = error_of(vec![b'#'; 17 << 20]);
    assert!(error.contains("hard.yaml: it is larger than 16 MiB"), "{error}");
}

#[test]
fn a_file_that_is_not_text_has_a_position() {
    let error = error_of(b"apiVersion: kube-lockstep.dev/v1alpha1\nkind: \xff\n");
    assert!(error.contains("hard.yaml:2:7: not UTF-8 text: the byte 0xff"), "{error}");
}

#[test]
fn a_manifest_without_an_end_is_refused() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    pipe(folder.path(), "pipe.yaml");
    let (before, rest) = SCENARIO.split_once("hpa:\n").expect("it has an HPA");
    let (_, after) = rest.split_once("workload:").expect("it has a workload");
    for manifest in ["/dev/zero", "pipe.yaml"] {
        let file = folder.path().join("scenario.yaml");
        let scenario = format!("{before}hpa: {{file: {manifest}}}\nworkload:{after}");
        fs::write(&file, scenario).expect("a file can be written");
        let error = stderr(&run(&file).code(2));
        assert!(error.contains("it is not a regular file"), "{error}");
        assert!(error.contains("scenario.yaml:5:"), "{error}");
    }
    // A folder of fixtures may contain anything.
    let list = ["list", "--fixtures", text(folder.path())];
    let list = kube_lockstep(&list).timeout(TIME_LIMIT).assert().code(2);
    assert!(stderr(&list).contains("pipe.yaml: it is not a regular file"), "{}", stderr(&list));
}

#[test]
fn a_folder_for_findings_that_is_not_writable_is_an_error_at_the_start() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let file = folder.path().join("file");
    fs::write(&file, "").expect("a file can be written");
    let fuzz = ["fuzz", "--engine", "model", "--ticks", "1000", "--save"];
    let fuzz = kube_lockstep(&fuzz).arg(file.join("below")).assert().code(3);
    assert!(stderr(&fuzz).contains("findings can't be saved in"), "{}", stderr(&fuzz));
    assert!(stderr(&fuzz).contains("--save"), "{}", stderr(&fuzz));
}

#[test]
fn a_go_that_hangs_is_given_up() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    program(&folder.path().join("go"), "sleep 1000\n");
    let file = folder.path().join("doubles.yaml");
    fs::write(&file, SCENARIO).expect("a file can be written");
    let path = std::env::var("PATH").expect("there is a PATH");
    let mut run = kube_lockstep(&["run", "--engine", "upstream", text(&file)]);
    let run = run
        .env("PATH", format!("{}:{path}", folder.path().display()))
        .env("KUBE_LOCKSTEP_CACHE", folder.path().join("cache"))
        .timeout(TIME_LIMIT)
        .assert()
        .code(3);
    assert!(stderr(&run).contains("`go env` did not end within 20 s"), "{}", stderr(&run));
    assert!(stderr(&run).contains("note: waiting for `go env`"), "{}", stderr(&run));
}

/// A program that hangs, or leaves a process behind that holds its output open, does not block
/// `doctor`.
#[rstest]
#[case("sleep 1000", "sleep 1000 & echo kind v1", "missing Go `go env` did not end within 20 s")]
#[case("sleep 1000 & echo go1.26.0", "yes kind", "ok Go go1.26.0 (1.26 or newer is required)")]
fn doctor_gives_up_programs_that_hang(#[case] go: &str, #[case] kind: &str, #[case] state: &str) {
    let folder = tempfile::tempdir().expect("a folder can be made");
    program(&folder.path().join("go"), &format!("{go}\n"));
    program(&folder.path().join("kind"), &format!("{kind}\n"));
    let path = std::env::var("PATH").expect("there is a PATH");
    let doctor = kube_lockstep(&["doctor"])
        .env("PATH", format!("{}:{path}", folder.path().display()))
        .env("KUBE_LOCKSTEP_CACHE", folder.path().join("cache"))
        .timeout(TIME_LIMIT)
        .assert();
    let shown = stdout(&doctor).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(shown.contains(state), "{}", stdout(&doctor));
    let code = doctor.get_output().status.code();
    assert!(matches!(code, Some(0 | 3)), "{code:?}: {}", stderr(&doctor));
    if shown.contains(" kind 1.37") && kind.starts_with("yes") {
        assert!(shown.contains("a working `kind`"), "{}", stdout(&doctor));
    }
}

/// `doctor` needs the version of Go for several checks. It asks once.
#[test]
fn doctor_asks_go_once() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let asked = folder.path().join("asked");
    program(&folder.path().join("go"), &format!("echo >> {}; exit 1\n", text(&asked)));
    let path = std::env::var("PATH").expect("there is a PATH");
    let mut doctor = kube_lockstep(&["doctor"]);
    doctor
        .env("PATH", format!("{}:{path}", folder.path().display()))
        .env("KUBE_LOCKSTEP_CACHE", folder.path().join("cache"))
        .assert()
        .code(3);
    let asked = fs::read_to_string(asked).expect("go was asked");
    assert_eq!(asked.lines().count(), 1);
}

/// `go env` ends with the command, even if it hangs.
#[test]
fn a_go_that_hangs_ends_with_the_command() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let (pid, file) = (folder.path().join("pid"), folder.path().join("doubles.yaml"));
    let script =
        format!("echo $$ > {pid}.new; mv {pid}.new {pid}; exec sleep 1000\n", pid = text(&pid));
    program(&folder.path().join("go"), &script);
    fs::write(&file, SCENARIO).expect("a file can be written");
    let path = std::env::var("PATH").expect("there is a PATH");
    let mut run = Process::new(env!("CARGO_BIN_EXE_kube-lockstep"))
        .args(["run", "--engine", "upstream", text(&file)])
        .env("PATH", format!("{}:{path}", folder.path().display()))
        .env("KUBE_LOCKSTEP_CACHE", folder.path().join("cache"))
        .spawn()
        .expect("the command can be started");
    wait_until("go is asked", || pid.exists());
    let ended = Process::new("kill").arg(run.id().to_string()).status().expect("kill can be run");
    assert!(ended.success());
    run.wait().expect("the run ends");
    let pid = fs::read_to_string(pid).expect("the id of go");
    let is_gone = || {
        let status = Process::new("kill").args(["-0", pid.trim()]).stderr(Stdio::null()).status();
        !status.expect("kill can be run").success()
    };
    wait_until("go has ended", is_gone);
}

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < Duration::from_secs(15), "not in time: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
