//! The command `kube-lockstep`, with one file per subcommand.
//!
//! Turns command lines into plans, and outcomes into exit codes. [`crate::report`] formats the
//! output, and [`crate::run`] runs plans. `anyhow` is only used here.

mod cluster;
mod completions;
mod diff;
mod doctor;
mod existing;
pub mod exit;
mod explain;
mod failure;
mod fixtures;
mod fuzz;
mod interrupt;
mod list;
mod metrics_server;
mod predict;
mod prune;
mod releases;
mod report;
mod run;
mod schema;
mod upstreams;

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::{CommandFactory, Parser, Subcommand, ValueEnum};

use self::failure::Failure;
use crate::engine::upstream::build;
use crate::engine::upstream::checkout::{Checkout, CheckoutError};
use crate::model::rules::{Release, Releases};
use crate::report::style::{BAD, WARN, paint};
use crate::run::Shard;

/// Runs scenarios of Kubernetes pod autoscalers on a reference model and on the real upstream
/// controller, tick by tick, and explains every difference.
#[derive(Parser, Debug)]
#[command(name = "kube-lockstep", version, about, long_about = None, after_help = exit::HELP)]
#[command(max_term_width = 100, arg_required_else_help = true)]
struct Cli {
    /// When to use colors.
    #[arg(long, global = true, value_enum, default_value_t, value_name = "WHEN")]
    color: Color,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Run scenarios on an engine, in lockstep with the model, and compare
    ///
    /// Without SCENARIO, runs every fixture. Without `--engine`, uses the upstream controller if it
    /// can run here, and recorded traces otherwise. The upstream controller is built on first use,
    /// which takes minutes and requires Go and a Go module proxy. With `--format json`, each line
    /// is an object, and the last line is the summary.
    Run(run::Args),
    /// Predict what an HPA will do: a table of ticks with reasons
    ///
    /// Runs only the model, without an engine or a cluster: the model's decisions drive the
    /// scenario. Exits with 1 if an expectation of the scenario is not met.
    Predict(predict::Args),
    /// Search for differences between the model and upstream in generated scenarios
    ///
    /// Generates scenarios from a seed, with ratios, ages and replicas at the edges of the
    /// algorithm, and runs them on the upstream controller in lockstep with the model. Each kind of
    /// divergence is shrunk to a small scenario and saved as a fixture. The findings depend on the
    /// seed only, not on the number of jobs.
    Fuzz(fuzz::Args),
    /// Explain one tick of the model: its input, each step, and its output
    Explain(explain::Args),
    /// Show what changed between two releases, and why: an executable changelog
    ///
    /// Compares upstream's recorded traces. Scenarios without a trace are run live, where upstream
    /// can run. Each change is shown with the rows of the model that explain the first differing
    /// field, followed by the rows that change something else.
    Diff(diff::Args),
    /// Show in which releases the behavior in a scenario changed
    ///
    /// Compares upstream's recorded traces. A scenario without traces is run live on each release.
    /// Building an engine takes minutes per release; `--from` and `--to` select fewer releases.
    Bisect(diff::BisectArgs),
    /// Merge the JSON results of runs on several machines
    Report(report::Args),
    /// List the releases: live engines, recorded traces, and changes
    Releases(releases::Args),
    /// List scenarios with their requirements
    List(list::Args),
    /// Print the JSON Schema of scenario files
    Schema,
    /// Show which engines can run on this machine, and what others require
    Doctor(doctor::Args),
    /// Start and stop real control planes for your own use
    Cluster(cluster::Args),
    /// Serve the metrics of scenarios to a cluster: metrics.k8s.io, custom and external metrics
    ///
    /// The pods of a namespace get the metrics of a scenario, with t=0 at the start of the server.
    /// A load is divided among the pods that exist and are ready. The cluster's own HPA controller
    /// and `kubectl top` see these metrics. Only the metrics come from the scenario: pods, targets
    /// and HPAs are the cluster's own.
    MetricsServer(metrics_server::Args),
    /// Remove stale files from the cache folder: engines of other versions, and leftovers
    ///
    /// Files that a running process uses are kept. Removed engines are rebuilt when they are
    /// needed.
    Prune(prune::Args),
    /// Print a completion script for a shell
    Completions(completions::Args),
}

