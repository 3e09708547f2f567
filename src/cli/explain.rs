//! `kube-lockstep explain`.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::args::{BuildArgs, ReleaseOrCheckoutArgs, Source, check_runs_hpas};
use super::exit;
use super::failure::Failure;
use super::fixtures::{AnyFixture, Fixtures};
use super::manifests::{self, Autoscalers, ManifestArgs};
use super::output::{PreparationLog, columns, show};
use kube_autoscaler_models::rules::{Release, VpaRelease};
use kube_autoscaler_models::time::{Span, Time};
use kube_autoscaler_models::vpa::Snapshot;
use kube_lockstep_engines::kind::RunKind;
use kube_lockstep_engines::source::{EngineFactory, EngineSource};
use kube_lockstep_engines::upstream::checkout::Checkout;
use kube_lockstep_manifests::days_as_hours;
use kube_lockstep_report as report;
use kube_lockstep_report::outcome::note_line;
use kube_lockstep_report::{explain, table};
use kube_lockstep_scenario::Scenario;
use kube_lockstep_scenario::resolved::Timestamp;
use kube_lockstep_scenario::vpa::VpaScenario;
use kube_lockstep_sim::engine::Vpa;
use kube_lockstep_sim::run::recommender::free_recommender_run;
use kube_lockstep_sim::run::recommender_lockstep::run_recommender;
use kube_lockstep_sim::run::{
    FreeRun, FreeTick, Note, Outcome, Preparation, Setting, Verdict, explained_free_run, free_run,
    run_one,
};

const HELP: &str = "\
Exit codes:
  0    the tick is explained, whether or not the checkout (--upstream-path) agrees
  2    an invalid command line, an invalid scenario, or no such tick
  3    the checkout can't be built";

/// The arguments.
#[derive(clap::Args, Debug)]
#[command(after_help = format!("{}\n\n{HELP}", manifests::LOAD_HELP))]
#[command(group = clap::ArgGroup::new("what").required(true).args(["name", "filename"]))]
#[command(group = clap::ArgGroup::new("which"))]
pub(super) struct Args {
    /// A scenario: a file, or the id of a fixture
    #[arg(value_name = "FILE")]
    name: Option<String>,
    /// The number of the tick, from 1; with --hpa, among the ticks of that HPA [default: the first
    /// tick that changes the replicas or, for a VPA, recommends resources]
    #[arg(long, value_name = "N", group = "which")]
    tick: Option<usize>,
    /// The last tick at or before this time: since the start of the scenario, for example 4m30s;
    /// or, if its load is a recording with dates, a time as `predict` prints it, in UTC, or with a
    /// time zone: "05-06 09:00:15", 2025-05-06T11:00:15+02:00. If the recording covers only one
    /// day, the time of day is enough: 09:00
    #[arg(long, value_name = "TIME", group = "which", value_parser = moment)]
    at: Option<Moment>,
    /// The name of the HPA, if there are several: NAME, or NAMESPACE/NAME of manifests
    #[arg(long, value_name = "NAME")]
    hpa: Option<String>,
    /// Explain a run of the recommender of this VPA, in a scenario with an HPA and a VPA. With
    /// manifests: NAME or NAMESPACE/NAME; without --hpa, the prediction does not include the HPA
    #[arg(long, value_name = "NAME")]
    vpa: Option<String>,
    #[command(flatten)]
    release: ReleaseOrCheckoutArgs,
    #[command(flatten)]
    source: Source,
    #[command(flatten)]
    manifests: ManifestArgs,
}

impl Args {
    /// The name of the HPA, without a namespace.
    fn hpa_name(&self) -> Option<&str> {
        self.hpa.as_deref().map(|hpa| hpa.rsplit('/').next().unwrap_or(hpa))
    }
}

/// A time of a scenario.
#[derive(Clone, Debug)]
enum Moment {
    /// The time since the start.
    SinceStart(Span),
    /// A date and time.
    Clock(String),
}

impl Moment {
    /// The time in a scenario. `until` is the option or field that sets its end.
    fn in_scenario(&self, length: Length, until: &str) -> Result<Time, Failure> {
        let (time, shown) = match self {
            Moment::SinceStart(span) => (Time::ZERO + *span, span.to_string()),
            Moment::Clock(text) => (length.at(text)?, text.clone()),
        };
        if time <= length.until {
            return Ok(time);
        }
        let clock = length.zero.map(|zero| zero.plus(length.until.since_start()).day_and_time());
        let clock = clock.map(|clock| format!(" ({clock} UTC)")).unwrap_or_default();
        let what = format!("--at {shown}: the prediction ends at t={}{clock}", length.until);
        let hint = format!("choose an earlier time, or increase the end (`{until}`)");
        Err(Failure::usage(what).hint(hint))
    }
}

