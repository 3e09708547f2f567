//! `kube-lockstep predict`.

use std::io::{self, Write};
use std::path::PathBuf;

use super::args::{Format, OneAnyRelease, Source, VPA_RELEASE, hpa_release, vpa_release};
use super::exit;
use super::failure::Failure;
use super::fixtures::AnyFixture;
use super::manifests::{self, AutoscalerArgs, FoundScenarios, ManifestArgs, SkipArgs};
use super::output::{columns, show, unless_closed};
use super::reports::ReportFile;
use kube_autoscaler_models::rules::{AnyRelease, Release, VpaRelease};
use kube_lockstep::{Predict, Prediction};
use kube_lockstep_report::html::Predictions;
use kube_lockstep_report::outcome;
use kube_lockstep_report::prediction::Predicted;
use kube_lockstep_report::table::{Contents, Rows};
use kube_lockstep_scenario::Diagnostic;
use kube_lockstep_sim::run::recommender::predicted_recommender_run;

const HELP: &str = "\
Exit codes:
  0    all expectations are met, or there are none
  1    an expectation is not met
  2    the command line, a scenario or a manifest is invalid; a value that the prediction requires
  is missing; or the API server of the release rejects the HPA
  3    the scenario can't be run to its end, because its outcome is not deterministic; or an
       output can't be written
  4    a folder or a glob contains no scenarios";

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
    /// Also write the predictions as a page with charts and the derivation of each tick
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Also write the ticks as CSV, for a spreadsheet
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Print only the ticks that change the replicas or a condition; for VPAs, a target or a
    /// condition
    #[arg(long)]
    changes: bool,
    /// Print no charts before the tables
    #[arg(long)]
    no_charts: bool,
    #[command(flatten)]
    source: Source,
    #[command(flatten)]
    autoscalers: AutoscalerArgs,
    #[command(flatten)]
    skip: SkipArgs,
    #[command(flatten)]
    manifests: ManifestArgs,
}

impl Args {
    /// The rows, charts and width of the text of a prediction.
    fn contents(&self) -> Contents {
        let rows = if self.changes { Rows::Changes } else { Rows::All };
        Contents { rows, has_charts: !self.no_charts, columns: columns() }
    }
}

pub(super) fn run(args: &Args) -> anyhow::Result<u8> {
    let fixtures = args.source.fixtures.as_deref();
    let selected = args.autoscalers.select().skipping(args.skip);
    let FoundScenarios { scenarios, left_out } =
        manifests::any_scenarios(&args.names, &args.manifests, selected, fixtures)?;
    if args.csv.is_some() && scenarios.len() > 1 {
        let what = format!("--csv writes only one prediction, but there are {}", scenarios.len());
        let hint = "name one scenario, or select one autoscaler with --hpa or --vpa";
        return Err(Failure::usage(what).hint(hint).into());
    }
    let mut files = Files {
        has_output: false,
        html: args.html.as_deref().map(|path| ReportFile::open("--html", path)).transpose()?,
        page: Predictions::new(scenarios.len()),
        csv: args.csv.as_deref().map(|path| ReportFile::open("--csv", path)).transpose()?,
    };
    left_out.into_iter().for_each(|note| files.page.note(note));
    let code = predict_all(args, &scenarios, &mut files);
    // A scenario that ends early is on the page as well.
    files.write_page()?;
    code
}

