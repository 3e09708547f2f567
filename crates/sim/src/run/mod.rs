//! Running scenarios on engines: lockstep, verdicts, and the events from which reports are made.
//!
//! This is the only caller of the comparison. It prints nothing.

mod below_zero;
pub mod change;
pub mod comparison;
pub mod demand;
pub mod during;
mod explaining_rows;
pub mod findings;
pub mod in_order;
pub mod leave_out;
pub mod lockstep;
pub mod merge;
mod model_run;
pub mod panic;
pub mod predicted;
mod random;
pub mod recommendation;
pub mod recommender;
pub mod recommender_change;
pub mod recommender_lockstep;
mod shard;
pub mod snapshot;
mod updater_lockstep;
mod vpa;
mod without_model;

use std::fmt::{self, Display, Formatter};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use crate::engine::shell::shell_word;
pub use crate::world::{
    InUse, PodChange, PodChangeKind, RequestChange, RequestsInUse, ResourceInUse, ServingChange,
    UpdaterReport, pod_request,
};
pub use lockstep::{
    FreeRun, FreeTick, explained_free_run, free_run, free_run_by, free_run_with_gates,
    free_run_without_trace, run_one, run_watched,
};
pub use model_run::{ModelRun, state_scope};
pub use random::{RandomCause, RandomOutcome};
pub use recommender::RecommenderRun;
pub use shard::Shard;
pub use vpa::VpaRun;

use crate::compare::{Divergence, KnownDisagreement};
use crate::expect::Unmet;
use crate::objects::ReportedWrite;
use crate::trace::Trace;
use kube_autoscaler_models::derivation::Derivation;
use kube_autoscaler_models::rules::{AnyRelease, VpaRelease};
use kube_autoscaler_models::time::Time;
use kube_lockstep_scenario::Diagnostic;
use kube_lockstep_scenario::{Scenario, SkipReason};

/// The verdict on one scenario that ran on one engine.
#[derive(Clone, PartialEq, Debug)]
pub enum Verdict {
    /// Every tick was as the model predicted, and every expectation was met.
    Conforms,
    /// A tick was not as the model predicted.
    Diverges(Divergence),
    /// Model and engine agree, but an expectation of the author is unmet.
    Unmet,
    /// The engine failed, or it can't run the scenario: no verdict.
    Inconclusive {
        /// The cause.
        why: String,
        /// The tail of the engine's output, which may be empty.
        output: String,
    },
    /// The scenario was not run.
    Skipped {
        /// The reason.
        why: SkipReason,
    },
}

impl Verdict {
    /// The name in reports for people: `conforms`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Verdict::Conforms => "conforms",
            Verdict::Diverges(_) => "diverges",
            Verdict::Unmet => "unmet",
            Verdict::Inconclusive { .. } => "inconclusive",
            Verdict::Skipped { .. } => "skipped",
        }
    }
}

/// A known disagreement, from `divergences.yaml`, that was met.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct KnownHit {
    /// The field that it covers, or a prefix of the field.
    pub field: String,
    /// Why model and upstream disagree.
    pub reason: String,
    /// A link to an explanation.
    pub link: String,
}

/// A note for the author of a scenario, independent of the verdict.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Note {
    /// The file. None: the file of the scenario.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line in the file.
    pub line: usize,
    /// The text.
    pub what: String,
    /// True if it is about how the file was read. A run of many scenarios does not print it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_about_reading: bool,
}

impl Note {
    /// Notes on how a scenario was read. `line`: that of its HPA or VPA, for notes that have none.
    pub(crate) fn on_reading(notes: &[Diagnostic], line: usize) -> Vec<Note> {
        let note = |note: &Diagnostic| Note {
            file: note.file().map(str::to_owned),
            line: note.line().unwrap_or(line),
            what: note.what.clone(),
            is_about_reading: true,
        };
        notes.iter().map(note).collect()
    }

