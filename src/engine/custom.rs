//! A controller of the user's own, in the place of upstream's: a command, what it is told, and what
//! it may do.
//!
//! How it is started and watched is in `cluster/own.rs`. Deliberately no knowledge of what it
//! decides.

use std::path::Path;
use std::sync::Arc;

use serde_json::Value;

use crate::engine::cluster::provision::embedded::gates;
use crate::engine::cluster::settings::Settings;
use crate::model::flags::Flags;
use crate::model::time::Span;

/// The user as whom it asks and writes.
pub const USER: &str = "kube-lockstep:controller";

/// Where its kubeconfig is put into the command; it is in the environment, too.
const KUBECONFIG: &str = "kubeconfig";

/// What the command may name in braces, beside the kubeconfig: upstream's flags without what all of
/// them begin with, as they are for the scenarios at hand.
const PLACEHOLDERS: [&str; 6] = [
    "sync-period",
    "downscale-stabilization",
    "tolerance",
    "cpu-initialization-period",
    "initial-readiness-delay",
    "feature-gates",
];

/// A controller of the user's own.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Controller {
    command: Arc<str>,
    name: Arc<str>,
    rules: Vec<Value>,
}

/// A command that can't be one, and what to do about it.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{what}")]
pub struct CommandError {
    /// What is wrong.
    pub what: String,
    /// What to do about it.
    pub hint: String,
}

impl Controller {
    /// The one that a command starts: `sh` reads it, once what is in braces was filled in.
    ///
    /// # Errors
    /// If it is empty, or has an unknown word in braces.
    pub fn new(command: &str) -> Result<Controller, CommandError> {
        let Some(name) = name_of(command) else {
            let hint = "for instance --controller 'my-controller --kubeconfig={kubeconfig}'";
            return Err(CommandError { what: "no command".to_owned(), hint: hint.to_owned() });
        };
        let known = || PLACEHOLDERS.into_iter().chain([KUBECONFIG]);
        let mut words = parts(command).into_iter().filter_map(|part| match part {
            Part::Word(word) => Some(word),
            Part::Text(_) => None,
        });
        if let Some(wrong) = words.find(|word| !known().any(|it| it == *word)) {
            let near = known().max_by(|one, other| {
                let alike = |name: &str| strsim::jaro_winkler(name, wrong);
                alike(one).total_cmp(&alike(other))
            });
            let all: Vec<String> = known().map(|word| format!("{{{word}}}")).collect();
            return Err(CommandError {
                what: format!("{{{wrong}}} stands for nothing"),
                hint: format!(
                    "did you mean {{{}}}? There are {}; {{{{{wrong}}}}} is {{{wrong}}} itself",
                    near.unwrap_or_default(),
                    all.join(", ")
                ),
            });
        }
        Ok(Controller { command: command.into(), name: name.into(), rules: Vec::new() })
    }

    /// The same with the rights of a ClusterRole besides.
    ///
    /// # Errors
    /// If the text is none.
    pub fn with_role(mut self, text: &str) -> Result<Controller, String> {
        let role: Value = serde_yaml::from_str(text).map_err(|error| error.to_string())?;
        let kind = role["kind"].as_str().unwrap_or_default();
        match (kind, role["rules"].as_array()) {
            ("ClusterRole" | "Role", Some(rules)) => self.rules = rules.clone(),
            ("ClusterRole" | "Role", None) => return Err("it has no rules".to_owned()),
            _ => return Err("it is no ClusterRole".to_owned()),
        }
        Ok(self)
    }

    /// The program's name, by which reports call it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The command as it was given.
    #[must_use]
    pub fn command(&self) -> &str {
        &self.command
    }

    /// Rights that it has besides those that all have.
    pub(super) fn rules(&self) -> &[Value] {
        &self.rules
    }

