//! The cleanup of clusters and of what belongs to them.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;

use tokio::process::{Child, Command};
use tokio::time::timeout;

use super::shell;

/// The timeout for a guard to exit after its standard input was closed.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// Removes a folder, repeatedly, because processes that are about to exit may still write to it.
const REMOVE_FOLDER: &str = r#"
cat >/dev/null
for _ in 1 2 3 4 5 6 7 8 9 10; do
  rm -rf -- "$1" 2>/dev/null
  sleep 0.3
  [ -e "$1" ] || exit 0
done
"#;

/// Removes a container, repeatedly, because Docker may still be creating it.
const REMOVE_CONTAINER: &str = r#"
cat >/dev/null
for _ in 1 2 3 4 5 6 7 8 9 10; do
  docker rm -f -v "$1" >/dev/null 2>&1
  sleep 0.3
  docker container inspect "$1" >/dev/null 2>&1 || exit 0
done
"#;

/// Deletes a kind cluster, repeatedly, because kind may still be creating it.
const DELETE_KIND_CLUSTER: &str = r#"
cat >/dev/null
for pause in 0 5 15 60 180; do
  sleep "$pause"
  "$1" delete cluster --name "$2"
done
"#;

/// Runs a command, after a pause for requests that are still in flight.
const RUN_COMMAND: &str = r#"cat >/dev/null; sleep 1; exec "$@""#;

/// Runs a command, and exits as it exits. At the end of the input, it asks the command to stop, and
/// then kills what remains of the process group.
const HOLD_COMMAND: &str = r#"
exec 3<&0 </dev/null
sh -c "$1" 3<&- &
command=$!
(
  cat <&3 >/dev/null
  kill -TERM "$command" 2>/dev/null
  for _ in 1 2 3 4 5 6 7 8 9 10; do
    kill -0 "$command" 2>/dev/null || break
    sleep 0.1
  done
  kill -KILL 0
) &
exec 3<&-
wait "$command"
"#;

/// Removes files and folders once. It does not repeat this, because another process may create
/// files with the same names.
pub const REMOVE_FILES: &str = r#"cat >/dev/null; rm -rf -- "$@""#;

/// A shell that cleans up when this process exits, for whatever reason, or drops the guard.
#[derive(Debug)]
pub struct Guard {
    child: Child,
}

impl Guard {
    /// Removes a folder.
    pub fn for_folder(path: &Path) -> io::Result<Guard> {
        Guard::start(REMOVE_FOLDER, &[path])
    }

    /// Removes a container. Without the program `docker`, it does nothing.
    pub fn for_container(name: &str) -> io::Result<Guard> {
        Guard::start(REMOVE_CONTAINER, &[name])
    }

    /// Deletes a cluster of kind.
    pub fn for_kind_cluster(program: &str, name: &str) -> io::Result<Guard> {
        Guard::start(DELETE_KIND_CLUSTER, &[program, name])
    }

    /// Runs a command. `None` if the command is empty.
    pub fn running(command: &[OsString]) -> io::Result<Option<Guard>> {
        (!command.is_empty()).then(|| Guard::start(RUN_COMMAND, command)).transpose()
    }

    /// Starts a command line, and stops it. The output of the command goes to the log.
    pub fn holding(
        command: &str,
        environment: Vec<(String, String)>,
        log: File,
    ) -> io::Result<Guard> {
        let mut shell = shell(HOLD_COMMAND, [command]);
        shell.envs(environment).stdout(log.try_clone()?).stderr(log);
        Ok(Guard { child: Command::from(shell).spawn()? })
    }

    fn start<A: AsRef<OsStr>>(script: &str, args: &[A]) -> io::Result<Guard> {
        Ok(Guard { child: Command::from(shell(script, args)).spawn()? })
    }

    /// The exit status, if it has exited.
    pub fn exited(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Cleans up now, and waits for the end.
    pub async fn close(mut self) {
        drop(self.child.stdin.take());
        let _ = timeout(CLOSE_TIMEOUT, self.child.wait()).await;
    }

    /// Ends the guard without cleaning up.
    pub async fn disarm(mut self) {
        let _ = self.child.kill().await;
    }
}
