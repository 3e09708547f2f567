//! Parallel builds of engines, and their cache folder. A stand-in replaces `go`.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use assert_cmd::Command;

use super::{folder, json, kube_lockstep, program, stderr, stdout, support, text};

/// A stand-in for `go`: `go list` runs a script, with the mod file as `$mod` and the folder of `go`
/// as `$here`, and `go test` writes another script as the engine.
struct FakeGo {
    folder: tempfile::TempDir,
    cache: PathBuf,
}

impl FakeGo {
    fn new(list: &str, engine: &str) -> FakeGo {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let script = format!(
            "here={here}\nfor it in \"$@\"; do case $it in -modfile=*) mod=${{it#*=}} ;; esac; done\n\
             case $1 in\nenv) echo go1.26.0 ;;\nlist) {list} ;;\n\
             test) cp $here/engine engine ;;\nesac\n",
            here = text(folder.path())
        );
        program(&folder.path().join("go"), &script);
        program(&folder.path().join("engine"), engine);
        let cache = folder.path().join("cache");
        FakeGo { folder, cache }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = kube_lockstep(arguments);
        command.envs(self.environment());
        command
    }

    fn environment(&self) -> [(&str, String); 2] {
        let path = std::env::var("PATH").expect("there is a PATH");
        let path = format!("{}:{path}", self.folder.path().display());
        [("PATH", path), ("KUBE_LOCKSTEP_CACHE", text(&self.cache).to_owned())]
    }

    fn engines(&self) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.cache.join("engines")) else { return Vec::new() };
        let names = entries.flatten().map(|it| it.file_name().to_string_lossy().into_owned());
        let mut names: Vec<String> = names.filter(|name| !name.starts_with('.')).collect();
        names.sort();
        names
    }

    fn wait_for(&self, name: &str) {
        let begin = std::time::Instant::now();
        while !self.folder.path().join(name).exists() {
            assert!(begin.elapsed().as_secs() < 20, "there is no {name}");
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }
}

const EXIT: &str = "exit 7";

