//! The command line of a custom controller, with its placeholders replaced, and its environment.

use std::collections::BTreeMap;
use std::path::Path;

use super::{Controller, FEATURE_GATES, FLAGS, KUBECONFIG, Piece, parts, placeholder};
use kube_autoscaler_models::flags::{Flags, gate_list};
use kube_lockstep_sim::engine::shell::shell_word;

impl Controller {
    /// The command with its placeholders filled in, for `sh`.
    pub fn filled(
        &self,
        kubeconfig: &Path,
        flags: &Flags,
        gates: &BTreeMap<String, bool>,
    ) -> String {
        let kubeconfig = kubeconfig.to_string_lossy().into_owned();
        let values: Vec<_> =
            values(flags, gates).into_iter().chain([(KUBECONFIG, kubeconfig)]).collect();
        let mut filled = String::new();
        for part in parts(&self.command) {
            match part {
                Piece::Text(text) => filled.push_str(text),
                Piece::Word(word) => {
                    let value = values.iter().find(|(name, _)| *name == word);
                    let value = value.map_or("", |(_, value)| value);
                    filled += &quoted(value, open_quote(&filled));
                }
            }
        }
        filled
    }

    /// The environment of the command.
    pub fn environment(
        &self,
        kubeconfig: &Path,
        flags: &Flags,
        gates: &BTreeMap<String, bool>,
    ) -> Vec<(String, String)> {
        let name = |name: &str| format!("KUBE_LOCKSTEP_{}", name.to_uppercase().replace('-', "_"));
        let values = values(flags, gates).into_iter().map(|(own, value)| (name(own), value));
        let kubeconfig = ("KUBECONFIG".to_owned(), kubeconfig.to_string_lossy().into_owned());
        values.chain([kubeconfig]).collect()
    }
}

/// The values of the placeholders; durations have Go's format.
fn values(flags: &Flags, gates: &BTreeMap<String, bool>) -> Vec<(&'static str, String)> {
    let flag = |flag| (placeholder(flag), flags.get(flag).to_string());
    FLAGS.into_iter().map(flag).chain([(FEATURE_GATES, gate_list(gates))]).collect()
}

/// The quotation mark of `sh` that is still open at the end of a text.
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

/// Quotes a value as one word of `sh`, also within open quotes. Most values need no quotes.
fn quoted(value: &str, within: Option<char>) -> String {
    let word = shell_word(value);
    // An empty value is no word at all.
    if value.is_empty() || word == value {
        return value.to_owned();
    }
    // Closes the open quotes before the value, and opens them again after it.
    let around = within.map(String::from).unwrap_or_default();
    format!("{around}{word}{around}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube_autoscaler_models::time::Span;

    fn flags() -> Flags {
        Flags { sync_period: Span::from_millis(66), ..Flags::default() }
    }

    fn gates() -> BTreeMap<String, bool> {
        BTreeMap::from([("A".to_owned(), true), ("B".to_owned(), false)])
    }

    #[test]
    fn a_command_gets_the_flags_of_the_scenario() {
        let command = "A=b ./target/naive {kubeconfig} --period={sync-period} {feature-gates} '{}'";
        let own = Controller::new(command).unwrap();
        assert_eq!(own.name(), "naive");
        let config = Path::new("/tmp/k");
        assert_eq!(
            own.filled(config, &flags(), &gates()),
            "A=b ./target/naive /tmp/k --period=66ms A=true,B=false '{}'"
        );
        let environment: BTreeMap<_, _> =
            own.environment(config, &flags(), &gates()).into_iter().collect();
        assert_eq!(environment["KUBECONFIG"], "/tmp/k");
        assert_eq!(environment["KUBE_LOCKSTEP_SYNC_PERIOD"], "66ms");
        assert_eq!(environment["KUBE_LOCKSTEP_TOLERANCE"], "0.1");
        assert_eq!(environment["KUBE_LOCKSTEP_DOWNSCALE_STABILIZATION"], "5m");
    }

    #[test]
    fn values_are_one_shell_word_and_braces_can_be_escaped() {
        let filled = |command: &str, config: &str| {
            Controller::new(command).unwrap().filled(Path::new(config), &flags(), &gates())
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
}
