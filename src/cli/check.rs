//! `kube-lockstep check`.

use std::fs;
use std::io::{self, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::args::{BuildArgs, Format, OneRelease, Source};
use super::confirmation::{Confirmed, UpstreamController, Wording};
use super::failure::Failure;
use super::fixtures::{AnyFixture, Fixtures};
use super::manifests::relative;
use super::output::{columns, show, tell, unless_closed};
use super::reports::ReportFile;
use super::run::parse_modeled;
use super::{exit, interrupt};
use kube_lockstep::{Check, Checked, Outcome};
use kube_lockstep_check::{Counterexample, STATES};
use kube_lockstep_report::json;
use kube_lockstep_report::outcome::note_text;
use kube_lockstep_report::terminal::CountBar;
use kube_lockstep_report::{counted, wrapped};
use kube_lockstep_scenario::{Scenario, to_yaml};
use kube_lockstep_sim::run::Verdict;

/// The most scenarios without a search that a note names.
const MOST_LEFT_OUT: usize = 3;

const HELP: &str = "\
Exit codes:
  0    all expectations are met, with all choices
  1    an expectation is not met with some choices
  2    an invalid command line or scenario, or no scenario has `search`
  3    no result: there are too many states, or upstream leaves an outcome to chance; or an output
       can't be written
  4    nothing to search: no scenarios
  130  interrupted (Ctrl-C); the result is that of the choices so far";

/// The arguments.
#[derive(clap::Args, Debug)]
#[command(after_help = HELP)]
pub(super) struct Args {
    /// Scenarios with `search`: files, folders, globs, or ids of fixtures
    #[arg(value_name = "FILE", required = true)]
    names: Vec<String>,
    #[command(flatten)]
    release: OneRelease,
    /// The largest number of different states
    #[arg(long, value_name = "N", default_value_t = STATES as u32)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    states: u32,
    /// The output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// Also write the counterexample as a scenario, for `run` and `predict`. Requires one scenario
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Do not run the counterexample on the upstream controller
    #[arg(long)]
    no_confirm: bool,
    #[command(flatten)]
    build: BuildArgs,
    #[command(flatten)]
    source: Source,
}

/// The result for one scenario, as JSON.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Line<'c> {
    scenario: &'c str,
    release: &'c str,
    #[serde(flatten)]
    checked: &'c Checked,
    /// True if the upstream controller does not meet the expectation, either. Absent: it was not
    /// run.
    #[serde(skip_serializing_if = "Option::is_none")]
    confirmed: Option<bool>,
    /// The reason if it was not confirmed.
    #[serde(skip_serializing_if = "Option::is_none")]
    not_confirmed: Option<&'c str>,
}

pub(super) fn run(args: &Args) -> anyhow::Result<u8> {
    let scenarios = scenarios_with_search(args)?;
    if args.output.is_some() && scenarios.len() > 1 {
        let what = format!("--output requires one scenario, found {}", scenarios.len());
        return Err(Failure::usage(what).into());
    }
    let output = args.output.as_deref().map(|it| ReportFile::open("--output", it));
    let mut output = output.transpose()?;
    let stop = CancellationToken::new();
    let message = "interrupted: printing the result of the choices so far; interrupt again to stop \
                   at once";
    let ending = interrupt::Ending::listen(&stop, message)?;
    let mut code = exit::CONFORMS;
    for (index, scenario) in scenarios.iter().enumerate() {
        if stop.is_cancelled() {
            let rest = counted(scenarios.len() - index, "scenario");
            tell(&note_text(&format!("interrupted: not searched: {rest}"), columns()));
            break;
        }
        if index > 0 && args.format == Format::Text {
            show("\n")?;
        }
        code = match (code, check_one(args, scenario, &stop, output.as_mut())?) {
            // A counterexample is certain, whatever the other searches could not try.
            (exit::DIVERGES, _) | (_, exit::DIVERGES) => exit::DIVERGES,
            (one, other) => one.max(other),
        };
    }
    ending.end_by_signal();
    Ok(code)
}

/// The selected scenarios that have a search. A note names the others.
fn scenarios_with_search(args: &Args) -> Result<Vec<Arc<Scenario>>, Failure> {
    let fixtures = Fixtures::find(args.source.fixtures.as_deref())?;
    let (mut with, mut without) = (Vec::new(), Vec::new());
    for scenario in parse_modeled(&fixtures.select(&args.names)?)? {
        match scenario {
            AnyFixture::Hpa(scenario) if scenario.search.is_some() => with.push(scenario),
            AnyFixture::Hpa(scenario) => without.push(scenario.path.clone()),
            AnyFixture::Vpa(scenario) => without.push(scenario.path.clone()),
        }
    }
    if with.is_empty() {
        let what = match without.as_slice() {
            [path] => {
                format!("{path}: the scenario has no `search`, so there is nothing to choose")
            }
            all => format!("none of the {} scenarios has `search`", all.len()),
        };
        let hint = "add `search` to a scenario with an HPA and without a VPA, for example \
                    `search: {replicas: [1, 5]}`";
        return Err(Failure::usage(what).hint(hint));
    }
    if !without.is_empty() {
        let named = &without[..without.len().min(MOST_LEFT_OUT)];
        let rest = without.len() - named.len();
        let mut names = named.join(", ");
        if rest > 0 {
            names = format!("{names}, and {}", counted(rest, "more scenario"));
        }
        tell(&note_text(&format!("left out because of a missing `search`: {names}"), columns()));
    }
    Ok(with)
}

