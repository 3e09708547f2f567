//! `kube-lockstep run`.

use std::io::{self, IsTerminal};
use std::num::NonZero;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

use super::args::{
    CheckoutArgs, Format, ReleaseArgs, ShardArgs, Source, given_flags, program_and_engine,
    time_limit, workers,
};
use super::existing::ExistingClusterArgs;
use super::failure::Failure;
use super::files;
use super::fixtures::{AnyFixture, Fixture, Fixtures};
use super::interrupt::Ending;
use super::output::{PreparationLog, Stdout, columns, tell, unless_closed};
use super::problems::folded;
use super::reports::{ReportArg, Reports};
use super::{exit, interrupt};
use kube_autoscaler_models::counted::listed;
use kube_autoscaler_models::time::Span;
use kube_lockstep::run_all;
use kube_lockstep_engines::custom::Controller;
use kube_lockstep_engines::options::ExistingCluster;
use kube_lockstep_engines::plan::{Compared, CustomController, Plan, RecommenderPlan};
use kube_lockstep_engines::registry::{Clock, ENGINES, EngineChoice, EngineInfo};
use kube_lockstep_engines::snapshots::Snapshots;
use kube_lockstep_engines::source::CustomProgram;
use kube_lockstep_engines::upstream::checkout::Checkout;
use kube_lockstep_report::json::Json;
use kube_lockstep_report::terminal::{Layout, Terminal};
use kube_lockstep_report::{CutOff, Report};
use kube_lockstep_scenario::Diagnostic;
use kube_lockstep_scenario::Scenario;
use kube_lockstep_scenario::vpa::VpaScenario;
use kube_lockstep_sim::run::{Event, Summary};

/// The arguments.
#[derive(clap::Args, Debug)]
#[command(after_help = exit::HELP)]
pub(super) struct Args {
    /// Scenarios to run: ids, folders (`tolerance`, `my/scenarios`), globs (`**/*window*`,
    /// `my/**/*.yaml`), or files
    #[arg(value_name = "SCENARIO")]
    names: Vec<String>,
    /// The engine [default: upstream if it can run here, otherwise recorded]
    #[arg(long, value_parser = engine_parser())]
    engine: Option<EngineChoice>,
    #[command(flatten)]
    releases: ReleaseArgs,
    #[command(flatten)]
    local: CheckoutArgs,
    #[command(flatten)]
    part: ShardArgs,
    /// The output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// Also write a report: `html=FILE`, `junit=FILE`, `markdown=FILE`, or `github` for annotations
    /// and the job summary of GitHub Actions. Can be repeated
    #[arg(long = "report", value_name = "KIND[=FILE]")]
    reports: Vec<ReportArg>,
    /// How many scenarios to run in parallel [default: one per core; 72 on real clusters, where
    /// scenarios mostly wait]. On clusters, at most 12 VPA scenarios run in parallel, because each
    /// runs its own recommender
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    #[command(flatten)]
    source: Source,
    /// Also list scenarios that conform
    #[arg(short, long)]
    verbose: bool,
    /// Run a program that speaks the engine protocol instead of the upstream engine; reports name
    /// it after its file. If the behavior of its controller differs from upstream's, add `--compare
    /// expectations`. Otherwise, scenarios with an HPA and a VPA also run the real recommender,
    /// updater and admission controller, which requires Go
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// What to compare with the model; requires --program or --controller [default: all with
    /// --program, scale with --controller]
    #[arg(long, value_parser = compare_parser(), value_name = "WHAT")]
    compare: Option<Compare>,
    /// Write the trace of each scenario into this folder, so that later runs can be compared with
    /// it; requires `--compare expectations`
    #[arg(long, value_name = "DIR", requires = "program", conflicts_with = "against")]
    record: Option<PathBuf>,
    /// Compare the writes of the controller with the traces in this folder, which `--record`
    /// wrote: the first difference is an unmet expectation; requires `--compare expectations`
    #[arg(long, value_name = "DIR", requires = "program")]
    against: Option<PathBuf>,
    /// The timeout for each answer of an engine, for example 1m
    #[arg(long, value_name = "DURATION", value_parser = time_limit)]
    time_limit: Option<std::time::Duration>,
    /// Divide each duration of a scenario by N on a real cluster [default: 15; with a kubeconfig,
    /// derived from the cluster's sync period]
    #[arg(long, value_name = "N")]
    speed: Option<NonZero<u32>>,
    /// Skip scenarios that take longer than this on a real cluster [default: 1m; 15m with a
    /// kubeconfig]
    #[arg(long, value_name = "DURATION", value_parser = time_limit)]
    longest: Option<std::time::Duration>,
    /// The image of a cluster in a container, instead of the default image of the release
    #[arg(long, value_name = "IMAGE")]
    image: Option<String>,
    #[command(flatten)]
    existing: ExistingClusterArgs,
    #[command(flatten)]
    controller: CustomControllerArgs,
}

