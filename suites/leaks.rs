//! A control plane leaves nothing behind, however its owner ends, and a fault in it is inconclusive:
//! `cargo test --features e2e --test leaks`.

mod support;

use std::fs;
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use kube::config::Kubeconfig;
use kube_lockstep::engine::CancellationToken;
use kube_lockstep::engine::embedded::{self, Options, Running};
use kube_lockstep::engine::upstream::build;
use kube_lockstep::model::rules::Release;
use libtest_mimic::Failed;
use support::moments::{self, Moments};
use support::place::{Place, children, signal};
use support::trials::{self, Suite};

/// How often the owner of a control plane is killed while it starts, and while scenarios are
/// played, each time at another moment before the one that is given.
const KILLS: [(u32, Duration); 2] =
    [(30, Duration::from_millis(3500)), (20, Duration::from_secs(12))];

/// How often somebody is ended by a signal in the first third of a second.
const ENDS: (u32, Duration) = (36, Duration::from_millis(330));

/// What somebody is ended by, and the numbers of these signals.
const SIGNALS: [(&str, i32); 3] = [("-INT", 2), ("-TERM", 15), ("-KILL", 9)];

/// When this is set, this program is the one of the test that panics.
const PANICS: &str = "KUBE_LOCKSTEP_E2E_PANICS";

/// Scenarios that are played until something breaks.
const PLAYED: [&str; 4] = ["run", "--engine", "embedded", "average-value"];

fn main() -> ExitCode {
    if std::env::var_os(PANICS).is_some() {
        panic_with_a_control_plane();
    }
    let mut suite = Suite::new("leaks");
    let program = suite.control_plane(Release::NEWEST).map(drop);
    let go = suite.require("Go", || build::find_go().map(drop));
    let disk = suite.require_that("a user namespace, for a disk of its own", || {
        isolated("mount -t tmpfs none /mnt").status().is_ok_and(|it| it.success())
    });
    for (name, needs, test) in TESTS {
        match needs {
            Needs::Nothing => suite.test(name, test),
            Needs::AControlPlane => suite.test_with(&program, name, move |()| test()),
            Needs::ABuild => {
                let both = program.clone().and(go.clone());
                suite.test_with(&both, name, move |_| test());
            }
            Needs::ADisk => {
                let both = program.clone().and(disk.clone());
                suite.test_with(&both, name, move |_| test());
            }
        }
    }
    suite.run()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Needs {
    Nothing,
    AControlPlane,
    /// Go, and all that it needs for one.
    ABuild,
    /// And a small one.
    ADisk,
}

type Test = fn() -> Result<(), Failed>;

const TESTS: [(&str, Needs, Test); 15] = [
    ("two_clusters_run_side_by_side_and_require_authentication", Needs::AControlPlane, private),
    ("a_stopped_cluster_leaves_nothing", Needs::AControlPlane, stopped),
    ("a_cluster_with_a_killed_owner_leaves_nothing", Needs::AControlPlane, killed),
    ("a_cluster_without_its_api_server_exits", Needs::AControlPlane, broken),
    ("a_killed_run_leaves_nothing", Needs::AControlPlane, killed_while_it_plays),
    ("an_interrupted_run_leaves_nothing", Needs::AControlPlane, interrupted),
    ("a_start_that_is_interrupted_early_leaves_nothing", Needs::AControlPlane, ended_at_once),
    ("an_interrupted_build_leaves_nothing", Needs::ABuild, ended_while_it_builds),
    ("a_panic_leaves_nothing", Needs::AControlPlane, panicked),
    ("a_component_that_dies_during_a_run_is_inconclusive", Needs::AControlPlane, dies_under_a_run),
    ("a_slow_api_server_does_not_diverge", Needs::AControlPlane, slow),
    ("an_api_server_that_is_always_slow_is_inconclusive", Needs::AControlPlane, slow_all_along),
    ("a_full_disk_is_reported_and_does_not_diverge", Needs::ADisk, full_disk),
    ("the_start_gives_up_if_other_programs_keep_taking_its_ports", Needs::Nothing, ports_taken),
    ("an_occupied_port_is_reported", Needs::AControlPlane, port_taken),
];

/// The same, so slowly that it is not over before somebody is killed.
fn slowly() -> Vec<&'static str> {
    [&PLAYED[..], &["--speed", "5", "--longest", "10m"]].concat()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&[&*output.stdout, &*output.stderr].concat()).into_owned()
}

