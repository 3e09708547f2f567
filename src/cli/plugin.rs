//! The program as a plugin of kubectl: `kubectl lockstep`, and its completion.
//!
//! kubectl runs `kubectl-lockstep` for the plugin's commands, and `kubectl_complete-lockstep` for
//! its completions. Both are this program under other names.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use super::completions::with_values;
use super::exit;

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

    /// The command, with its name as people type it.
    pub(super) fn name(self, command: clap::Command) -> clap::Command {
        match self {
            StartedAs::Program => command,
            StartedAs::Plugin | StartedAs::Completion => command.bin_name("kubectl lockstep"),
        }
    }
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
}