    /// The note on what a scenario leaves open for a search.
    #[must_use]
    pub fn search_is_ignored(scenario: &Scenario) -> Option<Note> {
        let what = "`search` is ignored: this is the run in which nothing is chosen; \
                    `kube-lockstep check` tries all choices";
        scenario.search.as_deref().map(|search| Note {
            file: None,
            line: search.line,
            what: what.to_owned(),
            is_about_reading: true,
        })
    }

    /// The note on an action none of whose pods exists. `line`: the line of its event in the file.
    fn without_effect(at: Time, line: usize) -> Note {
        let what = format!("the action at t={at} has no effect: none of its pods exists");
        Note { file: None, line, what, is_about_reading: false }
    }

    /// The note for a scenario whose expectations are all for other releases. `line`: that of its
    /// HPA or VPA. `others`: the releases to which they apply; empty if there are none.
    fn no_expectation_applies(line: usize, others: &str) -> Note {
        let mut what = "no expectation is checked: all of them are for other releases".to_owned();
        if !others.is_empty() {
            what = format!("{what}, {others} (see --release)");
        }
        Note { file: None, line, what, is_about_reading: false }
    }

    /// The note for a scenario without expectations that runs on the model. `line`: that of its HPA
    /// or VPA.
    fn nothing_is_checked(line: usize) -> Note {
        let what = "nothing is checked: the scenario has no `expect`, and the engine is the model \
                    itself";
        Note { file: None, line, what: what.to_owned(), is_about_reading: false }
    }

    /// The file and the line, `FILE:LINE`. `path` is the file of the scenario.
    #[must_use]
    pub fn place(&self, path: &str) -> String {
        format!("{}:{}", self.file.as_deref().unwrap_or(path), self.line)
    }
}

/// The result of one scenario on one engine.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The scenario's id.
    pub id: String,
    /// The file, for messages.
    pub path: String,
    /// The line of the file that best identifies the HPA.
    pub line: usize,
    /// The requirement, in one sentence.
    pub requirement: String,
    /// The engine's name.
    pub engine: Arc<str>,
    /// The release, for example `1.37`.
    pub release: String,
    /// The release of the VPA, if the scenario has an HPA and a VPA.
    pub vpa_release: Option<VpaRelease>,
    /// True if no model predicts the controller: nothing was compared, and the verdict is about the
    /// expectations.
    pub is_without_model: bool,
    pub verdict: Verdict,
    /// The cause, if there is no verdict because upstream leaves the further course of the scenario
    /// to chance. All ticks that were compared before agree.
    pub undetermined: Option<RandomCause>,
    /// The known disagreements that occurred; the verdict does not count them.
    pub known: Vec<KnownHit>,
    /// Ticks that were compared (up to and including the first divergence).
    pub ticks: usize,
    /// Ticks after the first divergence: shown, not counted.
    pub not_compared: usize,
    /// What was observed of each controller, the main one first. Empty in results that were read
    /// from a file, and without a run.
    pub controllers: Vec<ControllerRun>,
    /// Expectations that the observations do not meet.
    pub unmet: Vec<Unmet>,
    /// The writes of objects, if an expectation is not met and the scenario has `objects`.
    pub writes: Vec<ReportedWrite>,
    /// Parts of the scenario that are probably mistakes.
    pub notes: Vec<Note>,
    /// Ticks for which the model allows more than one outcome, because of the time at which the
    /// reconcile read the clock or because it overlapped a change of the cluster. Always 0 in
    /// virtual time.
    pub ambiguous_ticks: usize,
    /// The number of earlier attempts that ended without a verdict. Always 0 in virtual time.
    pub retries: usize,
    /// The duration of the run; zero if nobody measured it.
    pub elapsed: Duration,
}

/// A controller in a run of a scenario.
#[derive(Clone, Debug)]
pub enum ControllerRun {
    /// The HPA controller.
    Hpa(HpaRun),
    /// The recommender of the VPA.
    Recommender(RecommenderRun),
}

