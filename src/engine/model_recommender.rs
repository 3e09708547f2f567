//! The model of the VPA's recommender as an engine.

use std::collections::VecDeque;

use super::{EngineError, RecommenderEngine};
use crate::model::rules::{VpaRelease, VpaRules};
use crate::model::vpa::{LogLine, Script, ScriptStep, Session, Stepped};
use crate::scenario::vpa::VpaScenario;

/// The model as an engine, which checks only the expectations.
#[derive(Debug)]
pub struct ModelRecommender {
    name: &'static str,
    rules: VpaRules,
    session: Option<Session>,
    answers: VecDeque<Stepped>,
}

impl ModelRecommender {
    /// The model of a release, with the engine's name.
    #[must_use]
    pub fn new(name: &'static str, release: VpaRelease) -> ModelRecommender {
        ModelRecommender {
            name,
            rules: VpaRules::of(release),
            session: None,
            answers: VecDeque::new(),
        }
    }
}

impl RecommenderEngine for ModelRecommender {
    fn open(&mut self, _: &VpaScenario, script: &Script) -> Result<Vec<LogLine>, EngineError> {
        let (session, log) = Session::open(&script.start, self.rules);
        self.session = Some(session);
        self.answers.clear();
        Ok(log)
    }

    fn send(&mut self, step: &ScriptStep) -> Result<(), EngineError> {
        if let Some(session) = &mut self.session {
            self.answers.push_back(session.step(&step.changes, step.until));
        }
        Ok(())
    }

    fn receive(&mut self) -> Result<Stepped, EngineError> {
        self.answers.pop_front().ok_or_else(|| EngineError::Broken {
            engine: self.name.into(),
            why: "no step was sent".to_owned(),
            output: String::new(),
        })
    }

    fn close(&mut self) -> Result<(), EngineError> {
        self.session = None;
        Ok(())
    }
}
