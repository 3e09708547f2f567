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

use crate::executor::{Executor, ReadyEngine};
use crate::kind::RunKind;
use crate::plan::{Part, Plan, ReleasePlan};
use crate::record::Record;
use crate::recorded;
use crate::registry::EngineChoice;
use crate::source::{EngineFactory, EngineLimits, EngineSource};
use crate::upstream::build;
use crate::upstream::build::{BuildOptions, Progress};
use crate::upstream::prepare_recommender;
use kube_autoscaler_models::rules::VpaRelease;
use kube_lockstep_sim::compare::KnownDisagreement;
use kube_lockstep_sim::engine::{ControllerKind, Engine, EngineError};
use kube_lockstep_sim::run::Preparation;
use kube_lockstep_sim::run::in_order::in_order;

/// An engine, and a note about the choice for the report.
type Choice<K> = Result<(EngineFactory<K>, Option<String>), EngineError>;

fn choose<K: RunKind>(
    plan: &Plan,
    release: K::Release,
    builds: &BuildOptions,
    progress: Progress<'_>,
) -> Choice<K> {
    let limits = EngineLimits { answer: plan.time_limit, builds: builds.clone() };
    let mut prepare = |source: EngineSource| source.prepare(release, &limits, progress);
    if let Some(checkout) = &plan.checkout {
        let (rules, why) = K::rules(checkout);
        let note = if rules == release {
            format!("the model follows the rules of {rules}, {why}")
        } else {
            format!("the model follows the rules of {release}, as requested, not of {rules}")
        };
        return Ok((prepare(EngineSource::Checkout(checkout.clone()))?, Some(note)));
    }
    let upstream = match plan.program.as_ref().filter(|_| K::TAKES_PROGRAMS) {
        Some(program) => EngineSource::Program(program.clone()),
        None => EngineSource::Upstream,
    };
    let recorded = || EngineSource::Recorded(plan.traces.clone());
    let source = match plan.engine {
        EngineChoice::Model => EngineSource::Model,
        EngineChoice::Recorded => recorded(),
        EngineChoice::Best => match prepare(upstream) {
            // A missing engine is replaced by recorded traces. A broken one is reported.
            Err(EngineError::Unavailable { problem, .. }) => {
                let why = problem.in_one_line("; ");
                let note = format!("using recorded traces, because upstream can't run here: {why}");
                return Ok((prepare(recorded())?, Some(note)));
            }
            prepared => return Ok((prepared?, None)),
        },
        // On a cluster that can't run a recommender, the recommender runs in virtual time.
        _ => upstream,
    };
    Ok((prepare(source)?, None))
}

/// An engine with the scenarios to run, or why it can't be prepared.
type Prepared<'p> = Result<Box<dyn ReadyEngine + Send + 'p>, EngineError>;

/// A message of a thread that prepares engines.
enum Message<'p> {
    Progress(Preparation),
    /// The engine of the part with this number.
    Done(usize, Prepared<'p>),
}

/// The engines of a run, which are built in parallel with the runs of scenarios.
struct Builds<'p> {
    /// The number of the next part to run.
    next: usize,
    messages: Receiver<Message<'p>>,
    ready: BTreeMap<usize, Prepared<'p>>,
}

/// Builds the engines of a plan while `run` uses them: the oldest first, as many at a time as the
/// machine can handle.
pub(super) fn with_engines(
    plan: &Plan,
    parts: &[Part],
    run: impl FnOnce(&mut dyn Executor) -> Result<(), EngineError>,
) -> Result<(), EngineError> {
    let (next, (sender, messages)) = (AtomicUsize::new(0), mpsc::channel());
    // Builds also stop when the run fails.
    let stop = plan.stop.child_token();
    std::thread::scope(|threads| {
        for _ in 0..build::builds_at_a_time().min(parts.len()) {
            let (next, stop, sender) = (&next, &stop, sender.clone());
            threads.spawn(move || prepare_all(plan, parts, next, stop, &sender));
        }
        drop(sender);
        // Stops builds whose results are no longer needed.
        let _stops = stop.clone().drop_guard();
        run(&mut Builds { next: 0, messages, ready: BTreeMap::new() })
    })
}

/// Prepares engines until each part has one.
fn prepare_all<'p>(
    plan: &'p Plan,
    parts: &'p [Part],
    next: &AtomicUsize,
    stop: &CancellationToken,
    sender: &Sender<Message<'p>>,
) {
    while !stop.is_cancelled() {
        let number = next.fetch_add(1, Ordering::Relaxed);
        let Some(part) = parts.get(number) else { return };
        let mut progress = |it: Preparation| drop(sender.send(Message::Progress(it)));
        let builds = BuildOptions::new(stop.clone(), plan.only_cached);
        let prepared = match part {
            Part::Hpa(part) => prepare(plan, part, &builds, &mut progress),
            Part::Vpa(part) => prepare(plan, part, &builds, &mut progress),
        };
        // Without a receiver, the run is over.
        if sender.send(Message::Done(number, prepared)).is_err() {
            return;
        }
    }
}

