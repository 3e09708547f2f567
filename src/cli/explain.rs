//! `kube-lockstep explain`.

use super::failure::Failure;
use super::fixtures::Fixtures;
use super::{OfRelease, Source, columns, exit, show};
use crate::model::time::{Span, Time};
use crate::report::explain;
use crate::run::{FreeRun, free_run};

/// The arguments.
#[derive(clap::Args, Debug)]
#[command(group = clap::ArgGroup::new("which").required(true))]
pub(super) struct Args {
    /// A scenario: a file, or the id of a fixture
    #[arg(value_name = "FILE")]
    name: String,
    /// The tick's number, from 1
    #[arg(long, value_name = "N", group = "which")]
    tick: Option<usize>,
    /// A time since the scenario's start, for instance 4m30s: the last tick at or before it
    #[arg(long, value_name = "TIME", group = "which", value_parser = time)]
    at: Option<Span>,
    #[command(flatten)]
    release: OfRelease,
    #[command(flatten)]
    source: Source,
}

/// A bare number may be meant as either.
fn time(text: &str) -> Result<Span, String> {
    text.parse().map_err(|error| match text.parse::<usize>() {
        Ok(number) => format!("{error}; a time is {number}s, a tick --tick {number}"),
        Err(_) => format!("{error}"),
    })
}

pub(super) fn run(args: &Args) -> anyhow::Result<u8> {
    let fixtures = Fixtures::find(args.source.fixtures.as_deref())?;
    let scenario = fixtures.one(&args.name)?.parse()?;
    let release = args.release.release;
    let run = free_run(&scenario, release);
    if let Some(why) = &run.unplayable {
        anyhow::bail!("{}: {why}", scenario.path);
    }
    let index = index(args, &run)?;
    let text = explain::tick(&scenario, &run, index, &release.to_string(), columns());
    show(&text.unwrap_or_default())?;
    Ok(exit::CONFORMS)
}

fn index(args: &Args, run: &FreeRun) -> Result<usize, Failure> {
    let ticks = run.ticks.len();
    let Some(last) = run.ticks.last() else {
        return Err(Failure::usage("the scenario has no ticks"));
    };
    let end = last.observation.at;
    let there_are = format!("the scenario has {ticks} ticks, the last one at t={end}");
    if let Some(number) = args.tick {
        let index = number.checked_sub(1).filter(|index| *index < ticks);
        return index
            .ok_or_else(|| Failure::usage(format!("there is no tick {number}")).hint(there_are));
    }
    let at = Time::ZERO + args.at.unwrap_or(Span::ZERO);
    let until = run.ticks.partition_point(|tick| tick.observation.at <= at);
    let none = || Failure::usage(format!("there is no tick at or before t={at}")).hint(there_are);
    until.checked_sub(1).ok_or_else(none)
}