/// A run of the HPA controller in a scenario.
#[derive(Clone, Debug)]
pub struct HpaRun {
    /// The scenario as it was run.
    pub scenario: Arc<Scenario>,
    /// The observations.
    pub trace: Trace,
    /// For each tick of the trace, the derivation of the model's prediction, if the model predicted
    /// the tick.
    pub derivations: Vec<Option<Derivation>>,
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
            vpa_release: None,
            is_without_model: false,
            verdict,
            undetermined: None,
            known: Vec::new(),
            ticks: 0,
            not_compared: 0,
            controllers: Vec::new(),
            unmet: Vec::new(),
            writes: Vec::new(),
            notes: Vec::new(),
            ambiguous_ticks: 0,
            retries: 0,
            elapsed: Duration::ZERO,
        }
    }

    /// The run of the HPA controller.
    #[must_use]
    pub fn hpa(&self) -> Option<&HpaRun> {
        self.controllers.iter().find_map(|controller| match controller {
            ControllerRun::Hpa(run) => Some(run),
            _ => None,
        })
    }

    /// The run of the recommender.
    #[must_use]
    pub fn recommender(&self) -> Option<&RecommenderRun> {
        self.controllers.iter().find_map(|controller| match controller {
            ControllerRun::Recommender(run) => Some(run),
            _ => None,
        })
    }

    /// Adds a note for the reader of the report.
    pub fn note(&mut self, what: String) {
        self.notes.push(Note { file: None, line: self.line, what, is_about_reading: false });
    }

    /// Known disagreements that cover this scenario although it ran to its end without them.
    #[must_use]
    pub fn resolved_disagreements<'k>(
        &self,
        known: &'k [KnownDisagreement],
    ) -> Vec<&'k KnownDisagreement> {
        if !matches!(self.verdict, Verdict::Conforms | Verdict::Unmet) {
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
pub struct Setting {
    /// The engine's name.
    pub engine: Arc<str>,
    pub release: String,
    /// The releases of the VPAs that run with HPAs. Empty if scenarios with a VPA alone run too.
    pub vpa_releases: Vec<VpaRelease>,
    /// The program that replaces the upstream engine.
    pub program: Option<PathBuf>,
    /// The local checkout that replaces a release's code.
    pub checkout: Option<PathBuf>,
    /// The time limit of an answer, if it is not the default.
    pub time_limit: Option<Duration>,
    /// The arguments that repeat the run, if the engine's name is not sufficient.
    pub replay_args: Vec<String>,
    /// The shard that is run.
    pub shard: Option<Shard>,
    /// An identifier that all shards of a run share, and other runs do not.
    pub plan: String,
}

impl Setting {
    /// The releases for people: `1.37`, `1.37 with vpa-1.8`.
    #[must_use]
    pub fn releases(&self) -> String {
        with_vpa(&self.release, &self.vpa_releases)
    }
}

/// The text of a release of Kubernetes and the releases of the VPAs that run with HPAs.
pub fn with_vpa(release: &str, vpa: &[VpaRelease]) -> String {
    let names: Vec<String> = vpa.iter().map(ToString::to_string).collect();
    if names.is_empty() {
        release.to_owned()
    } else {
        format!("{release} with {}", names.join(", "))
    }
}

/// The progress of a run. Reports read events and nothing else.
#[derive(Clone, Debug)]
pub enum Event {
    /// The run begins.
    Started {
        /// The number of scenarios.
        scenarios: usize,
        /// The options to repeat it.
        setting: Setting,
        /// A note for the reader: for example, why another engine was not used.
        note: Option<String>,
    },
    /// The engine is being prepared, which takes long the first time.
    Preparing(Preparation),
    /// A scenario has ended.
    Finished(Box<Outcome>),
    /// The run has ended.
    Ended(Summary),
}

/// A step of a preparation.
#[derive(Clone, PartialEq, Debug)]
pub struct Preparation {
    /// The engine that is prepared, for example `upstream v1.37`; or what is done, if there is no
    /// step.
    pub subject: String,
    /// The current step, for example `linking`.
    pub step: Option<String>,
    /// The fraction that is done, from 0 to 1, if known.
    pub fraction: Option<f64>,
}

impl Preparation {
    /// A preparation without steps.
    pub fn new(subject: impl Into<String>) -> Preparation {
        Preparation { subject: subject.into(), step: None, fraction: None }
    }

    /// A step of the preparation of an engine.
    pub fn step(subject: &str, step: impl Into<String>) -> Preparation {
        Preparation { step: Some(step.into()), ..Preparation::new(subject) }
    }
}

/// One line: `upstream v1.37: linking`.
impl Display for Preparation {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.subject)?;
        self.step.as_ref().map_or(Ok(()), |step| write!(f, ": {step}"))
    }
}

