//! Running scenarios on engines: lockstep, verdicts and the events that reports are made of.
//!
//! This is the only caller of the comparison. It prints nothing.

pub mod change;
#[cfg(feature = "engines")]
mod executor;
mod findings;
#[cfg(feature = "engines")]
pub mod fuzzing;
#[cfg(feature = "engines")]
mod in_order;
mod lockstep;
pub mod merge;
#[cfg(feature = "engines")]
mod plan;
#[cfg(feature = "engines")]
mod record;
#[cfg(feature = "engines")]
mod runner;
mod shard;
#[cfg(feature = "engines")]
mod virtual_time;
#[cfg(feature = "clusters")]
mod wall_clock;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use lockstep::{FreeRun, FreeTick, free_run, free_run_by, run_one, run_watched};
#[cfg(feature = "engines")]
pub use plan::{ClusterOptions, Compared, CustomController, Pace, Plan, SIDE_BY_SIDE};
#[cfg(feature = "engines")]
pub use runner::run_all;
pub use shard::Shard;
#[cfg(feature = "engines")]
pub use virtual_time::program_engine;

#[cfg(feature = "engines")]
pub use crate::engine::options::shell_word;
#[cfg(feature = "engines")]
pub use crate::engine::registry::EngineChoice;

use crate::compare::{Divergence, KnownDisagreement};
use crate::expect::Unmet;
use crate::model::rules::Release;
use crate::trace::Trace;

/// The verdict on one scenario on one engine.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum Verdict {
    /// Every tick was as the model said, and every expectation was met.
    Conforms,
    /// A tick was not as the model said.
    Diverges(Divergence),
    /// Model and engine agree, but not with what the author expects.
    Unexpected,
    /// The engine broke, or the scenario did not fit it: no verdict.
    Inconclusive {
        /// The cause.
        why: String,
        /// The tail of what the engine wrote, if it did.
        output: String,
    },
    /// It was not run.
    Skipped {
        /// Why not.
        why: String,
    },
}

/// A disagreement that `divergences.yaml` knows of.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct KnownHit {
    /// The field that it speaks of, or its beginning.
    pub field: String,
    /// Why it is so.
    pub reason: String,
    /// A link that explains it.
    pub link: String,
}

/// Something about a scenario that its author should know, whatever came of it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Note {
    /// The line in its file.
    pub line: usize,
    /// In words.
    pub what: String,
    /// It is of how the file was understood, which a run of many scenarios has no room for.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_about_reading: bool,
}

/// All that is known of one scenario on one engine after its run.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Outcome {
    /// The scenario's id.
    pub id: String,
    /// The file, for messages.
    pub path: String,
    /// The line in it that says most about the HPA.
    pub line: usize,
    /// One sentence: what had to hold.
    pub requirement: String,
    /// The engine's name.
    pub engine: Arc<str>,
    /// The release, for instance `1.37`.
    pub release: String,
    /// The verdict.
    pub verdict: Verdict,
    /// Whether there is no verdict because of the scenario: in it, things happen at once whose
    /// order is chance. What was compared until then agreed.
    pub unplayable: bool,
    /// The known disagreements that were met; the verdict does not count them.
    pub known: Vec<KnownHit>,
    /// Ticks that were compared (up to and with the first divergence).
    pub ticks: usize,
    /// Ticks after a first divergence: shown, not counted.
    pub poisoned: usize,
    /// The observed value.
    pub trace: Trace,
    /// For each tick of the trace, why the model said what it said, in one line.
    pub why: Vec<String>,
    /// Expectations that were not met by what was observed.
    pub unmet: Vec<Unmet>,
    /// Parts of the scenario that are probably mistakes.
    pub notes: Vec<Note>,
    /// Ticks for which the model allows more than one outcome, because of the time at which the
    /// reconcile read the clock or because it overlapped a change of the cluster. Always 0 in
    /// virtual time.
    pub ambiguous_ticks: usize,
    /// The number of earlier attempts that ended without a verdict. Always 0 in virtual time.
    pub retries: usize,
    /// How long it took.
    pub elapsed: Duration,
}

impl Outcome {
    /// The outcome of a scenario that is only known by its id: without a trace.
    #[must_use]
    pub fn new(id: impl Into<String>, verdict: Verdict) -> Outcome {
        Outcome {
            id: id.into(),
            path: String::new(),
            line: 0,
            requirement: String::new(),
            engine: "".into(),
            release: String::new(),
            verdict,
            unplayable: false,
            known: Vec::new(),
            ticks: 0,
            poisoned: 0,
            trace: Trace::default(),
            why: Vec::new(),
            unmet: Vec::new(),
            notes: Vec::new(),
            ambiguous_ticks: 0,
            retries: 0,
            elapsed: Duration::ZERO,
        }
    }

