//! A folder for temporary files, by which a test finds all processes of a command.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long it may take until nothing is left.
const GONE_LIMIT: Duration = Duration::from_secs(15);

/// The folder.
pub struct Place(tempfile::TempDir);

/// A process that has to do with the folder.
#[derive(Debug)]
pub struct Process {
    pub pid: String,
    pub line: String,
}

impl Place {
    pub fn new() -> std::io::Result<Place> {
        tempfile::Builder::new().prefix("kl-").tempdir().map(Place)
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// `kube-lockstep args…`, whose temporary files are here.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kube-lockstep"));
        command.args(args).env("TMPDIR", self.path()).stdin(Stdio::null());
        command
    }

    /// Processes whose command lines name the folder, or to which it was given as the one for what
    /// is temporary.
    pub fn processes(&self) -> Vec<Process> {
        let ours = self.path().to_string_lossy().into_owned();
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let processes = entries.filter_map(|entry| {
            let read = |name: &str| {
                // It may belong to another process.
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

    /// A program, once it runs: one of a control plane is an argument of the one that is all three.
    pub fn program(&self, name: &str) -> Option<String> {
        let names = [format!(" {name} "), format!("/{name} ")];
        let is_it = |process: &Process| names.iter().any(|name| process.line.contains(name));
        self.processes().into_iter().find(is_it).map(|process| process.pid)
    }

    /// Waits for a program.
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

    /// Processes and files that are there.
    pub fn left(&self) -> Vec<String> {
        let files = fs::read_dir(self.path()).into_iter().flatten().flatten();
        let files = files.map(|file| file.path().display().to_string());
        self.processes().into_iter().map(|process| process.line).chain(files).collect()
    }

    /// Waits until nothing is left.
    pub fn is_empty(&self) -> Result<(), String> {
        let begin = Instant::now();
        while !self.left().is_empty() {
            if begin.elapsed() > GONE_LIMIT {
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
        // It may have ended.
        children += &std::fs::read_to_string(thread?.path().join("children")).unwrap_or_default();
    }
    Ok(children)
}