/// The user's own controller.
#[derive(clap::Args, Debug)]
#[command(next_help_heading = "With --engine embedded")]
struct CustomControllerArgs {
    /// Test your own HPA controller: a command that starts it, for example 'my-controller
    /// --kubeconfig={kubeconfig} --sync-period={sync-period}'. It replaces upstream's controller on
    /// the embedded control plane
    #[arg(long, value_name = "COMMAND")]
    controller: Option<String>,
    /// A ClusterRole with additional permissions for that controller
    #[arg(long, value_name = "FILE", requires = "controller")]
    controller_role: Option<PathBuf>,
}

/// A value of `--compare`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Compare {
    /// Only the expectations of scenarios are checked.
    Expectations,
    /// These actions are compared with the model.
    Actions(Compared),
}

/// The values of `--compare`, with their help.
const COMPARE: [(Compare, &str, &str); 4] = [
    (
        Compare::Actions(Compared::Scale),
        "scale",
        "When it scales, and to how many replicas. Only with --controller",
    ),
    (
        Compare::Actions(Compared::Status),
        "status",
        "Also the status, except the messages of conditions. Only with --controller",
    ),
    (
        Compare::Actions(Compared::All),
        "all",
        "Everything: each request in order, messages, events, and the sync period",
    ),
    (
        Compare::Expectations,
        "expectations",
        "Nothing: check only the expectations of scenarios, for a controller whose behavior \
         differs from upstream's. Only with --program",
    ),
];

fn compare_parser() -> impl TypedValueParser<Value = Compare> {
    let values = COMPARE.map(|(_, name, help)| PossibleValue::new(name).help(help));
    PossibleValuesParser::new(values).map(|given| {
        let row = COMPARE.iter().find(|(_, name, _)| *name == given);
        row.map_or(Compare::Expectations, |(compare, ..)| *compare)
    })
}

impl Compare {
    fn name(self) -> &'static str {
        COMPARE.iter().find(|(it, ..)| *it == self).map_or("", |(_, name, _)| name)
    }
}

impl CustomControllerArgs {
    /// The selected controller.
    fn open(
        &self,
        engine: EngineChoice,
        compared: Option<Compared>,
    ) -> Result<Option<CustomController>, Failure> {
        let Some(command) = &self.controller else { return Ok(None) };
        if !engine.info().takes_controller {
            let what = "--controller replaces upstream's controller on a control plane";
            return Err(Failure::usage(what).hint(with_engine(|it| it.takes_controller)));
        }
        let wrong = |error: Diagnostic| {
            Failure::usage(format!("--controller: {error}")).with_hint(error.hint)
        };
        let mut controller = Controller::new(command).map_err(wrong)?;
        if let Some(path) = &self.controller_role {
            let wrong = |why: String| {
                let hint = "the file must contain a ClusterRole manifest";
                let what = format!("--controller-role {}: {why}", path.display());
                Failure::usage(what).hint(hint)
            };
            let text = files::read(path).map_err(|error| wrong(error.to_string()))?;
            controller = controller.with_role(&text).map_err(wrong)?;
        }
        Ok(Some(CustomController { controller, compared: compared.unwrap_or_default() }))
    }

    /// The arguments that select the same controller in a replay.
    fn replay_args(&self) -> impl Iterator<Item = String> {
        let role = self.controller_role.as_ref().map(|path| path.to_string_lossy().into_owned());
        given_flags([("--controller", self.controller.clone()), ("--controller-role", role)])
    }
}

