//! `kube-lockstep diff`: the changes between two releases.

use std::fmt::Display;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;

use super::args::{BuildArgs, Source, WithMarkdown as Format, any_release, hpa_release};
use super::exit;
use super::failure::Failure;
use super::fixtures::Fixtures;
use super::output::{columns, show, unless_closed};
use super::reports::ReportFile;
use super::run::parse_all;
use super::upstreams::{Behavior, RunsLive, Upstreams};
use kube_autoscaler_models::rules::{AnyRelease, Change, ChangeRow, Release};
use kube_lockstep_report::change::{Between, ChangedScenario, Changes, Shown};
use kube_lockstep_report::html::{self, ScenarioChange};
use kube_lockstep_scenario::Scenario;
use kube_lockstep_sim::run::change::{Changed, TraceOn, changed, left_to_chance};

/// The exit codes of `diff` and `bisect`, which differ only in the end.
macro_rules! exit_codes {
    ($more:literal) => {
        concat!(
            "\
Exit codes:
  0    nothing changed, or each change is explained
  1    a change is unexplained
  2    an invalid command line, or an invalid scenario
  3    upstream could not run a scenario, and nothing is unexplained; or an output can't be
       written
  4    nothing to compare: no scenarios, or none that both releases support",
            $more
        )
    };
}
pub(super) use exit_codes;

const HELP: &str = exit_codes!(" or, with\n       --recorded, that are recorded on both");

/// The arguments of `diff`.
#[derive(clap::Args, Debug)]
#[command(after_help = HELP)]
pub(super) struct Args {
    /// Scenarios to compare: ids, folders, globs, or files [default: every fixture]
    #[arg(value_name = "SCENARIO")]
    pub(super) names: Vec<String>,
    /// The older release, of Kubernetes or of the VPA (vpa-1.7)
    #[arg(long, value_name = "RELEASE", value_parser = any_release)]
    pub(super) from: AnyRelease,
    /// The newer release [default: the newest]
    #[arg(long, value_name = "RELEASE", value_parser = any_release)]
    pub(super) to: Option<AnyRelease>,
    /// The output format
    #[arg(long, value_enum, default_value_t)]
    pub(super) format: Format,
    /// Compare only recorded traces; skip scenarios that are not recorded on both releases
    #[arg(long)]
    pub recorded: bool,
    /// In text, show all scenarios that changed [default: at most three for each explanation]
    #[arg(long)]
    pub(super) all: bool,
    /// Also write the changes as a page with the timelines of both releases
    #[arg(long, value_name = "FILE")]
    pub(super) html: Option<PathBuf>,
    #[command(flatten)]
    pub(super) source: Source,
    #[command(flatten)]
    build: BuildArgs,
}

impl Args {
    /// Returns true if scenarios without a recorded trace are run.
    pub(super) fn runs_live(&self) -> RunsLive {
        if self.recorded { RunsLive::Never } else { RunsLive::On(self.build) }
    }

    /// The scenarios that the text shows.
    pub(super) fn shown(&self) -> Shown {
        if self.all { Shown::All } else { Shown::Examples }
    }
}

/// The result of comparing a scenario on two releases.
pub(super) enum Compared<C: 'static = Change> {
    Same,
    Changed(Changed<C>),
    Not(NotCompared),
}

/// The reason why a scenario was not compared.
#[derive(Clone, Debug)]
pub(super) struct NotCompared {
    pub(super) why: String,
    /// True if both releases support the scenario, but upstream could not run it.
    pub(super) is_unknown: bool,
}

