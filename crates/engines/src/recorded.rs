//! Upstream's recorded traces as an engine.
//!
//! The traces of a scenario are in one file. Releases with the same behavior share a trace, whose
//! header names these releases. A release that no header names has no trace of the scenario.
//!
//! A trace belongs to the scenario at the time of recording. If the scenario has changed since, the
//! trace is stale, and the engine reports an error. The same applies to a trace that has changed.

use std::collections::VecDeque;
use std::fmt;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::input_file::{self, InputError};
use kube_autoscaler_models::rules::{MinorVersion, Release, VpaRelease};
use kube_autoscaler_models::time::Time;
use kube_autoscaler_models::vpa::{
    ClusterChange, LogLine, ScriptStep, Stepped as RecommenderStepped,
};
use kube_lockstep_data::TRACES;
use kube_lockstep_scenario::vpa::VpaScenario;
use kube_lockstep_scenario::{Diagnostic, Scenario, SkipReason};
use kube_lockstep_sim::engine::{
    Engine, EngineError, RecommenderOpening, Session, Step, Vpa, VpaEngines,
};
use kube_lockstep_sim::trace::file::{TraceFile, unbroken};
use kube_lockstep_sim::trace::header::Header;
use kube_lockstep_sim::trace::recommender;
use kube_lockstep_sim::trace::recommender::{Entry, RecommenderTrace};
use kube_lockstep_sim::trace::text::{self, TextError};
use kube_lockstep_sim::trace::{Observation, Stepped, Trace};

/// The engine's name.
pub const NAME: &str = "recorded";

/// The folder of the recorded traces in the repository.
pub const FOLDER: &str = "suites/recorded";

/// The path of the file with the traces of a scenario, below this folder.
#[must_use]
pub fn path(id: &str) -> String {
    format!("{id}.trace")
}

/// Why a scenario without a recorded trace on a release is not run there.
pub fn not_recorded_on(release: impl fmt::Display) -> SkipReason {
    SkipReason::naming("not recorded on ", release, "")
}

/// The location of recorded traces.
#[derive(Clone, Debug)]
pub enum Traces {
    /// The traces inside this binary.
    Embedded,
    /// A folder with the layout of [`FOLDER`].
    Folder(PathBuf),
}

/// A recorded trace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Recording {
    /// The first line, which names the builds of upstream.
    pub header: Header,
    /// The complete text.
    pub text: String,
}

impl Recording {
    /// Reads the header of a recorded trace.
    ///
    /// # Errors
    /// If the text has no valid header.
    pub fn new(text: String) -> Result<Recording, String> {
        let header = text::read_header(&text).map_err(|error| error.to_string())?;
        Ok(Recording { header, text })
    }

    fn from_lines(header: &Header, lines: &[&str]) -> Recording {
        // Every header can be written as JSON.
        let first = serde_json::to_string(header).unwrap_or_default();
        let text = format!("{first}\n{}", unbroken(lines));
        Recording { header: header.clone(), text }
    }

    /// The lines below the header.
    #[must_use]
    pub fn body(&self) -> &str {
        text::body(&self.text)
    }

    /// The trace.
    ///
    /// # Errors
    /// If the text is not a recorded trace, or has changed since it was recorded.
    pub fn trace(&self) -> Result<Trace, String> {
        text::read(&self.text).map_err(|error| self.unreadable(&error))
    }

    /// The trace of a recommender.
    ///
    /// # Errors
    /// If the text is not a recorded trace, or has changed since it was recorded.
    pub fn recommender_trace(&self) -> Result<RecommenderTrace, String> {
        recommender::read(&self.text).map_err(|error| self.unreadable(&error))
    }

    /// The error without its line number, which counts the lines of the trace, not of the file.
    fn unreadable(&self, error: &TextError) -> String {
        format!("{}: {}", self.name(), error.what)
    }

