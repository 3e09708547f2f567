//! A Docker engine for one test, which can kill it with all its containers.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use libtest_mimic::Failed;

use super::support::place::{Place, children, signal};
use super::{LONG, START_LIMIT, said};

/// Namespaces of its own: its processes end with it, and neither its network nor its mounts are in
/// the way of another engine's.
const APART: [&str; 6] =
    ["--net", "--mount", "--pid", "--mount-proc", "--fork", "--kill-child=KILL"];

/// Why there can be none here, if so.
pub(super) fn missing() -> Option<String> {
    let script = "ip link set lo up && command -v dockerd && command -v nsenter";
    let output = Command::new("unshare").args(APART).args(["sh", "-c", script]).output();
    match output {
        Ok(output) if output.status.success() => None,
        Ok(output) => Some(format!("it takes root, ip, nsenter and dockerd: {}", said(&output))),
        Err(error) => Some(format!("unshare: {error}")),
    }
}

struct Engine {
    place: Place,
    child: Child,
}

impl Engine {
    fn start() -> Result<Engine, Failed> {
        let place = Place::new()?;
        let script = "ip link set lo up && cd \"$TMPDIR\" && exec dockerd --host \"$0\" \
            --data-root \"$TMPDIR/data\" --exec-root \"$TMPDIR/exec\" --pidfile \"$TMPDIR/pid\" \
            --cgroup-parent \"/${TMPDIR##*/}\" --iptables=false --ip6tables=false >log 2>&1";
        let mut command = Command::new("unshare");
        command.args(APART).args(["sh", "-c", script, &host(&place)]);
        // `unshare` complains when what it has started is killed.
        command.env("TMPDIR", place.path()).stdin(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn()?;
        let engine = Engine { place, child };
        engine.wait("it answers", || Ok(engine.docker(&["info"])?.0))?;
        Ok(engine)
    }

    fn docker(&self, args: &[&str]) -> Result<(bool, String), Failed> {
        let output =
            Command::new("docker").args(["--host", &host(&self.place)]).args(args).output()?;
        Ok((output.status.success(), said(&output).trim().to_owned()))
    }

    fn wait(&self, what: &str, is: impl Fn() -> Result<bool, Failed>) -> Result<(), Failed> {
        let begin = Instant::now();
        while !is()? {
            if begin.elapsed() > START_LIMIT {
                let log = std::fs::read_to_string(self.place.path().join("log"))?;
                return Err(format!("it did not come about: {what}: {log}").into());
            }
            sleep(Duration::from_millis(100));
        }
        Ok(())
    }

    /// The first process that was started in its namespaces, without which there are no others.
    fn pid(&self) -> Result<String, Failed> {
        Ok(children(self.child.id())?.trim().to_owned())
    }

    /// A run on it, in its network, since ports are mapped to loopback there.
    fn run(&self) -> Result<Child, Failed> {
        let mut command = Command::new("nsenter");
        command.args(["--net", "--target", &self.pid()?, env!("CARGO_BIN_EXE_kube-lockstep")]);
        command.args(LONG).env("DOCKER_HOST", host(&self.place)).env("TMPDIR", self.place.path());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Ok(command.spawn()?)
    }
}

fn host(place: &Place) -> String {
    format!("unix://{}", place.path().join("docker.sock").display())
}

impl Drop for Engine {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        // Nobody is left who would remove them.
        let name = self.place.path().file_name().unwrap_or_default().to_string_lossy();
        let mut groups = Command::new("find");
        groups.args(["/sys/fs/cgroup", "-depth", "-type", "d", "-path", &format!("*/{name}*")]);
        let _ = groups.args(["-exec", "rmdir", "{}", ";"]).status();
    }
}

/// Everything at the same instant: the engine, containerd, and the container.
pub(super) fn killed(_: &Path) -> Result<(), Failed> {
    let engine = Engine::start()?;
    let run = engine.run()?;
    let plays = || {
        let (_, container) = engine.docker(&["ps", "-q"])?;
        let (_, programs) = engine.docker(&["top", &container])?;
        Ok(programs.contains("kube-controller-manager"))
    };
    let plays = engine.wait("it plays", plays);
    // It is warmed up first.
    sleep(Duration::from_secs(10));
    signal("-KILL", &engine.pid()?);
    let begin = Instant::now();
    let output = run.wait_with_output()?;
    let text = said(&output);
    plays.map_err(|why| format!("{why:?}: {text}"))?;
    assert!(begin.elapsed() < START_LIMIT, "it has gone on for too long: {text}");
    assert_eq!(output.status.code(), Some(3), "{text}");
    assert!(text.contains("inconclusive  "), "{text}");
    assert!(text.contains("Docker can no longer be reached"), "{text}");
    assert!(!text.contains("diverges  "), "{text}");
    let left = engine.place.processes();
    assert!(left.is_empty(), "{left:#?}");
    Ok(())
}
