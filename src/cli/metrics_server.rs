//! `kube-lockstep metrics-server`.

#[cfg(feature = "clusters")]
mod serve;

use std::num::NonZero;
use std::path::PathBuf;

use super::args::{Format, Source};
use kube_lockstep_engines::options::HostPort;

#[cfg(feature = "clusters")]
pub(super) use self::serve::run;

const HELP: &str = "\
On Ctrl-C or SIGTERM, the server removes all objects that it created, and exits. After kill -9, a
guard process removes them. If the machine is lost, the next start or --remove removes leftovers.

Exit codes:
  0    the server was stopped, and all its objects are removed
  2    an invalid command line, an invalid scenario, or an existing metrics API
  3    the server can't run, or some objects could not be removed";

/// The arguments.
#[derive(clap::Args, Debug)]
#[command(after_help = HELP)]
pub(super) struct Args {
    /// A scenario (a file or the id of a fixture) and the namespace whose pods get its metrics
    /// [default: the scenario's namespace]; can be repeated
    #[arg(long, value_name = "FILE[=NAMESPACE]", required_unless_present = "remove")]
    scenario: Vec<String>,
    /// The kubeconfig [default: KUBECONFIG, or ~/.kube/config]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The kubeconfig context. Required, unless --kubeconfig is given: then it defaults to the
    /// current context
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// Divide each duration of the scenarios by N
    #[arg(long, value_name = "N", default_value_t = NonZero::<u32>::MIN)]
    speed: NonZero<u32>,
    /// The address of this machine as seen from the API server [default: detected]
    #[arg(long, value_name = "HOST[:PORT]")]
    metrics_address: Option<HostPort>,
    /// Replace existing metrics APIs of the cluster, and restore them at the end
    #[arg(long)]
    replace_metrics_api: bool,
    /// Only serve, at --metrics-address or loopback, without creating objects in the cluster
    #[arg(long, conflicts_with = "replace_metrics_api")]
    no_register: bool,
    /// Remove the leftovers of a killed metrics server from the cluster, and exit
    #[arg(long, conflicts_with_all = ["scenario", "no_register", "replace_metrics_api"])]
    remove: bool,
    /// The output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    #[command(flatten)]
    source: Source,
}

/// Reports that this build can't connect to clusters.
#[cfg(not(feature = "clusters"))]
pub(super) fn run(_: &Args) -> anyhow::Result<u8> {
    Err(super::failure::Failure::without_clusters("`kube-lockstep metrics-server`").into())
}
