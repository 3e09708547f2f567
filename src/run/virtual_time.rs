//! Prepares engines in virtual time, and runs scenarios on them.
//!
//! Each worker has its own engine (a process, for upstream) and its own thread, since it computes
//! rather than waits. Outcomes are reported in the order of the scenarios, whichever worker ends
//! first. Engines are built in the meantime: a release runs as soon as its engine is ready and all
//! previous releases are done.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};

use tokio_util::sync::CancellationToken;

use super::executor::{Executor, ReadyEngine};
use super::in_order::in_order;
use super::plan::{Plan, ReleasePlan, name_of_program};
use super::record::Record;
use super::run_one;
use crate::compare::KnownDisagreement;
use crate::engine::model::Model;
use crate::engine::recorded::Recorded;
use crate::engine::registry::EngineChoice;
use crate::engine::upstream::build::Progress;
use crate::engine::upstream::{Upstream, build};
use crate::engine::{Engine, EngineError, Session};
use crate::model::rules::Release;
use crate::scenario::Scenario;

/// The engine of a release; each worker creates an instance.
enum Chosen {
    Upstream(PathBuf),
    Checkout(PathBuf, Arc<str>),
    Program(PathBuf),
    Model,
    Recorded,
    /// The engine of this release can't be prepared; other releases may have an engine.
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
                Box::new(program_engine(program, release).with_time_limit(plan.time_limit))
            }
            Chosen::Model => Box::new(Model::new(release)),
            Chosen::Recorded => Box::new(Recorded::new(release, plan.traces.clone())),
        }
    }
}

/// An engine that could not be prepared: each scenario on it has no verdict.
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

/// A program that implements the engine protocol, instead of the upstream engine, with its own
/// name.
#[must_use]
pub fn program_engine(program: &Path, release: Release) -> Upstream {
    Upstream::new(program.to_owned(), release).called(name_of_program(program))
}

/// An engine, and a note about the choice for the report.
type Choice = Result<(Chosen, Option<String>), EngineError>;

fn choose(
    plan: &Plan,
    release: Release,
    stop: &CancellationToken,
    progress: Progress<'_>,
) -> Choice {
    if let Some(checkout) = &plan.checkout {
        let (rules, why) = checkout.rules();
        let note = if rules == release {
            format!("the model follows the rules of {rules}, {why}")
        } else {
            format!("the model follows the rules of {release}, as requested, not of {rules}")
        };
        let program = checkout.build(stop, progress)?;
        return Ok((Chosen::Checkout(program, checkout.name().into()), Some(note)));
    }
    let mut upstream = || {
        if let Some(program) = &plan.program {
            return Ok(Chosen::Program(program.clone()));
        }
        build::ensure(build::Artifact::Host, release, stop, progress).map(Chosen::Upstream)
    };
    match plan.engine {
        EngineChoice::Upstream => Ok((upstream()?, None)),
        EngineChoice::Model => Ok((Chosen::Model, None)),
        EngineChoice::Recorded => Ok((Chosen::Recorded, None)),
        _ => match upstream() {
            Ok(chosen) => Ok((chosen, None)),
            // A missing engine is replaced by recorded traces. A broken one is reported.
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

/// A message of a thread that prepares engines.
enum Prepared {
    Progress(String, Option<f64>),
    /// The engine of the part with this number.
    Done(usize, Choice),
}

/// The engines of a run, which are built in parallel with the runs of scenarios.
struct Builds<'a> {
    plan: &'a Plan,
    /// The number of the next part to run.
    next: usize,
    messages: Receiver<Prepared>,
    ready: BTreeMap<usize, Choice>,
}

/// Builds the engines of a plan while `run` uses them: the oldest first, as many at a time as the
/// machine can handle.
pub(super) fn with_engines(
    plan: &Plan,
    parts: &[ReleasePlan],
    run: impl FnOnce(&mut dyn Executor) -> Result<(), EngineError>,
) -> Result<(), EngineError> {
    let (next, (sender, messages)) = (AtomicUsize::new(0), mpsc::channel());
    // Builds also stop when the run fails.
    let stop = plan.stop.child_token();
    std::thread::scope(|threads| {
        for _ in 0..build::builds_at_a_time().min(parts.len()) {
            let (next, stop, sender) = (&next, &stop, sender.clone());
            threads.spawn(move || prepare(plan, parts, next, stop, &sender));
        }
        drop(sender);
        // Stops builds whose results are no longer needed.
        let _stops = stop.clone().drop_guard();
        run(&mut Builds { plan, next: 0, messages, ready: BTreeMap::new() })
    })
}

/// Prepares engines until each part has one.
fn prepare(
    plan: &Plan,
    parts: &[ReleasePlan],
    next: &AtomicUsize,
    stop: &CancellationToken,
    sender: &Sender<Prepared>,
) {
    while !stop.is_cancelled() {
        let number = next.fetch_add(1, Ordering::Relaxed);
        let Some(part) = parts.get(number) else { return };
        let choice = choose(plan, part.release, stop, &mut |what, fraction| {
            drop(sender.send(Prepared::Progress(what.to_owned(), fraction)));
        });
        // Without a receiver, the run is over.
        if sender.send(Prepared::Done(number, choice)).is_err() {
            return;
        }
    }
}

impl Builds<'_> {
    /// Waits for the next engine. Returns `None` if the run is stopped.
    fn wait(&mut self, record: &mut Record<'_>) -> Option<Choice> {
        loop {
            if let Some(choice) = self.ready.remove(&self.next) {
                self.next += 1;
                return Some(choice);
            }
            match self.messages.recv().ok()? {
                Prepared::Progress(what, fraction) => record.preparing(what, fraction),
                Prepared::Done(number, choice) => {
                    self.ready.insert(number, choice);
                }
            }
        }
    }
}

impl Executor for Builds<'_> {
    fn prepare(
        &mut self,
        _: &ReleasePlan,
        record: &mut Record<'_>,
    ) -> Result<Option<Box<dyn ReadyEngine + '_>>, EngineError> {
        let Some(choice) = self.wait(record) else { return Ok(None) };
        let (chosen, note) = match choice {
            Ok(choice) => choice,
            Err(error) if self.plan.releases.iter().count() > 1 => (Chosen::Broken(error), None),
            Err(error) => return Err(error),
        };
        Ok(Some(Box::new(Workers { plan: self.plan, chosen, note })))
    }
}

/// Workers with engines of one release.
struct Workers<'a> {
    plan: &'a Plan,
    chosen: Chosen,
    note: Option<String>,
}

impl ReadyEngine for Workers<'_> {
    fn name(&self) -> Arc<str> {
        self.chosen.name()
    }

    fn note(&self) -> Option<String> {
        self.note.clone()
    }

    fn run(
        self: Box<Self>,
        part: &ReleasePlan,
        record: &mut Record<'_>,
    ) -> Result<(), EngineError> {
        let Workers { plan, chosen, .. } = *self;
        // Known disagreements of upstream do not apply to the model, which agrees with itself.
        let known: &[KnownDisagreement] =
            if matches!(chosen, Chosen::Model) { &[] } else { &plan.known };
        let work = |engine: &mut Box<dyn Engine>, index: usize| {
            let scenario = part.scenarios.get(index)?;
            (!plan.stop.is_cancelled()).then(|| run_one(scenario, &mut **engine, &plan.known))
        };
        let workers = plan.jobs.clamp(1, part.scenarios.len().max(1));
        in_order(workers, &|| chosen.engine(plan, part.release), &work, &mut |_, outcome| {
            record.finished_with_known(known, outcome);
            true
        });
        Ok(())
    }
}
