//! Unmet expectations: what was observed, the model's reason, and the command that explains it.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use super::layout::hanging;
use super::style::{STRONG, paint};
use kube_lockstep_sim::expect::Unmet;
use kube_lockstep_sim::run::{Outcome, shell_word};

/// The run that the expectations belong to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UnmetOf<'a> {
    /// The scenario's id.
    pub id: &'a str,
    /// Its file, for messages.
    pub path: &'a str,
    pub release: &'a str,
    /// True if no model predicts the controller, so that no prediction explains a reconcile.
    pub is_without_model: bool,
}

/// An unmet expectation in JSON.
#[derive(Serialize, Deserialize)]
pub(super) struct UnmetLine {
    #[serde(default)]
    file: String,
    #[serde(flatten)]
    pub unmet: Unmet,
    /// The command that explains the reconcile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    explain: Option<String>,
}

impl<'a> UnmetOf<'a> {
    /// The run of an outcome.
    pub(crate) fn outcome(outcome: &'a Outcome) -> UnmetOf<'a> {
        let Outcome { id, path, release, is_without_model, .. } = outcome;
        UnmetOf { id, path, release, is_without_model: *is_without_model }
    }

    /// The command that explains the reconcile of an unmet expectation.
    #[must_use]
    pub(crate) fn explain_command(&self, unmet: &Unmet) -> Option<String> {
        let UnmetOf { id, path, release, is_without_model } = *self;
        let tick = unmet.tick.filter(|_| !is_without_model)?.tick;
        let mut command = format!("kube-lockstep explain {} --tick {tick}", shell_word(id));
        if let Some(hpa) = &unmet.hpa {
            let _ = write!(command, " --hpa {}", shell_word(hpa));
        }
        if let Some(vpa) = &unmet.vpa {
            let _ = write!(command, " --vpa {}", shell_word(vpa));
        }
        let _ = write!(command, " --release {release}");
        Some(with_fixtures_folder(id, path, command))
    }

    /// The text of an unmet expectation, with the reason and the command.
    pub(crate) fn text(&self, unmet: &Unmet, columns: usize) -> String {
        let mut out = String::new();
        let label = format!("{}:{}: ", self.path, unmet.line);
        out.push_str(&hanging(&label, &unmet.what, 2, columns));
        if !unmet.why.is_empty() {
            out.push_str(&hanging("why: ", &unmet.why, 4, columns));
        }
        if let Some(command) = self.explain_command(unmet) {
            let _ = writeln!(out, "    explain it: {}", paint(STRONG, &command));
        }
        out
    }

    /// The lines of JSON.
    pub(crate) fn lines(&self, unmet: &[Unmet]) -> Vec<UnmetLine> {
        let line = |unmet: &Unmet| UnmetLine {
            file: self.path.to_owned(),
            unmet: unmet.clone(),
            explain: self.explain_command(unmet),
        };
        unmet.iter().map(line).collect()
    }
}

/// A command for a scenario, with the folder of its fixtures if it is not the default.
pub(super) fn with_fixtures_folder(id: &str, path: &str, command: String) -> String {
    let file = path.strip_suffix(".yaml").or_else(|| path.strip_suffix(".yml"));
    let folder = file.and_then(|file| file.strip_suffix(&format!("/{id}")));
    match folder.filter(|folder| *folder != "fixtures") {
        Some(folder) => format!("{command} --fixtures {}", shell_word(folder)),
        None => command,
    }
}