/// The times of a scenario.
#[derive(Clone, Copy)]
struct Length {
    /// The time at t=0, if the recordings have dates.
    zero: Option<Timestamp>,
    /// The end.
    until: Time,
}

impl Length {
    /// The time in the scenario of a date and time, or of a time of day that it has only once.
    fn at(self, text: &str) -> Result<Time, Failure> {
        let Length { zero, until } = self;
        let Some(zero) = zero else {
            let what = format!(
                "--at {text}: a date requires an HPA scenario that has a recorded load with dates"
            );
            return Err(Failure::usage(what).hint("use the time since the start, such as 4m30s"));
        };
        let since = |found: Timestamp| Time::ZERO + Span(found.since(zero));
        match zero.times_of_day(text, until.since_start()).as_deref() {
            Some([only]) => return Ok(since(*only)),
            Some([]) => {
                let what = format!("--at {text}: the prediction has no such time");
                let end = zero.plus(until.since_start());
                let hint =
                    format!("it is from {:?} to {:?} UTC", zero.day_and_time(), end.day_and_time());
                return Err(Failure::usage(what).hint(hint));
            }
            Some([first, ..]) => {
                let what = format!("--at {text}: the prediction has this time on several days");
                let hint = format!("add the date, for example --at {:?}", first.day_and_time());
                return Err(Failure::usage(what).hint(hint));
            }
            None => {}
        }
        Timestamp::parse_near(text, zero).map(since).ok_or_else(|| {
            let hint = format!("as `predict` prints it: {:?}, or {zero}", zero.day_and_time());
            Failure::usage(format!("--at: expected a time, found {text:?}")).hint(hint)
        })
    }
}

/// Parses a time. A number without a unit can mean a time or a tick, so the error explains both.
fn moment(text: &str) -> Result<Moment, String> {
    match (days_as_hours(text).parse(), text.parse::<usize>()) {
        (Ok(span), _) => Ok(Moment::SinceStart(span)),
        (Err(_), _) if text.contains(':') => Ok(Moment::Clock(text.to_owned())),
        (Err(error), Ok(number)) => {
            Err(format!("{error}; for a time, write {number}s; for a tick, use --tick {number}"))
        }
        (Err(error), Err(_)) => Err(format!("{error}")),
    }
}

pub(super) fn run(args: &Args) -> anyhow::Result<u8> {
    let scenario = match scenario(args)? {
        AnyFixture::Vpa(scenario) => return explain_vpa(args, &scenario),
        AnyFixture::Hpa(scenario) => scenario,
    };
    if let Some(note) = Note::search_is_ignored(&scenario) {
        show(&note_line(&scenario.path, &note, columns()))?;
    }
    if let Some(vpa) = args.vpa.as_deref() {
        return explain_vpa_with_hpa(args, &scenario, vpa);
    }
    let checkout = args.release.local.open(false, false)?;
    check_runs_hpas(checkout.as_ref())?;
    let release = args.release.release(checkout.as_ref())?;
    manifests::check_flags(&scenario, release)?;
    let run = free_run(&scenario, release);
    if let Some(hpa) = args.hpa_name()
        && !scenario.hpas.iter().any(|known| *known.name == *hpa)
    {
        let known: Vec<&str> = scenario.hpas.iter().map(|hpa| &*hpa.name).collect();
        let hint = format!("the HPAs are {}", known.join(", "));
        return Err(Failure::usage(format!("there is no HPA {hpa}")).hint(hint).into());
    }
    let length = Length { zero: scenario.clock, until: scenario.until };
    let Selected { index, note } = select_tick(args, &run, length)?;
    show(&note)?;
    if scenario.unsupported_on(release).or_else(|| scenario.not_for(release)).is_some() {
        show(&table::other_release(&scenario, release, columns()))?;
    }
    let text = explain::tick_with_vpa(&scenario, release, index, columns());
    show(&text.unwrap_or_default())?;
    if let Some(checkout) = checkout {
        let builds = args.release.local.build;
        show(&compare_checkout(builds, &checkout, &scenario, release, index + 1)?)?;
    }
    Ok(exit::CONFORMS)
}

