//! Upstream's recorded traces as an engine.
//!
//! If a release behaves like the next one, it has no trace; the trace of the next release that has
//! one applies.
//!
//! A trace belongs to the scenario at the time of recording. If the scenario has changed since, the
//! trace is stale, and the engine reports an error.

use std::path::PathBuf;

use include_dir::{Dir, include_dir};

use super::{Engine, EngineError, Session, Step};
use crate::model::rules::Release;
use crate::scenario::Scenario;
use crate::trace::{Stepped, Trace, text};
use crate::world::Change;

/// The engine's name.
pub const NAME: &str = "recorded";

/// Where the recorded traces lie in the repository.
pub const FOLDER: &str = "suites/recorded";

static EMBEDDED: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/suites/recorded");

/// Where recorded traces are read from.
#[derive(Clone, Debug)]
pub enum Traces {
    /// Those inside this binary.
    Embedded,
    /// Those in a folder, laid out as in the repository.
    Folder(PathBuf),
}

impl Traces {
    /// The recorded trace of a scenario that holds for a release, and the release that it was
    /// recorded on: that one, or the next one after it that has a trace. Nothing if there is none.
    ///
    /// # Errors
    /// If it is there and can't be read.
    pub fn find(&self, id: &str, release: Release) -> Result<Option<(Release, String)>, String> {
        for release in Release::supported().filter(|other| *other >= release) {
            if let Some(text) = self.read(id, release)? {
                return Ok(Some((release, text)));
            }
        }
        Ok(None)
    }

    /// The trace of a scenario that was recorded on that very release and is kept, as text.
    ///
    /// # Errors
    /// If it is there and can't be read.
    pub fn read(&self, id: &str, release: Release) -> Result<Option<String>, String> {
        let path = snapshot_path(id, release);
        match self {
            Traces::Embedded => {
                let file = EMBEDDED.get_file(&path);
                Ok(file.and_then(|file| file.contents_utf8()).map(str::to_owned))
            }
            Traces::Folder(folder) => {
                let path = folder.join(path);
                match std::fs::read_to_string(&path) {
                    Ok(text) => Ok(Some(text)),
                    Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
                    Err(error) => Err(format!("{}: {error}", path.display())),
                }
            }
        }
    }
}

/// Where a trace lies below the folder of recorded traces: `v1.37/tolerance/upper-edge.snap`.
#[must_use]
pub fn snapshot_path(id: &str, release: Release) -> String {
    format!("v{release}/{id}.snap")
}

/// The recorded traces of one release.
#[derive(Clone, Debug)]
pub struct Recorded {
    release: Release,
    traces: Traces,
}

impl Recorded {
    /// The traces of that release.
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

    fn open<'a>(&'a mut self, scenario: &Scenario) -> Result<Box<dyn Session + 'a>, EngineError> {
        let id = &scenario.id;
        let found = self.traces.find(id, self.release).map_err(broken)?;
        let Some((_, text)) = found else {
            return Err(EngineError::Unavailable {
                engine: NAME.into(),
                why: format!("{id} has no recorded trace on {}", self.release),
                hint: "run it with `--engine upstream`, which requires Go, or with `kube-lockstep \
                       predict`, which requires nothing"
                    .to_owned(),
            });
        };
        let trace = parse_snapshot(&text).map_err(broken)?;
        if trace.hash != scenario.hash {
            return Err(EngineError::Unavailable {
                engine: NAME.into(),
                why: format!(
                    "the recorded trace of {id} is stale: it was recorded for scenario hash {}, \
                     and the hash is now {}",
                    trace.hash, scenario.hash
                ),
                hint: "record it again with `ci/record` (requires Go)".to_owned(),
            });
        }
        Ok(Box::new(RecordedSession { trace, api: 0, tick: 0, answers: Vec::new() }))
    }
}

fn broken(why: String) -> EngineError {
    EngineError::Broken { engine: NAME.into(), why, output: String::new() }
}

/// Reads the trace out of an insta snapshot: what stands below its front matter.
///
/// # Errors
/// If it is no snapshot, or its content no trace.
pub fn parse_snapshot(text: &str) -> Result<Trace, String> {
    let body = text
        .strip_prefix("---\n")
        .and_then(|rest| rest.split_once("\n---\n"))
        .map(|(_, body)| body)
        .ok_or("a recorded trace without front matter")?;
    text::read(body.trim_start_matches('\n')).map_err(|error| error.to_string())
}

struct RecordedSession {
    trace: Trace,
    api: usize,
    tick: usize,
    answers: Vec<Stepped>,
}

impl Session for RecordedSession {
    /// Plays the ticks back up to the step's end, but not beyond the next answer of the API server:
    /// the ticks behind it belong to the step that asks for it.
    fn send(&mut self, step: &Step) -> Result<(), EngineError> {
        let mut stepped = Stepped { now: step.until, ..Stepped::default() };
        for change in &step.apply {
            if matches!(
                change,
                Change::CreateHpa(_) | Change::PatchHpa { .. } | Change::DeleteHpa { .. }
            ) && let Some((_, answer)) = self.trace.api.get(self.api)
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

    fn close(self: Box<Self>) -> Result<(), EngineError> {
        Ok(())
    }
}