    /// The file, below the folder of recorded traces, and the newest version with this trace:
    /// `tolerance/upper-edge.trace: v1.37.2`.
    #[must_use]
    pub fn name(&self) -> String {
        let path = path(&self.header.scenario);
        match self.header.newest() {
            Some(version) => format!("{path}: {version}"),
            None => path,
        }
    }
}

impl Traces {
    /// The recorded trace of a scenario on a release, if there is one.
    ///
    /// # Errors
    /// If the traces of the scenario can't be read.
    pub fn find(
        &self,
        id: &str,
        release: impl Into<MinorVersion>,
    ) -> Result<Option<Recording>, String> {
        let release = release.into();
        let found = self.with_file(id, |file| {
            let mut traces = file.headers().zip(file.traces());
            let found = traces.find(|(header, _)| header.build_of(release).is_some());
            found.map(|(header, lines)| Ok(Recording::from_lines(header, &lines?))).transpose()
        })?;
        Ok(found.flatten())
    }

    /// The recorded trace of a scenario with this hash on a release. `name` is the release for
    /// messages.
    ///
    /// # Errors
    /// If there is none, or it belongs to another version of the scenario.
    pub fn recording(
        &self,
        id: &str,
        hash: &str,
        release: impl Into<MinorVersion>,
        name: &str,
    ) -> Result<Recording, EngineError> {
        let Some(recording) = self.find(id, release).map_err(broken)? else {
            return Err(EngineError::Unavailable {
                engine: NAME.into(),
                problem: Diagnostic::new(format!("{id} has no recorded trace on {name}")).hint(
                    "run it with `--engine upstream`, which requires Go, or with `kube-lockstep \
                       predict`, which requires nothing",
                ),
            });
        };
        if recording.header.hash != hash {
            return Err(EngineError::Unavailable {
                engine: NAME.into(),
                problem: Diagnostic::new(format!(
                    "the recorded trace of {id} is stale: it was recorded for scenario hash {}, \
                     and the hash is now {hash}",
                    recording.header.hash
                ))
                .hint(format!("record it again with `cargo xtask record {id}` (requires Go)")),
            });
        }
        Ok(recording)
    }

    /// The reason why a scenario with this hash can't be replayed, if it is recorded, but not on
    /// this release. `name` is the release for messages.
    fn unsupported_reason(
        &self,
        id: &str,
        hash: &str,
        release: MinorVersion,
        name: impl fmt::Display,
    ) -> Option<SkipReason> {
        // `recording` reports traces that can't be read.
        let headers = self.headers(id).ok()?;
        let mut headers = headers.iter();
        let is_recorded = headers.clone().any(|header| header.hash == hash);
        let is_recorded_here = headers.any(|header| header.build_of(release).is_some());
        (is_recorded && !is_recorded_here).then(|| not_recorded_on(name))
    }

    /// The headers of all recorded traces of a scenario, newest release first.
    fn headers(&self, id: &str) -> Result<Vec<Header>, String> {
        let headers = self.with_file(id, |file| Ok(file.headers().cloned().collect()))?;
        Ok(headers.unwrap_or_default())
    }

    /// All recorded traces of a scenario, oldest release first. The hashes of the traces are not
    /// checked.
    ///
    /// # Errors
    /// If the file of the scenario can't be read.
    pub fn read(&self, id: &str) -> Result<Vec<Recording>, String> {
        let recordings = self.with_file(id, |file| {
            let traces = file.headers().zip(file.traces());
            traces.map(|(header, lines)| Ok(Recording::from_lines(header, &lines?))).collect()
        })?;
        let mut recordings: Vec<Recording> = recordings.unwrap_or_default();
        recordings.reverse();
        Ok(recordings)
    }

