//! [`Lockstep`]: a scenario on an engine, compared with the model.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use kube_autoscaler_models::rules::Release;
use kube_lockstep_engines::input_file;
use kube_lockstep_engines::input_file::InputError;
use kube_lockstep_engines::kind::RunKind;
use kube_lockstep_engines::source::{CustomProgram, EngineLimits, EngineSource};
use kube_lockstep_predict::COLUMNS;
use kube_lockstep_report as report;
use kube_lockstep_scenario as scenario;
use kube_lockstep_scenario::{AnyScenario, Diagnostic, Scenario};
use kube_lockstep_sim::engine::{ControllerKind, Engine as AnyEngine, EngineError, Hpa};
use kube_lockstep_sim::run::{Outcome, Setting, Verdict};

/// The error of a scenario or a folder of scenarios that could not be run.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file is not a valid scenario.
    #[error(transparent)]
    Scenario(#[from] scenario::Error),
    /// The environment variable `KUBE_LOCKSTEP_ENGINE` names no engine.
    #[error("KUBE_LOCKSTEP_ENGINE: {0}")]
    EngineName(String),
    /// An engine is not available.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// A file or folder cannot be read.
    #[error("{}: {why}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The error of the operating system.
        why: String,
    },
    /// A glob matches no file.
    #[error("{glob}: {why}")]
    Glob {
        /// The glob.
        glob: String,
        /// The problem.
        why: String,
    },
}

/// Reads scenarios from files: `Scenario::read("web.yaml")`.
pub trait ReadScenario: Sized {
    /// Reads a scenario file. The paths in it are relative to the folder of that file.
    ///
    /// # Errors
    /// If the file can't be read, or is not a valid scenario.
    fn read(path: impl AsRef<Path>) -> Result<Self, Error>;
}

impl ReadScenario for Scenario {
    fn read(path: impl AsRef<Path>) -> Result<Scenario, Error> {
        read(path.as_ref(), scenario::parse)
    }
}

/// Reads a scenario file of either kind.
///
/// # Errors
/// As [`ReadScenario::read`].
pub(super) fn read_any(path: &Path) -> Result<AnyScenario, Error> {
    read(path, scenario::parse_any)
}

/// A function that parses a scenario of a path, and reads the files that it names.
type Parse<T> =
    fn(&str, &str, &dyn Fn(&str) -> Result<String, Diagnostic>) -> Result<T, scenario::Error>;

fn read<T>(path: &Path, parse: Parse<T>) -> Result<T, Error> {
    let io = |why: InputError| Error::Io { path: path.to_owned(), why: why.to_string() };
    let text = input_file::read(path).map_err(io)?;
    let read_other =
        |name: &str| input_file::read_long(&path.with_file_name(name)).map_err(Diagnostic::from);
    Ok(parse(&path.to_string_lossy(), &text, &read_other)?)
}

/// The engine that the model is compared with.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum Engine {
    /// Upstream's controller if it is built or Go can build it; otherwise the model itself, so that
    /// only the expectations of scenarios are checked. [`Report::note`] then gives the reason.
    #[default]
    Best,
    /// Upstream's controller in virtual time. The first use builds it, which requires Go.
    Upstream,
    /// A program that implements the engine protocol.
    Program(PathBuf),
    /// The model itself: it only checks the expectations of scenarios.
    Model,
}

impl FromStr for Engine {
    type Err = String;

    /// Reads `best`, `upstream` or `model`.
    fn from_str(text: &str) -> Result<Engine, String> {
        match text {
            "best" => Ok(Engine::Best),
            "upstream" => Ok(Engine::Upstream),
            "model" => Ok(Engine::Model),
            _ => Err(format!("unknown engine {text:?}: expected best, upstream or model")),
        }
    }
}

/// An engine that is ready, and a note if it is not the preferred one.
pub(super) struct Ready<K: ControllerKind = Hpa> {
    engine: Box<dyn AnyEngine<K>>,
    note: Option<String>,
}

