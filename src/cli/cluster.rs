//! `kube-lockstep cluster`: a real control plane for people's own use.
//!
//! The one who starts it waits until it is ready, and leaves it to a process of its own, which ends
//! it when it is asked to. Each cluster has a folder: who holds its lock runs the cluster.

use std::collections::BTreeSet;
use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Seek, Write as _};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::failure::Failure;
use super::given::{self, OfContext};
use super::interrupt;
use super::run::time_limit;
use super::{OfRelease, TellPreparing, exit, show};
use crate::engine::embedded::{self, Options, Running};
use crate::engine::upstream::build;
use crate::model::rules::Release;
use crate::model::time::Span;

/// The control plane that is meant where none is named.
const DEFAULT: &str = "default";

/// How often it is looked whether something has come about.
const GLANCE: Duration = Duration::from_millis(50);

/// How long a cluster may take to end.
const END_LIMIT: Duration = Duration::from_secs(20);

/// How long somebody may only be looking whether a cluster runs, or put away what is left of it.
const PATIENCE: Duration = Duration::from_secs(2);

/// Removes all of a cluster when its input ends: when its owner is gone, however that came about.
const GUARD: &str = r#"cat >/dev/null; rm -rf -- "$@""#;

/// The arguments.
#[derive(clap::Args, Debug)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command_,
}

#[derive(clap::Subcommand, Debug)]
enum Command_ {
    /// Start a control plane: etcd, kube-apiserver and kube-controller-manager of a release
    ///
    /// It is built on first use, which takes minutes and needs Go and its module proxy. It listens
    /// on loopback only, has no nodes (no pod ever runs), and goes on until `cluster stop`.
    Start(StartArgs),
    /// Stop a control plane, and remove all of it
    Stop(Named),
    /// Print where the kubeconfig of a running control plane is
    ///
    /// It is an administrator's. --driver has that of a user who may do what playing scenarios
    /// takes (`run --engine kubeconfig`), and nothing else.
    Kubeconfig(KubeconfigArgs),
    /// List the control planes that run
    List,
    /// Remove from somebody's cluster what runs there have left that were killed
    ///
    /// Namespaces of scenarios with all that is in them, and the metrics API; one that it had
    /// replaced is restored. What belongs to a run that lives is left.
    Clean(OfContext),
}

#[derive(clap::Args, Debug)]
struct Named {
    /// Which one: several can run at once
    #[arg(long, default_value = DEFAULT, value_parser = name)]
    name: String,
}

#[derive(clap::Args, Debug)]
struct KubeconfigArgs {
    #[command(flatten)]
    named: Named,
    /// That of a user with no more rights than playing scenarios takes
    #[arg(long)]
    driver: bool,
}

#[derive(clap::Args, Debug)]
struct StartArgs {
    #[command(flatten)]
    named: Named,
    #[command(flatten)]
    release: OfRelease,
    /// The sync period of the HPA controller: kube-controller-manager's
    /// --horizontal-pod-autoscaler-sync-period [default: 15s]
    #[arg(long, value_name = "DURATION", value_parser = period)]
    sync_period: Option<Span>,
    /// A feature gate of both programs; may be given several times
    #[arg(long, value_name = "NAME=true|false", value_parser = gate)]
    feature_gate: Vec<(String, bool)>,
    /// Leave out upstream's HPA controller: another one is to take its place
    #[arg(long)]
    without_hpa_controller: bool,
    /// One more argument of the kube-apiserver, for instance enable-aggregator-routing=true; may be
    /// given several times
    #[arg(long, value_name = "NAME=VALUE", value_parser = argument)]
    api_server_arg: Vec<String>,
    /// Stay in the foreground, and end it with Ctrl-C
    #[arg(long)]
    foreground: bool,
}

fn name(text: &str) -> Result<String, String> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    match !text.is_empty() && text.len() <= 40 && text.chars().all(plain) {
        true => Ok(text.to_owned()),
        false => Err("a name has lower-case letters, digits and `-`, at most 40".to_owned()),
    }
}

fn period(text: &str) -> Result<Span, String> {
    let nanos = i64::try_from(time_limit(text)?.as_nanos());
    nanos.map(Span).map_err(|error| error.to_string())
}

fn gate(text: &str) -> Result<(String, bool), String> {
    let (name, value) = text.split_once('=').ok_or("it is NAME=true or NAME=false")?;
    let value = value.parse().map_err(|_| format!("{value:?} is neither true nor false"))?;
    Ok((name.to_owned(), value))
}

