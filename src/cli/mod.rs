//! The command `kube-lockstep`, with one file per subcommand.
//!
//! Turns command lines into plans, and outcomes into exit codes. [`kube_lockstep_report`] formats
//! the output, and [`kube_lockstep::run_all`] runs plans. `anyhow` is only used here.

mod args;
mod bisect;
mod check;
mod cluster;
mod compare;
mod completions;
mod confirmation;
mod controller_flags;
mod diff;
mod diff_vpa;
mod doctor;
mod existing;
pub(crate) mod exit;
mod explain;
mod explore;
mod failure;
mod feature_gates;
mod files;
mod fixtures;
mod fuzz;
mod fuzz_vpa;
mod gate;
mod import;
mod init;
mod interrupt;
mod lint;
mod list;
mod manifests;
mod measure;
mod metrics_server;
mod mistakes;
mod output;
mod plugin;
mod predict;
mod problems;
mod progress;
mod prune;
mod releases;
mod report;
mod reports;
mod run;
mod schema;
mod setting;
mod tune;
mod upgrade;
mod upstreams;
mod whole_file;

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};

use self::failure::Failure;
use self::output::{show, tell};
use self::plugin::StartedAs;
use kube_autoscaler_models::rules::AnyRelease;
use kube_lockstep_report::style::{BAD, WARN, paint};

/// Runs scenarios of the Kubernetes HPA on a reference model and on the real upstream
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
    /// Run scenarios on an engine in lockstep with the model, and compare the results
    ///
    /// Without SCENARIO, runs every fixture. Without `--engine`, uses the upstream controller if it
    /// can run here, and recorded traces otherwise. The upstream controller is built on first use,
    /// which takes minutes and requires Go and a Go module proxy. With `--format json`, each line
    /// is an object, and the last line is the summary.
    ///
    /// The verdict on a scenario is `conforms`, `diverges` (the engine differs from the model),
    /// `unmet` (they agree, but an expectation in the scenario is not met; in the JSON of a
    /// scenario, `unexpected`), `inconclusive` (the engine failed, or a difference may be due to
    /// chance) or `skipped`.
    Run(Box<run::Args>),
    /// Predict what an HPA or a VPA does: a table of ticks with reasons
    ///
    /// Runs only the model, without an engine or a cluster: the model's decisions drive the
    /// scenario. Exits with 1 if an expectation of the scenario is not met.
    ///
    /// With `--filename`, the scenario is made from manifests: each HPA and each VPA is predicted
    /// with its target, under the loads of `--load`. HPAs of the same target are predicted
    /// together, also with a VPA of this target, unless its updateMode is Off.
    Predict(predict::Args),
    /// Compare settings of an HPA or a VPA on the same load: costs, missing capacity and changes
    ///
    /// The first row is the current setting. Each `--set` adds a row with other values of fields,
    /// and each `--manifest` a row with another manifest of the HPA. All rows are measured against
    /// the targets of the first one. With a VPA, its recommendations are applied to the pods.
    ///
    /// Also compares several scenarios, the autoscalers of several manifests, and several releases.
    Compare(compare::Args),
    /// Search for the cheapest settings of an HPA or a VPA that meet an objective
    ///
    /// Varies the targets, limits, windows, policies and tolerances of an HPA, and the minAllowed
    /// and maxAllowed of a VPA, and predicts each setting on the same load. Prints the best setting
    /// as a patch, the settings between which cost and missing pods (of a VPA: pods that use more
    /// than they request) are a trade-off, and what each change contributes. With two or more
    /// days of load, the search uses every other day, and the others check its result. The best
    /// setting is also checked in runs with different noise (`--runs`) and with other start-up
    /// times. The upstream controllers confirm it, if they can run on this machine.
    Tune(tune::Args),
    /// Search for choices with which an expectation is not met
    ///
    /// A scenario with `search` leaves things open: values of metrics at each tick, events, or the
    /// initial replicas. The model tries all choices, the shortest runs first, and merges runs that
    /// have reached the same state. The result is the shortest counterexample as an ordinary
    /// scenario, which the upstream controller confirms if it can run on this machine; or a proof
    /// that the expectations are met with all choices.
    Check(check::Args),
    /// Check what a change of manifests does to autoscalers, against a budget
    ///
    /// Finds the autoscalers that a change adds, removes or alters, directly or through their
    /// targets, and predicts each of them on the same load before and after it. Fails if a figure
    /// exceeds the budget: by default, if more pods are missing, or if the load stays above the
    /// targets for longer. Autoscalers that are not changed, and those that are removed, are not
    /// predicted and need no load.
    Gate(Box<gate::Args>),
    /// Find the HPAs that behave differently after an upgrade of Kubernetes
    ///
    /// Predicts each HPA of the manifests on both releases, on the given loads and on generated
    /// ones around its own boundaries: its targets, tolerances, windows and limits. Each difference
    /// is explained by the change in Kubernetes that makes it, and shown by the simplest load that
    /// was found, which the upstream controllers of both releases confirm, if they can run on this
    /// machine.
    Upgrade(Box<upgrade::Args>),
    /// Find settings of HPAs and VPAs that have no effect, or a surprising one
    ///
    /// Checks manifests by rules, each with a reason, a link and a fixture that shows the effect on
    /// the real controller: `--list` lists them. Each finding says how it is known: `observed` in
    /// the manifest, `derived` from the manifests and the loads, or `assumed`, because it also
    /// depends on something that the files do not show.
    Lint(lint::Args),
    /// Write a scenario file from manifests, or a template to edit
    ///
    /// With `--filename`, the scenario is the one that `predict` would run with the same options.
    /// Example values replace missing values, and comments mark them. Without `--filename`, writes
    /// a template with comments.
    Init(init::Args),
    /// Save recorded metrics as a load
    Import(import::Args),
    /// Search for differences between the model and upstream in generated scenarios
    ///
    /// Generates scenarios from a seed, with ratios, ages and replicas at the boundaries of the
    /// algorithm, and runs them on the upstream controller in lockstep with the model. Each kind of
    /// divergence is shrunk to a small scenario and saved as a fixture. The findings depend only on
    /// the seed, not on the number of jobs.
    Fuzz(fuzz::Args),
    /// Search for late watch events, failed writes and crashes that make your controller fail
    ///
    /// Runs each scenario without disturbances, and then with disturbances from a seed: watch
    /// events that are delivered late, writes that are answered with an error, and crashes right
    /// before or after a write. For each expectation that a run does not meet, shows a smallest
    /// set of disturbances with which it is not met, and the command that repeats the run.
    Explore(explore::Args),
    /// Explain one tick of the model: its input, each step, and its output
    Explain(explain::Args),
    /// Show what changed between two releases, and why
    ///
    /// Compares upstream's recorded traces. Scenarios without a trace are run live, if upstream
    /// can run. Each change is shown with the rows of the model that explain the first differing
    /// field, followed by the rows that change something else.
    Diff(diff::Args),
    /// Show in which releases the behavior in a scenario changed
    ///
    /// Compares upstream's recorded traces. A scenario without traces is run live on each release.
    /// Building an engine takes minutes per release; `--from` and `--to` select fewer releases.
    Bisect(bisect::Args),
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

