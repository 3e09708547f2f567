//! A control plane leaves nothing behind, however its owner ends, and a fault in it is
//! inconclusive.

use std::fs;
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::support::moments::{self, KillTimes};
use crate::support::place::{Workspace, children, signal};
use crate::support::trials::{self, Suite};
use kube::config::Kubeconfig;
use kube_autoscaler_models::rules::Release;
use kube_lockstep_clusters::embedded;
use kube_lockstep_clusters::embedded::{Options, Running};
use kube_lockstep_engines::upstream::build;
use libtest_mimic::Failed;
use tokio_util::sync::CancellationToken;

/// The numbers of kills while a control plane starts and while scenarios run, each with the latest
/// time of a kill.
const KILLS: [(u32, Duration); 2] =
    [(30, Duration::from_millis(3500)), (20, Duration::from_secs(12))];

/// The number of commands that a signal ends early, and the latest time of the signal.
const INTERRUPTIONS: (u32, Duration) = (36, Duration::from_millis(330));

/// The signals that end a command, with their numbers.
const SIGNALS: [(&str, i32); 3] = [("-INT", 2), ("-TERM", 15), ("-KILL", 9)];

/// If this environment variable is set, this program starts a control plane and panics.
const PANICS: &str = "KUBE_LOCKSTEP_E2E_PANICS";

/// A run that the tests disturb.
const RUN: [&str; 4] = ["run", "--engine", "embedded", "average-value"];

