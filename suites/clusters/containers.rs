//! Clusters in containers.
//!
//! Some fixtures run on the control plane in its own image. However a run ends, it leaves nothing
//! behind. k3s and kind cannot be downloaded everywhere: stand-in programs check their arguments.
//! Without Docker, the tests that require it are reported as ignored, with the reason.

mod engine;

use crate::support;
use std::ffi::OsStr;
use std::fs;
use std::io::{Read, Write as _};
use std::net::Shutdown;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{sleep, spawn};
use std::time::{Duration, Instant};

use crate::support::moments::{self, KillTimes};
use crate::support::trials::{self, Suite};
use kube_autoscaler_models::rules::Release;
use kube_lockstep_clusters::containers;
use libtest_mimic::Failed;

/// The number of kills, and the latest time of a kill after the start of the run.
const KILLS: (u32, Duration) = (12, Duration::from_secs(8));

/// The timeout for the removal of all containers.
const CLEANUP_TIMEOUT: Duration = Duration::from_secs(20);

/// The timeout for a start.
const START_TIMEOUT: Duration = Duration::from_secs(90);

/// Fixtures of a few seconds each.
const FIXTURES: [&str; 2] = ["tolerance", "average-value"];

/// A run of some minutes.
const LONG: [&str; 8] =
    ["run", "--engine", "image", "--speed", "1", "--longest", "10m", "tolerance"];

/// The image that stands in for k3s.
const STAND_IN: &str = "kube-lockstep/stand-in-for-k3s:test";

/// Adds the tests of this suite.
pub(crate) fn add_tests(suite: &mut Suite) {
    let program = suite.control_plane(Release::NEWEST);
    let docker = suite.require_if_available(containers::docker_version);
    let separate_engine =
        suite.require_that("a separate Docker engine", || match engine::missing() {
            None => true,
            Some(why) => {
                trials::say("containers", &format!("no separate Docker engine: {why}"));
                false
            }
        });
    let on_docker = docker.and(&program).map(|(_, program)| program);
    let on_separate_engine = separate_engine.and(&program).map(|((), program)| program);
    let tests = [
        (&on_docker, TESTS.as_slice()),
        (&program, &WITHOUT_DOCKER),
        (&on_separate_engine, &ON_A_SEPARATE_ENGINE),
    ];
    for (required, tests) in tests {
        for &(name, test) in tests {
            suite.test_with(required, name, move |program| test(&program));
        }
    }
}

type Test = fn(&Path) -> Result<(), Failed>;

const TESTS: [(&str, Test); 7] = [
    ("fixtures_conform_on_the_image", fixtures),
    ("a_killed_owner_leaves_nothing", killed),
    ("a_terminated_owner_leaves_nothing", terminated),
    ("a_killed_container_is_inconclusive", container_killed),
    ("a_lost_docker_engine_is_inconclusive", docker_lost),
    ("a_missing_image_is_inconclusive", missing_image),
    ("k3s_gets_the_arguments_that_it_documents", k3s),
];

/// Tests that require a control plane, but not Docker.
const WITHOUT_DOCKER: [(&str, Test); 2] = [
    ("kind_gets_the_arguments_that_it_documents", kind),
    ("a_failure_of_kind_is_reported", kind_fails),
];

/// Tests that start a separate Docker engine.
const ON_A_SEPARATE_ENGINE: [(&str, Test); 1] =
    [("a_docker_engine_killed_with_its_containers_is_inconclusive", engine::killed)];

fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kube-lockstep"));
    command.args(args).stdin(Stdio::null());
    command
}

fn text_of(output: &Output) -> String {
    let both = [&*output.stdout, &*output.stderr].concat();
    String::from_utf8_lossy(&both).into_owned()
}

fn docker<S: AsRef<OsStr>>(args: &[S]) -> Result<String, Failed> {
    let output = Command::new("docker").args(args).stdin(Stdio::null()).output()?;
    match output.status.success() {
        true => Ok(text_of(&output).trim().to_owned()),
        false => Err(text_of(&output).into()),
    }
}

/// The containers of a process, including stopped ones.
fn containers_of(owner: u32) -> Result<Vec<String>, Failed> {
    let filter = format!("label=dev.kube-lockstep={owner}");
    let found = docker(&["ps", "-a", "-q", "--no-trunc", "--filter", &filter])?;
    Ok(found.lines().map(str::to_owned).collect())
}