fn argument(text: &str) -> Result<String, String> {
    let plain = text.trim_start_matches("--");
    let name = plain.split('=').next().unwrap_or_default();
    match !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-') {
        true => Ok(plain.to_owned()),
        false => Err("it is NAME=VALUE, as kube-apiserver knows it".to_owned()),
    }
}

pub(super) fn run(args: &Args) -> anyhow::Result<u8> {
    match &args.command {
        Command_::Start(args) => start(args),
        Command_::Stop(args) => stop(args),
        Command_::Kubeconfig(args) => kubeconfig(args),
        Command_::List => list(),
        Command_::Clean(of) => given::clean(of),
    }
}

/// The folder of a cluster.
struct Place {
    name: String,
    folder: PathBuf,
}

impl Place {
    fn of(name: &str) -> Result<Place, Failure> {
        let folder = build::cache_folder()?.join("clusters").join(name);
        Ok(Place { name: name.to_owned(), folder })
    }

    /// The command that ends it.
    fn stop(&self) -> String {
        match &*self.name {
            DEFAULT => "kube-lockstep cluster stop".to_owned(),
            name => format!("kube-lockstep cluster stop --name {name}"),
        }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// An administrator's.
    fn kubeconfig(&self) -> PathBuf {
        self.file("kubeconfig")
    }

    /// That of the user who plays scenarios.
    fn drivers(&self) -> PathBuf {
        self.file("driver")
    }

    /// Beside the folder, since who takes it must not be the one who removes it.
    fn lock_file(&self) -> PathBuf {
        self.folder.with_extension("lock")
    }

    /// Takes it; nothing if it runs already.
    fn take(&self) -> io::Result<Option<File>> {
        if let Some(parent) = self.folder.parent() {
            fs::create_dir_all(parent)?;
        }
        loop {
            let file = File::create(self.lock_file())?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(error)) => return Err(error),
            }
            // Whoever had it before may have removed it meanwhile.
            let there = fs::metadata(self.lock_file()).map(|it| it.ino()).ok();
            if there == Some(file.metadata()?.ino()) {
                return Ok(Some(file));
            }
        }
    }

    /// The same to run it: nothing if somebody has it for longer than a moment.
    fn take_soon(&self) -> io::Result<Option<File>> {
        let limit = Instant::now() + PATIENCE;
        loop {
            match self.take()? {
                None if Instant::now() < limit => std::thread::sleep(GLANCE),
                taken => return Ok(taken),
            }
        }
    }

    /// Looks without leaving anything.
    fn runs(&self) -> io::Result<bool> {
        let file = match File::open(self.lock_file()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            opened => opened?,
        };
        match file.try_lock_shared() {
            Ok(()) => Ok(false),
            Err(TryLockError::WouldBlock) => Ok(true),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// All that there may be of it, last what tells that there is something.
    fn all(&self) -> [PathBuf; 3] {
        [self.folder.clone(), log_file(self), self.lock_file()]
    }

    /// Removes what is left of one that does not run.
    fn clear(&self, _lock: &File) -> io::Result<()> {
        match fs::remove_dir_all(&self.folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// The same, and nothing is left of its name.
    fn remove(&self, lock: &File) -> io::Result<()> {
        self.clear(lock)?;
        let [_, files @ ..] = self.all();
        for file in files {
            match fs::remove_file(file) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    /// The same unless somebody runs it.
    fn remove_if_free(&self) -> io::Result<()> {
        self.take()?.map_or(Ok(()), |lock| self.remove(&lock))
    }

    fn not_running(&self) -> Failure {
        let what = format!("no control plane `{}` is running", self.name);
        Failure::nothing(what).hint("`kube-lockstep cluster start` starts one")
    }
}

/// Who removes all of a cluster that this process runs, when that ends. Until it has done so it
/// holds the lock, too: nobody starts another one of that name meanwhile.
struct Guard(Child);

impl Guard {
    fn new(place: &Place, lock: &File) -> io::Result<Guard> {
        let child = Command::new("sh")
            .args(["-c", GUARD, "guard"])
            .args(place.all())
            .stdin(Stdio::piped())
            // Nothing is written to it.
            .stdout(lock.try_clone()?)
            .stderr(Stdio::null())
            // Ctrl-C in a terminal is not for it.
            .process_group(0)
            .spawn()?;
        Ok(Guard(child))
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // It is waited for without its input.
        let _ = self.0.wait();
    }
}

fn start(args: &StartArgs) -> anyhow::Result<u8> {
    let place = Place::of(&args.named.name)?;
    if place.runs()? {
        let what = format!("the control plane `{}` is running already", place.name);
        let hint = format!("--name starts another one; `{}` ends it", place.stop());
        return Err(Failure::usage(what).hint(hint).into());
    }
    let program = program(args.release.release)?;
    if args.foreground {
        return in_foreground(&place, &program, args);
    }
    // Its own name's is left to the one who runs it.
    sweep_but(Some(&place.name), false)?;
    let begin = Instant::now();
    let interrupted = Arc::new(AtomicBool::new(false));
    interrupt::ends(&interrupted)?;
    let mut log = log(&place)?;
    let mut child = Command::new(std::env::current_exe()?)
        .args(std::env::args_os().skip(1))
        .arg("--foreground")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log.try_clone()?)
        // Ctrl-C in this terminal is not meant for it.
        .process_group(0)
        .spawn()?;
    while !place.kubeconfig().exists() {
        if interrupted.load(Ordering::Relaxed) {
            if let Some(pid) = Pid::from_raw(child.id().try_into()?) {
                kill_process(pid, Signal::TERM)?;
            }
            child.wait()?;
            place.remove_if_free()?;
            let what = format!("interrupted: the control plane `{}` is not started", place.name);
            return Err(Failure::engine(what).into());
        }
        if let Some(status) = child.try_wait()? {
            place.remove_if_free()?;
            // Its file is gone by now, with all that there was of the cluster.
            let mut said = Vec::new();
            log.rewind()?;
            log.read_to_end(&mut said)?;
            let said = String::from_utf8_lossy(&said);
            let what = format!("the control plane did not start ({status})\n{}", said.trim_end());
            return Err(Failure::engine(what).into());
        }
        std::thread::sleep(GLANCE);
    }
    show(&format!(
        "Kubernetes {} is ready after {:.1} s.\n\n  export KUBECONFIG={}\n\n\
         `{}` ends it.\n",
        args.release.release,
        begin.elapsed().as_secs_f64(),
        place.kubeconfig().display(),
        place.stop()
    ))?;
    Ok(exit::CONFORMS)
}

/// What it says while it starts, beside its folder.
fn log_file(place: &Place) -> PathBuf {
    place.folder.with_extension("log")
}

fn log(place: &Place) -> io::Result<File> {
    if let Some(parent) = place.folder.parent() {
        fs::create_dir_all(parent)?;
    }
    File::options().read(true).write(true).create(true).truncate(true).open(log_file(place))
}

fn program(release: Release) -> Result<PathBuf, Failure> {
    let stop = AtomicBool::new(false);
    let mut telling = TellPreparing::default();
    Ok(embedded::ensure(release, &stop, &mut |what, done| telling.tell(what, done))?)
}

/// Runs it until a signal comes.
fn in_foreground(place: &Place, program: &Path, args: &StartArgs) -> anyhow::Result<u8> {
    let Some(lock) = place.take_soon()? else {
        return Err(Failure::usage(format!("`{}` is running already", place.name)).into());
    };
    place.clear(&lock)?;
    let _guard = Guard::new(place, &lock)?;
    let ended = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, ended.clone())?;
    }
    // It outlives the terminal that it was started in.
    signal_hook::flag::register(SIGHUP, Arc::new(AtomicBool::new(false)))?;
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
    fs::create_dir_all(&place.folder)?;
    fs::set_permissions(&place.folder, fs::Permissions::from_mode(0o700))?;
    fs::write(place.file("pid"), std::process::id().to_string())?;
    fs::write(place.file("server"), running.server())?;
    fs::write(place.file("release"), args.release.release.to_string())?;
    secret(&place.drivers(), &running.driver_kubeconfig()?)?;
    // The last one: it is waited for.
    secret(&place.kubeconfig(), &running.admin_kubeconfig()?)?;
    // Nobody need read it.
    let _ = show(&format!(
        "# Kubernetes {} is ready; Ctrl-C ends it.\nexport KUBECONFIG={}\n",
        args.release.release,
        place.kubeconfig().display()
    ));
    let mut broken = None;
    while !ended.load(Ordering::Relaxed) && broken.is_none() {
        std::thread::sleep(GLANCE);
        broken = running.check().err();
    }
    running.stop();
    match broken {
        Some(error) => Err(Failure::from(error).into()),
        None => Ok(exit::CONFORMS),
    }
}

/// Writes a file for the owner's eyes only, all at once: who waits for it finds it whole.
fn secret(path: &Path, text: &str) -> io::Result<()> {
    let part = path.with_extension("part");
    let mut file =
        fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&part)?;
    io::Write::write_all(&mut file, text.as_bytes())?;
    fs::rename(part, path)
}

fn stop(args: &Named) -> anyhow::Result<u8> {
    let place = Place::of(&args.name)?;
    if let Some(lock) = place.take()? {
        place.remove(&lock)?;
        return Err(place.not_running().into());
    }
    let pid = fs::read_to_string(place.file("pid")).ok().and_then(|pid| pid.parse().ok());
    let Some(pid) = pid.and_then(Pid::from_raw) else {
        let what = format!("the control plane `{}` is only starting", place.name);
        return Err(Failure::engine(what).hint("try again in a moment").into());
    };
    match kill_process(pid, Signal::TERM) {
        // It was killed, and its guard is about to remove what it has left.
        Err(Errno::SRCH) => {}
        sent => sent?,
    }
    let begin = Instant::now();
    while place.runs()? {
        if begin.elapsed() > END_LIMIT {
            let what = format!("the control plane `{}` (process {pid:?}) does not end", place.name);
            return Err(Failure::engine(what).into());
        }
        std::thread::sleep(GLANCE);
    }
    show(&format!("The control plane `{}` is stopped.\n", place.name))?;
    Ok(exit::CONFORMS)
}

fn kubeconfig(args: &KubeconfigArgs) -> anyhow::Result<u8> {
    let place = Place::of(&args.named.name)?;
    if !place.runs()? || !place.kubeconfig().exists() {
        return Err(place.not_running().into());
    }
    let path = if args.driver { place.drivers() } else { place.kubeconfig() };
    show(&format!("{}\n", path.display()))?;
    Ok(exit::CONFORMS)
}

/// All that there is something of, whether it runs or not.
fn places() -> Result<Vec<Place>, Failure> {
    let folder = build::cache_folder()?.join("clusters");
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let name = |path: PathBuf| Some(path.file_stem()?.to_string_lossy().into_owned());
    let names: BTreeSet<String> = entries.filter_map(|entry| name(entry.path())).collect();
    names.iter().map(|name| Place::of(name)).collect()
}

/// Removes what is left of those whose owner was killed, or only tells what that is.
pub(super) fn sweep(only_tell: bool) -> anyhow::Result<Vec<PathBuf>> {
    sweep_but(None, only_tell)
}

/// The same of all but one.
fn sweep_but(own: Option<&str>, only_tell: bool) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for place in places()?.into_iter().filter(|place| own != Some(&*place.name)) {
        let Some(lock) = place.take()? else { continue };
        if place.folder.exists() {
            found.push(place.folder.clone());
        }
        if !only_tell {
            place.remove(&lock)?;
        }
    }
    Ok(found)
}