/// Writes the file `met` if two builds run at the same time. A build waits for another one.
const DETECT_PARALLEL_BUILDS: &str = "touch $here/under-way-${mod##*/}
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        set -- $here/under-way-*
        [ $# -gt 1 ] && { touch $here/met; break; }
        sleep 0.1
    done
    sleep 0.2
    rm $here/under-way-${mod##*/}";

#[test]
fn engines_are_built_in_parallel_within_the_limit() {
    let (_folder, file) = folder("");
    for (builds, parallel) in [("2", true), ("1", false)] {
        let go = FakeGo::new(DETECT_PARALLEL_BUILDS, EXIT);
        let run = ["run", "--engine", "upstream", "--release", "1.36,1.37", text(&file)];
        let run = go.command(&run).env("KUBE_LOCKSTEP_BUILDS", builds).assert().code(3);
        assert_eq!(go.folder.path().join("met").exists(), parallel, "{builds}: {}", stderr(&run));
        assert_eq!(go.engines().len(), 2, "{:?}", go.engines());
        for release in ["v1.36", "v1.37"] {
            let note = format!("note: upstream {release}: building it, because it is not in the ");
            assert!(stderr(&run).contains(&note), "{note}\n{}", stderr(&run));
        }
    }
}

/// A scenario of a VPA in the folder of another file, without a recorded trace.
fn vpa_file_next_to(file: &Path) -> PathBuf {
    let fixture = "fixtures/vpa/conditions/no-pods.yaml";
    let copy = file.with_file_name("vpa.yaml");
    fs::copy(support::repository().join(fixture), &copy).expect("a file can be copied");
    copy
}

/// Commands that require an engine for a scenario without a recorded trace, each with the engine.
fn building_commands<'a>(hpa: &'a str, vpa: &'a str) -> Vec<(Vec<&'a str>, &'static str)> {
    vec![
        (vec!["run", "--engine", "upstream", "--release", "1.36", hpa], "upstream v1.36"),
        (vec!["run", "--engine", "upstream", vpa], "recommender v1.8"),
        (vec!["fuzz", "--ticks", "10", "--release", "1.36"], "upstream v1.36"),
        (vec!["fuzz", "--ticks", "10", "--area", "vpa"], "recommender v1.8"),
        (vec!["diff", "--from", "1.36", hpa], "upstream v1.36"),
        (vec!["diff", "--from", "vpa-1.7", vpa], "recommender v1.7"),
        (vec!["bisect", "--from", "1.36", hpa], "upstream v1.36"),
        (vec!["bisect", "--from", "vpa-1.7", vpa], "recommender v1.7"),
    ]
}

/// A build takes minutes: what is built, and for how long, is said before Go is called.
#[test]
fn a_build_is_announced_before_it_begins() {
    let (_folder, hpa) = folder("");
    let vpa = vpa_file_next_to(&hpa);
    let mut commands = building_commands(text(&hpa), text(&vpa));
    // Both controllers are built.
    commands.push((vec!["fuzz", "--ticks", "10", "--area", "hpa-and-vpa"], "recommender v1.8"));
    for (command, engine) in commands {
        let go = FakeGo::new("touch $here/listed; echo 'called Go' >&2; exit 1", EXIT);
        let run = go.command(&command).current_dir(go.folder.path()).assert();
        let shown = stderr(&run);
        let first = shown.lines().find(|line| line.contains(engine)).unwrap_or_default();
        let expected = format!(
            "note: {engine}: building it, because it is not in the cache folder; this takes "
        );
        assert!(first.starts_with(&expected), "{command:?}: {shown}");
        assert!(first.ends_with(" minutes on two cores"), "{command:?}: {shown}");
        assert!(go.folder.path().join("listed").exists(), "{command:?}: {shown}");
    }
}

#[test]
fn no_build_forbids_builds() {
    let (_folder, hpa) = folder("");
    let vpa = vpa_file_next_to(&hpa);
    for (command, engine) in building_commands(text(&hpa), text(&vpa)) {
        let go = FakeGo::new("touch $here/listed", EXIT);
        let run = go.command(&command).arg("--no-build").current_dir(go.folder.path()).assert();
        let run = run.code(3);
        let shown = format!("{}{}", stdout(&run), stderr(&run));
        let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
        let why =
            format!("{engine} is not in the cache folder, and --no-build forbids building it");
        assert!(shown.contains(&why), "{command:?}: {shown}");
        assert!(shown.contains("leave out --no-build"), "{command:?}: {shown}");
        assert!(!go.folder.path().join("listed").exists(), "{command:?}: {shown}");
        assert!(go.engines().is_empty(), "{command:?}: {shown}");
    }
}

/// An engine in the cache is used with `--no-build`, also one that another version of Go built.
#[test]
fn no_build_allows_engines_in_the_cache() {
    let (_folder, file) = folder("");
    let go = FakeGo::new(":", "echo the engine from the cache >&2; exit 7");
    let run = ["run", "--engine", "upstream", text(&file)];
    go.command(&run).assert().code(3);
    let uses_it = || {
        let shown = stdout(&go.command(&run).arg("--no-build").assert().code(3));
        assert!(shown.contains("| the engine from the cache"), "{shown}");
    };
    uses_it();
    let script = go.folder.path().join("go");
    let newer = fs::read_to_string(&script).expect("a script").replace("go1.26.0", "go1.26.1");
    fs::write(&script, newer).expect("a script can be written");
    uses_it();
    assert_eq!(go.engines().len(), 1);
}

/// By default, recorded traces are used if upstream can't run.
#[test]
fn no_build_uses_recorded_traces_by_default() {
    let go = FakeGo::new("touch $here/listed", EXIT);
    let run = go.command(&["run", "--no-build", "tolerance"]).assert().code(0);
    let shown = stdout(&run).split_whitespace().collect::<Vec<_>>().join(" ");
    let expected = "note: using recorded traces, because upstream can't run here: upstream v1.37 \
                    is not in the cache folder, and --no-build forbids building it";
    assert!(shown.contains(expected), "{shown}");
    assert!(!go.folder.path().join("listed").exists(), "{shown}");
}

#[test]
fn a_failed_build_leaves_its_release_without_verdicts() {
    let (_folder, file) = folder("");
    let fails = "case $mod in *v1.36*) echo 'cannot find package' >&2; exit 1 ;; esac";
    let go = FakeGo::new(fails, EXIT);
    let run = ["run", "--engine", "upstream", "--format", "json", text(&file), "--release"];
    let lines = json(&go.command(&run).arg("1.36,1.37").assert().code(3));
    let [first, second, last] = lines.as_slice() else { panic!("{lines:?}") };
    assert_eq!((&first["release"], &first["verdict"]), (&"1.36".into(), &"inconclusive".into()));
    assert_eq!(first["output"], "cannot find package");
    assert_eq!(second["release"], "1.37");
    let why = second["why"].as_str().unwrap_or_default();
    assert!(why.contains("exit status: 7"), "the engine of 1.37 was run: {why}");
    assert_eq!(last["summary"]["inconclusive"], 2);
    // With a single release, the command fails with the error of the build.
    let errors = stderr(&go.command(&run).arg("1.36").assert().code(3));
    assert!(errors.contains("error: the upstream engine failed: `go list -deps` fails"));
    assert!(errors.contains("cannot find package"), "{errors}");
}

#[test]
fn a_shard_builds_only_what_it_runs_on() {
    let (_folder, file) = folder("");
    let go = FakeGo::new(":", EXIT);
    let run = ["run", "--engine", "upstream", "--release", "1.36,1.37", "--shard", "2/2"];
    go.command(&run).arg(&file).assert().code(3);
    let engines = go.engines();
    assert!(engines.len() == 1 && engines[0].starts_with("upstream-v1.37-"), "{engines:?}");
}

/// Writes stale entries into the cache.
fn write_stale_entries(cache: &Path) -> [PathBuf; 5] {
    let paths = [
        "engines/upstream-v1.30-0123456789abcdef-go1.26.0",
        "build-x",
        "checkouts/0",
        "engines/.upstream-v1.31-0123456789abcdef-go1.26.0.lock",
        "staging/v1.9.2",
    ];
    let paths = paths.map(|path| cache.join(path));
    fs::write(&paths[3], "").expect("a file can be written");
    fs::create_dir_all(cache.join("staging")).expect("a folder can be made");
    std::os::unix::fs::symlink("/no/such/module", &paths[4]).expect("a link can be made");
    for folder in [&paths[1], &paths[2]] {
        fs::create_dir_all(folder).expect("a folder can be made");
        fs::write(folder.join("origin"), "/no/such/checkout").expect("a file can be written");
    }
    fs::write(&paths[0], "x".repeat(5000)).expect("a file can be written");
    paths
}

#[test]
fn stale_cache_entries_are_listed_and_can_be_removed() {
    let (_folder, file) = folder("");
    let go = FakeGo::new(":", EXIT);
    go.command(&["run", "--engine", "upstream", text(&file)]).assert().code(3);
    let [mine] = go.engines().try_into().expect("one engine");
    let stale = write_stale_entries(&go.cache);
    let doctor = stdout(&go.command(&["doctor"]).assert().code(0));
    assert!(doctor.contains(", of which 5.0 kB stale\n"), "{doctor}");
    assert!(doctor.contains("`kube-lockstep prune` removes stale files"), "{doctor}");
    let printed = stdout(&go.command(&["prune", "--dry-run"]).assert().code(0));
    for path in &stale {
        assert!(printed.contains(&format!("  {}  ", path.display())), "{printed}");
        assert!(path.exists() || path.is_symlink(), "{printed}");
    }
    assert!(printed.ends_with("would remove 5 items, 5.0 kB\n"), "{printed}");
    let printed = stdout(&go.command(&["prune"]).assert().code(0));
    assert!(printed.ends_with("removed 5 items, 5.0 kB\n"), "{printed}");
    assert!(stale.iter().all(|path| !path.exists() && !path.is_symlink()));
    assert_eq!(go.engines(), std::slice::from_ref(&mine));
    let printed = stdout(&go.command(&["prune"]).assert().code(0));
    assert_eq!(printed, "removed 0 items, 0 B\n");
    assert!(!stdout(&go.command(&["doctor"]).assert().code(0)).contains("stale"));
    // Without Go, the engines of every Go version are kept.
    let empty = tempfile::tempdir().expect("a folder can be made");
    let printed = go.command(&["prune", "--dry-run"]).env("PATH", empty.path()).assert().code(0);
    assert_eq!(stdout(&printed), "would remove 0 items, 0 B\n");
}

#[test]
fn an_engine_that_is_running_is_not_removed() {
    let (_folder, file) = folder("");
    let go = FakeGo::new(":", "echo > $(dirname $0)/../../begun\nwhile read line; do :; done");
    let mut run = std::process::Command::new(env!("CARGO_BIN_EXE_kube-lockstep"))
        .args(["run", "--engine", "upstream", text(&file)])
        .current_dir(support::repository())
        .envs(go.environment())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .expect("the command can be started");
    go.wait_for("begun");
    let printed = stdout(&go.command(&["prune", "--all"]).assert().code(0));
    run.kill().expect("the run can be killed");
    run.wait().expect("the run ends");
    assert!(printed.starts_with("in use  ") && printed.ends_with("; 1 in use kept\n"), "{printed}");
    assert_eq!(go.engines().len(), 1);
    let printed = stdout(&go.command(&["prune", "--all"]).assert().code(0));
    assert!(printed.contains("removed 1 item, "), "{printed}");
    assert!(go.engines().is_empty());
}

/// A damaged engine in the cache is built again, and `doctor` reports it.
#[test]
fn a_damaged_engine_is_built_again() {
    let (_folder, file) = folder("");
    let go = FakeGo::new("true", EXIT);
    let run = ["run", "--engine", "upstream", text(&file)];
    go.command(&run).assert().code(3);
    let [engine] = go.engines().try_into().expect("one engine");
    let engine = go.cache.join("engines").join(engine);
    let built = fs::read(&engine).expect("the engine can be read");
    let doctor = || stdout(&go.command(&["doctor"]).assert());
    let damages: [fn(&Path); 5] = [
        |engine| {
            let readable = fs::Permissions::from_mode(0o644);
            fs::set_permissions(engine, readable).expect("permissions can be set");
        },
        |engine| fs::write(engine, "").expect("a file can be written"),
        |engine| fs::write(engine, "#!/bin/sh\nexit 9\n").expect("a file can be written"),
        |engine| fs::remove_file(engine.with_file_name(checksum(engine))).expect("it is removed"),
        |engine| {
            fs::remove_file(engine).expect("it is removed");
            fs::create_dir(engine).expect("a folder can be made");
        },
    ];
    for damage in damages {
        assert!(!doctor().contains("damaged"), "{}", doctor());
        damage(&engine);
        assert!(doctor().contains("damaged"), "{}", doctor());
        let run = go.command(&run).assert().code(3);
        let shown = stderr(&run);
        assert!(shown.contains("the cached engine is damaged"), "{}{shown}", stdout(&run));
        assert_eq!(fs::read(&engine).expect("the engine can be read"), built);
        let again = go.command(&["run", "--engine", "upstream", text(&file)]).assert().code(3);
        assert!(!stderr(&again).contains("damaged"), "{}", stderr(&again));
    }
}

fn checksum(engine: &Path) -> String {
    let name = engine.file_name().expect("a name").to_string_lossy();
    format!(".{name}.checksum")
}

/// Other builds of the user may be for other machines.
#[test]
fn engines_are_built_for_this_machine() {
    let (_folder, file) = folder("");
    let go = FakeGo::new("echo $GOOS $GOARCH > $here/target", EXIT);
    let run = ["run", "--engine", "upstream", text(&file)];
    go.command(&run).env("GOOS", "plan9").env("GOARCH", "mips").assert().code(3);
    let target = fs::read_to_string(go.folder.path().join("target")).expect("Go was called");
    assert!(!target.contains("plan9") && !target.contains("mips"), "{target}");
}
