//! `kube-lockstep import`.

#[cfg(feature = "prometheus")]
mod answer;
#[cfg(feature = "prometheus")]
mod connection;
#[cfg(feature = "prometheus")]
mod containers;
#[cfg(feature = "prometheus")]
mod prometheus;
#[cfg(feature = "prometheus")]
mod times;
#[cfg(feature = "prometheus")]
mod unreachable;

use std::path::PathBuf;
use std::time::Duration;

use clap::Subcommand;

use super::args::time_limit;

const HELP: &str = "\
Times:
  2025-05-06T09:00:00+02:00       RFC 3339
  2025-05-06T09:00[Europe/Berlin] with the name of a time zone
  '2025-05-06 09:00', 2025-05-06  in --time-zone
  '2h ago', '1 week ago', now     relative to now
  1746522000                      Unix time in seconds

The file is a saved Prometheus response, for `--load NAME=total:prometheus(FILE,sum)` and for
`{prometheus: FILE}` in a scenario. An existing file is not changed unless the import succeeds.

Exit codes:
  0    the file is written
  2    an invalid command line, a query that Prometheus rejects, or a result without usable series
  3    Prometheus can't be reached or does not respond, or the file can't be written";

/// The arguments.
#[derive(clap::Args, Debug)]
pub(super) struct Args {
    #[command(subcommand)]
    source: Source,
}

/// The source of the values.
#[derive(Subcommand, Debug)]
enum Source {
    /// Save a Prometheus response to a range query as a load for `predict` and scenarios
    ///
    /// Works with everything that serves the query API of Prometheus, such as Thanos and Mimir. A
    /// long range is queried in parts. Query the rate of a counter, not the counter itself, and
    /// select only the container series, because cAdvisor also exports a series with the sum of
    /// each pod: 'sum(rate(container_cpu_usage_seconds_total{pod=~"web-.*",container!=""}[2m]))'.
    Prometheus(Box<PrometheusArgs>),
}

/// The arguments of `import prometheus`.
#[derive(clap::Args, Debug)]
#[command(after_help = HELP)]
#[cfg_attr(not(feature = "prometheus"), allow(dead_code, reason = "another build reads them"))]
struct PrometheusArgs {
    /// The URL of Prometheus, without /api/v1
    #[arg(long, value_name = "URL")]
    url: String,
    /// The query, in PromQL
    #[arg(long, value_name = "PROMQL")]
    query: String,
    /// The start of the range; see below
    #[arg(long, value_name = "TIME")]
    from: String,
    /// The end of the range
    #[arg(long, value_name = "TIME", default_value = "now")]
    to: String,
    /// The time zone of times without one, for example Europe/Berlin [default: that of this
    /// machine]
    #[arg(long, value_name = "ZONE")]
    time_zone: Option<String>,
    /// The time between two values, in whole seconds
    #[arg(long, value_name = "DURATION", default_value = "15s", value_parser = step)]
    step: Duration,
    /// The label that distinguishes the pods: requires one series for each of its values
    #[arg(long, value_name = "LABEL")]
    by: Option<String>,
    /// The output file
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Replace an existing file
    #[arg(long)]
    force: bool,
    /// The timeout of each request
    #[arg(long, value_name = "DURATION", default_value = "2m", value_parser = time_limit)]
    timeout: Duration,
    #[command(flatten)]
    access: AccessArgs,
}

/// The authentication, and the certificates of TLS.
#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Authentication and TLS")]
#[cfg_attr(not(feature = "prometheus"), allow(dead_code, reason = "another build reads them"))]
struct AccessArgs {
    /// A file with a bearer token
    #[arg(long, value_name = "FILE", conflicts_with = "user")]
    bearer_token_file: Option<PathBuf>,
    /// The user for basic authentication; requires --password-file, or the password in
    /// PROMETHEUS_PASSWORD
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// A file with the password of the user
    #[arg(long, value_name = "FILE", requires = "user")]
    password_file: Option<PathBuf>,
    /// A header of each request, for example X-Scope-OrgID=team-a; can be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    header: Vec<String>,
    /// The certificates (PEM) of the authorities to trust, in addition to those of this machine
    #[arg(long, value_name = "FILE")]
    ca_file: Option<PathBuf>,
    /// A client certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "key_file")]
    cert_file: Option<PathBuf>,
    /// The key of the client certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "cert_file")]
    key_file: Option<PathBuf>,
    /// Accept any certificate of the server
    #[arg(long)]
    insecure_skip_tls_verify: bool,
}

/// Parses a step.
fn step(text: &str) -> Result<Duration, String> {
    let step = time_limit(text)?;
    match step.subsec_nanos() {
        0 => Ok(step),
        _ => Err("the value must be a number of whole seconds".to_owned()),
    }
}

pub(super) fn run(args: &Args) -> anyhow::Result<u8> {
    let Source::Prometheus(args) = &args.source;
    import(args)
}

#[cfg(feature = "prometheus")]
fn import(args: &PrometheusArgs) -> anyhow::Result<u8> {
    Ok(prometheus::run(args)?)
}

/// Reports that this build has no client of Prometheus.
#[cfg(not(feature = "prometheus"))]
fn import(_: &PrometheusArgs) -> anyhow::Result<u8> {
    use kube_lockstep_engines::registry::feature_hint;

    let what = "`kube-lockstep import` requires a build with `--features prometheus`";
    let failure = super::failure::Failure::engine(what);
    let hint = format!(
        "{}; or save the response of /api/v1/query_range with curl",
        feature_hint("prometheus")
    );
    Err(failure.hint(hint).into())
}