/// When to use colors.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Color {
    /// On a terminal, unless NO_COLOR is set.
    #[default]
    Auto,
    /// Always, including in pipes.
    Always,
    /// Never.
    Never,
}

/// The output format.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Format {
    /// Text for people.
    #[default]
    Text,
    /// JSON for programs: one object per line.
    Json,
}

/// The output format, with Markdown for documents.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug, Default)]
enum WithMarkdown {
    /// Text for people.
    #[default]
    Text,
    /// JSON for programs: one object per line.
    Json,
    /// Markdown for documents, release notes and pull requests.
    Markdown,
}

/// The location of scenarios.
#[derive(clap::Args, Debug)]
struct Source {
    /// The folder of fixtures [default: ./fixtures, or the fixtures built into this program]
    #[arg(long, value_name = "DIR")]
    fixtures: Option<PathBuf>,
}

/// Parses a release. A patch version must be the available one.
fn release(text: &str) -> Result<Release, String> {
    let release = Release::known(text)?;
    let plain = text.trim_start_matches('v');
    let there = build::version(build::Artifact::Host, release).unwrap_or_default();
    let there = there.trim_start_matches('v');
    if plain.matches('.').count() > 1 && plain != there {
        return Err(format!(
            "the available patch of {release} is {there}: did you mean {release}?"
        ));
    }
    Ok(release)
}

/// Parses several releases with [`release`].
fn releases(text: &str) -> Result<Releases, String> {
    let releases = text.parse::<Releases>()?;
    let parts = text.split([',', '-']).map(str::trim);
    parts.filter(|part| *part != "all").try_for_each(|part| release(part).map(|_| ()))?;
    Ok(releases)
}

/// One release.
#[derive(clap::Args, Debug)]
struct OfRelease {
    /// The Kubernetes release
    #[arg(long, value_name = "RELEASE", default_value_t = Release::NEWEST)]
    #[arg(value_parser = release)]
    release: Release,
}

/// A release, or a checkout.
#[derive(clap::Args, Debug)]
struct OfReleaseOrCheckout {
    /// The Kubernetes release [default: the newest, or the release of --upstream-path]
    #[arg(long, value_name = "RELEASE", value_parser = release)]
    release: Option<Release>,
    #[command(flatten)]
    local: OfCheckout,
}

impl OfReleaseOrCheckout {
    fn release(&self, checkout: Option<&Checkout>) -> Release {
        let rules = || checkout.map_or(Release::NEWEST, |checkout| checkout.rules().0);
        self.release.unwrap_or_else(rules)
    }
}

/// One or more releases.
#[derive(clap::Args, Clone, Debug)]
struct OfReleases {
    /// The Kubernetes releases: one, several (`1.30,1.35-1.37`), or `all` [default: the newest, or
    /// the release of --upstream-path]
    #[arg(long = "release", value_name = "RELEASES", value_parser = releases)]
    releases: Option<Releases>,
}

impl OfReleases {
    /// The named releases.
    fn named(&self) -> Option<&Releases> {
        self.releases.as_ref()
    }

    fn releases(&self, checkout: Option<&Checkout>) -> Result<Releases, Failure> {
        let rules = || checkout.map_or(Release::NEWEST, |checkout| checkout.rules().0);
        let releases = self.releases.clone().unwrap_or_else(|| Releases::only(rules()));
        if checkout.is_some() && releases.iter().count() > 1 {
            let what = "--upstream-path can't be combined with several releases";
            let hint = "name one release: with --upstream-path, --release selects the rules that \
                        the model follows";
            return Err(Failure::usage(what).hint(hint));
        }
        Ok(releases)
    }
}

/// A checkout instead of a release.
#[derive(clap::Args, Debug)]
struct OfCheckout {
    /// Run the controller of a local Kubernetes checkout. Go compiles the changes; --release
    /// selects the rules that the model follows
    #[arg(long, value_name = "DIR")]
    upstream_path: Option<PathBuf>,
}

