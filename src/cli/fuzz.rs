//! `kube-lockstep fuzz`.

use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use clap::ValueEnum;
use tokio_util::sync::CancellationToken;

use super::args::{
    Format, ReleaseOrCheckoutArgs, ShardArgs, check_runs_hpas, program_and_engine, workers,
};
use super::doctor::check_writable;
use super::failure::Failure;
use super::fixtures::{AnyFixture, Fixtures};
use super::output::{PreparationLog, columns, show, tell, unless_closed};
use super::progress::Progress;
use super::{exit, fuzz_vpa, interrupt};
use kube_autoscaler_models::rules::{AnyRelease, Release, VpaRelease};
use kube_lockstep_engines::source::{CustomProgram, EngineFactory, EngineSource};
use kube_lockstep_engines::upstream::checkout::Checkout;
use kube_lockstep_engines::upstream::prepare_recommender;
use kube_lockstep_fuzz::fuzzing::{
    Finding, FuzzEvent, FuzzPlan, FuzzSummary, NewEngine, RunLimit, catches_panics, fuzz,
};
use kube_lockstep_fuzz::report;
use kube_lockstep_fuzz::report::{FuzzSetting, Saved};
use kube_lockstep_fuzz::{Area, Fuzzed};
use kube_lockstep_scenario::Scenario;
use kube_lockstep_sim::engine::ControllerKind;
use kube_lockstep_sim::run::{Preparation, Setting, Shard};

/// The message for a signal while there are findings to save.
const INTERRUPTED: &str = "interrupted: saving the findings; interrupt again to stop at once";

/// The arguments.
#[derive(clap::Args, Debug)]
#[command(after_help = HELP)]
pub(super) struct Args {
    /// The seed of the generator; the same seed gives the same scenarios [default: random]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Stop after this number of ticks [default: 100000]
    #[arg(long, value_name = "N", conflicts_with = "time",
        value_parser = clap::value_parser!(u32).range(1..))]
    ticks: Option<u32>,
    /// Stop after this time, for example 60s or 10m
    #[arg(long, value_name = "DURATION", value_parser = super::args::time_limit)]
    time: Option<Duration>,
    #[command(flatten)]
    pub(super) release: ReleaseOrCheckoutArgs,
    #[command(flatten)]
    part: ShardArgs,
    /// How many scenarios to run in parallel [default: one per core]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// Only generate scenarios that focus on these areas: ratios, readiness, behavior, pods,
    /// errors, edits, quantities, custom, several, races, days; `hpa-and-vpa`, which is only
    /// generated if it is named, because it requires both controllers; or `vpa`, the recommender of
    /// the Vertical Pod Autoscaler. Can be repeated; areas can also be separated by commas
    #[arg(long = "area", value_name = "AREA", value_delimiter = ',')]
    areas: Vec<AnyArea>,
    /// The folder where findings are saved as fixtures
    #[arg(long, value_name = "DIR", default_value = "fuzz-found")]
    save: PathBuf,
    /// The output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// The engine
    #[arg(long, value_enum, default_value_t)]
    engine: EngineName,
    /// Run a program that speaks the engine protocol instead of the upstream engine
    #[arg(long, value_name = "FILE")]
    pub(super) program: Option<PathBuf>,
    /// Check only the expectations of this scenario in each generated scenario, without a
    /// comparison with the model: for controllers that differ from upstream's by design. The
    /// expectations must not depend on times: `always: {}`, `never: {}` and `atMost`
    #[arg(long, value_name = "SCENARIO", requires = "program")]
    pub(super) expect: Option<String>,
}

/// An area of scenarios of HPAs, or the recommender.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum AnyArea {
    Hpa(Area),
    Vpa,
}

impl FromStr for AnyArea {
    type Err = String;
    fn from_str(text: &str) -> Result<AnyArea, String> {
        match text {
            "vpa" => Ok(AnyArea::Vpa),
            area => {
                let hpa_area = area.parse().map(AnyArea::Hpa);
                hpa_area.map_err(|error| format!("{error}, and vpa (the VPA recommender)"))
            }
        }
    }
}

impl Args {
    /// Returns true if the recommender is tested: by its area, or by one of its releases.
    fn is_vpa(&self) -> bool {
        let has_vpa_release = matches!(self.release.release, Some(AnyRelease::Vpa(_)));
        self.areas.as_slice() == [AnyArea::Vpa] || (has_vpa_release && self.areas.is_empty())
    }

    /// Returns true if the model is run against itself.
    pub(super) fn is_on_model(&self) -> bool {
        self.engine == EngineName::Model
    }

    /// The arguments that repeat a finding without a model.
    fn replay_args(&self) -> Vec<String> {
        let (Some(program), Some(_)) = (&self.program, &self.expect) else { return Vec::new() };
        let program = program.to_string_lossy().into_owned();
        ["--program".to_owned(), program, "--compare".to_owned(), "expectations".to_owned()].into()
    }

