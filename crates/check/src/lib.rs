//! The search for behaviors of autoscalers: all choices that a scenario leaves open, on the model
//! alone. Without I/O.

mod check;
mod choices;
mod search;
mod text;
mod watch;

#[cfg(test)]
mod tests;

pub use check::{Check, Checked, Counterexample, Made, Outcome, STATES};
pub use search::Progress;
