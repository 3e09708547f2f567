//! Prepares engines in virtual time, and runs scenarios on them.
//!
//! Each worker has its own engine (a process, for upstream) and its own thread, since it computes
//! rather than waits. Outcomes are reported in the order of the scenarios, whichever worker ends
//! first. Engines are built in the meantime: a release runs as soon as its engine is ready and all
//! previous releases are done.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};

use tokio_util::sync::CancellationToken;

use super::executor::{Executor, ReadyEngine};
use super::in_order::in_order;
use super::plan::{Plan, ReleasePlan};
use super::record::Record;
use super::run_one;
use crate::compare::KnownDisagreement;
use crate::engine::recorded;
use crate::engine::registry::EngineChoice;
use crate::engine::source::{EngineFactory, EngineLimits, EngineSource};
use crate::engine::upstream::build::{self, Progress};
use crate::engine::upstream::recommender;
use crate::engine::{Engine, EngineError};
use crate::model::rules::{Release, VpaRelease};

/// An engine, and a note about the choice for the report.
type Choice = Result<(EngineFactory, Option<String>), EngineError>;

fn choose(
    plan: &Plan,
    release: Release,
    stop: &CancellationToken,
    progress: Progress<'_>,
) -> Choice {
    let limits = EngineLimits { answer: plan.time_limit, stop: stop.clone() };
    let mut prepare = |source: EngineSource| source.prepare(release, &limits, progress);
    if let Some(checkout) = &plan.checkout {
        let (rules, why) = checkout.rules();
        let note = if rules == release {
            format!("the model follows the rules of {rules}, {why}")
        } else {
            format!("the model follows the rules of {release}, as requested, not of {rules}")
        };
        return Ok((prepare(EngineSource::Checkout(checkout.clone()))?, Some(note)));
    }
    let upstream = match &plan.program {
        Some(program) => EngineSource::Program(program.clone()),
        None => EngineSource::Upstream,
    };
    let recorded = || EngineSource::Recorded(plan.traces.clone());
    let source = match plan.engine {
        EngineChoice::Upstream => upstream,
        EngineChoice::Model => EngineSource::Model,
        EngineChoice::Recorded => recorded(),
        _ => match prepare(upstream) {
            // A missing engine is replaced by recorded traces. A broken one is reported.
            Err(EngineError::Unavailable { why, hint, .. }) => {
                let note = format!(
                    "using recorded traces, because upstream can't run here: {why}; {hint}"
                );
                return Ok((prepare(recorded())?, Some(note)));
            }
            prepared => return Ok((prepared?, None)),
        },
    };
    Ok((prepare(source)?, None))
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
        let mut progress = |what: &str, fraction| {
            drop(sender.send(Prepared::Progress(what.to_owned(), fraction)));
        };
        let choice = choose(plan, part.release, stop, &mut progress);
        let choice =
            choice.map(|(engine, note)| (engine, note.or_else(|| beside_program(plan, part))));
        if uses_upstream(plan, &choice) {
            prepare_recommenders(part, stop, &mut progress);
        }
        // Without a receiver, the run is over.
        if sender.send(Prepared::Done(number, choice)).is_err() {
            return;
        }
    }
}

/// Returns true if scenarios with a VPA run with the real recommender.
fn uses_upstream(plan: &Plan, choice: &Choice) -> bool {
    let is_recorded = |factory: &EngineFactory| &**factory.name() == recorded::NAME;
    plan.engine != EngineChoice::Model
        && choice.as_ref().is_ok_and(|(factory, _)| !is_recorded(factory))
}

/// A program takes the place of the HPA controller only.
fn beside_program(plan: &Plan, part: &ReleasePlan) -> Option<String> {
    let scenarios = part.scenarios.iter().filter(|scenario| scenario.vpa.is_some()).count();
    let scenarios = match (&plan.program, scenarios) {
        (None, _) | (_, 0) => return None,
        (Some(_), 1) => "1 scenario with an HPA and a VPA runs".to_owned(),
        (Some(_), many) => format!("{many} scenarios with an HPA and a VPA run"),
    };
    Some(format!("{scenarios} the real recommender beside the program, which requires Go"))
}

/// Builds the recommenders that run beside the HPA controller. A failure is reported by each
/// scenario that needs one.
fn prepare_recommenders(part: &ReleasePlan, stop: &CancellationToken, progress: Progress<'_>) {
    let vpas = part.scenarios.iter().filter_map(|scenario| scenario.vpa.as_ref());
    let releases: BTreeSet<VpaRelease> = vpas.map(|vpa| vpa.release).collect();
    for release in releases {
        drop(recommender::ensure(release, stop, progress));
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
        plan: &ReleasePlan,
        record: &mut Record<'_>,
    ) -> Result<Option<Box<dyn ReadyEngine + '_>>, EngineError> {
        let Some(choice) = self.wait(record) else { return Ok(None) };
        let (factory, note) = match choice {
            Ok(choice) => choice,
            Err(error) if self.plan.used_releases().len() > 1 => {
                (EngineFactory::broken(plan.release, &error), None)
            }
            Err(error) => return Err(error),
        };
        Ok(Some(Box::new(Workers { plan: self.plan, factory, note })))
    }
}

/// Workers with engines of one release.
struct Workers<'a> {
    plan: &'a Plan,
    factory: EngineFactory,
    note: Option<String>,
}

impl ReadyEngine for Workers<'_> {
    fn name(&self) -> Arc<str> {
        self.factory.name().clone()
    }

    fn note(&self) -> Option<String> {
        self.note.clone()
    }

    fn run(
        self: Box<Self>,
        part: &ReleasePlan,
        record: &mut Record<'_>,
    ) -> Result<(), EngineError> {
        let Workers { plan, factory, .. } = *self;
        // Known disagreements of upstream do not apply to the model, which agrees with itself.
        let known: &[KnownDisagreement] =
            if plan.engine == EngineChoice::Model { &[] } else { &plan.known };
        let work = |engine: &mut Box<dyn Engine>, index: usize| {
            let scenario = part.scenarios.get(index)?;
            (!plan.stop.is_cancelled()).then(|| run_one(scenario, &mut **engine, &plan.known))
        };
        let workers = plan.jobs.clamp(1, part.scenarios.len().max(1));
        in_order(workers, &|| factory.make(), &work, &mut |_, outcome| {
            record.finished_with_known(known, outcome);
            true
        });
        Ok(())
    }
}
