//! A program of a control plane: a child process that lives as long as this one holds its input.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

/// How much of a log is kept for messages.
const TAIL: u64 = 4096;

/// How long one that was asked to end may take.
const GRACE: Duration = Duration::from_secs(5);

/// The variable that names the folder that a program removes when its input ends.
const FOLDER_VARIABLE: &str = "KUBE_LOCKSTEP_FOLDER";

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
    /// output is handed over if that is wanted.
    pub(crate) fn start(
        program: &Path,
        name: &'static str,
        args: &[String],
        folder: &Path,
        output: bool,
    ) -> io::Result<(Component, Option<ChildStdout>)> {
        let log = folder.join(format!("{name}.log"));
        let errors = OpenOptions::new().create(true).append(true).open(&log)?;
        let stdout = if output { Stdio::piped() } else { Stdio::null() };
        let mut child = Command::new(program)
            .arg(name)
            .args(args)
            .current_dir(folder)
            .env(FOLDER_VARIABLE, folder)
            .env("TMPDIR", folder)
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

    /// Its name.
    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    /// How it ended, if it has.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
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

fn tail(path: &Path) -> io::Result<String> {
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
