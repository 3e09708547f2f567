//! `kube-lockstep cluster start`: a background process that runs a control plane until it is
//! stopped.

use std::fs::{self, File};
use std::io::{self, Read, Seek};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use tokio_util::sync::CancellationToken;

use super::folder::{ClusterFolder, POLL_INTERVAL, log_file, sweep_except};
use super::{DEFAULT, StartArgs};
use crate::cli::failure::Failure;
use crate::cli::output::{PreparationLog, show};
use crate::cli::{exit, interrupt};
use kube_lockstep_clusters::embedded;
use kube_lockstep_clusters::embedded::{Options, Running};
use kube_lockstep_engines::guard::cluster::REMOVE_FILES;
use kube_lockstep_engines::guard::shell;
use kube_lockstep_engines::process_group;

/// The maximum time for which another process may hold the lock to check it or to clean up.
const LOCK_TIMEOUT: Duration = Duration::from_secs(2);

/// The process that removes the files of a cluster when this process ends. Until then, it also
/// holds the lock, so that no other cluster with the same name can start.
struct Guard(Child);

impl Guard {
    fn new(cluster: &ClusterFolder, lock: &File) -> io::Result<Guard> {
        let mut shell = shell(REMOVE_FILES, cluster.all());
        // The process keeps the lock file open, but writes nothing to it.
        Ok(Guard(shell.stdout(lock.try_clone()?).spawn()?))
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // Its standard input is closed before the wait.
        let _ = self.0.wait();
    }
}

impl ClusterFolder {
    /// The command that stops the control plane.
    fn stop(&self) -> String {
        match &*self.name {
            DEFAULT => "kube-lockstep cluster stop".to_owned(),
            name => format!("kube-lockstep cluster stop --name {name}"),
        }
    }

    /// Takes the lock to run the control plane. Returns `None` if another process keeps it.
    fn lock_with_timeout(&self) -> io::Result<Option<File>> {
        let limit = Instant::now() + LOCK_TIMEOUT;
        loop {
            match self.try_lock()? {
                None if Instant::now() < limit => std::thread::sleep(POLL_INTERVAL),
                taken => return Ok(taken),
            }
        }
    }

    /// Removes all remaining files, unless the control plane is running.
    fn remove_if_free(&self) -> io::Result<()> {
        self.try_lock()?.map_or(Ok(()), |lock| self.remove(&lock))
    }
}