/// Explains one run of the recommender alone.
fn explain_vpa(args: &Args, scenario: &VpaScenario) -> anyhow::Result<u8> {
    let checkout = args.release.local.open(false, false)?;
    if let Some(other) = checkout.as_ref().filter(|checkout| !checkout.has_recommender()) {
        let what = format!("--upstream-path {}: it has no recommender", other.path.display());
        return Err(Failure::usage(what).hint("name a checkout of kubernetes/autoscaler").into());
    }
    let release = args.release.vpa_release(checkout.as_ref())?;
    let unused =
        [("--hpa", args.hpa.is_some()), ("--vpa", args.vpa.is_some() && args.name.is_some())];
    if let Some((flag, _)) = unused.into_iter().find(|(_, given)| *given) {
        let what = format!("{flag} does not apply to VPA scenarios");
        return Err(Failure::usage(what).hint(format!("leave out {flag}")).into());
    }
    let run = free_recommender_run(scenario, release, &|_| false);
    let length = Length { zero: None, until: scenario.until };
    let names: Vec<&str> = scenario.names().map(|name| &*name.name).collect();
    let Selected { index, note } = select_run(args, &run.snapshots, &names, length)?;
    show(&note)?;
    let run = free_recommender_run(scenario, release, &|number| number == index);
    show(&explain::recommender_run(scenario, &run, index, release, columns()))?;
    if let Some(checkout) = checkout {
        let builds = args.release.local.build;
        show(&compare_recommender(builds, &checkout, scenario, release, index + 1)?)?;
    }
    Ok(exit::CONFORMS)
}

/// The result of a checkout of the recommender up to the run, as text.
fn compare_recommender(
    builds: BuildArgs,
    checkout: &Checkout,
    scenario: &VpaScenario,
    release: VpaRelease,
    run: usize,
) -> Result<String, Failure> {
    let engine: EngineFactory<Vpa> = prepare(builds, checkout, release)?;
    let outcome = run_recommender(&Arc::new(scenario.clone()), &mut *engine.make(), &[]);
    Ok(up_to(&outcome, checkout, run))
}

/// The outcome of a checkout up to a tick, as text.
fn up_to(outcome: &Outcome, checkout: &Checkout, tick: usize) -> String {
    let later = matches!(&outcome.verdict, Verdict::Diverges(it) if it.scenario_tick() > tick);
    let setting = Setting {
        engine: outcome.engine.clone(),
        release: outcome.release.clone(),
        checkout: Some(checkout.path.clone()),
        ..Setting::default()
    };
    match report::outcome(outcome, &setting, columns()) {
        Some(text) if !later => format!("\n{text}"),
        _ => format!("\n{} does the same up to this tick\n", outcome.engine),
    }
}

/// Explains one run of the recommender in a scenario with an HPA.
fn explain_vpa_with_hpa(args: &Args, scenario: &Arc<Scenario>, vpa: &str) -> anyhow::Result<u8> {
    // With manifests, both flags select the scenario.
    let unused = [
        ("--hpa", args.hpa.is_some() && args.name.is_some()),
        ("--upstream-path", args.release.local.upstream_path.is_some()),
    ];
    if let Some((flag, _)) = unused.into_iter().find(|(_, given)| *given) {
        let what = format!("{flag} can't be combined with --vpa");
        return Err(Failure::usage(what).hint(format!("leave out {flag}")).into());
    }
    let release = args.release.release(None)?;
    manifests::check_flags(scenario, release)?;
    let Some(run) = free_run(scenario, release).vpa else {
        return Err(Failure::usage("the scenario has no VPA").hint("leave out --vpa").into());
    };
    let known: Vec<&str> = run.scenario.names().map(|name| &*name.name).collect();
    if !known.contains(&vpa) {
        let hint = format!("the VPA is {}", known.join(", "));
        return Err(Failure::usage(format!("there is no VPA {vpa}")).hint(hint).into());
    }
    let length = Length { zero: scenario.clock, until: scenario.until };
    let Selected { index, note } = select_run(args, run.snapshots(), &[vpa], length)?;
    show(&note)?;
    let run = explained_free_run(scenario, release, &|number| number == index);
    let text = run.vpa.map(|vpa| explain::recommender_run_with_hpa(&vpa, index, columns()));
    show(&text.unwrap_or_default())?;
    Ok(exit::CONFORMS)
}

/// A tick to explain, among all ticks.
struct Selected {
    index: usize,
    /// Says which tick it is, if the command line does not. Otherwise empty.
    note: String,
}

/// The ticks from which one is selected.
struct Ticks<'a> {
    times: Vec<Time>,
    /// The index of the one that is explained by default.
    default: Option<usize>,
    /// What the default is the first to do, as a verb with its object: "recommends resources".
    does: &'static str,
    length: Length,
    /// The number of ticks, as a hint for a tick that does not exist.
    overview: &'a str,
}

/// Selects a run of a recommender.
fn select_run(
    args: &Args,
    runs: &[Snapshot],
    vpas: &[&str],
    length: Length,
) -> Result<Selected, Failure> {
    let times: Vec<Time> = runs.iter().map(|snapshot| snapshot.at).collect();
    let overview = overview("the recommender", &times);
    let default = explain::first_recommendation(runs, vpas);
    let does = "recommends resources";
    select(args, &Ticks { times, default, does, length, overview: &overview })
}