fn wait_until_none(owner: u32) -> Result<(), Failed> {
    let begin = Instant::now();
    loop {
        let left = containers_of(owner)?;
        if left.is_empty() {
            return Ok(());
        }
        if begin.elapsed() > CLEANUP_TIMEOUT {
            return Err(format!("left: {left:?}").into());
        }
        sleep(Duration::from_millis(50));
    }
}

fn fixtures(_: &Path) -> Result<(), Failed> {
    let args = ["run", "--engine", "image", "--verbose"];
    let owner = command(&[&args[..], &FIXTURES].concat()).stdout(Stdio::piped()).spawn()?;
    let pid = owner.id();
    let output = owner.wait_with_output()?;
    let text = text_of(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.contains(" conform") && text.matches("conforms").count() > 5, "{text}");
    assert_eq!(containers_of(pid)?, Vec::<String>::new(), "containers are left");
    Ok(())
}

/// Starts a run of some minutes.
fn long(host: Option<&Path>) -> std::io::Result<Owner> {
    let mut run = command(&LONG);
    if let Some(host) = host {
        run.env("DOCKER_HOST", format!("unix://{}", host.display()));
    }
    let run = run.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    Ok(Owner { id: run.id(), run: Some(run) })
}

/// A run that is killed when this is dropped.
struct Owner {
    id: u32,
    run: Option<Child>,
}

impl Owner {
    fn run(&mut self) -> Result<&mut Child, Failed> {
        Ok(self.run.as_mut().ok_or("the run has ended")?)
    }

    fn output(mut self) -> Result<Output, Failed> {
        Ok(self.run.take().ok_or("the run has ended")?.wait_with_output()?)
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        if let Some(run) = &mut self.run {
            let _ = run.kill();
            let _ = run.wait();
        }
    }
}

/// Waits until scenarios run, and returns the container.
fn wait_until_scenarios_run(owner: &Owner) -> Result<String, Failed> {
    let begin = Instant::now();
    while begin.elapsed() < START_TIMEOUT {
        // A container that is not running yet has no processes.
        if let [container] = &*containers_of(owner.id)?
            && docker(&["top", container]).is_ok_and(|it| it.contains("kube-controller-manager"))
        {
            // The cluster is warmed up before the first scenario.
            sleep(Duration::from_secs(10));
            return Ok(container.clone());
        }
        sleep(Duration::from_millis(100));
    }
    Err("the scenarios do not start".into())
}

/// The kills range from before the creation of the container to the run of the scenarios.
fn killed(_: &Path) -> Result<(), Failed> {
    let mut times = KillTimes::new("containers");
    for number in 0..KILLS.0 {
        let mut owner = long(None)?;
        let time = times.early(KILLS.1);
        sleep(time);
        let kill = format!("kill {number}, after {time:?}");
        moments::kill(owner.run()?).map_err(|why| format!("{kill}: {why}"))?;
        wait_until_none(owner.id).map_err(|left| format!("{kill}: {left:?}"))?;
    }
    Ok(())
}

fn terminated(_: &Path) -> Result<(), Failed> {
    for signal in ["-INT", "-TERM"] {
        let mut owner = long(None)?;
        wait_until_scenarios_run(&owner)?;
        assert!(Command::new("kill").args([signal, &owner.id.to_string()]).status()?.success());
        assert_eq!(owner.run()?.wait()?.code(), None, "the signal ends the run");
        wait_until_none(owner.id)?;
    }
    Ok(())
}

fn container_killed(_: &Path) -> Result<(), Failed> {
    let owner = long(None)?;
    let pid = owner.id;
    let container = wait_until_scenarios_run(&owner)?;
    docker(&["kill", &container])?;
    let output = owner.output()?;
    let text = text_of(&output);
    assert_eq!(output.status.code(), Some(3), "{text}");
    assert!(text.contains("the container has exited (exit code 137)"), "{text}");
    assert!(!text.contains("diverges  "), "{text}");
    wait_until_none(pid)
}

/// A proxy of Docker's socket that can be shut down.
struct SocketProxy {
    path: PathBuf,
    streams: Arc<Mutex<Vec<UnixStream>>>,
}