fn stopped() -> Result<(), Failed> {
    let place = Place::new()?;
    let run = |args: &[&str]| {
        let output = place.command(args).output()?;
        Ok::<_, Failed>((output.status.code(), said(&output)))
    };
    let named = ["--name", "e2e-stopped"];
    let (code, said) = run(&["cluster", "start", named[0], named[1]])?;
    assert_eq!(code, Some(0), "{said}");
    let (code, config) = run(&["cluster", "kubeconfig", named[0], named[1]])?;
    assert_eq!(code, Some(0), "{config}");
    assert!(fs::read_to_string(config.trim())?.contains("https://127.0.0.1:"));
    let (code, drivers) = run(&["cluster", "kubeconfig", "--driver", named[0], named[1]])?;
    assert_eq!(code, Some(0), "{drivers}");
    let (config, drivers) = (config.trim(), drivers.trim());
    assert!(lists("secrets", config)? && !lists("secrets", drivers)? && lists("pods", drivers)?);
    let (code, said) = run(&["cluster", "start", named[0], named[1]])?;
    assert_eq!(code, Some(2), "it runs already: {said}");
    assert_ne!(place.left(), Vec::<String>::new(), "nothing was started");
    let (code, said) = run(&["cluster", "stop", named[0], named[1]])?;
    assert_eq!(code, Some(0), "{said}");
    let folder = Path::new(config).parent().ok_or("a folder")?;
    has_no_files(folder)?;
    place.is_empty()?;
    let (code, said) = run(&["cluster", "stop", named[0], named[1]])?;
    assert_eq!(code, Some(4), "there is none: {said}");
    let wrong = ["--api-server-arg", "nonsense=1"];
    let (code, said) = run(&["cluster", "start", named[0], named[1], wrong[0], wrong[1]])?;
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("unknown flag: --nonsense"), "it is said why: {said}");
    has_no_files(folder)
}

/// That neither the folder of a cluster is there nor what lies beside it.
fn has_no_files(folder: &Path) -> Result<(), Failed> {
    for extension in ["", "lock", "log"] {
        let path = folder.with_extension(extension);
        assert!(!path.exists(), "{} is left", path.display());
    }
    Ok(())
}

