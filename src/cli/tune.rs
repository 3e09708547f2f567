//! `kube-lockstep tune`.

use std::collections::BTreeSet;
use std::io::{self, IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::sync::Arc;

use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::args::{BuildArgs, Format, OneAnyRelease, Source, check_releases, workers};
use super::compare::without_noise;
use super::confirmation::{Confirmed, UpstreamController, Wording};
use super::failure::Failure;
use super::manifests::{self, AutoscalerArgs, ManifestArgs, SkipArgs, check_flags};
use super::measure::{MeasureArgs, metrics, note_on_cost};
use super::output::{columns, most_columns, show, tell, unless_closed};
use super::reports::ReportFile;
use super::setting::Names;
use super::{exit, interrupt};
use kube_autoscaler_models::rules::{AnyRelease, AnyReleases, Release, Releases};
use kube_lockstep::{Setting, Tune, Tuned};
use kube_lockstep_report::bound::Bounds;
use kube_lockstep_report::columns::Column;
use kube_lockstep_report::comparison::{ComparisonRow, SettingName};
use kube_lockstep_report::html::{Compared, Comparison};
use kube_lockstep_report::json;
use kube_lockstep_report::outcome::{note_line, note_text};
use kube_lockstep_report::terminal::CountBar;
use kube_lockstep_scenario::{Scenario, tree_to_yaml, with_noise_of_run};
use kube_lockstep_sim::run::{Verdict, free_run};
use kube_lockstep_tune::{Subject, Vary, Width};

const HELP: &str = "\
Figures of objectives: pod-hours, cost (with --price), missing, above, longest, changes,
reversals, excess, needed, peak and failed; for VPAs, cpu-requested, cpu-unused, cpu-short,
memory-requested, memory-unused, memory-short, short, oom-kills, evictions and resizes.
`kube-lockstep compare --help` explains them. A limit is a value (missing<=0.1, above<=5m), or a
difference from the current setting (missing<=+0, pod-hours<=+5%). With two or more days of load,
each day must meet the objective.

Exit codes:
  0    a setting meets the objective
  1    no setting meets the objective on all days; the controller stops the HPAs with all settings;
       or upstream's controller does not confirm the best one
  2    an invalid command line, scenario or manifest, or a value that the prediction requires is
       missing
  3    the outcome of the current setting is not deterministic, or an output can't be written
  4    a folder or a glob contains no scenarios
  130  interrupted (Ctrl-C); the result is that of the settings so far";

/// The arguments.
#[derive(clap::Args, Debug)]
#[command(after_help = format!("{}\n\n{HELP}", manifests::LOAD_HELP))]
#[command(group = clap::ArgGroup::new("what").required(true).args(["names", "filename"]))]
pub(super) struct Args {
    /// Scenarios: files, folders, globs, or ids of fixtures
    #[arg(value_name = "FILE")]
    names: Vec<String>,
    /// A field of the HPA or VPA to vary, with a range or a list of values; can be repeated. For
    /// example spec.maxReplicas=10..40:5,
    /// spec.behavior.scaleDown.stabilizationWindowSeconds=0,60,300 or, if several autoscalers are
    /// predicted together, web/spec.minReplicas=2..6 or
    /// vpa/spec.updatePolicy.updateMode=Initial,Recreate. `null` removes a field. Flags of the
    /// VPA's recommender and updater: recommender.flags.target-cpu-percentile=0.5..0.9:0.1
    /// [default: for HPAs, targets, limits, windows, policies and tolerances; for VPAs, minAllowed
    /// and maxAllowed]
    #[arg(long, value_name = "PATH=VALUES")]
    vary: Vec<Vary>,
    /// The bounds that a setting must meet, separated by commas: FIGURE<=LIMIT [default:
    /// missing<=+0,above<=+0s for HPAs, cpu-short<=+0,memory-short<=+0,oom-kills<=+0 for VPAs]
    #[arg(long, value_name = "BOUNDS")]
    objective: Option<Bounds>,
    /// The figure to minimize [default: cost with --price, otherwise pod-hours; with a VPA, --price
    /// or a figure is required]
    #[arg(long, value_name = "FIGURE")]
    minimize: Option<Column>,
    #[command(flatten)]
    measure: MeasureArgs,
    /// Check the best setting in this number of runs with different noise of the loads
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: u32,
    /// The largest number of settings to predict. A larger grid is not searched exhaustively
    #[arg(long, value_name = "N", default_value_t = 500)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    settings: u32,
    /// The seed of the settings that are chosen at random in a large grid
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// How many settings to predict in parallel [default: one per core]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    #[command(flatten)]
    release: OneAnyRelease,
    /// The output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// Also write the manifests of the autoscalers, with the best setting
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Also write a page: the settings in a chart of cost and missing pods (of a VPA: pods that
    /// use more than they request), and the timelines of the current and the best setting
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Do not run the best setting on the upstream controller
    #[arg(long)]
    no_confirm: bool,
    #[command(flatten)]
    build: BuildArgs,
    #[command(flatten)]
    source: Source,
    #[command(flatten)]
    autoscalers: AutoscalerArgs,
    #[command(flatten)]
    skip: SkipArgs,
    #[command(flatten)]
    manifests: ManifestArgs,
}

/// The result for one scenario, as JSON.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Line<'t> {
    namespace: &'t str,
    /// The first HPA.
    #[serde(skip_serializing_if = "Option::is_none")]
    hpa: Option<&'t str>,
    /// All HPAs of the target.
    hpas: Vec<&'t str>,
    /// The VPA.
    #[serde(skip_serializing_if = "Option::is_none")]
    vpa: Option<&'t str>,
    release: &'t str,
    #[serde(flatten)]
    tuned: &'t Tuned,
    /// True if the upstream controller makes the same decisions with the best setting. Absent: it
    /// was not run.
    #[serde(skip_serializing_if = "Option::is_none")]
    confirmed: Option<bool>,
    /// The reason if it was not confirmed.
    #[serde(skip_serializing_if = "Option::is_none")]
    not_confirmed: Option<&'t str>,
}

impl<'t> Line<'t> {
    fn new(
        scenario: &'t Scenario,
        release: &'t str,
        tuned: &'t Tuned,
        confirmed: &'t Confirmed,
    ) -> Line<'t> {
        let (confirmed, not_confirmed) = confirmed.as_json();
        let hpas: Vec<&str> = scenario.hpas.iter().map(|hpa| &*hpa.name).collect();
        let (namespace, hpa) = (&*scenario.namespace, hpas.first().copied());
        let vpa = scenario.vpa_name().map(|name| &**name);
        Line { namespace, hpa, hpas, vpa, release, tuned, confirmed, not_confirmed }
    }
}

