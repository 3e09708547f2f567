//! The plan and the runtime that the clusters of all parts share.

use std::sync::Arc;

use tokio::runtime::Runtime;

use crate::engine::EngineError;
use crate::engine::runtime::{self, Threads};
use crate::run::plan::Plan;

/// The plan, and the name and the runtime that its clusters share.
pub(super) struct Context {
    pub(super) plan: Arc<Plan>,
    /// The engine's name.
    pub(super) name: Arc<str>,
    pub(super) runtime: Runtime,
}

impl Context {
    /// # Errors
    /// If no thread can be started.
    pub(super) fn new(plan: &Plan) -> Result<Context, EngineError> {
        let name = plan.engine_name();
        let runtime = runtime::of_engine(&name, Threads::AllCores)?;
        Ok(Context { plan: Arc::new(plan.clone()), name, runtime })
    }
}