pub(super) fn compare(
    upstreams: &mut Upstreams,
    scenario: &Arc<Scenario>,
    between: Between,
) -> Result<Compared, Failure> {
    let Between { from, to } = between;
    // If one release does not support the scenario, it is not run on the other.
    if let Some(why) = scenario.unsupported_on(from).or_else(|| scenario.unsupported_on(to)) {
        return Ok(Compared::Not(NotCompared { why: why.to_string(), is_unknown: false }));
    }
    if let Some(random_part) = left_to_chance(scenario, [from, to]) {
        let why = format!("on both releases, {random_part}");
        return Ok(Compared::Not(NotCompared { why, is_unknown: false }));
    }
    let mut seen = Vec::with_capacity(2);
    for release in [from, to] {
        match upstreams.behavior(scenario, release)? {
            Behavior::Trace(trace) => seen.push((release, trace)),
            Behavior::Unsupported(why) => {
                return Ok(Compared::Not(NotCompared { why, is_unknown: false }));
            }
            Behavior::Unknown(why) => {
                return Ok(Compared::Not(NotCompared { why, is_unknown: true }));
            }
        }
    }
    let traces = seen.iter().map(|(release, trace)| TraceOn { release: *release, trace });
    let [before, after] = &traces.collect::<Vec<_>>()[..] else { return Ok(Compared::Same) };
    Ok(match changed(scenario, *before, *after) {
        None => Compared::Same,
        Some(changed) => Compared::Changed(changed),
    })
}

/// Checks that the first release is the older one.
pub(super) fn in_order<R: Ord + Display>(from: R, to: R) -> Result<(), Failure> {
    if from < to {
        return Ok(());
    }
    let what = format!("--from {from} --to {to}: --from must be older than --to");
    Err(Failure::usage(what))
}

/// The exit code.
pub(super) fn code(unexplained: bool, unknown: bool, compared: usize) -> u8 {
    match (unexplained, unknown) {
        (true, _) => exit::DIVERGES,
        (false, true) => exit::ENGINE,
        (false, false) if compared == 0 => exit::NOTHING,
        (false, false) => exit::CONFORMS,
    }
}

pub(super) fn run(args: &Args) -> anyhow::Result<u8> {
    let from = hpa_release(Some(args.from))?.unwrap_or(Release::OLDEST);
    let to = hpa_release(args.to)?.unwrap_or(Release::NEWEST);
    in_order(from, to)?;
    let between = Between { from, to };
    let fixtures = Fixtures::find(args.source.fixtures.as_deref())?;
    let scenarios = parse_all(&fixtures.select(&args.names)?)?.hpa;
    let page = args.html.as_deref().map(|path| ReportFile::open("--html", path)).transpose()?;
    let mut upstreams = Upstreams::new(fixtures.traces(), args.runs_live());
    let mut found: Vec<(Arc<Scenario>, Changed)> = Vec::new();
    let mut skipped: Vec<(String, String)> = Vec::new();
    let (mut same, mut unknown) = (0, false);
    for scenario in scenarios {
        match compare(&mut upstreams, &scenario, between)? {
            Compared::Same => same += 1,
            Compared::Changed(changed) => found.push((scenario, changed)),
            Compared::Not(not) => {
                unknown |= not.is_unknown;
                skipped.push((scenario.id.clone(), not.why));
            }
        }
    }
    let changed =
        found.iter().map(|(scenario, changed)| ChangedScenario { id: &scenario.id, changed });
    let changes = Changes { between, changed: changed.collect(), same, skipped: &skipped };
    print(&changes, args)?;
    if let Some(mut page) = page {
        let drawn = found.iter().map(|(scenario, it)| ScenarioChange::hpa(scenario, between, it));
        page.write_all(html::changes(between, drawn, same, &skipped, None).as_bytes())?;
    }
    Ok(code(changes.unexplained() > 0, unknown, found.len() + same))
}

/// Prints changes in the requested format.
pub(super) fn print<C: ChangeRow>(changes: &Changes<'_, C>, args: &Args) -> io::Result<()> {
    match args.format {
        Format::Json => unless_closed(changes.write_json(&mut io::stdout())),
        Format::Text => show(&changes.text(args.shown(), columns())),
        Format::Markdown => show(&changes.markdown()),
    }
}
