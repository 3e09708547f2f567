//! `kube-lockstep completions`.

use std::io::{self, Write};

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

pub(super) fn run(args: &Args, command: &mut clap::Command) -> anyhow::Result<u8> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, command, "kube-lockstep", &mut script);
    unless_closed(io::stdout().write_all(&script))?;
    Ok(exit::CONFORMS)
}