impl OfCheckout {
    /// Opens the named checkout. Fails if another engine or a program is named as well.
    fn open(&self, other: bool, program: bool) -> Result<Option<Checkout>, Failure> {
        let Some(path) = &self.upstream_path else { return Ok(None) };
        if program {
            let what = "--upstream-path and --program both replace the upstream engine";
            return Err(Failure::usage(what).hint("leave out one of them"));
        }
        if other {
            let what = "--upstream-path requires the upstream engine";
            return Err(Failure::usage(what).hint("leave out --engine"));
        }
        let open = Checkout::open(path).map_err(|error| {
            let what = format!("--upstream-path {error}");
            let CheckoutError { hint, .. } = error;
            Failure::usage(what).hint(hint)
        });
        open.map(Some)
    }
}

/// The shard of the run.
#[derive(clap::Args, Debug)]
struct OfShard {
    /// Run the I-th of N shards, for N machines; `report merge` merges their JSON results
    #[arg(long, value_name = "I/N")]
    shard: Option<Shard>,
}

/// The entry point: parses the command line, runs the command, and returns the exit code.
#[must_use]
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    let choice = match cli.color {
        Color::Auto => anstream::ColorChoice::Auto,
        Color::Always => anstream::ColorChoice::Always,
        Color::Never => anstream::ColorChoice::Never,
    };
    choice.write_global();
    let done = match cli.command {
        Command::Run(args) => run::run(&args),
        Command::Predict(args) => predict::run(&args),
        Command::Fuzz(args) => fuzz::run(&args),
        Command::Explain(args) => explain::run(&args),
        Command::Diff(args) => diff::run(&args),
        Command::Bisect(args) => diff::bisect(&args),
        Command::Report(args) => report::run(&args),
        Command::Releases(args) => releases::run(&args),
        Command::List(args) => list::run(&args),
        Command::Schema => schema::run(),
        Command::Doctor(args) => doctor::run(&args),
        Command::Cluster(args) => cluster::run(&args),
        Command::MetricsServer(args) => metrics_server::run(&args),
        Command::Prune(args) => prune::run(&args),
        Command::Completions(args) => completions::run(&args, &mut Cli::command()),
    };
    ExitCode::from(done.unwrap_or_else(|error| complain(&error)))
}

/// Prints the error and returns the exit code.
fn complain(error: &anyhow::Error) -> u8 {
    let (code, hint) = match error.downcast_ref::<Failure>() {
        Some(failure) => (failure.code, failure.hint.as_deref()),
        None => (exit::ENGINE, None),
    };
    let mut text = format!("{} {error:#}\n", paint(BAD, "error:"));
    if let Some(hint) = hint {
        text.push_str(&format!("{} {hint}\n", paint(WARN, "hint:")));
    }
    // If this can't be written, there is no other way to report it.
    let _ = anstream::stderr().write_all(text.as_bytes());
    code
}

/// The number of workers: as given on the command line, or one per core.
fn workers(jobs: Option<u16>) -> usize {
    let cores = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    jobs.map_or_else(cores, usize::from)
}

/// The error for `--program` together with `--engine`.
fn program_and_engine() -> Failure {
    let what = "--program requires the upstream engine, which it replaces";
    Failure::usage(what).hint("leave out --engine")
}

/// Logs the build of each engine and its progress, because it takes minutes.
#[derive(Debug, Default)]
struct TellPreparing {
    told: BTreeMap<String, Instant>,
}

/// The minimum interval between lines about an engine.
const QUIET: Duration = Duration::from_secs(20);

impl TellPreparing {
    fn tell(&mut self, what: &str, done: Option<f64>) {
        if let Some(text) = self.line(what, done, Instant::now()) {
            // A note that can't be written is ignored.
            let _ = anstream::stderr().write_all(text.as_bytes());
        }
    }

    fn line(&mut self, what: &str, done: Option<f64>, now: Instant) -> Option<String> {
        let engine = what.split_once(": ").map_or(what, |(engine, _)| engine);
        let text = match (self.told.get(engine), done) {
            (None, _) if what.contains(": ") => {
                format!("note: {what} (takes minutes the first time)\n")
            }
            (None, _) => format!("note: {what}\n"),
            (Some(last), _) if now.duration_since(*last) < QUIET => return None,
            (Some(_), Some(done)) => format!("note: {engine}: {:.0} % compiled\n", done * 100.0),
            (Some(_), None) => format!("note: {what}\n"),
        };
        self.told.insert(engine.to_owned(), now);
        Some(text)
    }
}

