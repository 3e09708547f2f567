//! The exit codes. They are part of the interface: scripts and CI rely on them.

/// All scenarios conform, or the command succeeded.
pub(crate) const CONFORMS: u8 = 0;
/// A divergence, an unmet expectation, or a known disagreement that disappeared.
pub(crate) const DIVERGES: u8 = 1;
/// A wrong command line, or an invalid scenario.
pub(crate) const USAGE: u8 = 2;
/// An engine could not run, a scenario had no verdict (and none diverged), or an output can't be
/// written.
pub(crate) const ENGINE: u8 = 3;
/// Nothing to run: no fixtures, a glob or a folder without scenarios, or all were skipped.
pub(crate) const NOTHING: u8 = 4;

/// The exit codes in the help. 130 is the shell's code for an interrupted program.
pub(crate) const HELP: &str = "\
Exit codes:
  0    all scenarios conform
  1    a divergence, an unmet expectation, or a known disagreement that disappeared
  2    an invalid command line, or an invalid scenario
  3    an engine can't run; a scenario has no verdict, and none diverges; or an output can't be
  written
  4    nothing to run: no scenarios, a glob that matches none, or all of them skipped
  130  interrupted (Ctrl-C)";