/// The arguments that repeat a run on a cluster, or of a program. For other engines, their name is
/// enough.
fn replay_args(args: &Args) -> Vec<String> {
    let compare = [("--compare", args.compare.map(|it| it.name().to_owned()))];
    let Some(engine) = args.engine.filter(|engine| engine.is_wall_clock()) else {
        let program = args.program.as_ref().filter(|_| args.compare.is_some());
        let program = program.map(|path| path.to_string_lossy().into_owned());
        let against = args.against.as_ref().map(|path| path.to_string_lossy().into_owned());
        return given_flags([("--program", program)])
            .chain(given_flags(compare))
            .chain(given_flags([("--against", against)]))
            .collect();
    };
    let longest = args.longest.map(|it| Span(i64::try_from(it.as_nanos()).unwrap_or(i64::MAX)));
    given_flags([("--engine", Some(engine.info().name.to_owned()))])
        .chain(args.controller.replay_args())
        .chain(given_flags(compare))
        .chain(args.existing.replay_args())
        .chain(given_flags([
            ("--image", args.image.clone()),
            ("--speed", args.speed.map(|it| it.to_string())),
            ("--longest", longest.map(|it| it.to_string())),
        ]))
        .collect()
}

/// The default of `--longest` on existing clusters, whose sync period can't be shortened.
const LONGEST_ON_EXISTING: std::time::Duration = std::time::Duration::from_secs(15 * 60);

/// The engines of the registry, with their names and help.
fn engine_parser() -> impl TypedValueParser<Value = EngineChoice> {
    let values = ENGINES.map(|engine| PossibleValue::new(engine.name).help(engine.about));
    PossibleValuesParser::new(values).map(|given| {
        let engine = ENGINES.iter().find(|engine| engine.name == given);
        engine.map_or_else(EngineChoice::default, |engine| engine.choice)
    })
}

pub(super) fn run(args: &Args) -> anyhow::Result<u8> {
    let plan = match plan(args) {
        Ok(plan) => plan,
        Err(failure) => {
            // There was no run: only the reports of `--report` are written.
            let mut reports = Reports::open(Box::new(NoReport), &args.reports, args.format)?;
            report_failure(&mut reports, &failure)?;
            return Err(failure.into());
        }
    };
    let progress =
        args.format == Format::Text && io::stdout().is_terminal() && io::stderr().is_terminal();
    let console: Box<dyn Report + Send> = match args.format {
        Format::Json => Box::new(Json::new(io::stdout())),
        Format::Text => {
            let layout = Layout { columns: columns(), verbose: args.verbose, progress };
            Box::new(Terminal::new(Stdout, layout))
        }
    };
    let mut reports = Reports::open(console, &args.reports, args.format)?;
    // Without a progress bar, builds are logged.
    let preparing = (!progress).then(PreparationLog::default);
    let summary = run_and_report(&plan, &mut reports, preparing)?;
    Ok(match code(&summary) {
        // Other shards may have scenarios to run.
        exit::NOTHING if plan.shard.is_some() => exit::CONFORMS,
        code => code,
    })
}

/// No report on standard output.
struct NoReport;

impl Report for NoReport {
    fn event(&mut self, _event: &Event) -> io::Result<()> {
        Ok(())
    }
}

/// Writes to the reports of `--report` that there was no run.
fn report_failure(reports: &mut Reports, failure: &Failure) -> io::Result<()> {
    let cause = CutOff { why: &failure.problem.what, invalid: &failure.invalid };
    reports.files.cut_off(cause)
}

