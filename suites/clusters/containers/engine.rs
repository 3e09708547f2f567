//! A Docker engine for one test, which can kill it with all its containers.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use libtest_mimic::Failed;

use super::{LONG, START_TIMEOUT, text_of};
use crate::support::place::{Workspace, children, signal};

/// Separate namespaces: the processes of the engine end with it, and its network and mounts do not
/// conflict with those of another engine.
const UNSHARE_ARGS: [&str; 6] =
    ["--net", "--mount", "--pid", "--mount-proc", "--fork", "--kill-child=KILL"];

/// Returns the reason why this machine cannot run a separate engine, or `None` if it can.
pub(super) fn missing() -> Option<String> {
    let script = "ip link set lo up && command -v dockerd && command -v nsenter";
    let output = Command::new("unshare").args(UNSHARE_ARGS).args(["sh", "-c", script]).output();
    match output {
        Ok(output) if output.status.success() => None,
        Ok(output) => {
            Some(format!("root, ip, nsenter and dockerd are required: {}", text_of(&output)))
        }
        Err(error) => Some(format!("unshare: {error}")),
    }
}

struct Engine {
    workspace: Workspace,
    child: Child,
}

impl Engine {
    fn start() -> Result<Engine, Failed> {
        let workspace = Workspace::new()?;
        let script = "ip link set lo up && cd \"$TMPDIR\" && exec dockerd --host \"$0\" \
            --data-root \"$TMPDIR/data\" --exec-root \"$TMPDIR/exec\" --pidfile \"$TMPDIR/pid\" \
            --cgroup-parent \"/${TMPDIR##*/}\" --iptables=false --ip6tables=false >log 2>&1";
        let mut command = Command::new("unshare");
        command.args(UNSHARE_ARGS).args(["sh", "-c", script, &host(&workspace)]);
        // `unshare` writes an error when its child is killed.
        command.env("TMPDIR", workspace.path()).stdin(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn()?;
        let engine = Engine { workspace, child };
        engine.wait("the engine answers", || Ok(engine.docker(&["info"])?.0))?;
        Ok(engine)
    }

    fn docker(&self, args: &[&str]) -> Result<(bool, String), Failed> {
        let output =
            Command::new("docker").args(["--host", &host(&self.workspace)]).args(args).output()?;
        Ok((output.status.success(), text_of(&output).trim().to_owned()))
    }

    fn wait(&self, what: &str, condition: impl Fn() -> Result<bool, Failed>) -> Result<(), Failed> {
        let begin = Instant::now();
        while !condition()? {
            if begin.elapsed() > START_TIMEOUT {
                let log = std::fs::read_to_string(self.workspace.path().join("log"))?;
                return Err(format!("timeout while waiting until {what}: {log}").into());
            }
            sleep(Duration::from_millis(100));
        }
        Ok(())
    }

    /// The first process in the engine's namespaces: when it exits, the kernel kills the others.
    fn pid(&self) -> Result<String, Failed> {
        Ok(children(self.child.id())?.trim().to_owned())
    }

    /// Starts a run in the engine's network, because ports are mapped to loopback there.
    fn run(&self) -> Result<Child, Failed> {
        let mut command = Command::new("nsenter");
        command.args(["--net", "--target", &self.pid()?, env!("CARGO_BIN_EXE_kube-lockstep")]);
        command
            .args(LONG)
            .env("DOCKER_HOST", host(&self.workspace))
            .env("TMPDIR", self.workspace.path());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Ok(command.spawn()?)
    }
}

fn host(workspace: &Workspace) -> String {
    format!("unix://{}", workspace.path().join("docker.sock").display())
}

impl Drop for Engine {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        // A killed engine leaves its cgroups behind.
        let name = self.workspace.path().file_name().unwrap_or_default().to_string_lossy();
        let mut groups = Command::new("find");
        groups.args(["/sys/fs/cgroup", "-depth", "-type", "d", "-path", &format!("*/{name}*")]);
        let _ = groups.args(["-exec", "rmdir", "{}", ";"]).status();
    }
}

/// Kills the engine, containerd and the container at the same time.
pub(super) fn killed(_: &Path) -> Result<(), Failed> {
    let engine = Engine::start()?;
    let run = engine.run()?;
    let is_running = || {
        let (_, container) = engine.docker(&["ps", "-q"])?;
        let (_, programs) = engine.docker(&["top", &container])?;
        Ok(programs.contains("kube-controller-manager"))
    };
    let waited = engine.wait("the scenarios run", is_running);
    // The cluster is warmed up before the first scenario.
    sleep(Duration::from_secs(10));
    signal("-KILL", &engine.pid()?);
    let begin = Instant::now();
    let output = run.wait_with_output()?;
    let text = text_of(&output);
    waited.map_err(|why| format!("{why:?}: {text}"))?;
    assert!(begin.elapsed() < START_TIMEOUT, "the run did not end in time: {text}");
    assert_eq!(output.status.code(), Some(3), "{text}");
    assert!(text.contains("inconclusive  "), "{text}");
    assert!(text.contains("Docker can no longer be reached"), "{text}");
    assert!(!text.contains("diverges  "), "{text}");
    let left = engine.workspace.processes();
    assert!(left.is_empty(), "{left:#?}");
    Ok(())
}
