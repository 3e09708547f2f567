//! The errors of commands, with exit codes and hints.

use std::fmt;

use super::exit;
use kube_lockstep_engines::input_file::InputError;
use kube_lockstep_engines::registry::{CLUSTERS, feature_hint};
use kube_lockstep_scenario as scenario;
use kube_lockstep_scenario::{Diagnostic, Hint};
use kube_lockstep_sim::engine::EngineError;

/// An error that the user can fix. All other errors are [`anyhow::Error`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Failure {
    /// The exit code.
    pub(super) code: u8,
    pub(super) problem: Diagnostic,
    /// The errors in scenario files, if they are the problem.
    pub(super) invalid: Vec<scenario::Error>,
}

impl Failure {
    /// A wrong command line or file.
    pub(super) fn usage(problem: impl Into<Diagnostic>) -> Failure {
        Failure { code: exit::USAGE, problem: problem.into(), invalid: Vec::new() }
    }

    /// A file that can't be read.
    pub(super) fn unreadable(path: &str, error: &InputError) -> Failure {
        Failure::usage(error.in_file(path)).with_hint(error.hint().map(Hint::from))
    }

    /// Nothing to run.
    pub(super) fn nothing(problem: impl Into<Diagnostic>) -> Failure {
        Failure { code: exit::NOTHING, ..Failure::usage(problem) }
    }

    /// A broken engine or environment.
    pub(super) fn engine(problem: impl Into<Diagnostic>) -> Failure {
        Failure { code: exit::ENGINE, ..Failure::usage(problem) }
    }

    /// An operation that requires a build with the feature `clusters`.
    pub(super) fn without_clusters(what: &str) -> Failure {
        let what = format!("{what} requires a build with `--features {CLUSTERS}`");
        Failure::engine(what).hint(feature_hint(CLUSTERS))
    }

    /// Adds a hint.
    pub(super) fn hint(self, hint: impl Into<Hint>) -> Failure {
        self.with_hint(Some(hint.into()))
    }

    /// Sets or removes the hint.
    pub(super) fn with_hint(self, hint: Option<Hint>) -> Failure {
        Failure { problem: self.problem.with_hint(hint), ..self }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.problem.fmt(f)
    }
}

impl std::error::Error for Failure {}

/// A wrong command line or file.
impl From<Diagnostic> for Failure {
    fn from(problem: Diagnostic) -> Failure {
        Failure::usage(problem)
    }
}

impl From<EngineError> for Failure {
    fn from(error: EngineError) -> Failure {
        let what = error.to_string();
        Failure::engine(match error {
            EngineError::Unavailable { problem, .. } => Diagnostic { what, ..problem },
            EngineError::Unsupported { .. } => what.into(),
            EngineError::Broken { output, .. } if output.is_empty() => what.into(),
            EngineError::Broken { output, .. } => format!("{what}\n{}", output.trim_end()).into(),
        })
    }
}
