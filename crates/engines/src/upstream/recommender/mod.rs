//! The real, unmodified recommender of a release of the Vertical Pod Autoscaler, in virtual time.
//!
//! A small Go program (`upstream/recommender`) hosts it. It is built and cached like the host of
//! the HPA controller, and runs in the same kind of process.

pub mod deploy;
mod engine;
mod wire;

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

pub use self::engine::UpstreamRecommender;
use self::wire::{Answer, Open, Request, Step};
use super::artifact::{Artifact, Progress};
use super::build::{self, BuildOptions};
use super::process::{Process, TIME_LIMIT};
use kube_autoscaler_models::rules::{MinorVersion, VpaRelease};
use kube_autoscaler_models::time::Time;
use kube_autoscaler_models::vpa::{
    CheckpointSpec, ClusterChange, LogLine, ObjectName, Start, Stepped,
};
use kube_lockstep_sim::engine::EngineError;

/// Builds the host of a release if necessary. Returns the program.
///
/// # Errors
/// If there is no Go, or the build fails.
pub fn ensure(
    release: VpaRelease,
    options: impl Into<BuildOptions>,
    progress: Progress<'_>,
) -> Result<PathBuf, EngineError> {
    build::ensure(Artifact::Recommender, release, options, progress)
}

/// The recommender of one release: a process that runs one scenario after another.
#[derive(Debug)]
pub struct RecommenderHost {
    process: Process,
    release: VpaRelease,
    /// The steps that are not answered, by their ends.
    sent: VecDeque<Time>,
    /// The specifications of the existing checkpoints.
    checkpoints: BTreeMap<ObjectName, CheckpointSpec>,
}

/// The beginning of the version that the host of a release reports.
fn version_prefix(release: VpaRelease) -> String {
    format!("v{}.", MinorVersion::from(release))
}

impl RecommenderHost {
    /// Starts a program of [`ensure`].
    ///
    /// # Errors
    /// If the program can't be started or does not host the release.
    pub fn start(program: &std::path::Path, release: VpaRelease) -> Result<Self, EngineError> {
        let prefix = version_prefix(release);
        Self::start_as(program, &Artifact::Recommender.name().into(), release, &prefix, TIME_LIMIT)
    }

    /// Starts a program whose version begins with a prefix. `limit`: the timeout of each answer.
    fn start_as(
        program: &std::path::Path,
        name: &Arc<str>,
        release: VpaRelease,
        prefix: &str,
        limit: Duration,
    ) -> Result<Self, EngineError> {
        let process = Process::start(name, program, limit)?;
        let mut host = RecommenderHost {
            process,
            release,
            sent: VecDeque::new(),
            checkpoints: BTreeMap::new(),
        };
        match host.answer()? {
            Answer::Hello { protocol: wire::PROTOCOL, release: theirs }
                if theirs.starts_with(prefix) =>
            {
                Ok(host)
            }
            answer => Err(host.unexpected(&answer, "start")),
        }
    }

    #[must_use]
    pub fn release(&self) -> VpaRelease {
        self.release
    }

    /// Starts a scenario, with the recommender's flags by their upstream names. Returns the errors
    /// that the recommender logs while it starts.
    ///
    /// # Errors
    /// If the host fails.
    pub fn open(
        &mut self,
        scenario: &str,
        start: &Start,
        flags: &BTreeMap<String, String>,
    ) -> Result<Vec<LogLine>, EngineError> {
        self.checkpoints.clear();
        self.remember(&start.objects);
        self.process.send(&Request::Open(Open::new(scenario, start, flags)))?;
        match self.answer()? {
            Answer::Opened { log } => Ok(wire::log_lines(log)),
            answer => Err(self.unexpected(&answer, "open")),
        }
    }

    /// Applies changes, then lets time pass until a time since the start.
    ///
    /// # Errors
    /// If the host fails.
    pub fn step(&mut self, changes: &[ClusterChange], until: Time) -> Result<Stepped, EngineError> {
        self.send(changes, until)?;
        self.receive()
    }

    /// Sends a step without waiting for its answer.
    ///
    /// # Errors
    /// If the host fails.
    pub fn send(&mut self, changes: &[ClusterChange], until: Time) -> Result<(), EngineError> {
        self.remember(changes);
        self.sent.push_back(until);
        self.process.send(&Request::Step(Step::new(changes, until)))
    }

    /// Waits for the answer to the oldest step that is not answered.
    ///
    /// # Errors
    /// If the host fails.
    pub fn receive(&mut self) -> Result<Stepped, EngineError> {
        let until = self.sent.pop_front();
        match self.answer()? {
            Answer::Stepped(stepped) if until == Some(stepped.now) => {
                let stepped = stepped.into_stepped(&mut self.checkpoints);
                stepped.map_err(|why| self.process.broken(&why))
            }
            answer => Err(self.unexpected(&answer, "step")),
        }
    }

    /// Ends the scenario.
    ///
    /// # Errors
    /// If the host fails.
    pub fn close(&mut self) -> Result<(), EngineError> {
        self.process.send(&Request::Close {})?;
        match self.answer()? {
            Answer::Closed {} => Ok(()),
            answer => Err(self.unexpected(&answer, "close")),
        }
    }

    /// Remembers the specifications of checkpoints that the scenario creates.
    fn remember(&mut self, changes: &[ClusterChange]) {
        for change in changes {
            if let ClusterChange::SetCheckpoint(checkpoint) = change {
                self.checkpoints.insert(checkpoint.metadata.clone(), checkpoint.spec.clone());
            }
        }
    }

    fn answer(&mut self) -> Result<Answer, EngineError> {
        self.process
            .receive_as(|line| serde_json::from_slice(line).map_err(|error| error.to_string()))
    }

    fn unexpected(&mut self, answer: &Answer, request: &str) -> EngineError {
        match answer {
            Answer::Failed { why, .. } => self.process.broken(why),
            answer => self.process.broken(&format!("it answered {answer:?} to `{request}`")),
        }
    }
}
