//! Process groups: a program ends together with the processes that it has started.
//!
//! Windows has no process groups. There, only the program itself is ended, and the engines that
//! build programs with a shell are not available.

/// The systems on which programs can be built and control planes can run.
pub const SYSTEMS: &str = "Linux or macOS";

pub(crate) use self::system::in_own_group;
pub use self::system::terminate;
pub use self::system::{exited, kill};

#[cfg(unix)]
mod system {
    use std::io;
    use std::os::unix::process::CommandExt;
    use std::process::Command;
    use std::time::Duration;

    use rustix::io::Errno;
    use rustix::process::kill_process;
    use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

    /// The interval at which this process checks whether a program has exited: waiting without
    /// reaping it has no notification.
    const POLL_INTERVAL: Duration = Duration::from_millis(5);

    /// Starts the program in a process group of its own, which does not receive Ctrl-C.
    pub(crate) fn in_own_group(command: &mut Command) -> &mut Command {
        command.process_group(0)
    }

    fn pid(id: u32) -> Option<Pid> {
        i32::try_from(id).ok().and_then(Pid::from_raw)
    }

    /// Kills the group of a program that is not reaped: otherwise, its id could belong to another
    /// process.
    pub fn kill(id: u32) {
        if let Some(group) = pid(id) {
            // Fails only if no process of the group is left.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }

    /// Asks a process to end, with SIGTERM. Does nothing if it does not exist.
    ///
    /// # Errors
    /// If it belongs to another user.
    pub fn terminate(id: u32) -> io::Result<()> {
        match pid(id).map(|pid| kill_process(pid, Signal::TERM)) {
            None | Some(Ok(()) | Err(Errno::SRCH)) => Ok(()),
            Some(Err(error)) => Err(error.into()),
        }
    }

    /// Waits until a program has exited. It is not reaped, so that no other process gets its id.
    pub async fn exited(id: u32) {
        let Some(pid) = pid(id) else { return };
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        // An error means that the program has been reaped.
        while let Ok(None) = waitid(WaitId::Pid(pid), options) {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }
}

#[cfg(not(unix))]
mod system {
    use std::io;
    use std::process::Command;

    /// Has no effect: there are no process groups.
    pub(crate) fn in_own_group(command: &mut Command) -> &mut Command {
        command
    }

    /// Has no effect: the caller ends the program itself.
    pub fn kill(_id: u32) {}

    /// Always fails: there are no signals.
    pub fn terminate(_id: u32) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Never returns: the exit of a program can't be seen without reaping it.
    pub async fn exited(_id: u32) {
        std::future::pending().await
    }
}