impl Args {
    /// The release of Kubernetes.
    fn kubernetes(&self) -> Release {
        match self.release.release {
            Some(AnyRelease::Kubernetes(release)) => release,
            _ => Release::NEWEST,
        }
    }
}

pub(super) fn run(args: &Args) -> anyhow::Result<u8> {
    let selected = args.autoscalers.select().skipping(args.skip).applying_vpas();
    let fixtures = args.source.fixtures.as_deref();
    let (mut scenarios, left_out) =
        manifests::applied_scenarios(&args.names, &args.manifests, selected, fixtures)?;
    if let Some(named) = args.release.release {
        let named = match named {
            AnyRelease::Kubernetes(release) => {
                AnyReleases { kubernetes: Some(Releases::only(release)), vpa: Vec::new() }
            }
            AnyRelease::Vpa(release) => AnyReleases { kubernetes: None, vpa: vec![release] },
        };
        check_releases(&named, &scenarios)?;
    }
    for scenario in scenarios.iter_mut().filter(|it| it.hpas.is_empty()) {
        if let Some(AnyRelease::Vpa(release)) = args.release.release {
            *scenario = Arc::new(scenario.with_vpa_release(release));
        }
    }
    let names: Vec<Names> = scenarios.iter().map(|it| Names::of(it)).collect();
    let known = Names::concat(&names);
    check_names(&args.vary, &names, &known)?;
    if !args.vary.is_empty() {
        let is_varied = |scenario: &Arc<Scenario>| {
            let own = Names::of(scenario);
            args.vary.iter().any(|vary| own.have(&vary.path, &known))
        };
        scenarios.retain(is_varied);
    }
    let mut outputs = Outputs {
        manifests: args.output.as_deref().map(|it| ReportFile::open("--output", it)).transpose()?,
        html: args.html.as_deref().map(|it| ReportFile::open("--html", it)).transpose()?,
        page: Comparison::new(2 * scenarios.len()),
        rows: Vec::new(),
        written: Vec::new(),
    };
    left_out.into_iter().for_each(|note| outputs.page.note(note));
    let stop = CancellationToken::new();
    let message = "interrupted: printing the result of the settings so far; interrupt again to \
                   stop at once";
    let ending = interrupt::Ending::listen(&stop, message)?;
    let metrics = scenarios.iter().flat_map(|scenario| metrics(scenario)).collect();
    args.measure.check_used(&metrics)?;
    let mut code = exit::CONFORMS;
    for (index, scenario) in scenarios.iter().enumerate() {
        if stop.is_cancelled() {
            break;
        }
        if index > 0 && args.format == Format::Text {
            show("\n")?;
        }
        let several = scenarios.len() > 1;
        code = code.max(tune_one(args, scenario, &known, several, &stop, &mut outputs)?);
    }
    outputs.write()?;
    ending.end_by_signal();
    Ok(code)
}

