//! The installed Go, and its commands, which report progress and end with this process.

use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::artifact::{NAME, Progress};
use crate::guard::{NO_COMMAND, RUN_WITH_FOLDER, shell};
use crate::process_group;
use crate::short_command;
use crate::short_command::output_of;
use kube_lockstep_scenario::Diagnostic;
use kube_lockstep_sim::engine::EngineError;
use kube_lockstep_sim::run::Preparation;

/// The oldest Go that builds the hosts: `testing/synctest` with timers in bubbles.
pub const OLDEST_GO: (u32, u32) = (1, 26);

/// The hint for users without Go.
pub(super) const WITHOUT: &str =
    "recorded traces (`--engine recorded`) and `predict` work without it";

/// The installed Go.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Go {
    /// Its version: `go1.26.8`.
    pub version: String,
}

/// Finds Go. All calls have the result of the first one.
///
/// # Errors
/// If Go is missing or too old; the error says what to do.
pub fn find_go(progress: Progress<'_>) -> Result<Go, EngineError> {
    static FOUND: OnceLock<Result<Go, EngineError>> = OnceLock::new();
    FOUND.get_or_init(|| ask_go(progress)).clone()
}

fn ask_go(progress: Progress<'_>) -> Result<Go, EngineError> {
    let (major, minor) = OLDEST_GO;
    if !cfg!(unix) {
        let what = format!("building an engine requires {}", process_group::SYSTEMS);
        return Err(unavailable(what, WITHOUT.to_owned()));
    }
    let hint = format!("install Go {major}.{minor} or newer and add it to PATH; {WITHOUT}");
    const COMMAND: [&str; 3] = ["go", "env", "GOVERSION"];
    let output = match output_of(COMMAND, "go env", &mut |what| progress(Preparation::new(what))) {
        Ok(output) if output.status.success() => output,
        Ok(output) if output.status.code() == Some(NO_COMMAND) => {
            return Err(unavailable("Go is not installed".to_owned(), hint));
        }
        Ok(output) => {
            let why = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            return Err(unavailable(format!("`go env` failed: {why}"), hint));
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            // Without PATH, there is no `sh` either.
            return Err(unavailable("Go is not installed".to_owned(), hint));
        }
        Err(error) if error.kind() == io::ErrorKind::TimedOut => {
            let seconds = short_command::TIMEOUT.as_secs();
            return Err(unavailable(format!("`go env` did not end within {seconds} s"), hint));
        }
        Err(error) => return Err(unavailable(format!("Go can't be started: {error}"), hint)),
    };
    let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    match go_version(&version) {
        Some(found) if found >= OLDEST_GO => Ok(Go { version }),
        Some(_) => Err(unavailable(format!("Go is too old: {version}"), hint)),
        None => Err(unavailable(format!("Go has an unknown version: {version:?}"), hint)),
    }
}

/// This machine, in Go's words.
const GO_OS: &str = match std::env::consts::OS.as_bytes() {
    b"macos" => "darwin",
    _ => std::env::consts::OS,
};
const GO_ARCH: &str = match std::env::consts::ARCH.as_bytes() {
    b"x86_64" => "amd64",
    b"aarch64" => "arm64",
    b"x86" => "386",
    _ => std::env::consts::ARCH,
};

/// `go1.26.8`, `go1.27rc1`, `devel go1.28-…` → (1, 26), ….
fn go_version(text: &str) -> Option<(u32, u32)> {
    let numbers = &text[text.find("go")? + 2..];
    let mut parts = numbers.split('.');
    let number = |part: &str| {
        let digits = part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len());
        part[..digits].parse().ok()
    };
    Some((number(parts.next()?)?, number(parts.next()?)?))
}

/// The interval at which a build checks whether to stop.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// An output line of a child process: standard output (`true`) or standard error (`false`).
type Line = (String, bool);

/// A build in progress.
pub struct Build<'a> {
    /// The engine's name, for messages.
    pub name: &'a str,
    /// The folder of the sources.
    pub sources: &'a Path,
    /// The temporary folder of Go, which is removed after the build.
    pub scratch: &'a Path,
    /// The arguments that all commands share.
    pub flags: Vec<String>,
    /// The package or module of the commands.
    pub target: &'a str,
    /// Cancelled to stop the build.
    pub stop: &'a CancellationToken,
}

