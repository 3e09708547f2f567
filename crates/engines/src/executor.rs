//! The interface between the runner and the engines of all kinds.

use std::sync::Arc;

use crate::plan::{Part, Plan};
use crate::record::Record;
use kube_lockstep_sim::engine::EngineError;

/// Prepares the engines of a plan, one for each part.
pub trait Executor {
    /// Waits until the engine of the next part is ready. Returns `None` if the run was stopped.
    ///
    /// # Errors
    /// If the engine can't be prepared, and the run can't continue without it.
    fn prepare<'a>(
        &'a mut self,
        part: &'a Part,
        record: &mut Record<'_>,
    ) -> Result<Option<Box<dyn ReadyEngine + 'a>>, EngineError>;
}

/// Creates the executor for scenarios on clusters.
///
/// # Errors
/// If the plan does not fit the cluster that it names.
pub type WallClock =
    for<'p> fn(&'p Plan, &'p [Part]) -> Result<Box<dyn Executor + 'p>, EngineError>;

/// An engine of one release that is ready to run the scenarios of a part.
pub trait ReadyEngine {
    /// Its name in reports.
    fn name(&self) -> Arc<str>;

    /// A note about the engine for readers of the report.
    fn note(&self) -> Option<String>;

    /// Runs the scenarios of the part, in parallel as the plan specifies, and records each outcome.
    ///
    /// # Errors
    /// If the engine can't run any scenario, or can't clean up.
    fn run(self: Box<Self>, record: &mut Record<'_>) -> Result<(), EngineError>;
}
