//! The model of the VPA's recommender as an engine.

use std::collections::VecDeque;

use super::{Engine, EngineError, RecommenderOpening, Session, Vpa};
use kube_autoscaler_models::rules::{VpaRelease, VpaRules};
use kube_autoscaler_models::vpa;
use kube_autoscaler_models::vpa::{LogLine, ScriptStep, Stepped};

/// The model of one release as an engine, which checks only the expectations.
#[derive(Clone, Debug)]
pub struct ModelRecommender {
    name: &'static str,
    release: VpaRelease,
}

impl ModelRecommender {
    /// The model of a release, with the engine's name.
    #[must_use]
    pub fn new(name: &'static str, release: VpaRelease) -> ModelRecommender {
        ModelRecommender { name, release }
    }
}

impl Engine<Vpa> for ModelRecommender {
    fn name(&self) -> &str {
        self.name
    }

    fn release(&self) -> VpaRelease {
        self.release
    }

    fn open<'a>(
        &'a mut self,
        opening: RecommenderOpening<'_>,
    ) -> Result<Box<dyn Session<Vpa> + 'a>, EngineError> {
        let rules = VpaRules::of(self.release);
        let (model, log) = vpa::Session::open(opening.start, rules);
        Ok(Box::new(ModelSession { name: self.name, model, log, answers: VecDeque::new() }))
    }
}

struct ModelSession {
    name: &'static str,
    model: vpa::Session,
    log: Vec<LogLine>,
    answers: VecDeque<Stepped>,
}

impl Session<Vpa> for ModelSession {
    fn start_log(&self) -> Vec<LogLine> {
        self.log.clone()
    }

    fn send(&mut self, step: &ScriptStep) -> Result<(), EngineError> {
        self.answers.push_back(self.model.step(&step.changes, step.until));
        Ok(())
    }

    fn receive(&mut self) -> Result<Stepped, EngineError> {
        self.answers.pop_front().ok_or_else(|| EngineError::Broken {
            engine: self.name.into(),
            why: "no step was sent".to_owned(),
            output: String::new(),
        })
    }

    fn close(self: Box<Self>) -> Result<(), EngineError> {
        Ok(())
    }
}