/// Fails if a field is one of an autoscaler that no scenario has.
fn check_names(vary: &[Vary], names: &[Names], known: &Names) -> Result<(), Failure> {
    let has = |vary: &&Vary| names.iter().any(|own| own.have(&vary.path, known));
    let Some(Vary { path, .. }) = vary.iter().find(|vary| !has(vary)) else { return Ok(()) };
    let kind = known.kind_of(path);
    let name = path.name.as_ref().map(|name| format!(" `{name}`")).unwrap_or_default();
    Err(Failure::usage(format!("--vary {path}: there is no {kind}{name}")).hint(known.listed()))
}

/// The files that are written at the end.
struct Outputs {
    manifests: Option<ReportFile>,
    html: Option<ReportFile>,
    page: Comparison,
    rows: Vec<ComparisonRow>,
    /// The changed manifests.
    written: Vec<serde_json::Value>,
}

impl Outputs {
    fn write(self) -> anyhow::Result<()> {
        if let Some(mut file) = self.manifests {
            let documents = self.written.iter().map(tree_to_yaml).collect::<Vec<_>>();
            file.write_all(documents.join("---\n").as_bytes())?;
        }
        if let Some(mut file) = self.html {
            file.write_all(self.page.page(&self.rows).as_bytes())?;
        }
        Ok(())
    }
}

/// Searches the settings of one scenario. Returns the exit code.
fn tune_one(
    args: &Args,
    scenario: &Arc<Scenario>,
    known: &Names,
    is_one_of_several: bool,
    stop: &CancellationToken,
    outputs: &mut Outputs,
) -> anyhow::Result<u8> {
    let tune = search(args, scenario, known)?;
    let tuned = {
        let most = args.settings as usize;
        let bar = io::stderr().is_terminal().then(|| CountBar::new(most, "settings"));
        tune.run_watched(&|progress| {
            bar.iter().for_each(|bar| bar.set(progress.done));
            !stop.is_cancelled()
        })
    };
    let tuned = tuned.map_err(|why| Failure::usage(format!("{}: {why}", scenario.path)))?;
    let confirmed = confirm(args, &tune, &tuned, stop)?;
    let release = match &scenario.vpa {
        Some(vpa) if scenario.hpas.is_empty() => vpa.release.to_string(),
        _ => args.kubernetes().to_string(),
    };
    let subject = Subject { scenario, release: &release };
    match args.format {
        Format::Text => {
            if is_one_of_several {
                show(&format!("{subject}\n"))?;
            }
            let width = Width { columns: columns(), most: most_columns() };
            show(&tuned.text(&subject, width))?;
            let text = confirmed.text();
            if !text.is_empty() {
                show(&format!("\n{text}"))?;
            }
        }
        Format::Json => {
            let line = Line::new(scenario, &release, &tuned, &confirmed);
            unless_closed(json::line(&mut io::stdout(), &line))?;
        }
    }
    let notes: BTreeSet<String> =
        tuned.notes.iter().map(|note| note_line(&scenario.path, note, columns())).collect();
    notes.iter().for_each(|note| tell(note));
    let best = tuned.best.as_ref().unwrap_or(&tuned.current);
    let note = note_on_cost(&best.figures);
    note.iter().for_each(|note| tell(&note_text(note, columns())));
    let best = tune.scenario_with(best).map_err(Failure::usage)?;
    outputs.written.extend(best.hpas.iter().map(|hpa| hpa.manifest.clone()));
    let vpa = best.vpa.as_ref().and_then(|vpa| vpa.recommender.file.vpa.as_ref());
    outputs.written.extend(vpa.map(|vpa| vpa.0.clone()));
    if outputs.html.is_some() {
        add_to_page(args, outputs, &tune, &tuned, &subject, is_one_of_several)?;
        let mut chart = tuned.chart(&subject);
        chart.notes.extend(confirmed.sentence());
        outputs.page.add_front(chart);
    }
    Ok(match (&tuned.best, confirmed) {
        (Some(_), Confirmed::No(_)) | (None, _) => exit::DIVERGES,
        (Some(_), _) if !tuned.is_met() => exit::DIVERGES,
        _ => exit::CONFORMS,
    })
}