/// Prepares the engine of a part.
fn prepare<'p, K: RunKind>(
    plan: &'p Plan,
    part: &'p ReleasePlan<K>,
    builds: &BuildOptions,
    progress: Progress<'_>,
) -> Prepared<'p> {
    let (factory, note) = match choose(plan, part.release, builds, progress) {
        Ok((factory, note)) => {
            if uses_upstream(plan, &factory) && plan.has_model() {
                let releases: BTreeSet<VpaRelease> = recommenders(part).collect();
                releases.into_iter().for_each(|it| prepare_recommender(it, builds, progress));
            }
            (factory, note.or_else(|| custom_program_note(plan, part)))
        }
        Err(error) if plan.used_releases().len() > 1 => {
            (EngineFactory::broken(part.release, &error), None)
        }
        Err(error) => return Err(error),
    };
    Ok(Box::new(Workers { plan, part, factory, note }))
}

/// Returns true if scenarios with a VPA run with the real recommender.
fn uses_upstream<K: ControllerKind>(plan: &Plan, factory: &EngineFactory<K>) -> bool {
    plan.engine != EngineChoice::Model && &**factory.name() != recorded::NAME
}

/// The releases of the recommenders that run with the controller, one for each scenario with an
/// HPA and a VPA.
fn recommenders<K: RunKind>(part: &ReleasePlan<K>) -> impl Iterator<Item = VpaRelease> {
    part.scenarios.iter().filter_map(|scenario| K::recommender(scenario))
}

/// A program takes the place of the HPA controller only.
fn custom_program_note<K: RunKind>(plan: &Plan, part: &ReleasePlan<K>) -> Option<String> {
    if !plan.has_model() {
        return Some("nothing is compared with the model (--compare expectations)".to_owned());
    }
    let scenarios = match (&plan.program, recommenders(part).count()) {
        (None, _) | (_, 0) => return None,
        (Some(_), 1) => "1 scenario with an HPA and a VPA runs".to_owned(),
        (Some(_), many) => format!("{many} scenarios with an HPA and a VPA run"),
    };
    Some(format!(
        "{scenarios} the real recommender, updater and admission controller with the program, \
         which requires Go"
    ))
}

impl<'p> Builds<'p> {
    /// Waits for the next engine. Returns `None` if the run is stopped.
    fn wait(&mut self, record: &mut Record<'_>) -> Option<Prepared<'p>> {
        loop {
            if let Some(prepared) = self.ready.remove(&self.next) {
                self.next += 1;
                return Some(prepared);
            }
            match self.messages.recv().ok()? {
                Message::Progress(preparation) => record.preparing(preparation),
                Message::Done(number, prepared) => {
                    self.ready.insert(number, prepared);
                }
            }
        }
    }
}

impl Executor for Builds<'_> {
    fn prepare<'a>(
        &'a mut self,
        _: &'a Part,
        record: &mut Record<'_>,
    ) -> Result<Option<Box<dyn ReadyEngine + 'a>>, EngineError> {
        Ok(self.wait(record).transpose()?.map(|engine| engine as Box<dyn ReadyEngine>))
    }
}

/// Workers with engines of one release.
struct Workers<'p, K: ControllerKind> {
    plan: &'p Plan,
    part: &'p ReleasePlan<K>,
    factory: EngineFactory<K>,
    note: Option<String>,
}

impl<K: RunKind> ReadyEngine for Workers<'_, K> {
    fn name(&self) -> Arc<str> {
        self.factory.name().clone()
    }

    fn note(&self) -> Option<String> {
        self.note.clone()
    }

    fn run(self: Box<Self>, record: &mut Record<'_>) -> Result<(), EngineError> {
        let Workers { plan, part, factory, .. } = *self;
        // Known disagreements of upstream do not apply to the model, which agrees with itself.
        let known: &[KnownDisagreement] =
            if plan.engine == EngineChoice::Model { &[] } else { &plan.known };
        let work = |engine: &mut Box<dyn Engine<K>>, index: usize| {
            let scenario = part.scenarios.get(index)?;
            (!plan.stop.is_cancelled()).then(|| {
                let mut outcome = K::run(scenario, &mut **engine, known);
                plan.snapshots.apply(&mut outcome);
                outcome
            })
        };
        let workers = plan.jobs.clamp(1, part.scenarios.len().max(1));
        in_order(workers, &|| factory.make(), &work, &mut |_, outcome| {
            record.finished_with_known(known, outcome);
            true
        });
        Ok(())
    }
}
