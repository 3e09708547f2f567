//! The errors of commands, with exit codes and hints.

use std::fmt;

use super::exit;
use kube_lockstep_engines::input_file::InputError;
use kube_lockstep_engines::registry::{CLUSTERS, feature_hint};
use kube_lockstep_scenario as scenario;
use kube_lockstep_sim::engine::EngineError;

/// An error that the user can fix. All other errors are [`anyhow::Error`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Failure {
    /// The exit code.
    pub(super) code: u8,
    /// The problem.
    pub(super) what: String,
    /// The way to resolve it.
    pub hint: Option<String>,
    /// The errors in scenario files, if they are the problem.
    pub(super) invalid: Vec<scenario::Error>,
}

impl Failure {
    /// A wrong command line or file.
    pub(super) fn usage(what: impl Into<String>) -> Failure {
        Failure { code: exit::USAGE, what: what.into(), hint: None, invalid: Vec::new() }
    }

    /// A file that can't be read.
    pub(super) fn unreadable(path: &str, error: &InputError) -> Failure {
        Failure { hint: error.hint(), ..Failure::usage(error.in_file(path)) }
    }

    /// Nothing to run.
    pub(super) fn nothing(what: impl Into<String>) -> Failure {
        Failure { code: exit::NOTHING, ..Failure::usage(what) }
    }

    /// A broken engine or environment.
    pub(super) fn engine(what: impl Into<String>) -> Failure {
        Failure { code: exit::ENGINE, ..Failure::usage(what) }
    }

    /// An operation that requires a build with the feature `clusters`.
    pub(super) fn without_clusters(what: &str) -> Failure {
        let what = format!("{what} requires a build with `--features {CLUSTERS}`");
        Failure::engine(what).hint(feature_hint(CLUSTERS))
    }

    /// Adds a hint.
    pub(super) fn hint(self, hint: impl Into<String>) -> Failure {
        Failure { hint: Some(hint.into()), ..self }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for Failure {}

impl From<EngineError> for Failure {
    fn from(error: EngineError) -> Failure {
        let what = error.to_string();
        let (what, hint) = match error {
            EngineError::Unavailable { hint, .. } => (what, Some(hint)),
            EngineError::Broken { output, .. } if output.is_empty() => (what, None),
            EngineError::Broken { output, .. } => (format!("{what}\n{}", output.trim_end()), None),
        };
        Failure { hint, ..Failure::engine(what) }
    }
}