/// Adds the tests of this suite.
pub(crate) fn add_tests(suite: &mut Suite) {
    let program = suite.control_plane(Release::NEWEST).map(drop);
    let go = suite.require(|| build::find_go(&mut |_| {}).map(drop));
    let disk = suite.require_that("a user namespace, for a separate disk", || {
        isolated("mount -t tmpfs none /mnt").status().is_ok_and(|it| it.success())
    });
    for (name, needs, test) in TESTS {
        match needs {
            Needs::Nothing => suite.test(name, test),
            Needs::AControlPlane => suite.test_with(&program, name, move |()| test()),
            Needs::ABuild => {
                let both = program.and(&go);
                suite.test_with(&both, name, move |_| test());
            }
            Needs::ADisk => {
                let both = program.and(&disk);
                suite.test_with(&both, name, move |_| test());
            }
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Needs {
    Nothing,
    AControlPlane,
    /// A control plane, and Go to build another one.
    ABuild,
    /// A control plane, and a small disk.
    ADisk,
}

type Test = fn() -> Result<(), Failed>;

const TESTS: [(&str, Needs, Test); 15] = [
    ("two_clusters_run_side_by_side_and_require_authentication", Needs::AControlPlane, private),
    ("a_stopped_cluster_leaves_nothing", Needs::AControlPlane, stopped),
    ("a_cluster_with_a_killed_owner_leaves_nothing", Needs::AControlPlane, killed),
    ("a_cluster_without_its_api_server_exits", Needs::AControlPlane, broken),
    ("a_killed_run_leaves_nothing", Needs::AControlPlane, killed_during_a_run),
    ("an_interrupted_run_leaves_nothing", Needs::AControlPlane, interrupted),
    ("a_start_that_is_interrupted_early_leaves_nothing", Needs::AControlPlane, interrupted_early),
    ("an_interrupted_build_leaves_nothing", Needs::ABuild, interrupted_build),
    ("a_panic_leaves_nothing", Needs::AControlPlane, panicked),
    ("a_component_that_dies_during_a_run_is_inconclusive", Needs::AControlPlane, dies_during_a_run),
    ("a_slow_api_server_does_not_diverge", Needs::AControlPlane, slow),
    ("an_api_server_that_is_always_slow_is_inconclusive", Needs::AControlPlane, always_slow),
    ("a_full_disk_is_reported_and_does_not_diverge", Needs::ADisk, full_disk),
    ("the_start_gives_up_if_other_programs_keep_taking_its_ports", Needs::Nothing, ports_taken),
    ("an_occupied_port_is_reported", Needs::AControlPlane, port_taken),
];

/// [`RUN`], slow enough to be killed before it ends.
fn slow_run() -> Vec<&'static str> {
    [&RUN[..], &["--speed", "5", "--longest", "10m"]].concat()
}

fn text_of(output: &Output) -> String {
    String::from_utf8_lossy(&[&*output.stdout, &*output.stderr].concat()).into_owned()
}

fn stopped() -> Result<(), Failed> {
    let workspace = Workspace::new()?;
    let run = |args: &[&str]| {
        let output = workspace.command(args).output()?;
        Ok::<_, Failed>((output.status.code(), text_of(&output)))
    };
    let named = ["--name", "e2e-stopped"];
    let (code, text) = run(&["cluster", "start", named[0], named[1]])?;
    assert_eq!(code, Some(0), "{text}");
    let (code, config) = run(&["cluster", "kubeconfig", named[0], named[1]])?;
    assert_eq!(code, Some(0), "{config}");
    assert!(fs::read_to_string(config.trim())?.contains("https://127.0.0.1:"));
    let (code, drivers) = run(&["cluster", "kubeconfig", "--driver", named[0], named[1]])?;
    assert_eq!(code, Some(0), "{drivers}");
    let (config, drivers) = (config.trim(), drivers.trim());
    assert!(lists("secrets", config)? && !lists("secrets", drivers)? && lists("pods", drivers)?);
    let (code, text) = run(&["cluster", "start", named[0], named[1]])?;
    assert_eq!(code, Some(2), "the cluster is running already: {text}");
    assert_ne!(workspace.left(), Vec::<String>::new(), "nothing was started");
    let (code, text) = run(&["cluster", "stop", named[0], named[1]])?;
    assert_eq!(code, Some(0), "{text}");
    let folder = Path::new(config).parent().ok_or("a folder")?;
    check_no_files(folder)?;
    workspace.wait_until_empty()?;
    let (code, text) = run(&["cluster", "stop", named[0], named[1]])?;
    assert_eq!(code, Some(4), "the cluster does not exist: {text}");
    let wrong = ["--api-server-arg", "nonsense=1"];
    let (code, text) = run(&["cluster", "start", named[0], named[1], wrong[0], wrong[1]])?;
    assert_eq!(code, Some(3), "{text}");
    assert!(text.contains("unknown flag: --nonsense"), "the reason is reported: {text}");
    check_no_files(folder)
}

/// Checks that the folder of a cluster and the files beside it do not exist.
fn check_no_files(folder: &Path) -> Result<(), Failed> {
    for extension in ["", "lock", "log"] {
        let path = folder.with_extension(extension);
        assert!(!path.exists(), "{} is left", path.display());
    }
    Ok(())
}

/// Returns true if the user of a kubeconfig may list all objects of a resource.
fn lists(resource: &str, kubeconfig: &str) -> Result<bool, Failed> {
    let config = Kubeconfig::read_from(kubeconfig)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let answer = runtime.block_on(async {
        let config = kube::Config::from_custom_kubeconfig(config, &Default::default()).await?;
        let request = axum::http::Request::get(format!("/api/v1/{resource}")).body(Vec::new())?;
        Ok::<_, Failed>(kube::Client::try_from(config)?.request_text(request).await)
    })?;
    match answer {
        Ok(_) => Ok(true),
        Err(kube::Error::Api(status)) if status.code == 403 => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// The components refuse requests without a certificate, and listen only on loopback.
fn private() -> Result<(), Failed> {
    let program = embedded::ensure(Release::NEWEST, &CancellationToken::new(), &mut |_| {})?;
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

/// The addresses and ports on which a process's children listen for connections. The addresses are
/// in the kernel's notation.
fn listening(pid: u32) -> Result<Vec<(String, u16)>, Failed> {
    let children = children(pid)?;
    let mut sockets = Vec::new();
    for child in children.split_whitespace() {
        for file in fs::read_dir(format!("/proc/{child}/fd"))? {
            // The file may have been closed.
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

fn start(workspace: &Workspace, args: &[&str]) -> Result<Child, Failed> {
    let mut command = workspace.command(args);
    Ok(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?)
}

/// The kills range from before the first component starts to when all components run.
fn killed() -> Result<(), Failed> {
    let (workspace, mut times) = (Workspace::new()?, KillTimes::new("killed"));
    let (kills, limit) = KILLS[0];
    for number in 0..kills {
        let name = format!("e2e-killed-{}", number % 2);
        let folder = build::cache_folder()?.join("clusters").join(&name);
        let mut owner = start(&workspace, &["cluster", "start", "--foreground", "--name", &name])?;
        let time = times.early(limit);
        sleep(time);
        let killed = moments::kill(&mut owner).and_then(|()| workspace.wait_until_empty());
        killed.map_err(|why| format!("kill {number}, after {time:?}: {why}"))?;
        assert!(!folder.exists(), "kill {number}: {} is left", folder.display());
    }
    Ok(())
}

fn broken() -> Result<(), Failed> {
    let workspace = Workspace::new()?;
    let args = ["cluster", "start", "--foreground", "--name", "e2e-broken"];
    let owner = start(&workspace, &args)?;
    workspace.wait_for("kube-controller-manager");
    signal("-9", &workspace.wait_for("kube-apiserver"));
    let output = owner.wait_with_output()?;
    let text = text_of(&output);
    assert_eq!(output.status.code(), Some(3), "{text}");
    // A controller manager that is still starting exits too, and may be reported first.
    assert!(text.contains(" has exited ("), "{text}");
    workspace.wait_until_empty()?;
    Ok(())
}

/// The kills range from the start of the control plane to the middle of the scenarios.
fn killed_during_a_run() -> Result<(), Failed> {
    let (workspace, mut times) = (Workspace::new()?, KillTimes::new("killed during a run"));
    let (kills, limit) = KILLS[1];
    for number in 0..kills {
        let mut run = start(&workspace, &slow_run())?;
        workspace.wait_for("kube-apiserver");
        let time = times.before(limit);
        sleep(time);
        let killed = moments::kill(&mut run).and_then(|()| workspace.wait_until_empty());
        killed.map_err(|why| format!("kill {number}, after {time:?}: {why}"))?;
    }
    Ok(())
}

fn interrupted() -> Result<(), Failed> {
    let (workspace, mut times) = (Workspace::new()?, KillTimes::new("interrupted"));
    for (number, name) in ["-INT", "-TERM", "-INT", "-TERM"].into_iter().enumerate() {
        let run = start(&workspace, &slow_run())?;
        workspace.wait_for("kube-apiserver");
        sleep(times.before(KILLS[1].1));
        signal(name, &run.id().to_string());
        let begin = Instant::now();
        let output = run.wait_with_output()?;
        assert!(begin.elapsed() < Duration::from_secs(5), "the run ends immediately");
        let expected = if name == "-INT" { 2 } else { 15 };
        assert_eq!(output.status.signal(), Some(expected), "{}", text_of(&output));
        assert!(text_of(&output).contains("interrupted: "), "{}", text_of(&output));
        workspace.wait_until_empty().map_err(|left| format!("{name} {number}: {left}"))?;
    }
    Ok(())
}

/// The signals arrive between the start of the command and the start of etcd.
fn interrupted_early() -> Result<(), Failed> {
    let (workspace, mut times) = (Workspace::new()?, KillTimes::new("interrupted early"));
    let starts = ["cluster", "start", "--name", "e2e-ended"];
    let stays = [&starts[..], &["--foreground"]].concat();
    let stop = || workspace.command(&["cluster", "stop", "--name", "e2e-ended"]).output();
    let commands = [&RUN[..], &stays, &starts];
    let cases = commands.iter().flat_map(|args| SIGNALS.map(|signal| (*args, signal)));
    for (_, (args, (name, number))) in (0..INTERRUPTIONS.0).zip(cases.cycle()) {
        let time = times.before(INTERRUPTIONS.1);
        let what = format!("{} {name} after {time:?}", args.join(" "));
        let mut owner = start(&workspace, args)?;
        sleep(time);
        assert_eq!(owner.try_wait()?, None, "{what}: the command ended before the signal");
        signal(name, &owner.id().to_string());
        let begin = Instant::now();
        let output = owner.wait_with_output()?;
        if args == RUN {
            assert!(
                begin.elapsed() < Duration::from_secs(2),
                "{what}: the command ends immediately"
            );
            assert_eq!(output.status.signal(), Some(number), "{what}: {}", text_of(&output));
        }
        // Another process may already own the cluster; only `stop` ends that one.
        while args == starts && name == "-KILL" && !workspace.left().is_empty() {
            assert!(begin.elapsed() < Duration::from_secs(30), "{what}: {:#?}", workspace.left());
            stop()?;
        }
        workspace.wait_until_empty().map_err(|left| format!("{what}: {left}"))?;
        let stopped = stop()?;
        assert_eq!(
            stopped.status.code(),
            Some(4),
            "{what}: the cluster does not exist: {}",
            text_of(&stopped)
        );
    }
    check_no_files(&build::cache_folder()?.join("clusters/e2e-ended"))
}

/// Uses an empty cache, in which nothing is built or compiled yet.
fn interrupted_build() -> Result<(), Failed> {
    let (workspace, cache, compiled) =
        (Workspace::new()?, tempfile::tempdir()?, tempfile::tempdir()?);
    let starts = ["cluster", "start", "--name", "e2e-built"];
    // A build resolves modules first; soon after, the compiler starts and runs for minutes.
    let phases = [(&RUN[..], "guard"), (&RUN, "compile"), (&starts, "compile")];
    for (args, program) in phases {
        for (name, number) in SIGNALS {
            let what = format!("{} {name} during {program}", args.join(" "));
            let mut command = workspace.command(args);
            command.env(build::CACHE_VARIABLE, cache.path()).env("GOCACHE", compiled.path());
            let owner = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
            workspace.wait_for(program);
            sleep(Duration::from_millis(500));
            signal(name, &owner.id().to_string());
            let begin = Instant::now();
            let output = owner.wait_with_output()?;
            assert!(
                begin.elapsed() < Duration::from_secs(2),
                "{what}: the command ends immediately"
            );
            assert_eq!(output.status.signal(), Some(number), "{what}: {}", text_of(&output));
            workspace.wait_until_empty().map_err(|left| format!("{what}: {left}"))?;
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
    let workspace = Workspace::new()?;
    let mut this = Command::new(std::env::current_exe()?);
    let output = this.env(PANICS, "1").env("TMPDIR", workspace.path()).output()?;
    assert!(text_of(&output).contains("planned panic: 3 processes"), "{}", text_of(&output));
    workspace.wait_until_empty()?;
    Ok(())
}

/// Starts a control plane and panics, if a test has started this program for this purpose.
pub(crate) fn panic_if_asked() {
    if std::env::var_os(PANICS).is_some() {
        panic_with_a_control_plane();
    }
}

fn panic_with_a_control_plane() {
    let built = embedded::ensure(Release::NEWEST, &CancellationToken::new(), &mut |_| {});
    let program = built.expect("it was built before");
    let running = Running::start(&program, &Options::default()).expect("it starts");
    let folder = std::env::temp_dir().display().to_string();
    let lines = fs::read_dir("/proc").expect("/proc").flatten();
    let lines = lines.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    let count = lines
        .map(|line| String::from_utf8_lossy(&line).into_owned())
        .filter(|line| line.contains(&folder) && !line.starts_with("sh"))
        .count();
    panic!("planned panic: {count} processes of {}", running.server());
}

fn dies_during_a_run() -> Result<(), Failed> {
    let workspace = Workspace::new()?;
    for component in ["etcd", "kube-apiserver", "kube-controller-manager"] {
        let run = start(&workspace, &RUN)?;
        workspace.wait_for("kube-controller-manager");
        // By then, the control plane is ready and scenarios run.
        sleep(Duration::from_secs(6));
        signal("-9", &workspace.wait_for(component));
        let output = run.wait_with_output()?;
        let text = text_of(&output);
        assert_eq!(output.status.code(), Some(3), "{component}: {text}");
        assert!(text.contains("inconclusive"), "{component}: {text}");
        // The exit of another component may be reported first.
        assert!(text.contains("has exited ("), "{component}: {text}");
        assert!(!text.contains("\ndiverges "), "{component}: {text}");
        workspace.wait_until_empty().map_err(|left| format!("{component}: {left}"))?;
    }
    Ok(())
}

/// Like a busy machine: the API server or the controller manager is suspended for a while.
fn slow() -> Result<(), Failed> {
    let workspace = Workspace::new()?;
    for component in ["kube-apiserver", "kube-controller-manager"] {
        let run = start(&workspace, &RUN)?;
        workspace.wait_for("kube-controller-manager");
        sleep(Duration::from_secs(7));
        let pid = workspace.wait_for(component);
        signal("-STOP", &pid);
        sleep(Duration::from_secs(6));
        signal("-CONT", &pid);
        let output = run.wait_with_output()?;
        let text = text_of(&output);
        assert_eq!(output.status.code(), Some(0), "{component}: {text}");
        assert!(
            text.contains("it was retried once"),
            "{component}: no scenario was affected: {text}"
        );
        workspace.wait_until_empty().map_err(|left| format!("{component}: {left}"))?;
    }
    Ok(())
}

/// Like a machine that is too busy during the whole run.
fn always_slow() -> Result<(), Failed> {
    let workspace = Workspace::new()?;
    let id = "stabilization/downscale-window-holds-the-highest";
    let run = start(&workspace, &["run", "--engine", "embedded", id])?;
    workspace.wait_for("kube-controller-manager");
    // By then, the control plane is ready and the scenario runs.
    sleep(Duration::from_secs(4));
    let pid = workspace.wait_for("kube-apiserver");
    let (over, slow) = (AtomicBool::new(false), &pid);
    let output = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                // The process may have ended.
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
    // Lines can be wrapped anywhere.
    let text = text_of(&output).split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(output.status.code(), Some(3), "{text}");
    assert!(text.contains("it was retried 3 times"), "{text}");
    assert!(text.contains(" 0 diverge"), "{text}");
    assert!(text.contains("kube-controller-manager:"), "the log's last lines: {text}");
    workspace.wait_until_empty()?;
    Ok(())
}

/// `sh -c script` in a separate mount namespace.
fn isolated(script: &str) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", "--mount", "sh", "-c", script, "sh"]);
    command
}

/// In a separate mount namespace, the temporary folder is a small disk.
fn full_disk() -> Result<(), Failed> {
    let workspace = Workspace::new()?;
    let run = |size: &str, more: &[&str]| {
        let mount =
            format!("mount -t tmpfs -o size={size} none \"$TMPDIR\" || exit 9; exec \"$@\"");
        let mut command = isolated(&mount);
        command.arg(env!("CARGO_BIN_EXE_kube-lockstep")).args(RUN).args(more);
        command.env("TMPDIR", workspace.path()).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()
    };
    // The disk is too small even for etcd's log.
    let output = run("24m", &[])?.wait_with_output()?;
    let text = text_of(&output);
    assert_eq!(output.status.code(), Some(3), "{text}");
    assert!(text.contains("no space left on device"), "{text}");
    workspace.wait_until_empty()?;
    // The disk becomes full while long scenarios run: etcd has allocated its log by then, but there
    // is no space for new data.
    let run = run("160m", &["--speed", "1", "--longest", "10m"])?;
    let inside = workspace.wait_for("kube-controller-manager");
    sleep(Duration::from_secs(6));
    let file = format!("/proc/{inside}/root{}/file", workspace.path().display());
    let (file, ended) = (fs::File::create(file)?, AtomicBool::new(false));
    let output = std::thread::scope(|scope| {
        let full = scope.spawn(|| keep_full(file, &ended));
        let output = run.wait_with_output();
        ended.store(true, Ordering::Relaxed);
        full.join().map_err(|_| "the thread that fills the disk panicked")??;
        Ok::<_, Failed>(output?)
    })?;
    let text = text_of(&output);
    assert_eq!(output.status.code(), Some(3), "{text}");
    assert!(!text.contains("\ndiverges "), "{text}");
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("no verdict the embedded engine failed: "), "{text}");
    assert!(text.contains(": no space left on device, which has "), "{text}");
    workspace.wait_until_empty()?;
    Ok(())
}

/// Keeps the disk full until `ended` is set, even if other programs free space.
fn keep_full(mut file: fs::File, ended: &AtomicBool) -> std::io::Result<()> {
    // The file system allocates whole pages.
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

/// The program finds its port occupied four times in a row.
fn ports_taken() -> Result<(), Failed> {
    let workspace = Workspace::new()?;
    let (program, tries) = (workspace.path().join("program"), workspace.path().join("tries"));
    let script = format!(
        "#!/bin/sh\n[ \"$1\" = kube-apiserver ] || exec cat\necho try >>{}\n\
         echo 'failed to listen on 127.0.0.1:1: bind: address already in use' >&2\nexit 1\n",
        tries.display()
    );
    fs::write(&program, script)?;
    fs::set_permissions(&program, fs::Permissions::from_mode(0o700))?;
    let error = Running::start(&program, &Options::default()).err().ok_or("it started")?;
    let why = error.to_string();
    assert!(why.contains("other programs took each free port before it could be used"), "{why}");
    assert_eq!(fs::read_to_string(tries)?.lines().count(), 4);
    fs::remove_file(program)?;
    Ok(())
}

/// The occupied port is recognized by upstream's message.
fn port_taken() -> Result<(), Failed> {
    let taken = std::net::TcpListener::bind(("127.0.0.1", 0))?;
    let port = format!("secure-port={}", taken.local_addr()?.port());
    let workspace = Workspace::new()?;
    let start = ["cluster", "start", "--name", "e2e-port", "--api-server-arg", &port];
    let output = workspace.command(&start).output()?;
    let text = text_of(&output);
    assert_eq!(output.status.code(), Some(3), "{text}");
    assert!(text.contains("took each free port"), "{text}");
    workspace.wait_until_empty()?;
    Ok(())
}