/// Predicts all scenarios, and returns the exit code.
fn predict_all(args: &Args, scenarios: &[AnyFixture], files: &mut Files) -> anyhow::Result<u8> {
    let is_vpa = |scenario: &AnyFixture| matches!(scenario, AnyFixture::Vpa(_));
    let is_mixed = scenarios.iter().any(is_vpa) && !scenarios.iter().all(is_vpa);
    // If there are both HPAs and VPAs, the release applies only to those of its kind.
    let given = |newest: AnyRelease| {
        let release = args.release.release;
        let is_other =
            |given: AnyRelease| std::mem::discriminant(&given) != std::mem::discriminant(&newest);
        release.map(|given| if is_mixed && is_other(given) { newest } else { given })
    };
    let (mut code, mut failures) = (exit::CONFORMS, Vec::new());
    let several = scenarios.len() > 1;
    for scenario in scenarios {
        let ended = match scenario {
            AnyFixture::Hpa(scenario) => {
                let release = hpa_release(given(AnyRelease::Kubernetes(Release::NEWEST)));
                let release = release.map_err(|failure| match &scenario.vpa {
                    Some(_) => failure.hint(VPA_RELEASE),
                    None => failure,
                })?;
                let release = release.unwrap_or(Release::NEWEST);
                manifests::check_flags(scenario, release)?;
                let Prediction { run, unmet, .. } =
                    &Predict::new(scenario.clone()).release(release).run();
                match run.refused().filter(|_| !args.manifests.filename.is_empty()) {
                    Some(why) => {
                        let hint = "choose another release with --release, or edit the manifest";
                        let failure = Failure::usage(format!("{}: {why}", scenario.path));
                        Ended::Early(failure.hint(hint))
                    }
                    None => predict(args, &Predicted::hpa(scenario, run, unmet), several, files)?,
                }
            }
            AnyFixture::Vpa(scenario) => {
                let release = vpa_release(given(AnyRelease::Vpa(VpaRelease::NEWEST)))?;
                let run = predicted_recommender_run(scenario, release);
                predict(args, &Predicted::vpa(scenario, &run, release), several, files)?
            }
        };
        match ended {
            Ended::Completely(exit_code) => code = code.max(exit_code),
            Ended::Early(failure) => failures.push(failure),
        }
    }
    all(failures).map_or(Ok(code), |failure| Err(failure.into()))
}

/// How a prediction ended.
enum Ended {
    /// At the end of the scenario, with this exit code.
    Completely(u8),
    /// Before it, or the release refuses the HPA. The other scenarios are predicted nevertheless.
    Early(Failure),
}

/// The failures of all predictions, as one. The exit code is that of the first one.
fn all(failures: Vec<Failure>) -> Option<Failure> {
    let what = failures.iter().map(Failure::to_string).collect::<Vec<_>>().join("\n");
    let first = failures.into_iter().next()?;
    Some(Failure { problem: Diagnostic { what, ..first.problem }, ..first })
}

/// The files of predictions beside their output.
struct Files {
    /// True after the first prediction: an empty line precedes each further one.
    has_output: bool,
    html: Option<ReportFile>,
    /// The content of `html` so far.
    page: Predictions,
    csv: Option<ReportFile>,
}

impl Files {
    /// The text before the next prediction.
    fn separator(&mut self) -> String {
        let separator = if self.has_output { "\n" } else { "" };
        self.has_output = true;
        separator.to_owned()
    }

    fn write_page(self) -> io::Result<()> {
        match (self.html, self.page.page()) {
            (Some(mut file), Some(page)) => file.write_all(page.as_bytes()),
            _ => Ok(()),
        }
    }
}

/// Predicts a scenario, and returns the exit code.
fn predict(
    args: &Args,
    predicted: &Predicted<'_>,
    several: bool,
    files: &mut Files,
) -> anyhow::Result<Ended> {
    let contents = args.contents();
    let Contents { rows, columns, .. } = contents;
    match args.format {
        Format::Text => {
            let mut text = files.separator();
            if let Some(note) = predicted.other_release() {
                text.push_str(&outcome::note_text(&note, columns));
            }
            text.push_str(&predicted.text(contents));
            if predicted.undetermined().is_none() {
                text.push_str(&predicted.expectations(columns));
            }
            show(&text)?;
        }
        Format::Json => {
            unless_closed(predicted.write_json(&mut io::stdout(), rows, several))?;
        }
    }
    if let Some(file) = &mut files.csv {
        file.write_all(predicted.csv(rows).as_bytes())?;
    }
    if files.html.is_some() {
        files.page.add(predicted);
    }
    if let Some(why) = predicted.undetermined() {
        return Ok(Ended::Early(Failure::engine(format!("{}: {why}", predicted.path()))));
    }
    let is_met = predicted.unmet.is_empty();
    Ok(Ended::Completely(if is_met { exit::CONFORMS } else { exit::DIVERGES }))
}
