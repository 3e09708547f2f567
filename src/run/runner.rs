//! Many scenarios on the engines of several releases, several at a time.
//!
//! Each worker has an engine of its own (a process, for upstream); outcomes are handed on in the
//! order of the scenarios, whichever worker is done first. Engines that are not built yet are built
//! meanwhile: a release is run as soon as its engine and all releases before it are done.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Instant;

use super::in_order::in_order;
use super::plan::{Plan, name_of_program};
use super::{Event, Summary, run_one};
use crate::compare::KnownDisagreement;
use crate::engine::model::Model;
use crate::engine::recorded::Recorded;
use crate::engine::registry::EngineChoice;
use crate::engine::upstream::{Upstream, build};
use crate::engine::{Engine, EngineError, Session};
use crate::model::rules::Release;
use crate::scenario::Scenario;

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
            Chosen::Program(program) => name_of_program(program),
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
    Upstream::new(program.to_owned(), release).called(name_of_program(program))
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
            format!("the model follows the rules of {release}, as requested, not of {rules}")
        };
        let program = checkout.build(&plan.stop, &mut progress)?;
        return Ok((Chosen::Checkout(program, checkout.name().into()), Some(note)));
    }
    let mut upstream = || {
        if let Some(program) = &plan.program {
            return Ok(Chosen::Program(program.clone()));
        }
        build::ensure(build::Artifact::Host, release, &plan.stop, &mut progress)
            .map(Chosen::Upstream)
    };
    match plan.engine {
        EngineChoice::Upstream => Ok((upstream()?, None)),
        EngineChoice::Model => Ok((Chosen::Model, None)),
        EngineChoice::Recorded => Ok((Chosen::Recorded, None)),
        _ => match upstream() {
            Ok(chosen) => Ok((chosen, None)),
            // Only what is missing is a reason to take less; what is broken is to be seen.
            Err(EngineError::Unavailable { why, hint, .. }) => {
                let note = format!(
                    "using recorded traces, because upstream can't run here: {why}; {hint}"
                );
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
    plan.engine.info().require()?;
    let parts = plan.parts();
    #[cfg(feature = "clusters")]
    match plan.engine {
        EngineChoice::Kubeconfig => return super::given::run_all(plan, &parts, sink),
        engine if engine.is_wall_clock() => return super::clusters::run_all(plan, &parts, sink),
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
            sink(plan.started(chosen.name(), note));
        }
        let of_release = run_on(plan, *release, part, &chosen, sink);
        summary.join(&of_release);
        summary.elapsed += of_release.elapsed;
        if several {
            summary.releases.push((*release, of_release));
        }
    }
    if !started {
        sink(plan.started(plan.engine_name(), None));
    }
    sink(Event::Ended(summary.clone()));
    Ok(summary)
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
