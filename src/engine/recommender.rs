//! The engines that run scenarios of the VPA's recommender: the real recommender in virtual time,
//! its recorded runs, and the model.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::EngineError;
use super::recorded::Traces;
use super::upstream::build::Progress;
use super::upstream::recommender::{RecommenderHost, ensure};
use crate::model::rules::{Release, VpaRelease, VpaRules};
use crate::model::time::Time;
use crate::model::vpa::{ClusterChange, LogLine, Script, ScriptStep, Session, Stepped};
use crate::scenario::vpa::VpaScenario;
use crate::trace::recommender::Entry;

/// A recommender on which scenarios can be run.
pub trait RecommenderEngine {
    /// The reason why the engine can't run a scenario that its release supports, if any.
    fn unsupported_reason(&self, _scenario: &VpaScenario) -> Option<String> {
        None
    }

    /// Starts a recommender. Returns the errors that it logs.
    ///
    /// # Errors
    /// If the engine can't run.
    fn open(
        &mut self,
        scenario: &VpaScenario,
        script: &Script,
    ) -> Result<Vec<LogLine>, EngineError>;

    /// Sends a step. Several steps may be sent before their answers are received.
    ///
    /// # Errors
    /// If the engine is broken.
    fn send(&mut self, step: &ScriptStep) -> Result<(), EngineError>;

    /// Waits for the answer to the oldest step without an answer.
    ///
    /// # Errors
    /// If the engine is broken.
    fn receive(&mut self) -> Result<Stepped, EngineError>;

    /// Ends the scenario.
    ///
    /// # Errors
    /// If the engine is broken, or a recorded trace goes on.
    fn close(&mut self) -> Result<(), EngineError>;
}

/// A recommender of one release that is ready. Each worker of a run makes its own instance.
#[derive(Clone, Debug)]
pub enum RecommenderSource {
    /// The real recommender: the program that hosts it.
    Upstream(PathBuf, VpaRelease),
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

    /// The engine's name in reports.
    #[must_use]
    pub fn name(&self) -> Arc<str> {
        match self {
            RecommenderSource::Upstream(..) => super::upstream::NAME.into(),
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
            RecommenderSource::Recorded(traces, release) => {
                Box::new(Recorded::new(traces.clone(), *release))
            }
            RecommenderSource::Model(release) => Box::new(Model::new(*release)),
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

/// The model as an engine, which checks only the expectations.
struct Model {
    rules: VpaRules,
    session: Option<Session>,
    answers: VecDeque<Stepped>,
}

impl Model {
    fn new(release: VpaRelease) -> Model {
        Model { rules: VpaRules::of(release), session: None, answers: VecDeque::new() }
    }
}

impl RecommenderEngine for Model {
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
        self.answers.pop_front().ok_or_else(|| broken("no step was sent".to_owned()))
    }

    fn close(&mut self) -> Result<(), EngineError> {
        self.session = None;
        Ok(())
    }
}

fn broken(why: String) -> EngineError {
    EngineError::Broken { engine: super::recorded::NAME.into(), why, output: String::new() }
}

/// The recorded runs of the real recommender.
struct Recorded {
    traces: Traces,
    release: VpaRelease,
    entries: VecDeque<Entry>,
    answers: VecDeque<Stepped>,
    end: Time,
    played_until: Time,
}

impl Recorded {
    fn new(traces: Traces, release: VpaRelease) -> Recorded {
        Recorded {
            traces,
            release,
            entries: VecDeque::new(),
            answers: VecDeque::new(),
            end: Time::ZERO,
            played_until: Time::ZERO,
        }
    }

    fn key(&self) -> Release {
        Release { minor: self.release.minor }
    }

    /// The errors of the next start of the recommender.
    fn start(&mut self) -> Result<Vec<LogLine>, EngineError> {
        match self.entries.pop_front() {
            Some(Entry::Start(log)) => Ok(log),
            _ => Err(broken("the recorded trace has no start of the recommender here".to_owned())),
        }
    }
}

impl RecommenderEngine for Recorded {
    fn unsupported_reason(&self, scenario: &VpaScenario) -> Option<String> {
        // `open` reports traces that can't be read.
        let recordings = self.traces.read(&scenario.id).ok()?;
        let mut headers = recordings.iter().map(|recording| &recording.header);
        let is_recorded = headers.clone().any(|header| header.hash == scenario.hash);
        let is_recorded_here = headers.any(|header| header.build_of(self.key()).is_some());
        (is_recorded && !is_recorded_here).then(|| format!("not recorded on {}", self.release))
    }

    fn open(&mut self, scenario: &VpaScenario, _: &Script) -> Result<Vec<LogLine>, EngineError> {
        let recording = self.traces.of_scenario(
            &scenario.id,
            &scenario.hash,
            self.key(),
            &self.release.to_string(),
        )?;
        let trace = recording.recommender_trace().map_err(broken)?;
        self.entries = trace.entries.into();
        self.answers.clear();
        self.end = scenario.until;
        self.start()
    }

    fn send(&mut self, step: &ScriptStep) -> Result<(), EngineError> {
        let mut stepped = Stepped::default();
        for change in &step.changes {
            if *change == ClusterChange::Restart {
                stepped.log.extend(self.start()?);
            }
        }
        while let Some(Entry::Run(run)) = self.entries.front()
            && run.at <= step.until
        {
            if let Some(Entry::Run(run)) = self.entries.pop_front() {
                stepped.runs.push(run);
            }
        }
        self.played_until = step.until;
        self.answers.push_back(stepped);
        Ok(())
    }

    fn receive(&mut self) -> Result<Stepped, EngineError> {
        self.answers.pop_front().ok_or_else(|| broken("no step was sent".to_owned()))
    }

    fn close(&mut self) -> Result<(), EngineError> {
        let left = self.entries.len();
        if left == 0 || self.played_until < self.end {
            return Ok(());
        }
        Err(broken(format!("after the end of the scenario, the trace has {left} more entries")))
    }
}