/// Whether the user of a kubeconfig may list all of a kind.
fn lists(kind: &str, kubeconfig: &str) -> Result<bool, Failed> {
    let config = Kubeconfig::read_from(kubeconfig)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let answer = runtime.block_on(async {
        let config = kube::Config::from_custom_kubeconfig(config, &Default::default()).await?;
        let request = axum::http::Request::get(format!("/api/v1/{kind}")).body(Vec::new())?;
        Ok::<_, Failed>(kube::Client::try_from(config)?.request_text(request).await)
    })?;
    match answer {
        Ok(_) => Ok(true),
        Err(kube::Error::Api(status)) if status.code == 403 => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Without a certificate nothing is answered, and from elsewhere nothing can be asked.
fn private() -> Result<(), Failed> {
    let program = embedded::ensure(Release::NEWEST, &CancellationToken::new(), &mut |_, _| {})?;
    let clusters = [
        Running::start(&program, &Options::default())?,
        Running::start(&program, &Options::default())?,
    ];
    for cluster in &clusters {
        trials::say("leaks", &format!("ready after {:.1} s", cluster.started().as_secs_f64()));
    }
    let listening = listening(std::process::id())?;
    assert!(listening.len() >= 4, "an API server and a controller manager each: {listening:?}");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    for (address, port) in listening {
        assert_eq!(address, "0100007F", "port {port}");
        for path in ["/version", "/healthz"] {
            let mut config = kube::Config::new(format!("https://127.0.0.1:{port}").parse()?);
            config.accept_invalid_certs = true;
            let request = axum::http::Request::get(path).body(Vec::new())?;
            let answer = runtime
                .block_on(async { kube::Client::try_from(config)?.request_text(request).await });
            let refused =
                matches!(&answer, Err(kube::Error::Api(it)) if matches!(it.code, 401 | 403));
            assert!(refused, "{path} at port {port}: {answer:?}");
        }
    }
    Ok(())
}

/// The addresses at which a process's children listen for connections, as the kernel writes them,
/// and the ports.
fn listening(pid: u32) -> Result<Vec<(String, u16)>, Failed> {
    let children = children(pid)?;
    let mut sockets = Vec::new();
    for child in children.split_whitespace() {
        for file in fs::read_dir(format!("/proc/{child}/fd"))? {
            // It may be closed meanwhile.
            let Ok(target) = fs::read_link(file?.path()) else { continue };
            sockets.push(target.to_string_lossy().into_owned());
        }
    }
    let mut found = Vec::new();
    for table in ["/proc/net/tcp", "/proc/net/tcp6"] {
        for line in fs::read_to_string(table)?.lines().skip(1) {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let (Some(local), Some(&"0A"), Some(inode)) =
                (fields.get(1), fields.get(3), fields.get(9))
            else {
                continue;
            };
            if sockets.contains(&format!("socket:[{inode}]")) {
                let (address, port) = local.split_once(':').unwrap_or_default();
                found.push((address.to_owned(), u16::from_str_radix(port, 16)?));
            }
        }
    }
    Ok(found)
}

fn start(place: &Place, args: &[&str]) -> Result<Child, Failed> {
    let mut command = place.command(args);
    Ok(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?)
}

/// From before anything is started to when all of it runs.
fn killed() -> Result<(), Failed> {
    let (place, mut moments) = (Place::new()?, Moments::of("killed"));
    let (kills, limit) = KILLS[0];
    for number in 0..kills {
        let name = format!("e2e-killed-{}", number % 2);
        let folder = build::cache_folder()?.join("clusters").join(&name);
        let mut owner = start(&place, &["cluster", "start", "--foreground", "--name", &name])?;
        let moment = moments.early(limit);
        sleep(moment);
        let killed = moments::kill(&mut owner).and_then(|()| place.is_empty());
        killed.map_err(|why| format!("kill {number}, after {moment:?}: {why}"))?;
        assert!(!folder.exists(), "kill {number}: {} is left", folder.display());
    }
    Ok(())
}

fn broken() -> Result<(), Failed> {
    let place = Place::new()?;
    let args = ["cluster", "start", "--foreground", "--name", "e2e-broken"];
    let owner = start(&place, &args)?;
    place.wait_for("kube-controller-manager");
    signal("-9", &place.wait_for("kube-apiserver"));
    let output = owner.wait_with_output()?;
    let said = said(&output);
    assert_eq!(output.status.code(), Some(3), "{said}");
    // A controller manager that was only starting gives up by itself, and may be seen first.
    assert!(said.contains(" has exited ("), "{said}");
    place.is_empty()?;
    Ok(())
}

/// From the start of the control plane to the middle of the scenarios.
fn killed_while_it_plays() -> Result<(), Failed> {
    let (place, mut moments) = (Place::new()?, Moments::of("killed while it plays"));
    let (kills, limit) = KILLS[1];
    for number in 0..kills {
        let mut run = start(&place, &slowly())?;
        place.wait_for("kube-apiserver");
        let moment = moments.before(limit);
        sleep(moment);
        let killed = moments::kill(&mut run).and_then(|()| place.is_empty());
        killed.map_err(|why| format!("kill {number}, after {moment:?}: {why}"))?;
    }
    Ok(())
}

fn interrupted() -> Result<(), Failed> {
    let (place, mut moments) = (Place::new()?, Moments::of("interrupted"));
    for (number, name) in ["-INT", "-TERM", "-INT", "-TERM"].into_iter().enumerate() {
        let run = start(&place, &slowly())?;
        place.wait_for("kube-apiserver");
        sleep(moments.before(KILLS[1].1));
        signal(name, &run.id().to_string());
        let begin = Instant::now();
        let output = run.wait_with_output()?;
        assert!(begin.elapsed() < Duration::from_secs(5), "it ends at once");
        let expected = if name == "-INT" { 2 } else { 15 };
        assert_eq!(output.status.signal(), Some(expected), "{}", said(&output));
        assert!(said(&output).contains("interrupted: "), "{}", said(&output));
        place.is_empty().map_err(|left| format!("{name} {number}: {left}"))?;
    }
    Ok(())
}

/// From before it listens to signals to when etcd has only begun.
fn ended_at_once() -> Result<(), Failed> {
    let (place, mut moments) = (Place::new()?, Moments::of("ended at once"));
    let starts = ["cluster", "start", "--name", "e2e-ended"];
    let stays = [&starts[..], &["--foreground"]].concat();
    let stop = || place.command(&["cluster", "stop", "--name", "e2e-ended"]).output();
    let commands = [&PLAYED[..], &stays, &starts];
    let ways = commands.iter().flat_map(|args| SIGNALS.map(|signal| (*args, signal)));
    for (_, (args, (name, by))) in (0..ENDS.0).zip(ways.cycle()) {
        let moment = moments.before(ENDS.1);
        let what = format!("{} {name} after {moment:?}", args.join(" "));
        let mut owner = start(&place, args)?;
        sleep(moment);
        assert_eq!(owner.try_wait()?, None, "{what}: it had ended before");
        signal(name, &owner.id().to_string());
        let begin = Instant::now();
        let output = owner.wait_with_output()?;
        if args == PLAYED {
            assert!(begin.elapsed() < Duration::from_secs(2), "{what}: it ends at once");
            assert_eq!(output.status.signal(), Some(by), "{what}: {}", said(&output));
        }
        // It was left to another process by then, which only `stop` ends.
        while args == starts && name == "-KILL" && !place.left().is_empty() {
            assert!(begin.elapsed() < Duration::from_secs(30), "{what}: {:#?}", place.left());
            stop()?;
        }
        place.is_empty().map_err(|left| format!("{what}: {left}"))?;
        let stopped = stop()?;
        assert_eq!(stopped.status.code(), Some(4), "{what}: there is none: {}", said(&stopped));
    }
    has_no_files(&build::cache_folder()?.join("clusters/e2e-ended"))
}

/// In a cache of its own, where nothing is built and nothing compiled yet.
fn ended_while_it_builds() -> Result<(), Failed> {
    let (place, cache, compiled) = (Place::new()?, tempfile::tempdir()?, tempfile::tempdir()?);
    let starts = ["cluster", "start", "--name", "e2e-built"];
    // Modules are looked for at first; a compiler runs soon after, and goes on for minutes.
    let moments = [(&PLAYED[..], "guard"), (&PLAYED, "compile"), (&starts, "compile")];
    for (args, program) in moments {
        for (name, by) in SIGNALS {
            let what = format!("{} {name} during {program}", args.join(" "));
            let mut command = place.command(args);
            command.env(build::CACHE_VARIABLE, cache.path()).env("GOCACHE", compiled.path());
            let owner = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
            place.wait_for(program);
            sleep(Duration::from_millis(500));
            signal(name, &owner.id().to_string());
            let begin = Instant::now();
            let output = owner.wait_with_output()?;
            assert!(begin.elapsed() < Duration::from_secs(2), "{what}: it ends at once");
            assert_eq!(output.status.signal(), Some(by), "{what}: {}", said(&output));
            place.is_empty().map_err(|left| format!("{what}: {left}"))?;
            let left = files(cache.path())?;
            let is_lock = |path: &PathBuf| path.to_string_lossy().ends_with(".lock");
            assert!(left.iter().all(is_lock), "{what}: {left:?}");
        }
    }
    Ok(())
}

/// The files below a folder.
fn files(folder: &Path) -> Result<Vec<PathBuf>, Failed> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        match path.is_dir() {
            true => found.extend(files(&path)?),
            false => found.push(path),
        }
    }
    Ok(found)
}

