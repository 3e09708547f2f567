//! `kube-lockstep list`.

use std::fmt::Write as _;
use std::io;

use serde::Serialize;

use super::args::{Format, Source};
use super::exit;
use super::failure::Failure;
use super::fixtures::{AnyFixture, Fixtures};
use super::output::{show, unless_closed};
use kube_lockstep_report::style::{DIM, STRONG, paint};
use kube_lockstep_report::{counted, json};

const HELP: &str = "\
Exit codes:
  0    the scenarios are listed
  2    an invalid command line, or an invalid scenario
  4    there are no scenarios, or a glob matches none";

/// The arguments.
#[derive(clap::Args, Debug)]
#[command(after_help = HELP)]
pub(super) struct Args {
    /// Scenarios to list: ids, folders (`tolerance`, `my/scenarios`), globs (`**/*window*`,
    /// `my/**/*.yaml`), or files
    #[arg(value_name = "SCENARIO")]
    names: Vec<String>,
    /// The output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    #[command(flatten)]
    source: Source,
}

/// A scenario in the list. Its serialized form is a line of the JSON output.
#[derive(Serialize)]
struct Listed {
    id: String,
    path: String,
    requirement: String,
    upstream: String,
    releases: String,
}

impl Listed {
    fn new(scenario: AnyFixture) -> Listed {
        macro_rules! listed {
            ($scenario:ident) => {
                Listed {
                    id: $scenario.id.clone(),
                    path: $scenario.path.clone(),
                    requirement: $scenario.requirement.clone(),
                    upstream: $scenario.upstream.clone(),
                    releases: $scenario.releases.to_string(),
                }
            };
        }
        match scenario {
            AnyFixture::Hpa(scenario) => listed!(scenario),
            AnyFixture::Vpa(scenario) => listed!(scenario),
        }
    }
}

pub(super) fn run(args: &Args) -> anyhow::Result<u8> {
    let fixtures = Fixtures::find(args.source.fixtures.as_deref())?;
    let selected = fixtures.select(&args.names)?;
    let mut scenarios = Vec::new();
    let mut invalid = Vec::new();
    for fixture in &selected {
        match fixture.parse_any() {
            Ok(scenario) => scenarios.push(Listed::new(scenario)),
            Err(failure) => invalid.push(failure.problem.what),
        }
    }
    if !invalid.is_empty() {
        return Err(Failure::usage(invalid.join("\n")).into());
    }
    if args.format == Format::Json {
        for scenario in &scenarios {
            unless_closed(json::line(&mut io::stdout(), scenario))?;
        }
        return Ok(exit::CONFORMS);
    }
    let mut text = String::new();
    for scenario in &scenarios {
        let _ = writeln!(text, "{}", paint(STRONG, &scenario.id));
        let _ = writeln!(text, "    {}", scenario.requirement.trim());
        if !scenario.upstream.is_empty() {
            let _ = writeln!(text, "    {}", paint(DIM, &scenario.upstream));
        }
    }
    let (count, total) = (scenarios.len(), fixtures.all().len());
    let known = |id: &str| fixtures.all().iter().any(|fixture| fixture.id == id);
    let _ = if !scenarios.iter().all(|scenario| known(&scenario.id)) {
        writeln!(text, "\n{}", counted(count, "scenario"))
    } else if count == total {
        writeln!(text, "\n{} in {}", counted(count, "scenario"), fixtures.origin())
    } else {
        writeln!(text, "\n{count} of {} in {}", counted(total, "scenario"), fixtures.origin())
    };
    show(&text)?;
    Ok(exit::CONFORMS)
}