    /// The command with what is in braces filled in, for `sh`.
    pub(super) fn filled(&self, kubeconfig: &Path, settings: &Settings) -> String {
        let kubeconfig = kubeconfig.to_string_lossy().into_owned();
        let values: Vec<_> =
            values(settings).into_iter().chain([(KUBECONFIG, kubeconfig)]).collect();
        let mut filled = String::new();
        for part in parts(&self.command) {
            match part {
                Part::Text(text) => filled.push_str(text),
                Part::Word(word) => {
                    let value = values.iter().find(|(name, _)| *name == word);
                    let value = value.map_or("", |(_, value)| value);
                    filled += &quoted(value, open_quote(&filled));
                }
            }
        }
        filled
    }

    /// What it finds in its environment.
    pub(super) fn environment(
        &self,
        kubeconfig: &Path,
        settings: &Settings,
    ) -> Vec<(String, String)> {
        let name = |name: &str| format!("KUBE_LOCKSTEP_{}", name.to_uppercase().replace('-', "_"));
        let values = values(settings).into_iter().map(|(own, value)| (name(own), value));
        let kubeconfig = ("KUBECONFIG".to_owned(), kubeconfig.to_string_lossy().into_owned());
        values.chain([kubeconfig]).collect()
    }
}

/// What the words in braces stand for: durations as Go writes them.
fn values(settings: &Settings) -> Vec<(&'static str, String)> {
    let Flags {
        sync_period,
        downscale_stabilization,
        tolerance,
        cpu_initialization_period,
        initial_readiness_delay,
        ..
    } = &settings.flags;
    let duration = |span: &Span| span.to_string();
    let gates = gates(&settings.gates).unwrap_or_default();
    let gates = gates.split_once('=').map_or("", |(_, list)| list);
    let values = [
        duration(sync_period),
        duration(downscale_stabilization),
        tolerance.to_string(),
        duration(cpu_initialization_period),
        duration(initial_readiness_delay),
        gates.to_owned(),
    ];
    PLACEHOLDERS.into_iter().zip(values).collect()
}

/// A part of a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Part<'a> {
    /// What stays as it is.
    Text(&'a str),
    /// What stood in braces, and has a value.
    Word(&'a str),
}

/// A command in parts. Only a single word is a placeholder: JSON in a command is none. One that is
/// not meant so stands in double braces.
fn parts(command: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let mut rest = command;
    while let Some((text, after)) = rest.split_once('{') {
        parts.push(Part::Text(text));
        rest = after;
        if let Some((word, after)) = word_before(after, "}") {
            parts.push(Part::Word(word));
            rest = after;
        } else if let Some(inner) = after.strip_prefix('{')
            && let Some((word, after_both)) = word_before(inner, "}}")
        {
            // With one brace of the two on each side.
            parts.push(Part::Text(&after[..word.len() + 2]));
            rest = after_both;
        } else {
            parts.push(Part::Text("{"));
        }
    }
    parts.push(Part::Text(rest));
    parts
}

/// A word that looks like a placeholder's, if what ends it follows, and what comes then.
fn word_before<'a>(text: &'a str, end: &str) -> Option<(&'a str, &'a str)> {
    let length = text.find(|c: char| !c.is_ascii_lowercase() && c != '-')?;
    let (word, after) = text.split_at(length);
    Some((word, after.strip_prefix(end)?)).filter(|_| !word.is_empty())
}

/// The quote of `sh` that is open at the end of a text.
fn open_quote(text: &str) -> Option<char> {
    let (mut open, mut escaped) = (None, false);
    for c in text.chars() {
        match (open, c) {
            _ if escaped => escaped = false,
            (None | Some('"'), '\\') => escaped = true,
            (None, '\'' | '"') => open = Some(c),
            (Some(quote), c) if c == quote => open = None,
            _ => {}
        }
    }
    open
}

