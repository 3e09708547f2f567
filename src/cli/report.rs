//! `kube-lockstep report`: merges results of other runs.

use std::io;
use std::path::{Path, PathBuf};

use clap::Subcommand;

use super::args::Format;
use super::failure::Failure;
use super::files;
use super::output::{Stdout, columns, show, unless_closed};
use super::reports::{ReportArg, Reports};
use super::{exit, run};
use kube_autoscaler_models::rules::Releases;
use kube_lockstep_fuzz::results as fuzz_results;
use kube_lockstep_report::json;
use kube_lockstep_report::json::Json;
use kube_lockstep_report::terminal::{Layout, Terminal};
use kube_lockstep_report::{Report, results};
use kube_lockstep_sim::run::merge;

/// The arguments.
#[derive(clap::Args, Debug)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Merge the results of `run --format json` or `fuzz --format json` into one report
    ///
    /// Merges the shards of a run, runs on different releases or engines, or runs of different
    /// scenarios. Results from different versions of this program and duplicate scenarios are
    /// rejected. If a shard is missing or incomplete, the merged run has no verdict.
    Merge(MergeArgs),
}

#[derive(clap::Args, Debug)]
#[command(after_help = HELP)]
struct MergeArgs {
    /// Files with results
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Releases that must have results: one, several (`1.30,1.35-1.37`), or `all`
    #[arg(long, value_name = "RELEASES", value_parser = super::args::releases)]
    release: Option<Releases>,
    /// The output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// Also write a report, as with `run`. Results have no timelines, so pages have no charts
    #[arg(long = "report", value_name = "KIND[=FILE]")]
    reports: Vec<ReportArg>,
    /// Also list scenarios that conform
    #[arg(short, long)]
    verbose: bool,
}

const HELP: &str = "\
Exit codes:
  0    all scenarios conform; no divergence was found
  1    a divergence, an unmet expectation, or a known disagreement that disappeared
  2    invalid results, or results that can't be merged
  3    a scenario had no verdict or a shard is missing, and none diverged; or an output can't be
       written
  4    nothing was run, or all scenarios were skipped";

/// Where results come from.
const ORIGIN: &str = "results are the output of `run --format json` or `fuzz --format json`";

/// The longest line of results, in bytes. A line may repeat a requirement, whose file has at most
/// 16 MiB.
const MAX_LINE: usize = 64 << 20;

const VERSION: &str = env!("CARGO_PKG_VERSION");

pub(super) fn run(args: &Args) -> anyhow::Result<u8> {
    let Command::Merge(args) = &args.command;
    let mut texts = Vec::new();
    for path in &args.files {
        let file = path.display().to_string();
        let text = read(path).map_err(|what| Failure::usage(what).hint(ORIGIN))?;
        texts.push((file, text));
    }
    // An empty file could belong to either command.
    let empty = |(_, text): &&(String, String)| text.trim().is_empty();
    let is_fuzz_result = |(_, text): &&(String, String)| fuzz_results::is_fuzz_result(text);
    if !texts.iter().any(|it| is_fuzz_result(&it)) {
        return merge_runs(args, &texts);
    }
    if let Some((other, _)) = texts.iter().find(|it| !is_fuzz_result(it) && !empty(it)) {
        let what = format!("{other} is not a result of `fuzz`, but other files are");
        return Err(Failure::usage(what)
            .hint("merge results of `run` and `fuzz` separately")
            .into());
    }
    merge_fuzz(args, &texts)
}

/// Reads a file of results.
fn read(path: &Path) -> Result<String, String> {
    let file = path.display().to_string();
    let text = files::read_long(path).map_err(|error| error.in_file(&file))?;
    match text.lines().position(|line| line.len() > MAX_LINE) {
        None => Ok(text),
        Some(index) => {
            let number = index + 1;
            Err(format!("{file}:{number}: the line is longer than {} MiB", MAX_LINE >> 20))
        }
    }
}

fn not_results(error: results::ResultsError) -> Failure {
    Failure::usage(error.to_string()).hint(ORIGIN)
}

fn merge_runs(args: &MergeArgs, texts: &[(String, String)]) -> anyhow::Result<u8> {
    let parts = texts.iter().map(|(file, text)| results::read(file, text));
    let parts = parts.collect::<Result<Vec<_>, _>>().map_err(not_results)?;
    let merged = merge::merge(parts, args.release.as_ref(), VERSION);
    let (events, summary) = merged.map_err(Failure::from)?;
    let console: Box<dyn Report + Send> = match args.format {
        Format::Json => Box::new(Json::new(io::stdout())),
        Format::Text => {
            let layout = Layout { columns: columns(), verbose: args.verbose, progress: false };
            Box::new(Terminal::new(Stdout, layout))
        }
    };
    let mut reports = Reports::open(console, &args.reports, args.format)?;
    for event in &events {
        unless_closed(reports.console.event(event))?;
        reports.files.event(event)?;
    }
    Ok(run::code(&summary))
}

fn merge_fuzz(args: &MergeArgs, texts: &[(String, String)]) -> anyhow::Result<u8> {
    if !args.reports.is_empty() {
        let what = "--report can't be combined with results of `fuzz`";
        return Err(Failure::usage(what).hint("use --format").into());
    }
    let (empty, texts): (Vec<_>, Vec<_>) =
        texts.iter().partition(|(_, text)| text.trim().is_empty());
    let empty: Vec<String> = empty.into_iter().map(|(file, _)| file.clone()).collect();
    let parts = texts.iter().map(|(file, text)| fuzz_results::read(file, text));
    let parts = parts.collect::<Result<Vec<_>, _>>().map_err(not_results)?;
    let runs = fuzz_results::merge(parts, &empty, args.release.as_ref(), VERSION);
    let runs = runs.map_err(Failure::from)?;
    for run in &runs {
        match args.format {
            Format::Text => show(&fuzz_results::text(run, columns()))?,
            Format::Json => {
                for value in fuzz_results::json(run) {
                    unless_closed(json::line(&mut io::stdout(), &value))?;
                }
            }
        }
    }
    let diverges = runs.iter().any(|run| run.summary.divergences > 0);
    let unknown = |run: &fuzz_results::FuzzRun| {
        run.summary.inconclusive > 0 || run.summary.interrupted || !run.missing.is_empty()
    };
    Ok(if diverges {
        exit::DIVERGES
    } else if runs.iter().any(unknown) {
        exit::ENGINE
    } else if runs.iter().all(|run| run.summary.ticks == 0) {
        exit::NOTHING
    } else {
        exit::CONFORMS
    })
}