/// Selects the tick that the command line names, or else the default.
fn select(args: &Args, ticks: &Ticks<'_>) -> Result<Selected, Failure> {
    let Ticks { times, default, does, length, overview } = ticks;
    let (index, missing) = match (args.tick, &args.at) {
        (Some(number), _) => {
            let index = number.checked_sub(1).filter(|index| *index < times.len());
            (index, format!("there is no tick {number}"))
        }
        (None, Some(moment)) => {
            let until = if args.name.is_some() { "until" } else { "--until" };
            let at = moment.in_scenario(*length, until)?;
            let index = times.partition_point(|tick| *tick <= at).checked_sub(1);
            (index, format!("there is no tick at or before t={at}"))
        }
        (None, None) => {
            let note = match default {
                Some(_) => format!("This is the first tick that {does}"),
                None => format!("No tick {does}; this is the first one"),
            };
            let note = report::wrapped("", &format!("{note}. {OTHERS}"), columns()) + "\n";
            return match times.is_empty() {
                true => Err(Failure::usage((*overview).to_owned())),
                false => Ok(Selected { index: default.unwrap_or(0), note }),
            };
        }
    };
    let index = index.ok_or_else(|| Failure::usage(missing).hint((*overview).to_owned()))?;
    Ok(Selected { index, note: String::new() })
}

/// The options that select another tick.
const OTHERS: &str = "--tick and --at select others.";

/// `the scenario has 4 ticks, from t=15s to t=1m`.
fn overview(subject: &str, ticks: &[Time]) -> String {
    match ticks {
        [] => format!("{subject} has no ticks"),
        [only] => format!("{subject} has 1 tick, at t={only}"),
        [first, .., last] => {
            format!("{subject} has {} ticks, from t={first} to t={last}", ticks.len())
        }
    }
}

/// The scenario of the file, or of the manifests of one autoscaler.
fn scenario(args: &Args) -> Result<AnyFixture, Failure> {
    if let Some(name) = &args.name {
        args.manifests.check_unused(std::slice::from_ref(name))?;
        return Fixtures::find(args.source.fixtures.as_deref())?
            .one(name)?
            .parse_any()?
            .with_model();
    }
    let selected = Autoscalers::named(args.hpa.as_slice(), args.vpa.as_slice());
    let mut found = args.manifests.scenarios(selected)?.scenarios;
    if found.len() == 1 {
        return Ok(found.remove(0));
    }
    let name = |scenario: &AnyFixture| match scenario {
        AnyFixture::Hpa(scenario) => format!("HPA {}", scenario.id),
        AnyFixture::Vpa(scenario) => format!("VPA {}", scenario.id),
    };
    Err(manifests::several(found.iter().map(name).collect()))
}

/// The result of a checkout up to the tick, as text.
fn compare_checkout(
    builds: BuildArgs,
    checkout: &Checkout,
    scenario: &Arc<Scenario>,
    release: Release,
    tick: usize,
) -> Result<String, Failure> {
    let engine: EngineFactory = prepare(builds, checkout, release)?;
    let outcome = run_one(scenario, &mut *engine.make(), &[]);
    Ok(up_to(&outcome, checkout, tick))
}

/// The engine of a checkout.
fn prepare<K: RunKind>(
    builds: BuildArgs,
    checkout: &Checkout,
    release: K::Release,
) -> Result<EngineFactory<K>, Failure> {
    let mut preparing = PreparationLog::default();
    let mut progress = |it: Preparation| preparing.log(&it);
    let limits = builds.limits(&CancellationToken::new());
    Ok(EngineSource::Checkout(checkout.clone()).prepare(release, &limits, &mut progress)?)
}

/// Selects a tick of an HPA.
fn select_tick(args: &Args, run: &FreeRun, length: Length) -> Result<Selected, Failure> {
    let matches_hpa =
        |tick: &&FreeTick| args.hpa_name().is_none_or(|hpa| *tick.observation.hpa == *hpa);
    let ticks = run.ticks.iter().enumerate().filter(|(_, tick)| matches_hpa(tick));
    let (indices, ticks): (Vec<usize>, Vec<&FreeTick>) = ticks.unzip();
    let times: Vec<Time> = ticks.iter().map(|tick| tick.observation.at).collect();
    let default = ticks.iter().position(|tick| tick.replicas_before != tick.replicas_after);
    let does = "changes the replicas";
    let subject = args.hpa_name().map_or("the scenario".to_owned(), |hpa| format!("HPA {hpa}"));
    let cut =
        run.undetermined.as_ref().map(|why| format!("; the prediction can't continue: {why}"));
    let overview = overview(&subject, &times) + &cut.unwrap_or_default();
    if times.is_empty() {
        return Err(Failure::usage(overview));
    }
    let ticks = Ticks { times, default, does, length, overview: &overview };
    let selected = select(args, &ticks)?;
    Ok(Selected { index: indices[selected.index], ..selected })
}
