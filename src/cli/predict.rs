//! `kube-lockstep predict`.

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;

use super::args::{Format, OneAnyRelease, Source, of_hpa, of_vpa};
use super::exit;
use super::failure::Failure;
use super::fixtures::AnyFixture;
use super::manifests::{self, ManifestArgs};
use super::output::{columns, show, unless_closed};
use super::reports::ReportFile;
use crate::model::rules::Release;
use crate::report::unmet::UnmetOf;
use crate::report::{csv, html, json, recommender, table};
use crate::run::recommender::free_recommender_run;
use crate::scenario::Scenario;
use crate::scenario::vpa::VpaScenario;
use crate::{Predict, Prediction};

const HELP: &str = "\
Exit codes:
  0    all expectations are met, or there are none
  1    an expectation is not met
  2    an invalid command line, scenario or manifest, or a value that the prediction requires is
       missing
  3    the scenario can't be run to its end, because its outcome is not deterministic";

/// The arguments.
#[derive(clap::Args, Debug)]
#[command(after_help = format!("{}\n\n{HELP}", manifests::LOAD_HELP))]
#[command(group = clap::ArgGroup::new("what").required(true).args(["names", "filename"]))]
pub(super) struct Args {
    /// Scenarios: files, folders, globs, or ids of fixtures
    #[arg(value_name = "FILE")]
    names: Vec<String>,
    #[command(flatten)]
    release: OneAnyRelease,
    /// The output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// Also write the prediction as a page with charts and the derivation of each tick
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Also write the ticks as CSV, for a spreadsheet
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    #[command(flatten)]
    source: Source,
    /// Only this HPA of the manifests: NAME or NAMESPACE/NAME
    #[arg(long, value_name = "NAME", requires = "filename")]
    hpa: Option<String>,
    #[command(flatten)]
    manifests: ManifestArgs,
}

pub(super) fn run(args: &Args) -> anyhow::Result<u8> {
    let fixtures = args.source.fixtures.as_deref();
    let scenarios =
        manifests::any_scenarios(&args.names, &args.manifests, args.hpa.as_deref(), fixtures)?;
    let single = [("--html", &args.html), ("--csv", &args.csv)];
    if let Some((flag, _)) = single.into_iter().find(|(_, file)| file.is_some())
        && scenarios.len() > 1
    {
        let what = format!("{flag} writes one prediction, and these are {}", scenarios.len());
        let hint = "name one scenario, or select one HPA with --hpa";
        return Err(Failure::usage(what).hint(hint).into());
    }
    let mut files = Files {
        html: args.html.as_deref().map(|path| ReportFile::open("--html", path)).transpose()?,
        csv: args.csv.as_deref().map(|path| ReportFile::open("--csv", path)).transpose()?,
    };
    let mut code = exit::CONFORMS;
    for (index, scenario) in scenarios.iter().enumerate() {
        if index > 0 && args.format == Format::Text {
            show("\n")?;
        }
        let several = scenarios.len() > 1;
        code = code.max(match scenario {
            AnyFixture::Hpa(scenario) => predict(args, scenario, several, &mut files)?,
            AnyFixture::Vpa(scenario) => predict_vpa(args, scenario, several)?,
        });
    }
    Ok(code)
}

/// The files of a prediction beside its output.
struct Files {
    html: Option<ReportFile>,
    csv: Option<ReportFile>,
}

/// Predicts a scenario of a VPA, and returns the exit code.
fn predict_vpa(args: &Args, scenario: &VpaScenario, several: bool) -> anyhow::Result<u8> {
    let release = of_vpa(args.release.release)?;
    let unused = [("--html", args.html.is_some()), ("--csv", args.csv.is_some())];
    if let Some((flag, _)) = unused.into_iter().find(|(_, given)| *given) {
        let what = format!("{flag} does not support scenarios of VPAs");
        return Err(Failure::usage(what).hint("use --format json for other programs").into());
    }
    let run = free_recommender_run(scenario, release, &|_| false);
    match args.format {
        Format::Text => {
            let mut text = recommender::free_run(scenario, &run, release, columns());
            if run.undetermined.is_none() {
                let unmet = recommender::expectations(scenario, release, &run.unmet, columns());
                text.push_str(&unmet);
            }
            show(&text)?;
        }
        Format::Json => {
            let mut out = io::stdout();
            let written = recommender::free_run_json(&mut out, scenario, &run, release, several);
            unless_closed(written)?;
        }
    }
    if let Some(why) = &run.undetermined {
        anyhow::bail!("{}: {why}", scenario.path);
    }
    Ok(if run.unmet.is_empty() { exit::CONFORMS } else { exit::DIVERGES })
}

/// Predicts a scenario, and returns the exit code.
fn predict(
    args: &Args,
    scenario: &Arc<Scenario>,
    several: bool,
    files: &mut Files,
) -> anyhow::Result<u8> {
    let release: Release = of_hpa(args.release.release)?.unwrap_or(Release::NEWEST);
    let prediction = Predict::new(scenario.clone()).release(release).run();
    let applies = prediction.is_supported();
    let Prediction { run, unmet, .. } = &prediction;
    let whole = run.undetermined.is_none();
    let of = UnmetOf { id: &scenario.id, path: &scenario.path, release: &run.trace.release };
    match args.format {
        Format::Text => {
            let mut text = String::new();
            if !applies {
                text.push_str(&table::other_release(scenario, release, columns()));
            }
            text.push_str(&table::free_run(scenario, run, &release.to_string(), columns()));
            if whole {
                let here = scenario.expect.iter().filter(|it| it.releases.contains(release));
                let of_vpa = run
                    .vpa
                    .as_ref()
                    .map_or(0, |it| it.scenario.expectations_on(it.release).count());
                let expected = if applies { here.count() + of_vpa } else { 0 };
                text.push_str(&table::expectations(of, expected, unmet, columns()));
            }
            show(&text)?;
        }
        Format::Json => {
            let skipped = scenario.unsupported_on(release);
            let id = several.then_some(&*scenario.id);
            let summary = json::FreeRunSummary { id, unmet, of, skipped: skipped.as_deref() };
            unless_closed(json::free_run(&mut io::stdout(), run, &summary))?;
        }
    }
    if let Some(file) = &mut files.csv {
        file.write_all(csv::ticks(run).as_bytes())?;
    }
    if let Some(file) = &mut files.html {
        let note = (!applies).then(|| table::other_release_text(scenario, release));
        let page = html::prediction(scenario, run, unmet, note.as_deref());
        file.write_all(page.as_bytes())?;
    }
    if let Some(why) = &run.undetermined {
        anyhow::bail!("{}: {why}", scenario.path);
    }
    Ok(if unmet.is_empty() { exit::CONFORMS } else { exit::DIVERGES })
}
