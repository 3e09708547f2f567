//! Torture: corrupted and huge files, engines that break the protocol, and signals at random times.
//! The command always ends in time, with bounded memory and without a panic; it names the position
//! in a file that it refuses, finds that a broken engine does not conform, and leaves no process and
//! no file behind.
//!
//! Each round is a function of its seed and number, which are in the name of the test:
//! `cargo test --test live -- seed_1_round_3` repeats it. KUBE_LOCKSTEP_TORTURE is the number of
//! rounds of each kind, and KUBE_LOCKSTEP_SEED the seed; the nightly workflow sets both. The rounds
//! with engines and signals require Go.

mod engines;
mod files;
mod signals;

use crate::support;
use std::fmt::Debug;
use std::process::{ExitCode, Output};
use std::time::Duration;

use crate::support::place::Workspace;
use crate::support::trials::Suite;
use assert_cmd::Command;
use kube_autoscaler_models::rules::Release;
use libtest_mimic::Failed;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

/// The environment variable with the number of rounds of each kind.
const ROUNDS: &str = "KUBE_LOCKSTEP_TORTURE";

/// The environment variable with the seed.
const SEED: &str = "KUBE_LOCKSTEP_SEED";

/// Far more than any of the commands takes, even on a busy machine.
const TIME_LIMIT: Duration = Duration::from_secs(120);

/// A round of one kind.
#[derive(Clone, Copy)]
struct Round {
    seed: u64,
    number: u64,
}

impl Round {
    /// Draws a value. A round always draws the same value of a strategy.
    fn draw<S: Strategy>(self, strategy: &S) -> Result<S::Value, Failed> {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&self.seed.to_le_bytes());
        key[8..16].copy_from_slice(&self.number.to_le_bytes());
        let random = TestRng::from_seed(RngAlgorithm::ChaCha, &key);
        let mut runner = TestRunner::new_with_rng(Config::default(), random);
        Ok(strategy.new_tree(&mut runner).map_err(|reason| reason.to_string())?.current())
    }

    fn name(self, kind: &str) -> String {
        format!("{kind}::seed_{}_round_{}", self.seed, self.number)
    }
}

/// Runs as the broken engine, if these are its arguments.
pub(crate) fn as_engine(arguments: &[String]) -> Option<ExitCode> {
    match arguments {
        [flag, seed, number, engine] if flag == engines::BROKEN => {
            Some(engines::serve(seed, number, engine))
        }
        _ => None,
    }
}

/// Adds the tests of this suite.
pub(crate) fn add_tests(suite: &mut Suite) {
    let upstream = suite.upstream(Release::NEWEST);
    let (rounds, seed) = (number_of(ROUNDS, 12), number_of(SEED, 1));
    for round in (0..rounds).map(|number| Round { seed, number }) {
        suite.test(round.name("corrupted_file"), move || files::corrupted(round));
        suite.test(round.name("huge_file"), move || files::huge(round));
        suite.test_with(&upstream, round.name("broken_engine"), move |engine| {
            engines::broken(round, &engine)
        });
        suite.test_with(&upstream, round.name("signal"), move |_| signals::interrupt(round));
    }
}

/// The number in an environment variable.
fn number_of(variable: &str, default: u64) -> u64 {
    match std::env::var(variable) {
        Ok(text) => text.parse().unwrap_or_else(|error| panic!("{variable}: {error}")),
        Err(_) => default,
    }
}

/// Runs the command to its end, with limited time and with an address space of this many KiB.
fn run(workspace: &Workspace, memory: u64, args: &[&str]) -> Result<Output, Failed> {
    let mut shell = workspace.shell(&format!("ulimit -v {memory}; exec \"$@\""), args);
    shell.current_dir(support::repository());
    let output = Command::from_std(shell).timeout(TIME_LIMIT).output()?;
    let shown = String::from_utf8_lossy(&output.stderr);
    if output.status.code().is_none() {
        return Err(format!("{args:?}: {}, within {TIME_LIMIT:?}: {shown}", output.status).into());
    }
    if shown.contains("panicked") || shown.contains("memory allocation") {
        return Err(format!("{args:?}: {shown}").into());
    }
    Ok(output)
}

/// An error that shows what a round drew and what the command wrote.
fn failure(what: &str, drawn: &impl Debug, output: &Output) -> Failed {
    let (out, error) = (&output.stdout, &output.stderr);
    let (out, error) = (String::from_utf8_lossy(out), String::from_utf8_lossy(error));
    format!("{what}: {}\n{drawn:?}\n{out}\n{error}", output.status).into()
}
