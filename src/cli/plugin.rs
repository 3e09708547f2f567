//! The program as a plugin of kubectl: `kubectl lockstep`, and its completion.
//!
//! kubectl runs `kubectl-lockstep` for the plugin's commands, and `kubectl_complete-lockstep` for
//! its completions. Both are this program under other names.

use std::borrow::Cow;
use std::env;
use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::OnceLock;

use super::completions::with_values;
use super::exit;

/// The names of the subcommands, if people type them after [`TYPED`].
static SUBCOMMANDS: OnceLock<Vec<String>> = OnceLock::new();

/// The name of the program.
const PROGRAM: &str = "kube-lockstep";

/// The plugin as people type it.
const TYPED: &str = "kubectl lockstep";

/// The name under which the program was started.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum StartedAs {
    /// `kube-lockstep`, or any other name.
    Program,
    /// `kubectl-lockstep`.
    Plugin,
    /// `kubectl_complete-lockstep`.
    Completion,
}

impl StartedAs {
    /// From the first argument of the process.
    pub(super) fn from_arguments() -> StartedAs {
        StartedAs::from_path(&env::args_os().next().unwrap_or_default())
    }

    fn from_path(path: &OsStr) -> StartedAs {
        match Path::new(path).file_stem().and_then(OsStr::to_str) {
            Some("kubectl-lockstep") => StartedAs::Plugin,
            Some("kubectl_complete-lockstep") => StartedAs::Completion,
            _ => StartedAs::Program,
        }
    }

    /// The command, with its name as people type it, also in later texts.
    pub(super) fn name(self, command: clap::Command) -> clap::Command {
        if self == StartedAs::Program {
            return command;
        }
        SUBCOMMANDS.get_or_init(|| {
            command.get_subcommands().map(|command| command.get_name().to_owned()).collect()
        });
        command.bin_name(TYPED)
    }
}

/// A text for people that names the commands in it as they are typed. The texts of the library name
/// the program: `kube-lockstep run`.
pub(super) fn commands_as_typed(text: &str) -> Cow<'_, str> {
    match SUBCOMMANDS.get() {
        Some(subcommands) if text.contains(PROGRAM) => for_plugin(text, subcommands).into(),
        _ => text.into(),
    }
}

/// The text with [`TYPED`] in place of [`PROGRAM`] before subcommands.
fn for_plugin(text: &str, subcommands: &[String]) -> String {
    let is_letter = |it: char| it.is_ascii_lowercase() || it == '-';
    let mut parts = text.split(PROGRAM);
    let mut named = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let word = part.trim_start();
        let word = &word[..word.find(|it| !is_letter(it)).unwrap_or(word.len())];
        let is_spaced = part.starts_with(char::is_whitespace) && !named.ends_with(['/', '-', '.']);
        let is_command = is_spaced && subcommands.iter().any(|command| command == word);
        named.push_str(if is_command { TYPED } else { PROGRAM });
        named.push_str(part);
    }
    named
}

/// Prints the completions of the last argument, as kubectl expects them: one per line, with its
/// description after a tab, and a last line with flags for the shell.
pub(super) fn complete(command: clap::Command) -> ExitCode {
    let arguments: Vec<OsString> = env::args_os().collect();
    let current = env::current_dir().ok();
    let last = arguments.len().saturating_sub(1);
    let candidates = clap_complete::engine::complete(
        &mut with_values(command),
        arguments,
        last,
        current.as_deref(),
    );
    let mut text = String::new();
    let mut continues = false;
    for candidate in candidates.unwrap_or_default() {
        if candidate.is_hide_set() {
            continue;
        }
        let value = candidate.get_value().to_string_lossy();
        continues |= value.ends_with(['/', '=']);
        text.push_str(&value);
        if let Some(help) = candidate.get_help() {
            text.push('\t');
            text.push_str(help.to_string().lines().next().unwrap_or_default());
        }
        text.push('\n');
    }
    // Cobra's flags: 4 disables the shell's own completion of files, because paths are among the
    // candidates; 2 adds no space after a folder or `=`.
    text.push_str(if continues { ":6\n" } else { ":4\n" });
    // kubectl ignores completions that fail.
    let _ = io::stdout().write_all(text.as_bytes());
    ExitCode::from(exit::CONFORMS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_the_program_decides() {
        let started_as = |path: &str| StartedAs::from_path(OsStr::new(path));
        assert_eq!(started_as("/usr/bin/kubectl-lockstep"), StartedAs::Plugin);
        assert_eq!(started_as("kubectl-lockstep.exe"), StartedAs::Plugin);
        assert_eq!(started_as("kubectl_complete-lockstep"), StartedAs::Completion);
        assert_eq!(started_as("./kube-lockstep"), StartedAs::Program);
        assert_eq!(started_as(""), StartedAs::Program);
    }

    #[test]
    fn only_commands_have_another_name() {
        let subcommands = ["run", "predict", "metrics-server"].map(str::to_owned);
        let as_plugin = |text: &str| for_plugin(text, &subcommands);
        assert_eq!(as_plugin("`kube-lockstep run -v`"), "`kubectl lockstep run -v`");
        let two = "`x | kube-lockstep\n  predict -f -`, kube-lockstep metrics-server";
        let typed = "`x | kubectl lockstep\n  predict -f -`, kubectl lockstep metrics-server";
        assert_eq!(as_plugin(two), typed);
        for other in [
            "kube-lockstep 0.1.0: 3 scenarios",
            "upgrade kube-lockstep",
            "~/.cache/kube-lockstep run",
            "kube-lockstep runs",
            "kube-lockstep/run",
        ] {
            assert_eq!(as_plugin(other), other);
        }
    }
}