/// Prints text to standard output.
fn show(text: &str) -> io::Result<()> {
    let mut out = anstream::stdout();
    unless_closed(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
}

/// A closed pipe (`head`) is not an error and does not change the exit code.
fn unless_closed(written: io::Result<()>) -> io::Result<()> {
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// The width of text: `COLUMNS`, or else the width of the terminal within limits, or 100 columns.
fn columns() -> usize {
    let wanted = std::env::var("COLUMNS").ok().and_then(|columns| columns.trim().parse().ok());
    if let Some(columns) = wanted.filter(|columns: &usize| *columns > 0) {
        return columns.clamp(40, 1000);
    }
    let width = terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| width.0);
    width.map_or(100, |width| usize::from(width).clamp(40, 140))
}

/// The reference of all commands for `docs/cli.md`.
#[must_use]
pub fn reference() -> String {
    let mut text = format!(
        "<!-- Generated from the program's help by `suites/cli.rs`; edit `src/cli/`. -->\n# The \
         command\n\n{}.\n",
        Cli::command()
            .get_about()
            .map(ToString::to_string)
            .unwrap_or_default()
            .trim_end_matches('.')
    );
    // A fixed width makes the reference independent of the terminal.
    let command = Cli::command().term_width(100);
    text.push_str(&help(command.clone(), "kube-lockstep"));
    below(&command, "kube-lockstep", &mut text);
    text
}

/// Adds the reference of all subcommands, recursively.
fn below(command: &clap::Command, name: &str, text: &mut String) {
    for subcommand in command.get_subcommands() {
        let name = format!("{name} {}", subcommand.get_name());
        text.push_str(&help(subcommand.clone().term_width(100), &name));
        below(subcommand, &name, text);
    }
}

fn help(command: clap::Command, name: &str) -> String {
    let mut command = command.bin_name(name).display_name(name).disable_help_subcommand(true);
    let help = command.render_long_help().to_string();
    let lines: Vec<&str> = help.lines().map(str::trim_end).collect();
    format!("\n## `{name}`\n\n```text\n{}\n```\n", lines.join("\n").trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_build_of_an_engine_is_reported_periodically() {
        let mut preparing = TellPreparing::default();
        let begin = Instant::now();
        let mut line = |what: &str, done, seconds| {
            preparing.line(what, done, begin + Duration::from_secs(seconds))
        };
        let first = line("upstream v1.37: resolving modules", None, 0).unwrap_or_default();
        assert!(
            first.starts_with("note: upstream v1.37: resolving modules (takes minutes"),
            "{first}"
        );
        assert_eq!(line("upstream v1.37: compiling a", Some(0.1), 19), None);
        assert!(line("upstream v1.36: resolving modules", None, 19).is_some(), "another engine");
        let later = line("upstream v1.37: compiling b", Some(0.42), 20);
        assert_eq!(later.as_deref(), Some("note: upstream v1.37: 42 % compiled\n"));
        assert_eq!(line("upstream v1.37: compiling c", Some(0.43), 21), None);
    }

    #[test]
    fn an_unavailable_patch_is_not_a_release() {
        let [minor, patch] = [Release { minor: 18 }, Release { minor: 37 }];
        assert_eq!(release("1.18"), Ok(minor));
        assert_eq!(release("v1.37.2"), Ok(patch));
        let there = build::version(build::Artifact::Host, minor).unwrap_or_default();
        assert_eq!(release(&there), Ok(minor));
        for wrong in ["1.18.3", "1.9.99", "v1.37.00"] {
            let error = release(wrong).expect_err(wrong);
            assert!(error.contains("did you mean 1."), "{error}");
            assert!(releases(&format!("1.30,{wrong}")).is_err(), "{wrong}");
            assert!(releases(&format!("{wrong}-1.37")).is_err(), "{wrong}");
        }
        assert_eq!(releases("all").map(|it| it.iter().count()), Ok(Release::supported().count()));
        assert!(releases("1.30, 1.35 - 1.37.2").is_ok());
    }
}