/// Downloads and checks the target of a build, a module, with Go. Returns its folder.
///
/// # Errors
/// If the module can't be downloaded.
pub(super) fn module_folder(build: &Build<'_>) -> Result<PathBuf, EngineError> {
    let mut json = String::new();
    go(build, &["mod", "download", "-json"], &mut |line, out| {
        if out {
            json.push_str(line);
        }
    })?;
    let answer: Value = serde_json::from_str(&json).unwrap_or_default();
    let folder = answer["Dir"].as_str().map(PathBuf::from);
    folder.ok_or_else(|| EngineError::Broken {
        engine: build.name.into(),
        why: format!("`go mod download` does not report the folder of {}", build.target),
        output: json,
    })
}

/// Runs a Go command and passes on each line of its output.
pub(super) fn go(
    build: &Build<'_>,
    command: &[&str],
    line: &mut dyn FnMut(&str, bool),
) -> Result<(), EngineError> {
    let failed = |why: String, output: &[String]| EngineError::Broken {
        engine: build.name.into(),
        why: format!("`go {}` {why}", command.join(" ")),
        output: output.join("\n"),
    };
    let mut child = command_of(build, command)
        .spawn()
        .map_err(|error| failed(format!("can't be started: {error}"), &[]))?;
    let mut guard = child.stdin.take();
    let (sender, lines) = mpsc::channel();
    if let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) {
        forward(stdout, true, sender.clone());
        forward(stderr, false, sender);
    }
    let mut errors: Vec<String> = Vec::new();
    loop {
        if build.stop.is_cancelled() {
            drop(guard.take());
        }
        match lines.recv_timeout(POLL_INTERVAL) {
            Ok((text, out)) => {
                line(&text, out);
                if !out {
                    errors.push(text);
                }
                // The last lines contain the reason. There can be thousands of lines.
                if errors.len() > 40 {
                    errors.remove(0);
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    match child.wait() {
        _ if build.stop.is_cancelled() => Err(failed("was interrupted".to_owned(), &[])),
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(match errors.iter().rev().find(|line| is_network_error(line)) {
            Some(line) => unavailable(
                format!("upstream's modules can't be downloaded: {}", line.trim()),
                format!("the first build requires a Go module proxy (GOPROXY); {WITHOUT}"),
            ),
            None => failed(format!("fails ({status})"), &errors),
        }),
        Err(error) => Err(failed(format!("can't be waited for: {error}"), &errors)),
    }
}

/// A Go command that ends with this process.
fn command_of(build: &Build<'_>, command: &[&str]) -> Command {
    let mut sh = shell(RUN_WITH_FOLDER, [build.scratch]);
    sh.arg("go")
        .args(command)
        .args(&build.flags)
        .arg(build.target)
        .current_dir(build.sources)
        // The user's Go workspace and flags must not affect the build.
        .env("GOWORK", "off")
        .env("GOFLAGS", "")
        .env("GOTMPDIR", build.scratch)
        .env("CGO_ENABLED", "0")
        // Engines run on this machine, whatever the user builds otherwise.
        .env("GOOS", GO_OS)
        .env("GOARCH", GO_ARCH)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    sh
}

/// Returns true if Go could not download a module.
fn is_network_error(line: &str) -> bool {
    const WORDS: [&str; 8] = [
        "dial tcp",
        "no such host",
        "i/o timeout",
        "proxyconnect",
        "TLS handshake",
        "tls: failed",
        "connection reset by peer",
        "module lookup disabled by GOPROXY=off",
    ];
    WORDS.iter().any(|word| line.contains(word))
}

fn forward(pipe: impl io::Read + Send + 'static, out: bool, sender: mpsc::Sender<Line>) {
    std::thread::spawn(move || {
        for line in BufReader::new(pipe).lines().map_while(Result::ok) {
            // The receiver was dropped.
            if sender.send((line, out)).is_err() {
                return;
            }
        }
    });
}

/// The error for a build that was stopped.
pub(super) fn interrupted() -> EngineError {
    let (why, output) = ("its build was interrupted".to_owned(), String::new());
    EngineError::Broken { engine: NAME.into(), why, output }
}

pub(super) fn unavailable(why: String, hint: String) -> EngineError {
    EngineError::Unavailable { engine: NAME.into(), problem: Diagnostic::new(why).hint(hint) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_go_are_compared_by_number() {
        assert_eq!(go_version("go1.26.8"), Some((1, 26)));
        assert_eq!(go_version("go1.27rc1"), Some((1, 27)));
        assert_eq!(go_version("devel go1.28-abcdef Mon"), Some((1, 28)));
        assert_eq!(go_version("1.26"), None);
        assert!(go_version("go1.9.7") < Some(OLDEST_GO));
    }
}