fn panicked() -> Result<(), Failed> {
    let place = Place::new()?;
    let mut this = Command::new(std::env::current_exe()?);
    let output = this.env(PANICS, "1").env("TMPDIR", place.path()).output()?;
    assert!(said(&output).contains("as the test wants it: 3 processes"), "{}", said(&output));
    place.is_empty()?;
    Ok(())
}

fn panic_with_a_control_plane() {
    let built = embedded::ensure(Release::NEWEST, &CancellationToken::new(), &mut |_, _| {});
    let program = built.expect("it was built before");
    let running = Running::start(&program, &Options::default()).expect("it starts");
    let folder = std::env::temp_dir().display().to_string();
    let lines = fs::read_dir("/proc").expect("/proc").flatten();
    let lines = lines.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    let many = lines
        .map(|line| String::from_utf8_lossy(&line).into_owned())
        .filter(|line| line.contains(&folder) && !line.starts_with("sh"))
        .count();
    panic!("as the test wants it: {many} processes of {}", running.server());
}

fn dies_under_a_run() -> Result<(), Failed> {
    let place = Place::new()?;
    for part in ["etcd", "kube-apiserver", "kube-controller-manager"] {
        let run = start(&place, &PLAYED)?;
        place.wait_for("kube-controller-manager");
        // All is ready by then, and scenarios have begun.
        sleep(Duration::from_secs(6));
        signal("-9", &place.wait_for(part));
        let output = run.wait_with_output()?;
        let said = said(&output);
        assert_eq!(output.status.code(), Some(3), "{part}: {said}");
        assert!(said.contains("inconclusive"), "{part}: {said}");
        // Another part may give up before it is seen that this one has.
        assert!(said.contains("has exited ("), "{part}: {said}");
        assert!(!said.contains("\ndiverges "), "{part}: {said}");
        place.is_empty().map_err(|left| format!("{part}: {left}"))?;
    }
    Ok(())
}

