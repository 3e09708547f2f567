//! The reference of all commands in `docs/cli.md` is the help of the program.

use std::fs;
use std::path::Path;

use clap::CommandFactory as _;

use super::Cli;

/// To update `docs/cli.md`: `cargo xtask docs`.
#[test]
fn the_command_reference_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/cli.md");
    let reference = reference();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, &reference).expect("the reference can be written");
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    assert!(written == reference, "docs/cli.md is out of date: run `cargo xtask docs`");
}

/// The reference of all commands for `docs/cli.md`.
fn reference() -> String {
    let mut text = format!(
        "<!-- Generated from the program's help by `src/cli/reference.rs`; edit `src/cli/`. -->\n# \
         The command\n\n{}.\n",
        Cli::command()
            .get_about()
            .map(ToString::to_string)
            .unwrap_or_default()
            .trim_end_matches('.')
    );
    // A fixed width makes the reference independent of the terminal.
    let command = Cli::command().term_width(100);
    text.push_str(&help(command.clone(), "kube-lockstep"));
    add_subcommands(&command, "kube-lockstep", &mut text);
    text
}

/// Adds the reference of all subcommands, recursively.
fn add_subcommands(command: &clap::Command, name: &str, text: &mut String) {
    for subcommand in command.get_subcommands() {
        let name = format!("{name} {}", subcommand.get_name());
        text.push_str(&help(subcommand.clone().term_width(100), &name));
        add_subcommands(subcommand, &name, text);
    }
}

fn help(command: clap::Command, name: &str) -> String {
    let mut command = command.bin_name(name).display_name(name).disable_help_subcommand(true);
    let help = command.render_long_help().to_string();
    let lines: Vec<&str> = help.lines().map(str::trim_end).collect();
    format!("\n## `{name}`\n\n```text\n{}\n```\n", lines.join("\n").trim_end())
}
