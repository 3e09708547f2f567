//! The engines that run scenarios of the VPA's recommender: the real recommender in virtual time,
//! its recorded runs, and the model.

use std::path::PathBuf;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::model_recommender::ModelRecommender;
use super::recorded::{RecordedRecommender, Traces};
use super::upstream::build::Progress;
use super::upstream::checkout::Checkout;
use super::upstream::recommender::{RecommenderHost, ensure};
use super::{EngineError, RecommenderEngine};
use crate::model::rules::VpaRelease;
use crate::model::vpa::{LogLine, Script, ScriptStep, Stepped};
use crate::scenario::vpa::VpaScenario;

/// A recommender of one release that is ready. Each worker of a run makes its own instance.
#[derive(Clone, Debug)]
pub enum RecommenderSource {
    /// The real recommender: the program that hosts it.
    Upstream(PathBuf, VpaRelease),
    /// The recommender of a checkout: the program that hosts it, the name of the engine, and the
    /// release whose rules the model follows.
    Checkout(PathBuf, Arc<str>, VpaRelease),
    /// Its recorded runs.
    Recorded(Traces, VpaRelease),
    /// The model.
    Model(VpaRelease),
    /// It could not be prepared: no scenario has a verdict.
    Broken(EngineError),
}

impl RecommenderSource {
    /// Builds the host of the real recommender if necessary.
    ///
    /// # Errors
    /// If there is no Go, or the build fails.
    pub fn upstream(
        release: VpaRelease,
        stop: &CancellationToken,
        progress: Progress<'_>,
    ) -> Result<RecommenderSource, EngineError> {
        ensure(release, stop, progress).map(|program| RecommenderSource::Upstream(program, release))
    }

    /// Builds the host of a checkout, which is compared with the rules of a release.
    ///
    /// # Errors
    /// If there is no Go, or the build fails.
    pub fn checkout(
        checkout: &Checkout,
        rules: VpaRelease,
        stop: &CancellationToken,
        progress: Progress<'_>,
    ) -> Result<RecommenderSource, EngineError> {
        let program = checkout.clone().with_release(rules).build(stop, progress)?;
        Ok(RecommenderSource::Checkout(program, checkout.name().into(), rules))
    }

    /// The engine's name in reports.
    #[must_use]
    pub fn name(&self) -> Arc<str> {
        match self {
            RecommenderSource::Upstream(..) => super::upstream::NAME.into(),
            RecommenderSource::Checkout(_, name, _) => name.clone(),
            RecommenderSource::Recorded(..) => super::recorded::NAME.into(),
            RecommenderSource::Model(_) => super::model::NAME.into(),
            RecommenderSource::Broken(error) => error.engine().clone(),
        }
    }

    /// Makes an instance.
    #[must_use]
    pub fn make(&self) -> Box<dyn RecommenderEngine> {
        match self {
            RecommenderSource::Upstream(program, release) => {
                let host = RecommenderHost::start(program, *release);
                Box::new(Upstream(host.map(Some)))
            }
            RecommenderSource::Checkout(program, name, rules) => {
                let host = RecommenderHost::of_checkout(program, name.clone(), *rules);
                Box::new(Upstream(host.map(Some)))
            }
            RecommenderSource::Recorded(traces, release) => {
                Box::new(RecordedRecommender::new(traces.clone(), *release))
            }
            RecommenderSource::Model(release) => {
                Box::new(ModelRecommender::new(super::model::NAME, *release))
            }
            RecommenderSource::Broken(error) => Box::new(Upstream(Err(error.clone()))),
        }
    }
}

/// The real recommender, or why it can't be started.
struct Upstream(Result<Option<RecommenderHost>, EngineError>);

impl Upstream {
    fn host(&mut self) -> Result<&mut RecommenderHost, EngineError> {
        match &mut self.0 {
            Ok(Some(host)) => Ok(host),
            Ok(None) => Err(broken("the recommender has failed before".to_owned())),
            Err(error) => Err(error.clone()),
        }
    }
}

impl RecommenderEngine for Upstream {
    fn open(&mut self, _: &VpaScenario, script: &Script) -> Result<Vec<LogLine>, EngineError> {
        self.host()?.open(&script.name, &script.start, &script.flags)
    }

    fn send(&mut self, step: &ScriptStep) -> Result<(), EngineError> {
        self.host()?.send(&step.changes, step.until)
    }

    fn receive(&mut self) -> Result<Stepped, EngineError> {
        self.host()?.receive()
    }

    fn close(&mut self) -> Result<(), EngineError> {
        self.host()?.close()
    }
}

fn broken(why: String) -> EngineError {
    EngineError::Broken { engine: super::upstream::NAME.into(), why, output: String::new() }
}