/// A machine that was busy elsewhere: the API server, or the controller, stands still for a while.
fn slow() -> Result<(), Failed> {
    let place = Place::new()?;
    for part in ["kube-apiserver", "kube-controller-manager"] {
        let run = start(&place, &PLAYED)?;
        place.wait_for("kube-controller-manager");
        sleep(Duration::from_secs(7));
        let pid = place.wait_for(part);
        signal("-STOP", &pid);
        sleep(Duration::from_secs(6));
        signal("-CONT", &pid);
        let output = run.wait_with_output()?;
        let said = said(&output);
        assert_eq!(output.status.code(), Some(0), "{part}: {said}");
        assert!(said.contains("it was retried once"), "{part}: nobody was held up: {said}");
        place.is_empty().map_err(|left| format!("{part}: {left}"))?;
    }
    Ok(())
}

/// A machine that is too busy for as long as the run takes.
fn slow_all_along() -> Result<(), Failed> {
    let place = Place::new()?;
    let id = "stabilization/downscale-window-holds-the-highest";
    let run = start(&place, &["run", "--engine", "embedded", id])?;
    place.wait_for("kube-controller-manager");
    // All is ready by then, and it has begun.
    sleep(Duration::from_secs(4));
    let pid = place.wait_for("kube-apiserver");
    let (over, slow) = (AtomicBool::new(false), &pid);
    let output = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                // It may have ended by now.
                for (name, millis) in [("-STOP", 5000), ("-CONT", 300)] {
                    drop(Command::new("kill").args([name, slow]).stderr(Stdio::null()).status());
                    sleep(Duration::from_millis(millis));
                }
            }
        });
        let output = run.wait_with_output();
        over.store(true, Ordering::Relaxed);
        output
    })?;
    // Lines are broken anywhere.
    let said = said(&output).split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("it was retried 3 times"), "{said}");
    assert!(said.contains(" 0 diverge"), "{said}");
    assert!(said.contains("kube-controller-manager:"), "the log's last lines: {said}");
    place.is_empty()?;
    Ok(())
}

