//! Tasks of contributors: `cargo xtask`. Each task only calls cargo or a script of `ci/`.

mod record;

use std::io::{self, Write as _};
use std::path::Path;
use std::process::{Command, ExitCode};

const USAGE: &str = "\
usage: cargo xtask TASK

  check                        run the checks for a pull request: `ci/run format lints tests live`
  docs [--images] [--clusters] update the generated files: pages of docs/, counts in README.md, and
                               schemas; with --images also the screenshots, which requires Chromium;
                               with --clusters also the table of tolerances, which compiles the crate
                               for real clusters
  record [OPTIONS] [ID...]     record traces of upstream's controllers, which requires Go; see
                               `cargo xtask record --help`
";

/// Filters for the tests that write generated files.
const GENERATED: [&str; 4] = ["up_to_date", "coverage::", "skips::", "the_readme_shows"];

enum Failure {
    /// The arguments are wrong.
    Arguments(String),
    /// A command failed, or could not be started.
    Command(String),
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (why, code) = match run(&arguments) {
        Ok(()) => return ExitCode::SUCCESS,
        Err(Failure::Arguments(why)) => (why, 2),
        Err(Failure::Command(why)) => (why, 1),
    };
    // A closed output is ignored.
    drop(writeln!(io::stderr(), "cargo xtask: {why}"));
    ExitCode::from(code)
}

fn run(arguments: &[&str]) -> Result<(), Failure> {
    match arguments {
        [] | ["-h" | "--help"] => show(USAGE),
        ["check"] => call("ci/run", &["format", "lints", "tests", "live"], &[]),
        ["docs", options @ ..] => docs(options),
        ["record", .., "-h" | "--help"] => show(record::USAGE),
        ["record", arguments @ ..] => record(arguments),
        _ => Err(Failure::Arguments(format!("unknown arguments\n\n{USAGE}"))),
    }
}

fn docs(options: &[&str]) -> Result<(), Failure> {
    if let Some(unknown) =
        options.iter().find(|option| !["--images", "--clusters"].contains(option))
    {
        return Err(Failure::Arguments(format!("unknown option {unknown}\n\n{USAGE}")));
    }
    let update = [("UPDATE_DOCS", "1")];
    let programs = ["test", "--locked", "--bin", "kube-lockstep", "--test", "fast", "--"];
    call("cargo", &[&programs[..], &GENERATED].concat(), &update)?;
    if options.contains(&"--images") {
        let name = "screenshots_look_as_before";
        let arguments = ["test", "--locked", "--test", "live", "--", "--include-ignored", name];
        call("cargo", &arguments, &update)?;
    }
    if options.contains(&"--clusters") {
        let arguments = ["test", "--locked", "--package", "kube-lockstep-clusters", "tolerances"];
        call("cargo", &arguments, &update)?;
    }
    call("git", &["status", "--short", "docs", "schema", "README.md"], &[])
}

fn record(arguments: &[&str]) -> Result<(), Failure> {
    let default_releases = std::env::var("KUBE_LOCKSTEP_RELEASES").ok();
    let exists = |path: &str| repository().join(path).exists();
    let plan =
        record::Plan::new(arguments, default_releases, &exists).map_err(Failure::Arguments)?;
    let variables = [("KUBE_LOCKSTEP_RECORD", "1"), ("KUBE_LOCKSTEP_RELEASES", &*plan.releases)];
    for tests in &plan.tests {
        let tests: Vec<&str> = tests.iter().map(String::as_str).collect();
        let arguments = ["test", "--locked", "--test", "live", "--"];
        call("cargo", &[&arguments[..], &tests].concat(), &variables)?;
    }
    call("git", &["status", "--short", "suites/recorded"], &[])
}

fn repository() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// Runs a program, or a script of the repository, with these environment variables.
fn call(program: &str, arguments: &[&str], variables: &[(&str, &str)]) -> Result<(), Failure> {
    let is_script = program.contains('/');
    let path = if is_script { repository().join(program) } else { program.into() };
    let mut command = Command::new(path);
    command.args(arguments).envs(variables.iter().copied()).current_dir(repository());
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(Failure::Command(format!("{program} {arguments:?}: {status}"))),
        Err(error) => Err(Failure::Command(format!("{program} can't be started: {error}"))),
    }
}

fn show(text: &str) -> Result<(), Failure> {
    io::stdout().write_all(text.as_bytes()).map_err(|error| Failure::Command(error.to_string()))
}
