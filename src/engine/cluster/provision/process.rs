//! A program of a control plane: a child process that lives as long as this one holds its input.

use crate::engine::cluster::provision::guard::Guard;
use std::collections::hash_map::RandomState;
use std::fs::{DirBuilder, File, OpenOptions};
use std::hash::{BuildHasher, Hasher};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::available_parallelism;
use std::time::Duration;

use rustix::fs::statvfs;
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

/// How much of a log is kept for messages.
const TAIL: u64 = 4096;

/// What Go's programs are told of their memory: a quarter of their time went into collecting
/// garbage. With more of it, as much would go into fresh pages. There is no limit to it, near which
/// they would do nothing else.
pub(crate) const GARBAGE: [(&str, &str); 1] = [("GOGC", "200")];

/// What those are told that have less to do than a busy API server: on how many cores to run at a
/// time. On all of them, a sixth of the time of all goes into looking for work there.
fn modesty() -> (&'static str, String) {
    let half = available_parallelism().map_or(1, |cores| (cores.get() / 2).max(1));
    ("GOMAXPROCS", half.to_string())
}

/// How long one that was asked to end may take.
const GRACE: Duration = Duration::from_secs(5);

/// A disk with less room than this is full.
const ROOM: u64 = 64 * 1024;

/// Removes a folder when its input ends: when this process is gone, however that came about. It
/// looks again, since others may only be ending, and write there.
const GUARD: &str = r#"
cat >/dev/null
for _ in 1 2 3 4 5 6 7 8 9 10; do
  rm -rf -- "$1" 2>/dev/null
  sleep 0.3
  [ -e "$1" ] || exit 0
done
"#;

/// A folder that goes with this process.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    guard: Guard,
}

impl Folder {
    /// A new one, for nobody else's eyes.
    pub(crate) fn new() -> io::Result<Folder> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let mut hash = RandomState::new().build_hasher();
        hash.write_u32(MADE.fetch_add(1, Ordering::Relaxed));
        // Sockets in it have paths of a hundred bytes at most.
        let name = format!("kube-lockstep-{:x}", hash.finish() as u32);
        let path = std::env::temp_dir().join(name);
        // First the one who removes it.
        let guard = Guard::new(GUARD, &[&path])?;
        DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Folder { path, guard })
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes it.
    pub(crate) async fn close(self) {
        let _ = std::fs::remove_dir_all(&self.path);
        self.guard.close().await;
    }
}

/// A running program.
#[derive(Debug)]
pub(crate) struct Component {
    name: &'static str,
    child: Child,
    /// When this is closed, however that comes about, the program ends.
    input: Option<ChildStdin>,
    log: PathBuf,
}

impl Component {
    /// Starts `program name args…`. What it says goes to `name.log` in the folder; its standard
    /// output is handed over if that is wanted. What is modest has half of the cores.
    pub(crate) fn start(
        program: &Path,
        name: &'static str,
        args: &[String],
        folder: &Path,
        (modest, output): (bool, bool),
    ) -> io::Result<(Component, Option<ChildStdout>)> {
        let log = folder.join(format!("{name}.log"));
        let errors = OpenOptions::new().create(true).append(true).open(&log)?;
        let stdout = if output { Stdio::piped() } else { Stdio::null() };
        let mut child = Command::new(program)
            .arg(name)
            .args(args)
            .current_dir(folder)
            .env("TMPDIR", folder)
            .envs(GARBAGE)
            .envs(modest.then(modesty))
            .stdin(Stdio::piped())
            .stdout(stdout)
            .stderr(errors)
            // Ctrl-C in a terminal is for the one who asked for it.
            .process_group(0)
            .kill_on_drop(true)
            .spawn()?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        Ok((Component { name, child, input, log }, output))
    }

    /// How it ended, if it has.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// That it has ended so, and why if it could not write that itself.
    pub(crate) fn has_ended(&self, status: ExitStatus) -> String {
        let full = statvfs(&self.log).is_ok_and(|disk| disk.f_bavail * disk.f_frsize < ROOM);
        let why = match full {
            true => format!(": no space left on device, which has {}", self.log.display()),
            false => String::new(),
        };
        format!("{} has ended ({status}){why}", self.name)
    }

    /// The last lines of what it wrote.
    pub(crate) fn tail(&self) -> String {
        tail(&self.log).unwrap_or_default()
    }

    /// Ends it, and waits until it is gone.
    pub(crate) async fn end(&mut self) {
        drop(self.input.take());
        if timeout(GRACE, self.child.wait()).await.is_err() {
            // It is reaped when it is dropped, at the latest.
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