pub(super) fn start(args: &StartArgs) -> anyhow::Result<u8> {
    let cluster = ClusterFolder::new(&args.named.name)?;
    if cluster.is_running()? {
        let what = format!("the control plane `{}` is already running", cluster.name);
        let hint = format!("start another one with --name, or stop it with `{}`", cluster.stop());
        return Err(Failure::usage(what).hint(hint).into());
    }
    let program = program(args)?;
    if args.foreground {
        return in_foreground(&cluster, &program, args);
    }
    // The process that runs the cluster clears its own folder.
    sweep_except(Some(&cluster.name), false)?;
    let begin = Instant::now();
    let interrupted = CancellationToken::new();
    interrupt::stop_on_signal(&interrupted)?;
    let mut log = log(&cluster)?;
    let mut child = Command::new(std::env::current_exe()?)
        .args(std::env::args_os().skip(1))
        .args(["--foreground", "--detached"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log.try_clone()?)
        // Ctrl-C in this terminal must not stop the control plane.
        .process_group(0)
        .spawn()?;
    while !cluster.kubeconfig().exists() {
        if interrupted.is_cancelled() {
            process_group::terminate(child.id())?;
            child.wait()?;
            cluster.remove_if_free()?;
            let what = format!("interrupted: the control plane `{}` was not started", cluster.name);
            return Err(Failure::engine(what).into());
        }
        if let Some(status) = child.try_wait()? {
            cluster.remove_if_free()?;
            // The log file is already removed.
            let mut output = Vec::new();
            log.rewind()?;
            log.read_to_end(&mut output)?;
            let output = String::from_utf8_lossy(&output);
            let what = format!("the control plane did not start ({status})\n{}", output.trim_end());
            return Err(Failure::engine(what).into());
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    show(&format!(
        "Kubernetes {} is ready after {:.1} s.\n\n  export KUBECONFIG={}\n\nStop it with `{}`.\n",
        args.release.release,
        begin.elapsed().as_secs_f64(),
        cluster.kubeconfig().display(),
        cluster.stop()
    ))?;
    Ok(exit::CONFORMS)
}

fn log(cluster: &ClusterFolder) -> io::Result<File> {
    if let Some(parent) = cluster.folder.parent() {
        fs::create_dir_all(parent)?;
    }
    File::options().read(true).write(true).create(true).truncate(true).open(log_file(cluster))
}

fn program(args: &StartArgs) -> Result<PathBuf, Failure> {
    let builds = args.build.options(&CancellationToken::new());
    let (mut preparing, release) = (PreparationLog::default(), args.release.release);
    Ok(embedded::ensure(release, builds, &mut |it| preparing.log(&it))?)
}

/// Runs the cluster until a signal arrives.
fn in_foreground(cluster: &ClusterFolder, program: &Path, args: &StartArgs) -> anyhow::Result<u8> {
    let Some(lock) = cluster.lock_with_timeout()? else {
        return Err(Failure::usage(format!("`{}` is already running", cluster.name)).into());
    };
    cluster.clear(&lock)?;
    let _guard = Guard::new(cluster, &lock)?;
    let ended = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, ended.clone())?;
    }
    // A control plane in the background outlives the terminal of its `start`.
    let hung_up = if args.detached { Arc::default() } else { ended.clone() };
    signal_hook::flag::register(SIGHUP, hung_up)?;
    let mut options = Options {
        gates: args.feature_gate.iter().cloned().collect(),
        without_hpa_controller: args.without_hpa_controller,
        api_server: args.api_server_arg.clone(),
        ..Options::default()
    };
    if let Some(period) = args.sync_period {
        options.flags.sync_period = period;
    }
    let mut running = Running::start(program, &options).map_err(Failure::from)?;
    fs::create_dir_all(&cluster.folder)?;
    fs::set_permissions(&cluster.folder, fs::Permissions::from_mode(0o700))?;
    fs::write(cluster.file("pid"), std::process::id().to_string())?;
    fs::write(cluster.file("server"), running.server())?;
    fs::write(cluster.file("release"), args.release.release.to_string())?;
    secret(&cluster.driver_kubeconfig(), &running.driver_kubeconfig()?)?;
    // Written last, because `start` waits for it.
    secret(&cluster.kubeconfig(), &running.admin_kubeconfig()?)?;
    // Output that can't be written is ignored.
    let _ = show(&format!(
        "# Kubernetes {} is ready; press Ctrl-C to stop it.\nexport KUBECONFIG={}\n",
        args.release.release,
        cluster.kubeconfig().display()
    ));
    let mut broken = None;
    while !ended.load(Ordering::Relaxed) && broken.is_none() {
        std::thread::sleep(POLL_INTERVAL);
        broken = running.check().err();
    }
    running.stop();
    match broken {
        Some(error) => Err(Failure::from(error).into()),
        None => Ok(exit::CONFORMS),
    }
}

/// Writes a file that only the owner can read, atomically, for processes that wait for it.
fn secret(path: &Path, text: &str) -> io::Result<()> {
    let part = path.with_extension("part");
    let mut file =
        fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&part)?;
    io::Write::write_all(&mut file, text.as_bytes())?;
    fs::rename(part, path)
}

#[cfg(test)]
mod tests {
    use super::super::folder::tests::cluster;
    use super::*;

    #[test]
    fn the_control_plane_runs_until_its_guard_has_removed_its_files() {
        let (folder, cluster) = cluster();
        let lock = cluster.try_lock().expect("a lock").expect("a free lock");
        let guard = Guard::new(&cluster, &lock).expect("a shell");
        fs::create_dir(&cluster.folder).expect("a folder");
        fs::write(cluster.kubeconfig(), "").expect("a kubeconfig");
        drop(log(&cluster).expect("a log"));
        drop(lock);
        assert!(cluster.is_running().expect("a state"), "the guard has the lock");
        drop(guard);
        let left = fs::read_dir(folder.path()).expect("a folder").count();
        assert_eq!(left, 0);
    }
}
