//! Generates scenarios from a seed, and shrinks those that fail.
//!
//! [`scenario`] makes the scenario of a seed and an index; it is an ordinary one, which
//! [`crate::scenario::to_yaml`] writes as a fixture. [`shrink`] makes a smaller one that still
//! fails, [`Coverage`] counts what of the controller was reached. Pure: no clock, and no chance but
//! the seed. Deliberately absent: running anything (that is [`crate::run`]'s), and any opinion on
//! what a controller should do.

mod area;
mod coverage;
mod dice;
mod generate;
mod shrink;

#[cfg(test)]
mod tests;

pub use self::area::Area;
pub use self::coverage::{Coverage, Reached};
pub use self::generate::scenario;
pub use self::shrink::{Seen, Shrunk, shrink};
