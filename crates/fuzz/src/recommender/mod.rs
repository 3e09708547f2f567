//! Generates scenarios of the recommender of the Vertical Pod Autoscaler, and counts what they
//! reach.

mod coverage;
mod events;
mod generate;
mod objects;
mod usage;

pub use self::coverage::RecommenderCoverage;
pub use self::generate::scenario;
pub(crate) use self::generate::tree;
