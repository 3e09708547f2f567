//! Many scenarios on the engines of several releases, several at a time.
//!
//! Each worker has an engine of its own (a process, for upstream); outcomes are handed on in the
//! order of the scenarios, whichever worker is done first. Engines that are not built yet are built
//! meanwhile: a release is run as soon as its engine and all releases before it are done.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};

use super::in_order::in_order;
use super::{Event, Setting, Shard, Summary, run_one};
use crate::compare::KnownDisagreement;
use crate::engine::model::Model;
use crate::engine::recorded::{Recorded, Traces};
use crate::engine::upstream::checkout::Checkout;
use crate::engine::upstream::{TIME_LIMIT, Upstream, build};
use crate::engine::{Engine, EngineError, Session};
use crate::model::rules::{Release, Releases};
use crate::scenario::Scenario;

/// Which engine a run is to be made on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum EngineChoice {
    /// Upstream if it can run here, else its recorded traces.
    #[default]
    Best,
    /// Upstream's controller in virtual time.
    Upstream,
    /// The reference model itself.
    Model,
    /// Upstream's recorded traces.
    Recorded,
    /// A whole control plane, with a real clock.
    #[cfg(feature = "clusters")]
    Embedded,
    /// The same in a container, of an image that is built of it.
    #[cfg(feature = "clusters")]
    Image,
    /// k3s in a container.
    #[cfg(feature = "clusters")]
    K3s,
    /// A new cluster of kind's.
    #[cfg(feature = "clusters")]
    Kind,
    /// Somebody's cluster, with a real clock: that of [`Plan::given`].
    #[cfg(feature = "clusters")]
    Kubeconfig,
}

#[cfg(feature = "clusters")]
impl EngineChoice {
    /// The name of the engine, if it is a cluster, where time is real.
    #[must_use]
    pub fn cluster(self) -> Option<&'static str> {
        use crate::engine::{containers, embedded, kubeconfig};
        match self {
            EngineChoice::Embedded => Some(embedded::NAME),
            EngineChoice::Image => Some(containers::IMAGE),
            EngineChoice::K3s => Some(containers::K3S),
            EngineChoice::Kind => Some(containers::KIND),
            EngineChoice::Kubeconfig => Some(kubeconfig::NAME),
            EngineChoice::Best
            | EngineChoice::Upstream
            | EngineChoice::Model
            | EngineChoice::Recorded => None,
        }
    }
}

/// What is to be run, and how.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The scenarios, in the order of the report.
    pub scenarios: Vec<Arc<Scenario>>,
    /// The engine.
    pub engine: EngineChoice,
    /// The releases: on each of them every scenario is run, from the oldest to the newest.
    pub releases: Releases,
    /// How many scenarios at a time, at least 1.
    pub jobs: usize,
    /// Disagreements that are known.
    pub known: Vec<KnownDisagreement>,
    /// Where recorded traces are.
    pub traces: Traces,
    /// An engine program to use in place of the one that would be built.
    pub program: Option<PathBuf>,
    /// A local checkout to build in place of a release.
    pub checkout: Option<Checkout>,
    /// The part of it that is to be run.
    pub shard: Option<Shard>,
    /// How long an answer of the engine may take.
    pub time_limit: Duration,
    /// How scenarios are played where time is real.
    #[cfg(feature = "clusters")]
    pub pace: super::Pace,
    /// The cluster of somebody's that it is made on.
    #[cfg(feature = "clusters")]
    pub given: Option<crate::engine::kubeconfig::Given>,
    /// An image in place of the usual one, for clusters in containers.
    #[cfg(feature = "clusters")]
    pub image: Option<String>,
    /// Who takes the place of upstream's controller on a control plane.
    #[cfg(feature = "clusters")]
    pub own: Option<super::Own>,
    /// What names the engine on the command line, where its name alone does not: words.
    pub words: Vec<String>,
    /// Set from outside to end the run early: what is under way is ended, the rest is skipped.
    pub stop: Arc<AtomicBool>,
}

