//! Custom controllers: the command, its arguments and environment, and its permissions.
//!
//! `cluster` starts and observes it. This module deliberately knows nothing about its decisions.

mod fill;

use std::sync::Arc;

use serde_json::Value;

use kube_autoscaler_models::flags::Flag;
use kube_lockstep_scenario::Diagnostic;

/// The user name of the controller's requests.
pub const USER: &str = "kube-lockstep:controller";

/// The placeholder of the kubeconfig, which is also in the environment.
const KUBECONFIG: &str = "kubeconfig";

/// The flags with placeholders, which have upstream's names without [`FLAG_PREFIX`].
const FLAGS: [Flag; 5] = [
    Flag::SyncPeriod,
    Flag::DownscaleStabilization,
    Flag::Tolerance,
    Flag::CpuInitializationPeriod,
    Flag::InitialReadinessDelay,
];
const FLAG_PREFIX: &str = "horizontal-pod-autoscaler-";

/// The placeholder of the feature gates.
const FEATURE_GATES: &str = "feature-gates";

/// The placeholder of a flag.
fn placeholder(flag: Flag) -> &'static str {
    flag.name().trim_start_matches(FLAG_PREFIX)
}

/// A custom HPA controller.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Controller {
    command: Arc<str>,
    name: Arc<str>,
    rules: Vec<Value>,
}

impl Controller {
    /// Parses a command, which `sh` runs after its placeholders are filled in.
    ///
    /// # Errors
    /// If the file is empty, or has an unknown word in braces.
    pub fn new(command: &str) -> Result<Controller, Diagnostic> {
        let Some(name) = name_of(command) else {
            let hint = "for example --controller 'my-controller --kubeconfig={kubeconfig}'";
            return Err(Diagnostic::new("no command").hint(hint));
        };
        let known = || FLAGS.map(placeholder).into_iter().chain([FEATURE_GATES, KUBECONFIG]);
        let mut words = parts(command).into_iter().filter_map(|part| match part {
            Piece::Word(word) => Some(word),
            Piece::Text(_) => None,
        });
        if let Some(wrong) = words.find(|word| !known().any(|it| it == *word)) {
            let near = known().max_by(|one, other| {
                let alike = |name: &str| strsim::jaro_winkler(name, wrong);
                alike(one).total_cmp(&alike(other))
            });
            let all: Vec<String> = known().map(|word| format!("{{{word}}}")).collect();
            let hint = format!(
                "did you mean {{{}}}? The placeholders are {}; for a literal {{{wrong}}}, write \
                 {{{{{wrong}}}}}",
                near.unwrap_or_default(),
                all.join(", ")
            );
            return Err(Diagnostic::new(format!("unknown placeholder {{{wrong}}}")).hint(hint));
        }
        Ok(Controller { command: command.into(), name: name.into(), rules: Vec::new() })
    }

    /// Adds the permissions of a ClusterRole.
    ///
    /// # Errors
    /// If the text is not a ClusterRole.
    pub fn with_role(mut self, text: &str) -> Result<Controller, String> {
        let role: Value = serde_yaml::from_str(text).map_err(|error| error.to_string())?;
        let kind = role["kind"].as_str().unwrap_or_default();
        match (kind, role["rules"].as_array()) {
            ("ClusterRole" | "Role", Some(rules)) => self.rules = rules.clone(),
            ("ClusterRole" | "Role", None) => return Err("it has no rules".to_owned()),
            _ => return Err("it is not a ClusterRole".to_owned()),
        }
        Ok(self)
    }

    /// The program's name, for reports.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The command as the user wrote it.
    #[must_use]
    pub fn command(&self) -> &str {
        &self.command
    }

    /// Its permissions in addition to the permissions that every controller has.
    #[must_use]
    pub fn rules(&self) -> &[Value] {
        &self.rules
    }
}

/// A part of a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Piece<'a> {
    /// Literal text.
    Text(&'a str),
    /// A placeholder.
    Word(&'a str),
}

/// The parts of a command. Only a single word in braces is a placeholder, so JSON is literal.
/// Double braces escape a word.
fn parts(command: &str) -> Vec<Piece<'_>> {
    let mut parts = Vec::new();
    let mut rest = command;
    while let Some((text, after)) = rest.split_once('{') {
        parts.push(Piece::Text(text));
        rest = after;
        if let Some((word, after)) = word_before(after, "}") {
            parts.push(Piece::Word(word));
            rest = after;
        } else if let Some(inner) = after.strip_prefix('{')
            && let Some((word, after_both)) = word_before(inner, "}}")
        {
            // Keeps one of the two braces on each side.
            parts.push(Piece::Text(&after[..word.len() + 2]));
            rest = after_both;
        } else {
            parts.push(Piece::Text("{"));
        }
    }
    parts.push(Piece::Text(rest));
    parts
}

/// A word in the form of a placeholder, if its end follows, and the rest of the text.
fn word_before<'a>(text: &'a str, end: &str) -> Option<(&'a str, &'a str)> {
    let length = text.find(|c: char| !c.is_ascii_lowercase() && c != '-')?;
    let (word, after) = text.split_at(length);
    Some((word, after.strip_prefix(end)?)).filter(|_| !word.is_empty())
}

/// The file name of the program in a command.
fn name_of(command: &str) -> Option<&str> {
    let is_assignment = |word: &&str| {
        word.split_once('=')
            .is_some_and(|(name, _)| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'))
    };
    let mut words = command.split_whitespace().skip_while(is_assignment);
    let word = words.find(|word| !matches!(*word, "exec" | "env"))?;
    let name = word.trim_matches(['"', '\'']).rsplit('/').next()?;
    (!name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_commands_are_rejected_with_a_hint() {
        let error = Controller::new("mine {sync-perod}").unwrap_err();
        assert_eq!(error.what, "unknown placeholder {sync-perod}");
        let hint = error.hint_text().unwrap_or_default();
        assert!(hint.starts_with("did you mean {sync-period}?"), "{hint}");
        assert!(Controller::new("  ").is_err());
        assert!(Controller::new(r#"mine --json '{"a": {}}'"#).is_ok());
        let controller = || Controller::new("mine").unwrap();
        let role = "kind: ClusterRole\nrules: [{apiGroups: [apps], resources: [x], verbs: [get]}]";
        assert_eq!(controller().with_role(role).unwrap().rules().len(), 1);
        assert_eq!(controller().with_role("kind: ClusterRole"), Err("it has no rules".to_owned()));
        assert_eq!(controller().with_role("kind: Pod"), Err("it is not a ClusterRole".to_owned()));
    }
}