impl SocketProxy {
    fn new(folder: &Path) -> Result<SocketProxy, Failed> {
        let socket = std::env::var("DOCKER_HOST").unwrap_or("unix:///var/run/docker.sock".into());
        let socket = socket.strip_prefix("unix://").ok_or("Docker is not at a socket")?.to_owned();
        let path = folder.join("docker.sock");
        let listener = UnixListener::bind(&path)?;
        let streams = Arc::new(Mutex::new(Vec::new()));
        let all = streams.clone();
        spawn(move || {
            for client in listener.incoming().flatten() {
                let Ok(server) = UnixStream::connect(&socket) else { return };
                let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
                for (from, to) in [(&client, &server), (&server, &client)] {
                    let (Ok(from), Ok(to)) = (from.try_clone(), to.try_clone()) else { return };
                    all.extend(from.try_clone());
                    spawn(move || pass(from, to));
                }
            }
        });
        Ok(SocketProxy { path, streams })
    }

    /// Shuts the proxy down: Docker can no longer be reached.
    fn shut_down(&self) -> Result<(), Failed> {
        fs::remove_file(&self.path)?;
        let streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        streams.iter().for_each(|stream| drop(stream.shutdown(Shutdown::Both)));
        Ok(())
    }
}

fn pass(mut from: UnixStream, mut to: UnixStream) {
    let mut bytes = [0; 16 << 10];
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        if to.write_all(&bytes[..count]).is_err() {
            break;
        }
    }
    // The other direction stays open: it may still carry data.
    let _ = to.shutdown(Shutdown::Write);
}

fn docker_lost(_: &Path) -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let proxy = SocketProxy::new(folder.path())?;
    let owner = long(Some(&proxy.path))?;
    let pid = owner.id;
    wait_until_scenarios_run(&owner)?;
    proxy.shut_down()?;
    // The container exits when its connection closes, although Docker keeps running.
    wait_until_none(pid)?;
    let output = owner.output()?;
    let text = text_of(&output);
    assert_eq!(output.status.code(), Some(3), "{text}");
    assert!(text.contains("Docker can no longer be reached"), "{text}");
    assert!(!text.contains("diverges  "), "{text}");
    Ok(())
}

fn missing_image(_: &Path) -> Result<(), Failed> {
    // No registry listens on this port.
    let image = "localhost:9/kube-lockstep/none:v1";
    let output = command(&["run", "--engine", "k3s", "--image", image, "tolerance"]).output()?;
    let text = text_of(&output);
    assert_eq!(output.status.code(), Some(3), "{text}");
    assert!(text.contains(&format!("the image {image} can't be pulled: ")), "{text}");
    assert!(text.contains("hint: "), "{text}");
    Ok(())
}

fn k3s(program: &Path) -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    stand_in(folder.path(), program)?;
    let args = ["run", "--engine", "k3s", "--image", STAND_IN, "--verbose"];
    let run = command(&[&args[..], &FIXTURES].concat()).output();
    docker(&["rmi", STAND_IN])?;
    let (output, text) = run.map(|output| (output.status.code(), text_of(&output)))?;
    assert_eq!(output, Some(0), "{text}");
    assert!(text.matches("conforms").count() > 5, "{text}");
    Ok(())
}

/// Builds the image that stands in for k3s: this machine's shell, the program of a control plane,
/// and the certificates of an embedded control plane.
fn stand_in(folder: &Path, program: &Path) -> Result<(), Failed> {
    let root = folder.join("root");
    for below in ["k3s", "bin", "tmp"] {
        fs::create_dir_all(root.join(below))?;
    }
    certificates(folder, &root.join("k3s"))?;
    fs::copy(program, root.join("controlplane"))?;
    let script = support::repository().join("suites/clusters/containers/k3s");
    fs::copy(script, root.join("bin/k3s"))?;
    for name in ["sh", "cat", "mkdir", "sleep"] {
        let found = Command::new("sh").args(["-c", &format!("command -v {name}")]).output()?;
        let path = PathBuf::from(String::from_utf8_lossy(&found.stdout).trim());
        fs::copy(&path, root.join("bin").join(name))?;
        // The libraries that the program is linked with, at the same paths.
        let linked = Command::new("ldd").arg(&path).output()?;
        let linked = String::from_utf8_lossy(&linked.stdout).into_owned();
        for library in linked.split_whitespace().filter(|word| word.starts_with('/')) {
            let to = root.join(library.trim_start_matches('/'));
            fs::create_dir_all(to.parent().ok_or("no folder")?)?;
            fs::copy(library, to)?;
        }
    }
    fs::write(folder.join("Dockerfile"), "FROM scratch\nENV PATH=/bin\nCOPY root /\n")?;
    docker(&["build".as_ref(), "-q".as_ref(), "-t".as_ref(), STAND_IN.as_ref(), folder.as_os_str()])
        .map(drop)
}