impl Plan {
    /// What is to be run: of each release, which of the scenarios. A shard has no need of an engine
    /// that none of its scenarios runs on.
    fn parts(&self) -> Vec<(Release, Vec<usize>)> {
        let releases: Vec<Release> = self.releases.iter().collect();
        let shard = self.shard.unwrap_or(Shard::WHOLE);
        let parts = shard.of_runs(releases.len(), self.scenarios.len());
        let parts = releases.into_iter().zip(parts);
        parts.filter(|(_, part)| self.shard.is_none() || !part.is_empty()).collect()
    }

    /// How many scenarios are to be run, on all releases together.
    #[must_use]
    pub fn runs(&self) -> usize {
        self.parts().iter().map(|(_, part)| part.len()).sum()
    }

    /// What its parts have in common, and parts of other plans do not: the releases, and each
    /// scenario as it is understood.
    fn mark(&self) -> String {
        let mut hash = Sha256::new();
        hash.update(self.releases.to_string());
        for scenario in &self.scenarios {
            hash.update(format!("\n{} {}", scenario.id, scenario.hash));
        }
        hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
    }
}

/// The engine of a run, from which each worker makes its own.
enum Chosen {
    Upstream(PathBuf),
    Checkout(PathBuf, Arc<str>),
    Program(PathBuf),
    Model,
    Recorded,
    /// There is none of that release, though others may have one.
    Broken(EngineError),
}

impl Chosen {
    fn name(&self) -> Arc<str> {
        match self {
            Chosen::Upstream(_) => crate::engine::upstream::NAME.into(),
            Chosen::Checkout(_, name) => name.clone(),
            Chosen::Broken(
                EngineError::Unavailable { engine, .. } | EngineError::Broken { engine, .. },
            ) => engine.clone(),
            Chosen::Program(program) => name_of(program),
            Chosen::Model => crate::engine::model::NAME.into(),
            Chosen::Recorded => crate::engine::recorded::NAME.into(),
        }
    }

    fn engine(&self, plan: &Plan, release: Release) -> Box<dyn Engine> {
        match self {
            Chosen::Upstream(program) => {
                Box::new(Upstream::new(program.clone(), release).with_time_limit(plan.time_limit))
            }
            Chosen::Checkout(program, name) => {
                let engine = Upstream::of_checkout(program.clone(), name.clone(), release);
                Box::new(engine.with_time_limit(plan.time_limit))
            }
            Chosen::Broken(why) => Box::new(NoEngine { release, why: why.clone() }),
            Chosen::Program(program) => {
                Box::new(of_program(program, release).with_time_limit(plan.time_limit))
            }
            Chosen::Model => Box::new(Model::new(release)),
            Chosen::Recorded => Box::new(Recorded::new(release, plan.traces.clone())),
        }
    }
}

/// An engine that could not be made ready: each scenario on it is without a verdict.
struct NoEngine {
    release: Release,
    why: EngineError,
}

impl Engine for NoEngine {
    fn name(&self) -> &str {
        match &self.why {
            EngineError::Unavailable { engine, .. } | EngineError::Broken { engine, .. } => engine,
        }
    }

    fn release(&self) -> Release {
        self.release
    }

    fn open<'a>(&'a mut self, _: &Scenario) -> Result<Box<dyn Session + 'a>, EngineError> {
        Err(self.why.clone())
    }
}

/// A program that speaks the protocol in place of the upstream engine, under its own name.
#[must_use]
pub fn of_program(program: &Path, release: Release) -> Upstream {
    Upstream::new(program.to_owned(), release).called(name_of(program))
}

/// A program is called by its file's name, unless that would take it for one of ours.
fn name_of(program: &Path) -> Arc<str> {
    use crate::engine::{model, recorded, upstream};
    let name = program.file_name().unwrap_or(program.as_os_str()).to_string_lossy();
    if [upstream::NAME, model::NAME, recorded::NAME].contains(&&*name) {
        format!("program {name}").into()
    } else {
        name.into()
    }
}

/// An engine, and why it is not another one.
type Choice = Result<(Chosen, Option<String>), EngineError>;

