//! `kube-lockstep metrics-server`.

#[cfg(feature = "clusters")]
mod serve;

use std::num::NonZero;
use std::path::PathBuf;

use super::{Format, Source};
use crate::engine::options::HostPort;

#[cfg(feature = "clusters")]
pub(super) use self::serve::run;

const HELP: &str = "\
It ends, and removes all that it has made, with Ctrl-C or SIGTERM; after a kill -9 a guard does. If
the machine is lost, the next one removes what is left, or --remove does.

Exit codes:
  0    it was served until it was ended, and all of it is removed
  2    a wrong command line, an invalid scenario, or a metrics API that is somebody else's
  3    it can't be served, or not all of it could be removed";

/// The arguments.
#[derive(clap::Args, Debug)]
#[command(after_help = HELP)]
pub(super) struct Args {
    /// A scenario (a file, or the id of a fixture), and the namespace whose pods get its metrics
    /// [default: the scenario's own]; may be given several times
    #[arg(long, value_name = "FILE[=NAMESPACE]", required_unless_present = "remove")]
    scenario: Vec<String>,
    /// The kubeconfig [default: what KUBECONFIG names, else ~/.kube/config]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The context, which must be named unless --kubeconfig is: then it is the current one
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// How many times as fast as written the scenarios are played
    #[arg(long, value_name = "N", default_value_t = NonZero::<u32>::MIN)]
    speed: NonZero<u32>,
    /// Where the API server finds this machine, if that can't be found out [default: it is tried]
    #[arg(long, value_name = "HOST[:PORT]")]
    metrics_address: Option<HostPort>,
    /// Put it in the place of metrics APIs that the cluster has, and restore them at the end
    #[arg(long)]
    replace_metrics_api: bool,
    /// Only serve it, at --metrics-address or loopback: nothing is made in the cluster
    #[arg(long, conflicts_with = "replace_metrics_api")]
    no_register: bool,
    /// Remove what one that was killed has left in the cluster, and end
    #[arg(long, conflicts_with_all = ["scenario", "no_register", "replace_metrics_api"])]
    remove: bool,
    /// How it tells of queries
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    #[command(flatten)]
    source: Source,
}

/// Nothing here can reach a cluster.
#[cfg(not(feature = "clusters"))]
pub(super) fn run(_: &Args) -> anyhow::Result<u8> {
    Err(super::failure::Failure::without_clusters("`kube-lockstep metrics-server`").into())
}