/// Searches one scenario. Returns the exit code.
fn check_one(
    args: &Args,
    scenario: &Arc<Scenario>,
    stop: &CancellationToken,
    output: Option<&mut ReportFile>,
) -> anyhow::Result<u8> {
    let states = args.states as usize;
    let check = Check::new(scenario.clone()).release(args.release.release).states(states);
    let checked = {
        let bar = io::stderr().is_terminal().then(|| CountBar::new(states, "states"));
        check.run_watched(&mut |progress| {
            if let Some(bar) = &bar {
                bar.set(progress.states);
                let (reached, until) = (progress.reached, scenario.until);
                bar.describe(format!("states; t={reached} of {until} reached"));
            }
            !stop.is_cancelled()
        })
    };
    let checked = checked.map_err(|why| Failure::usage(format!("{}: {why}", scenario.path)))?;
    let found = checked.counterexample.as_ref();
    match (found, output) {
        (Some(found), Some(file)) => {
            let scenario = moved(&found.scenario, args.output.as_deref());
            file.write_all(to_yaml(&scenario, None).as_bytes())?;
        }
        (None, Some(_)) => {
            let what = "--output: no counterexample was found, so nothing is written; an existing \
                        file is not changed";
            tell(&note_text(what, columns()));
        }
        (_, None) => {}
    }
    let confirmed = match found {
        Some(found) if !args.no_confirm && !stop.is_cancelled() => confirm(args, found, stop),
        _ => Confirmed::NotRun,
    };
    match args.format {
        Format::Text => {
            show(&format!("{}\n", scenario.path))?;
            show(&text(&checked, args))?;
            show(&confirmed.text())?;
        }
        Format::Json => {
            let release = args.release.release.to_string();
            let (confirmed, not_confirmed) = confirmed.as_json();
            let (scenario, release) = (&*scenario.id, &*release);
            let line = Line { scenario, release, checked: &checked, confirmed, not_confirmed };
            unless_closed(json::line(&mut io::stdout(), &line))?;
        }
    }
    Ok(match checked.outcome {
        Outcome::Counterexample => exit::DIVERGES,
        Outcome::Holds | Outcome::AlwaysHolds if checked.random == 0 => exit::CONFORMS,
        _ => exit::ENGINE,
    })
}

/// The scenario with the paths of recordings relative to the file to which it is written.
fn moved(scenario: &Scenario, file: Option<&Path>) -> Scenario {
    let folder = |file: &Path| {
        let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
        fs::canonicalize(folder.unwrap_or(Path::new(".")))
    };
    let mut scenario = scenario.clone();
    let (Ok(from), Some(Ok(to))) = (folder(Path::new(&scenario.path)), file.map(folder)) else {
        return scenario;
    };
    for recorded in scenario.metrics.recorded_mut() {
        let path = recorded.source.path_mut();
        if let Ok(whole) = fs::canonicalize(from.join(&*path))
            && Path::new(path).is_relative()
        {
            *path = relative(&whole, &to).unwrap_or(whole).display().to_string();
        }
    }
    scenario
}

/// The result, for people.
fn text(checked: &Checked, args: &Args) -> String {
    let mut lines = match &checked.counterexample {
        Some(found) => counterexample_text(found, args.output.is_some()),
        None => String::new(),
    };
    let limit = format!("{}, the limit of --states", counted(args.states as usize, "state"));
    for line in checked.summary(&limit) {
        lines.push_str(&wrapped("", &line, columns()));
    }
    lines
}

fn counterexample_text(found: &Counterexample, is_written: bool) -> String {
    let mut text = wrapped("", &found.headline(), columns());
    for made in &found.choices {
        text.push_str(&format!("    t={}  {}\n", made.at, made.what));
    }
    text.push_str(&wrapped("  ", &found.what, columns()));
    if !is_written {
        let hint = "no counterexample is shorter, and none of this length has fewer events or, \
                    with as many events, fewer changed values; --output FILE writes the \
                    counterexample as a scenario, for `run`";
        text.push_str(&wrapped("", hint, columns()));
    }
    text
}

/// Runs a counterexample on the upstream controller.
fn confirm(args: &Args, found: &Counterexample, stop: &CancellationToken) -> Confirmed {
    let wording = Wording { solution: "write the scenario with --output and run it", subject: "" };
    match UpstreamController::prepare(args.release.release, &args.build, stop) {
        Ok(upstream) => upstream.confirm(&found.scenario, &Verdict::Unmet, wording),
        Err(why) => Confirmed::Unavailable(why),
    }
}
