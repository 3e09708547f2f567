//! Runs commands that usually end within milliseconds, with little output. A command that hangs is
//! killed after a timeout.

use std::ffi::OsStr;
use std::io::{self, Read};
use std::process::{Child, Output, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use crate::guard::{RUN, shell};
use crate::process_group;

pub const TIMEOUT: Duration = Duration::from_secs(20);

/// The time after which a message names the command that this process waits for.
const SILENT_WAIT: Duration = Duration::from_secs(2);

/// The interval at which the command is checked: it usually ends within one or two of them.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// The time to wait for the end of the output after the command has exited. A process that it has
/// left behind may hold the output open.
const OUTPUT_GRACE: Duration = Duration::from_millis(500);

/// The maximum size of the part of an output that is kept, in bytes.
const MAX_OUTPUT: u64 = 1 << 20;

/// Runs a command to its end. It is killed after [`TIMEOUT`], together with the processes that it
/// started, and ends with this process. `progress` gets a message if it takes longer than usual.
/// The exit code of a command that does not exist is `NO_COMMAND`.
///
/// # Errors
/// If the command can't be started, or is killed after the timeout ([`io::ErrorKind::TimedOut`]).
pub fn output_of<A: AsRef<OsStr>>(
    command: impl IntoIterator<Item = A>,
    name: &str,
    progress: &mut dyn FnMut(&str),
) -> io::Result<Output> {
    let mut command = shell(RUN, command);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let outputs = (collect(child.stdout.take()), collect(child.stderr.take()));
    let begin = Instant::now();
    let mut is_reported = false;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if begin.elapsed() >= SILENT_WAIT && !is_reported {
            progress(&format!("waiting for `{name}`, which usually takes milliseconds"));
            is_reported = true;
        }
        if begin.elapsed() >= TIMEOUT {
            end(&mut child)?;
            return Err(io::ErrorKind::TimedOut.into());
        }
        thread::sleep(POLL_INTERVAL);
    };
    let deadline = Instant::now() + OUTPUT_GRACE;
    let text = |output: &Receiver<Vec<u8>>| {
        let mut text = Vec::new();
        while let Ok(part) = output.recv_timeout(deadline - Instant::now().min(deadline)) {
            text.extend(part);
        }
        text
    };
    Ok(Output { status, stdout: text(&outputs.0), stderr: text(&outputs.1) })
}

/// Kills a command and its process group. The command has not been reaped, so no other process has
/// its id.
fn end(child: &mut Child) -> io::Result<()> {
    process_group::kill(child.id());
    // Fails only if it has already exited.
    let _ = child.kill();
    child.wait().map(drop)
}

/// Reads an output to its end. Only its first part is kept.
fn collect(pipe: Option<impl Read + Send + 'static>) -> Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let Some(mut pipe) = pipe else { return };
        let (mut part, mut left) = ([0; 4096], MAX_OUTPUT);
        while let Ok(count @ 1..) = pipe.read(&mut part) {
            let kept = count.min(usize::try_from(left).unwrap_or(usize::MAX));
            left -= kept as u64;
            // The rest is read as well: the command must not wait for a reader.
            if kept > 0 && sender.send(part[..kept].to_vec()).is_err() {
                left = 0;
            }
        }
    });
    receiver
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(script: &str) -> io::Result<Output> {
        output_of(["sh", "-c", script], "sh", &mut |_| {})
    }

    #[test]
    fn both_outputs_and_the_status_are_returned() {
        let Output { status, stdout, stderr } = run("echo a; echo b >&2; exit 3").expect("it runs");
        assert_eq!((status.code(), &*stdout, &*stderr), (Some(3), &b"a\n"[..], &b"b\n"[..]));
    }

    #[test]
    fn a_process_that_is_left_behind_is_not_waited_for() {
        let begin = Instant::now();
        let output = run("sleep 1000 & echo $!").expect("it runs");
        assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
        let id = String::from_utf8(output.stdout).expect("an id");
        let ended = std::process::Command::new("kill").arg(id.trim()).status().expect("it runs");
        assert!(ended.success(), "{id} was running");
    }

    #[test]
    fn an_output_of_megabytes_is_cut() {
        let output = run("head -c 5000000 /dev/zero; echo end >&2").expect("it runs");
        assert_eq!(output.stdout.len(), 1 << 20);
        assert_eq!(output.stderr, b"end\n");
    }
}
