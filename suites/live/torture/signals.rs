//! Signals at random times.

use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use libtest_mimic::Failed;
use proptest::prelude::*;

use super::{Round, support};
use crate::support::place::{Workspace, signal};

/// The timeout of a command after a signal.
const END: Duration = Duration::from_secs(30);

/// Commands that take a while, with and without engines.
const COMMANDS: &[&[&str]] = &[
    &["run", "--engine", "upstream"],
    &["run", "--engine", "upstream", "--jobs", "1"],
    &["fuzz", "--engine", "upstream", "--ticks", "100000000"],
    &["fuzz", "--engine", "model", "--ticks", "100000000"],
    &["run", "--engine", "recorded", "--release", "all"],
    &["diff", "--from", "1.6", "--to", "1.37"],
];

/// Signals with their numbers.
const SIGNALS: &[(&str, i32)] = &[("-INT", 2), ("-TERM", 15), ("-HUP", 1), ("-KILL", 9)];

/// A command ends after a signal, and leaves no process behind. A second signal may follow.
pub(super) fn interrupt(round: Round) -> Result<(), Failed> {
    let command = prop::sample::select(COMMANDS);
    let sent = prop::sample::select(SIGNALS);
    let again = prop::option::of((prop::sample::select(SIGNALS), 0..200_u64));
    let (command, (name, number), delay, again) =
        round.draw(&(command, sent, 0..2000_u64, again))?;
    let drawn = format!("{command:?}, {name} after {delay} ms, then {again:?}");
    let workspace = Workspace::new()?;
    // A parent may ignore signals, as nohup does.
    let mut child = workspace
        .shell("exec env --default-signal \"$@\"", command)
        .current_dir(support::repository())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let pid = child.id().to_string();
    let mut numbers = vec![number];
    sleep(Duration::from_millis(delay));
    send(&mut child, name, &pid)?;
    if let Some(((name, number), delay)) = again {
        sleep(Duration::from_millis(delay));
        numbers.push(number);
        send(&mut child, name, &pid)?;
    }
    let status = end_of(&mut child)?.ok_or_else(|| format!("{drawn}: it did not end"))?;
    let by_signal = numbers.iter().any(|number| status.signal() == Some(*number));
    let with_code = numbers.iter().any(|number| status.code() == Some(128 + number));
    if !by_signal && !with_code && !matches!(status.code(), Some(0 | 1)) {
        return Err(format!("{drawn}: {status}").into());
    }
    let left = wait_for_end(&workspace, !numbers.contains(&9));
    left.map_err(|left| format!("{drawn}: {status}, {left}").into())
}

/// Sends a signal to a command, unless it has ended.
fn send(child: &mut Child, name: &str, pid: &str) -> Result<(), Failed> {
    // It is not reaped before this returns: the id is still that of the command.
    if child.try_wait()?.is_none() {
        signal(name, pid);
    }
    Ok(())
}

fn end_of(child: &mut Child) -> Result<Option<ExitStatus>, Failed> {
    let begin = Instant::now();
    while begin.elapsed() < END {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        sleep(Duration::from_millis(20));
    }
    child.kill()?;
    child.wait()?;
    Ok(None)
}

/// Waits until no process is left, and no file either if the command could remove them.
fn wait_for_end(workspace: &Workspace, with_files: bool) -> Result<(), String> {
    if with_files {
        return workspace.wait_until_empty();
    }
    let begin = Instant::now();
    while !workspace.processes().is_empty() {
        if begin.elapsed() > END {
            return Err(format!("left: {:?}", workspace.processes()));
        }
        sleep(Duration::from_millis(50));
    }
    Ok(())
}
