//! `kube-lockstep run`.

use std::io::{self, IsTerminal, Write as _};
use std::num::NonZero;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::ValueEnum;

use super::failure::Failure;
use super::fixtures::{Fixture, Fixtures};
use super::given::OfGiven;
use super::interrupt::Ending;
use super::{
    Format, OfCheckout, OfReleases, OfShard, Source, TellPreparing, columns, exit, interrupt,
    program_and_engine, workers,
};
use crate::engine::containers;
use crate::engine::custom::{CommandError, Controller};
use crate::engine::kubeconfig::Given;
use crate::engine::upstream::TIME_LIMIT;
use crate::model::time::Span;
use crate::report::Report;
use crate::report::json::Json;
use crate::report::terminal::{Layout, Terminal};
use crate::run::{Compared, EngineChoice, Event, Own, Pace, Plan, SIDE_BY_SIDE, Summary, run_all};
use crate::scenario::Scenario;

/// The arguments.
#[derive(clap::Args, Debug)]
#[command(after_help = exit::HELP)]
pub(super) struct Args {
    /// What to run: ids, folders (`tolerance`, `fixtures/tolerance`), globs (`**/*window*`),
    /// or files
    #[arg(value_name = "SCENARIO")]
    names: Vec<String>,
    /// The engine [default: upstream if it can run here, else recorded]
    #[arg(long, value_enum)]
    engine: Option<EngineName>,
    #[command(flatten)]
    releases: OfReleases,
    #[command(flatten)]
    local: OfCheckout,
    #[command(flatten)]
    part: OfShard,
    /// How results are shown
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// How many scenarios to run at a time [default: one for each core; on real
    /// clusters, where they mostly wait, 72]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    #[command(flatten)]
    source: Source,
    /// List scenarios that conform, too
    #[arg(short, long)]
    verbose: bool,
    /// A program that speaks the engine protocol, in place of the upstream engine; reports call it
    /// by its file's name
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// How long an engine may take for an answer, for instance 1m
    #[arg(long, value_name = "DURATION", value_parser = time_limit)]
    time_limit: Option<std::time::Duration>,
    /// How many times as fast as written scenarios are played on a real cluster [default: 15; with
    /// a kubeconfig, what the cluster's sync period makes of it]
    #[arg(long, value_name = "N")]
    speed: Option<NonZero<u32>>,
    /// Scenarios that take longer than this on a real cluster are skipped [default: 1m; with a
    /// kubeconfig 15m]
    #[arg(long, value_name = "DURATION", value_parser = time_limit)]
    longest: Option<std::time::Duration>,
    /// The image of a cluster in a container, in place of the usual one of the release
    #[arg(long, value_name = "IMAGE")]
    image: Option<String>,
    #[command(flatten)]
    given: OfGiven,
    #[command(flatten)]
    own: OfOwn,
}

impl Args {
    /// Refuses what is only of engines whose time is real.
    fn without_pace(&self) -> Result<(), Failure> {
        let named = [(self.speed.is_some(), "--speed"), (self.longest.is_some(), "--longest")];
        let Some((_, flag)) = named.into_iter().find(|(given, _)| *given) else { return Ok(()) };
        let what = format!("{flag} requires a wall-clock engine");
        Err(Failure::usage(what).hint("add --engine embedded, image, k3s or kind"))
    }
}

/// A controller of the user's own.
#[derive(clap::Args, Debug)]
#[command(next_help_heading = "With --engine embedded")]
struct OfOwn {
    /// A command that starts an HPA controller of your own, in the place of upstream's on the
    /// embedded control plane: 'mine --kubeconfig={kubeconfig} --sync-period={sync-period}'
    #[arg(long, value_name = "COMMAND")]
    controller: Option<String>,
    /// What of that controller is compared with the model [default: scale]
    #[arg(long, value_enum, value_name = "WHAT", requires = "controller")]
    compare: Option<Compare>,
    /// A ClusterRole whose rights that controller has besides those that each of them needs
    #[arg(long, value_name = "FILE", requires = "controller")]
    controller_role: Option<PathBuf>,
}

/// What is compared of a controller that is not upstream's.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum Compare {
    /// When it scales, and to what size
    Scale,
    /// The status as well, without the messages of its conditions
    Status,
    /// All that it does: each request in its order, messages, events, its sync period
    All,
}

