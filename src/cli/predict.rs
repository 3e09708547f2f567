//! `kube-lockstep predict`.

use std::io::{self, Write};
use std::path::PathBuf;

use super::args::{Format, OneRelease, Source};
use super::exit;
use super::fixtures::Fixtures;
use super::output::{columns, show, unless_closed};
use super::reports::ReportFile;
use crate::report::{html, json, table};
use crate::{Predict, Prediction};

const HELP: &str = "\
Exit codes:
  0    all expectations are met, or there are none
  1    an expectation is not met
  2    an invalid command line, or an invalid scenario
  3    the scenario can't be run to its end, because its outcome is not deterministic";

/// The arguments.
#[derive(clap::Args, Debug)]
#[command(after_help = HELP)]
pub(super) struct Args {
    /// A scenario: a file, or the id of a fixture
    #[arg(value_name = "FILE")]
    name: String,
    #[command(flatten)]
    release: OneRelease,
    /// The output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// Also write the prediction as a page with charts and the derivation of each tick
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    #[command(flatten)]
    source: Source,
}

pub(super) fn run(args: &Args) -> anyhow::Result<u8> {
    let fixtures = Fixtures::find(args.source.fixtures.as_deref())?;
    let scenario = fixtures.one(&args.name)?.parse()?;
    let release = args.release.release;
    let html = args.html.as_deref().map(|path| ReportFile::open("--html", path)).transpose()?;
    let prediction = Predict::new(scenario.clone()).release(release).run();
    let applies = prediction.is_supported();
    let Prediction { run, unmet, .. } = &prediction;
    let whole = run.undetermined.is_none();
    match args.format {
        Format::Text => {
            let mut text = String::new();
            if !applies {
                text.push_str(&table::other_release(&scenario, release, columns()));
            }
            text.push_str(&table::free_run(&scenario, run, &release.to_string(), columns()));
            if whole {
                let here = scenario.expect.iter().filter(|it| it.releases.contains(release));
                let expected = if applies { here.count() } else { 0 };
                text.push_str(&table::expectations(&scenario.path, expected, unmet, columns()));
            }
            show(&text)?;
        }
        Format::Json => {
            let skipped = scenario.unsupported_on(release);
            unless_closed(json::free_run(&mut io::stdout(), run, unmet, skipped.as_deref()))?;
        }
    }
    if let Some(mut file) = html {
        let note = (!applies).then(|| table::other_release_text(&scenario, release));
        let page = html::prediction(&scenario, run, unmet, note.as_deref());
        file.write_all(page.as_bytes())?;
    }
    if let Some(why) = &run.undetermined {
        anyhow::bail!("{}: {why}", scenario.path);
    }
    Ok(if unmet.is_empty() { exit::CONFORMS } else { exit::DIVERGES })
}
