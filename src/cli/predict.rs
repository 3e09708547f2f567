//! `kube-lockstep predict`.

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;

use super::args::{Format, OneAnyRelease, Source, of_hpa, of_vpa};
use super::exit;
use super::failure::Failure;
use super::fixtures::AnyFixture;
use super::manifests::{self, AutoscalerArgs, FoundScenarios, ManifestArgs, SkipArgs};
use super::output::{columns, show, unless_closed};
use super::reports::ReportFile;
use kube_autoscaler_models::rules::{AnyRelease, Release, VpaRelease};
use kube_lockstep::{Predict, Prediction};
use kube_lockstep_report::html::{Predicted, Predictions};
use kube_lockstep_report::table::{Contents, Rows};
use kube_lockstep_report::unmet::UnmetOf;
use kube_lockstep_report::{csv, prediction_lines, recommender, table};
use kube_lockstep_scenario::Diagnostic;
use kube_lockstep_scenario::Scenario;
use kube_lockstep_scenario::vpa::VpaScenario;
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
        page: Predictions::of(scenarios.len()),
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
                let release = of_hpa(given(AnyRelease::Kubernetes(Release::NEWEST)));
                let release = release.map_err(|failure| match &scenario.vpa {
                    Some(_) => failure.hint(VPA_RELEASE),
                    None => failure,
                })?;
                let release = release.unwrap_or(Release::NEWEST);
                manifests::check_flags(scenario, release)?;
                predict(args, scenario, release, several, files)?
            }
            AnyFixture::Vpa(scenario) => {
                let release = of_vpa(given(AnyRelease::Vpa(VpaRelease::NEWEST)))?;
                predict_vpa(args, scenario, release, several, files)?
            }
        };
        match ended {
            Ended::Completely(of_scenario) => code = code.max(of_scenario),
            Ended::Early(failure) => failures.push(failure),
        }
    }
    all(failures).map_or(Ok(code), |failure| Err(failure.into()))
}

/// The hint for a release of the VPA, if the scenario also has an HPA.
const VPA_RELEASE: &str = "pass a Kubernetes release, such as --release 1.37; to choose the \
                           release of the VPA, set `vpaRelease` in the scenario file, which \
                           `kube-lockstep init` writes from manifests";

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

    /// Writes the page.
    fn write_page(self) -> io::Result<()> {
        match (self.html, self.page.page()) {
            (Some(mut file), Some(page)) => file.write_all(page.as_bytes()),
            _ => Ok(()),
        }
    }
}

/// Predicts a scenario of a VPA, and returns the exit code.
fn predict_vpa(
    args: &Args,
    scenario: &VpaScenario,
    release: VpaRelease,
    several: bool,
    files: &mut Files,
) -> anyhow::Result<Ended> {
    let Contents { rows, .. } = args.contents();
    let run = predicted_recommender_run(scenario, release);
    match args.format {
        Format::Text => {
            let mut text = files.separator();
            text.push_str(&recommender::free_run(scenario, &run, release, args.contents()));
            if run.undetermined.is_none() {
                let unmet = recommender::expectations(scenario, release, &run.unmet, columns());
                text.push_str(&unmet);
            }
            show(&text)?;
        }
        Format::Json => {
            let mut out = io::stdout();
            let written = prediction_lines::free_recommender_run(
                &mut out, scenario, &run, release, rows, several,
            );
            unless_closed(written)?;
        }
    }
    if let Some(file) = &mut files.csv {
        file.write_all(csv::recommendations(scenario, release, rows).as_bytes())?;
    }
    if files.html.is_some() {
        files.page.add_vpa(scenario, &run, release);
    }
    if let Some(why) = &run.undetermined {
        return Ok(Ended::Early(Failure::engine(format!("{}: {why}", scenario.path))));
    }
    let code = if run.unmet.is_empty() { exit::CONFORMS } else { exit::DIVERGES };
    Ok(Ended::Completely(code))
}

/// Predicts a scenario, and returns the exit code.
fn predict(
    args: &Args,
    scenario: &Arc<Scenario>,
    release: Release,
    several: bool,
    files: &mut Files,
) -> anyhow::Result<Ended> {
    let prediction = Predict::new(scenario.clone()).release(release).run();
    let applies = prediction.is_supported();
    let Contents { rows, .. } = args.contents();
    let Prediction { run, unmet, .. } = &prediction;
    if let Some(why) = run.refused().filter(|_| !args.manifests.filename.is_empty()) {
        let hint = "choose another release with --release, or edit the manifest";
        let failure = Failure::usage(format!("{}: {why}", scenario.path));
        return Ok(Ended::Early(failure.hint(hint)));
    }
    let whole = run.undetermined.is_none();
    let of = UnmetOf { id: &scenario.id, path: &scenario.path, release: &run.trace.release };
    match args.format {
        Format::Text => {
            let mut text = files.separator();
            if !applies {
                text.push_str(&table::other_release(scenario, release, columns()));
            }
            let on = release.to_string();
            text.push_str(&table::free_run(scenario, run, &on, args.contents()));
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
            let skipped = skipped.as_deref();
            let summary =
                prediction_lines::FreeRunSummary { id, scenario, rows, unmet, of, skipped };
            unless_closed(prediction_lines::free_run(&mut io::stdout(), run, &summary))?;
        }
    }
    if let Some(file) = &mut files.csv {
        file.write_all(csv::ticks(scenario, run, rows).as_bytes())?;
    }
    if files.html.is_some() {
        let note = (!applies).then(|| table::other_release_text(scenario, release));
        files.page.add(Predicted { scenario, run, unmet, note: note.as_deref() });
    }
    if let Some(why) = &run.undetermined {
        return Ok(Ended::Early(Failure::engine(format!("{}: {why}", scenario.path))));
    }
    Ok(Ended::Completely(if unmet.is_empty() { exit::CONFORMS } else { exit::DIVERGES }))
}