/// Starts an embedded control plane, and copies its certificates.
fn certificates(folder: &Path, to: &Path) -> Result<(), Failed> {
    let temporary = folder.join("place");
    fs::create_dir_all(&temporary)?;
    let run = |args: &[&str]| {
        let output = command(args).env("TMPDIR", &temporary).output()?;
        match output.status.success() {
            true => Ok(text_of(&output).trim().to_owned()),
            false => Err(Failed::from(text_of(&output))),
        }
    };
    let name = format!("containers-{}", std::process::id());
    run(&["cluster", "start", "--name", &name])?;
    let copied =
        copy_certificates(&temporary, &run(&["cluster", "kubeconfig", "--name", &name])?, to);
    run(&["cluster", "stop", "--name", &name])?;
    copied
}

fn copy_certificates(temporary: &Path, admin: &str, to: &Path) -> Result<(), Failed> {
    let mut folders = fs::read_dir(temporary)?.flatten().map(|entry| entry.path());
    let from = folders.find(|path| path.join("ca.crt").exists()).ok_or("no certificates")?;
    for name in ["ca.crt", "server.crt", "server.key", "proxy.crt", "proxy.key"] {
        fs::copy(from.join(name), to.join(name))?;
    }
    for name in ["accounts.key", "accounts.pub"] {
        fs::copy(from.join(name), to.join(name))?;
    }
    let config = |path: &Path, name: &str| {
        let text = fs::read_to_string(path)?;
        let mut config: serde_json::Value = serde_json::from_str(&text)?;
        config["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:6443".into();
        fs::write(to.join(name), config.to_string())?;
        Ok::<_, Failed>(())
    };
    config(&from.join("controller-manager.kubeconfig"), "manager.kubeconfig")?;
    config(Path::new(admin), "admin.kubeconfig")
}

/// A folder with a stand-in for `kind`, which records its arguments there.
fn kind_stand_in(script: &str) -> Result<tempfile::TempDir, Failed> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("kind");
    fs::write(&path, script)?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
    Ok(folder)
}

fn run_on_kind(folder: &Path, args: &[&str]) -> Result<Output, Failed> {
    let usual = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{usual}", folder.display());
    let mut run = command(&["run", "--engine", "kind", "--verbose"]);
    run.args(args).env("PATH", path).env("KIND_KEEPS", folder);
    Ok(run.env("KUBE_LOCKSTEP", env!("CARGO_BIN_EXE_kube-lockstep")).output()?)
}

fn kind(_: &Path) -> Result<(), Failed> {
    let script = support::repository().join("suites/clusters/containers/kind");
    let folder = kind_stand_in(&fs::read_to_string(script)?)?;
    // The control plane of the stand-in has the default flags, hence speed 1.
    let output = run_on_kind(folder.path(), &["--speed", "1", "average-value"])?;
    let text = text_of(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.contains(" conform"), "{text}");
    let done = fs::read_to_string(folder.path().join("done"))?;
    let (created, deleted) = done.trim().split_once('\n').ok_or("fewer than two commands")?;
    let name = created.strip_prefix("create cluster ").ok_or("no cluster was created")?;
    assert_eq!(deleted, format!("delete cluster {name}"), "{done}");
    let config: serde_json::Value =
        serde_yaml::from_str(&fs::read_to_string(folder.path().join("config"))?)?;
    assert!(config["nodes"][0]["image"].as_str().is_some_and(|it| it.starts_with("kindest/node:")));
    Ok(())
}

fn kind_fails(_: &Path) -> Result<(), Failed> {
    let folder = kind_stand_in("#!/bin/sh\necho 'ERROR: no node image' >&2\nexit 1\n")?;
    let output = run_on_kind(folder.path(), &["tolerance"])?;
    let text = text_of(&output);
    assert_eq!(output.status.code(), Some(3), "{text}");
    assert!(text.contains("the kind engine cannot run: `kind create cluster "), "{text}");
    assert!(text.contains("ERROR: no node image"), "{text}");
    Ok(())
}
