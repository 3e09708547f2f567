//! `kube-lockstep explore`.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::args::{Format, OneRelease, Source, given_flags, time_limit, workers};
use super::failure::Failure;
use super::fixtures::Fixtures;
use super::output::{columns, show, unless_closed};
use super::progress::Progress;
use super::run::parse_all;
use super::{exit, interrupt};
use kube_autoscaler_models::time::Span;
use kube_lockstep_engines::source::{CustomProgram, EngineFactory, EngineLimits, EngineSource};
use kube_lockstep_fuzz::explore::report::{self, ExploreSetting, Totals};
use kube_lockstep_fuzz::explore::{Exploration, Explored, explore};
use kube_lockstep_report::{counted, json};
use kube_lockstep_scenario::Scenario;
use kube_lockstep_sim::engine::disturbance::{Disturbance, DisturbanceKind};

const HELP: &str = "\
Exit codes:
  0    all scenarios conform, with all disturbances that were tried
  1    a scenario fails with some disturbances, or without any
  2    an invalid command line, or an invalid scenario
  3    the engine can't run or can't be disturbed; or a scenario has no verdict, and none fails
  4    nothing to run: no scenarios, or all of them skipped
  130  interrupted (Ctrl-C); the results are those of the runs so far";

/// The message for a signal.
const INTERRUPTED: &str =
    "interrupted: printing the results of the runs so far; interrupt again to stop at once";

/// The arguments.
#[derive(clap::Args, Debug)]
#[command(after_help = HELP)]
pub(super) struct Args {
    /// Scenarios with expectations: files, folders, globs, or ids of fixtures
    #[arg(value_name = "SCENARIO", required = true)]
    names: Vec<String>,
    /// The engine: a program that speaks the engine protocol and supports disturbances, such as one
    /// of the Go SDK
    #[arg(long, value_name = "FILE")]
    program: PathBuf,
    /// The number of disturbed runs of each scenario
    #[arg(long, value_name = "N", default_value_t = 200)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    runs: u32,
    /// The seed of the disturbances; the same seed gives the same runs
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Use only these kinds of disturbances: watch events that are delivered late (hold), writes
    /// that are answered with an error (answer), or crashes (crash). Can be repeated, or separated
    /// by commas [default: all]
    #[arg(long, value_name = "KIND", value_enum, value_delimiter = ',')]
    only: Vec<Kind>,
    /// Run only with this disturbance, as in the `replay` line of a finding. Can be repeated:
    /// `hold event 3 of deployments.apps for 2ms`, `answer write 2 with conflict` (or
    /// `internal-error`, `unavailable`, `timeout`), `crash before write 2`, `crash after write 2`
    #[arg(long = "disturb", value_name = "DISTURBANCE")]
    #[arg(conflicts_with_all = ["runs", "seed", "only"])]
    disturb: Vec<Disturbance>,
    #[command(flatten)]
    release: OneRelease,
    /// How many runs to make in parallel [default: one per core]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// The timeout for each answer of the engine, for example 1m
    #[arg(long, value_name = "DURATION", value_parser = time_limit)]
    time_limit: Option<Duration>,
    /// The output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    #[command(flatten)]
    source: Source,
}

/// A kind of disturbances.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Hold,
    Answer,
    Crash,
}

impl Args {
    fn kinds(&self) -> Vec<DisturbanceKind> {
        let kinds = self.only.iter().map(|kind| match kind {
            Kind::Hold => DisturbanceKind::Hold,
            Kind::Answer => DisturbanceKind::Answer,
            Kind::Crash => DisturbanceKind::Crash,
        });
        if self.only.is_empty() { DisturbanceKind::ALL.to_vec() } else { kinds.collect() }
    }

    fn setting(&self, engine: &EngineFactory) -> ExploreSetting {
        let limit =
            self.time_limit.map(|it| Span(i64::try_from(it.as_nanos()).unwrap_or(i64::MAX)));
        ExploreSetting {
            seed: self.seed,
            runs: if self.disturb.is_empty() { self.runs as usize } else { 1 },
            release: self.release.release.to_string(),
            engine: engine.name().to_string(),
            program: self.program.to_string_lossy().into_owned(),
            version: env!("CARGO_PKG_VERSION"),
            arguments: given_flags([("--time-limit", limit.map(|it| it.to_string()))]).collect(),
            is_replay: !self.disturb.is_empty(),
        }
    }

    /// The engine, whose controller the model does not predict.
    fn engine(&self) -> Result<EngineFactory, Failure> {
        let program = CustomProgram { path: self.program.clone(), has_model: false };
        let mut limits = EngineLimits::default();
        limits.answer = self.time_limit.unwrap_or(limits.answer);
        let source = EngineSource::Program(program);
        Ok(source.prepare(self.release.release, &limits, &mut |_| {})?)
    }

    fn print(&self, text: &str, value: &impl Serialize) -> io::Result<()> {
        match self.format {
            Format::Json => unless_closed(json::line(&mut io::stdout(), value)),
            Format::Text => show(text),
        }
    }
}

pub(super) fn run(args: &Args) -> anyhow::Result<u8> {
    let fixtures = Fixtures::find(args.source.fixtures.as_deref())?;
    let parsed = parse_all(&fixtures.select(&args.names)?)?;
    if parsed.hpa.is_empty() {
        let what = "no selected scenario can run: programs do not run VPA scenarios".to_owned();
        return Err(Failure::nothing(what).into());
    }
    let engine = args.engine()?;
    let setting = args.setting(&engine);
    let plan = Exploration {
        seed: args.seed,
        runs: args.runs as usize,
        kinds: args.kinds(),
        given: args.disturb.clone(),
        jobs: workers(args.jobs),
        stop: CancellationToken::new(),
    };
    let ending = interrupt::Ending::listen(&plan.stop, INTERRUPTED)?;
    let begin = Instant::now();
    args.print(&report::first_line(&setting), &report::first_json(&setting))?;
    let mut totals = Totals::default();
    for scenario in &parsed.hpa {
        if plan.stop.is_cancelled() {
            totals.interrupted = true;
            break;
        }
        let explored = explore_one(&plan, scenario, &engine)?;
        totals.add(&explored);
        args.print(
            &report::text(&explored, &setting, columns()),
            &report::json(&explored, &setting),
        )?;
    }
    let text = report::summary(&totals, &setting, begin.elapsed().as_secs_f64());
    args.print(&text, &report::summary_json(&totals))?;
    ending.end_by_signal();
    Ok(if totals.failing + totals.unmet > 0 {
        exit::DIVERGES
    } else if totals.inconclusive > 0 {
        exit::ENGINE
    } else if totals.conforming == 0 {
        exit::NOTHING
    } else {
        exit::CONFORMS
    })
}

/// Explores a scenario, with its progress on standard error.
fn explore_one(
    plan: &Exploration,
    scenario: &Arc<Scenario>,
    engine: &EngineFactory,
) -> Result<Explored, Failure> {
    let mut progress = Progress::new();
    let mut failed = 0;
    let explored = explore(plan, scenario, &|| engine.make(), &mut |runs, failure| {
        failed += usize::from(failure.is_some());
        progress.update(|| {
            let failures = if failed > 0 { format!(", {failed} failed") } else { String::new() };
            format!("{}: {}{failures}", scenario.id, counted(runs, "run"))
        });
    });
    progress.clear();
    Ok(explored?)
}