fn plan(args: &Args) -> Result<Plan, Failure> {
    let engine = engine(args)?;
    let info = engine.info();
    let other = info.choice != EngineChoice::Upstream;
    let checkout = args.local.open(other, args.program.is_some())?;
    let controller = args.controller.open(engine, compared(args)?)?;
    if info.missing_feature(kube_lockstep::HAS_CLUSTERS).is_some() {
        return Err(Failure::without_clusters(&format!("`--engine {}`", info.name)));
    }
    let existing = info.is_existing.then(|| args.existing.open(args.engine)).transpose()?;
    let fixtures = Fixtures::find(args.source.fixtures.as_deref())?;
    if fixtures.are_embedded() && args.names.is_empty() {
        let origin = fixtures.origin();
        // On standard error, separate from the results.
        tell(&format!(
            "running {origin}; to run the scenarios in this folder: kube-lockstep run .\n"
        ));
    }
    let (checkout_vpa, checkout_hpa) = match &checkout {
        Some(checkout) if checkout.has_recommender() => (Some(checkout), None),
        other => (None, other.as_ref()),
    };
    let recommenders = args.releases.vpa_with(checkout_vpa)?;
    let scenarios = scenarios(args, engine, &fixtures, checkout.as_ref())?;
    let releases = args.releases.releases(checkout_hpa)?;
    let mut plan = Plan::new(scenarios.hpa, engine, releases);
    plan.recommender = RecommenderPlan { scenarios: scenarios.vpa, releases: recommenders };
    plan.jobs = match args.jobs {
        None if engine.is_wall_clock() => plan.jobs,
        jobs => workers(jobs),
    };
    plan.known = fixtures.known()?;
    plan.traces = fixtures.traces();
    let has_model = args.compare != Some(Compare::Expectations);
    plan.program = args.program.clone().map(|path| CustomProgram { path, has_model });
    plan.snapshots = snapshots(args, has_model)?;
    plan.snapshots.check(plan.scenarios.iter().map(|scenario| &*scenario.id))?;
    plan.checkout = checkout;
    plan.releases_are_default =
        args.releases.are_default() && plan.checkout.is_none() && existing.is_none();
    plan.shard = args.part.shard;
    plan.only_cached = args.local.build.no_build;
    plan.time_limit = args.time_limit.unwrap_or(plan.time_limit);
    plan.replay_args = replay_args(args);
    let pace = &mut plan.cluster.pace;
    pace.speed = args.speed.unwrap_or(pace.speed);
    let longest = if existing.is_some() { LONGEST_ON_EXISTING } else { pace.longest };
    pace.longest = args.longest.unwrap_or(longest);
    plan.cluster.image = args.image.clone();
    plan.cluster.controller = controller;
    if let Some(cluster) = &existing {
        args.existing.confirm(cluster, &mut plan, args.releases.named())?;
    }
    plan.cluster.existing = existing;
    Ok(plan)
}

/// The actions to compare, after checking that `--compare` applies to the controller that runs.
fn compared(args: &Args) -> Result<Option<Compared>, Failure> {
    let Some(compare) = args.compare else { return Ok(None) };
    let wrong = |what: &str| Err(Failure::usage(format!("--compare {}: {what}", compare.name())));
    match (compare, args.program.is_some(), args.controller.controller.is_some()) {
        (_, false, false) => wrong("requires --program or --controller"),
        (Compare::Actions(Compared::Scale | Compared::Status), true, _) => {
            wrong("with --program, use `all` or `expectations`")
        }
        (Compare::Expectations, false, _) => {
            wrong("with --controller, use `scale`, `status` or `all`")
        }
        (Compare::Actions(compared), ..) => Ok(Some(compared)),
        (Compare::Expectations, ..) => Ok(None),
    }
}

/// Whether the traces of the program are recorded or compared, after checking the options.
fn snapshots(args: &Args, has_model: bool) -> Result<Snapshots, Failure> {
    let (option, snapshots) = match (&args.record, &args.against) {
        (None, None) => return Ok(Snapshots::None),
        (Some(folder), _) => ("--record", Snapshots::Record(folder.clone())),
        (None, Some(folder)) => ("--against", Snapshots::Against(folder.clone())),
    };
    if has_model {
        let what = format!("{option} requires --compare expectations");
        return Err(Failure::usage(what).hint("with a model, the program is compared with it"));
    }
    Ok(snapshots)
}

/// The hint to choose an engine with a property.
fn with_engine(has: impl Fn(&EngineInfo) -> bool) -> String {
    let engines = ENGINES.iter().filter(|engine| has(engine));
    let names: Vec<&str> = engines.map(|engine| engine.name).collect();
    format!("add --engine {}", listed(&names, "or"))
}

