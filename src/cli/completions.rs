//! `kube-lockstep completions`.

use std::io::{self, Write};

use clap::ValueHint;
use clap::builder::{PossibleValue, PossibleValuesParser};
use clap_complete::Shell;

use super::exit;
use super::output::unless_closed;
use crate::model::rules::{Release, VpaRelease};

/// The arguments.
#[derive(clap::Args, Debug)]
pub(super) struct Args {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

pub(super) fn run(args: &Args, command: clap::Command) -> anyhow::Result<u8> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut with_values(command), "kube-lockstep", &mut script);
    unless_closed(io::stdout().write_all(&script))?;
    Ok(exit::CONFORMS)
}

/// The command for completions: of files and folders where a value can be one, and of releases.
pub(super) fn with_values(command: clap::Command) -> clap::Command {
    let hint = |arg: clap::Arg| {
        let names = arg.get_value_names().unwrap_or_default();
        let has = |known: &[&str]| names.iter().any(|name| known.contains(&name.as_str()));
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
        } else {
            arg
        }
    };
    command.mut_args(hint).mut_subcommands(with_values)
}

/// The values of an argument. They are not parsed: the command only completes.
fn values(all: impl Iterator<Item = String>) -> PossibleValuesParser {
    let all: Vec<PossibleValue> = all.map(PossibleValue::new).collect();
    PossibleValuesParser::new(all)
}