    /// The scenario with the expectations.
    fn template(&self) -> Result<Option<Arc<Scenario>>, Failure> {
        let Some(name) = &self.expect else { return Ok(None) };
        let fixtures = Fixtures::find(None)?;
        let selected = fixtures.select(std::slice::from_ref(name))?;
        let [only] = selected.as_slice() else {
            let what = format!("--expect requires one scenario; {name} names {}", selected.len());
            return Err(Failure::usage(what));
        };
        let AnyFixture::Hpa(scenario) = only.parse_any()? else {
            let what = format!("{name} is a VPA scenario");
            return Err(Failure::usage(what).hint("--expect requires an HPA scenario"));
        };
        if !scenario.has_expectations() {
            let what = format!("{}: the scenario has no expectations", scenario.path);
            return Err(Failure::usage(what).hint("add `expect`"));
        }
        if let Some(expected) = scenario.expect.iter().find(|it| !it.holds_at_any_time()) {
            let (path, line) = (&scenario.path, expected.line);
            let what = format!(
                "{path}:{line}: this expectation depends on times, which differ in each generated \
                 scenario"
            );
            let hint = "use `always: {}`, `never: {}` or `atMost`, without `hpa`";
            return Err(Failure::usage(what).hint(hint));
        }
        Ok(Some(scenario))
    }

    /// The areas of scenarios of HPAs.
    fn hpa_areas(&self) -> Result<Vec<Area>, Failure> {
        let area = |area: &AnyArea| match area {
            AnyArea::Hpa(area) => Ok(*area),
            AnyArea::Vpa => {
                let what = "the area vpa can't be combined with other areas";
                Err(Failure::usage(what).hint("run it separately, with `--area vpa`"))
            }
        };
        self.areas.iter().map(area).collect()
    }
}

/// The engines.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug, Default)]
enum EngineName {
    /// The upstream controller in virtual time
    #[default]
    Upstream,
    /// The model against itself: shows coverage and speed, without Go
    Model,
}

const HELP: &str = "\
Exit codes:
  0    no divergence
  1    a divergence was found and saved
  2    an invalid command line
  3    the engine could not run; a scenario had no verdict and none diverged; or a finding can't be
       saved
  130  interrupted (Ctrl-C)";

pub(super) fn run(args: &Args) -> anyhow::Result<u8> {
    if args.part.shard.is_some() && args.seed.is_none() {
        let what = "--shard requires --seed: all shards of a run must have the same seed";
        return Err(Failure::usage(what).hint("set the same --seed for all shards").into());
    }
    if args.is_vpa() {
        return run_prepared(args, fuzz_vpa::prepare(args)?);
    }
    let areas = args.hpa_areas()?;
    let (other, program) = (args.engine == EngineName::Model, args.program.is_some());
    let checkout = args.release.local.open(other, program)?;
    check_runs_hpas(checkout.as_ref())?;
    let release = args.release.release(checkout.as_ref())?;
    let stop = CancellationToken::new();
    let engine = engine(args, release, checkout.as_ref(), &stop)?;
    let area_names = areas.iter().map(|area| area.name().to_owned()).collect();
    run_prepared(args, Prepared { engine, release, checkout, areas, area_names, prefix: "", stop })
}

/// A run whose engine is ready.
pub(super) struct Prepared<K: ControllerKind> {
    pub(super) engine: EngineFactory<K>,
    pub(super) release: K::Release,
    pub(super) checkout: Option<Checkout>,
    /// The areas of scenarios of HPAs.
    pub(super) areas: Vec<Area>,
    /// The names of all areas, for reports.
    pub(super) area_names: Vec<String>,
    /// The beginning of the names of files with findings.
    pub(super) prefix: &'static str,
    /// Cancelled to end the run early.
    pub(super) stop: CancellationToken,
}

fn run_prepared<K: Fuzzed>(args: &Args, prepared: Prepared<K>) -> anyhow::Result<u8> {
    let Prepared { engine, release, checkout, areas, area_names, prefix, stop } = prepared;
    let jobs = workers(args.jobs);
    let seed = args.seed.unwrap_or_else(random_seed);
    let setting = FuzzSetting {
        setting: Setting {
            engine: engine.name().clone(),
            release: release.to_string(),
            program: args.program.clone(),
            replay_args: args.replay_args(),
            checkout: checkout.map(|checkout| checkout.path),
            shard: args.part.shard,
            ..Setting::default()
        },
        seed,
        version: env!("CARGO_PKG_VERSION"),
        areas: area_names,
        jobs,
    };
    let limit =
        args.time.map_or(RunLimit::Ticks(args.ticks.unwrap_or(100_000) as usize), RunLimit::Time);
    let plan: FuzzPlan<K> = FuzzPlan {
        shard: args.part.shard.unwrap_or(Shard::WHOLE),
        jobs,
        areas,
        template: args.template()?,
        known: Fixtures::find(None)?.known()?,
        stop,
        ..FuzzPlan::new(seed, limit, release)
    };
    check_writable(&args.save).map_err(|error| not_saved(&args.save, &error))?;
    let ending = interrupt::Ending::listen(&plan.stop, INTERRUPTED)?;
    let results = Results { setting: &setting, folder: &args.save, prefix, format: args.format };
    let summary = run_and_report(&plan, &results, &|| engine.make())?;
    ending.end_by_signal();
    Ok(if summary.divergences > 0 {
        exit::DIVERGES
    } else if summary.inconclusive > 0 {
        exit::ENGINE
    } else {
        exit::CONFORMS
    })
}

