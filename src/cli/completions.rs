//! `kube-lockstep completions`: the script of a shell asks this program for completions, so that it
//! can complete the ids of scenarios and the names of releases.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::{self, Write};

use clap::ValueHint;
use clap::builder::{PossibleValue, PossibleValuesParser};
use clap_complete::Shell;
use clap_complete::engine::{
    ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter as _,
};
use clap_complete::env::{CompleteEnv, Shells};

use super::exit;
use super::failure::Failure;
use super::fixtures::Fixtures;
use super::output::unless_closed;
use super::reports::report_names;
use kube_autoscaler_models::rules::{Release, VpaRelease};

/// The arguments.
#[derive(clap::Args, Debug)]
pub(super) struct Args {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// The variable by which the script of a shell asks for completions.
const VARIABLE: &str = "KUBE_LOCKSTEP_COMPLETE";

pub(super) fn run(args: &Args) -> anyhow::Result<u8> {
    let (name, shells) = (args.shell.to_string(), Shells::builtins());
    let Some(shell) = shells.completer(&name) else {
        return Err(Failure::usage(format!("no completion script for {name}")).into());
    };
    let (mut script, program) = (Vec::new(), "kube-lockstep");
    shell.write_registration(VARIABLE, program, program, program, &mut script)?;
    unless_closed(io::stdout().write_all(&script))?;
    Ok(exit::CONFORMS)
}

/// If the script of a shell asks for completions, prints them and exits.
pub(super) fn answer(command: impl Fn() -> clap::Command) {
    CompleteEnv::with_factory(|| with_values(command())).var(VARIABLE).complete();
}

/// The command for completions: of files and folders where a value can be one, and of releases.
pub(super) fn with_values(command: clap::Command) -> clap::Command {
    let hint = |arg: clap::Arg| {
        let names = arg.get_value_names().unwrap_or_default();
        let has = |known: &[&str]| names.iter().any(|name| known.contains(&name.as_str()));
        if arg.is_positional() && has(&["FILE", "SCENARIO"]) {
            return arg.add(ArgValueCompleter::new(scenarios));
        }
        if has(&["FILE", "DIR", "SCENARIO"]) {
            return arg.value_hint(ValueHint::AnyPath);
        }
        // The newest is the most likely one. A list also has other values; they are not completed.
        let releases = || Release::supported().rev().map(|release| release.to_string());
        let vpa = || VpaRelease::supported().rev().map(|release| release.to_string());
        if has(&["RELEASE"]) {
            arg.value_parser(values(releases().chain(vpa())))
        } else if has(&["RELEASES"]) {
            arg.value_parser(values(releases().chain(vpa()).chain(["all".to_owned()])))
        } else if arg.get_id() == "reports" {
            arg.value_parser(values(report_names()))
        } else {
            arg
        }
    };
    command.mut_args(hint).mut_subcommands(with_values)
}

/// Paths, and the ids of fixtures, folder by folder.
fn scenarios(current: &OsStr) -> Vec<CompletionCandidate> {
    let paths = PathCompleter::any().complete(current);
    let (Some(typed), Ok(fixtures)) = (current.to_str(), Fixtures::find(None)) else {
        return paths;
    };
    let next = |id: &str| {
        let rest = id.strip_prefix(typed)?;
        Some(match rest.split_once('/') {
            Some((folder, _)) => format!("{typed}{folder}/"),
            None => id.to_owned(),
        })
    };
    let ids: BTreeSet<String> = fixtures.ids().filter_map(next).collect();
    ids.into_iter().map(CompletionCandidate::new).chain(paths).collect()
}

/// The values of an argument. They are not parsed: the command only completes.
fn values(all: impl Iterator<Item = String>) -> PossibleValuesParser {
    let all: Vec<PossibleValue> = all.map(PossibleValue::new).collect();
    PossibleValuesParser::new(all)
}
