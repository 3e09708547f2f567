//! A folder for temporary files, by which a test finds all processes of a command.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The timeout for the cleanup of a command.
const CLEANUP_TIMEOUT: Duration = Duration::from_secs(15);

/// A temporary folder.
pub struct Workspace(tempfile::TempDir);

/// A process that uses the folder.
#[derive(Debug)]
pub struct Process {
    pub pid: String,
    pub line: String,
}

impl Workspace {
    pub fn new() -> std::io::Result<Workspace> {
        tempfile::Builder::new().prefix("kl-").tempdir().map(Workspace)
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// `kube-lockstep args…`, with its temporary files in the folder.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kube-lockstep"));
        command.args(args).env("TMPDIR", self.path()).stdin(Stdio::null());
        command
    }

    /// `sh -c script`, with `kube-lockstep args…` as its arguments and its temporary files in the
    /// folder.
    pub fn shell(&self, script: &str, args: &[&str]) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script, "sh", env!("CARGO_BIN_EXE_kube-lockstep")]).args(args);
        command.env("TMPDIR", self.path()).stdin(Stdio::null());
        command
    }

    /// The processes whose command line or environment names the folder.
    pub fn processes(&self) -> Vec<Process> {
        let ours = self.path().to_string_lossy().into_owned();
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let processes = entries.filter_map(|entry| {
            let read = |name: &str| {
                // The process may have exited, or may belong to another user.
                let bytes = fs::read(entry.path().join(name)).unwrap_or_default();
                String::from_utf8_lossy(&bytes).replace('\0', " ")
            };
            let line = read("cmdline");
            let pid = entry.file_name().to_string_lossy().into_owned();
            let is_ours = line.contains(&ours) || read("environ").contains(&ours);
            is_ours.then_some(Process { pid, line })
        });
        processes.collect()
    }

    /// The process of a program. The components of a control plane are one program, with the name
    /// of the component as an argument.
    pub fn program(&self, name: &str) -> Option<String> {
        let names = [format!(" {name} "), format!("/{name} ")];
        let matches = |process: &Process| names.iter().any(|name| process.line.contains(name));
        self.processes().into_iter().find(matches).map(|process| process.pid)
    }

    /// Waits until a program runs.
    pub fn wait_for(&self, name: &str) -> String {
        let begin = Instant::now();
        loop {
            if let Some(pid) = self.program(name) {
                return pid;
            }
            assert!(begin.elapsed() < Duration::from_secs(60), "{name} does not start");
            sleep(Duration::from_millis(20));
        }
    }

    /// The processes and files that are left.
    pub fn left(&self) -> Vec<String> {
        let files = fs::read_dir(self.path()).into_iter().flatten().flatten();
        let files = files.map(|file| file.path().display().to_string());
        self.processes().into_iter().map(|process| process.line).chain(files).collect()
    }

    /// Waits until no processes and files are left.
    pub fn wait_until_empty(&self) -> Result<(), String> {
        let begin = Instant::now();
        while !self.left().is_empty() {
            if begin.elapsed() > CLEANUP_TIMEOUT {
                return Err(format!("left: {:#?}", self.left()));
            }
            sleep(Duration::from_millis(50));
        }
        Ok(())
    }
}

/// Sends a signal to a process.
pub fn signal(name: &str, pid: &str) {
    let sent = Command::new("kill").args([name, pid]).status();
    assert!(sent.is_ok_and(|status| status.success()), "kill {name} {pid}");
}

/// The processes that a process has started, as the kernel lists them.
pub fn children(pid: u32) -> std::io::Result<String> {
    let mut children = String::new();
    for thread in std::fs::read_dir(format!("/proc/{pid}/task"))? {
        // The thread may have ended.
        children += &std::fs::read_to_string(thread?.path().join("children")).unwrap_or_default();
    }
    Ok(children)
}
