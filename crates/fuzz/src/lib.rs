//! Generates scenarios from a seed, and shrinks failing ones.
//!
//! [`scenario`] generates an ordinary scenario from a seed and an index, and
//! [`recommender::scenario`] one of a VPA alone. [`shrink`] reduces the tree of a scenario file to
//! a smaller one that still fails. [`Coverage`] and [`recommender::RecommenderCoverage`] count the
//! parts of the controllers that were reached. [`explore`] runs scenarios with disturbances. There
//! is no randomness except the seed, and no assumption about the correct behavior of a controller.

mod area;
mod counts;
mod coverage;
mod dice;
pub mod explore;
mod fuzz_findings;
mod fuzzed;
pub mod fuzzing;
mod generate;
mod generated;
mod loads;
pub mod recommender;
pub mod report;
pub mod results;
mod shrink;

#[cfg(test)]
mod tests;

pub use self::area::Area;
pub use self::counts::CoverageGroup;
pub use self::coverage::Coverage;
pub use self::fuzzed::Fuzzed;
pub use self::generate::scenario;
pub use self::loads::Loads;
pub use self::shrink::{FailurePoint, Measure, Priority, Shrunk, measure, shrink};
