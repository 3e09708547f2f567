//! The search for the settings of an HPA or a VPA: which are cheapest and keep an objective, on the
//! model alone. Without I/O.

mod axis;
mod evaluate;
mod search;
mod text;
mod tune;
mod tuned;

#[cfg(test)]
mod tests;

pub use axis::Vary;
pub use text::{Subject, Width};
pub use tune::{Progress, Tune};
pub use tuned::{Change, Check, Patch, Setting, Tuned, Varied, Without};