/// The entry point: parses the command line, runs the command, and returns the exit code.
#[must_use]
pub(crate) fn main() -> ExitCode {
    let started_as = StartedAs::from_arguments();
    let command = started_as.name(Cli::command());
    if started_as == StartedAs::Completion {
        return plugin::complete(command);
    }
    completions::answer(Cli::command);
    let parsed = command.try_get_matches().map_err(|error| {
        let arguments = std::env::args_os().map(|it| it.to_string_lossy().into_owned());
        mistakes::with_hint(error, &arguments.collect::<Vec<_>>())
    });
    let cli = match parsed.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => cli,
        Err(error) => return print_usage(&error),
    };
    let choice = match cli.color {
        Color::Auto => anstream::ColorChoice::Auto,
        Color::Always => anstream::ColorChoice::Always,
        Color::Never => anstream::ColorChoice::Never,
    };
    choice.write_global();
    let done = match cli.command {
        Command::Run(args) => run::run(&args),
        Command::Predict(args) => predict::run(&args),
        Command::Compare(args) => compare::run(&args),
        Command::Tune(args) => tune::run(&args),
        Command::Check(args) => check::run(&args),
        Command::Gate(args) => gate::run(&args),
        Command::Upgrade(args) => upgrade::run(&args),
        Command::Lint(args) => lint::run(&args),
        Command::Init(args) => init::run(&args),
        Command::Import(args) => import::run(&args),
        Command::Fuzz(args) => fuzz::run(&args),
        Command::Explore(args) => explore::run(&args),
        Command::Explain(args) => explain::run(&args),
        Command::Diff(args) => match args.from {
            AnyRelease::Vpa(from) => diff_vpa::run(&args, from),
            AnyRelease::Kubernetes(_) => diff::run(&args),
        },
        Command::Bisect(args) => bisect::run(&args),
        Command::Report(args) => report::run(&args),
        Command::Releases(args) => releases::run(&args),
        Command::List(args) => list::run(&args),
        Command::Schema => schema::run(),
        Command::Doctor(args) => doctor::run(&args),
        Command::Cluster(args) => cluster::run(&args),
        Command::MetricsServer(args) => metrics_server::run(&args),
        Command::Prune(args) => prune::run(&args),
        Command::Completions(args) => completions::run(&args),
    };
    ExitCode::from(done.unwrap_or_else(|error| print_error(&error)))
}

/// Prints the help, or an error in the command line, and returns its exit code.
fn print_usage(error: &clap::Error) -> ExitCode {
    let text = error.render().ansi().to_string();
    if error.use_stderr() {
        tell(&text);
    } else {
        // Help that can't be written is ignored.
        let _ = show(&text);
    }
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(exit::USAGE))
}

/// Prints the error and returns the exit code.
fn print_error(error: &anyhow::Error) -> u8 {
    let (code, hint) = match error.downcast_ref::<Failure>() {
        Some(failure) => (failure.code, failure.problem.hint.as_ref()),
        None => (exit::ENGINE, None),
    };
    let mut text = format!("{} {error:#}\n", paint(BAD, "error:"));
    if let Some(hint) = hint {
        text.push_str(&format!("{} {hint}\n", paint(WARN, "hint:")));
    }
    tell(&text);
    code
}

#[cfg(test)]
mod reference;
