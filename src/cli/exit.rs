//! The exit codes. They are part of the interface: scripts and CI rely on them.

/// All scenarios conform, or the command did what it was asked for.
pub const CONFORMS: u8 = 0;
/// A divergence, an expectation that is not met, or a known disagreement that is gone.
pub const DIVERGES: u8 = 1;
/// A wrong command line, or a scenario file that makes no sense.
pub const USAGE: u8 = 2;
/// An engine could not run, or a scenario had no verdict (and none diverged).
pub const ENGINE: u8 = 3;
/// There was nothing to run: no fixtures, a glob or a folder without any, or all were skipped.
pub const NOTHING: u8 = 4;

/// The table of exit codes, as the help shows it. 130 is a shell's code for an interrupted program.
pub const HELP: &str = "\
Exit codes:
  0    all scenarios conform
  1    a divergence, an unmet expectation, or a known disagreement that is gone
  2    a wrong command line, or an invalid scenario
  3    an engine could not run, or a scenario had no verdict and none diverged
  4    nothing to run: no scenarios, a glob that matches none, or all of them skipped
  130  interrupted (Ctrl-C)";
