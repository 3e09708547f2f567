//! Generates scenarios from a seed, and shrinks failing ones.
//!
//! [`scenario`] generates the scenario of a seed and an index, an ordinary one that
//! [`crate::scenario::to_yaml`] writes as a fixture. [`shrink`] reduces it to a smaller one that
//! still fails. [`Coverage`] counts the parts of the controller that were reached. Pure: no clock,
//! and no randomness but the seed. Deliberately absent: running scenarios (see [`crate::run`]), and
//! any opinion on the right behaviour of a controller.

mod area;
mod coverage;
mod dice;
mod generate;
mod shrink;

#[cfg(test)]
mod tests;

pub use self::area::Area;
pub use self::coverage::{Coverage, CoverageGroup};
pub use self::generate::scenario;
pub use self::shrink::{FailurePoint, Shrunk, shrink};