    /// Adds something that has to be said of it.
    #[cfg(feature = "clusters")]
    fn note(&mut self, what: String) {
        self.notes.push(Note { line: self.line, what, is_about_reading: false });
    }

    /// Known disagreements that speak of this scenario, which ran to its end without them.
    #[must_use]
    pub fn no_longer<'k>(&self, known: &'k [KnownDisagreement]) -> Vec<&'k KnownDisagreement> {
        if !matches!(self.verdict, Verdict::Conforms | Verdict::Unexpected) {
            return Vec::new();
        }
        let met = |known: &KnownDisagreement| {
            self.known.iter().any(|hit| {
                (&hit.field, &hit.reason, &hit.link) == (&known.field, &known.reason, &known.link)
            })
        };
        let covers = |known: &&KnownDisagreement| known.covers(&self.id, &self.release);
        known.iter().filter(covers).filter(|known| !met(known)).collect()
    }
}

/// The options that are needed to repeat a run.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Setting {
    /// The engine's name.
    pub engine: Arc<str>,
    /// The release.
    pub release: String,
    /// The program that takes the place of the upstream engine.
    pub program: Option<PathBuf>,
    /// The local checkout that takes the place of a release's code.
    pub checkout: Option<PathBuf>,
    /// The time limit of an answer, where it is not the usual one.
    pub time_limit: Option<Duration>,
    /// The arguments that repeat the run, where the engine's name alone does not.
    pub replay_args: Vec<String>,
    /// The part of it that is run.
    pub shard: Option<Shard>,
    /// A mark that all parts of a run have in common, and other runs do not.
    pub plan: String,
}

/// The progress of a run. Reports read events and nothing else.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event {
    /// The run begins.
    Started {
        /// How many scenarios there are.
        scenarios: usize,
        /// The options to repeat it.
        setting: Setting,
        /// Something that a reader should know: for instance why another engine was not taken.
        note: Option<String>,
    },
    /// The engine is being made ready, which takes long the first time.
    Preparing {
        /// The current activity, in one line.
        what: String,
        /// How much of it is done, from 0 to 1, if that is known.
        fraction: Option<f64>,
    },
    /// A scenario is done.
    Finished(Box<Outcome>),
    /// The run is over.
    Ended(Summary),
}

/// The figures of a run.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Summary {
    /// All scenarios, also skipped ones.
    pub scenarios: usize,
    /// As the model said and as expected.
    pub conforms: usize,
    /// Not as the model said.
    pub diverges: usize,
    /// As the model said, but with an unmet expectation.
    pub unmet: usize,
    /// Without a verdict.
    pub inconclusive: usize,
    /// Not run.
    pub skipped: usize,
    /// Ticks that were compared.
    pub ticks: usize,
    /// Ticks for which the model allows more than one outcome.
    pub ambiguous_ticks: usize,
    /// Scenarios that were retried because an attempt ended without a verdict.
    pub retried: usize,
    /// Entries of `divergences.yaml` that no longer hold; each fails the run.
    pub stale_known: Vec<String>,
    /// Parts of the run that are not there, after a merge: there is no verdict on the whole.
    pub missing: Vec<String>,
    /// Wall-clock time of the run.
    pub elapsed: Duration,
    /// The figures of each release, if there are several.
    pub releases: Vec<(Release, Summary)>,
}

impl Summary {
    /// Adds the figures of another run, but for its time.
    pub fn join(&mut self, other: &Summary) {
        self.scenarios += other.scenarios;
        self.conforms += other.conforms;
        self.diverges += other.diverges;
        self.unmet += other.unmet;
        self.inconclusive += other.inconclusive;
        self.skipped += other.skipped;
        self.ticks += other.ticks;
        self.ambiguous_ticks += other.ambiguous_ticks;
        self.retried += other.retried;
        self.stale_known.extend_from_slice(&other.stale_known);
    }

    /// Returns true if a scenario shows that something is wrong: a divergence, an unmet
    /// expectation, or a known disagreement that is gone.
    #[must_use]
    pub fn is_bad(&self) -> bool {
        self.diverges + self.unmet + self.stale_known.len() > 0
    }

    /// Counts one outcome.
    pub fn add(&mut self, outcome: &Outcome) {
        self.scenarios += 1;
        self.ticks += outcome.ticks;
        self.ambiguous_ticks += outcome.ambiguous_ticks;
        self.retried += usize::from(outcome.retries > 0);
        match outcome.verdict {
            Verdict::Conforms => self.conforms += 1,
            Verdict::Diverges(_) => self.diverges += 1,
            Verdict::Unexpected => self.unmet += 1,
            Verdict::Inconclusive { .. } => self.inconclusive += 1,
            Verdict::Skipped { .. } => self.skipped += 1,
        }
    }
}