/// The search for the settings of a scenario.
fn search(args: &Args, scenario: &Arc<Scenario>, known: &Names) -> Result<Tune, Failure> {
    let release = args.kubernetes();
    check_flags(scenario, release)?;
    let unsupported = scenario.vpa.as_ref().and_then(|vpa| vpa.unsupported());
    if let Some(why) = scenario.unsupported_on(release).or(unsupported) {
        let what = format!("{}: {why}", scenario.path);
        return Err(Failure::usage(what).hint("choose another release with --release"));
    }
    if args.runs > 1 && with_noise_of_run(scenario, 1).is_none() {
        return Err(without_noise(&scenario.path));
    }
    let own = Names::of(scenario);
    let vary = args.vary.iter().filter(|vary| own.have(&vary.path, known));
    let mut tune = Tune::new(scenario.clone())
        .release(release)
        .vary(vary.cloned().collect())
        .capacities(args.measure.capacities_of([scenario]))
        .runs(args.runs)
        .settings(args.settings as usize)
        .jobs(workers(args.jobs))
        .seed(args.seed);
    if let Some(objective) = &args.objective {
        tune = tune.objective(objective.clone());
    }
    if let Some(figure) = args.minimize {
        tune = tune.minimize(figure);
    }
    args.measure.check_price(scenario)?;
    if let Some(price) = args.measure.price {
        tune = tune.price(price);
    }
    Ok(tune)
}

/// Adds the settings to show to the page: the timelines of the current and the best one.
fn add_to_page(
    args: &Args,
    outputs: &mut Outputs,
    tune: &Tune,
    tuned: &Tuned,
    subject: &Subject<'_>,
    is_one_of_several: bool,
) -> anyhow::Result<()> {
    for (name, setting) in tuned.shown() {
        let name = SettingName {
            scenario: is_one_of_several.then(|| subject.scenario.id.clone()),
            setting: Some(name),
            load_factor: None,
        };
        outputs.rows.push(subject.row(name.clone(), setting.figures));
        if setting.changes.is_empty() || tuned.best.as_ref() == Some(setting) {
            let scenario = tune.scenario_with(setting).map_err(Failure::usage)?;
            let run = free_run(&scenario, args.kubernetes());
            let about = setting.text();
            outputs.page.add(Compared {
                setting: &name,
                about: &about,
                scenario: &scenario,
                run: &run,
            });
        }
    }
    Ok(())
}

/// Runs the best setting on the upstream controller, if it differs from the current one.
fn confirm(
    args: &Args,
    tune: &Tune,
    tuned: &Tuned,
    stop: &CancellationToken,
) -> Result<Confirmed, Failure> {
    let changed = |best: &&Setting| !best.changes.is_empty();
    let Some(best) = tuned.best.as_ref().filter(changed) else { return Ok(Confirmed::NotRun) };
    if args.no_confirm || stop.is_cancelled() {
        return Ok(Confirmed::NotRun);
    }
    let release = args.kubernetes();
    let scenario = tune.scenario_with(best).map_err(Failure::usage)?;
    let wording = Wording {
        subject: "with the best setting, ",
        solution: "write the scenario with `init` and run it",
    };
    Ok(match UpstreamController::prepare(release, &args.build, stop) {
        Ok(upstream) => upstream.confirm(&scenario, &Verdict::Conforms, wording),
        Err(why) => Confirmed::Unavailable(why),
    })
}
