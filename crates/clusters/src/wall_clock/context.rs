//! The plan and the runtime that the clusters of all parts share.

use std::sync::Arc;

use tokio::runtime::Runtime;

use kube_lockstep_engines::plan::Plan;
use kube_lockstep_engines::runtime;
use kube_lockstep_engines::runtime::Threads;
use kube_lockstep_sim::engine::EngineError;

/// The plan, and the name and the runtime that its clusters share.
pub(super) struct Context {
    pub plan: Arc<Plan>,
    /// The engine's name.
    pub name: Arc<str>,
    pub runtime: Runtime,
}

impl Context {
    /// # Errors
    /// If no thread can be started.
    pub(super) fn new(plan: &Plan) -> Result<Context, EngineError> {
        let name = plan.engine_name();
        let runtime = runtime::for_engine(&name, Threads::AllCores)?;
        Ok(Context { plan: Arc::new(plan.clone()), name, runtime })
    }
}