/// A value as one word of `sh`, also within quotes. Most need no quotes of their own.
fn quoted(value: &str, within: Option<char>) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "/._-=,:+%@".contains(c);
    if value.chars().all(is_plain) {
        return value.to_owned();
    }
    // What is open is closed before it, and opened again.
    let around = within.map(String::from).unwrap_or_default();
    format!("{around}'{}'{around}", value.replace('\'', r"'\''"))
}

/// The name of the program that a command starts: that of its file.
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
    use std::collections::BTreeMap;

    use super::*;

    fn settings() -> Settings {
        Settings {
            flags: Flags { sync_period: Span::from_millis(66), ..Flags::default() },
            gates: BTreeMap::from([("A".to_owned(), true), ("B".to_owned(), false)]),
            hpa_controller: false,
            api_server: Vec::new(),
            observed: Vec::new(),
            small: false,
            custom_kinds: std::collections::BTreeSet::new(),
            controller: None,
        }
    }

    #[test]
    fn a_command_is_told_of_the_scenarios_flags() {
        let command = "A=b ./target/naive {kubeconfig} --period={sync-period} {feature-gates} '{}'";
        let own = Controller::new(command).unwrap();
        assert_eq!(own.name(), "naive");
        let config = Path::new("/tmp/k");
        assert_eq!(
            own.filled(config, &settings()),
            "A=b ./target/naive /tmp/k --period=66ms A=true,B=false '{}'"
        );
        let environment: BTreeMap<_, _> =
            own.environment(config, &settings()).into_iter().collect();
        assert_eq!(environment["KUBECONFIG"], "/tmp/k");
        assert_eq!(environment["KUBE_LOCKSTEP_SYNC_PERIOD"], "66ms");
        assert_eq!(environment["KUBE_LOCKSTEP_TOLERANCE"], "0.1");
        assert_eq!(environment["KUBE_LOCKSTEP_DOWNSCALE_STABILIZATION"], "5m");
    }

    #[test]
    fn what_sh_reads_is_one_word_and_braces_can_be_meant() {
        let filled = |command: &str, config: &str| {
            Controller::new(command).unwrap().filled(Path::new(config), &settings())
        };
        let (awk, json) = (r#"x | awk "{{print}}""#, r#"x '{"a":{"b":{}}}' {{print $1}}"#);
        assert_eq!(filled(awk, "k"), r#"x | awk "{print}""#);
        assert_eq!(filled(json, "k"), json);
        assert_eq!(filled("x {{kubeconfig}}={kubeconfig}", "k"), "x {kubeconfig}=k");
        for config in ["/tmp/a folder/it's $HOME", "/tmp/{tolerance}", "/tmp/ä\\\"b\"`"] {
            let ways =
                ["{kubeconfig}", "\"{kubeconfig}\"", "'{kubeconfig}'", "\\\"{kubeconfig}\\\""];
            for way in ways {
                let command = filled(&format!("printf '%s\\n' {way}"), config);
                let output = std::process::Command::new("sh").args(["-c", &command]).output();
                let seen = String::from_utf8(output.unwrap().stdout).unwrap();
                assert_eq!(
                    seen.trim_end().trim_matches('"'),
                    config.trim_matches('"'),
                    "{command}"
                );
            }
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_a_hint() {
        let error = Controller::new("mine {sync-perod}").unwrap_err();
        assert_eq!(error.what, "{sync-perod} stands for nothing");
        assert!(error.hint.starts_with("did you mean {sync-period}?"), "{error:?}");
        assert!(Controller::new("  ").is_err());
        assert!(Controller::new(r#"mine --json '{"a": {}}'"#).is_ok());
        let own = || Controller::new("mine").unwrap();
        let role = "kind: ClusterRole\nrules: [{apiGroups: [apps], resources: [x], verbs: [get]}]";
        assert_eq!(own().with_role(role).unwrap().rules().len(), 1);
        assert_eq!(own().with_role("kind: ClusterRole"), Err("it has no rules".to_owned()));
        assert_eq!(own().with_role("kind: Pod"), Err("it is no ClusterRole".to_owned()));
    }
}
