//! Cleanup that happens even if this process is killed: a shell waits for the end of its input,
//! which this process holds, and then runs a script.

use std::ffi::{OsStr, OsString};
use std::io;
use std::process::Stdio;

use tokio::process::{Child, Command};

/// Runs a command when its input ends, and a little later, since a request may be under way.
const COMMAND: &str = r#"cat >/dev/null; sleep 1; exec "$@""#;

/// What is done when this process is gone, however that came about.
#[derive(Debug)]
pub(crate) struct Guard {
    child: Child,
}

impl Guard {
    /// Runs a script as soon as its input ends, which is when this is dropped or this process ends.
    pub(crate) fn new<A: AsRef<OsStr>>(script: &str, args: &[A]) -> io::Result<Guard> {
        let child = Command::new("sh")
            .args(["-c", script, "guard"])
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Ctrl-C in a terminal is not for it.
            .process_group(0)
            .spawn()?;
        Ok(Guard { child })
    }

    /// Runs a command then; none is no guard.
    pub(crate) fn with(command: &[OsString]) -> io::Result<Option<Guard>> {
        let wanted = !command.is_empty();
        wanted.then(|| Guard::new(COMMAND, command)).transpose()
    }

    /// Lets it do so, and waits until it has.
    pub(crate) async fn close(mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait().await;
    }

    /// There is nothing left to do.
    pub(crate) async fn dismiss(mut self) {
        let _ = self.child.kill().await;
    }
}