fn list() -> anyhow::Result<u8> {
    let mut text = String::new();
    for place in places()? {
        let name = &place.name;
        if place.runs()? && place.kubeconfig().exists() {
            let read = |name: &str| fs::read_to_string(place.file(name)).unwrap_or_default();
            text.push_str(&format!("{name:<20} {:<6} {}\n", read("release"), read("server")));
        }
    }
    if text.is_empty() {
        // Nothing on standard output: scripts read the list from there.
        let _ = writeln!(anstream::stderr(), "no control plane is running");
    }
    show(&text)?;
    Ok(exit::CONFORMS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place() -> (tempfile::TempDir, Place) {
        let folder = tempfile::tempdir().expect("a folder");
        let place = Place { name: "mine".to_owned(), folder: folder.path().join("mine") };
        (folder, place)
    }

    #[test]
    fn who_looks_leaves_nothing() {
        let (_folder, place) = place();
        assert!(!place.runs().expect("it can be seen") && !place.lock_file().exists());
        let lock = place.take().expect("a lock").expect("nobody has it");
        assert!(place.runs().expect("it can be seen"));
        place.remove(&lock).expect("it is removed");
        assert!(!place.runs().expect("it can be seen") && !place.lock_file().exists());
    }

    #[test]
    fn it_runs_until_its_guard_has_removed_all_of_it() {
        let (folder, place) = place();
        let lock = place.take().expect("a lock").expect("nobody has it");
        let guard = Guard::new(&place, &lock).expect("a shell");
        fs::create_dir(&place.folder).expect("a folder");
        fs::write(place.kubeconfig(), "").expect("a kubeconfig");
        drop(log(&place).expect("a log"));
        drop(lock);
        assert!(place.runs().expect("it can be seen"), "the guard has the lock");
        drop(guard);
        let left = fs::read_dir(folder.path()).expect("a folder").count();
        assert_eq!(left, 0);
    }

    #[test]
    fn a_sync_period_is_more_than_nothing() {
        assert_eq!(period("500ms"), Ok(Span::from_millis(500)));
        for wrong in ["0s", "-1s"] {
            assert_eq!(period(wrong), Err("it must be more than 0".to_owned()), "{wrong}");
        }
    }
}