/// The selected engine, after checking that the other flags are valid for it.
fn engine(args: &Args) -> Result<EngineChoice, Failure> {
    let engine = match args.engine.unwrap_or_default() {
        // The settings of an existing kind cluster can't be chosen.
        EngineChoice::Kind if args.existing.is_named() => EngineChoice::Kubeconfig,
        engine => engine,
    };
    let info = engine.info();
    if args.program.is_some() && info.choice != EngineChoice::Upstream {
        return Err(program_and_engine());
    }
    if args.image.is_some() && !info.takes_image {
        let what = "--image requires an engine that creates clusters in containers";
        return Err(Failure::usage(what).hint(with_engine(|it| it.takes_image)));
    }
    let pace = [(args.speed.is_some(), "--speed"), (args.longest.is_some(), "--longest")];
    if !engine.is_wall_clock()
        && let Some((_, flag)) = pace.into_iter().find(|(given, _)| *given)
    {
        let what = format!("{flag} requires an engine with a real cluster");
        let is_new = |it: &EngineInfo| it.clock == Clock::Wall && !it.is_existing;
        return Err(Failure::usage(what).hint(with_engine(is_new)));
    }
    if info.is_existing && args.speed.is_some() {
        let what = "--speed can't be set: it is derived from the cluster's sync period";
        return Err(Failure::usage(what).hint("leave out --speed"));
    }
    if !info.is_existing {
        args.existing.refuse_flags()?;
    }
    Ok(engine)
}

/// The selected scenarios that the engine and the releases can run. Scenarios of VPAs require
/// releases of the recommender, and an engine that can run one.
fn scenarios(
    args: &Args,
    engine: EngineChoice,
    fixtures: &Fixtures,
    checkout: Option<&Checkout>,
) -> Result<Parsed, Failure> {
    let mut parsed = parse_all(&fixtures.select(&args.names)?)?;
    let total = parsed.hpa.len() + parsed.vpa.len();
    let has_recommender = checkout.map(Checkout::has_recommender);
    let other = args.program.is_some() || has_recommender == Some(false);
    let (info, controller) = (engine.info(), &args.controller.controller);
    let runs_recommender = info.clock == info.recommender_clock && controller.is_none();
    if !runs_recommender || other || args.releases.vpa().is_empty() {
        parsed.vpa.clear();
    }
    let is_with_hpa = parsed.vpa.is_empty() && parsed.hpa.iter().any(|it| it.vpa.is_some());
    if args.releases.are_only_vpa() || has_recommender == Some(true) {
        parsed.hpa.clear();
    }
    if total > 0 && parsed.hpa.is_empty() && parsed.vpa.is_empty() {
        let what = "no selected scenario can run: VPA scenarios run in virtual time or on an \
                    embedded control plane, on releases such as vpa-1.8; HPA scenarios run on \
                    Kubernetes releases";
        let hint = match is_with_hpa && args.releases.are_only_vpa() {
            true => {
                "pass a Kubernetes release, such as 1.37, to --release; `vpaRelease` in the \
                 scenario selects the release of the recommender"
            }
            false => "leave out --engine or --release",
        };
        return Err(Failure::nothing(what.to_owned()).hint(hint));
    }
    Ok(parsed)
}

/// Scenarios of both kinds.
#[derive(Default)]
pub(super) struct Parsed {
    pub(super) hpa: Vec<Arc<Scenario>>,
    pub(super) vpa: Vec<Arc<VpaScenario>>,
}

/// Parses all scenarios, and reports the errors of all invalid ones.
pub(super) fn parse_all(fixtures: &[Fixture]) -> Result<Parsed, Failure> {
    let mut scenarios = Parsed::default();
    for scenario in parse_each(fixtures)? {
        match scenario {
            AnyFixture::Hpa(scenario) => scenarios.hpa.push(scenario),
            AnyFixture::Vpa(scenario) => scenarios.vpa.push(scenario),
        }
    }
    Ok(scenarios)
}

/// Parses all scenarios like [`parse_each`], and refuses those that no model predicts.
pub(super) fn parse_modeled(fixtures: &[Fixture]) -> Result<Vec<AnyFixture>, Failure> {
    parse_each(fixtures)?.into_iter().map(AnyFixture::with_model).collect()
}

/// Parses all scenarios in their order, and reports the errors of all invalid ones, equal errors
/// once.
fn parse_each(fixtures: &[Fixture]) -> Result<Vec<AnyFixture>, Failure> {
    let mut scenarios = Vec::with_capacity(fixtures.len());
    let mut unreadable: Vec<String> = Vec::new();
    let mut invalid = Vec::new();
    for fixture in fixtures {
        match fixture.read() {
            Ok(text) => match fixture.parse_text(&text) {
                Ok(scenario) => scenarios.push(scenario),
                Err(error) => invalid.push(error),
            },
            Err(failure) => unreadable.push(failure.problem.what),
        }
    }
    if !invalid.is_empty() {
        unreadable.push(folded(&invalid));
    }
    if unreadable.is_empty() {
        return Ok(scenarios);
    }
    Err(Failure { invalid, ..Failure::usage(unreadable.join("\n")) })
}