impl OfOwn {
    /// The controller, and the words that name it on a command line.
    fn open(&self, embedded: bool) -> Result<Option<(Own, Vec<String>)>, Failure> {
        let Some(command) = &self.controller else { return Ok(None) };
        if !embedded {
            let what = "--controller takes the place of upstream's controller on a control plane";
            return Err(Failure::usage(what).hint("add --engine embedded"));
        }
        let mut words = vec!["--controller".to_owned(), command.clone()];
        let wrong = |error: CommandError| {
            Failure::usage(format!("--controller: {}", error.what)).hint(error.hint)
        };
        let mut controller = Controller::new(command).map_err(wrong)?;
        if let Some(path) = &self.controller_role {
            let wrong = |why: String| {
                let hint = "it is a file with a ClusterRole, as `kubectl apply` takes it";
                let what = format!("--controller-role {}: {why}", path.display());
                Failure::usage(what).hint(hint)
            };
            let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
            controller = controller.with_role(&text).map_err(wrong)?;
            words.push("--controller-role".to_owned());
            words.push(path.to_string_lossy().into_owned());
        }
        let compared = match self.compare {
            None | Some(Compare::Scale) => Compared::Scale,
            Some(Compare::Status) => Compared::Status,
            Some(Compare::All) => Compared::All,
        };
        if let Some(compare) = self.compare.and_then(|compare| compare.to_possible_value()) {
            words.extend(["--compare", compare.get_name()].map(str::to_owned));
        }
        Ok(Some((Own { controller, compared }, words)))
    }
}

/// What has to be said again to play on the same cluster in the same way. Of other engines their
/// names say enough.
fn words(args: &Args, own: Option<Vec<String>>) -> Vec<String> {
    let on_cluster = args.engine.filter(|engine| engine.choice().cluster().is_some());
    let Some(engine) = on_cluster.and_then(|engine| engine.to_possible_value()) else {
        return Vec::new();
    };
    let mut words = vec!["--engine".to_owned(), engine.get_name().to_owned()];
    words.extend(own.unwrap_or_default());
    words.extend(args.given.words());
    let longest = args.longest.map(|it| Span(i64::try_from(it.as_nanos()).unwrap_or(i64::MAX)));
    let flags = [
        ("--image", args.image.clone()),
        ("--speed", args.speed.map(|it| it.to_string())),
        ("--longest", longest.map(|it| it.to_string())),
    ];
    let given = flags.into_iter().filter_map(|(flag, value)| Some([flag.to_owned(), value?]));
    words.extend(given.flatten());
    words
}

/// The same of clusters whose sync period can't be made short.
const LONGEST: std::time::Duration = std::time::Duration::from_secs(15 * 60);

/// The engines by name.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum EngineName {
    /// Upstream's own controller, in virtual time
    Upstream,
    /// The reference model itself: checks the expectations only
    Model,
    /// Recorded traces of upstream's controller
    Recorded,
    /// A whole control plane of this machine's own: etcd, kube-apiserver, kube-controller-manager
    Embedded,
    /// The same in a container, of an image that is built of it (needs Docker)
    Image,
    /// k3s in a container (needs Docker and its image)
    K3s,
    /// A new cluster of kind's (needs kind and Docker); with --context, one that is there
    Kind,
    /// Any cluster, by the --context of a kubeconfig, with its own sync period
    Kubeconfig,
}

impl EngineName {
    fn choice(self) -> EngineChoice {
        match self {
            EngineName::Upstream => EngineChoice::Upstream,
            EngineName::Model => EngineChoice::Model,
            EngineName::Recorded => EngineChoice::Recorded,
            EngineName::Embedded => EngineChoice::Embedded,
            EngineName::Image => EngineChoice::Image,
            EngineName::K3s => EngineChoice::K3s,
            EngineName::Kind => EngineChoice::Kind,
            EngineName::Kubeconfig => EngineChoice::Kubeconfig,
        }
    }
}

pub(super) fn time_limit(text: &str) -> Result<std::time::Duration, String> {
    let span: Span = text.parse().map_err(|error| format!("{error}"))?;
    match u64::try_from(span.0) {
        Ok(nanos) if nanos > 0 => Ok(std::time::Duration::from_nanos(nanos)),
        _ => Err("it must be more than 0".to_owned()),
    }
}

pub(super) fn run(args: &Args) -> anyhow::Result<u8> {
    let plan = plan(args)?;
    let out = anstream::stdout();
    let mut report: Box<dyn Report> = match args.format {
        Format::Json => Box::new(Json::new(io::stdout())),
        Format::Text => {
            let progress = io::stdout().is_terminal() && io::stderr().is_terminal();
            let layout = Layout { columns: columns(), verbose: args.verbose, progress };
            Box::new(Terminal::new(out, layout))
        }
    };
    let summary = tell(&plan, report.as_mut())?;
    Ok(match code(&summary) {
        // All parts together may still have something to run.
        exit::NOTHING if plan.shard.is_some() => exit::CONFORMS,
        code => code,
    })
}

