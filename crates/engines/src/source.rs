//! The engines in virtual time: their controllers, and the creation of instances.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::kind::RunKind;
use crate::recorded::Traces;
use crate::registry::ENGINES;
use crate::upstream::TIME_LIMIT;
use crate::upstream::build;
use crate::upstream::build::{BuildOptions, Progress};
use crate::upstream::checkout::Checkout;
use kube_lockstep_scenario::Diagnostic;
use kube_lockstep_sim::engine::{ControllerKind, Engine, EngineError, Hpa, Session};

/// The controller that an engine in virtual time runs.
#[derive(Clone, Debug)]
pub enum EngineSource {
    /// Upstream's controller of a release, built if necessary.
    Upstream,
    /// Upstream's controller of a local checkout, built if necessary.
    Checkout(Checkout),
    /// A program that implements the engine protocol.
    Program(CustomProgram),
    /// The reference model.
    Model,
    /// Upstream's recorded traces.
    Recorded(Traces),
}

/// A user's program that implements the engine protocol.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CustomProgram {
    /// The file.
    pub path: PathBuf,
    /// False: the model does not predict its controller. Only the expectations of scenarios are
    /// checked.
    pub has_model: bool,
}

impl CustomProgram {
    /// A program whose controller the model predicts.
    #[must_use]
    pub fn new(path: PathBuf) -> CustomProgram {
        CustomProgram { path, has_model: true }
    }
}

/// How a run is limited and stopped.
#[derive(Clone, Debug)]
pub struct EngineLimits {
    /// The timeout for each answer of an engine.
    pub answer: Duration,
    /// Whether programs are built, and how a build is stopped.
    pub builds: BuildOptions,
}

impl Default for EngineLimits {
    fn default() -> EngineLimits {
        EngineLimits { answer: TIME_LIMIT, builds: BuildOptions::default() }
    }
}

/// A program that runs a controller in virtual time.
#[derive(Clone, Debug)]
pub struct Host {
    pub program: PathBuf,
    /// The engine's name in reports.
    pub name: Arc<str>,
    /// True if it is built from a checkout: it may then report any release.
    pub is_checkout: bool,
    /// False: the model does not predict its controller.
    pub has_model: bool,
    /// The limits of the engine and of the recommenders that run with it.
    pub limits: EngineLimits,
}

type Make<K> = dyn Fn() -> Box<dyn Engine<K>> + Send + Sync;

/// An engine of one release that is ready. Each worker of a run makes its own instance.
pub struct EngineFactory<K: ControllerKind = Hpa> {
    name: Arc<str>,
    make: Arc<Make<K>>,
}

impl EngineSource {
    /// Prepares the engine of a release.
    ///
    /// # Errors
    /// If the engine is not available on this machine, or its build fails.
    pub fn prepare<K: RunKind>(
        &self,
        release: K::Release,
        limits: &EngineLimits,
        progress: Progress<'_>,
    ) -> Result<EngineFactory<K>, EngineError> {
        let host = |program: PathBuf, name: Arc<str>| Host {
            program,
            name,
            is_checkout: false,
            has_model: true,
            limits: limits.clone(),
        };
        let hosted =
            |host: Host| EngineFactory::new(host.name.clone(), move || K::hosted(&host, release));
        Ok(match self {
            EngineSource::Upstream => {
                let program = build::ensure(K::ARTIFACT, release, &limits.builds, progress)?;
                hosted(host(program, crate::upstream::NAME.into()))
            }
            EngineSource::Checkout(checkout) => {
                let program = K::checkout(checkout, release).build(&limits.builds, progress)?;
                hosted(Host { is_checkout: true, ..host(program, checkout.name().into()) })
            }
            EngineSource::Program(program) if K::TAKES_PROGRAMS => {
                let CustomProgram { path, has_model } = program.clone();
                let name = name_of_program(&path);
                hosted(Host { has_model, ..host(path, name) })
            }
            EngineSource::Program(program) => {
                return Err(EngineError::Unavailable {
                    engine: program.path.display().to_string().into(),
                    problem: Diagnostic::new("programs do not run VPA scenarios")
                        .hint("use another engine for VPA scenarios"),
                });
            }
            EngineSource::Model => {
                EngineFactory::new(kube_lockstep_sim::engine::model::NAME.into(), move || {
                    K::model(release)
                })
            }
            EngineSource::Recorded(traces) => {
                let traces = traces.clone();
                EngineFactory::new(crate::recorded::NAME.into(), move || {
                    K::recorded(release, traces.clone())
                })
            }
        })
    }
}

impl<K: ControllerKind> EngineFactory<K> {
    fn new(
        name: Arc<str>,
        make: impl Fn() -> Box<dyn Engine<K>> + Send + Sync + 'static,
    ) -> EngineFactory<K> {
        EngineFactory { name, make: Arc::new(make) }
    }

    /// An engine that could not be prepared: no scenario has a verdict.
    #[must_use]
    pub(crate) fn broken(release: K::Release, why: &EngineError) -> EngineFactory<K> {
        let why = why.clone();
        EngineFactory::new(why.engine().clone(), move || {
            Box::new(NoEngine::<K> { release, why: why.clone() })
        })
    }

    /// The engine's name in reports.
    #[must_use]
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Makes an instance.
    #[must_use]
    pub fn make(&self) -> Box<dyn Engine<K>> {
        (self.make)()
    }
}

/// A clone creates engines with the same function.
impl<K: ControllerKind> Clone for EngineFactory<K> {
    fn clone(&self) -> EngineFactory<K> {
        EngineFactory { name: self.name.clone(), make: self.make.clone() }
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

struct NoEngine<K: ControllerKind> {
    release: K::Release,
    why: EngineError,
}

impl<K: ControllerKind> Engine<K> for NoEngine<K> {
    fn name(&self) -> &str {
        self.why.engine()
    }

    fn release(&self) -> K::Release {
        self.release
    }

    fn open<'a>(&'a mut self, _: K::Opening<'_>) -> Result<Box<dyn Session<K> + 'a>, EngineError> {
        Err(self.why.clone())
    }
}