/// `sh -c script` with mounts of its own.
fn isolated(script: &str) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", "--mount", "sh", "-c", script, "sh"]);
    command
}

/// In a namespace of its own, where the temporary folder is a small disk.
fn full_disk() -> Result<(), Failed> {
    let place = Place::new()?;
    let run = |size: &str, more: &[&str]| {
        let mount =
            format!("mount -t tmpfs -o size={size} none \"$TMPDIR\" || exit 9; exec \"$@\"");
        let mut command = isolated(&mount);
        command.arg(env!("CARGO_BIN_EXE_kube-lockstep")).args(PLAYED).args(more);
        command.env("TMPDIR", place.path()).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()
    };
    // From the start: not even etcd's log has room.
    let output = run("24m", &[])?.wait_with_output()?;
    let text = said(&output);
    assert_eq!(output.status.code(), Some(3), "{text}");
    assert!(text.contains("no space left on device"), "{text}");
    place.is_empty()?;
    // While scenarios are played, none of which ends soon: etcd has all of its log by then, and no
    // room for what is new.
    let run = run("160m", &["--speed", "1", "--longest", "10m"])?;
    let inside = place.wait_for("kube-controller-manager");
    sleep(Duration::from_secs(6));
    let file = format!("/proc/{inside}/root{}/file", place.path().display());
    let (file, ended) = (fs::File::create(file)?, AtomicBool::new(false));
    let output = std::thread::scope(|scope| {
        let full = scope.spawn(|| keep_full(file, &ended));
        let output = run.wait_with_output();
        ended.store(true, Ordering::Relaxed);
        full.join().map_err(|_| "nobody kept it full")??;
        Ok::<_, Failed>(output?)
    })?;
    let text = said(&output);
    assert_eq!(output.status.code(), Some(3), "{text}");
    assert!(!text.contains("\ndiverges "), "{text}");
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("no verdict the embedded engine failed: "), "{text}");
    assert!(text.contains(": no space left on device, which has "), "{text}");
    place.is_empty()?;
    Ok(())
}

/// Takes all the room that there is, also what others give back, until that has ended.
fn keep_full(mut file: fs::File, ended: &AtomicBool) -> std::io::Result<()> {
    // A page at a time: less is not left.
    let page = [0; 4096];
    while !ended.load(Ordering::Relaxed) {
        match file.write(&page) {
            Err(error) if error.kind() == ErrorKind::StorageFull => {
                sleep(Duration::from_millis(5));
            }
            other => drop(other?),
        }
    }
    Ok(())
}

/// A program that finds each of its ports taken, four times in a row.
fn ports_taken() -> Result<(), Failed> {
    let place = Place::new()?;
    let (program, tries) = (place.path().join("program"), place.path().join("tries"));
    let script = format!(
        "#!/bin/sh\n[ \"$1\" = kube-apiserver ] || exec cat\necho try >>{}\n\
         echo 'failed to listen on 127.0.0.1:1: bind: address already in use' >&2\nexit 1\n",
        tries.display()
    );
    fs::write(&program, script)?;
    fs::set_permissions(&program, fs::Permissions::from_mode(0o700))?;
    let error = Running::start(&program, &Options::default()).err().ok_or("it started")?;
    let why = error.to_string();
    assert!(why.contains("every port that was free a moment ago was taken by others"), "{why}");
    assert_eq!(fs::read_to_string(tries)?.lines().count(), 4);
    fs::remove_file(program)?;
    Ok(())
}

/// In upstream's own words, from which it is known.
fn port_taken() -> Result<(), Failed> {
    let taken = std::net::TcpListener::bind(("127.0.0.1", 0))?;
    let port = format!("secure-port={}", taken.local_addr()?.port());
    let place = Place::new()?;
    let start = ["cluster", "start", "--name", "e2e-port", "--api-server-arg", &port];
    let output = place.command(&start).output()?;
    let said = said(&output);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("taken by others"), "{said}");
    place.is_empty()?;
    Ok(())
}