fn choose(plan: &Plan, release: Release, sink: &mut dyn FnMut(Event)) -> Choice {
    let mut progress = |what: &str, fraction: Option<f64>| {
        sink(Event::Preparing { what: what.to_owned(), fraction });
    };
    if let Some(checkout) = &plan.checkout {
        let (rules, why) = checkout.rules();
        let note = if rules == release {
            format!("the model follows the rules of {rules}, {why}")
        } else {
            format!("the model follows the rules of {release}, as asked for, and not of {rules}")
        };
        let program = checkout.build(&plan.stop, &mut progress)?;
        return Ok((Chosen::Checkout(program, checkout.name().into()), Some(note)));
    }
    let mut upstream = || {
        if let Some(program) = &plan.program {
            return Ok(Chosen::Program(program.clone()));
        }
        build::ensure(build::What::Host, release, &plan.stop, &mut progress).map(Chosen::Upstream)
    };
    match plan.engine {
        EngineChoice::Upstream => Ok((upstream()?, None)),
        EngineChoice::Model => Ok((Chosen::Model, None)),
        EngineChoice::Recorded => Ok((Chosen::Recorded, None)),
        #[cfg(feature = "clusters")]
        EngineChoice::Embedded
        | EngineChoice::Image
        | EngineChoice::K3s
        | EngineChoice::Kind
        | EngineChoice::Kubeconfig => Err(EngineError::Unavailable {
            engine: name_of_choice(plan),
            why: "it plays scenarios on a real clock".to_owned(),
            hint: format!("`kube-lockstep run --engine {}` does so", name_of_choice(plan)),
        }),
        EngineChoice::Best => match upstream() {
            Ok(chosen) => Ok((chosen, None)),
            // Only what is missing is a reason to take less; what is broken is to be seen.
            Err(EngineError::Unavailable { why, hint, .. }) => {
                let note = format!("recorded traces, since upstream can't run here: {why}; {hint}");
                Ok((Chosen::Recorded, Some(note)))
            }
            Err(error) => Err(error),
        },
    }
}

/// What a thread that makes engines ready says.
enum Prepared {
    Going(Event),
    /// The engine of the release of that number.
    Done(usize, Choice),
}

/// Makes the engines of these releases ready, the oldest first, as many at a time as the machine
/// has room for.
fn prepare(plan: &Plan, releases: &[Release], next: &AtomicUsize, to: &Sender<Prepared>) {
    // If nobody listens any more, the run is over.
    while !plan.stop.load(Ordering::Relaxed) {
        let number = next.fetch_add(1, Ordering::Relaxed);
        let Some(release) = releases.get(number) else { return };
        let choice = choose(plan, *release, &mut |event| drop(to.send(Prepared::Going(event))));
        if to.send(Prepared::Done(number, choice)).is_err() {
            return;
        }
    }
}

/// The engines of a run, as they get ready.
struct Engines {
    from: Receiver<Prepared>,
    ready: Vec<Option<Choice>>,
}

impl Engines {
    /// Waits for the engine of the release of that number; nothing if the run is stopped.
    fn of(&mut self, number: usize, sink: &mut dyn FnMut(Event)) -> Option<Choice> {
        loop {
            if let Some(choice) = self.ready.get_mut(number)?.take() {
                return Some(choice);
            }
            match self.from.recv().ok()? {
                Prepared::Going(event) => sink(event),
                Prepared::Done(number, choice) => {
                    if let Some(place) = self.ready.get_mut(number) {
                        *place = Some(choice);
                    }
                }
            }
        }
    }
}

/// Runs all scenarios of a plan and hands on what happens.
///
/// # Errors
/// If the engine of the only release can't be made ready at all. Of several releases, those whose
/// engine can't have no verdicts. An engine that breaks later makes its scenario inconclusive.
pub fn run_all(plan: &Plan, sink: &mut dyn FnMut(Event)) -> Result<Summary, EngineError> {
    let parts = plan.parts();
    #[cfg(feature = "clusters")]
    match plan.engine {
        EngineChoice::Kubeconfig => return super::given::run_all(plan, &parts, sink),
        engine if engine.cluster().is_some() => {
            return super::clusters::run_all(plan, &parts, sink);
        }
        _ => {}
    }
    let releases: Vec<Release> = parts.iter().map(|(release, _)| *release).collect();
    let (next, (to, from)) = (AtomicUsize::new(0), mpsc::channel());
    let ready = releases.iter().map(|_| None).collect();
    std::thread::scope(|threads| {
        for _ in 0..build::builds_at_a_time().min(releases.len()) {
            let (releases, next, to) = (&releases, &next, to.clone());
            threads.spawn(move || prepare(plan, releases, next, &to));
        }
        drop(to);
        let done = run_parts(plan, &parts, &mut Engines { from, ready }, sink);
        if done.is_err() {
            plan.stop.store(true, Ordering::Relaxed);
        }
        done
    })
}

