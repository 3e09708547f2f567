//! Generates scenarios from a seed, and shrinks failing ones.
//!
//! [`scenario`] generates an ordinary scenario from a seed and an index;
//! [`to_yaml`](kube_lockstep_scenario::to_yaml) writes it as a fixture. [`shrink`] reduces it to a
//! smaller scenario that still fails. [`Coverage`] counts the parts of the controller that were
//! reached. There is no randomness except the seed, and no assumption about the correct behavior of
//! a controller.

mod area;
mod counts;
mod coverage;
mod dice;
mod fuzz_findings;
pub mod fuzzing;
mod generate;
mod generated;
pub mod recommender;
pub mod recommender_fuzzing;
pub mod report;
pub mod results;
mod shrink;

#[cfg(test)]
mod tests;

pub use self::area::Area;
pub use self::counts::CoverageGroup;
pub use self::coverage::Coverage;
pub use self::generate::scenario;
pub use self::shrink::{FailurePoint, Shrunk, shrink};