/// The figures of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Summary {
    /// All scenarios, including skipped ones.
    pub scenarios: usize,
    /// As the model predicted, with all expectations met.
    pub conforms: usize,
    /// Not as the model predicted.
    pub diverges: usize,
    /// As the model predicted, but with an unmet expectation.
    pub unmet: usize,
    /// Scenarios without a verdict.
    pub inconclusive: usize,
    /// Scenarios that were not run.
    pub skipped: usize,
    /// Ticks that were compared.
    pub ticks: usize,
    /// Ticks for which the model allows more than one outcome.
    pub ambiguous_ticks: usize,
    /// Scenarios that were retried because an attempt ended without a verdict.
    pub retried: usize,
    /// Entries of `divergences.yaml` that no longer hold; each fails the run.
    pub stale_known: Vec<String>,
    /// Parts of a merged run that are missing: there is no verdict on the whole.
    pub missing: Vec<String>,
    /// Wall-clock time of the run.
    pub elapsed: Duration,
    /// The figures of each release, if the run has several.
    pub releases: Vec<(AnyRelease, Summary)>,
}

impl Summary {
    /// Adds the figures of another run, except its time.
    pub fn join(&mut self, other: &Summary) {
        self.scenarios = self.scenarios.saturating_add(other.scenarios);
        self.conforms = self.conforms.saturating_add(other.conforms);
        self.diverges = self.diverges.saturating_add(other.diverges);
        self.unmet = self.unmet.saturating_add(other.unmet);
        self.inconclusive = self.inconclusive.saturating_add(other.inconclusive);
        self.skipped = self.skipped.saturating_add(other.skipped);
        self.ticks = self.ticks.saturating_add(other.ticks);
        self.ambiguous_ticks = self.ambiguous_ticks.saturating_add(other.ambiguous_ticks);
        self.retried = self.retried.saturating_add(other.retried);
        self.stale_known.extend_from_slice(&other.stale_known);
    }

    /// Returns true if a scenario shows that something is wrong: a divergence, an unmet
    /// expectation, or a known disagreement that no longer occurs.
    #[must_use]
    pub fn is_bad(&self) -> bool {
        self.diverges + self.unmet + self.stale_known.len() > 0
    }

    /// Counts one outcome. Numbers of ticks may come from a file; their sums saturate.
    pub fn add(&mut self, outcome: &Outcome) {
        self.scenarios += 1;
        self.ticks = self.ticks.saturating_add(outcome.ticks);
        self.ambiguous_ticks = self.ambiguous_ticks.saturating_add(outcome.ambiguous_ticks);
        self.retried += usize::from(outcome.retries > 0);
        match outcome.verdict {
            Verdict::Conforms => self.conforms += 1,
            Verdict::Diverges(_) => self.diverges += 1,
            Verdict::Unmet => self.unmet += 1,
            Verdict::Inconclusive { .. } => self.inconclusive += 1,
            Verdict::Skipped { .. } => self.skipped += 1,
        }
    }
}
