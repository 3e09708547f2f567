//! The real recommender as an engine, which starts its host again after a failure.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::{RecommenderHost, version_prefix};
use crate::upstream::artifact::{Artifact, NAME};
use crate::upstream::process::TIME_LIMIT;
use kube_autoscaler_models::rules::VpaRelease;
use kube_autoscaler_models::vpa::{LogLine, ScriptStep, Stepped};
use kube_lockstep_sim::engine::{Engine, EngineError, RecommenderOpening, Session, Vpa};

/// The real recommender of one release.
#[derive(Debug)]
pub struct UpstreamRecommender {
    name: Arc<str>,
    /// The name of the program in messages.
    program_name: Arc<str>,
    program: PathBuf,
    release: VpaRelease,
    /// The beginning of the version that the program must report.
    version_prefix: String,
    limit: Duration,
    /// A running host without an open scenario.
    idle: Option<RecommenderHost>,
}

impl UpstreamRecommender {
    /// Creates the engine for a program of [`ensure`](super::ensure).
    #[must_use]
    pub fn new(program: PathBuf, release: VpaRelease) -> UpstreamRecommender {
        UpstreamRecommender {
            name: NAME.into(),
            program_name: Artifact::Recommender.name().into(),
            program,
            release,
            version_prefix: version_prefix(release),
            limit: TIME_LIMIT,
            idle: None,
        }
    }

    /// Creates the engine of a local checkout, which is compared with the rules of a release.
    #[must_use]
    pub(crate) fn from_checkout(
        program: PathBuf,
        name: Arc<str>,
        rules: VpaRelease,
    ) -> UpstreamRecommender {
        UpstreamRecommender {
            program_name: name.clone(),
            name,
            version_prefix: String::new(),
            ..UpstreamRecommender::new(program, rules)
        }
    }

    /// Sets the timeout for each answer.
    #[must_use]
    pub fn with_time_limit(mut self, limit: Duration) -> UpstreamRecommender {
        self.limit = limit;
        self
    }

    /// Starts the host.
    fn start(&self) -> Result<RecommenderHost, EngineError> {
        let UpstreamRecommender { program, program_name, release, version_prefix, limit, .. } =
            self;
        RecommenderHost::start_as(program, program_name, *release, version_prefix, *limit)
    }
}

impl Engine<Vpa> for UpstreamRecommender {
    fn name(&self) -> &str {
        &self.name
    }

    fn release(&self) -> VpaRelease {
        self.release
    }

    fn open<'a>(
        &'a mut self,
        opening: RecommenderOpening<'_>,
    ) -> Result<Box<dyn Session<Vpa> + 'a>, EngineError> {
        let RecommenderOpening { scenario, start } = opening;
        let mut host = self.idle.take().map_or_else(|| self.start(), Ok)?;
        let log = host.open(&scenario.id, start, &scenario.flags)?;
        Ok(Box::new(UpstreamSession { host, log, idle: &mut self.idle }))
    }
}

/// A host with an open scenario. After a failure, or without `close`, answers are left in the pipe,
/// so the host is not used again.
struct UpstreamSession<'a> {
    host: RecommenderHost,
    log: Vec<LogLine>,
    /// Gets the host when the scenario is closed.
    idle: &'a mut Option<RecommenderHost>,
}

impl Session<Vpa> for UpstreamSession<'_> {
    fn start_log(&self) -> Vec<LogLine> {
        self.log.clone()
    }

    fn send(&mut self, step: &ScriptStep) -> Result<(), EngineError> {
        self.host.send(&step.changes, step.until)
    }

    fn receive(&mut self) -> Result<Stepped, EngineError> {
        self.host.receive()
    }

    fn takes_steps_ahead(&self) -> bool {
        true
    }

    fn close(self: Box<Self>) -> Result<(), EngineError> {
        let UpstreamSession { mut host, idle, .. } = *self;
        host.close()?;
        *idle = Some(host);
        Ok(())
    }
}
