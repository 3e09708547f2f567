//! The engines in virtual time: their controllers, and the creation of instances.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::model::Model;
use super::recorded::{Recorded, Traces};
use super::registry::ENGINES;
use super::upstream::build::{self, Progress};
use super::upstream::checkout::Checkout;
use super::upstream::{TIME_LIMIT, Upstream};
use super::{Engine, EngineError, Session};
use crate::model::rules::Release;
use crate::scenario::Scenario;

/// The controller that an engine in virtual time runs.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum EngineSource {
    /// Upstream's controller of a release, built if necessary.
    Upstream,
    /// Upstream's controller of a local checkout, built if necessary.
    Checkout(Checkout),
    /// A program that implements the engine protocol.
    Program(PathBuf),
    /// The reference model.
    Model,
    /// Upstream's recorded traces.
    Recorded(Traces),
}

/// How a run is limited and stopped.
#[derive(Clone, Debug)]
pub struct EngineLimits {
    /// The timeout for each answer of an engine.
    pub answer: Duration,
    /// Cancelled to stop a build.
    pub stop: CancellationToken,
}

impl Default for EngineLimits {
    fn default() -> EngineLimits {
        EngineLimits { answer: TIME_LIMIT, stop: CancellationToken::new() }
    }
}

type Make = dyn Fn() -> Box<dyn Engine> + Send + Sync;

/// An engine of one release that is ready. Each worker of a run makes its own instance.
#[derive(Clone)]
pub struct EngineFactory {
    name: Arc<str>,
    make: Arc<Make>,
}

impl EngineSource {
    /// Prepares the engine of a release.
    ///
    /// # Errors
    /// If it can't be had on this machine, or its build fails.
    pub fn prepare(
        &self,
        release: Release,
        limits: &EngineLimits,
        progress: Progress<'_>,
    ) -> Result<EngineFactory, EngineError> {
        let limit = limits.answer;
        Ok(match self {
            EngineSource::Upstream => {
                let host = build::Artifact::Host;
                let program = build::ensure(host, release, &limits.stop, progress)?;
                EngineFactory::new(super::upstream::NAME, move || {
                    Upstream::new(program.clone(), release).with_time_limit(limit)
                })
            }
            EngineSource::Checkout(checkout) => {
                let program = checkout.build(&limits.stop, progress)?;
                let name: Arc<str> = checkout.name().into();
                EngineFactory::new(name.clone(), move || {
                    let engine = Upstream::of_checkout(program.clone(), name.clone(), release);
                    engine.with_time_limit(limit)
                })
            }
            EngineSource::Program(program) => {
                let (program, name) = (program.clone(), name_of_program(program));
                EngineFactory::new(name.clone(), move || {
                    let engine = Upstream::new(program.clone(), release).called(name.clone());
                    engine.with_time_limit(limit)
                })
            }
            EngineSource::Model => {
                EngineFactory::new(super::model::NAME, move || Model::new(release))
            }
            EngineSource::Recorded(traces) => {
                let traces = traces.clone();
                EngineFactory::new(super::recorded::NAME, move || {
                    Recorded::new(release, traces.clone())
                })
            }
        })
    }
}

impl EngineFactory {
    fn new<E: Engine + 'static>(
        name: impl Into<Arc<str>>,
        make: impl Fn() -> E + Send + Sync + 'static,
    ) -> EngineFactory {
        EngineFactory { name: name.into(), make: Arc::new(move || Box::new(make())) }
    }

    /// An engine that could not be prepared: no scenario has a verdict.
    #[must_use]
    pub fn broken(release: Release, why: &EngineError) -> EngineFactory {
        let why = why.clone();
        EngineFactory::new(why.engine().clone(), move || NoEngine { release, why: why.clone() })
    }

    /// The engine's name in reports.
    #[must_use]
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Makes an instance.
    #[must_use]
    pub fn make(&self) -> Box<dyn Engine> {
        (self.make)()
    }
}

/// The name of a program engine: its file name, with a prefix if an engine has the same name.
pub(crate) fn name_of_program(program: &Path) -> Arc<str> {
    let name = program.file_name().unwrap_or(program.as_os_str()).to_string_lossy();
    match ENGINES.iter().any(|engine| engine.name == name) {
        true => format!("program {name}").into(),
        false => name.into(),
    }
}

struct NoEngine {
    release: Release,
    why: EngineError,
}

impl Engine for NoEngine {
    fn name(&self) -> &str {
        self.why.engine()
    }

    fn release(&self) -> Release {
        self.release
    }

    fn open<'a>(&'a mut self, _: &Scenario) -> Result<Box<dyn Session + 'a>, EngineError> {
        Err(self.why.clone())
    }
}
