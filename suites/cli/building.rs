//! Engines that are built side by side, and their cache folder: a stand-in for `go` takes no time.

use std::fs;
use std::path::{Path, PathBuf};

use assert_cmd::Command;

use super::{folder, json, kube_lockstep, program, stderr, stdout, support, text};

/// A `go` that runs a script for its command `list`, with the mod file as `$mod` and itself in
/// `$here`, and builds an engine of another one.
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
        command.envs(self.surroundings());
        command
    }

    fn surroundings(&self) -> [(&str, String); 2] {
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

const DIES: &str = "exit 7";

/// Tells, of each build, whether another one was under way. One that is alone waits a moment.
const MEETS: &str = "touch $here/under-way-${mod##*/}
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
    for (builds, together) in [("2", true), ("1", false)] {
        let go = FakeGo::new(MEETS, DIES);
        let run = ["run", "--engine", "upstream", "--release", "1.36,1.37", text(&file)];
        let run = go.command(&run).env("KUBE_LOCKSTEP_BUILDS", builds).assert().code(3);
        assert_eq!(go.folder.path().join("met").exists(), together, "{builds}: {}", stderr(&run));
        assert_eq!(go.engines().len(), 2, "{:?}", go.engines());
        for release in ["v1.36", "v1.37"] {
            let note = format!("note: upstream {release}: resolving modules (");
            assert!(stderr(&run).contains(&note), "{note}\n{}", stderr(&run));
        }
    }
}

#[test]
fn a_failed_build_leaves_its_release_without_verdicts() {
    let (_folder, file) = folder("");
    let fails = "case $mod in *v1.36*) echo 'cannot find package' >&2; exit 1 ;; esac";
    let go = FakeGo::new(fails, DIES);
    let run = ["run", "--engine", "upstream", "--format", "json", text(&file), "--release"];
    let lines = json(&go.command(&run).arg("1.36,1.37").assert().code(3));
    let [first, second, last] = lines.as_slice() else { panic!("{lines:?}") };
    assert_eq!((&first["release"], &first["verdict"]), (&"1.36".into(), &"inconclusive".into()));
    assert_eq!(first["output"], "cannot find package");
    assert_eq!(second["release"], "1.37");
    let why = second["why"].as_str().unwrap_or_default();
    assert!(why.contains("exit status: 7"), "that of 1.37 was run: {why}");
    assert_eq!(last["summary"]["inconclusive"], 2);
    // Of one release alone there is nothing else to be told.
    let complaint = stderr(&go.command(&run).arg("1.36").assert().code(3));
    assert!(complaint.contains("error: the upstream engine failed: `go list -deps` fails"));
    assert!(complaint.contains("cannot find package"), "{complaint}");
}

#[test]
fn a_shard_builds_only_what_it_runs_on() {
    let (_folder, file) = folder("");
    let go = FakeGo::new(":", DIES);
    let run = ["run", "--engine", "upstream", "--release", "1.36,1.37", "--shard", "2/2"];
    go.command(&run).arg(&file).assert().code(3);
    let engines = go.engines();
    assert!(engines.len() == 1 && engines[0].starts_with("upstream-v1.37-"), "{engines:?}");
}

/// What was left there by something else.
fn stale(cache: &Path) -> [PathBuf; 5] {
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
    let go = FakeGo::new(":", DIES);
    go.command(&["run", "--engine", "upstream", text(&file)]).assert().code(3);
    let [mine] = go.engines().try_into().expect("one engine");
    let stale = stale(&go.cache);
    let doctor = stdout(&go.command(&["doctor"]).assert().code(0));
    assert!(doctor.contains(", of which 5.0 kB stale\n"), "{doctor}");
    assert!(doctor.contains("`kube-lockstep prune` removes stale files"), "{doctor}");
    let told = stdout(&go.command(&["prune", "--dry-run"]).assert().code(0));
    for path in &stale {
        assert!(told.contains(&format!("  {}  ", path.display())), "{told}");
        assert!(path.exists() || path.is_symlink(), "{told}");
    }
    assert!(told.ends_with("would remove 5 items, 5.0 kB\n"), "{told}");
    let told = stdout(&go.command(&["prune"]).assert().code(0));
    assert!(told.ends_with("removed 5 items, 5.0 kB\n"), "{told}");
    assert!(stale.iter().all(|path| !path.exists() && !path.is_symlink()));
    assert_eq!(go.engines(), std::slice::from_ref(&mine));
    let told = stdout(&go.command(&["prune"]).assert().code(0));
    assert_eq!(told, "removed 0 items, 0 B\n");
    assert!(!stdout(&go.command(&["doctor"]).assert().code(0)).contains("stale"));
    // Without Go, what any Go has built is of use.
    let empty = tempfile::tempdir().expect("a folder can be made");
    let told = go.command(&["prune", "--dry-run"]).env("PATH", empty.path()).assert().code(0);
    assert_eq!(stdout(&told), "would remove 0 items, 0 B\n");
}

#[test]
fn an_engine_that_is_running_is_not_removed() {
    let (_folder, file) = folder("");
    let go = FakeGo::new(":", "echo > $(dirname $0)/../../begun\nwhile read line; do :; done");
    let mut run = std::process::Command::new(env!("CARGO_BIN_EXE_kube-lockstep"))
        .args(["run", "--engine", "upstream", text(&file)])
        .current_dir(support::repository())
        .envs(go.surroundings())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .expect("the command can be started");
    go.wait_for("begun");
    let told = stdout(&go.command(&["prune", "--all"]).assert().code(0));
    run.kill().expect("it can be ended");
    run.wait().expect("it ends");
    assert!(told.starts_with("in use  ") && told.ends_with("; 1 in use kept\n"), "{told}");
    assert_eq!(go.engines().len(), 1);
    let told = stdout(&go.command(&["prune", "--all"]).assert().code(0));
    assert!(told.contains("removed 1 item, "), "{told}");
    assert!(go.engines().is_empty());
}