fn plan(args: &Args) -> Result<Plan, Failure> {
    let other = !matches!(args.engine, None | Some(EngineName::Upstream));
    if args.program.is_some() && other {
        return Err(program_and_engine());
    }
    let mut engine = args.engine.map_or(EngineChoice::Best, EngineName::choice);
    if engine == EngineChoice::Kind && args.given.is_named() {
        // Of one that is there nothing can be set.
        engine = EngineChoice::Kubeconfig;
    }
    let boxed = matches!(engine, EngineChoice::Image | EngineChoice::K3s | EngineChoice::Kind);
    if args.image.is_some() && !boxed {
        let what = "--image requires an engine that creates clusters in containers";
        return Err(Failure::usage(what).hint("add --engine image, k3s or kind"));
    }
    if engine.cluster().is_none() {
        args.without_pace()?;
    }
    let checkout = args.local.open(other, args.program.is_some())?;
    let (own, own_words) = args.own.open(args.engine == Some(EngineName::Embedded))?.unzip();
    let fixtures = Fixtures::find(args.source.fixtures.as_deref())?;
    if fixtures.are_embedded() && args.names.is_empty() {
        let origin = fixtures.origin();
        // Told apart from the results.
        let _ = writeln!(
            anstream::stderr(),
            "running {origin}; scenarios of this folder: kube-lockstep run ."
        );
    }
    let selected = fixtures.select(&args.names)?;
    let on_given = engine == EngineChoice::Kubeconfig;
    if on_given && args.speed.is_some() {
        let what = "--speed can't be chosen: it follows from the cluster's sync period";
        return Err(Failure::usage(what).hint("leave out --speed"));
    }
    let mut given = args.given.open(on_given)?;
    if let (Some(given), Some(EngineName::Kind)) = (&mut given, args.engine)
        && given.metrics_address.is_none()
    {
        given.metrics_address = containers::own_address();
    }
    let longest = if on_given { LONGEST } else { Pace::default().longest };
    let mut plan = Plan {
        scenarios: parse_all(&selected)?,
        engine,
        releases: args.releases.releases(checkout.as_ref())?,
        jobs: match engine.cluster() {
            // They mostly wait.
            Some(_) => args.jobs.map_or(SIDE_BY_SIDE, usize::from),
            None => workers(args.jobs),
        },
        known: fixtures.known()?,
        traces: fixtures.traces(),
        program: args.program.clone(),
        checkout,
        shard: args.part.shard,
        time_limit: args.time_limit.unwrap_or(TIME_LIMIT),
        pace: Pace {
            speed: args.speed.unwrap_or(Pace::default().speed),
            longest: args.longest.unwrap_or(longest),
        },
        given: given.clone(),
        image: args.image.clone(),
        own,
        words: words(args, own_words),
        stop: Arc::new(AtomicBool::new(false)),
    };
    if let Some(given) = &given {
        args.given.agree(given, &mut plan, args.releases.named())?;
    }
    Ok(plan)
}

/// All scenarios, or what is wrong with each that makes no sense.
pub(super) fn parse_all(fixtures: &[Fixture]) -> Result<Vec<Arc<Scenario>>, Failure> {
    let mut scenarios = Vec::with_capacity(fixtures.len());
    let mut wrong: Vec<String> = Vec::new();
    for fixture in fixtures {
        match fixture.parse() {
            Ok(scenario) => scenarios.push(scenario),
            Err(failure) => wrong.push(failure.what),
        }
    }
    if wrong.is_empty() { Ok(scenarios) } else { Err(Failure::usage(wrong.join("\n"))) }
}

/// What is said of a signal while there is something to remove. It is needed until the end.
fn interrupted(given: &Given) -> &'static str {
    let clean = given.cleaning();
    let said = format!(
        "interrupted: what was made on the cluster is being removed; once more ends at once, and \
         leaves it to `{clean}`"
    );
    said.leak()
}

/// Runs the plan and hands every event to the report. One whose reader has gone is told no more,
/// but the verdict is still wanted; one that can't write for another reason ends the run.
fn tell(plan: &Plan, report: &mut dyn Report) -> anyhow::Result<Summary> {
    let quiet = !io::stderr().is_terminal();
    let mut preparing = TellPreparing::default();
    let mut broken: Option<io::Error> = None;
    // What was made on somebody's cluster is removed before the end.
    let ending = plan.given.as_ref().map(|given| Ending::listen(&plan.stop, interrupted(given)));
    let ending = ending.transpose()?;
    let done = match ending {
        Some(_) => Arc::default(),
        None => interrupt::listen(plan.runs())?,
    };
    let summary = run_all(plan, &mut |event| {
        if let Event::Preparing { what, fraction } = &event
            && quiet
        {
            preparing.tell(what, *fraction);
        }
        if matches!(event, Event::Finished(_)) {
            done.fetch_add(1, Ordering::Relaxed);
        }
        if broken.is_none()
            && let Err(error) = report.event(&event)
        {
            if error.kind() != io::ErrorKind::BrokenPipe {
                plan.stop.store(true, Ordering::Relaxed);
            }
            broken = Some(error);
        }
    });
    if let Some(ending) = ending {
        ending.follow();
    }
    match broken {
        Some(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(summary.map_err(Failure::from)?),
    }
}

/// The exit code of a run.
pub(super) fn code(summary: &Summary) -> u8 {
    if summary.diverges > 0 || !summary.stale_known.is_empty() {
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
    fn what_is_worst_decides_the_exit_code() {
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
        let stale = Summary { stale_known: vec![String::new()], ..summary(3, 0, 0, 0) };
        assert_eq!(code(&stale), exit::DIVERGES);
        let gap = Summary { missing: vec![String::new()], ..summary(3, 0, 0, 0) };
        assert_eq!(code(&gap), exit::ENGINE);
    }
}