    /// Reads the file of a scenario, if there is one.
    fn with_file<T>(
        &self,
        id: &str,
        read: impl FnOnce(&TraceFile<'_>) -> Result<T, TextError>,
    ) -> Result<Option<T>, String> {
        let path = path(id);
        let text = match self {
            Traces::Embedded => TRACES.text(&path),
            Traces::Folder(folder) => text_of(&folder.join(&path))?,
        };
        let Some(text) = text else { return Ok(None) };
        let found = TraceFile::new(&text).and_then(|file| read(&file));
        found.map(Some).map_err(|error| format!("{path}: {error}"))
    }
}

/// The text of a file, if there is one.
fn text_of(path: &Path) -> Result<Option<String>, String> {
    match input_file::read_long(path) {
        Ok(text) => Ok(Some(text)),
        Err(InputError::Io(error))
            if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
        {
            Ok(None)
        }
        Err(error) => Err(format!("{}: {error}", path.display())),
    }
}

/// The recorded traces of one release.
#[derive(Clone, Debug)]
pub struct Recorded {
    release: Release,
    traces: Traces,
}

impl Recorded {
    /// Creates the engine of a release.
    #[must_use]
    pub fn new(release: Release, traces: Traces) -> Recorded {
        Recorded { release, traces }
    }
}

impl Engine for Recorded {
    fn name(&self) -> &str {
        NAME
    }

    fn release(&self) -> Release {
        self.release
    }

    fn unsupported_reason(&mut self, scenario: &Scenario) -> Option<SkipReason> {
        let release = self.release.into();
        self.traces.unsupported_reason(&scenario.id, &scenario.hash, release, self.release)
    }

    fn vpa(&mut self, release: VpaRelease) -> Result<VpaEngines, EngineError> {
        let traces = RecordedRecommender::new(self.traces.clone(), release);
        let recommender = Box::new(traces.with_hpa(self.release));
        Ok(VpaEngines { recommender, updater: None })
    }

    fn open<'a>(&'a mut self, scenario: &Scenario) -> Result<Box<dyn Session + 'a>, EngineError> {
        let release = self.release.to_string();
        let Scenario { id, hash, .. } = scenario;
        let recording = self.traces.recording(id, hash, self.release, &release)?;
        let trace = recording.trace().map_err(broken)?;
        Ok(Box::new(RecordedSession {
            trace,
            api: 0,
            tick: 0,
            answers: Vec::new(),
            end: scenario.until,
            played_until: Time(i64::MIN),
        }))
    }
}

fn broken(why: String) -> EngineError {
    EngineError::Broken { engine: NAME.into(), why, output: String::new() }
}

struct RecordedSession {
    trace: Trace,
    api: usize,
    tick: usize,
    answers: Vec<Stepped>,
    /// The end of the scenario, and of the steps so far.
    end: Time,
    played_until: Time,
}

impl Session for RecordedSession {
    /// Replays the ticks up to the step's end, but not beyond the next answer of the API server:
    /// the later ticks belong to the step that requests this answer.
    fn send(&mut self, step: &Step) -> Result<(), EngineError> {
        self.played_until = step.until;
        let mut stepped = Stepped { now: step.until, ..Stepped::default() };
        for change in step.changes() {
            if change.is_hpa_request()
                && let Some((_, answer)) = self.trace.api.get(self.api)
            {
                stepped.api.push(answer.clone());
                self.api += 1;
            }
        }
        let barrier = self.trace.api.get(self.api).map_or(usize::MAX, |(after, _)| *after);
        while let Some(tick) = self.trace.ticks.get(self.tick) {
            if tick.end() > step.until || self.tick >= barrier {
                break;
            }
            stepped.ticks.push(tick.clone());
            self.tick += 1;
        }
        self.answers.push(stepped);
        Ok(())
    }

    fn receive(&mut self) -> Result<Stepped, EngineError> {
        if self.answers.is_empty() {
            return Err(broken("no step was sent".to_owned()));
        }
        Ok(self.answers.remove(0))
    }