impl Engine {
    pub(super) fn prepare<K: RunKind>(&self, release: K::Release) -> Result<Ready<K>, EngineError> {
        let prepare = |source: EngineSource| {
            let factory = source.prepare(release, &EngineLimits::default(), &mut |_| {})?;
            Ok(Ready { engine: factory.make(), note: None })
        };
        match self {
            Engine::Upstream => prepare(EngineSource::Upstream),
            Engine::Program(program) => {
                prepare(EngineSource::Program(CustomProgram::new(program.clone())))
            }
            Engine::Model => prepare(EngineSource::Model),
            Engine::Best => prepare(EngineSource::Upstream).or_else(|error| match error {
                EngineError::Unavailable { problem, .. } => {
                    let note = Some(on_the_model(&problem.what));
                    Ok(Ready { note, ..prepare(EngineSource::Model)? })
                }
                error => Err(error),
            }),
        }
    }
}

/// The note that upstream is not available.
fn on_the_model(why: &str) -> String {
    format!(
        "on the model alone, which checks expectations only, since upstream can't run here: {why}"
    )
}

/// Runs a scenario on an engine in lockstep with the model.
///
/// ```
/// use kube_lockstep::{Engine, Lockstep, Scenario};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let scenario: Scenario = "
/// apiVersion: kube-lockstep.dev/v1alpha1
/// kind: Scenario
/// requirement: Twice the target doubles the replicas.
/// hpa:
///   apiVersion: autoscaling/v2
///   kind: HorizontalPodAutoscaler
///   metadata: {name: web}
///   spec:
///     scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
///     maxReplicas: 10
///     metrics:
///       - type: Resource
///         resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}
/// workload: {replicas: 3, containers: [{name: app, requests: {cpu: 100m}}]}
/// metrics: {resource: [{name: cpu, perPod: 100m}]}
/// until: 30s
/// expect:
///   - {tick: 1, replicas: 6}
/// ".parse()?;
/// // Without `engine`, upstream's controller is built if Go is installed.
/// let report = Lockstep::new(scenario).engine(Engine::Model).run()?;
/// assert!(report.conforms(), "{report}");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "nothing is run before `run` is called"]
pub struct Lockstep {
    scenario: Arc<Scenario>,
    engine: Engine,
    release: Release,
}

impl Lockstep {
    /// Creates a run on the best available engine, on the newest release of Kubernetes.
    pub fn new(scenario: impl Into<Arc<Scenario>>) -> Lockstep {
        let (scenario, engine) = (scenario.into(), Engine::default());
        Lockstep { scenario, engine, release: Release::NEWEST }
    }

    /// Sets the engine.
    pub fn engine(mut self, engine: Engine) -> Lockstep {
        self.engine = engine;
        self
    }

    /// Sets the release of Kubernetes.
    pub fn release(mut self, release: Release) -> Lockstep {
        self.release = release;
        self
    }

    /// Runs the scenario.
    ///
    /// # Errors
    /// If the engine is not available. An engine that fails later gives a report without a verdict.
    pub fn run(&self) -> Result<Report, EngineError> {
        let mut ready: Ready = self.engine.prepare(self.release)?;
        Ok(ready.run(&self.scenario))
    }
}

impl<K: RunKind> Ready<K> {
    pub(super) fn run(&mut self, scenario: &Arc<K::Scenario>) -> Report {
        Report { outcome: K::run(scenario, &mut *self.engine, &[]), note: self.note.clone() }
    }
}

/// The report of one scenario. Its `Display` is the text that the command prints, without colors.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Report {
    /// The verdict, the trace and the unmet expectations.
    pub outcome: Outcome,
    /// Why the preferred engine was not used.
    pub note: Option<String>,
}

impl Report {
    /// Returns true if the engine behaved as the model predicts, and all expectations were met.
    #[must_use]
    pub fn conforms(&self) -> bool {
        self.outcome.verdict == Verdict::Conforms
    }

    /// Panics unless the scenario conforms.
    ///
    /// # Panics
    /// With the report, if the scenario does not conform.
    #[track_caller]
    pub fn assert_conforms(&self) {
        assert!(self.conforms(), "{self}");
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let outcome = &self.outcome;
        let setting = Setting {
            engine: outcome.engine.clone(),
            release: outcome.release.clone(),
            ..Setting::default()
        };
        let text = report::outcome(outcome, &setting, COLUMNS).unwrap_or_else(|| {
            let ticks = report::counted(outcome.ticks, "tick");
            format!("conforms  {}   v{}   {ticks}", outcome.id, outcome.release)
        });
        write!(f, "{}", report::plain(text.trim_end()))?;
        self.note.iter().try_for_each(|note| write!(f, "\n  note: {note}"))
    }
}