fn run_parts(
    plan: &Plan,
    parts: &[(Release, Vec<usize>)],
    engines: &mut Engines,
    sink: &mut dyn FnMut(Event),
) -> Result<Summary, EngineError> {
    let mut summary = Summary::default();
    let several = plan.releases.iter().count() > 1;
    let mut started = false;
    for (number, (release, part)) in parts.iter().enumerate() {
        let Some(choice) = engines.of(number, sink) else { break };
        let (chosen, note) = match choice {
            Ok(choice) => choice,
            Err(error) if several => (Chosen::Broken(error), None),
            Err(error) => return Err(error),
        };
        if !std::mem::replace(&mut started, true) {
            sink(start(plan, chosen.name(), note));
        }
        let of_release = run_on(plan, *release, part, &chosen, sink);
        summary.join(&of_release);
        summary.elapsed += of_release.elapsed;
        if several {
            summary.releases.push((*release, of_release));
        }
    }
    if !started {
        sink(start(plan, name_of_choice(plan), None));
    }
    sink(Event::Ended(summary.clone()));
    Ok(summary)
}

/// The event with which a run begins.
pub(super) fn start(plan: &Plan, engine: Arc<str>, note: Option<String>) -> Event {
    Event::Started {
        scenarios: plan.runs(),
        setting: Setting {
            engine,
            release: plan.releases.to_string(),
            program: plan.program.clone(),
            checkout: plan.checkout.as_ref().map(|checkout| checkout.path.clone()),
            time_limit: Some(plan.time_limit).filter(|limit| *limit != TIME_LIMIT),
            words: plan.words.clone(),
            shard: plan.shard,
            plan: plan.mark(),
        },
        note,
    }
}

/// The name of an engine that nothing was run on.
fn name_of_choice(plan: &Plan) -> Arc<str> {
    match (&plan.program, plan.engine) {
        (Some(program), _) => name_of(program),
        (None, EngineChoice::Model) => crate::engine::model::NAME.into(),
        (None, EngineChoice::Recorded) => crate::engine::recorded::NAME.into(),
        #[cfg(feature = "clusters")]
        (
            None,
            EngineChoice::Embedded
            | EngineChoice::Image
            | EngineChoice::K3s
            | EngineChoice::Kind
            | EngineChoice::Kubeconfig,
        ) => plan.engine.cluster().unwrap_or_default().into(),
        (None, EngineChoice::Best | EngineChoice::Upstream) => match &plan.checkout {
            Some(checkout) => checkout.name().into(),
            None => crate::engine::upstream::NAME.into(),
        },
    }
}

/// Runs some scenarios on one release.
fn run_on(
    plan: &Plan,
    release: Release,
    part: &[usize],
    chosen: &Chosen,
    sink: &mut dyn FnMut(Event),
) -> Summary {
    // Building an engine, once, is no part of the run.
    let begin = Instant::now();
    let mut summary = Summary::default();
    // The model agrees with itself, whatever is known of upstream.
    let known: &[KnownDisagreement] =
        if matches!(chosen, Chosen::Model) { &[] } else { &plan.known };
    let work = |engine: &mut Box<dyn Engine>, index: usize| {
        let scenario = plan.scenarios.get(*part.get(index)?)?;
        let stopped = plan.stop.load(Ordering::Relaxed);
        (!stopped).then(|| run_one(scenario, &mut **engine, &plan.known))
    };
    let workers = plan.jobs.clamp(1, part.len().max(1));
    in_order(workers, &|| chosen.engine(plan, release), &work, &mut |_, outcome| {
        summary.add(&outcome);
        let gone = outcome.no_longer(known).into_iter();
        summary.stale_known.extend(
            gone.map(|known| format!("{}: {} ({})", known.scenario, known.field, known.reason)),
        );
        sink(Event::Finished(Box::new(outcome)));
        true
    });
    summary.elapsed = begin.elapsed();
    summary
}