/// The message for the first Ctrl-C while objects on an existing cluster remain to be removed.
fn interrupted(cluster: &ExistingCluster) -> String {
    let clean = cluster.cleaning();
    format!(
        "interrupted: removing everything that was created in the cluster; a second Ctrl-C exits \
         at once, and `{clean}` removes the rest"
    )
}

/// Runs the plan and passes every event to the reports. After a closed pipe, the run continues for
/// its verdict; any other write error ends the run. Reports in files are written in any case.
fn run_and_report(
    plan: &Plan,
    reports: &mut Reports,
    preparing: Option<PreparationLog>,
) -> anyhow::Result<Summary> {
    // All objects on an existing cluster are removed before the program ends.
    let ending = plan.cluster.existing.as_ref();
    let ending = ending.map(|cluster| Ending::listen(&plan.stop, &interrupted(cluster)));
    let ending = ending.transpose()?;
    let done = match ending {
        Some(_) => Arc::default(),
        None => {
            let files = reports.files.clone();
            interrupt::listen(plan.runs(), move |why| {
                if let Err(error) = files.cut_off(CutOff::because(why)) {
                    interrupt::print_line(&error.to_string());
                }
            })?
        }
    };
    let summary = run_all_and_report(plan, reports, &done, preparing);
    let written = match &summary {
        Ok(_) => Ok(()),
        Err(error) => reports.files.cut_off(CutOff::because(&error.to_string())),
    };
    if let Some(ending) = ending {
        ending.end_by_signal();
    }
    let summary = summary?;
    written?;
    Ok(summary)
}

fn run_all_and_report(
    plan: &Plan,
    reports: &mut Reports,
    done: &AtomicUsize,
    mut preparing: Option<PreparationLog>,
) -> anyhow::Result<Summary> {
    let (mut closed, mut broken) = (false, None);
    let summary = run_all(plan, &mut |event| {
        if let Event::Preparing(preparation) = &event
            && let Some(log) = &mut preparing
        {
            log.log(preparation);
        }
        // What the console shows as finished is in the files, also if the run is interrupted now.
        let filed = reports.files.event(&event);
        if matches!(event, Event::Finished(_)) {
            done.fetch_add(1, Ordering::Relaxed);
        }
        let shown = if closed { Ok(()) } else { reports.console.event(&event) };
        closed |= shown.is_err();
        let shown = unless_closed(shown);
        if let Err(error) = shown.and(filed) {
            plan.stop.cancel();
            broken = broken.take().or(Some(error));
        }
    });
    match broken {
        Some(error) => Err(error.into()),
        None => Ok(summary.map_err(Failure::from)?),
    }
}

/// The exit code of a run.
pub(super) fn code(summary: &Summary) -> u8 {
    if summary.is_bad() {
        exit::DIVERGES
    } else if summary.inconclusive > 0 || !summary.missing.is_empty() {
        exit::ENGINE
    } else if summary.conforms == 0 {
        exit::NOTHING
    } else {
        exit::CONFORMS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_outcome_decides_the_exit_code() {
        let summary = |conforms, diverges, inconclusive, skipped| Summary {
            conforms,
            diverges,
            inconclusive,
            skipped,
            ..Summary::default()
        };
        assert_eq!(code(&summary(3, 0, 0, 1)), exit::CONFORMS);
        assert_eq!(code(&summary(3, 1, 1, 0)), exit::DIVERGES);
        assert_eq!(code(&summary(3, 0, 1, 0)), exit::ENGINE);
        assert_eq!(code(&summary(0, 0, 0, 2)), exit::NOTHING);
        let unmet = Summary { unmet: 1, ..summary(3, 0, 0, 0) };
        assert_eq!(code(&unmet), exit::DIVERGES);
        let stale = Summary { stale_known: vec![String::new()], ..summary(3, 0, 0, 0) };
        assert_eq!(code(&stale), exit::DIVERGES);
        let gap = Summary { missing: vec![String::new()], ..summary(3, 0, 0, 0) };
        assert_eq!(code(&gap), exit::ENGINE);
    }
}
