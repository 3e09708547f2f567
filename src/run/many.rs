//! Many scenarios on one engine, several at a time.
//!
//! Each worker has an engine of its own (a process, for upstream); outcomes are handed on in the
//! order of the scenarios, whichever worker is done first.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::in_order::in_order;
use super::{Event, Setting, Summary, run_one};
use crate::compare::KnownDisagreement;
use crate::engine::model::Model;
use crate::engine::recorded::{Recorded, Traces};
use crate::engine::upstream::{TIME_LIMIT, Upstream, build};
use crate::engine::{Engine, EngineError};
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
    /// How long an answer of the engine may take.
    pub time_limit: Duration,
    /// Set from outside to end the run early: what is under way is ended, the rest is skipped.
    pub stop: Arc<AtomicBool>,
}

/// The engine of a run, from which each worker makes its own.
enum Chosen {
    Upstream(PathBuf),
    Program(PathBuf),
    Model,
    Recorded,
}

impl Chosen {
    fn name(&self) -> Arc<str> {
        match self {
            Chosen::Upstream(_) => crate::engine::upstream::NAME.into(),
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
            Chosen::Program(program) => {
                Box::new(of_program(program, release).with_time_limit(plan.time_limit))
            }
            Chosen::Model => Box::new(Model::new(release)),
            Chosen::Recorded => Box::new(Recorded::new(release, plan.traces.clone())),
        }
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

fn choose(
    plan: &Plan,
    release: Release,
    sink: &mut dyn FnMut(Event),
) -> Result<(Chosen, Option<String>), EngineError> {
    let mut upstream = || {
        if let Some(program) = &plan.program {
            return Ok(Chosen::Program(program.clone()));
        }
        let mut progress = |what: &str, fraction: Option<f64>| {
            sink(Event::Preparing { what: what.to_owned(), fraction });
        };
        build::ensure(release, &plan.stop, &mut progress).map(Chosen::Upstream)
    };
    match plan.engine {
        EngineChoice::Upstream => Ok((upstream()?, None)),
        EngineChoice::Model => Ok((Chosen::Model, None)),
        EngineChoice::Recorded => Ok((Chosen::Recorded, None)),
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

/// Runs all scenarios of a plan and hands on what happens.
///
/// # Errors
/// If the engine can't be made ready at all. An engine that breaks later makes its scenario
/// inconclusive.
pub fn run_all(plan: &Plan, sink: &mut dyn FnMut(Event)) -> Result<Summary, EngineError> {
    let mut engines = Vec::new();
    let mut note = None;
    for release in plan.releases.iter() {
        let (chosen, why) = choose(plan, release, sink)?;
        note = note.or(why);
        engines.push((release, chosen));
    }
    let Some((_, chosen)) = engines.first() else { return Ok(Summary::default()) };
    // Building an engine, once, is no part of the run.
    let begin = Instant::now();
    sink(Event::Started {
        scenarios: plan.scenarios.len() * engines.len(),
        setting: Setting {
            engine: chosen.name(),
            release: plan.releases.to_string(),
            program: match chosen {
                Chosen::Program(program) => Some(program.clone()),
                _ => None,
            },
            time_limit: Some(plan.time_limit).filter(|limit| *limit != TIME_LIMIT),
        },
        note,
    });
    let mut summary = Summary::default();
    for (release, chosen) in &engines {
        let of_release = run_on(plan, *release, chosen, sink);
        summary.join(&of_release);
        if engines.len() > 1 {
            summary.releases.push((*release, of_release));
        }
    }
    summary.elapsed = begin.elapsed();
    sink(Event::Ended(summary.clone()));
    Ok(summary)
}

/// Runs all scenarios on one release.
fn run_on(plan: &Plan, release: Release, chosen: &Chosen, sink: &mut dyn FnMut(Event)) -> Summary {
    let begin = Instant::now();
    let mut summary = Summary::default();
    // The model agrees with itself, whatever is known of upstream.
    let known: &[KnownDisagreement] =
        if matches!(chosen, Chosen::Model) { &[] } else { &plan.known };
    let work = |engine: &mut Box<dyn Engine>, index: usize| {
        let scenario = plan.scenarios.get(index)?;
        let stopped = plan.stop.load(Ordering::Relaxed);
        (!stopped).then(|| run_one(scenario, &mut **engine, &plan.known))
    };
    let workers = plan.jobs.clamp(1, plan.scenarios.len().max(1));
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