fn engine(
    args: &Args,
    release: Release,
    checkout: Option<&Checkout>,
    stop: &CancellationToken,
) -> Result<EngineFactory, Failure> {
    let source = match (&args.program, args.engine, checkout) {
        (Some(_), EngineName::Model, _) => return Err(program_and_engine()),
        (Some(program), ..) => EngineSource::Program(CustomProgram {
            path: program.clone(),
            has_model: args.expect.is_none(),
        }),
        (None, EngineName::Model, _) => EngineSource::Model,
        (None, _, Some(checkout)) => EngineSource::Checkout(checkout.clone()),
        (None, _, None) => EngineSource::Upstream,
    };
    let mut preparing = PreparationLog::default();
    let mut progress = |it: Preparation| preparing.log(&it);
    let limits = args.release.local.build.limits(stop);
    if args.areas.contains(&AnyArea::Hpa(Area::HpaAndVpa)) && !args.is_on_model() {
        prepare_recommender(VpaRelease::NEWEST, &limits.builds, &mut progress);
    }
    Ok(source.prepare(release, &limits, &mut progress)?)
}

/// A new seed. The generator itself has no clock.
fn random_seed() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |now| now.as_micros() as u64 % 1_000_000_000)
}

/// Runs the plan and reports on it.
fn run_and_report<K: Fuzzed>(
    plan: &FuzzPlan<K>,
    results: &Results<'_>,
    engine: NewEngine<'_, K>,
) -> anyhow::Result<FuzzSummary> {
    results.begin()?;
    // A panic of the model is reported as a finding.
    let report_panic = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !catches_panics() {
            report_panic(panic);
        }
    }));
    let mut progress = Progress::new();
    let mut broken: anyhow::Result<()> = Ok(());
    let summary = fuzz(plan, engine, &mut |event| {
        let written = match event {
            FuzzEvent::Progress { scenarios, ticks, elapsed } => {
                progress.update(|| report::progress(scenarios, ticks, elapsed));
                Ok(())
            }
            FuzzEvent::Failed { index, kind } => {
                progress.clear();
                // This is progress; the finding itself follows later.
                tell(&report::failed(index, &kind));
                Ok(())
            }
            FuzzEvent::Found(found) => {
                progress.clear();
                results.finding(&found)
            }
        };
        if broken.is_ok() {
            broken = written;
        }
    });
    drop(std::panic::take_hook());
    progress.clear();
    broken?;
    results.end(&summary)?;
    Ok(summary)
}

/// The output of a run of the fuzzer.
struct Results<'a> {
    setting: &'a FuzzSetting,
    /// The folder for the fixtures of findings.
    folder: &'a Path,
    /// The beginning of the names of their files.
    prefix: &'a str,
    format: Format,
}

impl Results<'_> {
    /// The first line.
    fn begin(&self) -> io::Result<()> {
        self.print(&report::first_line(self.setting), &|| report::first_json(self.setting))
    }

    /// Saves a finding as a fixture, and prints it.
    fn finding<S>(&self, found: &Finding<S>) -> anyhow::Result<()> {
        let failed = |error: io::Error| not_saved(self.folder, &error);
        std::fs::create_dir_all(self.folder).map_err(failed)?;
        let name = format!("{}{}-{}.yaml", self.prefix, self.setting.seed, found.index);
        let file = self.folder.join(name);
        let path = file.to_string_lossy().replace('\\', "/");
        let saved = Saved { text: report::fixture(found, self.setting, &path), path };
        std::fs::write(&file, &saved.text).map_err(failed)?;
        let text = report::finding(found, self.setting, &saved, columns());
        self.print(&text, &|| report::finding_json(found, self.setting, &saved.path))?;
        Ok(())
    }

    /// The last lines.
    fn end(&self, summary: &FuzzSummary) -> io::Result<()> {
        let text = report::summary(summary, self.setting.seed, columns());
        self.print(&text, &|| report::summary_json(summary, self.setting))
    }

    fn print(&self, text: &str, value: &dyn Fn() -> serde_json::Value) -> io::Result<()> {
        match self.format {
            Format::Json => unless_closed(report::json_line(&mut io::stdout(), &value())),
            Format::Text => show(text),
        }
    }
}

fn not_saved(folder: &Path, error: &io::Error) -> Failure {
    let what = format!("findings can't be saved in {}: {error}", folder.display());
    Failure::engine(what).hint("choose another folder with --save")
}
