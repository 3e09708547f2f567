//! `kube-lockstep cluster`: control planes for the user's own use.
//!
//! `start` waits until the control plane is ready, and leaves it to a background process that stops
//! it on request. Each cluster has a folder; the process that holds its lock runs the cluster.

mod folder;
#[cfg(feature = "clusters")]
mod start;

use std::fs;
use std::time::{Duration, Instant};

use self::folder::{ClusterFolder, POLL_INTERVAL, folders};
use super::args::{BuildArgs, OneRelease, time_limit};
use super::existing::{self, ContextArgs};
use super::exit;
use super::failure::Failure;
use super::output::{show, tell};
use kube_autoscaler_models::time::Span;
use kube_lockstep_engines::process_group;

pub(super) use self::folder::sweep;

/// The default name.
const DEFAULT: &str = "default";

/// The timeout for stopping a cluster.
const END_LIMIT: Duration = Duration::from_secs(20);

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
    /// The program is built on first use, which takes minutes and requires Go and a Go module
    /// proxy. The control plane listens on loopback only, has no nodes (pods never run), and runs
    /// until `cluster stop`.
    Start(StartArgs),
    /// Stop a control plane and remove its files
    Stop(Named),
    /// Print the path of the kubeconfig of a running control plane
    ///
    /// The kubeconfig has administrator rights. With --driver, it has only the permissions that
    /// `run --engine kubeconfig` requires.
    Kubeconfig(KubeconfigArgs),
    /// List the running control planes
    List,
    /// Remove the leftovers of killed runs from an existing cluster
    ///
    /// Removes the namespaces of scenarios and the metrics API, and restores a metrics API that was
    /// replaced. Objects of live runs are kept.
    Clean(ContextArgs),
}

#[derive(clap::Args, Debug)]
struct Named {
    /// The name of the control plane: several can run at once
    #[arg(long, default_value = DEFAULT, value_parser = name)]
    name: String,
}

#[derive(clap::Args, Debug)]
struct KubeconfigArgs {
    #[command(flatten)]
    named: Named,
    /// The kubeconfig of a user with only the permissions to run scenarios
    #[arg(long)]
    driver: bool,
}

#[derive(clap::Args, Debug)]
struct StartArgs {
    #[command(flatten)]
    named: Named,
    #[command(flatten)]
    release: OneRelease,
    /// The sync period of the HPA controller: kube-controller-manager's
    /// --horizontal-pod-autoscaler-sync-period [default: 15s]
    #[arg(long, value_name = "DURATION", value_parser = period)]
    sync_period: Option<Span>,
    /// A feature gate of kube-apiserver and kube-controller-manager; can be repeated
    #[arg(long, value_name = "NAME=true|false", value_parser = gate)]
    feature_gate: Vec<(String, bool)>,
    /// Start without upstream's HPA controller, to run another one instead
    #[arg(long)]
    without_hpa_controller: bool,
    /// An additional argument of kube-apiserver, for example enable-aggregator-routing=true; can be
    /// repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = argument)]
    api_server_arg: Vec<String>,
    #[command(flatten)]
    build: BuildArgs,
    /// Stay in the foreground until Ctrl-C
    #[arg(long)]
    foreground: bool,
    /// Keep running when the terminal closes: set by `start` for its process in the background
    #[arg(long, hide = true, requires = "foreground")]
    detached: bool,
}

fn name(text: &str) -> Result<String, String> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    match !text.is_empty() && text.len() <= 40 && text.chars().all(plain) {
        true => Ok(text.to_owned()),
        false => Err("a name consists of at most 40 lowercase letters, digits and `-`".to_owned()),
    }
}

fn period(text: &str) -> Result<Span, String> {
    let nanos = i64::try_from(time_limit(text)?.as_nanos());
    nanos.map(Span).map_err(|error| error.to_string())
}

fn gate(text: &str) -> Result<(String, bool), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=true or NAME=false")?;
    let value = value.parse().map_err(|_| format!("{value:?} is neither true nor false"))?;
    Ok((name.to_owned(), value))
}

fn argument(text: &str) -> Result<String, String> {
    let plain = text.trim_start_matches("--");
    let name = plain.split('=').next().unwrap_or_default();
    match !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-') {
        true => Ok(plain.to_owned()),
        false => Err("expected NAME=VALUE, an argument of kube-apiserver".to_owned()),
    }
}

pub(super) fn run(args: &Args) -> anyhow::Result<u8> {
    if !cfg!(unix) {
        let what = format!("`kube-lockstep cluster` requires {}", process_group::SYSTEMS);
        return Err(Failure::engine(what).into());
    }
    match &args.command {
        Command_::Start(args) => start(args),
        Command_::Stop(args) => stop(args),
        Command_::Kubeconfig(args) => kubeconfig(args),
        Command_::List => list(),
        Command_::Clean(of) => existing::clean(of),
    }
}

#[cfg(feature = "clusters")]
fn start(args: &StartArgs) -> anyhow::Result<u8> {
    start::start(args)
}

#[cfg(not(feature = "clusters"))]
fn start(_: &StartArgs) -> anyhow::Result<u8> {
    Err(Failure::without_clusters("`kube-lockstep cluster start`").into())
}

fn stop(args: &Named) -> anyhow::Result<u8> {
    let cluster = ClusterFolder::new(&args.name)?;
    if let Some(lock) = cluster.try_lock()? {
        cluster.remove(&lock)?;
        return Err(cluster.not_running().into());
    }
    let pid = fs::read_to_string(cluster.file("pid")).ok().and_then(|pid| pid.parse().ok());
    let Some(pid) = pid else {
        let what = format!("the control plane `{}` is still starting", cluster.name);
        return Err(Failure::engine(what).hint("try again in a moment").into());
    };
    // If the process does not exist, it was killed, and its guard is about to clean up.
    process_group::terminate(pid)?;
    let begin = Instant::now();
    while cluster.is_running()? {
        if begin.elapsed() > END_LIMIT {
            let what =
                format!("the control plane `{}` (process {pid}) does not stop", cluster.name);
            return Err(Failure::engine(what).into());
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    show(&format!("The control plane `{}` is stopped.\n", cluster.name))?;
    Ok(exit::CONFORMS)
}

fn kubeconfig(args: &KubeconfigArgs) -> anyhow::Result<u8> {
    let cluster = ClusterFolder::new(&args.named.name)?;
    if !cluster.is_running()? || !cluster.kubeconfig().exists() {
        return Err(cluster.not_running().into());
    }
    let path = if args.driver { cluster.driver_kubeconfig() } else { cluster.kubeconfig() };
    show(&format!("{}\n", path.display()))?;
    Ok(exit::CONFORMS)
}

fn list() -> anyhow::Result<u8> {
    let mut text = String::new();
    for cluster in folders()? {
        let name = &cluster.name;
        if cluster.is_running()? && cluster.kubeconfig().exists() {
            let read = |name: &str| fs::read_to_string(cluster.file(name)).unwrap_or_default();
            text.push_str(&format!("{name:<20} {:<6} {}\n", read("release"), read("server")));
        }
    }
    if text.is_empty() {
        // Standard output only contains the list, which scripts read.
        tell("no control plane is running\n");
    }
    show(&text)?;
    Ok(exit::CONFORMS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sync_period_is_positive() {
        assert_eq!(period("500ms"), Ok(Span::from_millis(500)));
        for wrong in ["0s", "-1s"] {
            assert_eq!(
                period(wrong),
                Err("the value must be greater than 0".to_owned()),
                "{wrong}"
            );
        }
    }
}
