//! The main types of the library: [`Lockstep`] compares the model with an engine, and [`Suite`]
//! runs a folder of scenarios as a test.

pub(crate) mod content;
pub(crate) mod lockstep;
mod suite;

pub use lockstep::{Engine, Error, Lockstep, ReadScenario, Report};
pub use suite::Suite;
