//! A component of a control plane: a child process that runs as long as this process holds its
//! standard input.

use std::collections::hash_map::RandomState;
use std::fs::{DirBuilder, File, OpenOptions};
use std::hash::{BuildHasher, Hasher};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::available_parallelism;

use rustix::fs::statvfs;
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

use crate::cluster::timeouts::STOP_TIMEOUT;
use kube_lockstep_engines::guard::cluster::Guard;

/// The number of bytes of a log that error messages show.
const TAIL: u64 = 4096;

/// The environment of the components. By default, they spend a quarter of their time on garbage
/// collection; a higher value only moves the cost to page faults. There is no GOMEMLIMIT: near it,
/// they would only collect garbage.
pub(crate) const GO_ENVIRONMENT: [(&str, &str); 1] = [("GOGC", "200")];

/// Limits a component with little work to half of the cores. With all cores, the Go schedulers of
/// idle components use a sixth of the CPU time.
fn gomaxprocs() -> (&'static str, String) {
    let half = available_parallelism().map_or(1, |cores| (cores.get() / 2).max(1));
    ("GOMAXPROCS", half.to_string())
}

/// A disk with less free space is full.
const MIN_DISK_SPACE: u64 = 64 * 1024;

/// A temporary folder that is removed when this process exits.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    guard: Guard,
}

impl Folder {
    /// Creates a folder that only this user can read.
    pub(crate) fn new() -> io::Result<Folder> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let mut hash = RandomState::new().build_hasher();
        hash.write_u32(COUNT.fetch_add(1, Ordering::Relaxed));
        // A short name, because the paths of sockets are limited to about a hundred bytes.
        let name = format!("kube-lockstep-{:x}", hash.finish() as u32);
        let path = std::env::temp_dir().join(name);
        // The guard first, so that the folder is removed in any case.
        let guard = Guard::for_folder(&path)?;
        DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Folder { path, guard })
    }

    /// Its path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes it.
    pub(crate) async fn close(self) {
        let _ = std::fs::remove_dir_all(&self.path);
        self.guard.close().await;
    }
}

/// A running component.
#[derive(Debug)]
pub(crate) struct Component {
    name: &'static str,
    child: Child,
    /// The standard input. When it is closed, for whatever reason, the component exits.
    input: Option<ChildStdin>,
    log: PathBuf,
}

/// A component to start.
pub(crate) struct Launch<'a> {
    pub program: &'a Path,
    /// The first argument of the program.
    pub name: &'static str,
    pub args: Vec<String>,
    /// The working folder, which also contains the log, `name.log`.
    pub folder: &'a Path,
    /// True if it uses half of the cores.
    pub(crate) few_cores: bool,
    /// True to return the standard output.
    pub(crate) pipes_output: bool,
}

impl Component {
    /// Starts a component.
    pub(crate) fn start(launch: Launch<'_>) -> io::Result<(Component, Option<ChildStdout>)> {
        let Launch { program, name, args, folder, few_cores, pipes_output } = launch;
        let log = folder.join(format!("{name}.log"));
        let errors = OpenOptions::new().create(true).append(true).open(&log)?;
        let stdout = if pipes_output { Stdio::piped() } else { Stdio::null() };
        let mut child = Command::new(program)
            .arg(name)
            .args(args)
            .current_dir(folder)
            .env("TMPDIR", folder)
            .envs(GO_ENVIRONMENT)
            .envs(few_cores.then(gomaxprocs))
            .stdin(Stdio::piped())
            .stdout(stdout)
            .stderr(errors)
            // Ctrl-C in a terminal is handled by this process.
            .process_group(0)
            .kill_on_drop(true)
            .spawn()?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        Ok((Component { name, child, input, log }, output))
    }

    /// The exit status, if it has exited.
    pub(crate) fn exited(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// The message that it has exited. It mentions a full disk, which the component can't log.
    pub(crate) fn exit_message(&self, status: ExitStatus) -> String {
        let full =
            statvfs(&self.log).is_ok_and(|disk| disk.f_bavail * disk.f_frsize < MIN_DISK_SPACE);
        let why = match full {
            true => format!(": no space left on device, which has {}", self.log.display()),
            false => String::new(),
        };
        format!("{} has exited ({status}){why}", self.name)
    }

    /// The last lines of its log.
    pub(crate) fn tail(&self) -> String {
        tail(&self.log).unwrap_or_default()
    }

    /// Stops it, and waits for its exit.
    pub(crate) async fn stop(&mut self) {
        drop(self.input.take());
        if timeout(STOP_TIMEOUT, self.child.wait()).await.is_err() {
            // The process is reaped on drop at the latest.
            let _ = self.child.kill().await;
        }
    }
}

/// The last lines of a log.
pub(crate) fn tail(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL)))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    Ok(match text.split_once('\n') {
        Some((_, rest)) if length > TAIL => rest.to_owned(),
        _ => text,
    })
}
