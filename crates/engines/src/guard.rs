//! Cleanup that happens even if this process is killed. A shell waits for the end of its standard
//! input, which this process holds open, and then runs a script.

pub mod cluster;

use std::ffi::OsStr;
use std::process::{Command, Stdio};

use crate::process_group;

/// Runs a command, and exits as it exits. At the end of the input, it ends the process group of the
/// command and removes the folder that is the first argument.
pub(crate) const RUN_WITH_FOLDER: &str = r#"
folder=$1
shift
exec 3<&0
trap 'interrupted=1' TERM
( trap '' TERM; cat <&3 >/dev/null; kill -TERM 0; sleep 1; rm -rf -- "$folder" ) >/dev/null 2>&1 &
guard=$!
"$@" </dev/null 3<&-
status=$?
[ -n "$interrupted" ] || kill -KILL $guard
exit $status
"#;

/// Runs a command, and exits as it exits. At the end of the input, it ends the process group of the
/// command.
pub const RUN: &str = r#"
exec 3<&0
( trap '' TERM; cat <&3 >/dev/null; kill -TERM 0; sleep 1; kill -KILL 0 ) >/dev/null 2>&1 &
guard=$!
"$@" </dev/null 3<&-
status=$?
kill -KILL $guard
exit $status
"#;

/// The status of a shell whose command does not exist.
pub(crate) const NO_COMMAND: i32 = 127;

/// A shell that runs a script with its standard input open. It has a process group of its own,
/// which does not receive Ctrl-C.
pub fn shell<A: AsRef<OsStr>>(script: &str, args: impl IntoIterator<Item = A>) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", script, "guard"]).args(args);
    process_group::in_own_group(&mut shell);
    shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    shell
}
