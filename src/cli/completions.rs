//! `kube-lockstep completions`.

use std::io::{self, Write};

use clap::ValueHint;
use clap_complete::Shell;

use super::exit;
use super::output::unless_closed;

/// The arguments.
#[derive(clap::Args, Debug)]
pub(super) struct Args {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

pub(super) fn run(args: &Args, command: clap::Command) -> anyhow::Result<u8> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut with_paths(command), "kube-lockstep", &mut script);
    unless_closed(io::stdout().write_all(&script))?;
    Ok(exit::CONFORMS)
}

/// The command, so that files and folders are completed where a value can be one.
pub(super) fn with_paths(command: clap::Command) -> clap::Command {
    let hint = |arg: clap::Arg| {
        let names = arg.get_value_names().unwrap_or_default();
        let is_path = names.iter().any(|name| matches!(name.as_str(), "FILE" | "DIR" | "SCENARIO"));
        if is_path { arg.value_hint(ValueHint::AnyPath) } else { arg }
    };
    command.mut_args(hint).mut_subcommands(with_paths)
}
