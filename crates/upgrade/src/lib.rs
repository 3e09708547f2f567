//! The differences of an HPA between two releases: on given loads, and on generated ones, by the
//! rows of the table of changes and the feature gates. On the model alone, without I/O.

mod notes;
mod plan;
mod report;
mod search;

pub use notes::{Findings, Notes};
pub use plan::{Cause, ControlPlane, Reason};
pub use report::{Confirmation, Format, Group, Report, Subject};
pub use search::{Difference, Effect, Example, Progress, Searched, Upgrade};

#[cfg(test)]
mod tests;
