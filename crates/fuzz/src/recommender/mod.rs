//! Generates scripts for the recommender of the Vertical Pod Autoscaler, and shrinks failing ones.

mod coverage;
mod edge;
mod generate;
mod plan;
mod shrink;

pub use self::coverage::RecommenderCoverage;
pub use self::generate::script;
pub use self::shrink::shrink;
use kube_autoscaler_models::vpa::{Script, ScriptStep};