    /// Every line of the trace belongs to the scenario, so nothing may be left.
    fn close(self: Box<Self>) -> Result<Vec<Observation>, EngineError> {
        let ticks = self.trace.ticks.len() - self.tick;
        let answers = self.trace.api.len() - self.api;
        match (ticks, answers) {
            // The run ended early.
            _ if self.played_until < self.end => Ok(Vec::new()),
            (0, 0) => Ok(self.trace.unfinished),
            _ => Err(broken(format!(
                "{}: after the end of the scenario, the recorded trace has {ticks} more \
                 reconciles and {answers} more answers of the API server",
                self.trace.scenario
            ))),
        }
    }
}

/// The recorded runs of the real recommender of one release.
#[derive(Clone, Debug)]
pub struct RecordedRecommender {
    traces: Traces,
    release: VpaRelease,
    /// The release of the HPA controller that it runs with, if any.
    hpa: Option<Release>,
}

impl RecordedRecommender {
    /// Creates the engine of a release.
    #[must_use]
    pub fn new(traces: Traces, release: VpaRelease) -> RecordedRecommender {
        RecordedRecommender { traces, release, hpa: None }
    }

    /// Reads the traces of a recommender with an HPA controller of a release.
    fn with_hpa(self, hpa: Release) -> RecordedRecommender {
        RecordedRecommender { hpa: Some(hpa), ..self }
    }

    /// The release in the headers of traces. What a recommender does with an HPA controller
    /// depends on the release of the latter.
    fn key(&self) -> MinorVersion {
        self.hpa.map_or_else(|| self.release.into(), MinorVersion::from)
    }
}

impl Engine<Vpa> for RecordedRecommender {
    fn name(&self) -> &str {
        NAME
    }

    fn release(&self) -> VpaRelease {
        self.release
    }

    fn unsupported_reason(&mut self, scenario: &VpaScenario) -> Option<SkipReason> {
        self.traces.unsupported_reason(&scenario.id, &scenario.hash, self.key(), self.release)
    }

    fn open<'a>(
        &'a mut self,
        opening: RecommenderOpening<'_>,
    ) -> Result<Box<dyn Session<Vpa> + 'a>, EngineError> {
        let VpaScenario { id, hash, until, .. } = opening.scenario;
        let name = self.hpa.map_or_else(|| self.release.to_string(), |hpa| hpa.to_string());
        let recording = self.traces.recording(id, hash, self.key(), &name)?;
        let trace = recording.recommender_trace().map_err(broken)?;
        let mut entries = VecDeque::from(trace.entries);
        let log = start(&mut entries)?;
        Ok(Box::new(RecordedRecommenderSession {
            entries,
            log,
            answers: VecDeque::new(),
            end: *until,
            played_until: Time::ZERO,
        }))
    }
}

/// Takes the errors of the next start of the recommender.
fn start(entries: &mut VecDeque<Entry>) -> Result<Vec<LogLine>, EngineError> {
    match entries.pop_front() {
        Some(Entry::Start(log)) => Ok(log),
        _ => Err(broken("the recorded trace has no start of the recommender here".to_owned())),
    }
}

struct RecordedRecommenderSession {
    /// The entries that have not been replayed yet.
    entries: VecDeque<Entry>,
    log: Vec<LogLine>,
    answers: VecDeque<RecommenderStepped>,
    /// The end of the scenario, and of the steps so far.
    end: Time,
    played_until: Time,
}

impl Session<Vpa> for RecordedRecommenderSession {
    fn start_log(&self) -> Vec<LogLine> {
        self.log.clone()
    }

    fn send(&mut self, step: &ScriptStep) -> Result<(), EngineError> {
        let mut stepped = RecommenderStepped::default();
        for change in &step.changes {
            if *change == ClusterChange::Restart {
                stepped.log.extend(start(&mut self.entries)?);
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

    fn receive(&mut self) -> Result<RecommenderStepped, EngineError> {
        self.answers.pop_front().ok_or_else(|| broken("no step was sent".to_owned()))
    }

    fn close(self: Box<Self>) -> Result<(), EngineError> {
        let left = self.entries.len();
        if left == 0 || self.played_until < self.end {
            return Ok(());
        }
        Err(broken(format!("after the end of the scenario, the trace has {left} more entries")))
    }
}
